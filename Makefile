# Everything runs from .venv, which is made on first use: a fresh clone needs make and python3 (3.11 or later).
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
SPARK_BIN := .venv-spark/bin
SPARK_READY := .venv-spark/ready
COMPILED := build/compiled/ready
MUTATION_READY := .venv/mutation
COMMA := ,
# Tests start hundreds of processes: where the environment says so, each would compile what it imports anew.
export PYTHONDONTWRITEBYTECODE :=

# $(call judge,NAME,COMMANDS): run COMMANDS up to the first that fails, say how it went, and keep the exit status.
judge = @(set -e; $(2)); status=$$?; \
	if [ $$status -eq 0 ]; then echo "make $(1): success"; else echo "make $(1): FAILURE (status $$status)"; fi; \
	exit $$status
# $(call step,WHAT,COMMAND): name a step, then run it.
step = echo "== $(1)"; $(2)

.DEFAULT_GOAL := help
.PHONY: $(shell sed -n 's/^\([a-z-]*\):[^\#]*\#\# .*/\1/p' $(firstword $(MAKEFILE_LIST))) dist

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1	/p' Makefile | expand -t 17

setup: $(READY) ## Make .venv and install the project with its tools into it
	@echo "make setup: ready"

demo: $(READY) ## Show a story, run the KIP's table, replay what Kafka's own class has answered, then ask a broker's log why
	$(call judge,demo, \
	  $(call step,a story of one share partition, $(BIN)/python examples/story.py); \
	  $(call step,what the KIP says is persisted beside what sharestate persists, $(BIN)/sharestate kip --table write); \
	  $(call step,what Kafka 4.3.1 and 4.4.0 answered beside what sharestate answers, \
	    echo "4.3.1 by the rules of kafka-4.3:"; $(REPLAY) --profile kafka-4.3 $(addprefix tests/data/,kafka-tests vectors); \
	    echo "both by the rules of kafka-4.4:"; $(REPLAY) --profile kafka-4.4 $(addprefix tests/data/,$(RECORDED))); \
	  $(call step,the request log of a broker of 4.3.1 beside what Kafka's rules make of it, mkdir -p build/demo; \
	    $(BIN)/sharestate log import $(LOGGED)/request.log.gz --segments $(LOGGED)/segments \
	      --config $(LOGGED)/server.properties -o build/demo/arrival.jsonl; \
	    $(BIN)/sharestate log verify build/demo/arrival.jsonl -o build/demo/history.jsonl); \
	  $(call step,what follows from its order, rm -f build/demo/rows.jsonl; \
	    $(BIN)/sharestate history replay build/demo/history.jsonl build/demo/rows.jsonl); \
	  $(call step,one record of it that failed again and again, \
	    $(BIN)/sharestate log explain build/demo/history.jsonl --group seq-b --topic 6_UGRzRhTHKhR9UaPcC76Q \
	      --partition 1 --offset 456); \
	  $(call step,the same in pictures to open in a browser, \
	    $(BIN)/sharestate log report build/demo/history.jsonl -o build/demo/report.html))
RECORDED := kafka-tests vectors kafka-tests-4.4 vectors-4.4
LOGGED := tests/data/broker-log/k431-seq
REPLAY := $(BIN)/sharestate replay --known-differences tests/data/known-differences.json

# Few tests take long, so a process that is done takes over from the others.
ALONE := -q -m 'not oracle and not broker and not spark and not clients and not tla'
PYTEST := $(ALONE) --numprocesses auto --maxprocesses 4 --dist worksteal

# WHEEL=1 tests the wheel in an environment of its own, where the examples in docstrings are those of what is installed.
test: $(READY) $(if $(WHEEL),dist) ## Run the tests and the examples in the documentation, in parallel; WHEEL=1
	$(call judge,test, \
	  $(if $(WHEEL), \
	    $(call step,the tests against the wheel, $(BIN)/python tests/packaging/against_wheel.py this $(PYTEST) \
	      tests docs/generate README.md --pyargs sharestate), \
	    $(call step,pytest, $(BIN)/python -m pytest $(PYTEST))); \
	  echo "left out: what asks Kafka's own class (make test-oracle) or a broker (make test-broker) or TLC (make test-tla) or Spark (make test-spark) or other versions of Python (make test-pythons)")

wheel-compiled: $(COMPILED) ## Build the wheel whose state machine is compiled, in build/compiled; takes a C compiler
	@ls build/compiled/*.whl

# Built again when a source has changed, come or gone: a directory of them has changed then.
$(COMPILED): hatch_build.py pyproject.toml README.md $(shell find src/sharestate -name __pycache__ -prune -o -print) | $(READY)
	$(call judge,wheel-compiled, rm -rf build/compiled; \
	  $(call step,the sdist and from it the compiled wheel, \
	    SHARESTATE_COMPILE=1 $(BIN)/python -m build --quiet --outdir build/compiled); \
	  $(BIN)/python -m zipfile -e build/compiled/*.whl build/compiled/lib; touch $@)

# What a compiled library cannot have, and why, is in tests/packaging/against_wheel.py.
test-compiled: TESTS ?= $(CORE_TESTS) tests/unit/conversation tests/kafka tests/property
test-compiled: $(COMPILED) ## Run what tests the state machine against the compiled wheel: unit, recorded and property tests; TESTS=
	$(call judge,test-compiled, $(call step,the compiled wheel, \
	  $(BIN)/python tests/packaging/against_wheel.py compiled $(PYTEST) $(TESTS)))

# OPTIONS are those of the search; its figures are of the wheel that is there.
oracle-compiled: OPS ?= 200000
oracle-compiled: KAFKA ?= 4.2.2 4.3.1 4.4.0
oracle-compiled: SEED ?= 0
oracle-compiled: JOBS ?= $(shell nproc 2>/dev/null || echo 2)
oracle-compiled: $(COMPILED) ## Search for differences of the compiled library from Kafka's own class, of each release; OPS=, KAFKA=, SEED=, JOBS=
	$(call judge,oracle-compiled, \
	  $(foreach release,$(KAFKA),$(call step,searching for differences of the compiled library from Kafka $(release), \
	    PYTHONPATH=build/compiled/lib $(BIN)/python -m tests.oracle.search --ops $(OPS) --kafka $(release) --seed $(SEED) \
	      --jobs $(JOBS) $(OPTIONS));))

CORE_TESTS := $(addprefix tests/unit/,coordinator partition values kip932) $(wildcard tests/unit/test_*snapshots.py tests/unit/test_transitions*.py)
test-quick: $(READY) ## Run the unit tests of the core: seconds instead of minutes
	$(call judge,test-quick, \
	  $(call step,pytest, $(BIN)/python -m pytest -q $(CORE_TESTS)); \
	  echo "left out: everything but the unit tests of the core (make test)")

test-oracle: $(READY) ## Run the tests that ask Kafka's own class, a short search for each release among them
	$(call judge,test-oracle, \
	  $(call step,pytest -m oracle, SHARESTATE_REQUIRE=oracle $(BIN)/python -m pytest -m oracle tests/oracle tests/kafka_bugs))

test-tla: $(READY) ## Have TLC check the TLA+ specification, and what recorded conversations say of it
	$(call judge,test-tla, \
	  $(call step,pytest -m tla, SHARESTATE_REQUIRE=oracle $(BIN)/python -m pytest -q -m tla tests/tla))

# SEED makes other requests, other images of the disk, and other times to kill; equal numbers make equal ones.
crash: SEED ?= 0
crash: $(READY) ## Cut off, tear and kill what a persister writes to a file, in minutes instead of seconds; SEED=
	$(call judge,crash, \
	  $(call step,crashes of every kind, CRASHES=all SEED=$(SEED) $(BIN)/python -m pytest -q tests/crash))

# An input that fails is printed in base64, with the command that tries it again.
fuzz: INPUTS ?= 1000000
fuzz: SEED ?= 0
fuzz: JOBS ?= $(shell nproc 2>/dev/null || echo 2)
fuzz: $(READY) ## Try damaged inputs with every decoder, a million with each; INPUTS=, SEED=, JOBS=, DECODER=
	$(call judge,fuzz, $(call step,damaged inputs, \
	  $(BIN)/python -m tests.fuzz --inputs $(INPUTS) --seed $(SEED) --jobs $(JOBS) $(if $(DECODER),--decoder '$(DECODER)')))

# A failure names the life of the broker in which it has happened, and what its last clients have sent.
fuzz-connections: FRAMES ?= 1000000
fuzz-connections: SEED ?= 0
fuzz-connections: $(READY) ## Send damaged frames to test brokers, over many connections; FRAMES=, SEED=
	$(call judge,fuzz-connections, $(call step,damaged frames, \
	  $(BIN)/python -m tests.fuzz.connections --frames $(FRAMES) --seed $(SEED)))

# RUNS are directories with a request.log or request.log.gz, segments and server.properties.
falsified: RUNS ?= tests/data/broker-log/k431-seq
falsified: PLACES ?= 3
falsified: SEED ?= 0
falsified: $(READY) ## Falsify a line of brokers' request logs, in every way at several places; RUNS=, PLACES=, SEED=
	$(call judge,falsified, $(call step,falsified request logs, \
	  $(BIN)/python -m tests.falsified_logs $(RUNS) --places $(PLACES) --seed $(SEED)))

# A session is kept in build/mutation: what was killed is not tried again as long as the package is the same.
mutation: PACKAGES ?= partition coordinator state_topic history log_check
mutation: SEED ?= 0
mutation: $(MUTATION_READY) ## Change the source in small ways, and see tests notice it; PACKAGES=, SAMPLE=, SEED=, SECONDS=, MINUTES=, JOBS=, AGAIN=, KEEP=
	$(call judge,mutation, \
	  $(call step,tests of the runner, $(BIN)/python -m pytest -q tests/mutation); \
	  $(call step,mutants, $(BIN)/python -m tests.mutation $(PACKAGES) --seed $(SEED) $(if $(SAMPLE),--sample $(SAMPLE)) \
	    $(if $(SECONDS),--seconds $(SECONDS)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(JOBS),--jobs $(JOBS)) $(if $(AGAIN),--again $(AGAIN)) $(if $(KEEP),--keep '$(KEEP)')))

# They wait more than they work, as those of clients do: each release has a process, and brokers of single tests have one.
test-broker: $(READY) ## Run the tests that start a Kafka broker of each release
	$(call judge,test-broker, \
	  $(call step,pytest -m broker, SHARESTATE_REQUIRE=broker $(BIN)/python -m pytest -q -m broker -rs --numprocesses 3 --dist loadgroup --durations 8 tests/broker))

# They wait more than they work: each broker has a process.
test-clients: $(READY) ## Run the tests of real clients, on the test broker and on a broker of each release; TARGET=ours
	$(call judge,test-clients, \
	  $(call step,pytest -m clients, SHARESTATE_REQUIRE=broker $(BIN)/python -m pytest -q -m clients -rs --numprocesses 4 --dist loadgroup $(if $(TARGET),-k '$(TARGET)') tests/clients))

# The same seed writes the same script, as long as brokers answer alike.
conformance-scripts: $(READY) ## Record the scripts that sharestate conform asks of brokers, at Kafka 4.2.1 to 4.4.0
	$(call judge,conformance-scripts, $(call step,scripts at brokers of Kafka, \
	  PYTHONPATH=docs $(BIN)/python -m tests.conformance.recording))

conformance-reports: $(READY) ## Judge brokers of Kafka, the test broker, kfake (Go) and librdkafka's mock; NAMES=
	$(call judge,conformance-reports, $(call step,scripts at brokers, \
	  $(BIN)/python -m tests.conformance.reporting $(NAMES)); \
	  $(call step,the page, cd docs; ../$(BIN)/python -m generate))

vectors: $(READY) ## Write dist/sharestate-vectors.zip: vectors, scripts, their index and license
	$(call judge,vectors, mkdir -p dist; cd docs; ../$(BIN)/python -m generate.vectors_archive ../dist/sharestate-vectors.zip)

lockstep: KAFKA ?= 4.3.1
lockstep: SEED ?= 1
lockstep: SEEDS ?= 1
lockstep: STEPS ?= 500
lockstep: $(READY) ## Ask a broker of Kafka and the test broker the same at random, and compare; KAFKA=, SEED=, SEEDS=, STEPS=, ITSELF=1
	$(call judge,lockstep, $(call step,scripts at Kafka $(KAFKA) and at the test broker, \
	  $(BIN)/python -m tests.lockstep run --kafka $(KAFKA) --seed $(SEED) --seeds $(SEEDS) --steps $(STEPS) $(if $(ITSELF),--itself)))

# The request logs, segments and settings of brokers that were put under load, and what clients saw, for `sharestate log`.
broker-runs: RUN ?= all
broker-runs: KAFKA ?= 4.3.1
broker-runs: SEED ?= 1
broker-runs: OUT ?= build/broker-runs
broker-runs: $(READY) ## Put brokers under load, and keep what they leave: request logs, segments, notes of clients; RUN=, KAFKA=, SEED=, OUT=
	$(call judge,broker-runs, $(call step,runs of brokers of Kafka $(KAFKA), \
	  $(BIN)/python -m tests.broker.runs $(RUN) '$(OUT)' --kafka $(KAFKA) --seed $(SEED)))

# PySpark is large, so it has an environment of its own; types are checked against it too.
# Half of the time one program or another starts Java, so a file runs beside another, each process with a session.
SPARK_PYTEST := -q -p no:cacheprovider -m spark --numprocesses 2 --dist loadfile --durations 8
test-spark: $(SPARK_READY) $(READY) $(COMPILED) ## Run the tests on Spark, on Spark Connect, on a cluster and beside a broker; TESTS=
	$(call judge,test-spark, \
	  $(call step,mypy, $(BIN)/mypy --python-executable $(SPARK_BIN)/python src/sharestate/spark src/sharestate/cli/spark.py tests/spark); \
	  $(call step,pytest -m spark, SHARESTATE_REQUIRE=broker$(COMMA)spark $(SPARK_BIN)/python -m pytest $(SPARK_PYTEST) \
	    $(or $(TESTS),tests/spark)))

# The runs of `make test` are the first of them; the same seeds stand for the same runs.
failover: TIMES ?= 40
failover: $(READY) ## Try TIMES= as many random runs of leaders, their failovers and their persisters; takes minutes
	$(call judge,failover, $(call step,$(TIMES) times the runs of make test, \
	  SHARESTATE_TIMES=$(TIMES) $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 \
	    tests/property/test_failover_runs.py))

# With the default 20,000 runs for each healed profile.
stalls: TIMES ?= 160
stalls: $(READY) ## Try TIMES= as many random runs that have to end with the SPSO at the log end; takes minutes
	$(call judge,stalls, $(call step,$(TIMES) times the runs of make test, \
	  SHARESTATE_TIMES=$(TIMES) $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 \
	    tests/property/test_stalls.py))

explore: $(READY) ## Look at all states of small share groups, with and without Kafka's bugs; takes a minute or two
	$(call judge,explore, $(call step,all states, \
	  SHARESTATE_TIMES=2 $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 \
	    tests/property/test_explorations.py tests/property/test_merged_states.py))

# With the default 20,000 runs.
members: TIMES ?= 72
members: $(READY) ## Let the members of a node live TIMES= as many random lives as in make test; takes minutes
	$(call judge,members, $(call step,$(TIMES) times the runs of make test, \
	  SHARESTATE_TIMES=$(TIMES) $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 \
	    tests/property/test_node_members.py))

adversary: TIMES ?= 40
adversary: $(READY) ## Put share partitions in the hands of the adversary TIMES= as often, and beside the model; takes minutes
	$(call judge,adversary, $(call step,$(TIMES) times the share partitions of make test, \
	  SHARESTATE_TIMES=$(TIMES) $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 \
	    tests/property/test_share_partitions.py tests/property/test_record_oracle.py))

spark-archive: $(SPARK_READY) $(if $(COMPILE),$(COMPILED)) ## Write build/sharestate-spark.zip, the library for clusters that do not have it; COMPILE=1: sharestate-compiled.zip
	$(call judge,spark-archive, mkdir -p build; $(if $(COMPILE), \
	  $(call step,build/sharestate-compiled.zip, PYTHONPATH=build/compiled/lib \
	    $(SPARK_BIN)/python -m sharestate.spark.library_zip --compiled build/sharestate-compiled.zip), \
	  $(call step,build/sharestate-spark.zip, $(SPARK_BIN)/python -m sharestate.spark.library_zip build/sharestate-spark.zip)))

# Versions that the machine does not have are skipped. What replays brokers' logs says the same with each of them, and the
# budget is four minutes for two versions at once.
REPLAYED := bench broker_log explain log_check report
test-pythons: TESTS ?= tests/unit $(REPLAYED:%=--ignore=tests/unit/%)
test-pythons: dist ## Run unit tests against the wheel with each other supported version of Python, but replays of logs; TESTS=
	$(call judge,test-pythons, $(call step,the wheel with other versions of Python, \
	  $(BIN)/python tests/packaging/against_wheel.py others $(ALONE) $(TESTS)))

# By unit tests only: what random sequences happen to reach need not be judged by anybody.
CORE := */sharestate/coordinator/*,*/sharestate/partition/*,*/sharestate/values/*
coverage: $(READY) ## Check that the unit tests of the core reach every line and branch of it
	$(call judge,coverage, \
	  $(call step,pytest with coverage, $(BIN)/python -m pytest -q $(CORE_TESTS) --cov --cov-report=); \
	  $(call step,lines and branches that were not reached, $(BIN)/python -m coverage report --include='$(CORE)' \
	    --fail-under=100))

# Sequence SEED is the first; the same numbers stand for the same sequences. OPTIONS are those of the search itself.
oracle: OPS ?= 1000000
oracle oracle-coverage: KAFKA ?= 4.4.0
oracle: SEED ?= 0
oracle: JOBS ?= $(shell nproc 2>/dev/null || echo 2)
oracle: $(READY) ## Search for differences from Kafka's own class; OPS=, KAFKA=, SEED=, JOBS=, OPTIONS=
	$(call judge,oracle, $(call step,searching for differences from Kafka $(KAFKA), \
	  $(BIN)/python -m tests.oracle.search --ops $(OPS) --kafka $(KAFKA) --seed $(SEED) --jobs $(JOBS) $(OPTIONS)))

oracle-coordinator: OPS ?= 100000
oracle-coordinator: KAFKA ?= 4.3.1
oracle-coordinator: SEED ?= 0
oracle-coordinator: JOBS ?= $(shell nproc 2>/dev/null || echo 2)
oracle-coordinator: $(READY) ## Search for differences from Kafka's own share coordinator; OPS=, KAFKA=, SEED=, JOBS=
	$(call judge,oracle-coordinator, $(call step,searching for differences from the share coordinator of Kafka $(KAFKA), \
	  $(BIN)/python -m tests.oracle.coordinator.search --ops $(OPS) --kafka $(KAFKA) --seed $(SEED) --jobs $(JOBS)))

oracle-sessions: OPS ?= 200000
oracle-sessions: KAFKA ?= 4.4.0
oracle-sessions: SEED ?= 0
oracle-sessions: JOBS ?= $(shell nproc 2>/dev/null || echo 2)
oracle-sessions: $(READY) ## Search for differences from Kafka's own share sessions; OPS=, KAFKA=, SEED=, JOBS=
	$(call judge,oracle-sessions, $(call step,searching for differences from the share sessions of Kafka $(KAFKA), \
	  $(BIN)/python -m tests.oracle.sessions.search --ops $(OPS) --kafka $(KAFKA) --seed $(SEED) --jobs $(JOBS)))

oracle-groups: OPS ?= 200000
oracle-groups: KAFKA ?= 4.4.0
oracle-groups: SEED ?= 0
oracle-groups: JOBS ?= $(shell nproc 2>/dev/null || echo 2)
oracle-groups: $(READY) ## Search for differences from Kafka's own group coordinator, sessions and assignor; OPS=, KAFKA=, SEED=, JOBS=
	$(call judge,oracle-groups, $(foreach room,sessions groups assignor, \
	  $(call step,searching for differences from the $(room) of Kafka $(KAFKA), \
	    $(BIN)/python -m tests.oracle.$(room).search --ops $(OPS) --kafka $(KAFKA) --seed $(SEED) --jobs $(JOBS));))

oracle-configs: CASES ?= 20000
oracle-configs: KAFKA ?= 4.4.0
oracle-configs: $(READY) ## Search for settings that Kafka's own classes take otherwise; CASES=, KAFKA=
	$(call judge,oracle-configs, $(call step,searching for differences from the settings of Kafka $(KAFKA), \
	  $(BIN)/python -m tests.oracle.configs.search --cases $(CASES) --kafka $(KAFKA)))

oracle-mutants: $(READY) ## Check that the searches notice each of some changes to the library; takes minutes; ONLY=coordinator
	$(call judge,oracle-mutants, $(call step,planting one change after another, $(BIN)/python -m tests.oracle.mutants $(ONLY)))

oracle-coverage: $(READY) ## Measure how many branches of Kafka's own class a search reaches; KAFKA=, OPTIONS=
	$(call judge,oracle-coverage, \
	  $(call step,searching under JaCoCo, $(BIN)/python -m tests.oracle.coverage --kafka $(KAFKA) $(OPTIONS)))

record: KAFKA ?= 4.3.1
record: $(READY) ## Record the tests of Kafka's own class, and say what has changed; KAFKA=, TEST_JAR=
	$(call judge,record, $(call step,recording, \
	  $(BIN)/python -m tests.oracle.record --kafka $(KAFKA) $(if $(TEST_JAR),--tests '$(TEST_JAR)')))

# A page of Markdown on standard output; the exit status says whether something has changed. CONTRIBUTING.md says what then.
release-watch: $(READY) ## Say what a release of Kafka has changed, as a page of Markdown; KAFKA=x.y.z, TEST_JAR=, PROFILE=, OPS=, WRITE=
	@test -n '$(KAFKA)' || { echo "make release-watch: name the release: KAFKA=x.y.z"; exit 2; }
	@$(BIN)/python -m tests.oracle.release_watch --kafka '$(KAFKA)' $(if $(TEST_JAR),--tests '$(TEST_JAR)') \
	  $(if $(PROFILE),--profile '$(PROFILE)') $(if $(OPS),--ops $(OPS)) $(if $(JOBS),--jobs $(JOBS)) $(if $(WRITE),--write '$(WRITE)')

kafka-bugs: $(READY) ## Run a JUnit test of each bug of Kafka that is ready to report, on each release of the table; KAFKA=
	$(call judge,kafka-bugs, $(call step,Kafka's bugs on its releases, \
	  $(BIN)/python -m tests.kafka_bugs $(foreach release,$(KAFKA),--kafka '$(release)')))

lint: $(READY) ## Check style, types, layers and words
	$(call judge,lint, \
	  $(call step,ruff check, $(BIN)/ruff check); \
	  $(call step,ruff format --check, $(BIN)/ruff format --check); \
	  $(call step,mypy, $(BIN)/mypy --num-workers auto); \
	  $(call step,lint-imports, $(BIN)/lint-imports --no-logo); \
	  $(call step,glossary, (cd docs && ../$(BIN)/python -m generate.glossary)); \
	  $(call step,news fragments, $(BIN)/towncrier build --draft --version next >/dev/null))

check: lint test ## What has to pass before a change goes in: lint, then test

package: dist ## Build the sdist and the wheel, and look into them
	$(call judge,package, \
	  $(call step,what the distributions hold, $(BIN)/python -m pytest -q tests/packaging/distributions.py))

release: $(READY) ## Set VERSION=x.y.z, write the changelog, build, try what was built, and say what is left to do
	$(call judge,release, $(BIN)/python -m tests.packaging.release '$(VERSION)')

# Always built anew: make cannot know what goes into it.
.PHONY: dist
dist: $(READY)
	@echo "== building the sdist and, from it, the wheel"
	@rm -rf dist
	@$(BIN)/python -m build --quiet

NOTEBOOKS := examples/kip_tables.ipynb examples/sizing.ipynb
docs: $(READY) ## Build the documentation into build/docs, with the notebooks, and run its examples
	$(call judge,docs, \
	  $(call step,sphinx html, $(BIN)/python -m sphinx -q -n -W --keep-going -b html -d build/doctrees docs build/docs); \
	  $(call step,the notebooks, $(BIN)/python -m nbconvert --log-level=ERROR --to html --output-dir build/docs \
	    --HTMLExporter.mathjax_url= --HTMLExporter.require_js_url= $(NOTEBOOKS)); \
	  $(call step,sphinx doctest, $(BIN)/python -m sphinx -q -n -W --keep-going -b doctest -d build/doctrees docs build/doctest))

diagrams: $(READY) ## Make the pages and diagrams of docs that are made from code and data
	$(call judge,diagrams, cd docs; ../$(BIN)/python -m generate)

# What changes from run to run goes: times, and the version of Python.
notebook: $(READY) ## Run examples/kip_tables.ipynb and examples/sizing.ipynb again, and keep what they show
	$(call judge,notebook, $(BIN)/python -m nbconvert --log-level=WARN --to notebook --execute --inplace \
	  --ClearMetadataPreprocessor.enabled=True --ClearMetadataPreprocessor.preserve_nb_metadata_mask=kernelspec \
	  $(NOTEBOOKS))

# What it shows of another log is not kept, but goes to build.
notebook-spark: $(SPARK_READY) ## Run examples/redeliveries.ipynb again on Spark, and keep what it shows; RUN=directory of a broker: in build instead
	$(call judge,notebook-spark, mkdir -p build; $(if $(RUN),RUN='$(abspath $(RUN))') $(SPARK_BIN)/python -m nbconvert \
	  --log-level=ERROR --to notebook --execute --output-dir $(if $(RUN),build,examples) --output redeliveries.ipynb \
	  --ClearMetadataPreprocessor.enabled=True --ClearMetadataPreprocessor.preserve_nb_metadata_mask=kernelspec \
	  --ExecutePreprocessor.timeout=-1 examples/redeliveries.ipynb)

# With BASE, a commit, the library as it was there is measured alternately with this tree; OPERATIONS=1 adds single operations.
bench: $(READY) ## Measure what share partitions cost, or with BASE=commit what has changed since; ROUNDS=, OPERATIONS=1, INSTRUCTIONS=1
	$(call judge,bench, $(if $(BASE)$(INSTRUCTIONS), \
	  $(call step,$(if $(BASE),the library at $(BASE) and now alternately,the workloads), $(BIN)/python -m bench.jvm --no-jvm $(BESIDE) \
	    $(if $(OPERATIONS),--operations)), \
	  $(call step,a table of ratios and microseconds, $(BIN)/python -m bench --rounds $(ROUNDS) \
	    $(if $(WRITE),--write '$(WRITE)'))))

# The program's exit status says whether something has changed (1) or could not be checked here (3).
instructions: $(READY) $(COMPILED) ## Hold what workloads take, compiled too, to bench/instructions.json, within 2 %; UPDATE=1 writes it, and docs/install.md
	$(call judge,instructions, $(call step,instructions and bytecodes for a batch, \
	  $(BIN)/python -m bench.instruction_table --wheel build/compiled/*.whl $(if $(UPDATE),--update)))

# The same with every build of one version of Python, in every directory; the exit status is as above.
bytecodes: $(READY) ## Hold the bytecodes alone to bench/instructions.json, in seconds and without valgrind; UPDATE=1
	$(call judge,bytecodes, $(call step,bytecodes for a batch$(COMMA) by function, \
	  $(BIN)/python -m bench.instruction_table --bytecodes $(if $(UPDATE),--update)))

# All figures of the docs are in one page. Kafka's side comes first: it fails at once where there is no Java.
growth: PAGE ?= docs/growth.md
growth: $(READY) ## Measure all figures that the docs carry and write them into their page; takes a quarter of an hour; ROUNDS=, PAGE=
	$(call judge,growth, begin=$$(date +%s); \
	  echo "$(PAGE): about 3 minutes for each of $(ROUNDS) rounds and 2 more; let the machine do nothing else"; \
	  $(call step,Kafka and the library alternately, \
	    $(BIN)/python -m bench.jvm --rounds $(ROUNDS) --instructions --write '$(PAGE)'); \
	  $(call step,what share partitions cost, $(BIN)/python -m bench --rounds $(ROUNDS) --write '$(PAGE)'); \
	  echo "$(PAGE): written after $$((($$(date +%s) - begin) / 60)) minutes")

# WORKLOAD is one of the names that bench/workloads.py lists. WRITE=docs/growth.md puts the tables into that page.
bench bench-jvm bench-compiled growth: ROUNDS ?= 5
BESIDE = --rounds $(ROUNDS) $(if $(BASE),--base '$(BASE)') $(if $(WORKLOAD),--workload '$(WORKLOAD)') \
  $(if $(JSON),--json '$(JSON)') $(if $(INSTRUCTIONS),--instructions)
bench-jvm: $(READY) ## Measure Kafka's own class and the library alternately; takes minutes; KAFKA=, BASE=, ROUNDS=, WORKLOAD=, WRITE=, JSON=, INSTRUCTIONS=1
	$(call judge,bench-jvm, $(call step,Kafka and the library alternately, \
	  $(BIN)/python -m bench.jvm $(BESIDE) $(if $(KAFKA),--kafka '$(KAFKA)') $(if $(WRITE),--write '$(WRITE)')))

bench-compiled: $(COMPILED) ## Measure the library and the compiled one alternately, with their instructions; JVM=1 with Kafka's own class, ROUNDS=, WORKLOAD=
	$(call judge,bench-compiled, $(call step,the library and the compiled one alternately, \
	  $(BIN)/python -m bench.jvm $(if $(JVM),,--no-jvm) $(BESIDE) --wheel build/compiled/*.whl))

bench-state: $(READY) ## Measure what records of the state topic cost to read, and writes to a persister in a file, also for an event loop
	$(call judge,bench-state, \
	  $(call step,records of a broker, $(BIN)/python -m bench.state_topic); \
	  $(call step,writes to a file, $(BIN)/python -m bench.state_log); \
	  $(call step,how long they hold up an event loop, $(BIN)/python -m bench.event_loop))

# KFAKE is the program that `go build main.go` makes in franz-go's pkg/kfake; without it kfake is left out.
bench-broker: $(READY) ## Measure the test broker beside Kafka 4.3.1 as clients see them, and as a test grows; KFAKE=, ROUNDS=
	$(call judge,bench-broker, \
	  $(call step,the same clients at each broker, $(BIN)/python -m bench.test_broker $(if $(ROUNDS),--rounds $(ROUNDS)) \
	    $(if $(KFAKE),--kfake '$(KFAKE)')); \
	  $(call step,few and many, $(BIN)/python -m bench.test_broker_growth))

# The events of a replay are 2,000 share partitions', a tenth of them one's. GROWTH=1 adds other sizes and streams.
bench-spark: RECORDS ?= 1000000
bench-spark: EVENTS ?= 2000000
bench-spark: $(SPARK_READY) ## Replay, and rebuild the state topic, on Spark and without it by turns; EVENTS=, RECORDS=, ROUNDS=, GROWTH=1
	$(call judge,bench-spark, $(call step,records of the state topic, \
	  $(SPARK_BIN)/python -m bench.spark_rebuild --records $(RECORDS) $(if $(ROUNDS),--rounds $(ROUNDS))); \
	  $(call step,events of a history, \
	  $(SPARK_BIN)/python -m bench.spark_replay --events $(EVENTS) $(if $(ROUNDS),--rounds $(ROUNDS))); \
	  $(if $(GROWTH),$(call step,other numbers of tasks and of events, \
	  $(SPARK_BIN)/python -m bench.spark_replay --growth --events $(EVENTS) $(if $(ROUNDS),--rounds $(ROUNDS))); \
	  $(call step,batches of a stream, $(SPARK_BIN)/python -m bench.spark_stream),:))

bench-profile: $(READY) ## Count the calls that acknowledging 500 records makes, by function; WORKLOAD=
	$(call judge,bench-profile, $(call step,calls for each batch, \
	  $(BIN)/python -m bench.calls $(if $(WORKLOAD),--workload '$(WORKLOAD)')))

clean: ## Remove .venv and all that the tools left behind
	rm -rf .venv .venv-spark .coverage .coverage.* coverage.xml htmlcov build dist
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
	@$(BIN)/python -m pip install --quiet --no-compile --editable '.[broker,cli,consumer,kafka,monitor,parquet,plots,segments,testing]' --group dev
	@touch $@

$(MUTATION_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group mutation
	@touch $@

# Python compiles what is imported, which is a small part of what is installed.
$(SPARK_READY): pyproject.toml
	@echo "== installing sharestate, PySpark and what else its tests take into .venv-spark"
	@$(PYTHON) -m venv .venv-spark
	@$(SPARK_BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(SPARK_BIN)/python -m pip install --quiet --no-compile --editable '.[cli,kafka,plots,segments,spark-kafka]' --group spark
	@touch $@
