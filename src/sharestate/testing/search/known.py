"""Known divergences in a file: those that operation and response decide, without code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sharestate.json_checks import Field, an_object, boolean, list_of, nullable, one_of, record, text, version
from sharestate.json_lines import MAX_LINE, read_json
from sharestate.testing.search.divergences import ANY_PART, Divergence

if TYPE_CHECKING:
    from pathlib import Path

    from sharestate.json_checks import Check

DIVERGENCES_VERSION: Final = 1
"""The version of the format; another one is refused."""

_divergence: Final = record(
    {
        "id": Field(text),
        "peer": Field(text, ""),
        "library": Field(text, ""),
        "ops": Field(list_of(text)),
        "raises": Field(list_of(nullable(text)), (None,)),
        "library_answers": Field(an_object, {}),
        "differs_in": Field(list_of(one_of({part: part for part in ANY_PART})), ANY_PART),
        "later": Field(boolean, default=False),
    },
    Divergence,
)


def _rows(divergences: int, rows: tuple[Divergence, ...]) -> tuple[Divergence, ...]:
    del divergences  # the version
    return rows


_divergences: Final[Check[tuple[Divergence, ...]]] = record(
    {"divergences": Field(version(DIVERGENCES_VERSION)), "rows": Field(list_of(_divergence))}, _rows
)


def read_divergences(file: Path) -> tuple[Divergence, ...]:
    """
    Return the known divergences in *file*: ``{"divergences": 1, "rows": [{"id": ..., "ops": [...], ...}]}``.

    The fields of a row are those of `Divergence`, but for ``is_set_off_by``, which is code.

    Raises:
        MalformedInputError: It is something else, another version, or a field is wrong, which the error names.
        OSError: It cannot be read.
    """
    with file.open(encoding="utf-8", errors="surrogateescape") as stream:
        return _divergences(read_json(stream.read(MAX_LINE + 1)), "")
