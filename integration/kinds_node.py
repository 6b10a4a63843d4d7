"""Small Node repositories as people write them.

The page of each says what its own server counted, so that two bays that share anything are seen to.
"""

from __future__ import annotations

from integration.kind import Kind

EXPRESS = Kind(
    "express-redis",
    {
        "compose.yaml": 'services:\n  redis:\n    image: redis:7\n    ports: ["6379:6379"]\n',
        ".nvmrc": "20\n",
        ".env.example": "REDIS_URL=redis://localhost:6379\nPORT=3000\n",
        "package.json": """\
{
  "name": "counter",
  "private": true,
  "scripts": { "start": "node server.js", "test": "node --test" },
  "dependencies": { "express": "^4.21.0", "redis": "^4.7.0" }
}
""",
        "server.js": """\
const express = require("express");
const { createClient } = require("redis");
const greet = require("./greet");

const app = express();
const redis = createClient({ url: process.env.REDIS_URL || "redis://localhost:6379" });
app.get("/", async (request, response) => response.send(greet(await redis.incr("visits"))));
redis.connect().then(() => app.listen(process.env.PORT || 3000));
""",
        "greet.js": "module.exports = (count) => `<h1>visit ${count}</h1>`;\n",
        "greet.test.js": """\
const test = require("node:test");
const assert = require("node:assert");
const greet = require("./greet");

test("says the visit", () => assert.match(greet(3), /visit 3/));
""",
    },
    {"redis", "counter"},
    {"test": 1},
)

VITE = Kind(
    "vite-api",
    {
        ".node-version": "20\n",
        "api/package.json": """\
{
  "name": "api",
  "scripts": { "start": "node server.js", "test": "node --test" }
}
""",
        "api/server.js": """\
const http = require("node:http");

let visits = 0;
const server = http.createServer((request, response) => response.end(`visit ${++visits}`));
server.listen(process.env.PORT || 4000);
""",
        "api/server.test.js": """\
require("node:test")("adds", () => require("node:assert").equal(1 + 1, 2));
""",
        "web/package.json": """\
{
  "name": "web",
  "type": "module",
  "scripts": { "dev": "vite", "build": "vite build" },
  "devDependencies": { "vite": "^6.2.0" }
}
""",
        "web/vite.config.js": """\
export default {
  server: { proxy: { "/api": process.env.API_URL || "http://localhost:4000" } },
};
""",
        "web/index.html": '<h1></h1><script type="module" src="/main.js"></script>\n',
        "web/main.js": """\
const answer = await fetch("/api/visits");
document.querySelector("h1").textContent = await answer.text();
""",
    },
    {"api", "web"},
    {"api-test": 1},
)

PNPM = Kind(
    "pnpm-workspace",
    {
        ".nvmrc": "20\n",
        "package.json": """\
{
  "name": "mono",
  "private": true,
  "packageManager": "pnpm@9.15.0",
  "scripts": { "dev": "pnpm -r --parallel dev", "test": "pnpm -r test" }
}
""",
        "pnpm-workspace.yaml": "packages:\n  - apps/*\n  - packages/*\n",
        "pnpm-lock.yaml": """\
lockfileVersion: '9.0'

settings:
  autoInstallPeers: true
  excludeLinksFromLockfile: false

importers:

  .: {}

  apps/site:
    dependencies:
      '@mono/words':
        specifier: workspace:*
        version: link:../../packages/words

  packages/words: {}
""",
        "apps/site/package.json": """\
{
  "name": "@mono/site",
  "scripts": { "dev": "node --watch server.js", "test": "node --test" },
  "dependencies": { "@mono/words": "workspace:*" }
}
""",
        "apps/site/server.js": """\
const http = require("node:http");
const { visit } = require("@mono/words");

let visits = 0;
http.createServer((request, response) => {
  response.setHeader("content-type", "text/html");
  response.end(request.url === "/" ? `<h1>${visit(++visits)}</h1>` : "");
}).listen(Number(process.env.PORT ?? 3000));
""",
        "apps/site/site.test.js": """\
const { visit } = require("@mono/words");

require("node:test")("the words are there", () => require("node:assert").equal(visit(1), "visit 1"));
""",
        "packages/words/package.json": """\
{ "name": "@mono/words", "version": "1.0.0", "main": "index.js", "scripts": { "test": "node --test" } }
""",
        "packages/words/index.js": "exports.visit = (count) => `visit ${count}`;\n",
        "packages/words/index.test.js": """\
require("node:test")("counts", () => require("node:assert").equal(require("./index").visit(2), "visit 2"));
""",
    },
    {"site"},
    {"site-test": 1},
)

DEVCONTAINER = Kind(
    "devcontainer",
    {
        ".devcontainer/devcontainer.json": """\
{
  // What the editor opens.
  "name": "notes",
  "image": "node:20",
  "forwardPorts": [3000],
  "postCreateCommand": "npm install",
}
""",
        "package.json": """\
{
  "name": "notes",
  "scripts": { "start": "node server.js", "test": "node --test" },
  "dependencies": { "express": "^4.21.0" }
}
""",
        "server.js": """\
const app = require("express")();

let visits = 0;
app.get("/", (request, response) => response.send(`<h1>visit ${++visits}</h1>`));
app.listen(3000);
""",
        "add.test.js": 'require("node:test")("adds", () => require("node:assert").equal(1 + 1, 2));\n',
    },
    {"notes"},
    {"test": 1},
)
