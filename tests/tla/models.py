"""
Models of the specification that TLC checks: a small share group, or one of its coordinators, and what must hold.

Each is checked twice: as it is meant, when all must hold, and with a bug of Kafka switched on, when TLC has to find by
itself how something breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Final

from attrs import evolve, fields, frozen

from tests.tla.tlc import Checked, check

PROPERTIES: Final = frozenset(
    {
        *("AcceptedIsFinal", "StartMovesOn", "NothingBelowStart", "LettersComeFirst"),
        *("OneLeaderWrites", "EpochsNeverFall", "LeaderEpochNeverFalls"),
    }
)
"""What must hold of every step; the rest must hold in every state."""

LIVENESS: Final = frozenset({"LocksEnd", "AllIsDone", "AllIsAnswered", "AllHaveState"})
"""What must hold some day, if members, writes and locks go on."""

SHARE_GROUP: Final = (
    *("TypeOK", "NothingIsLost", "CompleteCount", "NeverStalls", "DeliveryLimit", "LettersAreUnderWay"),
    *("AcceptedIsFinal", "StartMovesOn", "NothingBelowStart", "LettersComeFirst"),
)
"""What must hold of a share group."""

SHARE_COORDINATOR: Final = (
    *("TypeOK", "ConfirmedIsStored", "FencedStays"),
    *("OneLeaderWrites", "EpochsNeverFall", "LeaderEpochNeverFalls"),
)
"""What must hold of a share coordinator."""

SHARE_INITIALIZATION: Final = ("TypeOK", "ResetDecides", "AddedAreNotMissed", "AllHaveState")
"""What must hold of the initialization of a topic."""


def _set(members: Iterable[str]) -> str:
    return "{" + ", ".join(members) + "}"


@frozen(kw_only=True)
class Model:
    """Constants of a module, as TLA+ has them, and what is judged of it."""

    quirks: tuple[str, ...] = ()
    """The bugs of Kafka that are switched on."""

    judged: tuple[str, ...]
    """The names of what must hold."""

    module: ClassVar[str]
    """The module that is checked."""

    specification: ClassVar[str] = "Spec"
    """What the module calls all that may happen."""

    def constants(self) -> dict[str, str]:
        """Return the module's constants, as TLA+ has them."""
        values = {each.name.capitalize(): str(getattr(self, each.name)) for each in fields(type(self))}
        del values["Judged"]
        return {**values, "Quirks": _set(f'"{name}"' for name in sorted(self.quirks))}

    def alike(self) -> tuple[tuple[str, ...], ...]:
        """Return the names that may be exchanged for each other: states that differ in no more are one for TLC."""
        return ()

    def check(self, directory: Path, minutes: float = 10) -> Checked:
        """Have TLC check it."""
        constants, alike = self.constants(), self.alike()
        names = [name for each in alike for name in each]
        text = [
            f"---- MODULE Model ----\nEXTENDS {self.module}",
            *(["CONSTANTS " + ", ".join(names)] if names else []),
            "Alike == " + (" \\union ".join(f"Permutations({_set(each)})" for each in alike) or "{}"),
            *(f"The{name} == {value}" for name, value in constants.items()),
            "====\n",
        ]
        is_live = LIVENESS & {*self.judged}
        configuration = [
            f"SPECIFICATION {'FairSpec' if is_live else self.specification}",
            "CHECK_DEADLOCK FALSE",
            "CONSTANTS",
            *(f"{name} = {name}" for name in names),
            *(f"{name} <- The{name}" for name in constants),
            *(f"{'PROPERTY' if name in PROPERTIES | LIVENESS else 'INVARIANT'} {name}" for name in self.judged),
            *(["SYMMETRY Alike"] if len(names) > len(alike) and not is_live else []),  # which liveness cannot have
        ]
        return check(["\n".join(text)], "\n".join(configuration), directory, minutes=minutes)


@frozen(kw_only=True)
class ShareGroupModel(Model):
    """A share group; the fields are the constants of ShareGroup.tla."""

    judged: tuple[str, ...] = SHARE_GROUP
    log: str
    aborted: str = "{}"
    types: str = '{"accept", "release"}'
    modes: str = '{"batch_optimized"}'
    members: int = 1
    """How many."""

    stored: str = "[start |-> 0, records |-> <<>>]"
    limit: int = 2
    locks: int = 3
    queue: str = "FALSE"
    writes: int = 1
    failures: int = 0
    failovers: int = 0
    deletions: int = 0
    compactions: int = 0
    switches: int = 0

    module: ClassVar[str] = "ShareGroup"

    def alike(self) -> tuple[tuple[str, ...], ...]:
        """Return the members, and the writes."""
        return (
            tuple(f"m{number}" for number in range(1, self.members + 1)),
            tuple(f"w{number}" for number in range(1, self.writes + 1)),
        )

    def constants(self) -> dict[str, str]:
        """Return the module's constants, as TLA+ has them."""
        members, writes = self.alike()
        return {**super().constants(), "Members": _set(members), "Writes": _set(writes)}


@frozen(kw_only=True)
class ShareLagModel(ShareGroupModel):
    """A share group, and the lag that is seen of it."""

    judged: tuple[str, ...] = (*SHARE_GROUP, "LagHidesNothing")

    module: ClassVar[str] = "ShareLag"
    specification: ClassVar[str] = "LagSpec"


@frozen(kw_only=True)
class ShareCoordinatorModel(Model):
    """A share coordinator; the fields are the constants of ShareCoordinator.tla."""

    judged: tuple[str, ...] = SHARE_COORDINATOR
    records: str = "0..1"
    leaders: str = "1..2"
    retries: int = 1
    reloads: int = 1
    reversed: int = 0
    fences: int = 0

    module: ClassVar[str] = "ShareCoordinator"


@frozen(kw_only=True)
class ShareInitializationModel(Model):
    """The initialization of a topic; the fields are the constants of ShareInitialization.tla."""

    judged: tuple[str, ...] = SHARE_INITIALIZATION
    first: int = 1
    added: int = 1
    losses: int = 2

    module: ClassVar[str] = "ShareInitialization"


@frozen(kw_only=True)
class BugModel:
    """A bug of Kafka, and the model in which TLC finds it."""

    quirks: tuple[str, ...]
    """What is switched on."""

    breaks: str
    """What does not hold then."""

    model: Model
    """The model, without the bug."""

    def check(self, directory: Path) -> Checked:
        """Have TLC find the bug; nothing else is judged, so that what is found is the shortest way to it."""
        return evolve(self.model, quirks=self.quirks, judged=(self.breaks,)).check(directory)


_THREE: Final = "{<<0, 0>>, <<1, 1>>, <<2, 2>>}"
_AVAILABLE: Final = '[state |-> "Available", count |-> 1]'
_ACCEPTED: Final = '[state |-> "Acknowledged", count |-> 1]'

_DEAD_LETTER: Final = ShareGroupModel(log="{<<0, 0>>}", types='{"reject"}', queue="TRUE", failures=1, limit=1, locks=1)

BUGS: Final[Mapping[str, BugModel]] = MappingProxyType(
    {
        "B6": BugModel(
            quirks=("B6",),
            breaks="NothingBelowStart",
            model=ShareGroupModel(log="{<<0, 0>>, <<1, 2>>}", deletions=1),
        ),
        "B9b": BugModel(
            quirks=("B9b",), breaks="StartMovesOn", model=ShareGroupModel(log=_THREE, deletions=1, limit=1)
        ),
        "B10": BugModel(
            quirks=("B10",),
            breaks="NeverStalls",
            model=ShareGroupModel(
                log="{<<0, 0>>, <<2, 2>>, <<3, 3>>}", types='{"accept"}', failovers=1, locks=2, limit=1
            ),
        ),
        "B15": BugModel(
            quirks=("B15",),
            breaks="NeverStalls",
            model=ShareGroupModel(log="{<<0, 0>>, <<1, 1>>}", failures=1, limit=1, locks=1),
        ),
        "B22": BugModel(
            quirks=("B22",),
            breaks="CompleteCount",
            model=ShareGroupModel(
                log="{<<0, 2>>, <<3, 3>>}",
                aborted="{<<0, 2>>}",
                types='{"release"}',
                locks=4,
                deletions=1,
                switches=1,
            ),
        ),
        "F1": BugModel(  # by B17, where a window is full
            quirks=("B17",),
            breaks="NeverStalls",
            model=ShareGroupModel(
                log="{<<0, 0>>, <<1, 2>>, <<3, 3>>}", types='{"accept"}', failovers=1, writes=2, locks=2, limit=1
            ),
        ),
        "F2": BugModel(  # by B9b, where B17 and F5 leave the gap window of a new leader as it was
            quirks=("B9b", "B17", "F5"),
            breaks="CompleteCount",
            model=ShareGroupModel(
                log="{<<0, 0>>, <<1, 1>>, <<2, 3>>, <<4, 4>>}",
                types='{"accept"}',
                stored="[start |-> 0, records |-> "
                '(1 :> [state |-> "Acknowledged", count |-> 1] @@ 4 :> [state |-> "Available", count |-> 1])]',
                locks=5,
                deletions=1,
            ),
        ),
        "F3": BugModel(
            quirks=("F3",),
            breaks="AcceptedIsFinal",
            model=ShareGroupModel(log=_THREE, types='{"accept"}', failovers=1, writes=2, limit=1),
        ),
        "F4": BugModel(
            quirks=("F4",),
            breaks="NeverStalls",
            model=ShareGroupModel(log="{<<0, 0>>, <<1, 2>>, <<3, 3>>}", deletions=1, locks=2),
        ),
        "F5": BugModel(
            quirks=("F5",),
            breaks="NeverStalls",
            model=ShareGroupModel(log=_THREE, types='{"accept"}', deletions=1, failovers=1, locks=2, limit=1),
        ),
        "F6": BugModel(quirks=("F6",), breaks="NeverStalls", model=ShareGroupModel(log=_THREE, compactions=1, locks=2)),
        "F7": BugModel(
            quirks=("F7",),
            breaks="NeverStalls",
            model=ShareGroupModel(log="{<<0, 0>>, <<1, 1>>}", aborted="{<<0, 0>>}", locks=1),
        ),
        "F8": BugModel(  # by B6, with a record limit
            quirks=("B6", "F8"),
            breaks="NeverStalls",
            model=ShareGroupModel(
                log="{<<0, 0>>, <<1, 3>>}", types='{"accept"}', modes='{"record_limit"}', deletions=1, limit=1, locks=4
            ),
        ),
        "B23": BugModel(  # with B15, of which it is the part that has to do with dead letters
            quirks=("B15", "B23"), breaks="CompleteCount", model=_DEAD_LETTER
        ),
        "B24": BugModel(
            quirks=("B24",),
            breaks="LagHidesNothing",
            model=ShareLagModel(log="{<<0, 1>>}", types='{"accept"}', writes=2, failures=1),
        ),
        "B25": BugModel(  # by B7
            quirks=("B7",),
            breaks="LettersAreUnderWay",
            model=ShareGroupModel(
                log="{<<0, 0>>, <<1, 1>>}", types='{"reject"}', queue="TRUE", deletions=1, limit=1, locks=2
            ),
        ),
        "B15, a dead letter": BugModel(quirks=("B15",), breaks="LettersComeFirst", model=_DEAD_LETTER),
        "C1": BugModel(
            quirks=("C1",),
            breaks="AllIsAnswered",
            model=ShareCoordinatorModel(judged=("AllIsAnswered",), leaders="1..1", retries=0, reloads=0, reversed=1),
        ),
        "C2": BugModel(quirks=("C2",), breaks="ConfirmedIsStored", model=ShareCoordinatorModel()),
        "B14": BugModel(quirks=("B14",), breaks="FencedStays", model=ShareCoordinatorModel(fences=1)),
        "B26": BugModel(quirks=("B26",), breaks="ResetDecides", model=ShareInitializationModel()),
        "C2, old leaders": BugModel(
            quirks=("C2", "forgets leaders"), breaks="OneLeaderWrites", model=ShareCoordinatorModel(retries=2)
        ),
    }
)
"""The bugs, by their ids in docs/kafka-bugs.md."""

_SOME_DAY: Final = ShareGroupModel(judged=("AllIsDone",), log=_THREE, types='{"accept"}', limit=1, locks=1)
_BEHIND_A_GAP: Final = f"[start |-> 0, records |-> (1 :> {_ACCEPTED})]"
_BEHIND_AN_AVAILABLE_RECORD: Final = f"[start |-> 0, records |-> (0 :> {_AVAILABLE} @@ 1 :> {_ACCEPTED})]"

STALLS: Final[Mapping[str, BugModel]] = MappingProxyType(
    {
        "F1": BugModel(quirks=("B17",), breaks="AllIsDone", model=evolve(_SOME_DAY, stored=_BEHIND_A_GAP)),
        "F4": BugModel(
            quirks=("F4",),
            breaks="AllIsDone",
            model=evolve(_SOME_DAY, stored=_BEHIND_AN_AVAILABLE_RECORD, deletions=1),
        ),
        "F5": BugModel(quirks=("F5",), breaks="AllIsDone", model=evolve(_SOME_DAY, stored=_BEHIND_A_GAP, deletions=1)),
        "F6": BugModel(
            quirks=("F6",),
            breaks="AllIsDone",
            model=evolve(_SOME_DAY, stored=_BEHIND_AN_AVAILABLE_RECORD, compactions=1),
        ),
        "F7": BugModel(
            quirks=("F7",),
            breaks="AllIsDone",
            model=evolve(_SOME_DAY, log="{<<0, 0>>, <<1, 1>>}", aborted="{<<0, 0>>}"),
        ),
        "F8": BugModel(
            quirks=("B6", "F8"),
            breaks="AllIsDone",
            model=evolve(_SOME_DAY, log="{<<0, 0>>, <<1, 3>>}", modes='{"record_limit"}', deletions=1, locks=4),
        ),
    }
)
"""The bugs by which members go on for ever, and the log is never done: of few records, as liveness takes TLC long."""
