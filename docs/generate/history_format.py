"""The page of the history format, made from the tables that its readers and writers follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from generate.markdown import NOTICE, table
from sharestate.columns import Column, ListOf, Need, Rows, Scalar, Type
from sharestate.history.columns import (
    EVENT_COLUMNS,
    INFERRED,
    KINDS,
    LONGEST_TEXT,
    MAY_LACK,
    MOST_ITEMS,
)
from sharestate.history.header import HISTORY_VERSION
from sharestate.history.outputs import OUTPUT_COLUMNS, OUTPUTS

EVENTS: Final = """\
The columns of [histories](history.md), in JSON Lines and in Parquet. What may be null may be missing in JSON. Then come
`request` and `response`, objects with the fields of the event's kind (structs with the fields of all kinds in Parquet;
`response` is null if it was not observed), and `inferred`.

Rows such as `[first_offset, last_offset, ...]` are lists of lists in JSON, and lists of structs in Parquet; fields in
braces stand in an object at the end of such a list, if any of them is there. Errors, modes and the like are Kafka's
names in lower case; states and acknowledgement types are Kafka's numbers.

What is `inferred` was not observed: it takes effect at its time or later. A `log_start` says then only where the log
starts, which a share partition learns when it fetches from below; a `disconnect` is in order of arrival
the earliest time at which the member's records may have been released, and in causal order when they were.

The header, a first line in JSON and metadata in Parquet, has the version of the format as `sharestate_history`. This is
version {version}, and readers refuse others. Its `order` says how the events of each share partition stand: `causal` as
they took effect, which is what replays read, or `arrival` as a broker's log has them. It may have the `source`,
`created_ms`, the kinds that the history `lacks` because nobody logged them, and `topics`, the names of topics by their
ids. Parquet may lack {optional}, which is the
same as null.

Readers have bounds for what a file may take. A text has {text} bytes at the most, as Kafka's strings
have. A line of JSON has 16 million characters and a million values at the most; a list in Parquet has {items} items,
and a row group may be 64 MiB once it is decompressed, or 64 times what it takes in the file if that is more. Columns
that are encoded as `DELTA_BYTE_ARRAY` are refused. No such file has more events, and no compressed file more lines,
than 10,000 and one for every 8 bytes."""

OUTPUT: Final = """\
A replay makes flat rows. All have these columns; the others depend on the `kind` and are null elsewhere."""

FIELDS: Final = ("field", "type", "unit", "meaning")


def page() -> str:
    """Return the page."""
    optional = " and ".join(f"`{column.name}`" for column in MAY_LACK)
    events = EVENTS.replace("{version}", str(HISTORY_VERSION)).replace("{optional}", optional)
    events = events.replace("{text}", f"{LONGEST_TEXT:,}").replace("{items}", f"{MOST_ITEMS:,}")
    return "\n\n".join([NOTICE, "# The format of histories", events, *_events(), *_outputs()]) + "\n"


def _events() -> Iterator[str]:
    yield table(FIELDS, map(_row, (*EVENT_COLUMNS, INFERRED)))
    for kind in KINDS.values():
        yield f"## `{kind.name}`"
        yield f"{kind.meaning[0].upper()}{kind.meaning[1:]}."
        for side, columns in (("request", kind.request), ("response", kind.response)):
            if columns:
                yield table((f"{side} field", *FIELDS[1:]), map(_row, columns))


def _outputs() -> Iterator[str]:
    yield "## Rows of a replay"
    yield OUTPUT
    yield table(FIELDS, map(_row, OUTPUT_COLUMNS))
    for output in OUTPUTS.values():
        yield f"### `kind={output.name}`"
        yield f"{output.meaning[0].upper()}{output.meaning[1:]}."
        yield table(FIELDS, map(_row, output.columns))


def _row(column: Column) -> tuple[str, str, str, str]:
    need = {Need.OPTIONAL: "", Need.REQUIRED: ", required", Need.WITHOUT_ERROR: ", required without `error`"}
    return f"`{column.name}`", f"{_type(column.type)}{need[column.need]}", column.unit, _meaning(column)


def _meaning(column: Column) -> str:
    is_short = 0 < len(column.values) <= len(KINDS)
    return f"{column.meaning}: {', '.join(f'`{value}`' for value in column.values)}" if is_short else column.meaning


def _type(type_: Type) -> str:
    match type_:
        case Scalar():
            return type_.value
        case ListOf(item):
            return f"list of {item.value}"
        case Rows():
            return f"rows `{_shape(type_.columns)}`"


def _shape(columns: Iterable[Column]) -> str:
    columns = list(columns)
    names = [column.name for column in columns if column.need is Need.REQUIRED]
    others = [column.name for column in columns if column.need is not Need.REQUIRED]
    if others:
        names.append("{" + ", ".join(others) + "}")
    return f"[{', '.join(names)}]"
