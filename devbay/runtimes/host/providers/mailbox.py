"""A mail server that sends nothing on: SMTP in, and out what asks Mailpit or MailHog. Imports no devbay.

Routes: Mailpit's API v1 (its documentation, `/api/v1/`) and MailHog's v1 and v2 (its `docs/APIv2.md`). Any
credentials pass. The newest mails are kept, as files too, so that a restart shows them again.
"""

from __future__ import annotations

import argparse
import asyncio
import email
import email.policy
import html
import json
import re
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import getaddresses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

LOOPBACK = "127.0.0.1"
MAX_MAILS = 500
MAX_BYTES = 32 * 1024**2
SNIPPET = 250
_ENVELOPE = re.compile(rb"X-Devbay-(From|To): ([^\r\n]*)\r?\n")


@dataclass(frozen=True)
class Mail:
    """One message as it came; sender and recipients are the envelope's."""

    id: str
    at: str
    sender: str
    recipients: tuple[str, ...]
    raw: bytes
    read: threading.Event = field(default_factory=threading.Event)

    @property
    def message(self) -> EmailMessage:
        parsed = email.message_from_bytes(self.raw, policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        return parsed

    def addresses(self, header: str) -> list[dict[str, str]]:
        texts = [str(value) for value in self.message.get_all(header, [])]
        return [{"Name": name, "Address": address} for name, address in getaddresses(texts) if address]

    def body(self, kind: str) -> str:
        part = self.message.get_body((kind,))
        return _text(part) if isinstance(part, EmailMessage) else ""

    def attachments(self) -> list[dict[str, Any]]:
        return [
            {
                "PartID": str(number),
                "FileName": part.get_filename() or "",
                "ContentType": part.get_content_type(),
                "ContentID": str(part.get("Content-ID") or "").strip("<>"),
                "Size": len(_content(part)),
            }
            for number, part in enumerate(self.message.iter_attachments(), 1)
        ]


class Box:
    """The mails, newest last; every method may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._mails: dict[str, Mail] = {}
        for path in sorted(folder.glob("*.eml"))[-MAX_MAILS:]:
            mail = _load(path)
            self._mails[mail.id] = mail

    def add(self, sender: str, recipients: list[str], raw: bytes) -> str:
        now = time.time_ns()
        name = f"{now:019d}-{secrets.token_hex(4)}"
        at = datetime.fromtimestamp(now / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = [f"X-Devbay-From: {sender}", *(f"X-Devbay-To: {one}" for one in recipients), ""]
        draft = self._folder / f"{name}.draft"
        draft.write_bytes("\r\n".join(head).encode() + raw)
        draft.rename(self._path(name))
        with self._lock:
            self._mails[name] = Mail(name, at, sender, tuple(recipients), raw)
            too_many = list(self._mails)[:-MAX_MAILS]
        self.remove(too_many)
        return name

    def newest_first(self) -> list[Mail]:
        with self._lock:
            return list(reversed(self._mails.values()))

    def get(self, name: str) -> Mail | None:
        with self._lock:
            if name == "latest":
                return next(reversed(self._mails.values()), None)
            return self._mails.get(name)

    def remove(self, names: list[str]) -> None:
        """Names that are not there are no fault."""
        with self._lock:
            known = [name for name in names if self._mails.pop(name, None) is not None]
        for name in known:
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.eml"


def _load(path: Path) -> Mail:
    raw = path.read_bytes()
    envelope: list[tuple[str, str]] = []
    while found := _ENVELOPE.match(raw):
        envelope.append((found[1].decode(), found[2].decode("utf-8", "replace")))
        raw = raw[found.end() :]
    stamp = int(path.name.partition("-")[0])
    at = datetime.fromtimestamp(stamp / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    senders = [value for name, value in envelope if name == "From"]
    return Mail(path.stem, at, "".join(senders), tuple(v for name, v in envelope if name == "To"), raw)


def _content(part: EmailMessage) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _text(part: EmailMessage) -> str:
    charset = part.get_content_charset() or "utf-8"
    try:
        return _content(part).decode(charset, "replace")
    except LookupError:
        return _content(part).decode("utf-8", "replace")


# -- what clients of the two programs read -----------------------------------------------------------


def mailpit_summary(mail: Mail) -> dict[str, Any]:
    message = mail.message
    text = mail.body("plain") or re.sub(r"<[^>]*>", " ", mail.body("html"))
    named = {one["Address"] for header in ("To", "Cc") for one in mail.addresses(header)}
    blind = [{"Name": "", "Address": one} for one in mail.recipients if one not in named]
    return {
        "ID": mail.id,
        "MessageID": str(message.get("Message-ID") or "").strip("<>"),
        "Read": mail.read.is_set(),
        "From": next(iter(mail.addresses("From")), {"Name": "", "Address": mail.sender}),
        "To": mail.addresses("To"),
        "Cc": mail.addresses("Cc"),
        "Bcc": mail.addresses("Bcc") or blind,
        "ReplyTo": mail.addresses("Reply-To"),
        "Subject": str(message.get("Subject") or ""),
        "Created": mail.at,
        "Tags": [],
        "Size": len(mail.raw),
        "Attachments": len(mail.attachments()),
        "Snippet": " ".join(text.split())[:SNIPPET],
    }


def mailpit_message(mail: Mail) -> dict[str, Any]:
    summary = mailpit_summary(mail)
    for key in ("Read", "Created", "Snippet"):
        del summary[key]
    return {
        **summary,
        "ReturnPath": mail.sender,
        "Date": mail.at,
        "Text": mail.body("plain"),
        "HTML": mail.body("html"),
        "Inline": [],
        "Attachments": mail.attachments(),
    }


def mailpit_list(found: list[Mail], everything: list[Mail], start: int, limit: int) -> dict[str, Any]:
    page = found[start : start + limit]
    unread = sum(not mail.read.is_set() for mail in everything)
    return {
        "total": len(everything),
        "unread": unread,
        "count": len(page),
        "messages_count": len(found),
        "messages_unread": sum(not mail.read.is_set() for mail in found),
        "start": start,
        "tags": [],
        "messages": [mailpit_summary(mail) for mail in page],
    }


def mailhog_item(mail: Mail) -> dict[str, Any]:
    def path(address: str) -> dict[str, Any]:
        box, _, domain = address.rpartition("@")
        return {"Relays": None, "Mailbox": box, "Domain": domain, "Params": ""}

    headers: dict[str, list[str]] = {}
    for name, value in mail.message.items():
        headers.setdefault(name, []).append(str(value))
    text = mail.raw.decode("utf-8", "replace")
    body = re.split(r"\r?\n\r?\n", text, maxsplit=1)
    content = {
        "Headers": headers,
        "Body": body[1] if len(body) > 1 else "",
        "Size": len(mail.raw),
        "MIME": None,
    }
    return {
        "ID": mail.id,
        "From": path(mail.sender),
        "To": [path(one) for one in mail.recipients],
        "Content": content,
        "Created": mail.at,
        "MIME": None,
        "Raw": {"From": mail.sender, "To": list(mail.recipients), "Data": text, "Helo": ""},
    }


def search(mails: list[Mail], query: str) -> list[Mail]:
    """Words, and `from:`, `to:`, `subject:` before one, that must all be found."""
    terms = re.findall(r'(?:(from|to|subject):)?(?:"([^"]*)"|(\S+))', query.lower())

    def has(mail: Mail, where: str, word: str) -> bool:
        fields = {
            "from": f"{mail.sender} {mail.message.get('From', '')}",
            "to": f"{' '.join(mail.recipients)} {mail.message.get('To', '')}",
            "subject": str(mail.message.get("Subject", "")),
        }
        text = (
            fields[where]
            if where
            else f"{' '.join(fields.values())} {mail.body('plain')} {mail.body('html')}"
        )
        return word in text.lower()

    return [mail for mail in mails if all(has(mail, where, quoted or word) for where, quoted, word in terms)]


def page(mails: list[Mail]) -> str:
    rows = "".join(
        f"<tr><td>{mail.at}<td>{html.escape(mail.sender)}<td>{html.escape(', '.join(mail.recipients))}"
        f"<td>{html.escape(str(mail.message.get('Subject') or '(no subject)'))}"
        f'<td><a href="/view/{mail.id}.txt">text</a> <a href="/view/{mail.id}.html">html</a></tr>'
        for mail in mails
    )
    head = '<!doctype html><meta charset="utf-8"><title>Mail</title>'
    return f"{head}<h1>{len(mails)} mails</h1><table>{rows}</table>"


# -- the two listeners -------------------------------------------------------------------------------


class Answers(BaseHTTPRequestHandler):
    """One request; `box` and `mailhog` are set by `serve`."""

    box: Box
    mailhog: bool
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        everything = self.box.newest_first()
        start, limit = _number(query, "start", 0), _number(query, "limit", 50)
        match url.path.strip("/").split("/"):
            case [""]:
                self._send(200, page(everything).encode(), "text/html; charset=utf-8")
            case ["livez"] | ["readyz"]:
                self._send(200, b"ok", "text/plain")
            case ["api", "v1", "info"]:
                unread = sum(not mail.read.is_set() for mail in everything)
                self._json({"Version": "devbay", "Messages": len(everything), "Unread": unread})
            case ["api", "v1", "messages"] if self.mailhog:
                self._json([mailhog_item(mail) for mail in everything])
            case ["api", "v1", "messages"]:
                self._json(mailpit_list(everything, everything, start, limit))
            case ["api", "v1", "search"]:
                found = search(everything, query.get("query", ""))
                self._json(mailpit_list(found, everything, start, limit))
            case ["api", "v2", "messages"]:
                self._mailhog_list(everything, start, limit)
            case ["api", "v2", "search"]:
                kind = query.get("kind", "containing")
                word = json.dumps(query.get("query", ""), ensure_ascii=False)
                self._mailhog_list(
                    search(everything, word if kind == "containing" else f"{kind}:{word}"), start, limit
                )
            case ["api", "v1", "message", name]:
                self._one(name, lambda mail: self._json(mailpit_message(mail)), mark=True)
            case ["api", "v1", "message", name, "raw"]:
                self._one(name, lambda mail: self._send(200, mail.raw, "text/plain"))
            case ["api", "v1", "message", name, "headers"]:
                self._one(name, lambda mail: self._json(mailhog_item(mail)["Content"]["Headers"]))
            case ["api", "v1", "messages", name] if self.mailhog:
                self._one(name, lambda mail: self._json(mailhog_item(mail)))
            case ["view", name]:
                stem, _, kind = name.rpartition(".")
                plain = kind == "txt"
                self._one(stem, lambda mail: self._view(mail, plain=plain))
            case _:
                self._send(404, b"not found", "text/plain")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        body = self._body()
        match urlsplit(self.path).path.strip("/").split("/"):
            case ["api", "v1", "messages"]:
                ids = body.get("IDs") or body.get("ids") or [mail.id for mail in self.box.newest_first()]
                self.box.remove([str(one) for one in ids])
                self._send(200, b"ok", "text/plain")
            case ["api", "v1", "messages", name]:
                self.box.remove([name])
                self._send(200, b"ok", "text/plain")
            case _:
                self._send(404, b"not found", "text/plain")

    def _mailhog_list(self, mails: list[Mail], start: int, limit: int) -> None:
        items = [mailhog_item(mail) for mail in mails[start : start + limit]]
        self._json({"total": len(mails), "count": len(items), "start": start, "items": items})

    def _one(self, name: str, answer: Callable[[Mail], None], *, mark: bool = False) -> None:
        mail = self.box.get(name)
        if mail is None:
            self._send(404, b"Message not found", "text/plain")
            return
        if mark:
            mail.read.set()
        answer(mail)

    def _view(self, mail: Mail, *, plain: bool) -> None:
        kind, text = ("text/plain", mail.body("plain")) if plain else ("text/html", mail.body("html"))
        self._send(200, text.encode(), f"{kind}; charset=utf-8")

    def _body(self) -> dict[str, Any]:
        size = min(int(self.headers.get("Content-Length") or 0), 1024**2)
        try:
            found = json.loads(self.rfile.read(size) or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", "sandbox")  # a mail's scripts are strangers
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not worth a line each."""


class Takes:
    """aiosmtpd's handler: every mail goes into the box."""

    def __init__(self, box: Box) -> None:
        self._box = box

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content
        raw = content if isinstance(content, bytes) else (content or "").encode()
        recipients = [_address(one) for one in envelope.rcpt_tos]
        try:
            name = await asyncio.to_thread(self._box.add, _address(envelope.mail_from), recipients, raw)
        except OSError as error:
            return f"452 4.3.1 not kept: {error.strerror}"
        sys.stdout.write(f"mail {name} for {', '.join(recipients)}\n")
        sys.stdout.flush()
        return f"250 OK: queued as {name}"


def _address(value: str | None) -> str:
    return re.sub(r"[\r\n]", "", value or "")


def _number(query: dict[str, str], name: str, otherwise: int) -> int:
    return int(query[name]) if query.get(name, "").isdigit() else otherwise


async def take_mail(box: Box, port: int, stop: asyncio.Event, then: Callable[[], None]) -> None:
    """Take mail until `stop`; `then` is called once it can be sent."""

    def anyone(*_: Any) -> AuthResult:
        return AuthResult(success=True)

    def session() -> SMTP:
        return SMTP(
            Takes(box), data_size_limit=MAX_BYTES, enable_SMTPUTF8=True, auth_require_tls=False,
            authenticator=anyone, ident="devbay mailbox", hostname="localhost",
        )  # fmt: skip

    async with await asyncio.get_running_loop().create_server(session, LOOPBACK, port):
        then()
        await stop.wait()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--as", dest="program", choices=("mailpit", "mailhog"), default="mailpit")
    parser.add_argument("--smtp", type=int)
    parser.add_argument("--http", type=int)
    wanted = parser.parse_args()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    box = Box(wanted.folder)

    def show() -> None:
        if not wanted.http:
            return
        handler = type("Bound", (Answers,), {"box": box, "mailhog": wanted.program == "mailhog"})
        server = ThreadingHTTPServer((LOOPBACK, wanted.http), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()

    if wanted.smtp:  # first, since who is asked whether all is up is the other
        await take_mail(box, wanted.smtp, stop, show)
        return
    show()
    await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
