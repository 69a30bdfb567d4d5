"""Hypothesis strategies over the random generator (extra ``testing``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    message = "sharestate.testing.strategies needs the extra 'testing': pip install 'sharestate[testing]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.testing.generator.mix import ORDINARY, Mix
from sharestate.testing.generator.operations import operations

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from sharestate.testing.generator.model import Steps


def sequences(mix: Mix = ORDINARY) -> SearchStrategy[Steps[None]]:
    """
    Return a strategy for random sequences of requests, which shrink to few and plain requests.

    A sequence is drawn while it runs, because each request depends on the responses before; see
    `sharestate.testing.converse`.
    """
    return st.randoms(use_true_random=False).map(lambda random: operations(random, mix))
