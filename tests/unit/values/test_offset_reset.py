"""The strategy of ``share.auto.offset.reset`` as it stands in a group's configuration."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sharestate import AutoOffsetReset, MalformedInputError
from sharestate.values.offset_reset import read_auto_offset_reset


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        (None, AutoOffsetReset.latest()),
        ("latest", AutoOffsetReset.latest()),
        ("earliest", AutoOffsetReset.earliest()),
        ("by_duration:P1DT2H", AutoOffsetReset.by_duration(timedelta(days=1, hours=2))),
        ("by_duration:PT0.25S", AutoOffsetReset.by_duration(timedelta(milliseconds=250))),
        ("by_duration:PT90S", AutoOffsetReset.by_duration(timedelta(seconds=90))),
        ("by_duration:P1DT-1H", AutoOffsetReset.by_duration(timedelta(hours=23))),
        ("by_duration:-PT-5S", AutoOffsetReset.by_duration(timedelta(seconds=5))),
        ("by_duration:+pt+1,5s", AutoOffsetReset.by_duration(timedelta(seconds=1.5))),
        ("by_duration:PT2.S", AutoOffsetReset.by_duration(timedelta(seconds=2))),
    ],
)
def test_a_strategy_is_read_and_written(text: str | None, reset: AutoOffsetReset) -> None:
    """What is read is the strategy, and what it is written as is read as the same."""
    assert read_auto_offset_reset(text, "") == reset
    assert read_auto_offset_reset(str(reset), "") == reset


@pytest.mark.parametrize(
    "text",
    [
        *(3, "sometimes", "by_duration:1h", "by_duration:P", "by_duration:P9999999999D"),
        *("by_duration:PT-5S", "by_duration:-PT5S", "by_duration:PT0.1234567890S"),
    ],
)
def test_no_strategy_is_refused(text: object) -> None:
    """What is no strategy is refused at its place."""
    with pytest.raises(MalformedInputError) as caught:
        read_auto_offset_reset(text, "config.reset")

    assert caught.value.field == "config.reset"
