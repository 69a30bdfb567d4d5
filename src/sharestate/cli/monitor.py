"""The command ``monitor``: the share groups of a cluster, as metrics for Prometheus or as a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.progress import track
from rich.text import Text

from sharestate.cli.exits import NoVerdict
from sharestate.cli.options import FiniteRange
from sharestate.cli.signals import until_signal
from sharestate.cli.state import servers_option, settings_option
from sharestate.cli.state_tables import PIPE_WIDTH, time_text
from sharestate.cli.tables import Cell, print_rows
from sharestate.errors import ExternalError, ShareStateError, UnreadableFileError
from sharestate.json_lines import printable, write_json

if TYPE_CHECKING:
    from sharestate.monitor.exposition import ReadingCollector
    from sharestate.monitor.metrics import Metric
    from sharestate.monitor.readings import PartitionReading, Reading
    from sharestate.monitor.watch import Watch
    from sharestate.state_topic import TopicRecord

_LISTEN: Final = "127.0.0.1:9932"
_MOST_PORT: Final = 65_535
_INTERVAL_S: Final = 10
"""How long between two rounds: twice as often as Prometheus scrapes where it is set to 20 s or more. [s]"""


def _address(_context: click.Context, _parameter: click.Parameter, given: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _MOST_PORT:
        message = f"{given!r} is not of the form HOST:PORT."
        raise click.BadParameter(message)
    return host.removeprefix("[").removesuffix("]"), int(port)


@click.command("monitor")
@servers_option
@settings_option
@click.option("--once", is_flag=True, help="Print what there is now, and end.")
@click.option("--json", "as_json", is_flag=True, help="With --once: a JSON line for each share partition.")
@click.option(
    "--listen",
    default=_LISTEN,
    show_default=True,
    callback=_address,
    metavar="HOST:PORT",
    help="Where to serve /metrics; port 0 is one that is free.",
)
@click.option(
    "--interval",
    "interval_s",
    type=FiniteRange(min=0.1),
    default=_INTERVAL_S,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait between two rounds of reading.",
)
@click.option(
    "--checkpoint",
    "checkpoint_path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.sqlite",
    help="Go on from this file after a restart, and keep it; it is made if it does not exist.",
)
def monitor_command(  # noqa: PLR0913 - one parameter for each option
    *,
    servers: str | None,
    settings_path: Path | None,
    once: bool,
    as_json: bool,
    listen: tuple[str, int],
    interval_s: float,
    checkpoint_path: Path | None,
) -> None:
    """
    Watch the share groups of a cluster, and serve what is known as metrics for Prometheus, until Ctrl-C or SIGTERM.

    Follows the topic __share_group_state, and asks where logs begin and end, what topics are called, and how groups
    are set. Nothing is written to the cluster, and no group is joined.

    The first line is the address of the metrics. Rounds that fail are said on standard error, and tried again.

    Exit code: 0, or 2 if it cannot begin or, with --once, something cannot be read.
    """
    if servers is None:
        message = "Missing option '--bootstrap'."
        raise click.UsageError(message)
    if as_json and not once:
        message = "--json needs --once."
        raise click.UsageError(message)
    try:
        with _watching(servers, settings_path, checkpoint_path) as watch:
            if once:
                _print(watch.round(), as_json=as_json)
            else:
                _serve(watch, listen, interval_s)
    except (ShareStateError, ModuleNotFoundError) as error:
        raise NoVerdict(str(error)) from error


@contextmanager
def _watching(servers: str, settings_path: Path | None, checkpoint_path: Path | None) -> Iterator[Watch]:
    from sharestate.monitor.checkpoint import Checkpoint  # noqa: PLC0415 - what the other commands do without
    from sharestate.monitor.watch import Watch  # noqa: PLC0415
    from sharestate.state_topic.cluster import Cluster, client_settings  # noqa: PLC0415 - needs an extra

    settings = None if settings_path is None else client_settings(settings_path)
    with ExitStack() as stack:
        checkpoint = None if checkpoint_path is None else stack.enter_context(Checkpoint(checkpoint_path))
        cluster = stack.enter_context(Cluster(servers, settings))
        yield Watch(cluster, _now_ms, checkpoint, say=_say, watched=_with_progress)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _say(line: str) -> None:
    click.echo(printable(line), err=True)


def _with_progress(records: Iterable[TopicRecord], total: int) -> Iterable[TopicRecord]:
    """Return *records*, with a progress bar if standard error is a terminal and there are many."""
    console = Console(stderr=True)
    is_shown = console.is_terminal and total > _SHOWN_FROM
    return track(records, "reading", total, console=console, transient=True, disable=not is_shown)


_SHOWN_FROM: Final = 10_000
"""The number of records from which on progress is shown: reading them takes a second or so. [records]"""


# ---- serving


def _serve(watch: Watch, listen: tuple[str, int], interval_s: float) -> None:
    from sharestate.monitor.exposition import ReadingCollector, serve  # noqa: PLC0415 - needs an extra

    collector = ReadingCollector()
    try:
        server, thread = serve(collector, *listen)
    except OSError as error:
        message = f"{listen[0]}:{listen[1]}: {error.strerror}"
        raise NoVerdict(message) from error
    host = f"[{listen[0]}]" if ":" in listen[0] else listen[0]
    try:
        with until_signal():
            print(f"http://{host}:{server.server_port}/metrics", flush=True)  # noqa: T201 - what the command is for
            _repeat(watch, collector, interval_s)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _repeat(watch: Watch, collector: ReadingCollector, interval_s: float) -> None:
    said = None
    while True:
        try:
            collector.reading = watch.round()
            collector.is_up, problem = True, None
        except (ExternalError, UnreadableFileError) as error:
            collector.is_up, problem = False, str(error)
            collector.failed_count += 1
        if problem != said:
            _say("the cluster is read again" if problem is None else problem)
            said = problem
        time.sleep(interval_s)


# ---- once


def _print(reading: Reading, *, as_json: bool) -> None:
    from sharestate.monitor.metrics import METRICS, SHARE_PARTITION, document  # noqa: PLC0415 - see above

    if as_json:
        for each in reading.share_partitions:
            sys.stdout.write(f"{write_json(document(each))}\n")
        return
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    shown = [metric for metric in METRICS if metric.subject is SHARE_PARTITION and metric.column is not None]
    rows = [[_cell(metric, each) for metric in shown] for each in reading.share_partitions]
    used = [index for index, metric in enumerate(shown) if not metric.labels or any(row[index] for row in rows)]
    names = [
        "group",
        "topic",
        "partition.",
        *(f"{shown[index].column}{_ALIGNED[bool(shown[index].labels)]}" for index in used),
    ]
    table: list[list[Cell]] = [
        [Text(printable(each.key.group_id)), each.topic, str(each.key.partition), *(row[index] for index in used)]
        for each, row in zip(reading.share_partitions, rows, strict=True)
    ]
    legend = {metric.column: metric.help for metric in shown if metric.column is not None}
    print_rows(console, names, table, named=3, title=f"Share partitions: {len(rows)}", legend=legend)


_ALIGNED: Final = {False: ".", True: ""}
"""Numbers stand at the right, and words at the left."""


def _cell(metric: Metric, each: PartitionReading) -> str:
    samples: list[Any] = list(metric.samples(each))
    if not samples:
        return "" if metric.labels else "-"
    (labels, number), *_ = samples
    if metric.labels == ("exact",):
        return f"{'' if labels[0] == 'true' else 'before '}{time_text(each.moved_ms)}"
    return labels[0] if labels else f"{number:g}" if isinstance(number, float) else str(number)
