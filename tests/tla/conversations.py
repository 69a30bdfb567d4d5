"""
Conversations with a share partition as a module of TLA+, for ``spec/ShareConversation.tla``.

A request becomes steps of the specification: what was asked, with what was answered as far as it can be seen, and the
state after the last one of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

from attrs import field, frozen, mutable

STATES: Final[Mapping[int | str, str]] = {
    0: "Available",
    2: "Acknowledged",
    3: "Archiving",
    4: "Archived",
    "AVAILABLE": "Available",
    "ACQUIRED": "Acquired",
    "ACKNOWLEDGED": "Acknowledged",
    "ARCHIVING": "Archiving",
    "ARCHIVED": "Archived",
}
"""The states of records in the specification, by Kafka's ids and names."""

TYPES: Final = ("gap", "accept", "release", "reject")
"""The acknowledge types that change a record, by Kafka's ids; RENEW, which follows, changes its lock only."""

FUTURES: Final = frozenset({"acknowledge", "release", "initialize"})
"""Operations whose result may be an error of Kafka's, and no crash."""

DEFAULT_LIMIT: Final = 5
DEFAULT_LOCKS: Final = 200

Step: TypeAlias = dict[str, Any]
Exchange: TypeAlias = Mapping[str, Any]


class Reason(StrEnum):
    """Why the specification has not what happens in a conversation."""

    INITIALIZATION = "an initialization that fails, or takes time"
    MALFORMED = "malformed acknowledgements"
    NO_STATE = "a response without a state, or of several share partitions"
    NOT_STORED = "a state that is never stored"


class OutsideTheSpecificationError(Exception):
    """A conversation has something that the specification does not have."""

    def __init__(self, reason: Reason) -> None:
        """Say what it is."""
        super().__init__(reason)
        self.reason = reason


@frozen
class Conversation:
    """A conversation that was recorded."""

    name: str
    """The name of its file, without the ending."""

    steps: tuple[Step, ...]
    """What was done, step by step."""


def read(path: Path) -> Conversation:
    """
    Return the conversation of a file.

    Raises:
        OutsideTheSpecificationError: The specification has not what happens there.
    """
    with path.open(encoding="utf-8") as lines:
        exchanges = [(line["request"], line["response"]) for line in map(json.loads, lines) if "request" in line]
    return of_exchanges(path.stem, exchanges)


def of_exchanges(name: str, exchanges: Iterable[tuple[Exchange, Exchange]]) -> Conversation:
    """
    Return the conversation of requests and their responses.

    Raises:
        OutsideTheSpecificationError: The specification has not what happens there.
    """
    return Conversation(name, tuple(_Steps().of(exchanges)))


@mutable
class _Steps:
    """The steps of one conversation, and what has to be remembered between its requests."""

    lifecycle: str = "EMPTY"
    batches: list[Any] = field(factory=list)
    """The in-flight batches after the last response."""

    opened: dict[str, Any] = field(factory=dict)
    standing: dict[int, list[Any]] = field(factory=dict)
    """By their numbers, the batches of writes whose changes stand: those of locks and of the dead-letter queue."""

    letters: dict[int, list[int]] = field(factory=dict)
    """By their numbers, the offsets of requests that the dead-letter queue has not answered."""

    def of(self, exchanges: Iterable[tuple[Exchange, Exchange]]) -> Iterator[Step]:
        for request, response in exchanges:
            op = request["op"]
            steps = getattr(self, f"_{op}")(request, response)
            state = response.get("state")
            if state is None or request.get("key"):
                raise OutsideTheSpecificationError(Reason.NO_STATE)
            result = response.get("result")
            if (
                isinstance(result, dict)
                and "exception" in result
                and op not in {"acknowledge", "release", "initialize"}
            ):
                return  # a crash of Kafka's class, which no specification has
            steps = [*self._split(state), *steps] or [{"op": "nothing"}]
            for step in steps[:-1]:
                yield {**step, "seen": []}
            yield {**steps[-1], "seen": {**state, "letters": sorted(chain.from_iterable(self.letters.values()))}}
            self.lifecycle, self.batches = state["lifecycle"], state["batches"]
            if self.lifecycle == "FAILED":
                return

    def _split(self, state: Exchange) -> list[Step]:
        """A batch that is split gets new locks, though the lock of the batch had expired (rule 1.7)."""
        lapsed = {o for o, cell in _cells(self.batches) if "x" in cell[4]}
        running = {o for o, cell in _cells(state["batches"]) if "o" in cell[4] and "x" not in cell[4]}
        return [{"op": "split", "offsets": _Set(sorted(lapsed & running))}] if lapsed & running else []

    def _nothing(self, _: object, __: object) -> list[Step]:
        return []

    _timers = _lock_fetch = _unlock_fetch = _fence = _lookup = _state = _nothing
    _default_answer = _default_dlq_answer = _nothing

    def _open(self, request: Mapping[str, Any], _: object) -> list[Step]:
        self.opened, self.standing, self.letters = request.get("config", {}), {}, {}
        (step,) = self._configure({"config": {}}, _)
        return [{**step, "op": "open"}]

    def _configure(self, request: Mapping[str, Any], _: object) -> list[Step]:
        config = {**self.opened, **({"dlq_topic": None} if request["config"] is None else request["config"])}
        settings = {
            "limit": config.get("delivery_count_limit", DEFAULT_LIMIT),
            "locks": config.get("max_record_locks", DEFAULT_LOCKS),
            "queue": bool(config.get("dlq_topic")) and config.get("dlq_supported", True),
        }
        return [{"op": "configure", "settings": settings}]

    def _initialize(self, request: Mapping[str, Any], response: Mapping[str, Any]) -> list[Step]:
        if self.lifecycle == "ACTIVE":
            return []
        if response["result"].get("status") != "ok":
            raise OutsideTheSpecificationError(Reason.INITIALIZATION)
        answer = request.get("answer", {})
        if not isinstance(answer, dict):
            answer = {}
        if "topics" in answer:  # the long form of a right answer
            answer = answer["topics"][0]["partitions"][0]["answer"]
        batches = answer.get("state_batches", [])
        start = answer.get("start_offset", -1)
        if start < 0:
            if batches:
                raise OutsideTheSpecificationError(Reason.NOT_STORED)
            start = response["state"]["start_offset"]
        if not {state for _, _, state, _ in batches} <= STATES.keys():
            raise OutsideTheSpecificationError(Reason.NOT_STORED)
        stored = [[first, last, {"state": STATES[state], "count": count}] for first, last, state, count in batches]
        load = {"op": "load", "start": start, "batches": _pairs(batches), "stored": stored}
        return [load, *self._followed(response["events"])]

    def _next_fetch_offset(self, _: object, response: Mapping[str, Any]) -> list[Step]:
        return [{"op": "next offset", "result": response["result"]}]

    def _can_acquire(self, _: object, response: Mapping[str, Any]) -> list[Step]:
        return [{"op": "can acquire", "result": response["result"]}]

    def _acquire(self, request: Mapping[str, Any], response: Mapping[str, Any]) -> list[Step]:
        if self.lifecycle != "ACTIVE" or not request["batches"] or request["max_records"] <= 0:
            return []
        result, state = response["result"], response["state"]
        if "acquired" not in result:
            return []
        before = set(_offsets(self.batches))
        rest = [
            o
            for o, (name, count, *_) in _cells(state["batches"])
            if o not in before and name == "AVAILABLE" and count == 0
        ]
        is_filtered = request.get("isolation") == "read_committed" and request.get("aborted")
        return [
            {
                "op": "acquire",
                "member": request["member"],
                "from": request["fetch_offset"],
                "fetched": _pairs(request["batches"]),
                "aborted": _pairs(_aborted(request)) if is_filtered else _Set(),
                "rest": _Set(rest),
                "cuts": _Set(batch[0] for batch in state["batches"]),
                "result": _Set(o for first, last, _ in result["acquired"] for o in range(first, last + 1)),
            }
        ]

    def _acknowledge(self, request: Mapping[str, Any], response: Mapping[str, Any]) -> list[Step]:
        types: dict[int, str] = {}
        for first, last, given in request["batches"]:
            if not given:
                raise OutsideTheSpecificationError(Reason.MALFORMED)
            each = given if len(given) > 1 else [given[0]] * (last - first + 1)
            types |= {first + i: TYPES[type_] for i, type_ in enumerate(each) if type_ < len(TYPES)}
        return self._written(response, {"op": "acknowledge", "member": request["member"], "types": types})

    def _release(self, request: Mapping[str, Any], response: Mapping[str, Any]) -> list[Step]:
        return self._written(response, {"op": "release", "member": request["member"]})

    def _written(self, response: Mapping[str, Any], step: Step) -> list[Step]:
        first = next((place for place, (kind, *_) in enumerate(response["events"]) if kind == "write"), None)
        if first is None:
            return []
        _, write, answer = response["events"][first]
        return [
            {**step, "write": write["write"] + 1, "sent": _sent(write)},
            *self._answered(write["write"], answer),
            *self._followed(response["events"][first + 1 :]),
        ]

    def _answered(self, write: int, answer: object) -> list[Step]:
        if answer == "hold":
            return []
        if write in self.standing:
            archiving = [batch for batch in self.standing[write] if STATES[batch[2]] == "Archiving"]
            return [{"op": "settle", "letters": _Set(_offsets(archiving))}]
        return [{"op": "commit" if answer == "ok" else "roll back", "write": write + 1}]

    def _advance(self, _: object, response: Mapping[str, Any]) -> list[Step]:
        lapsed = {o for o, cell in _cells(response["state"]["batches"]) if "x" in cell[4]}
        lapsed -= {o for o, cell in _cells(self.batches) if "x" in cell[4]}
        steps: list[Step] = [{"op": "lapse", "offsets": _Set(lapsed)}] if lapsed else []
        return steps + self._followed(response["events"])

    _fire_lock = _advance  # the specification has no clock: a lock may expire at any time

    def _followed(self, events: Iterable[Any], answered: bool = False) -> list[Step]:  # noqa: FBT001, FBT002 - of events
        """
        Return the steps of what has followed a request by itself.

        A write is that of dead letters if their queue was the last to answer, or has with *answered*; else a lock has
        expired, perhaps as it was due when a write failed.
        """
        steps: list[Step] = []
        for kind, *event in events:
            if kind == "dlq":
                answered = self._handed_over(*event)
            elif kind == "write":
                write, answer = event
                self.standing[write["write"]] = write["state_batches"]
                offsets = _Set(_offsets(write["state_batches"]))
                steps.append({"op": "letters" if answered else "expire", "offsets": offsets, "sent": _sent(write)})
                steps += self._answered(write["write"], answer)
                answered = False
        return steps

    def _handed_over(self, letter: Mapping[str, Any], answer: object) -> bool:
        """Return whether the dead-letter queue has answered; one that throws never does."""
        is_answered = answer != "hold" and not (isinstance(answer, dict) and "throws" in answer)
        if not is_answered:
            self.letters[letter["dlq"]] = list(range(letter["first"], letter["last"] + 1))
        return is_answered

    def _complete(self, request: Mapping[str, Any], response: Mapping[str, Any]) -> list[Step]:
        if "dlq" in request:
            self.letters.pop(request["dlq"], None)
            return self._followed(response["events"], answered=True)
        if not isinstance(request.get("write"), int):
            raise OutsideTheSpecificationError(Reason.INITIALIZATION)
        return [*self._answered(request["write"], request["answer"]), *self._followed(response["events"])]

    def _log_start(self, request: Mapping[str, Any], _: object) -> list[Step]:
        return [{"op": "log start", "offset": request["offset"]}]


def _sent(write: Mapping[str, Any]) -> Step:
    records = [[b[0], b[1], {"state": STATES[b[2]], "count": b[3]}] for b in write["state_batches"]]
    return {"start": write["start_offset"], "complete": write["delivery_complete_count"], "records": records}


def _offsets(batches: Iterable[Any]) -> Iterator[int]:
    return (o for first, last, *_ in batches for o in range(first, last + 1))


def _cells(batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield each offset in flight with its cell."""
    for first, last, content, *split in batches:
        for low, high, cell in content if split else [(first, last, content)]:
            yield from ((o, cell) for o in range(low, high + 1))


def _aborted(request: Mapping[str, Any]) -> list[Any]:
    """Return the fetched batches of aborted transactions (rule 7.10, step 1)."""
    waiting = sorted(request["aborted"], key=lambda transaction: transaction[1])
    aborting: set[int] = set()
    found = []
    for first, last, *rest in request["batches"]:
        attributes = rest[0] if rest else {}
        producer = attributes.get("producer_id", -1)
        if producer < 0:
            continue
        while waiting and waiting[0][1] <= last:
            aborting.add(waiting.pop(0)[0])
        if attributes.get("control") == "ABORT":
            aborting.discard(producer)
        elif attributes.get("control") is None and attributes.get("transactional") and producer in aborting:
            found.append((first, last))
    return found


class _Set(tuple[Any, ...]):
    """A set of TLA+; other sequences are sequences there."""

    __slots__ = ()


def _pairs(batches: Iterable[Any]) -> _Set:
    return _Set((first, last) for first, last, *_ in batches)


# ---- text


def module(conversations: Iterable[Conversation]) -> str:
    """Return the module Conversations."""
    texts = [f"    \\* {each.name}\n    <<{', '.join(_step(step) for step in each.steps)}>>" for each in conversations]
    return "\n".join(
        [
            "---- MODULE Conversations ----",
            "EXTENDS Integers, Sequences",
            "(* A function of offsets, from runs <<first, last, value>>. *)",
            "Spread(runs) == [o \\in UNION {runs[i][1]..runs[i][2] : i \\in DOMAIN runs} |->",
            "    runs[CHOOSE i \\in DOMAIN runs : runs[i][1] <= o /\\ o <= runs[i][2]][3]]",
            "Conversations == <<",
            ",\n".join(texts),
            ">>",
            "====",
            "",
        ]
    )


def _step(step: Step) -> str:
    step = dict(step)
    if "stored" in step:
        step["stored"] = _Runs(step["stored"])
    if "types" in step:
        step["types"] = _Runs([o, o, type_] for o, type_ in step["types"].items())
    if "sent" in step:
        step["sent"] = {**step["sent"], "records": _Runs(step["sent"]["records"])}
    if step["seen"]:
        step["seen"] = _seen(step["seen"])
    return _text(step)


def _seen(state: Mapping[str, Any]) -> Step:
    gap = state["internal"]["gap"]
    return {
        "spso": state["start_offset"],
        "speo": state["end_offset"],
        "complete": state["delivery_complete_count"],
        "find": state["internal"]["find_next"],
        "gap": {"first": gap[0], "last": gap[1]} if gap else {"first": -1, "last": -1},
        "batches": _pairs(state["batches"]),
        "letters": _Set(state["letters"]),
        "records": _Runs([o, o, _record(cell)] for o, cell in _cells(state["batches"])),
    }


def _record(cell: Any) -> Step:  # noqa: ANN401 - JSON
    state, count, member, _, flags = cell
    seen = {"state": STATES.get(state, state), "count": count, "owner": member}
    return {**seen, "pending": "o" in flags, "lapsed": "x" in flags, "settled": {"o", "t"} <= set(flags)}


class _Runs(tuple[Any, ...]):
    """Values of runs of offsets, which become a function."""

    __slots__ = ()


def _text(value: Any) -> str:  # noqa: ANN401 - any value of a step
    match value:
        case bool():
            text = str(value).upper()
        case int() | str():
            text = json.dumps(value)
        case dict():
            text = "[" + ", ".join(f"{key} |-> {_text(item)}" for key, item in value.items()) + "]"
        case _Set():
            text = "{" + ", ".join(map(_text, value)) + "}"
        case _Runs():
            text = f"Spread(<<{', '.join(map(_text, _joined(value)))}>>)"
        case _:
            text = f"<<{', '.join(map(_text, value))}>>"
    return text


def _joined(runs: Iterable[Any]) -> list[Any]:
    """Join neighboring runs of the same value."""
    joined: list[Any] = []
    for first, last, value in runs:
        if joined and joined[-1][1] == first - 1 and joined[-1][2] == value:
            joined[-1] = [joined[-1][0], last, value]
        else:
            joined.append([first, last, value])
    return joined
