"""States of a replay that cannot be taken up again, because they are none."""

from __future__ import annotations

from typing import Final

import pytest

from sharestate import SnapshotError
from sharestate.history import Replay
from sharestate.json_lines import Json, read_json, write_json

KEY: Final = ("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0)


def refused(**changes: Json) -> SnapshotError:
    """Return the error with which a state is refused that has *changes*."""
    state = read_json(Replay(KEY).state())
    assert isinstance(state, dict)
    assert changes.keys() <= state.keys()
    with pytest.raises(SnapshotError) as caught:
        Replay.restore(write_json({**state, **changes}))
    return caught.value


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"sharestate_replay":2}'])
def test_a_state_that_is_none_is_refused(text: str) -> None:
    """What is no state of a replay, or of another version, is refused."""
    with pytest.raises(SnapshotError):
        Replay.restore(text)


@pytest.mark.parametrize(
    ("snapshot", "field"), [("nonsense", "snapshot"), ("{}", "snapshot.sharestate_snapshot")], ids=["no JSON", "empty"]
)
def test_a_snapshot_that_is_none_is_named(snapshot: str, field: str) -> None:
    """With the field in it, if there is one."""
    assert refused(snapshot=snapshot).field == field


@pytest.mark.parametrize("count", [-1, 1.5, "1", None])
def test_a_count_that_cannot_be_is_named(count: Json) -> None:
    """There are no events, or more; not less than none."""
    assert refused(counts={"writes_failed": count}).field == "counts.writes_failed"
