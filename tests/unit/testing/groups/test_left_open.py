"""What Kafka leaves open is not judged: share groups that make use of it are found to be correct."""

from __future__ import annotations

import pytest

from sharestate.testing.groups import Delivery, GroupSettings, Guarantee, GuaranteeBrokenError
from sharestate.testing.groups.model import ClientModel
from tests.support.mock_machine import broken_by, machine_of
from tests.support.mock_share_group import MockShareGroup
from tests.support.open_share_groups import KeepsBatchOfLogStart, LooksAtOneBatch, PassesOneBatch


@pytest.mark.parametrize("group_type", [KeepsBatchOfLogStart, PassesOneBatch])
def test_nothing_is_found_in_what_is_left_open(group_type: type[MockShareGroup]) -> None:
    """Every guarantee holds."""
    assert broken_by(machine_of(group_type), max_examples=400) is None


def test_a_fetch_may_look_at_one_batch_if_that_is_declared() -> None:
    """Such a fetch brings nothing where others have all of the batch; undeclared, what comes after it is missed."""
    machine = machine_of(LooksAtOneBatch)
    undeclared = broken_by(machine, max_examples=400)
    machine.reads_one_batch = True

    assert undeclared is not None
    assert undeclared.guarantee is Guarantee.NOTHING_LOST
    assert broken_by(machine, max_examples=400) is None


def test_the_rest_of_a_batch_may_be_acquired_at_the_limit() -> None:
    """A broker acquires what is left of a batch in flight, however full the window is, and begins no other batch."""
    model = ClientModel(GroupSettings(max_record_locks=2), is_record_limit=True)
    model.produced([0, 1, 2])
    model.produced([3])
    model.delivered("m1", [Delivery(0, 1, 1)], 2)

    model.delivered("m2", [Delivery(2, 2, 1)], 1)
    with pytest.raises(GuaranteeBrokenError) as caught:
        model.delivered("m2", [Delivery(3, 3, 1)], 1)

    assert caught.value.guarantee is Guarantee.RECORD_LOCKS
    assert "m2 gets offset 3, with which a log batch begins, while 3 records are acquired" in str(caught.value)


def test_what_is_in_flight_may_be_acquired_at_the_limit() -> None:
    """What was delivered before is in flight, and a broker delivers it again whatever else is acquired."""
    model = ClientModel(GroupSettings(max_record_locks=2))
    model.produced([0])
    model.produced([1, 2])
    model.delivered("m1", [Delivery(0, 0, 1)], 1)
    model.delivered("m2", [Delivery(1, 2, 1)], 1)
    model.acknowledged("m1", {0: "RELEASE"}, 0)

    assert model.delivered("m1", [Delivery(0, 0, 2)], 1) == [0]


def test_a_hole_beside_what_a_member_has_may_be_acknowledged() -> None:
    """A broker passes offsets that the log does not have, whoever had them before, and refuses the same elsewhere."""
    model = ClientModel(GroupSettings(), delivers_ranges=True)
    model.produced([0, 2])
    model.delivered("m2", [Delivery(0, 2, 1)], 10)
    model.failed_over()
    model.delivered("m1", [Delivery(0, 0, 1), Delivery(2, 2, 1)], 10)

    model.acknowledged("m1", {1: "GAP", 2: "ACCEPT"}, 0)
    model.acknowledged("m1", {0: "ACCEPT", 1: "GAP"}, 121)
