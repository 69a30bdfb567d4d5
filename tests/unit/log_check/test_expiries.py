"""Locks that expire in a broker's log: no line says so but the write that follows."""

from __future__ import annotations

import pytest

from sharestate.history import Header, Order
from sharestate.log_check import PartitionCheck, Verdict
from sharestate.log_check.verify import check_partition
from tests.support.hand_made_events import HandMadeLife


def checked(written_ms: float) -> PartitionCheck:
    """Return the check of a lock that m1 has got at 20 to 22 ms, for a second, and whose expiry was written later."""
    life = HandMadeLife()
    life.reads(10, 100, 0)
    life.appends(12, 0, 3)
    life.fetches(20, 2, "m1", 1, (0, 3, 1))
    life.writes(written_ms, 101, (0, 0), (0, 3, 0, 1))
    life.fetches(3000, 2, "m1", 2, (0, 3, 2))
    return check_partition(
        life.events[0].key, [*enumerate(life.events, 2)], "history.jsonl", Header(order=Order.ARRIVAL)
    )


@pytest.mark.parametrize(("written_ms", "expired_ms"), [(1000, 1021), (1021, 1021), (1022, 1022), (1500, 1500)])
def test_a_lock_expires_before_its_write_is_logged(written_ms: int, expired_ms: int) -> None:
    """But not before it is due: then the line is early, or the lock was got earlier than computed, by 25 ms at most."""
    found = checked(written_ms)

    assert (found.report.verdict, found.report.moves, found.report.explained.expiries) == (Verdict.EXPLAINED, 0, 1)
    assert [event.effect_us for event in found.events() if event.kind == "expire"] == [expired_ms * 1000]


def test_a_lock_does_not_expire_long_before_it_is_due() -> None:
    """A write of it that comes 100 ms too early does not fit."""
    assert checked(921).report.verdict is Verdict.CONTRADICTION
