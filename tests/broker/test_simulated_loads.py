"""What is simulated of a load is what comes of it on a broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

import pytest

from tests.broker.conftest import running
from tests.broker.measured_loads import LOADS, Compared, compare

pytestmark = pytest.mark.broker

ERROR: Final = 0.15
"""By which part a simulation may be wrong."""

CHANCE: Final = 20
"""How many records more or less a broker may redeliver: a poll that is late by some milliseconds. [records]"""


TRIALS: Final = 3
"""How often the loads are carried out: on a machine that has much else to do, requests take now longer, now less."""


def test_loads_come_to_the_same(tmp_path: Path) -> None:
    """Five loads on a broker have the simulated duplicates, expired locks, and order by throughput."""
    with running("4.4.0", tmp_path, {"group.share.max.size": "100"}, request_level="warn") as broker:
        trials = (compare(broker, LOADS, at_once=True, name=f"trial-{number}") for number in range(TRIALS))
        found = [*takewhile(bool, (list(differences(rows)) for rows in trials))]

    assert len(found) < TRIALS, found


def differences(rows: Sequence[Compared]) -> Iterator[object]:
    """Yield where what was measured is not what was simulated."""
    for row in rows:
        assert row.measured.records == row.simulated.records
        for measure in ("accepted", "duplicates", "expired"):
            measured, simulated = row.values(measure)
            if simulated != pytest.approx(measured, rel=ERROR, abs=CHANCE):
                yield row.name, measure, measured, simulated
    by_measured = [row.name for row in sorted(rows, key=lambda row: row.measured.throughput)]
    by_simulated = [row.name for row in sorted(rows, key=lambda row: row.simulated.throughput)]
    if by_measured != by_simulated:
        yield by_measured, by_simulated
