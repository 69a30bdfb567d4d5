"""The settings of a group's dead-letter queue, and when a broker refuses to write to it."""

from __future__ import annotations

from typing import Final

from attrs import field, frozen, validators

from sharestate.errors import DeadLetterQueueConfigError, InvalidConfigurationError
from sharestate.values.checks import expect, instance

RESERVED_PREFIX: Final = "__"
"""The beginning of the names of Kafka's own topics."""

_TOPIC_NAME: Final = "errors.deadletterqueue.topic.name"


@frozen(kw_only=True)
class DeadLetterSettings:
    """
    The settings of a group, its dead-letter topic and the brokers, as they are when a dead letter has to be written.

    Kafka looks all of them up again for every request, so they may change at any time.

    >>> from sharestate.dead_letters import DeadLetterSettings
    >>> settings = DeadLetterSettings(topic_name="dlq.orders", topic_group_enable=False)
    >>> settings.has_queue, settings.refusal("g").message
    (True, 'DLQ is not enabled on configured DLQ topic for share group: g, topic: dlq.orders.')

    Attributes:
        topic_name: ``errors.deadletterqueue.topic.name`` of the group: empty if only other settings of the group were
            made, None if none was.
        copy_record_enable: ``errors.deadletterqueue.copy.record.enable`` of the group: whether dead letters have the
            key and value of the record.
        topic_group_enable: ``errors.deadletterqueue.group.enable`` of the topic; None if there is no such topic.
        auto_create_topics_enable: ``errors.deadletterqueue.auto.create.topics.enable`` of the brokers.
        topic_name_prefix: ``errors.deadletterqueue.topic.name.prefix`` of the brokers; empty if any name will do.

    Raises:
        MalformedInputError: A field is of the wrong type.

    Source:
        KIP-1191; ShareGroupDLQMetadataCacheHelper (Kafka 4.4.0).
    """

    topic_name: str | None = field(default=None, validator=validators.optional(instance(str)))
    copy_record_enable: bool = field(default=False, validator=instance(bool))
    topic_group_enable: bool | None = field(default=None, validator=validators.optional(instance(bool)))
    auto_create_topics_enable: bool = field(default=False, validator=instance(bool))
    topic_name_prefix: str = field(default="dlq.", validator=instance(str))

    @property
    def has_queue(self) -> bool:
        """
        Whether the group has a dead-letter queue, which is what ``ShareConfig.dead_letter_queue`` says.

        Not whether it can be written to: records whose dead letters are refused go the same way.
        """
        return bool(self.topic_name)

    def refusal(self, group_id: str) -> DeadLetterQueueConfigError | None:
        """
        Return why a broker writes no dead letters of *group_id*; None if it does (rule 21.5).

        Of several reasons it is the first one in Kafka's order.

        Source:
            ShareGroupDLQStateManager.validateDlqTopic (Kafka 4.4.0).
        """
        topic, prefix = self.topic_name, self.topic_name_prefix
        if topic is None:
            reason = f"Configured DLQ topic name in share group: {group_id} is empty."
        elif topic.startswith(RESERVED_PREFIX):
            reason = f"Configured DLQ topic name in share group: {group_id} cannot start with __, topic: {topic}."
        elif self.topic_group_enable is False:
            reason = f"DLQ is not enabled on configured DLQ topic for share group: {group_id}, topic: {topic}."
        elif self.topic_group_enable is None and not self.auto_create_topics_enable:
            reason = (
                "DLQ topic does not exist and auto create is disabled on cluster for share group: "
                f"{group_id}, topic: {topic}."
            )
        elif not topic.startswith(prefix):
            reason = (
                "Configured DLQ topic name does not comply with the DLQ topic prefix in share group: "
                f"{group_id}, topic: {topic}, prefix: {prefix}."
            )
        else:
            return None
        return DeadLetterQueueConfigError(reason)


def check_topic_name(topic_name: str) -> None:
    """
    Check the name that a group is to be given as ``errors.deadletterqueue.topic.name`` (rule 21.5).

    Kafka checks no more than this: whether the topic exists, and whether a topic could have that name, shows when the
    first dead letter is written.

    Raises:
        InvalidConfigurationError: It begins as the names of Kafka's own topics do.

    Source:
        GroupConfig.validate (Kafka 4.4.0).
    """
    if expect(topic_name, str, "topic_name").startswith(RESERVED_PREFIX):
        message = f"{_TOPIC_NAME}: DLQ topic name must not start with '__'"
        raise InvalidConfigurationError(message, _TOPIC_NAME)
