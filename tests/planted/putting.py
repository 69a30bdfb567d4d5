"""
Putting an older rule of Kafka into the library, or leaving one out, to see that a search notices.

The function ``plant`` of each module in ``rules`` switches off one change that Kafka made between October 2025 and
4.3.1, or in the ``RELEASE`` that the module names.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen


@frozen
class Planted:
    """A change to the library that a search beside Kafka has to notice."""

    plant: Callable[[], None]
    """Makes it."""

    kafka: str
    """The release of Kafka beside which it shows."""


def adding_to(changes: dict[str, Planted], kafka: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Return a decorator that adds a change to *changes*, by its name; it shows beside the release *kafka*."""

    def add(plant: Callable[[], None]) -> Callable[[], None]:
        changes[plant.__name__] = Planted(plant, kafka)
        return plant

    return add


def put(owner: object, name: str, replacement: object) -> None:
    """
    Put *replacement* in the place of the attribute *name* of *owner*.

    Raises:
        AttributeError: There is no such attribute any more.
    """
    getattr(owner, name)
    setattr(owner, name, replacement)
