"""Judging a share partition by the independent model of it that knows records alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import astuple

from sharestate.testing.protocol.always import demand
from sharestate.testing.record_model.in_flight import ALL_SETTINGS, Rules
from sharestate.testing.record_model.model import RecordModel
from sharestate.values.profiles import KipWritePolicy

if TYPE_CHECKING:
    from sharestate.testing.protocol.exchange import Exchange
    from sharestate.values.profiles import Profile


NO_LOCK: Final = -1
"""The deadline of a lock that is not scheduled any more."""


FAILED: Final = {"acknowledge": "failed", "release": "failed", "initialize": "refused"}
"""What the model calls an error that comes from elsewhere."""


QUEUE_SETTING: Final = "dead_letter_queue"

QUEUE_SETTINGS: Final = frozenset({"dlq_topic", "dlq_supported"})
"""What that is in the line protocol."""


def rules_of(profile: Profile) -> Rules:
    """
    Return what the model has to know of *profile*.

    Raises:
        ValueError: It has quirks, of which the model knows none.

    >>> from sharestate import KIP_932
    >>> rules_of(KIP_932).is_kip
    True
    """
    if profile.quirks:
        message = f"the model of single records knows no quirks, and {profile.name} has some: take its healed form"
        raise ValueError(message)
    is_kip = isinstance(profile.write_policy, KipWritePolicy)
    settings = profile.configurable | (QUEUE_SETTINGS if QUEUE_SETTING in profile.configurable else set())
    return Rules(changeable=ALL_SETTINGS & settings, has_dead_letters=profile.has_dead_letter_queue, is_kip=is_kip)


class RecordOracle:
    """
    An invariant over a sequence: every result, write and state is what `RecordModel` says.

    It knows ordinary sequences, and not what no broker sends (`WILD`). Give a new one to each sequence. Where a
    response shows no state or no events, these are not judged.

    >>> from sharestate import KAFKA_4_3
    >>> from sharestate.testing import InProcessServer, observe, seeded
    >>> conversation = observe(seeded(1), InProcessServer(KAFKA_4_3.healed), [RecordOracle(KAFKA_4_3.healed)])
    """

    def __init__(self, profile: Profile) -> None:
        """
        Judge by the rules of *profile*; the first request is ``open``.

        Raises:
            ValueError: The profile has quirks, of which the model knows none.
        """
        self._profile = profile
        self._rules = rules_of(profile)
        self._model = RecordModel(self._rules)

    def __repr__(self) -> str:
        """Return the call that makes it."""
        return f"RecordOracle({self._profile.name})"

    def __call__(self, exchange: Exchange) -> None:
        """
        Judge the next exchange.

        Raises:
            AssertionError: It is not what the model says.
            LookupError: The model knows no such request.
        """
        if exchange.op == "open":
            self._model = RecordModel(self._rules)
        result = self._model.run(exchange.request)
        if not _is_unsupported(exchange.result):
            _expect("result", result, _result(exchange))
        if exchange.response.get("events") is not None:
            self._expect_writes(exchange.writes)
            _expect("dead letters", list(map(astuple, self._model.letters)), list(map(_letter, exchange.dead_letters)))
        if exchange.response.get("state") is not None:
            for name, value in self._fields().items():
                _expect(name, value, exchange.after[name])
            _expect("batches", [(b.first, b.last, b.is_split) for b in self._model.batches()], _batches(exchange.after))
            self._expect_records(exchange)

    def _expect_writes(self, writes: list[dict[str, Any]]) -> None:
        if self._rules.is_kip:  # what the KIP's writes contain is more than what has changed
            _expect("writes", [write.number for write in self._model.writes], [write["write"] for write in writes])
            return
        wanted = [
            {
                "write": write.number,
                "start_offset": write.start_offset,
                "delivery_complete_count": write.complete,
                "records": write.records,
            }
            for write in self._model.writes
        ]
        _expect("writes", wanted, [_by_record(write) for write in writes])

    def _fields(self) -> dict[str, Any]:
        model = self._model
        return {
            "lifecycle": model.lifecycle,
            "start_offset": model.start,
            "end_offset": model.end,
            "delivery_complete_count": model.complete(),
            "state_epoch": model.state_epoch,
        }

    def _expect_records(self, exchange: Exchange) -> None:
        shown = exchange.records_after
        _expect("offsets in flight", sorted(self._model.records), sorted(shown))
        for offset, record in self._model.records.items():
            wanted = (record.state, record.count, record.member, record.deadline_ms, record.write is not None)
            got = shown[offset]
            deadline = None if got.lock_deadline_ms == NO_LOCK else got.lock_deadline_ms
            seen = (*got.visible, deadline, "o" in got.flags)
            demand(wanted == seen, "offset {}: the model says {}, got {}", offset, wanted, seen)


def _expect(what: str, wanted: object, got: object) -> None:
    demand(wanted == got, "{}: the model says {}, got {}", what, wanted, got)


def _is_unsupported(result: Any) -> bool:  # noqa: ANN401 - JSON
    return isinstance(result, dict) and "unsupported" in result


def _batches(state: dict[str, Any]) -> list[tuple[int, int, bool]]:
    return [(first, last, "per_offset" in form) for first, last, _, *form in state["batches"]]


def _letter(request: dict[str, Any]) -> tuple[int, int, int, str]:
    return request["first"], request["last"], request["delivery_count"], request["cause"]


def _result(exchange: Exchange) -> Any:  # noqa: ANN401 - a result may be anything
    """Return the result of *exchange* as the model returns it."""
    result = exchange.result
    if exchange.op == "acquire":
        return [(o, count) for first, last, count in exchange.acquired for o in range(first, last + 1)]
    if not isinstance(result, dict) or "status" not in result:
        return result
    status = result["status"]
    if isinstance(status, str):
        return status
    return status["error"] if exchange.op == "acknowledge" and not exchange.writes else FAILED[exchange.op]


def _by_record(write: dict[str, Any]) -> dict[str, Any]:
    """Return a write as the model has it."""
    fields = {name: write[name] for name in ("write", "start_offset", "delivery_complete_count")}
    batches = write["state_batches"]
    return {
        **fields,
        "records": {o: (state, count) for first, last, state, count in batches for o in range(first, last + 1)},
    }
