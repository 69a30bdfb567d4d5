"""Configurations of explorations: what is no share group is refused, and blamed on nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sharestate import KAFKA_4_4
from sharestate.errors import MalformedInputError
from sharestate.json_lines import write_json
from sharestate.testing.explore import Configuration, explore

if TYPE_CHECKING:
    from sharestate.json_lines import Json


def stored(*batches: list[int], start_offset: int = 0) -> dict[str, Json]:
    """Return the field that says what the share coordinator has in the beginning."""
    return {"stored": {"start_offset": start_offset, "state_batches": list(batches)}}


@pytest.mark.parametrize(
    ("others", "field"),
    [
        ({"log": [[0, 2], [1, 3]]}, "log[1]"),
        ({"log": [[3, 0]]}, "log[0]"),
        ({"log": [[0, 0, {"producer_id": 7, "transactional": True}], [1, 1, {"producer_id": 7}]]}, "log[1]"),
        ({"types": []}, "types"),
        ({"types": ["accept", "accept"]}, "types"),
        ({"max_records": []}, "max_records"),
        ({"max_records": [1, 1]}, "max_records"),
        ({"max_records": list(range(1, 500))}, "max_records"),
        (stored([0, 0, 0, 2]), "stored.state_batches[0]"),
        (stored([0, 0, 2, 1], [3, 3, 2, 1]), "stored.state_batches[1]"),
    ],
)
def test_refuses_what_is_no_group(others: dict[str, Any], field: str) -> None:
    """A log that is none, fetches of no size, and records that were delivered too often already are refused by name."""
    with pytest.raises(MalformedInputError) as raised:
        Configuration.from_json(write_json({"sharestate_exploration": 1, "log": [[0, 0], [1, 2]], **others}))
    assert raised.value.field == field


@pytest.mark.parametrize(
    "others",
    [
        stored([0, 0, 1, 1]),
        stored([0, 2, 0, 1], [1, 1, 2, 1]),
        stored([2, 2, 0, 1], [0, 0, 2, 1]),
        stored([2, 0, 0, 1]),
        stored([0, 0, 2, 1], start_offset=2),
        stored([0, 2, 0, 1], start_offset=1),
    ],
)
def test_blames_nobody_for_what_no_coordinator_stores(others: dict[str, Any]) -> None:
    """What no share coordinator stores, and so no leader takes over, is refused, and not called a stall."""
    text = write_json({"sharestate_exploration": 1, "log": [[0, 0], [1, 2]], **others})
    with pytest.raises(MalformedInputError, match="expected what a share coordinator stores") as raised:
        explore(Configuration.from_json(text), KAFKA_4_4.healed)
    assert raised.value.field == "stored"
