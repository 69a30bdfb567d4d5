"""The command ``conform``: whether another implementation, or a broker, follows the rules, by what Kafka answered."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource
from rich.text import Text

from sharestate.cli.conversation_options import level_option
from sharestate.cli.exits import NoVerdict
from sharestate.cli.progress import tables
from sharestate.cli.state import settings_option
from sharestate.cli.tables import Cell, print_rows
from sharestate.conformance import (
    Conformance,
    ConformanceVerdict,
    FailedVector,
    RuleConformance,
    Vectors,
    badge_svg,
    conform,
    read_scripts,
    read_vectors,
    shields_json,
)
from sharestate.conformance.running import LIMIT_S
from sharestate.conversation import Level
from sharestate.errors import ExternalError, MalformedInputError, ResponseFormatError, UnreadableFileError
from sharestate.json_lines import printable, write_json
from sharestate.state_topic.client_settings import client_settings
from sharestate.testing.search.command import PeerDiedError
from sharestate.testing.search.progress import bar_of

_STYLES: Final = {ConformanceVerdict.PASSED: "green", ConformanceVerdict.FAILED: "bold red"}
_CODES: Final = {ConformanceVerdict.PASSED: 0, ConformanceVerdict.FAILED: 1, ConformanceVerdict.UNJUDGED: 2}
_FILE: Final = click.Path(dir_okay=False, path_type=Path)


@click.command("conform")
@click.option(
    "--bootstrap", "servers", metavar="HOST:PORT", help="A broker to judge, or several of a cluster with commas."
)
@settings_option
@level_option
@click.option("--release", metavar="VERSION", help="The release of Kafka to follow; by default the latest one.")
@click.option(
    "--vectors",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Other vectors than those that come with the library; with --bootstrap, other scripts.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=LIMIT_S,
    show_default=True,
    help="How long to ask at most; what was not asked then is not judged.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option("--html", "page", type=_FILE, metavar="FILE", help="Write a page for a browser, too.")
@click.option(
    "--badge",
    type=_FILE,
    metavar="FILE",
    help="Write a badge, too: a picture, or for shields.io if it ends with .json.",
)
@click.argument("command", nargs=-1, metavar="[COMMAND...]", type=click.UNPROCESSED)
@click.pass_context
def conform_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    servers: str | None,
    settings_path: Path | None,
    level: Level,
    release: str | None,
    file: Path | None,
    seconds: float,
    as_json: bool,
    page: Path | None,
    badge: Path | None,
    command: tuple[str, ...],
) -> None:
    """
    Judge another implementation or a broker, rule by rule, by what Kafka answered.

    COMMAND runs an implementation: a program that reads a request of the line protocol from each line of its standard
    input, and answers with a line. Write -- before it. It is asked recorded conversations; a rule of docs/rules.md
    passes if the answers in all its conversations are those of Kafka, and is not supported if the program says so
    ({"bad_request": ...}, or the result {"unsupported": ...}).

    With --bootstrap members of share groups carry out scripts at a broker (extras kafka and segments), in topics and
    groups of their own, which are deleted afterwards: do not do that in production. It takes a minute, and the longer
    the shortest lock that the broker permits, the longer: about four minutes with Kafka's 15 s.

    \b
    Try it:
      sharestate conform --release 4.3.1 -- sharestate serve --profile kafka-4.3
      sharestate conform --bootstrap localhost:9092

    Exit code: 0 if all supported rules pass, 1 if one fails, 2 if not all was asked or nothing is supported, the
    program cannot be run or the broker be reached, or something cannot be read or written.
    """  # noqa: D301 - the control character is for click: it keeps the example's lines as they are
    if bool(command) == (servers is not None):
        message = "Name either a COMMAND or --bootstrap."
        raise click.UsageError(message)
    if servers is not None and context.get_parameter_source("level") is not ParameterSource.DEFAULT:
        message = "--level is about a COMMAND; of a broker all that is answered is compared."
        raise click.UsageError(message)
    if servers is None and settings_path is not None:
        message = "--command-config needs --bootstrap."
        raise click.UsageError(message)
    try:
        index = read_vectors(file) if servers is None else read_scripts(file)
        chosen = _release(index, release)
        with bar_of(len(index.of(chosen))) as show:
            found = (
                conform(command, index, chosen, level=level, limit_s=seconds, watch=lambda n: show(n, "vectors"))
                if servers is None
                else _of_cluster(settings_path)(
                    servers, index, chosen, limit_s=seconds, watch=lambda n: show(n, "scripts")
                )
            )
    except (MalformedInputError, UnreadableFileError, PeerDiedError, ModuleNotFoundError, ExternalError) as error:
        raise NoVerdict(str(error)) from error
    except ResponseFormatError as error:
        message = f"{servers}: what it says is no answer of a broker: {error}"
        raise NoVerdict(message) from error
    except FileNotFoundError as error:
        message = f"{error.filename}: {error.strerror}"
        raise NoVerdict(message) from error
    except OSError as error:
        message = f"{servers}: {error.strerror or error}"
        raise NoVerdict(message) from error
    _write(found, servers or shlex.join(command), page, badge)
    if as_json:
        click.echo(write_json(found.to_json()))
    else:
        _print(found)
    context.exit(_CODES[found.verdict])


def _release(index: Vectors, release: str | None) -> str:
    """Return the release to follow: the given one, the last one of its line if it is given as 4.3, or the latest."""
    chosen = release or index.releases[-1]
    line = [each for each in index.releases if each == chosen or each.startswith(f"{chosen}.")]
    if not line:
        message = f"there are vectors of {', '.join(index.releases)}, and not of {chosen}."
        raise click.BadParameter(message, param_hint="--release")
    return line[-1]


def _of_cluster(settings_path: Path | None) -> Callable[..., Conformance]:
    from sharestate.conformance.brokers import conform_cluster  # noqa: PLC0415 - needs extras
    from sharestate.conformance.brokers.client_security import security_of  # noqa: PLC0415 - as above

    security = None if settings_path is None else security_of(client_settings(settings_path))
    return partial(conform_cluster, security=security)


def _write(found: Conformance, title: str, page: Path | None, badge: Path | None) -> None:
    if page is not None:
        from sharestate.report import conformance_page  # noqa: PLC0415 - loaded where a page is asked for

        page.write_text(conformance_page(found, title=title), encoding="utf-8", newline="\n")
    if badge is not None:
        text = f"{write_json(shields_json(found))}\n" if badge.suffix == ".json" else badge_svg(found)
        badge.write_text(text, encoding="utf-8", newline="\n")


def _print(found: Conformance) -> None:
    rows: list[list[Cell]] = [
        [
            rule.number or "none",
            rule.heading,
            Text(rule.verdict.value, style=_STYLES.get(rule.verdict, "")),
            *(str(rule.counts[verdict]) for verdict in ConformanceVerdict),
        ]
        for rule in found.rules
        if rule.counts.total()
    ]
    print_rows(tables(), ("rule", "about", "verdict", "passed.", "failed.", "not supported.", "not judged."), rows)
    for line in _lines(found):
        click.echo(printable(line))


def _lines(found: Conformance) -> Iterator[str]:
    for rule in found.rules:
        if rule.shortest is not None:
            yield from _failure(rule, rule.shortest)
    yield ""
    yield from (f"Rule {rule.number} is {rule.verdict.value}: {rule.reason}." for rule in found.rules if rule.reason)
    bare = [rule.number for rule in found.rules if rule.number and not rule.counts.total() and rule.reason is None]
    if bare:
        yield f"No vector shows the rules {', '.join(bare)}."
    if found.accidents:
        alike = sum(each.verdict is ConformanceVerdict.PASSED for each in found.accidents)
        yield f"{alike} of {len(found.accidents)} accidents of Kafka (rule 24.2) are answered alike; nobody has to."
    if found.limit is not None:
        yield f"Not all vectors were asked: {found.limit}."
    yield f"{found.verdict.value}: {found.summary}"


def _failure(rule: RuleConformance, shortest: FailedVector) -> Iterator[str]:
    yield ""
    yield f"Rule {rule.number or 'not known'} fails, at the shortest in {shortest.name}:"
    for request, response in shortest.exchanges:
        yield f"  > {write_json(request)}"
        if shortest.got is not None and request is not shortest.exchanges[-1][0]:
            yield f"  < {write_json(response)}"
    if shortest.got is not None:
        yield f"  < {write_json(shortest.got)}, where {shortest.source} answered"
        yield f"    {write_json(shortest.exchanges[-1][1])}"
    yield from (f"  {difference}" for difference in shortest.differences)
