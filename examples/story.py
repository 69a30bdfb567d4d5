"""
A story of eight records, two members and one share partition.

Run it with `python examples/story.py`. Everything happens in this process: there is no broker, no clock and no network.
The share partition returns the writes to persist, and this script plays the persister.
"""

import sys

from sharestate import (
    AcknowledgementBatch,
    AcknowledgeType,
    Effects,
    FetchedRecords,
    PersistedState,
    RecordBatch,
    RecordState,
    ShareConfig,
    SharePartition,
    SharePartitionKey,
)

LOCK_MS = 30_000
FIRST, LAST = 0, 7
LOG = [RecordBatch(FIRST, LAST)]

LETTERS = {RecordState.AVAILABLE: ".", RecordState.ACKNOWLEDGED: "+", RecordState.ARCHIVED: "x"}
LEGEND = """\
Eight records, two members, one share partition. How to read the drawings:

  .    available: the next member that asks may have it
  a b  acquired: ann or bob holds it, for 30 seconds
  +    acknowledged: processed
  x    archived: given up
  -    behind the SPSO and no longer kept in memory
  5    how often the record has been delivered; the limit is 5
  ^    the SPSO (share-partition start offset): everything before it is done"""


def spelled(first: int, last: int) -> str:
    """Return a range of offsets in words."""
    return f"{first}" if first == last else f"{first} to {last}"


class Story:
    """A share partition, a clock and a persister, with drawings of what is in flight."""

    def __init__(self) -> None:
        """Begin with nothing in flight."""
        key = SharePartitionKey(group_id="orders", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
        config = ShareConfig(record_lock_duration_ms=LOCK_MS, delivery_count_limit=5)
        self.partition = SharePartition(key, config=config)
        self.now_ms = 0
        self.written: list[tuple[int, int, RecordState]] = []
        self.persisted: dict[int, RecordState] = {}
        self.partition.initialize()
        self.partition.read_succeeded(PersistedState(start_offset=FIRST))

    def acquire(self, member: str) -> str:
        """Fetch for *member*, and return which records it got."""
        fetched = FetchedRecords(fetch_offset=self.partition.next_fetch_offset(), batches=LOG)
        effects = self.partition.acquire(member, fetched, now_ms=self.now_ms)
        return ", ".join(spelled(first, last) for first, last, _count in effects.acquired)

    def acknowledge(self, member: str, first: int, last: int, what: AcknowledgeType) -> None:
        """Acknowledge the records *first* to *last* for *member*."""
        batches = [AcknowledgementBatch(first, last, (what,))]
        self.persist(self.partition.acknowledge(member, batches, now_ms=self.now_ms))

    def let_locks_expire(self) -> None:
        """Advance the clock until all locks expire: what was held is available again, or archived at the limit."""
        self.now_ms += LOCK_MS + 1
        while (effects := self.partition.expire_next(now_ms=self.now_ms)) is not None:
            self.persist(effects)

    def persist(self, effects: Effects) -> None:
        """Play the persister: every write succeeds at once."""
        for write in effects.writes:
            self.partition.write_succeeded(write.number)
            for first, last, state, _count in write.state_batches:
                self.persisted.update(dict.fromkeys(range(first, last + 1), RecordState(state)))
                begin = first
                if self.written and self.written[-1][1:] == (first - 1, state):
                    begin = self.written.pop()[0]
                self.written.append((begin, last, RecordState(state)))

    def tell(self, what_happened: str) -> None:
        """Print what happened and what was written, and draw the records."""
        print(f"\n[{self.now_ms / 1000:5.1f} s] {what_happened}")
        if self.written:
            written = ", ".join(f"{spelled(first, last)} {state.name.lower()}" for first, last, state in self.written)
            print(f"          (written to the share-group state: {written})")
            self.written.clear()
        letters, counts = zip(*self.drawing(), strict=True)
        print("\n           offset     ", *range(FIRST, LAST + 1))
        print("           state      ", *letters)
        print("           deliveries ", *counts)
        print("           SPSO       ", *" " * (self.partition.start_offset - FIRST), "^")

    def drawing(self) -> list[tuple[str, str]]:
        """Return the letter and the delivery count of each record."""
        drawn = dict.fromkeys(range(FIRST, self.partition.start_offset), ("-", "-"))
        for batch in self.partition.batches():
            for run in batch.runs:
                letter = LETTERS.get(run.state, run.member_id[:1])
                offsets = range(run.first_offset, run.last_offset + 1)
                drawn.update(dict.fromkeys(offsets, (letter, str(run.delivery_count))))
        return [drawn.get(offset, (" ", " ")) for offset in range(FIRST, LAST + 1)]


def good_days(story: Story) -> None:
    """Acquire, acknowledge, release."""
    story.tell("The log holds the records 0 to 7. Nobody has asked for them yet.")
    got = story.acquire("ann")
    story.tell(f"ann asks for records and acquires {got}: nobody else gets them while she holds them.")
    story.acknowledge("ann", 0, 1, AcknowledgeType.ACCEPT)
    story.tell("ann has processed 0 and 1 and accepts them. The SPSO moves on: they will never come back.")
    story.acknowledge("ann", 2, 7, AcknowledgeType.RELEASE)
    story.tell("ann has to go home. She releases the others, so that somebody else may process them.")


def bad_days(story: Story) -> None:
    """Deliver record 2, which brings down whoever processes it, until the limit of five deliveries."""
    got = story.acquire("bob")
    story.tell(f"bob acquires {got}. Their delivery counts go up.")
    story.let_locks_expire()
    story.tell("Record 2 crashes his program. His locks expire, and the records are available again.")
    got = story.acquire("ann")
    story.let_locks_expire()
    story.tell(f"ann acquires {got}, record 2 crashes hers too, and her locks expire: three deliveries.")
    got = story.acquire("bob")
    story.tell(f"The batch keeps failing, so bob gets only half of it this time: {got}.")
    story.let_locks_expire()
    story.tell("His program crashes again, and the locks expire.")
    got = story.acquire("ann")
    story.tell(f"The last delivery of a record is of that record alone: ann gets {got}.")
    story.let_locks_expire()
    story.tell("Her program crashes. Five deliveries are the limit: 2 is archived, and the SPSO passes it.")


def better_days(story: Story) -> None:
    """Process what is left, now that the bad record is out of the way."""
    for offset in (3, 4, 5):
        got = story.acquire("bob")
        story.acknowledge("bob", offset, offset, AcknowledgeType.ACCEPT)
        story.tell(f"bob gets {got}, alone because it is its last delivery, and accepts it.")
    got = story.acquire("ann")
    story.acknowledge("ann", 6, 7, AcknowledgeType.ACCEPT)
    story.tell(f"ann gets {got}, delivered less often, and accepts them. Nothing is left in flight.")


def ended_well(story: Story) -> bool:
    """Return whether the story ended as it should; what was written says it."""
    archived = [offset for offset, state in story.persisted.items() if state is RecordState.ARCHIVED]
    accepted = [offset for offset, state in sorted(story.persisted.items()) if state is RecordState.ACKNOWLEDGED]
    is_as_it_should_be = (accepted, archived, story.partition.start_offset) == ([0, 1, 3, 4, 5, 6, 7], [2], 8)
    print(f"\n{'VERDICT: as it should be' if is_as_it_should_be else 'VERDICT: NOT as it should be'}.", end=" ")
    print(f"{len(accepted)} records were processed, {len(archived)} was given up, and the SPSO is past them all.")
    return is_as_it_should_be


def main() -> None:
    """Run the story."""
    print(LEGEND)
    story = Story()
    good_days(story)
    bad_days(story)
    better_days(story)
    sys.exit(0 if ended_well(story) else 1)


if __name__ == "__main__":
    main()
