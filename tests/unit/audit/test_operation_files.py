"""Files of operations: what is written is read, and what is wrong is named by file, line and field."""

import gzip
from pathlib import Path

import pytest

from sharestate.audit import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    AlterOffsetsOperation,
    CloseOperation,
    CrashOperation,
    DeleteRecordsOperation,
    DeliveredRange,
    EndTransactionOperation,
    FaultOperation,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationsError,
    OperationsFile,
    OperationsHeader,
    OperationsReader,
    ProduceOperation,
    SettingsOperation,
    View,
)
from sharestate.json_lines import write_json

HEADER = '{"sharestate_operations":1,"client":"c1"}\n'

LINES: dict[str, LoggedOperation] = {
    '{"op":"settings","at_ms":1,"group":"g","delivery_count_limit":5}': SettingsOperation(
        at_ms=1, group="g", delivery_count_limit=5
    ),
    '{"op":"produce","begin_ms":1.25,"end_ms":2,"topic":"t","partition":0,"first_offset":0,"last_offset":9}': (
        ProduceOperation(begin_ms=1.25, end_ms=2, topic="t", partition=0, first_offset=0, last_offset=9)
    ),
    '{"op":"produce","begin_ms":1,"end_ms":null,"topic":"t","partition":0,"count":3,"ids":["a"]}': ProduceOperation(
        begin_ms=1, end_ms=None, topic="t", partition=0, count=3, ids=("a",)
    ),
    '{"op":"end_transaction","begin_ms":1,"end_ms":2,"transaction":"x","committed":true}': EndTransactionOperation(
        begin_ms=1, end_ms=2, transaction="x", committed=True
    ),
    '{"op":"fetch","begin_ms":1,"end_ms":2,"group":"g","partitions":[["t",0,[[0,4,1],[5,9,null]],0]]}': FetchOperation(
        begin_ms=1,
        end_ms=2,
        group="g",
        partitions=(FetchedRanges("t", 0, (DeliveredRange(0, 4, 1), DeliveredRange(5, 9))),),
    ),
    '{"op":"acknowledge","begin_ms":1,"end_ms":2,"group":"g","partitions":[["t",0,[[0,4,"accept"]],null]]}': (
        AcknowledgeOperation(
            begin_ms=1,
            end_ms=2,
            group="g",
            partitions=(AcknowledgedRanges("t", 0, (AcknowledgedRange(0, 4, AcknowledgedAs.ACCEPT),), None),),
        )
    ),
    '{"op":"close","begin_ms":1,"end_ms":2,"client":"c2","group":"g"}': CloseOperation(
        begin_ms=1, end_ms=2, client="c2", group="g"
    ),
    '{"op":"crash","at_ms":1,"group":"g"}': CrashOperation(at_ms=1, group="g"),
    '{"op":"delete_records","begin_ms":1,"end_ms":2,"topic":"t","partition":0,"before_offset":5}': (
        DeleteRecordsOperation(begin_ms=1, end_ms=2, topic="t", partition=0, before_offset=5)
    ),
    '{"op":"alter_offsets","begin_ms":1,"end_ms":2,"group":"g","topic":"t","partition":0,"start_offset":0}': (
        AlterOffsetsOperation(begin_ms=1, end_ms=2, group="g", topic="t", partition=0, start_offset=0)
    ),
    '{"op":"fault","begin_ms":1,"end_ms":null,"what":"failover"}': FaultOperation(
        begin_ms=1, end_ms=None, what="failover"
    ),
}


@pytest.mark.parametrize(("line", "operation"), LINES.items(), ids=range(len(LINES)))
def test_a_line_is_an_operation(tmp_path: Path, line: str, operation: LoggedOperation) -> None:
    """Each operation is read from its line, and written as the same line."""
    path = tmp_path / "a.jsonl"
    path.write_text(f"{HEADER}\n{line}\n")

    assert [*OperationsReader(path)] == [(3, operation)]
    assert write_json(operation.to_json()) == line


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    """With another header at the end, which the recorder needs, and compressed too."""
    path = tmp_path / name
    last = OperationsHeader(client="c1", clock="h", view=View.APPLICATION, source="s", complete=False)
    with OperationsFile(path, OperationsHeader(client="c1")) as file:
        file.write(LINES.values())
    file.replace_header(last)

    with OperationsReader(path) as reader:
        assert (reader.header, reader.position > 0) == (last, True)
        assert [operation for _, operation in reader] == [*LINES.values()]
        assert reader.position == reader.size


def test_codes_have_names(tmp_path: Path) -> None:
    """An error code may be Kafka's number or its name."""
    path = tmp_path / "a.jsonl"
    line = '{"op":"acknowledge","begin_ms":1,"end_ms":2,"group":"g","partitions":[["t",0,[],"INVALID_RECORD_STATE"]]}'
    path.write_text(f"{HEADER}{line}\n")

    ((_, operation),) = OperationsReader(path)

    assert isinstance(operation, AcknowledgeOperation)
    assert operation.partitions[0].code == 121


TIMES = '"begin_ms":1,"end_ms":2'
LOG = '"topic":"t","partition":0'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", ": expected an object, got []"),
        ('{"op":"poll"}', "op: expected one of settings, produce, "),
        ('{"op":"crash","at_ms":1}', "group: missing"),
        ('{"op":"crash","at_ms":1e300,"group":"g"}', "at_ms: expected a number of milliseconds"),
        ('{"op":"crash","at_ms":1,"group":"g","why":1}', "why: unknown field"),
        ('{"op":"fault","begin_ms":2,"end_ms":1,"what":"pause"}', "end_ms: before begin_ms"),
        (f'{{"op":"produce",{TIMES},{LOG}}}', "first_offset: missing, though the answer had no error"),
        (f'{{"op":"produce",{TIMES},{LOG},"last_offset":1}}', "first_offset: one offset without the other"),
        (f'{{"op":"produce",{TIMES},{LOG},"first_offset":1}}', "last_offset: one offset without the other"),
        (f'{{"op":"produce",{TIMES},{LOG},"first_offset":1,"last_offset":0}}', "last_offset: before first_offset"),
        (f'{{"op":"produce",{TIMES},{LOG},"code":"OOPS"}}', "code: expected a number or a name of Kafka's error codes"),
        (
            f'{{"op":"fetch",{TIMES},"group":"g","partitions":[["t",0,[[1,0]]]]}}',
            "partitions[0][2][0]: before first_offset",
        ),
        (
            f'{{"op":"fetch",{TIMES},"group":"g","partitions":[["t",0,[[1,"x"]]]]}}',
            "partitions[0][2][0][1]: expected an integer",
        ),
        (
            f'{{"op":"acknowledge",{TIMES},"group":"g","partitions":[["t",0,[[0,1,"eat"]],0]]}}',
            "partitions[0][2][0][2]: expected one of accept, release",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, line: str, message: str) -> None:
    """A malformed operation is refused with the file, the line and the field."""
    path = tmp_path / "a.jsonl"
    path.write_text(f"{HEADER}{line}\n")

    with pytest.raises(OperationsError) as caught:
        [*OperationsReader(path)]

    assert str(caught.value).startswith(f"{path}:2: {message.removeprefix(': ')}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: not JSON"),
        ("{}", "1: sharestate_operations: missing"),
        ('{"sharestate_operations":2}', "1: sharestate_operations: expected version 1, got 2"),
        ('{"sharestate_operations":1}\n{"op":"crash","at_ms":1,"group":"g"}', "2: client: missing, here and in the"),
    ],
)
def test_a_file_without_its_header_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """As is one of another version, and a line of nobody."""
    path = tmp_path / "a.jsonl"
    path.write_text(text)

    with pytest.raises(OperationsError) as caught:
        [*OperationsReader(path)]

    assert str(caught.value).startswith(f"{path}:{message}")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """One that is not there, no regular file, cut off, or of more lines than its size allows."""
    with pytest.raises(OperationsError, match="No such file"):
        OperationsReader(tmp_path / "none.jsonl")
    with pytest.raises(OperationsError, match="no regular file"):
        OperationsReader(tmp_path)
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(HEADER.encode())[:-9])
    with pytest.raises(OperationsError, match="cannot be read"):
        [*OperationsReader(cut)]
    many = tmp_path / "many.jsonl.gz"
    many.write_bytes(gzip.compress((HEADER + "\n" * 50_000).encode()))
    with pytest.raises(OperationsError, match="more than 10"):
        [*OperationsReader(many)]
