"""Holding workloads to the table of record."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

import sharestate
from bench import instruction_table as program
from bench.bytecodes import bytecodes, executed_by
from bench.instruction_table import (
    BEGIN,
    END,
    GROWN,
    NOT_CHECKED,
    PAGE,
    TABLE,
    Counted,
    TableError,
    differences,
    page_table,
    read,
    unchecked,
    write,
)
from bench.jvm.library import ROOT
from bench.rows import OF_RECORD
from bench.workloads import WHOLE
from sharestate.partition.locks import Lock, Locks

BEFORE = Counted(
    python="3.11",
    build="Python 3.11.7 built with GCC 12.2.0",
    instructions=dict.fromkeys(OF_RECORD, 100_000),
    compiled=dict.fromkeys(OF_RECORD, 60_000),
    bytecodes={name: {"partition.acquire.plan": 900.0, "values.effects.make": 100.0} for name in OF_RECORD},
)


COMPILED = evolve(BEFORE, bytecodes={})


def with_whole(instructions: int, **functions: float) -> Counted:
    """Return what was counted before, but for the row of what is acknowledged whole."""
    changed = {name.replace("__", "."): count for name, count in functions.items()}
    return evolve(
        BEFORE,
        instructions={**BEFORE.instructions, WHOLE: instructions},
        bytecodes={**BEFORE.bytecodes, WHOLE: {**BEFORE.bytecodes[WHOLE], **changed}},
    )


def test_two_per_cent_are_allowed() -> None:
    """Two per cent more or less are as in the table."""
    assert [*differences(BEFORE, with_whole(102_000, values__effects__make=120))] == []
    assert [*differences(BEFORE, with_whole(98_000, values__effects__make=80))] == []


def test_a_regression_names_the_functions_that_have_grown() -> None:
    """Both counts are said, and below them the functions with more bytecodes, new ones too, and no other."""
    now = with_whole(110_000, values__effects__make=160, partition__acquire__again=300)

    assert [*differences(BEFORE, now)] == [
        "whole: 100,000 -> 110,000 instructions (+10.0 %)",
        "whole: 1,000 -> 1,360 bytecodes (+36.0 %)",
        "    partition.acquire.again: 0 -> 300 bytecodes",
        "    values.effects.make: 100 -> 160 bytecodes",
    ]


def test_growth_in_c_is_said_to_be_there() -> None:
    """Where no function executes more bytecodes, nobody is blamed."""
    assert [*differences(BEFORE, with_whole(110_000))] == [
        "whole: 100,000 -> 110,000 instructions (+10.0 %)",
        "    no function executes more bytecodes: it is in what is written in C",
    ]


def test_a_saving_has_to_be_kept() -> None:
    """A row that takes less than the table says is named, else later growth would hide in it."""
    assert [*differences(BEFORE, with_whole(90_000))] == ["whole: 100,000 -> 90,000 instructions (-10.0 %)"]


def test_another_version_of_python_is_not_compared() -> None:
    """Nothing is said of a row, but why neither count was checked."""
    now = evolve(with_whole(200_000, values__effects__make=900), python="3.13", build="Python 3.13.1")

    assert [*differences(BEFORE, now)] == []
    another_build = f"not checked, because the table has those of {BEFORE.build}; this is Python 3.13.1"
    assert unchecked(BEFORE, now) == [
        "bytecodes: not checked, because the table has those of Python 3.11, not 3.13",
        f"instructions: {another_build}",
        f"instructions, compiled: {another_build}",
    ]


def test_another_build_of_the_same_version_has_its_bytecodes_compared() -> None:
    """Instructions are those of a build, bytecodes those of a version."""
    now = evolve(with_whole(200_000, values__effects__make=200), build="Python 3.11.2")

    assert [*differences(BEFORE, now)] == [
        "whole: 1,000 -> 1,100 bytecodes (+10.0 %)",
        "    values.effects.make: 100 -> 200 bytecodes",
    ]


def test_a_compiled_library_has_no_bytecodes_to_compare() -> None:
    """It executes none, which is no saving."""
    assert [*differences(BEFORE, COMPILED)] == []
    assert unchecked(BEFORE, COMPILED) == ["bytecodes: not checked, because the library is compiled"]


def test_what_the_compiled_library_takes_is_held_too() -> None:
    """A row whose instructions have grown there alone fails."""
    now = evolve(BEFORE, compiled={**BEFORE.compiled, WHOLE: 66_000})

    assert next(iter(differences(BEFORE, now))) == "whole: 60,000 -> 66,000 instructions, compiled (+10.0 %)"


def test_without_a_compiled_wheel_that_is_said() -> None:
    """The rest is compared."""
    now = evolve(with_whole(110_000), compiled={})

    assert next(iter(differences(BEFORE, now))) == "whole: 100,000 -> 110,000 instructions (+10.0 %)"
    assert unchecked(BEFORE, now) == [
        "instructions, compiled: not checked, because there was no wheel: make wheel-compiled"
    ]


def test_instructions_are_not_missed_where_bytecodes_alone_were_asked_for() -> None:
    """Bytecodes that are as in the table are all that has to be."""
    now = evolve(BEFORE, instructions={}, compiled={}, build="Python 3.11.2")

    assert [*differences(BEFORE, now)] == unchecked(BEFORE, now, bytecodes_only=True) == []


@pytest.mark.parametrize(
    ("now", "status", "said"),
    [
        (BEFORE, 0, "whole: 100,000 instructions, 60,000 compiled, 1,000 bytecodes"),
        (with_whole(110_000), GROWN, "make instructions UPDATE=1"),
        (evolve(BEFORE, build="Python 3.11.2"), NOT_CHECKED, "instructions: not checked, because"),
        (evolve(BEFORE, instructions={}), NOT_CHECKED, "instructions: not checked, because"),
    ],
)
def test_the_exit_status_says_what_came_of_it(  # noqa: PLR0913 - three of them are the case
    now: Counted,
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As in the table, changed, and not checked have one each."""
    write(tmp_path / "table.json", BEFORE)
    monkeypatch.setattr(program, "counted", lambda **_: now)
    monkeypatch.setattr("sys.argv", ["table", "--table", str(tmp_path / "table.json")])

    with pytest.raises(SystemExit) as ended:
        program.main()

    assert ended.value.code == status
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"version": 1}', '{"version": 2}', '{"version": 3}'])
def test_a_file_that_is_no_table_is_refused(text: str, tmp_path: Path) -> None:
    """Another version too; the message names the file."""
    (tmp_path / "table.json").write_text(text, "utf-8")

    with pytest.raises(TableError, match=r"table\.json: "):
        read(tmp_path / "table.json")


def test_the_table_of_record_has_every_row(tmp_path: Path) -> None:
    """It has both counts of each, and is written as it is read."""
    table = read(TABLE)
    write(tmp_path / "again.json", table)

    assert {*table.instructions} == {*table.compiled} == {*table.bytecodes} == {*OF_RECORD}
    assert json.loads((tmp_path / "again.json").read_text("utf-8")) == json.loads(TABLE.read_text("utf-8"))


def test_the_page_says_what_the_table_does() -> None:
    """What docs/install.md has between its marks is made of the table of record."""
    _, _, rest = PAGE.read_text("utf-8").partition(f"{BEGIN}\n")
    between, closed, _ = rest.partition(f"{END}\n")

    assert closed
    assert between.strip() == page_table(read(TABLE))


def test_an_update_writes_the_table_and_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both at once, of one count; without the compiled wheel neither is touched."""
    table, page = tmp_path / "table.json", tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    monkeypatch.setattr(program, "counted", lambda **_: BEFORE)
    monkeypatch.setattr(program, "lacking", lambda: None)
    command = ["table", "--update", "--table", str(table), "--page", str(page)]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match="make wheel-compiled"):
        program.main()
    assert (table.exists(), "old" in page.read_text()) == (False, True)

    monkeypatch.setattr("sys.argv", [*command, "--wheel", "compiled.whl"])
    with pytest.raises(SystemExit) as ended:
        program.main()

    assert not ended.value.code
    assert read(table) == BEFORE
    assert page.read_text() == f"before\n{BEGIN}\n\n{page_table(BEFORE)}\n\n{END}\nafter\n"


def test_bytecodes_are_counted_by_function_and_alike_each_time() -> None:
    """Counting twice gives the same, the commands are among them, and what traced before traces again."""
    before = sys.gettrace()
    counted = bytecodes(WHOLE)

    assert counted == bytecodes(WHOLE)
    assert counted["partition.share_partition.SharePartition.acknowledge"] > 0
    assert sys.gettrace() is before


def test_a_slow_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a function of the core does more than it has to, the row fails and the function is the first one named."""
    before = evolve(BEFORE, bytecodes={**BEFORE.bytecodes, WHOLE: bytecodes(WHOLE)})
    release = Locks.release

    def slow(locks: Locks, lock: Lock, holders: int) -> None:
        for _ in range(50):
            pass
        release(locks, lock, holders)

    monkeypatch.setattr(Locks, "release", slow)
    row, first, *_ = differences(before, evolve(before, bytecodes={**before.bytecodes, WHOLE: bytecodes(WHOLE)}))

    assert row.startswith("whole: ")
    assert "test_a_slow_down_is_named.<locals>.slow" in first


@pytest.mark.parametrize("seed", ["1", "4711"])
def test_bytecodes_are_the_same_with_every_seed_of_hashes_and_in_every_directory(seed: str, tmp_path: Path) -> None:
    """A copy of the library in another directory, with other hashes, executes as many in each function."""
    for package, source in (("bench", ROOT / "bench"), ("src/sharestate", Path(sharestate.__file__).parent)):
        shutil.copytree(source, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    asked = (
        "import json, sharestate; from bench.bytecodes import bytecodes; "
        f"print(json.dumps([sharestate.__file__, bytecodes({WHOLE!r})]))"
    )
    paths = os.pathsep.join((str(tmp_path / "src"), str(tmp_path)))
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-P", "-c", asked]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    file, counted = json.loads(printed.stdout)
    assert Path(file).is_relative_to(tmp_path)
    assert counted == bytecodes(WHOLE)


class Leftover:
    """Garbage in a cycle, with a finalizer in Python."""

    def __init__(self) -> None:
        """Refer to it from itself."""
        self.itself = self

    def __del__(self) -> None:
        """Execute something."""
        sorted(range(3))


def test_finalizers_of_others_are_not_counted() -> None:
    """Garbage that is there already is not collected while bytecodes are counted."""
    expected = executed_by(lambda: [*map(list, [()] * 50_000)])
    assert expected

    for _ in range(100):
        Leftover()

    assert executed_by(lambda: [*map(list, [()] * 50_000)]) == expected
