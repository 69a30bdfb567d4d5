"""How records come again: as Kafka sends them, or otherwise, as other brokers do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from sharestate.audit import CONFORMANCE, Audit, AuditSettings, AuditVerdict, View, audit
from tests.support.audited_clients import RandomClients, log_of
from tests.support.hand_made_operations import RELEASE, SETTINGS, Written

DATA = Path(__file__).parents[2] / "data" / "audit"

LIKE_KAFKA = evolve(SETTINGS, kafka="4.3")


def compared(judged: Audit) -> dict[str, tuple[str, int, int]]:
    """Return the verdicts on what is compared, with how many were checked and found."""
    return {
        each.guarantee.value: (each.verdict.value, each.checked, each.broken)
        for each in judged.verdicts
        if each.guarantee in CONFORMANCE
    }


@pytest.mark.parametrize("run", ["k431-locks", "k440-transactions", "k440-leaders"])
def test_brokers_of_kafka_are_as_kafka(run: str) -> None:
    """Under releases, expired locks, faults: no answer is different, and some are checked."""
    found = compared(audit(sorted((DATA / run).iterdir()), AuditSettings(kafka="4.3")))

    assert [broken for *_, broken in found.values()] == [0, 0]
    assert sum(checked for _, checked, _ in found.values()) > 0


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_the_node_is_as_kafka(seed: int) -> None:
    """As brokers answer it, ranges and all."""
    found = compared(audit(log_of(RandomClients(seed).run()), AuditSettings(kafka="4.4")))

    assert [broken for *_, broken in found.values()] == [0, 0]
    assert found["last_delivery_alone"][1] > 0


@pytest.mark.parametrize("broker", ["kfake", "mock"])
def test_other_brokers_are_found_to_be_different(broker: str) -> None:
    """All that keeps failing comes again as one, to the last delivery; no guarantee is broken by that."""
    judged = audit(sorted((DATA / broker).iterdir()), AuditSettings(kafka="4.3"))

    assert {verdict for verdict, *_ in compared(judged).values()} == {AuditVerdict.DIFFERENT.value}
    assert AuditVerdict.BROKEN not in {each.verdict for each in judged.verdicts}


def test_nothing_is_compared_unless_a_release_is_named() -> None:
    """The verdicts are those on the guarantees."""
    assert compared(audit(sorted((DATA / "kfake").iterdir()))) == {}


def again(size: int, *deliveries: tuple[int, int], **headers: dict[str, object]) -> Written:
    """Return a batch that is released as often as it comes, each time with so many records and that count."""
    written = Written(**headers).produce(0, 0, 2 * size)
    for number, (count, records) in enumerate(deliveries):
        written.fetch("m1", 10 + 20 * number, (0, records - 1, count))
        written.acknowledge("m1", 20 + 20 * number, 0, records - 1, RELEASE)
    return written


def different(written: Written) -> Iterator[str]:
    """Yield what is different."""
    for finding in written.audited(LIKE_KAFKA).findings:
        yield f"{finding.guarantee}: {finding.what}"


HALF = "throttled_redelivery: 10 records come in one answer at delivery 4, where Kafka sends 5 at the most"


def test_half_of_a_batch_comes_at_half_of_the_limit() -> None:
    """With limit 5 after three deliveries: rule 20.3 has the numbers, which are Kafka's."""
    assert list(different(again(10, (1, 10), (2, 10), (3, 10), (4, 5), (5, 1)))) == []
    assert list(different(again(10, (1, 10), (2, 10), (3, 10), (4, 10)))) == [HALF]


def test_the_last_delivery_is_of_one_record() -> None:
    """More in the same answer are different."""
    found = list(different(again(10, (1, 10), (2, 10), (3, 10), (4, 5), (5, 2))))

    assert found == ["last_delivery_alone: 2 records come in one answer, and one of them for the last time"]


def test_a_batch_may_have_come_to_an_application_in_several_polls() -> None:
    """Its size is what came first, all in all."""
    written = (
        Written(m1={"view": View.APPLICATION}).produce(0, 0, 19).fetch("m1", 10, (0, 4, 1)).fetch("m1", 12, (5, 9, 1))
    )
    for number in (2, 3, 4):
        written.acknowledge("m1", 20 * number, 0, 9, RELEASE).fetch("m1", 20 * number + 10, (0, 4, number))
        written.fetch("m1", 20 * number + 12, (5, 9, number))

    assert list(different(written)) == []


def test_a_batch_may_have_come_to_several_members_at_first() -> None:
    """With acquire mode record_limit (KIP-1206) each gets a part of what stays one batch."""
    written = Written().produce(0, 0, 19).fetch("m1", 10, (0, 4, 1)).fetch("m2", 12, (5, 9, 1))
    written.acknowledge("m1", 20, 0, 4, RELEASE).acknowledge("m2", 20, 5, 9, RELEASE)
    for number in (2, 3, 4):
        written.fetch("m1", 20 * number, (0, 4 if number == 4 else 9, number))
        written.acknowledge("m1", 20 * number + 10, 0, 4 if number == 4 else 9, RELEASE)

    assert list(different(written)) == []


def test_after_a_failover_sizes_are_not_known() -> None:
    """A new leader reads batches as they were stored, perhaps several as one."""
    written = again(10, (1, 10), (2, 10), (3, 10), (4, 10)).fault(0, 1)

    assert list(different(written)) == []
    assert compared(written.audited(LIKE_KAFKA))["throttled_redelivery"][1] == 0
