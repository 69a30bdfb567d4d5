"""
Anything that answers the line protocol, by itself: for authors whose rules are no profile of the library.

`observe` sends it a random sequence and judges every response: by `invariants_of` a profile, or by `RecordOracle`, an
independent model. `expect_seen` asks whether enough has happened. `InProcessServer` is the library as a server.

What has to hold of one exchange is in ``always``, of a sequence in ``over_time``, of share coordinators in
``coordinator_invariants``; what runs have to reach is in ``sometimes``. Strategies for Hypothesis are in ``strategies``
(extra ``testing``). See "Over the line protocol" in ``docs/testing.md``.
"""

from sharestate.testing.protocol.always import (
    ALWAYS,
    BROKER,
    HEALED,
    WITH_QUEUE,
    WITHOUT_QUEUE,
    Invariant,
)
from sharestate.testing.protocol.coordinator_invariants import COORDINATOR, COORDINATOR_4_4, COORDINATOR_HEALED
from sharestate.testing.protocol.exchange import Exchange, InFlightRecord, exchanges, records, trace
from sharestate.testing.protocol.explanations import explain
from sharestate.testing.protocol.in_process import InProcessServer, effects_are_values
from sharestate.testing.protocol.observing import invariants_of, judge, observe
from sharestate.testing.protocol.over_time import HEALED_OVER_TIME, OVER_TIME, OverTime, Watch
from sharestate.testing.protocol.record_oracle import RecordOracle
from sharestate.testing.protocol.sometimes import REFUSED, SOMETIMES, SOMETIMES_WITH_QUEUE, expect_seen, seen

__all__ = [
    "ALWAYS",
    "BROKER",
    "COORDINATOR",
    "COORDINATOR_4_4",
    "COORDINATOR_HEALED",
    "HEALED",
    "HEALED_OVER_TIME",
    "OVER_TIME",
    "REFUSED",
    "SOMETIMES",
    "SOMETIMES_WITH_QUEUE",
    "WITHOUT_QUEUE",
    "WITH_QUEUE",
    "Exchange",
    "InFlightRecord",
    "InProcessServer",
    "Invariant",
    "OverTime",
    "RecordOracle",
    "Watch",
    "effects_are_values",
    "exchanges",
    "expect_seen",
    "explain",
    "invariants_of",
    "judge",
    "observe",
    "records",
    "seen",
    "trace",
]
