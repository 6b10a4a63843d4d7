"""Small Python repositories as people write them.

The page of each says what its own server counted, so that two bays that share anything are seen to.
"""

from __future__ import annotations

from integration.kind import Kind

PYTHON_DOCKERFILE = """\
FROM python:3.13-slim
WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
EXPOSE 8000
"""

COMPOSE = Kind(
    "compose",
    {
        "compose.yaml": """\
services:
  web:
    build: .
    ports: ["8000:8000"]
    environment:
      DATABASE_URL: postgres://app:app@db:5432/app
    depends_on:
      db:
        condition: service_healthy
  db:
    image: postgres:17
    environment:
      POSTGRES_USER: app
      POSTGRES_PASSWORD: app
      POSTGRES_DB: app
    volumes: ["data:/var/lib/postgresql/data"]
    healthcheck:
      test: ["CMD-SHELL", "pg_isready -U app"]
      interval: 5s
volumes:
  data:
""",
        "Dockerfile": PYTHON_DOCKERFILE + 'CMD ["python", "app.py"]\n',
        "requirements.txt": "flask\npsycopg[binary]\npytest\n",
        "app.py": """\
import os

import psycopg
from flask import Flask

app = Flask(__name__)


@app.get("/")
def home():
    with psycopg.connect(os.environ["DATABASE_URL"]) as database:
        database.execute("CREATE TABLE IF NOT EXISTS visits (at timestamptz DEFAULT now())")
        database.execute("INSERT INTO visits DEFAULT VALUES")
        (count,) = database.execute("SELECT count(*) FROM visits").fetchone()
    return f"<h1>visit {count}</h1>"


if __name__ == "__main__":
    app.run(host="0.0.0.0", port=8000)
""",
        "tests/test_home.py": """\
from app import app


def test_home_counts():
    assert b"visit" in app.test_client().get("/").data
""",
        "pytest.ini": "[pytest]\npythonpath = .\n",
    },
    {"web", "db"},
    {"test": 1},
)

DJANGO = Kind(
    "django-celery",
    {
        "docker-compose.yml": """\
services:
  web:
    build: .
    command: python manage.py runserver 0.0.0.0:8000
    volumes: [".:/app"]
    ports: ["8000:8000"]
    environment: &env
      DATABASE_URL: postgres://postgres:postgres@db/postgres
      CELERY_BROKER_URL: redis://redis:6379/0
    depends_on: [db, redis]
  worker:
    build: .
    command: celery -A site_ worker -l info
    volumes: [".:/app"]
    environment: *env
    depends_on: [db, redis]
  redis:
    image: redis:7
  db:
    image: postgres:17
    environment:
      POSTGRES_PASSWORD: postgres
""",
        "Dockerfile": PYTHON_DOCKERFILE,
        "requirements.txt": "django<6\ndj-database-url\npsycopg[binary]\ncelery[redis]\n"
        "pytest\npytest-django\n",
        "pytest.ini": "[pytest]\nDJANGO_SETTINGS_MODULE = site_.settings\n",
        "manage.py": """\
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
""",
        "site_/__init__.py": "from .celery import app as celery_app\n",
        "site_/celery.py": """\
import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_.settings")
app = Celery("site_")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
""",
        "site_/settings.py": """\
import os

import dj_database_url

SECRET_KEY = "only-for-development"
DEBUG = True
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "localhost").split(",")
INSTALLED_APPS = ["visits"]
ROOT_URLCONF = "site_.urls"
DATABASES = {"default": dj_database_url.config()}
CELERY_BROKER_URL = os.environ["CELERY_BROKER_URL"]
CELERY_RESULT_BACKEND = CELERY_BROKER_URL
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
""",
        "site_/urls.py": """\
from django.urls import path

from visits.views import home

urlpatterns = [path("", home)]
""",
        "visits/__init__.py": "",
        "visits/models.py": """\
from django.db import models


class Visit(models.Model):
    at = models.DateTimeField(auto_now_add=True)
""",
        "visits/migrations/__init__.py": "",
        "visits/migrations/0001_initial.py": """\
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel("Visit", [
            ("id", models.BigAutoField(primary_key=True)),
            ("at", models.DateTimeField(auto_now_add=True)),
        ]),
    ]
""",
        "visits/tasks.py": """\
from celery import shared_task

from .models import Visit


@shared_task
def visit():
    Visit.objects.create()
    return Visit.objects.count()
""",
        "visits/views.py": """\
from django.http import HttpResponse

from .tasks import visit


def home(request):
    return HttpResponse(f"<h1>visit {visit.delay().get(timeout=10)}</h1>")
""",
        "tests/test_visits.py": """\
import pytest

from visits.models import Visit


@pytest.mark.django_db
def test_a_visit_is_kept():
    Visit.objects.create()
    assert Visit.objects.count() == 1
""",
    },
    {"web", "worker", "redis", "db"},
    {"test": 1},
)

FASTAPI = Kind(
    "fastapi-alembic",
    {
        "compose.yml": """\
services:
  api:
    build: .
    command: uvicorn app.main:app --host 0.0.0.0 --port 8000 --reload
    volumes: ["./:/app"]
    ports: ["8000:8000"]
    environment:
      DATABASE_URL: ${DATABASE_URL:-postgresql+psycopg://postgres:postgres@postgres:5432/app}
    depends_on: [postgres]
  postgres:
    image: postgres:17
    ports: ["5432:5432"]
    environment:
      POSTGRES_PASSWORD: postgres
      POSTGRES_DB: app
""",
        "Dockerfile": PYTHON_DOCKERFILE,
        "requirements.txt": "fastapi\nuvicorn\nsqlalchemy\npsycopg[binary]\nalembic\npytest\nhttpx\n",
        "pytest.ini": "[pytest]\npythonpath = .\n",
        "alembic.ini": "[alembic]\nscript_location = migrations\nprepend_sys_path = .\n",
        "migrations/env.py": """\
from alembic import context

from app.main import engine

with engine.connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
""",
        "migrations/versions/1_visits.py": """\
from alembic import op

revision, down_revision = "1", None


def upgrade():
    op.execute("CREATE TABLE visits (id serial PRIMARY KEY)")
""",
        "app/__init__.py": "",
        "app/main.py": """\
import os

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from sqlalchemy import create_engine, text

engine = create_engine(os.environ["DATABASE_URL"])
app = FastAPI()


@app.get("/", response_class=HTMLResponse)
def home():
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO visits DEFAULT VALUES"))
        return f"<h1>visit {connection.execute(text('SELECT count(*) FROM visits')).scalar()}</h1>"
""",
        "tests/test_main.py": """\
from fastapi.testclient import TestClient

from app.main import app


def test_home():
    assert "visit" in TestClient(app).get("/").text
""",
    },
    {"api", "postgres"},
    {"test": 1},
)

PROCFILE = Kind(
    "procfile",
    {
        "Procfile": "web: gunicorn app:app --bind 0.0.0.0:$PORT\nworker: python worker.py\n",
        ".python-version": "3.13\n",
        "requirements.txt": "flask\ngunicorn\n",
        "requirements-dev.txt": "-r requirements.txt\npytest\n",
        "app.py": """\
from flask import Flask

app = Flask(__name__)
visits = []


@app.get("/")
def home():
    visits.append(1)
    return f"<h1>visit {len(visits)}</h1>"
""",
        "worker.py": "import time\n\nwhile True:\n    time.sleep(5)\n",
        "test_app.py": """\
from app import app


def test_home():
    assert b"visit" in app.test_client().get("/").data
""",
    },
    {"web", "worker"},
    {"test": 1},
)

PROCFILE_CI = Kind(
    "procfile-ci",
    {
        **{name: text for name, text in DJANGO.files.items() if "ocker" not in name},
        "Procfile": "release: python manage.py migrate\nweb: gunicorn site_.wsgi\n"
        "worker: celery -A site_ worker\n",
        "runtime.txt": "python-3.13\n",
        "requirements.txt": DJANGO.files["requirements.txt"] + "gunicorn\n",
        "site_/wsgi.py": """\
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_.settings")
application = get_wsgi_application()
""",
        ".github/workflows/ci.yml": """\
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    services:
      postgres:
        image: postgres:17
        env: {POSTGRES_PASSWORD: postgres}
        ports: ["5432:5432"]
      redis:
        image: redis:7
        ports: ["6379:6379"]
    env:
      DATABASE_URL: postgres://postgres:postgres@localhost:5432/postgres
      CELERY_BROKER_URL: redis://localhost:6379/0
    steps:
      - uses: actions/checkout@v4
      - run: pip install -r requirements.txt
      - run: pytest
""",
    },
    {"web", "worker", "postgres", "redis", "migrate"},
    {"test": 1},
)
