"""Repositories that say nothing but their sources, by the starter that `devbay init` takes for them."""

from __future__ import annotations

from integration.kinds_python import DJANGO

SAID = "served as a starter says"

STARTERS: dict[str, dict[str, str]] = {
    "flask": {
        ".python-version": "3.13\n",
        "app.py": f"from flask import Flask\n\napp = Flask(__name__)\napp.get('/')(lambda: '{SAID}')\n",
    },
    "fastapi": {
        ".python-version": "3.13\n",
        "main.py": f"from fastapi import FastAPI\n\nsite = FastAPI()\nsite.get('/')(lambda: '{SAID}')\n",
    },
    "python-web": {
        ".python-version": "3.13\n",
        "server.py": f"""\
from http.server import BaseHTTPRequestHandler, HTTPServer


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{SAID}")


HTTPServer(("", 8080), Page).serve_forever()
""",
    },
    "django": {
        ".python-version": "3.13\n",
        ".gitignore": "*.sqlite3\n__pycache__\n",
        "manage.py": DJANGO.files["manage.py"],
        "site_/__init__.py": "",
        "site_/settings.py": """\
SECRET_KEY = "only-for-development"
DEBUG = True
ALLOWED_HOSTS = []
INSTALLED_APPS = ["django.contrib.contenttypes"]
ROOT_URLCONF = "site_.urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "data.sqlite3"}}
""",
        "site_/urls.py": f"""\
from django.contrib.contenttypes.models import ContentType
from django.http import HttpResponse
from django.urls import path

urlpatterns = [path("", lambda request: HttpResponse("{SAID}" * bool(ContentType.objects.count())))]
""",
    },
    "node-web": {
        ".nvmrc": "20\n",
        "server.js": f"require('http').createServer((q, r) => r.end('{SAID}')).listen(3000);\n",
    },
    "static-site": {"index.html": f"<p>{SAID}</p>\n"},
}
