"""
A test kit for implementations of share partitions: random sequences of requests, and invariants of the responses.

Sequences are requests of the line protocol, so anything that answers it can be tested. The strategies for Hypothesis
are in `sharestate.testing.protocol.strategies` (extra ``testing``).

`PersisterContract` and `DeadLetterQueueContract` are test classes that the tests of a persister and of a dead-letter
queue inherit.
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
