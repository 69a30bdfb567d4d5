"""Strategies draw what there may be, shrink to what is plain, and refuse what there cannot be."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise
from typing import TypeVar

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis.errors import NoSuchExample
from hypothesis.strategies import SearchStrategy

from sharestate import (
    KAFKA_4_3,
    KAFKA_4_4,
    AcknowledgementBatch,
    AcknowledgeType,
    FetchedRecords,
    IsolationLevel,
    MalformedInputError,
    PersistedState,
    RecordBatch,
    ShareConfig,
    SharePartition,
)
from sharestate.testing import Exchange, Mix, invariants_of, judge
from sharestate.testing.protocol import strategies as drawn
from tests.support.partition_machine import KEY

T = TypeVar("T")


def smallest(strategy: SearchStrategy[T], shows: Callable[[T], bool]) -> T:
    """Return the plainest value that *shows* accepts."""
    return hypothesis.find(strategy, shows, settings=settings(database=None, derandomize=True, max_examples=300))


@given(log=drawn.logs(longest_batch=3, most_batches=5))
def test_logs_ascend(log: tuple[RecordBatch, ...]) -> None:
    """Batches follow each other from offset 0 on, no longer and no more than is asked for."""
    assert log[0].first_offset == 0
    assert all(before.last_offset + 1 == after.first_offset for before, after in pairwise(log))
    assert len(log) <= 5
    assert max(batch.last_offset - batch.first_offset + 1 for batch in log) <= 3


@given(fetched=drawn.fetches(isolation=IsolationLevel.READ_COMMITTED, compaction=True), config=drawn.configurations())
def test_what_is_fetched_can_be_acquired(fetched: FetchedRecords, config: ShareConfig) -> None:
    """A share partition of any drawn settings takes any drawn fetch."""
    partition = SharePartition(KEY, leader_epoch=0, profile=KAFKA_4_3, config=config)
    partition.initialize()
    partition.read_succeeded(PersistedState())

    partition.acquire("m1", fetched, now_ms=0)

    partition.check()


@given(state=drawn.persisted_states(start_offset=5, end_offset=30, delivery_count_limit=2))
def test_persisted_states_can_be_loaded(state: PersistedState) -> None:
    """A share partition takes over any drawn state, which lies within the offsets and counts."""
    partition = SharePartition(KEY, leader_epoch=0, profile=KAFKA_4_3)
    partition.initialize()

    assert partition.read_succeeded(state).error is None
    assert state.start_offset >= 5
    assert all(batch.last_offset < 30 and batch.delivery_count <= 2 for batch in state.state_batches)


@given(batches=drawn.acknowledgements(held=[(0, 4), (7, 7)], types=[AcknowledgeType.ACCEPT, AcknowledgeType.GAP]))
def test_acknowledgements_are_of_what_is_held(batches: tuple[AcknowledgementBatch, ...]) -> None:
    """They lie within the ranges, with one type or one for each record, of those that are asked for."""
    assert batches
    for first, last, types in batches:
        assert 0 <= first <= last <= 4 or first == last == 7
        assert len(types) in {1, last - first + 1}
        assert set(types) <= {AcknowledgeType.ACCEPT, AcknowledgeType.GAP}


@given(history=drawn.histories(KAFKA_4_4, mix=Mix(mean_steps=5)))
def test_histories_are_those_of_the_library(history: list[Exchange]) -> None:
    """Every exchange has a response, and keeps the invariants."""
    invariants = invariants_of(KAFKA_4_4)
    for exchange in history:
        judge(exchange, invariants)


def test_what_is_drawn_shrinks() -> None:
    """The plainest log, state, acknowledgement and history that show something are small."""
    (batch,) = smallest(drawn.logs(), lambda log: sum(batch.last_offset - batch.first_offset for batch in log) >= 3)
    state = smallest(drawn.persisted_states(), lambda state: len(state.state_batches) == 2)
    (accepted,) = smallest(drawn.acknowledgements(held=[(0, 9)]), lambda _: True)
    few = Mix(most_steps=2)
    history = smallest(
        drawn.histories(KAFKA_4_3, mix=few), lambda history: any(exchange.acquired for exchange in history)
    )

    assert batch == RecordBatch(0, 3)
    assert state.start_offset == 0
    assert accepted == (0, 9, (AcknowledgeType.ACCEPT,)) or accepted[2] == (AcknowledgeType.GAP,)
    assert len(history) <= 6


def test_what_leads_to_nothing_is_left_out_of_a_history() -> None:
    """Of the steps until the SPSO is above 20 those are left that it takes: one value decides each."""
    history = smallest(
        drawn.histories(KAFKA_4_4), lambda history: any(exchange.after["start_offset"] > 20 for exchange in history)
    )

    assert [exchange.op for exchange in history] == ["open", "initialize"]


def test_fetches_have_holes_and_aborted_transactions() -> None:
    """Among what is drawn are batches of several records, holes before a batch, and aborted transactions."""
    fetched = smallest(
        drawn.fetches(compaction=True),
        lambda fetched: any(before.last_offset + 1 < after.first_offset for before, after in pairwise(fetched.batches)),
    )
    aborted = smallest(
        drawn.fetches(isolation=IsolationLevel.READ_COMMITTED),
        lambda fetched: (
            any(batch.last_offset > batch.first_offset for batch in fetched.batches)
            and bool(fetched.aborted_transactions)
        ),
    )

    assert len(fetched.batches) <= 4
    assert len(aborted.batches) <= 3


def test_settings_have_a_queue_only_where_it_is_asked_for() -> None:
    """Without dead letters no group has a queue; with them some have."""
    smallest(drawn.configurations(dead_letters=True), lambda config: config.dead_letter_queue)
    with pytest.raises(NoSuchExample):
        smallest(drawn.configurations(), lambda config: config.dead_letter_queue)


@pytest.mark.parametrize(
    ("strategy", "field"),
    [
        (lambda: drawn.logs(most_batches=0), "most_batches"),
        (lambda: drawn.logs(most_batches=61), "most_batches"),
        (lambda: drawn.fetches(longest_batch=0), "longest_batch"),
        (lambda: drawn.fetches(isolation="read_committed"), "isolation"),  # type: ignore[arg-type]
        (lambda: drawn.persisted_states(start_offset=9, end_offset=8), "end_offset"),
        (lambda: drawn.acknowledgements(held=[]), "held"),
        (lambda: drawn.acknowledgements(held=[(0, 4), (4, 5)]), "held"),
        (lambda: drawn.acknowledgements(held=[(4, 3)]), "held"),
        (lambda: drawn.acknowledgements(held=[(0, 1)], types=[]), "types"),
        (lambda: drawn.histories(KAFKA_4_3, mix=Mix(dead_letters=50)), "mix"),
        (lambda: drawn.histories(KAFKA_4_3, mix=Mix(quiet=True)), "mix"),
        (lambda: drawn.configurations(dead_letters=1), "dead_letters"),  # type: ignore[arg-type]
    ],
    ids=count(),
)
def test_what_cannot_be_is_refused_at_once(strategy: Callable[[], object], field: str) -> None:
    """The error names the argument, as the strategy is made and not as it draws."""
    with pytest.raises(MalformedInputError) as caught:
        strategy()

    assert caught.value.field == field
