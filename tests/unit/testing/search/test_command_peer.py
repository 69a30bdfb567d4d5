"""The pipe to the other peer, with stand-ins in Python."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from sharestate.testing.search import command
from sharestate.testing.search.command import CommandPeer, PeerDiedError
from tests.support.processes import runs, wait_until

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line)"
SILENT = "import sys\nsys.stdin.readline(); sys.exit('out of memory')"
SECOND_FAILS = """
import sys
for number, line in enumerate(sys.stdin):
    if number: sys.exit('out of memory')
    print(line, end='', flush=True)
"""


def peer(program: str, answer_s: float = 60.0) -> CommandPeer:
    """Return the peer that *program* is."""
    return CommandPeer([sys.executable, "-c", program], answer_s)


def test_many_requests_may_be_under_way() -> None:
    """More is sent than a pipe holds before the first response is taken, and they come in order."""
    requests = [f"{number:06} " + "x" * 1000 for number in range(2000)]

    with peer(ECHO) as kafka:
        kafka.ask(requests)

        assert [kafka.response() for _ in requests] == requests


def test_the_last_words_of_a_dead_peer_are_told() -> None:
    """A peer that ends without answering is an error, with its status and what it has said, each time it is asked."""
    with peer(SILENT) as kafka:
        kafka.ask(["{}", '{"op":"open"}'])

        for _ in range(2):
            with pytest.raises(PeerDiedError, match=r"status 1\n  out of memory"):
                kafka.response()


def test_a_peer_that_ends_is_run_again_for_the_next_open() -> None:
    """Its last words are its answer until then, and the requests that were under way go to the next process."""
    requests = [f'{{"op":"{op}"}}' for op in ("open", "acquire", "release", "open")]

    with peer(SECOND_FAILS) as kafka:
        kafka.ask(requests)
        responses = [kafka.response() for _ in requests]

    assert responses[0] == responses[3] == '{"op":"open"}'
    assert responses[1] == responses[2]
    assert "PeerDiedError" in responses[1]
    assert "out of memory" in responses[1]


def test_a_peer_that_does_not_answer_is_ended() -> None:
    """A process that reads and is silent is given up, however much it was asked."""
    program = "import time\nwhile True: time.sleep(60)"

    with peer(program, answer_s=0.1) as kafka:
        kafka.ask(["x" * 1000] * 200)

        with pytest.raises(PeerDiedError, match="no answer within"):
            kafka.response()


# ---- hostile peers


SAYS: Final = "import os, signal, sys, time\nsys.stdin.readline()\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
FLOODS: Final = "for _ in range(2_000): os.write(2, b'x' * 100_000)\n"
"""Four times as much at once as may be kept; what comes later is endless, too, and takes less of the processor."""

HOSTILE: Final = {
    "an endless answer": ("while True: os.write(1, b'x' * 100_000)", "longer than 1,048,576 bytes"),
    "a long answer": ("print('x' * 200_000_000)", "longer than 1,048,576 bytes"),
    "no answer, and endless errors": (
        FLOODS + "while True: os.write(2, b'x' * 1000); time.sleep(0.01)",
        "no answer within",
    ),
    "no output any more": ("os.close(1); time.sleep(60)", "closed its output"),
    "another process in its place": ("os.fork() and os._exit(3); time.sleep(60)", "status 3"),
}


@pytest.mark.parametrize(("program", "told"), HOSTILE.values(), ids=list(HOSTILE))
def test_a_hostile_peer_takes_little(program: str, told: str) -> None:
    """Neither much memory, nor room on a disk, nor time: however much it says, and whatever it does not."""
    with peer(SAYS + program, answer_s=2.0 if told == "no answer within" else 60.0) as hostile:
        hostile.ask(["{}"])
        before_kb, began_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()

        with pytest.raises(PeerDiedError, match=told) as raised:
            hostile.response()

    assert time.monotonic() - began_s < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50_000
    assert len(str(raised.value)) < 10_000


def test_a_flood_of_answers_is_read_as_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody has asked for stays with the peer, which is ended all the same."""
    monkeypatch.setattr(command, "_ENDING_S", 0.5)
    with peer("while True: print('{}', 'x' * 500_000)") as flood:
        flood.ask(["{}"] * 3)
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answers = [flood.response()[:2] for _ in range(3)]
        time.sleep(1)

    assert answers == ["{}"] * 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000


OWNER: Final = """
import sys, time
from sharestate.testing.search.command import CommandPeer
peer = CommandPeer([sys.executable, "-c", sys.argv[1]])
peer.ask(["{}"])
print(peer.response(), flush=True)
time.sleep(60)
"""
WITH_ANOTHER: Final = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
first, second = os.getpid(), os.fork()
if second: print(first, second, flush=True)
while True: time.sleep(60)
"""


def test_a_peer_does_not_outlive_who_has_run_it() -> None:
    """A process that is killed cannot end its peer, nor what that has started; they are ended all the same."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, WITH_ANOTHER], stdout=subprocess.PIPE, text=True)
    with owner:
        processes = [Path("/proc", pid) for pid in (owner.stdout.readline() if owner.stdout else "").split()]
        assert [each.is_dir() for each in processes] == [True, True]
        owner.kill()

    wait_until(lambda: not any(map(runs, processes)))
