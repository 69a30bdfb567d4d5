"""What is raised while states are looked at, or does not end, is a counterexample of its own, by a shortest way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from sharestate import KAFKA_4_4
from sharestate.partition import capacity, commit, expire, share_partition, snapshots
from sharestate.partition.state import PendingWrite
from sharestate.testing.explore import Counterexample, explore, steps
from tests.support.explorations import answered, configuration

if TYPE_CHECKING:
    from collections.abc import Callable

    from sharestate.partition.state import PartitionState
    from sharestate.values.effects import Effects
    from sharestate.values.snapshot import Snapshot

SMALL: Final = configuration((0, 0), (1, 1), failures=1, delivery_count_limit=1, max_record_locks=1)

write_failed = commit.write_failed
take_snapshot = snapshots.take_snapshot


def found() -> Counterexample:
    """Return what an exploration finds."""
    counterexample = explore(SMALL, KAFKA_4_4.healed).counterexample
    assert counterexample is not None
    return counterexample


def once_expired(then: Callable[[], None]) -> Callable[[PartitionState, int], Effects]:
    """Return what does something when a write fails whose records' lock has expired."""

    def planted(state: PartitionState, number: int) -> Effects:
        pending = state.writes[number]
        if isinstance(pending, PendingWrite) and any(
            batch.at(first).lock_expired for batch, first, _ in pending.ranges
        ):
            then()
        return write_failed(state, number)

    return planted


def test_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception is named with its type and text, and the last request of the shortest conversation raises it."""

    def then() -> None:
        message = "no such lock"
        raise KeyError(message)

    monkeypatch.setattr(commit, "write_failed", once_expired(then))
    counterexample = found()
    assert (counterexample.name, counterexample.text) == ("nothing is raised", "KeyError: 'no such lock'")
    assert [step.event.kind.value for step in counterexample.steps[1:]] == ["fetch", "acknowledge", "deadline", "fail"]
    assert str(counterexample).splitlines()[-1].endswith("raises KeyError: 'no such lock'")
    answered(counterexample.conversation[:-1], KAFKA_4_4.healed)
    with pytest.raises(KeyError, match="no such lock"):
        answered(counterexample.conversation, KAFKA_4_4.healed)


def test_endless_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that does not end is named by the conversation whose last request it does not answer."""

    def then() -> None:
        while True:
            pass

    monkeypatch.setattr(commit, "write_failed", once_expired(then))
    monkeypatch.setattr(steps, "STEP_LIMIT_S", 0.5)
    counterexample = found()
    assert counterexample.name == "nothing is raised"
    assert counterexample.text.startswith("StepLimitError: ")
    assert (len(counterexample.steps), counterexample.conversation[-1]["op"]) == (5, "complete")


def test_exception_before_a_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the leader raises when it is asked whether it can acquire is what a fetch raises."""
    can_acquire = capacity.can_acquire

    def planted(state: PartitionState) -> bool:
        if state.start_offset:
            raise ZeroDivisionError
        return can_acquire(state)

    monkeypatch.setattr(capacity, "can_acquire", planted)
    counterexample = found()
    assert counterexample.text == "ZeroDivisionError: "
    assert counterexample.conversation[-1] == {"op": "can_acquire"}


@pytest.mark.parametrize(
    ("field", "value", "name", "text"),
    [
        ("end_offset", -5, "consistent", "the SPSO 0 is above the SPEO -5"),
        ("lifecycle", "GONE", "nothing is raised", "SnapshotError: "),
    ],
)
def test_state_that_cannot_be_taken(
    monkeypatch: pytest.MonkeyPatch, field: str, value: object, name: str, text: str
) -> None:
    """A state that the leader does not take back is named, by the way to it, with the invariant that it breaks."""

    def planted(state: PartitionState) -> Snapshot:
        snapshot = take_snapshot(state)
        if snapshot.batches:
            object.__setattr__(snapshot, field, value)
        return snapshot

    monkeypatch.setattr(share_partition, "take_snapshot", planted)
    counterexample = found()
    assert (counterexample.name, len(counterexample.steps)) == (name, 2)
    assert counterexample.text.startswith(text)


def test_forgotten_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that forgets a write that waits for an answer is named, by the way to it."""
    expire_next = expire.expire_next

    def planted(state: PartitionState) -> Effects | None:
        effects = expire_next(state)
        state.writes.clear()
        return effects

    monkeypatch.setattr(expire, "expire_next", planted)
    counterexample = found()
    assert counterexample.text == "InvariantError: the leader waits for the writes [], and [0] are sent"
