"""
What steps have led to at one place of the search: most orders that are tried begin as others did.

Each differs from the order that it is made of by one move, and a move that is likely is tried again among all. Where
nothing fits (falsified logs of k431-seq) five of six steps were taken before, at the same place.
"""

from __future__ import annotations

from collections.abc import Hashable

from sharestate.log_check.checked_partition import CheckedPartition
from sharestate.log_check.observed_writes import Mismatch
from sharestate.log_check.schedule import KEY, Step
from sharestate.log_check.search_state import Saved


class TriedSteps:
    """
    Takes steps, each once as long as there is memory for what it has led to.

    One that was taken before costs the same again: how far a budget reaches does not depend on what is remembered.

    Args:
        checked: The share partition; nobody else changes it meanwhile.
        most_held: How much of what was saved is held. [work]
    """

    def __init__(self, checked: CheckedPartition, most_held: int) -> None:
        """Begin with nothing tried."""
        self._checked = checked
        self._left = most_held
        self._known: dict[Hashable, tuple[Saved | Mismatch, int]] = {}
        """What a step has led to from where, and what that has cost."""
        self._at: Saved | None = None
        """Where the share partition is; None if that was not saved."""

    def take(self, step: Step, saved: Saved) -> Saved | Mismatch:
        """
        Return what is saved after a step, or what does not fit.

        Args:
            step: The step.
            saved: What was saved before it.
        """
        key = saved, KEY(step)
        known = self._known.get(key)
        if known is not None:
            led_to, work = known
            self._checked.budget.spend(work)
            return led_to
        spent = self._checked.budget.spent
        led_to = self._taken(step, saved)
        if isinstance(led_to, Saved):
            self._left -= led_to.size
        if self._left >= 0:
            self._known[key] = led_to, self._checked.budget.spent - spent
        return led_to

    def _taken(self, step: Step, saved: Saved) -> Saved | Mismatch:
        if self._at is not saved:
            self._checked.restore(saved)
        self._at = None
        mismatch = self._checked.take(step, saved)
        if mismatch is not None:
            return mismatch
        self._at = self._checked.save()
        return self._at
