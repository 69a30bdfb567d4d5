"""
A story of eight records, two members and one share partition.

Run it with `python examples/story.py`. Everything happens in this process: there is no broker, no clock and no network.
The share partition says what it wants written, and this script plays the persister that writes it.
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
    """A share partition, the time that has passed, and somebody who draws what he sees."""

    def __init__(self) -> None:
        """Begin with nothing in flight."""
        key = SharePartitionKey(group_id="orders", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
        config = ShareConfig(record_lock_duration_ms=LOCK_MS, delivery_count_limit=5)
        self.partition = SharePartition(key, config=config)
        self.now_ms = 0
        self.written: list[str] = []
        self.became: dict[int, RecordState] = {}
        self.partition.initialize()
        self.partition.read_succeeded(PersistedState(start_offset=FIRST))

    def acquire(self, member: str) -> str:
        """Let *member* fetch, and return which records it got."""
        fetched = FetchedRecords(fetch_offset=self.partition.next_fetch_offset(), batches=LOG)
        effects = self.partition.acquire(member, fetched, now_ms=self.now_ms)
        return ", ".join(spelled(first, last) for first, last, _count in effects.acquired)

    def acknowledge(self, member: str, first: int, last: int, what: AcknowledgeType) -> None:
        """Let *member* say what became of the records *first* to *last*."""
        batches = [AcknowledgementBatch(first, last, (what,))]
        self.persist(self.partition.acknowledge(member, batches, now_ms=self.now_ms))

    def wait_until_locks_lapse(self) -> None:
        """Let more time pass than a member has: what it still holds is taken from it."""
        self.now_ms += LOCK_MS + 1
        while (effects := self.partition.expire_next(now_ms=self.now_ms)) is not None:
            self.persist(effects)

    def persist(self, effects: Effects) -> None:
        """Play the persister: every write succeeds at once."""
        for write in effects.writes:
            self.partition.write_succeeded(write.number)
            for first, last, state, _count in write.state_batches:
                self.became.update(dict.fromkeys(range(first, last + 1), RecordState(state)))
                self.written.append(f"{spelled(first, last)} {RecordState(state).name.lower()}")

    def tell(self, what_happened: str) -> None:
        """Say what happened and what was written, and draw what has become of the records."""
        print(f"\n[{self.now_ms / 1000:5.1f} s] {what_happened}")
        if self.written:
            print(f"          (written to the share-group state: {', '.join(self.written)})")
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
            for first, last, cell in batch.runs:
                letter = LETTERS.get(cell.state, cell.member_id[:1])
                drawn.update(dict.fromkeys(range(first, last + 1), (letter, str(cell.delivery_count))))
        return [drawn.get(offset, (" ", " ")) for offset in range(FIRST, LAST + 1)]


def good_days(story: Story) -> None:
    """Acquire, acknowledge, release."""
    story.tell("The log holds the records 0 to 7. Nobody has asked for them yet.")
    got = story.acquire("ann")
    story.tell(f"ann asks for records and acquires {got}: nobody else gets them while she holds them.")
    story.acknowledge("ann", 0, 1, AcknowledgeType.ACCEPT)
    story.tell("ann has processed 0 and 1 and accepts them. The SPSO moves on: they will never come back.")
    story.acknowledge("ann", 2, 7, AcknowledgeType.RELEASE)
    story.tell("ann has to go home. She releases the others, so that somebody else may have them.")


def bad_days(story: Story) -> None:
    """Let record 2 bring down whoever processes it, until it has been delivered five times."""
    got = story.acquire("bob")
    story.tell(f"bob acquires {got}. Their delivery counts go up.")
    story.wait_until_locks_lapse()
    story.tell("Record 2 crashes his program, which says nothing any more. His locks lapse: the records are available.")
    got = story.acquire("ann")
    story.wait_until_locks_lapse()
    story.tell(f"ann acquires {got}, record 2 crashes hers too, and her locks lapse. That was the third delivery.")
    got = story.acquire("bob")
    story.tell(f"Something in there is bad, so bob gets no more than half of the batch this time: {got}.")
    story.wait_until_locks_lapse()
    story.tell("It crashes all the same, and the locks lapse.")
    got = story.acquire("ann")
    story.tell(f"The last attempt is made alone, so that a bad record takes no other with it: ann gets {got}.")
    story.wait_until_locks_lapse()
    story.tell("It crashes. Five deliveries are the limit: 2 is archived, and the SPSO moves past it.")


def better_days(story: Story) -> None:
    """Process what is left, now that the bad record is out of the way."""
    for offset in (3, 4, 5):
        got = story.acquire("bob")
        story.acknowledge("bob", offset, offset, AcknowledgeType.ACCEPT)
        story.tell(f"bob gets {got}, at its last attempt and so alone too, and accepts it.")
    got = story.acquire("ann")
    story.acknowledge("ann", 6, 7, AcknowledgeType.ACCEPT)
    story.tell(f"ann gets {got}, delivered less often and so together, and accepts them. Nothing is left in flight.")


def ended_well(story: Story) -> bool:
    """Return whether the story ended as it should; what was written says it."""
    archived = [offset for offset, state in story.became.items() if state is RecordState.ARCHIVED]
    accepted = [offset for offset, state in sorted(story.became.items()) if state is RecordState.ACKNOWLEDGED]
    is_as_it_should_be = (accepted, archived, story.partition.start_offset) == ([0, 1, 3, 4, 5, 6, 7], [2], 8)
    print(f"\n{'VERDICT: as it should be' if is_as_it_should_be else 'VERDICT: NOT as it should be'}.", end=" ")
    print(f"{len(accepted)} records were processed, {len(archived)} was given up, and the SPSO has passed them all.")
    return is_as_it_should_be


def main() -> None:
    """Tell the story."""
    print(LEGEND)
    story = Story()
    good_days(story)
    bad_days(story)
    better_days(story)
    sys.exit(0 if ended_well(story) else 1)


if __name__ == "__main__":
    main()
