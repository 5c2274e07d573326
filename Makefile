# `make book` and `make test` set everything up themselves.
PYTHON ?= python3
PROFILE ?= offline
BIN := .venv/bin

.PHONY: book test lint bench clean

book: .venv/.book
	$(BIN)/layergeom book --profile $(PROFILE)

test: .venv/.test
	$(BIN)/python -m pytest

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.test
	$(BIN)/python benchmarks/benchmark.py

clean:
	rm -rf _build .snakemake

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "layergeom needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv

.venv/.book: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing layergeom into .venv (a few minutes the first time) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

.venv/.test: .venv/.book
	@echo "Installing the test tools into .venv ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	@touch $@
