"""
What clients of a share group can rely on, as data: each guarantee in one sentence, and where to look if it is broken.

They say only what a client can see; KIP-932 leaves the rest open.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Self


class Guarantee(StrEnum):
    """
    A guarantee of share groups to their clients; ``sentence`` says what it means, and ``look_at`` what may break it.

    >>> print(Guarantee.ONE_OWNER, "-", Guarantee.ONE_OWNER.sentence)
    one_owner - A record is acquired by one member at a time.

    Source:
        KIP-932, "In-flight records", "Acknowledgement", "Reading transactional records".
    """

    sentence: str
    look_at: str

    def __new__(cls, name: str, sentence: str, look_at: str) -> Self:
        """Return the member; its value is its name alone."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.sentence = sentence
        member.look_at = look_at
        return member

    ONE_OWNER = (
        "one_owner",
        "A record is acquired by one member at a time.",
        "whether a fetch skips what is acquired, and whether anything ends a lock before its deadline",
    )
    NO_REPEATS = (
        "no_repeats",
        "A response names no offset twice.",
        "how the ranges of a response are put together",
    )
    RECORD_ORDER = (
        "record_order",
        "A response has the records of a partition in the order of their offsets.",
        "how the ranges of a response are put together, and what is appended to them later",
    )
    ONLY_PRODUCED = (
        "only_produced",
        "Only offsets that were produced are delivered.",
        "the end of the log, and offsets that the log does not have, as after a compaction",
    )
    NO_CONTROL_RECORDS = (
        "no_control_records",
        "Members get no transaction markers.",
        "whether control records are taken out of a response",
    )
    NOTHING_DELETED = (
        "nothing_deleted",
        "Nothing below the log start offset is delivered, but what shares a batch of the log with it.",
        "whether what was available below it is archived when the log start offset moves",
    )
    ONLY_COMMITTED = (
        "only_committed",
        "With read_committed a record is delivered only once its transaction is committed.",
        "the last stable offset, which bounds a fetch, and the list of aborted transactions, which filters it",
    )
    ACCEPTED_IS_FINAL = (
        "accepted_is_final",
        "A record that was accepted is never delivered again.",
        "whether the acknowledgement was persisted before it was confirmed, and what a new leader reads",
    )
    REJECTED_IS_FINAL = (
        "rejected_is_final",
        "A record that was rejected is never delivered again.",
        "what REJECT (and GAP) make of a record, in memory and in the persisted state",
    )
    DELIVERY_LIMIT = (
        "delivery_limit",
        "A record is delivered group.share.delivery.count.limit times at most.",
        "what a release, an expired lock and a closed session do to a record whose delivery count is at the limit",
    )
    DELIVERY_COUNT = (
        "delivery_count",
        "Each delivery of a record counts one more; only a new leader may fall back to what was persisted.",
        "where the delivery count is raised, and whether a release or an expired lock persists it",
    )
    OWNER_MAY_ACKNOWLEDGE = (
        "owner_may_acknowledge",
        "A member may acknowledge what it has acquired until the lock expires.",
        "the deadline of the lock, and who is recorded as the owner",
    )
    ONLY_OWNER_MAY_ACKNOWLEDGE = (
        "only_owner_may_acknowledge",
        "An acknowledgement of a record that the member has not acquired, or not any more, is refused.",
        "whether the owner, the state and the deadline are checked for every record, and by a new leader too",
    )
    REFUSAL_CODE = (
        "refusal_code",
        "An acknowledgement is refused with INVALID_RECORD_STATE (121).",
        "the error code of the response; INVALID_REQUEST (42) is for records that were never acquired, or malformed",
    )
    RECORD_LOCKS = (
        "record_locks",
        "No more than max_record_locks records are acquired, rounded up to a batch of the log.",
        "the room that a fetch is given, and what counts as in flight",
    )
    RECORD_LIMIT = (
        "record_limit",
        "With acquire mode record_limit a fetch brings max_records records at most (KIP-1206).",
        "whether a batch that is larger than what is left of the limit is cut",
    )
    NOTHING_LOST = (
        "nothing_lost",
        "Every committed record is delivered until it is accepted or rejected, or the delivery limit is reached.",
        "what makes a record available again, how long locks last, and whether the next fetch offset goes back to it",
    )
    THROTTLED_REDELIVERY = (
        "throttled_redelivery",
        "Records that keep failing come again in ever smaller pieces of their batch (Kafka 4.2 and later).",
        "what a fetch takes of a batch that was delivered half as often as it may be, or more often",
    )
    LAST_DELIVERY_ALONE = (
        "last_delivery_alone",
        "A record comes alone when it comes for the last time (Kafka 4.2 and later).",
        "whether a fetch stops before and behind a record at its last delivery",
    )
    DELIVERY_ENDS = (
        "delivery_ends",
        "Once a member accepts all that it gets, it gets nothing more.",
        "whether the next fetch skips what was acknowledged",
    )


class GuaranteeBrokenError(AssertionError):
    """
    A guarantee does not hold.

    Attributes:
        guarantee: The guarantee.
        offset: The offset of the record that shows it; None if it is about no single record.
    """

    def __init__(
        self,
        guarantee: Guarantee,
        what: str,
        offset: int | None = None,
        life: Sequence[str] = (),
        others: Sequence[str] = (),
    ) -> None:
        """
        Say what has happened.

        Args:
            guarantee: The guarantee that does not hold.
            what: What has happened, in one sentence.
            offset: The offset of the record.
            life: What has happened to that record so far, one line for each event.
            others: What has happened besides, the last events, one line for each.
        """
        self.guarantee = guarantee
        self.offset = offset
        lines = [f"{guarantee}: {what}", f"  What should be: {guarantee.sentence}"]
        if life:
            lines += [f"  Offset {offset} so far:", *(f"    {event}" for event in life)]
        if others:
            lines += ["  Besides, last of all:", *(f"    {event}" for event in others)]
        lines.append(f"  Look at: {guarantee.look_at}.")
        super().__init__("\n".join(lines))
