"""Conversations for tests to begin with."""

from __future__ import annotations

import pytest

from sharestate import KAFKA_4_3
from tests.support.client import Client


@pytest.fixture
def client() -> Client:
    """A conversation under kafka-4.3, without a share partition."""
    return Client()


@pytest.fixture
def healed() -> Client:
    """The same under kafka-4.3-healed."""
    return Client(KAFKA_4_3.healed)


@pytest.fixture
def active(client: Client) -> Client:
    """A conversation whose share partition is active, with locks of one second."""
    client.ask("open", lifecycle="ACTIVE", config={"record_lock_duration_ms": 1000})
    return client
