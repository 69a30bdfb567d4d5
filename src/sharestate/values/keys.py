"""Which share partition is meant."""

from __future__ import annotations

from attrs import field, frozen

from sharestate.values.checks import instance, number


@frozen(kw_only=True)
class SharePartitionKey:
    """
    A share group's view of one partition of a topic.

    Raises:
        MalformedInputError: A field is of the wrong type, or the partition is negative or has more than 32 bits.

    Source:
        SharePartitionKey (Kafka 4.3.1).
    """

    group_id: str = field(validator=instance(str))
    """The share group."""

    topic_id: str = field(validator=instance(str))
    """The topic's UUID, as Kafka prints it: 22 characters of URL-safe base64."""

    partition: int = field(validator=number(0, 2**31 - 1))
    """The partition's index."""

    def __str__(self) -> str:
        """Return the key as it stands in messages."""
        return f"{self.group_id}-{self.topic_id}-{self.partition}"
