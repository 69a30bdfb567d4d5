"""The rules on how a share partition gets on: its SPSO, the room for more, writes, leaders, transactions, the log."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from sharestate.diagnose.partition_facts import PartitionFacts
from sharestate.diagnose.rule import DiagnosisRule, Evidence, RuleNeed, Severity, lasting, share
from sharestate.explain.outcomes import End
from sharestate.explain.sentences import Reason
from sharestate.history.columns import ERRORS
from sharestate.partition.throttling import threshold
from sharestate.values.effects import Cause

_US_PER_S: Final = 10**6

_TRANSACTION_US: Final = 10 * _US_PER_S
"""How long a transaction may be open: Kafka Streams gives its producers 10 s (``transaction.timeout.ms``). [µs]"""

_PAUSE_US: Final = 60 * _US_PER_S
"""How long nobody may fetch where records wait: a consumer without work fetches every half a second
(``fetch.max.wait.ms``). [µs]"""

_FEWEST_FETCHES: Final = 50
"""Below so many fetches with something to get, a part of them says nothing. [requests]"""


# ---- room


def _is_full_often(facts: PartitionFacts) -> bool:
    """Return whether there was no room for a second at a stretch, for 5 % of the time, and a fetch noticed it."""
    room = facts.room
    return room.longest_us >= _US_PER_S and 20 * room.full_us >= facts.lasted_us and room.refused > 0


def _full(facts: PartitionFacts) -> Evidence | None:
    room = facts.room
    if not _is_full_often(facts):
        return None
    return {
        "full": lasting(room.full_us),
        "part": share(room.full_us, facts.lasted_us),
        "longest": lasting(room.longest_us),
        "refused": room.refused,
        "locks": facts.config.max_record_locks,
        "terminal_part": share(room.terminal_us, room.in_flight_us),
        "start": facts.start.longest.offset,
    }


def _full_of_terminal(facts: PartitionFacts) -> Evidence | None:
    return _full(facts) if 2 * facts.room.terminal_us >= facts.room.in_flight_us else None


def _full_of_held(facts: PartitionFacts) -> Evidence | None:
    return _full(facts) if 2 * facts.room.terminal_us < facts.room.in_flight_us else None


def _held_back(facts: PartitionFacts) -> Evidence | None:
    stay = facts.start.longest
    if stay.us < 2 * facts.lock_us or stay.terminal < 10:  # noqa: PLR2004 - see the rule
        return None
    return {
        "offset": stay.offset,
        "lasted": lasting(stay.us),
        "terminal": stay.terminal,
        "lock": lasting(facts.lock_us),
    }


# ---- fetches


def _throttled(facts: PartitionFacts) -> Evidence | None:
    fetches = facts.fetches
    others = fetches.with_records - fetches.throttled
    if fetches.throttled < 5 or 10 * fetches.throttled < fetches.with_records:  # noqa: PLR2004 - see the rule
        return None
    each = fetches.throttled_records / fetches.throttled
    free = (fetches.records - fetches.throttled_records) / others if others else None
    if free is not None and 2 * each > free:
        return None
    return {
        "throttled": fetches.throttled,
        "fetches": fetches.with_records,
        "part": share(fetches.throttled, fetches.with_records),
        "each": f"{each:.1f}",
        "free": None if free is None else f"{free:.1f}",
        "limit": facts.config.delivery_count_limit,
        "threshold": threshold(facts.config.delivery_count_limit),
    }


def _empty(facts: PartitionFacts) -> Evidence | None:
    fetches = facts.fetches
    could = fetches.with_records + fetches.empty_with_records
    if could < _FEWEST_FETCHES or 10 * fetches.empty_with_records < 9 * could:
        return None
    members = len(facts.deliveries.members)
    part = share(fetches.empty_with_records, could)
    return {"empty": fetches.empty_with_records, "could": could, "part": part, "members": members}


def _nobody_fetches(facts: PartitionFacts) -> Evidence | None:
    last, since_us = facts.lag.last(), facts.last_fetch_us
    if last is None or last.lag <= 0 or since_us is None or facts.at_us is None or any(facts.deliveries.held()):
        return None
    pause_us = facts.at_us - since_us
    if pause_us < _PAUSE_US or pause_us < 2 * facts.pause_us:
        return None
    return {"lasted": lasting(pause_us), "lag": last.lag, "longest": lasting(facts.pause_us)}


def _lag_grows(facts: PartitionFacts) -> Evidence | None:
    lags, last = facts.lag.quarters, facts.lag.last()
    if len(facts.lag.samples) < 16 or last is None or last.lag < 100:  # noqa: PLR2004 - see the rule
        return None
    steps = sorted(after - before for before, after in pairwise(lags))
    if steps[1] * 20 < last.lag or steps[0] * 20 < -last.lag or 2 * facts.lag.least_of_last_quarter < last.lag:
        return None
    first = facts.lag.samples[0]
    seconds = max((last.at_us - first.at_us) / _US_PER_S, 0.001)
    written = last.log_end_offset - first.log_end_offset
    return {
        "first": first.lag,
        "last": last.lag,
        "lasted": lasting(last.at_us - first.at_us),
        "written": f"{written / seconds:.1f}",
        "done": f"{(written - (last.lag - first.lag)) / seconds:.1f}",
    }


# ---- writes and leaders


def _failing_writes(facts: PartitionFacts) -> Evidence | None:
    failed = facts.failed_writes.total()
    if failed < 3 or 100 * failed < facts.writes:  # noqa: PLR2004 - see the rule
        return None
    errors = ", ".join(f"{ERRORS[name].name} {count}" for name, count in facts.failed_writes.most_common(3))
    return {"failed": failed, "writes": facts.writes, "part": share(failed, facts.writes), "errors": errors}


def _slow_answers(facts: PartitionFacts) -> Evidence | None:
    answers = facts.answers
    if answers.count < 20 or answers.percentile(0.9) < _US_PER_S:  # noqa: PLR2004 - see the rule
        return None
    slow, median = lasting(answers.percentile(0.9)), lasting(answers.percentile(0.5))
    return {"count": answers.count, "slow": slow, "median": median, "most": lasting(answers.percentile(1))}


def _offsets_reset(facts: PartitionFacts) -> Evidence | None:
    deliveries = facts.life.happened.redelivered.ends[End.MOVED_BACK]
    return {"deliveries": deliveries} if deliveries else None


def _leaders(facts: PartitionFacts) -> Evidence | None:
    if facts.leaders < 3 or facts.lasted_us > facts.leaders * 600 * _US_PER_S:  # noqa: PLR2004 - see the rule
        return None
    redelivered = facts.life.happened.redelivered.ends[End.NEW_LEADER]
    return {"leaders": facts.leaders, "lasted": lasting(facts.lasted_us), "redelivered": redelivered or None}


def _open_transaction(facts: PartitionFacts) -> Evidence | None:
    if facts.settings.get("isolation") != "read_committed" or facts.stable_us < _TRANSACTION_US:
        return None
    if not facts.stable_refused:
        return None
    return {
        "offset": facts.stable_offset,
        "lasted": lasting(facts.stable_us),
        "refused": facts.stable_refused,
        "end": facts.life.log_end_offset,
    }


# ---- the log


def _skipped(facts: PartitionFacts) -> Evidence | None:
    if not facts.skipped:
        return None
    reset = str(facts.settings.get("auto_offset_reset", "latest"))
    is_assumed = "auto_offset_reset" in facts.assumed
    return {"records": facts.skipped, "reset": reset, "default": "the default" if is_assumed else None}


def _deleted(facts: PartitionFacts) -> Evidence | None:
    happened = facts.life.happened
    passed = happened.outcomes[Cause.BELOW_LOG_START].records
    if not facts.deleted and not passed:
        return None
    return {"deleted": facts.deleted, "passed": passed or None, "start": facts.life.log.start_offset}


# ---- bugs of Kafka, and what stops a share partition


def _stalled(facts: PartitionFacts) -> Evidence | None:
    now = {each.reason: each for each in facts.overview.start_findings}
    for reason in _STALLS:
        found = now.get(reason) or facts.stalls.found.get(reason)
        if found is not None:
            first_us = facts.stalls.first_us.get(reason)
            return {
                "bug": reason.value.partition(",")[0],
                "sentence": found.text,
                "ended": None if reason in now else "over at the end",
                **({} if first_us is None else {"first_us": first_us}),
            }
    return None


_STALLS: Final = (
    Reason.STALLED_AT_NATURAL_GAP,
    Reason.STALLED_IN_WINDOW,
    Reason.STALLED_BELOW_LOG_START,
    Reason.STALLED_GAP_BELOW_LOG_START,
    Reason.STALLED_RECORD_BELOW_LOG_START,
    Reason.STALLED_COMPACTED,
    Reason.STALLED_ABORTED,
)

_MISCOUNTS: Final = frozenset({Reason.COUNTED_BELOW_START, Reason.ARCHIVED_UNCOUNTED, Reason.COUNT_TAKEN_TWICE})


def _miscounted(facts: PartitionFacts) -> Evidence | None:
    found = [each for each in facts.overview.bug_findings if each.reason in _MISCOUNTS]
    return {"bug": found[0].reason.value, "sentence": found[0].text} if found else None


def _thrown(facts: PartitionFacts) -> Evidence | None:
    found = [each for each in facts.overview.bug_findings if each.reason not in _MISCOUNTS]
    return {"bug": found[0].reason.value, "sentence": found[0].text} if found else None


def _not_active(facts: PartitionFacts) -> Evidence | None:
    for each in facts.overview.start_findings:
        if each.reason is Reason.NOT_ACTIVE:
            return {"lifecycle": each.facts["lifecycle"]}
    return None


_LOCKS: Final = "[`share.partition.max.record.locks`](configuration.md)"
_BUGS: Final = "[Kafka's bugs](kafka-bugs.md)"

PROGRESS_RULES: Final[tuple[DiagnosisRule[PartitionFacts], ...]] = (
    DiagnosisRule(
        name="stalled",
        title="stalled by a bug of Kafka",
        severity=Severity.CRITICAL,
        when="what is in flight proves it: nothing that is under way will move the SPSO (F1, F4 to F8, B10)",
        source=_BUGS,
        evidence="{sentence}[ It was seen first at {first}][, and is {ended}].",
        advice="See {bug} on the page of Kafka's bugs for what ends it; log explain shows whether it still holds.",
        needs=(RuleNeed.STATE, RuleNeed.AGREEMENT),
        judge=_stalled,
    ),
    DiagnosisRule(
        name="wrong-lag",
        title="Kafka's lag is wrong",
        severity=Severity.WARNING,
        when="the delivery complete count is not the number of records that are done, and the bug was seen (B22,"
        " B23, F2)",
        source=_BUGS,
        evidence="{sentence}",
        advice="Do not scale or alert by this lag; it is right again once another leader has read the state ({bug}).",
        needs=(RuleNeed.STATE, RuleNeed.AGREEMENT),
        judge=_miscounted,
    ),
    DiagnosisRule(
        name="broker-threw",
        title="an exception of Kafka's leader",
        severity=Severity.WARNING,
        when="the broker's answers are those of the bug (B7, B8), which the check of its log has found",
        source=_BUGS,
        evidence="{sentence}",
        advice="See {bug} on the page of Kafka's bugs; the broker's log has the exception.",
        needs=(RuleNeed.STATE, RuleNeed.AGREEMENT),
        judge=_thrown,
    ),
    DiagnosisRule(
        name="not-active",
        title="the leader has no state",
        severity=Severity.CRITICAL,
        when="the share partition is FAILED or FENCED at the end",
        source="[rule 3](rules.md#rule-3)",
        evidence="The share partition is {lifecycle}: it delivers nothing.",
        advice="Look for the error of ReadShareGroupState or WriteShareGroupState in the broker's log, and whether"
        " __share_group_state has a leader and enough in-sync replicas.",
        judge=_not_active,
    ),
    DiagnosisRule(
        name="window-full-of-done-records",
        title="no room: finished records wait behind one that is not",
        severity=Severity.CRITICAL,
        when="there was no room for a second at a stretch, 5 % of the time and when a fetch came, and half of what was"
        " in flight or more was done",
        source=f"{_LOCKS}, [rule 6](rules.md#rule-6)",
        evidence="For {full} ({part} of the time, {longest} at a stretch) share.partition.max.record.locks, {locks},"
        " were"
        " in flight, and {refused} fetches came back empty. Of what was in flight {terminal_part} were done on"
        " average, and waited for the SPSO, which stayed longest at {start}.",
        advice="Look at record {start} with log explain --offset {start}: it fails, or its member holds it. Raising"
        " share.partition.max.record.locks (group.share.max.partition.max.record.locks bounds it) gains time only.",
        needs=(RuleNeed.STATE, RuleNeed.TIMES),
        judge=_full_of_terminal,
    ),
    DiagnosisRule(
        name="window-full-of-held-records",
        title="no room: members hold all that may be in flight",
        severity=Severity.WARNING,
        when="there was no room for a second at a stretch, 5 % of the time and when a fetch came, and most of what was"
        " in flight was held or waited to be delivered again",
        source=f"{_LOCKS}, [rule 6](rules.md#rule-6)",
        evidence="For {full} ({part} of the time, {longest} at a stretch) share.partition.max.record.locks, {locks},"
        " were"
        " in flight, and {refused} fetches came back empty; {terminal_part} of these were done on average.",
        advice="Raise share.partition.max.record.locks above what all members hold together (members times"
        " max.poll.records, in whole batches), or let each poll return fewer records.",
        needs=(RuleNeed.STATE, RuleNeed.TIMES),
        judge=_full_of_held,
    ),
    DiagnosisRule(
        name="spso-held-back",
        title="one record holds the SPSO back",
        severity=Severity.WARNING,
        when="the SPSO stood for two lock durations while 10 records behind it or more were done: a record that expires"
        " once, and is done then, does not take as long",
        source="[rule 12](rules.md#rule-12)",
        evidence="The SPSO stood at {offset} for {lasted} while {terminal:record} behind it were done; locks last"
        " {lock}.",
        advice="See what became of it with log explain --offset {offset}. Lag and what a failover delivers again grow"
        " meanwhile, and so does the state that is stored.",
        needs=(RuleNeed.STATE, RuleNeed.TIMES),
        judge=_held_back,
    ),
    DiagnosisRule(
        name="throttled",
        title="failing records slow the others down",
        severity=Severity.WARNING,
        when="at least 5 fetches, and 10 % of those with records, were cut short because records keep failing, and got"
        " half of what the others got or less",
        source="KAFKA-17541, [rule 20.3](rules.md#rule-20-3)",
        evidence="{throttled} of {fetches} fetches with records ({part}) were throttled, and acquired {each} records on"
        " average[, where the others got {free}].",
        advice="Have the consumer REJECT what it cannot process, so that it does not come again: with a limit of"
        " {limit}, what was delivered {threshold:time} comes in smaller and smaller pieces, and what is behind it"
        " waits.",
        judge=_throttled,
    ),
    DiagnosisRule(
        name="empty-fetches",
        title="fetches come back empty though there are records",
        severity=Severity.WARNING,
        when="9 of 10 fetches, of 50 at least, got nothing though the log had more and there was room",
        source="[rule 6](rules.md#rule-6) (fetch lock), KIP-932 (fetching)",
        evidence="{empty} of {could} fetches ({part}) got nothing though the log had more and there was room;"
        " {members:member} fetched.",
        advice="Members wait for each other: one fetches at a time. Use fewer members for each partition, more"
        " partitions, or a longer fetch.max.wait.ms.",
        needs=(RuleNeed.STATE, RuleNeed.LOG_END),
        judge=_empty,
    ),
    DiagnosisRule(
        name="nobody-fetches",
        title="no member fetches, and records wait",
        severity=Severity.CRITICAL,
        when="at the end nobody has fetched for a minute, and for twice as long as at any time before, though there is"
        " a lag and no member holds records: a consumer without work fetches every half a second (fetch.max.wait.ms)",
        source="KIP-932 (fetching)",
        evidence="Nobody has fetched for {lasted} at the end, and {lag:record} wait; before, the longest time without a"
        " fetch was {longest}.",
        advice="See whether the group has members (kafka-share-groups.sh --describe --members), and whether one of them"
        " was assigned this partition; then why they have gone.",
        needs=(RuleNeed.STATE, RuleNeed.TIMES, RuleNeed.LOG_END),
        judge=_nobody_fetches,
    ),
    DiagnosisRule(
        name="lag-grows",
        title="the lag grows",
        severity=Severity.WARNING,
        when="it is 100 or more at the end, has grown by 5 % of that in three quarters of the time, has not shrunk by"
        " as much in the other one, and was never less than half of it in the last one: a burst that is worked off, or"
        " a job that comes now and then, does not look like this",
        source="KIP-1226, [rule 20.4](rules.md#rule-20-4)",
        evidence="The lag went from {first} to {last} within {lasted}: {written} records a second were written, and"
        " {done}"
        " done.",
        advice="Add members (they need not be fewer than partitions), or speed up processing; the findings above say"
        " what work is done twice.",
        needs=(RuleNeed.STATE, RuleNeed.TIMES, RuleNeed.LOG_END),
        judge=_lag_grows,
    ),
    DiagnosisRule(
        name="failing-writes",
        title="state cannot be written",
        severity=Severity.CRITICAL,
        when="3 or more, and 1 % or more of all writes of state were answered with an error: a failover makes one or"
        " two",
        source="[rule 15](rules.md#rule-15), KIP-932 (persister)",
        evidence="{failed} of {writes} writes of state ({part}) failed: {errors}. What they carried was rolled back,"
        " and"
        " is delivered again when its lock expires.",
        advice="Look at the leader and the in-sync replicas of the partition of __share_group_state, and at its"
        " broker's"
        " log at these times.",
        needs=(),
        judge=_failing_writes,
    ),
    DiagnosisRule(
        name="slow-answers",
        title="acknowledgements are answered late",
        severity=Severity.WARNING,
        when="a tenth of at least 20 acknowledgements took a second or more from arrival to answer: a write of state"
        " takes"
        " milliseconds",
        source="[rule 15](rules.md#rule-15), KIP-932 (persister)",
        evidence="A tenth of {count:acknowledgement} took {slow} or more from arrival to answer, the longest {most},"
        " and"
        " half of them {median} or less. Locks go on meanwhile.",
        advice="Look at the load and the disks of the broker that leads the partition of __share_group_state, and at"
        " replicas that lag there.",
        needs=(),
        judge=_slow_answers,
    ),
    DiagnosisRule(
        name="offsets-reset",
        title="somebody has reset the group's offsets",
        severity=Severity.NOTICE,
        when="a leader has read an SPSO below one that a leader had passed, and records were delivered again for it",
        source="KIP-932 (kafka-share-groups.sh --reset-offsets), [rule 3](rules.md#rule-3)",
        evidence="{deliveries:delivery} were made again because the SPSO was moved back between two leaders.",
        advice="If nobody did that, look at F3 and C2 on the page of Kafka's bugs.",
        judge=_offsets_reset,
    ),
    DiagnosisRule(
        name="leader-moves",
        title="leaders change often",
        severity=Severity.WARNING,
        when="3 times or more, and once in 10 minutes or more often: each forgets what was acquired",
        source="[rule 3](rules.md#rule-3)",
        evidence="The leader changed {leaders:time} within {lasted}[, and {redelivered:delivery} were made again for"
        " it].",
        advice="Look for brokers that restart or lose their controller session, and for reassignments under way.",
        needs=(RuleNeed.TIMES,),
        judge=_leaders,
    ),
    DiagnosisRule(
        name="open-transaction",
        title="an open transaction keeps records back",
        severity=Severity.WARNING,
        when="the group reads committed records only, the last stable offset stood for 10 s with records behind it"
        " (Kafka"
        " Streams gives its transactions as long), and fetches came back empty meanwhile",
        source="[`share.isolation.level`](configuration.md), [read_committed](read-committed.md)",
        evidence="A transaction that began at {offset} was open for {lasted} or longer; {refused} fetches came back"
        " empty"
        " meanwhile.",
        advice="Find the producer with kafka-transactions.sh find-hanging --broker-id N, and abort it; lower its"
        " transaction.timeout.ms.",
        needs=(RuleNeed.STATE, RuleNeed.TIMES, RuleNeed.LOG_END),
        judge=_open_transaction,
    ),
    DiagnosisRule(
        name="skipped-at-start",
        title="records before the group's start were skipped",
        severity=Severity.NOTICE,
        when="nothing was stored of the share partition, and it began behind records that the log had",
        source="[`share.auto.offset.reset`](configuration.md)",
        evidence="{records:record} that the log had were skipped when the group began: share.auto.offset.reset is"
        " {reset}[,"
        " {default}].",
        advice="If they are wanted, stop the members and run kafka-share-groups.sh --reset-offsets --to-earliest; set"
        " share.auto.offset.reset=earliest before the first member of a new group joins.",
        needs=(RuleNeed.LOG_END,),
        judge=_skipped,
    ),
    DiagnosisRule(
        name="deleted-before-done",
        title="records were deleted before they were done",
        severity=Severity.CRITICAL,
        when="the log start has passed a record that was not delivered, or not done",
        source="[rule 14](rules.md#rule-14), retention.ms and retention.bytes",
        evidence="{deleted:record} were deleted before any delivery[, and {passed:record} while in flight]; the log"
        " starts"
        " at {start}.",
        advice="Retention (or DeleteRecords) is faster than the group: keep records longer than the lag lasts.",
        judge=_deleted,
    ),
)
"""The rules on how a share partition gets on."""
