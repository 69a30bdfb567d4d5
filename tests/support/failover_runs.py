"""How many random runs of leaders are tried, one of them that was written by hand, and two that were found."""

from __future__ import annotations

import os
from typing import Final

from sharestate.testing.persisters.failover_runs import FailoverStep

TIMES: Final = int(os.environ.get("SHARESTATE_TIMES", "1"))
"""
How many times as many runs as usual are tried: `make failover`, `make members`, `make stalls` and `make adversary` set
it.
"""

OVERTAKEN: Final = [
    FailoverStep("fetch", (0, 2, 0)),  # 100-102
    FailoverStep("fetch", (0, 2, 0)),  # 103-105
    FailoverStep("acknowledge", (0, 1, 0)),  # the first write: from 100 on, 103-105 are acknowledged; it is late
    FailoverStep("acknowledge", (0, 0, 0)),  # the second one: from 100 on, 100-102 are
    FailoverStep("answer", (1, 0, 0)),  # the second one is stored, and the SPSO advances to 103
    FailoverStep("fetch", (0, 2, 0)),  # 106-108
    FailoverStep("acknowledge", (0, 0, 0)),  # the third one: from 103 on, 106-108 are
    FailoverStep("answer", (1, 0, 0)),  # the third one is stored, and 100-102 are dropped
    FailoverStep("answer", (0, 0, 0)),  # the first one is stored at last, from 100 on
]
"""The steps to F3 by a broker's write policy: docs/kafka-bugs.md."""

FAILED_BUT_APPLIED: Final = [
    FailoverStep("crash", (1, 0, 0)),  # 100 is persisted
    FailoverStep("fetch", (0, 1, 0)),  # 100-101
    FailoverStep("acknowledge", (0, 0, 0)),  # both are acknowledged: start offset 102
    FailoverStep("answer", (0, 4, 0)),  # it is stored, and the write has failed
    FailoverStep("acknowledge", (0, 2, 0)),  # 101 is acknowledged again, and not kept: it lies below 102
    FailoverStep("acknowledge", (0, 0, 0)),  # 100 is: start offset 101 would bring 101 back once its write is confirmed
]
"""The steps to a start offset of the KIP's policy that moved back, of seed 3303."""

FAILED_BUT_APPLIED_WITH_A_BOUND: Final = [
    FailoverStep("fetch", (0, 22, 15)),  # 100-102
    FailoverStep("acknowledge", (0, 0, 0)),
    FailoverStep("crash", (2, 0, 0)),  # the next leader reads start offset 100, and begins at 103
    FailoverStep("fetch", (0, 0, 0)),  # 103-104
    FailoverStep("acknowledge", (0, 0, 0)),  # both are acknowledged: start offset 105
    FailoverStep("answer", (0, 4, 0)),  # it is stored, and the write has failed
    FailoverStep("acknowledge", (0, 2, 0)),  # 104 is: 103 is three beyond 100, so it would be due, and come late
    FailoverStep("acknowledge", (0, 0, 0)),  # 103 is
    FailoverStep("answer", (1, 0, 0)),  # that is confirmed, and not kept: it lies below 105
]
"""The same where a bound makes the start offset due, of seed 903."""


def seeds(usual: int) -> range:
    """Return the seeds of the runs to try, *usual* ones as a rule."""
    return range(usual * TIMES)
