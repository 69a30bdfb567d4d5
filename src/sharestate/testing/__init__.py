"""
The test kit: for authors of other implementations of share groups, a package for each door at which one is tested.

- ``groups``: `ShareGroupMachine`, a share group as its clients see it;
- ``partitions``: `SharePartitionMachine`, what leads a share partition, with a hostile persister;
- ``persisters``: `PersisterMachine` and the contracts, what keeps its state, and leaders that fail over;
- ``search``: `compare`, anything that answers the line protocol, beside the library;
- ``protocol``: `observe`, the same, by invariants of every response;
- ``explore``: every state that a small share group may come to, for the library itself;
- ``servers``: `RawMember`, and the machine of ``groups`` in front of a real server.

What two doors share is below them: ``generator`` has random sequences of requests, ``record_model`` the independent
model of a share partition; the modules of this package run programs of events and make them short. This package itself
exports what needs no extra: ``generator``, ``protocol`` and the contracts. ``docs/testing.md`` has a section for each.
"""

from sharestate.testing.generator import (
    ORDINARY,
    STEPS,
    WILD,
    Mix,
    Request,
    Response,
    Steps,
    converse,
    mix_for,
    operations,
    seeded,
)
from sharestate.testing.persisters import (
    DeadLetterQueueContract,
    PersisterContract,
    broken_clauses,
    untested_clauses,
)
from sharestate.testing.protocol import (
    ALWAYS,
    BROKER,
    HEALED,
    HEALED_OVER_TIME,
    OVER_TIME,
    REFUSED,
    SOMETIMES,
    SOMETIMES_WITH_QUEUE,
    WITH_QUEUE,
    WITHOUT_QUEUE,
    Exchange,
    InFlightRecord,
    InProcessServer,
    Invariant,
    OverTime,
    Watch,
    exchanges,
    expect_seen,
    explain,
    invariants_of,
    judge,
    observe,
    records,
    seen,
    trace,
)

__all__ = [
    "ALWAYS",
    "BROKER",
    "HEALED",
    "HEALED_OVER_TIME",
    "ORDINARY",
    "OVER_TIME",
    "REFUSED",
    "SOMETIMES",
    "SOMETIMES_WITH_QUEUE",
    "STEPS",
    "WILD",
    "WITHOUT_QUEUE",
    "WITH_QUEUE",
    "DeadLetterQueueContract",
    "Exchange",
    "InFlightRecord",
    "InProcessServer",
    "Invariant",
    "Mix",
    "OverTime",
    "PersisterContract",
    "Request",
    "Response",
    "Steps",
    "Watch",
    "broken_clauses",
    "converse",
    "exchanges",
    "expect_seen",
    "explain",
    "invariants_of",
    "judge",
    "mix_for",
    "observe",
    "operations",
    "records",
    "seeded",
    "seen",
    "trace",
    "untested_clauses",
]
