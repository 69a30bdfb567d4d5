"""Events that overlap are judged: what comes of them has to be right in some order."""

from __future__ import annotations

import contextlib
from functools import partial

import pytest

from sharestate.testing.groups import Delivery, GroupSettings, Guarantee, GuaranteeBrokenError
from sharestate.testing.groups.model import ClientModel
from sharestate.testing.groups.programs import Offsets
from sharestate.testing.programs import Event
from tests.planted.overlapping import SlowShareGroup
from tests.support.mock_machine import SlowMachine, broken_by, machine_of

SETTINGS = GroupSettings(delivery_count_limit=3, lock_duration_ms=1_000)


def model_of_one_record() -> ClientModel:
    """Return what clients know when m1 has acquired the only record."""
    model = ClientModel(SETTINGS)
    model.produced([0])
    model.delivered("m1", [Delivery(0, 0, 1)], 10)
    return model


def test_nothing_is_found_where_methods_look_again() -> None:
    """Whatever overlaps, a share group that looks again after it has awaited something keeps every guarantee."""
    assert broken_by(machine_of(SlowShareGroup), max_examples=100) is None


def test_any_order_will_do() -> None:
    """A record may come to the next member while its lock is released, or go on being locked by that who renews it."""
    model = model_of_one_record()
    model.happened_at_once(
        [
            lambda known: known.delivered("m2", [Delivery(0, 0, 2)], 10),
            lambda known: known.acknowledged("m1", {0: "RELEASE"}, 0),
        ]
    )

    assert model.owned("m1") == []
    assert model.owned("m2") == [0]


def test_what_is_right_in_no_order_is_found() -> None:
    """A record that was accepted cannot come to another member, before or afterwards."""
    model = model_of_one_record()

    with pytest.raises(GuaranteeBrokenError) as caught:
        model.happened_at_once(
            [
                lambda known: known.acknowledged("m1", {0: "ACCEPT"}, 0),
                lambda known: known.delivered("m2", [Delivery(0, 0, 2)], 10),
            ]
        )

    assert caught.value.guarantee is Guarantee.ACCEPTED_IS_FINAL
    assert "    at 0 ms: what comes next has overlapped; it is right in no order\n" in str(caught.value)


def test_a_lock_that_overlaps_with_time_begins_at_any_moment() -> None:
    """The record is its member's for certain until the lock would end that began before, and perhaps for longer."""
    model = ClientModel(SETTINGS)
    model.produced([0])
    model.happened_at_once([lambda known: known.time_passed(400), partial(fetched, member="m1")])

    assert model.deadlines_ms() == {(1_000, 1_400)}


def fetched(known: ClientModel, member: str) -> None:
    """Let a member get the only record."""
    known.delivered(member, [Delivery(0, 0, 1)], 10)


def test_an_order_that_is_not_right_leaves_no_deadline_open() -> None:
    """Who gets what another member has lost by an expired lock gets it afterwards."""
    model = model_of_one_record()
    model.happened_at_once(
        [
            lambda known: known.delivered("m2", [Delivery(0, 0, 2)], 10),
            lambda known: known.time_passed(1_001),
        ]
    )

    assert model.owned("m2") == [0]
    assert model.deadlines_ms() == {(2_001, 2_001)}


def test_delays_decide_what_comes_first() -> None:
    """The same program has the same end: here the second call begins first, and takes the record."""
    got = {}
    for delays in ([0], [3, 0, 0]):
        machine = machine_of(SlowShareGroup)()
        machine.group_starts(settings=SETTINGS, count=1)
        machine.happens(event=("at_once", delays, [("member_fetches", "m1", 1), ("member_fetches", "m10", 1)]))
        (got[delays[0]],) = [record.owner for record in machine.group.log.values()]
        machine.teardown()

    assert got == {0: "m1", 3: "m10"}


class RefusedError(Exception):
    """A refusal."""

    code = 121


class Raising(SlowMachine):
    """A share group whose acknowledgements raise an error."""

    group_type = SlowShareGroup
    error: Exception

    async def acknowledge(self, member: str, batches: object) -> int:  # type: ignore[override] # noqa: ARG002
        """Raise it."""
        raise self.error

    def teardown(self) -> None:
        """End without acknowledging anything."""
        self._is_over = True
        super().teardown()


@pytest.mark.parametrize("error", [RefusedError(), OSError("no connection")])
def test_errors_with_a_code_are_refusals_there_too(error: Exception) -> None:
    """An acknowledgement that overlaps may be refused by an error that is raised; another error fails the test."""
    machine = Raising()
    machine.error = error
    machine.group_starts(settings=SETTINGS, count=1)
    wrong: Event = ("member_acknowledges", "m10", [(0, 0, ["ACCEPT"])])

    fails = contextlib.nullcontext() if hasattr(error, "code") else pytest.raises(OSError, match="no connection")
    with fails:
        machine.happens(event=("at_once", [0], [("member_fetches", "m1", 1), wrong]))

    machine.teardown()


def test_offsets_of_overlapping_events_are_named() -> None:
    """What overlaps refers to offsets by what has appended them, as what happens alone does."""
    offsets, fewer = Offsets(), Offsets()
    offsets.appended(1, range(4, 6))
    fewer.appended(1, range(2))
    event: Event = ("at_once", [0], [("time_passes", 5), ("member_acknowledges", "m1", [(5, 5, ["ACCEPT"])])])

    assert fewer.numbered(offsets.named(event)) == (
        "at_once",
        [0],
        [("time_passes", 5), ("member_acknowledges", "m1", [(1, 1, ["ACCEPT"])])],
    )
    assert Offsets().numbered(offsets.named(event)) is None
