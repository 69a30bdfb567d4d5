"""A share partition and one restored from its snapshot cannot be told apart, whatever is done to them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sharestate import (
    PROFILES,
    AcknowledgementBatch,
    ErrorCode,
    FetchedRecords,
    PersistedState,
    Profile,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
    Snapshot,
)
from sharestate.testing.generator.mix import STEPS, WILD, Mix, mix_for
from sharestate.testing.generator.operations import converse
from sharestate.testing.generator.surroundings import Request, Response, Steps
from sharestate.testing.protocol.in_process import InProcessServer
from sharestate.testing.protocol.strategies import sequences

LATE: Final = Mix(trouble=70, steps={**STEPS, "complete": 4, "log": 20}, longest_batch=150)
"""A slow persister and large batches, so that writes in flight carry many ranges."""

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)


def through_json(partition: SharePartition) -> SharePartition:
    """Write a share partition down and read it again."""
    return SharePartition.restore(Snapshot.from_json(partition.snapshot().to_json()), profile=partition.profile)


def through_pickle(partition: SharePartition) -> SharePartition:
    """Pickle a share partition and unpickle it."""
    restored: SharePartition = pickle.loads(pickle.dumps(partition))  # noqa: S301 - made here
    return restored


def through_a_pickled_snapshot(partition: SharePartition) -> SharePartition:
    """Pickle only the snapshot."""
    return SharePartition.restore(pickle.loads(pickle.dumps(partition.snapshot())), profile=partition.profile)  # noqa: S301 - made here


WAYS: Final[list[Callable[[SharePartition], SharePartition]]] = [
    through_json,
    through_pickle,
    through_a_pickled_snapshot,
    copy,
    deepcopy,
]
"""How a share partition is copied."""


def partition_of(peer: InProcessServer) -> SharePartition:
    """Return the share partition behind *peer*."""
    session = peer._served  # noqa: SLF001 - the kit's peer has no door to it
    assert session is not None
    return session._partition  # noqa: SLF001


def twin_of(peer: InProcessServer, way: Callable[[SharePartition], SharePartition]) -> InProcessServer:
    """Return a peer that stands where *peer* stands, with a copy of its share partition."""
    original = partition_of(peer)
    return deepcopy(peer, {id(original): way(original), id(peer.profile): peer.profile})


def seen(partition: SharePartition) -> tuple[object, ...]:
    """Return all that can be seen of a share partition: its snapshot with its hash, in JSON, and more."""
    snapshot = partition.snapshot()
    locks = partition.next_deadline_ms(), partition.lock_count()
    return snapshot, hash(snapshot), snapshot.to_json(), partition.batches(), locks


@every_profile
@pytest.mark.parametrize("mix", [WILD, LATE], ids=["wild", "late"])
@given(data=st.data(), way=st.sampled_from(WAYS), every=st.integers(3, 25))
def test_a_restored_twin_cannot_be_told_apart(
    profile: Profile, mix: Mix, data: st.DataObject, way: Callable[[SharePartition], SharePartition], every: int
) -> None:
    """
    Restored at some points of a sequence, twins answer every later request as the original does.

    After each their snapshots are equal, and written down they are equal to the letter.
    """
    original = InProcessServer(profile)
    twins: list[InProcessServer] = []
    asked = 0

    def answer(request: Request) -> Response:
        nonlocal asked
        response = original(request)
        shown = seen(partition_of(original)) if twins else None
        for twin in twins:
            assert twin(request) == response
            assert seen(partition_of(twin)) == shown
        asked += 1
        if asked % every == 0:
            twins[:-1] = []
            twins.append(twin_of(original, way))
        return response

    for _ in converse(data.draw(sequences(mix=mix_for(profile, mix))), answer):
        pass


@every_profile
@given(sequence=sequences(mix=WILD), way=st.sampled_from(WAYS))
def test_a_copy_goes_its_own_way(
    profile: Profile, sequence: Steps[None], way: Callable[[SharePartition], SharePartition]
) -> None:
    """Whatever happens to the original, a copy stays as it was: they share nothing that changes."""
    peer = InProcessServer(profile)
    copies: list[tuple[SharePartition, Snapshot]] = []

    def answer(request: Request) -> Response:
        response = peer(request)
        if len(copies) < 8:
            partition = partition_of(peer)
            copies.append((way(partition), partition.snapshot()))
        return response

    for _ in converse(sequence, answer):
        pass
    for partition, snapshot in copies:
        assert partition.snapshot() == snapshot
        partition.check()


@given(
    ranges=st.lists(st.tuples(st.integers(0, 199), st.integers(0, 40)), min_size=1, max_size=6), succeeds=st.booleans()
)
@example(ranges=[(0, 0), (100, 0), (40, 20), (65, 5)], succeeds=False)
def test_entries_in_any_order_are_restored(ranges: list[tuple[int, int]], *, succeeds: bool) -> None:
    """The ranges that wait for one write may lie in any order, near to each other or far away."""
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0))
    partition.initialize()
    partition.read_succeeded(PersistedState())
    partition.acquire("m1", FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 199)]), now_ms=0)
    taken: set[int] = set()
    entries = []
    for first, more in ranges:
        last = min(first + more, 199)
        if taken.isdisjoint(range(first, last + 1)):
            taken |= set(range(first, last + 1))
            entries.append(AcknowledgementBatch(first, last, (1,)))
    (write,) = partition.acknowledge("m1", entries, now_ms=0).writes

    twins = [way(partition) for way in WAYS]
    for twin in twins:
        twin.check()
        assert seen(twin) == seen(partition)
    for each in (partition, *twins):
        if succeeds:
            each.write_succeeded(write.number)
        else:
            each.write_failed(write.number, ErrorCode.NOT_COORDINATOR)
    for twin in twins:
        twin.check()
        assert seen(twin) == seen(partition)
