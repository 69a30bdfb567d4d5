"""Run the JUnit tests of Kafka's bugs against the published jars of one release, and say of each bug what came out."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from xml.etree import ElementTree as ET

from attrs import frozen

from tests.oracle.build import JAVA as PEERS
from tests.oracle.build import Oracle, OracleError, compile_files, folder_of

HERE: Final = Path(__file__).parent
JAVA: Final = HERE / "java"
DATA: Final = HERE.parent / "data"
SUFFIX: Final = "Test"
CONTROL: Final = "control"
"""How the names of test methods begin that pass on every release: they show that a test can pass."""

FAILED: Final = "org.opentest4j.AssertionFailedError"
"""What Kafka is to blame for; any other error is the test's own."""

LONGEST_S: Final = 300
"""How long a run may take: it takes some ten seconds. [s]"""


class Outcome(StrEnum):
    """What came out of the test of a bug."""

    PRESENT = "present"
    """It fails as it does because of the bug, and its controls pass."""

    FIXED = "fixed"
    """It passes."""

    NOT_THERE = "not there"
    """The release has not got what the test is about."""

    BROKEN = "broken"
    """It ends otherwise, or one of its controls does not pass: nothing is known."""


@frozen
class Result:
    """What came out of the test of a bug, and the message of its failure."""

    outcome: Outcome
    """What came out."""

    message: str = ""
    """How the test failed, or what is broken; empty if it passed."""


def bugs_of(data: Path = DATA) -> list[dict[str, Any]]:
    """
    Return the bugs that have a test, in their order.

    Raises:
        ValueError: The file is not version 1.
    """
    return _rows("kafka-bug-reports.json", "kafka_bug_reports", data)


def releases() -> list[str]:
    """Return the releases that the table of Kafka's bugs knows, the first one first."""
    return sorted({release for row in _rows("kafka-bugs.json", "kafka_bugs") for release in row["in"]})


def last_of(line: str) -> str:
    """Return the last known release of a line, such as 4.3, or the last one of all if none is known of it."""
    return max((each for each in releases() if each.startswith(f"{line}.")), key=_numbers, default=releases()[-1])


def expected_in(kafka: str) -> dict[str, bool]:
    """Return whether each bug that has a test is in the release, or in the last known one before it."""
    known = releases()
    release = max((each for each in known if _numbers(each) <= _numbers(kafka)), key=_numbers, default=known[0])
    present = {row["id"]: release in row["in"] for row in _rows("kafka-bugs.json", "kafka_bugs")}
    return {bug["id"]: present[bug["id"]] for bug in bugs_of()}


def disagreements(kafka: str, results: Mapping[str, Result]) -> Iterator[str]:
    """Yield in which bugs what came out is not what the table of Kafka's bugs says."""
    for bug, present in expected_in(kafka).items():
        result = results[bug]
        if result.outcome is Outcome.BROKEN:
            yield f"{bug}: the test is broken: {result.message}"
        elif present is not (result.outcome is Outcome.PRESENT):
            yield f"{bug}: {result.outcome}, but the table says that it is {'' if present else 'not '}there"


def run(kafka: str, say: Callable[[str], None] = lambda _: None) -> dict[str, Result]:
    """
    Return what came out of the test of each bug, by its id.

    Raises:
        OracleUnavailableError: A JDK, Maven or the jars are not to be had.
        OracleError: The tests do not compile, or could not be run.
    """
    compiled = compile_files(kafka, "tests of bugs", sources(kafka), say=say)
    say(f"running the tests of bugs on Kafka {kafka}")
    with TemporaryDirectory() as reports:
        _launch(compiled, Path(reports))
        # The file was written by JUnit just now, and nobody else could.
        cases = ET.parse(Path(reports) / "TEST-junit-jupiter.xml").iter("testcase")  # noqa: S314
        return judged(cases, bugs_of())


def sources(kafka: str) -> list[Path]:
    """Return what is compiled: the tests that the release can have, and what the searches have of its coordinators."""
    own = [JAVA / "src", *(JAVA / folder_of(each, kafka, JAVA) for each in ("src", "service"))]
    peers = ["groups/**/GroupContext.java", f"{folder_of('groups', kafka)}/**/GroupRelease.java"]
    peers.append(f"{folder_of('coordinator', kafka)}/**/Logs.java")
    return sorted([file for folder in own for file in folder.rglob("*.java")] + _found(peers))


def _found(patterns: Iterable[str]) -> list[Path]:
    return [file for pattern in patterns for file in PEERS.glob(pattern)]


def _launch(compiled: Oracle, reports: Path) -> None:
    """Run all tests; that some fail is what is expected."""
    options = {"--scan-classpath": compiled.classes, "--reports-dir": reports, "--details": "none"}
    command = compiled.command("org.junit.platform.console.ConsoleLauncher")
    command += ["execute", *(str(word) for option in options.items() for word in option)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST_S)
    except subprocess.TimeoutExpired as error:
        message = f"the tests of bugs on Kafka {compiled.kafka} did not end in {LONGEST_S} s"
        raise OracleError(message) from error
    if ended.returncode not in (0, 1):
        message = f"the tests of bugs on Kafka {compiled.kafka} could not be run:\n{ended.stderr[-1000:]}"
        raise OracleError(message)


def judged(cases: Iterable[ET.Element], bugs: Iterable[Mapping[str, Any]]) -> dict[str, Result]:
    """Return what came out of the test of each of *bugs*, by its id; *cases* are those of JUnit's report."""
    by_bug: dict[str, list[ET.Element]] = defaultdict(list)
    for case in cases:
        by_bug[case.attrib["classname"].rpartition(".")[2].removesuffix(SUFFIX)].append(case)
    return {bug["id"]: _judged(by_bug[bug["id"]], bug["fails"]) for bug in bugs}


def _judged(cases: Sequence[ET.Element], known: Iterable[str]) -> Result:
    failures = {case.attrib["name"]: each for case in cases for each in (*case.iter("failure"), *case.iter("error"))}
    if not cases:
        return Result(Outcome.NOT_THERE)
    if not failures:
        return Result(Outcome.FIXED)
    message = "; ".join(each.get("message", "") for each in failures.values())
    is_known = len(failures) == 1 and message in known
    is_kafkas = all(each.get("type") == FAILED for each in failures.values())
    is_control = any(name.startswith(CONTROL) for name in failures)
    return Result(Outcome.PRESENT if is_known and is_kafkas and not is_control else Outcome.BROKEN, message)


def _rows(name: str, kind: str, data: Path = DATA) -> list[dict[str, Any]]:
    content = json.loads((data / name).read_text("utf-8"))
    if content.get(kind) != 1:
        message = f"{name}: not version 1 of {kind}"
        raise ValueError(message)
    rows: list[dict[str, Any]] = content["rows"]
    return rows


def _numbers(release: str) -> list[int]:
    return [int(part) for part in release.partition("-")[0].split(".")]
