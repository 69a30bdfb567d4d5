"""How many random runs of leaders are tried, and one of them that was written by hand: F3."""

from __future__ import annotations

import os
from typing import Final

from sharestate.testing.persisters.failover_runs import FailoverStep

TIMES: Final = int(os.environ.get("SHARESTATE_TIMES", "1"))
"""How many times as many runs as usual are tried: `make failover`, `make stalls` and `make adversary` set it."""

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


def seeds(usual: int) -> range:
    """Return the seeds of the runs to try, *usual* ones as a rule."""
    return range(usual * TIMES)
