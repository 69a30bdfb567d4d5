"""
Brokers for tests, one release after the other.

They are skipped where no broker can be started, unless ``SHARESTATE_REQUIRE=broker`` asks for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.broker.kafka_broker import KafkaBroker
from tests.oracle.build import OracleUnavailableError


@pytest.fixture(scope="session", params=["4.3.1", "4.4.0"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that runs; there is one at a time, as pytest orders tests by the parameters of session fixtures."""
    try:
        broker = KafkaBroker(request.param, tmp_path_factory.mktemp(f"kafka-{request.param}"))
    except OracleUnavailableError as error:
        if "broker" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
