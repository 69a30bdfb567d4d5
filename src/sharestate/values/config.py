"""The settings of a share group: what its share partitions take, and what its coordinator takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from attrs import field, frozen

from sharestate.values.checks import instance, number
from sharestate.values.config_keys import RELEASES
from sharestate.values.effective_configs import effective_configs
from sharestate.values.offset_reset import AutoOffsetReset, read_auto_offset_reset

_LOCKS: Final = "share.partition.max.record.locks"
_LIMIT: Final = "share.delivery.count.limit"


@frozen(kw_only=True)
class ShareConfig:
    """
    The settings of a group for its share partitions.

    Brokers keep the numbers within bounds of their own; here 0 is legal and taken as it is. ``from_kafka`` has brokers'
    bounds.

    >>> ShareConfig.from_kafka({"group.share.delivery.count.limit": "7", "share.record.lock.duration.ms": "45000"})
    ShareConfig(max_record_locks=2000, delivery_count_limit=7, record_lock_duration_ms=45000, ...)

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

    @classmethod
    def from_kafka(cls, settings: Mapping[str, str], *, release: str = RELEASES[-1], is_loaded: bool = False) -> Self:
        """
        Return the settings that a broker has for a group.

        Args:
            settings: The broker's settings and the group's, by Kafka's names, as texts.
            release: The broker's release, such as ``"4.3.1"``, or its line: ``"4.3"``.
            is_loaded: Whether a broker finds the group's settings in the metadata, and moves into its bounds what is
                outside (from 4.3 on); else they are refused as a controller refuses them.

        Raises:
            InvalidConfigurationError: As ``effective_configs`` raises it.
            MalformedInputError: Likewise.
        """
        values: Mapping[str, Any] = effective_configs(settings, release=release, is_loaded=is_loaded)
        # 4.2 has these two for brokers only, and lets members of all groups renew.
        of_brokers = {name: values[f"group.{name}"] for name in (_LOCKS, _LIMIT)}
        of_group = {**of_brokers, **values}
        return cls(
            max_record_locks=of_group[_LOCKS],
            delivery_count_limit=of_group[_LIMIT],
            record_lock_duration_ms=values["share.record.lock.duration.ms"],
            renew_acknowledge_enable=values.get("share.renew.acknowledge.enable", True),
            auto_offset_reset=read_auto_offset_reset(values["share.auto.offset.reset"], "share.auto.offset.reset"),
            dead_letter_queue=bool(values.get("errors.deadletterqueue.topic.name")),
        )


@frozen(kw_only=True)
class GroupCoordinatorConfig:
    """
    The settings of a group for its coordinator, and those of the broker's share sessions.

    >>> GroupCoordinatorConfig.from_kafka({"share.heartbeat.interval.ms": "6000"}).heartbeat_interval_ms
    6000

    Attributes:
        session_timeout_ms: ``share.session.timeout.ms``: the time without a heartbeat after which a member is removed.
            [ms]
        heartbeat_interval_ms: ``share.heartbeat.interval.ms``: the time between heartbeats, from each answer.
            [ms]
        assignment_interval_ms: ``share.assignment.interval.ms``: the shortest time between two target assignments; 0
            in Kafka 4.2, which has no such setting. [ms]
        max_size: ``group.share.max.size``: the number of members at which no more may join. [members]
        assignor: ``group.share.assignors``: the name of the assignor, or its class; brokers take exactly one.
        initialize_retry_interval_ms: ``group.share.initialize.retry.interval.ms``: the time after which the state of a
            share partition is initialized again if nothing was heard of it; at least ``offsets.commit.timeout.ms``.
            [ms]
        max_share_sessions: ``group.share.max.share.sessions``: the number of share sessions at which a broker opens no
            more. [sessions]

    Raises:
        MalformedInputError: A field is of the wrong type or out of bounds.

    Source:
        GroupCoordinatorConfig, GroupConfig, ShareGroupConfig (Kafka 4.4.0).
    """

    session_timeout_ms: int = field(default=45_000, validator=number(1))
    heartbeat_interval_ms: int = field(default=5_000, validator=number(1))
    assignment_interval_ms: int = field(default=1_000, validator=number(0))
    max_size: int = field(default=200, validator=number(1))
    assignor: str = field(default="simple", validator=instance(str))
    initialize_retry_interval_ms: int = field(default=30_000, validator=number(1))
    max_share_sessions: int = field(default=2_000, validator=number(1))

    @classmethod
    def from_kafka(cls, settings: Mapping[str, str], *, release: str = RELEASES[-1], is_loaded: bool = False) -> Self:
        """
        Return the settings that a group's coordinator has for it; arguments and errors as for ``ShareConfig``.

        Raises:
            InvalidConfigurationError: As ``effective_configs`` raises it.
            MalformedInputError: Likewise.
        """
        values: Mapping[str, Any] = effective_configs(settings, release=release, is_loaded=is_loaded)
        return cls(
            session_timeout_ms=values["share.session.timeout.ms"],
            heartbeat_interval_ms=values["share.heartbeat.interval.ms"],
            assignment_interval_ms=values.get("share.assignment.interval.ms", 0),
            max_size=values["group.share.max.size"],
            assignor=values["group.share.assignors"][0],
            initialize_retry_interval_ms=values["group.share.initialize.retry.interval.ms"],
            max_share_sessions=values["group.share.max.share.sessions"],
        )
