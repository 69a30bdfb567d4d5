"""
Mutation testing: ``python -m tests.mutation partition --sample 300 --seed 7``.

A session is Cosmic Ray's, ``build/mutation/PACKAGE-DIGEST.sqlite``: its ``cr-report`` and ``cr-html`` read it too. It
goes with the source of the package, and takes over what became of mutants of files that are as they were. A mutant
that has been killed is not tried again, one that has survived is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkItem
from rich.console import Console
from rich.progress import Progress

from tests.mutation.mutants import place, work_items
from tests.mutation.survivors import ROOT, SOURCE, Survivor, survivors
from tests.mutation.trial import Trial, chosen, seconds_taken, survived

_HISTORIES: Final = ("tests/unit/history", "tests/kafka/test_histories.py", "tests/property/test_histories.py")

PACKAGES: Final = {
    "partition": (
        "tests/unit/partition",
        "tests/unit/conversation",
        "tests/unit/test_transitions.py",
        "tests/unit/test_snapshots.py",
        "tests/unit/test_older_snapshots.py",
        "tests/kafka/test_recorded.py",
        "tests/kafka/test_ours.py",
    ),
    "coordinator": ("tests/unit/coordinator", "tests/unit/values/test_profiles.py", "tests/kafka/test_coordinator.py"),
    "state_topic": ("tests/unit/state_topic",),
    "history": (*_HISTORIES,),
    "log_check": ("tests/unit/log_check", "tests/falsified_logs"),
}
"""What a package is tested by, here: not all that tests it, which would take too long."""


def session(package: str) -> str:
    """Return where the session of *package* is."""
    digest = hashlib.sha256()
    for file in sorted((SOURCE / package).glob("*.py")):
        digest.update(file.read_bytes())
    folder = ROOT / "build" / "mutation"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"{package}-{digest.hexdigest()[:12]}.sqlite")


def begin(package: str, work: WorkDB) -> None:
    """Put the mutants of *package* into *work*, and what has become of them in earlier sessions, the last one last."""
    work.add_work_items(item for file in sorted((SOURCE / package).glob("*.py")) for item in work_items(file))
    names = {item.job_id for item in work.work_items}
    files = (ROOT / "build" / "mutation").glob(f"{package}-*.sqlite")
    for file in sorted(files, key=lambda file: file.stat().st_mtime):
        if str(file) == work.name():
            continue
        with use_db(str(file), WorkDB.Mode.open) as earlier:
            for name, result in earlier.results:
                if name in names:
                    work.set_result(name, result)


def try_package(package: str, options: argparse.Namespace) -> bool:
    """Try mutants of *package*; return whether each of them was killed, or may survive."""
    with use_db(session(package), WorkDB.Mode.create) as work:
        if not work.num_work_items:
            begin(package, work)
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(package)
            trial = Trial(
                work,
                unexplained(work) if options.again else chosen(work, options.sample, options.seed),
                options.seconds,
                options.minutes,
                options.jobs,
                lambda done, total: bar.update(task, completed=done, total=total),
            )
            plugins = ["xdist", "cacheprovider", "cov"]
            arguments = [*(f"-pno:{name}" for name in plugins), "-q", "-s", "-o", "tmp_path_retention_policy=none"]
            # That a test has failed is enough; and the code of sharestate stays as it is.
            arguments += ["--assert=plain", "--tb=no"]
            with TemporaryDirectory(prefix="mutation-") as folder:  # pytest would have other sessions delete it
                arguments.append(f"--basetemp={folder}/tests")
                if pytest.main([*arguments, *(options.again or PACKAGES[package])], plugins=[trial]):
                    return False
        for name in trial.left_out:
            sys.stdout.write(f"left out, as it fails on the code as it is: {name}\n")
        counts = report(package, work)
        if options.keep is not None:
            keep(
                options.keep,
                {"date": f"{datetime.now(UTC).date()}", "package": package, "seed": options.seed, **counts},
                is_again=options.again is not None,
            )
        return not counts["left"]


def unexplained(work: WorkDB) -> list[WorkItem]:
    """Return the mutants of *work* that have survived so far, and may not."""
    known = {_key(entry) for entry in survivors()}
    return [item for item in survived(work) if _key_of(item) not in known]


def keep(file: Path, row: dict[str, str | int], *, is_again: bool) -> None:
    """Put *row* into *file*, in place of an earlier one of the package; after another try its costs stay."""
    rows = json.loads(file.read_text())["rows"] if file.exists() else []
    for each in rows if is_again else ():
        if each["package"] == row["package"] and "cpu_ms" in each:
            row["cpu_ms"] = each["cpu_ms"]
    rows = [*(each for each in rows if each["package"] != row["package"]), row]
    lines = ",\n".join(f"    {json.dumps(each)}" for each in rows)
    file.write_text(f'{{\n  "mutants": 1,\n  "rows": [\n{lines}\n  ]\n}}\n')


def report(package: str, work: WorkDB) -> dict[str, int]:
    """Print how the mutants of *package* fared so far; return how many, those that are left have no reason."""
    known = {_key(entry): entry for entry in survivors()}
    done = work.completed_work_items
    tried = [(item, result) for item, result in done if result.test_outcome != TestOutcome.INCOMPETENT]
    left = [(item, result) for item, result in tried if result.test_outcome == TestOutcome.SURVIVED]
    entries = [known.get(_key_of(item)) for item, _ in left]
    kinds = Counter(entry.kind if entry else "new" for entry in entries)
    killed, counted = len(tried) - len(left), len(tried) - kinds["equivalent"]
    of = work.num_work_items - (len(done) - len(tried))
    share = f" = {100 * killed / counted:.1f} %" if counted else ""
    for (_, result), entry in zip(left, entries, strict=True):
        if entry is None:
            sys.stdout.write(f"{result.diff}\n  {result.output}\n")
    sys.stdout.write(
        f"{package}: {len(tried):,} of {of:,} mutants, {kinds['equivalent']} of them equivalent; of the other "
        f"{counted:,} {killed:,} killed{share}, {kinds['harmless']} harmless, {kinds['new']} without a reason\n"
    )
    counts = {"mutants": of, "tried": len(tried), "killed": killed, "left": kinds["new"]}
    taken_ms = [round(1000 * taken) for _, result in tried if (taken := seconds_taken(result)) is not None]
    if taken_ms:
        counts["cpu_ms"] = sum(taken_ms) // len(taken_ms)
    return counts | {kind: kinds[kind] for kind in ("equivalent", "harmless")}


def _key(entry: Survivor) -> tuple[str, str, str, str]:
    return entry.module, entry.definition, entry.line, entry.change


def _key_of(item: WorkItem) -> tuple[str, str, str, str]:
    where = place(item.mutations[0])
    return where.module, where.definition, where.line, where.change


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Mutation testing.")
    parser.add_argument("package", nargs="+", choices=PACKAGES)
    parser.add_argument("--sample", type=int, help="so many mutants of each, not all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20, help="of CPU that the tests of a mutant may take together")
    parser.add_argument("--minutes", type=float, default=600, help="when to stop with a package")
    parser.add_argument("--again", nargs="+", metavar="TEST", help="what has survived without a reason, with these")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    parser.add_argument("--keep", type=Path, help="a JSON file for the counts")
    options = parser.parse_args()
    good = [try_package(package, options) for package in options.package]
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    sys.stdout.write(f"{sum(usage.ru_utime + usage.ru_stime for usage in used):,.0f} s of CPU\n")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
