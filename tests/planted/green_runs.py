"""
Measure what a run that finds nothing is worth, and keep it in ``tests/data/green-runs.json``, for the docs.

At each door the planted bugs are searched for three times, with as many runs as there are by default, where there is a
default; and once more what is correct. Run it with ``python -m tests.planted.green_runs`` after a change to a door or
to its bugs; it takes minutes. With names, such as ``persisters``, only these doors are measured. What is measured is
CPU time until a bug is found; to make the program short comes after that.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from platform import python_version
from random import Random
from time import process_time
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from attrs import evolve, frozen
from hypothesis import HealthCheck, Phase, core, settings
from hypothesis.stateful import RuleBasedStateMachine

from sharestate import KAFKA_4_2, KAFKA_4_3, KAFKA_4_4, KIP_932, InMemoryDeadLetterQueue, InMemoryPersister, Profile
from sharestate.coordinator import COORDINATOR_4_3
from sharestate.testing import InProcessServer, invariants_of, mix_for, observe, seeded
from sharestate.testing.persisters import broken_clauses
from sharestate.testing.persisters.failover_runs import EVERYTHING, FailoverRun, failure, in_memory, random_steps
from sharestate.testing.protocol import RecordOracle
from sharestate.testing.protocol.record_oracle import rules_of
from sharestate.testing.search import DifferenceError, Level, compare, plain
from tests.planted import brokers, nodes, persister_clauses, persisters, queue_clauses, share_groups, share_partitions
from tests.planted.overlapping import SlowShareGroup
from tests.property.test_stalls import SMALL, STALLING
from tests.support import mock_machine, node_programs, partition_machine, persister_machine
from tests.support.mock_share_group import MockShareGroup
from tests.support.naive_broker import NaiveBroker
from tests.support.open_share_groups import KeepsBatchOfLogStart, PassesOneBatch
from tests.unit.dead_letters.test_contract import planted as planted_queue
from tests.unit.persister.test_contract import Planted
from tests.unit.testing.persisters.test_persisters import CoordinatorMachine

GREEN_RUNS: Final = Path(__file__).parents[1] / "data" / "green-runs.json"

SEARCHES: Final = 3
"""How often each bug is searched for. [searches]"""

SEQUENCES: Final = 300
"""How many sequences are judged by invariants in one search. [sequences]"""

FAILOVER_RUNS: Final = 1_000
"""How many lives of leaders one search has. [runs]"""

HEALED: Final = (KAFKA_4_2.healed, KAFKA_4_3.healed, KAFKA_4_4.healed)

Search: TypeAlias = Callable[[int], bool]
"""Searches once, with a seed, and returns whether something is found."""

Row: TypeAlias = dict[str, Any]


@frozen
class Door:
    """What is searched at one door, and by how many runs."""

    runs: int
    """How many runs one search has. [runs]"""

    bugs: Mapping[str, Search]
    """The search for each planted bug."""

    correct: Mapping[str, Search]
    """The search of each correct implementation."""

    is_drawn: bool = True
    """Whether another seed makes a difference."""

    is_apart: bool = False
    """Whether each bug needs a process of its own: the library remembers what its rules have said."""

    def row(self) -> Row:
        """Return what is found, and how soon."""
        found_s = []
        missed = []
        for name, search in self.bugs.items():
            for seed in range(SEARCHES if self.is_drawn else 1):
                found, cpu_s = (timed_apart if self.is_apart else timed)(search, seed)
                if found:
                    found_s.append(cpu_s)
                else:
                    missed.append(name)
        clean = [timed(search, SEARCHES) for search in self.correct.values()]
        return {
            "runs": self.runs,
            "bugs": len(self.bugs),
            "searches": len(found_s) + len(missed),
            "within_1_s": sum(cpu_s <= 1 for cpu_s in found_s),
            "within_20_s": sum(cpu_s <= 20 for cpu_s in found_s),
            "longest_s": round(max(found_s), 1),
            "missed": missed,
            "correct": [*self.correct],
            "false_alarms": sum(found for found, _ in clean),
            "correct_s": round(sum(cpu_s for _, cpu_s in clean), 1),
        }


def timed(search: Search, seed: int) -> tuple[bool, float]:
    """Return whether something is found, and the CPU time that it took. [s]"""
    begin_s = process_time()
    found = search(seed)
    return found, process_time() - begin_s


def timed_apart(search: Search, seed: int) -> tuple[bool, float]:
    """Return the same of a search in a process of its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(timed, (search, seed))


def finds(machine: type[RuleBasedStateMachine], seed: int) -> bool:
    """Run a machine as it is run by default, but that it makes no program short."""
    test = machine.TestCase
    test.settings = settings(
        test.settings,
        phases=[Phase.generate],
        derandomize=False,
        database=None,
        print_blob=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    vars(core)["global_force_seed"] = seed  # as --hypothesis-seed does
    try:
        test().runTest()
    except AssertionError:
        return True
    return False


def examples_of(machine: type[RuleBasedStateMachine]) -> int:
    """Return how many runs a machine has by default."""
    return int(machine.TestCase.settings.max_examples)


def breaks_a_clause(kind: type[InMemoryPersister], seed: int) -> bool:  # noqa: ARG001 - nothing is drawn
    """Return whether the contract of persisters finds a bug."""
    return bool(broken_clauses(Planted(kind, COORDINATOR_4_3)))


def breaks_a_clause_of_queues(kind: type[InMemoryDeadLetterQueue], seed: int) -> bool:  # noqa: ARG001 - nothing is drawn
    """Return whether the contract of dead-letter queues finds a bug."""
    return bool(broken_clauses(planted_queue(kind)))


def differs(broker: type[NaiveBroker], seed: int) -> bool:
    """Return whether `compare` finds a bug, in other sequences for each seed."""
    seeds = range(300 * seed, 300 * (seed + 1))  # as many as there are by default
    try:
        compare(broker(), KAFKA_4_3.healed, level=Level.ANSWERS, sequence=plain, seeds=seeds)
    except DifferenceError:
        return True
    return False


def breaks_an_invariant(profile: Profile, seed: int, *, by_model: bool) -> bool:
    """Return whether an invariant, or the model of single records, finds something in the library."""
    for number in range(SEQUENCES * seed, SEQUENCES * (seed + 1)):
        judges = [RecordOracle(profile)] if by_model else invariants_of(profile)
        try:
            observe(seeded(number, mix_for(profile)), InProcessServer(profile), judges)
        except AssertionError:
            return True
    return False


def with_rule(rule: str, seed: int, *, by_model: bool) -> bool:
    """Return what is found in a library that follows an old rule."""
    import_module(f"tests.planted.rules.{rule}").plant()
    return breaks_an_invariant(KAFKA_4_4.healed, seed, by_model=by_model)


def fails_over(profile: Profile, seed: int) -> bool:
    """Return whether a life of leaders ends wrongly."""
    lives = range(FAILOVER_RUNS * seed, FAILOVER_RUNS * (seed + 1))
    return any(
        failure(
            lambda: FailoverRun(profile, in_memory(), config=SMALL),
            random_steps(Random(life), EVERYTHING),  # noqa: S311 - to be repeated
        )
        for life in lives
    )


def in_machine(machine_of: Callable[[Any], Any], bugs: Mapping[str, Any]) -> dict[str, Search]:
    """Return the searches of a machine for each of its bugs."""
    return {name: partial(_find, machine_of, bug) for name, bug in bugs.items()}


def _find(machine_of: Callable[[Any], Any], bug: Any, seed: int) -> bool:  # noqa: ANN401 - of each door another kind
    return finds(machine_of(bug), seed)


def of_classes(search: Callable[[Any, int], bool], kinds: Iterable[type]) -> dict[str, Search]:
    """Return the searches for bugs that are classes."""
    return {kind.__name__: partial(search, kind) for kind in kinds}


def library_machine(profile: Profile) -> Any:  # noqa: ANN401 - a machine
    """Return the library as a machine from the persister's side."""
    return type("Machine", (partition_machine.LibraryMachine,), {"profile": profile, "follows": rules_of(profile)})


def in_sequences(*, by_model: bool) -> Door:
    """Return the door at the line protocol, with one kind of judge."""
    rules = sorted(file.stem for file in (Path(__file__).parent / "rules").glob("*.py"))
    profiles = (*HEALED, KIP_932)
    return Door(
        SEQUENCES,
        {rule: partial(with_rule, rule, by_model=by_model) for rule in rules},
        {each.name: partial(breaks_an_invariant, each, by_model=by_model) for each in profiles},
        is_apart=True,
    )


def of_failovers() -> Door:
    """Return the door of leaders that fail over, with Kafka's bugs as bugs."""
    bugs = {quirk: evolve(KAFKA_4_4.healed, name=quirk.name, quirks=frozenset({quirk})) for quirk in STALLING}
    return Door(
        FAILOVER_RUNS,
        {quirk: partial(fails_over, profile) for quirk, profile in bugs.items()},
        {profile.name: partial(fails_over, profile) for profile in (*HEALED, KIP_932)},
    )


DOORS: Final[Mapping[str, Callable[[], Door]]] = MappingProxyType(
    {
        "groups": lambda: Door(
            examples_of(mock_machine.MockMachine),
            in_machine(mock_machine.machine_of, share_groups.BUGS),
            of_classes(
                partial(_find, mock_machine.machine_of),
                (MockShareGroup, SlowShareGroup, KeepsBatchOfLogStart, PassesOneBatch),
            ),
        ),
        "nodes": lambda: Door(
            examples_of(node_programs.PlantedMachine),
            in_machine(node_programs.machine_of, nodes.SEEN_BY_MEMBERS),
            in_machine(node_programs.machine_of, {"a node without a bug": None}),
        ),
        "partitions": lambda: Door(
            examples_of(partition_machine.ModelMachine),
            in_machine(partition_machine.machine_of, share_partitions.BUGS),
            in_machine(
                library_machine, {profile.name: profile for profile in (*HEALED[1:], KIP_932)}
            ),  # 4.2 changes less
        ),
        "persisters": lambda: Door(
            examples_of(persister_machine.FaultyMachine),
            in_machine(persister_machine.machine_of, persisters.BUGS),
            {
                "a persister without a bug": partial(_find, persister_machine.machine_of, persisters.Faulty),
                "CoordinatorPersister": partial(finds, CoordinatorMachine),
            },
        ),
        "contract": lambda: Door(
            1,
            of_classes(breaks_a_clause, persister_clauses.BREAKS),
            of_classes(breaks_a_clause, (InMemoryPersister,)),
            is_drawn=False,
        ),
        "queues": lambda: Door(
            1,
            of_classes(breaks_a_clause_of_queues, queue_clauses.BREAKS),
            of_classes(breaks_a_clause_of_queues, (InMemoryDeadLetterQueue,)),
            is_drawn=False,
        ),
        "failovers": of_failovers,
        "comparison": lambda: Door(
            300,
            of_classes(differs, brokers.BUGS),
            of_classes(differs, (NaiveBroker,)),
        ),
        "invariants": lambda: in_sequences(by_model=False),
        "model": lambda: in_sequences(by_model=True),
    }
)
"""The doors, each made when it is asked for."""


def main(names: list[str]) -> None:
    """Measure the doors of *names*, or all, and keep what is found."""
    kept = json.loads(GREEN_RUNS.read_text())["rows"] if GREEN_RUNS.exists() else []
    rows: dict[str, Row] = {row["door"]: row for row in kept}
    for name in names or DOORS:
        rows[name] = row = {"door": name, "python": python_version(), **DOORS[name]().row()}
        print(row, flush=True)  # noqa: T201 - a command
        content = {"green_runs": 1, "rows": [rows[door] for door in DOORS if door in rows]}
        GREEN_RUNS.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
