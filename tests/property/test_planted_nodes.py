"""The bugs that are planted in a node are found: by members, and by what is true of sessions and target assignments."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

import pytest

from sharestate.testing.groups import GroupSettings, GuaranteeBrokenError
from tests.planted.nodes import SEEN_BY_MEMBERS, SEEN_IN_SESSIONS, SEEN_IN_TARGETS, NodeBug
from tests.planted.record import NODES, steps_of
from tests.property.test_assignor import (
    test_a_group_that_begins_has_what_it_subscribes_to_and_shares_all_of_it as shares_all,
)
from tests.property.test_assignor import test_nobody_has_more_than_the_rules_allow as has_no_more
from tests.property.test_assignor import test_only_initialized_partitions_are_given_out as gives_initialized
from tests.property.test_share_sessions import (
    test_partitions_take_turns_in_coming_first as takes_turns,
)
from tests.property.test_share_sessions import (
    test_partitions_that_had_records_wait_behind_the_others as waits_behind,
)
from tests.support.node_members import WrongAnswerError
from tests.support.node_programs import machine_of

CONTENT: Final[dict[str, Any]] = json.loads(NODES.read_text())
ROWS: Final[list[dict[str, Any]]] = CONTENT["rows"]

MOST_STEPS: Final = 12

EXAMPLE: Final = Random(0).randbytes(2_000)  # noqa: S311 - an example, which Hypothesis draws from bytes
"""An example in which there is more than one of everything."""

FOUND_BY: Final[dict[str, Any]] = {
    "first partition stays first": takes_turns,
    "partition with records keeps its place": waits_behind,
    "last partition has nobody": shares_all,
    "partition that is not initialized": gives_initialized,
    "member that has not subscribed": shares_all,
    "member without room": has_no_more,
    "member keeps too much": has_no_more,
    "partition keeps its members": has_no_more,
}
"""The property that finds each of the bugs that members do not notice."""


def run(program: list[str], bug: NodeBug | None) -> None:
    """Run a program on a node, with a bug or without."""
    names: dict[str, Any] = {"NodeMachine": machine_of(bug), "GroupSettings": GroupSettings}
    try:
        exec("\n".join(program), names)  # noqa: S102 - ours
    finally:
        names["state"].stop()  # a program that breaks off has not taken the bug away


def test_every_bug_has_a_program_or_a_property() -> None:
    """Those that are planted are those in the docs, with the same words, and those that properties find."""
    assert CONTENT["planted_bugs"] == 1
    assert {row["bug"]: row["what"] for row in ROWS} == {name: bug.what for name, bug in SEEN_BY_MEMBERS.items()}
    assert FOUND_BY.keys() == SEEN_IN_SESSIONS.keys() | SEEN_IN_TARGETS.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["bug"]))
def test_a_program_shows_its_bug(row: dict[str, Any]) -> None:
    """It has at most 12 steps, breaks what it is said to break, and nothing without the bug."""
    assert steps_of("\n".join(row["program"])) == row["steps"] <= MOST_STEPS
    with pytest.raises((GuaranteeBrokenError, WrongAnswerError)) as caught:
        run(row["program"], SEEN_BY_MEMBERS[row["bug"]])
    assert vars(caught.value)["guarantee"] == row["found_by"]
    run(row["program"], None)


@pytest.mark.parametrize("bug", FOUND_BY)
def test_a_property_does_not_hold_with_its_bug(bug: str) -> None:
    """Where members notice nothing, what is true of every session and every target assignment is not true."""
    with (SEEN_IN_SESSIONS | SEEN_IN_TARGETS)[bug].planted(), pytest.raises(AssertionError):
        FOUND_BY[bug].hypothesis.fuzz_one_input(EXAMPLE)  # one example, which is not made small
