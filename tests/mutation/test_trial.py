"""Mutants are what they should be, and meet their fate."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="make mutation installs Cosmic Ray")

from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, WorkerOutcome, WorkResult
from cosmic_ray.work_item import TestOutcome as Outcome

from tests.mutation import __main__ as sessions
from tests.mutation import mutants, trial
from tests.mutation.survivors import ROOT

SOURCE = '''
FIRST = 1


def small(number: int | None = 0) -> bool:
    """Return whether *number* is small."""
    seen = []
    seen.append(number)
    return number < 10 and bool(seen)


def untested() -> int:
    """Return a number."""
    return 5


def waits(number: int) -> int:
    """Return nought."""
    while number > 0:
        number -= 1
    return number


def table() -> list[int]:
    """Return a table."""
    return [2]


TABLE = table()
'''

TESTS = """
from example import FIRST, small, waits


def test_first():
    assert FIRST == 1


def test_small():
    assert small(3)
    assert not small(12)


def test_waits():
    assert waits(4) == 0
"""

RUN = """
import json, sys
from pathlib import Path
import pytest
from cosmic_ray.work_db import WorkDB, use_db
from tests.mutation import mutants, trial

folder = Path(sys.argv[1])
mutants.SOURCE = folder
with use_db(str(folder / "session.sqlite"), WorkDB.Mode.create) as work:
    work.add_work_items(mutants.work_items(folder / "example.py"))
    tried = trial.Trial(work, trial.chosen(work, None, 0), 5, 5, 2, lambda done, of: None)
    assert not pytest.main(["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder)], plugins=[tried])
    places = [
        (mutants.place(item.mutations[0]), result.test_outcome.value, result.output)
        for item, result in work.completed_work_items
    ]
    places = [(f"{place.line} -> {place.change}", *outcome) for place, *outcome in places]
    print("RESULT" + json.dumps([places, len(trial.chosen(work, None, 0))]))
"""


@pytest.mark.parametrize("example", mutants.RemoveStatement.examples())
def test_a_statement_is_left_out(example: Example) -> None:
    """What is on its lines stays where it is."""
    code = f"if a:\n    {example.pre_mutation_code}    b = 1\n"

    assert mutate_code(code, mutants.RemoveStatement(), 0) == code.replace(example.pre_mutation_code, "pass\n")


def test_a_statement_leaves_its_lines() -> None:
    """Or the functions below it would not be found again."""
    code = "f(\n    x,\n)\ny = 1\n"

    assert mutate_code(code, mutants.RemoveStatement(), 0) == "pass\n\n\ny = 1\n"


def test_a_mutant_is_cosmic_rays(tmp_path: Path) -> None:
    """The file is not parsed anew for each, and what becomes of it is what Cosmic Ray makes of it."""
    file = tmp_path / "example.py"
    file.write_text(SOURCE)

    for name, operator in mutants.OPERATORS.items():
        changed = [mutate_code(SOURCE, operator, number) for number in range(len(mutants.occurrences(SOURCE, name)))]
        specs = [MutationSpec(file, name, number, (1, 0), (1, 1)) for number in range(len(changed))]
        assert [mutants.mutated(spec) for spec in specs] == changed
        assert mutate_code(SOURCE, operator, len(changed)) is None


def test_annotations_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing evaluates them, and so no test could notice."""
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    file = tmp_path / "example.py"
    file.write_text("def f(a: int | None, *, b: int) -> int | None:\n    c: int | None = a + b\n    return c\n")

    changes = [mutants.place(item.mutations[0]).change for item in mutants.work_items(file)]

    assert changes == ["c: int | None = a - b"]


def test_what_runs_at_import_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only bodies of functions are changed."""
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    file = tmp_path / "example.py"
    file.write_text("A = 1\n\n\nclass C:\n    b = 2\n\n    def f(self, c=3):\n        return 4\n")

    assert {mutants.place(item.mutations[0]).line for item in mutants.work_items(file)} == {"return 4"}


def test_what_has_become_of_a_mutant_counts_until_its_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session takes over from earlier ones what is known of files that are as they were, and nothing else."""
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    monkeypatch.setattr(sessions, "SOURCE", tmp_path)
    monkeypatch.setattr(sessions, "ROOT", tmp_path)
    files = [tmp_path / "p" / name for name in ("a.py", "b.py")]
    files[0].parent.mkdir()
    for file in files:
        file.write_text("def f(a):\n    return a < 5\n")
    with use_db(sessions.session("p"), WorkDB.Mode.create) as work:
        sessions.begin("p", work)
        for item in work.work_items:
            outcome = Outcome.KILLED if "NumberReplacer" in item.job_id else Outcome.SURVIVED
            work.set_result(item.job_id, WorkResult(WorkerOutcome.NORMAL, "", outcome))
    files[1].write_text("def f(a):\n    return a < 6\n")

    with use_db(sessions.session("p"), WorkDB.Mode.create) as work:
        sessions.begin("p", work)
        taken = {(job.split(":")[0], job.split(":")[2], result.test_outcome) for job, result in work.results}

    assert taken == {
        ("p/a.py", "NumberReplacer", Outcome.KILLED),
        ("p/a.py", "ReplaceComparisonOperator_Lt_LtE", Outcome.SURVIVED),
    }


def test_a_sample_stays_where_other_files_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed draws the same mutants of a file, whatever there is of others; another seed draws others."""
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    (tmp_path / "a.py").write_text("def f(a):\n" + "    a += 1\n" * 20)
    (tmp_path / "b.py").write_text("def f(a):\n    return a + 1\n")

    def drawn(name: str, seed: int, *files: str) -> list[str]:
        with use_db(str(tmp_path / name), WorkDB.Mode.create) as work:
            work.add_work_items(item for file in files for item in mutants.work_items(tmp_path / file))
            return [item.job_id for item in trial.chosen(work, 12, seed)]

    first, second, other = drawn("1", 7, "a.py"), drawn("2", 7, "a.py", "b.py"), drawn("3", 8, "a.py")
    assert [name for name in second if name.startswith("a.py")] == first[: sum(n.startswith("a.py") for n in second)]
    assert len(second) == len(set(second)) == 12
    assert set(other) != set(first)


def test_mutants_meet_the_tests_of_their_lines(tmp_path: Path) -> None:
    """Those that a test notices are killed, and a loop without end; those that are left come again."""
    (tmp_path / "example.py").write_text(SOURCE)
    (tmp_path / "test_example.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")

    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    results, again = json.loads(done.stdout.partition("RESULT")[2])
    fates = {change: (outcome, output.partition(" (")[0]) for change, outcome, output in results}
    small = "return number < 10 and bool(seen)"
    assert fates[f"{small} -> return number < 10 or bool(seen)"] == ("killed", "killed: test_example.py::test_small")
    assert fates[f"{small} -> return number <= 10 and bool(seen)"] == ("survived", "all tests of its line pass")
    assert fates["return 5 -> return 6"] == ("survived", "no test runs its line")
    assert fates["return [2] -> return [ 3]"] == ("incompetent", "it runs at import")
    outcome, output = fates["number -= 1 -> pass"]
    clocks = [f"ended by signal {clock}: test_example.py::test_waits" for clock in (signal.SIGPROF, signal.SIGALRM)]
    assert outcome == "killed"
    assert output in clocks
    assert again == sum(outcome == "survived" for _, outcome, _ in results)
