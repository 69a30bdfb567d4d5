"""Kafka's own clients and command line tools, unchanged: their JVMs, and what they print."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
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
CONSOLE_CONSUMER: Final = f"{TOOL}.consumer.ConsoleConsumer"
CONSOLE_PRODUCER: Final = f"{TOOL}.ConsoleProducer"
TOPICS: Final = f"{TOOL}.TopicCommand"
CONFIGS: Final = "kafka.admin.ConfigCommand"
OFFSETS: Final = f"{TOOL}.GetOffsetShell"
GROUPS: Final = f"{TOOL}.GroupsCommand"
DELETE_RECORDS: Final = f"{TOOL}.DeleteRecordsCommand"
CLUSTER: Final = f"{TOOL}.ClusterTool"
API_VERSIONS: Final = f"{TOOL}.BrokerApiVersionsCommand"
FEATURES: Final = f"{TOOL}.FeatureCommand"
PRODUCER_PERFORMANCE: Final = f"{TOOL}.ProducerPerformance"
SHARE_CONSUMER_PERFORMANCE: Final = f"{TOOL}.ShareConsumerPerformance"
PRODUCER: Final = f"{TOOL}.VerifiableProducer"
SHARE_CONSUMER: Final = f"{TOOL}.VerifiableShareConsumer"

Record = tuple[int, int, str]
"""The offset, the delivery count and the value of a record."""


def command(main: str, *arguments: str) -> list[str]:
    """Return the command that runs a class."""
    path = os.pathsep.join(compile_classes(TOOLS, HERE, HERE / "pom.xml"))
    return ["java", "-Xmx128m", *FLAGS, "-cp", path, main, *arguments]


class Jvm:
    """A program in a JVM that answers lines of JSON, until there is nobody any more to ask it."""

    def __init__(self, main: str) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            command(main), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, **what: Any) -> dict[str, Any]:  # noqa: ANN401 - of JSON
        """Return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(what)}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the JVM has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Let it end."""
        with self._process as process:
            process.kill()


IDLE: Final[dict[str, list[Jvm]]] = {"ShareMember": [], "Tools": []}
"""JVMs whose last user has left, by their programs: a JVM takes longer to start than most of what it is asked."""


@contextmanager
def jvm(main: str) -> Iterator[Jvm]:
    """Lend a JVM, but not one that has failed somebody."""
    one = IDLE[main].pop() if IDLE[main] else Jvm(main)
    try:
        yield one
    except BaseException:
        one.close()
        raise
    IDLE[main].append(one)


def close_idle() -> None:
    """Let all JVMs end that are not lent."""
    for idle in IDLE.values():
        while idle:
            idle.pop().close()


def ran(main: str, *arguments: str, given: str = "") -> tuple[int, str]:
    """Return the status with which one of Kafka's tools ends, and what it prints; *given* is what it reads."""
    with jvm("Tools") as tools:
        answer = tools.ask(main=main, arguments=arguments, **{"in": given})
    return answer["status"], answer["out"]


def printed(main: str, *arguments: str, fails: bool = False, given: str = "") -> str:
    """Return what one of Kafka's tools prints, one that *fails* or one that does not; *given* is what it reads."""
    status, out = ran(main, *arguments, given=given)
    assert bool(status) == fails, out
    return out


def printed_alone(main: str, *arguments: str) -> str:
    """Return what a tool prints that has a JVM of its own: one that is done only when that ends."""
    return subprocess.run(
        command(main, *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=True
    ).stdout


class ShareMember:
    """A ``KafkaShareConsumer`` in a JVM, a member of a group."""

    def __init__(self, address: str, group_id: str, topics: Iterable[str], *, spoiled: str = "", **config: str) -> None:
        """Have settings such as ``share_acquire_mode``; a *spoiled* value cannot be deserialized."""
        given = {name.replace("_", "."): value for name, value in config.items()}
        acknowledged = {"share.acknowledgement.mode": "explicit"}
        self._config = {"bootstrap.servers": address, "group.id": group_id, **acknowledged, **given}
        self._topics, self._spoiled = list(topics), spoiled
        self._lent = ExitStack()

    def __enter__(self) -> Self:
        """Open it, and subscribe to its topics."""
        self._jvm = self._lent.enter_context(jvm("ShareMember"))
        self.done("open", config=self._config, spoiled=self._spoiled)
        self.done("subscribe", topics=self._topics)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        if error is None:
            self._jvm.ask(do="close")
        self._lent.__exit__(kind, error, traceback)

    def ask(self, do: str, **what: Any) -> dict[str, Any]:  # noqa: ANN401 - of JSON
        """Return what comes of a call, or the class of its error."""
        return self._jvm.ask(do=do, **what)

    def done(self, do: str, **what: Any) -> dict[str, Any]:  # noqa: ANN401 - of JSON
        """Return what comes of a call that has no error."""
        answer = self.ask(do, **what)
        assert "error" not in answer, answer
        return answer

    def poll(self, ms: int = 500) -> list[Record]:
        """Return the records of one poll."""
        return [(each["offset"], each["count"], each["value"]) for each in self.done("poll", ms=ms)["records"]]

    def take(self, count: int = 1) -> list[Record]:
        """Return the next records, which are so many or more, of polls that acknowledge nothing between them."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not (records := self.poll()):
            assert time.monotonic() < give_up_s
        assert len(records) >= count, records
        return records

    def acknowledge(self, offset: int, how: str = "ACCEPT", partition: int = 0) -> None:
        """Acknowledge a record that it has got."""
        self.done("acknowledge", partition=partition, offset=offset, type=how)

    def commit(self) -> dict[str, str | None]:
        """Commit, and return the class of the error of each partition."""
        errors: dict[str, str | None] = self.done("commit")["errors"]
        return errors

    def lock_timeout_ms(self) -> int:
        """Return how long records are locked that a member has got. [ms]"""
        return int(self.done("lock timeout")["ms"])

    def commits(self) -> list[dict[str, Any]]:
        """Return what the callback for commits has heard since the last time."""
        heard: list[dict[str, Any]] = self.done("commits")["commits"]
        return heard
