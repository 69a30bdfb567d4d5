"""What a share partition tells of its records adds up to what they are, and telling it changes nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharestate import (
    KAFKA_4_4,
    PROFILES,
    Cause,
    Effects,
    Profile,
    RecordState,
    RequestRefusedError,
    SharePartition,
    ShareStateError,
    Transition,
)
from sharestate.testing.generator.mix import STEPS, WILD, Mix, mix_for
from sharestate.testing.generator.operations import seeded
from sharestate.testing.generator.surroundings import Steps
from sharestate.testing.protocol.exchange import exchanges
from sharestate.testing.protocol.in_process import InProcessServer
from sharestate.testing.protocol.strategies import sequences
from tests.support.transition_fold import RecordFold, records_of

LATE: Final = Mix(trouble=70, steps={**STEPS, "log": 20, "complete": 8}, longest_batch=40)
"""A slow persister, so that much happens while writes are in flight."""

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState
GONE: Final = None
"""The state of a record that is not cached."""


class Meaning(NamedTuple):
    """What a cause says of a record."""

    before: set[RecordState | None]
    """What the record may have been."""

    after: set[RecordState | None]
    """What it may be then."""

    is_carried: bool | None = False
    """Whether a write in flight carries it; None if either may be."""


MEANINGS: Final = {
    Cause.READ: Meaning({GONE}, {AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED}),
    Cause.CACHED: Meaning({GONE}, {AVAILABLE}),
    Cause.ACQUIRED: Meaning({GONE, AVAILABLE}, {ACQUIRED}),
    Cause.ACCEPTED: Meaning({ACQUIRED}, {ACKNOWLEDGED}, is_carried=True),
    Cause.RELEASED: Meaning({ACQUIRED}, {AVAILABLE}, is_carried=True),
    Cause.REJECTED: Meaning({ACQUIRED}, {ARCHIVING, ARCHIVED}, is_carried=True),
    Cause.GAP: Meaning({ACQUIRED}, {ARCHIVED}, is_carried=True),
    Cause.RENEWED: Meaning({ACQUIRED}, {ACQUIRED}),
    Cause.LOCK_EXPIRED: Meaning(
        {ACQUIRED, AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED},
        {AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED},
        is_carried=None,
    ),
    Cause.SESSION_CLOSED: Meaning({ACQUIRED}, {AVAILABLE}, is_carried=True),
    Cause.ARCHIVED_AT_LIMIT: Meaning({ACQUIRED}, {ARCHIVING, ARCHIVED}, is_carried=None),
    Cause.ABORTED: Meaning({ACQUIRED}, {ARCHIVED}),
    Cause.COMPACTED_AWAY: Meaning({AVAILABLE}, {ARCHIVED}, is_carried=None),
    Cause.BELOW_LOG_START: Meaning({AVAILABLE, ACQUIRED}, {ARCHIVED}, is_carried=None),
    Cause.CONFIRMED: Meaning(
        {AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED}, {AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED}
    ),
    Cause.ROLLED_BACK: Meaning({AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED}, {ACQUIRED, AVAILABLE, ARCHIVED}),
    Cause.DEAD_LETTERED: Meaning({ARCHIVING}, {ARCHIVED}),
    Cause.THROTTLED: Meaning({AVAILABLE}, {AVAILABLE}),
    Cause.PASSED: Meaning({ACKNOWLEDGED, ARCHIVED}, {ACKNOWLEDGED, ARCHIVED}),
}
"""Every cause, from what the rules say of the commands (rules 7 to 14, and 21)."""

STILL: Final = {Cause.RENEWED, Cause.LOCK_EXPIRED, Cause.THROTTLED}
"""Causes after which a record may look as it did."""


class Told:
    """
    A share partition that tells what happens, next to one that is asked the same and tells nothing.

    After every command what was told so far is held against the records.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - what a share partition is made of
        """Make both."""
        self.telling = SharePartition(*args, record_transitions=True, **kwargs)
        self.silent = SharePartition(*args, **kwargs)
        self.fold = RecordFold()
        self._now_ms = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute
        """Return an attribute; a command is watched, and of both the invariants are those of the one that tells."""
        value = getattr(self.telling, name)
        return self._watched(name) if callable(value) and name != "check" else value

    def _watched(self, name: str) -> Callable[..., Any]:
        def command(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - what a command takes and returns
            outcome = ended(getattr(self.telling, name), args, kwargs)
            expected = ended(getattr(self.silent, name), args, kwargs)
            if isinstance(outcome, (Effects, ShareStateError)):
                snapshot = self.telling.snapshot()
                assert snapshot == self.silent.snapshot()
                self._now_ms = snapshot.now_ms
                self._judge(name, args, outcome, expected)
            else:
                assert (type(outcome), outcome) == (type(expected), expected)
            if isinstance(outcome, ShareStateError):
                raise outcome
            return outcome

        return command

    def _judge(self, name: str, args: tuple[Any, ...], outcome: Effects | ShareStateError, expected: object) -> None:
        if isinstance(outcome, ShareStateError):
            assert (type(outcome), str(outcome)) == (type(expected), str(expected))
            transitions = outcome.transitions if isinstance(outcome, RequestRefusedError) else ()
            assert {transition.cause for transition in transitions} <= {Cause.RENEWED}
            self._follow(transitions, set())
        else:
            assert repr(outcome._replace(transitions=())) == repr(expected)
            settled = set(args[:1]) if name.startswith("write_") else set()
            self._follow(outcome.transitions, settled | {write.number for write in outcome.writes})
        assert self.fold.records == records_of(self.telling)

    def _follow(self, transitions: Sequence[Transition], writes: set[int]) -> None:
        for transition in transitions:
            assert transition.first_offset <= transition.last_offset
            assert transition.at_ms == self._now_ms
            self._check_meaning(transition)
            if transition.write is not None and transition.cause is not Cause.LOCK_EXPIRED:
                assert transition.write in writes, transition
            self.fold.apply([transition])

    def _check_meaning(self, transition: Transition) -> None:
        meaning = MEANINGS[transition.cause]
        assert transition.state in meaning.after, transition
        assert meaning.is_carried in {None, transition.has_pending_write}, transition
        for offset in range(transition.first_offset, transition.last_offset + 1):
            record = self.fold.records.get(offset)
            assert (record[0] if record else GONE) in meaning.before, (offset, record, transition)
            if transition.cause not in {*STILL, Cause.PASSED}:
                assert record != transition[3:8], (offset, transition)


def ended(command: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
    """Return what *command* returns, or the error with which it is refused."""
    try:
        return command(*args, **kwargs)
    except ShareStateError as refused:
        return refused


def converse(sequence: Steps[None], profile: Profile) -> None:
    """Have *sequence* answered by share partitions that are watched."""
    with patch("sharestate.conversation.served_partition.SharePartition", Told):
        for _ in exchanges(sequence, InProcessServer(profile)):
            pass


every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)


@every_profile
@pytest.mark.parametrize("mix", [WILD, LATE], ids=["wild", "late"])
@given(data=st.data())
def test_the_recorded_transitions_add_up_to_the_records(profile: Profile, mix: Mix, data: st.DataObject) -> None:
    """
    From nothing, the transitions of all commands add up to the records after each of them, refused ones included.

    Each fits what the record was and names the time and a write of the command; what was refused tells only its
    renewals; and a share partition that tells nothing does the same.
    """
    converse(data.draw(sequences(mix=mix_for(profile, mix))), profile)


def test_every_cause_has_a_meaning() -> None:
    """The table above knows all causes."""
    assert MEANINGS.keys() == set(Cause)


def test_every_cause_is_told_sometimes() -> None:
    """Over a fixed corpus every cause is told: the test above has something to judge."""
    told: set[Cause] = set()

    def apply(fold: RecordFold, transitions: list[Transition]) -> None:
        told.update(transition.cause for transition in transitions)
        original(fold, transitions)

    original = RecordFold.apply
    with patch.object(RecordFold, "apply", apply):
        for seed in range(60):
            converse(seeded(seed, mix_for(KAFKA_4_4, LATE)), KAFKA_4_4)

    assert told == set(Cause)
