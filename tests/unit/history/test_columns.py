"""The tables of histories: which columns there are, and what their values are."""

from __future__ import annotations

import pytest

from sharestate import ControlType, RecordBatch
from sharestate.columns import Rows, union
from sharestate.error_codes import ErrorCode
from sharestate.history import KINDS, AppendedBatch
from sharestate.history.arrow import EVENT_SCHEMA, OUTPUT_SCHEMA
from sharestate.history.columns import EVENT_COLUMNS, ReadBatches
from sharestate.history.outputs import OUTPUTS


@pytest.mark.parametrize(
    ("appended", "batch"),
    [
        (AppendedBatch(3, 5), RecordBatch(3, 5, -1, is_transactional=False)),
        (AppendedBatch(3, 5, 7), RecordBatch(3, 5, 7, is_transactional=False)),
        (AppendedBatch(3, 5, 0), RecordBatch(3, 5, 0, is_transactional=False)),
        (AppendedBatch(3, 5, transactional=True), RecordBatch(3, 5, -1, is_transactional=True)),
        (AppendedBatch(3, 5, 7, transactional=True), RecordBatch(3, 5, 7, is_transactional=True)),
        (AppendedBatch(3, 3, 7, True, "abort"), RecordBatch(3, 3, 7, True, ControlType.ABORT)),  # noqa: FBT003
        (AppendedBatch(3, 3, 7, True, "commit"), RecordBatch(3, 3, 7, True, ControlType.COMMIT)),  # noqa: FBT003
    ],
)
def test_a_batch_of_a_history_is_one_of_a_fetch(appended: AppendedBatch, batch: RecordBatch) -> None:
    """What is null is what Kafka has where nothing is: no producer, no transaction, no marker; ids begin with 0."""
    assert appended.record_batch == batch
    assert AppendedBatch.of(batch) == appended


@pytest.mark.parametrize(("producer_id", "kafkas"), [(7, 7), (None, -1)])
def test_a_marker_belongs_to_a_transaction(producer_id: int | None, kafkas: int) -> None:
    """Whether or not its batch says so, and whether or not it is known whose transaction it ends."""
    marker = AppendedBatch(3, 3, producer_id, control="abort")

    assert marker.record_batch == RecordBatch(3, 3, kafkas, is_transactional=True, control=ControlType.ABORT)


def test_batches_that_were_read_are_a_sequence() -> None:
    """Of batches as a history has them: one by its place, counted from either end, or several."""
    read = ReadBatches([RecordBatch(0, 4), RecordBatch(5, 9, 7), RecordBatch(10, 14)])

    assert (read[1], read[-1]) == (AppendedBatch(5, 9, 7), AppendedBatch(10, 14))
    assert read[:2] == (AppendedBatch(0, 4), AppendedBatch(5, 9, 7))
    assert (len(read), list(read)) == (3, [*read[:2], read[2]])


def test_columns_of_one_name_have_one_type() -> None:
    """Fields that share a column of a struct, or of the rows, are of one type but for lists of rows."""
    tables = (
        union(kind.request for kind in KINDS.values()),
        union(kind.response for kind in KINDS.values()),
        union(output.columns for output in OUTPUTS.values()),
    )
    for table in tables:
        for columns in table.values():
            types = {Rows if isinstance(column.type, Rows) else column.type for column in columns}
            assert len(types) == 1


def test_every_error_of_kafka_has_a_name() -> None:
    """The names of errors are Kafka's in lower case, and there is none for success."""
    assert KINDS["close"].response[0].values == tuple(
        code.name.lower() for code in ErrorCode if code is not ErrorCode.NONE
    )


def test_schemas_are_in_the_order_of_the_tables() -> None:
    """Arrow's columns are those of the tables, in their order: Spark matches them by position."""
    assert EVENT_SCHEMA.names == [*(column.name for column in EVENT_COLUMNS), "request", "response", "inferred"]
    assert OUTPUT_SCHEMA.names[:6] == ["group_id", "topic_id", "partition", "seq", "at_us", "kind"]
    assert OUTPUT_SCHEMA.names[6:] == list(union(output.columns for output in OUTPUTS.values()))
