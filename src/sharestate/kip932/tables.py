"""The KIP's worked examples as data: the texts of its tables, their places in the KIP, and corrections."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from attrs import frozen

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
from sharestate.values.checks import expect

if TYPE_CHECKING:
    from sharestate.conversation.requests import Command

TABLES: Final = ("write", "control", "checkpoint", "keys")
"""The names of the tables: requests, control records, checkpoints, and keys of records."""

TABLE_VERSION: Final = 1
"""The version of the format of tables."""

SCENARIO_VERSION: Final = 1
"""The version of the format of scenarios."""

KIP_URL: Final = "https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka"
"""The page of the KIP."""

VERSIONS_URL: Final = "https://cwiki.apache.org/confluence/pages/viewpreviousversions.action?pageId=255070434"
"""The list of all versions of that page."""

SCENARIOS: Final = ("examples", "keys")
"""The names of the scenarios: the tables but ``keys`` share one."""


@frozen(kw_only=True)
class Source:
    """
    A place in one of the KIP's documents.

    Attributes:
        file: The document.
        lines: The first line and the last one, included; counted from 1.
        lost: The columns that the document lacks, if it is a copy.
    """

    file: str
    lines: tuple[int, int]
    lost: tuple[str, ...] = ()


@frozen(kw_only=True)
class Printed:
    """
    A text of the KIP.

    Attributes:
        lines: The first and the last line of its place in the document.
        text: The text as it is printed; no-break spaces are written as spaces, and empty lines left out.
        text_corrected: The text with corrections: the same unless there are reasons.
        reasons: The errors of the text as printed, one for each correction.
    """

    lines: tuple[int, int]
    text: str
    text_corrected: str
    reasons: tuple[str, ...]


@frozen(kw_only=True)
class Caption:
    """
    A text between the rows of a table.

    Attributes:
        before: The number of the row below it, counted from 1; one more than the number of rows at the end.
        printed: The text.
        copies: Further places where it is printed.
        note: A remark that is not the KIP's.
    """

    before: int
    printed: Printed
    copies: tuple[Source, ...]
    note: str | None


@frozen(kw_only=True)
class Row:
    """
    A row of a table.

    Attributes:
        source: The place where it is printed.
        copies: Further places where it is printed.
        operation: The operation, in one line or two.
        state_changes: The state changes.
        cumulative_state: The cumulative state after it.
        written: The request or the records that are written; of two, the second is in place of the first.
        between: The text between the two.
        takes_checkpoint: Whether a SHARE_CHECKPOINT of the state after it is printed.
        note: A remark that is not the KIP's.
    """

    source: Source
    copies: tuple[Source, ...]
    operation: Printed | None
    state_changes: Printed | None
    cumulative_state: Printed | None
    written: tuple[Printed, ...]
    between: Printed | None
    takes_checkpoint: bool
    note: str | None

    @property
    def printed(self) -> tuple[Printed, ...]:
        """All texts of the row, in the order of its columns."""
        texts = (self.operation, self.state_changes, self.cumulative_state)
        cells = (*texts, *self.written[:1], self.between, *self.written[1:])
        return tuple(cell for cell in cells if cell is not None)


@frozen(kw_only=True)
class Table:
    """
    One of the KIP's tables.

    Attributes:
        name: Its name in TABLES.
        title: The heading above it.
        source: Where it is printed, with its captions.
        is_older: Whether only versions of the KIP from before Kafka 4.0 have it.
        scenario: The name of the scenario of its rows.
        columns: The heads of its columns.
        notes: Remarks that are not the KIP's.
        captions: The texts between its rows.
        rows: Its rows.
    """

    name: str
    title: Printed
    source: Source
    is_older: bool
    scenario: str
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    captions: tuple[Caption, ...]
    rows: tuple[Row, ...]

    @property
    def printed(self) -> tuple[Printed, ...]:
        """All texts of the table."""
        captions = (caption.printed for caption in self.captions)
        return (self.title, *captions, *(cell for row in self.rows for cell in row.printed))

    @property
    def section(self) -> str:
        """The section of the KIP that has it."""
        return f'KIP-932, "{self.title.text}"' + ", in an older version" * self.is_older

    @property
    def url(self) -> str:
        """Where the section is; of an older version, the list of all of them."""
        return VERSIONS_URL if self.is_older else f"{KIP_URL}#KIP932:QueuesforKafka-{self.title.text.replace(' ', '')}"

    @property
    def corrections(self) -> tuple[tuple[str, Printed], ...]:
        """
        The corrected texts in their order, each with its place.

        >>> place, printed = read_table("write").corrections[0]
        >>> place, printed.reasons
        ('row 4', ('Consumer 1 is one consumer: "gets", as in "Examples" of an older version.',))
        """
        captions = [(each.before, 0, f"above row {each.before}", each.printed) for each in self.captions]
        rows = [(n, 1, f"row {n}", printed) for n, row in enumerate(self.rows, 1) for printed in row.printed]
        placed = sorted([*captions, *rows], key=lambda each: each[:2])
        return tuple((place, printed) for *_, place, printed in placed if printed.reasons)

    @property
    def correction_count(self) -> int:
        """The number of corrections in it. [corrections]"""
        return sum(len(printed.reasons) for _, printed in self.corrections)


@frozen(kw_only=True)
class Scenario:
    """
    The commands that a leader runs for the rows of a table.

    Attributes:
        name: Its name.
        notes: Reasons for these commands.
        steps: The commands of each row, as requests of the line protocol.
    """

    name: str
    notes: tuple[str, ...]
    steps: tuple[tuple[Command, ...], ...]


# ---- reading

_lines: Final = row(integer(1), integer(1), make=lambda first, last: (first, last))
_texts: Final = list_of(text)
_name: Final = one_of({name: name for name in TABLES})
_scenario_name: Final = one_of({name: name for name in SCENARIOS})

_FILE: Final = Field(text)
_LINES: Final = Field(_lines)
_TEXTS: Final = Field(_texts)
_NOTE: Final = Field(nullable(text), default=None)


def _text_or_lines(value: Json, path: str) -> str:
    """Check a text, or a list of its lines."""
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
    extensible=True,  # a caption is one too
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
        extensible=True,  # its text is checked by itself
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
    Return the table in *value*, in the format of the JSON files beside this module.

    Raises:
        MalformedInputError: *value* is no table; ``field`` is the path of the wrong part.
    """
    file = member(an_object(value, ""), "file", _FILE, "")
    return record(
        {
            "kip932_table": Field(version(TABLE_VERSION)),
            "file": _FILE,
            "name": Field(_name),
            "title": Field(_printed),
            "lines": _LINES,
            "is_older": Field(boolean, default=False),
            "scenario": Field(text),
            "columns": _TEXTS,
            "notes": _TEXTS,
            "captions": Field(list_of(_caption)),
            "rows": Field(list_of(_row_of(file))),
        },
        lambda kip932_table, file, lines, **members: Table(source=Source(file=file, lines=lines), **members),  # noqa: ARG005 - the version has been checked
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
    Return the scenario in *value*, in the format of the JSON files beside this module.

    >>> own = {"kip932_scenario": 1, "name": "own", "notes": [], "steps": [[{"op": "advance", "ms": 10}]]}
    >>> scenario_from_json(own).steps
    ((Advance(ms=10, clock='both'),),)

    Raises:
        MalformedInputError: *value* is no scenario; ``field`` is the path of the wrong part.
    """
    return _scenario(value, "")


def _read(folder: str, name: str) -> Json:
    return read_json(files(__package__).joinpath(folder, f"{name}.json").read_text(encoding="utf-8"))


def read_table(name: str) -> Table:
    """
    Return the table *name*, one of TABLES.

    >>> read_table("write").rows[1].operation.text
    'Fetch records 100-109'

    Raises:
        MalformedInputError: There is no such table.
    """
    return table_from_json(_read("tables", _name(name, "name")))


def read_scenario(table: Table) -> Scenario:
    """
    Return the scenario of *table*.

    >>> read_scenario(read_table("write")).steps[7]
    (Advance(ms=20001, clock='both'),)

    Raises:
        MalformedInputError: *table* is no table, for example the name of one, or it has a scenario of your own.
    """
    name = expect(table, Table, "table", such_as='read_table("write")').scenario
    return scenario_from_json(_read("scenarios", _scenario_name(name, "table.scenario")))
