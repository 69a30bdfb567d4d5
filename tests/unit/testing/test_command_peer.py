"""The pipe to the other peer, with stand-ins in Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sharestate.testing.search.command import CommandPeer, PeerDiedError

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line)"
SILENT = "import sys\nsys.stdin.readline(); sys.exit('out of memory')"
SECOND_FAILS = """
import sys
for number, line in enumerate(sys.stdin):
    if number: sys.exit('out of memory')
    print(line, end='', flush=True)
"""


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


def test_a_peer_that_ends_is_run_again_for_the_next_open(tmp_path: Path) -> None:
    """Its last words are its answer until then, and the requests that were under way go to the next process."""
    requests = [f'{{"op":"{op}"}}' for op in ("open", "acquire", "release", "open")]

    with peer(SECOND_FAILS, tmp_path) as kafka:
        kafka.ask(requests)
        responses = [kafka.response() for _ in requests]

    assert responses[0] == responses[3] == '{"op":"open"}'
    assert responses[1] == responses[2]
    assert "PeerDiedError" in responses[1]
    assert "out of memory" in responses[1]


def test_a_peer_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    """A process that reads and is silent is given up, however much it was asked."""
    program = "import time\nwhile True: time.sleep(60)"

    with CommandPeer([sys.executable, "-c", program], tmp_path / "log", answer_s=0.1) as kafka:
        kafka.ask(["x" * 1000] * 200)

        with pytest.raises(PeerDiedError, match="no answer within"):
            kafka.response()
