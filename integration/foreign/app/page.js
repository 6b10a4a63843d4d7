const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text) => text.replace(/[&<>"]/g, (each) => escapes[each]);

function page(entries, id) {
  const items = entries.map((each) => `<li>${escape(each)}</li>`).join("");
  return `<!doctype html><title>Guestbook</title><h1>Guestbook</h1><p id="seen">${id}</p>
<ul>${items}</ul><form method="post" action="/entries"><input name="text"><button>Sign</button></form>`;
}

module.exports = { page };
