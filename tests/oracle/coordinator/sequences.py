"""Random requests to a share coordinator, in numbered sequences: the same number gives the same requests."""

from __future__ import annotations

from base64 import b64decode, b64encode
from random import Random
from typing import Any, Final

from sharestate import ErrorCode
from sharestate.conversation import CoordinatorConversation
from sharestate.coordinator import COORDINATOR_4_3

Json = Any

TOPICS: Final = ("AAECAwQFBgcICQoLDA0ODw", "-_-_-_-_-_-_-_-_-_-_-A", "IoNTqcc65nJltKVVhKBPPQ")
GROUPS: Final = ("G", "group:2", "gr\u00fcppe-3", "\U0001d11e")
FAILURES: Final = tuple(code.name for code in ErrorCode if code)
UNKNOWN: Final = {"key": "AAcAAkcxAAECAwQFBgcICQoLDA0ODwAAAAA=", "value": None}
"""A record of a type that no release knows."""

CODEC: Final = CoordinatorConversation(COORDINATOR_4_3)
"""Returns the bytes of records, which the same recordings hold against Kafka's as everything else."""

LENGTH: Final = 60
"""The requests of a sequence after the one that opens the coordinator. [requests]"""

_OPS: Final = {
    "write": 40,
    "read": 14,
    "initialize": 10,
    "summary": 6,
    "delete": 4,
    "advance": 5,
    "cold": 4,
    "prune": 4,
    "commit": 4,
    "flush": 4,
    "restart": 3,
    "metadata": 2,
    "timeout": 1,
    "redundant": 2,
    "fold": 1,
    "replay": 1,
    "state": 2,
    "log": 1,
    "route": 2,
    "combine": 10,
    "decode": 2,
    "encode": 1,
}


class Sequence:
    """A sequence of requests; some are more orderly than others."""

    def __init__(self, number: int) -> None:
        """Make the sequence with this number."""
        self._random = Random(number)  # noqa: S311 - a replayable sequence
        self._partitions = self._random.choice((1, 1, 2, 3))
        self._wild = self._random.choice((0.0, 0.05, 0.3))
        """How often a number is one that no broker sends."""
        self._late = self._random.choice((0.0, 0.0, 0.2))
        """How often an append is not written and committed at once."""
        self._keys = [
            (self._random.choice(GROUPS), self._random.choice(TOPICS), self._random.randrange(2))
            for _ in range(self._random.randint(1, 4))
        ]
        self._start = self._random.choice((0, 0, 100))

    def requests(self) -> list[Json]:
        """Return the requests."""
        weights = [self._random.random() * weight for weight in _OPS.values()]
        ops = self._random.choices(list(_OPS), weights, k=LENGTH)
        return [self._open(), *(getattr(self, f"_{op}", self._plain)(op) for op in ops), {"op": "state"}]

    def _open(self) -> Json:
        random = self._random
        return {
            "op": "open",
            "partitions": self._partitions,
            "now": random.choice((0, 1000)),
            "config": {
                "updates_per_snapshot": random.choice((0, 1, 2, 5, 500)),
                "cold_interval_ms": random.choice((1, 1000)),
            },
            "topics": None if random.random() < self._wild / 3 else dict.fromkeys(TOPICS, 2),
        }

    # ---- requests for share partitions

    def _number(self, usual: int, *, least: int = -2, most: int = 6) -> int:
        return self._random.randint(least, most) if self._random.random() < self._wild else usual

    def _entries(self, op: str, **fields: Json) -> Json:
        group, topic, partition = self._random.choice(self._keys)
        entry: Json = {"topic": topic, "partition": self._number(partition, least=-1, most=3), **fields}
        if self._random.random() < self._wild / 10:
            entry["topic"] = None
        entries = [entry, {**entry, "partition": 1 - partition}] if self._random.random() < 0.1 else [entry]
        return {"op": op, "group": group, "entries": entries, "append": self._append()}

    def _append(self) -> Json:
        if self._random.random() >= self._late:
            return "ok"
        return self._random.choice(("written", "hold", "drop", {"error": self._random.choice(FAILURES)}))

    def _initialize(self, op: str) -> Json:
        start = self._random.choice((-1, self._start, self._start + 10))
        return self._entries(op, state_epoch=self._number(self._random.randrange(3)), start_offset=start)

    def _read(self, op: str) -> Json:
        return self._entries(op, leader_epoch=self._number(self._random.choice((0, 1, 1, 2))))

    def _write(self, op: str) -> Json:
        random = self._random
        return self._entries(
            op,
            state_epoch=self._number(random.choice((2, 2, 3))),
            leader_epoch=self._number(random.choice((2, 2, 3))),
            start_offset=random.choice((-1, self._start, self._start + random.randrange(30))),
            complete=random.choice((-1, 0, random.randrange(30))),
            batches=self._batches(random.choice((0, 1, 1, 2, 5))),
        )

    def _batches(self, count: int) -> Json:
        random = self._random
        rows = []
        for _ in range(count):
            first = self._start + random.randrange(40)
            state = random.choice((0, 2, 4)) if random.random() >= self._wild else random.randint(-128, 127)
            deliveries = random.randint(1, 3) if random.random() >= self._wild else random.randint(-2, 2**15 - 1)
            rows.append([first, first + random.choice((0, 0, 1, 9)), state, deliveries])
        return sorted(rows) if random.random() < 0.5 else rows

    def _summary(self, op: str) -> Json:
        return self._entries(op)

    def _delete(self, op: str) -> Json:
        return self._entries(op)

    # ---- requests for shards

    def _state(self, op: str) -> Json:
        return {"op": op}

    def _plain(self, op: str) -> Json:
        request: Json = {"op": op}
        if self._random.random() < 0.3:
            request["shard"] = self._random.randrange(self._partitions)
        if op in {"cold", "redundant", "flush"}:
            request["append"] = self._append()
        return request

    def _advance(self, op: str) -> Json:
        return {"op": op, "ms": self._random.choice((0, 1, 999, 1000, 5000))}

    def _prune(self, op: str) -> Json:
        return {**self._plain(op), "fails": self._random.random() < 0.2}

    def _commit(self, op: str) -> Json:
        return self._plain(op) | ({"upto": self._random.randrange(12)} if self._random.random() < 0.3 else {})

    def _restart(self, op: str) -> Json:
        return self._plain(op) | {"keep": self._random.choice(("written", "committed", self._random.randrange(20)))}

    def _timeout(self, op: str) -> Json:
        return {"op": op, "pending": self._random.randrange(6)}

    def _metadata(self, op: str) -> Json:
        topic = self._random.choice(TOPICS)
        if self._random.random() < 0.5:
            return {"op": op, "topics": {topic: self._random.randint(1, 3)}}
        return {"op": op, "delete": [topic], "cleanup": self._random.random() < 0.8, "append": self._append()}

    def _fold(self, op: str) -> Json:
        offset = self._random.randrange(3)
        rows = []
        for _ in range(self._random.randrange(12)):
            rows.append({"offset": offset, **self._any_record()})
            offset += self._random.choice((1, 1, 1, 5))
        if rows and self._random.random() < 0.2:
            del rows[0]["offset"]
        return {"op": op, "shard": self._random.randrange(self._partitions), "records": rows, "start": offset % 3}

    def _replay(self, op: str) -> Json:
        shard = self._random.randrange(self._partitions)
        return {"op": op, "shard": shard, "offset": self._random.randrange(100), "record": self._any_record()}

    def _any_record(self) -> Json:
        return self._random.choice((self._record, self._record, self._raw_record, self._unknown_record))()

    def _record(self) -> Json:
        random = self._random
        group, topic, partition = random.choice(self._keys)
        kind = random.choice(("snapshot", "snapshot", "update", "update", "update", "tombstone"))
        row: Json = {"type": "update" if kind == "update" else "snapshot", "group": group, "topic": topic}
        row |= {"partition": partition, "data": None}
        if kind == "tombstone":
            return row
        row["data"] = {
            "snapshot_epoch": random.randrange(5),
            "leader_epoch": random.randint(-1, 4),
            "start_offset": random.choice((-1, self._start, self._start + 10)),
            "complete": random.choice((-1, 0, 3)),
            "batches": self._batches(random.choice((0, 1, 3))),
        }
        if kind == "snapshot":
            row["data"] |= {"state_epoch": random.randint(-1, 4), "created": random.choice((0, 900)), "written": 900}
        return row

    # ---- requests without a coordinator

    def _route(self, op: str) -> Json:
        text = "".join(chr(self._random.choice((58, 65, 97, 0xFC, 0x20AC, 0x1D11E))) for _ in range(6))
        partition = self._random.choice((0, 7, 2**31 - 1))
        count = self._random.randint(1, 60)
        return {
            "op": op,
            "group": text,
            "topic": self._random.choice(TOPICS),
            "partition": partition,
            "partitions": count,
        }

    def _combine(self, op: str) -> Json:
        random = self._random
        start = random.choice((-1, self._start + random.randrange(40)))
        existing, new = random.randrange(8), random.randrange(8)
        return {"op": op, "existing": self._batches(existing), "new": self._batches(new), "start": start}

    def _decode(self, op: str) -> Json:
        row = self._raw_record()
        if row["value"] is not None and self._random.random() < 0.5:
            value = b64decode(row["value"])
            row["value"] = b64encode(value[: self._random.randrange(len(value))]).decode()
        return {"op": op, "record": row}

    def _encode(self, op: str) -> Json:
        return {"op": op, "record": self._record()}

    def _unknown_record(self) -> Json:
        return dict(UNKNOWN)

    def _raw_record(self) -> Json:
        return CODEC.answer({"op": "encode", "record": self._record()}, 1)["result"]
