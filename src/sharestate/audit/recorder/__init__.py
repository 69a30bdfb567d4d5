"""
A recorder for confluent-kafka: clients that write down what they do, for ``sharestate audit``.

confluent-kafka itself is not imported: an application that has a client has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import signature
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any, Final, TypeVar

from sharestate.audit.recorder.log import Recorder, client_name
from sharestate.audit.recorder.producer import RecordedProducer, RecordId
from sharestate.audit.recorder.share_consumer import RecordedShareConsumer

__all__ = ["Recorder", "recorded"]

Client = TypeVar("Client")

_NUMBERS: Final = count(1)

_FIRST: Final = ["topic", "value", "key"]
"""How the arguments of ``Producer.produce`` begin; SerializingProducer has another order."""


def recorded(
    kind: type[Client], config: Mapping[str, Any], log: Recorder | Path | str, *, record_id: RecordId | None = None
) -> Client:
    """
    Return a client of confluent-kafka that writes down what it does: ``recorded(ShareConsumer, config, "logs/")``.

    Args:
        kind: ``ShareConsumer`` or a class derived from it, or ``Producer``, or one with the same ``produce``.
        config: What the client is configured with.
        log: Where its operations go: a recorder, a file that does not exist yet, or a directory in which to make one.
        record_id: Returns the id of a record from the message of its delivery report, for a producer.

    Raises:
        TypeError: *kind* is neither.
        OSError: The file cannot be made, or is there already.
    """
    mixin = _mixin(kind)
    name = client_name(config.get("client.id"), next(_NUMBERS))
    recorder = log if isinstance(log, Recorder) else Recorder(_file(Path(log), name), client=name, closes_itself=True)
    own = {f"_{name}": getattr(kind, name) for name in ("acknowledge", "produce") if hasattr(kind, name)}
    made = type(f"Recorded{kind.__name__}", (mixin, kind), own)
    more = {} if record_id is None else {"record_id": record_id}
    client: Client = made(config, recorder, name, **more)
    return client


def _mixin(kind: type) -> type[RecordedShareConsumer | RecordedProducer]:
    if hasattr(kind, "acknowledge_offset"):
        return RecordedShareConsumer
    produce = getattr(kind, "produce", None)
    names = list(signature(produce).parameters)[1:4] if isinstance(produce, FunctionType) else _FIRST
    if hasattr(kind, "begin_transaction") and names == _FIRST:
        return RecordedProducer
    message = f"{kind.__name__} is no ShareConsumer of confluent-kafka, nor has it a Producer's way to produce"
    raise TypeError(message)


def _file(path: Path, client: str) -> Path:
    return path / f"{re.sub('[^a-zA-Z0-9.-]', '-', client)}.jsonl" if path.is_dir() else path
