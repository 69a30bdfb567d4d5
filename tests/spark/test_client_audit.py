"""What clients wrote down, judged on Spark: the same as without it, of right logs and of falsified ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from sharestate.audit import OperationsFile, OperationsHeader, audit
from sharestate.cli.commands import sharestate
from sharestate.errors import MalformedInputError
from sharestate.spark import audit_logs
from tests.support.audited_clients import Lines, RandomClients
from tests.support.falsified_operations import FALSIFICATIONS
from tests.support.hand_made_operations import SETTINGS

pytestmark = pytest.mark.spark


def written(folder: Path, lines: Lines, *, clock: str | None) -> list[str]:
    """Write a file for each client, and return their names."""
    names = []
    for client in dict.fromkeys(client for client, _ in lines):
        path = folder / f"{client}.jsonl.gz"
        with OperationsFile(path, OperationsHeader(client=client, clock=clock)) as file:
            file.write(operation for name, operation in lines if name == client)
        names.append(str(path))
    return names


def test_what_is_found_out_is_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Of random clients with faults and clocks of their own, with the group and without."""
    logs = written(tmp_path, RandomClients(3, skew_ms=300).run(), clock=None)

    assert audit_logs(spark, logs, SETTINGS).to_json() == audit(logs, SETTINGS).to_json()
    assert audit_logs(spark, logs, SETTINGS, group="other").to_json() == audit(logs, SETTINGS, group="other").to_json()


@pytest.mark.parametrize("number", range(0, len(FALSIFICATIONS), 4))
def test_what_is_found_in_falsified_logs_is_the_same(spark: SparkSession, tmp_path: Path, number: int) -> None:
    """With the lives and the places of the findings."""
    lines = RandomClients(2, has_faults=False).run()
    for falsify in list(FALSIFICATIONS)[number : number + 4]:
        lines = falsify(lines, Random(1)) or lines
    logs = written(tmp_path, lines, clock="one")
    plain = audit(logs)

    assert [*plain.findings]
    assert audit_logs(spark, logs).to_json() == plain.to_json()


def test_the_command_prints_what_that_without_spark_prints(tmp_path: Path) -> None:
    """With the same exit code, and a page with the same numbers."""
    (log,) = written(tmp_path, [("c", operation) for _, operation in RandomClients(5).run()], clock=None)
    plain = CliRunner().invoke(sharestate, ["audit", log, "--json", "--html", str(tmp_path / "plain.html")])
    command = [sys.executable, "-m", "sharestate", "spark", "audit", log, "--json", "--html", f"{tmp_path}/page.html"]
    run = subprocess.run(command, capture_output=True, check=False, text=True)

    assert (run.returncode, run.stderr) == (plain.exit_code, "")
    assert run.stdout == plain.output
    assert (tmp_path / "page.html").read_text() == (tmp_path / "plain.html").read_text()


def test_a_broken_line_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """The error has file, line and field."""
    (tmp_path / "c.jsonl").write_text('{"sharestate_operations":1,"client":"c"}\n{"op":"fetch"}\n')

    with pytest.raises(PythonException, match=r"OperationsError: .*c\.jsonl:2: "):
        audit_logs(spark, [str(tmp_path / "c.jsonl")])
    with pytest.raises(MalformedInputError, match="expected files of operations"):
        audit_logs(spark, [])
