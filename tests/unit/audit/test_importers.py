"""Events of other programs, read as operations: what they do not say stays open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import Choice
from click.testing import CliRunner

from sharestate.audit import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    CloseOperation,
    CrashOperation,
    DeliveredRange,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationsError,
    OperationsHeader,
    OperationsReader,
    ProduceOperation,
    SettingsOperation,
    View,
    audit,
)
from sharestate.audit.importers import (
    FORMATS,
    EventsReader,
    LibrdkafkaChaosReader,
    LogReader,
    VerifiableReader,
    open_log,
)
from sharestate.cli.audit import audit_command

ACCEPT = AcknowledgedAs.ACCEPT

CONSUMER = """\
[2026-11-24 02:00:00] WARN something that log4j prints
{"timestamp":100,"name":"startup_complete"}
{"timestamp":110,"name":"offset_reset_strategy_set","offsetResetStrategy":"earliest"}
{"timestamp":200,"name":"records_consumed","count":4,"partitions":[\
{"topic":"t","partition":1,"count":3,"offsets":[4,5,7]},{"topic":"t","partition":0,"count":1,"offsets":[9]}]}
{"timestamp":210,"name":"offsets_acknowledged","count":3,"partitions":[\
{"topic":"t","partition":1,"count":3,"offsets":[7,5,4]}],"success":true}
{"timestamp":250,"name":"record_data","key":null,"value":"a","topic":"t","partition":0,"offset":11}
{"timestamp":250,"name":"record_data","key":null,"value":"b","topic":"t","partition":0,"offset":10}
{"timestamp":251,"name":"records_consumed","count":2,"partitions":[\
{"topic":"t","partition":0,"count":2,"offsets":[10,11]}]}
{"timestamp":260,"name":"offsets_acknowledged","count":2,"partitions":[\
{"topic":"t","partition":0,"count":2,"offsets":[9,10]}],"success":false,"error":\
"The record state is invalid. The acknowledgement of delivery could not be completed."}
{"timestamp":270,"name":"offsets_acknowledged","count":1,"partitions":[\
{"topic":"t","partition":0,"count":1,"offsets":[11]}],"success":false,"error":"Cannot be sent"}
{"timestamp":280,"name":"records_consumed","count":3,"partitions":[\
{"topic":"t","partition":0,"count":1,"offsets":[12]},{"topic":"t","partition":2,"count":2,"offsets":[0,1]}]}
{"timestamp":290,"name":"records_consumed","count":1,"partitions":[\
{"topic":"t","partition":0,"count":1,"offsets":[13]}]}
{"timestamp":300,"name":"shutdown_complete"}
"""


def fetch(begin_ms: int, end_ms: int, *partitions: FetchedRanges) -> FetchOperation:
    """Return a fetch."""
    return FetchOperation(begin_ms=begin_ms, end_ms=end_ms, group="g", partitions=partitions)


def acknowledged(
    begin_ms: int, end_ms: int | None, partition: int, *ranges: tuple[int, int], code: int | None = 0
) -> AcknowledgeOperation:
    """Return the acceptance of ranges of a partition by the client library."""
    accepted = tuple(AcknowledgedRange(*each, ACCEPT) for each in ranges)
    partitions = (AcknowledgedRanges("t", partition, accepted, code),)
    return AcknowledgeOperation(begin_ms=begin_ms, end_ms=end_ms, group="g", partitions=partitions, implicit=True)


def read(kind: type[EventsReader], path: Path, text: str) -> list[LoggedOperation]:
    """Return the operations that a file of *text* has."""
    path.write_text(text)
    with kind(path, group="g") as reader:
        return [operation for _, operation in reader]


def test_a_verifiable_share_consumer(tmp_path: Path) -> None:
    """
    Each event has one time; what it tells of began after the last event that must have come before.

    The first poll has returned as many records as any: others may have been left for the second. The third has returned
    all there was; so what the fourth has was asked for after the third began, at 251.

    Records that were printed one by one are taken in that order, because those of the event are sorted. A text that is
    no error code's was no answer.
    """
    assert read(VerifiableReader, tmp_path / "c1.jsonl", CONSUMER) == [
        SettingsOperation(at_ms=110, group="g", auto_offset_reset="earliest"),
        fetch(
            100,
            200,
            FetchedRanges("t", 1, (DeliveredRange(4, 5), DeliveredRange(7, 7))),
            FetchedRanges("t", 0, (DeliveredRange(9, 9),)),
        ),
        acknowledged(200, 210, 1, (4, 5), (7, 7)),
        fetch(100, 251, FetchedRanges("t", 0, (DeliveredRange(11, 11), DeliveredRange(10, 10)))),
        acknowledged(200, 260, 0, (9, 10), code=121),
        acknowledged(251, None, 0, (11, 11), code=None),
        fetch(
            100, 280, FetchedRanges("t", 0, (DeliveredRange(12, 12),)), FetchedRanges("t", 2, (DeliveredRange(0, 1),))
        ),
        fetch(251, 290, FetchedRanges("t", 0, (DeliveredRange(13, 13),))),
        CloseOperation(begin_ms=290, end_ms=300, group="g"),
    ]


def test_the_header_of_a_verifiable_share_consumer(tmp_path: Path) -> None:
    """It is called after its file, sees what applications see, and is complete if it has ended in order."""
    (path := tmp_path / "c1.jsonl").write_text(CONSUMER)

    with VerifiableReader(path, group="g") as reader:
        assert (reader.position, reader.size) == (0, len(CONSUMER))
        assert reader.header == OperationsHeader(
            client="c1", view=View.APPLICATION, source="Kafka's verifiable clients", complete=True
        )
        assert [number for number, _ in reader] == [3, 4, 5, 8, 9, 10, 11, 12, 13]
    with VerifiableReader(path, group="g", client="c2") as reader:
        assert reader.header.client == "c2"


def test_a_share_consumer_that_was_killed(tmp_path: Path) -> None:
    """Events that end without the last one are not complete, and their consumer was gone some time after them."""
    path = tmp_path / "c1.jsonl"
    text = CONSUMER.partition('{"timestamp":250')[0]

    assert read(VerifiableReader, path, text)[-1] == CrashOperation(at_ms=210, group="g")
    with VerifiableReader(path, group="g") as reader:
        assert not reader.header.complete


PRODUCER = """\
{"timestamp":100,"name":"startup_complete"}
{"timestamp":120,"name":"producer_send_success","key":null,"value":"0.7","offset":5,"topic":"t","partition":1}
{"timestamp":121,"name":"producer_send_success","key":"1","value":null,"offset":-1,"topic":"t","partition":0}
{"timestamp":300,"name":"shutdown_complete"}
{"timestamp":301,"name":"tool_data","sent":2,"acked":2,"target_throughput":-1,"avg_throughput":1.5}
"""

FAILED = (
    '{"timestamp":122,"name":"producer_send_error","key":null,"value":"2","topic":"t",'
    '"exception":"class org.apache.kafka.common.errors.TimeoutException","message":"too late"}\n'
)


def test_a_verifiable_producer(tmp_path: Path) -> None:
    """A record was sent after the start; without acks it has no offset, and was not answered."""
    assert read(VerifiableReader, tmp_path / "p.jsonl", PRODUCER) == [
        ProduceOperation(begin_ms=100, end_ms=120, topic="t", partition=1, first_offset=5, last_offset=5, ids=("0.7",)),
        ProduceOperation(begin_ms=100, end_ms=None, topic="t", partition=0, count=1),
    ]


@pytest.mark.parametrize(("text", "is_complete"), [(PRODUCER, True), (PRODUCER + FAILED, False), (FAILED, False)])
def test_records_that_were_perhaps_written(tmp_path: Path, text: str, *, is_complete: bool) -> None:
    """An error of a send names no partition: the events do not say all that was perhaps written."""
    (path := tmp_path / "p.jsonl").write_text(text)

    with VerifiableReader(path, group="g") as reader:
        assert reader.header.complete is is_complete
        assert len(list(reader)) == text.count("producer_send_success")


CHAOS = """\
% verify: subscribed to 1 topic(s)
{"e":"consumed","t":"t","id":"AAAAAAAAAAAAAAAAAAAAAA","p":1,"o":7,"dc":2}
{"e":"consumed","t":"t","id":"4lQYxxGLTLSrLBjrgiGiUA","p":1,"o":7,"dc":1}
{"e":"consumed","t":"t","p":0,"o":7,"dc":0}
{"e":"acked","t":"t","id":"AAAAAAAAAAAAAAAAAAAAAA","p":1,"o":7,"err":0}
{"e":"acked","t":"t","id":"","p":1,"o":7,"err":121}
{"e":"acked","t":"t","p":0,"o":7,"err":-195}
"""


def test_the_events_of_librdkafkas_chaos_harness(tmp_path: Path) -> None:
    """
    They have no times, so anything may have been at any time, and clocks differ by nothing.

    A topic that was made again is another one. A negative error is librdkafka's own, and was no answer.
    """
    whole = 2**42

    def answered(end_ms: int | None, partition: int, code: int | None) -> AcknowledgeOperation:
        partitions = (AcknowledgedRanges("t", partition, (AcknowledgedRange(7, 7, ACCEPT),), code),)
        return AcknowledgeOperation(begin_ms=0, end_ms=end_ms, group="g", partitions=partitions)

    assert read(LibrdkafkaChaosReader, tmp_path / "chaos.jsonl.txt", CHAOS) == [
        fetch(0, whole, FetchedRanges("t", 1, (DeliveredRange(7, 7, 2),))),
        fetch(0, whole, FetchedRanges("t:4lQYxxGLTLSrLBjrgiGiUA", 1, (DeliveredRange(7, 7, 1),))),
        fetch(0, whole, FetchedRanges("t", 0, (DeliveredRange(7, 7),))),
        answered(whole, 1, 0),
        answered(whole, 1, 121),
        answered(None, 0, None),
    ]
    with LibrdkafkaChaosReader(tmp_path / "chaos.jsonl.txt", group="g") as reader:
        assert reader.header == OperationsHeader(
            client="chaos.jsonl",
            clock="none",
            view=View.APPLICATION,
            source="librdkafka's chaos harness",
            complete=False,
        )


@pytest.mark.parametrize(
    ("kind", "line", "field", "message"),
    [
        (VerifiableReader, '{"timestamp":1}', "name", "expected one of startup_complete"),
        (VerifiableReader, '{"name":"startup_complete"}', "timestamp", "missing"),
        (
            VerifiableReader,
            '{"timestamp":1,"name":"records_consumed","count":1,"partitions":[{"topic":"t","partition":-1}]}',
            "partitions[0].partition",
            "expected an integer within 0..2147483647, got -1",
        ),
        (VerifiableReader, '{"timestamp":1,', "", "not JSON"),
        (LibrdkafkaChaosReader, '{"e":"lost"}', "e", "expected one of consumed, acked"),
        (LibrdkafkaChaosReader, '{"e":"acked","t":"t","p":0,"o":1}', "err", "missing"),
    ],
)
def test_lines_that_are_no_events(
    tmp_path: Path, kind: type[EventsReader], line: str, field: str, message: str
) -> None:
    """They are named by file, line and field, and so is a file that is not there."""
    path = tmp_path / "events.jsonl"
    with pytest.raises(OperationsError, match=message) as refused:
        read(kind, path, f"before\n{line}\n")
    assert (refused.value.file, refused.value.line, refused.value.field) == (str(path), 2, field)

    with pytest.raises(OperationsError, match="No such file"):
        kind(tmp_path / "nothing", group="g")


HEADER = '{"sharestate_operations":1,"client":"c"}\n'


@pytest.mark.parametrize(
    ("text", "log_format", "kind"),
    [
        (CONSUMER, None, VerifiableReader),
        (PRODUCER, None, VerifiableReader),
        (CHAOS, None, LibrdkafkaChaosReader),
        (HEADER, None, OperationsReader),
        (CONSUMER, "librdkafka", LibrdkafkaChaosReader),
        (HEADER, "operations", OperationsReader),
    ],
)
def test_the_format_of_a_file(tmp_path: Path, text: str, log_format: str | None, kind: type[LogReader]) -> None:
    """It is found by the first line of JSON, unless it is said."""
    (path := tmp_path / "log.jsonl").write_text(text)

    with open_log(path, log_format=log_format) as reader:
        assert type(reader) is kind is FORMATS[log_format or next(name for name in FORMATS if FORMATS[name] is kind)]
        assert not isinstance(reader, EventsReader) or reader.group == "unnamed"
    with open_log(path, group="g", log_format=log_format) as reader:
        assert not isinstance(reader, EventsReader) or reader.group == "g"


@pytest.mark.parametrize("text", ["", "{", "a log\n" * 2000, '["e"]\n', '{"sharestate_operations":2,"client":"c"}\n'])
def test_a_file_of_no_format(tmp_path: Path, text: str) -> None:
    """It is refused as a file of operations is that does not begin with its header."""
    (path := tmp_path / "log.jsonl").write_text(text)

    with pytest.raises(OperationsError):
        open_log(path)


def test_judged_events(tmp_path: Path) -> None:
    """Events of all formats are judged, as those of the group that is named."""
    (tmp_path / "c1.jsonl").write_text(CONSUMER)
    (tmp_path / "p.jsonl").write_text(PRODUCER)

    judged = audit(sorted(tmp_path.iterdir()), group="g")

    assert [str(key) for key in judged.share_partitions] == ["g, t-0", "g, t-1", "g, t-2"]
    assert judged.clients == 2


def test_the_formats_of_the_command(tmp_path: Path) -> None:
    """The command offers all formats, and reads a file in the one that is named."""
    (option,) = (each for each in audit_command.params if each.name == "log_format")
    assert isinstance(option.type, Choice)
    assert list(option.type.choices) == list(FORMATS)

    (path := tmp_path / "c1.jsonl").write_text(CONSUMER)
    named = ["--group", "g", "--json", str(path)]
    partitions = json.loads(CliRunner().invoke(audit_command, named).output)["share_partitions"]
    assert partitions == [{"group": "g", "topic": "t", "partition": partition} for partition in range(3)]
    assert CliRunner().invoke(audit_command, ["--format", "librdkafka", *named]).exit_code == 2
