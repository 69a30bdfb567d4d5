"""Kafka's known divergences with what was recorded of them, and how often a search may meet them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from sharestate.testing.search import KAFKA_DIVERGENCES
from sharestate.testing.search.divergences import Divergence

FILE: Final = Path(__file__).parents[2] / "data/divergences.json"


@frozen(kw_only=True)
class KafkaDivergence(Divergence):
    """One row: something that Kafka does and the library does not."""

    vectors: tuple[str, ...]
    """The names of recorded conversations that show it."""

    most_per_1000: Mapping[str, float]
    """How often it may be met in each mix. [per 1,000 operations]"""


def _rows() -> tuple[KafkaDivergence, ...]:
    rows = json.loads(FILE.read_text(encoding="utf-8"))["rows"]
    return tuple(_row(known, **row) for known, row in zip(KAFKA_DIVERGENCES, rows, strict=True))


def _row(known: Divergence, *, vectors: list[str], **row: Any) -> KafkaDivergence:  # noqa: ANN401 - JSON
    return KafkaDivergence(vectors=tuple(vectors), **{**asdict(known, recurse=False), **row})


DIVERGENCES: Final = _rows()
"""The rows."""
