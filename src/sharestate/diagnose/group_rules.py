"""The rules on the share partitions of a group together: where its records are, and who fetches from where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from sharestate.diagnose.delivery_rules import first_few
from sharestate.diagnose.partition_facts import PartitionFacts
from sharestate.diagnose.rule import DiagnosisRule, Evidence, RuleNeed, Severity, share

_HOT: Final = 4
"""How many times the median a partition has to have, to be hot: less is made by keys, and members go where work is."""

_FEWEST: Final = 100
"""Below so many records, where they are says nothing. [records]"""

_RECENT_US: Final = 1_000_000
"""
How long before a member's last fetch another one belongs to the same assignment, at least: a fetch names all partitions
of its session, and each broker gets one. [µs]
"""

_STAYS_US: Final = 5_000_000
"""How long after its last fetch a member is still taken to be there, at least: the interval of heartbeats. [µs]"""


class GroupFacts(NamedTuple):
    """
    The share partitions of a group.

    Attributes:
        group_id: The group.
        partitions: The facts about them.
        topics: The names of topics by their ids.
    """

    group_id: str
    partitions: Sequence[PartitionFacts]
    topics: Mapping[str, str]

    def delivered(self, facts: PartitionFacts) -> int:
        """Return how many records were delivered of a share partition, the first time each."""
        return facts.life.happened.delivered.records

    def places(self) -> dict[str, set[tuple[str, int]]]:
        """Return from which topic partitions each member fetches that is there at the end."""
        recent_us = max(_RECENT_US, max((each.lasted_us for each in self.partitions), default=0) // 10)
        fetches: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        for facts in self.partitions:
            for name, member in facts.deliveries.members.items():
                if member.last_fetch_us is not None:
                    fetches[name][facts.key[1:]] = member.last_fetch_us
        end_us = max((max(each.values()) for each in fetches.values()), default=0)
        return {
            name: {place for place, at_us in each.items() if at_us >= max(each.values()) - recent_us}
            for name, each in fetches.items()
            if max(each.values()) >= end_us - max(_STAYS_US, recent_us)
        }

    def named(self, member_id: str) -> str:
        """Return how a sentence names a member."""
        known = (each.life.members for each in self.partitions if member_id in each.deliveries.members)
        return next((each.name(member_id) for each in known), member_id)


def _hot_partition(group: GroupFacts) -> Evidence | None:
    by_topic: dict[str, list[PartitionFacts]] = defaultdict(list)
    for facts in group.partitions:
        if facts.life.partition is not None and not facts.life.happened.unchecked:
            by_topic[facts.key[1]].append(facts)
    for topic_id, partitions in by_topic.items():
        if len(partitions) < 2:  # noqa: PLR2004 - one has nothing to be compared with
            continue
        counts = {facts.key[2]: group.delivered(facts) for facts in partitions}
        hottest = max(counts, key=lambda each: counts[each])
        others = median(count for partition, count in counts.items() if partition != hottest)
        total = sum(counts.values())
        if total >= _FEWEST and counts[hottest] >= _HOT * max(others, 1):
            return {
                "topic": group.topics.get(topic_id, topic_id),
                "partition": hottest,
                "records": counts[hottest],
                "total": total,
                "part": share(counts[hottest], total),
                "others": f"{others:g}",
                "partitions": len(counts),
            }
    return None


def _uneven(group: GroupFacts) -> Evidence | None:
    places = group.places()
    if len(places) < 2:  # noqa: PLR2004 - as above
        return None
    most, least = max(places, key=lambda each: len(places[each])), min(places, key=lambda each: len(places[each]))
    many, few = len(places[most]), len(places[least])
    if many - few < 2 or many < 3 * few:  # noqa: PLR2004 - see the rule
        return None
    few_names = [group.named(each) for each in places if len(places[each]) == few]
    return {
        "member": group.named(most),
        "many": many,
        "few": few,
        "others": first_few(few_names),
        "members": len(places),
        "partitions": len(set().union(*places.values())),
    }


GROUP_RULES: Final[tuple[DiagnosisRule[GroupFacts], ...]] = (
    DiagnosisRule(
        name="hot-partition",
        title="one partition has most of the records",
        severity=Severity.NOTICE,
        when="of 100 records that were delivered at least, a partition of a topic has 4 times the median of the others",
        source="KIP-932 (share partitions): one leader and one window of records in flight for each",
        evidence="Partition {partition} of {topic} had {records} of {total:record} ({part}), where the median of the"
        " others,"
        " of {partitions} in all, is {others}.",
        advice="Look at the keys that are produced; a share group needs none for order, so records without keys are"
        " spread. More share.partition.max.record.locks let more members work on this one.",
        judge=_hot_partition,
    ),
    DiagnosisRule(
        name="uneven-assignment",
        title="members have very different numbers of partitions",
        severity=Severity.NOTICE,
        when="at the end a member fetches from 3 times as many partitions as another, and from 2 more at least: Kafka's"
        " assignor gives members of the same topics one more at the most",
        source="[assignment](assignment.md)",
        evidence="{member} fetches from {many:partition} of {partitions}, and {others} from {few}; {members:member}"
        " in all.",
        advice="Have all members subscribe to the same topics, and see the assignment with kafka-share-groups.sh"
        " --describe"
        " --members; members with no partition at all send no fetch, and are not seen here.",
        needs=(RuleNeed.TIMES,),
        judge=_uneven,
    ),
)
"""The rules on groups."""
