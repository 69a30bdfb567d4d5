"""Tables and scenarios that are malformed."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import MalformedInputError
from sharestate.kip932.reading import scenario_from_json, table_from_json

PRINTED = {"lines": [3, 3], "text": "Fetch records 100-109"}
TABLE = {
    "kip932_table": 1,
    "name": "write",
    "title": PRINTED,
    "file": "a file",
    "lines": [1, 9],
    "scenario": "examples",
    "columns": [],
    "notes": [],
    "captions": [],
    "rows": [],
}
ROW = {"lines": [3, 3], "operation": PRINTED, "written": []}
CORRECTED = {**PRINTED, "text_corrected": "Fetch 100-109", "reasons": ["Shorter."]}


def test_a_correction_has_reasons_and_differs() -> None:
    """The corrected text is taken if it differs and says why."""
    assert table_from_json({**TABLE, "title": CORRECTED}).title.text_corrected == "Fetch 100-109"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kip932_table": 2}, "kip932_table"),
        ({"name": "read"}, "name"),
        ({"file": None}, "file"),
        ({"lines": [1]}, "lines"),
        ({"rows": [ROW, {**ROW, "written": [{**PRINTED, "text": 1}]}]}, "rows[1].written[0].text"),
        ({"captions": [{**PRINTED, "before": 0}]}, "captions[0].before"),
        ({"captions": [{**CORRECTED, "before": 1, "reasons": []}]}, "captions[0].text_corrected"),
        ({"title": {**CORRECTED, "reasons": []}}, "title.text_corrected"),
        ({"title": {**PRINTED, "reasons": ["None."]}}, "title.text_corrected"),
        ({"title": {**CORRECTED, "text_corrected": PRINTED["text"]}}, "title.text_corrected"),
    ],
)
def test_a_malformed_table_is_refused(change: dict[str, Any], field: str) -> None:
    """The part that is wrong is named by its path."""
    with pytest.raises(MalformedInputError) as caught:
        table_from_json({**TABLE, **change})

    assert caught.value.field == field


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], ""),
        ({"kip932_scenario": 2, "name": "a", "notes": [], "steps": []}, "kip932_scenario"),
        ({"kip932_scenario": 1, "name": "a", "notes": [], "steps": [[{"op": "wait"}]]}, "steps[0][0].op"),
        ({"kip932_scenario": 1, "name": "a", "notes": [], "steps": [[], [{"op": "advance"}]]}, "steps[1][0].ms"),
    ],
)
def test_a_malformed_scenario_is_refused(value: object, field: str) -> None:
    """The command that is wrong is named by its path."""
    with pytest.raises(MalformedInputError) as caught:
        scenario_from_json(value)

    assert caught.value.field == field
