"""What clients of Kafka's own brokers wrote down in trouble; none of it is a broken guarantee."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sharestate.audit import AuditVerdict, Guarantee, audit

DATA = Path(__file__).parents[2] / "data" / "audit"

RUNS = ("k431-locks", "k440-transactions", "k431-kill9", "k440-leaders", "k431-verifiable", "k431-chaos")

EVENTS = {"k431-verifiable", "k431-chaos"}
"""Those with events that name no group."""


def lines(run: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of all files of a run."""
    for file in sorted((DATA / run).iterdir()):
        with gzip.open(file, "rt") as opened:
            yield from map(json.loads, opened)


@pytest.mark.parametrize("run", RUNS)
def test_no_guarantee_is_broken(run: str) -> None:
    """Locks expire, brokers and consumers are killed, and transactions aborted: Kafka keeps what it promises."""
    judged = audit(sorted((DATA / run).iterdir()), group="billing" if run in EVENTS else None)

    broken = {each.guarantee: each.findings for each in judged.verdicts if each.verdict is AuditVerdict.BROKEN}
    assert broken == {}


def accepted(run: str) -> set[tuple[str, int, int]]:
    """Return the records of ``billing`` that were accepted, as the lines themselves say it."""
    found = set()
    for line in lines(run):
        if line.get("op") == "acknowledge" and line["group"] == "billing":
            for topic, partition, ranges, code in line["partitions"]:
                for first, last, how in ranges:
                    if how == "accept" and code == 0:
                        found |= {(topic, partition, offset) for offset in range(first, last + 1)}
        elif line.get("name") == "offsets_acknowledged" and line["success"]:
            found |= {
                (each["topic"], each["partition"], offset) for each in line["partitions"] for offset in each["offsets"]
            }
        elif line.get("e") == "acked" and line["err"] == 0:
            found.add((line["t"], line["p"], line["o"]))
    return found


@pytest.mark.parametrize("run", RUNS)
def test_all_that_was_accepted_is_judged(run: str) -> None:
    """Each record that a broker has accepted is checked, or it is said why not."""
    judged = audit(sorted((DATA / run).iterdir()), group="billing")

    (verdict,) = (each for each in judged.verdicts if each.guarantee is Guarantee.ACCEPTED_IS_FINAL)
    assert verdict.checked + sum(verdict.unknown.values()) == len(accepted(run)) > 400
