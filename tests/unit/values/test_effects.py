"""What a command asks for."""

import copy
import pickle

import pytest

from sharestate import AcquiredRecords, Effects, ErrorCode, RecordState, Transition, persister_error
from sharestate.values.effects import Cause, TransitionFields, TransitionRuns, Transitions

ACCEPTED: TransitionFields = (Cause.ACCEPTED, RecordState.ACKNOWLEDGED, 1, "", None, True, 5, 3)
REJECTED: TransitionFields = (Cause.REJECTED, RecordState.ARCHIVED, 1, "", None, True, 5, 3)


def test_a_command_may_ask_for_nothing() -> None:
    """Without more nothing was acquired, nothing is to be written, nobody is woken, nothing has failed."""
    effects = Effects()

    assert (effects.acquired, effects.writes, effects.wake, effects.error) == ((), (), False, None)
    assert effects.acquired_count == 0


def test_the_records_are_counted_over_all_ranges() -> None:
    """Both ends of a range count."""
    effects = Effects(acquired=(AcquiredRecords(0, 4, 1), AcquiredRecords(7, 7, 2), AcquiredRecords(10, 19, 1)))

    assert effects.acquired_count == 16


def test_effects_can_be_compared() -> None:
    """Effects that ask for the same are equal, with errors too."""
    failed = Effects(error=persister_error(ErrorCode.NOT_COORDINATOR, "moved"))

    assert failed == Effects(error=persister_error(ErrorCode.NOT_COORDINATOR, "moved"))
    assert failed != Effects(error=persister_error(ErrorCode.NOT_COORDINATOR, "gone"))
    assert len({failed, Effects(), Effects(error=persister_error(ErrorCode.NOT_COORDINATOR, "moved"))}) == 2


def test_effects_are_frozen() -> None:
    """What a command has asked for does not change."""
    with pytest.raises(AttributeError):
        Effects().wake = True  # type: ignore[misc]


def transitions() -> Transitions:
    """Return those of 0-4, one transition, and of 5-9: accepted, nothing, rejected, rejected, accepted."""
    keys = {"a": ACCEPTED, "r": REJECTED, "same": REJECTED}
    return Transitions([(Transition(0, 4, *ACCEPTED),), TransitionRuns(5, ["a", "-", "r", "same", "a"], keys)])


MADE = (
    Transition(0, 4, *ACCEPTED),
    Transition(5, 5, *ACCEPTED),
    Transition(7, 8, *REJECTED),
    Transition(9, 9, *ACCEPTED),
)


def test_transitions_are_what_their_tuple_is() -> None:
    """Transitions that are made when one is looked at equal, hash, print, pickle and copy as the tuple of them."""
    assert transitions() == MADE
    assert transitions() == transitions()
    assert (hash(transitions()), repr(transitions())) == (hash(MADE), repr(MADE))
    copied = pickle.loads(pickle.dumps(transitions()))  # noqa: S301 - of this test
    assert copied == copy.copy(transitions()) == MADE
    assert Effects(transitions=transitions()) == Effects(transitions=MADE)


def test_transitions_are_looked_at_as_a_tuple_is() -> None:
    """They have a length, items, parts and an order, however often they are asked."""
    made = transitions()

    assert bool(made)
    assert (len(made), made[-1], made[1:3], [*made], [*made]) == (4, MADE[-1], MADE[1:3], [*MADE], [*MADE])
