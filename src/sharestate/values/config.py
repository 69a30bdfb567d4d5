"""What an administrator may set for a share group."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Final

from attrs import field, frozen
from attrs.validators import optional

from sharestate.values.checks import instance, number, refuse


class OffsetReset(Enum):
    """Where a share partition starts of which nothing is persisted."""

    LATEST = "latest"
    """At the end of the log: only what comes from now on."""

    EARLIEST = "earliest"
    """At the start of the log."""

    BY_DURATION = "by_duration"
    """At the first record that is not older than a given duration."""


@frozen
class AutoOffsetReset:
    """
    The strategy of ``share.auto.offset.reset``; the caller who knows the log follows it.

    >>> AutoOffsetReset(OffsetReset.BY_DURATION, timedelta(hours=1))
    AutoOffsetReset(strategy=<OffsetReset.BY_DURATION: 'by_duration'>, duration=datetime.timedelta(seconds=3600))

    Raises:
        MalformedInputError: A field is of the wrong type, or there is a duration without BY_DURATION, or none with it.

    Source:
        ShareGroupAutoOffsetResetStrategy (Kafka 4.3.1).
    """

    strategy: OffsetReset = field(validator=instance(OffsetReset))
    """Which of the three."""

    duration: timedelta | None = field(default=None, validator=optional(instance(timedelta)))
    """How far back, for BY_DURATION."""

    @duration.validator
    def _only_by_duration(self, _attribute: object, value: timedelta | None) -> None:
        if (value is not None) != (self.strategy is OffsetReset.BY_DURATION):
            refuse(
                f"a duration goes with by_duration and with nothing else: {self.strategy.value}, {value}", "duration"
            )


LATEST: Final = AutoOffsetReset(OffsetReset.LATEST)
"""Start at the end of the log."""

EARLIEST: Final = AutoOffsetReset(OffsetReset.EARLIEST)
"""Start at the start of the log."""


@frozen(kw_only=True)
class ShareConfig:
    """
    What a group's administrator may set for its share partitions.

    Brokers keep the numbers within bounds of their own; here 0 is legal and taken as it is.

    Raises:
        MalformedInputError: A field is of the wrong type, or a number is negative or has more than 64 bits.

    Source:
        GroupConfig, ShareGroupConfig (Kafka 4.3.1).
    """

    max_record_locks: int = field(default=2000, validator=number(0))
    """``share.partition.max.record.locks``: how many records may be in flight before no more are acquired. [records]"""

    delivery_count_limit: int = field(default=5, validator=number(0))
    """``share.delivery.count.limit``: deliveries after which a record is archived instead of offered again;
    brokers allow 2..10. [deliveries]"""

    record_lock_duration_ms: int = field(default=30_000, validator=number(0))
    """``share.record.lock.duration.ms``: how long a member holds what it acquired; brokers allow 1 s to 1 h. [ms]"""

    renew_acknowledge_enable: bool = field(default=True, validator=instance(bool))
    """``share.renew.acknowledge.enable``: whether members may renew acquisition locks (KIP-1222)."""

    auto_offset_reset: AutoOffsetReset = field(default=LATEST, validator=instance(AutoOffsetReset))
    """``share.auto.offset.reset``: where to start when nothing is persisted."""
