"""The command ``assign``: who gets which partitions, what moves, and what is under-shared."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from sharestate.broker.groups import (
    AssignmentChanges,
    AssignmentError,
    AssignmentInput,
    AssignmentOrder,
    MemberChange,
    TopicPartition,
    assignment_changes,
    changes_json,
    read_assignment_input,
)
from sharestate.cli.exits import NoVerdict
from sharestate.cli.tables import print_rows
from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_lines import MAX_LINE, printable, read_json

_MOST_RUNS: Final = 50
"""The most ranges of a topic's partitions in a cell; with --json all are printed."""

_MOST_ROWS: Final = 1_000
"""The most rows of a table: as many members as a group has with brokers at the most; with --json all are printed."""


def _order(_context: click.Context, _parameter: click.Parameter, name: str) -> AssignmentOrder:
    return AssignmentOrder(name)


@click.command("assign")
@click.option(
    "--order",
    type=click.Choice([order.value for order in AssignmentOrder]),
    default=AssignmentOrder.SORTED.value,
    show_default=True,
    callback=_order,
    help="By ids, as a broker does (java; topics are ids then), or members and topics as the file has them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def assign_command(*, order: AssignmentOrder, as_json: bool, file: Path) -> None:
    """
    Assign partitions to the members of a share group, as Kafka does.

    FILE is a JSON document with the numbers of partitions of topics, and members with their subscriptions. It may have
    the partitions that are initialized, the only ones that brokers assign, and what members were to have before.
    Shows who gets what, what moves, and which partitions have fewer members than Kafka wants for them.

    \b
    An example of FILE:
      {"assignment": 1, "topics": {"orders": 3}, "initialized": {"orders": [0, 1]},
       "members": [{"id": "A", "topics": ["orders"], "target": {"orders": [0, 1]}},
                   {"id": "B", "topics": ["orders"]}]}

    Exit code: 0, or 2 if the file cannot be read, or the assignor fails as Kafka's would.
    """  # noqa: D301 - the control character is for click: it keeps the example's lines as they are
    try:
        given = read_file(file)
        changes = assignment_changes(given.members, given.assign(order))
    except UnreadableFileError as error:
        raise NoVerdict(str(error)) from error
    except MalformedInputError as error:
        message = f"{file}: {error}"
        raise NoVerdict(message) from error
    except AssignmentError as error:
        message = f"{file}: the assignor fails: {error.exception}: {error}"
        raise NoVerdict(message) from error
    if as_json:
        click.echo(json.dumps(changes_json(changes), indent=2))
    else:
        print_changes(changes)


def read_file(file: Path) -> AssignmentInput:
    """
    Return what *file* gives to the assignor.

    Raises:
        UnreadableFileError: It cannot be read, or has another form; the error has the field.
    """
    try:
        with file.open(encoding="utf-8-sig", errors="surrogateescape") as stream:
            return read_assignment_input(read_json(stream.read(MAX_LINE + 1)))
    except OSError as error:
        raise UnreadableFileError(error.strerror, str(file)) from error
    except MalformedInputError as error:
        raise UnreadableFileError(error.message, str(file), field=error.field or "") from error


def print_changes(changes: AssignmentChanges) -> None:
    """Print a table of the members, one of the partitions that are under-shared if there are any, and a line."""
    console = Console(highlight=False)
    print_rows(
        console,
        ("member", "has.", "wants.", "partitions", "gains", "loses"),
        [_cells(member) for member in changes.members[:_MOST_ROWS]],
        legend={"wants": "how many partitions the rules want it to have"},
    )
    if changes.under_shared:
        print_rows(
            console,
            ("topic", "partition.", "members.", "wants."),
            [
                (printable(each.topic_id), str(each.partition), str(each.members), str(each.sharing))
                for each in changes.under_shared[:_MOST_ROWS]
            ],
            named=2,
            title="under-shared",
        )
    if max(len(changes.members), len(changes.under_shared)) > _MOST_ROWS:
        click.echo(f"The first {_MOST_ROWS} rows of each table; --json prints all.")
    click.echo(_last_line(changes))


def _cells(member: MemberChange) -> tuple[str, ...]:
    return (
        printable(member.member_id),
        str(member.has),
        str(member.capacity),
        _by_topic(member.partitions),
        _by_topic(_grouped(member.gained)),
        _by_topic(_grouped(member.lost)),
    )


def _grouped(partitions: Iterable[TopicPartition]) -> Mapping[str, Collection[int]]:
    by_topic: dict[str, list[int]] = {}
    for topic_id, number in partitions:
        by_topic.setdefault(topic_id, []).append(number)
    return by_topic


def _by_topic(partitions: Mapping[str, Collection[int]]) -> str:
    """
    Return partitions in a cell.

    >>> _by_topic({"orders": [0, 1, 2, 5], "payments": []})
    'orders 0-2 5, payments none'
    """
    return ", ".join(f"{printable(topic)} {_few_runs(each) or 'none'}" for topic, each in partitions.items())


def _few_runs(numbers: Collection[int]) -> str:
    runs = list(islice(_runs(numbers), _MOST_RUNS + 1))
    return " ".join([*runs[:_MOST_RUNS], *(["..."] if len(runs) > _MOST_RUNS else [])])


def _runs(numbers: Collection[int]) -> Iterator[str]:
    """Yield ascending numbers as ranges."""
    rest = iter(sorted(numbers))
    first = last = next(rest, None)
    for number in rest:
        if last is not None and number == last + 1:
            last = number
            continue
        yield _run(first, last)
        first = last = number
    if first is not None:
        yield _run(first, last)


def _run(first: int | None, last: int | None) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


def _last_line(changes: AssignmentChanges) -> str:
    gained = sum(len(member.gained) for member in changes.members)
    lost = sum(len(member.lost) for member in changes.members)
    unfilled = sum(member.is_unfilled for member in changes.members)
    return (
        f"{changes.subscription_type.value}: {len(changes.members)} members, {gained} gained, {lost} lost; "
        f"{len(changes.under_shared)} partitions under-shared, {unfilled} members unfilled"
    )
