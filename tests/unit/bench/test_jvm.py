"""The comparison with Kafka's own class, as far as it goes without Java."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from bench.jvm import __main__ as program
from bench.jvm import goals, library
from bench.jvm.comparing import (
    BYTES,
    INSTRUCTIONS,
    LOAD,
    MICROSECONDS,
    NANOSECONDS,
    Costs,
    Round,
    UnknownCommitError,
    WheelError,
    checked_out,
    costs,
    unpacked,
)
from bench.jvm.kafka import BATCHES, HELD_AFTER, Kafka, KafkaEndedError, shape
from bench.jvm.table import comparison
from bench.memory import MEMORY
from bench.partitions import acknowledge_all, acquire, opened
from bench.workloads import EVERY_BATCH, READINGS, RECORDS, RUNS, WHOLE, WORKLOADS, as_read
from sharestate import AcknowledgementBatch, SharePartition

Calls = list[list[list[object]]]

WHOLE_RUNS, RANGES_RUNS = as_read(WHOLE, RUNS), as_read("10 ranges in one call", RUNS)
TWO_ROUNDS = (
    Round(WHOLE_RUNS, MICROSECONDS, kafka=4.0, library=8.0, later=1.0),
    Round(RANGES_RUNS, MICROSECONDS, kafka=100.0, library=120.0, later=100.0),
    Round(WHOLE_RUNS, MICROSECONDS, kafka=2.0, library=5.0, later=2.0),
    Round(RANGES_RUNS, MICROSECONDS, kafka=100.0, library=110.0, later=90.0),
    Round(as_read(WHOLE, EVERY_BATCH), MICROSECONDS, kafka=4.0, library=28.0, later=1.0),
    Round("record of split batches", BYTES, kafka=205.0, library=9.2),
)
WITH_BASE = (
    Round(WHOLE_RUNS, MICROSECONDS, library=21.0, kafka=2.0, later=1.0, base=20.0),
    Round(WHOLE_RUNS, MICROSECONDS, library=18.0, kafka=3.0, later=2.0, base=24.0),
    Round(WHOLE_RUNS, MICROSECONDS, library=22.0, kafka=2.0, later=1.0, base=20.0),
    Round("record of split batches", BYTES, kafka=205.0, library=9.2, base=9.1),
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
    """What is measured has a goal, however its writes are read, and Kafka is told how much of it to run."""
    assert set(goals.MOST_TIMES) == {as_read(name, reading) for name in WORKLOADS for reading in READINGS}
    assert set(BATCHES) == set(WORKLOADS)


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
    found = costs(TWO_ROUNDS, MICROSECONDS)[WHOLE_RUNS]

    assert found == Costs([TWO_ROUNDS[0], TWO_ROUNDS[2]])
    assert (found.kafka, found.library, found.later) == (3.0, 6.5, 1.5)
    assert found.to_kafka == [2.0, 2.5]
    assert (found.base, found.to_base, found.base_to_kafka) == (None, [], [])


def test_the_tables_say_what_is_reached_and_what_is_missed() -> None:
    """Each figure stands beside its goal; calls and memory have tables of their own."""
    assert comparison(TWO_ROUNDS, ["Two cores."], CALLED).splitlines() == [
        "Two cores.",
        "",
        "| 500 records; runs     | Kafka: µs | later | library: µs | ratio | from |   to |            goal |",
        "|-----------------------|----------:|------:|------------:|------:|-----:|-----:|----------------:|",
        "| whole                 |       3.0 |   1.5 |         6.5 |  2.25 | 2.00 | 2.50 |     <= 6.5: met |",
        "| 10 ranges in one call |     100.0 |  95.0 |       115.0 |  1.15 | 1.10 | 1.20 | <= 0.55: missed |",
        "",
        (
            "| 500 records; every state batch read | Kafka: µs | later | library: µs | ratio | from |   to |"
            "           goal |"
        ),
        (
            "|-------------------------------------|----------:|------:|------------:|------:|-----:|-----:|"
            "---------------:|"
        ),
        (
            "| whole                               |       4.0 |   1.0 |        28.0 |  7.00 | 7.00 | 7.00 |"
            " <= 6.6: missed |"
        ),
        "",
        "| calls that a batch makes | Python | C | ns for each |",
        "|--------------------------|-------:|--:|------------:|",
        "| whole                    |     20 | 6 |         250 |",
        "| 10 ranges in one call    |  1,000 | 0 |         115 |",
        "",
        "| memory for one          | Kafka: bytes | library: bytes |       goal |",
        "|-------------------------|-------------:|---------------:|-----------:|",
        "| record of split batches |        205.0 |            9.2 | <= 12: met |",
    ]


def test_with_a_base_the_table_says_what_has_changed() -> None:
    """Both trees stand beside Kafka, and the change is the median of the rounds' own, with the least and the most."""
    assert comparison(WITH_BASE, ["Two cores."], {}).splitlines()[2:] == [
        (
            "| 500 records; runs | Kafka: µs | later | base: µs | library: µs | base ratio | ratio |"
            " change |    from |      to |           goal |"
        ),
        (
            "|-------------------|----------:|------:|---------:|------------:|-----------:|------:|"
            "-------:|--------:|--------:|---------------:|"
        ),
        (
            "| whole             |       2.0 |   1.0 |     20.0 |        21.0 |      10.00 | 10.50 |"
            " +5.0 % | -25.0 % | +10.0 % | <= 6.5: missed |"
        ),
        "",
        "| memory for one          | Kafka: bytes | base: bytes | library: bytes |       goal |",
        "|-------------------------|-------------:|------------:|---------------:|-----------:|",
        "| record of split batches |        205.0 |         9.1 |            9.2 | <= 12: met |",
    ]


def test_two_trees_are_compared_without_kafka() -> None:
    """Without the JVM there is no ratio and no goal; operations have a table of their own."""
    measured = [Round(what, MICROSECONDS, library=3.0, base=2.0) for what in (WHOLE_RUNS, "expire_next (10)")]

    assert comparison(measured, ["Two cores."], {}).splitlines()[2:] == [
        "| 500 records; runs | base: µs | library: µs |  change |    from |      to |",
        "|-------------------|---------:|------------:|--------:|--------:|--------:|",
        "| whole             |      2.0 |         3.0 | +50.0 % | +50.0 % | +50.0 % |",
        "",
        "| one operation (with so many batches or records) | base: µs | library: µs |  change |    from |      to |",
        "|-------------------------------------------------|---------:|------------:|--------:|--------:|--------:|",
        "| expire_next (10)                                |      2.0 |         3.0 | +50.0 % | +50.0 % | +50.0 % |",
    ]


def test_instructions_have_a_table_of_their_own() -> None:
    """They are counted in thousands, with the change where there is a base."""
    alone = [Round(WHOLE_RUNS, INSTRUCTIONS, library=150_400.0)]
    beside = [Round(WHOLE_RUNS, INSTRUCTIONS, library=150_400.0, base=300_800.0)]

    assert comparison(alone, ["Two cores."], {}).splitlines()[2:] == [
        "| thousands of instructions for a batch | library |",
        "|---------------------------------------|--------:|",
        "| whole; runs                           |     150 |",
    ]
    assert comparison(beside, ["Two cores."], {}).splitlines()[-1].split("|")[2:-1] == [
        *("  301 ", "     150 ", " -50.0 % ")
    ]


def test_instructions_for_each_nanosecond_stand_beside_them() -> None:
    """Where a workload was timed too: 150,400 in 20 µs are 7.5 for each ns."""
    measured = [
        Round(WHOLE_RUNS, INSTRUCTIONS, library=150_400.0),
        Round(WHOLE_RUNS, MICROSECONDS, library=20.0, kafka=2.0),
    ]

    assert comparison(measured, ["Two cores."], {}).splitlines()[-1].split("|")[2:-1] == [
        *("     150 ", "         7.5 ")
    ]


def calibrated(*calls: float, processes: float = 0.5) -> list[Round]:
    """Return a workload that misses its goal, and what the machine made of itself meanwhile."""
    return [
        *(Round("an empty call", NANOSECONDS, library=call) for call in calls),
        Round("load", LOAD, library=processes),
        Round(WHOLE_RUNS, MICROSECONDS, library=200.0, kafka=2.0),
    ]


def test_a_machine_at_ease_has_its_ratios_judged() -> None:
    """What it makes of itself stands first; a tenth more is no unease."""
    lines = comparison(calibrated(24.0, 26.0), ["Two cores."], {}).splitlines()

    assert lines[2:6] == [
        "| the machine itself            | median | from |   to |",
        "|-------------------------------|-------:|-----:|-----:|",
        "| an empty call: ns             |   25.0 | 24.0 | 26.0 |",
        "| load: processes for each core |    0.5 |  0.5 |  0.5 |",
    ]
    assert lines[-1].endswith(": missed |")


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (calibrated(24.0, 36.0), "the same took up to 50 % longer"),
        (calibrated(24.0, 24.0, processes=3.0), "3.0 processes wanted each core"),
    ],
)
def test_an_uneasy_machine_says_so_and_judges_no_ratio(measured: list[Round], reason: str) -> None:
    """Its ratios are neither met nor missed."""
    lines = comparison(measured, ["Two cores."], {}).splitlines()

    assert lines[1] == f"The machine was uneasy ({reason}): ratios are not judged; instructions are."
    assert lines[-1].endswith(": not judged |")


@pytest.mark.parametrize(
    ("figure", "expected"), [(0.8, "<= 0.8: met"), (0.80001, "<= 0.8: missed"), (0, "<= 0.8: met")]
)
def test_a_goal_is_reached_up_to_its_limit(figure: float, expected: str) -> None:
    """The limit itself is still good."""
    assert goals.verdict(figure, 0.8) == expected


@pytest.mark.parametrize("what", [WHOLE_RUNS, as_read(WHOLE, EVERY_BATCH), "expire_next (10)"])
def test_a_turn_lasts_until_its_time_is_spent(what: str) -> None:
    """There is one run at least, and each gives the time of one batch or one operation. [µs]"""
    assert 0 < library.turn(what, 1e-9) < 100_000


def test_every_operation_is_measured_small_and_large() -> None:
    """Beside the workloads, each operation is measured with the least and the most that it grows with."""
    assert set(library.TIMED) == {*goals.MOST_TIMES, *library.OPERATION_NAMES}
    assert {"expire_next (10)", "expire_next (10000)"} <= set(library.TIMED)


def test_a_tree_is_measured_as_it_is(tmp_path: Path) -> None:
    """The process imports the `sharestate` of the tree that is named, and no other."""
    (tmp_path / "sharestate.py").write_text("raise SystemExit('another tree')", "utf-8")

    with (
        library.started(tmp_path, WHOLE_RUNS) as other,
        pytest.raises(library.LibraryEndedError, match="could not be measured"),
    ):
        other.figure()


def test_trees_are_measured_by_turns(tmp_path: Path) -> None:
    """Every tree gets a figure, in the order in which they are named; a tree without the library gets the installed."""
    figures = library.by_turns([tmp_path, library.THIS_TREE], "record of split batches")

    assert len(figures) == 2
    assert figures[0] == pytest.approx(figures[1], rel=0.1)


@pytest.mark.skipif(not (library.ROOT / ".git").exists(), reason="a commit is taken from a clone")
def test_a_commit_is_checked_out_for_as_long_as_it_is_needed() -> None:
    """The package is there as the commit has it, and gone afterwards; the working tree is not touched."""
    with checked_out("HEAD") as source:
        assert (source / "sharestate/__init__.py").is_file()
        assert not (source / "sharestate/__pycache__").exists()
    assert not source.exists()


def test_a_commit_that_is_not_known_is_refused() -> None:
    """Git says why."""
    with (
        pytest.raises(UnknownCommitError, match=r"not a valid object name|not a git repository"),
        checked_out("no-such"),
    ):
        pytest.fail("there is nothing to check out")


def test_a_wheel_is_unpacked_for_as_long_as_it_is_needed(tmp_path: Path) -> None:
    """Its package can be imported from there, and is gone afterwards."""
    with ZipFile(tmp_path / "any.whl", "w") as wheel:
        wheel.writestr("sharestate/__init__.py", "")
    with unpacked(tmp_path / "any.whl") as source:
        assert (source / "sharestate/__init__.py").is_file()
    assert not source.exists()


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    """Whether it is not there or no archive, the file is named."""
    (tmp_path / "text.whl").write_text("no archive")
    for name in ("text.whl", "none.whl"):
        with pytest.raises(WheelError, match=rf"{name}: no wheel: "), unpacked(tmp_path / name):
            pytest.fail("there is nothing to unpack")


def test_a_machine_without_java_is_told_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where there is no Java, the program says so and how to get it, and measures nothing."""
    for name in ("PATH", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr("sys.argv", ["bench.jvm"])

    with pytest.raises(SystemExit) as ended:
        program.main()

    told = str(ended.value.code)  # a text is written to standard error, and the exit code is 1
    assert "there is no java and no javac and no mvn" in told
    assert "apt-get install openjdk-17-jdk-headless maven" in told
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rounds", "0"], "--rounds takes 1 or more"),
        (["--workload", "half"], "invalid choice: 'half'"),
        (["--workload", WHOLE, "--write", "page.md"], "--write takes all workloads"),
        (["--no-jvm"], "--no-jvm takes --base, --wheel or --instructions"),
        (["--operations", "--base", "main"], "--operations takes --no-jvm"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    arguments: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is measured, and the complaint names the option."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.argv", ["bench.jvm", *arguments])

    with pytest.raises(SystemExit) as ended:
        program.main()

    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err
