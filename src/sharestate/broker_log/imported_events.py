"""The events of an import: numbered within each share partition, and without names if those are redacted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2s
from typing import Any

from sharestate.broker_log.lines import LoggedRequest
from sharestate.history import Event

Key = tuple[str, str, int]
"""Group id, topic id and partition."""

Handler = Callable[[LoggedRequest], None]
"""What is done with a request."""

_Times = tuple[int | None, int | None, int | None, int | None]


class ImportedEvents:
    """
    The events that requests have made, until they are taken.

    Args:
        begin: Begins the history of a share partition, when its first event comes up at a time. [µs since 1970]
        group_id: The only group to import; all if None.
        redaction_key: See ``LogImport``.

    Attributes:
        counts: How many there were of each kind, and of what could not be imported.
    """

    def __init__(
        self, begin: Callable[[Key, int | None], None], *, group_id: str | None, redaction_key: bytes | None
    ) -> None:
        """Start without events."""
        self._begin = begin
        self._group_id = group_id
        self._redaction_key = redaction_key
        self.counts: Counter[str] = Counter()
        self._seqs: dict[Key, int] = {}
        self._of_partition: dict[tuple[str, int], dict[Key, None]] = {}
        self._waiting: list[tuple[Key, Event]] = []

    def is_wanted(self, group_id: str | None) -> bool:
        """Return whether a group is imported; None for that of a request which was refused because it names none."""
        return self._group_id is None or group_id == self._group_id

    def name(self, name: str) -> str:
        """Return a name as it stands in the history."""
        key = self._redaction_key
        return name if key is None or not name else blake2s(name.encode(), key=key, digest_size=8).hexdigest()

    def __contains__(self, key: Key) -> bool:
        """Return whether a share partition has events."""
        return key in self._seqs

    def __iter__(self) -> Iterator[Key]:
        """Yield the share partitions that have events."""
        return iter(tuple(self._seqs))

    def of(self, topic_id: str, partition: int) -> list[Key]:
        """Return the share partitions of a partition that have events."""
        return list(self._of_partition.get((topic_id, partition), ()))

    def add(  # noqa: PLR0913 - the columns of an event that differ
        self,
        key: Key,
        kind: str,
        logged: LoggedRequest | None,
        *,
        member_id: str | None = None,
        request: dict[str, Any] | None = None,
        response: dict[str, Any] | None = None,
        at_us: int | None = None,
        inferred: bool = False,
    ) -> None:
        """Add the next event of a share partition, which *logged* says or, without that, something else."""
        if key not in self._seqs:
            self._seqs[key] = 0
            self._of_partition.setdefault(key[1:], {})[key] = None
            self._begin(key, at_us if logged is None else logged.at_us)
        group_id, topic_id, partition = key
        seq = self._seqs[key]
        self._seqs[key] = seq + 1
        self.counts[kind] += 1
        times: _Times = (at_us, None, None, None)
        connection = number = client_id = None
        if logged is not None:
            times = logged.at_us, logged.taken_us, logged.handled_us, logged.done_us
            connection, number = self.name(logged.connection), logged.correlation_id
            if member_id is not None and logged.client_id:
                client_id = self.name(logged.client_id)
        event = Event(
            self.name(group_id),
            topic_id,
            partition,
            seq,
            *times,
            None,
            connection,
            number,
            kind,
            None if member_id is None else self.name(member_id),
            client_id,
            None if logged is None else self.name(logged.file),
            None if logged is None else logged.line,
            _without_nulls(request),
            _without_nulls(response),
            inferred,
        )
        self._waiting.append((key, event))

    def take(self) -> list[Event]:
        """Return the events that were not taken yet."""
        taken = [event for _, event in self._waiting]
        self._waiting.clear()
        return taken

    def drop(self) -> set[Key]:
        """Forget the events of a request that makes no sense, and return the share partitions that had no others."""
        gone = set()
        for key, event in reversed(self._waiting):
            self.counts[event.kind] -= 1
            self._seqs[key] -= 1
            if not self._seqs[key]:
                del self._seqs[key], self._of_partition[key[1:]][key]
                gone.add(key)
        self._waiting.clear()
        return gone


def _without_nulls(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    if fields is None or None not in fields.values():
        return fields
    return {name: value for name, value in fields.items() if value is not None}
