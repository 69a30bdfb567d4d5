"""The commands ``spark import``, ``verify``, ``audit``, ``replay``, ``tables`` and ``rebuild``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

import click
from rich.console import Console
from rich.table import Table

from sharestate.cli.audit import audit_options, say_audit
from sharestate.cli.exits import exit_code_of
from sharestate.cli.history import REPORT_VERSION, print_summary
from sharestate.cli.options import history_profile_option
from sharestate.cli.request_logs import (
    import_options,
    redaction_key,
    say_what_is_assumed,
    say_what_times_are,
    say_what_was_imported,
    seconds_option,
)
from sharestate.cli.spark_job import spark_job
from sharestate.cli.state import servers_option, settings_option
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_PROFILES
from sharestate.history import ReplaySummary
from sharestate.history.columns import VERDICTS
from sharestate.history.files import is_parquet, open_history
from sharestate.json_lines import printable, write_json
from sharestate.values.profiles import Profile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sharestate.spark import ReplayResult
    from sharestate.spark.largest_partition import Size


def _run_options(command: Callable[..., None]) -> Callable[..., None]:
    master = click.option(
        "--master", default="local[*]", show_default=True, metavar="URL", help="Where Spark runs, as for spark-submit."
    )
    partitions = click.option(
        "--partitions",
        type=click.IntRange(min=1),
        metavar="TASKS",
        help="The tasks of a shuffle; on this machine twice as many as there are cores, unless given.",
    )
    return master(partitions(command))


def _options(command: Callable[..., None]) -> Callable[..., None]:
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
    return _run_options(as_json(command))


_source: Final = click.argument("source", metavar="IN")
_target: Final = click.argument("target", metavar="OUT")


@click.group("spark")
def spark_group() -> None:
    """
    Import and check request logs, replay histories and rebuild states on Spark (extra 'spark').

    IN and OUT are paths as Spark takes them, which every worker has to see. OUT is a new directory of Parquet files.
    Spark needs a JDK, 17 or 21.
    """


@spark_group.command("import", short_help="Make a history of brokers' request logs.")
@click.option(
    "--segments",
    multiple=True,
    metavar="DIR",
    help="A broker's log directory, or a copy of it; can be given for each broker, in any order. Without any, nothing"
    " that was acquired can be checked.",
)
@import_options
@_run_options
@click.option("-o", "--output", "target", required=True, metavar="OUT", help="The history.")
@click.argument("logs", metavar="LOGS...", nargs=-1, required=True)
def import_command(  # noqa: PLR0913 - one parameter for each option
    *,
    segments: tuple[str, ...],
    properties: tuple[Path, ...],
    group_configs: tuple[Path, ...],
    group_id: str | None,
    profile: str | None,
    field: str | None,
    utc_offset_us: int | None,
    lenient: bool,
    redact: bool,
    master: str,
    partitions: int | None,
    target: str,
    logs: tuple[str, ...],
) -> None:
    """
    Make a history of the request logs of many brokers.

    LOGS are what the brokers of a cluster have logged: files, directories of rotated files or patterns, also
    compressed with gzip. OUT is a new directory of Parquet files, each of which is a history. Lines are read by many
    tasks, and put together by one.

    Exit code: 0, or 2 if something cannot be read or written.
    """
    with spark_job(master, partitions) as job, job.step("importing", "lines"):
        from sharestate.broker_log import read_all_properties, read_group_configs  # noqa: PLC0415 - needs an extra
        from sharestate.spark import import_logs  # noqa: PLC0415 - as above

        broker, disagreements = read_all_properties(properties)
        imported = import_logs(
            job.spark,
            logs,
            target,
            segments=segments,
            properties=broker,
            groups=read_group_configs(group_configs),
            group_id=group_id,
            profile=profile,
            field=field,
            utc_offset_us=utc_offset_us or 0,
            redaction_key=redaction_key(redact=redact),
            is_lenient=lenient,
        )
    say_what_was_imported(imported.counts, imported.broken, has_segments=bool(segments))
    say_what_times_are(
        lacks_offset=imported.counts["without_utc_offset"] > 0 and utc_offset_us is None,
        clock_changes=imported.clock_changes,
    )
    say_what_is_assumed(imported.assumed, disagreements)
    for offset in imported.clock_offsets:
        click.echo(f"The clocks of brokers disagree: {printable(offset)}.")


@spark_group.command("verify", short_help="Check brokers' logs against Kafka's rules.")
@seconds_option
@_options
@_source
@_target
@click.pass_context
def verify_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    seconds: float | None,
    master: str,
    partitions: int | None,
    as_json: bool,
    source: str,
    target: str,
) -> None:
    """
    Check that everything brokers sent or stored follows from Kafka's rules, and put the events in causal order.

    IN is what 'spark import' has written, or 'log import': a history, a directory of them, or a pattern. OUT is a new
    directory with history, which 'spark replay' takes, and the tables verdicts and findings. Each share partition is
    checked by one task, as by 'log verify'.

    Exit code: 0 if nothing contradicts, 1 if something does, 2 if it cannot be read, or something was given up.
    """
    with spark_job(master, partitions) as job:
        from sharestate.spark import read_history, verify  # noqa: PLC0415 - needs an extra

        with job.step("opening", "files"):
            events = read_history(job.spark, source)
        with job.step("checking", "events", _size(events)):
            verified = verify(events, target, seconds=seconds)
        with job.step("counting"):
            verdicts = _sums(verified.verdicts.groupBy("verdict").count())
            largest = verified.largest()
    say_what_was_checked(verdicts, largest, as_json=as_json)
    context.exit(exit_code_of(verdicts))


@spark_group.command("audit", short_help="Judge what clients of share groups wrote down.")
@audit_options
@_run_options
@click.argument("logs", metavar="LOGS...", nargs=-1, required=True)
@click.pass_context
def audit_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    /,
    *,
    group: str | None,
    log_format: str | None,
    as_json: bool,
    page: Path | None,
    master: str,
    partitions: int | None,
    logs: tuple[str, ...],
    **given: Any,  # noqa: ANN401 - the settings, by their names
) -> None:
    """
    Judge what clients of share groups wrote down, as 'audit' does.

    LOGS are files of operations. Each file is read by one task, and each topic partition judged by one.

    Exit code: 0 if all guarantees are held, 1 if one is broken, 2 if one is undecided, or if something cannot be read.
    """
    with spark_job(master, partitions) as job, job.step("judging", "operations"):
        from sharestate.audit import AuditSettings  # noqa: PLC0415 - loaded by this command only
        from sharestate.spark import audit_logs  # noqa: PLC0415 - needs an extra

        judged = audit_logs(job.spark, logs, AuditSettings(**given), group=group, log_format=log_format)
    context.exit(say_audit(judged, [Path(log).name for log in logs], as_json=as_json, page=page))


@spark_group.command("replay", short_help="Replay a history; write tables of what changed.")
@history_profile_option
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
    with spark_job(master, partitions) as job:
        from sharestate.spark import read_history, replay  # noqa: PLC0415 - needs an extra

        with job.step("opening", "files"):
            events = read_history(job.spark, source)
        with job.step("replaying", "events", _size(events)):
            result = replay(events, profile=profile).write(target)
        with job.step("counting"):
            summary = _summary(result)
    if as_json:
        click.echo(write_json({"history_replay": REPORT_VERSION, **summary.to_json()}))
    else:
        print_summary(summary)
    context.exit(1 if summary.rows["difference"] else 0)


@spark_group.command("rebuild", short_help="Rebuild states from the state topic's records.")
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
    help="What IN is: log segments, as it is unless given, or Parquet with the columns of Spark's Kafka source.",
)
@servers_option
@settings_option
@_options
@click.argument("sources", metavar="[IN]", nargs=-1)
@_target
def rebuild_command(  # noqa: PLR0913 - one parameter for each option
    *,
    profile_name: str,
    format_: str | None,
    servers: str | None,
    settings_path: Path | None,
    master: str,
    partitions: int | None,
    as_json: bool,
    sources: tuple[str, ...],
    target: str,
) -> None:
    """
    Rebuild the state of every share partition from the records of the state topic.

    Reads IN, or with --bootstrap the topic of a live cluster, which needs the extra 'spark-kafka'. Writes the tables
    states and health into OUT.

    Exit code: 0, or 2 if something cannot be read or written.
    """
    _judge_sources(sources, servers, settings_path, format_)
    with spark_job(master, partitions) as job:
        from sharestate.spark import health_table, rebuild_state  # noqa: PLC0415 - needs an extra

        with job.step("opening"):
            # Both tables are of the same records, although brokers delete some meanwhile, and those are read once.
            records = _records(job.spark, sources, format_, servers, settings_path).persist()
        profile = COORDINATOR_PROFILES[profile_name]
        with job.step("rebuilding", "records"):
            rebuild_state(records, profile=profile).write.parquet(f"{target}/states")
        with job.step("judging", "records"):
            health_table(records, profile=profile).write.parquet(f"{target}/health")
        with job.step("counting"):
            health = job.spark.read.parquet(f"{target}/health")
            counts = {
                "share_partitions": health.count(),
                "stuck": health.where("is_stuck").count(),
                "blocking_pruning": health.where("blocks_pruning").count(),
            }
    _print_counts(counts, as_json=as_json)


@spark_group.command("tables", short_help="Write tables of what became of records.")
@_options
@_source
@_target
def tables_command(*, master: str, partitions: int | None, as_json: bool, source: str, target: str) -> None:
    """
    Write tables of what has become of records: deliveries, causes, times, rates.

    IN is what 'spark replay' has written, or 'history replay' with transitions. Each table is a directory in OUT.

    Exit code: 0, or 2 if something cannot be read or written.
    """
    with spark_job(master, partitions) as job, job.step("making tables"):
        from sharestate.spark import ReplayResult  # noqa: PLC0415 - needs an extra
        from sharestate.spark.analysis import write_tables  # noqa: PLC0415 - as above

        tables = write_tables(ReplayResult.read(job.spark, source), target)
        counts = {name: table.count() for name, table in tables.items()}
    _print_counts(counts, as_json=as_json)


# ---- what is read


def _size(events: DataFrame) -> int | None:
    """Return how many events a frame has, if it reads Parquet files of this machine, whose ends say it."""
    files = list(map(urlsplit, events.inputFiles()))
    if not all(file.scheme == "file" and is_parquet(file.path) for file in files):
        return None
    size = 0
    for file in files:
        with open_history(url2pathname(file.path)) as history:
            size += history.size
    return size


def _judge_sources(
    sources: tuple[str, ...], servers: str | None, settings_path: Path | None, format_: str | None
) -> None:
    """End the command unless it is clear where records are to be read."""
    if len(sources) != (servers is None):
        message = "Expected IN and OUT, or --bootstrap and OUT."
        raise click.UsageError(message)
    if servers is None and settings_path is not None:
        message = "--command-config needs --bootstrap."
        raise click.UsageError(message)
    if servers is not None and format_ is not None:
        message = "--format describes IN and cannot be used with --bootstrap."
        raise click.UsageError(message)


def _records(
    spark: SparkSession, sources: tuple[str, ...], format_: str | None, servers: str | None, settings_path: Path | None
) -> DataFrame:
    """Return the records of the state topic."""
    from sharestate.spark import register  # noqa: PLC0415 - needs an extra

    if format_ == "parquet":
        return spark.read.parquet(*sources)
    register(spark)
    reader = spark.read.format("share_group_state")
    if servers is None:
        return reader.load(*sources)
    from sharestate.state_topic.cluster import client_settings  # noqa: PLC0415 - needs an extra

    settings = {} if settings_path is None else client_settings(settings_path)
    return reader.options(bootstrap=servers, **{f"kafka.{name}": value for name, value in settings.items()}).load()


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


def say_what_was_checked(verdicts: dict[str, int], largest: Size | None, *, as_json: bool) -> None:
    """
    Print how many share partitions have which verdict, and the one that has a large part of all events.

    Args:
        verdicts: How many share partitions there are of each verdict.
        largest: The share partition with the most events; None without any.
        as_json: Whether it is one JSON document.
    """
    hot = largest if largest is not None and largest.is_hot else None
    summary: dict[str, int] = {
        "share_partitions": sum(verdicts.values()),
        "events": 0 if largest is None else largest.all_events,
        **{each: verdicts[each] for each in VERDICTS if each in verdicts},
    }
    if as_json:
        named = None if hot is None else hot._asdict()
        click.echo(write_json({"spark_verify": REPORT_VERSION, "hot": named, **summary}))
    else:
        _print_counts(summary, as_json=False)
        if hot is not None:
            name = printable(f"{hot.group_id}, {hot.topic}-{hot.partition}")
            click.echo(f"{name} has {hot.events:,} of {hot.all_events:,} events, which one task has checked.")


def _print_counts(counts: dict[str, int], *, as_json: bool) -> None:
    if as_json:
        click.echo(write_json(counts))
        return
    table = Table("what", "how many")
    table.columns[1].justify = "right"
    for name, count in counts.items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    Console(highlight=False).print(table)
