# Needs Python 3.11 or later, git and make; everything else comes from the lock files.
# `make` alone says what there is.

PYTHON ?= python3
WORKERS ?= 4
ROUNDS ?= 10
SEED ?= 1
MINUTES ?= 10
# Tests wait for processes and servers half of their time; a group of tests has one process.
PARALLEL = -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
CONTAINER ?= podman
UV ?= uv

VENV := .venv
PY := $(VENV)/bin/python
# Python compiles what is imported, which is a small part of all that is installed.
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --no-compile

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-core prometheus servers test-servers collect laws worlds soak soak-kills soak-forge soak-story races check types lint format bench bench-quick bench-large bench-forge bench-kube performance docs notices changelog lock wheel image clean FORCE

help: ## Say what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F '|' '{printf "  make %-12s %s\n", $$1, $$2}'

# ---- for everybody -------------------------------------------------------------------------------

demo: $(VENV)/installed ## Play the whole story on local repositories, left under build/demo/
	$(PY) demo/run.py

test: $(VENV)/test ## Run all tests
	$(PY) -m pytest $(PARALLEL)

# The packages that docs/architecture.md calls pure: no files, no processes, no clock.
CORE := api package calendar selection variants gates plan

test-core: $(VENV)/test ## Run the tests of the pure core, in seconds
	$(PY) -m pytest -q $(PARALLEL) $(addprefix tests/,$(CORE))

# The package alone, unpacked: nothing is installed and nothing runs but what a test starts.
prometheus: ## Fetch a Prometheus server for the tests that ask one, into build/ (Debian, Ubuntu)
	rm -rf build/prometheus && mkdir -p build/prometheus
	cd build/prometheus && { apt-get -qq download prometheus || { apt-get -qq update && apt-get -qq download prometheus; }; }
	cd build/prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb

# By version, outside the work tree: a fresh clone does not build them again.
servers: ## Build the servers that some tests ask (needs a C compiler, some minutes once)
	@$(PYTHON) tests/servers/build.py

test-servers: $(VENV)/test servers ## Run the tests that ask a real Gitea, kube-apiserver or cel-go
	$(PY) -m pytest $(PARALLEL) -m "forge or kube or cel_go"

# ---- for maintainers -----------------------------------------------------------------------------

check: lint types ## Lint, types, layers, sizes and names
	$(PY) -m pytest -q tests/test_architecture.py

types: $(VENV)/test ## Check types
	$(PY) -m mypy

collect: $(VENV)/test ## Collect all tests, so that no process of a run has to compile them
	$(PY) -m pytest -q --collect-only > $(VENV)/collected || { tail -30 $(VENV)/collected; exit 1; }

lint: $(VENV)/test ## Style, format and layers
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(VENV)/bin/lint-imports

laws: $(VENV)/test ## Look for counterexamples to the laws, at random, ROUNDS times
	for round in $$(seq $(ROUNDS)); do \
	  $(PY) -m pytest -q -n $(WORKERS) -m hypothesis --hypothesis-profile=search || exit 1; done

worlds: $(VENV)/test ## Judge every small world of the gates twice, not some of them
	WORLDS=all $(PY) -m pytest -q -n $(WORKERS) tests/gates/test_gate_evaluator_exhaustive.py

soak: $(VENV)/test ## Let anything happen to the gates at random, for MINUTES from SEED
	SEED=$(SEED) MINUTES=$(MINUTES) $(PY) -m pytest -q -s tests/gates/test_gate_evaluator_model.py

soak-kills: $(VENV)/test ## Kill commands at 200 points of the lives of fleets over files, from SEED
	KILLS=200 SEED=$(SEED) $(PY) -m pytest -q -n $(WORKERS) tests/story/test_killed_sets.py

soak-forge: $(VENV)/test servers ## Kill passes at 200 points between calls and pushes to a real Gitea, from SEED
	KILLS=200 SEED=$(SEED) TEST_REQUIRES=gitea $(PY) -m pytest -q -n $(WORKERS) tests/story/test_request_races.py -k killed

soak-story: $(VENV)/test servers ## Kill and spoil everywhere, not at every third place, and let 200 sites live in a cluster
	STORIES=full TEST_REQUIRES=kubernetes $(PY) -m pytest $(PARALLEL) -m diagonal

races: $(VENV)/test servers ## Let restrictions and publications race 1,000 times on a real kube-apiserver, from SEED
	RACES=1000 SEED=$(SEED) TEST_REQUIRES=kubernetes $(PY) -m pytest -q -n $(WORKERS) tests/kube/test_controller.py -k acknowledged

format: $(VENV)/test ## Rewrite files as the linter wants them
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

bench: $(VENV)/test ## Measure against the yardsticks, into build/bench/
	$(PY) -m benchmarks.merge
	$(PY) -m benchmarks.gates
	$(PY) -m benchmarks.views
	$(PY) -m benchmarks.policies
	$(PY) -m benchmarks

bench-quick: $(VENV)/test ## The same with 1,000 targets, once
	$(PY) -m benchmarks.merge
	$(PY) -m benchmarks.gates
	$(PY) -m benchmarks --quick

bench-large: $(VENV)/test ## Measure up to 100,000 targets over 1,000 repositories (12 GB of memory)
	$(PY) -m benchmarks --large

bench-forge: $(VENV)/test servers ## Measure pull requests on a real Gitea
	$(PY) -m benchmarks.forge

bench-kube: $(VENV)/test servers ## Measure objects of a cluster on a real kube-apiserver
	$(PY) -m benchmarks.kube

performance: $(VENV)/test ## Write docs/reference/performance.md: where the time of each case goes
	$(PY) -m benchmarks.profile

docs: $(VENV)/installed ## Write the generated pages anew
	$(PY) docs/generate.py

notices: $(VENV)/test ## Write notices and SBOM of the libraries anew, after a change of the lock files
	$(PY) tools/third_party.py

changelog: ## Join the fragments in changes/ into CHANGELOG.md
	$(PYTHON) tools/changelog.py

wheel: $(VENV)/runtime ## Build the wheel, into dist/
	$(PY) -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

image: $(VENV)/runtime ## Build the container image
	$(CONTAINER) build --file Containerfile --tag fanout \
	  --build-arg VERSION=$$($(PY) -m hatchling version) --build-arg REVISION=$$(git rev-parse HEAD) .

clean: ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# No lock file carries the address of a registry: who installs decides where packages come from.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-header --no-emit-index-url --no-emit-find-links

lock: ## Pin the newest versions that pyproject.toml allows (needs uv)
	rm -f requirements/*.txt
	$(COMPILE) pyproject.toml --output-file requirements/runtime.txt
	$(COMPILE) pyproject.toml --extra serve \
	  -c requirements/runtime.txt --output-file requirements/serve.txt
	$(COMPILE) pyproject.toml --extra kubernetes \
	  -c requirements/runtime.txt --output-file requirements/kubernetes.txt
	printf 'hatchling>=1.27\nhatch-vcs>=0.5\neditables>=0.5\n' | $(COMPILE) - --output-file requirements/build.txt
	$(COMPILE) pyproject.toml --extra serve --extra kubernetes --group dev \
	  -c requirements/runtime.txt -c requirements/build.txt --output-file requirements/test.txt

# ---- the environment -----------------------------------------------------------------------------
# Three stamps: what fanout needs to run, fanout itself (editable), what its tests need. A changed
# lock file makes the environment anew, so that nothing of an older lock stays behind.

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

# An environment holds absolute paths: in a moved or copied directory it is made anew.
ifneq ($(shell cat $(VENV)/place 2>/dev/null),$(CURDIR))
$(VENV)/runtime: FORCE
endif
