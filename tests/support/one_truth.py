"""What a replay of a broker's log says, beside what the check of the log counts and what the broker answered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from sharestate import SharePartition
from sharestate.values.snapshot import Snapshot
from tests.support.broker_answers import TERMINAL, Answers, Key

Row = dict[str, Any]
"""A row of a replay."""


def expect_one_truth(rows: Iterable[Row], reports: Iterable[Any], answers: Answers) -> int:
    """
    Check that of explained share partitions the replay, the check of the log and the broker say the same.

    Args:
        rows: The rows of the replay, with all of their columns that are not null.
        reports: What ``log verify --json`` prints of each share partition.
        answers: What the broker answered.

    Returns:
        How many share partitions are explained.
    """
    of: dict[Key, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        of[row["group_id"], row["topic_id"], row["partition"]][row["kind"]].append(row)
    explained = 0
    for report in reports:
        key = report["group_id"], report["topic_id"], report["partition"]
        if report["verdict"] == "explained":
            explained += 1
            _expect_counts(of[key], report, answers, key)
            _expect_writes(of[key], answers, key)
            _expect_final_state(of[key], answers, key)
    return explained


def _expect_counts(rows: dict[str, list[Row]], report: Any, answers: Answers, key: Key) -> None:  # noqa: ANN401 - JSON
    counts = {row["name"]: row["value"] for row in rows["metric"]}
    said = report["explained"]
    assert not rows["difference"]
    assert [row["verdict"] for row in rows["verdict"]] == ["explained"]
    assert counts["records_acquired"] == answers.acquired[key]
    assert sum(row["last_offset"] - row["first_offset"] + 1 for row in rows["acquisition"]) == answers.acquired[key]
    assert said["fetches_with_records"] == report["observed"]["fetches_with_records"] == answers.fetches[key]
    assert len({row["seq"] for row in rows["acquisition"]}) == said["fetches_with_records"]
    assert counts.get("locks_expired", 0) == said["expiries"]
    assert counts["writes"] == len(rows["write"]) == said["writes"]
    assert counts.get("dead_letters", 0) == len(rows["dead_letter"]) == said["dead_letters"]


def _expect_writes(rows: dict[str, list[Row]], answers: Answers, key: Key) -> None:
    """Check that each write that was computed was sent, and each that was sent by the last leader was computed."""
    computed: Counter[Any] = Counter()
    for row in rows["write"]:
        batches = tuple((*map(int, batch.values()),) for batch in map(_struct, row["state_batches"]))
        computed[row["state_epoch"], row["leader_epoch"], batches] += 1
    assert computed <= answers.writes[key]


def _struct(batch: Any) -> dict[str, Any]:  # noqa: ANN401 - a list in JSON, a struct in Arrow
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return batch if isinstance(batch, dict) else dict(zip(names, batch, strict=True))


def _expect_final_state(rows: dict[str, list[Row]], answers: Answers, key: Key) -> None:
    """Check that what the broker persisted last is what the share partition has at the end, but for what is held."""
    (row,) = rows["snapshot"]
    partition = SharePartition.restore(Snapshot.from_json(row["state"]))
    persisted = answers.persisted[key]
    assert partition.start_offset == rows["start_offset"][-1]["start_offset"]
    assert persisted.get(partition.start_offset, (0, 0))[0] not in TERMINAL
    assert partition.start_offset - 1 not in persisted or persisted[partition.start_offset - 1][0] in TERMINAL
    found = {
        offset: (int(run.state), run.delivery_count)
        for batch in partition.batches()
        for run in batch.runs
        for offset in range(run.first_offset, run.last_offset + 1)
        if int(run.state) in TERMINAL and offset >= partition.start_offset
    }
    assert found == {
        offset: state
        for offset, state in persisted.items()
        if offset >= partition.start_offset and state[0] in TERMINAL
    }
