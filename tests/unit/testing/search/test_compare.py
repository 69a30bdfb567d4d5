"""Comparing an implementation with the library: what is found, how small it gets, and what is known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from sharestate import KAFKA_4_3, KAFKA_4_4, KIP_932, Profile
from sharestate.conversation.replay import replay
from sharestate.testing import InProcessServer, Request, Response, converse, invariants_of, observe, seeded
from sharestate.testing.search import (
    CommandPeer,
    DifferenceError,
    Divergence,
    FoundDifference,
    Level,
    Peer,
    PeerDiedError,
    by_record,
    compare,
    finding,
    plain,
)
from tests.planted.brokers import BUGS
from tests.support.naive_broker import NaiveBroker

PLAINLY = KAFKA_4_3.healed
"""The rules of the naive broker."""

SHORT = 12
"""How many requests a counter-example may take."""


def found(peer: Peer, profile: Profile, **options: Any) -> FoundDifference:  # noqa: ANN401 - those of `compare`
    """Return the difference that a comparison finds."""
    with pytest.raises(DifferenceError) as caught:
        compare(peer, profile, **options)
    return caught.value.finding


class Wrong(InProcessServer):
    """The library, which counts a wrong one of the complete records."""

    def __call__(self, value: Request) -> Response:
        """Return the response with a wrong count after acknowledgements."""
        response = super().__call__(value)
        if value["op"] == "acknowledge" and response["state"]["delivery_complete_count"]:
            response["state"]["delivery_complete_count"] += 1
        return response


def test_the_library_agrees_with_itself() -> None:
    """A peer with the same rules answers every request alike, at every level."""
    for level in Level:
        assert compare(InProcessServer(KAFKA_4_4), KAFKA_4_4, level=level, seeds=range(5)) > 100


def test_a_next_fetch_offset_may_be_anything() -> None:
    """The log does not grow to an offset that only a wrong peer has."""

    class Lost(InProcessServer):
        def __call__(self, value: Request) -> Response:
            response = super().__call__(value)
            return {**response, "result": 2**60} if value["op"] == "next_fetch_offset" else response

    assert sum(1 for _ in converse(seeded(0), Lost(KAFKA_4_3))) > 10


def test_other_rules_are_found() -> None:
    """Where a release has a bug that another profile has not, the two differ."""
    assert found(InProcessServer(KAFKA_4_3), KAFKA_4_3.healed).steps <= SHORT


def test_a_wrong_state_is_found_where_state_is_compared() -> None:
    """The differences name the place; answers alone do not show it unless it is written."""
    shown = found(Wrong(KAFKA_4_3), KAFKA_4_3)

    assert shown.op == "acknowledge"
    assert "delivery_complete_count" in shown.differences[0]
    assert shown.steps <= SHORT
    assert compare(Wrong(KAFKA_4_3), KAFKA_4_3, level=Level.ANSWERS, seeds=range(20))


def test_when_the_time_is_over_a_conversation_stays_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer may take long for each answer; what was found by then is shown, and still shows the difference."""
    short = found(Wrong(KAFKA_4_3), KAFKA_4_3)
    monkeypatch.setattr(finding, "MOST_S", -1.0)

    long = found(Wrong(KAFKA_4_3), KAFKA_4_3)

    assert long.steps > short.steps
    assert "delivery_complete_count" in long.differences[0]


def test_a_mock_broker_agrees_at_level_answers() -> None:
    """A broker with its own log, without a persister or a state to show, is compared by what it answers."""
    assert compare(NaiveBroker(), PLAINLY, level=Level.ANSWERS, sequence=plain, seeds=range(80)) > 1000


def test_a_log_never_takes_back_that_a_record_is_committed() -> None:
    """Nothing is read of a transaction that is open, though the log start has moved into its first batch."""
    assert compare(NaiveBroker(), PLAINLY, level=Level.ANSWERS, sequence=plain, seeds=[345, 573, 1182]) > 100


@pytest.mark.parametrize("broker", BUGS, ids=lambda broker: broker.__name__)
def test_each_planted_bug_is_found_and_made_small(broker: type[NaiveBroker], tmp_path: Path) -> None:
    """Every bug of a mock broker is found, in a few requests, which `sharestate replay` shows to differ."""
    shown = found(broker(), PLAINLY, level=Level.ANSWERS, sequence=plain)

    assert shown.steps <= SHORT, shown
    file = tmp_path / "found.jsonl"
    file.write_text(shown.conversation)
    deviation = replay(file, PLAINLY, Level.ANSWERS).deviation
    assert deviation is not None
    assert tuple(map(str, deviation.differences)) == shown.differences


def test_an_error_of_the_peer_is_what_it_has_answered() -> None:
    """A peer that raises differs at that request, and the error is told."""

    def peer(request: Request) -> Response:
        return InProcessServer(KAFKA_4_3)(request)  # which has forgotten what is open

    assert "LookupError" in found(peer, KAFKA_4_3).differences[0]


def test_a_peer_without_a_state_differs_where_state_is_compared() -> None:
    """At level observable a null state is a difference like any other."""
    assert found(NaiveBroker(), PLAINLY, sequence=plain, seeds=[1]).differences[-1].startswith("state: expected null")


def test_a_known_divergence_is_no_difference() -> None:
    """A row that is set off and describes what differs ends the sequence; any other row does not."""
    row = Divergence(id="count", ops=["acknowledge"], differs_in=["state"])

    assert compare(Wrong(KAFKA_4_3), KAFKA_4_3, divergences=[row], seeds=range(20))
    for other in (
        Divergence(id="elsewhere", ops=["acquire"]),
        Divergence(id="never", ops=["acknowledge"], is_set_off_by=lambda _: False),
        Divergence(id="result", ops=["acknowledge"], differs_in=["result"]),
        Divergence(id="raises", ops=["acknowledge"], raises=["KeyError"]),
    ):
        assert found(Wrong(KAFKA_4_3), KAFKA_4_3, divergences=[other]).op == "acknowledge"


def test_a_command_is_a_peer() -> None:
    """A command that speaks the protocol line by line is compared like a callable; it keeps the last words of one."""
    serve = [sys.executable, "-m", "sharestate", "serve", "--profile", "kip-932"]

    assert compare(serve, KIP_932, seeds=range(2)) > 10
    dies = [sys.executable, "-c", "import sys; sys.exit('no')"]
    with CommandPeer(dies) as dead, pytest.raises(PeerDiedError, match="no"):
        compare(dead, KIP_932)


def test_sequences_by_record_have_no_larger_batches() -> None:
    """All log batches and persisted batches have one record, and there is no hole in what is fetched."""
    server = InProcessServer(KAFKA_4_3.healed)
    for seed in range(20):
        for exchange in observe(by_record(seed), server, invariants_of(KAFKA_4_3.healed)):
            offsets = [batch[0] for batch in exchange.request.get("batches", ()) if exchange.op == "acquire"]
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets)) if offsets else [])
            assert all(first == last for first, last, *_ in exchange.after["batches"])


def test_observing_a_peer_without_a_state_says_what_to_do() -> None:
    """The invariants look at the state: where there is none, the error names the comparison that needs none."""
    with pytest.raises(AssertionError, match=r"shows no state.*level answers"):
        observe(plain(1), NaiveBroker(), invariants_of(PLAINLY))


def test_events_are_compared_where_the_peer_has_some() -> None:
    """Null events are not compared, empty ones are; what is unsupported is not compared at all."""
    library = {"result": 1, "events": [["wake"]], "state": {}}

    assert not Level.ANSWERS.differences({"result": 1, "events": None}, library)
    assert not Level.ANSWERS.differences({"result": 1}, library)
    assert not Level.ANSWERS.differences({"result": {"unsupported": "x"}, "events": []}, library)
    assert Level.ANSWERS.differences({"result": 1, "events": []}, library)
    assert Level.ANSWERS.differences({"result": 2, "events": None}, library)
