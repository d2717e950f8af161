# Firesteel's everyday commands. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help setup compiled demo test servers lint bench chaos clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The newest Python that is new enough. Each candidate is run: a launcher without a Python behind it does not count.
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON = $(shell for found in python3.13 python3.12 python3.11 python3; do \
	$$found -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && { command -v $$found; break; }; done)

# The major version of the Java that Spark would use, empty if there is none.
JAVA_MAJOR = $(shell "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 \
	| sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## create .venv and install Firesteel with its development tools (and a Java 17+, if none is found)

$(STAMP): pyproject.toml
	@python='$(PYTHON)'; \
	if [ -z "$$python" ]; then \
		echo "Firesteel needs Python 3.11 or newer: no python3.13, python3.12, python3.11 or python3 is." >&2; exit 1; \
	fi; \
	java='$(JAVA_MAJOR)'; extras=dev; \
	if [ "$${java:-0}" -lt 17 ]; then extras=dev,jre; echo "No Java 17 or newer found: installing one into $(VENV)."; fi; \
	echo "Installing Firesteel and what its tests need into $(VENV) (once, a minute or two)."; \
	[ -x $(BIN)/python ] || "$$python" -m venv $(VENV); \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$$extras]" && touch $(STAMP)
	@echo "Making the archive of classes that lets Spark start faster (once, about half a minute)."
	@$(BIN)/firesteel warmup || echo "It could not be made; jobs run all the same."

# A job has half a dozen Python processes. Where Python may not keep what it has compiled (PYTHONDONTWRITEBYTECODE), each
# of them would compile the package anew: about a second of every start.
compiled: $(STAMP)
	@$(BIN)/python -m compileall -q firesteel

demo: compiled ## run a job worth looking at: clicks, event time, a live table (about 40 s)
	@$(BIN)/python examples/demo_clicks.py

# On two cores: a good part of the processes waits at any time, for a lease, a server or a JVM.
PROCESSES ?= 4
test: compiled ## run the tests, in four processes (PROCESSES=2 for another number)
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadscope $(ARGS)

servers: compiled ## run the tests with servers that are too heavy for the others: OpenSearch, Cassandra (minutes, needs Maven)
	FIRESTEEL_SERVERS=1 $(BIN)/python -m pytest tests/servers $(ARGS)

lint: $(STAMP) ## check style (ruff), types (mypy) and who imports whom (import-linter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples
	$(BIN)/lint-imports

bench: compiled ## measure against PyFlink, Bytewax and plain Python (hours; GROUP=engine, state, windows, nexmark, recovery, kafka, latency, cep, sql, connectors or gelly for a part)
	$(BIN)/python -m benchmarks $(if $(GROUP),--group $(GROUP))

chaos: compiled ## kill a real job dozens of times and compare what it gives (half an hour; ARGS="--seed 7", needs PostgreSQL and Maven)
	$(BIN)/python -m chaos $(ARGS)

clean: ## remove .venv, caches and what builds and runs left behind (the peers' environments in .bench stay)
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache
	rm -rf spark-warehouse metastore_db artifacts derby.log
	find firesteel tests tools benchmarks chaos examples -name __pycache__ -type d -prune -exec rm -rf {} +
