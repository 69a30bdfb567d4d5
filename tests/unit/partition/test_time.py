"""The caller's clock: it never goes backwards, and nothing happens without a command."""

from collections.abc import Callable
from enum import IntEnum

import pytest

from sharestate import AcknowledgementBatch, MalformedInputError, SharePartition, Snapshot, TimeReversedError
from tests.support.scenes import Scene, fetched

TIMED: dict[str, Callable[[SharePartition, int], object]] = {
    "acquire": lambda partition, now_ms: partition.acquire("m1", fetched(5, "[5-9]"), now_ms=now_ms),
    "acknowledge": lambda partition, now_ms: partition.acknowledge(
        "m1", [AcknowledgementBatch(0, 4, (1,))], now_ms=now_ms
    ),
    "release": lambda partition, now_ms: partition.release("m1", now_ms=now_ms),
    "expire_next": lambda partition, now_ms: partition.expire_next(now_ms=now_ms),
}

each_command = pytest.mark.parametrize("command", TIMED.values(), ids=list(TIMED))


class Instant(IntEnum):
    """A time with a name."""

    LATER = 600


def at_500() -> Scene:
    """Return a scene in which m1 acquired 0-4 at the time 500."""
    scene = Scene().load()
    scene.now_ms = 500
    scene.acquire("m1", 0, "[0-4]")
    return scene


@each_command
def test_time_does_not_go_backwards(command: Callable[[SharePartition, int], object]) -> None:
    """A command that comes from the past is refused, and nothing changes."""
    scene = at_500()

    with pytest.raises(TimeReversedError, match="now_ms: the time goes backwards: 499 after 500") as reversed_:
        command(scene.partition, 499)

    assert isinstance(reversed_.value, MalformedInputError)
    assert reversed_.value.field == "now_ms"
    assert scene.batches == ["[0-4] ACQUIRED/1/m1"]
    assert scene.deadlines == [(0, 4, 10_500)]


@each_command
def test_a_time_may_be_of_a_subclass_of_int(command: Callable[[SharePartition, int], object]) -> None:
    """As members of an `IntEnum` are; it is the time that later ones are compared with."""
    scene = at_500()
    command(scene.partition, Instant.LATER)

    with pytest.raises(TimeReversedError, match="599 after 600"):
        command(scene.partition, 599)


@each_command
def test_time_may_stand_still(command: Callable[[SharePartition, int], object]) -> None:
    """Any number of commands may come at one instant."""
    partition = at_500().partition
    command(partition, 500)

    assert partition.snapshot().now_ms == 500


@each_command
def test_every_timed_command_moves_the_clock(command: Callable[[SharePartition, int], object]) -> None:
    """The time of one command is the past of the next, whichever it is."""
    scene = at_500()
    command(scene.partition, 900)

    with pytest.raises(TimeReversedError, match="899 after 900"):
        scene.partition.expire_next(now_ms=899)


def test_time_begins_at_zero() -> None:
    """A caller's clock begins at 0 or later."""
    with pytest.raises(MalformedInputError, match=r"expected an integer within 0\.\.\d+, got -1") as refused:
        Scene().load().partition.expire_next(now_ms=-1)
    assert refused.value.field == "now_ms"


@pytest.mark.parametrize("lock_ms", [2**63 - 1, 2**63 - 501, 2**63 - 500])
def test_a_lock_may_outlast_time(lock_ms: int) -> None:
    """A lock that would hold beyond the last instant never expires, and the share partition can be written down."""
    scene = Scene(lock_ms=lock_ms).load()
    scene.now_ms = 500
    scene.acquire("m1", 0, "[0-4]")
    line = scene.partition.snapshot().to_json()

    assert scene.deadlines == [(0, 4, 2**63 - 1)]
    assert scene.partition.next_deadline_ms() is None
    assert SharePartition.restore(Snapshot.from_json(line)).snapshot() == scene.partition.snapshot()
    assert scene.partition.expire_next(now_ms=2**63 - 1) is None


def test_the_last_instant_is_one() -> None:
    """A lock that holds until the last instant but one expires at the last one."""
    scene = Scene(lock_ms=2**63 - 502).load()
    scene.now_ms = 500
    scene.acquire("m1", 0, "[0-4]")

    assert scene.partition.next_deadline_ms() == 2**63 - 1
    assert scene.wait(2**63 - 501) == ("W(0; 0-4 st0 dc1; cc 0)",)


def test_locks_do_not_expire_by_themselves() -> None:
    """Until ``expire_next`` is called a member holds its records, however late it is."""
    scene = at_500()
    scene.now_ms = 1_000_000

    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 5)",)


def test_outcomes_and_the_log_need_no_clock() -> None:
    """Commands without a time use none: a write may be answered, and the log may move, at any time."""
    scene = at_500()
    scene.is_holding = True
    scene.acknowledge("m1", "0-4:release")
    scene.succeed(0)
    scene.partition.advance_log_start(3)
    scene.partition.fence()

    assert scene.partition.expire_next(now_ms=500) is None
