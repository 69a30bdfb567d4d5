"""What could be lost where the state machine is compiled; the same holds where it is not."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import traceback
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import sharestate
from sharestate import (
    KAFKA_4_4,
    KIP_932,
    AcknowledgementBatch,
    Effects,
    FetchedRecords,
    PersistedState,
    Profile,
    RecordBatch,
    RecordState,
    SharePartition,
    SharePartitionKey,
    Snapshot,
    StateBatch,
    UnknownWriteError,
)
from sharestate.spark.library_zip import SHARED_LIBRARY

KEY = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)


class Counted(SharePartition):
    """A share partition of a user, who counts what is acknowledged."""

    calls = 0

    def acknowledge(self, member_id: str, batches: list[AcknowledgementBatch], *, now_ms: int) -> Effects:  # type: ignore[override] # a list is enough here
        """Count the call."""
        self.calls += 1
        return super().acknowledge(member_id, batches, now_ms=now_ms)


def acquired(profile: Profile = KAFKA_4_4) -> Counted:
    """Return a share partition of which a member holds ten records, one by one, and one of them is pending."""
    partition = Counted(KEY, profile=profile)
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=0))
    partition.acquire("m", FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 9)]), now_ms=0)
    partition.acknowledge("m", [AcknowledgementBatch(4, 4, (1,))], now_ms=1)
    return partition


def test_the_build_is_the_one_that_was_asked_for() -> None:
    """`make test-compiled` tests a compiled library, and `make test` one in pure Python."""
    assert sharestate.is_compiled() == (os.environ.get("SHARESTATE_COMPILE") == "1")


def test_all_modules_but_some_are_compiled() -> None:
    """The module of the class that users know is Python; what it is made of is compiled, or none of it is."""
    from sharestate.partition import acquire, commit, share_partition, state  # noqa: PLC0415 - looked at as modules

    assert str(share_partition.__file__).endswith(".py")
    assert {str(module.__file__).endswith(".py") for module in (acquire, commit, state)} == {
        not sharestate.is_compiled()
    }


def test_the_shared_library_is_found_by_its_name() -> None:
    """Archives for clusters have it; there is one where the library is compiled."""
    assert (find_spec(SHARED_LIBRARY) is not None) == sharestate.is_compiled()


@pytest.mark.parametrize("profile", [KAFKA_4_4, KIP_932], ids=lambda profile: str(profile.name))
def test_a_copy_goes_on_as_the_original(profile: Profile) -> None:
    """Whether it was pickled, copied or restored from JSON, it is of the same class and answers alike."""
    partition = acquired(profile)
    copies = [
        pickle.loads(pickle.dumps(partition)),  # noqa: S301 - our own
        copy.copy(partition),
        copy.deepcopy(partition),
        Counted.restore(Snapshot.from_json(partition.snapshot().to_json()), profile=profile),
    ]
    snapshots = []
    for each in (partition, *copies):
        assert type(each) is Counted
        each.write_succeeded(0)
        each.acknowledge("m", [AcknowledgementBatch(0, 3, (1, 2, 3, 1))], now_ms=2)
        snapshots.append(each.snapshot())

    assert [snapshot == snapshots[0] for snapshot in snapshots] == [True] * 5
    assert [each.calls for each in (partition, *copies)] == [2, 2, 2, 2, 1]


def test_a_derived_class_is_called() -> None:
    """What a user has overridden is what runs."""
    assert acquired().calls == 1


def test_values_are_what_they_were() -> None:
    """States and types that come out are members of their enumerations, and go through pickle."""
    partition = acquired()
    (write,) = partition.acknowledge("m", [AcknowledgementBatch(5, 6, (2,))], now_ms=2).writes

    assert tuple(write.state_batches) == (
        StateBatch(5, 5, RecordState.AVAILABLE, 1),
        StateBatch(6, 6, RecordState.AVAILABLE, 1),
    )
    assert {type(batch.delivery_state) for batch in write.state_batches} == {RecordState}
    assert pickle.loads(pickle.dumps(write)) == write  # noqa: S301 - our own


def test_a_traceback_names_the_lines() -> None:
    """Where an error was raised is seen: the files and the lines, whether compiled or not."""
    with pytest.raises(UnknownWriteError) as raised:
        acquired().write_succeeded(7)
    frames = traceback.extract_tb(raised.tb)[1:]

    assert [(Path(frame.filename).name, frame.name) for frame in frames] == [
        ("share_partition.py", "write_succeeded"),
        ("commands.py", "write_succeeded"),
        ("commit.py", "write_succeeded"),
    ]
    source = (Path(sharestate.__file__).parent / "partition/commit.py").read_text("utf-8").splitlines()
    assert "raise _unknown" in source[(frames[-1].lineno or 0) - 1]


def test_the_library_ends_as_python_ends() -> None:
    """Loading a module of the state machine first, and by itself, is no harm."""
    command = [sys.executable, "-c", "import sharestate.partition.state, sharestate.partition.cells"]

    assert subprocess.run(command, check=False).returncode == 0


def test_a_module_that_is_no_python_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel may have one, or a file of another kind."""
    for origin in ("acquire.py", "acquire.so"):
        monkeypatch.setattr(sharestate.partition, "find_spec", lambda _, origin=origin: SimpleNamespace(origin=origin))
        assert sharestate.is_compiled() == origin.endswith(".so")
