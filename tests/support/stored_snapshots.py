"""Stored snapshots of every version, and how to spoil one in some place."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from sharestate import PROFILES, SharePartition, Snapshot, SnapshotError

SNAPSHOTS: Final = Path(__file__).parents[1] / "data/snapshots"
STORED: Final = sorted(SNAPSHOTS.glob("v5-*.json"))
OF_VERSION_1: Final = sorted(SNAPSHOTS.glob("v1-*.json"))
OF_VERSION_2: Final = sorted(SNAPSHOTS.glob("v2-*.json"))
OF_VERSION_3: Final = sorted(SNAPSHOTS.glob("v3-*.json"))
OF_VERSION_4: Final = sorted(SNAPSHOTS.glob("v4-*.json"))
OLDER: Final = OF_VERSION_1 + OF_VERSION_2 + OF_VERSION_3 + OF_VERSION_4


LISTS: Final = {
    "profile.quirks",
    "profile.configurable",
    "profile.write_policy.amendments",
    "kip_memory[2]",
    "kip_memory[2][*][3]",
    "locks",
    "writes",
    "writes[*][2]",
    "writes[*][3]",
    "dead_letters",
    "cells",
    "batches",
    "batches[*][3]",
}
"""Where there may be any number of items; every other list is a row."""


def stored(file: Path) -> dict[str, Any]:
    """Return what *file* holds."""
    held: dict[str, Any] = json.loads(file.read_text())
    assert held["stored_snapshot"] == 1
    return held


@cache
def line_of(file: Path) -> str:
    """Return the snapshot in *file*, in JSON."""
    line: str = stored(file)["snapshot"]
    return line


@cache
def snapshot_in(file: Path) -> Any:  # noqa: ANN401 - JSON
    """Return the snapshot in *file*, to be looked at: it is the same one each time."""
    return json.loads(line_of(file))


def restored(line: str) -> SharePartition:
    """Return the share partition of which *line* is the snapshot."""
    snapshot = Snapshot.from_json(line)
    return SharePartition.restore(snapshot, profile=PROFILES[snapshot.profile.name])


def refused_at(line: str) -> str | None:
    """Return the field with which *line* is refused; None if it is taken."""
    try:
        restored(line)
    except SnapshotError as refused:
        return refused.field
    return None


Step = str | int
JSON_KINDS: Final[dict[str, object]] = {
    "nothing": None,
    "boolean": True,
    "fraction": 1.5,
    "text": "nonsense",
    "list": [],
    "object": {},
}


class SnapshotPlace(NamedTuple):
    """A value inside a snapshot."""

    file: Path
    """The stored snapshot."""

    way: tuple[Step, ...]
    """How to get there."""

    @property
    def path(self) -> str:
        """The path as errors name it."""
        return path_of(self.way)

    @property
    def pattern(self) -> str:
        """The path with a star for each index of a list that may have any number of items."""
        pattern = ""
        for step in self.way:
            pattern += f".{step}" if isinstance(step, str) else "[*]" if pattern[1:] in LISTS else f"[{step}]"
        return pattern[1:]

    def value(self) -> Any:  # noqa: ANN401 - JSON
        """Return what stands there."""
        return reach(snapshot_in(self.file), self.way)

    def spoiled(self, change: Callable[[Any, Any], None]) -> str:
        """Return the snapshot after *change* of what holds the value, given the last step."""
        snapshot = json.loads(line_of(self.file))
        change(reach(snapshot, self.way[:-1]), self.way[-1])
        return json.dumps(snapshot)

    def replaced(self, value: object) -> str:
        """Return the snapshot with *value* in its place."""
        return self.spoiled(lambda parent, step: parent.__setitem__(step, value))

    def without(self) -> str:
        """Return the snapshot without it."""
        return self.spoiled(lambda parent, step: parent.__delitem__(step))


def path_of(way: tuple[Step, ...]) -> str:
    """Return *way* as a path."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in way).removeprefix(".")


def reach(value: Any, way: tuple[Step, ...]) -> Any:  # noqa: ANN401 - JSON
    """Return what stands at the end of *way*."""
    for step in way:
        value = value[step]
    return value


def kind_of(value: object) -> str:
    """Return the kind of JSON that *value* is."""
    if type(value) is int:
        return "number"
    return next(kind for kind, example in JSON_KINDS.items() if type(value) is type(example))
