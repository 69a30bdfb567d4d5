"""Requests on their way to the persister or the dead-letter queue, and answers that have arrived."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Event
from typing import Any, TypeAlias

from attrs import Factory, define

from sharestate.errors import LeaderStateError, ShareStateError

TakeAnswer: TypeAlias = Callable[[Future[Any]], ShareStateError | None]
"""Takes an answer; returns the error with which the request has failed, if it has."""


class _LeaderFuture(Future[None]):
    """
    A future that is done once the leader has taken the answer.

    It cannot be cancelled, for neither can the request, and it refuses to be waited for without a timeout: who
    waits so in the thread that polls would wait for ever.
    """

    def __init__(self) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()  # from now on `cancel` does nothing

    def result(self, timeout: float | None = None) -> None:
        """Return None, or raise the request's error; a *timeout* is needed while it is not done."""
        self._expect_an_end(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the request's error, or None; a *timeout* is needed while it is not done."""
        self._expect_an_end(timeout)
        return super().exception(timeout)

    def _expect_an_end(self, timeout: float | None) -> None:
        if timeout is None and not self.done():
            message = (
                "the persister's answer has not been taken, and only Leader.poll takes answers: "
                "call Leader.wait(future, clock=...), or pass a timeout if another thread polls"
            )
            raise LeaderStateError(message)


def done_future() -> Future[None]:
    """Return a future that is done."""
    future = _LeaderFuture()
    future.set_result(None)
    return future


@define(eq=False)
class _Request:
    ask: Callable[[], Future[Any]]
    take: TakeAnswer
    future: Future[None] = Factory(_LeaderFuture)


class Outbox:
    """
    The requests that were sent, and the answers that have arrived.

    Answers arrive in any thread; ``take_answers`` takes them in the caller's, in the order of their arrival.
    """

    def __init__(self, notify: Callable[[], None] | None) -> None:
        """Make an empty one that calls *notify*, if there is one, when an answer has arrived."""
        self.arrival = Event()
        """Set by every arrival; cleared by the thread that waits for the next one."""
        self.notify = notify
        self._unanswered: dict[_Request, None] = {}
        self._arrived: deque[tuple[_Request, Future[Any]]] = deque()
        self._deferred: deque[_Request] = deque()
        self._is_taking = False

    @property
    def unanswered(self) -> tuple[Future[None], ...]:
        """The futures of requests whose answers were not taken, in the order of sending."""
        return tuple(request.future for request in self._unanswered)

    def send(self, ask: Callable[[], Future[Any]], take: TakeAnswer) -> Future[None]:
        """
        Send a request by calling *ask*, whose exception, if it raises one, is the answer.

        Returns:
            A future that is done once *take* has taken the answer.
        """
        request = _Request(ask, take)
        self._unanswered[request] = None
        self._ask(request)
        return request.future

    def send_later(self, ask: Callable[[], Future[Any]], take: TakeAnswer) -> None:
        """
        Have ``take_answers`` send a request, like ``send``, when no answer is left to take.

        So of several, each is sent after the answer to the one before, and what follows from that, if all come at once.
        """
        request = _Request(ask, take)
        self._unanswered[request] = None
        self._deferred.append(request)

    def take_answers(self) -> None:
        """
        Take every answer that has arrived, in the order of arrival, and send what was to be sent later.

        Does nothing while an answer is being taken: the answers to what that sends are taken after it.
        """
        while (self._arrived or self._deferred) and not self._is_taking:
            if self._arrived:
                self._take(*self._arrived.popleft())
            else:
                self._ask(self._deferred.popleft())

    def _ask(self, request: _Request) -> None:
        try:
            request.ask().add_done_callback(partial(self._arrive, request))
        except BaseException as error:
            answer: Future[Any] = Future()
            answer.set_exception(error)
            self._arrived.append((request, answer))  # without `notify`: the sender takes answers next
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise

    def _take(self, request: _Request, answer: Future[Any]) -> None:
        if request in self._unanswered:  # not so after `abandon`
            del self._unanswered[request]
            self._end(request, answer)

    def _end(self, request: _Request, answer: Future[Any]) -> None:
        self._is_taking = True
        try:
            error = request.take(answer)
        except BaseException as bug:
            request.future.set_exception(bug)  # a future that never ends would hide it
            raise
        finally:
            self._is_taking = False
        _set(request.future, error)

    def abandon(self, error: ShareStateError) -> None:
        """Complete every future that is not done with *error*; later answers are ignored, and nothing more is sent."""
        self._deferred.clear()
        while self._unanswered:
            request = next(iter(self._unanswered))
            del self._unanswered[request]  # first, so that a callback that raises leaves the others for the next call
            _set(request.future, error)

    def _arrive(self, request: _Request, answer: Future[Any]) -> None:
        self._arrived.append((request, answer))
        self.arrival.set()
        if self.notify is not None:
            self.notify()


def _set(future: Future[None], error: ShareStateError | None) -> None:
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
