"""A persister whose answers go wrong on purpose, around the one that stores."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any

from sharestate.broker.node.state_rpcs import STATE_REQUESTS
from sharestate.broker.server.clocks import Clock
from sharestate.broker.server.faults import STATE_APIS, Fail, Faults, SeenRequest
from sharestate.broker.server.request_log import RequestLogWriter
from sharestate.persister.protocol import CheckedPersister, P, Persister, R
from sharestate.persister.requests import Parameters, Result


class FaultyPersister(CheckedPersister):
    """
    Passes requests on, and their answers back, but for what a table of faults says.

    A request whose answer is delayed, dropped or reordered is carried out at once: writes to a share partition take
    effect in the order in which they are sent, whatever the order of answers.

    A share coordinator takes some milliseconds, and what a broker does meanwhile does not know of its answer: if it is
    to be so, answers are held back until ``give_answers``.

    Args:
        persister: Stores the state.
        faults: The table.
        clock: The time by which answers are delayed.
        name_of: Returns the name of a topic by its id; None if there is none.
        request_log: Where requests are written with their answers; None for nowhere.
        holds_back: Whether no answer comes while its request is sent, but with ``give_answers``.
    """

    def __init__(  # noqa: PLR0913 - what is around a persister
        self,
        persister: Persister,
        faults: Faults,
        clock: Clock,
        name_of: Callable[[str], str | None],
        request_log: RequestLogWriter | None = None,
        *,
        holds_back: bool = False,
    ) -> None:
        """Make one that has passed nothing on."""
        self._persister = persister
        self._faults = faults
        self._clock = clock
        self._name_of = name_of
        self._request_log = request_log
        self._holds_back = holds_back
        self._at_work: dict[int, None] = {}
        self._answers: deque[Callable[[], None]] = deque()
        self._numbers = count()

    @property
    def is_at_work(self) -> bool:
        """Whether the persister inside has not answered everything yet."""
        return bool(self._at_work)

    def give_answers(self) -> bool:
        """Let the answers come that were held back until now; return whether there were any."""
        answers, self._answers = self._answers, deque()
        for give in answers:
            give()
        return bool(answers)

    def _take(self, request: Parameters[P, R]) -> Future[Result[R]]:
        happening = self._faults.happening_to(self._seen(request)) if self._faults else None
        action = None if happening is None else happening.fault.action
        answer: Future[Result[R]] = Future()
        if self._request_log is not None:
            answer.add_done_callback(partial(_log, self._request_log.asked(request)))
        if isinstance(action, Fail):
            if action.is_carried_out:
                self._carry_out(request, lambda _: None)
            failure = request.failed(action.error_code)
            self._when_given(lambda: answer.set_result(failure))
        elif happening is None:
            self._carry_out(request, partial(_pass_on, answer))
        else:
            stored: Future[Result[R]] = Future()
            self._carry_out(request, partial(_pass_on, stored))
            happening.hold(lambda: stored.add_done_callback(partial(_pass_on, answer)), self._clock)
        return answer

    def _carry_out(self, request: Parameters[P, R], take: Callable[[Future[Result[R]]], None]) -> None:
        """Have the persister inside carry it out; *take* gets its answer, in whatever thread."""
        number = next(self._numbers)

        def note(answer: Future[Result[R]]) -> None:
            take(answer)
            del self._at_work[number]

        method: Callable[[Any], Future[Result[R]]] = getattr(self._persister, STATE_REQUESTS[type(request)])
        answer = method(request)
        self._at_work[number] = None
        if answer.done():
            self._when_given(lambda: note(answer))
        else:
            answer.add_done_callback(note)

    def _when_given(self, give: Callable[[], None]) -> None:
        if self._holds_back:
            self._answers.append(give)
        else:
            give()

    def _seen(self, request: Parameters[Any, Any]) -> SeenRequest:
        keys = [key for key, _ in request.entries()]
        return SeenRequest(
            api=STATE_APIS[type(request)],
            group_id=request.group_id,
            partitions=frozenset((self._name_of(key.topic_id) or key.topic_id, key.partition) for key in keys),
            request=request,
        )


def _log(answered: Callable[[Result[Any]], None], answer: Future[Any]) -> None:
    if answer.exception() is None:
        answered(answer.result())


def _pass_on(answer: Future[Any], stored: Future[Any]) -> None:
    """Give *answer* what was *stored*."""
    error = stored.exception()
    if error is None:
        answer.set_result(stored.result())
    else:
        answer.set_exception(error)
