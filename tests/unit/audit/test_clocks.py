"""Differences of clocks: what bounds them, and what that proves."""

import pytest

from sharestate.audit import AuditSettings, Guarantee, View
from sharestate.audit.clocks import ClockOrders, unbounded
from sharestate.audit.judgment import clock_orders
from sharestate.audit.operation_log import NEVER_US
from tests.support.hand_made_operations import RELEASE, SETTINGS, Written

OWN = {"p": {"clock": "p"}, "m1": {"clock": "h1"}, "m2": {"clock": "h2"}}


def test_orders_bound_clocks_by_shortest_paths() -> None:
    """What ended at 5 on b ended after what began at 20 on a: b is behind by 15 at the least; so is c by way of b."""
    orders = ClockOrders(["a", "b", "c"])
    orders.ends_after(1, 5, 0, 20)
    orders.ends_after(1, 9, 0, 20)
    orders.ends_after(2, 30, 1, 40)
    orders.ends_after(0, 100, 2, 60)
    orders.ends_after(0, 0, 0, 9)  # the same clock: nothing
    orders.ends_after(0, NEVER_US, 1, 0)  # it never ended: nothing

    bounds = orders.bounds()

    assert bounds is not None
    assert -bounds.most_us[1][0] == 15
    assert -bounds.most_us[2][0] == 25
    assert bounds.most_us[0][2] == 40
    assert bounds.shift_us(2) == 32
    assert [*bounds.lines()] == [
        "clock b is behind clock a by 0.0 to 0.0 ms",
        "clock c is behind clock a by 0.0 to 0.0 ms",
    ]


def test_orders_that_contradict_the_others_are_left_out() -> None:
    """One wrong pair does not make the clocks useless."""
    orders = ClockOrders(["a", "b"])
    for number in range(10):
        orders.ends_after(0, 1000 + number, 1, 0)
        orders.ends_after(1, 1000 + number, 0, 0)
    orders.ends_after(0, 0, 1, 2000)

    bounds = orders.bounds()

    assert bounds is not None
    assert (bounds.left_out, bounds.most_us[0][1]) == (1, 1000)
    assert [*bounds.lines()][-1] == "the tightest orders of two clocks contradict others: 1 of each was left out"


def test_nothing_is_known_of_clocks_that_contradict_each_other_always() -> None:
    """More than are kept: there are no bounds."""
    orders = ClockOrders(["a", "b"])
    for number in range(70):
        orders.ends_after(0, 0, 1, 2000 + number)
        orders.ends_after(1, 0, 0, 2000 + number)

    assert orders.bounds() is None


def test_what_the_user_says_bounds_clocks() -> None:
    """Both ways, and without any order."""
    bounds = unbounded(["a", "b"], 50_000)

    assert bounds.most_us == ((0, 50_000), (50_000, 0))
    assert [*bounds.lines()] == ["clock b is behind clock a by -50.0 to 50.0 ms"]
    assert [*unbounded(["a", "b"]).lines()] == ["nothing says how clock b differs from clock a"]


def one_way() -> Written:
    """Return two members of whom the second gets at 5 what the first has got at 10, each on its own clock."""
    return Written(**OWN).produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)).fetch("m2", 5, (0, 0, 2))


def test_clocks_that_nothing_bounds_prove_nothing() -> None:
    """The second may have got the record half an hour later."""
    assert one_way().broken() == []
    assert one_way().audited().clocks == (
        "clock h1 is behind clock p by at least -11.0 ms",
        "clock h2 is behind clock p by at least -6.0 ms",
    )


def test_what_needs_clocks_cannot_be_told_without_bounds() -> None:
    """Whether a transaction was committed before, or how many records were acquired at once."""
    written = Written(**OWN).produce(0, 0, 0, tx="x").end(5, "x").fetch("m1", 10, (0, 0, 1)).fetch("m2", 5, (0, 0, 2))
    vouched = AuditSettings(
        record_lock_duration_ms=30_000, max_record_locks=9, isolation_level="read_committed", max_skew_ms=1
    )

    unknown = written.audited()
    known = written.audited(vouched)

    for guarantee in (Guarantee.ONLY_COMMITTED, Guarantee.RECORD_LOCKS):
        assert unknown.verdict(guarantee).unknown == {"nothing bounds the difference of clocks": 1}
        assert known.verdict(guarantee).unknown == {}


def test_clocks_that_somebody_vouches_for_prove_it() -> None:
    """If no two differ by more than a second, the lock of the first has not expired."""
    settings = AuditSettings(record_lock_duration_ms=30_000, delivery_count_limit=5, max_skew_ms=1000)

    assert one_way().broken(settings) == ["one_owner 0-0"]


def test_records_that_go_to_and_fro_prove_it() -> None:
    """What others were released and delivered again bounds both clocks, so a second owner is found."""
    written = one_way().produce(20, 1, 2)
    written.fetch("m1", 30, (1, 1, 1)).acknowledge("m1", 40, 1, 1, RELEASE).fetch("m2", 45, (1, 1, 2))
    written.fetch("m2", 50, (2, 2, 1)).acknowledge("m2", 55, 2, 2, RELEASE).fetch("m1", 60, (2, 2, 2))

    assert written.broken() == ["one_owner 0-0"]


def test_counts_order_nothing_after_a_fault() -> None:
    """A new leader may count again from what was stored, so the second delivery may be the earlier one."""
    written = one_way().fault(1, 2).produce(20, 1, 1)
    written.fetch("m1", 30, (1, 1, 2)).fetch("m2", 30, (1, 1, 1))

    assert all("at least" in line or "nothing" in line for line in written.audited().clocks)


def test_contradictions_without_end_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then clocks order nothing, and a note says so."""
    monkeypatch.setattr(ClockOrders, "bounds", lambda *_: None)

    audited = one_way().audited()

    assert audited.notes == ("what happened contradicts itself whatever the clocks show: they order nothing",)
    assert audited.verdict(Guarantee.ONE_OWNER).verdict == "held"
    assert one_way().audited(SETTINGS).findings is not None


@pytest.mark.parametrize(("view", "is_bound"), [(View.WIRE, True), (View.POLLED, True), (View.APPLICATION, False)])
def test_counts_order_only_what_has_a_time(view: View, is_bound: bool) -> None:  # noqa: FBT001 - a parameter
    """What an application was given at 10 may have been acquired long before, and so by somebody else at 5."""
    own = {name: {**header, "view": view} for name, header in OWN.items()}
    log = Written(**own).produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)).fetch("m2", 5, (0, 0, 2)).log()

    bounds = clock_orders(log, SETTINGS, log.keys()).bounds()

    assert bounds is not None
    assert (bounds.most_us[2][1] == -4_000) is is_bound
    assert bounds.most_us[1][2] > NEVER_US // 2
