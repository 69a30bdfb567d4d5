"""The command ``audit``: whether what clients of share groups wrote down follows from the rules."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sharestate.cli.exits import exit_code_of_audit
from sharestate.cli.options import FiniteRange
from sharestate.cli.progress import no_verdicts, tables
from sharestate.cli.tables import Cell, print_rows
from sharestate.explain.words import counted
from sharestate.json_lines import printable, write_json

if TYPE_CHECKING:
    from sharestate.audit import Audit, AuditFinding, Duplicates, GuaranteeVerdict

_SHOWN: Final = 10
"""How many findings of a guarantee are shown. [findings]"""

_SHOWN_REASONS: Final = 3
"""How many reasons a row of the table has. [reasons]"""


_OPTIONS: Final = (
    click.option("--group", help="The only share group to judge, and that of events that name none; all without it."),
    click.option(
        "--format",
        "log_format",
        type=click.Choice(["operations", "verifiable", "librdkafka"]),
        help="The format of all files; found out for each without it.",
    ),
    click.option(
        "--lock-duration-ms",
        "record_lock_duration_ms",
        type=click.IntRange(min=0),
        metavar="MS",
        help="share.record.lock.duration.ms of groups whose settings are not in the logs.",
    ),
    click.option(
        "--delivery-count-limit",
        type=click.IntRange(min=1),
        metavar="DELIVERIES",
        help="share.delivery.count.limit, likewise.",
    ),
    click.option(
        "--max-record-locks",
        type=click.IntRange(min=1),
        metavar="RECORDS",
        help="share.partition.max.record.locks, likewise.",
    ),
    click.option(
        "--isolation-level",
        type=click.Choice(["read_committed", "read_uncommitted"]),
        help="share.isolation.level, likewise.",
    ),
    click.option("--auto-offset-reset", metavar="WHERE", help="share.auto.offset.reset, likewise."),
    click.option(
        "--clock-tolerance-ms",
        type=FiniteRange(min=0),
        default=100,
        show_default=True,
        metavar="MS",
        help="By how much a time on a broker may differ from what a client measures.",
    ),
    click.option(
        "--expiry-delay-ms",
        type=FiniteRange(min=0),
        default=1000,
        show_default=True,
        metavar="MS",
        help="How long after its deadline a lock may expire.",
    ),
    click.option(
        "--max-skew-ms",
        type=FiniteRange(min=0),
        metavar="MS",
        help="By how much any two clocks differ at the most; only what happened bounds it without.",
    ),
    click.option(
        "--kafka",
        type=click.Choice(["4.2", "4.3", "4.4"]),
        help="Compare, beyond the guarantees, how records come again with what this release of Kafka does.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables."),
    click.option(
        "--html",
        "page",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write a page for a browser, too.",
    ),
)


def audit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of an audit; those of ``AuditSettings`` have the names of its fields."""
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), command)


@click.command("audit")
@audit_options
@click.argument(
    "logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.pass_context
def audit_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    /,
    *,
    logs: tuple[Path, ...],
    group: str | None,
    log_format: str | None,
    as_json: bool,
    page: Path | None,
    **given: Any,  # noqa: ANN401 - the settings, by their names
) -> None:
    """
    Judge what clients of share groups wrote down, on any cluster.

    Takes files of operations: what clients have produced, fetched and acknowledged, with begin and end on their clocks;
    and events of Kafka's VerifiableShareConsumer and VerifiableProducer, and of librdkafka's chaos harness.
    Each guarantee of share groups is held, broken, or undecided, with the reason. What overlaps may have
    happened in any order, what was not answered may have happened or not, and clocks may differ: broken is only what
    none of that explains.

    Exit code: 0 if all guarantees are held, 1 if one is broken or something is not as Kafka, 2 if one is undecided, or
    if something cannot be read.
    """
    with no_verdicts():
        from sharestate.audit import AuditSettings, audit  # noqa: PLC0415 - loaded by this command only

        judged = audit(logs, AuditSettings(**given), group=group, log_format=log_format)
    context.exit(say_audit(judged, [log.name for log in logs], as_json=as_json, page=page))


def say_audit(judged: Audit, names: Sequence[str], *, as_json: bool, page: Path | None) -> int:
    """
    Print what an audit found out, and write its page.

    Args:
        judged: What was found out.
        names: The names of the files.
        as_json: Whether to print it as one JSON document.
        page: Where the page is to be written; nowhere if None.

    Returns:
        The exit code of the command.
    """
    if page is not None:
        from sharestate.report import audit_page  # noqa: PLC0415 - loaded where a page is asked for

        title = names[0] if len(names) == 1 else f"{len(names):,} files"
        page.write_text(audit_page(judged, title=title), encoding="utf-8", newline="\n")
    if as_json:
        _print([write_json(judged.to_json())])
    else:
        _print_audit(judged)
    return exit_code_of_audit({verdict.verdict.value for verdict in judged.verdicts})


def _print_audit(judged: Audit) -> None:
    said = f"{counted(judged.operations, 'operation')} of {counted(judged.clients, 'client')}"
    partitions = counted(len(judged.share_partitions), "share partition")
    said = f"{said}; {counted(judged.records, 'record')} of {partitions}, {judged.ambiguous:,} with an ambiguous life"
    _print([said, *judged.clocks, *judged.notes])
    print_rows(
        tables(),
        ("guarantee", "verdict", "checked.", "of", "broken.", "cannot tell."),
        [_row(verdict) for verdict in judged.verdicts],
    )
    _print(_reasons(judged))
    _print(_duplicates(judged.duplicates))
    for verdict in judged.verdicts:
        _print(_findings(verdict))


def _row(verdict: GuaranteeVerdict) -> list[Cell]:
    numbers = (verdict.checked, verdict.broken, sum(verdict.unknown.values()))
    checked, broken, unknown = (f"{number:,}" for number in numbers)
    return [verdict.guarantee.value, verdict.verdict.value, checked, verdict.counted, broken, unknown]


def _reasons(judged: Audit) -> Iterator[str]:
    """Yield why guarantees are undecided, the most frequent reasons first."""
    for verdict in judged.verdicts:
        ordered = sorted(verdict.unknown.items(), key=lambda reason: -reason[1])
        for reason, count in ordered[:_SHOWN_REASONS]:
            yield f"{verdict.guarantee}: cannot tell of {count:,}: {reason}"
        if len(ordered) > _SHOWN_REASONS:
            yield f"{verdict.guarantee}: {len(ordered) - _SHOWN_REASONS} more reasons (--json)"


def _duplicates(duplicates: Duplicates) -> Iterator[str]:
    if duplicates.records:
        yield f"Delivered again: {counted(duplicates.records, 'record')}"
    for cause in duplicates.causes:
        least, median, most = (f"{cause.held_ms[name] / 1000:,.3f} s" for name in ("least", "median", "most"))
        yield f"  {cause.cause}: {cause.records:,}, after {least} to {most}, half of them after {median} or less"


def _findings(verdict: GuaranteeVerdict) -> Iterator[str]:
    for finding in verdict.findings[:_SHOWN]:
        yield ""
        yield from _finding(finding)
    if verdict.broken > _SHOWN:
        yield f"{verdict.guarantee}: {verdict.broken - _SHOWN:,} more"


def _finding(finding: AuditFinding) -> Iterator[str]:
    yield finding.line()
    yield f"  What should be: {finding.guarantee.sentence}"
    yield from (f"  {sentence}" for sentence in finding.life)
    if finding.known_bugs:
        yield f"  Bugs of Kafka that look so: {', '.join(finding.known_bugs)} (docs/kafka-bugs.md)"


def _print(lines: Iterable[str]) -> None:
    """Print *lines*, which may quote an untrusted file."""
    if sys.stdout is not None:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
