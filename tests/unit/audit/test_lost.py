"""Records that were lost, judged by hand-made operations."""

import pytest

from sharestate.audit import AuditSettings, Guarantee
from tests.support.hand_made_operations import REJECT, RELEASE, SETTINGS, Written


def quiet(written: Written, *members: str, at: float = 100_000) -> Written:
    """Let members ask, and get nothing, long after everything else."""
    for member in members or ("m1",):
        written.fetch(member, at)
    return written


def two_of_three() -> Written:
    """Return three records, of which the first two were accepted."""
    return Written().produce(0, 0, 2).fetch("m1", 10, (0, 1, 1)).acknowledge("m1", 20, 0, 1)


LOST = {
    "never delivered": quiet(two_of_three()),
    "delivered, and never again": quiet(two_of_three().fetch("m2", 30, (2, 2, 1)).close("m2", 40)),
    "released, and never again": quiet(two_of_three().fetch("m1", 30, (2, 2, 1)).acknowledge("m1", 40, 2, 2, RELEASE)),
    "refused, and never again": quiet(
        two_of_three().fetch("m1", 30, (2, 2, 1)).acknowledge("m1", 40_000, 2, 2, REJECT, 121)
    ),
    "in a committed transaction": quiet(
        Written()
        .produce(0, 0, 1)
        .produce(0, 2, 2, tx="x")
        .end(5, "x")
        .fetch("m1", 10, (0, 1, 1))
        .acknowledge("m1", 20, 0, 1)
    ),
    "members that closed in the end": quiet(two_of_three()).close("m1", 100_010),
    "one that crashed earlier": quiet(two_of_three().fetch("m2", 30).crash("m2", 40)),
}


@pytest.mark.parametrize("written", LOST.values(), ids=LOST)
def test_a_record_that_is_not_finished_at_the_end_was_lost(written: Written) -> None:
    """If members went on asking until all locks had expired, and it did not come."""
    assert written.broken() == ["nothing_lost 2-2"]


KEPT = {
    "accepted": quiet(two_of_three().fetch("m1", 30, (2, 2, 1)).acknowledge("m1", 40, 2, 2)),
    "perhaps accepted": quiet(two_of_three().fetch("m1", 30, (2, 2, 1)).acknowledge("m1", 40, 2, 2, code=None)),
    "deleted": quiet(two_of_three().delete(30, 3)),
    "aborted": quiet(
        Written()
        .produce(0, 0, 1)
        .produce(0, 2, 2, tx="x")
        .end(5, "x", committed=False)
        .fetch("m1", 10, (0, 1, 1))
        .acknowledge("m1", 20, 0, 1)
    ),
}


@pytest.mark.parametrize("written", KEPT.values(), ids=KEPT)
def test_a_record_that_is_finished_or_gone_was_not_lost(written: Written) -> None:
    """Nobody waits for it any more."""
    verdict = written.audited().verdict(Guarantee.NOTHING_LOST)

    assert (verdict.verdict, verdict.checked) == ("held", 3)


def test_the_delivery_limit_ends_a_life() -> None:
    """After its last delivery a record need not come again."""
    written = Written().produce(0, 0, 0)
    for number in range(5):
        written.fetch("m1", 10 + 20 * number, (0, 0, number + 1)).acknowledge("m1", 20 + 20 * number, 0, 0, RELEASE)

    assert quiet(written).audited().verdict(Guarantee.NOTHING_LOST).verdict == "held"


def test_a_group_that_begins_at_the_end_has_lost_nothing_before() -> None:
    """Without earliest the first record that was delivered is the first one that is judged."""
    written = Written().produce(0, 0, 2).fetch("m1", 10, (2, 2, 1)).acknowledge("m1", 20, 2, 2)
    latest = AuditSettings(record_lock_duration_ms=30_000, delivery_count_limit=5, auto_offset_reset="latest")

    assert quiet(written).broken(latest) == []
    assert quiet(written).broken() == ["nothing_lost 0-1"]


LIMIT = AuditSettings(record_lock_duration_ms=30_000)

UNKNOWN = {
    "the lock duration is not known": (quiet(two_of_three()), AuditSettings(auto_offset_reset="earliest")),
    "the log does not end in quiet: m1 went on asking for 0.1 s after the last that happened, and it takes 31.1 s "
    "until all locks have expired": (quiet(two_of_three(), at=100), SETTINGS),
    "the log does not end in quiet: m2 went on asking for 0.0 s after the last that happened, and it takes 31.1 s "
    "until all locks have expired": (quiet(two_of_three().fetch("m2", 50, (0, 1, 2))), SETTINGS),
    "the log does not end in quiet: too little was asked for after the last member had left": (
        quiet(two_of_three().fetch("m2", 50).crash("m2", 90_000)),
        SETTINGS,
    ),
    "the log of a member is not complete": (
        quiet(Written(m1={"complete": False}).produce(0, 0, 0).fetch("m1", 10, (0, 0, 1), partition=1)),
        SETTINGS,
    ),
    "the start offset was altered": (quiet(two_of_three().alter(30, 0)), SETTINGS),
    "the isolation level is not known": (
        quiet(Written().produce(0, 0, 0, tx="x").end(5, "x").fetch("m1", 10, (0, 0, 1), partition=1)),
        AuditSettings(record_lock_duration_ms=30_000, auto_offset_reset="earliest"),
    ),
    "the delivery count limit is not known": (quiet(Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 1))), LIMIT),
    "nothing was delivered, and where the group began is not known": (
        quiet(Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 1), partition=1)),
        LIMIT,
    ),
    "a transaction before it has perhaps not ended": (
        quiet(
            Written()
            .produce(0, 0, 0, tx="x")
            .end(5, "x", end=None)
            .produce(7, 1, 1)
            .fetch("m1", 10, (0, 0, 1), partition=1)
        ),
        SETTINGS,
    ),
    "it may have reached the delivery count limit unseen": (
        quiet(Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 4)).fetch("m1", 50_000, end=None)),
        SETTINGS,
    ),
}


@pytest.mark.parametrize(("reason", "case"), UNKNOWN.items(), ids=range(len(UNKNOWN)))
def test_why_it_cannot_be_told_is_said(reason: str, case: tuple[Written, AuditSettings]) -> None:
    """A log that ends too early proves nothing, as do records that may have been delivered unseen."""
    written, settings = case

    verdict = written.audited(settings).verdict(Guarantee.NOTHING_LOST)

    assert (verdict.broken, [*verdict.unknown]) == (0, [reason])


def test_a_bug_of_kafka_that_looks_so_is_named() -> None:
    """By what happened: a failover, a deletion, a transaction."""
    failed_over = quiet(two_of_three().fault(30, 30))
    deleted = quiet(two_of_three().delete(30, 1))

    assert [finding.known_bugs for finding in failed_over.audited().findings] == [("F1", "B17")]
    assert [finding.known_bugs for finding in deleted.audited().findings] == [("F4", "F5", "F8")]
