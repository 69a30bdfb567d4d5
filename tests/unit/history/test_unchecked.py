"""What a replay cannot check, and what it does not take."""

from __future__ import annotations

import pytest

from sharestate import MalformedInputError
from sharestate.history import Event, Replay
from sharestate.json_lines import Json

KEY = ("g", "dGhlIHRvcGljJ3MgaWQhIQ", 0)
NOTHING: dict[str, Json] = {"state_epoch": 0, "start_offset": 0, "state_batches": ()}


@pytest.mark.parametrize(("how_long", "unchecked"), [("until_read", 0), ("for_good", 2)])
def test_what_a_verdict_has_lost_is_known_again_or_not(how_long: str, unchecked: int) -> None:
    """The state that is read next is taken over, unless nothing is known for good."""
    events: list[tuple[str, dict[str, Json], dict[str, Json] | None]] = [
        ("verdict", {"verdict": "search_bound_reached", "lost": how_long}, None),
        ("initialize", {"leader_epoch": 8}, NOTHING),
        ("log_start", {"offset": 3}, None),
    ]
    replay = Replay(KEY, outputs=frozenset({"metric"}))
    for seq, (kind, request, response) in enumerate(events):
        replay.apply(Event.of(KEY, seq, kind, at_us=seq, request=request, response=response))

    assert (replay.partition is None, replay.lost is None) == (unchecked > 0, unchecked == 0)
    counts = {row.values[0]: row.values[1] for row in replay.finish()}
    assert counts.get("events_unchecked", 0) == unchecked


def test_without_the_log_nothing_is_known_after_a_fetch() -> None:
    """It does not say what it has read, so nobody knows what it has acquired."""
    replay = Replay(KEY, lacks=frozenset({"log"}), outputs=frozenset({"metric"}))
    replay.apply(Event.of(KEY, 0, "initialize", at_us=0, response=NOTHING))
    replay.apply(Event.of(KEY, 1, "fetch", at_us=1, member_id="m1", request={}, response={"acquired": ()}))

    assert replay.partition is None
    assert ("events_unchecked", 1) in [row.values for row in replay.finish()]


def test_an_event_of_another_kind_is_refused() -> None:
    """It names those that there are."""
    with pytest.raises(MalformedInputError, match=r"expected one of config, .*got 'nothing'") as caught:
        Replay(KEY).apply(Event.of(KEY, 0, "nothing"))

    assert caught.value.field == "kind"
