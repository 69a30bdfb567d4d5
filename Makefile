# Everything runs from .venv, which is made on first use: a fresh clone needs make and python3 (3.11 or later).
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

# $(call judge,NAME,COMMANDS): run COMMANDS up to the first that fails, say how it went, and keep the exit status.
judge = @(set -e; $(2)); status=$$?; \
	if [ $$status -eq 0 ]; then echo "make $(1): success"; else echo "make $(1): FAILURE (status $$status)"; fi; \
	exit $$status
# $(call step,WHAT,COMMAND): name a step, then run it.
step = echo "== $(1)"; $(2)

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage lint check package test-pythons oracle oracle-test oracle-mutants oracle-coverage record docs diagrams notebook bench growth bench-jvm bench-profile clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1	/p' Makefile | expand -t 17

setup: $(READY) ## Make .venv and install the project with its tools into it
	@echo "make setup: ready"

demo: $(READY) ## Perform the KIP's table, replay the recorded answers of Kafka, then tell a story
	$(call judge,demo, \
	  $(call step,what the KIP says is persisted and what sharestate persists, $(BIN)/sharestate kip --table write); \
	  $(call step,what Kafka 4.3.1 answered and what sharestate answers, \
	    $(BIN)/sharestate replay --known-differences tests/data/known-differences.json \
	      tests/data/kafka-tests tests/data/vectors); \
	  $(call step,a story of one share partition, $(BIN)/python examples/story.py))

test: $(READY) ## Run the tests and the examples in the documentation, but for those that ask Kafka's own class
	$(call judge,test, $(call step,pytest, $(BIN)/python -m pytest -m 'not oracle'))

# By unit tests only: what random sequences happen to reach need not be judged by anybody.
CORE := */sharestate/partition/*,*/sharestate/values/*
CORE_TESTS := $(addprefix tests/unit/,partition values kip932 test_snapshots.py test_transitions_told.py)
coverage: $(READY) ## See that the unit tests of the core reach every line and branch of it
	$(call judge,coverage, \
	  $(call step,pytest with coverage, $(BIN)/python -m pytest -q $(CORE_TESTS) --cov --cov-report=); \
	  $(call step,lines and branches that were not reached, $(BIN)/python -m coverage report --include='$(CORE)' \
	    --fail-under=100))

# Sequence SEED is the first; the same numbers stand for the same sequences. OPTIONS are those of the search itself.
oracle: OPS ?= 1000000
oracle: KAFKA ?= 4.3.1
oracle: SEED ?= 0
oracle: JOBS ?= $(shell nproc 2>/dev/null || echo 2)
oracle: $(READY) ## Search for differences from Kafka's own class; OPS=, KAFKA=, SEED=, JOBS=, OPTIONS=
	$(call judge,oracle, $(call step,searching for differences from Kafka $(KAFKA), \
	  $(BIN)/python -m tests.oracle.search --ops $(OPS) --kafka $(KAFKA) --seed $(SEED) --jobs $(JOBS) $(OPTIONS)))

oracle-test: $(READY) ## Run the tests that ask Kafka's own class, a short search for each release among them
	$(call judge,oracle-test, \
	  $(call step,pytest -m oracle, SHARESTATE_REQUIRE=oracle $(BIN)/python -m pytest -m oracle tests/oracle))

oracle-mutants: $(READY) ## See whether a search notices each rule that Kafka has changed, put back; takes minutes
	$(call judge,oracle-mutants, $(call step,planting one change after another, $(BIN)/python -m tests.oracle.mutants))

oracle-coverage: $(READY) ## Measure how many branches of Kafka's own class a search reaches; OPTIONS=
	$(call judge,oracle-coverage, \
	  $(call step,searching under JaCoCo, $(BIN)/python -m tests.oracle.coverage $(OPTIONS)))

record: KAFKA ?= 4.3.1
record: $(READY) ## Record the tests of Kafka's own class, and say what has changed; KAFKA=
	$(call judge,record, $(call step,recording, $(BIN)/python -m tests.oracle.record --kafka $(KAFKA)))

lint: $(READY) ## Check style, types and layers
	$(call judge,lint, \
	  $(call step,ruff check, $(BIN)/ruff check); \
	  $(call step,ruff format --check, $(BIN)/ruff format --check); \
	  $(call step,mypy, $(BIN)/mypy); \
	  $(call step,lint-imports, $(BIN)/lint-imports --no-logo); \
	  $(call step,news fragments, $(BIN)/towncrier build --draft --version next >/dev/null))

check: lint test ## What has to pass before a change goes in: lint, then test

package: dist ## Build the sdist and the wheel, look into them, and run the tests against the wheel
	$(call judge,package, \
	  $(call step,what the distributions hold, $(BIN)/python -m pytest -q tests/packaging/distributions.py); \
	  $(call step,the tests against the wheel, PYTEST_ADDOPTS="-m 'not oracle'" $(BIN)/python tests/packaging/against_wheel.py))

# Versions of Python that the machine does not have are skipped. TESTS=tests/unit runs a part of the tests.
test-pythons: dist ## Run the tests against the wheel with every supported version of Python that is here
	$(call judge,test-pythons, $(BIN)/python tests/packaging/against_wheel.py 3.11 3.12 3.13 $(if $(TESTS),-- $(TESTS)))

# Always built anew: make cannot know what goes into it.
.PHONY: dist
dist: $(READY)
	@echo "== building the sdist and, from it, the wheel"
	@rm -rf dist
	@$(BIN)/python -m build --quiet

docs: $(READY) ## Build the documentation into build/docs, with the notebook, and run its examples
	$(call judge,docs, \
	  $(call step,sphinx html, $(BIN)/python -m sphinx -q -n -W --keep-going -b html docs build/docs); \
	  $(call step,the notebook, $(BIN)/python -m nbconvert --log-level=ERROR --to html --output-dir build/docs \
	    --HTMLExporter.mathjax_url= --HTMLExporter.require_js_url= \
	    examples/kip_tables.ipynb); \
	  $(call step,sphinx doctest, $(BIN)/python -m sphinx -q -n -W --keep-going -b doctest docs build/doctest))

diagrams: $(READY) ## Make the pages of docs that are made from the code: diagrams, and where rules live
	$(call judge,diagrams, cd docs; ../$(BIN)/python -m generate)

# What changes from run to run goes: times, and the version of Python.
notebook: $(READY) ## Run examples/kip_tables.ipynb again, and keep what it shows
	$(call judge,notebook, $(BIN)/python -m nbconvert --log-level=WARN --to notebook --execute --inplace \
	  --ClearMetadataPreprocessor.enabled=True --ClearMetadataPreprocessor.preserve_nb_metadata_mask=kernelspec \
	  examples/kip_tables.ipynb)

bench: $(READY) ## Measure what share partitions cost; takes minutes
	$(call judge,bench, $(call step,a table of ratios and microseconds, $(BIN)/python -m bench))

growth: $(READY) ## Measure the same, and write it into docs/growth.md
	$(call judge,growth, $(call step,figures for docs/growth.md, $(BIN)/python -m bench --write docs/growth.md))

# WORKLOAD is one of the names that bench/workloads.py lists. WRITE=docs/growth.md puts the tables into that page.
bench-jvm: ROUNDS ?= 5
bench-jvm: $(READY) ## Measure Kafka's own class and the library by turns; takes minutes; ROUNDS=, WORKLOAD=, WRITE=, JSON=
	$(call judge,bench-jvm, $(call step,Kafka and the library by turns, \
	  $(BIN)/python -m bench.jvm --rounds $(ROUNDS) $(if $(WORKLOAD),--workload '$(WORKLOAD)') \
	    $(if $(WRITE),--write '$(WRITE)') $(if $(JSON),--json '$(JSON)')))

bench-profile: $(READY) ## Count the calls that acknowledging 500 records makes, by function; WORKLOAD=
	$(call judge,bench-profile, $(call step,calls for each batch, \
	  $(BIN)/python -m bench.calls $(if $(WORKLOAD),--workload '$(WORKLOAD)')))

clean: ## Remove .venv and all that the tools left behind
	rm -rf .venv .coverage .coverage.* coverage.xml htmlcov build dist
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests examples docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sharestate needs Python 3.11 or later; name one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make a virtual environment; on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "== installing sharestate and its tools into .venv"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --editable '.[cli,plots,testing]' --group dev
	@touch $@
