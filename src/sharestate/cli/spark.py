"""The commands ``spark replay``, ``spark rebuild`` and ``spark tables``, on this machine or on a cluster."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from sharestate.cli.exits import NoVerdict
from sharestate.cli.history import REPORT_VERSION, print_summary, profile_option
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_PROFILES
from sharestate.errors import ShareStateError
from sharestate.history import ReplaySummary
from sharestate.json_lines import write_json
from sharestate.values.profiles import Profile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sharestate.spark import ReplayResult

_REFRESHED_S: Final = 0.5
"""The time between two looks at how far the job is. [s]"""

_SETTINGS: Final[dict[str, bool | float | int | str | None]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOGGING: Final = "rootLogger.level = off\n"
_ERROR: Final = re.compile(r"(?m)^(?:\w+\.)*(\w+(?:Error|Exception)): (.*)$")
"""The last line of a traceback of Python's."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    master = click.option(
        "--master", default="local[*]", show_default=True, metavar="URL", help="Where Spark runs, as for spark-submit."
    )
    partitions = click.option(
        "--partitions",
        type=click.IntRange(min=1),
        metavar="TASKS",
        help="The tasks of a shuffle; on this machine twice as many as there are cores, unless given.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
    return master(partitions(as_json(command)))


_source: Final = click.argument("source", metavar="IN")
_target: Final = click.argument("target", metavar="OUT")


@click.group("spark")
def spark_group() -> None:
    """
    Replay histories and rebuild states on Spark (extra 'spark').

    IN and OUT are paths as Spark takes them, which every worker has to see. OUT is a new directory of Parquet files.
    Spark needs a JDK, 17 or 21.
    """


@spark_group.command("replay")
@profile_option
@_options
@_source
@_target
@click.pass_context
def replay_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    profile: Profile,
    master: str,
    partitions: int | None,
    as_json: bool,
    source: str,
    target: str,
) -> None:
    """
    Replay a history, and write what each share partition has done, with a directory for each kind of rows.

    IN is a history, a directory of them, or a pattern.

    Exit code: 0 without differences, 1 with some, 2 if something cannot be read or written.
    """
    with _session(master, partitions, "replaying") as spark:
        from sharestate.spark import read_history, replay  # noqa: PLC0415 - needs an extra

        result = replay(read_history(spark, source), profile=profile).write(target)
        summary = _summary(result)
    if as_json:
        click.echo(write_json({"history_replay": REPORT_VERSION, **summary.to_json()}))
    else:
        print_summary(summary)
    context.exit(1 if summary.rows["difference"] else 0)


@spark_group.command("rebuild")
@click.option(
    "--profile",
    "profile_name",
    type=click.Choice(list(COORDINATOR_PROFILES)),
    default=COORDINATOR_4_3.name,
    show_default=True,
    help="The release by whose rules state batches are combined.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["segments", "parquet"]),
    default="segments",
    show_default=True,
    help="What IN is: log segments of the state topic, or Parquet with the columns of Spark's Kafka source.",
)
@_options
@_source
@_target
def rebuild_command(  # noqa: PLR0913 - one parameter for each option
    *,
    profile_name: str,
    format_: str,
    master: str,
    partitions: int | None,
    as_json: bool,
    source: str,
    target: str,
) -> None:
    """
    Rebuild the state of every share partition from the records of the state topic.

    Writes the tables states and health into OUT.

    Exit code: 0, or 2 if something cannot be read or written.
    """
    with _session(master, partitions, "rebuilding") as spark:
        from sharestate.spark import health_table, rebuild_state, register  # noqa: PLC0415 - needs an extra

        register(spark)
        name = "share_group_state" if format_ == "segments" else format_
        records = spark.read.format(name).load(source)
        profile = COORDINATOR_PROFILES[profile_name]
        rebuild_state(records, profile=profile).write.parquet(f"{target}/states")
        health_table(records, profile=profile).write.parquet(f"{target}/health")
        health = spark.read.parquet(f"{target}/health")
        counts = {
            "share_partitions": health.count(),
            "stuck": health.where("is_stuck").count(),
            "blocking_pruning": health.where("blocks_pruning").count(),
        }
    _print_counts(counts, as_json=as_json)


@spark_group.command("tables")
@_options
@_source
@_target
def tables_command(*, master: str, partitions: int | None, as_json: bool, source: str, target: str) -> None:
    """
    Write tables of what has become of records: deliveries, causes, times, rates.

    IN is what 'spark replay' has written, or 'history replay' with transitions. Each table is a directory in OUT.

    Exit code: 0, or 2 if something cannot be read or written.
    """
    with _session(master, partitions, "analyzing") as spark:
        from sharestate.spark import ReplayResult  # noqa: PLC0415 - needs an extra
        from sharestate.spark.analysis import write_tables  # noqa: PLC0415 - as above

        tables = write_tables(ReplayResult.read(spark, source), target)
        counts = {name: table.count() for name, table in tables.items()}
    _print_counts(counts, as_json=as_json)


# ---- summaries


def _summary(result: ReplayResult) -> ReplaySummary:
    summary = ReplaySummary()
    metrics = result.metrics()
    summary.share_partitions = metrics.select("group_id", "topic_id", "partition").distinct().count()
    summary.metrics.update(_sums(metrics.groupBy("name").agg({"value": "sum"})))
    summary.rows.update(_sums(result.rows.groupBy("kind").count()))
    summary.events = sum(count for name, count in summary.metrics.items() if name.startswith("events."))
    return summary


def _sums(table: DataFrame) -> dict[str, int]:
    return {name: count for name, count in table.collect()}  # noqa: C416 - rows are no pairs to a type checker


def _print_counts(counts: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        click.echo(write_json(counts))
        return
    table = Table("what", "how many")
    table.columns[1].justify = "right"
    for name, count in counts.items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    Console(highlight=False).print(table)


# ---- Spark


@contextmanager
def _session(master: str, partitions: int | None, what: str) -> Iterator[SparkSession]:
    """Start Spark, show how far it is, and stop it; what goes wrong ends the command with one line."""
    with tempfile.TemporaryDirectory(prefix="sharestate-") as directory, _one_line(Path(directory)):
        spark = _start(master, partitions, Path(directory))
        try:
            with _progress(spark, what):
                yield spark
        finally:
            spark.stop()


def _start(master: str, partitions: int | None, directory: Path) -> SparkSession:
    import sharestate.spark  # noqa: PLC0415 - needs an extra

    _ = sharestate.spark.replay  # which says what is missing, if it is
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        message = "Spark needs a JDK, 17 or 21: there is no java on the path, and JAVA_HOME is not set"
        raise NoVerdict(message)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would take the first python3 on the path
    is_local = master.startswith("local")
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "SPARK_CONF_DIR" not in os.environ:
        (directory / "log4j2.properties").write_text(_LOGGING)
        os.environ["SPARK_CONF_DIR"] = str(directory)
    with _stderr_to(directory / "stderr"):
        spark = SparkSession.builder.master(master).appName("sharestate").config(map=_SETTINGS).getOrCreate()
    tasks = partitions or (2 * spark.sparkContext.defaultParallelism if is_local else None)
    if tasks is not None:
        spark.conf.set("spark.sql.shuffle.partitions", tasks)
    return spark


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Let processes that are started have *file* as their standard error: Spark writes there what is no news."""
    kept = os.dup(2)
    with file.open("wb") as opened:
        os.dup2(opened.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _one_line(directory: Path) -> Iterator[None]:
    """End the command with the cause of an error, without the tracebacks of two languages around it."""
    try:
        yield
    except click.ClickException:
        raise
    except (ShareStateError, ModuleNotFoundError) as error:
        raise NoVerdict(str(error)) from error
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise NoVerdict(_cause(str(error)) or _last_line(directory / "stderr")) from error


def _cause(text: str) -> str:
    r"""
    Return the cause in the message of an error of Spark's.

    >>> _cause("Traceback (most recent call last):\n  File ...\nsharestate.errors.HistoryOrderError: seq: 3 again\n")
    'seq: 3 again'
    >>> _cause("[PATH_ALREADY_EXISTS] Path file:/out already exists. SQLSTATE: 42K04")
    'Path file:/out already exists.'
    """
    causes = _ERROR.findall(text)
    if causes:
        return str(causes[-1][1])
    first = text.strip().partition("\n")[0]
    return re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+$", "", first)


def _last_line(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(errors="replace").strip().rpartition("\n")[2]
    return "Spark did not start"


# ---- progress


@contextmanager
def _progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Show the stages that Spark is at, on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"))
    is_done = Event()
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        watcher = Thread(target=_watch, args=(spark, bar, what, is_done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            is_done.set()
            watcher.join()


def _watch(spark: SparkSession, bar: Progress, what: str, is_done: Event) -> None:
    task = bar.add_task(what, total=None, rows="")
    while not is_done.wait(_REFRESHED_S):
        with suppress(Exception):  # a job must not fail because nobody can see how far it is
            for stage in _active_stages(spark):
                read = stage.inputRecords() + stage.shuffleReadRecords()
                bar.update(
                    task,
                    description=f"{what}, stage {stage.stageId()}",
                    completed=stage.numCompleteTasks(),
                    total=stage.numTasks(),
                    rows=f"{stage.numCompleteTasks()} of {stage.numTasks()} tasks, {read:,} rows read",
                )


def _active_stages(spark: SparkSession) -> Iterable[Any]:
    """Return the stages that are running, as Spark's own status has them; a session on Spark Connect has none."""
    stages = spark.sparkContext._jsc.sc().statusStore().activeStages()  # noqa: SLF001 - PySpark has no name for it
    return [stages.apply(index) for index in range(stages.size())]
