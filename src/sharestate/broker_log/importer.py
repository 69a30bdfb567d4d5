"""
From the request logs of a cluster's brokers to a history.

What logs do not say is deduced, and marked as ``inferred``: that a connection was lost, as soon as it is silent while a
session is open on it, or its member opens another one; and that the log start has moved, which share partitions learn
only when they fetch. What cannot be known, as segments have changed or a broker's log is missing, is an event, too.

Heartbeats say nothing: a member that leaves its group closes its share session with a request of its own, or hangs up.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sharestate.broker_log.appends import Appends
from sharestate.broker_log.clocks import Clocks, Offset
from sharestate.broker_log.imported_events import Handler, ImportedEvents, Key
from sharestate.broker_log.leaders import Leaders
from sharestate.broker_log.lines import LoggedRequest, Requests
from sharestate.broker_log.sessions import ShareSessions
from sharestate.broker_log.settings import GroupSettings
from sharestate.broker_log.state_requests import StateRequests
from sharestate.broker_log.topic_logs import TopicLogs
from sharestate.broker_log.topics import Topics
from sharestate.errors import InvalidConfigurationError, RequestLogError
from sharestate.history import Event

_NO_SENSE: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError, InvalidConfigurationError)
"""What is raised where a request has not the fields that it must have, or not with such values."""


class LogImport:
    """
    An import of the request logs of one broker, or of several.

    Args:
        log: The requests of all brokers, by time.
        logs: The logs of their topics.
        broker: The brokers' settings, as ``read_properties`` returns them; None if they are not known.
        groups: The settings of groups when the log begins, as ``read_group_configs`` returns them.
        ask_settings: Returns the settings that a group has now, which are assumed if nothing else says what they were.
        group_id: The only group to import; all if None.
        profile: The name of the rules that the brokers follow; taken from their versions if None.
        redaction_key: The key with which names of groups, members, topics and files, and addresses, are replaced with
            hashes; None leaves them. Without a secret key addresses could be found by trying them all. [0 to 32 bytes]

    Attributes:
        counts: How many there were of each kind of event, and of what could not be imported.
    """

    def __init__(  # noqa: PLR0913 - what an import is made of
        self,
        log: Requests,
        logs: TopicLogs,
        *,
        broker: Mapping[str, Any] | None = None,
        groups: Mapping[str, Mapping[str, Any]] | None = None,
        ask_settings: Callable[[str], Mapping[str, Any]] | None = None,
        group_id: str | None = None,
        profile: str | None = None,
        redaction_key: bytes | None = None,
    ) -> None:
        """Start before the first line."""
        self._log = log
        self._settings = GroupSettings({} if broker is None else broker, groups, ask_settings)
        self._events = ImportedEvents(self._begin, group_id=group_id, redaction_key=redaction_key)
        self._topics = Topics(logs.topic_names())
        self._clocks = Clocks()
        self._leaders = Leaders(self._events)
        self._appends = Appends(self._events, self._topics, logs, self._leaders.leader_of)
        self._sessions = ShareSessions(self._events, self._appends, self._leaders, self._clocks)
        self._states = StateRequests(self._events, self._appends, self._leaders, self._clocks, profile)
        self._handlers: dict[str, Handler] = {
            "INCREMENTAL_ALTER_CONFIGS": self._alter_configs,
            "METADATA": self._metadata,
            **self._appends.handlers(),
            **self._sessions.handlers(),
            **self._states.handlers(),
        }

    @property
    def counts(self) -> Counter[str]:
        """How many there were of each kind of event, and of what could not be imported."""
        return self._events.counts

    @property
    def topic_names(self) -> dict[str, str]:
        """The names of topics by their ids, as far as directories and requests have said until now."""
        return self._topics.names

    def assumed(self) -> dict[str, tuple[str, ...]]:
        """Return the settings of each group that nothing says, by the group's name as it stands in the history."""
        groups = sorted({group_id for group_id, _, _ in self._events})
        found = ((self._events.name(group_id), self._settings.assumed(group_id)) for group_id in groups)
        return {group_id: fields for group_id, fields in found if fields}

    def clock_offsets(self) -> list[Offset]:
        """Return the brokers whose clocks disagree."""
        return [self._shown(offset) for offset in self._clocks.offsets()]

    def __iter__(self) -> Iterator[Event]:
        """
        Yield the events.

        Raises:
            RequestLogError: A line is broken, unless the log passes such lines over.
            SegmentError: Segments cannot be read.
        """
        for request in self._log:
            self._appends.began(request.at_us)
            self._sessions.note_lost_connections(request)
            yield from self._events.take()
            self._leaders.saw(request)
            try:
                self._handlers[request.api](request)
            except _NO_SENSE as error:
                gone = self._events.drop()
                self._appends.forget(gone)
                self._states.forget(gone)
                message = f"no {request.api}: {type(error).__name__} {error}"
                self._log.broken(RequestLogError(message, request.file, request.line))
            yield from self._events.take()
        self._sessions.end()
        yield from self._events.take()
        self._appends.end()
        self._leaders.end()
        self._say_where_clocks_matter()
        yield from self._events.take()

    def _begin(self, key: Key, at_us: int | None) -> None:
        """Begin the history of a share partition: with the settings, and the log so far."""
        self._add_config(key, None, self._settings.of(key[0]), at_us)
        self._appends.begin_log(key, at_us)

    def _metadata(self, logged: LoggedRequest) -> None:
        self._leaders.know(logged.response["brokers"])
        self._appends.name_topics(logged)

    # ---- settings

    def _add_config(self, key: Key, logged: LoggedRequest | None, settings: dict[str, Any], at_us: int | None) -> None:
        if "dlq_topic" in settings:
            settings = {**settings, "dlq_topic": self._events.name(settings["dlq_topic"])}
        self._events.add(key, "config", logged, at_us=at_us, request=settings)

    def _alter_configs(self, logged: LoggedRequest) -> None:
        refused = {each["resourceName"] for each in logged.response["responses"] if each["errorCode"]}
        resources = [each for each in logged.request["resources"] if each["resourceName"] not in refused]
        same = logged.client_id, logged.correlation_id, json.dumps(resources)
        if logged.request["validateOnly"] or self._settings.is_other_line(same, is_forwarded=logged.is_forwarded):
            return
        for group_id, changes in self._settings.alter(resources).items():
            for key in [key for key in self._events if key[0] == group_id]:
                if changes:
                    self._add_config(key, logged, changes, None)

    # ---- clocks

    def _say_where_clocks_matter(self) -> None:
        for key in self._events:
            for offset in self._clocks.offsets(key):
                self._leaders.unknown(key, f"the clocks of brokers disagree: {self._shown(offset)}")

    def _shown(self, offset: Offset) -> Offset:
        return Offset(self._events.name(offset.broker), self._events.name(offset.other), offset.us)
