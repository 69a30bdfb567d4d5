"""A search in several processes, which can be stopped and taken up again, and the command for it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, MalformedInputError
from sharestate.cli.commands import sharestate
from sharestate.conversation.replay import ReplayVerdict, replay
from sharestate.testing.search import Level, Plan, StateError, Task, read_divergences, search
from tests.support.processes import runs, wait_until

SERVE = (sys.executable, "-m", "sharestate", "serve", "--profile")


def compared(*arguments: str) -> Result:
    """Run ``sharestate compare`` in this process."""
    return CliRunner().invoke(sharestate, ["compare", *arguments])


def test_a_search_goes_on_where_it_was_left(tmp_path: Path) -> None:
    """The state file tells where; it is refused by another search, and if it is something else."""
    state = tmp_path / "states/state.json"
    task = Task(command=(*SERVE, "kafka-4.3"), profile=KAFKA_4_3, sequences="plain", level=Level.ANSWERS)
    plan = Plan(task=task, operations=1, seed=5, state=state, chunk=4)

    first, second = search(plan), search(plan)

    assert (first.next, second.next) == (9, 13)
    assert second.tally.total == first.compared + second.compared
    assert first.findings == second.findings == []
    with pytest.raises(StateError, match=r"of another search: seed 5$"):
        search(Plan(task=task, operations=1, seed=6, state=state))
    kept = json.loads(state.read_text())
    damaged = [
        {**kept, "next": "1"},
        {**kept, "tally": {**kept["tally"], "operations": {"plain": []}}},
        {**kept, "tally": {**kept["tally"], "shown": [["plain", "B7"]]}},
        {**kept, "more": [None] * 2**20},
    ]
    for content in ("[]", "{}", "no", json.dumps(plan.identity), *map(json.dumps, damaged)):
        state.write_text(content)
        with pytest.raises(StateError):
            search(plan)
        assert state.read_text() == content


def test_the_command_says_what_differs(tmp_path: Path) -> None:
    """The conversation that shows a difference is in a file, which `sharestate replay` takes."""
    ended = compared("--profile", "kafka-4.4", "--ops", "5000", "--out", str(tmp_path), "--", *SERVE, "kafka-4.3")

    assert ended.exit_code == 1
    assert "where the peer's response is the expected one:" in ended.stdout
    (file,) = tmp_path.iterdir()
    assert f"sharestate replay {file}" in ended.stdout
    assert "1 difference; next sequence " in ended.stdout.splitlines()[-1]
    assert replay(file, KAFKA_4_4, Level.OBSERVABLE).verdict is ReplayVerdict.FAILED
    assert replay(file, KAFKA_4_3, Level.OBSERVABLE).verdict is ReplayVerdict.PASSED
    assert ended.stderr == ""


def test_the_command_knows_what_is_known(tmp_path: Path) -> None:
    """With a file of known divergences the same comparison ends well."""
    known = tmp_path / "known.json"
    everything = ["open", "initialize", "configure", "acquire", "acknowledge", "complete", "advance", "release"]
    known.write_text(json.dumps({"divergences": 1, "rows": [{"id": "no queue", "ops": everything}]}))
    arguments = ["--profile", "kafka-4.4", "--ops", "1", "--known", str(known), "--", *SERVE, "kafka-4.3"]

    ended = compared(*arguments)

    assert ended.exit_code == 0, ended.stdout
    assert " 0 known divergences; " not in ended.stdout


def test_a_peer_that_cannot_be_run_is_no_difference() -> None:
    """The exit code is 2, with the peer's last words or the system's."""
    dies = compared("--", sys.executable, "-c", "import sys; sys.exit('no such jar')")
    missing = compared("--", "/nowhere/at/all")

    assert dies.exit_code == missing.exit_code == 2
    assert "no such jar" in dies.stderr
    assert missing.stderr == "Error: /nowhere/at/all: no such program\n"


def test_a_peer_that_dies_at_once_is_told_at_once() -> None:
    """Nobody waits for the answers of a process that has ended: an answer may take a minute."""
    began_s = time.monotonic()

    ended = compared("--ops", "1000", "--jobs", "2", "--", sys.executable, "-c", "raise SystemExit(7)")

    assert (ended.exit_code, ended.stderr) == (2, "Error: the peer ended with status 7\n")
    assert time.monotonic() - began_s < 30


LONG_LIVED: Final = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(f"{os.getpid()} {os.getppid()} \\n")
while True: time.sleep(60)
"""


def test_nothing_outlives_the_command_that_was_killed(tmp_path: Path) -> None:
    """Neither the peer nor what watches over it, however the command has ended."""
    noted = tmp_path / "processes"
    command = [sys.executable, "-m", "sharestate", "compare", "--", sys.executable, "-c", LONG_LIVED, str(noted)]
    with subprocess.Popen(command) as comparing:
        wait_until(lambda: noted.exists() and noted.read_text().endswith("\n"))
        processes = [Path("/proc", pid) for pid in noted.read_text().split()]
        assert [each.is_dir() for each in processes] == [True, True]
        comparing.kill()

    wait_until(lambda: not any(map(runs, processes)))


FAILING = """
import sys
from sharestate.testing import InProcessServer
from sharestate import KAFKA_4_4
from sharestate.json_lines import read_json, write_json
serve = InProcessServer(KAFKA_4_4)
for line in sys.stdin:
    request = read_json(line)
    if request["op"] == "release": {failure}
    print(write_json(serve(request)), flush=True)
"""


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ("raise RuntimeError('oops')", "RuntimeError: oops"),
        ("print('java.lang.Error', flush=True); continue", "not JSON"),
    ],
)
def test_a_peer_that_fails_at_a_request_differs_there(failure: str, told: str) -> None:
    """If it ends in the middle, or writes something else, the shortest conversation up to there is shown."""
    ended = compared("--ops", "1", "--", sys.executable, "-c", FAILING.format(failure=failure))

    assert ended.exit_code == 1, ended.stderr
    assert 'at {"op":"release"' in ended.stdout
    assert told in ended.stdout
    assert ended.stderr == ""


def test_known_divergences_are_read(tmp_path: Path) -> None:
    """Each field is that of a `Divergence`; what is wrong is named."""
    file = tmp_path / "known.json"
    row = {"id": "x", "ops": ["acquire"], "raises": [None, "KeyError"], "differs_in": ["state"], "later": True}
    file.write_text(json.dumps({"divergences": 1, "rows": [row]}))

    (read,) = read_divergences(file)

    assert (read.id, sorted(read.ops), len(read.raises), read.later) == ("x", ["acquire"], 2, True)
    for content, field in (
        ({"divergences": 2, "rows": []}, "divergences"),
        ({"divergences": 1, "rows": [{"id": "x"}]}, "rows[0].ops"),
        ({"divergences": 1, "rows": [{**row, "differs_in": ["colour"]}]}, "rows[0].differs_in[0]"),
        ({"divergences": 1, "rows": [{**row, "op": "acquire"}]}, "rows[0].op"),
    ):
        file.write_text(json.dumps(content))
        with pytest.raises(MalformedInputError) as caught:
            read_divergences(file)
        assert caught.value.field == field


def test_other_rules_are_found_by_several_processes() -> None:
    """Releases that differ are told apart, and the first difference of each kind is kept."""
    task = Task(command=(*SERVE, "kafka-4.2"), profile=KAFKA_4_4)

    found = search(Plan(task=task, operations=1, jobs=2, chunk=8)).findings

    assert len({finding.signature for finding in found}) == len(found) > 0
    assert KAFKA_4_2.name in task.command
