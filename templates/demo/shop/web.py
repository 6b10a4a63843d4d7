"""The web page. `python -m shop.web` serves it on PORT (8080) and asks the API for everything."""

import json
import os
import secrets
from html import escape
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs
from urllib.request import Request, urlopen

from shop.prices import shown

BAY = os.environ.get("DEVBAY_BAY", "no bay")
STYLE = """
:root { --ink: #14202b; --paper: #f6f4ee; --line: #d9d4c7; --sea: hsl(HUE 62% 34%) }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.5 system-ui, sans-serif }
header { background: var(--sea); color: #fff; padding: 2.2rem 1rem 2.6rem }
main, header > div { max-width: 58rem; margin: auto; padding: 0 1rem }
main { padding-bottom: 3rem }
h1 { margin: 0; font-size: 2.3rem; letter-spacing: -.02em }
header p { margin: .3rem 0 0; opacity: .88 }
code { background: #0001; padding: .1em .35em; border-radius: .3em; font-size: .9em }
header code { background: #fff3 }
.shelf { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); margin-top: -1.3rem }
.card { background: #fff; border: 1px solid var(--line); border-radius: .8rem; padding: 1.1rem 1.2rem }
.card h2 { margin: 0; font-size: 1.15rem }
.card p { margin: .2rem 0 .9rem; color: #5a6570; min-height: 3em }
form { display: flex; gap: .5rem; align-items: center }
.price { font-weight: 650; margin-right: auto }
input { width: 3.6rem; padding: .35rem; border: 1px solid var(--line); border-radius: .4rem; font: inherit }
button { background: var(--sea); color: #fff; border: 0; border-radius: .4rem; padding: .45rem .9rem; font: inherit; cursor: pointer }
table { width: 100%; border-collapse: collapse } td { padding: .35rem 0; border-top: 1px solid var(--line) }
td:last-child, td:nth-child(2) { text-align: right }
footer { color: #5a6570; font-size: .9rem; margin-top: 1.5rem }
""".replace("HUE", str(sum(BAY.encode()) * 47 % 360))  # a colour of its own for each bay


def api(path, data=None):
    body = json.dumps(data).encode() if data is not None else None
    with urlopen(Request(os.environ["API_URL"] + path, body), timeout=10) as answer:
        return json.load(answer)


def page(visitor, visits):
    cards = "".join(
        f'<section class="card"><h2>{escape(item["name"])}</h2><p>{escape(item["blurb"])}</p>'
        f'<form method="post" action="/buy"><span class="price">{shown(item["price"])}</span>'
        f'<input type="hidden" name="product" value="{item["id"]}">'
        '<input type="number" name="quantity" value="1" min="1" max="99" aria-label="quantity">'
        "<button>Buy</button></form></section>"
        for item in api("/products")
    )
    bought = api("/orders")
    rows = "".join(
        f"<tr><td>{escape(order['product'])}</td><td>{order['quantity']} pieces</td><td>{shown(order['total'])}</td></tr>"
        for order in bought
    )
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>The Harbour Shop · {escape(BAY)}</title><style>{STYLE}</style>
<header><div><h1>The Harbour Shop</h1><p>in bay <code id="bay">{escape(BAY)}</code></p></div></header>
<main><div class="shelf">{cards}</div>
<h2>Orders: <span id="orders">{len(bought)}</span></h2>
<table>{rows or "<tr><td>Nothing was bought in this bay yet.</td></tr>"}</table>
<footer>You are visitor <code id="visitor">{visitor}</code>, on visit <span id="visits">{visits}</span>.
The API is at <a href="{escape(os.environ["API_PUBLIC_URL"])}/products">{escape(os.environ["API_PUBLIC_URL"])}</a>.
</footer></main></html>"""


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/healthz":
            self.answer("ok", kind="text/plain")
        elif self.path == "/":
            known = SimpleCookie(self.headers.get("Cookie", ""))
            visitor = known["visitor"].value if "visitor" in known else secrets.token_hex(4)
            visits = int(known["visits"].value) + 1 if "visits" in known else 1
            self.answer(page(escape(visitor), visits), cookies={"visitor": visitor, "visits": visits})
        else:
            self.answer("there is no such page", 404, kind="text/plain")

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        if self.path != "/buy":
            self.answer("there is no such page", 404, kind="text/plain")
            return
        api("/orders", {"product": int(form["product"][0]), "quantity": int(form["quantity"][0])})
        self.send_response(303)
        self.send_header("Location", "/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def answer(self, text, status=200, kind="text/html; charset=utf-8", cookies=()):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name in cookies:
            self.send_header("Set-Cookie", f"{name}={cookies[name]}; Path=/; Max-Age=86400; SameSite=Lax")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        if self.path != "/healthz":
            print(self.command, self.path, *args[1:2], flush=True)


if __name__ == "__main__":
    place = os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8080"))
    print(f"web on port {place[1]}", flush=True)
    ThreadingHTTPServer(place, Web).serve_forever()
