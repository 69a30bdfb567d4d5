"""Explorations: their configurations, files to go on with, and the addresses of their states."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sharestate import KAFKA_4_4, RecordBatch
from sharestate.cli.explore_server import response
from sharestate.errors import ShareStateError
from sharestate.testing.explore import Bounds, Configuration, Exploration, explore, read_exploration, write_exploration
from tests.fuzz.in_memory import file_of

_EXPLORED: Final = Configuration(log=(RecordBatch(0, 0), RecordBatch(1, 1)), failures=1, failovers=1)


class NoPageError(ShareStateError):
    """An address has no page of a state."""


@cache
def _exploration() -> Exploration:
    return explore(_EXPLORED, KAFKA_4_4, bounds=Bounds(states=10))


def configurations() -> list[bytes]:
    """Return a configuration."""
    return [_EXPLORED.to_json().encode()]


def read_configuration(data: bytes) -> None:
    """Read *data* as a configuration."""
    configuration = Configuration.from_json(data.decode("utf-8", "surrogateescape"))
    assert Configuration.from_json(configuration.to_json()) == configuration


@cache
def files() -> list[bytes]:
    """Return a file to go on with."""
    with TemporaryDirectory() as directory:
        file = Path(directory, "explored.jsonl")
        write_exploration(_exploration(), file)
        return [file.read_bytes()]


def read_file(data: bytes) -> None:
    """Read *data* as such a file."""
    with file_of(data) as file:
        exploration = read_exploration(file)
    assert exploration.states == len(exploration.digests)


def addresses() -> list[bytes]:
    """Return addresses of states."""
    return [b"/", b"/0", b"/0.1", b"/0.0.0.1"]


def read_address(data: bytes) -> None:
    """Look for the page at an address, as it comes out of a request."""
    status, page = response(_exploration(), data.decode("latin-1"))
    assert page.startswith("<!DOCTYPE html>")
    if status != HTTPStatus.OK:
        raise NoPageError(page)
