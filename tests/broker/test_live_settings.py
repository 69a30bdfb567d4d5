"""The settings of groups, asked of a live cluster."""

from __future__ import annotations

import pytest

from sharestate.broker_log.live_settings import LiveSettings
from sharestate.errors import ErrorCode, ExternalError, InvalidConfigurationError
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import configure

pytestmark = pytest.mark.broker

DEFAULTS = {
    "auto_offset_reset": "latest",
    "delivery_count_limit": 5,
    "isolation": "read_uncommitted",
    "max_record_locks": 2000,
    "record_lock_duration_ms": 30_000,
    "renew_acknowledge_enable": True,
}


def test_a_group_has_what_it_was_given_and_the_brokers_defaults(broker: KafkaBroker) -> None:
    """Also one that does not exist has settings: the defaults of the broker that is asked."""
    configure(broker, "given", {"share.isolation.level": "read_committed", "share.record.lock.duration.ms": "1000"})
    live = LiveSettings(broker.address)

    given, other = live.of("given"), live.of("nobody knows it")

    assert {field: other[field] for field in DEFAULTS} == DEFAULTS
    assert {field: given[field] for field in DEFAULTS} == {
        **DEFAULTS,
        "auto_offset_reset": "earliest",
        "isolation": "read_committed",
        "record_lock_duration_ms": 1000,
    }


def test_a_cluster_that_is_not_there_is_an_error() -> None:
    """It says which cluster, and what Kafka calls it."""
    with pytest.raises(ExternalError, match=r"127\.0\.0\.1:1: ") as caught:
        LiveSettings("127.0.0.1:1", timeout_s=1).of("g")
    assert caught.value.code in {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION}

    with pytest.raises(InvalidConfigurationError, match=r"no\.such\.setting"):
        LiveSettings("127.0.0.1:1", {"no.such.setting": "1"})
