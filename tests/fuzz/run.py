"""Many inputs for a decoder, within bounds of memory; every one of them has a number, from which it is made again."""

from __future__ import annotations

import resource
from base64 import b64encode
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.fuzz.decoders import DECODERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MEMORY: Final = 2**29
"""The memory that a process may take beyond what it has, for inputs of a few kilobytes. [bytes]"""


class Failure(NamedTuple):
    """
    An input that was neither read nor refused as it should be.

    Attributes:
        decoder: The name of the decoder.
        input: The input.
        error: What it has raised, or how the process has ended.
    """

    decoder: str
    input: bytes
    error: str

    def __str__(self) -> str:
        """Return it with the command that tries it again."""
        encoded = b64encode(self.input).decode()
        return f"{self.decoder}: {self.error}\n  python -m tests.fuzz --decoder {self.decoder} --input {encoded}"


@contextmanager
def bounded_memory(size: int = MEMORY) -> Iterator[None]:
    """Return a context in which the process cannot take more than *size* bytes beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def failure(name: str, data: bytes) -> Failure | None:
    """Return how the decoder *name* fails with *data*; None if it reads it, or refuses it with an error of its own."""
    decoder = DECODERS[name]
    try:
        decoder.decode(data)
    except decoder.refusals:
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return Failure(name, data, f"{type(error).__name__}: {error}")
    return None


def failures(
    name: str, seed: int, numbers: Iterable[int], tell: Callable[[bytes], None] = lambda _: None
) -> Iterator[Failure]:
    """
    Yield the failures of a decoder.

    Args:
        name: The name of the decoder.
        seed: What all choices begin with.
        numbers: The numbers of the inputs.
        tell: Is told each input before it is tried.
    """
    decoder = DECODERS[name]
    samples = decoder.samples()
    random = Random()  # noqa: S311 - a replayable choice
    for number in numbers:
        random.seed(f"{seed}/{name}/{number}")
        data = decoder.input(samples, random)
        tell(data)
        if failed := failure(name, data):
            yield failed
