"""Sequences that are about single records: batches of the log do not matter, and holes there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from sharestate.testing.generator.mix import ORDINARY, STEPS, Mix
from sharestate.testing.generator.operations import seeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from sharestate.testing.generator.surroundings import Request, Response, Steps

PLAIN: Final = Mix(
    trouble=0,
    compaction=False,
    steps={**STEPS, "complete": 0, "configure": 0, "persister": 0, "query": 0, "take_over": 0, "time": 20},
)
"""What implementations can bear that have neither a persister to be scripted, nor settings that change."""

PLAIN_LIMIT: Final = 2
"""The delivery count limit of plain sequences: below 3, nothing is throttled (KAFKA-17541). [deliveries]"""


def rewritten(sequence: Steps[None], change: Callable[[Request], Request]) -> Steps[None]:
    """Return *sequence* with its requests as *change* returns them; the sequence sees the responses to those."""
    try:
        request = next(sequence)
        while True:
            response: Response = yield change(request)
            request = sequence.send(response)
    except StopIteration:
        return


def by_record(seed: int, mix: Mix = ORDINARY) -> Steps[None]:
    """
    Return the random sequence of *seed* over a log whose batches have one record each, and no holes.

    Every batch in flight has one record then, those of the persisted state included. A fetch begins with its offset,
    and what is acknowledged is named record by record.

    >>> request = next(by_record(3))
    >>> request["op"]
    'open'
    """
    return rewritten(seeded(seed, evolve(mix, compaction=False)), _in_single_records)


def plain(seed: int, mix: Mix = PLAIN) -> Steps[None]:
    """
    Return the random sequence of *seed* for an implementation that can do little.

    The log's batches have one record each. The group begins with offset 0 and a delivery count limit of 2; its
    persister is asked nothing else, and never fails.
    """
    return rewritten(by_record(seed, mix), _without_trouble)


def _without_trouble(request: Request) -> Request:
    match request["op"]:
        case "open":
            config = {**request["config"], "delivery_count_limit": PLAIN_LIMIT}
            return {**request, "lifecycle": "ACTIVE", "config": config}
        case "initialize":
            return {"op": "initialize"}
        case "configure":  # before an initialization: where it would look for its start
            return {"op": "state"}
        case _:
            return request


def _in_single_records(request: Request) -> Request:
    answer = request.get("answer")
    if isinstance(answer, dict) and "state_batches" in answer:
        request = {**request, "answer": {**answer, "state_batches": _singles(answer["state_batches"])}}
    if request["op"] == "acknowledge":
        return {**request, "batches": _each_record(request["batches"])}
    if request["op"] != "acquire":
        return request
    batches = [batch for batch in _singles(request["batches"]) if batch[0] >= request["fetch_offset"]]
    return {**request, "batches": batches, "mode": "batch_optimized", "batch_size": 1}


def _singles(batches: list[list[Any]]) -> list[list[Any]]:
    return [[offset, offset, *rest] for first, last, *rest in batches for offset in range(first, last + 1)]


def _each_record(batches: list[list[Any]]) -> list[list[Any]]:
    return [
        [offset, offset, [types[0 if len(types) == 1 else offset - first]]]
        for first, last, types in batches
        for offset in range(first, last + 1)
    ]
