"""Conversations for tests to begin with."""

from __future__ import annotations

import pytest

from sharestate import KAFKA_4_3

from .speaker import Speaker


@pytest.fixture
def speaker() -> Speaker:
    """A conversation under kafka-4.3, without a share partition."""
    return Speaker()


@pytest.fixture
def healed() -> Speaker:
    """The same under kafka-4.3-healed."""
    return Speaker(KAFKA_4_3.healed)


@pytest.fixture
def active(speaker: Speaker) -> Speaker:
    """A conversation whose share partition is active, with locks of one second."""
    speaker.ask("open", lifecycle="ACTIVE", config={"record_lock_duration_ms": 1000})
    return speaker
