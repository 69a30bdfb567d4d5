"""
Requests from JSON, and answers to JSON, by the names of kio's schemas.

Ids are names (names.py), times are milliseconds, errors are names of errors, and records are the batches that they
are in.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Final, TypeAlias, get_args

from aiokafka.record import MemoryRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map

from tests.lockstep.names import Names

Json: TypeAlias = Any
"""What JSON has."""

Fields: TypeAlias = dict[str, Json]
"""A request, an answer, or a part of one."""

KEYS: Final[Mapping[str, int]] = {name: key for key, name in api_key_map.items()}
"""The key of each API."""

_MAGIC: Final = 2
_CRC: Final = 17
_CHECKED: Final = 21
"""Where a batch has its checksum, and where what that is of begins. [bytes]"""

_PRODUCER_IDS: Final = frozenset({"producer_id", "v3_and_below_producer_id"})
"""The fields with ids of producers."""


def response_schema(api: str, version: int) -> Any:  # noqa: ANN401 - a class of kio's
    """Return kio's class for the answers of an API."""
    return load_response_schema(KEYS[api], version)


def request_of(api: str, version: int, request: Fields, names: Names) -> Any:  # noqa: ANN401 - a class of kio's
    """Return a request, as kio's class for it; fields that are not given have its defaults."""
    return _entity(load_request_schema(KEYS[api], version), request, names)


def json_of(answer: Any, names: Names) -> Fields:  # noqa: ANN401 - a class of kio's
    """Return an answer, or a part of one, as JSON has it."""
    return {field.name: _json(field.name, getattr(answer, field.name), names) for field in fields(answer)}


# ---- requests


def _entity(schema: Any, given: Fields, names: Names) -> Any:  # noqa: ANN401 - a class of kio's
    known = {field.name: field for field in fields(schema)}
    return schema(**{name: _value(known[name], value, names) for name, value in given.items()})


def _value(field: Any, value: Json, names: Names) -> Any:  # noqa: ANN401 - of any type
    kind = field.metadata.get("kafka_type")
    if value is None:
        return None
    if kind == "records":
        return b"".join(_batch(batch, names) for batch in value)
    part = part_of(field.type)
    if isinstance(value, list):
        return tuple(_scalar(field, each, names) if part is None else _entity(part, each, names) for each in value)
    return _scalar(field, value, names) if part is None else _entity(part, value, names)


def _scalar(field: Any, value: Json, names: Names) -> Any:  # noqa: ANN401 - of any type
    kind = field.metadata["kafka_type"]
    if kind == "uuid":
        return names.topic_id(value)
    if kind.startswith("timedelta"):
        return timedelta(milliseconds=value)
    if field.name in _PRODUCER_IDS:
        return names.producer_id(value)
    return value


def part_of(annotation: Any) -> Any:  # noqa: ANN401 - of any type
    """Return kio's class for what a field consists of; None if that is no entity."""
    if is_dataclass(annotation):
        return annotation
    return next((found for each in get_args(annotation) if (found := part_of(each)) is not None), None)


def _batch(given: Fields, names: Names) -> bytes:
    """Return a batch as a producer sends it."""
    builder = DefaultRecordBatchBuilder(
        magic=_MAGIC,
        compression_type=given.get("codec", 0),
        is_transactional=given.get("is_transactional", False),
        producer_id=names.producer_id(given.get("producer_id", "none")),
        producer_epoch=given.get("producer_epoch", -1),
        base_sequence=given.get("base_sequence", -1),
        batch_size=2**20,
    )
    key, headers = _bytes(given.get("key")), [(name, _bytes(value)) for name, value in given.get("headers", ())]
    for offset, value in enumerate(given["values"]):
        builder.append(offset, given["timestamp"] + offset, key=key, value=_bytes(value), headers=headers)
    return _patched(bytes(builder.build()), given["patched"]) if "patched" in given else bytes(builder.build())


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _patched(batch: bytes, patch: Fields) -> bytes:
    """Return a batch with other bytes at a place, and its checksum, if it is to be right."""
    begin, wrong = patch["at"], bytes(patch["bytes"])
    batch = batch[:begin] + wrong + batch[begin + len(wrong) :]
    if not patch["checked"]:
        return batch
    checksum: int = calc_crc32c(batch[_CHECKED:])
    return batch[:_CRC] + checksum.to_bytes(4) + batch[_CHECKED:]


# ---- answers


def _json(name: str, value: Any, names: Names) -> Json:  # noqa: ANN401 - of any type
    if isinstance(value, (tuple, list)):
        return [_json(name, each, names) for each in value]
    if isinstance(value, int) and name in _PRODUCER_IDS:
        return names.of_producer_id(value)
    for kind, told in _TOLD:
        if isinstance(value, kind):
            return told(value, names)
    return json_of(value, names) if is_dataclass(value) else value


def batches_of(records: bytes, names: Names) -> list[Fields]:
    """Return the batches of a partition's records, without what only the broker knows: leader epochs and CRCs."""
    found: list[Fields] = []
    reader = MemoryRecords(records)
    while (batch := reader.next_batch()) is not None:
        found.append(
            {
                "base_offset": batch.base_offset,
                "last_offset": batch.next_offset - 1,
                "attributes": batch.attributes,
                "producer_id": names.of_producer_id(batch.producer_id),
                "producer_epoch": batch.producer_epoch,
                "base_sequence": batch.first_sequence if hasattr(batch, "first_sequence") else None,
                "records": [_record(record, is_control=batch.is_control_batch) for record in batch],
            }
        )
    return found


_TOLD: Final[tuple[tuple[Any, Callable[[Any, Names], Json]], ...]] = (
    (IntEnum, lambda value, _: value.name),
    (timedelta, lambda value, _: value // timedelta(milliseconds=1)),
    (datetime, lambda value, _: int(value.timestamp() * 1000)),
    (uuid.UUID, lambda value, names: names.of_topic_id(value)),
    ((bytes, bytearray, memoryview), lambda value, names: batches_of(bytes(value), names)),
    (str, lambda value, names: names.in_text(value)),
)
"""What JSON has for values of other types."""


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("latin-1")


def _record(record: Any, *, is_control: bool) -> list[Json]:  # noqa: ANN401 - of aiokafka
    """Return a record's offset, time, key and value; a marker's time is the broker's own."""
    key, value = _text(record.key), _text(record.value)
    headers = [[name, _text(content)] for name, content in record.headers]
    return [record.offset, None if is_control else record.timestamp, key, value, *([headers] if headers else [])]
