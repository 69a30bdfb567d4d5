"""What is ready for Kafka's bugs applies where the bug may be the reason, and nowhere else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sharestate.testing.groups import KAFKA_ALLOWANCES, Delivery, GroupSettings
from sharestate.testing.groups.model import ClientModel


def model_with(*batches: list[int], producer: str = "", is_record_limit: bool = False) -> ClientModel:
    """Return what clients know of a log, with a window of two records."""
    model = ClientModel(GroupSettings(max_record_locks=2), delivers_ranges=True, is_record_limit=is_record_limit)
    for batch in batches:
        model.produced(batch, producer)
    return model


def deleted_from_window() -> ClientModel:
    """Let the log start pass what is in flight."""
    model = model_with([0], [1], [2])
    model.delivered("m1", [Delivery(0, 1, 1)], 2)
    model.acknowledged("m1", {0: "RELEASE", 1: "ACCEPT"}, 0)
    model.deleted(1)
    return model


def deleted_from_gap() -> ClientModel:
    """Let the log start move into what the next leader has not fetched yet."""
    model = model_with([0], [1], [2])
    model.delivered("m1", [Delivery(0, 0, 1)], 1)
    model.failed_over()
    model.deleted(1)
    return model


def compacted_in_window() -> ClientModel:
    """Let a hole be in flight before what is left over."""
    model = model_with([0, 2], [3])
    model.delivered("m1", [Delivery(0, 2, 1)], 2)
    model.acknowledged("m1", {0: "ACCEPT", 1: "GAP", 2: "ACCEPT"}, 0)
    return model


def aborted_in_window() -> ClientModel:
    """Let an aborted transaction fill the window."""
    model = model_with([0, 1], producer="p1")
    model.transaction_ended("p1", None, is_committed=False)
    model.produced([3])
    return model


def left_below_log_start() -> ClientModel:
    """Let a fetch that is to take one record take the first one of a log batch, into which the log start has moved."""
    model = model_with([0], [1, 2, 3], is_record_limit=True)
    model.delivered("m1", [Delivery(0, 0, 1)], 1)
    model.deleted(3)
    model.delivered("m2", [Delivery(1, 1, 1)], 1)
    return model


SCENES = {
    "F4": deleted_from_window,
    "F5": deleted_from_gap,
    "F6": compacted_in_window,
    "F7": aborted_in_window,
    "F8": left_below_log_start,
}
"""Where each of the bugs may show."""


@pytest.mark.parametrize("bug", KAFKA_ALLOWANCES)
def test_an_allowance_applies_where_its_bug_may_show(bug: str) -> None:
    """It applies there, and not where nothing but a record that is left over is in the log."""
    assert KAFKA_ALLOWANCES[bug].applies(SimpleNamespace(known=SCENES[bug]()))
    assert not KAFKA_ALLOWANCES[bug].applies(SimpleNamespace(known=model_with([0])))
    assert KAFKA_ALLOWANCES[bug].bug == bug


@pytest.mark.parametrize("bug", KAFKA_ALLOWANCES)
def test_an_allowance_does_not_apply_once_nothing_is_left_over(bug: str) -> None:
    """Where everything is done no delivery can have stopped."""
    model = SCENES[bug]()
    for offset in [record.offset for record in model.left_over()]:
        model.delivered("m1", [Delivery(offset, offset, 1)], 1)
        model.acknowledged("m1", {offset: "ACCEPT"}, 0)

    assert not KAFKA_ALLOWANCES[bug].applies(SimpleNamespace(known=model))


def test_another_bug_does_not_excuse_a_stall() -> None:
    """A full window without a cause in it is no bug of Kafka: the record that comes after it was lost."""
    model = model_with([0], [1], [2])
    model.delivered("m1", [Delivery(0, 1, 1)], 2)
    model.acknowledged("m1", {0: "ACCEPT", 1: "ACCEPT"}, 0)

    assert not any(row.applies(SimpleNamespace(known=model)) for row in KAFKA_ALLOWANCES.values())


def test_another_leader_knows_nothing_of_what_was_left_below_the_log_start() -> None:
    """F8 ends when the state is read again."""
    model = left_below_log_start()
    model.failed_over()

    assert not KAFKA_ALLOWANCES["F8"].applies(SimpleNamespace(known=model))


def test_nothing_is_left_below_the_log_start_once_all_of_it_was_delivered() -> None:
    """F8 takes a log batch of which some records below the log start were delivered, and others were not."""
    model = left_below_log_start()
    model.delivered("m2", [Delivery(2, 2, 1)], 1)

    assert not KAFKA_ALLOWANCES["F8"].applies(SimpleNamespace(known=model))
