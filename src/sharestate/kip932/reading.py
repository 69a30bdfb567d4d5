"""Reading the KIP's worked examples, which lie in JSON beside this file."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from sharestate.conversation.grammar import read_request
from sharestate.errors import MalformedInputError
from sharestate.json_checks import (
    Check,
    Field,
    an_object,
    boolean,
    integer,
    list_of,
    member,
    nullable,
    one_of,
    record,
    row,
    text,
    version,
)
from sharestate.json_lines import Json, read_json
from sharestate.kip932.tables import TABLES, Caption, Printed, Row, Scenario, Source, Table

if TYPE_CHECKING:
    from sharestate.conversation.requests import Command

TABLE_VERSION: Final = 1
"""The version of the format of tables."""

SCENARIO_VERSION: Final = 1
"""The version of the format of scenarios."""

_lines: Final = row(integer(1), integer(1), make=lambda first, last: (first, last))
_texts: Final = list_of(text)
_name: Final = one_of({name: name for name in TABLES})

_FILE: Final = Field(text)
_LINES: Final = Field(_lines)
_TEXTS: Final = Field(_texts)
_NOTE: Final = Field(nullable(text), default=None)


def _text_or_lines(value: Json, path: str) -> str:
    """Take a text, or its lines."""
    return "\n".join(_texts(value, path)) if isinstance(value, list) else text(value, path)


_any_printed: Final = record(
    {
        "lines": _LINES,
        "text": Field(_text_or_lines),
        "text_corrected": Field(nullable(_text_or_lines), default=None),
        "reasons": Field(_texts, default=()),
    },
    lambda text, text_corrected, **members: Printed(
        text=text, text_corrected=text if text_corrected is None else text_corrected, **members
    ),
)


def _printed(value: Json, path: str) -> Printed:
    printed = _any_printed(value, path)
    if (printed.text != printed.text_corrected) != bool(printed.reasons):
        message = "a correction differs from the text, and has reasons"
        raise MalformedInputError(message, f"{path}.text_corrected")
    return printed


_CELL: Final = Field(nullable(_printed), default=None)
_COPIES: Final = Field(
    list_of(record({"file": _FILE, "lines": _LINES, "lost": Field(_texts, default=())}, Source)), default=()
)


def _caption(value: Json, path: str) -> Caption:
    return record(
        {"before": Field(integer(1)), "copies": _COPIES, "note": _NOTE},
        lambda **members: Caption(printed=_printed(value, path), **members),
    )(value, path)


def _row_of(file: str) -> Check[Row]:
    """Return the check for a row of a table that is printed in *file*."""
    return record(
        {
            "lines": _LINES,
            "copies": _COPIES,
            "operation": _CELL,
            "state_changes": _CELL,
            "cumulative_state": _CELL,
            "written": Field(list_of(_printed)),
            "between": _CELL,
            "takes_checkpoint": Field(boolean, default=False),
            "note": _NOTE,
        },
        lambda lines, **members: Row(source=Source(file=file, lines=lines), **members),
    )


def table_from_json(value: Json) -> Table:
    """
    Return the table that *value* describes.

    Raises:
        MalformedInputError: It describes none; ``field`` is the path of the part that is wrong.
    """
    file = member(an_object(value, ""), "file", _FILE, "")
    return record(
        {
            "kip932_table": Field(version(TABLE_VERSION)),
            "name": Field(_name),
            "title": Field(_printed),
            "lines": _LINES,
            "scenario": Field(text),
            "columns": _TEXTS,
            "notes": _TEXTS,
            "captions": Field(list_of(_caption)),
            "rows": Field(list_of(_row_of(file))),
        },
        lambda kip932_table, lines, **members: Table(source=Source(file=file, lines=lines), **members),  # noqa: ARG005 - the version has been checked
    )(value, "")


def _command(value: Json, path: str) -> Command:
    try:
        return read_request(value).command
    except MalformedInputError as error:
        raise MalformedInputError(error.message, f"{path}.{error.field}") from error


_scenario: Final = record(
    {
        "kip932_scenario": Field(version(SCENARIO_VERSION)),
        "name": Field(text),
        "notes": _TEXTS,
        "steps": Field(list_of(list_of(_command))),
    },
    lambda kip932_scenario, **members: Scenario(**members),  # noqa: ARG005 - the version has been checked
)


def scenario_from_json(value: Json) -> Scenario:
    """
    Return the scenario that *value* describes.

    Raises:
        MalformedInputError: It describes none; ``field`` is the path of the part that is wrong.
    """
    return _scenario(value, "")


def _read(folder: str, name: str) -> Json:
    return read_json(files(__package__).joinpath(folder, f"{name}.json").read_text(encoding="utf-8"))


def read_table(name: str) -> Table:
    """
    Return the table that TABLES calls *name*.

    >>> read_table("write").rows[1].operation.text
    'Fetch records 100-109'

    Raises:
        MalformedInputError: There is none.
    """
    return table_from_json(_read("tables", _name(name, "name")))


def read_scenario(table: Table) -> Scenario:
    """
    Return the scenario that performs the rows of *table*.

    >>> read_scenario(read_table("write")).steps[7]
    (Advance(ms=20001, clock='both'),)
    """
    return scenario_from_json(_read("scenarios", table.scenario))
