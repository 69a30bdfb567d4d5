"""
Share partitions beside each other: what clients know of each, and which of them an event is an affair of.

A bug that mixes up groups or partitions shows only if there is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from sharestate.testing.groups.events import ClientEvents
from sharestate.testing.groups.model import ClientModel
from sharestate.testing.groups.programs import Offsets
from sharestate.testing.programs import Event


@frozen(eq=False, kw_only=True)
class KnownPartition:
    """
    A share partition.

    Attributes:
        group: The number of its group.
        partition: The number of its partition.
        model: What clients know of it.
        events: What may happen to it.
        offsets: What programs call the offsets of its partition; groups share it.
    """

    group: int
    partition: int
    model: ClientModel
    events: ClientEvents
    offsets: Offsets


def _is_in_partition(place: KnownPartition, other: KnownPartition) -> bool:
    return place.partition == other.partition


def _is_in_group(place: KnownPartition, other: KnownPartition) -> bool:
    return place.group == other.group


def _is_any(_place: KnownPartition, _other: KnownPartition) -> bool:
    return True


CONCERNED: Final[Mapping[str, Callable[[KnownPartition, KnownPartition], bool]]] = {
    "produced": _is_in_partition,
    "transaction_ended": _is_in_partition,
    "deleted": _is_in_partition,
    "left": _is_in_group,
    "time_passed": _is_any,
    "failed_over": _is_any,
    "writes_changed": _is_any,
}
"""Which other share partitions are concerned by what is judged at one, by the method of the model; others are not."""


def known_partitions_of(share_partitions: Sequence[tuple[int, int]], events: ClientEvents) -> Sequence[KnownPartition]:
    """
    Return the share partitions of a run.

    Args:
        share_partitions: The numbers of the group and the partition of each.
        events: What may happen at the first, of which nothing has happened yet; it gets the others.
    """
    offsets = {partition: Offsets() for _, partition in share_partitions}
    others = [
        evolve(events, model=events.model.copy(), overlaps=False, others=()) for _ in range(len(share_partitions) - 1)
    ]
    if others:
        events = evolve(events, overlaps=False, others=others)
    return [
        KnownPartition(group=group, partition=partition, model=each.model, events=each, offsets=offsets[partition])
        for (group, partition), each in zip(share_partitions, [events, *others], strict=True)
    ]


def concerned(places: Sequence[KnownPartition], here: int, what: str) -> Iterator[ClientModel]:
    """Go through what is known of the other share partitions that are concerned by what is judged at one."""
    for number, place in enumerate(places):
        if number != here and what in CONCERNED and CONCERNED[what](places[here], place):
            yield place.model


def named_at(places: Sequence[KnownPartition], event: Event) -> Event:
    """Return an event with origins in the place of offsets, those of the share partition at which it happens."""
    match event:
        case ("group_starts", *_):
            return event
        case ("elsewhere", int(number), inner):
            return "elsewhere", number, places[number].offsets.named(inner)
        case _:
            return places[0].offsets.named(event)


def numbered_at(places: Sequence[KnownPartition], event: Event) -> Event | None:
    """Return an event with offsets in the place of origins; None if one of them is not there now."""
    match event:
        case ("group_starts", *_):
            return event
        case ("elsewhere", int(number), inner):
            numbered = places[number].offsets.numbered(inner) if number < len(places) else None
            return None if numbered is None else ("elsewhere", number, numbered)
        case _:
            return places[0].offsets.numbered(event)
