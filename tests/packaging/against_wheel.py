"""
Run tests against a wheel, out of reach of the source: ``against_wheel.py this|others|3.12|compiled PYTEST-ARGUMENTS``.

With the Python that runs this, or with another version, the wheel in `dist` and its extras are installed into a fresh
environment; or with this Python the compiled wheel in `build/compiled`. The tests are those of the sdist, unpacked
elsewhere and without its `src`; the examples in the installed package's docstrings may be among them, and mypy --strict
checks `tests/typing/api.py` against it. All other supported versions are tried at once, each in one process: several
would collect the same tests each. A version that the machine does not have is skipped, and that is said.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DIST = Path(__file__).parents[2] / "dist"
COMPILED = DIST.parent / "build/compiled"
SUPPORTED = ("3.11", "3.12", "3.13")
WHERE = "import sharestate; print(sharestate.__file__)"
VERSION = "import ensurepip, sys, venv; print('{}.{}'.format(*sys.version_info))"

_KIP_POLICY = "tests/property/test_kip_policy.py::test_"
_PARTITION = "tests/unit/partition/test_"
_UNFORMED = f"{_PARTITION}kip_pending.py::test_a_change_whose_write_cannot_be_formed"
NOT_OF_COMPILED = {
    f"{_KIP_POLICY}every_write_is_that_of_the_plain_rule": "puts a class in the place of ours",
    f"{_KIP_POLICY}what_is_kept_from_write_to_write_changes_none": "puts a class in the place of ours",
    "tests/property/test_record_oracle.py::test_an_old_rule_in_the_library_is_found": "plants bugs in modules",
    f"{_PARTITION}interrupted.py::test_a_change_is_withdrawn_wherever_it_fails": "traces lines",
    f"{_PARTITION}interrupted.py::test_cells_are_made_before_locks_change": "puts functions in the place of ours",
    f"{_PARTITION}invariants.py::test_a_planted_contradiction_is_caught[overlapping_batches]": "sets what is final",
    f"{_PARTITION}invariants.py::test_a_planted_contradiction_is_caught[reversed_batch]": "sets what is final",
    f"{_PARTITION}invariants.py::test_every_invariant_has_its_contradiction": "sets what is final",
    f"{_UNFORMED}_is_withdrawn": "puts functions in the place of ours",
    "tests/unit/values/test_descriptions.py": "mypyc keeps no docstrings of named tuples, such as GapWindow",
}
"""Tests that cannot be of a compiled library, and why: they do to its modules what only Python lets them do."""


def say(text: str) -> None:
    """Write *text* before anything that a program started later prints."""
    sys.stdout.write(f"== {text}\n")
    sys.stdout.flush()


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> None:
    """Run *command*, with more in its *environment*; if it fails, so does this script, with its status."""
    status = subprocess.run(command, check=False, cwd=cwd, env=os.environ | environment).returncode
    if status:
        sys.exit(status)


def output(*command: str | Path) -> str:
    """Return what *command* prints, or nothing if it cannot be run or fails."""
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def interpreters(version: str) -> Iterator[str]:
    """Yield where Python *version* may be: this one, on the path, and with pyenv."""
    yield sys.executable
    yield from filter(None, [shutil.which(f"python{version}")])
    for installed in output("pyenv", "versions", "--bare").split():
        if installed.startswith(f"{version}."):
            yield f"{output('pyenv', 'prefix', installed)}/bin/python"


def interpreter(version: str) -> str | None:
    """Return a Python *version* that runs and can make environments, or None."""
    return next((python for python in interpreters(version) if output(python, "-c", VERSION) == version), None)


def check(python: str, tests: Sequence[str], scratch: Path, built: Path = DIST) -> None:
    """Install the wheel that was *built* for *python* below *scratch*, and run *tests* there."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        sdist.extractall(scratch, filter="data")
    (home,) = scratch.iterdir()
    shutil.rmtree(home / "src")
    env = scratch / "env"
    run(python, "-m", "venv", "--without-pip", env)
    installed = env / "bin/python"
    pip = (sys.executable, "-m", "pip", "--python", installed, "--quiet", "--disable-pip-version-check")
    (wheel,) = built.glob("*.whl")
    extras = "broker,cli,consumer,kafka,monitor,parquet,plots,segments,testing"
    run(*pip, "install", "--no-compile", f"{wheel}[{extras}]", "--group", f"{home}/pyproject.toml:test")
    run(*pip, "check")
    say(f"Python {output(installed, '-c', VERSION)}: testing {output(installed, '-c', WHERE)}")
    without_spark = f"--ignore-glob={env}/*/sharestate/spark/*"  # in pyproject.toml it is below `home`
    is_compiled = built == COMPILED
    left_out = [f"--deselect={test}" for test in NOT_OF_COMPILED] if is_compiled else []
    build = {"SHARESTATE_COMPILE": str(int(is_compiled))}  # which the tests expect
    run(installed, "-m", "pytest", without_spark, *left_out, *tests, cwd=home, **build)
    run(sys.executable, "-m", "mypy", "--strict", "--python-executable", installed, "tests/typing/api.py", cwd=home)


def check_others(versions: Sequence[str], tests: Sequence[str]) -> None:
    """Check *versions* of Python at once, and show what each has said as soon as it and those before it have ended."""

    def checked(version: str) -> subprocess.CompletedProcess[bytes]:
        command = (sys.executable, __file__, version, *tests)
        return subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    say(f"Python {', '.join(versions)} at once; what they say comes in the end")
    statuses = []
    with ThreadPoolExecutor() as pool:
        for ended in pool.map(checked, versions):
            sys.stdout.buffer.write(ended.stdout)
            sys.stdout.flush()
            statuses.append(ended.returncode)
    sys.exit(max(statuses, key=abs))


def main(arguments: list[str]) -> None:
    """Check this version of Python, another one, or all others."""
    which, *tests = arguments
    this = output(sys.executable, "-c", VERSION)
    if which == "others":
        check_others([version for version in SUPPORTED if version != this], tests)
    version = which if which in SUPPORTED else this
    python = interpreter(version)
    if python is None:
        say(f"Python {version}: skipped, neither the path nor pyenv has one that runs and makes environments")
        return
    with tempfile.TemporaryDirectory() as scratch:
        check(python, tests, Path(scratch), COMPILED if which == "compiled" else DIST)


if __name__ == "__main__":
    main(sys.argv[1:])
