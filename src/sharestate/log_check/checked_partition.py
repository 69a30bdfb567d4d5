"""
A share partition whose steps are taken one by one, each compared with what the broker sent and stored.

Acquisitions are computed, and so are writes. Locks expire when something that was observed shows it: how is in
``unobserved_events.py``, and how fetches are taken in ``checked_fetches.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, ClassVar, Final

from sharestate.errors import RequestRefusedError, ResetOffsetRequiredError
from sharestate.history.columns import ERROR_NAMES, ERRORS
from sharestate.log_check.budget import Budget
from sharestate.log_check.checked_fetches import CheckedFetches
from sharestate.log_check.former_leader import FormerLeader
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import LATE_US, QUEUED_US, Allowed, Schedule, Step, What
from sharestate.log_check.search_state import Defect, Recent, Saved
from sharestate.log_check.taken_events import TakenEvents
from sharestate.log_check.unobserved_events import UnobservedEvents
from sharestate.log_check.visible_log import VisibleLog
from sharestate.partition.share_partition import SharePartition
from sharestate.values.acknowledgements import is_refused_by_broker
from sharestate.values.checks import MAX_INT64
from sharestate.values.effects import Effects
from sharestate.values.offset_reset import OffsetReset
from sharestate.values.requests import PersistedState

_MOST_RECENT: Final = 12
"""How many steps before, a fetch may have looked for where to read; 8 on a hot partition of 4.4.0."""

_RENEW_VERSION: Final = 2
"""The version of requests from which on they may renew locks."""


class CheckedPartition(CheckedFetches, UnobservedEvents):
    """
    A share partition that is compared with what was observed.

    Args:
        key: The share partition.
        schedule: Its steps.
        log: Its log; None if nothing is known of it.
        budget: What the check may cost; as much as it wants if None.
        taken: Notes what was done, as events in causal order; nothing is noted if None.

    Raises:
        BudgetSpentError: A step costs more than is left; the share partition has to be restored then.
    """

    def __init__(
        self,
        key: tuple[str, str, int],
        schedule: Schedule,
        log: VisibleLog | None,
        budget: Budget | None = None,
        taken: TakenEvents | None = None,
    ) -> None:
        """Start before the first step."""
        super().__init__(key, schedule, log or VisibleLog(()), budget or Budget(MAX_INT64), taken)

    # ---- steps

    def take(self, step: Step, saved: Saved) -> Mismatch | None:
        """
        Take a step; if it does not fit as it is, with what no line shows before it: locks that expire, and others.

        Args:
            step: The step.
            saved: What was saved here.

        Returns:
            What does not fit; the share partition has to be restored then.
        """
        handler = self._HANDLERS[step.what]
        self._before = saved
        if self._partition is not None:
            offset, can_acquire = saved.next_fetch
            recent = Recent(step.at_us, offset)
            self._now.recent = (*self._now.recent[1 - _MOST_RECENT :], recent)
            if not (can_acquire and self._is_readable(offset)):
                self._now.nothing_us = step.at_us
        if step.allowed is Allowed.UNDECIDED:
            self.counts.undecided_fetches += 1
            self._note(step, read_to=-1)
            return self._see_head(step)
        if step.what is What.OUTCOME and not step.way:
            self._expire_queued(step, saved)
        mismatch = handler(self, step)
        if mismatch is None or self._partition is None or step.what not in _AFTER_OTHERS:
            return mismatch or self._see_head(step)
        self.restore(saved)
        before = saved
        while self._something_before(step, before):
            self._before = before = self.save()
            if handler(self, step) is None:
                return self._see_head(step)
            self.restore(before)
        return mismatch

    # ---- the kinds of steps

    def _config(self, step: Step) -> None:
        self._now.settings = copy(self._now.settings)
        self._now.settings.change(step.event.request or {})
        if self._partition is not None:
            self._changing().configure(self._now.settings.effective)
        self._note(step)

    def _appended(self, step: Step) -> None:
        self._now.visible = max(self._now.visible, self._log.count_after(step.event))
        self._note_log(step)

    def _log_starts(self, step: Step) -> None:
        self._now.log_start = max(self._now.log_start, (step.event.request or {})["offset"])
        if self._partition is not None and not step.event.inferred:
            self._noted(self._changing().advance_log_start(self._now.log_start))
        self._note(step)

    def _outcome(self, step: Step) -> Mismatch | None:
        if self._partition is None:
            self._note(step)
            return None
        number = self._now.numbers.pop(step.write, None)
        if number is None:
            if self._writes.is_issued(step.write):  # in another life, or by a leader that was gone
                return None
            return Mismatch("write", self._writes.content_of(step.write), None, step.write)
        error = (step.event.response or {}).get("error")
        if error is None:
            self._succeed(step, number)
            answered = None
        else:
            effects = self._noted(self._changing().write_failed(number, ERRORS[error]))
            answered = None if effects.error is None else ERROR_NAMES[effects.error.code]
        known: dict[str, Any] = {"number": number}
        if step.write in self._now.late_heads:
            known["is_head_late"] = True
        if self._now.defects and self._now.defects[-1].step is step:
            known["defect"] = self._now.defects[-1].name
        self._note(step, **known)
        expected = self._now.expected.pop(number, answered)
        return None if expected == answered else Mismatch("code", expected, answered, step.write)

    def _succeed(self, step: Step, number: int) -> None:
        """Let a write succeed, or its advance throw as Kafka's does (B7)."""
        partition = self._changing()
        stays = partition.is_past_split_batch
        if stays:
            self._now.defects += (Defect("B7", partition.start_offset, step),)
        self._noted(partition.write_succeeded(number, advances=not stays))

    def _stop(self, step: Step) -> None:
        self._leave(step)
        self._now.former = None
        self._now.is_absent = True

    def _leave(self, step: Step) -> None:
        """Note that nothing is led until the state is read again."""
        self.give_up()
        if self._taken is not None:
            self._taken.stop(step.at_us)

    def _initialize(self, step: Step) -> None:
        request, response = step.event.request or {}, step.event.response or {}
        if self._partition is not None:
            self._now.former = FormerLeader(self._partition, self._now.last_ms, step.at_us + QUEUED_US)
        self.give_up()
        self._writes.forget_before(step.earliest_us - LATE_US)
        self._now.is_absent = "error" in response
        if "error" in response or not response:
            self._note(step)
            return
        settings = copy(self._now.settings)
        settings.leader_epoch = request.get("leader_epoch", settings.leader_epoch)
        self._now.settings = settings
        partition = SharePartition(
            self._key,
            leader_epoch=settings.leader_epoch,
            profile=settings.profile,
            config=settings.effective,
        )
        partition.initialize()
        state = PersistedState(
            start_offset=response["start_offset"],
            state_epoch=response["state_epoch"],
            state_batches=response["state_batches"],
        )
        try:
            self._noted(partition.read_succeeded(state))
            self._note(step)
        except ResetOffsetRequiredError:
            offset = self._reset_offset(request)
            self._noted(partition.read_succeeded(state, reset_offset=offset))
            self._note(step, reset_offset=offset)
        self._partition, self._now.last_ms = partition, 0
        self._now.was_initialized = True

    def _reset_offset(self, request: dict[str, Any]) -> int:
        if "reset_offset" in request:
            return int(request["reset_offset"])
        if self._now.settings.config.auto_offset_reset.strategy is OffsetReset.LATEST:
            return self._log.end_offset(self._now.visible)
        return self._now.log_start

    def _close(self, step: Step) -> Mismatch | None:
        if self._partition is None:
            self._note(step)
            return None
        effects = self._changing().release(step.event.member_id or "", now_ms=self._now_ms(step.at_us))
        self._note(step, self._now.last_ms * 1000)
        return self._issue(self._noted(effects), step)

    def _acknowledge(self, step: Step) -> Mismatch | None:
        event = step.event
        request = event.request or {}
        computed: str | None = None
        effects = Effects()
        version, is_renew = request.get("version", _RENEW_VERSION), request.get("is_renew", False)
        if is_refused_by_broker(request["batches"], version=version, is_renew=is_renew):
            computed = "invalid_request"
        elif event.response is not None and event.response.get("error") == _ABSENT:
            self._leave(step)
            self._now.is_absent = True
            computed = _ABSENT
        elif self._partition is None:  # there is nothing to acknowledge while the state is read
            if not self._now.is_absent and (event.response or {}).get("error") != _NOT_ACQUIRED:
                self._note(step)
                return None
            computed = _NOT_ACQUIRED
        else:
            try:
                now_ms = self._now_ms(step.at_us)
                touched = sum(len(batch.acknowledge_types) for batch in request["batches"])
                effects = self._changing(touched).acknowledge(event.member_id or "", request["batches"], now_ms=now_ms)
            except RequestRefusedError as refusal:
                computed = ERROR_NAMES[refusal.code]
            self._noted(effects)
        self._note(step, None if self._partition is None else self._now.last_ms * 1000)
        if event.response is not None:
            expected = event.response.get("error")
            if effects.writes and expected not in _REFUSALS:
                self._now.expected[effects.writes[0].number] = expected
            elif expected != computed or effects.writes:
                return Mismatch("code", expected, computed)
            self.counts.codes += 1
        return self._issue(effects, step)

    def _arrival(self, step: Step) -> Mismatch | None:
        if self._partition is None or self._writes.is_issued(step.write):
            return None
        return Mismatch("write", self._writes.content_of(step.write), None, step.write)

    _HANDLERS: ClassVar[Mapping[What, Callable[[CheckedPartition, Step], Mismatch | None]]] = MappingProxyType(
        {
            What.CONFIG: _config,
            What.LOG: _appended,
            What.LOG_START: _log_starts,
            What.OUTCOME: _outcome,
            What.STOP: _stop,
            What.INITIALIZE: _initialize,
            What.ACKNOWLEDGE: _acknowledge,
            What.CLOSE: _close,
            What.FETCH: CheckedFetches.take_fetch,
            What.ARRIVAL: _arrival,
        }
    )


_AFTER_OTHERS: Final = frozenset({What.ACKNOWLEDGE, What.CLOSE, What.FETCH, What.ARRIVAL})
"""The steps before which locks may expire, lost connections be noticed, and the dead-letter queue answer."""

_REFUSALS: Final = frozenset({"invalid_record_state", "invalid_request"})

_ABSENT: Final = "unknown_topic_or_partition"
"""The error of an acknowledgement to a share partition that the broker does not have: nobody has fetched from it."""

_NOT_ACQUIRED: Final = "invalid_record_state"
"""The error of an acknowledgement of records that its member has not acquired."""
