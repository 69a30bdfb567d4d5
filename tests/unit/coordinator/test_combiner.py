"""The combiner of state batches: what it makes of the worked examples."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from sharestate import MalformedInputError, StateBatch
from sharestate.coordinator import combine, combine_to_fewest
from sharestate.coordinator import combiner as combiner_module
from sharestate.coordinator.combiner import Combine

Rows = list[tuple[int, int, int, int]]

EXAMPLES: list[tuple[Rows, Rows, int, Rows]] = [
    ([(100, 109, 2, 1)], [], 110, []),
    ([(100, 130, 0, 1)], [], 120, [(120, 130, 0, 1)]),
    ([(100, 110, 0, 1)], [(111, 115, 0, 1)], -1, [(100, 115, 0, 1)]),
    ([(100, 110, 0, 1)], [(105, 110, 0, 2)], -1, [(100, 104, 0, 1), (105, 110, 0, 2)]),
    ([(100, 115, 0, 1)], [(105, 110, 2, 1)], -1, [(100, 104, 0, 1), (105, 110, 2, 1), (111, 115, 0, 1)]),
    ([(100, 110, 0, 2)], [(105, 115, 0, 1)], -1, [(100, 110, 0, 2), (111, 115, 0, 1)]),
    ([(100, 110, 0, 1)], [(100, 115, 0, 2)], -1, [(100, 115, 0, 2)]),
    ([(100, 110, 0, 3)], [(100, 115, 0, 1)], -1, [(100, 110, 0, 3), (111, 115, 0, 1)]),
    ([(0, 9, 0, 2)], [(0, 9, 2, 1)], -1, [(0, 9, 0, 2)]),
    (
        [(0, 9, 0, 1)],
        [(3, 5, 2, 1), (4, 4, 4, 1)],
        -1,
        [(0, 2, 0, 1), (3, 3, 2, 1), (4, 4, 4, 1), (5, 5, 2, 1), (6, 9, 0, 1)],
    ),
    (
        [(100, 110, 0, 1)],
        [(101, 105, 1, 2), (101, 115, 2, 2), (101, 120, 3, 2)],
        -1,
        [(100, 100, 0, 1), (101, 120, 3, 2)],
    ),
    (
        [(111, 120, 0, 1)],
        [(111, 113, 0, 2), (114, 114, 2, 1), (115, 119, 0, 2)],
        -1,
        [(111, 113, 0, 2), (114, 114, 2, 1), (115, 119, 0, 2), (120, 120, 0, 1)],
    ),
    (
        [(100, 110, 0, 1), (121, 130, 0, 1)],
        [(111, 119, 2, 2), (116, 123, 2, 2)],
        -1,
        [(100, 110, 0, 1), (111, 123, 2, 2), (124, 130, 0, 1)],
    ),
    (
        [(100, 110, 0, 1), (121, 130, 0, 1)],
        [(111, 119, 2, 2), (116, 123, 2, 2)],
        120,
        [(120, 123, 2, 2), (124, 130, 0, 1)],
    ),
    ([(50, 59, 2, 1)], [(10, 20, 4, 1), (30, 39, 2, 1)], 40, [(50, 59, 2, 1)]),
    ([(100, 104, 2, 1), (105, 110, 0, 1)], [(105, 110, 2, 1)], -1, [(100, 104, 2, 1), (105, 110, 2, 1)]),
    ([(100, 104, 2, 1), (105, 110, 2, 1)], [], -1, [(100, 110, 2, 1)]),
    ([(100, 104, 2, 1)], [(110, 114, 2, 1)], -1, [(100, 104, 2, 1), (110, 114, 2, 1)]),
]


FEWER: dict[int, Rows] = {15: [(100, 110, 2, 1)]}
"""The examples of which Kafka 4.4 makes fewer batches, by index."""


def batches(rows: Rows) -> list[StateBatch]:
    """Return *rows* as state batches."""
    return [StateBatch(*row) for row in rows]


@pytest.mark.parametrize(("stored", "written", "start_offset", "expected"), EXAMPLES)
def test_worked_examples(stored: Rows, written: Rows, start_offset: int, expected: Rows) -> None:
    """Every example that was worked through with Kafka's combiner comes out as it did there."""
    assert combine(batches(stored), batches(written), start_offset) == tuple(batches(expected))


@pytest.mark.parametrize("index", range(len(EXAMPLES)))
def test_kafka_4_4_makes_as_few_batches_as_can_be(index: int) -> None:
    """The combiner of 4.4 gives the same examples, but for the one in which neighbors were left unmerged."""
    stored, written, start_offset, expected = EXAMPLES[index]

    assert combine_to_fewest(batches(stored), batches(written), start_offset) == tuple(
        batches(FEWER.get(index, expected))
    )


@pytest.mark.parametrize("combiner", [combine, combine_to_fewest])
def test_what_no_batch_has_stays_so(combiner: Combine) -> None:
    """Offsets between batches belong to none afterwards, next to others that overlap."""
    combined = combiner(batches([(0, 4, 0, 1), (20, 29, 0, 1)]), batches([(3, 6, 2, 1)]), -1)

    assert combined == tuple(batches([(0, 2, 0, 1), (3, 6, 2, 1), (20, 29, 0, 1)]))


@pytest.mark.parametrize("combiner", [combine, combine_to_fewest])
@pytest.mark.parametrize("order", [("stored", "written"), ("written", "stored")])
def test_a_reversed_batch_is_refused(order: tuple[str, str], combiner: Combine) -> None:
    """A batch that ends before it begins has no place in any order, stored or written."""
    lists = {order[0]: [StateBatch(9, 5, 0, 1)], order[1]: [StateBatch(0, 9, 0, 1)]}

    with pytest.raises(MalformedInputError, match="reversed: 9-5") as refused:
        combiner(**lists, start_offset=-1)

    assert refused.value.field == "state_batches"


every_combiner = pytest.mark.parametrize("combiner", [combine, combine_to_fewest])


@every_combiner
@pytest.mark.parametrize("seed", range(200))
def test_what_a_write_does_not_touch_stays_as_the_whole_list_would_leave_it(combiner: Combine, seed: int) -> None:
    """Write after write, the result of a combiner is added to as a plain list of the same batches is."""
    random = Random(seed)  # noqa: S311 - a replayable choice
    stored: tuple[StateBatch, ...] = ()
    for _ in range(20):
        firsts = [random.randrange(40) for _ in range(random.choice([0, 1, 1, 2, 3]))]
        written = [
            StateBatch(at, at + random.randrange(5), random.choice([0, 2]), random.choice([1, 2])) for at in firsts
        ]
        start_offset = random.choice([-1, 0, random.randrange(20)])
        whole = combiner(list(stored), written, start_offset)
        stored = combiner(stored, written, start_offset)
        assert stored == whole


@every_combiner
def test_a_write_looks_at_what_it_touches(combiner: Combine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10,000 stored batches, a write between two of them and one that continues another are combined with three."""
    stored = combiner((), [StateBatch(10 * each, 10 * each + 4, 0, 1) for each in range(10_000)], -1)
    looked_at = 0
    kept = combiner_module._kept  # noqa: SLF001 - it is given what is combined

    def counted(batches: Iterable[StateBatch], start_offset: int) -> Any:  # noqa: ANN401 - as ``_kept``
        nonlocal looked_at
        batches = list(batches)
        looked_at += len(batches)
        return kept(batches, start_offset)

    monkeypatch.setattr(combiner_module, "_kept", counted)
    combined = combiner(stored, [StateBatch(7, 7, 0, 1), StateBatch(50_003, 50_005, 2, 1)], 0)

    assert len(combined) == 10_002
    assert looked_at == 2 + 1


@every_combiner
@pytest.mark.parametrize("count", [1, 100, 1_000])
def test_a_write_may_cut_every_stored_batch(combiner: Combine, count: int) -> None:
    """However many there are, a member's acknowledgements may cross the boundaries of all of them."""
    stored = [StateBatch(10 * each, 10 * each + 9, 0, 1) for each in range(count)]
    written = [StateBatch(10 * each + 5, 10 * each + 14, 2, 1 + each % 2) for each in range(count)]

    assert combiner(stored, written, -1) == (StateBatch(0, 4, 0, 1), *written)


def test_as_many_batches_may_overlap_as_the_docs_say() -> None:
    """Of 32 each may overlap all others (``CoordinatorShard.write``)."""
    overlapping = [StateBatch(0, 32 + each, 0, 30_000 - each) for each in range(32)]

    assert combine((), overlapping, -1) == combine_to_fewest((), overlapping, -1)


@pytest.mark.parametrize("count", [1_000, 2_000])
def test_batches_that_all_overlap_are_refused(count: int) -> None:
    """Kafka 4.3 combines any two of a thousand; brokers write none that overlap."""
    overlapping = [StateBatch(0, count + each, 0, 30_000 - each) for each in range(count)]

    with pytest.raises(MalformedInputError, match="too many state batches end in each other"):
        combine((), overlapping, -1)
    assert len(combine_to_fewest((), overlapping, -1)) == count
