"""What a command asks for."""

import pytest

from sharestate import AcquiredRecords, Effects, ErrorCode, persister_error


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
