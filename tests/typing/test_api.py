"""The file that type checkers read uses the whole public API, and what it does also runs."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import sharestate
from sharestate import Cause, ErrorCode, InvalidRecordStateError, Lifecycle, RecordState, TimeReversedError
from sharestate.persister import InitializeStateParameters, PartitionStateData

from . import api


def names_used(tree: ast.Module) -> set[str]:
    """Return the names that *tree* reads."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def names_imported(tree: ast.Module) -> set[str]:
    """Return what *tree* imports from the one import path that users learn."""
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "sharestate"
        for alias in node.names
    }


def test_every_public_name_is_used() -> None:
    """The file imports all that `sharestate` exports, and uses it."""
    assert api.__file__ is not None
    tree = ast.parse(Path(api.__file__).read_text())

    assert names_imported(tree) == set(sharestate.__all__)
    assert names_used(tree) >= set(sharestate.__all__)


def test_a_stored_state_is_loaded() -> None:
    """A share partition starts after what was done, and of a log that ends before that nothing is acquired."""
    partition = api.loaded(api.stored_state([(10, 14, RecordState.ACKNOWLEDGED, 1)]))

    assert partition.start_offset == 15
    assert api.acquire(partition) == []
    assert [api.is_over(lifecycle) for lifecycle in Lifecycle] == [False, False, False, True, True]


def test_a_member_gets_and_gives() -> None:
    """The functions of the file do what they say to a share partition that starts at 0."""
    partition = api.loaded(sharestate.PersistedState(start_offset=0))

    assert api.acquire(partition) == [0, 1, 2, 3, 4, 9]  # 5 to 8 were aborted
    assert api.acknowledge(partition) == 1
    api.let_time_pass(partition, 30_001)
    assert {api.in_words(run) for run in api.look(partition)} == {"on offer", "held by m1", "done"}
    assert api.copied(partition).snapshot() == partition.snapshot() == api.restored(partition.snapshot()).snapshot()
    api.go_on(partition, 30_001)
    assert api.is_over(partition.lifecycle)


def stored() -> sharestate.InMemoryPersister:
    """Return a persister that knows the share partition of the file."""
    persister = sharestate.InMemoryPersister()
    entry = PartitionStateData(partition=api.KEY.partition)
    begun = persister.initialize_state(InitializeStateParameters.of(api.KEY.group_id, api.KEY.topic_id, entry))
    assert begun.done()
    return persister


def test_a_leader_persists_its_changes() -> None:
    """A leader brings a share partition as far as a caller could, by polling and in an event loop."""
    assert api.led(stored(), 0).partition.start_offset == 4
    assert asyncio.run(api.led_by_asyncio(stored())) == 4


def test_transitions_and_errors_have_their_types() -> None:
    """Transitions say what has happened, and errors carry what was wrong."""
    partition = api.loaded(sharestate.PersistedState(start_offset=0))
    effects = partition.acquire("m1", api.fetched(), now_ms=0)

    assert {transition.cause for transition in api.told(effects)} == {Cause.ABORTED}
    assert api.told_apart(InvalidRecordStateError("not yours", 0, 4, "m2")) == (0, 4, "m2")
    assert api.told_apart(TimeReversedError("backwards", "now_ms")) == ("now_ms",)
    assert api.outcome(ErrorCode.FENCED_STATE_EPOCH).code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_dead_letters_are_handed_over() -> None:
    """A queue takes what a share partition hands over."""
    queue = api.dead_lettered(stored(), sharestate.Effects())

    assert isinstance(queue, sharestate.InMemoryDeadLetterQueue)
