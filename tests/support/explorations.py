"""Small share groups in which a bug of Kafka shows, as explored by ``sharestate.testing.explore``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve, frozen

from sharestate.json_lines import Json
from sharestate.testing import InProcessServer
from sharestate.testing.explore import Configuration
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.profiles import KAFKA_4_4, Profile, Quirk
from sharestate.values.records import ControlType, RecordBatch
from sharestate.values.snapshot import Snapshot

ACCEPT: Final = (AcknowledgeType.ACCEPT,)
RELEASE: Final = (AcknowledgeType.RELEASE,)


def configuration(*log: tuple[int, int], **others: Any) -> Configuration:  # noqa: ANN401 - fields of different types
    """Return a configuration with a log of these batches."""
    return Configuration(log=tuple(RecordBatch(first, last) for first, last in log), **others)


def with_aborted(last_offset: int, *log: tuple[int, int], **others: Any) -> Configuration:  # noqa: ANN401 - fields of different types
    """Return one whose log begins with an aborted transaction up to an offset, and its marker."""
    marker = last_offset + 1
    aborted = RecordBatch(0, last_offset, 7, True), RecordBatch(marker, marker, 7, True, ControlType.ABORT)  # noqa: FBT003 - a row
    return Configuration(log=(*aborted, *(RecordBatch(first, last) for first, last in log)), **others)


@frozen
class BugInSmall:
    """A bug of Kafka in a small share group."""

    quirk: Quirk
    """The bug."""

    breaks: str
    """What does not hold with it."""

    steps: int
    """The number of steps of a shortest way."""

    configuration: Configuration
    """The share group."""

    @property
    def profile(self) -> Profile:
        """Kafka's rules with this bug alone."""
        return evolve(KAFKA_4_4.healed, quirks=frozenset({self.quirk}))


_THREE: Final = ((0, 0), (1, 1), (2, 2))

_STALLS: Final = "nothing stalls"

BUGS: Final[Mapping[str, BugInSmall]] = MappingProxyType(
    {
        "B6": BugInSmall(
            Quirk.ACQUIRES_BELOW_START, "nothing below the SPSO", 4, configuration((0, 0), (1, 2), log_starts=1)
        ),
        "B9b": BugInSmall(
            Quirk.START_MOVES_BACK,
            "the SPSO moves on",
            5,
            configuration(*_THREE, log_starts=1, delivery_count_limit=1),
        ),
        "B10": BugInSmall(
            Quirk.STALLS_AT_NATURAL_GAP,
            _STALLS,
            5,
            configuration(
                (0, 0), (2, 2), (3, 3), types=ACCEPT, failovers=1, max_record_locks=2, delivery_count_limit=1
            ),
        ),
        "B15": BugInSmall(
            Quirk.EXPIRES_IN_MEMORY_ONLY,
            _STALLS,
            4,
            configuration((0, 0), (1, 1), failures=1, delivery_count_limit=1, max_record_locks=1),
        ),
        "B17": BugInSmall(  # F1 and F3, too, where a window is full
            Quirk.WAITS_AT_WINDOW_END,
            _STALLS,
            8,
            configuration(
                (0, 0), (1, 2), (3, 3), types=ACCEPT, failovers=1, writes=2, max_record_locks=2, delivery_count_limit=1
            ),
        ),
        "B22": BugInSmall(
            Quirk.COUNTS_BELOW_START,
            "complete count",
            9,
            with_aborted(2, types=RELEASE, max_record_locks=5, log_starts=1, switches=1),
        ),
        "F4": BugInSmall(
            Quirk.STALLS_AFTER_LOG_START,
            _STALLS,
            7,
            configuration((0, 0), (1, 2), (3, 3), log_starts=1, max_record_locks=2),
        ),
        "F5": BugInSmall(
            Quirk.STALLS_IN_GAP_BELOW_START,
            _STALLS,
            6,
            configuration(*_THREE, types=ACCEPT, log_starts=1, failovers=1, max_record_locks=2, delivery_count_limit=1),
        ),
        "F6": BugInSmall(
            Quirk.STALLS_AFTER_COMPACTION, _STALLS, 7, configuration(*_THREE, compactions=1, max_record_locks=2)
        ),
        "F7": BugInSmall(Quirk.STALLS_AFTER_ABORT, _STALLS, 1, with_aborted(0, (2, 2), max_record_locks=1)),
    }
)
"""The bugs, by their names in the list of Kafka's bugs."""

SLOW: Final = frozenset({"B17", "B22", "F4"})
"""Those whose shortest way is found in seconds only."""

CROWDED: Final = configuration(
    (0, 0),
    (1, 2),
    (3, 3),
    members=3,
    types=(*ACCEPT, *RELEASE, AcknowledgeType.RENEW),
    max_records=(1, 500),
    writes=2,
    failures=1,
    failovers=1,
    log_starts=1,
    compactions=1,
)
"""A share group in which most things happen; nobody looks at all of its states."""

HEALTHY: Final[Mapping[str, Configuration]] = MappingProxyType(
    {
        **{name: bug.configuration for name, bug in BUGS.items() if name not in {"B6", "B22", "F4"}},
        "log start": configuration((0, 0), (1, 1), log_starts=1),
        "failures": configuration((0, 0), (1, 2), members=2, failures=1),
    }
)
"""Share groups of which all states are looked at in seconds."""

WITH_QUEUE: Final = configuration(
    (0, 0),
    (1, 1),
    types=(AcknowledgeType.ACCEPT, AcknowledgeType.REJECT),
    delivery_count_limit=1,
    failures=1,
    writes=2,
    dead_letter_queue=True,
)
"""A share group with a dead-letter queue."""


def answered(conversation: tuple[Json, ...], profile: Profile) -> Json:
    """Return the library's state after *conversation*."""
    server = InProcessServer(profile)
    return [server(request) for request in conversation][-1]["state"]


def shown(leader: Snapshot) -> tuple[int, int, int, int]:
    """Return what is compared of a *leader*: SPSO, SPEO, count and batches."""
    return leader.start_offset, leader.end_offset, leader.delivery_complete_count, len(leader.batches)


def shown_in(state: Json) -> tuple[int, int, int, int]:
    """Return the same of a *state* in the line protocol."""
    return state["start_offset"], state["end_offset"], state["delivery_complete_count"], len(state["batches"])
