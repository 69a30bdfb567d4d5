"""A persister in a file: several processes may write, and nothing that one of them was answered is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from sharestate import StateBatch
from sharestate.coordinator import CoordinatorConfig
from sharestate.persister import (
    InitializeStateParameters,
    PartitionStateBatchData,
    PartitionStateData,
    SqlitePersister,
    WriteStateParameters,
)

TOPIC_ID: Final = "AAECAwQFBgcICQoLDA0ODw"
PARTITIONS: Final = 3
CONFIG: Final = CoordinatorConfig(updates_per_snapshot=4, cold_snapshot_interval_ms=1, prune_interval_ms=5)
"""Records are deleted every few requests."""

WRITER: Final = """
import sys
from tests.unit.persister.test_several_processes import write_on
write_on(*sys.argv[1:])
"""


def write_on(path: str, partition: str, begin: str, count: str) -> None:
    """Write one batch after the other, and print the number of each when it is confirmed."""
    with SqlitePersister(path, config=CONFIG) as persister:
        for number in range(int(begin), int(begin) + int(count)):
            assert write(persister, int(partition), number) == 0
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


def write(persister: SqlitePersister, partition: int, number: int) -> int:
    """Write that record *number* of a partition is acknowledged, and return the error code."""
    batch = StateBatch(2 * number, 2 * number, 2, 1)
    entry = PartitionStateBatchData(partition=partition, state_batches=(batch,), start_offset=0)
    ((answer,),) = (
        topic.partitions
        for topic in persister.write_state(WriteStateParameters.of("g", TOPIC_ID, entry)).result(timeout=0).topics
    )
    return answer.error_code


def start(path: Path, partition: int, begin: int, count: int) -> subprocess.Popen[str]:
    """Start a process that writes."""
    command = [sys.executable, "-c", WRITER, str(path), str(partition), str(begin), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def initialize(path: Path) -> None:
    """Make the file, with some share partitions."""
    entries = [PartitionStateData(partition=partition, start_offset=0) for partition in range(PARTITIONS)]
    with SqlitePersister(path, config=CONFIG) as persister:
        persister.initialize_state(InitializeStateParameters.of("g", TOPIC_ID, *entries)).result(timeout=0)


def acknowledged(path: Path, partition: int) -> list[int]:
    """Return the numbers of the records that are stored as acknowledged."""
    with SqlitePersister(path, config=CONFIG) as persister:
        state = persister.stored("g", TOPIC_ID, partition)
    assert state is not None
    return [batch.first_offset // 2 for batch in state.state_batches]


def test_several_processes_write_at_a_time(tmp_path: Path) -> None:
    """Every write of each is there, to share partitions of their own and to one that they share."""
    path = tmp_path / "state.db"
    initialize(path)
    count = 25
    writers = [
        start(path, 0, 0, count),
        start(path, 1, 0, count),
        start(path, 2, 0, count),
        start(path, 2, 100, count),
    ]
    outputs = [writer.communicate(timeout=120)[0].split() for writer in writers]

    assert [writer.returncode for writer in writers] == [0] * len(writers)
    assert [len(output) for output in outputs] == [count] * len(writers)
    assert acknowledged(path, 0) == acknowledged(path, 1) == list(range(count))
    assert acknowledged(path, 2) == [*range(count), *range(100, 100 + count)]


def test_several_processes_open_a_new_file_at_a_time(tmp_path: Path) -> None:
    """One of them makes the tables, and all can write."""
    path = tmp_path / "state.db"
    program = """
import sys
from pathlib import Path
from tests.unit.persister.test_several_processes import initialize
sys.stdin.readline()
initialize(Path(sys.argv[1]))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", program, str(path)]
    openers = [subprocess.Popen(command, stdin=subprocess.PIPE, text=True, env=environment) for _ in range(4)]
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("\n")
        opener.stdin.flush()
    for opener in openers:
        opener.communicate(timeout=120)

    assert [opener.returncode for opener in openers] == [0] * 4
    assert acknowledged(path, 0) == []
