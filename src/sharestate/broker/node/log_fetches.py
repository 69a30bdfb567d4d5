"""
The fetches of consumers that have their partitions assigned: each is answered when there is enough, or at its deadline.

Source:
    ReplicaManager.fetchMessages, DelayedFetch (Kafka 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sharestate.broker.node.fetch_queue import LogKey, WaitingFetches
from sharestate.broker.node.log_requests import FetchRequest, FetchResponse
from sharestate.broker.node.log_service import LogService
from sharestate.errors import ErrorCode


class LogFetches:
    """
    The fetches of a node that are not for share groups.

    Args:
        logs: The logs of the node.
        fetch_max_bytes: The most bytes of a fetch, whatever it asks for (``fetch.max.bytes``). [bytes]
        answer: Takes the number of a request and its answer.
    """

    def __init__(self, logs: LogService, fetch_max_bytes: int, answer: Callable[[int, FetchResponse], None]) -> None:
        """Begin without fetches."""
        self._logs = logs
        self._fetch_max_bytes = fetch_max_bytes
        self._answer = answer
        self._waiting: WaitingFetches[FetchRequest] = WaitingFetches()

    def take(self, number: int, request: FetchRequest, now_ms: int) -> None:
        """
        Answer *request*, or let it wait.

        Complexity:
            Linear in what is returned, and in its partitions.
        """
        if not self._try(number, request, is_due=request.max_wait_ms <= 0 or not request.partitions):
            keys = [LogKey(each.topic_id, each.partition) for each in request.partitions]
            self._waiting.add(number, request, deadline_ms=now_ms + request.max_wait_ms, keys=keys)

    def wake(self, keys: Iterable[LogKey]) -> None:
        """Look again at the fetches that wait for logs that have changed."""
        for number in dict.fromkeys(number for key in keys for number in self._waiting.watching(key)):
            self._retry(number, is_due=False)

    def wake_all(self) -> None:
        """Look again at all fetches that wait: topics are gone."""
        for number in self._waiting:
            self._retry(number, is_due=False)

    def next_deadline_ms(self) -> int | None:
        """Return when the first fetch has to be answered; None if none waits. [ms]"""
        return self._waiting.next_deadline_ms()

    def expire_next(self, now_ms: int) -> bool:
        """Answer the fetch whose time is up; return False if there is none."""
        number = self._waiting.due(now_ms)
        if number is not None:
            self._retry(number, is_due=True)
        return number is not None

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget those of *numbers* that wait: nobody is left who would get their answer."""
        for number in numbers:
            if number in self._waiting:
                self._waiting.remove(number)

    def _retry(self, number: int, *, is_due: bool) -> None:
        if self._try(number, self._waiting[number], is_due=is_due):
            self._waiting.remove(number)

    def _try(self, number: int, request: FetchRequest, *, is_due: bool) -> bool:
        """Answer *request* if it is due, has failed, or there is enough; return whether it was answered."""
        max_bytes = min(request.max_bytes, self._fetch_max_bytes)
        response = self._logs.fetch(request, max_bytes)
        has_error = any(result.error_code is not ErrorCode.NONE for result in response.partitions)
        is_answered = is_due or has_error or response.filled_bytes >= min(request.min_bytes, max_bytes)
        if is_answered:
            self._answer(number, response)
        return is_answered
