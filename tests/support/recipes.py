"""What the documentation tells its readers to type, and the files that they have at hand then."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate
from tests.support.broker_answers import RUNS, brokers_of
from tests.support.protocol_pages import sections


class PageCommand(NamedTuple):
    """A command on a page, and what the page says that it prints."""

    text: str
    output: str


def commands(page: str, heading: str) -> list[PageCommand]:
    """Return the commands below a *heading* of a *page*, in order; lines that go on are put together."""
    return [
        PageCommand(*(each.partition("\n")[::2]))
        for block in re.findall(r"```console\n(.*?)```", sections(page)[heading], re.DOTALL)
        for each in block.replace(" \\\n    ", " ").split("$ ")[1:]
    ]


def run(text: str) -> Result:
    """Run a command ``sharestate ...`` in this process; patterns stand for the files of this directory."""
    program, *words = shlex.split(text)
    assert program == "sharestate"
    return CliRunner().invoke(sharestate, [name for word in words for name in _expanded(word)])


def _expanded(word: str) -> list[str]:
    """Return the files for which a pattern stands, and any other word as it is."""
    return sorted(map(str, Path().glob(word))) if {"*", "?"} & set(word) else [word]


def lay_out(run_name: str, place: Path) -> None:
    """Put what a run of brokers has left under the names that a reader has copied it to."""
    brokers = brokers_of(run_name)
    for broker in brokers:
        home = place / broker.name if len(brokers) > 1 else place
        home.mkdir(parents=True, exist_ok=True)
        (home / "kafka-request.log").write_bytes(gzip.decompress((broker / "request.log.gz").read_bytes()))
        shutil.copytree(broker / "segments", home / "data")
        shutil.copy(broker / "server.properties", home)
    described = RUNS / run_name / "group-config.txt"
    if described.exists():
        shutil.copy(described, place / "groups.txt")


def logs_of(place: Path) -> Iterator[Path]:
    """Yield the request logs below a place, by the names of brokers."""
    yield from sorted(place.rglob("kafka-request.log"))
