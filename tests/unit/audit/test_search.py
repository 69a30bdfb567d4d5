"""Lives of records: which follow from the rules, and which rule the others break."""

import pytest

from sharestate.audit import AuditSettings, Guarantee, View
from sharestate.audit import search as searches
from tests.support.hand_made_operations import ACCEPT, REJECT, RELEASE, RENEW, UNANSWERED, Written


def first() -> Written:
    """Return a record that m1 has got."""
    return Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 1))


RIGHT = {
    "released": first().acknowledge("m1", 20, 0, 0, RELEASE).fetch("m2", 30, (0, 0, 2)),
    "lock expired": first().fetch("m2", 30_010, (0, 0, 2)),
    "expired early, within the tolerance": first().fetch("m2", 29_920, (0, 0, 2)),
    "session closed": first().close("m1", 20).fetch("m2", 30, (0, 0, 2)),
    "crashed": first().crash("m1", 20).fetch("m2", 30, (0, 0, 2)),
    "crashed, and back": first().crash("m1", 20).fetch("m1", 40, (0, 0, 2)),
    "failed over, and counted from what was stored": first().fault(20, 20).fetch("m2", 30, (0, 0, 1)),
    "an acceptance without an answer": first()
    .acknowledge("m1", 20, 0, 0, ACCEPT, UNANSWERED)
    .fetch("m2", 30, (0, 0, 2)),
    "an acceptance that failed": first().acknowledge("m1", 20, 0, 0, ACCEPT, 15).fetch("m2", 30_020, (0, 0, 2)),
    "a fetch without an answer in between": first()
    .acknowledge("m1", 20, 0, 0, RELEASE)
    .fetch("m2", 30, end=None)
    .fetch("m3", 60, (0, 0, 3)),
    "overlapping: the release came first": first()
    .acknowledge("m1", 20, 0, 0, RELEASE, end=40)
    .fetch("m2", 25, (0, 0, 2), end=35),
    "a renewed lock": first().acknowledge("m1", 20_000, 0, 0, RENEW).acknowledge("m1", 45_000, 0, 0),
    "refused after the lock has expired": first().acknowledge("m1", 31_000, 0, 0, ACCEPT, 121),
    "refused because of another record": first().produce(5, 1, 1).acknowledge("m1", 20, 0, 1, ACCEPT, 121),
    "refused after the session was closed": first().close("m1", 15).acknowledge("m1", 20, 0, 0, ACCEPT, 121),
    "accepted a little late": first().acknowledge("m1", 30_900, 0, 0),
    "accepted below the SPSO, which is not refused": first().acknowledge("m1", 20, 0, 0).acknowledge("m1", 30, 0, 0),
    "an altered start offset": first().acknowledge("m1", 20, 0, 0).alter(30, 0).fetch("m2", 40, (0, 0, 1)),
    "released, then an altered start offset": first()
    .acknowledge("m1", 20, 0, 0, RELEASE)
    .alter(30, 0)
    .fetch("m2", 40, (0, 0, 1)),
    "counted on from before the log": Written().fetch("m1", 10, (0, 0, 4)).acknowledge("m1", 20, 0, 0),
    "counted on from before the log, after a fetch without an answer": Written()
    .fetch("m2", 5, end=None)
    .fetch("m1", 10, (0, 0, 3))
    .acknowledge("m1", 40_000, 0, 0),
    "a shorter lock that comes later": Written()
    .settings(0, record_lock_duration_ms=30_000)
    .settings(90_000, record_lock_duration_ms=1000)
    .produce(0, 0, 0)
    .fetch("m1", 10, (0, 0, 1))
    .acknowledge("m1", 29_000, 0, 0),
    "acknowledged after it was deleted": first()
    .acknowledge("m1", 20, 0, 0, RELEASE)
    .delete(25, 1)
    .acknowledge("m1", 30, 0, 0),
    "the same member again": first().acknowledge("m1", 20, 0, 0, RELEASE).fetch("m1", 30, (0, 0, 2)),
    "a lock of another duration": Written()
    .settings(0, record_lock_duration_ms=30_000)
    .produce(0, 0, 0)
    .settings(50_000, record_lock_duration_ms=1000)
    .fetch("m1", 70_000, (0, 0, 1))
    .fetch("m2", 71_100, (0, 0, 2)),
}


@pytest.mark.parametrize("written", RIGHT.values(), ids=RIGHT)
def test_a_right_life_is_not_broken(written: Written) -> None:
    """Whatever the order, the clocks and what was not answered: if one explanation is right, nothing is broken."""
    assert written.broken() == []


WRONG = {
    "one_owner": first().fetch("m2", 20, (0, 0, 2)),
    "one_owner, though the lock has expired by half": first().fetch("m2", 15_000, (0, 0, 2)),
    "one_owner, the same member": first().fetch("m1", 20, (0, 0, 2)),
    "one_owner, in spite of a renewal": first().acknowledge("m1", 25_000, 0, 0, RENEW).fetch("m2", 31_000, (0, 0, 2)),
    "one_owner, a shorter lock that comes later": Written()
    .settings(0, record_lock_duration_ms=30_000)
    .settings(90_000, record_lock_duration_ms=1000)
    .produce(0, 0, 0)
    .fetch("m1", 10, (0, 0, 1))
    .fetch("m2", 20_000, (0, 0, 2)),
    "one_owner, a fault of another partition": first().fault(15, 15, partition=1).fetch("m2", 20, (0, 0, 2)),
    "one_owner, acquired after a crash": Written()
    .produce(0, 0, 0)
    .crash("m1", 5)
    .fetch("m1", 10, (0, 0, 1))
    .fetch("m2", 20, (0, 0, 2)),
    "accepted_is_final": first().acknowledge("m1", 20, 0, 0).fetch("m2", 30, (0, 0, 2)),
    "accepted_is_final, after a failover too": first()
    .acknowledge("m1", 20, 0, 0)
    .fault(25, 25)
    .fetch("m2", 30, (0, 0, 1)),
    "accepted_is_final, after a lock duration": first().acknowledge("m1", 20, 0, 0).fetch("m2", 40_000, (0, 0, 2)),
    "rejected_is_final": first().acknowledge("m1", 20, 0, 0, REJECT).fetch("m2", 30, (0, 0, 2)),
    "delivery_count, it falls": first()
    .acknowledge("m1", 20, 0, 0, RELEASE)
    .fetch("m2", 30, (0, 0, 2))
    .acknowledge("m2", 40, 0, 0, RELEASE)
    .fetch("m1", 50, (0, 0, 1)),
    "delivery_count, it stays": first().acknowledge("m1", 20, 0, 0, RELEASE).fetch("m2", 30, (0, 0, 1)),
    "delivery_count, it jumps": first().acknowledge("m1", 20, 0, 0, RELEASE).fetch("m2", 30, (0, 0, 3)),
    "delivery_count, it begins with two": Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 2)),
    "delivery_count, it falls below what was stored": first()
    .acknowledge("m1", 20, 0, 0, RELEASE)
    .fault(25, 25)
    .fetch("m2", 30, (0, 0, 1)),
    "delivery_limit": Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 6)),
    "only_owner_may_acknowledge": first().acknowledge("m2", 20, 0, 0),
    "only_owner_may_acknowledge, of what was released": first()
    .acknowledge("m1", 20, 0, 0, RELEASE)
    .acknowledge("m1", 30, 0, 0),
    "only_owner_may_acknowledge, long after its lock": first().acknowledge("m1", 40_000, 0, 0),
    "owner_may_acknowledge": first().acknowledge("m1", 20, 0, 0, ACCEPT, 121),
}


@pytest.mark.parametrize(("name", "written"), WRONG.items(), ids=WRONG)
def test_a_wrong_life_is_named(name: str, written: Written) -> None:
    """By the rule that fails in the order that goes furthest, and by no other."""
    assert written.broken() == [f"{name.partition(',')[0]} 0-0"]


def test_a_record_below_that_comes_later_shows_that_the_spso_has_not_passed() -> None:
    """So a second acceptance of a record above it should have been refused."""
    written = (
        Written()
        .produce(0, 0, 1)
        .fetch("m1", 10, (0, 1, 1))
        .acknowledge("m1", 20, 1, 1)
        .acknowledge("m1", 30, 1, 1)
        .acknowledge("m1", 40, 0, 0, RELEASE)
        .fetch("m2", 50, (0, 0, 2))
    )

    assert written.broken() == ["only_owner_may_acknowledge 1-1"]


def test_who_is_refused_once_is_found_though_the_same_is_right_later() -> None:
    """Each refusal is judged by itself: the second one is right, since the lock has expired."""
    written = first().acknowledge("m1", 20, 0, 0, ACCEPT, 121).acknowledge("m1", 31_000, 0, 0, ACCEPT, 121)

    (finding,) = written.audited().findings

    assert finding.guarantee is Guarantee.OWNER_MAY_ACKNOWLEDGE
    assert [str(place) for place in finding.places] == ["m1.jsonl:3"]


def test_what_is_broken_is_told_as_a_life() -> None:
    """A finding has a sentence for each operation, with its place, and what is wrong."""
    written = first().acknowledge("m1", 20, 0, 0).fetch("m2", 30, (0, 0, 2))

    (finding,) = written.audited().findings

    assert finding.line() == "m2.jsonl:2: g, t-0, offset 0: accepted_is_final: m2 gets what m1 has accepted"
    assert finding.life == (
        "0.000 s: p produces it (p.jsonl:2)",
        "0.010 s: m1 gets it, delivery 1 (m1.jsonl:2)",
        "0.020 s: m1 acknowledges it, accept (m1.jsonl:3)",
        "0.030 s: m2 gets it, delivery 2 (m2.jsonl:2)",
    )
    assert [str(place) for place in finding.places] == ["m2.jsonl:2", "m1.jsonl:2", "m1.jsonl:3", "p.jsonl:2"]


def test_a_life_says_what_was_answered() -> None:
    """An unjust refusal is no matter once a life is wrong without it."""
    written = first().acknowledge("m1", 12, 0, 0, RENEW, UNANSWERED).acknowledge("m1", 14, 0, 0, ACCEPT, 121)
    written.acknowledge("m1", 20, 0, 0).fetch("m2", 30, (0, 0, 2))

    (finding,) = written.audited().findings

    assert finding.guarantee is Guarantee.ACCEPTED_IS_FINAL
    assert finding.life[2:4] == (
        "0.012 s: m1 acknowledges it, renew, without an answer (m1.jsonl:3)",
        "0.014 s: m1 acknowledges it, accept, refused with INVALID_RECORD_STATE (m1.jsonl:4)",
    )


def test_records_with_the_same_life_are_one_finding() -> None:
    """The borders of what was done divide the offsets: 3 and 4 come again, the others do not."""
    written = Written().produce(0, 0, 9).fetch("m1", 10, (0, 9, 1)).fetch("m2", 20, (3, 4, 2))

    assert written.broken() == ["one_owner 3-4"]


def test_an_unknown_lock_duration_is_said() -> None:
    """A second owner proves nothing if nobody knows how long locks last."""
    written = first().fetch("m2", 20, (0, 0, 2))

    audited = written.audited(AuditSettings())

    assert audited.verdict(Guarantee.ONE_OWNER).verdict == "cannot tell"
    assert audited.verdict(Guarantee.ONE_OWNER).unknown == {"the lock duration is not known": 1}


def test_a_log_that_is_not_complete_excuses_its_client() -> None:
    """It may have released what it had, or acquired what it acknowledges, where its log says nothing."""
    cut = {"m1": {"complete": False}}
    released = Written(**cut).produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)).fetch("m2", 20, (0, 0, 2))
    acquired = Written(**cut).produce(0, 0, 0).acknowledge("m1", 10, 0, 0)
    accepted = Written(**cut).produce(0, 0, 0).acknowledge("m1", 10, 0, 0).fetch("m2", 20, (0, 0, 2))

    assert released.broken() == acquired.broken() == []
    assert accepted.broken() == ["accepted_is_final 0-0"]


def test_a_log_that_is_not_complete_excuses_others() -> None:
    """Its client may have accepted what another one acknowledges after its lock has expired."""
    late = Written(m2={"complete": False}).produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)).fetch("m2", 35_000)
    early = Written(m2={"complete": False}).produce(0, 0, 0).fetch("m2", 5).fetch("m1", 10, (0, 0, 1))

    assert late.acknowledge("m1", 40_000, 0, 0).broken() == []
    assert early.acknowledge("m3", 20, 0, 0).broken() == ["only_owner_may_acknowledge 0-0"]


def test_an_application_sees_less() -> None:
    """Its client library may have acquired a record since it was produced, or unseen, but not once it is accepted."""
    seen = {name: {"view": View.APPLICATION} for name in ("m1", "m2")}
    early = Written(**seen).produce(0, 0, 0).fetch("m1", 40_000, (0, 0, 1)).fetch("m2", 40_010, (0, 0, 3))
    new = Written(**seen).produce(39_000, 0, 0).fetch("m1", 40_000, (0, 0, 1)).fetch("m2", 40_010, (0, 0, 2))
    accepted = (
        Written(**seen)
        .produce(39_000, 0, 0)
        .fetch("m1", 40_000, (0, 0, 1))
        .acknowledge("m1", 40_010, 0, 0)
        .fetch("m2", 40_020, (0, 0, 2))
    )

    assert early.broken() == []
    assert new.broken() == ["one_owner 0-0"]
    assert accepted.broken() == ["accepted_is_final 0-0"]


def test_what_was_polled_was_acquired_after_the_poll_began() -> None:
    """However long ago it was produced: what comes again then, or is refused, is not excused by a lock before."""
    seen = {name: {"view": View.POLLED} for name in ("m1", "m2")}

    def given() -> Written:
        return Written(**seen).produce(0, 0, 0).fetch("m1", 40_000, (0, 0, 1))

    def accepted() -> Written:
        return given().acknowledge("m1", 40_010, 0, 0)

    assert given().fetch("m2", 40_010, (0, 0, 2)).broken() == ["one_owner 0-0"]
    assert given().acknowledge("m1", 40_010, 0, 0, code=121).broken() == ["owner_may_acknowledge 0-0"]
    assert given().acknowledge("m2", 40_010, 0, 0).broken() == ["only_owner_may_acknowledge 0-0"]
    assert accepted().fetch("m2", 40_020, (0, 0, 2)).broken() == ["accepted_is_final 0-0"]
    assert accepted().fetch("m2", 20_000, (0, 0, 2), end=40_020).broken() == ["accepted_is_final 0-0"]
    assert given().fetch("m2", 75_000, (0, 0, 1)).broken() == ["delivery_count 0-0"]


def test_what_was_polled_may_have_waited_in_a_long_poll() -> None:
    """It was acquired at any moment between begin and end, and other records unseen, so that counts jump."""
    seen = {name: {"view": View.POLLED} for name in ("m1", "m2")}
    waited = Written(**seen).produce(0, 0, 0).fetch("m1", 10, (0, 0, 1), end=40_000)
    jumped = Written(**seen).produce(0, 0, 0).fetch("m1", 10, (0, 0, 3))

    assert waited.acknowledge("m1", 40_010, 0, 0, code=121).fetch("m2", 40_020, (0, 0, 2)).broken() == []
    assert jumped.broken() == []


def test_two_applications_that_have_a_record_break_one_owner() -> None:
    """One of them acknowledges it, so the other has it wrongly; a client that was not given it acknowledges wrongly."""
    seen = {name: {"view": View.APPLICATION} for name in ("m1", "m2", "m3")}

    def given() -> Written:
        return Written(**seen).produce(0, 0, 0).fetch("m1", 35_000, (0, 0, 1)).fetch("m2", 35_010, (0, 0, 2))

    assert given().acknowledge("m1", 35_020, 0, 0).broken() == ["one_owner 0-0"]
    assert given().acknowledge("m3", 35_020, 0, 0).broken() == ["only_owner_may_acknowledge 0-0"]


def test_an_application_may_not_see_how_a_record_reaches_its_limit() -> None:
    """Then acknowledgements of it are not refused any more; that takes time, or a session that closes."""
    seen = {name: {"view": View.APPLICATION} for name in ("m1", "m2")}
    slow = Written(**seen).produce(0, 0, 0).fetch("m1", 10, (0, 0, 3)).acknowledge("m1", 95_000, 0, 0)
    quick = Written(**seen).produce(0, 0, 0).fetch("m1", 10, (0, 0, 3)).acknowledge("m1", 40_000, 0, 0)
    closed = Written(**seen).produce(0, 0, 0).fetch("m1", 10, (0, 0, 3)).close("m2", 20).acknowledge("m1", 40_000, 0, 0)

    assert slow.broken() == closed.broken() == []
    assert quick.broken() == ["only_owner_may_acknowledge 0-0"]


def test_deliveries_without_counts_are_counted() -> None:
    """Six deliveries are more than the limit, whatever their counts; that these cannot be judged is said."""
    written = Written().produce(0, 0, 0)
    for number in range(6):
        written.fetch("m1", 10 + 20 * number, (0, 0, None)).acknowledge("m1", 20 + 20 * number, 0, 0, RELEASE)

    audited = written.audited()

    assert [str(each.guarantee) for each in audited.findings] == ["delivery_limit"]
    assert audited.verdict(Guarantee.DELIVERY_COUNT).unknown == {"delivery counts were not seen": 1}


def test_a_search_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """If too much overlaps for all orders to be tried, it is said, and nothing is broken."""
    monkeypatch.setattr(searches, "_STEPS_OF_LIFE", 1000)

    for members in (15, 40):
        written = Written().produce(0, 0, 0).fault(0, 2000)
        for number in range(members):
            written.fetch(f"m{number}", 10, (0, 0, None), end=1000)
        written.fetch("m1", 1500, (0, 0, 6))
        verdict = written.audited().verdict(Guarantee.ONE_OWNER)
        assert verdict.unknown == {"too many operations overlap for all orders to be tried": 1}
        assert verdict.broken == 0


def test_what_follows_from_no_settings_is_judged_without_them() -> None:
    """An accepted record that comes again is wrong with any settings."""
    written = first().acknowledge("m1", 20, 0, 0).fetch("m2", 30, (0, 0, 2))

    assert written.broken(AuditSettings()) == ["accepted_is_final 0-0"]


@pytest.mark.parametrize("code", [0, 6, 74])
def test_a_leader_that_is_none_any_more_has_moved(code: int) -> None:
    """A broker's answer shows it where nobody wrote down a fault: since it has last done this client's will."""
    written = Written().produce(0, 0, 1).fetch("m1", 10, (0, 0, 1)).fetch("m2", 200, (0, 0, 1))
    written.fetch("m1", 300, (1, 1, 1)) if not code else written.acknowledge("m1", 300, 0, 0, code=code)

    assert written.broken() == ([] if code else ["one_owner 0-0"])


def test_a_leader_had_not_moved_before_it_has_last_answered() -> None:
    """What was wrong before that is not explained."""
    written = Written().produce(0, 0, 1).fetch("m1", 10, (0, 0, 1)).fetch("m2", 200, (0, 0, 2))
    written.fetch("m1", 300, (1, 1, 1)).acknowledge("m1", 400, 1, 1, code=6)

    assert written.broken() == ["one_owner 0-0"]
