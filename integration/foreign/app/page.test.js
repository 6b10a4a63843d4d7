const test = require("node:test");
const assert = require("node:assert");
const { page } = require("./page");

test("an entry is shown", () => assert.match(page(["hello"], "x"), /<li>hello<\/li>/));
test("markup in an entry is shown as text", () => assert.match(page(["<b>"], "x"), /&lt;b&gt;/));
