"""Explanations of what a broker has logged, beside what it has answered."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate import AcknowledgementBatch, AcquiredRecords, Cause, StateBatch
from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.cli.commands import sharestate
from sharestate.explain import Explanation, Overview, PartitionLife, Reason, explain_record
from sharestate.explain.sentences import REASONS
from sharestate.explain.words import sentence
from sharestate.history import AppendedBatch, Event, Header, Order, Replay, create_history
from tests.support.broker_logs import RUN, imported_of, ordered
from tests.support.hand_made_events import HandMadeLife


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """The events of one group of the run."""
    return imported_of("seq-b")


def by_partition(events: list[Event]) -> dict[tuple[str, str, int], list[Event]]:
    """Return the events of each share partition."""
    found = defaultdict(list)
    for event in events:
        found[event.key].append(event)
    return dict(found)


def test_deliveries_are_those_that_the_broker_has_answered(events: list[Event]) -> None:
    """Each acquisition of a record's life, with its member and delivery count, is in an answer of the broker."""
    checked = 0
    for key, own in by_partition(events).items():
        answered: dict[int, list[tuple[str | None, int]]] = defaultdict(list)
        for event in own:
            for first, last, count in (event.response or {}).get("acquired", ()) if event.kind == "fetch" else ():
                for offset in range(first, last + 1):
                    answered[offset].append((event.member_id, count))
        in_order = ordered(own)
        most = sorted(answered, key=lambda offset: -len(answered[offset]))[:2]
        for offset in most:
            explanation = explain_record(in_order, key, offset)
            lived = [
                (str(moment.facts["member_id"]), moment.facts["delivery_count"])
                for moment in explanation.moments
                if moment.what is Cause.ACQUIRED
            ]

            assert explanation.differences == 0
            assert sorted(lived) == sorted(answered[offset])
            assert len(lived) > 1
            checked += len(lived)

    assert checked > 10


def test_each_moment_names_its_line(events: list[Event]) -> None:
    """The words end with the line of the request log, which is in the JSON form as well."""
    key, own = next(iter(by_partition(events).items()))
    explanation = explain_record(ordered(own), key, 0)

    logged = [moment for moment in explanation.moments if moment.what is Cause.ACQUIRED]
    assert logged
    assert {moment.source for moment in logged} <= {event.source for event in own if event.kind == "fetch"}
    for moment in logged:
        assert moment.to_json()["source"] == moment.source
        assert any(line.endswith(f" ({moment.source})") for line in explanation.lines())


def test_an_overview_ends_where_the_log_ends(events: list[Event]) -> None:
    """The last SPSO is not below the one of the last write that the broker has sent."""
    for own in by_partition(events).values():
        in_order = ordered(own)
        overview = overview_of(in_order)
        written = max((event.request or {})["start_offset"] for event in own if event.kind == "write")

        assert (overview.differences, overview.events) == (0, len(in_order))
        assert overview.start_offset is not None
        assert written <= overview.start_offset


def test_the_commands_take_a_log_in_causal_order(tmp_path: Path, events: list[Event]) -> None:
    """One in order of arrival is refused with the command that orders it; what that writes replays as it was."""
    arrival, causal = tmp_path / "arrival.jsonl", tmp_path / "causal.jsonl"
    with create_history(arrival, Header(order=Order.ARRIVAL)) as file:
        file.write(events)

    for arguments in (
        ["log", "explain", arrival],
        ["log", "report", arrival, "-o", tmp_path / "page.html"],
        ["history", "explain", arrival],
        ["history", "replay", arrival, tmp_path / "rows.jsonl"],
    ):
        refused = run(*arguments)
        assert (refused.exit_code, f"sharestate log verify {arrival} -o ORDERED" in refused.output) == (2, True)
    assert run("log", "verify", arrival, "-o", causal).exit_code == 0
    overviews = [json.loads(line) for line in run("log", "explain", "--json", causal).stdout.splitlines()]
    replayed = run("history", "replay", "--json", causal, tmp_path / "rows.jsonl")

    assert [overview["differences"] for overview in overviews] == [0, 0, 0]
    assert json.loads(replayed.stdout)["rows"].get("difference", 0) == replayed.exit_code == 0
    assert run("log", "verify", causal).exit_code == 2


def run(*arguments: object) -> Result:
    """Run the command line."""
    return CliRunner().invoke(sharestate, [*map(str, arguments)])


def overview_of(in_order: list[Event]) -> Overview:
    """Return the share partition at the end of its events."""
    life = PartitionLife(in_order[0].key)
    for event in in_order:
        life.apply(event)
    return life.overview()


def test_a_bug_that_has_shown_in_a_log_is_named() -> None:
    """Three fetches of the run were answered with an error, as an aborted log batch made Kafka throw."""
    run = RUN.parent / "k431-del"
    log = LogImport(
        RequestLog([run / "request.log.gz"]),
        TopicLogs(run / "segments"),
        broker=read_properties(run / "server.properties"),
        group_id="del-b",
    )
    events = list(log)
    failed = [event for event in events if "unknown_server_error" in (event.response or {}).values()]
    own = by_partition(events)[failed[0].key]
    (finding,) = overview_of(ordered(own)).bug_findings

    assert (finding.reason, finding.facts["times"]) == (Reason.ACQUIRE_THREW, len(failed))
    assert finding.text.startswith("A bug of Kafka has shown (B8): 3 times, first at 2")
    assert "{" not in sentence(REASONS[Reason.ADVANCE_THREW].sentence, finding.facts, 0)


def test_the_log_grows_in_its_order_whatever_its_times_say(events: list[Event]) -> None:
    """A batch whose time is before that of the batch ahead of it comes after it all the same."""
    own = next(iter(by_partition(events).values()))
    appended = [event for event in own if event.kind == "log"]
    early_us = (appended[0].at_us or 0) - 1
    last = appended[-1]._replace(at_us=early_us, done_us=early_us, connection="another")
    in_order = ordered(last if event.seq == last.seq else event for event in own)

    batches = [(event.request or {})["batches"] for event in in_order if event.kind == "log"]

    assert batches == [(event.request or {})["batches"] for event in appended]


KEY = ("orders", "dGhlIHRvcGljJ3MgaWQhIQ", 0)
NOON_S = 1_800_000_000


def logged(seq: int, at_s: float, done_s: float, kind: str, **fields: Any) -> Event:  # noqa: ANN401 - columns
    """Return an event of a request that came at a time, and was answered at another one; seconds after noon."""
    at_us, done_us = (int((NOON_S + each) * 10**6) for each in (at_s, done_s))
    connection = "member" if fields.get("member_id") else "leader"
    event = Event.of(KEY, seq, kind, at_us=at_us, **fields)
    return event._replace(taken_us=at_us, handled_us=at_us, done_us=done_us, connection=connection, request_no=seq)


def queued() -> list[Event]:
    """Return a log that begins with a state, of which a member rejects a record that it has waited for."""
    read = {"state_epoch": 0, "start_offset": 0, "state_batches": (StateBatch(0, 0, 0, 1),)}
    settings = {"profile": "kafka-4.4", "dlq_topic": "orders-dlq", "delivery_count_limit": 5}
    fetch = {"max_records": 1, "max_wait_ms": 1000, "max_bytes": 1000, "mode": "record_limit", "batch_size": 1}
    reject = {"batches": (AcknowledgementBatch(1, 1, (3,)),)}
    write = {"start_offset": 0, "delivery_complete_count": 0, "state_epoch": 0, "leader_epoch": 0}
    archiving, archived = StateBatch(1, 1, 3, 1), StateBatch(1, 1, 4, 1)
    member = {"member_id": "m1"}
    return [
        logged(0, 0, 0, "config", request=settings),
        logged(1, 0, 0, "log", request={"batches": (AppendedBatch(0, 0, bytes=80),)}),
        logged(2, 1, 1.001, "initialize", request={"leader_epoch": 0}, response=read),
        logged(3, 2, 2.001, "fetch", request=fetch, response={"acquired": (AcquiredRecords(0, 0, 2),)}, **member),
        logged(4, 3, 3.9, "fetch", request=fetch, response={"acquired": (AcquiredRecords(1, 1, 1),)}, **member),
        logged(5, 3.9, 3.9, "log", request={"batches": (AppendedBatch(1, 1, bytes=80),)}),
        logged(6, 4, 4.005, "acknowledge", request=reject, response={}, **member),
        logged(7, 4.001, 4.002, "write", request=write | {"state_batches": (archiving,)}, response={}),
        logged(8, 4.01, 4.011, "write", request=write | {"state_batches": (archived,)}, response={}),
    ]


def explained(events: list[Event], offset: int) -> Explanation:
    """Return the life of a record of a broker's log."""
    return explain_record(ordered(events), KEY, offset)


def test_each_moment_has_the_time_of_its_event() -> None:
    """A read, an acquisition that has waited and the answer to a write come when these happen, not when they began."""
    lives = [explained(queued(), offset).moments for offset in (0, 1)]
    first, second = (
        [(moment.what.value, (moment.at_us or 0) // 1000 - NOON_S * 1000) for moment in moments] for moments in lives
    )

    assert first == [("appended", 0), ("read", 1001), ("acquired", 2000)]  # the lock counts from when it was taken
    assert second[:4] == [("appended", 3900), ("acquired", 3900), ("rejected", 4000), ("confirmed", 4002)]
    assert lives[1][1].facts["locked_until_us"] == (NOON_S + 33.9) * 10**6  # it was not there before 3.9


def test_a_dead_letter_of_a_log_says_where_it_went() -> None:
    """The queue has answered when the broker has written that the record is archived."""
    life = explained(queued(), 1)

    assert [moment.text for moment in life.moments[-3:]] == [
        "It was handed to the dead-letter queue in the topic orders-dlq (client_reject).",
        "The dead-letter queue has answered: ARCHIVED, to be persisted by write 1.",
        "Write 1 succeeded: ARCHIVED is persisted.",
    ]
    assert (life.differences, [finding.reason for finding in life.standing.findings]) == (0, [Reason.ARCHIVED])


def test_a_release_at_the_limit_is_no_expired_lock() -> None:
    """A member that gives back records of which it had the last delivery has not lost them."""
    events = queued()
    released = {"batches": (AcknowledgementBatch(1, 1, (2,)),)}
    limit = {"profile": "kafka-4.3", "delivery_count_limit": 1}
    write = dict(events[7].request or {}) | {"state_batches": (StateBatch(1, 1, 4, 1),)}
    own = [
        events[0]._replace(request=limit),
        *events[1:6],
        events[6]._replace(request=released),
        events[7]._replace(request=write),
    ]
    own[2].response["state_batches"] = ()  # type: ignore[index]  # the record before is delivered for the first time
    own[3].response["acquired"] = (AcquiredRecords(0, 0, 1),)  # type: ignore[index]
    overview = overview_of(ordered(own))

    assert (overview.differences, overview.expiries) == (0, ())
    assert explained(own, 1).moments[-2].facts["lost_by"] == "m1 released it"


@pytest.fixture(scope="module")
def deleted() -> list[Event]:
    """The events of a share partition that reads committed records only, and whose log's start was moved."""
    run = RUN.parent / "k431-del"
    topics, broker = TopicLogs(run / "segments"), read_properties(run / "server.properties")
    log = LogImport(RequestLog([run / "request.log.gz"]), topics, broker=broker, group_id="del-b")
    return by_partition(list(log))["del-b", "LVwfhBDcT1S69ZWeei0LGw", 0]


def test_no_answer_has_what_was_filtered_out(deleted: list[Event]) -> None:
    """A record of an aborted transaction has one sentence instead of an acquisition, and is in no answer of the log."""
    own = ordered(deleted)
    life = PartitionLife(own[0].key, listed=1000)
    for event in own:
        life.apply(event)
    lists = life.overview().happened.lists()["archived"]
    offsets = [each.first_offset for each in lists if each.lived.outcome is Cause.ABORTED and not each.lived.deliveries]
    answered = [
        (first, last)
        for event in own
        if event.kind == "fetch"
        for first, last, _ in (event.response or {}).get("acquired", ())
    ]

    assert len(offsets) > 3
    for offset in offsets[:3]:
        explanation = explain_record(own, own[0].key, offset)
        texts = [moment.text for moment in explanation.moments]

        assert not any(first <= offset <= last for first, last in answered)
        assert texts[1] == "It was read with its batch, and filtered out as aborted: never delivered (ARCHIVED)."
        assert not any(" acquired it" in text for text in texts)
        assert "its transaction was aborted; never delivered" in explanation.verdict


def test_the_write_of_an_expired_lock_is_said_to_have_succeeded(events: list[Event]) -> None:
    """As that of other changes: the line of the log is that in which the write was answered."""
    own = next(own for (_, _, partition), own in by_partition(events).items() if partition == 1)
    moments = explain_record(ordered(own), own[0].key, 60).moments
    expired = next(place for place, moment in enumerate(moments) if moment.what is Cause.LOCK_EXPIRED)
    (written,) = (
        event
        for event in own
        if event.kind == "write" and event.source == moments[expired + 1].source
        if any(each.first_offset <= 60 <= each.last_offset for each in (event.request or {})["state_batches"])
    )

    assert moments[expired].text.endswith("expired: AVAILABLE, to be persisted by write 8.")
    assert moments[expired + 1].text == "Write 8 succeeded: AVAILABLE is persisted."
    assert written.response == {}


def test_what_was_answered_is_told_where_nothing_is_checked(events: list[Event]) -> None:
    """Without segments a life has the answers to fetches and acknowledgements, marked as not checked."""
    own = [event for event in next(iter(by_partition(events).values())) if event.kind != "log"]
    seqs = {event.seq: seq for seq, event in enumerate(own)}
    numbered = [event._replace(seq=seqs[event.seq]) for event in own]
    life = explain_record(ordered(numbered), own[0].key, 60)

    assert [moment.text for moment in life.moments if "was not checked" in moment.text] == [
        "share-rpc (UQej-hQJ...) was answered with it: delivery 1; that was not checked.",
        "share-rpc (UQej-hQJ...) acknowledged it (ACCEPT), and was not refused; that was not checked.",
    ]
    assert life.standing.findings[0].text.startswith("The state is not known from ")


def test_members_are_named_with_their_addresses() -> None:
    """Those that an explanation names, from where they have sent something last: the client's end of the connection."""
    ends = ["10.0.0.1:9092-10.0.0.7:50994-0-3", "10.0.0.1:9092-[::1]:50996-1-12#2"]
    events = [
        event._replace(connection=ends[event.seq > 5]) if event.member_id else event
        for event in queued()  # the last request of the member is the acknowledgement
    ]

    assert explained(events, 1).to_json()["clients"] == {"m1": "[::1]:50996"}
    assert explained(events, 1).lines()[-2:] == ["Members:", "  m1: [::1]:50996"]
    assert "clients" not in explained(queued(), 1).to_json()


def test_members_are_named_by_what_their_clients_call_themselves(events: list[Event]) -> None:
    """A sentence has the client id and the beginning of the member id; the whole of it, and the address, come last."""
    own = next(own for (_, _, partition), own in by_partition(events).items() if partition == 1)
    explanation = explain_record(ordered(own), own[0].key, 60)

    assert next(moment for moment in explanation.moments if moment.what is Cause.RELEASED).text == (
        "share-rpc (o8sDN0Xg...) released it: AVAILABLE, to be persisted by write 3."
    )
    assert explanation.lines()[-3:] == [
        "Members:",
        "  share-rpc: o8sDN0XgZ7DcS_oTutOQ6Q, 127.0.0.1:56572",
        "  share-rpc: 6ao71Xx3Va5cAMAoHExbqQ, 127.0.0.1:56662",
    ]
    assert explanation.to_json()["client_ids"]["o8sDN0XgZ7DcS_oTutOQ6Q"] == "share-rpc"
    assert explanation.lines()[0].endswith(
        "never: ARCHIVED at the limit after 5 deliveries, 3 released by share-rpc (o8sDN0Xg...), "
        "2 lost to an expired lock of share-rpc (o8sDN0Xg...)."
    )


def test_where_nothing_fits_the_explanation_says_since_when() -> None:
    """A broker that refuses what it should accept: the state is lost from there on, but not what was written."""
    events = [
        event._replace(response={"error": "invalid_record_state"}) if event.kind == "acknowledge" else event
        for event in queued()
    ]
    overview = overview_of(ordered(events))

    assert [finding.reason for finding in overview.start_findings] == [Reason.STATE_LOST]
    assert "The state is not known from 2027-01-15T08:00:04." in overview.start_findings[0].text
    assert "The last write of the state says SPSO 0, delivery complete count 0." in overview.lines()
    assert "The log ends at 2." in overview.lines()
    assert explained(events, 1).standing.findings == overview.start_findings


def test_a_broker_that_starts_again_reads_the_state_once() -> None:
    """That it has stopped is in no line: it is inferred, and the replay goes on with the read of the state."""
    life = HandMadeLife()
    life.appends(0, 0, 9)
    life.reads(10, 100, 0)
    life.fetches(20, 1, "m1", 1, (0, 9, 1))
    life.starts_again()
    life.reads(8_010, 1, 0)
    life.fetches(8_020, 1, "m2", 1, (0, 9, 1))
    in_order = ordered(life.events)
    replay = Replay(in_order[0].key)
    rows = replay.apply_all(in_order)

    kinds = ["verdict", "config", "log", "initialize", "fetch", "stop", "initialize", "fetch"]
    assert [event.kind for event in in_order] == kinds
    assert [row.values[2] for row in rows if row.kind == "acquisition"] == ["m1", "m2"]
    assert (replay.lost, [row for row in rows if row.kind == "difference"]) == (None, [])


def test_a_request_that_is_there_twice_counts_once() -> None:
    """A broker has done it once, however often its log has the line."""
    events = queued()
    twice = [*events[:7], events[6]._replace(seq=7), *(event._replace(seq=event.seq + 1) for event in events[7:])]

    once, again = explained(events, 1), explained(twice, 1)

    assert (again.differences, again.events) == (0, once.events)
    assert [moment.text for moment in again.moments] == [moment.text for moment in once.moments]
