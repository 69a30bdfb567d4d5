"""The tests of ``examples/java``, as somebody runs them who tests in Java: JUnit, and the command ``sharestate``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.broker.conftest import skipping
from tests.oracle.build import require_tools

pytestmark = pytest.mark.clients

EXAMPLE = Path(__file__).parents[2] / "examples" / "java"


def test_the_tests_in_java_pass_with_ours(tmp_path: Path) -> None:
    """Each starts a broker of its own, and one moves its clock at the control port."""
    with skipping():
        require_tools()
    project = shutil.copytree(EXAMPLE, tmp_path / "java", ignore=shutil.ignore_patterns("target"))
    environment = {**os.environ, "SHARESTATE": f"{sys.executable} -m sharestate"}

    maven = shutil.which("mvn")
    assert maven
    ended = subprocess.run(
        [maven, "-B", "-q", "test"],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout
    report = (project / "target" / "surefire-reports" / "OrderConsumerTest.txt").read_text()
    assert "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0" in report
