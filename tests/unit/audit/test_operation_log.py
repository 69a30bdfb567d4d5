"""Logs of many files: whose operations they have, and how many clocks and share partitions there may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sharestate.audit import (
    DeliveredRange,
    FetchedRanges,
    FetchOperation,
    Guarantee,
    OperationLog,
    OperationsError,
    OperationsFile,
    OperationsHeader,
    ProduceOperation,
    View,
    audit,
    read_operations,
)
from sharestate.audit import operation_log as logs
from tests.support.hand_made_operations import SETTINGS, Written


def fetch(group: str = "g", *, client: str | None = None) -> FetchOperation:
    """Return a fetch that has brought a record."""
    got = FetchedRanges("t", 0, (DeliveredRange(0, 0, 1),))
    return FetchOperation(begin_ms=0, end_ms=1, group=group, client=client, partitions=(got,))


@pytest.mark.parametrize("other", [{"clock": "two"}, {"clock": None}, {"view": View.APPLICATION}], ids=str)
def test_a_client_has_one_clock_and_one_view(other: dict[str, Any]) -> None:
    """Else its times would be compared as if they were of one clock: it is refused with file, line and field."""
    log = OperationLog()
    log.add("a.jsonl", OperationsHeader(client="c", clock="one"), [(2, fetch())])
    log.add("b.jsonl", OperationsHeader(client="c", clock="one", complete=False), [(2, fetch())])

    with pytest.raises(
        OperationsError, match=rf"b2.jsonl:7: {next(iter(other))}: client c has .* two clients"
    ) as raised:
        log.add("b2.jsonl", OperationsHeader(**{"client": "c", "clock": "one", **other}), [(7, fetch())])

    assert raised.value.field == next(iter(other))


def test_a_file_is_read_once(tmp_path: Path) -> None:
    """One that is named twice, by whatever way, would seem to deliver all of its records twice."""
    path = tmp_path / "c.jsonl"
    with OperationsFile(path, OperationsHeader(client="c")) as file:
        file.write([fetch()])

    with pytest.raises(OperationsError, match="named twice"):
        read_operations([path, tmp_path / "." / "c.jsonl"])


def test_there_are_so_many_clocks_at_the_most() -> None:
    """Each client has one of its own where no header names it; bounds of their differences cost the cube of that."""
    most = logs.MOST_CLOCKS
    log = OperationLog()
    log.add("a.jsonl", OperationsHeader(), enumerate((fetch(client=f"c{number}") for number in range(most)), 2))

    with pytest.raises(OperationsError, match=f"a.jsonl:9: clock: more than {most} clocks"):
        log.add("a.jsonl", OperationsHeader(), [(9, fetch(client="one more"))])


def test_there_are_so_many_share_partitions_at_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group has all partitions of a topic that it has read: few lines may make very many of them."""
    monkeypatch.setattr(logs, "MOST_SHARE_PARTITIONS", 30)
    produced = [
        ProduceOperation(begin_ms=0, end_ms=1, topic="t", partition=number, first_offset=0, last_offset=0)
        for number in range(10)
    ]
    log = OperationLog()
    log.add("p.jsonl", OperationsHeader(client="p"), enumerate(produced, 2))
    log.add("c.jsonl", OperationsHeader(client="c"), [(2, fetch("a")), (3, fetch("b"))])
    assert len(list(log.keys())) == 20

    log.add("d.jsonl", OperationsHeader(client="d"), [(2, fetch("c"))])
    with pytest.raises(OperationsError, match="more than 30 share partitions"):
        list(log.keys())


def test_what_costs_too_much_is_not_judged() -> None:
    """Share partitions have their share of the work that is done for a log; what is left is undecided."""
    written = Written().produce(0, 0, 0)
    for number in range(8):
        written.fetch(f"m{number}", 0, (0, 0, None), end=100_000)
    log = written.log()
    log.rows_in_all = 1_000_000

    assert len(written.broken()) == 1
    assert audit(log, SETTINGS).verdict(Guarantee.ONE_OWNER).unknown
