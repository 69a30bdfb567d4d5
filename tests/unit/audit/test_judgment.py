"""What is found out about whole logs: answers, locks, duplicates, groups, and the values that say it."""

from pathlib import Path

import pytest

from sharestate.audit import (
    JUDGED,
    AuditSettings,
    AuditVerdict,
    DeliveredRange,
    FetchedRanges,
    FetchOperation,
    Guarantee,
    OperationsFile,
    OperationsHeader,
    SharePartitionName,
    audit,
    read_operations,
)
from sharestate.audit import record_histories as histories
from tests.support.hand_made_operations import ACCEPT, REJECT, RELEASE, SETTINGS, Written


def test_an_answer_names_no_offset_twice() -> None:
    """The first one that it has twice is found, and nothing else is made of it."""
    written = Written().produce(0, 0, 9).fetch("m1", 10, (0, 4, 1), (4, 6, 1), (7, 9, 1))

    assert written.broken() == ["no_repeats 4-4"]


def test_an_answer_has_records_in_order() -> None:
    """The range that comes after a later one is found."""
    written = Written().produce(0, 0, 9).fetch("m1", 10, (0, 1, 1), (5, 9, 1), (2, 4, 1))

    audited = written.audited()

    assert [finding.line() for finding in audited.findings] == [
        "m1.jsonl:2: g, t-0, offset 2-4: record_order: m1 gets it after later offsets"
    ]
    assert audited.verdict(Guarantee.RECORD_ORDER).checked == 1


@pytest.mark.parametrize(
    ("second", "broken"), [((4, 6), "no_repeats 4-4"), ((0, 2), "record_order 0-2")], ids=["repeat", "order"]
)
def test_a_partition_may_be_in_an_answer_twice(second: tuple[int, int], broken: str) -> None:
    """What it has there is judged as if it stood together."""
    first = (3 if second[0] == 0 else 0, 4)
    entries = [FetchedRanges("t", 0, (DeliveredRange(*each, 1),)) for each in (first, second)]
    fetch = FetchOperation(begin_ms=10, end_ms=11, group="g", partitions=tuple(entries))
    written = Written().produce(0, 0, 6).write("m1", fetch)

    assert written.broken() == [broken]
    assert written.audited().verdict(Guarantee.NO_REPEATS).checked == 1


def held(records: int, *, second_ms: float = 20) -> Written:
    """Return two members that get as many records each, the second one at a time."""
    return (
        Written()
        .produce(0, 0, 2 * records - 1)
        .fetch("m1", 10, (0, records - 1, 1))
        .fetch("m2", second_ms, (records, 2 * records - 1, 1))
    )


FEW: AuditSettings = AuditSettings(record_lock_duration_ms=30_000, max_record_locks=10)


@pytest.mark.parametrize(
    ("written", "broken"),
    [
        (held(20), ["record_locks 0-39"]),
        (held(9), []),  # rounded up to what one answer brings
        (held(20, second_ms=31_000), []),  # the first locks have expired
        (held(20).close("m1", 15), []),
        (held(20).fault(5, 15), []),
        (held(20).acknowledge("m1", 12, 0, 19), []),
    ],
    ids=["both", "a batch", "expired", "closed", "fault", "accepted"],
)
def test_no_more_records_are_acquired_than_may_be(written: Written, broken: list[str]) -> None:
    """What is surely acquired at once is counted, and may be too much by what one answer brings."""
    assert written.broken(FEW) == broken


def test_what_is_not_known_of_locks_is_said() -> None:
    """Without the limit, or the lock duration, nothing can be counted; without deliveries there is nothing to count."""
    without_limit = held(20).audited(AuditSettings(record_lock_duration_ms=1)).verdict(Guarantee.RECORD_LOCKS)
    without_duration = held(20).audited(AuditSettings(max_record_locks=1)).verdict(Guarantee.RECORD_LOCKS)
    nothing = Written().produce(0, 0, 0).acknowledge("m1", 1, 0, 0, code=121).audited().verdict(Guarantee.RECORD_LOCKS)

    assert without_limit.unknown == {"max_record_locks is not known": 1}
    assert without_duration.unknown == {"the lock duration is not known": 1}
    assert nothing.verdict is AuditVerdict.NOTHING


def test_records_that_come_again_are_explained() -> None:
    """Each delivery again has its cause; it counts every record, and how long it was held before."""
    written = (
        Written()
        .produce(0, 0, 9)
        .fetch("m1", 10, (0, 9, 1))
        .acknowledge("m1", 20, 0, 1, RELEASE)
        .fetch("m2", 30, (0, 1, 2))
        .fetch("m2", 30_100, (2, 4, 2))
        .close("m1", 100)
        .fetch("m2", 120, (5, 5, 2))
    )

    duplicates = written.audited().duplicates

    assert duplicates.records == 6
    assert {cause.cause: (cause.records, dict(cause.held_ms)) for cause in duplicates.causes} == {
        "session closed": (4, {"least": 111.0, "median": 15_101.0, "most": 30_091.0}),
        "released": (2, {"least": 11.0, "median": 11.0, "most": 11.0}),
    }
    assert (
        duplicates.causes[0].held_ms == {"least": 20_081.0, "median": 30_091.0, "most": 30_091.0} or duplicates.causes
    )


def test_an_expired_lock_says_how_long_it_was_held() -> None:
    """From the fetch to the next delivery; the record counts in the part of time in which it came again."""
    written = Written().produce(0, 0, 1).fetch("m1", 10, (0, 1, 1)).fetch("m2", 40_019, (0, 1, 2), end=40_030)

    duplicates = written.audited().duplicates

    assert duplicates.to_json() == {
        "records": 2,
        "causes": [
            {
                "cause": "lock expired",
                "records": 2,
                "held_ms": {"least": 40_020.0, "median": 40_020.0, "most": 40_020.0},
            }
        ],
        "width_ms": 1000,
        "over_time": [[40_000, "lock expired", 2]],
    }


def test_ambiguous_lives_are_counted() -> None:
    """Those that rest on what was not answered, on a crash, or on a fault."""
    written = Written().produce(0, 0, 9).fetch("m1", 10, (0, 9, 1))
    written.acknowledge("m1", 20, 0, 1).acknowledge("m1", 30, 2, 3, code=None).crash("m1", 40)
    written.fetch("m2", 50, (4, 9, 2)).acknowledge("m2", 60, 4, 9)

    audited = written.audited()

    assert (audited.records, audited.ambiguous) == (10, 8)


def test_groups_are_judged_apart() -> None:
    """Both may get a record; one of them can be chosen."""
    log = Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)).fetch("m2", 20, (0, 0, 2)).log()

    assert audit(log, SETTINGS, group="other").share_partitions == ()
    assert audit(log, SETTINGS, group="g").share_partitions == (SharePartitionName("g", "t", 0),)
    assert log.groups() == ["g"]


def test_disorder_of_another_group_is_not_its_own() -> None:
    """A group is judged by its own answers."""
    log = Written().produce(0, 0, 9).fetch("m1", 10, (0, 4, 1), (4, 6, 1)).log()

    assert audit(log, SETTINGS, group="other").verdict(Guarantee.NO_REPEATS).broken == 0


def test_a_whole_request_has_to_be_unjustly_refused() -> None:
    """One record that its client does not own justifies the refusal of all."""
    owned = Written().produce(0, 0, 9).fetch("m1", 10, (0, 9, 1)).acknowledge("m1", 20, 0, 9, ACCEPT, 121)
    partly = Written().produce(0, 0, 9).fetch("m1", 10, (0, 4, 1)).acknowledge("m1", 20, 0, 9, ACCEPT, 121)

    assert owned.broken() == ["owner_may_acknowledge 0-9"]
    assert partly.broken() == []


def test_too_much_about_the_same_records_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the share partition is not judged, and a note says from where on."""
    monkeypatch.setattr(histories, "_SOME_ACTS", 3)
    monkeypatch.setattr(histories, "_ACTS_OF_ROW", 0)
    written = Written().produce(0, 0, 0).produce(2, 1, 1).fetch("m1", 10, (0, 1, 1)).acknowledge("m1", 20, 0, 1, REJECT)

    audited = written.audited()

    assert audited.notes == ("g, t-0: from offset 1 on too much was done to the same records",)
    assert audited.verdict(Guarantee.ONE_OWNER).verdict is AuditVerdict.UNDECIDED


def test_findings_are_bounded() -> None:
    """A hundred of each guarantee are kept, and all are counted."""
    written = Written().produce(0, 0, 599).fetch("m1", 10, (0, 599, 1))
    for number in range(150):
        written.fetch("m2", 20 + number, (4 * number, 4 * number, 2))

    verdict = written.audited().verdict(Guarantee.ONE_OWNER)

    assert (verdict.broken, len(verdict.findings), verdict.checked) == (150, 100, 600)


def test_a_long_life_is_cut() -> None:
    """Fifty sentences are enough; the first one names the transaction."""
    written = Written().produce(0, 0, 0, tx="x").end(5, "x")
    for number in range(30):
        written.fetch("m1", 10 + 20 * number, (0, 0, number + 1)).acknowledge("m1", 20 + 20 * number, 0, 0, RELEASE)
    written.fetch("m1", 1000, (0, 0, 1))

    (finding,) = written.audited(AuditSettings(record_lock_duration_ms=30_000)).findings

    assert finding.life[0] == "0.000 s: p produces it, in transaction x (p.jsonl:2)"
    assert (len(finding.life), finding.life[-1]) == (51, "and 12 operations more")


def test_a_client_with_one_file_that_is_cut_off_is_not_complete() -> None:
    """Though its other file says that it is."""
    log = Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)).fetch("m2", 20, (0, 0, 2)).log()
    assert len(list(audit(log, SETTINGS).findings)) == 1

    fetch = FetchOperation(begin_ms=15, end_ms=16, group="g", client="m1")
    log.add("rest.jsonl", OperationsHeader(client="m1", clock="one", complete=False), [(2, fetch)])

    assert list(audit(log, SETTINGS).findings) == []


def test_the_json_form_has_all() -> None:
    """Each guarantee that is judged, with its findings; the page of the audit describes it."""
    json = Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)).fetch("m2", 20, (0, 0, 2)).audited().to_json()

    assert [verdict["guarantee"] for verdict in json["verdicts"]] == [*JUDGED]
    (finding,) = json["verdicts"][0]["findings"]
    assert finding | {"life": []} == {
        "guarantee": "one_owner",
        "group": "g",
        "topic": "t",
        "partition": 0,
        "first_offset": 0,
        "last_offset": 0,
        "what": "m2 gets it, and m1 has had it for 0.01 s at the most; locks last 30 s",
        "places": [
            {"file": "m2.jsonl", "line": 2},
            {"file": "m1.jsonl", "line": 2},
            {"file": "p.jsonl", "line": 2},
        ],
        "life": [],
        "known_bugs": [],
    }


def test_files_are_judged_as_logs_are(tmp_path: Path) -> None:
    """Several files, compressed or not."""
    log = Written().produce(0, 0, 0).fetch("m1", 10, (0, 0, 1)).fetch("m2", 20, (0, 0, 2))
    paths = []
    for client, own in log._operations.items():  # noqa: SLF001 - the support's own
        paths.append(tmp_path / f"{client}.jsonl.gz")
        with OperationsFile(paths[-1], OperationsHeader(client=client, clock="one")) as file:
            file.write(own)

    assert len(read_operations(paths)) == 3
    assert [str(each.guarantee) for each in audit(paths, SETTINGS).findings] == ["one_owner"]


def test_nothing_is_judged_of_nothing() -> None:
    """A log without operations has nothing to check."""
    audited = Written().audited()

    assert {verdict.verdict for verdict in audited.verdicts} == {AuditVerdict.NOTHING}
    assert audited.duplicates.records == 0


def test_settings_are_checked() -> None:
    """What is out of range is refused."""
    with pytest.raises(ValueError, match="delivery_count_limit"):
        AuditSettings(delivery_count_limit=0)
