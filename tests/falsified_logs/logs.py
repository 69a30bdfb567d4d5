"""Logs of runs with one line falsified, and what the check finds in them."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Final

from attrs import define, field, frozen

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.log_check import PartitionReport, Verdict
from tests.falsified_logs.kinds import FALSIFIED, READ, WRITE, Kind, Logged, api_of, parts
from tests.support.broker_logs import reports_of

RUN: Final = Path(__file__).parents[1] / "data" / "broker-log" / "k431-seq"

COMPLETED: Final = "Completed request:"
MEMBERS: Final = ("SHARE_FETCH", "SHARE_ACKNOWLEDGE")
APIS: Final = tuple(f'"{api}"' for api in (*MEMBERS, READ, WRITE))

AFTER: Final = 400
"""How many lines there are after the falsified one; with fewer, the check is quicker."""

MOST_NAMED: Final = 7
"""Among how many lines that are named the falsified one is to be found."""

Key = tuple[str, str, int]
"""Group id, topic id and partition."""


class Found(Enum):
    """What the check has made of a falsified log."""

    NAMED = "named"
    """The falsified line is among the lines that are named."""

    NEXT = "next"
    """The next event of its share partition is."""

    LATER = "later"
    """A later one is."""

    BOUND = "search bound reached"
    """No order was found, and not all were tried."""

    MISSED = "missed"
    """Nothing contradicts: everything is explained, or it is not checked."""


@frozen
class Falsified:
    """A log with one line falsified."""

    kind: str
    key: Key
    """The share partition of which the line says what is not so."""

    index: int
    """The index of the line, or of the one that is missing."""

    lines: list[str]

    @property
    def may_hide(self) -> bool:
        """Return whether it may be that nothing contradicts it."""
        return bool(FALSIFIED[self.kind].hides)

    @property
    def is_missing(self) -> bool:
        """Return whether the line is missing."""
        return FALSIFIED[self.kind].copies == 0


@define
class Run:
    """A run of a broker: its request log and segments."""

    home: Path
    lines: list[str]
    logged: dict[int, Logged] = field(factory=dict)
    """The requests that can be falsified, by the index of their line."""

    @classmethod
    def read(cls, home: Path, most: int | None = None) -> Run:
        """Read the request log of a run, or the first lines of it, *most* in number."""
        log = home / "request.log.gz"
        data = gzip.decompress(log.read_bytes()) if log.exists() else (home / "request.log").read_bytes()
        run = cls(home, data.decode().splitlines(keepends=True)[:most])
        run.logged.update((i, loads(line)) for i, line in enumerate(run.lines) if any(api in line for api in APIS))
        return run

    def reports(self, lines: Iterable[str], scratch: Path, group_id: str | None = None) -> list[PartitionReport]:
        """Return what the check says of a log like the run's, which is written into *scratch*."""
        log = scratch / "request.log"
        log.write_text("".join(lines))
        return self.reports_of([log], group_id)

    def reports_of(self, logs: Iterable[Path], group_id: str | None = None) -> list[PartitionReport]:
        """Return what the check says of request logs like the run's."""
        broker = read_properties(self.home / "server.properties")
        return reports_of(
            LogImport(RequestLog([*logs]), TopicLogs(self.home / "segments"), broker=broker, group_id=group_id)
        )

    def falsified(self, name: str, explained: Iterable[Key], rnd: random.Random, most: int) -> Iterator[Falsified]:
        """
        Yield up to *most* logs falsified in one way.

        Args:
            name: The way.
            explained: The share partitions of which everything is explained; the falsified lines are about these.
            rnd: What chooses the lines.
            most: How many logs.
        """
        kind, keys = FALSIFIED[name], frozenset(explained)
        places = [i for i, logged in self.logged.items() if api_of(logged) == kind.api]
        rnd.shuffle(places)
        made = 0
        for index in places:
            if made == most:
                return
            falsified = self._falsify(name, kind, index, keys)
            if falsified is not None:
                made += 1
                yield falsified

    def _falsify(self, name: str, kind: Kind, index: int, keys: frozenset[Key]) -> Falsified | None:
        logged = loads(self.lines[index])
        group_id = logged["request"]["groupId"]
        for part in parts(logged):
            key = (group_id, *part.partition)
            if key in keys and kind.change(part):
                stamp = self.lines[index].partition(COMPLETED)[0]
                line = f"{stamp}{COMPLETED}{json.dumps(logged, separators=(',', ':'))}\n"
                after = self.lines[index + 1 : index + AFTER]
                return Falsified(name, key, index, [*self.lines[:index], *[line] * kind.copies, *after])
        return None

    def next_lines(self, falsified: Falsified) -> set[int]:
        """
        Return the lines, from 1 on, of what comes next in a falsified line's share partition.

        Those are the requests that were under way at the same time, the next one of a member, and the next write.
        """
        begin_us, end_us = self._span_us(falsified.index)
        found, later = set(), []
        for index, logged in self.logged.items():
            if index != falsified.index and self._is_about(logged, falsified.key):
                begin, end = self._span_us(index)
                if begin > end_us:
                    later.append((begin, index, api_of(logged)))
                elif end >= begin_us:
                    found.add(index)
        for apis in (MEMBERS, (WRITE,)):
            found.add(min((each for each in later if each[2] in apis), default=(0, -1, ""))[1])
        return {index + 1 - (falsified.is_missing and index > falsified.index) for index in found}

    def _span_us(self, index: int) -> tuple[int, int]:
        """Return when a request arrived, and when its line was written, within its hour. [µs]"""
        minutes, seconds = self.lines[index][14:26].split(":")
        end_us = round((int(minutes) * 60 + float(seconds)) * 1e6)
        return end_us - round(self.logged[index]["totalTimeMs"] * 1e3), end_us

    @staticmethod
    def _is_about(logged: Logged, key: Key) -> bool:
        return logged["request"]["groupId"] == key[0] and any(part.partition == key[1:] for part in parts(logged))


def loads(line: str) -> Logged:
    """Return the request of a line."""
    logged: Logged = json.loads(line.partition(COMPLETED)[2])
    return logged


def judge(run: Run, falsified: Falsified, reports: Iterable[PartitionReport]) -> Found:
    """Return what the check has made of a falsified log."""
    lines, verdicts = set(), set()
    for report in reports:
        verdicts.add(report.verdict)
        for finding in [each for each in report.findings if each.verdict is Verdict.CONTRADICTION][:1]:
            places = [finding.place, *finding.other_places][:MOST_NAMED]
            lines |= {place.line for place in places}
    if not lines:
        return Found.BOUND if Verdict.BOUND_REACHED in verdicts else Found.MISSED
    copies = FALSIFIED[falsified.kind].copies
    if lines & {falsified.index + 1 + copy for copy in range(copies)}:
        return Found.NAMED
    return Found.NEXT if lines & run.next_lines(falsified) else Found.LATER


def explained(reports: Iterable[PartitionReport]) -> list[Key]:
    """Return the share partitions of which everything is explained."""
    return [report.key for report in reports if report.verdict is Verdict.EXPLAINED]
