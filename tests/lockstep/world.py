"""What a script's author knows of a broker: what it has answered so far."""

from __future__ import annotations

from typing import Final, NamedTuple

from attrs import define, field

from sharestate import ErrorCode
from tests.lockstep.steps import How, Step, Taken
from tests.lockstep.wire import Fields

SESSION_ERRORS: Final = frozenset(
    {"share_session_not_found", "invalid_share_session_epoch", "share_session_limit_reached"}
)
"""The errors after which a client opens a session anew."""

NOT_LEADER: Final = "not_leader_or_follower"
"""The error after which the next fetch has the state of a share partition read again."""

FENCED: Final = frozenset({"producer_fenced", "invalid_producer_epoch"})
"""The errors after which a producer begins anew."""

FINAL_EPOCH: Final = -1


class Part(NamedTuple):
    """A partition of a topic, which is called as in names.py."""

    topic: str
    number: int


@define
class KnownTopic:
    """
    A topic that was made.

    Attributes:
        name: Its name.
        topic_id: The name of its id.
        partitions: How many it has.
        exists: False once it was deleted.
        ends: The log end of each partition, as far as it is known.
    """

    name: str
    topic_id: str
    partitions: int
    exists: bool = True
    ends: dict[int, int] = field(factory=dict)


@define
class KnownMember:
    """
    A member of a share group.

    Attributes:
        group: Its group.
        member_id: Its id, and its client's name.
        epoch: Its member epoch; 0 if it has not joined.
        session: The epoch that its share session expects next; 0 without one.
        listed: The partitions of its session.
        held: What it has acquired and not acknowledged, as first and last offsets.
        waits: Whether its fetch has no answer yet.
    """

    group: str
    member_id: str
    epoch: int = 0
    session: int = 0
    listed: list[Part] = field(factory=list)
    held: dict[Part, list[tuple[int, int]]] = field(factory=dict)
    waits: bool = False


@define
class KnownProducer:
    """
    A producer with an id.

    Attributes:
        client: Its client's name, and its transactional id if it has one.
        is_transactional: Whether it has one.
        by_id: Whether it sends what producers send that know transactions of version 2.
        producer_id: Its producer id; ``none`` if it has none.
        producer_epoch: Its epoch.
        sequences: The next sequence number of each partition.
        in_transaction: The partitions of the transaction that has not ended.
    """

    client: str
    is_transactional: bool
    by_id: bool
    producer_id: str = "none"
    producer_epoch: int = -1
    sequences: dict[Part, int] = field(factory=dict)
    in_transaction: list[Part] = field(factory=list)

    def reset(self, producer_id: str, producer_epoch: int) -> None:
        """Begin with an id or an epoch that it got."""
        if (producer_id, producer_epoch) != (self.producer_id, self.producer_epoch):
            self.sequences.clear()
        self.producer_id, self.producer_epoch = producer_id, producer_epoch


@define
class World:
    """
    What is known of a broker.

    Attributes:
        topics: The topics, by the names of their ids.
        members: The members, by their ids.
        producers: The producers with ids, by their clients' names.
        warm: The share partitions that were fetched from, as group and partition.
    """

    topics: dict[str, KnownTopic] = field(factory=dict)
    members: dict[str, KnownMember] = field(factory=dict)
    producers: dict[str, KnownProducer] = field(factory=dict)
    warm: set[tuple[str, Part]] = field(factory=set)

    def topic_named(self, name: str) -> KnownTopic | None:
        """Return the topic of a name that exists."""
        return next((topic for topic in self.topics.values() if topic.name == name and topic.exists), None)

    def learn(self, taken: Taken) -> None:
        """Take over what a step's answer says."""
        step, answer = taken.step, taken.answer
        if step.how is How.HANG_UP:
            self._lose_connection(step.client)
        elif step.how is How.SEND:
            self.members[step.client].waits = True
        elif answer is not None and "connection" in answer:
            self._lose_connection(step.client)
        elif answer is not None and (learn := _LEARN.get(step.api)):
            learn(self, step, answer)

    def _lose_connection(self, client: str) -> None:
        if member := self.members.get(client):
            member.waits = False
            self._end_session(member)

    def _end_session(self, member: KnownMember) -> None:
        """A broker forgets the share partitions of a group when its last session ends (onGroupEmpty)."""
        member.session = 0
        member.listed.clear()
        member.held.clear()
        if not any(each.session for each in self.members.values() if each.group == member.group):
            self.warm = {(group, part) for group, part in self.warm if group != member.group}

    def _create(self, step: Step, answer: Fields) -> None:
        for asked, made in zip(step.request["topics"], answer["topics"], strict=False):
            if made["error_code"] == "none":
                topic = KnownTopic(made["name"], made["topic_id"], asked["num_partitions"])
                self.topics[topic.topic_id] = topic

    def _delete(self, _: Step, answer: Fields) -> None:
        for each in answer["responses"]:
            if each["error_code"] == "none" and (topic := self.topic_named(each["name"])):
                topic.exists = False
                self.warm = {(group, part) for group, part in self.warm if part.topic != topic.topic_id}

    def _grow(self, step: Step, answer: Fields) -> None:
        for asked, grown in zip(step.request["topics"], answer["results"], strict=False):
            is_done = grown["error_code"] == "none" and not step.request["validate_only"]
            if is_done and (topic := self.topic_named(grown["name"])):
                topic.partitions = asked["count"]

    def _produce(self, step: Step, answer: Fields) -> None:
        (asked,), (topic,) = step.request["topic_data"], answer["responses"]
        known = self.topics.get(asked["topic_id"]) if "topic_id" in asked else self.topic_named(asked["name"])
        sent = {part["index"]: part["records"] for part in asked["partition_data"]}
        for part in topic["partition_responses"]:
            if known and part["error_code"] == "none":
                count = sum(len(batch["values"]) for batch in sent[part["index"]])
                known.ends[part["index"]] = part["base_offset"] + count

        producer = self.producers.get(step.client)
        if producer and any(part["error_code"] in FENCED for part in topic["partition_responses"]):
            producer.reset("none", -1)

    def _init_producer(self, step: Step, answer: Fields) -> None:
        producer = self.producers[step.client]
        if answer["error_code"] == "none":
            producer.reset(answer["producer_id"], answer["producer_epoch"])
            producer.in_transaction.clear()

    def _end_transaction(self, step: Step, answer: Fields) -> None:
        producer = self.producers[step.client]
        producer.in_transaction.clear()
        if answer["error_code"] == "none" and "producer_id" in answer:
            producer.reset(answer["producer_id"], answer["producer_epoch"])
        elif answer["error_code"] in FENCED:
            producer.reset("none", -1)

    def _heartbeat(self, step: Step, answer: Fields) -> None:
        member = self.members[step.request["member_id"]]
        if answer["error_code"] == "none":
            member.epoch = max(0, answer["member_epoch"])
        elif answer["error_code"] in {"unknown_member_id", "fenced_member_epoch"}:
            member.epoch = 0

    def _fetch(self, step: Step, answer: Fields) -> None:
        member = self.members[step.client]
        member.waits = False
        if not self._count(member, step, answer):
            return
        for topic in answer["responses"]:
            for partition in topic["partitions"]:
                part = Part(topic["topic_id"], partition["partition_index"])
                codes = {partition["error_code"], partition["acknowledge_error_code"]}
                if codes & {NOT_LEADER, ErrorCode.NOT_LEADER_OR_FOLLOWER}:  # kio has the second one as a number
                    self.warm.discard((member.group, part))
                elif partition["error_code"] == "none":
                    self.warm.add((member.group, part))
                ranges = [(each["first_offset"], each["last_offset"]) for each in partition["acquired_records"]]
                member.held.setdefault(part, []).extend(ranges)

    def _acknowledge(self, step: Step, answer: Fields) -> None:
        member = self.members[step.client]
        self._count(member, step, answer)
        for topic in answer["responses"]:
            for partition in topic["partitions"]:
                if partition["error_code"] == NOT_LEADER:
                    self.warm.discard((member.group, Part(topic["topic_id"], partition["partition_index"])))

    def _count(self, member: KnownMember, step: Step, answer: Fields) -> bool:
        """Move the epoch of a session on; return whether the request was accepted."""
        if answer["error_code"] in SESSION_ERRORS:
            self._end_session(member)
        if answer["error_code"] != "none":
            return False
        epoch = step.request["share_session_epoch"]
        if epoch == FINAL_EPOCH:
            self._end_session(member)
            return False
        member.session = epoch + 1
        if step.api == "share_fetch":
            forgotten = _parts(step.request["forgotten_topics_data"])
            kept = [part for part in (member.listed if epoch else []) if part not in forgotten]
            member.listed = list(dict.fromkeys([*kept, *_parts(step.request["topics"])]))
        return True


def _parts(topics: list[Fields]) -> list[Part]:
    """Return the partitions that a request lists."""
    return [
        Part(topic["topic_id"], partition["partition_index"] if isinstance(partition, dict) else partition)
        for topic in topics
        for partition in topic["partitions"]
    ]


_LEARN: Final = {
    "create_topics": World._create,  # noqa: SLF001 - its own
    "delete_topics": World._delete,  # noqa: SLF001
    "create_partitions": World._grow,  # noqa: SLF001
    "produce": World._produce,  # noqa: SLF001
    "init_producer_id": World._init_producer,  # noqa: SLF001
    "end_txn": World._end_transaction,  # noqa: SLF001
    "share_group_heartbeat": World._heartbeat,  # noqa: SLF001
    "share_fetch": World._fetch,  # noqa: SLF001
    "share_acknowledge": World._acknowledge,  # noqa: SLF001
}
"""What each answer teaches."""
