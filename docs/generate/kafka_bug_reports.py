"""The page of Kafka's bugs that are ready to report, made from ``tests/data`` and the tests in ``tests/kafka_bugs``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from generate.data import DATA, read_rows
from generate.kafka_bugs import anchor
from generate.markdown import NOTICE, table

JAVA: Final = DATA.parent / "kafka_bugs/java"
SOURCE: Final = "../tests/kafka_bugs/java"
"""The same directory, as the page links to it."""

INTRODUCTION: Final = f"""\
Each of these [bugs of Kafka](kafka-bugs.md) has a JUnit test that fails because of it, against the published jars. It
asserts what is right, so it passes once the bug is fixed; methods whose names begin with `control` pass on every
release, and show that it can. `make kafka-bugs` compiles and runs all of them on each release of the table, and fails
where what comes out is not what the table says, or a test fails with another message than the one below;
`make kafka-bugs KAFKA=4.4.0` does so on one release. `make release-watch` says which of them a new release has fixed.

The tests call Kafka's classes and nothing else. They share a fixture for each class:
[Leader]({SOURCE}/src/kafka/server/share/Leader.java), a `SharePartition` with a log to fetch from, Kafka's `MockTimer`
and a persister that the test answers; [StateShard]({SOURCE}/src/org/apache/kafka/coordinator/share/StateShard.java), a
`ShareCoordinatorShard` that replays its records at once;
[StateService]({SOURCE}/src/org/apache/kafka/coordinator/share/StateService.java), a `ShareCoordinatorService` with its
`CoordinatorRuntime` above a log in memory; and
[StatePersister]({SOURCE}/src/org/apache/kafka/coordinator/share/StatePersister.java), a `PersisterStateManager` that
sends its requests there. `"15-19"` is what a fetch has acquired. The names of methods below are those of Kafka 4.4.0
where nothing else is said; SPSO and SPEO are `startOffset` and `endOffset`.

They are in the packages of the classes that they test, so a test can go into Kafka's own tree with what stands beside
it in its package here: those of the leader below `core/src/test/java`, with the `SharePartitions.java` of `src-4.4`;
those of the share coordinator below `share-coordinator/src/test/java`, with the `Logs.java` of `tests/oracle/java` and
the `StateServices.java` of `service-4.3`; and B26 below `group-coordinator/src/test/java`, with `GroupContext.java` and
`GroupRelease.java` of `tests/oracle/java`.

Each bug was shown on a broker, too: there are lines of its request log. `python -m tests.broker.bug_excerpts` makes
them, a few minutes for all: it starts brokers on loopback, leads them into each bug, and fails where one does not show
it; `--kafka` names another release. The lines are shortened: group, topic, limits and nesting are left out, and state
batches that follow each other are one range; 0 is AVAILABLE, 2 ACKNOWLEDGED, 3 ARCHIVING, 4 ARCHIVED.
DESCRIBE_SHARE_GROUP_OFFSETS is what `kafka-share-groups.sh --describe` asks. What F3 and C2 need of a persister, that
it retries late, is sent by hand there. In B23 to B26 and C3 the share coordinator waits for 2 s before it writes
(`share.coordinator.append.linger.ms`), as a busy one may. A write fails there since it is larger than the
`max.message.bytes` of the state topic, which is lowered for a while; any other error would do.

The proposed changes are prose, and were tried once by hand on the sources of 4.4.0: with all of them together, but for
those of F8 and C3, all tests here pass. With either change for C3 its own test passes. The leader was then asked what
the 167 recorded tests of `SharePartitionTest` of 4.4.0 ask: six show another state, and are named with the change that
they would have to follow."""


def page() -> str:
    """Return the page."""
    bugs = {row["id"]: row for row in read_rows("kafka-bugs.json", "kafka_bugs")}
    reports = read_rows("kafka-bug-reports.json", "kafka_bug_reports")
    excerpts = {row["id"]: row for row in read_rows("kafka-bug-excerpts.json", "kafka_bug_excerpts")}
    parts = [
        NOTICE,
        "# Kafka's bugs, ready to report",
        INTRODUCTION,
        table(
            ["bug", "what happens", "releases", "severity"],
            (_row(each, bugs[each["id"]]) for each in reports),
        ),
        *(part for each in reports for part in _report(each, bugs[each["id"]], excerpts.get(each["id"]))),
    ]
    return "\n\n".join(parts) + "\n"


def test_of(bug: str) -> Path:
    """Return the file with the test of a bug."""
    (file,) = JAVA.rglob(f"{bug}Test.java")
    return file


def _anchor(bug: str) -> str:
    return anchor(bug).replace("bug-", "report-")


def _row(report: Mapping[str, Any], bug: Mapping[str, Any]) -> list[str]:
    return [f"[{bug['id']}](#{_anchor(bug['id'])})", bug["title"], _releases(bug), report["severity"]]


def _releases(bug: Mapping[str, Any]) -> str:
    return ", ".join(bug["in"])


def _report(report: Mapping[str, Any], bug: Mapping[str, Any], excerpt: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the parts of a report in the order in which somebody who might fix it reads."""
    name = report["id"]
    yield f"({_anchor(name)})=\n## {name}: {bug['title']}"
    yield "\n".join(
        [
            f"- Releases: {_releases(bug)}",
            f"- Severity: {report['severity']}",
            f"- Where: {bug['where']}",
            f"- Expected: {bug['expected']}",
            f"- More, with what led there: [{name}](kafka-bugs.md#{anchor(name)})",
        ]
    )
    yield f"**What a user sees.** {report['sees']}"
    if "broker" in bug:
        yield f"**On a broker.** {bug['broker']['about']}"
        yield "\n".join(f"- {seen}" for seen in bug["broker"]["seen"])
    if excerpt is not None:
        yield f"**In the request log** of a broker of {excerpt['kafka']}; `python -m tests.broker.bug_excerpts {name}`:"
        yield "\n".join(["```text", *excerpt["lines"], "```"])
    file = test_of(name)
    yield f"**The test**, [{file.name}]({SOURCE}/{file.relative_to(JAVA)}):"
    yield f"```java\n{_body(file)}\n```"
    yield "It fails with:"
    yield "\n".join(["```text", *report["fails"], "```"])
    first, *rest = report["analysis"]
    yield f"**Analysis.** {first}"
    yield from rest
    yield f"**Proposed change.** {report['change']}"


def _body(file: Path) -> str:
    """Return the class, without its imports and its comment."""
    text = file.read_text(encoding="utf-8")
    return text[text.index("\nclass ") + 1 :].rstrip()
