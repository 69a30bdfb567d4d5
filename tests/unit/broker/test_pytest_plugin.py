"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

PLUGIN = ("-p", "sharestate.broker.pytest_plugin")
"""By its module: entry points are off, as those of other plugins take seconds."""

SCENE = """
import pytest
from sharestate import KAFKA_4_3
from sharestate.broker import QUICK_SETTINGS, StandingClock
from tests.support.wire_members import WireMember, filled
"""


def ran(directory: Path, tests: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on the texts of test files by their names, in a process of its own."""
    for name, text in tests.items():
        (directory / f"test_{name}.py").write_text(f"{SCENE}\n{text}")
    (directory / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -W error\n")
    return run(directory, *options)


def run(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a directory, in a process of its own."""
    command = [sys.executable, "-m", "pytest", "-q", *PLUGIN, *options, str(directory)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}  # for whole lines
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)


WRONG: Final = {
    "positional": ("'standing'", "the marker share_broker has keywords only, and not 'standing'"),
    "keyword": (
        "clok='standing'",
        "the marker share_broker has no 'clok': it has profile, config, clock and seed",
    ),
    "clock": ("clock='slow'", "the marker share_broker knows no clock 'slow': it is one of system, standing"),
    "profile": ("profile='kafka-3.9'", "the marker share_broker knows no profile 'kafka-3.9': it is one of "),
    "config": ("config={'group.share.nothing': '1'}", "group.share.nothing"),
}
"""The arguments of markers, and what is wrong with them."""

TESTS: Final = {
    "own": """
@pytest.mark.parametrize("word", ["a/b"])
def test_one(share_broker, share_group, word):
    assert share_group == "test_one-a-b"
    assert share_broker.profile.name == "kafka-4.4"
    assert share_broker.run(lambda node: len(node.topics)) == 0
    with WireMember(share_broker, filled(share_broker, 1, group_id=share_group), share_group) as member:
        assert member.fetch() == [(0, 0, 1)]

def test_two(share_broker):
    assert share_broker.run(lambda node: len(node.topics)) == 0
""",
    "special": """
pytestmark = pytest.mark.share_broker(profile="kafka-4.2")

def test_of_the_module(share_broker):
    assert share_broker.profile.name == "kafka-4.2"

@pytest.mark.share_broker(profile=KAFKA_4_3, clock="standing", seed=3, config={"num.partitions": "4"})
def test_of_its_own(share_broker):
    assert share_broker.profile is KAFKA_4_3
    before_ms = share_broker.now_ms
    share_broker.advance(seconds=5)
    assert share_broker.now_ms == before_ms + 5_000
""",
    "not_done": """
@pytest.mark.parametrize("expected", [1, 2])
def test_it(share_broker, share_group, expected):
    with WireMember(share_broker, filled(share_broker, 2, group_id=share_group), share_group) as member:
        assert member.fetch() == [(0, 1, expected)]
""",
    "nothing": """
def test_it(share_broker):
    raise ValueError
""",
    "wrong": "\n".join(
        f"@pytest.mark.share_broker({arguments})\ndef test_{name}(share_broker):\n    pass\n"
        for name, (arguments, _) in WRONG.items()
    ),
}
"""The texts of test files, which pytest runs together."""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """A run of them, with a line for each test in its summary."""
    return ran(tmp_path_factory.mktemp("tried"), TESTS, "-rA")


def outcomes(tried: subprocess.CompletedProcess[str], file: str) -> list[str]:
    """Return the lines of the tests of a file, each with its outcome; errors and failures with their messages."""
    return [line for line in tried.stdout.splitlines() if re.match(rf"[A-Z]+ \S*test_{file}\.py::", line)]


def test_a_test_gets_a_broker_and_a_group_of_its_own(tried: subprocess.CompletedProcess[str]) -> None:
    """The broker has quick settings, and the group begins with the first record; its name is that of the test."""
    assert [line.partition(" ")[0] for line in outcomes(tried, "own")] == ["PASSED"] * 2, tried.stdout


def test_a_marker_says_what_is_special_about_the_broker(tried: subprocess.CompletedProcess[str]) -> None:
    """Profile, settings, clock and seed; the nearest one counts, as pytest has it."""
    assert [line.partition(" ")[0] for line in outcomes(tried, "special")] == ["PASSED"] * 2, tried.stdout


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_marker_is_an_error_of_the_test(tried: subprocess.CompletedProcess[str], name: str) -> None:
    """It says what is wrong."""
    (error,) = (line for line in outcomes(tried, "wrong") if f"::test_{name} - " in line)

    assert tried.returncode == 1
    assert error.startswith("ERROR ")
    assert WRONG[name][1] in error


def test_a_failure_tells_the_lives_of_the_records_that_are_not_done(tried: subprocess.CompletedProcess[str]) -> None:
    """In the report of the test that has failed, and in no other."""
    assert tried.stdout.count("share_broker: records that no group is done with") == 1
    assert "Group test_it-2: 2 records not done with" in tried.stdout
    assert "acquired it: delivery 1 of 5" in tried.stdout
    assert [line.partition(" ")[0] for line in outcomes(tried, "not_done")] == ["PASSED", "FAILED"], tried.stdout


def test_a_failure_without_records_tells_nothing(tried: subprocess.CompletedProcess[str]) -> None:
    """Nothing was fetched, so no group is known."""
    (failure,) = outcomes(tried, "nothing")
    _, _, told = tried.stdout.partition("def test_it(share_broker):")
    report, _, _ = told.partition("short test summary info")

    assert failure.startswith("FAILED ")
    assert "ValueError" in report
    assert "share_broker: records" not in report.partition("____")[0]


def test_tests_in_several_processes_have_brokers_of_their_own(tmp_path: Path) -> None:
    """With pytest-xdist, each at a port that is free."""
    test = """
@pytest.mark.parametrize("number", range(6))
def test_it(share_broker, share_group, number):
    with WireMember(share_broker, filled(share_broker, number, group_id=share_group), share_group) as member:
        assert len(member.fetch(max_records=1)) == min(number, 1)
"""

    result = ran(tmp_path, {"it": test}, "-p", "xdist", "-n", "2")

    assert result.stdout.splitlines()[-1].startswith("6 passed"), result.stdout


def test_without_its_fixtures_nothing_of_the_extra_is_loaded(tmp_path: Path) -> None:
    """A test that asks for no broker does not wait for what a broker takes."""
    (tmp_path / "test_it.py").write_text(
        """
import sys

def test_it():
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert "sharestate" in loaded
    assert not loaded & {"kio", "aiokafka", "cramjam", "xxhash"}
    assert "sharestate.broker.server" not in sys.modules
"""
    )
    result = run(tmp_path)

    assert result.returncode == 0, result.stdout
