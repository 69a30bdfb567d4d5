"""What was produced and committed, judged by hand-made operations."""

import pytest

from sharestate.audit import AuditSettings, Guarantee, View
from tests.support.hand_made_operations import Written

WRONG = {
    "only_produced 5-5": Written().produce(0, 0, 4).fetch("m1", 10, (0, 5, 1)),
    "only_produced 2-3": Written().produce(0, 0, 1).produce(0, 4, 5).fetch("m1", 10, (0, 5, 1)),
    "only_produced 6-7": Written().produce(0, 0, 4, tx="x").end(5, "x").produce(7, 8, 9).fetch("m1", 10, (6, 7, 1)),
}


def test_nothing_is_delivered_before_it_is_produced() -> None:
    """By more than clocks may differ from each other, with another request that may have produced it or without."""
    early = Written().produce(500, 0, 4).fetch("m1", 10, (0, 4, 1))

    assert early.broken() == ["only_produced 0-4"]
    assert early.produce(0, 0, 1).broken() == ["only_produced 2-4"]
    assert Written().produce(60, 0, 4).fetch("m1", 10, (0, 4, 1)).broken() == []
    assert Written(m1={"clock": "other"}).produce(500, 0, 4).fetch("m1", 10, (0, 4, 1)).broken() == []


@pytest.mark.parametrize(("broken", "written"), WRONG.items(), ids=WRONG)
def test_only_what_was_produced_may_be_delivered(broken: str, written: Written) -> None:
    """Beyond the end of the log, and in a hole that is no marker."""
    assert broken in written.broken()


def test_markers_of_transactions_are_in_ranges() -> None:
    """A broker's ranges have an offset more for each transaction, and one that was aborted with its producer too."""
    written = Written().produce(0, 0, 4, tx="x").end(5, "x").produce(6, 6, 8).fetch("m1", 10, (0, 8, 1))

    assert written.broken() == []


def test_applications_get_no_markers() -> None:
    """What an application gets there was produced by nobody."""
    seen = {"m1": {"view": View.APPLICATION}}
    written = Written(**seen).produce(0, 0, 4, tx="x").end(5, "x").produce(6, 6, 8).fetch("m1", 10, (0, 8, 1))

    assert written.broken() == ["only_produced 5-5"]


UNKNOWN = {
    "nobody wrote down what was produced to t-0": Written(),
    "offsets of produce requests without an answer are not known": Written()
    .produce(0, 0, 4)
    .produce(2, 5, 9, end=None),
    "the log of a producer is not complete": Written(p={"complete": False}).produce(0, 0, 4),
    "what was produced before is not in the log": Written().produce(0, 7, 9),
}


@pytest.mark.parametrize(("reason", "written"), UNKNOWN.items(), ids=UNKNOWN)
def test_what_is_not_known_of_producers_is_said(reason: str, written: Written) -> None:
    """It cannot be told of what others may have produced."""
    verdict = written.fetch("m1", 10, (5, 6, 1)).audited().verdict(Guarantee.ONLY_PRODUCED)

    assert (verdict.verdict, dict(verdict.unknown)) == ("cannot tell", {reason: 2})


TRANSACTIONS = {
    "committed": (Written().produce(0, 0, 0, tx="x").end(5, "x").fetch("m1", 10, (0, 0, 1)), "held"),
    "committed while it was fetched": (
        Written().produce(0, 0, 0, tx="x").end(8, "x", end=12).fetch("m1", 5, (0, 0, 1), end=10),
        "held",
    ),
    "committed later": (Written().produce(0, 0, 0, tx="x").fetch("m1", 5, (0, 0, 1)).end(10, "x"), "broken"),
    "aborted": (
        Written().produce(0, 0, 0, tx="x").end(5, "x", committed=False).fetch("m1", 10, (0, 0, 1)),
        "broken",
    ),
    "never ended": (Written().produce(0, 0, 0, tx="x").fetch("m1", 10, (0, 0, 1)), "broken"),
    "the next of that name": (
        Written()
        .produce(0, 0, 0, tx="x")
        .end(5, "x", committed=False)
        .produce(6, 2, 2, tx="x")
        .end(8, "x")
        .fetch("m1", 10, (2, 2, 1)),
        "held",
    ),
    "an end without an answer": (
        Written().produce(0, 0, 0, tx="x").end(5, "x", end=None).fetch("m1", 10, (0, 0, 1)),
        "cannot tell",
    ),
    "an end with an error": (
        Written().produce(0, 0, 0, tx="x").end(5, "x", code=51).fetch("m1", 10, (0, 0, 1)),
        "cannot tell",
    ),
    "a producer whose log is cut off": (
        Written(p={"complete": False}).produce(0, 0, 0, tx="x").fetch("m1", 10, (0, 0, 1)),
        "cannot tell",
    ),
    "no transaction": (Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)), "nothing to check"),
}


@pytest.mark.parametrize(("written", "verdict"), TRANSACTIONS.values(), ids=TRANSACTIONS)
def test_only_what_is_committed_may_be_delivered(written: Written, verdict: str) -> None:
    """With read_committed; what is not known of the end of a transaction is said."""
    assert written.audited().verdict(Guarantee.ONLY_COMMITTED).verdict == verdict


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        (AuditSettings(isolation_level="read_uncommitted"), "nothing to check"),
        (AuditSettings(), "cannot tell"),
    ],
)
def test_the_isolation_level_decides(settings: AuditSettings, verdict: str) -> None:
    """With read_uncommitted everything may be delivered; if the level is not known, that is said."""
    written = Written().produce(0, 0, 0, tx="x").fetch("m1", 10, (0, 0, 1))

    assert written.audited(settings).verdict(Guarantee.ONLY_COMMITTED).verdict == verdict


def test_a_changed_isolation_level_decides_nothing() -> None:
    """Nobody knows when it reached the broker."""
    written = (
        Written()
        .settings(0, isolation_level="read_committed")
        .settings(5, isolation_level="read_uncommitted")
        .produce(0, 0, 0, tx="x")
        .fetch("m1", 10, (0, 0, 1))
    )

    assert written.audited().verdict(Guarantee.ONLY_COMMITTED).unknown == {"the isolation level was changed": 1}
