"""The contract of dead-letter queues: the one in memory keeps it, and each clause fails for some planted bug."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from sharestate import DeadLetterQueue, InMemoryDeadLetterQueue
from sharestate.dead_letters import DeadLetterRecord, DeadLetterSettings, SourceRecord
from sharestate.testing import DeadLetterQueueContract
from sharestate.testing.persisters.clauses import broken_clauses, clauses, untested_clauses
from tests.planted.queue_clauses import BREAKS, AnswersOnlyTheFirst, LeavesOutTheLast


class TestInMemoryDeadLetterQueue(DeadLetterQueueContract):
    """`InMemoryDeadLetterQueue` keeps the contract."""

    kind: type[InMemoryDeadLetterQueue] = InMemoryDeadLetterQueue

    def make_queue(self, settings: DeadLetterSettings, source: Mapping[int, SourceRecord]) -> DeadLetterQueue:
        """Return one that has no dead letters."""
        return self.kind(
            settings,
            topic_names={self.topic_id: self.topic_name},
            read_record=lambda key, offset: source.get(offset) if key.partition == 0 else None,
        )

    def dead_letters(self, queue: DeadLetterQueue) -> Sequence[DeadLetterRecord]:
        """Return those in memory."""
        assert isinstance(queue, InMemoryDeadLetterQueue)
        return queue.records

    def change_settings(self, queue: DeadLetterQueue, settings: DeadLetterSettings) -> None:
        """Replace them."""
        assert isinstance(queue, InMemoryDeadLetterQueue)
        queue.settings = settings


CONTRACT = TestInMemoryDeadLetterQueue()


def planted(kind: type[InMemoryDeadLetterQueue]) -> DeadLetterQueueContract:
    """Return the contract for a queue with a bug, which has to answer at once."""
    contract = TestInMemoryDeadLetterQueue()
    contract.kind = kind
    contract.timeout_s = 0  # type: ignore[misc] # of this one
    return contract


@pytest.mark.parametrize(("kind", "clause"), BREAKS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_is_found(kind: type[InMemoryDeadLetterQueue], clause: str) -> None:
    """Each planted bug fails its clause."""
    assert clause in broken_clauses(planted(kind))


def test_every_clause_can_be_broken() -> None:
    """Every clause fails for some planted bug."""
    broken = {clause for kind in BREAKS for clause in broken_clauses(planted(kind))}

    assert broken == set(clauses(CONTRACT))


def test_a_clause_that_cannot_be_tested_is_listed() -> None:
    """A queue whose settings the contract cannot change is not said to look them up anew."""
    contract = TestInMemoryDeadLetterQueue()
    contract.change_settings = super(TestInMemoryDeadLetterQueue, contract).change_settings  # type: ignore[method-assign]

    assert broken_clauses(contract) == {}
    assert untested_clauses(contract) == {
        "test_settings_are_looked_up_for_every_request": "the contract has no change_settings()"
    }


@pytest.mark.parametrize(
    ("kind", "clause", "message"),
    [
        (
            LeavesOutTheLast,
            "test_numbers_come_again",
            f"the dead letters of 3 and of 6-7: expected {CONTRACT.mine(3, 6, 7)}, found {CONTRACT.mine(3, 6)}",
        ),
        (AnswersOnlyTheFirst, "test_every_request_has_an_answer", "TimeoutError()"),
    ],
)
def test_a_failed_clause_has_a_message(kind: type[InMemoryDeadLetterQueue], clause: str, message: str) -> None:
    """The message has what was expected and what was found, or says that there was no answer."""
    assert broken_clauses(planted(kind))[clause] == message
