"""
Trying mutants: a plugin of pytest that runs the tests in forks of itself, each with one function changed.

What is imported stays imported: the mutant's code takes the place of the code of the living function. A mutant meets
the tests that run its line, those first that are likely to kill it soon: that are quick, and have killed others that
they have met. It is killed by the first that fails, or that takes ten times as long.
"""

from __future__ import annotations

import gc
import json
import os
import re
import resource
import signal
import subprocess
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from time import monotonic, process_time, sleep
from types import CodeType, FunctionType
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol
from attrs import define, field, frozen
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult
from coverage import Coverage, CoverageData
from sqlalchemy.exc import OperationalError

from tests.mutation.mutants import mutated, place, statement_lines
from tests.mutation.survivors import ROOT, SOURCE

_SURVIVED, _KILLED, _OUT_OF_TIME, _INCOMPETENT, _BROKEN = range(5)
_PATIENCE_S: Final = 1
"""What a test may take beyond ten times what it takes of the code as it is. [s of CPU]"""
_WALL_S: Final = 60
"""What it may take on the wall beyond a hundred times that: it may wait, or have to. [s]"""
_LEAST_S: Final = 0.01
"""What a test takes at least, around what it does. [s of CPU]"""
_POLL_S: Final = 0.5
_TAKEN: Final = re.compile(r" \((\d+\.\d+) s\)$")
"""How results end: with what it has taken to try the mutant. [s of CPU]"""
_MOST_BYTES: Final = 4 * 2**30

_IMPORTED: Final = "imported: "
_IMPORT: Final = """
import json, sys
from coverage import Coverage
modules = json.loads(sys.argv[1])
coverage = Coverage(None, include=[*modules], config_file=False)
coverage.start()
for module in modules.values():
    __import__(module)
coverage.stop()
print(json.dumps({file: coverage.get_data().lines(file) or [] for file in modules}))
"""


@frozen
class Baseline:
    """What the tests do to the code as it is."""

    seconds: dict[str, float]
    """What each test that passes takes. [s of CPU]"""
    lines: dict[str, dict[int, list[str]]]
    """By file, the tests that run each line."""
    imported: dict[str, list[int]]
    """By file, the lines that run when it is imported."""


@define
class Trial:
    """Trial of the mutants of a session."""

    work: WorkDB
    chosen: Sequence[WorkItem]
    seconds: float
    """What the tests of a mutant may take together; those that are left are left out. [s of CPU]"""
    minutes: float
    """When to stop. [min]"""
    jobs: int
    """The number of processes."""
    say: Callable[[int, int], None]
    """Told how many mutants have been tried, of how many."""
    items: dict[str, pytest.Item] = field(init=False, factory=dict)
    functions: dict[tuple[str, str, int], list[FunctionType]] = field(init=False, factory=dict)
    met: Counter[str] = field(init=False, factory=Counter)
    """How many mutants each test has met."""
    kills: Counter[str] = field(init=False, factory=Counter)
    """How many of them it has killed."""
    left_out: list[str] = field(init=False, factory=list)
    """The tests that fail on the code as it is, when they are run like this."""

    def pytest_sessionstart(self) -> None:
        """Have properties neither look for shorter examples nor remember them."""
        from hypothesis import Phase, settings  # noqa: PLC0415 - pytest wants to import its plugin first

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutation", deadline=None, derandomize=True, database=None, phases=phases)
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try the mutants, in place of running the tests once."""
        if session.testsfailed:
            message = "the tests cannot be collected"
            raise session.Interrupted(message)
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined] # noqa: SLF001 - one for all
        self.items = {item.nodeid: item for item in session.items}
        for path in self._files():
            import_module(_module(path))  # some would be imported in a fork, by the first test that needs them
        baseline = self._baseline(session)
        self.left_out = [*(self.items.keys() - baseline.seconds.keys())]
        self.functions = _functions()
        gc.collect()
        gc.freeze()  # or collecting in a fork would copy all pages
        deadline, before = monotonic() + 60 * self.minutes, self.work.num_results
        workers = {self._worker(self.chosen[job :: self.jobs], baseline, deadline) for job in range(self.jobs)}
        failed = False
        while workers:
            sleep(_POLL_S)
            self.say(self.work.num_results - before, len(self.chosen))
            for worker in [*workers]:
                ended, status = os.waitpid(worker, os.WNOHANG)
                if ended:
                    workers.remove(worker)
                    failed = failed or status != 0
        if failed:
            message = "a process has failed"
            raise session.Interrupted(message)
        return True

    def _worker(self, chosen: Sequence[WorkItem], baseline: Baseline, deadline: float) -> int:
        """Try the mutants *chosen* in a process until *deadline*; return its number."""
        if worker := os.fork():
            return worker
        status = 1
        try:
            with use_db(self.work.name(), WorkDB.Mode.open) as work:
                for item in chosen:
                    if monotonic() > deadline:
                        break
                    _set_result(work, item, self._tried(item.mutations[0], baseline))
            status = 0
        except Exception:  # noqa: BLE001 - the fork must not go on with what the parent was about
            traceback.print_exc()
        finally:
            os._exit(status)

    def _files(self) -> list[Path]:
        return sorted({spec.module_path for item in self.chosen for spec in item.mutations})

    def _baseline(self, session: pytest.Session) -> Baseline:
        """Run each test once, in a fork."""
        file = ROOT / "build" / "mutation" / f"coverage-{os.getpid()}"
        files = [*map(str, self._files())]

        modules = frozenset(sys.modules)

        def run(tell: Callable[[str], object]) -> int:
            coverage = Coverage(str(file), include=files, config_file=False)
            coverage.start()
            for test, after in _pairs([*session.items]):
                coverage.switch_context(test.nodeid)
                before = process_time()
                if not any(report.failed for report in runtestprotocol(test, log=False, nextitem=after)):
                    tell(f"{process_time() - before} {test.nodeid}")
            coverage.stop()
            coverage.save()
            tell(f"{_IMPORTED}{' '.join(sys.modules.keys() - modules)}")
            return _SURVIVED

        status, told, _ = _forked(run)
        if status != _SURVIVED:
            message = f"the tests of the code as it is end with {status}: {told[-1:]}"
            raise session.Interrupted(message)
        _import(told.pop().removeprefix(_IMPORTED).split())
        data = CoverageData(str(file))
        data.read()
        lines = {name: data.contexts_by_lineno(name) for name in data.measured_files()}
        file.unlink()
        seconds = (line.split(" ", 1) for line in told)
        imported = _imported_lines({str(path): _module(path) for path in self._files()})
        return Baseline({name: float(taken) for taken, name in seconds}, lines, imported)

    def _tried(self, spec: MutationSpec, baseline: Baseline) -> WorkResult:
        """Return what has become of the mutant *spec*."""
        began = process_time()
        try:
            code = compile(mutated(spec), str(spec.module_path), "exec", dont_inherit=True)
        except (AttributeError, SyntaxError) as error:  # the first by Cosmic Ray, of `except a.b`
            return WorkResult(WorkerOutcome.NO_TEST, str(error), TestOutcome.INCOMPETENT)
        changed = [*_changed(_code(spec.module_path), code)]
        if not changed:
            return WorkResult(WorkerOutcome.NO_TEST, "it compiles to the same", TestOutcome.INCOMPETENT)
        alive = [(function, new) for old, new in changed for function in self.functions.get(_key(old), ())]
        names = self._tests(spec, baseline)
        at_import = baseline.imported[str(spec.module_path)]
        if not alive or (not names and not set(_lines(spec)).isdisjoint(at_import)):
            return WorkResult(WorkerOutcome.NO_TEST, "it runs at import", TestOutcome.INCOMPETENT)
        status, told, spent = _forked(lambda tell: self._run(alive, names, baseline, tell))
        return self._result(spec, status, told, spent + process_time() - began)

    def _tests(self, spec: MutationSpec, baseline: Baseline) -> list[str]:
        """Return the tests that run the line of *spec*, in the order in which they are worth running."""
        lines = baseline.lines.get(str(spec.module_path), {})
        names = {name for line in _lines(spec) for name in lines.get(line, ())}
        return sorted(names & baseline.seconds.keys(), key=lambda name: self._seconds_of_kill(name, baseline))

    def _seconds_of_kill(self, name: str, baseline: Baseline) -> float:
        """Return about how long the test *name* runs for each mutant that it kills, half of those that it meets."""
        return (_LEAST_S + baseline.seconds[name]) * (2 + self.met[name]) / (1 + self.kills[name])

    def _run(
        self,
        alive: list[tuple[FunctionType, CodeType]],
        names: list[str],
        baseline: Baseline,
        tell: Callable[[str], object],
    ) -> int:
        """Run tests with the changed functions, in a fork; return how it went."""
        try:
            for function, code in alive:
                function.__code__ = code
        except ValueError:  # it has other free variables
            return _INCOMPETENT
        spent = 0.0
        for test, after in _pairs([self.items[name] for name in names]):
            if spent > self.seconds:
                return _OUT_OF_TIME
            usual = baseline.seconds[test.nodeid]
            tell(test.nodeid)
            signal.setitimer(signal.ITIMER_PROF, _PATIENCE_S + 10 * usual)
            signal.setitimer(signal.ITIMER_REAL, _WALL_S + 100 * usual)
            if any(report.failed for report in runtestprotocol(test, log=False, nextitem=after)):
                return _KILLED
            spent += usual
        return _SURVIVED

    def _result(self, spec: MutationSpec, status: int, told: list[str], spent: float) -> WorkResult:
        where, test = place(spec), told[-1]
        self.met.update(told)
        diff = f"--- {where.module}:{spec.start_pos[0]} {where.definition}\n- {where.line}\n+ {where.change}"
        if status == _INCOMPETENT:
            return WorkResult(WorkerOutcome.NO_TEST, "it cannot take the place", TestOutcome.INCOMPETENT, diff)
        if status in {_SURVIVED, _OUT_OF_TIME}:
            said = "all tests of its line pass" if test else "no test runs its line"
            left = "; some were not run" if status == _OUT_OF_TIME else ""
            return WorkResult(WorkerOutcome.NORMAL, f"{said}{left} ({spent:.3f} s)", TestOutcome.SURVIVED, diff)
        self.kills[test] += 1
        how = "killed" if status == _KILLED else f"ended by signal {-status}"
        return WorkResult(WorkerOutcome.NORMAL, f"{how}: {test} ({spent:.3f} s)", TestOutcome.KILLED, diff)


def chosen(work: WorkDB, sample: int | None, seed: int) -> list[WorkItem]:
    """
    Return the mutants of *work* to be tried: all or *sample*, but those that have been killed.

    Each has a place of its own among those of a seed: where a file changes, the sample has the same ones of the others.
    """
    items = sorted(work.work_items, key=lambda item: sha256(f"{seed} {item.job_id}".encode()).digest())
    done = {job for job, result in work.results if result.test_outcome is not TestOutcome.SURVIVED}
    return [item for item in items[:sample] if item.job_id not in done]


def seconds_taken(result: WorkResult) -> float | None:
    """Return what trying a mutant has taken, as its result says in the end; None if it does not. [s of CPU]"""
    found = _TAKEN.search(result.output or "")
    return float(found[1]) if found else None


def survived(work: WorkDB) -> list[WorkItem]:
    """Return the mutants of *work* that have survived so far."""
    left = {job for job, result in work.results if result.test_outcome is TestOutcome.SURVIVED}
    return [item for item in work.work_items if item.job_id in left]


def _lines(spec: MutationSpec) -> range:
    return statement_lines(spec.module_path, spec.start_pos[0])


def _module(path: Path) -> str:
    """Return the name of the module at *path*."""
    if SOURCE not in path.parents:
        return path.stem
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)


def _imported_lines(modules: dict[str, str]) -> dict[str, list[int]]:
    """Return by file which lines of *modules* run when they are imported, in a process that has not done so yet."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", _IMPORT, json.dumps(modules)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    lines: dict[str, list[int]] = json.loads(done.stdout)
    return lines


def _set_result(work: WorkDB, item: WorkItem, result: WorkResult) -> None:
    """Note *result*, as soon as no other process writes, which may be halted for long while it does."""
    while True:
        try:
            work.set_result(item.job_id, result)
        except OperationalError as error:
            if "locked" not in str(error):
                raise
        else:
            return


@cache
def _code(path: Path) -> CodeType:
    """Return the code of the file at *path* as it is."""
    return compile(path.read_text(), str(path), "exec", dont_inherit=True)


def _import(names: list[str]) -> None:
    """Import the modules *names*, which tests have done in a fork: else each fork would."""
    for name in names:
        with suppress(ImportError):
            import_module(name)


def _forked(run: Callable[[Callable[[str], object]], int]) -> tuple[int, list[str], float]:
    """Return how *run* has ended in a fork, negative for a signal; the lines that it has told; and the CPU it took."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        status = _KILLED
        try:
            _quiet()
            resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
            status = run(lambda line: os.write(writer, f"{line}\n".encode()))
        except Exception as error:  # noqa: BLE001 - the fork must not go on with what the parent was about
            status = _KILLED if isinstance(error, MemoryError) else _BROKEN
            os.write(writer, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as told:
        lines = told.read().removesuffix("\n").split("\n")
    _, ended, usage = os.wait4(child, 0)
    status = os.waitstatus_to_exitcode(ended)
    if status == _BROKEN:
        raise RuntimeError("\n".join(lines))
    return status, lines, usage.ru_utime + usage.ru_stime


def _quiet() -> None:
    """Have nothing of what tests print be seen."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _pairs(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=False)


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the pairs of codes that do different things, themselves or by what is in them, the inner ones first."""
    inner = [[value for value in code.co_consts if isinstance(value, CodeType)] for code in (old, new)]
    found = [pair for pair in zip(*inner, strict=False) for pair in _changed(*pair)]
    yield from found
    if found or len(inner[0]) != len(inner[1]) or _parts(old) != _parts(new):
        yield old, new


def _parts(code: CodeType) -> list[Any]:
    """Return what *code* does, without where it stands and what is in it."""
    constants = [(type(value), value) for value in code.co_consts if not isinstance(value, CodeType)]
    return [code.co_code, constants, code.co_names, code.co_varnames, code.co_exceptiontable]


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return the functions that are alive, by their code."""
    gc.unfreeze()
    found = defaultdict(list)
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            found[_key(function.__code__)].append(function)
    return found
