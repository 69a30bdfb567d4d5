"""
Steps of a script, what a broker has answered to each, and the file that has both: one JSON object a line.

A script's time goes in rounds. Steps are taken in the first part of a round, one after the other as fast as they are
answered; in the rest of it nothing is asked. Locks and sessions last so long that they end in the rest of a round.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import asdict, field, frozen

from tests.lockstep.wire import Fields

ROUND_MS: Final = 3000
"""How long a round takes. [ms]"""

BUSY_MS: Final = 1200
"""How much of a round its steps may take. [ms]"""

LASTING_MS: Final = tuple(1500 + ROUND_MS * rounds for rounds in range(3))
"""
Durations of locks. [ms]

What begins up to BUSY_MS after a round has begun ends 300 ms or more after the last step of a round, and before
the next round begins.
"""

LONG_MS: Final = 1500 + ROUND_MS * 19
"""The session timeout of groups whose members stay: 58.5 s, below ``group.share.max.session.timeout.ms``. [ms]"""

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto.create.topics.enable": "false",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.min.heartbeat.interval.ms": "500",
        "group.share.heartbeat.interval.ms": "500",
        "group.share.min.session.timeout.ms": "1000",
        "group.share.min.assignment.interval.ms": "0",
        "group.share.assignment.interval.ms": "0",
        "group.share.initialize.retry.interval.ms": "3000",
        "group.share.max.share.sessions": "2000",
        "group.share.session.timeout.ms": str(LONG_MS),
        "group.share.record.lock.duration.ms": str(1500 + ROUND_MS * 9),
        "group.share.max.size": "10",
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "errors.deadletterqueue.auto.create.topics.enable": "true",
    }
)
"""The settings of every broker that takes the steps of a script."""


class How(StrEnum):
    """What is done in a step."""

    ASK = "ask"
    """A request is sent, and its answer comes."""

    SEND = "send"
    """A request is sent that the broker does not answer at once."""

    RECEIVE = "receive"
    """The answer comes to what was sent."""

    HANG_UP = "hang up"
    """The connection is closed without a word; the client's next step opens another one."""


@frozen
class Step:
    """
    A step of a script.

    Attributes:
        round: The round in which it is taken.
        client: Who takes it, on a connection of its own.
        api: The request's name, as kio has it.
        version: The request's version.
        request: The request, as wire.py has it.
        how: What is done.
        until: Which answer to wait for, of those in ``runner.UNTIL``; the request is sent again and again.
        settle_ms: How long to wait after it, as the broker does what it takes behind its answer. [ms]
    """

    round: int
    client: str
    api: str
    version: int = 0
    request: Fields = field(factory=dict)
    how: How = How.ASK
    until: str = ""
    settle_ms: int = 0


@frozen
class Taken:
    """
    A step that was taken.

    Attributes:
        step: The step.
        answer: What the broker has answered, as wire.py has it; how the connection has ended, if it has; None where
            there is no answer.
    """

    step: Step
    answer: Fields | None


def write(path: Path, taken: Iterable[Taken]) -> None:
    """Write steps with their answers to a file, compressed if its name ends with ``.gz``."""
    lines = (json.dumps({**asdict(each.step), "answer": each.answer}, separators=(",", ":")) for each in taken)
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def read(path: Path) -> list[Taken]:
    """Return the steps and answers of a file."""
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines()
    return [_taken(json.loads(line)) for line in lines]


def _taken(given: Fields) -> Taken:
    answer = given.pop("answer")
    return Taken(Step(**{**given, "how": How(given["how"])}), answer)
