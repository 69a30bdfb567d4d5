"""Requests on their way to the persister, and the answers that have come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

from attrs import Factory, define

from sharestate.errors import ShareStateError

Settle: TypeAlias = Callable[[Future[Any]], ShareStateError | None]
"""What is done with an answer; it returns how the request has failed, if it has."""


def promise() -> Future[None]:
    """Return a future that nobody can cancel: what it stands for is on its way."""
    promised: Future[None] = Future()
    promised.set_running_or_notify_cancel()
    return promised


def kept() -> Future[None]:
    """Return a future of something that is done already."""
    promised = promise()
    promised.set_result(None)
    return promised


@define(eq=False)
class _Sent:
    settle: Settle
    told: Future[None] = Factory(promise)


class Outbox:
    """
    What was sent, and what has arrived.

    Answers may arrive in any thread; they are settled in the one that calls ``settle``, in the order of their arrival.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        """Make an empty one that calls *notify* when an answer has arrived."""
        self._notify = notify
        self._unanswered: dict[_Sent, None] = {}
        self._arrived: deque[tuple[_Sent, Future[Any]]] = deque()
        self._is_settling = False

    @property
    def unanswered(self) -> tuple[Future[None], ...]:
        """What was promised for requests whose answers are not settled yet, in the order in which they went."""
        return tuple(sent.told for sent in self._unanswered)

    def send(self, ask: Callable[[], Future[Any]], settle: Settle) -> Future[None]:
        """
        Send a request; whatever goes wrong with that is its answer.

        Returns:
            What ends when *settle* has dealt with the answer.
        """
        sent = _Sent(settle)
        self._unanswered[sent] = None
        try:
            ask().add_done_callback(partial(self._arrive, sent))
        except Exception as error:  # noqa: BLE001 - the persister is not ours
            answer: Future[Any] = Future()
            answer.set_exception(error)
            self._arrive(sent, answer)
        return sent.told

    def settle(self) -> None:
        """
        Settle every answer that has arrived, in the order of arrival.

        While one is being settled this does nothing: what it leads to has its turn afterwards.
        """
        while self._arrived and not self._is_settling:
            sent, answer = self._arrived.popleft()
            if sent in self._unanswered:  # if not, nobody waits any more
                del self._unanswered[sent]
                _end(sent.told, self._settled(sent, answer))

    def _settled(self, sent: _Sent, answer: Future[Any]) -> ShareStateError | None:
        self._is_settling = True
        try:
            return sent.settle(answer)
        finally:
            self._is_settling = False

    def abandon(self, error: ShareStateError) -> None:
        """Wait for nothing any more; who waits is told *error*."""
        unanswered, self._unanswered = self._unanswered, {}
        for sent in unanswered:
            _end(sent.told, error)

    def _arrive(self, sent: _Sent, answer: Future[Any]) -> None:
        self._arrived.append((sent, answer))
        self._notify()


def _end(told: Future[None], error: ShareStateError | None) -> None:
    if error is None:
        told.set_result(None)
    else:
        told.set_exception(error)
