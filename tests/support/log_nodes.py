"""The side of a node that has the records, with shorthand for tests."""

from __future__ import annotations

from typing import Any

from sharestate.broker.node import (
    Decoder,
    EndTxnRequest,
    InitProducerIdRequest,
    LogRecord,
    LogService,
    PartitionLog,
    ProducedBatch,
    ProducedPartition,
    ProduceRequest,
    ProduceResult,
    ProducerIdResponse,
)
from sharestate.errors import ErrorCode


class LogNode(LogService):
    """A node with shorthand, and a topic "t" of two partitions."""

    def __init__(self, *, decode: Decoder | None = None, **configs: str) -> None:
        """Make the topic; what does not decode is one of its configs."""
        super().__init__(decode=decode)
        self.topic_id = self.topics.create(
            "t", 2, configs={k.replace("_", "."): v for k, v in configs.items()}
        ).topic_id

    def of(self, partition: int = 0) -> PartitionLog:
        """Return a log of the topic."""
        log = self.log(self.topic_id, partition)
        assert log is not None
        return log

    def put(self, *records: LogRecord, partition: int = 0, now_ms: int = 0, **named: Any) -> ProduceResult:  # noqa: ANN401
        """Produce one batch; what names no field of it is one of the request."""
        asked = {name: named.pop(name) for name in ("acks", "transactional_id", "version") if name in named}
        batch = ProducedBatch(**{"records": records or [LogRecord(b"k", b"v")], **named})
        topic = self.topic_id if asked.get("version", 13) > 12 else "t"
        request = ProduceRequest(partitions=[ProducedPartition(topic, partition, batch)], **asked)
        (result,) = self.produce(request, now_ms).partitions
        return result

    def transact(
        self, producer: tuple[int, int], sequence: int, *, version: int = 13, now_ms: int = 0
    ) -> ProduceResult:
        """Produce one record of a transaction."""
        return self.put(
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            is_transactional=True,
            transactional_id="x",
            version=version,
            now_ms=now_ms,
        )

    def begin(self, transactional_id: str | None = "x") -> tuple[int, int]:
        """Begin a producer and return its id and epoch."""
        answer = self.init_producer_id(InitProducerIdRequest(transactional_id=transactional_id), 0)
        assert answer.error_code is ErrorCode.NONE
        return answer.producer_id, answer.producer_epoch

    def end(self, producer: tuple[int, int], *, committed: bool = True, version: int = 5) -> ProducerIdResponse:
        """End the transaction."""
        request = EndTxnRequest(
            transactional_id="x",
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
            version=version,
        )
        return self.end_txn(request, 7)
