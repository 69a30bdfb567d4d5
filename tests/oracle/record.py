"""
Record Kafka's own SharePartitionTest as conversations: ``python -m tests.oracle.record [--kafka 4.3.1] [--out DIR]``.

Kafka publishes its tests up to 4.3; of a later release, ``--tests`` names a jar with the compiled test.

An agent notes every call that the tests make on a SharePartition. What was noted is sent to the oracle: if it answers
the same in full, the test is a conversation, and is written out with the answers of one clock and a timer in order. The
others are listed with the reason, and so is what differs from what ``tests/data`` has of the release.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import define, evolve, frozen

from sharestate.conversation.replay import NO_CALLS, NOT_SENT
from sharestate.conversation.traces import TraceHeader, TraceStep, open_trace, write_trace
from sharestate.errors import UnreadableFileError
from sharestate.json_lines import Json, read_json, write_json
from sharestate.testing.search.command import CommandPeer
from tests.oracle.build import HERE, Oracle, OracleError, build, line_of

PUBLISHED: Final = "4.3.1"
"""The latest release whose compiled tests are published."""

STORED: Final[Mapping[str, Path]] = MappingProxyType(
    {"4.3": HERE.parent / "data/kafka-tests", "4.4": HERE.parent / "data/kafka-tests-4.4"}
)
"""Where the recordings of a line of releases are kept."""

OUT: Final = Path("build/oracle/recorded")
TESTS: Final = "kafka.server.share.SharePartitionTest"
LAUNCHER: Final = "org.junit.platform.console.ConsoleLauncher"
MANIFEST: Final = (
    "Manifest-Version: 1.0\n"
    "Premain-Class: kafka.server.share.RecordingAgent\n"
    "Can-Redefine-Classes: true\n"
    "Can-Retransform-Classes: true\n"
)


@frozen
class Conversation:
    """What one test does with share partitions, as requests, and what they were answered."""

    header: TraceHeader
    """What the recorder says of the test."""

    steps: tuple[TraceStep, ...]
    """The requests and responses."""


@define
class Recordings:
    """What became of the tests."""

    replayed: dict[str, Conversation]
    """Those that are conversations, with the answers of the oracle."""

    others: dict[str, str]
    """The reasons of the others."""


def run_tests(oracle: Oracle, traces: Path, tests: Iterable[Path] = ()) -> None:
    """
    Run Kafka's tests under the recorder, which writes to *traces*; *tests* are further jars to find them in.

    Raises:
        OracleError: They could not be run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        agent = _agent(oracle, Path(scratch) / "recorder.jar")
        flags = ("-Dlog4j2.configurationFile=none", f"-javaagent:{agent}", f"-Dtrace.dir={traces}", "-Xmx2g")
        command = evolve(oracle, classes=agent).command(LAUNCHER, flags, tests)
        arguments = ("execute", "--select-class", TESTS, "--details=summary", "--disable-banner")
        ended = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    if not any(traces.glob("*.jsonl")):
        message = f"Kafka's tests did not run:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
        raise OracleError(message)


def _agent(oracle: Oracle, jar: Path) -> Path:
    """Write the recorder with its manifest and its service to *jar*."""
    resources = HERE / "java/recorder"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("META-INF/MANIFEST.MF", MANIFEST)
        for root, files in ((oracle.classes, "**/*.class"), (resources, "META-INF/**/*.*")):
            for file in sorted(root.glob(files)):
                made.write(file, file.relative_to(root))
    return jar


def recordings(traces: Path, kafka: CommandPeer) -> Recordings:
    """Return what became of the tests in *traces*, asking *kafka* again what their share partitions were asked."""
    made = Recordings({}, {})
    for file in sorted(traces.glob("*.jsonl")):
        noted = read(file)
        reason = obstacle(noted, kafka)
        if reason:
            made.others[noted.header.name] = reason
        else:
            made.replayed[noted.header.name] = in_order(noted, kafka)
    return made


def read(file: Path) -> Conversation:
    """Return the trace in *file*."""
    with open_trace(file) as trace:
        return Conversation(trace.header, tuple(trace.steps))


def obstacle(noted: Conversation, kafka: CommandPeer) -> str:
    """Return why *noted* is no conversation; nothing if it is one."""
    if noted.header.obstacles:
        return ", ".join(noted.header.obstacles)
    steps = [step for step in noted.steps if step.op not in NOT_SENT]
    if all(step.op in NO_CALLS for step in steps):
        return "no public call"
    answers = ask(kafka, [step.request for step in steps])
    wrong = [step for step, answer in zip(steps, answers, strict=True) if answer != step.response]
    return f"answers otherwise when it is asked again, first in line {wrong[0].line}: {wrong[0].op}" if wrong else ""


def in_order(noted: Conversation, kafka: CommandPeer) -> Conversation:
    """Return *noted* with one clock and a timer that fires in order, where Kafka's test timer has none."""
    requests = [request for step in noted.steps if (request := canonical(step)) is not None]
    answers = ask(kafka, requests)
    return evolve(noted, steps=tuple(map(TraceStep, range(2, len(requests) + 2), requests, answers)))


def canonical(step: TraceStep) -> Json:
    """Return the request of *step* for one clock and a timer in order; None if it is not needed then."""
    request = {name: value for name, value in step.request.items() if name != "clock"}
    if step.op in {"timers", *NOT_SENT} or (step.op == "advance" and step.request.get("clock") == "time"):
        return None
    return {**request, "timer": "fifo"} if step.op == "open" else request


def ask(kafka: CommandPeer, requests: Sequence[Json]) -> list[Json]:
    """Return what *kafka* answers to *requests*."""
    kafka.ask([write_json(request) for request in requests])
    return [read_json(kafka.response()) for _ in requests]


def compared(replayed: Mapping[str, Conversation], stored: Path) -> dict[str, list[str]]:
    """Return the names of the conversations that are as in *stored*, changed, new, or gone."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, conversation in replayed.items():
        found[_against(conversation, stored / f"{name}.jsonl")].append(name)
    found["gone"] = sorted({file.stem for file in stored.glob("*.jsonl")} - set(replayed))
    return found


def _against(conversation: Conversation, file: Path) -> str:
    try:
        before = read(file)
    except UnreadableFileError:
        return "new"
    return "same" if _told(before) == _told(conversation) else "changed"


def _told(conversation: Conversation) -> str:
    """Return the conversation as text, the ids of fetches as numbers: Kafka's tests draw new ones every time."""
    text = write_json([[step.request, step.response] for step in conversation.steps])
    drawn = dict.fromkeys(step.request["id"] for step in conversation.steps if "id" in step.request)
    for number, fetch in enumerate(drawn):
        text = text.replace(fetch, str(number))
    return text


def main() -> None:
    """Record, write what replays, and say what differs from what is stored."""
    parser = ArgumentParser(prog="python -m tests.oracle.record", description="Record Kafka's SharePartitionTest.")
    parser.add_argument("--kafka", default=PUBLISHED, help="the release; those before 4.3 have no recorder")
    parser.add_argument("--tests", type=Path, action="append", default=[], help="a jar with Kafka's tests, if need be")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where to write the conversations; {OUT} unless given")
    arguments = parser.parse_args()
    try:
        made = record(arguments.kafka, arguments.tests, say=lambda text: _say(f"== {text}"))
    except OracleError as error:
        sys.exit(f"oracle record: {error}")
    out = arguments.out / arguments.kafka
    write(made, out)
    tell(made, out, STORED[line_of(arguments.kafka)])


def record(kafka: str, tests: Iterable[Path] = (), *, say: Callable[[str], None] = lambda _: None) -> Recordings:
    """
    Run Kafka's tests of the release *kafka*, or those in the jars *tests*, and return what became of them.

    Raises:
        OracleError: They could not be run.
    """
    oracle = build(kafka, sources="recorder", say=say)
    with tempfile.TemporaryDirectory() as scratch:
        say(f"running Kafka's tests under the recorder: {TESTS}")
        run_tests(oracle, Path(scratch) / "traces", tests)
        with CommandPeer(oracle.command()) as peer:
            return recordings(Path(scratch) / "traces", peer)


def write(made: Recordings, directory: Path) -> None:
    """Write the conversations to *directory*, one file for each test."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, conversation in made.replayed.items():
        with (directory / f"{name}.jsonl").open("w", encoding="utf-8") as stream:
            write_trace(stream, conversation.header, [(step.request, step.response) for step in conversation.steps])


def tell(made: Recordings, directory: Path, stored: Path) -> None:
    """Say what became of the tests, which are in *directory* now, and what differs from what is *stored*."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for name, reason in made.others.items():
        reasons[reason].append(name)
    _say(f"{len(made.replayed)} tests replay, and are in {directory}; {len(made.others)} do not:")
    for reason, names in sorted(reasons.items()):
        _say(f"  {reason}: {', '.join(names)}")
    found = compared(made.replayed, stored)
    _say(
        f"against {stored.name}: "
        + ", ".join(f"{len(found[kind])} {kind}" for kind in ("same", "changed", "new", "gone"))
    )
    for kind in ("changed", "gone"):
        if found[kind]:
            _say(f"  {kind}: {', '.join(found[kind])}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
