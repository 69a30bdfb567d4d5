"""Single operations: what they do, not how long it takes."""

from __future__ import annotations

import json
from itertools import chain

import pytest

from bench.memory import MEMORY
from bench.operations import OPERATIONS, SERVED, SIZES, compared_sizes
from bench.partitions import opened

ALL = [*chain.from_iterable(((what, name) for name in operations) for what, operations in OPERATIONS.items())]


def results(what: str, name: str) -> list[object]:
    """Return what the operations return on the smallest share partition."""
    return [operation() for operation in OPERATIONS[what][name](min(SIZES[what]))]


def test_no_two_operations_share_a_name() -> None:
    """A name says which operation a figure is of, in whichever table it stands."""
    assert len({name for _, name in ALL}) == len(ALL)


@pytest.mark.parametrize(("what", "name"), ALL)
def test_every_operation_can_be_done_as_often_as_it_is_timed(what: str, name: str) -> None:
    """None of them is refused on the share partition that is prepared for it."""
    assert results(what, name)


def test_trees_are_compared_at_sizes_that_are_in_the_tables() -> None:
    """Both are sizes that are measured without a base too, and they differ."""
    for what in OPERATIONS:
        small, large = compared_sizes(what)
        assert small < large
        assert {small, large} <= {*SIZES[what]}


@pytest.mark.parametrize("name", OPERATIONS[SERVED])
def test_served_requests_are_answered(name: str) -> None:
    """Records are acquired and acknowledged, and only a response that is not quiet has the state."""
    acquired, acknowledged, *_ = [json.loads(str(line)) for line in results(SERVED, name)]

    assert (acquired["result"]["count"], acknowledged["result"]["status"]) == (10, "ok")
    assert [(answer["state"] is None) for answer in (acquired, acknowledged)] == [name == "a quiet request"] * 2


def test_a_restored_share_partition_has_what_was_in_flight() -> None:
    """What is timed as restoring brings back every batch."""
    restored, *_ = results("with so many batches in flight", "restore")

    assert len(restored.batches()) == 10  # type: ignore[attr-defined]


def test_records_of_batches_of_one_record_are_not_joined() -> None:
    """Their memory is that of as many batches."""
    growth = MEMORY["record of batches of one record"]
    partition = opened()

    growth.grow(partition)

    assert len(partition.batches()) == growth.things


def test_as_many_writes_are_pending_as_the_table_says() -> None:
    """Under KIP_932 too each acknowledged batch has a write of its own that waits for its answer."""
    acknowledge = next(iter(OPERATIONS["under KIP_932, with so many pending writes"].values()))
    timed = [*acknowledge(10)]
    partition = timed[0].func.__self__  # type: ignore[attr-defined]

    assert len(partition.snapshot().writes) == 10
