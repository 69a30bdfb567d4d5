"""Damaged inputs: each decoder reads them, or refuses them with an error of its own, within bounds of memory."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.fuzz.decoders import DECODERS, Decoder
from tests.fuzz.run import bounded_memory, failure, failures

INPUTS: Final = 20_000
"""``make fuzz`` tries a million."""

SECURITY: Final = Path(__file__).parents[2] / "SECURITY.md"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="how much memory a process has is read from /proc")

every_decoder = pytest.mark.parametrize("name", DECODERS)


@every_decoder
def test_whatever_comes_is_read_or_refused(name: str) -> None:
    """The same inputs each time, most of them nearly right; a failure says how to try its input again."""
    with bounded_memory():
        failed = next(failures(name, 0, range(INPUTS // DECODERS[name].cost)), None)

    assert failed is None, str(failed)


@every_decoder
def test_the_samples_are_read(name: str) -> None:
    """Inputs are made of what is no damage: otherwise nothing but the first check would be tried."""
    decoder = DECODERS[name]
    for sample in decoder.samples():
        decoder.decode(sample)


@every_decoder
def test_enough_damage_is_read(name: str) -> None:
    """Some damaged inputs are read, and others refused: neither do all fail at once, nor is all damage harmless."""
    decoder = DECODERS[name]
    samples = decoder.samples()
    tried = 300 if decoder.cost == 1 else 60
    read = 0
    for number in range(tried):
        try:
            decoder.decode(decoder.mutate(Random(number), samples))  # noqa: S311 - a replayable choice
        except decoder.refusals:
            continue
        read += 1

    assert tried / 30 < read < tried * 2 / 3


def test_every_format_has_its_bounds_in_the_security_policy() -> None:
    """The table there and the decoders name the same formats."""
    rows = [line.split(" | ") for line in SECURITY.read_text().splitlines() if line.startswith("| ")]

    assert {row[0].removeprefix("| ") for row in rows[1:]} == {*DECODERS}
    assert all(len(row) == 4 for row in rows)


def test_a_failure_says_how_to_try_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other error is a failure, and so is memory that is not there."""

    def decode(data: bytes) -> None:
        bytearray(2**40) if data else [].pop()

    monkeypatch.setitem(DECODERS, "planted", Decoder(list, lambda *_: b"", decode, ()))
    assert str(failure("planted", b"")).startswith("planted: IndexError: pop from empty list\n")
    with bounded_memory():
        failed = str(failure("planted", b"abc"))
    assert failed.startswith("planted: MemoryError")
    assert failed.endswith(f"--decoder planted --input {b64encode(b'abc').decode()}")
