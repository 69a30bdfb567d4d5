"""What a share partition does otherwise than the rules say, what that means, and what to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sharestate.testing.partitions.events import Event

EXPLANATIONS: Final[Mapping[str, tuple[str, str]]] = {
    "acquired": (
        "A member gets what is available, as far as it wants and there is room, and that counts as a delivery.",
        "what is available after a write has failed, what counts as in flight, throttling, and the batches of a fetch",
    ),
    "status": (
        "An acknowledgement is refused, all of it, unless the member has acquired every record.",
        "who owns a record after a write has failed or a lock has expired, and what a refusal takes back",
    ),
    "writes": (
        "Each change that is to last goes out in one write, with the SPSO from before it.",
        "which changes are written, and when: acquisitions, renewals and moves of the log start are not",
    ),
    "records": (
        "States, delivery counts and owners are what the commands and the answers to writes have made of them.",
        "what a write that fails restores, what expired meanwhile, and what the log start has archived",
    ),
    "next fetch offset": (
        "The next fetch begins with the lowest record that is available or that the leader before has left unknown.",
        "which releases, expiries and failed writes make a record available again",
    ),
    "start offset": (
        "The SPSO passes what is terminal once its write has succeeded, and nothing else.",
        "when the SPSO moves: after the answer to a write, not with it",
    ),
    "dead letters": (
        "What is rejected, or delivered as often as it may be, goes to the dead-letter queue once that was persisted.",
        "which records go there and when, and what becomes of them when a write fails or the leader fails over",
    ),
    "room": (
        "Something can be acquired if it is available, or if fewer records are in flight than there are record locks.",
        "what counts as in flight: from the SPSO to the last record that was acquired, whatever lies between",
    ),
    "delivery complete count": (
        "A write says how many records at or above the SPSO are terminal, with what it carries itself.",
        "what counts and what does not: roll-backs, what lies below the SPSO, what is archived without a write",
    ),
    "second answer": (
        "A second answer to a write, or of the dead-letter queue, changes nothing; it may be refused.",
        "what finds by its number what is answered",
    ),
}
"""What should be, and what to look at, by what is compared."""


class SharePartitionDiffersError(AssertionError):
    """A share partition does not do what the rules say."""

    def __init__(self, what: str, wanted: object, got: object, so_far: Iterable[Event]) -> None:
        """Say *what* differs, and what led to it."""
        meaning, look_at = EXPLANATIONS[what]
        lines = [
            f"{what}: expected {wanted}, got {got}",
            f"  What should be: {meaning}",
            "  So far:",
            *(f"    {' '.join(map(str, event))}" for event in so_far),
            f"  Look at: {look_at}.",
        ]
        super().__init__("\n".join(lines))
        self.what = what


KAFKA_BUGS: Final[Mapping[str, str]] = {
    "B1'": "An acquisition throws if the window is full and the fetched data begins past what is in flight.",
    "B4": "Splitting a batch drops its pending write.",
    "B5": "An acknowledgement throws that reaches across the SPSO where nothing is in flight at or below that.",
    "B6": "Offsets below the SPSO may be acquired, if a batch from below the SPSO is still in flight.",
    "B7": "The SPSO does not advance if it lies past the end of a split batch.",
    "B8": "An acquisition throws if an aborted batch of the log begins before all that is in flight.",
    "B9b": "The SPSO may move back, when all that is in flight is done, or to the gap window.",
    "B10": "The SPSO waits before a natural gap for ever.",
    "B15": "A lock that has expired during a write that then fails changes the state in memory only.",
    "B17": "Terminal records inside the gap window wait until something beyond it is acquired.",
    "B22": "Aborted records below the SPSO count as complete.",
    "B23": "Records on their way to the dead-letter queue are archived without counting if their write fails.",
    "F4": "The SPSO does not advance when the log start archives the last records that are not terminal.",
    "F5": "The gap window may begin below the SPSO when the log start has moved into it.",
    "F6": "The SPSO does not advance when records that were compacted away are archived.",
    "F7": "The SPSO does not advance when records of aborted transactions are archived.",
}
"""The bugs of Kafka that an implementation may have too, by the ids that the documentation has: what Kafka does."""
