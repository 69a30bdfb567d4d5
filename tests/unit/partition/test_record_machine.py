"""The record machine: which inputs a state takes, and where they lead."""

from itertools import product

import pytest

from sharestate import AcknowledgeType, InvalidRecordStateError, RecordState
from sharestate.partition.record_machine import ACKNOWLEDGEMENTS, TERMINAL, TRANSITIONS, Input, step

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = RecordState

KAFKA_ARROWS = {(AVAILABLE, ACQUIRED), (ACQUIRED, AVAILABLE), (ACQUIRED, ACKNOWLEDGED), (ACQUIRED, ARCHIVED)}
SIDE_DOOR = {(AVAILABLE, ARCHIVED)}  # InFlightState.archive asks nobody: the log start moved, or the log was compacted
QUEUE_ANSWERED = {(ARCHIVING, ARCHIVED)}  # the same, of Kafka 4.4 (initiateDLQAndArchive)

OFFERED_AGAIN = (Input.RELEASE, Input.LOCK_TIMEOUT, Input.SESSION_CLOSE)


def test_the_arrows_are_kafkas() -> None:
    """The table draws Kafka's arrows and its side doors, and no others but the renewal, which changes no state."""
    arrows = {
        (state, target)
        for (state, input_), rule in TRANSITIONS.items()
        for target in (rule.target, rule.at_limit)
        if target is not None and input_ is not Input.RENEW
    }

    assert arrows == KAFKA_ARROWS | SIDE_DOOR | QUEUE_ANSWERED
    assert TRANSITIONS[ACQUIRED, Input.RENEW].target is ACQUIRED


def test_terminal_states_take_nothing() -> None:
    """ACKNOWLEDGED and ARCHIVED are the terminal states: no input leaves them."""
    assert {ACKNOWLEDGED, ARCHIVED} == TERMINAL
    assert not any(state in TERMINAL for state, _ in TRANSITIONS)


@pytest.mark.parametrize(("state", "input_"), sorted(set(product(RecordState, Input)) - TRANSITIONS.keys()))
def test_a_pair_that_is_not_in_the_table_is_refused(state: RecordState, input_: Input) -> None:
    """A state refuses every input for which it has no row, and the refusal names both."""
    with pytest.raises(InvalidRecordStateError, match=f"^{state.name} records do not accept {input_.name}$"):
        step(state, input_, delivery_count=1, delivery_count_limit=5)


@pytest.mark.parametrize(("state", "input_"), sorted(TRANSITIONS))
def test_only_a_delivery_is_counted(state: RecordState, input_: Input) -> None:
    """The delivery count goes up by one when a record is acquired, and nothing else changes it."""
    _, count = step(state, input_, delivery_count=3, delivery_count_limit=5)

    assert count == (4 if input_ is Input.ACQUIRE else 3)


@pytest.mark.parametrize("input_", OFFERED_AGAIN)
@pytest.mark.parametrize(("count", "target"), [(1, AVAILABLE), (4, AVAILABLE), (5, ARCHIVED), (6, ARCHIVED)])
def test_a_record_delivered_as_often_as_allowed_is_not_offered_again(
    input_: Input, count: int, target: RecordState
) -> None:
    """What would offer a record again archives it once its count has reached the limit, and the count stays."""
    assert step(ACQUIRED, input_, delivery_count=count, delivery_count_limit=5) == (target, count)


def test_acquiring_does_not_ask_for_the_limit() -> None:
    """A record that was read with as many deliveries as the limit allows is delivered once more (rule 1.2)."""
    assert step(AVAILABLE, Input.ACQUIRE, delivery_count=5, delivery_count_limit=5) == (ACQUIRED, 6)


@pytest.mark.parametrize(
    ("number", "target"),
    [
        pytest.param(0, ARCHIVED, id="gap"),
        pytest.param(1, ACKNOWLEDGED, id="accept"),
        pytest.param(2, AVAILABLE, id="release"),
        pytest.param(3, ARCHIVED, id="reject"),
        pytest.param(4, ACQUIRED, id="renew"),
    ],
)
def test_each_acknowledge_type_leads_where_kafka_takes_it(number: int, target: RecordState) -> None:
    """The five types on the wire lead from ACQUIRED to the states of rule 8."""
    assert step(ACQUIRED, ACKNOWLEDGEMENTS[number], delivery_count=1, delivery_count_limit=5) == (target, 1)


def test_there_are_five_acknowledge_types() -> None:
    """The types that members may send are 0 to 4."""
    assert sorted(ACKNOWLEDGEMENTS) == sorted(AcknowledgeType) == [0, 1, 2, 3, 4]


def test_a_rule_with_a_limit_needs_the_limit() -> None:
    """Without it nobody could say whether a released record is offered again."""
    with pytest.raises(TypeError, match="RELEASE needs the delivery count limit"):
        step(RecordState.ACQUIRED, Input.RELEASE, 1)
