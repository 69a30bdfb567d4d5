"""Damaged request logs: whatever is imported of them can be read as a history, and checked."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from sharestate.broker_log import LogImport, RequestLog, RequestLogError, TopicLogs, read_properties
from sharestate.broker_log.request_fields import APIS
from sharestate.history import Header, Order, create_history, open_history
from sharestate.log_check import verify
from tests.fuzz.in_memory import DIRECTORY
from tests.fuzz.mutations import change_json, damaged
from tests.support.broker_logs import RUN, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

_MOST: Final = 20
"""The requests of its group in a sample. [lines]"""

_NUMBERS: Final = (float("nan"), float("inf"), 1e308, -(2**63), 2**31, True)
"""Numbers that JSON has, as Python writes it, and requests have not."""

_TIME: Final = "2026-11-22T04:35:43.6Z"


def samples() -> list[bytes]:
    """Return the beginnings of the logs of two groups."""
    found = []
    for group in ("seq-a", "seq-b"):
        own = [line for line in lines() if f'"groupId":"{group}"' in line or '"groupId"' not in line]
        wanted = [
            line for line in own if (api := re.search('"requestApiKeyName":"([A-Z_]+)"', line)) and api[1] in APIS
        ]
        of_group = [number for number, line in enumerate(wanted) if '"groupId"' in line]
        found.append("".join(wanted[: of_group[_MOST]]).encode())
    return found


def damaged_log(random: Random, logs: Sequence[bytes]) -> bytes:
    """Return a log of which a request or two are others than brokers write, or that is damaged as a file."""
    if random.random() < 0.1:
        return damaged(random, logs)
    own = random.choice(logs).decode().splitlines()
    for number in random.choices(range(len(own)), k=random.choice((1, 1, 2))):
        stamp, words, text = own[number].partition("Completed request:")
        request = json.loads(text)
        _change(random, request)
        own[number] = f"{stamp}{words}{json.dumps(request, separators=(',', ':'))}"
    if random.random() < 0.3:
        wrap = random.choice(_ENVELOPES)
        own = [wrapped for line in own for wrapped in wrap(random, line)]
    return "".join(f"{line}\n" for line in own).encode("utf-8", "surrogatepass")


def _change(random: Random, request: dict[str, Any]) -> None:
    """Change something in a request: its head, or more often what it has or its answer."""
    if random.random() < 0.25:
        part = random.choice([request, request["requestHeader"]])
        name = random.choice([each for each in part if each not in {"request", "response", "requestHeader"}])
        part[name] = random.choice([*_NUMBERS, "x", None, [], [1], {}])
        return
    part = request[random.choice(("request", "response"))]
    for _ in range(random.choice((1, 1, 3))):
        change_json(random, part, _NUMBERS)


def _docker(random: Random, line: str) -> list[str]:
    cut = random.randrange(1, len(line))
    pieces = [{"log": piece, "stream": "stdout", "time": _TIME} for piece in (line[:cut], f"{line[cut:]}\n")]
    return [json.dumps(_maybe_changed(random, piece)) for piece in pieces]


def _cri(random: Random, line: str) -> list[str]:
    cut = random.randrange(1, len(line))
    tags = "PF" if random.random() < 0.99 else random.choice(("PP", "FP", "FF"))
    return [f"{_TIME} stdout {tag} {piece}" for tag, piece in zip(tags, (line[:cut], line[cut:]), strict=True)]


def _layout(random: Random, line: str) -> list[str]:
    stamp, words, text = line.partition("Completed request:")
    return [json.dumps(_maybe_changed(random, {"@timestamp": stamp.strip(), "message": words + text, "instant": {}}))]


def _maybe_changed(random: Random, value: dict[str, Any]) -> dict[str, Any]:
    if random.random() < 0.01:
        change_json(random, value, _NUMBERS)
    return value


_ENVELOPES: Final[tuple[Callable[[Random, str], list[str]], ...]] = (_docker, _cri, _layout)


def import_log(data: bytes) -> None:
    """
    Import a log, passing over broken lines, and read and check the history.

    Raises:
        RequestLogError: A line is broken, which is passed over; or there is no request.
    """
    broken: list[RequestLogError] = []
    with TemporaryDirectory(dir=DIRECTORY) as directory:
        path, history = Path(directory, "request.log"), Path(directory, "history.jsonl")
        path.write_bytes(data)
        events = LogImport(
            RequestLog([path], on_broken=broken.append),
            TopicLogs([RUN / "segments"]),
            broker=read_properties(RUN / "server.properties"),
        )
        with create_history(history, Header(order=Order.ARRIVAL)) as file:
            file.write(events)
        assert sum(1 for _ in open_history(history)) == history.read_bytes().count(b"\n") - 1
        for report in verify(history):
            json.dumps(report.to_json())
    with suppress(IndexError):
        raise broken[0]
