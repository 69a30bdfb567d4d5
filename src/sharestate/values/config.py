"""The settings of a share group."""

from __future__ import annotations

from attrs import field, frozen

from sharestate.values.checks import instance, number
from sharestate.values.offset_reset import AutoOffsetReset


@frozen(kw_only=True)
class ShareConfig:
    """
    The settings of a group for its share partitions.

    Brokers keep the numbers within bounds of their own; here 0 is legal and taken as it is.

    Attributes:
        max_record_locks: ``share.partition.max.record.locks``: the number of records in flight at which no more are
            acquired. [records]
        delivery_count_limit: ``share.delivery.count.limit``: deliveries after which a record is archived instead of
            offered again; brokers allow 2..10. [deliveries]
        record_lock_duration_ms: ``share.record.lock.duration.ms``: the duration of an acquisition lock;
            brokers allow 1 s to 1 h. [ms]
        renew_acknowledge_enable: ``share.renew.acknowledge.enable``: whether members may renew acquisition locks
            (KIP-1222).
        auto_offset_reset: ``share.auto.offset.reset``: where to start if nothing is persisted.
        dead_letter_queue: Whether records that are rejected, or delivered as often as the group allows, go to a
            dead-letter queue before they are archived: ``errors.deadletterqueue.topic.name`` is set, and share.version
            is 2 or later (KIP-1191). Only under a profile that has one.

    Raises:
        MalformedInputError: A field is of the wrong type, or a number is negative or has more than 64 bits.

    Source:
        GroupConfig, ShareGroupConfig (Kafka 4.4.0).
    """

    max_record_locks: int = field(default=2000, validator=number(0))
    delivery_count_limit: int = field(default=5, validator=number(0))
    record_lock_duration_ms: int = field(default=30_000, validator=number(0))
    renew_acknowledge_enable: bool = field(default=True, validator=instance(bool))
    auto_offset_reset: AutoOffsetReset = field(
        default=AutoOffsetReset.latest(), validator=instance(AutoOffsetReset, such_as="AutoOffsetReset.earliest()")
    )
    dead_letter_queue: bool = field(default=False, validator=instance(bool))
