"""The KIP's texts about states, and how they compare."""

from __future__ import annotations

import pytest

from sharestate import MalformedInputError, RecordState
from sharestate.kip932.states import KipState, RecordsState, agrees, changes, read_state

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState


def test_a_text_is_read_part_by_part() -> None:
    """SPSO, SPEO, single records and ranges, with and without a delivery count."""
    text = "SPSO=110, SPEO=121, record 110 (available, delivery count 2), records 113-119 acknowledged"

    assert read_state(text) == KipState(
        start_offset=110,
        end_offset=121,
        records=(RecordsState(110, 110, AVAILABLE, 2), RecordsState(113, 119, ACKNOWLEDGED, None)),
    )


def test_a_value_missing_from_a_text_is_none() -> None:
    """Most changes move neither SPSO nor SPEO, and some nothing else."""
    assert read_state("record 119 acknowledged").start_offset is None
    assert read_state("SPSO=110") == KipState(start_offset=110)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SPSO=",
        "SPSO=110 SPEO=110",
        "SPSO=110,SPEO=110",
        "records acquired",
        "record 110 (acquired)",
        "record 110 (acquired, delivery count two)",
        "record 110 lost",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    """What cannot be read is named with its path."""
    with pytest.raises(MalformedInputError) as caught:
        read_state(text, "rows[3].state_changes")

    assert caught.value.field == "rows[3].state_changes"


SHOWN = KipState(
    start_offset=110,
    end_offset=121,
    records=(
        RecordsState(110, 110, ACQUIRED, 2),
        RecordsState(111, 112, ACQUIRED, 2),
        RecordsState(113, 119, ACKNOWLEDGED, 1),
        RecordsState(120, 120, ACQUIRED, 1),
    ),
)


TEXT = (
    "SPSO=110, SPEO=121, records 110-112 (acquired, delivery count 2), records 113-119 acknowledged, "
    "record 120 (acquired, delivery count 1)"
)


def test_ranges_may_be_cut_elsewhere() -> None:
    """The KIP tells three records as one range, whoever holds them."""
    assert agrees(read_state(TEXT), SHOWN)


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("SPSO=110", "SPSO=111"),
        ("SPEO=121", "SPEO=120"),
        ("SPSO=110, ", ""),
        ("SPEO=121, ", ""),
        ("(acquired, delivery count 2)", "(acquired, delivery count 1)"),
        ("(acquired, delivery count 2)", "(available, delivery count 2)"),
        ("acknowledged", "archived"),
        (", record 120 (acquired, delivery count 1)", ""),
        ("record 120", "records 120-121"),
    ],
)
def test_every_difference_counts(said: str, instead: str) -> None:
    """One offset, state or delivery count that differs, or one record too few or too many, is a difference."""
    assert not agrees(read_state(TEXT.replace(said, instead)), SHOWN)


def test_changes_are_what_was_not_so_before() -> None:
    """Records that stayed as they were are not told, nor is an offset that has not moved."""
    before = read_state("SPSO=110, SPEO=120, records 110-119 (acquired, delivery count 1)")
    after = read_state(
        "SPSO=110, SPEO=120, record 110 (available, delivery count 1), records 111-119 (acquired, delivery count 1)"
    )

    assert changes(before, after) == read_state("record 110 (available, delivery count 1)")


def test_neighbors_that_changed_alike_are_one_range() -> None:
    """A range is told as far as it goes."""
    before = read_state("records 110-112 (acquired, delivery count 1), records 115-116 (acquired, delivery count 1)")
    after = read_state("records 110-112 (available, delivery count 1), records 115-116 (available, delivery count 1)")

    assert changes(before, after).records == after.records


def test_records_that_have_passed_the_start_are_told_by_it() -> None:
    """When all is acknowledged, the new SPSO says so."""
    before = read_state("SPSO=100, SPEO=110, records 100-109 (acquired, delivery count 1)")

    assert changes(before, read_state("SPSO=110, SPEO=110")) == read_state("SPSO=110")
