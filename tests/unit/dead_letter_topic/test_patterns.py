"""Poison records and outages: a planted case on either side of each threshold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sharestate.dead_letter_topic import RULES, Pattern, PatternRule, Patterns, find_patterns
from sharestate.dead_letter_topic.patterns import tail_of_poisson
from tests.support.dead_letter_topics import MINUTE, REJECTED, SECOND, Planted, contents_of

R = PatternRule
HOUR = 60 * MINUTE


def found(planted: Sequence[Planted], finished: int = 10) -> Patterns:
    """Return what letters are of; *finished* records around each are."""
    return find_patterns(contents_of(planted), finished=lambda *_: finished)


def rules(planted: Sequence[Planted], finished: int = 10) -> dict[PatternRule, int]:
    """Return how many letters each rule holds of."""
    return found(planted, finished).letters()


def burst(count: int, first: int = 0, **fields: Any) -> list[Planted]:  # noqa: ANN401 - fields of a letter
    """Return letters of neighbors, a second from each other."""
    return [Planted(first + number, number * SECOND, **fields) for number in range(count)]


# ---- many together


def test_twenty_neighbors_in_one_interval_are_an_outage() -> None:
    """Nineteen are not."""
    assert rules(burst(20)) == {R.MANY_TOGETHER: 20}
    assert rules(burst(19)) == {R.SOME_TOGETHER: 19}


def test_one_offset_in_ten_may_be_missing() -> None:
    """Two in ten may not."""
    tenth = [each for each in burst(40) if each.offset % 10 != 5]
    fifth = [each for each in burst(40) if each.offset % 5 != 3]

    assert rules(tenth) == {R.MANY_TOGETHER: 36}
    assert rules(fifth) == {R.SOME_TOGETHER: 32}


def test_several_share_partitions_are_one_outage() -> None:
    """Three letters of each of seven partitions, at one time; of six they are too few."""
    letters = [
        Planted(offset, partition * SECOND, partition=partition) for partition in range(7) for offset in range(3)
    ]
    patterns = found(letters)

    assert patterns.letters() == {R.MANY_TOGETHER: 21}
    (finding,) = patterns.findings
    assert (finding.share_partitions, finding.facts["percent"], finding.first_ms, finding.last_ms) == (
        *(7, 100),
        *(contents_of(letters).times_ms[0], contents_of(letters).times_ms[-1]),
    )
    assert R.MANY_TOGETHER not in rules(letters[:18])


def test_intervals_apart_are_outages_apart() -> None:
    """A pause of more than a minute ends one."""
    letters = burst(30) + [
        each._replace(at_ms=29 * SECOND + MINUTE + 1 + number) for number, each in enumerate(burst(30, 30))
    ]
    near = burst(30) + [each._replace(at_ms=29 * SECOND + MINUTE) for each in burst(30, partition=1)]

    assert [(each.rule, each.letters) for each in found(letters).findings] == [(R.MANY_TOGETHER, 30)] * 2
    assert [(each.rule, each.letters) for each in found(near).findings] == [(R.MANY_TOGETHER, 60)]


def test_an_outage_lasts_as_long_as_the_last_of_its_partitions() -> None:
    """What begins in an interval after that is of it, though another partition has ended long before."""
    long = [Planted(offset, 2 * SECOND * offset) for offset in range(50)]
    short = [Planted(offset, SECOND, partition=1) for offset in range(3)]
    later = [Planted(offset, 150 * SECOND, partition=2) for offset in range(3)]

    assert [(each.rule, each.letters) for each in found([*long, *short, *later]).findings] == [(R.MANY_TOGETHER, 56)]


def test_groups_have_outages_of_their_own() -> None:
    """Ten of each are none."""
    assert R.MANY_TOGETHER not in rules(burst(10, group="a") + burst(10, group="b", partition=1))


def test_neighbors_that_were_all_rejected_may_be_either() -> None:
    """One that was not is enough."""
    rejected = burst(20, message=REJECTED)

    assert rules(rejected) == {R.REJECTED: 20}
    assert rules([*rejected[:-1], burst(20)[-1]]) == {R.MANY_TOGETHER: 20}


def test_neighbors_with_one_key_may_be_either() -> None:
    """Up to half of them may have the same."""
    half = [each._replace(key=b"k" if each.offset % 2 else b"%d" % each.offset) for each in burst(40)]
    most = [each._replace(key=b"k" if each.offset % 9 else b"%d" % each.offset) for each in burst(40)]

    assert rules(half) == {R.MANY_TOGETHER: 40}
    assert rules(most) == {R.ONE_KEY: 40}
    assert [each.key for each in found(most).findings] == [b"k"]


def test_neighbors_in_several_groups_may_be_either() -> None:
    """What both groups depend on was down, or the records are bad; up to half of them may be."""
    both = burst(20) + burst(20, group="h")
    half = burst(20) + burst(10, group="h")

    assert rules(both) == {R.SAME_RECORDS: 40}
    assert rules(half) == {R.MANY_TOGETHER: 20, R.SOME_TOGETHER: 10}


def test_what_was_written_beside_many_may_be_either() -> None:
    """A single letter of another partition during the outage, and up to a minute later."""
    for at_ms, rule in ((5 * SECOND, R.BESIDE_MANY), (79 * SECOND, R.BESIDE_MANY), (81 * SECOND, R.ALONE)):
        assert rules([*burst(20), Planted(100, at_ms, partition=1)]) == {R.MANY_TOGETHER: 20, rule: 1}


# ---- the same again and again


def test_a_record_of_two_groups_is_poison() -> None:
    """Whenever they were written; of one group it is alone."""
    letters = [Planted(5), Planted(5, HOUR, group="h"), Planted(50)]
    patterns = found(letters)

    assert patterns.letters() == {R.SEVERAL_GROUPS: 2, R.ALONE: 1}
    assert patterns.findings[0].group_ids == ("g", "h")
    assert rules([Planted(5), Planted(5, group="h", partition=1)]) == {R.ALONE: 2}


def test_neighbors_of_two_groups_are_too_many_for_poison() -> None:
    """Three may be bad, four are some together."""
    for count, rule in ((3, R.SEVERAL_GROUPS), (4, R.SOME_TOGETHER)):
        assert rules(burst(count) + burst(count, group="h")) == {rule: 2 * count}


def keyed(bad: int, others: int, pause_ms: int = HOUR) -> list[Planted]:
    """Return letters of a bad key, and one of each of *others*, far from each other."""
    letters = [Planted(1000 * number, number * pause_ms, b"bad") for number in range(bad)]
    return letters + [Planted(1000 * (bad + number), number * pause_ms, b"%d" % number) for number in range(others)]


def test_a_key_that_comes_more_often_than_by_chance_is_poison() -> None:
    """
    Six keys with one letter each: seven of a seventh are too many, six might be chance.

    Seven keys times the probability of so many where there is one on average: 0.00058 of seven or more, 0.0042 of six.
    """
    patterns = found(keyed(7, 6))

    assert patterns.letters() == {R.SAME_KEY: 7, R.ALONE: 6}
    (finding, _) = patterns.findings
    assert (finding.key, finding.facts) == (
        b"bad",
        {"occasions": 7, "other_keys": 6, "letters_of_other_keys": 1.0},
    )
    assert rules(keyed(6, 6)) == {R.ALONE: 12}


def test_keys_that_are_all_frequent_are_not_poison() -> None:
    """A topic with few keys has many letters of each."""
    letters = [Planted(1000 * number, number * HOUR, b"%d" % (number % 3)) for number in range(60)]

    assert rules(letters) == {R.ALONE: 60}


def test_a_topic_with_one_key_says_nothing_by_it() -> None:
    """There is nothing to compare it with."""
    assert rules(keyed(20, 0)) == {R.ALONE: 20}


def test_one_occasion_is_no_repetition() -> None:
    """Letters of a key within an interval are of one occasion, far from each other as their offsets may be."""
    assert R.SAME_KEY not in rules(keyed(20, 6, pause_ms=SECOND))


def test_the_tail_of_poissons_distribution_is_right() -> None:
    """Values of its table."""
    assert [round(tail_of_poisson(count, 2.0), 4) for count in (3, 5, 8)] == [0.3233, 0.0527, 0.0011]
    assert round(tail_of_poisson(400, 200.0) * 1e37) == 111


# ---- the rest


def test_a_record_among_others_that_were_finished_is_poison() -> None:
    """Five of them are enough; without the state topic nobody knows."""
    assert rules([Planted(50)], finished=5) == {R.ALONE: 1}
    assert rules([Planted(50)], finished=4) == {R.ALONE_UNKNOWN: 1}
    assert find_patterns(contents_of([Planted(50)])).letters() == {R.ALONE_UNKNOWN: 1}


def test_two_others_near_it_may_be_as_bad() -> None:
    """They do not count as finished; with three it may be either."""
    three = [Planted(50), Planted(52), Planted(55)]

    assert rules(three, finished=7) == {R.ALONE: 3}
    assert rules(three, finished=6) == {R.ALONE_UNKNOWN: 3}
    assert rules([*three, Planted(53)]) == {R.SOME_TOGETHER: 4}
    assert rules([Planted(number * 6) for number in range(30)]) == {R.ALONE: 30}


def test_without_a_time_nothing_can_be_told() -> None:
    """Of that letter; others are not affected."""
    letters = [*burst(20), Planted(100, None)]

    assert rules(letters) == {R.NO_TIME: 1, R.MANY_TOGETHER: 20}
    assert (found(letters).findings[0].first_ms, found(letters).findings[0].rule) == (None, R.NO_TIME)


def test_duplicates_count_once() -> None:
    """The first letter of a record is of something, others of the same record and group are marked."""
    patterns = found([*burst(20), *burst(15), Planted(0, HOUR)])

    assert patterns.letters() == {R.MANY_TOGETHER: 20}
    assert (patterns.duplicates.count(1), patterns.by_pattern()[Pattern.OUTAGE]) == (16, 20)


def test_each_letter_is_of_one_thing() -> None:
    """Whatever there is, the numbers add up."""
    letters = [*burst(25), *keyed(9, 20), *burst(5, 3, group="h"), Planted(7, None, partition=3)]
    patterns = found(letters)

    assert sum(patterns.letters().values()) == sum(patterns.by_pattern().values()) == len(letters) - 1
    assert sum(each.letters for each in patterns.findings) == len(letters) - 1


def test_each_rule_has_a_case_here() -> None:
    """And each of its thresholds is in its sentence."""
    text = Path(__file__).read_text()

    assert {name for name in R.__members__ if f"R.{name}" in text} == set(R.__members__)
    assert all(
        re.search(rf"\b{number}\b", row.sentence) for row in RULES.values() for number in row.thresholds.values()
    )


@pytest.mark.parametrize("rule", R)
def test_each_rule_has_a_reason(rule: PatternRule) -> None:
    """In a sentence that ends."""
    assert RULES[rule].reason.endswith(".")
