"""Damaged inputs: each decoder reads them, or refuses them with an error of its own, within bounds of memory."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.fuzz.decoders import DECODERS, Decoder
from tests.fuzz.run import bounded_memory, failure, failures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

INPUTS: Final = 20_000
"""``make fuzz`` tries a million."""

SECURITY: Final = Path(__file__).parents[2] / "SECURITY.md"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="how much memory a process has is read from /proc")

every_decoder = pytest.mark.parametrize("name", DECODERS)


@every_decoder
def test_whatever_comes_is_read_or_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The same inputs each time, most of them nearly right; a failure says how to try its input again.

    Of those that are nearly right some are read, and others refused: neither do all fail at once, nor is all damage
    harmless.
    """
    nearly_right, read = 0, 0
    damaged = b""
    decoder = DECODERS[name]

    def mutate(random: Random, samples: Sequence[bytes]) -> bytes:
        nonlocal nearly_right, damaged
        nearly_right += 1
        damaged = decoder.mutate(random, samples)
        return damaged

    def decode(data: bytes) -> None:
        nonlocal read
        decoder.decode(data)
        read += data is damaged

    monkeypatch.setitem(DECODERS, name, decoder._replace(mutate=mutate, decode=decode))
    with bounded_memory():
        failed = next(failures(name, 0, range(INPUTS // decoder.cost)), None)

    assert failed is None, str(failed)
    assert nearly_right / 30 < read < nearly_right * 2 / 3


@every_decoder
def test_the_samples_are_read(name: str) -> None:
    """Inputs are made of what is no damage: otherwise nothing but the first check would be tried."""
    decoder = DECODERS[name]
    for sample in decoder.samples():
        decoder.decode(sample)


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
