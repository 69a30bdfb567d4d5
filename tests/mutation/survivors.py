"""The mutants that may survive, each with its reason: ``survivors.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final, Literal

from attrs import field, frozen, validators

FILE: Final = Path(__file__).with_name("survivors.toml")


@frozen(kw_only=True)
class Survivor:
    """A mutant that no test can or need notice."""

    module: str
    """The file, below ``src/sharestate``."""
    definition: str
    """The qualified name of the innermost class or function, empty outside of one."""
    line: str
    """The line as it is, without its indentation."""
    change: str
    """What it becomes."""
    kind: Literal["equivalent", "harmless"] = field(validator=validators.in_(("equivalent", "harmless")))
    """Whether the behaviour is the same, or another one that nobody has to mind: time, memory, the words of a message."""
    reason: str = field(validator=validators.min_len(10))
    """Why."""


def survivors(file: Path = FILE) -> tuple[Survivor, ...]:
    """Return what *file* says."""
    return tuple(Survivor(**entry) for entry in tomllib.loads(file.read_text()).get("survivor", ()))
