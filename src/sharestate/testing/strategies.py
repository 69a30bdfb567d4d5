"""Hypothesis strategies that draw from the one random generator (extra ``testing``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from sharestate.testing.mix import ORDINARY, Mix
from sharestate.testing.operations import operations

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from sharestate.testing.world import Steps


def sequences(mix: Mix = ORDINARY) -> SearchStrategy[Steps[None]]:
    """
    Return a strategy for random sequences of requests, which shrink to few and plain ones.

    A sequence is drawn while it runs: what it asks next depends on the responses. See
    `sharestate.testing.operations.converse`.
    """
    return st.randoms(use_true_random=False).map(lambda random: operations(random, mix))
