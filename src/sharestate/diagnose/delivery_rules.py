"""The rules on deliveries: why records come again, and why they are given up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final

from sharestate.diagnose.deliveries import MemberFacts
from sharestate.diagnose.partition_facts import PartitionFacts
from sharestate.diagnose.rule import DiagnosisRule, Evidence, RuleNeed, Severity, lasting, share
from sharestate.explain.outcomes import End
from sharestate.values.effects import Cause
from sharestate.values.records import RecordState

_FEWEST: Final = 20
"""Below so many deliveries that have ended, a part of them says nothing. [deliveries]"""

_NAMED: Final = 3
"""The most members and ranges of records that a sentence names."""

_OFTEN_US: Final = 1200 * 10**6
"""Connections that are lost so often, or more often, are a client that is killed again and again. [µs]"""

_HANGS_AFTER: Final = 3
"""At so many instants locks have to expire after the last acknowledgement of a member, until it hangs: a record that it
cannot process, and that comes last, expires as often as the delivery count limit allows, but alone."""

_HANGS_WITH: Final = 10
"""How many deliveries these are at least. [deliveries]"""


def first_few(names: Sequence[str]) -> str:
    """
    Return the first of *names*, and how many more there are.

    >>> first_few(["a", "b", "c", "d"]), first_few(["a"])
    ('a, b, c and 1 more', 'a')
    """
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _hangs(member: MemberFacts) -> bool:
    if not member.acknowledgements:
        return member.expired > 0
    return member.rounds_since >= _HANGS_AFTER and member.expired_since >= _HANGS_WITH


def _expired_at_work(facts: PartitionFacts) -> int:
    """Return how many deliveries have expired of members that do acknowledge."""
    members = facts.deliveries.members.values()
    return sum(each.expired - (each.expired_since if _hangs(each) else 0) for each in members if each.acknowledgements)


def _ended_at_work(facts: PartitionFacts) -> int:
    """Return how many deliveries members that acknowledge have ended, or their locks."""
    return facts.deliveries.done + facts.deliveries.ended[End.RELEASED] + _expired_at_work(facts)


def _is_slow(facts: PartitionFacts) -> bool:
    """
    Return whether members were seen to need about as long as the lock lasts, or longer.

    Where a part of the deliveries takes longer than the lock, about as many of those that were in time take nearly as
    long: half of it at least. A single poll that was slow does not say that.
    """
    deliveries = facts.deliveries
    part = min(_expired_at_work(facts) / max(_ended_at_work(facts), 1), 0.5)
    return deliveries.late.count > 0 or 2 * deliveries.processing.percentile(1 - max(part, 0.01)) >= facts.lock_us


def _few_of_expired(facts: PartitionFacts) -> Evidence:
    """Return the members that have lost nine in ten of the deliveries that expired, if they are a third or fewer."""
    members = {name: each for name, each in facts.deliveries.members.items() if each.acknowledgements}
    most = sorted(members, key=lambda name: -members[name].expired)
    total, lost = sum(each.expired for each in members.values()), 0
    for few, name in enumerate(most, 1):
        lost += members[name].expired
        if 10 * lost >= 9 * total:
            names = first_few([facts.life.members.place(each) for each in most[:few]])
            return {"few": few, "of": len(most), "lost": lost, "few_names": names} if 3 * few <= len(most) else {}
    return {}


def _lock_facts(facts: PartitionFacts) -> Evidence | None:
    expired, ended = _expired_at_work(facts), _ended_at_work(facts)
    if ended < _FEWEST or 100 * expired < ended:
        return None
    late, processing = facts.deliveries.late, facts.deliveries.processing
    longest = max(late.percentile(0.99), processing.percentile(0.99), facts.lock_us)
    return {
        "expired": expired,
        "ended": ended,
        "part": share(expired, ended),
        "lock": lasting(facts.lock_us),
        "median": lasting(processing.percentile(0.5)),
        "p99": lasting(processing.percentile(0.99)),
        "late": late.count or None,
        "late_median": lasting(late.percentile(0.5)) if late.count else None,
        "late_most": lasting(late.percentile(1)) if late.count else None,
        "wanted": ceil(1.5 * longest / 10**6) * 1000,
        **_few_of_expired(facts),
    }


def _lock_too_short(facts: PartitionFacts) -> Evidence | None:
    return _lock_facts(facts) if _is_slow(facts) else None


def _left_unacknowledged(facts: PartitionFacts) -> Evidence | None:
    return None if _is_slow(facts) else _lock_facts(facts)


def _never_acknowledges(facts: PartitionFacts) -> Evidence | None:
    members = {name: each for name, each in facts.deliveries.members.items() if _hangs(each)}
    if not members:
        return None
    acquired, expired = (sum(getattr(each, name) for each in members.values()) for name in ("acquired", "expired"))
    return {
        "members": len(members),
        "names": first_few([facts.life.members.place(name) for name in members]),
        "acquired": acquired,
        "expired": expired,
        "acknowledgements": sum(each.acknowledgements for each in members.values()),
    }


def _late_acknowledgements(facts: PartitionFacts) -> Evidence | None:
    refused = facts.refused["invalid_record_state"]
    if refused < _NAMED or 100 * refused < facts.acknowledgements:
        return None
    return {
        "refused": refused,
        "acknowledgements": facts.acknowledgements,
        "part": share(refused, facts.acknowledgements),
        "late": facts.deliveries.late.count or None,
    }


def _sessions_lost(facts: PartitionFacts) -> Evidence | None:
    deliveries = facts.deliveries
    lost, in_all = deliveries.lost_with_sessions, deliveries.in_all
    in_a_row = deliveries.lost_sessions >= _NAMED and facts.lasted_us <= deliveries.lost_sessions * _OFTEN_US
    is_often = deliveries.lost_sessions > 1 and (100 * lost >= in_all or in_a_row)
    if not is_often and (in_all < _FEWEST or 10 * lost < in_all):
        return None
    return {"sessions": deliveries.lost_sessions, "lost": lost, "in_all": in_all, "part": share(lost, in_all)}


def _released_often(facts: PartitionFacts) -> Evidence | None:
    released, in_all = facts.deliveries.ended[End.RELEASED], facts.deliveries.in_all
    if in_all < _FEWEST or 10 * released < in_all:
        return None
    members = facts.deliveries.members
    most = sorted((name for name in members if members[name].released), key=lambda name: -members[name].released)
    names = first_few([f"{facts.life.members.name(name)} {members[name].released:,}" for name in most])
    return {"released": released, "in_all": in_all, "part": share(released, in_all), "names": names}


# ---- records that are given up


def _archived_at_limit(facts: PartitionFacts) -> Evidence | None:
    happened = facts.life.happened
    tally = happened.outcomes[Cause.ARCHIVED_AT_LIMIT]
    if not tally.records:
        return None
    listed = [each for each in happened.lists()["archived"] if each.lived.outcome is Cause.ARCHIVED_AT_LIMIT]
    ends = [f"{end.value} {count:,}" for end, count in tally.ends.most_common() if count]
    return {
        "records": tally.records,
        "delivered": happened.delivered.records,
        "part": share(tally.records, happened.delivered.records),
        "limit": facts.config.delivery_count_limit,
        "offsets": first_few([each.offsets for each in listed]),
        "ends": ", ".join(ends),
        "letters": happened.dead_letters.records or None,
        "no_queue": None if happened.dead_letters.records else "give the group a dead-letter queue",
        "offset": listed[0].first_offset if listed else None,
    }


def _is_widespread(facts: PartitionFacts) -> bool:
    happened = facts.life.happened
    records = happened.outcomes[Cause.ARCHIVED_AT_LIMIT].records
    return records >= _FEWEST and (10 * records >= happened.delivered.records or _are_together(facts))


def _are_together(facts: PartitionFacts) -> bool:
    """Return whether nine in ten of the listed records that were given up lie in stretches of 20 or more."""
    listed = facts.life.happened.lists()["archived"]
    spans = sorted(each[:2] for each in listed if each.lived.outcome is Cause.ARCHIVED_AT_LIMIT)
    together = stretch = in_all = 0
    end = -1
    for first, last in spans:
        size = last - first + 1
        is_next = 10 * (first - end - 1) <= stretch
        stretch = stretch + size if is_next else size
        if stretch >= _FEWEST:
            together += size if stretch - size >= _FEWEST else stretch
        in_all, end = in_all + size, last
    return 10 * together >= 9 * in_all > 0


def _poison_records(facts: PartitionFacts) -> Evidence | None:
    return None if _is_widespread(facts) else _archived_at_limit(facts)


def _outage(facts: PartitionFacts) -> Evidence | None:
    return _archived_at_limit(facts) if _is_widespread(facts) else None


def _near_limit(facts: PartitionFacts) -> Evidence | None:
    # a first delivery that is under way is nothing to be looked at, even if it is the last but one
    found = [
        each for each in facts.overview.near_limit if each.delivery_count > 1 or each.state is RecordState.AVAILABLE
    ]
    if not found:
        return None
    return {
        "records": sum(each.last_offset - each.first_offset + 1 for each in found),
        "offset": found[0].first_offset,
        "deliveries": found[0].delivery_count,
        "limit": found[0].limit,
    }


def _rejected(facts: PartitionFacts) -> Evidence | None:
    happened = facts.life.happened
    tally = happened.outcomes[Cause.REJECTED]
    if happened.delivered.records < _FEWEST or 20 * tally.records < happened.delivered.records:
        return None
    clients = list(tally.by_client(facts.life.members))
    part = share(tally.records, happened.delivered.records)
    return {"records": tally.records, "part": part, "names": first_few(clients)}


def _limit_of_one(facts: PartitionFacts) -> Evidence | None:
    limit = facts.config.delivery_count_limit
    return {"limit": limit} if limit <= 1 and facts.life.partition is not None else None


def _limit_of_two(facts: PartitionFacts) -> Evidence | None:
    records = facts.life.happened.outcomes[Cause.ARCHIVED_AT_LIMIT].records
    if facts.config.delivery_count_limit != 2 or not records:  # noqa: PLR2004 - the limit of which it speaks
        return None
    return {"records": records}


# ---- renewals, and more than was wanted


def _renewed_in_vain(facts: PartitionFacts) -> Evidence | None:
    renewals = facts.deliveries.renewals
    in_all = renewals.used + renewals.in_vain
    if in_all < 10 or 2 * renewals.in_vain < in_all:  # noqa: PLR2004 - half of at least ten
        return None
    return {"in_vain": renewals.in_vain, "in_all": in_all, "part": share(renewals.in_vain, in_all)}


def _renewed_too_long(facts: PartitionFacts) -> Evidence | None:
    renewals, lock_us = facts.deliveries.renewals, facts.lock_us
    longest_us, most = max(_renewed_now(facts), default=(0, 0))
    longest_us, most = max(longest_us, renewals.longest_us), max(most, renewals.most)
    if longest_us < 10 * lock_us:
        return None
    return {"longest": lasting(longest_us), "times": most, "lock": lasting(lock_us)}


def _renewed_now(facts: PartitionFacts) -> Iterator[tuple[int, int]]:
    """Yield how long records that are still held have been renewed, and how often."""
    for held in facts.deliveries.held():
        if held.renewals and held.since_us is not None and facts.at_us is not None:
            yield facts.at_us - held.since_us, held.renewals


def _above_wanted(facts: PartitionFacts) -> Evidence | None:
    fetches, expired = facts.fetches, _expired_at_work(facts)
    is_often = 10 * fetches.above_wanted >= fetches.with_records or 10 * fetches.records_above >= fetches.records
    if not fetches.above_wanted or not is_often:
        return None
    if 100 * expired < max(_ended_at_work(facts), 1):
        return None
    acquired, wanted = fetches.most_above
    part = share(fetches.above_wanted, fetches.with_records)
    return {"fetches": fetches.above_wanted, "part": part, "acquired": acquired, "wanted": wanted, "expired": expired}


_LOCK: Final = "[`share.record.lock.duration.ms`](configuration.md)"
_LIMIT: Final = "[`share.delivery.count.limit`](configuration.md)"

DELIVERY_RULES: Final[tuple[DiagnosisRule[PartitionFacts], ...]] = (
    DiagnosisRule(
        name="lock-too-short",
        title="acquisition locks are shorter than processing takes",
        severity=Severity.WARNING,
        when="1 % of the deliveries to members that acknowledge have expired, of 20 at least, and they acknowledge"
        " late, or as many of those in time took half of the lock's duration or more: then the 99th percentile is above"
        " it",
        source=f"{_LOCK}, [rule 10](rules.md#rule-10)",
        evidence="The locks of {expired:delivery} of {ended} ({part}) have expired after {lock}: so long or longer"
        " takes the 99th percentile of processing. What was done in time took {median}, at most {p99} for 99 %."
        "[ {late:delivery} acknowledged late took {late_median}, and up to {late_most}.]"
        "[ {lost} of the expired were those of {few:member} of {of}: {few_names}.]",
        advice="[See first why {few_names} took so long, where others did not. ]Set share.record.lock.duration.ms of"
        " the group to {wanted} (kafka-configs.sh --entity-type groups; the broker's"
        " group.share.max.record.lock.duration.ms bounds it), have members renew locks (RENEW), or let a poll return"
        " fewer records (max.poll.records).",
        needs=(RuleNeed.STATE, RuleNeed.TIMES),
        judge=_lock_too_short,
    ),
    DiagnosisRule(
        name="left-unacknowledged",
        title="members leave records unacknowledged until their locks expire",
        severity=Severity.WARNING,
        when="1 % of the deliveries to members that acknowledge have expired, of 20 at least, though not as many of"
        " those in time took half of the lock's duration, and none was acknowledged late: a longer lock would not help",
        source="[rule 10](rules.md#rule-10), KIP-932 (acknowledging)",
        evidence="The locks of {expired:delivery} of {ended} ({part}) have expired after {lock}, though members"
        " acknowledge the others after {median}, at most {p99} for 99 %, and none late."
        "[ {lost} of the expired were those of {few:member} of {of}: {few_names}.]",
        advice="Have the consumer release or reject what it fails to process: a record of which it says nothing waits"
        " {lock} for the next delivery. Look at exceptions between poll() and acknowledge().",
        needs=(RuleNeed.STATE, RuleNeed.TIMES),
        judge=_left_unacknowledged,
    ),
    DiagnosisRule(
        name="never-acknowledges",
        title="members hold records and do not acknowledge",
        severity=Severity.CRITICAL,
        when="a member has lost records to expired locks and has never acknowledged, or locks of at least 10 deliveries"
        " have expired at 3 instants since it did",
        source="[rule 10](rules.md#rule-10)",
        evidence="{members:member} ({names}) acquired {acquired:record}, of which {expired} were lost to expired locks;"
        " {acknowledgements:acknowledgement} in all, and none since.",
        advice="Take a thread dump of these clients: they hang, process longer than the lock lasts, or never call"
        " acknowledge() and commit. Stop them if they do not recover: what they take comes back after a lock's"
        " duration.",
        judge=_never_acknowledges,
    ),
    DiagnosisRule(
        name="late-acknowledgements",
        title="acknowledgements come too late and are refused",
        severity=Severity.WARNING,
        when="3 or more, and 1 % or more of all, were refused with INVALID_RECORD_STATE: a lock that expires now and"
        " then leads to one",
        source="[rule 8](rules.md#rule-8)",
        evidence="{refused} of {acknowledgements:acknowledgement} ({part}) were refused with INVALID_RECORD_STATE[; of"
        " {late:delivery} the lock had expired before]. All that such a request says of the partition is lost.",
        advice="Acknowledge in smaller requests, sooner, or with longer locks; the client sees the refusal in its"
        " acknowledgement commit callback: log it there.",
        needs=(),
        judge=_late_acknowledgements,
    ),
    DiagnosisRule(
        name="sessions-lost",
        title="connections are lost with records held",
        severity=Severity.WARNING,
        when="more than one was lost, and with them 1 % of all deliveries; or 10 % with one; or 3 or more, and one in"
        " 20 minutes or more often, however few were held: clients that are started again as often",
        source="KIP-932 (share sessions), [sessions](sessions.md)",
        evidence="{sessions:connection} ended without a word, with {lost:delivery} of {in_all} ({part}) held, which"
        " were"
        " delivered again or given up.",
        advice="Look for clients that are killed (out of memory, liveness probes), or whose connections a proxy cuts"
        " when they are idle; close() consumers when a deployment ends.",
        judge=_sessions_lost,
    ),
    DiagnosisRule(
        name="released-often",
        title="members give many records back",
        severity=Severity.WARNING,
        when="10 % of the deliveries that have ended were released, of 20 at least: each costs a delivery, and brings"
        " the record nearer to the limit",
        source="[rule 8](rules.md#rule-8)",
        evidence="{released:delivery} of {in_all} ({part}) ended as the member released the record: {names}.",
        advice="Find out why in the consumer's log. If it waits for something else, RENEW keeps the record without"
        " counting a delivery; if it cannot process it, REJECT gives it up at once.",
        judge=_released_often,
    ),
    DiagnosisRule(
        name="poison-records",
        title="records that nobody can process",
        severity=Severity.WARNING,
        when="records were archived at the delivery limit, fewer than 20, or less than 10 % of those delivered and not"
        " 20 neighbors or more",
        source=f"{_LIMIT}, KAFKA-17541, [rule 20.3](rules.md#rule-20-3)",
        evidence="{records:record} of {delivered} ({part}) reached the limit of {limit:delivery} and were given up:"
        " {offsets} ({ends}).[ {letters:record} went to the dead-letter queue.]",
        advice="Look at record {offset} with log explain --offset {offset}, and at its value; have the consumer REJECT"
        " what it cannot parse[, and {no_queue} (errors.deadletterqueue.topic.name, Kafka 4.4)].",
        judge=_poison_records,
    ),
    DiagnosisRule(
        name="given-up-in-numbers",
        title="records are given up in great numbers",
        severity=Severity.CRITICAL,
        when="20 records or more were archived at the delivery limit, and they are 10 % of those delivered, or nine in"
        " ten of them lie in stretches of 20 neighbors or more: what fails together has one cause",
        source=f"{_LIMIT}, [rule 20.3](rules.md#rule-20-3)",
        evidence="{records:record} of {delivered} ({part}) reached the limit of {limit:delivery} and were given up:"
        " {offsets} ({ends}).[ {letters:record} went to the dead-letter queue.]",
        advice="What members need was away, or a producer wrote them all wrong: log explain --offset {offset} says"
        " when, and whose they were. Stop consuming instead of failing, or raise share.delivery.count.limit"
        " (group.share.max.delivery.count.limit bounds it). What was given up has to be produced again.",
        judge=_outage,
    ),
    DiagnosisRule(
        name="near-limit",
        title="records have one delivery left",
        severity=Severity.NOTICE,
        when="records that are not done were delivered twice or more, and have one delivery left or none at the end",
        source=_LIMIT,
        evidence="{records:record}, from {offset} on, were delivered {deliveries:time} of {limit}.",
        advice="Look at record {offset} with log explain --offset {offset} before it is given up.",
        judge=_near_limit,
    ),
    DiagnosisRule(
        name="rejected",
        title="many records are rejected",
        severity=Severity.WARNING,
        when="members have rejected 5 % of at least 20 records that were delivered",
        source="[rule 8](rules.md#rule-8)",
        evidence="{records:record} ({part}) were rejected[ by {names}], and are not delivered again.",
        advice="Look at them with log explain --archived; a change of the producer's format looks like this.",
        judge=_rejected,
    ),
    DiagnosisRule(
        name="limit-of-one",
        title="a delivery limit of 1: whatever goes wrong once is given up",
        severity=Severity.WARNING,
        when="the limit is 1, which brokers do not take and embedded share partitions do",
        source=_LIMIT,
        evidence="share.delivery.count.limit is {limit}: an expired lock, a release or a lost connection archives the"
        " record.",
        advice="Set share.delivery.count.limit to 5, which is Kafka's default.",
        judge=_limit_of_one,
    ),
    DiagnosisRule(
        name="limit-of-two",
        title="a delivery limit of 2 gives up healthy records with a bad one",
        severity=Severity.WARNING,
        when="the limit is 2 and something was archived at it: only from a limit of 3 on are failing records set apart",
        source=f"{_LIMIT}, [rule 20.3](rules.md#rule-20-3)",
        evidence="share.delivery.count.limit is 2, and {records:record} were given up after their second delivery. With"
        " this limit, a batch that fails twice is given up whole; from 3 on, each record's last delivery is its own.",
        advice="Set share.delivery.count.limit to 5, which is Kafka's default.",
        judge=_limit_of_two,
    ),
    DiagnosisRule(
        name="renewed-in-vain",
        title="locks are renewed and the records not done",
        severity=Severity.WARNING,
        when="of at least 10 deliveries whose lock was renewed, half ended with a release or an expired lock",
        source="KIP-1222",
        evidence="{in_vain} of {in_all:delivery} ({part}) whose lock was renewed ended released or expired.",
        advice="Renew only what is being worked on: a renewal keeps the record from the other members.",
        judge=_renewed_in_vain,
    ),
    DiagnosisRule(
        name="renewed-too-long",
        title="a member keeps records by renewing their locks",
        severity=Severity.WARNING,
        when="records were held for 10 lock durations or more: nothing else bounds it, and the SPSO waits",
        source="KIP-1222",
        evidence="Records were held for {longest}, with {times:renewal}, where locks last {lock}.",
        advice="Let the consumer give up after a bound of its own, or release and come back later.",
        needs=(RuleNeed.STATE, RuleNeed.TIMES),
        judge=_renewed_too_long,
    ),
    DiagnosisRule(
        name="more-than-polled",
        title="members get more than they poll, and its lock expires while it waits",
        severity=Severity.WARNING,
        when="10 % of the fetches with records acquired twice what was wanted or more, and locks of 1 % of the"
        " deliveries have expired",
        source="KIP-1206, [rule 7](rules.md#rule-7)",
        evidence="{fetches} fetches ({part}) acquired at least twice what was wanted, up to {acquired} for"
        " {wanted:record}"
        ": whole batches are acquired. {expired:delivery} have expired.",
        advice="Set share.acquire.mode=record_limit in the consumer (4.2), raise max.poll.records to the size of the"
        " batches, or produce smaller ones (batch.size, linger.ms): the lock of all begins with the fetch.",
        judge=_above_wanted,
    ),
)
"""The rules on deliveries."""
