"""Records that were delivered after they had been deleted from the log."""

from __future__ import annotations

import pytest

from sharestate.audit import AuditVerdict, DeleteRecordsOperation, Guarantee, View
from tests.support.hand_made_operations import Written


def deleted(*, view: View = View.WIRE, **more: dict[str, object]) -> Written:
    """Return three requests of a producer, of which the first two records are deleted."""
    written = Written(m1={"view": view}, **more)
    return written.produce(0, 0, 0).produce(10, 1, 1).produce(20, 2, 2).delete(30, 2)


def test_what_is_delivered_after_it_was_deleted_is_found() -> None:
    """Its batch is another one than that with which the log starts: one was sent when the other one was there."""
    audited = deleted().fetch("m1", 40, (0, 2, 1)).audited()

    assert [(each.guarantee, each.first_offset, each.last_offset) for each in audited.findings] == [
        (Guarantee.NOTHING_DELETED, 0, 0),
        (Guarantee.NOTHING_DELETED, 1, 1),
    ]
    (first, _) = audited.findings
    assert first.what == "m1 gets it after what is below 2 was deleted (a.jsonl:2)"
    assert audited.verdict(Guarantee.NOTHING_DELETED).checked == 3


@pytest.mark.parametrize("view", [View.WIRE, View.POLLED])
def test_what_was_asked_for_before_may_come(view: View) -> None:
    """The fetch may have been answered before the records were deleted."""
    assert deleted(view=view).fetch("m1", 25, (0, 1, 1), end=100).broken() == []
    assert deleted(view=view).fetch("m1", 35, (0, 1, 1), end=100).broken() == [
        "nothing_deleted 0-0",
        "nothing_deleted 1-1",
    ]


def test_an_application_may_have_been_given_it_late() -> None:
    """Where nobody knows when a record was acquired, it may have been before it was deleted."""
    assert deleted(view=View.APPLICATION).fetch("m1", 40, (0, 1, 1)).broken() == []


def test_what_may_share_a_batch_cannot_be_told() -> None:
    """The log keeps the batch in which it starts as a whole, and clients see no batches."""
    together = Written().produce(0, 0, 9).delete(30, 5).fetch("m1", 40, (0, 9, 1))
    at_once = Written().produce(0, 0, 0, end=9).produce(0, 1, 1, end=9).delete(30, 1).fetch("m1", 40, (0, 1, 1))
    apart = Written().produce(0, 0, 0).produce(0, 1, 1, client="p2").delete(30, 1).fetch("m1", 40, (0, 1, 1))

    for written in (together, at_once):
        verdict = written.audited().verdict(Guarantee.NOTHING_DELETED)
        assert verdict.verdict is AuditVerdict.UNDECIDED
        assert [*verdict.unknown] == [
            "what was deleted may share a batch of the log with the first record that is left"
        ]
    assert apart.broken() == ["nothing_deleted 0-0"]


def test_what_is_behind_the_log_shares_no_batch() -> None:
    """All is deleted: the first offset left was produced by nobody, unless a producer has not written down all."""
    everything = Written().produce(0, 0, 0).delete(30, 1).fetch("m1", 40, (0, 0, 1))
    cut_off = Written(p={"complete": False}).produce(0, 0, 0).delete(30, 1).fetch("m1", 40, (0, 0, 1))
    unsaid = Written().produce(0, 0, 0).produce(5, 1, 1, end=None).delete(30, 1).fetch("m1", 40, (0, 0, 1))

    assert everything.broken() == ["nothing_deleted 0-0"]
    assert cut_off.broken() == unsaid.broken() == []


def test_a_new_leader_excuses_it() -> None:
    """Until it has heard of the deletion, the log of another leader starts where it did."""
    audited = deleted().fault(32, 35).fetch("m1", 40, (0, 1, 1)).audited()

    assert [*audited.verdict(Guarantee.NOTHING_DELETED).unknown] == ["the leader may have changed since it was deleted"]


@pytest.mark.parametrize(("end", "code"), [(None, 0), (31, 7)])
def test_what_was_perhaps_not_deleted_may_come(end: float | None, code: int) -> None:
    """A request without an answer, or with an error, may not have been carried out."""
    asked = DeleteRecordsOperation(begin_ms=30, end_ms=end, topic="t", partition=0, before_offset=2, code=code)
    written = Written().produce(0, 0, 0).produce(10, 1, 1).produce(20, 2, 2).write("a", asked)

    assert written.fetch("m1", 40, (0, 2, 1)).broken() == []
