"""Random clients of a node: what they write down is never found broken, and is when one thing in it is falsified."""

from __future__ import annotations

import os
from random import Random

import pytest

from sharestate.audit import Guarantee, View, audit
from tests.support.audited_clients import lines_of, log_of
from tests.support.falsified_operations import FALSIFICATIONS, Falsify

SEEDS = range(6)

MORE_SEEDS = range(6 * int(os.environ.get("SHARESTATE_TIMES", "1")))
"""Of right clients; 42 times as many are a thousand lives, with and without faults, and with clocks that differ."""

NEEDS_MORE = {
    Guarantee.NOTHING_LOST,
    Guarantee.DELIVERY_COUNT,
    Guarantee.RECORD_LOCKS,
    Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE,
}
"""What a fault hides sometimes: records may have been delivered unseen, counts fall back, and locks end."""


@pytest.mark.parametrize("seed", MORE_SEEDS)
@pytest.mark.parametrize("skew_ms", [0, 300], ids=["one clock", "own clocks"])
@pytest.mark.parametrize("has_faults", [False, True], ids=["no faults", "faults"])
def test_right_clients_are_never_found_broken(seed: int, skew_ms: int, has_faults: bool) -> None:  # noqa: FBT001 - a parameter
    """With lost answers, crashes, failover and clocks that differ, and without."""
    lines = lines_of(seed, skew_ms=skew_ms, has_faults=has_faults)

    audited = audit(log_of(lines, has_own_clocks=bool(skew_ms)))

    assert [finding.line() for finding in audited.findings] == []
    assert audited.verdict(Guarantee.ONE_OWNER).checked > 100


@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_right_clients_that_have_seen_less_are_never_found_broken(seed: int) -> None:
    """As applications, and with a member whose log begins late and ends early; markers are no records of theirs."""
    lines = lines_of(seed)

    applications = [audit(log_of(lines, view=view)) for view in (View.APPLICATION, View.POLLED)]
    cut = audit(log_of(lines, cut_off="m1"))

    found = [*applications[0].findings, *applications[1].findings, *cut.findings]
    assert [each.line() for each in found if each.guarantee is not Guarantee.ONLY_PRODUCED] == []
    assert cut.verdict(Guarantee.ONLY_PRODUCED).broken == 0


@pytest.mark.parametrize(("seed", "skew_ms", "has_faults"), [(66, 300, False), (143, 0, True), (160, 300, True)])
def test_lives_that_were_called_wrong(seed: int, skew_ms: int, has_faults: bool) -> None:  # noqa: FBT001 - a parameter
    """Acknowledgements that the SPSO had passed order no clocks; a fetch that waited may have lost its answer."""
    lines = lines_of(seed, skew_ms=skew_ms, has_faults=has_faults)

    assert [finding.line() for finding in audit(log_of(lines, has_own_clocks=bool(skew_ms))).findings] == []


def test_a_life_that_was_called_wrong_where_a_log_is_cut_off() -> None:
    """What somebody has finished unseen may be renewed, and released by another member, without being refused."""
    assert [finding.line() for finding in audit(log_of(lines_of(85), cut_off="m1")).findings] == []


@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_without_faults_all_can_be_told(seed: int) -> None:
    """On one clock, but of acknowledgements below the SPSO, which are never refused."""
    audited = audit(log_of(lines_of(seed, has_faults=False)))

    unknown = {verdict.guarantee for verdict in audited.verdicts if verdict.unknown}
    assert unknown <= {Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE}
    assert audited.verdict(Guarantee.NOTHING_LOST).checked > 100


@pytest.mark.parametrize("falsify", FALSIFICATIONS, ids=lambda falsify: falsify.__name__)
def test_what_is_falsified_is_found(falsify: Falsify) -> None:
    """In each log that has something to falsify, and nothing else is."""
    found = []
    for seed in SEEDS:
        falsified = falsify(lines_of(seed, has_faults=False), Random(seed))  # noqa: S311 - a seed makes a failure come again
        if falsified is not None:
            audited = audit(log_of(falsified))
            found.append([verdict.guarantee for verdict in audited.verdicts if verdict.broken])

    assert len(found) >= len(SEEDS) // 2
    assert found == [[FALSIFICATIONS[falsify]]] * len(found)


@pytest.mark.parametrize("falsify", FALSIFICATIONS, ids=lambda falsify: falsify.__name__)
def test_what_is_falsified_between_faults_is_never_named_wrongly(falsify: Falsify) -> None:
    """It is found, too, unless a fault may explain it."""
    guarantee = FALSIFICATIONS[falsify]
    for seed in SEEDS:
        falsified = falsify(lines_of(seed), Random(seed))  # noqa: S311 - as above
        if falsified is not None:
            audited = audit(log_of(falsified))
            broken = [verdict.guarantee for verdict in audited.verdicts if verdict.broken]
            assert broken == [guarantee] or (guarantee in NEEDS_MORE and not broken)
