"""What the state topic alone proves: each of its rules has a planted case, and one that nearly is."""

from __future__ import annotations

from typing import Final

import pytest
from attrs import evolve

from sharestate.coordinator import StoredState
from sharestate.diagnose import Diagnosis, diagnose_stored
from sharestate.diagnose.stored_rules import STORED_RULES
from sharestate.state_topic import RebuiltPartition
from sharestate.values.records import RecordState, SharePartitionKey
from sharestate.values.requests import StateBatch

KEY: Final = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
AVAILABLE, DONE, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


def stored(
    *batches: tuple[int, int, int, int], start: int = 0, complete: int | None = None, changes: int = 0
) -> RebuiltPartition:
    """Return a share partition as the topic has it, with the right complete count unless another one is given."""
    terminal = sum(last - first + 1 for first, last, state, _ in batches if state != AVAILABLE)
    state = StoredState(
        state_epoch=0,
        highest_state_epoch=0,
        start_offset=start,
        delivery_complete_count=terminal if complete is None else complete,
        state_batches=tuple(StateBatch(*each) for each in batches),
    )
    return RebuiltPartition(KEY, state, 0, 1_000, changes)


def judged(rebuilt: RebuiltPartition, end: int | None = 10_000) -> Diagnosis:
    """Return the diagnosis of a share partition whose log ends there."""
    ends = None if end is None else {KEY: end}
    return diagnose_stored([rebuilt], records=1, log_ends=ends, last_ms=61_000)


CASES: Final = {
    "stored-window-full": (stored((0, 1999, DONE, 1)), stored((0, 1998, DONE, 1))),
    "stored-unknown-state": (stored((0, 9, 5, 1), complete=0), stored((0, 9, AVAILABLE, 1))),
    "stored-stuck": (stored((1, 9, DONE, 1), changes=10), stored((1, 9, DONE, 1), changes=9)),
    "stored-wrong-lag": (stored(complete=-2), stored((1, 9, DONE, 1))),
    "stored-given-up": (stored((0, 0, AVAILABLE, 1), (1, 2, ARCHIVED, 5)), stored((1, 2, ARCHIVED, 4))),
    "stored-near-limit": (stored((0, 3, AVAILABLE, 4)), stored((0, 3, AVAILABLE, 3))),
    "lag-unknown": (stored(start=-1), stored(start=0)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_planted_situation_is_named(name: str) -> None:
    """What was planted is found, and nothing else."""
    assert [each.rule.name for each in judged(CASES[name][0]).findings] == [name]


@pytest.mark.parametrize("name", CASES)
def test_what_nearly_is_one_is_not_named(name: str) -> None:
    """A state on the other side of the bound is healthy."""
    assert judged(CASES[name][1]).findings == ()


def test_each_rule_has_its_cases() -> None:
    """No rule is without a planted case."""
    assert set(CASES) == {rule.name for rule in STORED_RULES}


def test_a_lag_below_zero_is_wrong() -> None:
    """More records are counted as done than the log has (KIP-1226)."""
    (finding,) = judged(stored((0, 99, DONE, 1), complete=150), end=120).findings

    assert (finding.rule.name, finding.evidence) == (
        "stored-wrong-lag",
        "The stored delivery complete count is 150: with it the lag is -30, below zero.",
    )


def test_where_the_log_ends_is_not_made_up() -> None:
    """Without a cluster, whether the lag is right is not checked."""
    (left,) = judged(stored(), end=None).not_checked

    assert left.rule is not None
    assert (left.rule.name, left.reason) == ("stored-wrong-lag", "where the log ends is not known; --bootstrap asks")


def test_how_long_the_spso_stands_is_said() -> None:
    """Up to the last record of the topic."""
    (finding,) = judged(stored((1, 9, DONE, 1), changes=10)).findings

    assert "for 1 min, through 10 changes of the state; 9 records behind it are done" in finding.evidence


def test_an_spso_that_may_have_stood_before_has_stood_so_long_or_longer() -> None:
    """The record in which it got there is no longer in the topic."""
    (finding,) = judged(stored((1, 9, DONE, 1), changes=10)._replace(is_since_before=True)).findings

    assert "for 1 min or longer, through 10 changes" in finding.evidence


def test_a_count_below_what_is_stored_is_wrong() -> None:
    """Without a log end, too: nine records are done, and one is counted (B23)."""
    (finding,) = judged(stored((1, 9, DONE, 1), complete=1), end=None).findings

    assert finding.evidence == "The stored delivery complete count is 1: 9 records are stored as done (F2, B23)."


def test_a_log_that_was_cut_off_proves_nothing_of_the_count() -> None:
    """Where the log ends below the SPSO, the lag is below zero whatever the count is."""
    assert judged(stored((101, 109, DONE, 1), start=100), end=50).findings == ()


def test_the_limits_of_each_group_are_its_own() -> None:
    """And what is assumed is said, with whose it is."""
    other = stored((0, 3, AVAILABLE, 2))._replace(key=evolve(KEY, group_id="other"))
    told = diagnose_stored([stored((0, 3, AVAILABLE, 2)), other], records=2, configs={"g": {"delivery_count_limit": 3}})

    assert [each.place.group_id for each in told.findings] == ["g"]
    assert told.notes[:2] == (
        "Assumed, as it is not known: share.delivery.count.limit is 5, of group other.",
        "Assumed, as it is not known: share.partition.max.record.locks is 2,000, of group g, group other.",
    )
