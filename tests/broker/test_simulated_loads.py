"""What is simulated of a load is what comes of it on a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.broker.conftest import running
from tests.broker.measured_loads import LOADS, compare

pytestmark = pytest.mark.broker

ERROR: Final = 0.15
"""By which part a simulation may be wrong."""

CHANCE: Final = 20
"""How many records more or less a broker may redeliver: a poll that is late by some milliseconds. [records]"""


def test_loads_come_to_the_same(tmp_path: Path) -> None:
    """Five loads on a broker have the simulated duplicates, expired locks, and order by throughput."""
    with running("4.4.0", tmp_path, {"group.share.max.size": "100"}, request_level="warn") as broker:
        rows = compare(broker, LOADS, at_once=True)

    for row in rows:
        assert row.measured.records == row.simulated.records
        for measure in ("accepted", "duplicates", "expired"):
            measured, simulated = row.values(measure)
            assert simulated == pytest.approx(measured, rel=ERROR, abs=CHANCE), (row.name, measure)
    by_measured = sorted(rows, key=lambda row: row.measured.throughput)
    assert [row.name for row in by_measured] == [
        row.name for row in sorted(rows, key=lambda row: row.simulated.throughput)
    ]
