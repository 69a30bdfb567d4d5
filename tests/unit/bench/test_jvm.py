"""The comparison with Kafka's own class, as far as it goes without Java."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.jvm import goals, library
from bench.jvm.comparing import BYTES, MICROSECONDS, Costs, Pair, costs
from bench.jvm.kafka import BATCHES, HELD_AFTER, Kafka, KafkaEndedError, shape
from bench.jvm.table import comparison
from bench.memory import MEMORY
from bench.partitions import acknowledge_all, acquire, opened
from bench.workloads import RECORDS, WHOLE, WORKLOADS
from sharestate import AcknowledgementBatch, SharePartition

Calls = list[list[list[object]]]

TWO_ROUNDS = (
    Pair(WHOLE, MICROSECONDS, kafka=4.0, library=8.0, later=1.0),
    Pair("10 ranges in one call", MICROSECONDS, kafka=100.0, library=120.0, later=100.0),
    Pair(WHOLE, MICROSECONDS, kafka=2.0, library=5.0, later=2.0),
    Pair("10 ranges in one call", MICROSECONDS, kafka=100.0, library=110.0, later=90.0),
    Pair("record of split batches", BYTES, kafka=205.0, library=9.2),
)
CALLED = {WHOLE: (20.0, 6.0), "10 ranges in one call": (1000.0, 0.0)}
ANSWER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "held" in asked:
        answer = {"bytes": 3 * asked["held"] * asked["records"]}
    else:
        runs = range(asked["runs"])
        answer = {"microseconds": [asked["batches"] if len(runs) == 2 else run for run in runs]}
    print(json.dumps(answer), flush=True)
"""
DIE = "import sys\nsys.exit('no such class')"


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    """A program in the place of the JVM: the one that is the parameter."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", request.param]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        yield Kafka(process)


def told(partition: SharePartition) -> list[str]:
    """Return what is in flight, as text: locks of two share partitions are never equal."""
    return [str(batch) for batch in partition.batches()]


def after(calls: Calls) -> list[str]:
    """Return what is in flight after *calls*, read from what the JVM is told."""
    partition = opened()
    acquire(partition, 0, RECORDS)
    for call in json.loads(json.dumps(calls)):
        acknowledge_all(partition, [AcknowledgementBatch(*batch) for batch in call])
    return told(partition)


def test_every_workload_has_a_goal_and_a_length() -> None:
    """What is measured has a goal, and Kafka is told how much of it to run."""
    assert set(goals.MOST_TIMES) == set(BATCHES) == set(WORKLOADS)


def test_every_kind_of_record_that_the_jvm_holds_is_held_here() -> None:
    """Memory is compared only for what both sides can hold, and so are the goals for it."""
    assert set(goals.MOST_BYTES) <= set(HELD_AFTER) <= set(MEMORY)


@pytest.mark.parametrize("what", HELD_AFTER)
def test_both_sides_hold_the_same_records(what: str) -> None:
    """The calls that the JVM is told of leave a batch as the calls that are counted here do."""
    partition = opened()
    MEMORY[what].grow(partition)

    assert after(shape(HELD_AFTER[what])) == told(partition)[:1]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_jvm_is_told_of_calls_that_leave_nothing(workload: str) -> None:
    """A workload survives being written as JSON: all of its records are done afterwards."""
    calls, _ = WORKLOADS[workload]

    assert after(shape(calls(0))) == []


@pytest.mark.parametrize("peer", [ANSWER], indirect=True)
def test_the_heap_is_divided_by_the_records_that_are_held(peer: Kafka) -> None:
    """Memory is that of one record, however many batches the JVM holds."""
    assert peer.bytes_per_record("record of whole batches") == 3


@pytest.mark.parametrize("peer", [ANSWER], indirect=True)
def test_the_first_runs_are_not_counted(peer: Kafka) -> None:
    """Of 15 runs the first six warm up, and the median of the nine others is told."""
    assert peer.microseconds(WHOLE) == 10


@pytest.mark.parametrize("peer", [ANSWER], indirect=True)
def test_a_later_run_lasts_about_a_second(peer: Kafka) -> None:
    """If a batch took 4 µs, a run has 250,000 batches."""
    assert peer.later(WHOLE, 4.0) == 250_000


@pytest.mark.parametrize("peer", [DIE], indirect=True)
def test_a_jvm_that_ends_says_why(peer: Kafka) -> None:
    """What it has written to standard error becomes the message."""
    with pytest.raises(KafkaEndedError, match="no such class"):
        peer.microseconds(WHOLE)


def test_a_ratio_is_taken_round_by_round() -> None:
    """The ratio is the median of the rounds' ratios, not the ratio of the medians."""
    found = costs(TWO_ROUNDS, MICROSECONDS)[WHOLE]

    assert found == Costs([TWO_ROUNDS[0], TWO_ROUNDS[2]])
    assert (found.kafka, found.library, found.later, found.ratios) == (3.0, 6.5, 1.5, (2.0, 2.25, 2.5))


def test_the_tables_say_what_is_reached_and_what_is_missed() -> None:
    """Each figure stands beside its goal; calls and memory have tables of their own."""
    assert comparison(TWO_ROUNDS, ["Two cores."], CALLED).splitlines() == [
        "Two cores.",
        "",
        "| 500 records, acknowledged as | Kafka: µs | later | library: µs | ratio | from |   to |            goal |",
        "|------------------------------|----------:|------:|------------:|------:|-----:|-----:|----------------:|",
        "| whole                        |       3.0 |   1.5 |         6.5 |  2.25 | 2.00 | 2.50 | <= 2.5: reached |",
        "| 10 ranges in one call        |     100.0 |  95.0 |       115.0 |  1.15 | 1.10 | 1.20 |  <= 0.9: missed |",
        "",
        "| calls that a batch makes | Python | C | ns for each |",
        "|--------------------------|-------:|--:|------------:|",
        "| whole                    |     20 | 6 |         250 |",
        "| 10 ranges in one call    |  1,000 | 0 |         115 |",
        "",
        "| memory for one          | Kafka: bytes | library: bytes |           goal |",
        "|-------------------------|-------------:|---------------:|---------------:|",
        "| record of split batches |        205.0 |            9.2 | <= 12: reached |",
    ]


@pytest.mark.parametrize(
    ("figure", "expected"), [(0.8, "<= 0.8: reached"), (0.80001, "<= 0.8: missed"), (0, "<= 0.8: reached")]
)
def test_a_goal_is_reached_up_to_its_limit(figure: float, expected: str) -> None:
    """The limit itself is still good."""
    assert goals.verdict(figure, 0.8) == expected


def test_the_library_runs_until_the_time_is_spent() -> None:
    """There is one run at least, and each gives the time of one batch."""
    (run,) = library.runs(WHOLE, 1e-9)

    assert 0 < run < 0.1


def test_a_machine_without_java_is_told_what_it_lacks(tmp_path: Path) -> None:
    """Where there is no Java, the program says so and how to get it, and measures nothing."""
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": ":".join(filter(None, sys.path))}
    command = [sys.executable, "-m", "bench.jvm"]

    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "there is no java and no javac and no mvn" in ended.stderr
    assert "apt-get install openjdk-17-jdk-headless maven" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rounds", "0"], "--rounds takes 1 or more"),
        (["--workload", "half"], "invalid choice: 'half'"),
        (["--workload", WHOLE, "--write", "page.md"], "--write takes all workloads"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: list[str], complaint: str) -> None:
    """Nothing is measured, and the complaint names the option."""
    command = [sys.executable, "-m", "bench.jvm", *arguments]
    environment = {"PATH": "", "PYTHONPATH": ":".join(filter(None, sys.path))}

    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert complaint in ended.stderr
