"""Two ways to say the same thing lead to the same state."""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sharestate.testing.generator.mix import ORDINARY, STEPS, Mix
from sharestate.testing.protocol.exchange import Exchange, exchanges, records
from sharestate.testing.protocol.in_process import InProcessServer
from sharestate.testing.protocol.strategies import sequences
from sharestate.values.profiles import KAFKA_4_3, PROFILES, Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from sharestate.testing.generator.surroundings import Request, Response, Steps

LATE = Mix(trouble=80, steps={**STEPS, "complete": 3, "take_over": 0})
"""Sequences with many writes that are not answered yet."""

HEALED = KAFKA_4_3.healed

every_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)


class Prefix:
    """A conversation up to the last point at which something holds; from there copies of one peer go on."""

    def __init__(self, sequence: Steps[None], profile: Profile, wanted: Callable[[list[Exchange]], object]) -> None:
        """Have *sequence* answered, and cut off what comes after *wanted* held for the last time."""
        self.profile = profile
        self.conversation = list(exchanges(sequence, InProcessServer(profile)))
        while self.conversation and not (self.state["lifecycle"] == "ACTIVE" and wanted(self.conversation)):
            self.conversation.pop()
        assume(bool(self.conversation))

    @property
    def state(self) -> dict[str, Any]:
        """The state at that point."""
        return self.conversation[-1].after

    @cached_property
    def _peer(self) -> InProcessServer:
        """A peer at that point; the states on the way to it are known."""
        peer = InProcessServer(self.profile)
        for exchange in self.conversation:
            peer({**exchange.request, "quiet": True})
        return peer

    def then(self, *requests: Request) -> Response:
        """Send *requests* to a peer at that point and return the last response."""
        peer = deepcopy(self._peer, {id(self.profile): self.profile})
        return [peer(request) for request in requests][-1]


def visible(state: dict[str, Any]) -> dict[str, Any]:
    """Return *state* record by record: without what only says how batches are kept."""
    bounds = [batch[:2] for batch in state["batches"]]
    return {**state, "batches": bounds, "records": records(state)}


def outcome(state: dict[str, Any]) -> dict[str, Any]:
    """Return what matters to members: the records at or above the SPSO, and the counters."""
    start = state["start_offset"]
    in_flight = {offset: record.visible for offset, record in records(state).items() if offset >= start}
    return {"records": in_flight, "start": start, "completed": state["delivery_complete_count"]}


def neighbors(conversation: list[Exchange]) -> list[tuple[int, int]]:
    """Return the ranges of cached records at or above the SPSO, without gaps, that have two records at least."""
    state = conversation[-1].after
    ranges: list[tuple[int, int]] = []
    for offset in records(state):
        if ranges and ranges[-1][1] + 1 == offset:
            ranges[-1] = (ranges[-1][0], offset)
        elif offset >= state["start_offset"]:
            ranges.append((offset, offset))
    return [(first, last) for first, last in ranges if first < last]


@every_profile
@given(sequence=sequences(mix=ORDINARY), data=st.data())
def test_one_list_of_types_equals_one_entry_for_each_record(
    profile: Profile, sequence: Steps[None], data: st.DataObject
) -> None:
    """A list of types says the same as an entry for each offset: the same answer, writes and records."""
    prefix = Prefix(sequence, profile, neighbors)
    begin, end = data.draw(st.sampled_from(neighbors(prefix.conversation)))
    first = data.draw(st.integers(begin, end - 1))
    last = data.draw(st.integers(first + 1, end))
    size = last - first + 1
    types = data.draw(st.lists(st.sampled_from([1, 2, 3, 0, 4]), min_size=size, max_size=size))
    member = data.draw(st.sampled_from(["m1", "m2"]))
    one = {"op": "acknowledge", "member": member, "batches": [[first, last, types]]}
    many = {**one, "batches": [[offset, offset, [kind]] for offset, kind in enumerate(types, first)]}

    by_list, by_entries = prefix.then(one), prefix.then(many)

    assert by_list["result"] == by_entries["result"]
    assert by_list["events"] == by_entries["events"]
    assert visible(by_list["state"]) == visible(by_entries["state"])


def held_whole(conversation: list[Exchange]) -> list[Any]:
    """Return the batches of several records that somebody holds as a whole."""
    batches: list[Any] = conversation[-1].after["batches"]
    return [batch for batch in batches if len(batch) == 3 and batch[0] < batch[1] and batch[2][2]]


@given(sequence=sequences(mix=ORDINARY))
def test_splitting_a_batch_changes_no_record(sequence: Steps[None]) -> None:
    """A renewal of one record splits its batch; what becomes of all records in the end is the same without it."""
    prefix = Prefix(sequence, HEALED, held_whole)
    first, _, (_, _, member, _, _) = held_whole(prefix.conversation)[0]
    renewal = {"op": "acknowledge", "member": member, "batches": [[first, first, [4]]]}
    settle = ({"op": "default_answer", "answer": "ok"}, {"op": "advance", "ms": 100_000})

    kept, split = prefix.then(*settle)["state"], prefix.then(renewal, *settle)["state"]

    assert outcome(split) == outcome(kept)


def unanswered(conversation: list[Exchange]) -> list[int]:
    """Return the numbers of the writes that are held at the end of *conversation*."""
    held: dict[int, None] = {}
    for exchange in conversation:
        if exchange.op == "open":
            held.clear()
        if exchange.op == "complete" and exchange.request["write"] != "read":
            held.pop(exchange.request["write"])
        held |= {event[1]["write"]: None for event in exchange.response["events"] if event[-1] == "hold" != event[1]}
    return list(held)


@given(sequence=sequences(mix=LATE), data=st.data())
def test_the_order_of_outcomes_does_not_matter(sequence: Steps[None], data: st.DataObject) -> None:
    """Held writes, each answered in its own way, end in the same state in whatever order they are answered."""
    prefix = Prefix(sequence, HEALED, lambda conversation: len(unanswered(conversation)) > 1)
    answers = st.sampled_from(["ok", {"error": "NOT_COORDINATOR"}])
    order = [
        {"op": "complete", "write": number, "answer": data.draw(answers)} for number in unanswered(prefix.conversation)
    ]
    another = data.draw(st.permutations(order))
    settle = {"op": "default_answer", "answer": "ok"}

    assert outcome(prefix.then(settle, *order)["state"]) == outcome(prefix.then(settle, *another)["state"])


@every_profile
@given(size=st.integers(2, 12), data=st.data())
def test_a_split_keeps_the_write_in_flight(profile: Profile, size: int, data: st.DataObject) -> None:
    """The log start splits a batch whose release is being written: above it the outcome decides, below it nothing."""
    start = data.draw(st.integers(1, size - 1))
    succeeds = data.draw(st.booleans())
    peer = InProcessServer(profile)
    acquire = {"op": "acquire", "batch_size": 500, "max_records": 500, "batches": [[0, size - 1]]}
    peer({"op": "open", "lifecycle": "ACTIVE"})
    peer({**acquire, "member": "m1", "fetch_offset": 0})
    peer({"op": "acknowledge", "member": "m1", "batches": [[0, size - 1, [2]]], "answers": ["hold"]})
    peer({"op": "log_start", "offset": start})

    early = peer({**acquire, "member": "m2", "fetch_offset": start})
    answer = "ok" if succeeds else {"error": "NOT_COORDINATOR"}
    answered = peer({"op": "complete", "write": 0, "answer": answer})["state"]

    assert early["result"]["count"] == 0
    above = ("AVAILABLE", 1, "") if succeeds else ("ACQUIRED", 1, "m1")
    for offset, record in records(answered).items():
        assert record.visible == (above if offset >= start else ("ARCHIVED", 1, ""))
