"""The pipe to the other peer, with stand-ins in Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sharestate.testing.search.command import CommandPeer, PeerDiedError

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line)"
SILENT = "import sys\nsys.stdin.readline(); sys.exit('out of memory')"


def peer(program: str, directory: Path) -> CommandPeer:
    """Return the peer that *program* is."""
    return CommandPeer([sys.executable, "-c", program], directory / "log")


def test_many_requests_may_be_under_way(tmp_path: Path) -> None:
    """More is sent than a pipe holds before the first response is taken, and they come in order."""
    requests = [f"{number:06} " + "x" * 1000 for number in range(2000)]

    with peer(ECHO, tmp_path) as kafka:
        kafka.ask(requests)

        assert [kafka.response() for _ in requests] == requests


def test_the_last_words_of_a_dead_peer_are_told(tmp_path: Path) -> None:
    """A peer that ends without answering is an error, with its status and what it has said."""
    with peer(SILENT, tmp_path) as kafka:
        kafka.ask(["{}"])

        with pytest.raises(PeerDiedError, match=r"status 1\n  out of memory"):
            kafka.response()
