"""
Copies of nodes: everything that a node is made of, made once more, but for what its user has given it.

A copy is pickled and read again in memory, which knows how to follow circles; nothing from outside is ever read so.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, TypeVar

T = TypeVar("T")


class _Pickler(pickle.Pickler):
    """Writes read-only mappings too, and a name for each thing that is shared."""

    def __init__(self, file: BytesIO, shared: Mapping[str, object]) -> None:
        self.dispatch_table = {MappingProxyType: _reduce_mapping}  # first, for it is looked up at once
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._names = {id(thing): name for name, thing in shared.items() if thing is not None}

    def persistent_id(self, obj: object) -> str | None:
        """Return the name of what is shared; None for what is copied."""
        return self._names.get(id(obj))


class _Unpickler(pickle.Unpickler):
    """Reads what was written, with other things for those that were shared."""

    def __init__(self, file: BytesIO, replacements: Mapping[str, object]) -> None:
        super().__init__(file)
        self._replacements = replacements

    def persistent_load(self, name: str) -> object:
        """Return the thing that stands for *name* in the copy."""
        return self._replacements[name]


def _read_only(mapping: dict[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(mapping)


def _reduce_mapping(mapping: Mapping[Any, Any]) -> tuple[Callable[..., Mapping[Any, Any]], tuple[dict[Any, Any]]]:
    return _read_only, (dict(mapping),)


def copied(thing: T, shared: Mapping[str, object], replacements: Mapping[str, object]) -> T:
    """
    Return a copy of *thing*.

    Args:
        thing: What is copied, with all that it refers to.
        shared: What is not copied, by name.
        replacements: What the copy refers to instead, by the same names.

    Complexity:
        Linear in all that is copied.
    """
    file = BytesIO()
    _Pickler(file, shared).dump(thing)
    file.seek(0)
    copy: T = _Unpickler(file, replacements).load()
    return copy
