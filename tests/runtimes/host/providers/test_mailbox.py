"""The mailbox as an application and its tests see it: over SMTP, and by Mailpit's and MailHog's routes."""

from __future__ import annotations

import json
import os
import smtplib
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from devbay.errors import DevbayError
from devbay.jobs import Job
from devbay.runtimes.base import ServiceSpec
from devbay.runtimes.host.providers.mail import Mail, ports

PATH = os.environ.get("PATH", "")
PROVIDER = Mail()
READY = ("/mailpit", "readyz")


class Running:
    """A started mailbox."""

    def __init__(self, spec: ServiceSpec) -> None:
        self.smtp, self.http = ports(spec)

    def send(self, subject: str = "Grüße", **headers: str) -> None:
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = subject, "Shop <shop@x.test>", "Ann <ann@x.test>"
        for name, value in headers.items():
            mail[name] = value
        mail.set_content("plain ünd text\n")
        mail.add_alternative("<p>rich</p><script>alert(1)</script>", subtype="html")
        mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="bill.pdf")
        with smtplib.SMTP("127.0.0.1", self.smtp or 0) as connection:
            connection.login("anyone", "anything")
            connection.send_message(mail, "bounce@x.test", ["ann@x.test", "blind@x.test"])

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        content = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", content, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
            return json.loads(text) if answer.headers["Content-Type"] == "application/json" else text


@pytest.fixture
def start(data: Path, run: Any, servers: Any, templates: Any, spec_of: Any) -> Callable[..., Running]:
    def begin(image: str = "axllent/mailpit") -> Running:
        try:
            server = PROVIDER.find(image, PATH)
        except DevbayError as error:
            pytest.skip(error.message)
        spec = spec_of(image, ports={"port": 8025, "smtp": 1025})
        PROVIDER.prepare(spec, server, data, templates, None, run, Job())
        check = PROVIDER.probe(spec, server, READY)
        assert callable(check)
        running = Running(spec)
        running.process = servers.start(PROVIDER.launch(spec, server, data, None), check)  # type: ignore[attr-defined]
        return running

    return begin


def test_a_mail_is_listed_and_shown_as_mailpit_does(start: Any) -> None:
    box = start()
    box.send()
    listed = box.ask("/api/v1/messages")
    assert (listed["total"], listed["unread"], listed["messages_count"]) == (1, 1, 1)
    (summary,) = listed["messages"]
    assert summary["Subject"] == "Grüße"
    assert summary["From"] == {"Name": "Shop", "Address": "shop@x.test"}
    assert summary["To"] == [{"Name": "Ann", "Address": "ann@x.test"}]
    assert summary["Bcc"] == [{"Name": "", "Address": "blind@x.test"}]
    assert (summary["Attachments"], summary["Snippet"]) == (1, "plain ünd text")
    shown = box.ask(f"/api/v1/message/{summary['ID']}")
    assert (shown["Text"].strip(), shown["HTML"].startswith("<p>rich</p>")) == ("plain ünd text", True)
    assert shown["ReturnPath"] == "bounce@x.test"
    assert [(one["FileName"], one["Size"]) for one in shown["Attachments"]] == [("bill.pdf", 4)]
    assert box.ask("/api/v1/messages")["unread"] == 0
    assert box.ask("/api/v1/message/latest")["ID"] == summary["ID"]
    assert "Subject:" in box.ask("/api/v1/message/latest/raw")


def test_a_mail_is_listed_as_mailhog_does(start: Any) -> None:
    box = start("mailhog/mailhog:v1.0.1")
    box.send("hello")
    listed = box.ask("/api/v2/messages")
    assert (listed["total"], listed["count"]) == (1, 1)
    (item,) = listed["items"]
    assert item["Content"]["Headers"]["Subject"] == ["hello"]
    assert [f"{one['Mailbox']}@{one['Domain']}" for one in item["To"]] == ["ann@x.test", "blind@x.test"]
    assert item["Raw"]["From"] == "bounce@x.test"
    assert box.ask("/api/v2/search?kind=to&query=nobody")["total"] == 0
    assert box.ask("/api/v2/search?kind=to&query=ann@x.test")["total"] == 1
    assert box.ask("/api/v1/messages")[0]["ID"] == item["ID"]


def test_mails_are_found_by_words_and_fields(start: Any) -> None:
    box = start()
    box.send("first order")
    box.send("second order")
    assert box.ask("/api/v1/search?query=subject:first")["messages_count"] == 1
    assert box.ask("/api/v1/search?query=order")["messages_count"] == 2
    assert box.ask("/api/v1/search?query=subject:%22second%20order%22%20to:ann")["messages_count"] == 1


def test_deleted_mails_are_gone_and_named_ones_alone(start: Any, data: Path) -> None:
    box = start()
    for subject in ("1", "2", "3"):
        box.send(subject)
    newest, _, oldest = box.ask("/api/v1/messages")["messages"]
    assert (newest["Subject"], oldest["Subject"]) == ("3", "1")
    box.ask("/api/v1/messages", "DELETE", {"IDs": [newest["ID"], "not there"]})
    assert box.ask("/api/v1/messages")["total"] == 2
    box.ask("/api/v1/messages", "DELETE")
    assert box.ask("/api/v1/messages")["total"] == 0
    assert not list(data.iterdir())


def test_mails_are_there_again_after_a_restart(start: Any, servers: Any) -> None:
    box = start()
    box.send("kept")
    before = box.ask("/api/v1/messages")["messages"]
    assert servers.stop(box.process) == 0
    after = start().ask("/api/v1/messages")["messages"]
    assert [{**one, "Read": False} for one in after] == before


def test_a_strangers_markup_stays_text_and_its_scripts_do_not_run(start: Any) -> None:
    box = start()
    box.send("<script>alert(1)</script>")
    assert "<script>" not in box.ask("/")
    name = box.ask("/api/v1/messages")["messages"][0]["ID"]
    with urllib.request.urlopen(f"http://127.0.0.1:{box.http}/view/{name}.html", timeout=10) as answer:
        assert answer.headers["Content-Security-Policy"] == "sandbox"


def test_what_is_not_there_is_not_found(start: Any) -> None:
    box = start()
    for path in ("/api/v1/message/x", "/api/v1/message/latest", "/nothing", "/view/..%2f.txt"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            box.ask(path)


def test_health_routes_answer(start: Any) -> None:
    box = start()
    assert [box.ask(path) for path in ("/livez", "/readyz")] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("declared", "found"),
    [
        ({"port": 8025, "smtp": 1025}, ("smtp", "port")),
        ({"port": 1025, "ui": 8025}, ("port", "ui")),
        ({"port": 1080, "smtp": 1025}, ("smtp", "port")),
        ({"port": 1025}, ("port", None)),
        ({"port": 2525}, ("port", None)),
    ],
)
def test_ports_are_known_by_number_and_by_name(
    spec_of: Any, declared: dict[str, int], found: tuple[str | None, str | None]
) -> None:
    spec = spec_of("axllent/mailpit", ports=declared)
    assert ports(spec) == tuple(spec.ports[name][1] if name else None for name in found)


def test_it_is_said_what_stands_in(spec_of: Any) -> None:
    assert "own mailbox" in PROVIDER.find("axllent/mailpit:v1.21", PATH).note
