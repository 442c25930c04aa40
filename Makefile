# `make` lists the targets. Each one sets up what it needs in .venv and nowhere else.

PYTHON ?= python3
ROBOT ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALL := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --disable-pip-version-check --no-input
# Of all that pip says: the large files as they come in, and the last step.
PROGRESS := sed -un -e 's/^ *\(Downloading\|Using cached\) \(.* ([0-9.]* MB)\)/    \2/p' \
	-e 's/^Installing collected .*/    unpacking/p'
# One process of pytest for each core, and one more because tests over DDS mostly wait. Those that have
# no tests left take some from the others.
PARALLEL = --numprocesses $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal

# Nodes and commands in processes of their own import compiled modules, whatever the shell asks for.
unexport PYTHONDONTWRITEBYTECODE
# Waiting threads of OpenBLAS take the cores from other processes: small matrices then take 10 times as long.
export OPENBLAS_NUM_THREADS := 1

# Where ROS 2 comes from: sourced, wheels, or none.
FIND_ROS := import importlib.util, platform, sys; \
	spec = importlib.util.find_spec("rclpy"); \
	wheels = (3, 10) <= sys.version_info[:2] <= (3, 14) and platform.machine() == "x86_64" and sys.platform == "linux"; \
	print("sourced" if spec and not spec.origin.startswith(sys.prefix) else "wheels" if wheels else "none")

.DEFAULT_GOAL := help
.ONESHELL:
.DELETE_ON_ERROR:
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help demo unit test test-all test-bridges mutants load platforms dist bench docs linkcheck lint clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12
	echo "PYTHON=/path/to/python3 chooses the Python that .venv is made from."

demo: $(VENV)/.run  ## what it can do, on a robot of its own or on ROBOT=path/to/robot.urdf
	@$(BIN)/mbs-dynamics demo $(if $(ROBOT),--robot "$(ROBOT)")

unit: $(VENV)/.test  ## while editing: ruff, and quick tests without processes, network, DDS and browser: two minutes on two cores
	@$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet
	$(BIN)/python -m pytest -q --numprocesses $$(getconf _NPROCESSORS_ONLN) --dist worksteal --unit

test: $(VENV)/.test  ## before a change is merged, and in CI: linters, unit tests, nodes over DDS, examples, packaging: on two cores 4 minutes, or 15 if others use them as well
	@echo "== Linters, and tests"
	$(LINT)
	$(BIN)/mypy & mypy=$$!
	$(BIN)/python -m pytest -q $(PARALLEL) -m "not slow and not serial" || { wait $$mypy; exit 1; }
	wait $$mypy
	echo "== Tests that need a quiet machine, one after the other"
	$(BIN)/python -m pytest -q -m "serial and not slow"
	echo "== Smoke test"
	$(BIN)/python test/smoke --expect native

test-all: lint  ## every test, with the coverage of the core, and mutants: up to three hours
	@echo "== All tests"
	$(BIN)/python -m pytest -q $(PARALLEL) --cov --cov-report=term -m "not serial"
	echo "== Tests that need a quiet machine, one after the other"
	$(BIN)/python -m pytest -q -m serial
	$(MAKE) --no-print-directory mutants

test-bridges: $(VENV)/.test  ## the bridges to PyTorch and JAX, which it installs: up to 3 GB
	@$(INSTALL) --editable ".[torch,jax]" | $(PROGRESS)
	$(BIN)/python -m pytest -q $(PARALLEL) test/bridges test/test_document*.py -k "bridges or learn_masses"

mutants: $(VENV)/.test  ## thirty wrong equations and decisions, each of which a test has to find
	@$(BIN)/python tools/mutants.py

ROUNDS ?= 10
load: $(VENV)/.test  ## the tests of `make test` beside two busy loops, ROUNDS=10 times: load must decide nothing
	@for k in 1 2; do while :; do :; done & done
	trap 'kill $$(jobs -p)' EXIT
	for k in $$(seq $(ROUNDS)); do
	    echo "== Round $$k"
	    $(BIN)/python -m pytest -q $(PARALLEL) -m "not slow and not serial"
	done

bench: $(VENV)/.bench  ## measure speed: an hour
	@$(BIN)/python -m benchmarks

SPHINX = $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -j auto docs
docs: $(VENV)/.docs  ## build this documentation as a web site in build/docs: two minutes
	@$(SPHINX) build/docs
	echo "open build/docs/index.html"

linkcheck: $(VENV)/.docs  ## follow the links of the documentation to other sites
	@$(SPHINX) -b linkcheck build/linkcheck

platforms: $(VENV)/.platforms  ## the smoke test on every supported Python, NumPy, llvmlite and ROS 2, or SESSIONS="smoke-3.14 lowest"
	@$(BIN)/nox $(if $(SESSIONS),--sessions $(SESSIONS))

dist: $(VENV)/.dist $(VENV)/.platforms  ## build dist/*.tar.gz and dist/*.whl, and try the wheel on every supported Python
	@rm -rf dist
	$(BIN)/python -m build --outdir dist >/dev/null
	$(BIN)/twine check --strict dist/*
	$(BIN)/nox --sessions smoke -- dist/*.whl

LINT = $(BIN)/ruff check; $(BIN)/ruff format --check; $(BIN)/lint-imports
lint: $(VENV)/.test  ## ruff, mypy --strict, and the layers with import-linter
	@$(LINT)
	$(BIN)/mypy

clean:  ## delete all that make, pip and colcon made here, .venv too
	@rm -rf $(VENV) build dist install log *.egg-info
	rm -rf .nox .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# A ROS 2 that is sourced is used, through the system's site-packages. Otherwise its wheels are
# installed where they exist. Without either, all but the nodes works.
$(BIN)/python:
	@fail() { echo "make: $$*" >&2; exit 1; }
	command -v "$(PYTHON)" >/dev/null || fail "there is no $(PYTHON); name a Python >= 3.10 by PYTHON=..."
	"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	    || fail "$(PYTHON) is $$("$(PYTHON)" -V 2>&1), too old: name a Python >= 3.10 by PYTHON=..."
	"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null \
	    || fail "$(PYTHON) has no venv; on Debian and Ubuntu: sudo apt install python3-venv"
	site=
	if "$(PYTHON)" -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("rclpy"))'; then
	    "$(PYTHON)" -c 'import rclpy' 2>&1 | tail -n 1 >&2 \
	        || fail "a ROS 2 is sourced that $(PYTHON) cannot import; name its Python, mostly PYTHON=/usr/bin/python3"
	    site=--system-site-packages
	fi
	echo "== Making $(VENV) with $$("$(PYTHON)" -V)"
	"$(PYTHON)" -m venv $$site $(VENV)
	# The pip that old Pythons bring cannot resolve the test tools.
	$(INSTALL) --quiet --upgrade pip

$(VENV)/.run: pyproject.toml setup.py Makefile | $(BIN)/python
	@ros=$$($(BIN)/python -c '$(FIND_ROS)')
	case $$ros in
	    sourced) extras=fast; echo "== Installing the package beside the ROS 2 that is sourced: about half a minute" ;;
	    wheels) extras=fast,ros; echo "== Installing the package and ROS 2 Jazzy wheels, some 130 MB: about a minute" ;;
	    none) extras=fast; echo "== Installing the package without ROS 2, so that the nodes will not run: none is sourced, and wheels exist for Python 3.10 to 3.14 on x86-64 Linux only" ;;
	esac
	$(INSTALL) --editable ".[$$extras]" | $(PROGRESS)
	touch $@

$(VENV)/.test: $(VENV)/.run
	@echo "== Installing the test tools (Pinocchio, MuJoCo, robot models, linters, colcon), some 300 MB: one to two minutes"
	$(INSTALL) --editable ".[test]" | $(PROGRESS)
	touch $@

$(VENV)/.docs: $(VENV)/.run
	@echo "== Installing Sphinx, its theme, the viewer and SciPy, some 100 MB"
	$(INSTALL) --editable ".[docs,view,identify]" | $(PROGRESS)
	touch $@

$(VENV)/.dist: $(VENV)/.run
	@$(INSTALL) --quiet --editable ".[dist]"
	touch $@

$(VENV)/.platforms: $(VENV)/.run
	@$(INSTALL) --quiet --editable ".[platforms]"
	touch $@

$(VENV)/.bench: $(VENV)/.test
	@echo "== Installing what the benchmarks compare with (Drake, matplotlib), some 60 MB"
	$(INSTALL) --editable ".[bench]" | $(PROGRESS)
	touch $@
