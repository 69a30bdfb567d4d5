"""Kafka's known divergences, as data: its crashes and leaks, of which the library copies none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from sharestate.testing.search.divergences import Divergence
from tests.oracle.search.triggers import TRIGGERS

FILE: Final = Path(__file__).parents[2] / "data/divergences.json"


@frozen(kw_only=True)
class KafkaDivergence(Divergence):
    """One row: something that Kafka does and the library does not."""

    trigger: str
    """What sets it off; ``TRIGGERS`` has the same in code."""

    vectors: tuple[str, ...]
    """The names of recorded conversations that show it."""

    most_per_1000: Mapping[str, float]
    """How often it may be met in each mix. [per 1,000 operations]"""


def read_divergences(file: Path = FILE) -> tuple[KafkaDivergence, ...]:
    """Return the rows of *file*."""
    return tuple(_row(**row) for row in json.loads(file.read_text(encoding="utf-8"))["rows"])


def _row(*, kafka: str, vectors: list[str], **row: Any) -> KafkaDivergence:  # noqa: ANN401 - JSON
    return KafkaDivergence(peer=kafka, vectors=tuple(vectors), is_set_off_by=TRIGGERS[row["id"]], **row)


DIVERGENCES: Final = read_divergences()
"""The rows."""
