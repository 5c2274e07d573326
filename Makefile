# `make book` and `make test` set everything up themselves.
PYTHON ?= python3
PROFILE ?= offline
BIN := .venv/bin

# Only what is imported is compiled, when it first is: all of it would take a minute of the installation.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
  --constraint constraints.txt

.PHONY: book test lint bench clean

book: .venv/.book
	$(BIN)/layergeom book --profile $(PROFILE)

test: .venv/.test
	$(BIN)/python -m pytest

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.bench
	$(BIN)/python -m benchmarks

clean:
	rm -rf _build .snakemake

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "layergeom needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv

.venv/.book: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing layergeom into .venv (a few minutes the first time) ..."
	$(INSTALL) --editable .
	@touch $@

# mne-rsa draws brains as well; what it needs for that is not installed.
.venv/.bench: .venv/.test benchmarks/peers.txt
	@echo "Installing the packages to compare with into .venv ..."
	$(INSTALL) --requirement benchmarks/peers.txt
	$(INSTALL) --no-deps mne-rsa
	@touch $@

.venv/.test: .venv/.book
	@echo "Installing the test tools into .venv ..."
	$(INSTALL) --editable '.[test]'
	@touch $@
