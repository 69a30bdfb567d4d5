"""Verdicts of the check of a broker's log, in histories."""

from __future__ import annotations

import pytest

from sharestate.history import Event, Replay
from sharestate.json_lines import Json

KEY = ("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0)


@pytest.mark.parametrize(("how_long", "unchecked"), [("until_read", 0), ("for_good", 2)])
def test_what_a_verdict_has_lost_is_known_again_or_not(how_long: str, unchecked: int) -> None:
    """The state that is read next is taken over, unless nothing is known for good."""
    events: list[tuple[str, dict[str, Json], dict[str, Json] | None]] = [
        ("verdict", {"verdict": "search_bound_reached", "lost": how_long}, None),
        ("initialize", {"leader_epoch": 8}, {"state_epoch": 0, "start_offset": 0, "state_batches": ()}),
        ("log_start", {"offset": 3}, None),
    ]
    replay = Replay(KEY, outputs=frozenset({"metric"}))
    for seq, (kind, request, response) in enumerate(events):
        replay.apply(Event.of(KEY, seq, kind, at_us=seq, request=request, response=response))

    assert (replay.partition is None, replay.lost is None) == (unchecked > 0, unchecked == 0)
    counts = {row.values[0]: row.values[1] for row in replay.finish()}
    assert counts.get("events_unchecked", 0) == unchecked
