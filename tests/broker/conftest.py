"""
Brokers for tests, one release after the other.

They are skipped where no broker can be started, unless ``SHARESTATE_REQUIRE=broker`` asks for them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from tests.broker.kafka_broker import KafkaBroker
from tests.oracle.build import OracleUnavailableError

RELEASES: Final = ("4.3.1", "4.4.0")

RACK: Final = "rack-1"
"""Of the broker that tests share, as hashes of topics have it."""

SETTINGS: Final = MappingProxyType(
    {
        "broker.rack": RACK,
        "group.share.max.size": "10",
        "group.share.max.share.sessions": "12",
        "group.share.min.assignment.interval.ms": "0",
        "group.share.min.session.timeout.ms": "1000",
        "group.share.initialize.retry.interval.ms": "3000",
        "offsets.commit.timeout.ms": "3000",
    }
)
"""Of the broker that tests share: groups and sessions that soon are as many as may be, and times that soon are over."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Have one process for all tests of the broker of a release that they share, which so is started once.

    Tests with brokers of their own stay with those of their file and release, in any process.
    """
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        if isinstance(item, pytest.Function) and item.nodeid.startswith("tests/broker/"):
            given = item.callspec.params.values() if hasattr(item, "callspec") else ()
            release = next((release for release in RELEASES if release in given), "")
            shared = "broker" if "broker" in item.fixturenames else item.path.name
            item.add_marker(pytest.mark.xdist_group(f"{shared} {release}"))


@pytest.fixture(scope="session", params=RELEASES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that runs and logs its requests; tests with one release come before those with the next one."""
    with running(request.param, tmp_path_factory.mktemp(f"kafka-{request.param}"), SETTINGS) as broker:
        yield broker


@contextmanager
def running(
    kafka: str, home: Path, settings: Mapping[str, str] = MappingProxyType({}), request_level: str = "debug"
) -> Iterator[KafkaBroker]:
    """Start a broker with its data in *home*, and stop it in the end; skip the test where that is not possible."""
    with skipping():
        broker = KafkaBroker(kafka, home, settings, request_level)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@contextmanager
def skipping() -> Iterator[None]:
    """Skip the test if it turns out that no broker can be started here, unless that is asked for."""
    try:
        yield
    except OracleUnavailableError as error:
        if "broker" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))
