"""The KIP's write policy while writes are pending, and below the SPSO."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from attrs import evolve

from sharestate import (
    KAFKA_4_3,
    KIP_932,
    ErrorCode,
    KipWritePolicy,
    Profile,
    RecordState,
    SharePartition,
    StateBatch,
)
from sharestate.partition.write_policies import ExpiredRecords
from sharestate.values.snapshot import KipWriteRow
from tests.support.scenes import Scene

FRAMES = 100
"""How deep calls may go; no command of these needs more than a third of that."""

MANY = FRAMES + 50
"""More pending writes than there are stack frames."""


@contextmanager
def few_frames() -> Iterator[None]:
    """Let Python have no more than *FRAMES* stack frames more."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


@few_frames()
def test_any_number_of_writes_may_be_pending() -> None:
    """Each says what the others do not, and once they are answered nothing is left, whatever the order."""
    scene = Scene(profile=KIP_932, max_locks=MANY).load()
    scene.acquire("m1", 0, f"[0-{MANY - 1}]", most=MANY)
    scene.is_holding = True
    for offset in reversed(range(1, MANY)):
        (write,) = scene.acknowledge("m1", f"{offset}:1")
        assert write == f"W(-1; 0-{offset - 1} st0 dc0, {offset} st2 dc1; cc {MANY - offset})".replace("0-0 ", "0 ")
    restored = SharePartition.restore(scene.partition.snapshot(), profile=KIP_932)
    assert restored.snapshot() == scene.partition.snapshot()

    for number in range(MANY - 1):
        scene.succeed(number)
    assert scene.acknowledge("m1", "0:accept") == (f"W({MANY}; ; cc {MANY})",)
    scene.succeed(MANY - 1)
    assert scene.offsets == (MANY, MANY)


@few_frames()
def test_any_number_of_expiries_may_be_pending() -> None:
    """Records whose locks expire again and again count as they were before the oldest of these writes."""
    scene = Scene(profile=KIP_932, limit=3 * MANY).load()
    scene.is_holding = True
    for count in range(1, MANY):
        assert scene.acquire("m1", 0, "[0-4]") == ((0, 4, count),)
        assert scene.wait(10_001) == (f"W(-1; 0-4 st0 dc{count}; cc 0)",)
    scene.acquire("m1", 0, "[0-9]")
    assert scene.acknowledge("m1", "9:accept") == ("W(-1; 0-8 st0 dc0, 9 st2 dc1; cc 1)",)

    scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scene.acknowledge("m1", "8:accept") == ("W(-1; 0-4 st0 dc1, 5-7 st0 dc0, 8 st2 dc1; cc 2)",)
    for number in range(1, MANY - 1):
        scene.fail(number, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scene.acknowledge("m1", "7:accept") == (f"W(-1; 0-4 st0 dc{MANY - 1}, 5-6 st0 dc0, 7 st2 dc1; cc 3)",)


def test_what_the_log_no_longer_has_is_written_as_archived() -> None:
    """A write carries what is archived now, also of records that an unanswered one carried as available."""
    scene = Scene(profile=KIP_932).load()
    scene.is_holding = True
    scene.acquire("m1", 0, "[0-9]", most=6, strict=True)
    scene.acquire("m1", 10, "[10-14]")
    assert scene.acknowledge("m1", "14:1") == ("W(-1; 0-13 st0 dc0, 14 st2 dc1; cc 1)",)
    assert scene.acquire("m2", 6, "[8-9]") == ((8, 9, 1),)

    assert scene.acknowledge("m1", "13:1") == ("W(-1; 0-5 st0 dc0, 6-7 st4 dc0, 8-12 st0 dc0, 13 st2 dc1; cc 4)",)


def test_expiries_of_a_part_and_of_more_count_record_by_record() -> None:
    """Policy A2: each record counts as before the oldest pending write that carries its expiry."""
    scene = Scene(profile=KIP_932).load()
    scene.is_holding = True
    scene.acquire("m1", 0, "[0-4]")
    assert scene.wait(10_001) == ("W(-1; 0-4 st0 dc1; cc 0)",)
    scene.acquire("m1", 0, "[0-4]", most=2, strict=True)
    assert scene.wait(10_001) == ("W(-1; 0-1 st0 dc2; cc 0)",)
    scene.acquire("m1", 0, "[0-9]")

    assert scene.acknowledge("m1", "9:1") == ("W(-1; 0-8 st0 dc0, 9 st2 dc1; cc 1)",)
    scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scene.acknowledge("m1", "8:1") == ("W(-1; 0-4 st0 dc1, 5-7 st0 dc0, 8 st2 dc1; cc 2)",)
    scene.fail(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scene.acknowledge("m1", "7:1") == ("W(-1; 0-1 st0 dc2, 2-4 st0 dc1, 5-6 st0 dc0, 7 st2 dc1; cc 3)",)


def test_an_expiry_may_reach_beyond_an_older_one() -> None:
    """Policy A2: the older one counts for its own records alone."""
    scene = Scene(profile=KIP_932).load(0, "[0-4 st0 dc1]")
    scene.is_holding = True
    scene.acquire("m1", 5, "[5-9]")
    assert scene.wait(10_001) == ("W(-1; 5-9 st0 dc1; cc 0)",)
    scene.acquire("m1", 0, "[0-9]")
    assert scene.wait(10_001) == ("W(-1; 0-9 st0 dc2; cc 0)",)
    scene.acquire("m1", 0, "[0-14]")

    assert scene.acknowledge("m1", "14:1") == ("W(-1; 5-13 st0 dc0, 14 st2 dc1; cc 1)",)
    scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert scene.acknowledge("m1", "13:1") == ("W(-1; 5-9 st0 dc1, 10-12 st0 dc0, 13 st2 dc1; cc 2)",)


@pytest.mark.parametrize(("is_answered", "write"), [(False, "W(-1; 0-4 st2 dc1; cc 10)"), (True, "W(10; ; cc 10)")])
def test_durable_records_count_as_before_an_older_expiry(is_answered: bool, write: str) -> None:  # noqa: FBT001
    """Policy A2: the SPSO is not planned to pass them while a pending write says that their locks have expired."""
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m2", 5, "[5-9]")
    scene.now_ms = 9_000
    scene.acknowledge("m1", "0-4:4")
    scene.is_holding = True
    assert scene.wait(1_001) == ("W(-1; 0-4 st0 dc0, 5-9 st0 dc1; cc 0)",)
    scene.acquire("m2", 5, "[5-9]")
    assert scene.acknowledge("m2", "5-9:1") == ("W(-1; 0-4 st0 dc0, 5-9 st2 dc2; cc 5)",)
    scene.succeed(1)
    if is_answered:
        scene.succeed(0)

    assert scene.acknowledge("m1", "0-4:1") == (write,)
    scene.succeed(2)
    assert scene.offsets == (10, 10)


@pytest.mark.parametrize("profile", [KAFKA_4_3, KIP_932], ids=lambda profile: profile.name)
@pytest.mark.parametrize("error", [RecursionError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("command", ["acknowledge", "release"])
def test_a_change_whose_write_cannot_be_formed_is_withdrawn(
    profile: Profile, error: type[BaseException], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All or nothing: nobody would ever answer the write of a record that is left waiting for it."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "3:accept")
    before = scene.partition.snapshot()

    commands = {
        "acknowledge": lambda: scene.acknowledge("m1", "0-2:accept", "5-7:release", "8:reject"),
        "release": lambda: scene.release("m1"),
    }

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(type(scene.partition._state.writer), "content", fail)  # noqa: SLF001 - nothing public fails so
        with pytest.raises(error):
            commands[command]()

    assert scene.partition.snapshot() == before
    scene.partition.check()
    assert len(scene.acknowledge("m1", "0-2:accept", "5-7:release", "8:reject")) == 1


def test_records_of_a_pending_expiry_count_as_they_were() -> None:
    """Policy A2: they are filled in as acquired, and those around them by what was confirmed meanwhile."""
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.now_ms = 5
    scene.acknowledge("m1", "0-1:renew", "3-4:renew")
    scene.is_holding = True

    assert scene.wait(9_996) == ("W(-1; 0-1 st0 dc0, 2 st0 dc1; cc 0)",)
    assert scene.release("m1") == ("W(-1; 0-1 st0 dc1, 2 st0 dc0, 3-4 st0 dc1; cc 0)",)
    scene.succeed(1)
    assert scene.acquire("m2", 0, "[0-4]") == ((0, 4, 2),)
    assert scene.acknowledge("m2", "4:accept") == ("W(-1; 4 st2 dc2; cc 1)",)
    scene.succeed(2)
    assert scene.acknowledge("m2", "0-3:accept") == ("W(5; ; cc 5)",)


def test_every_record_of_a_failed_expiry_counts_as_it_is_now() -> None:
    """The last one, too: what was looked at for that write is looked at again, to its end."""
    scene = Scene(profile=KIP_932).load()
    scene.is_holding = True
    scene.acquire("m1", 0, "[0-4]")
    assert scene.wait(10_001) == ("W(-1; 0-4 st0 dc1; cc 0)",)
    scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert scene.acquire("m1", 0, "[0-9]") == ((0, 4, 2), (5, 9, 1))
    assert scene.acknowledge("m1", "9:accept") == ("W(-1; 0-4 st0 dc1, 5-8 st0 dc0, 9 st2 dc1; cc 1)",)


def test_a_record_whose_lock_expires_in_memory_only_counts_as_it_is_now() -> None:
    """Kafka's bug B15: with the write that fails it is offered again, and the next write says how often it was."""
    profile = evolve(KAFKA_4_3, name="B15", write_policy=KipWritePolicy())
    scene = Scene(profile=profile).load()
    scene.is_holding = True
    scene.acquire("m1", 0, "[0-9]")
    assert scene.acknowledge("m1", "3:accept") == ("W(-1; 0-2 st0 dc0, 3 st2 dc1; cc 1)",)
    assert len(scene.wait(10_001)) == 9
    scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert scene.batches == ["[0-9] split: 0-9 AVAILABLE/1/-"]
    scene.acquire("m2", 10, "[10-14]")
    assert scene.acknowledge("m2", "12:accept") == ("W(-1; 0-2 st0 dc0, 3 st0 dc1, 4-11 st0 dc0, 12 st2 dc1; cc 1)",)


def test_records_that_come_between_those_of_a_pending_write_are_filled_in() -> None:
    """A fetch may find what an earlier one has passed over; a reader of the next write finds no holes (KIP-932)."""
    scene = Scene(profile=KIP_932).load()
    scene.is_holding = True
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m1", 5, "[10-14]")
    assert scene.acknowledge("m1", "14:accept") == ("W(-1; 0-4 st0 dc0, 10-13 st0 dc0, 14 st2 dc1; cc 1)",)

    assert scene.acquire("m2", 5, "[5-9]") == ((5, 9, 1),)
    assert scene.acknowledge("m1", "13:accept") == ("W(-1; 0-12 st0 dc0, 13 st2 dc1; cc 2)",)


def test_no_start_offset_is_written_below_one_that_may_be_persisted() -> None:
    """Policy A4: where the failed write was applied, a lower one would bring back what others carry of 1-4 (F3)."""
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.is_holding = True
    assert scene.acknowledge("m1", "0-4:accept") == ("W(5; ; cc 5)",)
    scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    scene.partition = SharePartition.restore(scene.partition.snapshot(), profile=KIP_932)

    assert scene.acknowledge("m1", "1-4:accept") == ("W(-1; 0 st0 dc0, 1-4 st2 dc1; cc 4)",)
    assert scene.acknowledge("m1", "0:accept") == ("W(-1; 0 st2 dc1; cc 5)",)
    scene.succeed(1)
    scene.succeed(2)
    scene.acquire("m1", 5, "[5-9]")
    assert scene.acknowledge("m1", "5:accept") == ("W(6; ; cc 1)",)


def test_a_bound_counts_from_the_last_start_offset_that_was_written() -> None:
    """Policies A4 and A5: 5 may be persisted though the write has failed, so 3 is not due; 8 is."""
    scene = Scene(profile=evolve(KIP_932, write_policy=KipWritePolicy(bound=3))).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.is_holding = True
    assert scene.acknowledge("m1", "0-4:accept") == ("W(5; ; cc 5)",)
    scene.fail(0, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert scene.acknowledge("m1", "0-2:accept", "9:accept") == ("W(-1; 0-2 st2 dc1, 3-8 st0 dc0, 9 st2 dc1; cc 4)",)
    scene.succeed(1)
    assert scene.acknowledge("m1", "3-6:accept") == ("W(-1; 3-6 st2 dc1; cc 5)",)
    scene.succeed(2)
    assert scene.acknowledge("m1", "7:accept") == ("W(8; 8 st0 dc0, 9 st2 dc1; cc 2)",)


def test_records_below_the_spso_are_not_written() -> None:
    """The SPSO says it all: what is released below it is archived at once, without a write."""
    scene = Scene(profile=KIP_932).load()
    scene.acquire("m1", 0, "[0-4]")
    scene.acquire("m2", 5, "[5-9]")
    scene.partition.advance_log_start(5)

    assert scene.release("m1") == ()
    assert scene.batches == ["[0-4] ARCHIVED/1/-", "[5-9] ACQUIRED/1/m2"]
    assert scene.partition.lock_count() == 1


@pytest.mark.parametrize(
    ("older", "younger", "both", "after_older"),
    [
        ((0, 9), (3, 4), ["0-2 dc1", "3-4 dc1", "5-9 dc1"], ["3-4 dc2"]),
        ((5, 6), (0, 9), ["0-4 dc2", "5-6 dc1", "7-9 dc2"], ["0-4 dc2", "5-6 dc2", "7-9 dc2"]),
    ],
)
def test_writes_of_expired_records_may_overlap(
    older: tuple[int, int], younger: tuple[int, int], both: list[str], after_older: list[str]
) -> None:
    """Records in both count as they were before the older write, until that is answered."""
    first = KipWriteRow(0, -1, 0, (StateBatch(*older, RecordState.ACQUIRED, 1),))
    second = KipWriteRow(1, -1, 0, (StateBatch(*younger, RecordState.ACQUIRED, 2),))
    expired = ExpiredRecords()

    expired.add(first)
    expired.add(second)
    assert runs(expired) == both
    expired.remove(first)
    assert runs(expired) == after_older
    expired.remove(second)
    assert runs(expired) == []


def runs(expired: ExpiredRecords) -> list[str]:
    """Return the runs of 0-9 with their delivery counts."""
    return [f"{first}-{last} dc{count}" for first, last, _, count in expired.between(0, 9)]
