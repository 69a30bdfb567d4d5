"""Settings of a group: their defaults, and what is refused."""

from datetime import timedelta
from typing import Any

import pytest
from attrs import evolve
from attrs.exceptions import FrozenInstanceError

from sharestate import (
    AutoOffsetReset,
    GroupCoordinatorConfig,
    InvalidConfigurationError,
    MalformedInputError,
    OffsetReset,
    ShareConfig,
)


def test_the_defaults_are_kafkas() -> None:
    """2000 records, 5 deliveries, 30 seconds, renewals, latest (ShareGroupConfig 4.3.1)."""
    config = ShareConfig()

    assert config == ShareConfig(
        max_record_locks=2000,
        delivery_count_limit=5,
        record_lock_duration_ms=30_000,
        renew_acknowledge_enable=True,
        auto_offset_reset=AutoOffsetReset.latest(),
    )


def test_settings_are_frozen_and_hashable() -> None:
    """Another setting makes another value."""
    config = ShareConfig()

    with pytest.raises(FrozenInstanceError):
        config.max_record_locks = 5  # type: ignore[misc]
    assert evolve(config, max_record_locks=5) != config
    assert hash(ShareConfig()) == hash(config)


@pytest.mark.parametrize("field", ["max_record_locks", "delivery_count_limit", "record_lock_duration_ms"])
def test_numbers_are_not_negative(field: str) -> None:
    """0 is legal; -1 and what the wire cannot carry are refused, and the field is named."""
    assert getattr(ShareConfig(**{field: 0}), field) == 0  # type: ignore[arg-type]
    for number in (-1, 2**63):
        with pytest.raises(MalformedInputError, match=f"expected an integer within 0..{2**63 - 1}, got") as refused:
            ShareConfig(**{field: number})  # type: ignore[arg-type]
        assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_record_locks", "5"),
        ("delivery_count_limit", 5.0),
        ("record_lock_duration_ms", None),
        ("renew_acknowledge_enable", 1),
        ("auto_offset_reset", "latest"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(field: str, value: object) -> None:
    """The field is named in the error."""
    with pytest.raises(MalformedInputError, match=r"expected .*, got") as refused:
        ShareConfig(**{field: value})  # type: ignore[arg-type]
    assert refused.value.field == field


def test_true_is_no_number() -> None:
    """A switch in the place of a number is refused."""
    with pytest.raises(MalformedInputError, match="got True"):
        ShareConfig(max_record_locks=True)


def test_a_reset_by_duration_says_how_far_back() -> None:
    """The duration goes with the strategy."""
    reset = AutoOffsetReset.by_duration(timedelta(hours=1))

    assert (reset.strategy.value, reset.duration) == ("by_duration", timedelta(hours=1))


@pytest.mark.parametrize(
    ("strategy", "duration"),
    [
        (OffsetReset.BY_DURATION, None),
        (OffsetReset.LATEST, timedelta(hours=1)),
        (OffsetReset.EARLIEST, timedelta(0)),
    ],
)
def test_a_duration_goes_with_by_duration_alone(strategy: OffsetReset, duration: timedelta | None) -> None:
    """A strategy without its duration, or one that has none with one, is refused."""
    with pytest.raises(MalformedInputError, match="a duration goes with by_duration and with nothing else") as refused:
        AutoOffsetReset(strategy, duration)
    assert refused.value.field == "duration"


@pytest.mark.parametrize("strategy", ["latest", None])
def test_a_strategy_is_one_of_three(strategy: Any) -> None:  # noqa: ANN401 - what a caller got wrong
    """Its name alone is no strategy."""
    with pytest.raises(MalformedInputError, match="expected OffsetReset") as refused:
        AutoOffsetReset(strategy)
    assert refused.value.field == "strategy"


def test_a_reset_goes_back_and_never_forward() -> None:
    """A negative duration is refused as it is made, as Kafka refuses it; zero is taken."""
    with pytest.raises(MalformedInputError, match=r"^duration: expected a duration that is not negative, got -1 day"):
        AutoOffsetReset.by_duration(timedelta(hours=-1))
    assert AutoOffsetReset.by_duration(timedelta(0)).duration == timedelta(0)


def test_a_reset_that_is_a_name_is_refused_with_what_to_pass() -> None:
    """The setting is no string here, and the message shows what it is."""
    with pytest.raises(MalformedInputError) as refused:
        ShareConfig(auto_offset_reset="earliest")  # type: ignore[arg-type]
    assert str(refused.value) == (
        "auto_offset_reset: expected AutoOffsetReset, such as AutoOffsetReset.earliest(), got 'earliest'"
    )


def test_the_two_plain_resets_have_names() -> None:
    """The classmethods make the two strategies without a duration."""
    assert (AutoOffsetReset.latest().strategy, AutoOffsetReset.latest().duration) == (OffsetReset.LATEST, None)
    assert (AutoOffsetReset.earliest().strategy, AutoOffsetReset.earliest().duration) == (OffsetReset.EARLIEST, None)


def test_a_groups_settings_are_read_from_kafkas() -> None:
    """The group's stand before the broker's, which stand before Kafka's defaults."""
    config = ShareConfig.from_kafka(
        {
            "group.share.partition.max.record.locks": "200",
            "group.share.delivery.count.limit": "7",
            "share.delivery.count.limit": "3",
            "share.auto.offset.reset": "by_duration:PT1H",
            "share.renew.acknowledge.enable": "false",
            "errors.deadletterqueue.topic.name": "dlq.orders",
        }
    )

    assert config == ShareConfig(
        max_record_locks=200,
        delivery_count_limit=3,
        renew_acknowledge_enable=False,
        auto_offset_reset=AutoOffsetReset.by_duration(timedelta(hours=1)),
        dead_letter_queue=True,
    )


@pytest.mark.parametrize("release", ["4.2.1", "4.3.1", "4.4.0"])
def test_the_defaults_are_those_of_each_release(release: str) -> None:
    """Nothing given, nothing changed; but that 4.2 makes assignments at once."""
    assert ShareConfig.from_kafka({}, release=release) == ShareConfig()
    interval_ms = 0 if release == "4.2.1" else 1_000
    assert GroupCoordinatorConfig.from_kafka({}, release=release) == GroupCoordinatorConfig(
        assignment_interval_ms=interval_ms
    )


def test_4_2_has_two_settings_for_brokers_only() -> None:
    """The delivery count limit and the record locks are the broker's for all groups (KIP-1240 came with 4.3)."""
    settings = {"group.share.delivery.count.limit": "7", "group.share.partition.max.record.locks": "300"}

    config = ShareConfig.from_kafka(settings, release="4.2")

    assert (config.delivery_count_limit, config.max_record_locks) == (7, 300)


def test_a_coordinators_settings_are_read_from_kafkas() -> None:
    """A short interval for trying again is no shorter than a commit may take."""
    config = GroupCoordinatorConfig.from_kafka(
        {
            "group.share.session.timeout.ms": "50000",
            "share.session.timeout.ms": "60000",
            "share.heartbeat.interval.ms": "6000",
            "group.share.assignment.interval.ms": "2000",
            "group.share.max.size": "20",
            "group.share.assignors": "org.example.Sticky",
            "group.share.initialize.retry.interval.ms": "100",
            "group.share.max.share.sessions": "30",
        }
    )

    assert config == GroupCoordinatorConfig(
        session_timeout_ms=60_000,
        heartbeat_interval_ms=6_000,
        assignment_interval_ms=2_000,
        max_size=20,
        assignor="org.example.Sticky",
        initialize_retry_interval_ms=5_000,
        max_share_sessions=30,
    )


def test_a_loaded_group_is_moved_into_bounds_and_a_made_one_refused() -> None:
    """Both ways to read a group's settings are there for each value."""
    settings = {"share.heartbeat.interval.ms": "1", "share.record.lock.duration.ms": "1000"}

    assert GroupCoordinatorConfig.from_kafka(settings, is_loaded=True).heartbeat_interval_ms == 5_000
    assert ShareConfig.from_kafka(settings, is_loaded=True).record_lock_duration_ms == 15_000
    with pytest.raises(InvalidConfigurationError, match=r"share\.heartbeat\.interval\.ms must be in the range"):
        ShareConfig.from_kafka(settings)
