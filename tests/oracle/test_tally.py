"""Counting what a search has met."""

from __future__ import annotations

import json

import pytest

from sharestate.testing.search.judging import Judgement
from sharestate.testing.search.tally import SearchTally, tally_of
from tests.oracle.search.divergences import DIVERGENCES, KafkaDivergence
from tests.oracle.search.mixes import MIXES
from tests.oracle.search.rates import ENOUGH, too_often

ROW = DIVERGENCES[0]


def met(times: int, mix: str, row: KafkaDivergence = ROW) -> SearchTally:
    """Return the tally of a search that has met *row* so often in ENOUGH operations."""
    tally = SearchTally()
    tally.add_sequence(mix, ENOUGH)
    for _ in range(times):
        tally.add(mix, Judgement(None, row))
    return tally


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("row", DIVERGENCES, ids=lambda row: row.id)
def test_a_row_must_not_be_met_too_often(row: KafkaDivergence, mix: str) -> None:
    """Each row says how often it may be met in each mix; once more is told."""
    most = int(row.most_per_1000[mix] * ENOUGH / 1000)

    assert too_often(met(most, mix, row)) == []
    (told,) = too_often(met(most + 1, mix, row))
    assert told.startswith(f"{row.id} was met")


def test_few_operations_say_nothing_about_rates() -> None:
    """A rate is judged only when there are enough operations."""
    tally = SearchTally()
    tally.add_sequence("ordinary", ENOUGH - 1)
    tally.add("ordinary", Judgement(None, ROW))

    assert tally.rate("ordinary", ROW.id) > 0
    assert too_often(tally) == []


def test_a_tally_survives_a_file() -> None:
    """Written and read, and added to another, it is all there."""
    tally = met(3, "wild")

    again = tally_of(json.loads(json.dumps(tally.as_json())), "")
    again.merge(tally)

    assert again.total == 2 * ENOUGH
    assert again.rate("wild", ROW.id) == tally.rate("wild", ROW.id)
    assert again.latent["wild", ROW.id] == 6
