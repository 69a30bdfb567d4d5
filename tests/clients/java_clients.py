"""Kafka's own clients and command line tools, unchanged: their JVMs, and what they print."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.broker.kafka_broker import TOOLS
from tests.clients.scenes import PATIENCE_S
from tests.oracle.build import FLAGS, compile_classes

HERE: Final = Path(__file__).parent / "java"

TOOL: Final = "org.apache.kafka.tools"
SHARE_GROUPS: Final = f"{TOOL}.consumer.group.ShareGroupCommand"
CONSOLE: Final = f"{TOOL}.consumer.ConsoleShareConsumer"
PRODUCER: Final = f"{TOOL}.VerifiableProducer"
SHARE_CONSUMER: Final = f"{TOOL}.VerifiableShareConsumer"

Record = tuple[int, int, str]
"""The offset, the delivery count and the value of a record."""


def command(main: str, *arguments: str) -> list[str]:
    """Return the command that runs a class."""
    path = os.pathsep.join(compile_classes(TOOLS, HERE, HERE / "pom.xml"))
    return ["java", "-Xmx128m", *FLAGS, "-cp", path, main, *arguments]


def printed(main: str, *arguments: str, fails: bool = False) -> str:
    """Return what a program prints that ends by itself, as one that *fails* or as one that does not."""
    ended = subprocess.run(
        command(main, *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False
    )
    assert bool(ended.returncode) == fails, ended.stdout
    return ended.stdout


class ShareMember:
    """A ``KafkaShareConsumer`` in a JVM of its own, a member of a group."""

    def __init__(self, address: str, group_id: str, topics: Iterable[str], **config: str) -> None:
        """Start it, and subscribe to topics; settings are such as ``share_acquire_mode``."""
        self._process = subprocess.Popen(
            command("ShareMember"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        given = {name.replace("_", "."): value for name, value in config.items()}
        acknowledged = {"share.acknowledgement.mode": "explicit"}
        self._send({"bootstrap.servers": address, "group.id": group_id, **acknowledged, **given})
        self._ask(do="subscribe", topics=list(topics))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let it close its consumer, and wait for its end."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def poll(self, ms: int = 500) -> list[Record]:
        """Return the records of one poll."""
        return [(each["offset"], each["count"], each["value"]) for each in self._ask(do="poll", ms=ms)["records"]]

    def take(self, count: int = 1) -> list[Record]:
        """Return the next records, which are so many or more, of polls that acknowledge nothing between them."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not (records := self.poll()):
            assert time.monotonic() < give_up_s
        assert len(records) >= count, records
        return records

    def acknowledge(self, offset: int, how: str = "ACCEPT", partition: int = 0) -> None:
        """Acknowledge a record that it has got."""
        answer = self._ask(do="acknowledge", partition=partition, offset=offset, type=how)
        assert "error" not in answer, answer

    def commit(self) -> dict[str, str | None]:
        """Commit, and return the class of the error of each partition."""
        errors: dict[str, str | None] = self._ask(do="commit")["errors"]
        return errors

    def lock_timeout_ms(self) -> int:
        """Return how long records are locked that a member has got. [ms]"""
        return int(self._ask(do="lock timeout")["ms"])

    def commits(self) -> list[dict[str, Any]]:
        """Return what the callback for commits has heard since the last time."""
        heard: list[dict[str, Any]] = self._ask(do="commits")["commits"]
        return heard

    def _ask(self, **what: Any) -> dict[str, Any]:  # noqa: ANN401 - of JSON
        self._send(what)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the JVM has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _send(self, what: Any) -> None:  # noqa: ANN401 - of JSON
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(what)}\n")
        self._process.stdin.flush()
