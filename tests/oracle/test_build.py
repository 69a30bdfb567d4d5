"""Building the oracle."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.oracle import build as building
from tests.oracle.build import OracleUnavailableError, build, folder_of, last_tested, line_of


def test_a_missing_tool_is_named_without_a_traceback(tmp_path: Path) -> None:
    """Where there is no Java, the program says so, and how to get it."""
    command = [sys.executable, "-m", "tests.oracle.build"]
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": ":".join(filter(None, sys.path))}

    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert "there is no java and no javac and no mvn" in ended.stderr
    assert "apt-get install openjdk-17-jdk-headless maven" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("said", ['openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_202"'])
def test_an_old_java_is_refused(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's servers need Java 17."""
    monkeypatch.setattr(building, "_output", lambda *_: said)
    monkeypatch.setattr("shutil.which", lambda tool: tool)

    with pytest.raises(OracleUnavailableError, match=r"this is Java 1"):
        build()


@pytest.mark.parametrize(
    ("kafka", "line"), [("4.2.1", "4.3"), ("4.3.1", "4.3"), ("4.4.0", "4.4"), ("4.4.0-rc1", "4.4"), ("4.10.0", "4.4")]
)
def test_a_release_is_built_as_the_latest_line_up_to_it(kafka: str, line: str) -> None:
    """Releases are compared by their numbers, and one that nobody knows yet is built like the latest known."""
    assert line_of(kafka) == line


@pytest.mark.parametrize(
    ("sources", "kafka", "folder"),
    [
        ("release", "4.2.1", "release-4.3"),
        ("groups", "4.2.1", "groups-4.2"),
        ("groups", "4.3.1", "groups-4.3"),
        ("groups", "4.10.0", "groups-4.4"),
        ("driver", "4.4.0", "driver"),
    ],
)
def test_a_release_has_sources_of_its_own_only_where_it_needs_them(sources: str, kafka: str, folder: str) -> None:
    """What a release builds otherwise is in the latest folder up to it, or in the first; some sources have none."""
    assert folder_of(sources, kafka) == folder


@pytest.mark.parametrize(
    ("kafka", "tests"),
    [("4.2.0", "4.2.0"), ("4.2.2", "4.2.1"), ("4.3.1", "4.3.1"), ("4.3.2", "4.3.1"), ("4.4.0", "4.3.1")],
)
def test_a_release_without_published_tests_takes_those_of_the_one_before(kafka: str, tests: str) -> None:
    """Kafka has published none since 4.2.1 and 4.3.1."""
    assert last_tested(kafka) == tests


def test_an_interrupted_build_is_not_taken_for_one(tmp_path: Path) -> None:
    """A directory appears under its name only when all that belongs into it is there."""
    with suppress(KeyboardInterrupt), building._whole(tmp_path / "jars") as made:  # noqa: SLF001 - no way round it
        (made / "half").touch()
        raise KeyboardInterrupt

    assert list(tmp_path.iterdir()) == []
