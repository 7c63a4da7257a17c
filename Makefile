# Needs Python 3.11 or later, git and make; everything else comes from the lock files.
# `make` without a target lists all targets.

PYTHON ?= python3
WORKERS ?= 4
ROUNDS ?= 10
SEED ?= 1
MINUTES ?= 10
# Tests wait for processes and servers half of the time. Tests of one group run in one process.
PARALLEL = -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
CONTAINER ?= podman
UV ?= uv

VENV := .venv
PY := $(VENV)/bin/python
# Python compiles imported modules later; they are a small part of the installed ones.
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --no-compile

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-core prometheus servers test-servers collect laws worlds soak soak-kills soak-forge soak-story races check types lint format bench bench-quick bench-large bench-forge bench-kube performance docs notices changelog release lock wheel image clean FORCE

help: ## List all targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F '|' '{printf "  make %-12s %s\n", $$1, $$2}'

# ---- for users -----------------------------------------------------------------------------------

demo: $(VENV)/installed ## Run a complete rollout on local repositories, which stay under build/demo/
	$(PY) demo/run.py

test: $(VENV)/test ## Run all tests
	$(PY) -m pytest $(PARALLEL)

# The packages that docs/architecture.md calls pure: no files, no processes, no clock.
CORE := api package calendar selection variants gates plan

test-core: $(VENV)/test ## Run the tests of the pure core, in seconds
	$(PY) -m pytest -q $(PARALLEL) $(addprefix tests/,$(CORE))

# The package is only unpacked: nothing is installed, and only tests start the server.
prometheus: ## Download a Prometheus server for tests, into build/ (Debian, Ubuntu)
	rm -rf build/prometheus && mkdir -p build/prometheus
	cd build/prometheus && { apt-get -qq download prometheus || { apt-get -qq update && apt-get -qq download prometheus; }; }
	cd build/prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb

# The servers are outside the work tree, by version, so a new clone does not build them again.
servers: ## Build the servers of some tests (needs a C compiler; takes some minutes once)
	@$(PYTHON) tests/servers/build.py

test-servers: $(VENV)/test servers ## Run the tests with a real Gitea, kube-apiserver or cel-go
	$(PY) -m pytest $(PARALLEL) -m "forge or kube or cel_go"

# ---- for maintainers -----------------------------------------------------------------------------

check: lint types ## Check style, types, layers, sizes and names
	$(PY) -m pytest -q tests/test_architecture.py

types: $(VENV)/test ## Check types
	$(PY) -m mypy

collect: $(VENV)/test ## Collect all tests, which also compiles them before a parallel run
	$(PY) -m pytest -q --collect-only > $(VENV)/collected || { tail -30 $(VENV)/collected; exit 1; }

lint: $(VENV)/test ## Check style, format and layers
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(VENV)/bin/lint-imports

laws: $(VENV)/test ## Search for counterexamples to properties at random, ROUNDS times
	for round in $$(seq $(ROUNDS)); do \
	  $(PY) -m pytest -q -n $(WORKERS) -m hypothesis --hypothesis-profile=search || exit 1; done

worlds: $(VENV)/test ## Evaluate the gates for all small sets of facts, not a sample
	WORLDS=all $(PY) -m pytest -q -n $(WORKERS) tests/gates/test_gate_evaluator_exhaustive.py

soak: $(VENV)/test ## Run random events against a model of the gates, for MINUTES from SEED
	SEED=$(SEED) MINUTES=$(MINUTES) $(PY) -m pytest -q -s tests/gates/test_gate_evaluator_model.py

soak-kills: $(VENV)/test ## Kill commands at 200 points of rollouts from files, from SEED
	KILLS=200 SEED=$(SEED) $(PY) -m pytest -q -n $(WORKERS) tests/story/test_killed_sets.py

soak-forge: $(VENV)/test servers ## Kill passes at 200 points between calls and pushes to a real Gitea, from SEED
	KILLS=200 SEED=$(SEED) TEST_REQUIRES=gitea $(PY) -m pytest -q -n $(WORKERS) tests/story/test_request_races.py -k killed

soak-story: $(VENV)/test servers ## Interrupt and corrupt at every point, not every third, and run 200 sites in a cluster
	STORIES=full TEST_REQUIRES=kubernetes $(PY) -m pytest $(PARALLEL) -m diagonal
	STORIES=full $(PY) -m pytest $(PARALLEL) tests/story/test_requests.py -k github

races: $(VENV)/test servers ## Run 1,000 races of restrictions and publications on a real kube-apiserver, from SEED
	RACES=1000 SEED=$(SEED) TEST_REQUIRES=kubernetes $(PY) -m pytest -q -n $(WORKERS) tests/kube/test_controller.py -k acknowledged

format: $(VENV)/test ## Format files, and fix what the linter can fix
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

bench: $(VENV)/test ## Run the benchmarks, into build/bench/
	$(PY) -m benchmarks.merge
	$(PY) -m benchmarks.gates
	$(PY) -m benchmarks.views
	$(PY) -m benchmarks.policies
	$(PY) -m benchmarks

bench-quick: $(VENV)/test ## Run the benchmarks with 1,000 targets, once
	$(PY) -m benchmarks.merge
	$(PY) -m benchmarks.gates
	$(PY) -m benchmarks --quick

bench-large: $(VENV)/test ## Run benchmarks with up to 100,000 targets in 1,000 repositories (12 GB of memory)
	$(PY) -m benchmarks --large

bench-forge: $(VENV)/test servers ## Run benchmarks of pull requests on a real Gitea
	$(PY) -m benchmarks.forge

bench-kube: $(VENV)/test servers ## Run benchmarks of objects of a cluster on a real kube-apiserver
	$(PY) -m benchmarks.kube

performance: $(VENV)/test ## Generate docs/reference/performance.md: the times of all phases of the benchmarks
	$(PY) -m benchmarks.profile

docs: $(VENV)/installed ## Generate the generated pages of the documentation
	$(PY) docs/generate.py

notices: $(VENV)/test ## Generate notices and SBOM of the libraries, after a change of the lock files
	$(PY) tools/third_party.py

changelog: ## Join the fragments in changes/ into CHANGELOG.md, as the section of VERSION if it is given
	$(PYTHON) tools/changelog.py $(VERSION)

release: $(VENV)/runtime ## Build what is published of the tag at HEAD, into dist/ (docs/release.md)
	$(PY) tools/release.py

wheel: $(VENV)/runtime ## Build the wheel, into dist/
	$(PY) -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

image: $(VENV)/runtime ## Build the container image
	$(CONTAINER) build --file Containerfile --tag fanout \
	  --build-arg VERSION=$$($(PY) -m hatchling version) --build-arg REVISION=$$(git rev-parse HEAD) .

clean: ## Remove the environment and all build results
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Lock files have no registry URL, so that each installation can use its own registry.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-header --no-emit-index-url --no-emit-find-links

lock: ## Pin the newest versions that pyproject.toml allows (needs uv)
	rm -f requirements/*.txt
	$(COMPILE) pyproject.toml --output-file requirements/runtime.txt
	$(COMPILE) pyproject.toml --extra serve \
	  -c requirements/runtime.txt --output-file requirements/serve.txt
	$(COMPILE) pyproject.toml --extra kubernetes \
	  -c requirements/runtime.txt --output-file requirements/kubernetes.txt
	$(COMPILE) pyproject.toml --extra github-app \
	  -c requirements/runtime.txt --output-file requirements/github-app.txt
	printf 'hatchling>=1.27\nhatch-vcs>=0.5\neditables>=0.5\n' | $(COMPILE) - --output-file requirements/build.txt
	$(COMPILE) pyproject.toml --extra serve --extra kubernetes --extra github-app --group dev \
	  -c requirements/runtime.txt -c requirements/build.txt --output-file requirements/test.txt

# ---- the environment -----------------------------------------------------------------------------
# Three stamp files: requirements of fanout, fanout itself (editable), requirements of the tests. A
# changed lock file recreates the environment, so that no package of an earlier lock remains.

LOCKS := requirements/runtime.txt requirements/build.txt requirements/test.txt

$(VENV)/runtime: $(LOCKS)
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("fanout needs Python 3.11 or later, as in: make PYTHON=python3.13 ...")'
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/runtime.txt -r requirements/build.txt
	@echo '$(CURDIR)' > $(VENV)/place
	@touch $@

$(VENV)/installed: $(VENV)/runtime pyproject.toml
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/test: $(VENV)/installed
	$(PIP) --require-hashes -r requirements/test.txt
	@touch $@

# An environment has absolute paths, so it is recreated in a moved or copied directory.
ifneq ($(shell cat $(VENV)/place 2>/dev/null),$(CURDIR))
$(VENV)/runtime: FORCE
endif
