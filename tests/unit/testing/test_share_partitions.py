"""`SharePartitionMachine` finds what is wrong with share partitions, and says what it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sharestate.testing.record_model import RecordModel
from sharestate.testing.share_partitions import (
    EXPLANATIONS,
    PartitionSettings,
    SharePartitionDiffersError,
    StoredState,
)
from tests.support import naive_bugs
from tests.support.partition_machine import difference_of, machine_of
from tests.support.planted_partition_bugs import BUGS, DeliversWhatIsPending
from tests.support.record_planted_partition_bugs import BROKERS, PARTITIONS, steps_of

ROWS: list[dict[str, Any]] = json.loads(PARTITIONS.read_text())["rows"]
BROKER_ROWS: list[dict[str, Any]] = json.loads(BROKERS.read_text())["rows"]

AT_ONCE = [row["bug"] for row in ROWS if row["runs"] <= 4]
"""Bugs that are found so soon that they are searched for anew."""


def run(program: list[str], model_type: type[RecordModel]) -> None:
    """Run a program as Hypothesis has printed it."""
    names = {"ModelMachine": machine_of(model_type), "PartitionSettings": PartitionSettings}
    exec("\n".join(program), names)  # noqa: S102 - that is what is tested


def test_every_planted_bug_has_a_row() -> None:
    """Those that are planted are those in the docs, with the same words."""
    assert {row["bug"]: row["what"] for row in ROWS} == {name: bug.__doc__ for name, bug in BUGS.items()}
    assert {row["bug"]: row["what"] for row in BROKER_ROWS} == {bug.__name__: bug.__doc__ for bug in naive_bugs.BUGS}
    assert all(row["steps"] <= 12 for row in BROKER_ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["bug"]))
def test_a_program_shows_its_bug(row: dict[str, Any]) -> None:
    """It has at most 12 steps, runs when it is pasted, and differs with the bug only."""
    assert steps_of("\n".join(row["program"])) == row["steps"] <= 12
    with pytest.raises(SharePartitionDiffersError) as caught:
        run(row["program"], BUGS[row["bug"]])
    assert caught.value.what == row["found_by"]
    run(row["program"], RecordModel)


@pytest.mark.parametrize("name", AT_ONCE)
def test_a_planted_bug_is_found(name: str) -> None:
    """A search from nothing finds it."""
    assert difference_of(machine_of(BUGS[name])) is not None


def test_nothing_is_found_in_a_correct_share_partition() -> None:
    """Without a bug nothing differs."""
    machine = machine_of(RecordModel)

    assert difference_of(machine, max_examples=20) is None
    assert machine.runs >= 20


def test_a_difference_says_what_it_means_and_what_to_look_at() -> None:
    """The message has what differs, what should be, the events so far, and what to look at."""
    machine = machine_of(DeliversWhatIsPending)()
    machine.partition_starts(settings=PartitionSettings())
    machine.happens(event=("member_acquires", "m1", 0, 1, 500))

    with pytest.raises(SharePartitionDiffersError) as caught:
        machine.happens(event=("member_acknowledges_all", "m1", "RELEASE"))

    meaning, look_at = EXPLANATIONS["next fetch offset"]
    assert str(caught.value).splitlines() == [
        "next fetch offset: expected 1, got 0",
        f"  What should be: {meaning}",
        "  So far:",
        "    member_acquires m1 0 1 500",
        "    member_acknowledges_all m1 RELEASE",
        f"  Look at: {look_at}.",
    ]


def test_everything_that_is_printed_can_be_evaluated() -> None:
    """Settings and states have a representation that makes them again."""
    settings, state = PartitionSettings(max_record_locks=2), StoredState(3, ((3, 3, 0, 1),))

    assert eval(repr((settings, state))) == (settings, state)  # noqa: S307 - that is what is tested
