"""The command ``broker``: a broker for tests in other languages, and for trying things out."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sharestate.cli.exits import NoVerdict
from sharestate.cli.options import any_profile_option
from sharestate.errors import ShareStateError
from sharestate.history import Event, HistoryWriter
from sharestate.json_lines import printable
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.profiles import Profile

if TYPE_CHECKING:
    from sharestate.broker.server import TestBroker

_TYPES: Final = {each.value: each.name for each in AcknowledgeType}

_MOST_TYPES: Final = 4
"""The most acknowledgements that a line has. [ranges]"""


def _settings(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            message = f"{each!r} is not of the form KEY=VALUE."
            raise click.BadParameter(message)
        settings[name] = value
    return settings


@click.command("broker")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; one that is free without it.")
@any_profile_option
@click.option(
    "--config",
    "properties",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A server.properties; what is not about share groups may be in it, and is left out.",
)
@click.option(
    "--set", "settings", multiple=True, callback=_settings, metavar="KEY=VALUE", help="A setting; more may follow."
)
@click.option("--quick", is_flag=True, help="Settings with which members have their partitions at once, and stay.")
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.sqlite",
    help="Keep the state of share partitions in a new file, to look at; records and groups are in memory.",
)
@click.option(
    "--history",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what happens to share partitions as a history: FILE.jsonl, .jsonl.gz or .parquet.",
)
@click.option(
    "--request-log",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write requests with their answers, as Kafka's request log does, for 'sharestate log import'.",
)
@click.option(
    "--segments",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the logs of topics in the end, for the same.",
)
@click.option("--standing-clock", is_flag=True, help="Let time stand until the control port moves it.")
@click.option(
    "--control-port", type=click.IntRange(0, 65535), help="Take commands at this port; 0 for one that is free."
)
@click.option("--seed", type=int, default=0, help="Decides what is left to chance in faults.")
@click.option("--quiet", is_flag=True, help="Print the addresses, and no events.")
def broker_command(  # noqa: PLR0913 - one parameter for each option
    *,
    port: int,
    profile: Profile,
    properties: Path | None,
    settings: Mapping[str, str],
    quick: bool,
    state: Path | None,
    history: Path | None,
    request_log: Path | None,
    segments: Path | None,
    standing_clock: bool,
    control_port: int | None,
    seed: int,
    quiet: bool,
) -> None:
    """
    Be a broker on this computer, for tests in any language, until Ctrl-C or SIGTERM.

    The first line is HOST:PORT, for bootstrap.servers, and comes when clients can connect. With --control-port the
    second is "control HOST:PORT". Then comes a line for whatever happens to records.

    Topics, records and groups are in memory, and gone in the end. Only programs of this computer can connect.

    Exit code: 0, or 2 if it cannot begin.
    """
    try:
        with ExitStack() as stack:
            from sharestate.broker.server import QUICK_SETTINGS, StandingClock, TestBroker  # noqa: PLC0415 - an extra

            config = {**(QUICK_SETTINGS if quick else {}), **_file_settings(properties), **settings}
            logging.basicConfig(format="%(message)s", stream=sys.stderr)
            say = _Lines(quiet=quiet)
            broker = TestBroker(
                profile=profile,
                config=config,
                port=port,
                clock=StandingClock() if standing_clock else None,
                persister=None if state is None else stack.enter_context(_stored_in(state, profile)),
                observer=HistoryWriter(say.events),
                seed=seed,
                history_file=history,
                request_log=request_log,
            )
            asyncio.run(_serve(broker, control_port, say))
            if segments is not None:
                broker.write_segments(segments)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"kio", "aiokafka", "cramjam", "xxhash"}:
            raise
        raise NoVerdict(str(error)) from error
    except OSError as error:
        message = f"cannot begin: {error.strerror or error}"
        raise NoVerdict(message) from error
    except ShareStateError as error:
        raise NoVerdict(str(error)) from error


def _file_settings(properties: Path | None) -> Mapping[str, str]:
    from sharestate.broker_log.server_properties import read_server_properties  # noqa: PLC0415 - needs an extra

    return {} if properties is None else read_server_properties(properties)


def _stored_in(path: Path, profile: Profile) -> Any:  # noqa: ANN401 - a class that is loaded only then
    from sharestate.broker.node.share_broker import coordinator_profile  # noqa: PLC0415 - needs an extra
    from sharestate.coordinator import SqliteLog  # noqa: PLC0415 - only if it is asked for
    from sharestate.persister import SqlitePersister, ThreadedPersister  # noqa: PLC0415 - as above

    with closing(SqliteLog(path)) as log:
        has_state = log.offsets().end > 0
    if has_state:  # its topics had the ids that those of this broker will have
        message = (
            f"{path} has the state of an earlier broker, whose topics, records and groups are gone: use a new file"
        )
        raise NoVerdict(message)
    return ThreadedPersister(SqlitePersister, path, profile=coordinator_profile(profile))


async def _serve(broker: TestBroker, control_port: int | None, say: _Lines) -> None:
    """Be the broker until a signal comes, or nobody reads the lines any more."""
    from sharestate.broker.server.control import ControlPort  # noqa: PLC0415 - needs an extra

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, say.closed.set)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(broker)
        say.topic = lambda topic_id: broker.run(lambda node: node.topics.name_of(topic_id)) or topic_id
        lines = [broker.bootstrap_servers]
        if control_port is not None:
            control = ControlPort(broker, control_port)
            await control.start()
            stack.push_async_callback(control.stop)
            lines.append(f"control 127.0.0.1:{control.port}")
        say.lines(lines)
        await say.closed.wait()


# ---- lines


class _Lines:
    """
    Prints lines as long as somebody reads them.

    Attributes:
        closed: Set when nobody reads them any more, or the command is to end.
        topic: Returns the name of a topic.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.closed = asyncio.Event()
        self.topic: Callable[[str], str] = str
        self._is_quiet = quiet

    def events(self, events: Sequence[Event]) -> None:
        """Print a line for each of *events* that says something of records."""
        if not self._is_quiet:
            self.lines(filter(None, map(self._line, events)))

    def lines(self, lines: Iterable[str]) -> None:
        """Print *lines*, which name what clients have named."""
        try:
            for line in lines:
                print(printable(line), flush=True)  # noqa: T201 - what the command is for
        except OSError:
            self.closed.set()

    def _line(self, event: Event) -> str | None:
        what = _said(event)
        if what is None:
            return None
        at = datetime.fromtimestamp((event.at_us or 0) / 1_000_000, UTC).strftime("%H:%M:%S.%f")[:-3]
        return f"{at} {event.group_id} {self.topic(event.topic_id)}-{event.partition}: {what}"


def _said(event: Event) -> str | None:
    """Return what *event* says of records; None if that is nothing."""
    request, response = event.request or {}, event.response or {}
    error = response.get("error")
    failed = f": {error}" if error else ""
    said = _OTHERS.get(event.kind)
    match event.kind:
        case "fetch":
            ranges = [
                f"{_range(first, last)} (delivery {count})" for first, last, count in response.get("acquired", ())
            ]
            said = f"{event.member_id} acquired {', '.join(ranges)}" if ranges else None
        case "acknowledge":
            acknowledged = "; ".join(_shortened(_acknowledged(request["batches"])))
            said = f"{event.member_id} acknowledged {acknowledged}{failed}"
        case "close":
            said = f"the session of {event.member_id} is closed"
        case "write" if error:
            said = f"a write of the state has failed{failed}"
        case "initialize":
            said = f"a leader could not read the state{failed}" if error else "a leader has read the state"
        case "dead_letter":
            said = f"dead letters of {_range(request['first'], request['last'])}{failed}"
        case _:
            pass
    return said


_OTHERS: Final = {
    "expire": "an acquisition lock has expired",
    "fence": "its leader leads no longer",
    "log_start": "the log start has moved",
}


def _acknowledged(batches: Iterable[Any]) -> Iterator[str]:
    for batch in batches:
        types = dict.fromkeys(_TYPES.get(each, str(each)) for each in batch.acknowledge_types)
        yield f"{_range(batch.first_offset, batch.last_offset)} {'/'.join(types)}"


def _shortened(items: Iterable[str]) -> list[str]:
    shown = list(items)
    more = len(shown) - _MOST_TYPES
    return [*shown[:_MOST_TYPES], *([f"and {more} more"] if more > 0 else [])]


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
