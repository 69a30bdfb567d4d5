"""The known divergences, as data: Kafka's crashes and leaks, of which the library copies none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from sharestate.json_lines import Json
from tests.oracle.search.triggers import TRIGGERS, Scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracle.search.judging import Mismatch

FILE: Final = Path(__file__).parents[2] / "data/divergences.json"


@frozen(kw_only=True)
class Divergence:
    """One row: something that Kafka does and the library does not."""

    id: str
    """The row's name."""

    kafka: str
    """What Kafka does."""

    library: str
    """What the library does instead."""

    trigger: str
    """What sets it off; ``TRIGGERS`` has the same in code."""

    vectors: tuple[str, ...]
    """The names of recorded conversations that show it."""

    ops: frozenset[str]
    """The operations at which it shows."""

    raises: frozenset[str | None]
    """The exceptions that Kafka throws then; None where it throws none."""

    library_answers: Json
    """A part of the library's response then."""

    differs_in: tuple[str, ...]
    """The parts of the response that may differ then."""

    later: bool
    """Whether it may show long after its trigger."""

    most_per_1000: Mapping[str, float]
    """How often it may be met in each mix. [per 1,000 operations]"""

    @property
    def is_set_off_by(self) -> Callable[[Scene], bool]:
        """Its trigger."""
        return TRIGGERS[self.id]

    def describes(self, op: str, response: Json, mismatch: Mismatch) -> bool:
        """Return whether *mismatch*, which the library's *response* to the operation *op* is, is what the row says."""
        parts = {difference.path.partition(".")[0].partition("[")[0] for difference in mismatch.differences}
        return (
            op in self.ops
            and raised(mismatch.kafka) in self.raises
            and parts <= set(self.differs_in)
            and has(response, self.library_answers)
        )


def has(value: Json, part: Json) -> bool:
    """
    Return whether *part* is a part of *value*: of an object, the members that it has.

    >>> has({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}), has({"a": [1, 2]}, {"a": [1]})
    (True, False)
    """
    if isinstance(part, dict):
        return isinstance(value, dict) and all(name in value and has(value[name], part[name]) for name in part)
    return bool(value == part)


def raised(response: Json) -> str | None:
    """Return the class of the exception that an operation has thrown; None for none."""
    match response:
        case {"result": {"raised": {"exception": str(exception)}}}:
            return exception
        case _:
            return None


def read_divergences(file: Path = FILE) -> tuple[Divergence, ...]:
    """Return the rows of *file*."""
    return tuple(_row(**row) for row in json.loads(file.read_text(encoding="utf-8"))["rows"])


def _row(**row: Any) -> Divergence:  # noqa: ANN401 - JSON
    made: dict[str, Any] = {
        **row,
        **{name: frozenset(row[name]) for name in ("ops", "raises")},
        **{name: tuple(row[name]) for name in ("vectors", "differs_in")},
    }
    return Divergence(**made)


DIVERGENCES: Final = read_divergences()
"""The rows."""
