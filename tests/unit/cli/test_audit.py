"""``sharestate audit``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate

HEADER = {"sharestate_operations": 1, "clock": "one"}
SETTINGS = ("--lock-duration-ms", 30_000, "--delivery-count-limit", 5, "--max-record-locks", 2000)
WORDS = ("--isolation-level", "read_committed", "--auto-offset-reset", "earliest")

PRODUCED = {
    "op": "produce",
    "client": "p",
    "begin_ms": 0,
    "end_ms": 1,
    "topic": "t",
    "partition": 0,
    "first_offset": 0,
    "last_offset": 1,
}


def fetched(client: str, at_ms: int, *ranges: list[int]) -> dict[str, object]:
    """Return a fetch of a millisecond."""
    partitions = [["t", 0, [*ranges]]] if ranges else []
    times = {"begin_ms": at_ms, "end_ms": at_ms + 1}
    return {"op": "fetch", "client": client, **times, "group": "g", "partitions": partitions}


def accepted(client: str, at_ms: int, code: int | str = 0) -> dict[str, object]:
    """Return an acknowledgement of both records."""
    partitions = [["t", 0, [[0, 1, "accept"]], code]]
    times = {"begin_ms": at_ms, "end_ms": at_ms + 1}
    return {"op": "acknowledge", "client": client, **times, "group": "g", "partitions": partitions}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the log is to be written."""
    return tmp_path / "clients.jsonl"


def audited(log: Path, *operations: dict[str, object], options: tuple[object, ...] = (*SETTINGS, *WORDS)) -> Result:
    """Run the command on *operations*."""
    log.write_text("".join(f"{json.dumps(each)}\n" for each in (HEADER, *operations)))
    return CliRunner().invoke(sharestate, ["audit", str(log), *map(str, options)])


def test_what_holds_is_a_table(log: Path) -> None:
    """With a row for each guarantee; nothing is broken, and all can be told: 0."""
    result = audited(log, PRODUCED, fetched("m1", 10, [0, 1, 1]), accepted("m1", 20), fetched("m1", 90_000))

    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0] == "4 operations of 2 clients; 2 records of 1 share partition, 0 with an ambiguous life"
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert rows[0] == ["one_owner", "held", "2", "records delivered", "0", "0"]
    assert rows[-1] == ["nothing_lost", "held", "2", "records produced", "0", "0"]


def test_what_is_broken_is_told(log: Path) -> None:
    """With the place, the guarantee and the life of the record: 1."""
    result = audited(log, PRODUCED, fetched("m1", 10, [0, 1, 1]), accepted("m1", 20), fetched("m2", 30, [1, 1, 2]))

    assert result.exit_code == 1
    assert result.output.splitlines()[-6:] == [
        f"{log}:5: g, t-0, offset 1: accepted_is_final: m2 gets what m1 has accepted",
        "  What should be: A record that was accepted is never delivered again.",
        f"  0.000 s: p produces it ({log}:2)",
        f"  0.010 s: m1 gets it, delivery 1 ({log}:3)",
        f"  0.020 s: m1 acknowledges it, accept ({log}:4)",
        f"  0.030 s: m2 gets it, delivery 2 ({log}:5)",
    ]


def test_a_bug_that_looks_so_is_named(log: Path) -> None:
    """After a fault, bugs of Kafka's persistence may be behind an acceptance that is undone."""
    fault = {"op": "fault", "client": "f", "begin_ms": 25, "end_ms": 25, "what": "failover"}

    result = audited(
        log, PRODUCED, fetched("m1", 10, [0, 1, 1]), accepted("m1", 20), fault, fetched("m2", 30, [1, 1, 2])
    )

    assert result.output.splitlines()[-1] == "  Bugs of Kafka that look so: F3, C2 (docs/kafka-bugs.md)"


def test_what_cannot_be_told_has_its_reason(log: Path) -> None:
    """Nothing is broken, and it cannot be told of some guarantees: 2."""
    second = fetched("m2", 40_000, [0, 1, 2])
    crash = {"op": "crash", "client": "m2", "at_ms": 40_010, "group": "g"}
    result = audited(
        log,
        PRODUCED,
        fetched("m1", 10, [0, 1, 1]),
        accepted("m1", 35_000, "INVALID_RECORD_STATE"),
        second,
        crash,
        options=("--lock-duration-ms", 30_000),
    )

    assert result.exit_code == 2
    assert "record_locks: cannot tell of 1: max_record_locks is not known" in result.output
    again = "  lock expired: 2, after 39.991 s to 39.991 s, half of them after 39.991 s or less"
    assert again in result.output


def test_many_findings_and_reasons_are_counted(log: Path) -> None:
    """Ten findings and three reasons are shown of each guarantee."""
    produced = PRODUCED | {"last_offset": 99}
    again = [fetched("m2", 20 + number, [2 * number, 2 * number, 2]) for number in range(12)]

    result = audited(log, produced, fetched("m1", 10, [0, 99, 1]), *again)

    assert result.output.splitlines()[-1] == "one_owner: 2 more"
    assert result.output.count(": one_owner: ") == 10


def test_more_than_three_reasons_are_counted(log: Path) -> None:
    """Here one for each partition of which nobody has written down what was produced."""
    got = [fetched("m1", 10 + number) | {"partitions": [["t", number, [[0, 0, 1]]]]} for number in range(5)]

    result = audited(log, *got)

    assert result.exit_code == 2
    assert result.output.count("only_produced: cannot tell of 1: nobody wrote down what was produced to t-") == 3
    assert "only_produced: 2 more reasons (--json)" in result.output


def test_the_same_as_json(log: Path) -> None:
    """One versioned document."""
    result = audited(
        log, PRODUCED, fetched("m1", 10, [0, 1, 1]), fetched("m2", 20, [0, 1, 2]), options=(*SETTINGS, *WORDS, "--json")
    )

    document = json.loads(result.output)
    assert (result.exit_code, document["audit"], document["operations"]) == (1, 1, 3)
    assert document["verdicts"][0]["verdict"] == "broken"


def test_a_group_can_be_chosen(log: Path) -> None:
    """Nothing is known of another one."""
    result = audited(log, PRODUCED, fetched("m1", 10, [0, 1, 1]), options=("--group", "other"))

    assert result.exit_code == 0
    assert "0 records of 0 share partitions" in result.output


def test_a_malformed_file_is_no_verdict(log: Path) -> None:
    """The place is named: 2."""
    result = audited(log, {"op": "poll"})

    assert result.exit_code == 2
    assert f"{log}:2: op: expected one of settings" in str(result.exception) + result.output
