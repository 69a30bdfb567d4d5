"""The story of a share partition by hand, second by second, as a history in which locks expire when they are due."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from sharestate import AcknowledgementBatch, AcknowledgeType
from sharestate.diagnose import HistoryFacts
from sharestate.history import AppendedBatch, Event, Header, create_history
from sharestate.history.replay import Replay

GROUP: Final = "g"
TOPIC_ID: Final = "dGhlIHRvcGljJ3MgaWQhIQ"
TOPIC: Final = "orders"
LACKS: Final = frozenset({"expire", "write"})
"""What nobody has to write down: locks expire when they are due, and writes succeed at once."""

HEADER: Final = Header(source="a story", lacks=LACKS, topics={TOPIC_ID: TOPIC})

ACCEPT, RELEASE, REJECT, RENEW = (
    (int(each),)
    for each in (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)
)


class Story:
    """
    A share partition to which things happen.

    Attributes:
        events: What has happened so far.
    """

    def __init__(self, partition: int = 0, *, begin_s: float = 1000, log: int = 0, **config: Any) -> None:  # noqa: ANN401 - settings
        """Begin with *log* records in batches of ten, and a leader that reads a state that says nothing."""
        self.events: list[Event] = []
        self.key = (GROUP, TOPIC_ID, partition)
        self._replay = Replay(self.key, lacks=LACKS, outputs=frozenset({"acquisition"}))
        self._now_us = round(begin_s * 10**6)
        self._end = 0
        settings = {"record_lock_duration_ms": 1000, "auto_offset_reset": "earliest", **config}
        self.happens("config", request=settings)
        self.write(log)
        self.lead()

    def happens(
        self,
        kind: str,
        member: str | None = None,
        request: Mapping[str, Any] | None = None,
        response: Mapping[str, Any] | None = None,
    ) -> list[tuple[int, int, int]]:
        """Let something happen now, and return what was acquired: ranges with delivery counts."""
        event = Event.of(
            self.key,
            len(self.events),
            kind,
            at_us=self._now_us,
            member_id=member,
            request=request,
            response=response,
        )
        self.events.append(event)
        rows = self._replay.apply(event)
        return [(row.values[0], row.values[1], row.values[3]) for row in rows]

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self._now_us += round(seconds * 10**6)

    def lead(self, epoch: int = 0, *, start: int = -1, batches: Iterable[Any] = ()) -> None:
        """Let a leader read the state."""
        read = {"state_epoch": 0, "start_offset": start, "state_batches": tuple(batches)}
        self.happens("initialize", request={"leader_epoch": epoch}, response=read)

    def write(self, count: int, batch: int = 10) -> None:
        """Append records."""
        begin, self._end = self._end, self._end + count
        batches = [AppendedBatch(at, min(at + batch, self._end) - 1) for at in range(begin, self._end, batch)]
        if batches:
            self.happens("log", request={"batches": tuple(batches)})

    def append(self, first: int, last: int, **fields: Any) -> None:  # noqa: ANN401 - those of a batch
        """Append one batch, of a transaction or a marker."""
        self._end = last + 1
        self.happens("log", request={"batches": (AppendedBatch(first, last, **fields),)})

    def fetch(self, member: str, most: int = 10) -> list[tuple[int, int, int]]:
        """Fetch, and return what was acquired."""
        return self.happens("fetch", member, {"max_records": most, "batch_size": most})

    def say(self, member: str, how: tuple[int, ...], *ranges: tuple[int, int], error: str | None = None) -> None:
        """Acknowledge ranges."""
        batches = tuple(AcknowledgementBatch(first, last, how) for first, last in ranges)
        self.happens("acknowledge", member, {"batches": batches}, {"error": error} if error else {})

    def work(self, member: str, seconds: float = 0.1, how: tuple[int, ...] = ACCEPT, most: int = 10) -> bool:
        """Fetch, take so long, acknowledge; return whether there was anything."""
        acquired = self.fetch(member, most)
        self.wait(seconds)
        if acquired:
            self.say(member, how, *((first, last) for first, last, _ in acquired))
        return bool(acquired)

    def facts(self, *others: Story) -> HistoryFacts:
        """Return the facts about it, and about *others* of the same group."""
        facts = HistoryFacts(HEADER)
        for story in (self, *others):
            for event in story.events:
                facts.apply(event)
        return facts

    def save(self, path: Path, *others: Story) -> Path:
        """Write it, and *others*, into a file."""
        with create_history(path, HEADER) as file:
            for story in (self, *others):
                file.write(story.events)
        return path
