# holdfast: everything a newcomer or a CI machine runs. `make help` lists it.
#
# The targets set up their own environment in .venv, once: a stamp file remembers for which
# pyproject.toml. Works with GNU make 3.81 (macOS) and newer. Give another interpreter with
# `make PYTHON=python3.12 ...`.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.holdfast-dev
BENCH_STAMP := $(VENV)/.holdfast-bench
SHIPPED := src/holdfast/core/engine/kernels/compiled
PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13
# What `wheel` needs: `wheels` builds in environments that have no tools.
ENVIRONMENT := $(STAMP)
PYTEST := $(BIN)/python -m pytest -q -n auto --dist loadgroup

.PHONY: help setup demo test test-slow test-oldest lint check bench wheel wheels clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       a two-minute tour on generated data"
	@echo "make test       all fast tests, and the examples in the docstrings"
	@echo "make test-slow  long state machines, fault injection, other Javas: up to an hour on two cores"
	@echo "make test-oldest  the tests of the engine on the oldest PySpark that is supported (downloads it)"
	@echo "make lint       ruff and mypy"
	@echo "make check      lint, then test"
	@echo "make bench      the benchmarks (installs the peers first)"
	@echo "make wheel      a wheel with compiled kernels, for this Python and this kind of processor, in dist"
	@echo "make wheels     the same for python3.11, python3.12 and python3.13, those of them that are here"
	@echo "make clean      remove the environment and everything that tools left behind"

setup: $(STAMP)

demo: $(STAMP)
	@$(BIN)/python -m holdfast.app.demo

test: $(STAMP)
	$(PYTEST) -m "not slow" tests src

test-slow: $(STAMP)
	$(PYTEST) -m slow tests

# Old PySpark leaves sockets to the garbage collector, which is no fault of ours.
test-oldest: $(STAMP)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --upgrade --target $(VENV)/oldest 'pyspark==4.0.*'
	PYTHONPATH=$(CURDIR)/$(VENV)/oldest $(BIN)/python -m pytest -q -n 0 -m "not slow" -W ignore::ResourceWarning \
	  -W ignore::pytest.PytestUnraisableExceptionWarning tests/pipeline/test_engine.py \
	  tests/pipeline/test_engines_agree.py tests/pipeline/test_fds_on_spark.py tests/pipeline/test_inds_on_spark.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test

bench: $(BENCH_STAMP)
	$(BIN)/python -m benchmarks

# Where it is installed nothing is compiled. The folder goes again: in place, kernels are for this processor.
wheel: $(ENVIRONMENT)
	@$(BIN)/python -m holdfast.kernels --ship
	@$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps -w dist . ; \
	  status=$$?; rm -rf $(SHIPPED); exit $$status
	@ls dist/*.whl

# Kernels are compiled by the Python that they are for: each has an environment of its own, with no tools in it.
wheels:
	@for python in $(PYTHONS); do \
	  if ! name=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then \
	    echo "there is no $$python here: no wheel for it"; \
	    continue; \
	  fi; \
	  venv=$(VENV)/wheels/$$name; \
	  $(MAKE) --no-print-directory wheel VENV=$$venv PYTHON="$$python" ENVIRONMENT=$$venv/.holdfast-bare || exit 1; \
	done

clean:
	rm -rf $(VENV) $(SHIPPED) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- the environment ---------------------------------------------------------------------------------

# The first interpreter that is new enough: $(PYTHON), else a newer one by its full name.
$(BIN)/python:
	@for python in $(PYTHON) python3.13 python3.12 python3.11; do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    exec "$$python" -m venv $(VENV); \
	  fi; \
	done; \
	echo "holdfast needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	echo "Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2; \
	exit 1

# PySpark comes as a source package of 490 MB unpacked: hence the minutes. The class archive only makes
# Spark start faster, so a failure there does not matter.
$(STAMP): pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV) (first time: a few minutes)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev]'
	@$(BIN)/python -c 'from holdfast.core.engine.java import find_java; find_java()' 2>/dev/null \
	  || { echo "no Java 17 or newer found: installing one into $(VENV)"; \
	       $(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[jre]'; }
	@$(BIN)/python -m holdfast.kernels
	@$(BIN)/python -m holdfast.core.engine.class_archive || true
	@touch $@

$(VENV)/.holdfast-bare: pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e .
	@touch $@

$(BENCH_STAMP): $(STAMP)
	@echo "installing the peers to measure against"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[bench]'
	@touch $@
