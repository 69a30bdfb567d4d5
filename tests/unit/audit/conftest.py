"""What tests of recorded clients share."""

from __future__ import annotations

import pytest

from sharestate.audit.recorder import Recorder
from tests.support.recorded_clients import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all recorders."""
    clock = Clock()
    monkeypatch.setattr(Recorder, "now_ms", lambda _: clock.ms)
    return clock
