# make        lists what there is
# make demo   everything from nothing to pictures
# make check  most of what has to hold, in a few minutes
# make test   everything that has to hold
# make test-full  the same with five times as many random examples and simulations
# make docs   the site, in docs/_build/html
# make bench  how fast it is, in ratios
#
# Needs Python 3.11 or later, make and git. Works with GNU Make 3.81 and in folders with
# spaces: all paths here are relative.

PYTHON ?= python3
PY := .venv/bin/python
LOWEST := .venv-lowest/bin/python
# uv installs ten times as fast as pip, which does it where uv cannot. It does not read the settings
# of pip, so the index is passed on if they name another.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
INDEX := $(PY) -m pip config list | sed -n "s/^[a-z:]*[.]index-url='\(.*\)'/\1/p" | tail -n 1
UV := index=$$($(INDEX)); $(PY) -m uv pip install --quiet $${index:+--default-index "$$index"}
# One worker more than there are cores where tests wait for processes that they have started. Every
# worker takes some seconds to import everything.
PYTEST = -m pytest --dist loadgroup -n
CORES = $$($(PY) -c "import os; print(os.cpu_count() or 1)")

# Compiled tests are kept, whatever the shell says: each worker would compile all of them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo check test test-full docs static test-lowest release-check bench format clean

# A Python that was asked for by name is used even if .venv was made with another.
ifneq ($(origin PYTHON),file)
ifneq ($(PYTHON),$(shell cat .venv/.made 2>/dev/null))
OTHER_PYTHON := other-python
.PHONY: other-python
endif
endif

help:
	@echo "make demo         set up, try both models on the embedded yeast data, draw the figures"
	@echo "make check        set up, then formatting, lint, types, layers and quick tests (a few minutes)"
	@echo "make test         the same with all tests and doctests, and more random examples"
	@echo "make test-full    the same with five times as many random examples and simulations"
	@echo "make docs         the documentation site, with the example gallery (docs/_build/html)"
	@echo "make test-lowest  the tests with the lowest versions that pyproject.toml allows (Python 3.11)"
	@echo "make release-check  build, look into the archives, install them for each Python that is found, test-lowest"
	@echo "make bench        how fast everything is, against scikit-learn and NumPy (ten minutes)"
	@echo "make format       rewrite the code in the project's format"
	@echo "make clean        remove everything the other targets made"
	@echo
	@echo "Another Python: make demo PYTHON=python3.12"

demo: .venv/.demo
	@$(PY) examples/demo.py demo

check: static
	$(PY) $(PYTEST) $(CORES) -m "not slow" --hypothesis-profile=quick tests src README.md

test: static
	$(PY) $(PYTEST) $$(($(CORES) + 1)) --durations=15

test-full: export CREDALCHAIN_FULL = 1
test-full: static
	$(PY) $(PYTEST) $$(($(CORES) + 1)) --durations=15 --hypothesis-profile=thorough

# Names that are gone must leave no pages behind. Examples are run again only if they have changed.
docs: .venv/.dev
	@rm -rf docs/api/generated docs/_build/html
	$(PY) -m sphinx -W --keep-going -n -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

static: .venv/.dev
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -c "from importlinter.cli import lint_imports_command as run; run()"

# What these old versions use of newer packages may be deprecated there: that is not ours to fix.
test-lowest: .venv-lowest/.made
	$(LOWEST) $(PYTEST) $$(($(CORES) + 1)) -W ignore::DeprecationWarning

# RELEASE=--skip-lowest leaves out the longest step.
release-check: .venv/.dev .venv/.release
	$(PY) tools/release_check.py $(RELEASE)

bench: .venv/.dev
	$(PY) benchmarks/run.py $(BENCH)

format: .venv/.dev
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

clean:
	rm -rf .venv .venv-lowest demo docs/_build docs/auto_examples docs/api/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

.venv/.demo .venv/.dev .venv/.release: .venv/.made pyproject.toml
	@echo "Installing credalchain and what it needs into .venv (once)"
	@{ $(PIP) uv && { $(UV) --python $(PY) --editable ".[$(patsubst .venv/.%,%,$@)]"; }; } 2>/dev/null || \
	  $(PIP) --editable ".[$(patsubst .venv/.%,%,$@)]"
	@touch $@

# River needs a newer numpy and scipy than we do, so the second step takes those down again.
.venv-lowest/.made: .venv/.made pyproject.toml
	@echo "Installing the lowest versions into .venv-lowest (a minute or two)"
	@rm -rf .venv-lowest
	@$(PY) -m venv --without-pip .venv-lowest
	@$(PIP) uv
	@for extra in dev cli; do \
	  $(UV) --python $(LOWEST) --upgrade --resolution lowest-direct --editable ".[$$extra]" || exit 1; \
	done
	@touch $@

other-python:

# Debian puts ensurepip into a package of its own: without it a plain venv fails, and the
# pip of the system installs one into the new environment.
.venv/.made: $(OTHER_PYTHON)
	@command -v "$(PYTHON)" >/dev/null 2>&1 || { \
	  echo "There is no '$(PYTHON)' here: install Python 3.11 or later, or name it with PYTHON=..."; \
	  exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "credalchain needs Python 3.11 or later, and '$(PYTHON)' is older: name another with PYTHON=..."; \
	  exit 1; }
	@rm -rf .venv
	@"$(PYTHON)" -m venv .venv >/dev/null 2>&1 || { \
	  rm -rf .venv; \
	  "$(PYTHON)" -m venv --without-pip .venv && \
	  "$(PYTHON)" -m pip --python .venv/bin/python install --quiet --disable-pip-version-check pip; \
	} || { \
	  rm -rf .venv; \
	  echo "Could not make a virtual environment: '$(PYTHON)' has neither ensurepip nor pip 22.3 or later (on Debian: apt install python3-venv)."; \
	  exit 1; }
	@echo "$(PYTHON)" > $@
