"""What a difference needs remains of the sequence that has shown it."""

from __future__ import annotations

from typing import Any

from sharestate.testing.search.shrinking import shrunk


def test_what_belongs_together_is_left_out_together() -> None:
    """An acquisition and its acknowledgement, neither of which can be left out alone, go both."""
    sequence = [{"op": op} for op in ("open", "acquire", "state", "acknowledge", "acquire", "release")]

    def shows(requests: list[dict[str, Any]]) -> bool:
        ops = [request["op"] for request in requests]
        return "state" in ops and ops.count("acquire") == ops.count("acknowledge") + 1

    assert [request["op"] for request in shrunk(sequence, shows)] == ["open", "state", "acquire", "release"]
