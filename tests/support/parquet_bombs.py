"""Small Parquet files that are histories, and would be large if they were decoded as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from sharestate.history import Header
from sharestate.history.arrow import EVENT_SCHEMA, encode_events
from sharestate.history.events import read_event
from sharestate.history.header import MARK
from sharestate.json_lines import write_json

_FIRST: Final = "request.batches.list.element.first_offset"
_LAST: Final = "request.batches.list.element.last_offset"
_DELTAS: Final = "DELTA_BINARY_PACKED"


def written(batch: pa.RecordBatch, rows: int | None = None, **options: Any) -> bytes:  # noqa: ANN401 - those of Parquet
    """Return a file with the rows of *batch*, so many in a row group; all if that is not said."""
    file = BytesIO()
    with pq.ParquetWriter(file, batch.schema, **{"compression": "zstd", **options}) as writer:
        writer.write_batch(batch, row_group_size=rows or batch.num_rows)
        writer.add_key_value_metadata({MARK: write_json(Header().to_json())})
    return file.getvalue()


def log_starts(count: int, **columns: pa.Array) -> pa.RecordBatch:
    """Return so many events of a share partition, with other columns in the place of some."""
    event = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 0, "seq": 0, "kind": "log_start"}
    (row,) = encode_events([read_event({**event, "request": {"offset": 3}})]).to_struct_array()
    rows = pa.repeat(row, count)
    made = {name: rows.field(name) for name in EVENT_SCHEMA.names}
    made |= {"seq": pa.array(range(count), pa.int64()), **columns}
    return pa.RecordBatch.from_arrays(list(made.values()), names=list(made))


def log(batches: int) -> pa.RecordBatch:
    """Return an event with so many batches of a log."""
    event = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 0, "seq": 0, "kind": "log"}
    (row,) = encode_events([read_event({**event, "request": {"batches": [[0, 0]]}})]).to_struct_array()
    (request,) = (pa.array([row["request"].as_py()], EVENT_SCHEMA.field("request").type),)
    names = [field.name for field in request.type]
    item = request.field("batches").type.value_type
    offsets = pa.array(range(batches), pa.int64())
    columns = [
        offsets if field.name in {"first_offset", "last_offset"} else pa.nulls(batches, field.type) for field in item
    ]
    items = pa.StructArray.from_arrays(columns, fields=list(item))
    lists = pa.ListArray.from_arrays(pa.array([0, batches], pa.int32()), items)
    fields = [lists if name == "batches" else request.field(name) for name in names]
    return log_starts(1, kind=pa.array(["log"]), request=pa.StructArray.from_arrays(fields, fields=list(request.type)))


def in_deltas(batches: int) -> bytes:
    """Return a file with an event of so many batches, whose offsets take next to nothing."""
    return written(log(batches), use_dictionary=False, column_encoding={_FIRST: _DELTAS, _LAST: _DELTAS})


def with_other_count(data: bytes, count: int, other: int) -> bytes:
    """Return a file whose end says that there are *other* values where there are *count*; its pages do not."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    before, after = _varint(2 * count), _varint(2 * other)
    assert len(before) == len(after)
    assert before in data[footer:]
    return data[:footer] + data[footer:].replace(before, after)


def _varint(number: int) -> bytes:
    return b"" if not number else bytes([number & 0x7F | (0x80 if number > 0x7F else 0)]) + _varint(number >> 7)


def many_events(count: int) -> bytes:
    """Return a file with so many events that differ in nothing but their numbers."""
    texts = ["group_id", "topic_id", "kind", "partition", "request.offset"]
    return written(log_starts(count), use_dictionary=texts, column_encoding={"seq": _DELTAS})


def repeated_text(size: int, count: int) -> bytes:
    """Return a file of which each event has the same text, which it has once."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * size]))
    return written(log_starts(count, group_id=texts), dictionary_pagesize_limit=2**30, store_schema=False)


def text_of_the_one_before(size: int, count: int) -> bytes:
    """Return a file of which each event has a text that is encoded as that of the one before."""
    encoding = {"group_id": "DELTA_BYTE_ARRAY"}
    texts = pa.repeat(pa.scalar("x" * size), count)
    return written(log_starts(count, group_id=texts), use_dictionary=False, column_encoding=encoding)


def long_text(size: int) -> bytes:
    """Return a file with an event whose text is so long."""
    return written(log_starts(1, group_id=pa.array(["x" * size])), use_dictionary=False, write_statistics=False)


BOMBS: Final[Mapping[str, tuple[Callable[[], bytes], str]]] = MappingProxyType(
    {
        "a text of 80 MB": (
            lambda: long_text(80_000_000),
            r"group_id: \d+ bytes of a row group would be 8\d+ and more",
        ),
        "a text of 40 KB": (lambda: long_text(40_000), "group_id: a text of more than 32767 bytes, in one of 1 rows"),
        "a text of 1 MB for 10,000 events": (
            lambda: repeated_text(1_000_000, 10_000),
            "group_id: a text of more than 32767 bytes, in one of 10000 rows",
        ),
        "texts as the one before": (
            lambda: text_of_the_one_before(30_000, 1_000),
            "group_id: encoded as DELTA_BYTE_ARRAY, which has no bounds",
        ),
        "a million batches in an event": (
            lambda: in_deltas(1_000_000),
            rf"{_FIRST}: 1000000 items in \d+ bytes of a row group",
        ),
        "a million batches that the end of the file hides": (
            lambda: with_other_count(in_deltas(1_100_000), 1_100_000, 1_048_576),
            rf"{_FIRST}: 1100000 items in \d+ bytes of a row group",
        ),
        "300,000 batches in an event": (
            lambda: in_deltas(300_000),
            "request.batches: a list of more than 262144 items, in one of 1 rows",
        ),
        "200,000 events in 50 KB": (lambda: many_events(200_000), r"200000 events in a file of \d+ bytes"),
    }
)
"""What makes them, and how they are refused."""
