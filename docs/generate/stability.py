"""The page on what of the library can be relied on: each package, and the modules that pages teach."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from generate.markdown import NOTICE, table

STABLE: Final = "stable"
PROVISIONAL: Final = "provisional"
EXPERIMENTAL: Final = "experimental"
INTERNAL: Final = "internal"

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        STABLE: "A name goes or changes its meaning in a major release only, after a release that warns of it.",
        PROVISIONAL: "It may change in a minor release; the changelog says how to go on.",
        EXPERIMENTAL: (
            "It follows what Kafka has not released, and changes with it: `KAFKA_TRUNK`, `COORDINATOR_TRUNK` and "
            "`GROUPS_TRUNK`, wherever they are ([what is coming](profiles.md#what-is-coming))."
        ),
        INTERNAL: "It may change in any release.",
    }
)


class Room(NamedTuple):
    """
    A package, or a module that is imported by its own name.

    Attributes:
        stability: What can be relied on.
        page: The page about it, without its ending; None for what is internal.
    """

    stability: str
    page: str | None


ROOMS: Final[Mapping[str, Room]] = MappingProxyType(
    {
        "sharestate": Room(STABLE, "api"),
        "sharestate.persister": Room(STABLE, "persister"),
        "sharestate.dead_letters": Room(STABLE, "dead-letters"),
        "sharestate.leader": Room(PROVISIONAL, "leader"),
        "sharestate.leader.observed": Room(PROVISIONAL, "leader"),
        "sharestate.persister.kafka": Room(PROVISIONAL, "persister"),
        "sharestate.coordinator": Room(PROVISIONAL, "coordinator"),
        "sharestate.broker.sessions": Room(PROVISIONAL, "sessions"),
        "sharestate.broker.groups": Room(PROVISIONAL, "groups"),
        "sharestate.broker.node": Room(PROVISIONAL, "node"),
        "sharestate.broker": Room(PROVISIONAL, "test-broker"),
        "sharestate.broker.groups.metadata_hash": Room(PROVISIONAL, "group-records"),
        "sharestate.broker.groups.records": Room(PROVISIONAL, "group-records"),
        "sharestate.state_topic": Room(PROVISIONAL, "state-topic"),
        "sharestate.state_topic.cluster": Room(PROVISIONAL, "state-topic"),
        "sharestate.segments": Room(PROVISIONAL, "segments"),
        "sharestate.history": Room(PROVISIONAL, "history"),
        "sharestate.history.synthetic": Room(PROVISIONAL, "spark-analysis"),
        "sharestate.broker_log": Room(PROVISIONAL, "broker-log"),
        "sharestate.log_check": Room(PROVISIONAL, "broker-log"),
        "sharestate.audit": Room(PROVISIONAL, "audit"),
        "sharestate.audit.importers": Room(INTERNAL, None),
        "sharestate.audit.recorder": Room(PROVISIONAL, "recorder"),
        "sharestate.conformance": Room(PROVISIONAL, "conformance"),
        "sharestate.dead_letter_topic": Room(PROVISIONAL, "dead-letter-topics"),
        "sharestate.diagnose": Room(PROVISIONAL, "diagnose"),
        "sharestate.explain": Room(PROVISIONAL, "why"),
        "sharestate.report": Room(PROVISIONAL, "report"),
        "sharestate.monitor": Room(INTERNAL, None),
        "sharestate.plots": Room(PROVISIONAL, "plots"),
        "sharestate.kip932": Room(PROVISIONAL, "kip932"),
        "sharestate.kip932.notation": Room(PROVISIONAL, "kip932"),
        "sharestate.simulate": Room(PROVISIONAL, "simulate"),
        "sharestate.spark": Room(PROVISIONAL, "spark"),
        "sharestate.spark.analysis": Room(PROVISIONAL, "spark-analysis"),
        "sharestate.testing": Room(PROVISIONAL, "testing"),
        "sharestate.testing.groups": Room(PROVISIONAL, "testing"),
        "sharestate.testing.partitions": Room(PROVISIONAL, "testing"),
        "sharestate.testing.persisters": Room(PROVISIONAL, "testing"),
        "sharestate.testing.persisters.failover_runs": Room(PROVISIONAL, "testing"),
        "sharestate.testing.protocol": Room(PROVISIONAL, "testing"),
        "sharestate.testing.protocol.strategies": Room(PROVISIONAL, "testing"),
        "sharestate.testing.generator": Room(PROVISIONAL, "testing"),
        "sharestate.testing.explore": Room(PROVISIONAL, "explore"),
        "sharestate.testing.search": Room(PROVISIONAL, "testing"),
        "sharestate.testing.servers": Room(PROVISIONAL, "testing"),
        "sharestate.testing.servers.machine": Room(PROVISIONAL, "testing"),
        "sharestate.testing.thorough": Room(PROVISIONAL, "testing"),
        "sharestate.broker.server": Room(INTERNAL, None),
        "sharestate.cli": Room(INTERNAL, None),
        "sharestate.conversation": Room(INTERNAL, None),
        "sharestate.conversation.coordinator": Room(INTERNAL, None),
        "sharestate.conversation.groups": Room(INTERNAL, None),
        "sharestate.conversation.sessions": Room(INTERNAL, None),
        "sharestate.partition": Room(INTERNAL, None),
        "sharestate.testing.record_model": Room(INTERNAL, None),
        "sharestate.values": Room(INTERNAL, None),
    }
)
"""The packages, and the modules that a page imports from."""


def page() -> str:
    """Return the page."""
    rows = [[f"`{name}`", room.stability, _link(room)] for name, room in ROOMS.items()]
    return f"""{NOTICE}

# What you can rely on

{_meanings()}
The formats of files and streams have versions of their own, and each reader refuses a version that it does not know.
The command line is provisional: its options, its exit codes, and the names in what `--json` prints.

All of it holds for [the compiled library](install.md#compiled) too; which modules are compiled may change.

{table(["package or module", "stability", "page"], rows)}

Any other module is internal. What is stable is compared with a recorded copy in every build: names, signatures, fields
and members of enumerations.
"""


def _meanings() -> str:
    return "".join(f"- **{word.capitalize()}.** {meaning}\n" for word, meaning in MEANINGS.items())


def _link(room: Room) -> str:
    return "" if room.page is None else f"[{room.page}]({room.page}.md)"
