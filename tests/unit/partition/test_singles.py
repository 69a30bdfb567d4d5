"""Many acknowledgements of one record each: what comes of them is what comes of taking them one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sharestate import (
    AcknowledgementBatch,
    ErrorCode,
    InvalidRecordStateError,
    InvalidRequestError,
    SharePartition,
    ShareStateError,
)
from sharestate.partition import acknowledge
from tests.support.scenes import Scene


def split() -> Scene:
    """Return a scene in which m1 holds 0-99, kept record by record but for nothing that anybody has said yet."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-99]")
    scene.acknowledge("m1", "99:release")
    return scene


def test_records_are_written_in_the_order_in_which_they_were_named() -> None:
    """Far apart, and in no order: one write has a state batch for each."""
    scene = split()

    assert scene.acknowledge("m1", "70:accept", "3:release", "40:reject", "5:gap") == (
        "W(0; 70 st2 dc1, 3 st0 dc1, 40 st4 dc1, 5 st4 dc1; cc 3)",
    )
    (batch,) = scene.batches
    assert batch == (
        "[0-99] split: 0-2 ACQUIRED/1/m1, 3 AVAILABLE/1/-, 4 ACQUIRED/1/m1, 5 ARCHIVED/1/-, 6-39 ACQUIRED/1/m1,"
        " 40 ARCHIVED/1/-, 41-69 ACQUIRED/1/m1, 70 ACKNOWLEDGED/1/-, 71-98 ACQUIRED/1/m1, 99 AVAILABLE/1/-"
    )


def test_a_range_behind_single_records_is_taken_whole() -> None:
    """An entry of several records ends the single ones before it, whatever types it has."""
    scene = split()

    assert scene.acknowledge("m1", "3:accept", "5-6:accept", "8:accept", "10-11:accept,reject") == (
        "W(0; 3 st2 dc1, 5 st2 dc1, 6 st2 dc1, 8 st2 dc1, 10 st2 dc1, 11 st4 dc1; cc 6)",
    )


def test_the_first_one_may_split_the_batch() -> None:
    """A whole batch is split by the first record that is acknowledged of it, and the others follow."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9]")

    assert scene.acknowledge("m1", "0:accept", "1:accept", "2:accept", "7:accept") == (
        "W(0; 0 st2 dc1, 1 st2 dc1, 2 st2 dc1, 7 st2 dc1; cc 4)",
    )
    assert scene.offsets == (3, 9)


def test_single_records_roll_back_together_when_their_write_fails() -> None:
    """Records between them that nobody has spoken of are left alone."""
    scene = split()
    before = scene.batches
    scene.is_holding = True
    scene.acknowledge("m1", "1:accept", "3:accept", "95:accept")
    scene.fail(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    assert scene.batches == before


@pytest.mark.parametrize("offsets", [(10, 50, 51), (10, 50, 90), (48, 49, 50, 51)])
def test_single_records_below_the_start_are_skipped(offsets: tuple[int, ...]) -> None:
    """The log has moved on; only what lies above counts."""
    scene = split()
    scene.partition.advance_log_start(50)
    said = ", ".join(f"{offset} st2 dc1" for offset in offsets if offset >= 50)

    assert scene.acknowledge("m1", *(f"{offset}:accept" for offset in offsets)) == (f"W(50; {said}; cc 2)",)


def test_a_renewal_among_them_is_no_change() -> None:
    """It moves the lock at once, and the rest is written."""
    scene = split()
    scene.now_ms = 100

    assert scene.acknowledge("m1", "0:accept", "1:renew", "2:accept") == ("W(0; 0 st2 dc1, 2 st2 dc1; cc 2)",)
    assert (1, 1, 10_100) in scene.deadlines


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        (["0:accept", "1:accept", "0:accept"], InvalidRecordStateError, "The offset is not acquired."),
        (["0:accept", "99:accept", "1:accept"], InvalidRecordStateError, "The offset is not acquired."),
        (["0:accept", "1:9", "2:accept"], InvalidRequestError, "Invalid acknowledge type"),
        (["0:accept", "1:accept", "100:accept"], InvalidRequestError, "past acquired records"),
    ],
)
def test_one_refused_record_refuses_them_all(said: list[str], error: type[ShareStateError], message: str) -> None:
    """Twice the same record, one that is not held, an unknown type, one that is not cached: nothing is left of it."""
    scene = split()
    before = scene.batches

    with pytest.raises(error, match=message):
        scene.acknowledge("m1", *said)
    assert scene.batches == before
    scene.partition.check()


def test_a_record_of_another_member_is_refused() -> None:
    """The one whose record it is goes on holding it."""
    scene = split()
    scene.acquire("m2", 99, "[0-99]")

    with pytest.raises(InvalidRecordStateError, match="Member is not the owner of offset"):
        scene.acknowledge("m1", "97:accept", "98:accept", "99:accept")


def test_more_types_than_records_do_no_harm() -> None:
    """The first one counts."""
    scene = split()

    assert scene.acknowledge("m1", "0:accept,release", "1:accept,release") == ("W(0; 0 st2 dc1, 1 st2 dc1; cc 2)",)


def test_records_of_several_batches_in_turns_are_not_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries are looked at together once, not for each of them."""
    scene = Scene().load()
    for first in (0, 100):
        scene.acquire("m1", first, f"[{first}-{first + 99}]")
        scene.acknowledge("m1", f"{first + 99}:release")
    singles, looked_at = acknowledge._singles, []  # noqa: SLF001 - what looks at them

    def counted(
        requests: Sequence[AcknowledgementBatch], low: int, high: int
    ) -> tuple[Sequence[int], acknowledge.Columns] | None:
        looked_at.append(len(requests))
        return singles(requests, low, high)

    monkeypatch.setattr(acknowledge, "_singles", counted)
    (write,) = scene.acknowledge("m1", *(f"{offset}:accept" for at in range(50) for offset in (at, 100 + at)))

    assert write.count("st2 dc1") == 100
    assert sum(looked_at) <= 200  # all together, and each once more as it is taken


def test_an_entry_of_a_range_among_equal_types_is_taken_whole() -> None:
    """Though it begins within the batch of the record before it."""
    assert split().acknowledge("m1", "3:accept", "5-8:accept") == (
        "W(0; 3 st2 dc1, 5 st2 dc1, 6 st2 dc1, 7 st2 dc1, 8 st2 dc1; cc 5)",
    )


def test_more_types_than_records_do_no_harm_behind_another_record() -> None:
    """The first one of each entry counts, whichever of them has more."""
    assert split().acknowledge("m1", "5:accept", "6:release,reject") == ("W(0; 5 st2 dc1, 6 st0 dc1; cc 1)",)
    assert split().acknowledge("m1", "5:accept,reject", "6:release") == ("W(0; 5 st2 dc1, 6 st0 dc1; cc 1)",)
    assert split().acknowledge("m1", "5:accept,reject", "6:release,gap", "7:accept") == (
        "W(0; 5 st2 dc1, 6 st0 dc1, 7 st2 dc1; cc 2)",
    )


@pytest.mark.parametrize("offsets", [(0, 2, 3, 6), (1, 2, 4, 5), (10, 12, 14), (10, 12, 16, 18)])
def test_records_are_those_that_were_named(offsets: tuple[int, ...]) -> None:
    """In whatever distances."""
    said = ", ".join(f"{offset} st2 dc1" for offset in offsets)

    (write,) = split().acknowledge("m1", *(f"{offset}:accept" for offset in offsets))

    assert write == f"W(0; {said}; cc {len(offsets)})"


def test_a_record_that_comes_twice_at_once_is_refused() -> None:
    """As if its second entry came later."""
    scene = split()
    before = scene.batches

    with pytest.raises(InvalidRecordStateError):
        scene.acknowledge("m1", "5:accept", "5:accept")
    assert scene.batches == before


def test_records_of_a_later_batch_are_found_in_it() -> None:
    """Those behind them, which others hold, are left alone."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acquire("m1", 50, "[50-59]")
    scene.acknowledge("m1", "55-59:release")
    scene.acquire("m2", 55, "[55-59]")

    assert scene.acknowledge("m1", "50:accept", "52:reject", "54:accept") == (
        "W(0; 50 st2 dc1, 52 st4 dc1, 54 st2 dc1; cc 3)",
    )


def test_records_of_a_later_batch_are_those_that_were_named() -> None:
    """Though the member holds all that are behind them, too."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acquire("m1", 50, "[50-69]")
    scene.acknowledge("m1", "69:release")

    assert scene.acknowledge("m1", "50:accept", "52:reject", "54:accept") == (
        "W(0; 50 st2 dc1, 52 st4 dc1, 54 st2 dc1; cc 3)",
    )
    assert scene.acknowledge("m1", "56:accept", "58:accept", "60:accept") == (
        "W(0; 56 st2 dc1, 58 st2 dc1, 60 st2 dc1; cc 6)",
    )


@pytest.mark.parametrize("offsets", [(0, 3, 6), (2, 7, 3), (7, 3, 8)])
def test_records_of_two_batches_are_those_that_were_named(offsets: tuple[int, ...]) -> None:
    """Whether they lie in equal distances or go to and fro."""
    scene = Scene().load()
    for first, last in ((0, 4), (5, 9)):
        scene.acquire("m1", first, f"[{first}-{last}]")
        scene.acknowledge("m1", f"{last}:release")
    said = ", ".join(f"{offset} st2 dc1" for offset in offsets)

    assert scene.acknowledge("m1", *(f"{offset}:accept" for offset in offsets)) == (f"W(0; {said}; cc 3)",)


def test_a_write_names_each_record_once() -> None:
    """However its entries jump to and fro, in the last of several batches."""
    scene = Scene(max_locks=1000).load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acquire("m1", 100, "[100-499]", cut=500)
    scene.acknowledge("m1", "499:release")
    scene.is_holding = True
    offsets = (140, 300, 268, 236, 204, 172, 141, 120, 480)
    scene.acknowledge("m1", "0-9:accept", *(f"{offset}:accept" for offset in offsets))

    snapshot = scene.partition.snapshot()
    (write,) = snapshot.writes
    assert write.ranges == ((0, 9), (120, 300), (480, 480))
    assert SharePartition.restore(snapshot).snapshot() == snapshot


def test_a_refusal_leaves_what_waits_for_another_write() -> None:
    """Between the records that it withdraws."""
    scene = split()
    scene.is_holding = True
    scene.acknowledge("m1", "5:accept")
    before = scene.batches

    with pytest.raises(InvalidRecordStateError):
        scene.acknowledge("m1", "4:accept", "6:accept", "98-99:accept")
    assert scene.batches == before
