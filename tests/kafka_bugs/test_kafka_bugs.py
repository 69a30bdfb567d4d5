"""The bugs of Kafka that are ready to report show in JUnit tests, on the releases that the table names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.kafka_bugs.__main__ import told
from tests.kafka_bugs.junit import (
    DATA,
    Outcome,
    Result,
    bugs_of,
    disagreements,
    expected_in,
    judged,
    last_of,
    releases,
    run,
)
from tests.oracle.build import RELEASES, OracleUnavailableError

KNOWN = "the answer ==> expected: <1> but was: <2>"
FAILURE = f'<failure message="{KNOWN.replace("<", "&lt;")}" type="org.opentest4j.AssertionFailedError"/>'


def outcome_of(*cases: tuple[str, str]) -> Outcome:
    """Return what comes out if JUnit reports test methods so: their names, and what is in their elements."""
    inner = "".join(f'<testcase name="{name}" classname="kafka.F1Test">{content}</testcase>' for name, content in cases)
    report = ET.fromstring(f"<testsuite>{inner}</testsuite>")  # noqa: S314 -- it is made in the line before
    return judged(report.iter("testcase"), [{"id": "F1", "fails": [KNOWN]}])["F1"].outcome


def test_a_bug_is_present_only_if_its_test_fails_as_known() -> None:
    """Another message, an error, or a control that fails says nothing of Kafka; no test at all is not a fixed bug."""
    assert outcome_of(("holds()", FAILURE), ("control()", "")) is Outcome.PRESENT
    assert outcome_of(("holds()", ""), ("control()", "")) is Outcome.FIXED
    assert outcome_of() is Outcome.NOT_THERE
    assert outcome_of(("holds()", FAILURE.replace("2>", "3>"))) is Outcome.BROKEN
    assert outcome_of(("holds()", FAILURE.replace("AssertionFailedError", "NullPointer"))) is Outcome.BROKEN
    assert outcome_of(("holds()", ""), ("controlOfIt()", FAILURE)) is Outcome.BROKEN
    assert outcome_of(("holds()", FAILURE), ("controlOfIt()", FAILURE)) is Outcome.BROKEN


def test_what_comes_out_otherwise_than_the_table_says_is_told() -> None:
    """A bug that is gone, one that has come, and one of which nothing is known: each with its id."""
    present = expected_in("4.3.1")
    results = {bug: Result(Outcome.PRESENT if there else Outcome.FIXED) for bug, there in present.items()}
    assert list(disagreements("4.3.1", results)) == []

    results["F1"], results["B24"] = Result(Outcome.FIXED), Result(Outcome.PRESENT)
    results["F7"] = Result(Outcome.BROKEN, "an error")

    assert list(disagreements("4.3.1", results)) == [
        "F1: fixed, but the table says that it is there",
        "F7: the test is broken: an error",
        "B24: present, but the table says that it is not there",
    ]


def test_a_later_release_is_held_against_the_last_one_that_is_known() -> None:
    """The table has no column for it yet; a release before all is held against the first one."""
    assert expected_in("4.4.7-rc1") == expected_in("4.4.0") != expected_in("4.3.1")
    assert expected_in("4.10.0") == expected_in("4.4.0")
    assert expected_in("4.1.0") == expected_in("4.2.1")
    assert (last_of("4.2"), last_of("4.4"), last_of("5.0")) == ("4.2.2", "4.4.0", "4.4.0")


def test_what_came_out_is_shown_by_bug_and_release() -> None:
    """A line for each bug, a column for each release."""
    results = {kafka: {bug["id"]: Result(Outcome.NOT_THERE) for bug in bugs_of()} for kafka in ("4.3.1", "4.4.0")}

    lines = told(results).splitlines()

    assert lines[0].split() == ["bug", "4.3.1", "4.4.0"]
    assert lines[1] == "F1         not there  not there"
    assert len(lines) == 1 + len(bugs_of())


def test_another_version_of_the_reports_is_refused(tmp_path: Path) -> None:
    """The file says its version."""
    (tmp_path / "kafka-bug-reports.json").write_text(json.dumps({"kafka_bug_reports": 2, "rows": []}))

    with pytest.raises(ValueError, match="not version 1"):
        bugs_of(tmp_path)


def test_every_release_of_the_table_can_be_tried() -> None:
    """Those whose rules the library has are among them."""
    assert set(RELEASES) <= set(releases())
    assert DATA.is_dir()


@pytest.mark.oracle
def test_the_latest_release_has_the_bugs_that_the_table_says() -> None:
    """Kafka's own classes fail the tests of these bugs, and of no other; make kafka-bugs asks the other releases."""
    try:
        results = run(RELEASES[0])
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))

    assert list(disagreements(RELEASES[0], results)) == []
    assert {result.outcome for result in results.values()} == {Outcome.PRESENT, Outcome.FIXED}
