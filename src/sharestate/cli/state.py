"""The commands of ``state``: what is in the state topic, of files or of a live cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, track

from sharestate.cli.exits import NoVerdict
from sharestate.cli.partition_choice import group_option, listed_keys, partition_option, topic_option
from sharestate.cli.state_tables import print_topic, record_lines
from sharestate.coordinator import COORDINATOR_4_3, COORDINATOR_PROFILES
from sharestate.errors import ExternalError, ShareStateError, UnreadableFileError
from sharestate.explain import explain_stored, stored_lives
from sharestate.json_lines import printable, write_json
from sharestate.state_topic import (
    RebuiltPartition,
    StateTopic,
    StateTopicFile,
    TopicRecord,
    decoded_form,
    state_topic_files,
)
from sharestate.state_topic.files import json_text
from sharestate.state_topic.rebuild import in_log_order
from sharestate.values.records import SharePartitionKey

if TYPE_CHECKING:
    from sharestate.state_topic.cluster import Cluster

STUCK_AFTER: Final = 10
"""The number of changes after which an SPSO that has not moved is shown as stuck. [records]"""

DELIVERY_COUNT_LIMIT: Final = 5
"""``group.share.delivery.count.limit``, as brokers have it by default. [deliveries]"""

_REFRESHED_AFTER: Final = 1000
"""The number of records that are read before progress is shown again. [records]"""

PATH: Final = click.Path(exists=True, allow_dash=True)

files_argument = click.argument("paths", metavar="[FILE_OR_DIR...]", nargs=-1, type=PATH)
servers_option = click.option(
    "--bootstrap", "servers", metavar="HOST:PORT", help="A broker of a live cluster, or several with commas."
)
settings_option = click.option(
    "--command-config",
    "settings_path",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Settings of its client, such as security.protocol=SASL_SSL, in the names of librdkafka.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of tables.")


@click.group("state")
def state_group() -> None:
    """
    Look into the topic __share_group_state.

    Takes JSON lines with "key" and "value" in base64, and "statePartition", "offset" and "timestamp" if there are any,
    also compressed with gzip; - is standard input. Also takes log segments, a partition's directory of segments, or a
    directory of such directories, as a broker has them; these need the extra 'segments'. A live cluster needs the
    extra 'consumer'.
    """


@state_group.command("decode", short_help="Show every record of the topic.")
@servers_option
@settings_option
@json_option
@files_argument
def decode_command(*, servers: str | None, settings_path: Path | None, as_json: bool, paths: tuple[str, ...]) -> None:
    """
    Show every record of the topic: of files, or with --bootstrap of a live cluster.

    With --json, a record is a line, in the names of Kafka.

    Exit code: 0 at the end of the input, 2 if something cannot be read or written.
    """
    if paths and servers is not None:
        message = "Records are read from files or with --bootstrap, not from both."
        raise click.UsageError(message)
    is_redirected = sys.stdout is not None and not sys.stdout.isatty()
    with _opened(servers, settings_path, paths) as cluster:
        names = {} if as_json else topic_names(cluster, paths)
        if cluster is not None:
            _print_records(_logged(cluster, shows_progress=is_redirected), names, as_json=as_json)
        else:
            with _reading(paths, shows_progress=is_redirected) as (files, progress):
                _print_records((each for file in files for each in progress.read(file)), names, as_json=as_json)


def _print_records(logged: Iterable[TopicRecord], names: Mapping[str, str], *, as_json: bool) -> None:
    records = ((each, each.decode()) for each in logged)
    if as_json:
        _print(write_json(decoded_form(record)) for _, record in records)
    else:
        console = Console()
        _print(record_lines(records, names, console.width if console.is_terminal else None))


profile_option = click.option(
    "--profile",
    "profile_name",
    type=click.Choice(list(COORDINATOR_PROFILES)),
    default=COORDINATOR_4_3.name,
    show_default=True,
    help="The release by whose rules state batches are combined.",
)
limit_option = click.option(
    "--delivery-limit",
    type=click.IntRange(min=1),
    metavar="DELIVERIES",
    help="The groups' delivery count limit: records with one delivery left, or none, are counted. A cluster is asked;"
    " else 5 is assumed.",
)
_LIMITS: Final = MappingProxyType(
    {"share.delivery.count.limit": "delivery_count_limit", "share.partition.max.record.locks": "max_record_locks"}
)


def limits_of(configs: Mapping[str, str], **given: int | None) -> dict[str, int]:
    """Return the limits of a group that are *given*, and those besides that a cluster says in its settings."""
    found = {field: int(configs[name]) for name, field in _LIMITS.items() if configs.get(name, "").isdecimal()}
    return found | {name: value for name, value in given.items() if value is not None}


def _delivery_limit(configs: Mapping[str, str], given: int | None) -> int:
    return limits_of(configs, delivery_count_limit=given).get("delivery_count_limit", DELIVERY_COUNT_LIMIT)


@state_group.command("rebuild", short_help="Show the state of every share partition.")
@profile_option
@limit_option
@click.option(
    "--stuck-after",
    type=click.IntRange(min=1),
    default=STUCK_AFTER,
    show_default=True,
    metavar="CHANGES",
    help="How many changes an SPSO has to stay where it is, with terminal records waiting behind it, to be stuck.",
)
@servers_option
@settings_option
@json_option
@files_argument
def rebuild_command(  # noqa: PLR0913 - one parameter for each option
    *,
    profile_name: str,
    delivery_limit: int | None,
    stuck_after: int,
    servers: str | None,
    settings_path: Path | None,
    as_json: bool,
    paths: tuple[str, ...],
) -> None:
    """
    Show the state of every share partition that the records add up to.

    Besides, shows what keeps the topic from being pruned, the groups' share of it, and which share partitions may need
    attention. With --json, a share partition is a line, and that is all.

    With --bootstrap the lag of each share partition is shown, and if no file is named, the topic is read from there.
    The leaders of share groups do not notice it: nothing is read as they do it, which would fence them.

    Exit code: 0, or 2 if something cannot be read or written.
    """
    topic = StateTopic(COORDINATOR_PROFILES[profile_name])
    ends, names, configs = read_topic(topic, servers, settings_path, paths, asks_configs=not as_json)
    if as_json:
        documents = (
            _named(each.to_json(), each.key, names) | _log_end(each, ends) for each in topic.share_partitions()
        )
        _print(map(write_json, documents))
    else:
        groups = {each.key.group_id for each in topic.share_partitions()}
        limits = {group_id: _delivery_limit(configs.get(group_id, {}), delivery_limit) for group_id in groups}
        print_topic(topic, limits, stuck_after, ends, names)


class AroundTopic(NamedTuple):
    """
    What is known besides the records of the state topic.

    Attributes:
        log_ends: Where the logs of its share partitions end; None if no cluster was asked.
        names: The names of topics by their ids.
        configs: The settings of groups, as far as a cluster was asked, and says them.
    """

    log_ends: Mapping[SharePartitionKey, int] | None
    names: dict[str, str]
    configs: Mapping[str, Mapping[str, str]]


def read_topic(
    topic: StateTopic,
    servers: str | None,
    settings_path: Path | None,
    paths: tuple[str, ...],
    *,
    asks_configs: bool = False,
) -> AroundTopic:
    """
    Read what a live cluster has of the state topic, or files; the command ends if that is not possible.

    Returns:
        What is known besides; the settings of groups only if *asks_configs*.
    """
    with _opened(servers, settings_path, paths) as cluster:
        if cluster is not None and not paths:
            for logged in _logged(cluster):
                topic.add(logged)
        else:
            with _reading(paths) as (files, progress):
                topic.read(files, progress.read)
        names = topic_names(cluster, paths)
        if cluster is None:
            return AroundTopic(None, names, {})
        keys = [each.key for each in topic.share_partitions()]
        configs = _configs(cluster, {key.group_id for key in keys}) if asks_configs else {}
        return AroundTopic(cluster.log_end_offsets(keys), names, configs)


def _configs(cluster: Cluster, group_ids: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the settings of groups, as far as a cluster says them; where it says none at all, the reason is shown."""
    try:
        return cluster.group_configs(sorted(group_ids), passes_over=True)
    except ExternalError as error:
        click.echo(f"the settings of groups are not known, and Kafka's defaults are assumed: {error}", err=True)
        return {}


@state_group.command("explain", short_help="Show what the topic says of one record.")
@click.option("--offset", type=click.IntRange(min=0), help="The record; that at the SPSO without one.")
@group_option
@topic_option
@partition_option
@profile_option
@limit_option
@servers_option
@settings_option
@json_option
@files_argument
def explain_command(  # noqa: PLR0913 - one parameter for each option
    *,
    offset: int | None,
    group_id: str | None,
    topic: str | None,
    partition: int | None,
    profile_name: str,
    delivery_limit: int | None,
    servers: str | None,
    settings_path: Path | None,
    as_json: bool,
    paths: tuple[str, ...],
) -> None:
    """
    Explain what the state topic says of a record, and what it cannot say.

    What was stored of it when, as far as the topic still has it, and where it stands for a leader that would read the
    state now. Who holds it is in no record of the topic: that takes a request log, and 'log explain'. Without the
    options that name them, all share partitions. With --json, a share partition is a line.

    Exit code: 0, or 2 if something cannot be read, or no such share partition is stored.
    """
    rebuilt = StateTopic(COORDINATOR_PROFILES[profile_name])
    with _opened(servers, settings_path, paths) as cluster, ExitStack() as stack:
        names = topic_names(cluster, paths)

        def is_wanted(key: SharePartitionKey) -> bool:
            known = {key.topic_id, names.get(key.topic_id)}
            return group_id in {None, key.group_id} and topic in {None, *known} and partition in {None, key.partition}

        if cluster is not None and not paths:
            records = _logged(cluster)
        else:
            files, progress = stack.enter_context(_reading(paths))
            records = in_log_order(files, progress.read)
        lives = stored_lives(rebuilt, records, offset, is_wanted)
        found = [each for each in rebuilt.share_partitions() if is_wanted(each.key)]
        ends = {} if cluster is None else cluster.log_end_offsets(each.key for each in found)
        configs = {} if cluster is None else _configs(cluster, {each.key.group_id for each in found})
    if not found:
        keys = [(each.key.group_id, each.key.topic_id, each.key.partition) for each in rebuilt.share_partitions()]
        message = f"no such share partition is stored; there are: {listed_keys(keys, names)}"
        raise NoVerdict(message)
    explained = [
        explain_stored(
            each,
            lives.get(each.key),
            offset,
            delivery_count_limit=_delivery_limit(configs.get(each.key.group_id, {}), delivery_limit),
            log_end_offset=ends.get(each.key),
        )
        for each in found
    ]
    if as_json:
        _print(write_json(_named(each.to_json(), each.rebuilt.key, names)) for each in explained)
        return
    for each in explained:
        key = each.rebuilt.key
        title = f"Partition {key.partition} of topic {names.get(key.topic_id, key.topic_id)}, group {key.group_id}"
        _print(map(printable, [title, "", *each.lines(), ""]))
    _print(explained[0].unsaid_lines())


def topic_names(cluster: Cluster | None, paths: Iterable[str]) -> dict[str, str]:
    """Return the names of topics by their ids, as a cluster has them, and a broker's directory that is read."""
    directories = [Path(path) for path in paths if Path(path).is_dir()]
    names = {}
    if directories:
        from sharestate.broker_log import TopicLogs  # noqa: PLC0415 - takes a while, and files do not need it

        names = TopicLogs(directories).topic_names()
    return names if cluster is None else names | cluster.topic_names()


def _named(document: dict[str, Any], key: SharePartitionKey, names: Mapping[str, str]) -> dict[str, Any]:
    """Return a document with the name of its topic, if that is known."""
    return document | ({"topic": names[key.topic_id]} if key.topic_id in names else {})


@contextmanager
def _opened(servers: str | None, settings_path: Path | None, paths: tuple[str, ...]) -> Iterator[Cluster | None]:
    """Connect to the cluster, if one is named; if there is nothing to read, or it does not answer, the command ends."""
    if not paths and servers is None:
        message = "Missing argument 'FILE_OR_DIR...', or --bootstrap."
        raise click.UsageError(message)
    if sys.stdout is None:
        message = "standard output is closed"
        raise NoVerdict(message)
    if servers is None:
        if settings_path is not None:
            message = "--command-config needs --bootstrap."
            raise click.UsageError(message)
        yield None
        return
    try:
        from sharestate.state_topic.cluster import Cluster, client_settings  # noqa: PLC0415 - needs an extra

        settings = None if settings_path is None else client_settings(settings_path)
        with Cluster(servers, settings) as cluster:
            yield cluster
    except (ShareStateError, ModuleNotFoundError) as error:
        raise NoVerdict(str(error)) from error


def _logged(cluster: Cluster, *, shows_progress: bool = True) -> Iterable[TopicRecord]:
    """Return the records that the topic has now in *cluster*, with a progress bar if standard error is a terminal."""
    offsets = cluster.state_offsets()
    console = Console(stderr=True)
    return track(
        cluster.remaining_records(offsets),
        "reading",
        sum(map(len, offsets.values())),
        console=console,
        transient=True,
        disable=not (shows_progress and console.is_terminal),
    )


def _log_end(rebuilt: RebuiltPartition, ends: Mapping[SharePartitionKey, int] | None) -> dict[str, int | None]:
    """Return the fields that only a cluster knows; none if none was asked."""
    if ends is None:
        return {}
    end = ends.get(rebuilt.key)
    return {"log_end_offset": end, "lag": None if end is None else rebuilt.lag(end)}


class _Reading:
    """Reads files, and shows how far it is on a terminal."""

    def __init__(self, files: list[StateTopicFile], bar: Progress) -> None:
        sizes = [file.size for file in files]
        self._bar = bar
        self._task = bar.add_task("reading", total=None if None in sizes else sum(filter(None, sizes)))
        self._done = 0

    def read(self, file: StateTopicFile) -> Iterator[TopicRecord]:
        """Yield the records of *file*."""
        for number, logged in enumerate(file):
            if number % _REFRESHED_AFTER == 0:
                self._bar.update(self._task, completed=self._done + file.position)
            yield logged
        self._done += file.position
        for tail in file.tails:
            click.echo(f"{tail}; what comes before has been read", err=True)


@contextmanager
def _reading(paths: Iterable[str], *, shows_progress: bool = True) -> Iterator[tuple[list[StateTopicFile], _Reading]]:
    """Open *paths*; what cannot be read ends the command."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    is_shown = shows_progress and console.is_terminal
    try:
        files = [file for path in paths for file in _files(path)]
        with Progress(*columns, console=console, transient=True, disable=not is_shown, redirect_stdout=False) as bar:
            yield files, _Reading(files, bar)
    except UnreadableFileError as error:
        raise NoVerdict(str(error)) from error
    except ModuleNotFoundError as error:  # the extra for segments
        raise NoVerdict(str(error)) from error


def _files(path: str) -> list[StateTopicFile]:
    if path != "-":
        return state_topic_files(Path(path))
    if sys.stdin is None:
        message = "standard input is closed"
        raise NoVerdict(message)
    data = BufferedReader(cast("RawIOBase", sys.stdin.buffer))  # to look at its beginning; any buffer will do
    if data.peek(1).startswith(b"\0"):
        message = "standard input: not JSON lines; log segments are read from files, whose names say the partition"
        raise NoVerdict(message)
    return [StateTopicFile("standard input", json_text(data))]


def _print(lines: Iterable[str]) -> None:
    """Print *lines* as they come; unlike click, without a flush after each."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
