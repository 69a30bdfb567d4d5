"""The house limits: files and functions stay readable in one go, and every public name says what it is for."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import pytest

import sharestate

PACKAGE = Path(sharestate.__file__).parent
TESTS = Path(__file__).parents[1]
FILES = sorted(PACKAGE.rglob("*.py"))

MOST_LINES = 600
"""What outgrows this is two concerns."""

FEWEST_LINES = 60

SMALL = {
    "broker_log/live_settings.py": "needs a client of a cluster, which the rest of the package does without",
    "conformance/badge.py": "what a reader of repositories sees, of which the verdicts know nothing",
    "conversation/operations.py": "what three protocols have in common, so it belongs to none of them",
    "dead_letters/protocol.py": "what users implement, found where the persister's protocol is found",
    "diagnose/durations.py": "one measurement, of which what is measured knows nothing",
    "history/kafka_defects.py": "what a node does and the check of logs expects, in one place below both",
    "log_check/former_leader.py": "what outlives the share partition that is checked, so it is no part of its state",
    "log_check/lock_durations.py": "what no order of steps decides, so the search knows nothing of it",
    "log_check/unanswered.py": "what is not known of fetches, which says nothing of settings, and is not the search",
    "partition/capacity.py": "one limit, asked for before a fetch and again when it comes back",
    "partition/compacted.py": "a cause by itself, found where aborted transactions and the log start are found",
    "simulate/agenda.py": "the time of a simulation, which its broker and its members share",
    "spark/largest_partition.py": "one judgement for the job and the command, which has to begin without Spark",
    "spark/workers.py": "what all jobs do to a session before they begin, so it belongs to none of them",
    "testing/generator/randomness.py": "the one thing in the generator that knows nothing of share partitions",
    "broker/groups/settings.py": "what an administrator sets, which every other module of the coordinator reads",
    "testing/groups/settings.py": "what the model, the events and the machine are all given, so it is none of theirs",
    "testing/search/guardian.py": "a program of its own, which imports nothing of the package to start quickly",
    "testing/search/known.py": "the one thing about known divergences that reads a file",
    "testing/search/progress.py": "the one thing in a search that needs a terminal, and rich if there is one",
    "testing/thorough.py": "what registers a profile when it is imported, which nothing else does",
    "cli/conversation_options.py": "needs conversations, which most commands do without, and begin sooner",
    "cli/options.py": "needs no conversations, which the other options do",
    "cli/signals.py": "the end of a process by a signal, which commands share, one of them without click",
    "testing/explore/step_limit.py": "signals and processor time, which the rest of explorations does without",
    "testing/explore/walks.py": "what pages need of explorations, and explorations do not",
    "state_topic/client_settings.py": "needs no client, which what connects to a cluster does",
    "worker_processes.py": "how processes of searches, explorations and grids begin, so it belongs to none of them",
    "values/named_tuples.py": "what every module of values makes its named tuples with, so it belongs to none of them",
}
"""Files of fewer lines, and why each stands alone."""

SAME_NAMES = {
    "Asked": "a request of a conversation that was found, and what a server asks its node; none is exported",
    "Change": "what a command begins in partition/, what a log shows of a record, and what a request does to sessions",
    "Delay": "a step that a search puts off, which is not exported, and what becomes of an answer that a test delays",
    "Event": "an event of a history, and an input of the lifecycle's table, which knows nothing of histories",
    "GroupSettings": "those of one group that its clients notice, and those of all groups that a broker's log names",
    "LogBatch": "a record batch of a log, as a segment has it and as a node keeps it; each room is about one of them",
    "LogRecord": "a record of a log, as a segment has it and as a node keeps it; each room is about one of them",
    "Order": "the order of a history's events, and another order of some steps, which is not exported",
    "PartitionLog": "the log of a partition, as a node keeps it, and as the adapters of the kit are given it",
    "Step": "a step of a schedule in log_check/, and a part of an acquisition in partition/; none is exported",
    "Topics": "the topics of a node, and those that a broker's log names, which is not exported",
}
"""Public classes of the same name in two modules, and why each is no trap."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef


class Names(NamedTuple):
    """
    What a file of the package has.

    Attributes:
        bodies: Where each function is, and the lines of its body less the docstring.
        classes: The public classes, wherever they are.
        undocumented: The public names without a docstring, and the file itself if it has none.
    """

    bodies: dict[str, int]
    classes: list[str]
    undocumented: list[str]


@cache
def names(file: Path) -> Names:
    """Return what *file* has; it is parsed once for all tests."""
    module = ast.parse(file.read_text())
    where, nodes = str(file.relative_to(PACKAGE)), [*ast.walk(module)]
    return Names(
        {f"{where}:{node.lineno} {node.name}": body_lines(node) for node in nodes if isinstance(node, Function)},
        [node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_")],
        [getattr(node, "name", where) for node in (module, *public_names(module)) if not ast.get_docstring(node)],
    )


def functions() -> dict[str, int]:
    """Return where each function of the package is, and the lines of its body less the docstring."""
    return {where: lines for file in FILES for where, lines in names(file).bodies.items()}


def body_lines(function: Function) -> int:
    """Return how many lines *function* has after its head and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body and body[-1].end_lineno else 0


def public_names(node: ast.Module | ast.ClassDef) -> Iterator[Documented]:
    """Yield the public classes and functions of *node*, and those inside these classes."""
    for child in node.body:
        if isinstance(child, Documented) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public_names(child)


def test_a_file_has_at_most_600_lines() -> None:
    """In the package and in its tests."""
    lines = {
        str(file.relative_to(root)): len(file.read_text().splitlines())
        for root in (PACKAGE, TESTS)
        for file in root.rglob("*.py")
    }

    assert {file: count for file, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_public_name_has_a_docstring(file: Path) -> None:
    """Every module, and every public class, function and method in it, has a docstring."""
    assert names(file).undocumented == []


def test_no_function_body_is_longer_than_60_lines() -> None:
    """A function body, its docstring aside, has at most 60 lines."""
    assert {where: lines for where, lines in functions().items() if lines > 60} == {}


def test_most_function_bodies_are_short() -> None:
    """Nine in ten function bodies have no more than 30 lines."""
    *_, nine_in_ten = quantiles(functions().values(), n=10)

    assert nine_in_ten <= 30


def test_a_small_file_has_a_reason() -> None:
    """A file of fewer than 60 lines belongs to a neighbor, unless there is a reason why it stands alone."""
    lines = {str(file.relative_to(PACKAGE)): len(file.read_text().splitlines()) for file in FILES}
    small = {file for file, count in lines.items() if count < FEWEST_LINES and not file.endswith("__.py")}

    assert small == set(SMALL)


def test_no_two_public_classes_have_the_same_name() -> None:
    """A name stands for one thing in the whole package, but for those that say why not."""
    classes = Counter(name for file in FILES for name in names(file).classes)

    assert {name for name, count in classes.items() if count > 1} == set(SAME_NAMES)
