"""Every invariant is explained, and what is said of Kafka can be looked up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sharestate import KAFKA_4_3
from sharestate.testing import (
    ALWAYS,
    BROKER,
    HEALED,
    HEALED_OVER_TIME,
    OVER_TIME,
    WITH_QUEUE,
    WITHOUT_QUEUE,
    InProcessServer,
    Request,
    Response,
    expect_seen,
    explain,
    invariants_of,
    observe,
    seeded,
)
from sharestate.testing.protocol.coordinator_invariants import COORDINATOR_HEALED
from sharestate.testing.protocol.explanations import EXPLANATIONS
from sharestate.testing.protocol.in_process import effects_are_values

INVARIANTS: list[Callable[..., object]] = [
    *ALWAYS,
    *BROKER,
    *HEALED,
    *WITH_QUEUE,
    *WITHOUT_QUEUE,
    *OVER_TIME,
    *HEALED_OVER_TIME,
    *COORDINATOR_HEALED,
    effects_are_values,
]
BUGS = (Path(__file__).parents[4] / "docs/kafka-bugs.md").read_text()


def test_every_invariant_has_a_sentence_and_an_explanation() -> None:
    """The names of the explanations are those of the invariants, and each has a sentence."""
    assert {invariant.__name__ for invariant in INVARIANTS} == EXPLANATIONS.keys()
    assert all(explain(invariant).startswith("  What should be: ") for invariant in INVARIANTS)


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_the_bugs_that_are_named_are_on_the_page(name: str) -> None:
    """A reference is an issue, a proposal, or the id of a bug that has a paragraph."""
    for reference in EXPLANATIONS[name].kafka:
        is_bug = f"(bug-{reference.lower()})=" in BUGS or f"| {reference} |" in BUGS
        assert is_bug or reference.startswith(("KAFKA-", "KIP-")), reference


def test_a_broken_invariant_says_what_it_means() -> None:
    """The message has the invariant, what differs, what should be, what to look at and Kafka's issues."""
    server = InProcessServer(KAFKA_4_3)

    def forgets_the_owner(request: Request) -> Response:
        response = server(request)
        for batch in response["state"]["batches"]:
            for run in batch[2] if len(batch) > 3 else [batch]:
                run[2][2] = ""
        return response

    with pytest.raises(AssertionError) as caught:
        observe(seeded(3), forgets_the_owner, invariants_of(KAFKA_4_3))

    lines = str(caught.value).splitlines()
    assert lines[0].startswith("AssertionError: what_is_acquired_is_held: ")
    assert lines[1].startswith("  What should be: Ranges that `acquire` returns ascend")
    assert lines[2:4] == ["  Look at: whether the response is built from what was locked.", "  Kafka: KAFKA-19808"]


def test_a_run_that_shows_nothing_fails() -> None:
    """What never happens is named."""
    conversation = observe(seeded(3), InProcessServer(KAFKA_4_3), invariants_of(KAFKA_4_3))

    with pytest.raises(AssertionError, match=r"the run shows none of these events: .*not the owner"):
        expect_seen(conversation)
    expect_seen(conversation, [])
