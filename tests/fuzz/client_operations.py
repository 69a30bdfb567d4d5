"""Files of operations of clients, and of events that are read as such, that may be damaged: judged as a whole."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from sharestate.audit import AuditSettings, audit
from tests.fuzz.in_memory import DIRECTORY
from tests.fuzz.mutations import damaged, damaged_json

DATA: Final = Path(__file__).parents[1] / "data" / "audit"

SOME_LINES: Final = 40
"""How much of a file is a sample. [lines]"""

FILES: Final = (
    "k440-transactions/client-1.jsonl.gz",
    "k440-transactions/client-4.jsonl.gz",
    "k431-kill9/trouble.jsonl.gz",
    "k431-verifiable/consumer-sync.jsonl.gz",
    "k431-verifiable/producer.jsonl.gz",
)


@cache
def samples() -> list[bytes]:
    """Return files of recorded clients, of one that made trouble, and of Kafka's verifiable clients."""
    chaos = next((DATA / "k431-chaos").glob("chaos-*"))
    files = [*(DATA / name for name in FILES), chaos]
    return [b"\n".join(gzip.decompress(file.read_bytes()).splitlines()[:SOME_LINES]) + b"\n" for file in files]


def damaged_file(random: Random, some: Sequence[bytes]) -> bytes:
    """Return a file of which one or two lines are damaged, and now and then one that is damaged or cut as a whole."""
    if random.random() < 0.1:
        return damaged(random, some)
    lines = random.choice(some).splitlines()
    for number in random.sample(range(len(lines)), k=random.choice((1, 1, 2))):
        lines[number] = damaged_json(random, [lines[number]])
    return b"".join(line + b"\n" for line in lines)


def judge(data: bytes) -> None:
    """Judge a file, and write down what is found out."""
    with TemporaryDirectory(dir=DIRECTORY) as directory:
        path = Path(directory, "c.jsonl")
        path.write_bytes(data)
        judged = audit([path], AuditSettings(record_lock_duration_ms=1500, delivery_count_limit=5, kafka="4.3"))
    assert judged.to_json()
    assert all(verdict.checked >= 0 for verdict in judged.verdicts)
