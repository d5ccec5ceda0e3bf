# `make` alone lists what there is. Everything is installed into .venv from the lock files.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev
SOURCES := service bot migrations tests

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): requirements.lock pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

$(DEV): requirements-dev.lock pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements-dev.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@ $(RUNTIME)

.PHONY: help
help: ## list what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: serve
serve: $(RUNTIME) ## install, migrate, load the catalogue and serve on 127.0.0.1:8080
	$(BIN)/trainmem serve

.PHONY: test
test: $(DEV) ## install and run all tests, on SQLite and on a real PostgreSQL
	scripts/ensure-chromium
	$(BIN)/python -m pytest

.PHONY: check
check: lint types imports ## lint, types and import rules

.PHONY: lint
lint: $(DEV) ## ruff: rules and formatting
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

.PHONY: types
types: $(DEV) ## mypy, strict on the engine
	$(BIN)/mypy

.PHONY: imports
imports: $(DEV) ## who may import whom
	$(BIN)/lint-imports

.PHONY: format
format: $(DEV) ## rewrite the sources as ruff likes them
	$(BIN)/ruff check --fix --exit-zero $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

.PHONY: calibrate
calibrate: $(DEV) ## rebuild the intervals from the packaged measured runs
	$(BIN)/python -m service.accuracy.calibration

AUTOGRAD := .venv-autograd

$(AUTOGRAD)/.installed: tests/autograd/requirements.txt
	$(PYTHON) -m venv $(AUTOGRAD)
	$(AUTOGRAD)/bin/python -m pip --disable-pip-version-check --quiet install -r $<
	touch $@

.PHONY: verify-autograd
verify-autograd: $(DEV) $(AUTOGRAD)/.installed ## re-measure small models with real torch and transformers, row by row
	mkdir -p build
	$(AUTOGRAD)/bin/python tests/autograd/measuring.py > build/measured.jsonl
	$(BIN)/python tests/autograd/verify.py build/measured.jsonl

.PHONY: bench
bench: $(DEV) ## benchmarks: speed as ratios inside one run
	$(BIN)/python -m pytest tests/benchmarks -p no:cacheprovider -o python_files='bench_*.py' -s

.PHONY: migrate
migrate: $(RUNTIME) ## bring the database of TRAINMEM_DATABASE_URL (or the embedded one) up to date
	$(BIN)/trainmem migrate

.PHONY: bot
bot: $(RUNTIME) ## run the Slack bot (see docs/slack.md for its settings)
	$(BIN)/trainmem bot

.PHONY: lock
lock: $(DEV) ## resolve the dependencies of pyproject.toml anew into the lock files
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --python-version 3.11 --extra build pyproject.toml --output-file requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --python-version 3.11 --extra build --extra dev pyproject.toml --output-file requirements-dev.lock

.PHONY: clean
clean: ## remove the environment, caches and the embedded database
	rm -rf $(VENV) $(AUTOGRAD) var build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
