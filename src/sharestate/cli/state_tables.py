"""Tables of the state topic, for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from itertools import chain, islice
from typing import Final

from rich.console import Console
from rich.text import Text

from sharestate.cli.tables import Cell, block, print_rows
from sharestate.coordinator import ShareSnapshot, StateRecord
from sharestate.json_lines import printable
from sharestate.state_topic import RebuiltPartition, StateTopic, TopicRecord
from sharestate.values.records import RecordState, SharePartitionKey
from sharestate.values.requests import StateBatch

_MEASURED: Final = 100
"""The number of rows that are looked at before the widths of columns are known: two screens. [rows]"""

PIPE_WIDTH: Final = 200
"""The width of tables where there is no terminal. [characters]"""

_NOTHING: Final = "-"
_STATES: Final = {state.value: state.name.lower() for state in RecordState}


# ---- every record

_HEADINGS: Final = (
    *("state partition", "offset", "time", "type", "group", "topic id", "partition"),
    *("snapshot epoch", "state epoch", "leader epoch", "start offset", "complete", "state batches"),
)

_NAMING: Final = 4
"""How many of them say which record it is."""


def record_lines(
    records: Iterable[tuple[TopicRecord, StateRecord]], names: Mapping[str, str], width: int | None = None
) -> Iterator[str]:
    """
    Yield a heading, and a line for each record, in columns; or blocks if that is wider than *width* characters.

    *names* are those of topics by their ids, as far as they are known.
    """
    rows = (_row(logged, record, names) for logged, record in records)
    headings = [name.removesuffix(" id") if names else name for name in _HEADINGS]
    first = [headings, *islice(rows, _MEASURED)]
    widths = [max(map(len, column)) for column in zip(*first, strict=True)]
    if width is not None and sum(widths) + len("  ") * (len(widths) - 1) > width:
        for row in chain(first[1:], rows):
            yield from block(list(zip(headings, row, strict=True)), width, named=_NAMING)
        return
    for row in chain(first, rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(logged: TopicRecord, record: StateRecord, names: Mapping[str, str]) -> tuple[str, ...]:
    key, value, _ = record
    state_epoch = value.state_epoch if isinstance(value, ShareSnapshot) else None
    numbers = (
        (None,) * 5
        if value is None
        else (value.snapshot_epoch, state_epoch, value.leader_epoch, value.start_offset, value.delivery_complete_count)
    )
    return (
        *(_number(logged.state_partition), _number(logged.offset), time_text(logged.timestamp_ms)),
        "tombstone" if value is None else "snapshot" if isinstance(value, ShareSnapshot) else "update",
        *(printable(key.group_id), names.get(key.topic_id, key.topic_id), str(key.partition)),
        *map(_number, numbers),
        "" if value is None else " ".join(map(_batch, value.state_batches)),
    )


def _number(number: int | None) -> str:
    return _NOTHING if number is None else str(number)


def time_text(timestamp_ms: int | None) -> str:
    """Return a time in UTC; as a number if no calendar has it, - if it is not known."""
    if timestamp_ms is None:
        return _NOTHING
    try:
        time = datetime.fromtimestamp(timestamp_ms // 1000, UTC)
    except (OverflowError, OSError, ValueError):  # a record may have any number of 64 bits
        return str(timestamp_ms)
    return f"{time:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03}"


def _batch(batch: StateBatch) -> str:
    """
    Return a state batch in a word.

    >>> _batch(StateBatch(5, 9, 2, 1)), _batch(StateBatch(7, 7, 0, 3))
    ('5-9:acknowledged:1', '7:available:3')
    """
    first, last, state, count = batch
    offsets = str(first) if first == last else f"{first}-{last}"
    return f"{offsets}:{_STATES.get(state, state)}:{count}"


# ---- the state of every share partition


def print_topic(
    topic: StateTopic,
    limits: Mapping[str, int],
    stuck_after: int,
    ends: Mapping[SharePartitionKey, int] | None,
    names: Mapping[str, str],
) -> None:
    """
    Print what the records add up to: share partitions, with their lag if log *ends* are known, and the rest.

    *limits* are the delivery count limits of groups, and *names* those of topics by their ids, as far as known.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    _print_share_partitions(console, topic.share_partitions(), limits, stuck_after, ends, names)
    _print_state_partitions(console, topic)
    groups = [(Text(printable(group_id)), str(size)) for group_id, size in topic.bytes_by_group.most_common()]
    print_rows(console, ("group", "bytes."), groups, title="By group")


def _print_share_partitions(  # noqa: PLR0913 - those of print_topic
    console: Console,
    rebuilt: list[RebuiltPartition],
    limits: Mapping[str, int],
    stuck_after: int,
    ends: Mapping[SharePartitionKey, int] | None,
    names: Mapping[str, str],
) -> None:
    rows: list[list[Cell]] = []
    for each in rebuilt:
        state = each.state
        stuck = f"{each.change_count} changes" if each.is_stuck(stuck_after) else ""
        rows.append(
            [
                *_key(each.key, names),
                *map(str, (state.state_epoch, state.leader_epoch, state.snapshot_epoch, state.start_offset)),
                f"{'before ' if each.is_since_before else ''}{time_text(each.start_timestamp_ms)}",
                *map(str, (state.delivery_complete_count, len(state.state_batches))),
                *(() if ends is None else _log_end(each, ends.get(each.key))),
                str(each.count_near_limit(limits[each.key.group_id]) or ""),
                Text(stuck, style="bold red"),
            ]
        )
    columns = (
        *("group", "topic" if names else "topic id", "partition.", "state epoch.", "leader epoch."),
        *("snapshot epoch.", "SPSO.", "SPSO since", "complete.", "batches."),
        *(() if ends is None else ("log end.", "lag.")),
        *("near limit.", "stuck for."),
    )
    print_rows(console, columns, rows, named=3, title=f"Share partitions: {len(rebuilt)}", legend=_LEGEND)
    for each in rebuilt:
        if each.unknown_state is not None:
            console.print(Text(" ".join([*map(str, _key(each.key, names)), each.unknown_state])))


_LEGEND: Final = {
    "complete": "records at or above the SPSO that are done with",
    "batches": "stored ranges of records",
    "near limit": "records with one delivery left, or none",
    "stuck for": "changes that have left the SPSO where it is",
}
"""What the headings mean."""


def _log_end(rebuilt: RebuiltPartition, end: int | None) -> tuple[str, str]:
    return _number(end), _number(None if end is None else rebuilt.lag(end))


def _print_state_partitions(console: Console, topic: StateTopic) -> None:
    columns = (
        *("partition.", "records.", "offsets", "snapshots.", "updates.", "tombstones.", "updates per snapshot."),
        *("can be deleted below.", "blocked by", "offsets blocked."),
    )
    rows: list[list[Cell]] = []
    for _, partition in sorted(topic.partitions.items(), key=lambda item: (item[0] is None, item[0])):
        counts = partition.counts
        pruning = partition.pruning()
        ratio = f"{counts['update'] / counts['snapshot']:.1f}" if counts["snapshot"] else _NOTHING
        rows.append(
            [
                _number(partition.number),
                str(counts.total()),
                f"{partition.first_offset}-{partition.last_offset}",
                *(str(counts[kind]) for kind in ("snapshot", "update", "tombstone")),
                ratio,
                _number(pruning.redundant_offset),
                _NOTHING if pruning.key is None else Text(printable(str(pruning.key))),
                str(pruning.blocked_count or ""),
            ]
        )
    print_rows(console, columns, rows, title="By partition of the state topic")


def _key(key: SharePartitionKey, names: Mapping[str, str]) -> tuple[Text, str, str]:
    return Text(printable(key.group_id)), names.get(key.topic_id, key.topic_id), str(key.partition)
