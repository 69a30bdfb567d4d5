"""What a replay cannot check, and what it does not take."""

from __future__ import annotations

import pytest

from sharestate import MalformedInputError
from sharestate.history import AppendedBatch, Event, Replay
from sharestate.json_lines import Json, read_json

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


def test_a_verdict_that_loses_the_state_forgets_it() -> None:
    """It has a row, if rows of verdicts are asked for; writes that were pending stay without an answer."""
    lost: dict[str, Json] = {"verdict": "contradiction", "reason": "an answer that cannot be", "lost": "until_read"}
    for outputs, rows in (
        ({"verdict", "metric"}, [("contradiction", "an answer that cannot be", "until_read")]),
        ({"metric"}, []),
    ):
        replay = Replay(KEY, outputs=frozenset(outputs))
        fetch = {"fetch_offset": 0, "batches": (AppendedBatch(0, 4),)}
        replay.apply(Event.of(KEY, 0, "initialize", at_us=0, response=NOTHING))
        replay.apply(Event.of(KEY, 1, "fetch", at_us=0, member_id="m1", request=fetch))
        replay.apply(Event.of(KEY, 2, "close", at_us=0, member_id="m1"))

        assert [row.values for row in replay.apply(Event.of(KEY, 3, "verdict", at_us=9, request=lost))] == rows

        assert (replay.partition, replay.lost) == (None, ("contradiction", lost["reason"], "until_read", 9))
        assert ("writes_unanswered", 1) in [row.values for row in replay.finish()]


def test_a_verdict_that_loses_nothing_leaves_the_state() -> None:
    """What goes before it is confirmed."""
    replay = Replay(KEY, outputs=frozenset({"verdict"}))
    replay.apply(Event.of(KEY, 0, "initialize", at_us=0, response=NOTHING))

    (row,) = replay.apply(Event.of(KEY, 1, "verdict", at_us=0, request={"verdict": "explained"}))

    assert row.values == ("explained", None, None)
    assert (replay.partition is None, replay.lost) == (False, None)


def test_a_log_goes_on_until_the_state_is_read_again() -> None:
    """What is appended meanwhile can be fetched then; a share partition that is lost for good needs no log any more."""
    for how_long, end in (("until_read", 10), ("for_good", 5)):
        events: list[tuple[str, dict[str, Json], dict[str, Json] | None]] = [
            ("log", {"batches": (AppendedBatch(0, 4),)}, None),
            ("verdict", {"verdict": "search_bound_reached", "lost": how_long}, None),
            ("log", {"batches": (AppendedBatch(5, 9),)}, None),
            ("initialize", {}, NOTHING),
            ("fetch", {}, None),
        ]
        replay = Replay(KEY, lacks=frozenset({"expire"}), outputs=frozenset({"acquisition"}))
        rows = replay.apply_all(
            Event.of(KEY, seq, kind, at_us=0, member_id="m1", request=request, response=response)
            for seq, (kind, request, response) in enumerate(events)
        )

        assert read_json(replay.state())["log"]["end_offset"] == end
        assert [row.values for row in rows] == ([(0, 9, "m1", 1)] if how_long == "until_read" else [])


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
