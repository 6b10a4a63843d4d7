# Two commands set everything up: `make demo` (with an engine or without) and `make test`.
# PYTHON names the interpreter that .venv is made of (3.11 or newer).
PYTHON ?= python3
PY := .venv/bin/python
# Tests of one file share a home and its daemon; homes do not meet.
SPREAD := -n 2 --dist loadfile

.PHONY: demo test engine integration host bench lint unit clean
.DEFAULT_GOAL := demo

demo: .venv/.devbay
	@.venv/bin/devbay demo

test: engine lint unit
	@$(PY) -m pytest integration -m "not full" $(SPREAD)
	@$(PY) integration/leftovers.py

# Installs and starts a container engine, its images and a browser where it may, and says what is
# missing where it may not (exit 3).
engine:
	@integration/engine/engine.sh all

integration: engine lint unit
	@$(PY) -m pytest integration $(SPREAD) --durations=25 --durations-min=1
	@$(PY) integration/leftovers.py

# What needs no engine, on a machine without one.
host: .venv/.dev
	@$(PY) -m pytest integration --runtime host $(SPREAD)
	@$(PY) integration/leftovers.py

bench: engine .venv/.dev
	@$(PY) -m integration.bench.bench
	@$(PY) -m integration.bench.host

lint: .venv/.dev
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check --quiet
	@$(PY) -m mypy

unit: .venv/.dev
	@$(PY) -m pytest tests -n 4 --dist loadfile

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "devbay needs Python 3.11 or newer; name one: make PYTHON=python3.12" >&2; exit 3; }
	@$(PYTHON) -m venv .venv || \
	  { echo "$(PYTHON) cannot make a virtual environment; on Debian: apt-get install python3-venv" >&2; exit 3; }
	@touch $@

.venv/.devbay: .venv/.made pyproject.toml
	@echo "installing devbay into .venv"
	@$(PY) -m pip install --quiet --editable ".[host]" || { \
	  echo "some wheels for bays without an engine do not exist for this machine; going on without them" >&2; \
	  $(PY) -m pip install --quiet --editable .; }
	@touch $@

# Dependency groups need pip 25.1.
.venv/.dev: .venv/.devbay
	@echo "installing what the tests need into .venv"
	@$(PY) -m pip install --quiet --upgrade "pip>=25.1"
	@$(PY) -m pip install --quiet --group dev
	@touch $@
