"""What the clients of a broker saw and did, with times, one JSON object a line: to compare a replay of its log with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

from attrs import define, field

from sharestate.testing.servers.share_sessions import now


def spans(offsets: Iterable[int]) -> list[list[int]]:
    """Return the first and the last of each row of offsets that follow one another."""
    found: list[list[int]] = []
    for offset in sorted(offsets):
        if found and offset == found[-1][1] + 1:
            found[-1][1] = offset
        else:
            found.append([offset, offset])
    return found


@define
class Notes(AbstractContextManager["Notes"]):
    """A file of notes that many threads write to."""

    path: Path
    _lock: Lock = field(factory=Lock, init=False)
    _lines: list[str] = field(factory=list, init=False)

    def __call__(self, what: Mapping[str, Any]) -> None:
        """Note something, with the time unless it has one."""
        line = json.dumps({"at": now(), **what}, separators=(",", ":"))
        with self._lock:
            self._lines.append(line)
            if len(self._lines) >= _KEPT:
                self._write()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write what is not written yet."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in self._lines)
        self._lines.clear()


_KEPT: Final = 500
"""How many notes are written at once, so that clients without think time do not wait for a disk."""
