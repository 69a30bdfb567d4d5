"""A persister in a file: several processes may write, and nothing that one of them was answered is lost."""

from __future__ import annotations

import json
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

FORKING: Final = """
import json
import sys
from multiprocessing import get_context
from tests.unit.persister import test_several_processes

name, *calls = json.loads(sys.argv[1])
target = getattr(test_several_processes, name)
processes = [get_context("fork").Process(target=target, args=arguments) for arguments in calls]
for process in processes:
    process.start()
for process in processes:
    process.join()
print(json.dumps([process.exitcode for process in processes]))
"""
"""Calls a function in several processes at a time: forks, as to begin anew takes longer than to write."""


def exit_codes(name: str, *calls: tuple[str | int, ...]) -> list[int]:
    """Call the function *name* with arguments, each time in a process of its own, and return how these have ended."""
    command = [sys.executable, "-c", FORKING, json.dumps([name, *calls])]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=120, env=environment).stdout
    codes: list[int] = json.loads(output)
    return codes


def write_on(path: str, partition: int, begin: int, count: int) -> None:
    """Write one batch after the other, each of which is confirmed."""
    with SqlitePersister(path, config=CONFIG) as persister:
        for number in range(begin, begin + count):
            assert write(persister, partition, number) == 0


def write(persister: SqlitePersister, partition: int, number: int) -> int:
    """Write that record *number* of a partition is acknowledged, and return the error code."""
    batch = StateBatch(2 * number, 2 * number, 2, 1)
    entry = PartitionStateBatchData(partition=partition, state_batches=(batch,), start_offset=0)
    ((answer,),) = (
        topic.partitions
        for topic in persister.write_state(WriteStateParameters.of("g", TOPIC_ID, entry)).result(timeout=0).topics
    )
    return answer.error_code


def initialize(path: str) -> None:
    """Make the file, with some share partitions."""
    entries = [PartitionStateData(partition=partition, start_offset=0) for partition in range(PARTITIONS)]
    with SqlitePersister(path, config=CONFIG) as persister:
        persister.initialize_state(InitializeStateParameters.of("g", TOPIC_ID, *entries)).result(timeout=0)


def acknowledged(path: str, partition: int) -> list[int]:
    """Return the numbers of the records that are stored as acknowledged."""
    with SqlitePersister(path, config=CONFIG) as persister:
        state = persister.stored("g", TOPIC_ID, partition)
    assert state is not None
    return [batch.first_offset // 2 for batch in state.state_batches]


def test_several_processes_write_at_a_time(tmp_path: Path) -> None:
    """Every write of each is there, to share partitions of their own and to one that they share."""
    path, count = str(tmp_path / "state.db"), 25
    initialize(path)
    codes = exit_codes("write_on", (path, 0, 0, count), (path, 1, 0, count), (path, 2, 0, count), (path, 2, 100, count))

    assert codes == [0] * 4
    assert acknowledged(path, 0) == acknowledged(path, 1) == list(range(count))
    assert acknowledged(path, 2) == [*range(count), *range(100, 100 + count)]


def test_several_processes_open_a_new_file_at_a_time(tmp_path: Path) -> None:
    """One of them makes the tables, and all can write."""
    path = str(tmp_path / "state.db")

    assert exit_codes("initialize", *[(path,)] * 4) == [0] * 4
    assert acknowledged(path, 0) == []
