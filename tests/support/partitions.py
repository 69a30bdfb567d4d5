"""Share partitions for tests of hostile callers: a busy one, and how to have it again."""

from __future__ import annotations

from typing import Any, Final

import pytest
from attrs import evolve

from sharestate import (
    PROFILES,
    AcknowledgementBatch,
    BrokerWritePolicy,
    FetchedRecords,
    PersistedState,
    RecordBatch,
    SharePartition,
    SharePartitionKey,
)

MAX: Final = 2**63 - 1
KEY: Final = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
FETCHED: Final = FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 9)])

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
every_broker = pytest.mark.parametrize(
    "profile",
    [profile for profile in PROFILES.values() if isinstance(profile.write_policy, BrokerWritePolicy)],
    ids=lambda profile: profile.name,
)


def opened(**arguments: Any) -> SharePartition:  # noqa: ANN401 - what a constructor takes
    """Return a share partition that is active and empty."""
    partition = SharePartition(KEY, **arguments)
    partition.initialize()
    partition.read_succeeded(PersistedState())
    return partition


def busy() -> SharePartition:
    """Return a share partition with a split batch, a whole one, a write in flight, records to be had, and a past."""
    partition = opened()
    partition.acquire("m1", evolve(FETCHED, batches=[RecordBatch(0, 4), RecordBatch(5, 9)]), now_ms=50, batch_size=5)
    (write,) = partition.acknowledge("m1", [AcknowledgementBatch(3, 4, (2,))], now_ms=60).writes
    partition.write_succeeded(write.number)
    partition.acknowledge("m1", [AcknowledgementBatch(0, 1, (1,))], now_ms=70)
    return partition


BUSY: Final = busy().snapshot()


def again() -> SharePartition:
    """Return it once more."""
    return SharePartition.restore(BUSY)
