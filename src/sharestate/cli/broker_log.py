"""The commands ``log import`` and ``log verify``: what a real broker has logged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import evolve
from rich.text import Text

from sharestate.cli.exits import exit_code_of
from sharestate.cli.explain import explain_command
from sharestate.cli.progress import no_verdicts, progress, refreshed, tables, watched
from sharestate.cli.report import report_command
from sharestate.cli.request_logs import (
    import_options,
    redaction_key,
    say_what_is_assumed,
    say_what_times_are,
    say_what_was_imported,
    seconds_option,
)
from sharestate.cli.state import settings_option
from sharestate.cli.tables import Cell, print_rows
from sharestate.errors import RequestLogError
from sharestate.explain.words import counted
from sharestate.history import Event, Header, Order, create_history
from sharestate.history.files import named_at_last, open_history
from sharestate.json_lines import printable, write_json

if TYPE_CHECKING:
    from sharestate.log_check import PartitionCheck, PartitionReport

_SHOWN_BROKEN: Final = 10
"""How many broken lines are shown. [lines]"""


@click.group("log")
def log_group() -> None:
    """
    Ask a broker's request log what happened to share partitions, and why.

    A broker logs its requests if the logger kafka.request.logger is at DEBUG. With the segments of the topics that is
    the whole life of a share partition.
    """


log_group.add_command(explain_command)
log_group.add_command(report_command)


@log_group.command("import", short_help="Make a history of brokers' request logs.")
@click.option(
    "--segments",
    "directories",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="A broker's log directory, or a copy of it; can be given for each broker, in any order. Without any, nothing"
    " that was acquired can be checked.",
)
@import_options
@click.option(
    "--bootstrap",
    "servers",
    metavar="HOST:PORT",
    help="A broker of the live cluster, to ask which settings groups have now; they are assumed for what nothing else"
    " says.",
)
@settings_option
@click.option(
    "-o", "--output", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The history."
)
@click.argument(
    "sources",
    metavar="REQUEST_LOG...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
def import_command(  # noqa: PLR0913 - one parameter for each option
    *,
    directories: tuple[Path, ...],
    properties: tuple[Path, ...],
    group_configs: tuple[Path, ...],
    group_id: str | None,
    profile: str | None,
    field: str | None,
    utc_offset_us: int | None,
    lenient: bool,
    redact: bool,
    servers: str | None,
    settings_path: Path | None,
    target: Path,
    sources: tuple[Path, ...],
) -> None:
    """
    Make a history of request logs: of one broker or several, rotated files, in any order, also compressed with gzip.

    Lines may be wrapped as containers, Docker, syslog, Elasticsearch, Loki, Fluentd and Log4j's JSON layouts do it.

    The history is a file of JSON lines (.jsonl, .jsonl.gz) or Parquet (.parquet).

    Exit code: 0, or 2 if something cannot be read or written.
    """
    broken = _BrokenLines()
    with no_verdicts():
        from sharestate.broker_log import (  # noqa: PLC0415 - an extra
            LogImport,
            RequestLog,
            TopicLogs,
            read_all_properties,
            read_group_configs,
        )

        on_broken = broken.note if lenient else None
        log = RequestLog(sources, on_broken, field=field, utc_offset_us=utc_offset_us or 0)
        logs = TopicLogs(directories)
        broker, disagreements = read_all_properties(properties)
        events = LogImport(
            log,
            logs,
            broker=broker,
            groups=read_group_configs(group_configs),
            ask_settings=_ask_settings(servers, settings_path),
            group_id=group_id,
            profile=profile,
            redaction_key=redaction_key(redact=redact),
        )
        header = Header(
            source="a broker's request log" if redact else ", ".join(path.name for path in sources),
            order=Order.ARRIVAL,
            lacks=frozenset() if directories else frozenset({"log"}),
            topics={} if redact else logs.topic_names(),
        )
        with (
            named_at_last(target) as path,
            create_history(path, header) as file,
            progress("importing", log.size) as bar,
        ):
            topic_ids: set[str] = set()
            file.write(_with_topic_ids(refreshed(events, bar, lambda: log.position), topic_ids))
            if not redact:
                file.name_topics({each: name for each, name in events.topic_names.items() if each in topic_ids})
    counts = {
        **events.counts,
        "broken_lines": broken.count,
        "late": log.late,
        "lines": log.lines,
        "repeated": log.repeated,
    }
    say_what_was_imported(counts, broken.first, has_segments=bool(directories))
    say_what_times_are(
        lacks_offset=log.lacks_offset and utc_offset_us is None,
        clock_changes=() if log.clock_change is None else (log.clock_change,),
    )
    say_what_is_assumed(events.assumed(), disagreements)
    for offset in events.clock_offsets():
        click.echo(f"The clocks of brokers disagree: {printable(str(offset))}.")


def _ask_settings(servers: str | None, settings_path: Path | None) -> Callable[[str], Mapping[str, Any]] | None:
    """Return what asks a live cluster for the settings of a group; None without a cluster."""
    if servers is None:
        if settings_path is not None:
            message = "--command-config needs --bootstrap."
            raise click.UsageError(message)
        return None
    from sharestate.broker_log.live_settings import LiveSettings  # noqa: PLC0415 - another extra
    from sharestate.state_topic.cluster import client_settings  # noqa: PLC0415 - as above

    return LiveSettings(servers, client_settings(settings_path) if settings_path else None).of


def _with_topic_ids(events: Iterator[Event], topic_ids: set[str]) -> Iterator[Event]:
    """Yield *events*, and put the ids of their topics into *topic_ids*."""
    for event in events:
        topic_ids.add(event.topic_id)
        yield event


class _BrokenLines:
    """The lines that were skipped: how many, and the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def note(self, error: RequestLogError) -> None:
        """Count a line."""
        self.count += 1
        if len(self.first) < _SHOWN_BROKEN:
            self.first.append(str(error))


@log_group.command("verify", short_help="Check a broker's log against Kafka's rules.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of tables.")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the history in causal order, which all other commands read.",
)
@seconds_option
@click.argument("source", metavar="HISTORY", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def verify_command(
    context: click.Context, *, as_json: bool, target: Path | None, seconds: float | None, source: Path
) -> None:
    """
    Check that everything a broker sent or stored follows from Kafka's rules.

    What members have acquired is computed, and so are the codes of their acknowledgements, all writes of state, and
    when locks expire; each is compared with what was logged. With --json, a share partition is a line.

    With -o, the events are written in the order that was found: with the instants at which they took effect, with what
    no line shows, such as locks that expire, and with the verdicts. Where a verdict loses the state, what follows is in
    the file, and nothing computes from it until the state is read again.

    The check of a share partition may cost what takes a second, and three milliseconds for each of its events; with
    --seconds it may take that long. What it has not got to by then is search bound reached.

    Exit code: 0 if nothing contradicts, 1 if something does, 2 if it cannot be read, or something was given up.
    """
    reports = []
    with no_verdicts(), progress("checking") as bar, _ordered_history(source, target) as write:
        from sharestate.log_check import Budget, check  # noqa: PLC0415 - as above

        budget = Budget.of if seconds is None else lambda _: Budget.lasting(seconds, monotonic)
        for checked in check(source, watch=lambda history: watched(history, bar), budget=budget):
            reports.append(checked.report)
            write(checked)
            bar.update(bar.task_ids[0], description=f"checking; {counted(len(reports), 'share partition')} done")
            if as_json:
                click.echo(write_json(checked.report.to_json()))
    if not as_json:
        _print_reports(reports)
    context.exit(exit_code_of({report.verdict.value for report in reports}))


@contextmanager
def _ordered_history(source: Path, target: Path | None) -> Iterator[Callable[[PartitionCheck], object]]:
    """Return what writes the events of a share partition in causal order to *target*; nothing without one."""
    if target is None:
        yield lambda _: None
        return
    with open_history(source) as history:
        header = evolve(history.header, order=Order.CAUSAL)
    with named_at_last(target) as path, create_history(path, header) as file:
        yield lambda checked: file.write(checked.events())


# ---- for people


_LEGEND: Final = {
    "fetches": "answers with records",
    "codes": "answers to acknowledgements",
    "writes": "writes of state",
    "undecided": "answers without records that may be right or not",
    "moves": "requests that were found to have taken effect elsewhere than their times say",
}
"""What the headings mean; the first three are explained of those that were logged."""


def _row(report: PartitionReport) -> list[Cell]:
    explained, observed = report.explained, report.observed
    return [
        *(Text(printable(part)) for part in (report.key[0], report.topic, str(report.key[2]))),
        report.verdict.value.replace("_", " "),
        *(
            f"{getattr(explained, name):,} of {getattr(observed, name):,}"
            for name in ("fetches_with_records", "codes", "writes")
        ),
        f"{explained.undecided_fetches:,} of {observed.empty_fetches:,}",
        f"{report.moves:,}",
    ]


def _print_reports(reports: list[PartitionReport]) -> None:
    columns = ("group", "topic", "partition", "verdict", "fetches", "codes", "writes", "undecided", "moves")
    print_rows(tables(), columns, list(map(_row, reports)), named=4, legend=_LEGEND)
    for report in reports:
        for finding in report.findings:
            click.echo(printable(report.line(finding)))
            if finding.observed is not None:
                click.echo(f"  observed {write_json(finding.observed)}")
                click.echo(f"  computed {write_json(finding.computed)}")
