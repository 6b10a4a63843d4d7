// A guestbook: entries live in Redis, the process knows nothing of where it runs.
const http = require("node:http");
const { createClient } = require("redis");
const { page } = require("./page");

const store = createClient({ url: process.env.REDIS_URL || "redis://localhost:6379" });
const port = Number(process.env.PORT || 3000);

async function answer(request, response) {
  if (request.url === "/health") return response.end(await store.ping());
  if (request.method === "POST" && request.url === "/entries") {
    let body = "";
    for await (const chunk of request) body += chunk;
    await store.rPush("entries", new URLSearchParams(body).get("text") || "");
    response.writeHead(303, { location: "/" });
    return response.end();
  }
  const seen = /seen=(\w+)/.exec(request.headers.cookie || "");
  const id = seen ? seen[1] : Math.random().toString(36).slice(2);
  response.setHeader("set-cookie", `seen=${id}; Path=/; SameSite=Strict; HttpOnly`);
  response.setHeader("content-type", "text/html; charset=utf-8");
  response.end(page(await store.lRange("entries", 0, -1), id));
}

store.connect().then(() => {
  http.createServer((request, response) => {
    answer(request, response).catch((error) => { response.statusCode = 500; response.end(String(error)); });
  }).listen(port, () => console.log(`listening on ${port}`));
});
process.on("SIGTERM", () => process.exit(0));
