"""Changes of a request log that mean nothing: it has no order, its times are inexact, and it says more than it must."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from tests.falsified_logs.logs import COMPLETED


def swapped(lines: list[str], rnd: random.Random) -> list[str]:
    """Shuffle the lines of each millisecond."""
    by_ms: dict[str, list[str]] = {}
    for line in lines:
        by_ms.setdefault(line[:23], []).append(line)
    for each in by_ms.values():
        rnd.shuffle(each)
    return [line for each in by_ms.values() for line in each]


def trembling(lines: list[str], rnd: random.Random) -> list[str]:
    """Move the time of each line by up to a millisecond, which may take lines of one connection past each other."""
    return [_moved(line, rnd.randint(-1000, 1000)) for line in lines]


def _moved(line: str, us: int) -> str:
    stamp, space, text = line.partition(" ")
    day, _, time = stamp.partition("T")
    hours, minutes, seconds = time.split(":")
    total = (int(hours) * 60 + int(minutes)) * 60_000_000 + round(float(seconds) * 1_000_000) + us
    minutes_in_all, rest = divmod(total, 60_000_000)
    return f"{day}T{minutes_in_all // 60:02}:{minutes_in_all % 60:02}:{rest / 1_000_000:09.6f}{space}{text}"


def in_milliseconds(lines: list[str], _: random.Random) -> list[str]:
    """Write times as Kafka's own ``log4j2.yaml`` does: in brackets, with milliseconds, and a level behind."""
    return [f"[{line[:10]} {line[11:19]},{line[20:23]}] DEBUG{line[26:-1]} (kafka.request.logger)\n" for line in lines]


def without_heartbeats(lines: list[str], _: random.Random) -> list[str]:
    """Leave out the heartbeats of members that stay."""
    return [line for line in lines if '"SHARE_GROUP_HEARTBEAT"' not in line or '"memberEpoch":-1' in line]


def with_unknown_fields(lines: list[str], _: random.Random) -> list[str]:
    """Add fields that a later release might have."""
    added = '"aFieldOfTomorrow":{"or":[1,2]},'
    changed = []
    for line in lines:
        head, mark, text = line.partition(COMPLETED)
        text = text.replace('"request":{', f'"request":{{{added}').replace('"request":{' + added + "}", '"request":{}')
        changed.append(f"{head}{mark}{{{added}{text[1:]}" if mark else line)
    return changed


def without_others(lines: list[str], _: random.Random) -> list[str]:
    """Leave out what says nothing of share groups."""
    others = ('"API_VERSIONS"', '"BROKER_HEARTBEAT"', '"FIND_COORDINATOR"', '"LIST_OFFSETS"', '"FETCH"')
    return [line for line in lines if not any(f'"requestApiKeyName":{each}' in line for each in others)]


def with_other_lines(lines: list[str], rnd: random.Random) -> list[str]:
    """Put lines of other loggers between them."""
    other = "[2026-11-22 05:11:25,867] INFO [GroupCoordinator id=1] Member joined (org.apache.kafka)\n"
    return [each for line in lines for each in ([other, line] if rnd.random() < 0.1 else [line])]


HARMLESS: Final[Mapping[str, Callable[[list[str], random.Random], list[str]]]] = MappingProxyType(
    {
        "lines of a millisecond swapped": swapped,
        "times a millisecond off": trembling,
        "times as log4j2.yaml writes them": in_milliseconds,
        "no heartbeats": without_heartbeats,
        "unknown fields": with_unknown_fields,
        "no other requests": without_others,
        "lines of other loggers": with_other_lines,
    }
)
