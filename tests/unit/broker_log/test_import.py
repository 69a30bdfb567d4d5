"""The import of a broker's request log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sharestate.broker_log import LogImport, RequestLog, RequestLogError, TopicLogs, read_properties
from sharestate.history import Event
from tests.support import broker_logs
from tests.support.broker_logs import RUN, Rewrite, lines, rewritten
from tests.support.logged_requests import BEGIN_US, GivenRequests


def imported(log: RequestLog, **options: Any) -> list[Event]:  # noqa: ANN401 - options of the import
    """Import a log with the segments of the run."""
    return list(LogImport(log, TopicLogs(RUN / "segments"), **options))


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """The history of the run."""
    return [*broker_logs.imported()]


class LenientRequests(GivenRequests):
    """Requests of which those that make no sense are passed over."""

    def __init__(self) -> None:
        """Start without any."""
        super().__init__()
        self.passed_over: list[RequestLogError] = []

    def broken(self, error: RequestLogError) -> None:
        """Note what makes no sense."""
        self.passed_over.append(error)


def of_kind(events: Iterable[Event], kind: str) -> list[Event]:
    """Return the events of one kind."""
    return [event for event in events if event.kind == kind]


def test_each_share_partition_has_its_events_in_order(events: list[Event]) -> None:
    """Events are numbered without holes, and begin with the settings."""
    seqs: Counter[tuple[str, str, int]] = Counter()
    for event in events:
        assert event.seq == seqs[event.key]
        assert event.kind == "config" or event.seq > 0
        seqs[event.key] += 1

    assert {(group_id, partition) for group_id, _, partition in seqs} == {
        ("seq-a", 0),
        ("seq-b", 0),
        ("seq-b", 1),
        ("seq-c", 0),
        ("seq-c", 1),
    }


def test_settings_come_from_properties_and_from_what_was_altered(events: list[Event]) -> None:
    """The first settings are the broker's with those of the group; then comes the release that reads the state."""
    first, release = [event for event in of_kind(events, "config") if event.group_id == "seq-c"][:2]

    assert first.request == {
        "auto_offset_reset": "latest",
        "delivery_count_limit": 2,
        "dlq_topic": "",
        "isolation": "read_uncommitted",
        "max_record_locks": 200,
        "record_lock_duration_ms": 1500,
        "renew_acknowledge_enable": True,
        "assumed": ("dlq_topic", "isolation", "max_record_locks", "renew_acknowledge_enable"),
    }
    assert release.request == {"profile": "kafka-4.3"}


def test_a_fetch_names_only_changes_and_its_session_has_the_rest(events: list[Event]) -> None:
    """A fetch of a session with two partitions is an event of each, also if the request names neither."""
    of_two = [event for event in of_kind(events, "fetch") if (event.request or {})["partitions"] == 2]
    requests = Counter((event.connection, event.request_no) for event in of_two)

    assert len(requests) > 50
    assert set(requests.values()) == {2}
    assert {(event.request or {})["position"] for event in of_two} == {0, 1}


def test_a_fetch_says_what_its_other_partitions_have_acquired(events: list[Event]) -> None:
    """Those before it in the order of its session have used up what it may acquire; of the others it is only noted."""
    fetches: dict[tuple[str | None, int | None], list[Event]] = {}
    for event in of_kind(events, "fetch"):
        fetches.setdefault((event.connection, event.request_no), []).append(event)
    of_both = []
    for fetch in fetches.values():
        counts = [
            sum(last - first + 1 for first, last, _ in (event.response or {})["acquired"])
            for event in sorted(fetch, key=lambda event: int((event.request or {})["position"]))
        ]
        for event in fetch:
            request = event.request or {}
            place = request["position"]
            assert request["acquired_by_others"] == sum(counts[:place])
            assert list(request.get("others", ())) == [count for count in counts[:place] + counts[place + 1 :] if count]
        of_both += [counts] if min(counts) > 0 and len(counts) > 1 else []

    assert len(of_both) > 5


def test_a_request_that_makes_no_sense_does_not_hide_a_lost_connection() -> None:
    """The line after which a connection is seen to be silent is passed over; the member has lost it all the same."""
    requests = LenientRequests()
    requests.read(by=1)
    requests.fetch((0, 9, 1), at_ms=30)
    requests.add("SHARE_FETCH", {"groupId": "g"}, {}, at_ms=20_000)

    (lost,) = of_kind(requests.imported(), "disconnect")

    assert [error.line for error in requests.passed_over] == [3]
    assert (lost.member_id, lost.at_us) == ("m", BEGIN_US + 30_600)


@pytest.mark.parametrize("at_ms", [60, 20_000], ids=["at once", "after a silence"])
def test_a_member_that_opens_another_connection_has_lost_the_one_before_once(at_ms: int) -> None:
    """Whether that was silent for long or not; the last one is lost when the log ends."""
    requests = GivenRequests()
    requests.read(by=1)
    requests.fetch((0, 9, 1), at_ms=30)
    requests.port += 1
    requests.fetch((10, 19, 1), at_ms=at_ms)
    requests.fetch((20, 29, 1), at_ms=at_ms + 10, epoch=1)

    lost = of_kind(requests.imported(), "disconnect")

    assert [event.at_us for event in lost] == [BEGIN_US + 30_600, BEGIN_US + at_ms * 1000 + 10_600]


def test_a_connection_that_falls_silent_is_inferred_to_be_lost(events: list[Event]) -> None:
    """The log has no word of it; the event stands after the last request of the connection, and is marked."""
    lost = of_kind(events, "disconnect")

    assert lost
    assert all(event.inferred for event in lost)
    for event in lost:
        requests = [each for each in events if each.member_id == event.member_id and each.kind != "disconnect"]
        assert all((each.done_us or 0) <= (event.at_us or 0) for each in requests)


def test_events_name_their_lines(events: list[Event]) -> None:
    """What was observed has the file and the line of its request; what was deduced has none."""
    logged = lines()
    for event in events:
        assert (event.source is None) == (event.connection is None)
        if event.source_line is not None:
            assert event.source_file == str(RUN / "request.log.gz")
            line = logged[event.source_line - 1]
            assert f'"correlationId":{event.request_no},' in line
            assert f'"connection":"{event.connection}"' in line


def test_batches_have_the_sizes_of_their_segments(events: list[Event]) -> None:
    """What was appended is read from the segments: without a hole, and as large as the files."""
    batches = [
        batch
        for event in of_kind(events, "log")
        if event.key[0] == "seq-a"
        for batch in (event.request or {})["batches"]
    ]

    assert batches[0].first_offset == 0
    assert all(one.last_offset + 1 == next_.first_offset for one, next_ in pairwise(batches))
    assert sum(batch.bytes for batch in batches) == (RUN / "segments/s1-0/00000000000000000000.log").stat().st_size


def test_long_logs_are_several_events(events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before may be more batches than a line of a history has room for."""
    monkeypatch.setattr("sharestate.broker_log.appends._MOST_BATCHES", 3)

    short = imported(RequestLog([RUN / "request.log.gz"]), broker=read_properties(RUN / "server.properties"))

    def batches(made: list[Event]) -> list[tuple[str, Any]]:
        return [(event.group_id, each) for event in of_kind(made, "log") for each in (event.request or {})["batches"]]

    assert max(len((event.request or {})["batches"]) for event in of_kind(events, "log")) > 3
    assert max(len((event.request or {})["batches"]) for event in of_kind(short, "log")) == 3
    assert batches(short) == batches(events)


def test_only_one_group_is_imported_if_asked(events: list[Event]) -> None:
    """Events of other groups are left out; those of this group are the same."""
    log = RequestLog([RUN / "request.log.gz"])
    broker = read_properties(RUN / "server.properties")

    assert imported(log, broker=broker, group_id="seq-b") == [event for event in events if event.group_id == "seq-b"]


def test_names_are_redacted() -> None:
    """Groups, members and addresses are replaced one for one, so that the history stays as it is."""
    log = [RUN / "request.log.gz"]
    plain, redacted = (
        imported(RequestLog(log), group_id="seq-b"),
        imported(RequestLog(log), group_id="seq-b", redaction_key=b"secret"),
    )
    names: dict[str | None, str | None] = {}
    for one, other in zip(plain, redacted, strict=True):
        assert (one[1:8], one.request_no, one.source_line) == (other[1:8], other.request_no, other.source_line)
        assert (one.kind, one.request, one.response) == (other.kind, other.request, other.response)
        for column in ("group_id", "member_id", "connection", "source_file"):
            assert names.setdefault(getattr(one, column), getattr(other, column)) == getattr(other, column)
    assert len(set(names.values())) == len(names)
    assert not set(names) & set(names.values()) - {None}


def drop_field(request: dict[str, Any]) -> bool:
    """Take a field away without which a ShareFetch makes no sense."""
    return request["requestHeader"]["requestApiKeyName"] == "SHARE_FETCH" and bool(request["request"].pop("maxBytes"))


def test_a_request_that_makes_no_sense_is_named(rewrite: Callable[[Rewrite], Path]) -> None:
    """The error has file and line; the line can be passed over."""
    path = rewrite(drop_field)
    with pytest.raises(RequestLogError, match="maxBytes: missing") as caught:
        imported(RequestLog([path]))
    assert caught.value.file == str(path)
    assert caught.value.line is not None

    broken: list[RequestLogError] = []
    assert imported(RequestLog([path], on_broken=broken.append))
    assert [error.line for error in broken] == [caught.value.line]


@pytest.mark.parametrize("field", ["groupId", "memberId"])
def test_a_request_of_nobody_is_refused_by_the_broker(field: str, rewrite: Callable[[Rewrite], Path]) -> None:
    """Brokers log it with INVALID_REQUEST, and it says nothing; one that was not refused makes no sense."""

    def of_nobody(request: dict[str, Any]) -> bool:
        is_fetch = bool(request["requestHeader"]["requestApiKeyName"] == "SHARE_FETCH")
        if is_fetch:
            request["request"][field] = None
            request["response"] |= {"errorCode": 42, "responses": []} if refused else {}
        return is_fetch

    refused = True
    assert imported(RequestLog([rewrite(of_nobody)]))
    refused = False
    with pytest.raises(RequestLogError, match=f"request.{field}: expected a string, got null"):
        imported(RequestLog([rewrite(of_nobody)]))


@pytest.fixture
def rewrite(tmp_path: Path) -> Callable[[Rewrite], Path]:
    """A function that rewrites the first line of the run that it can."""
    return lambda change: rewritten(tmp_path / "request.log", change)[0]


def test_properties_that_make_no_sense_are_named(tmp_path: Path) -> None:
    """The error has file, line and property."""
    path = tmp_path / "server.properties"
    path.write_text("node.id=1\ngroup.share.partition.max.record.locks=many\n")

    with pytest.raises(RequestLogError) as caught:
        read_properties(path)

    name = "group.share.partition.max.record.locks"
    said = f"Invalid value many for configuration {name}: Not a number of type INT"
    assert str(caught.value) == f"{path}:2: {name}: {said}"
