"""`PersisterMachine` for a persister in memory in which bugs are planted."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import Phase, settings

from sharestate import Persister
from sharestate.testing.persisters import PersisterDiffersError, PersisterMachine
from tests.planted.persisters import Faulty


class FaultyMachine(PersisterMachine):
    """A persister with a planted bug; the number of runs is counted."""

    kind: ClassVar[type[Faulty]] = Faulty
    runs: ClassVar[int] = 0

    def make_persister(self) -> Persister:
        """Return one that stores nothing."""
        type(self).runs += 1
        return self.kind({})

    def reopen(self, persister: Persister) -> Persister:
        """Return another one over the same dictionary."""
        assert isinstance(persister, Faulty)
        return self.kind(persister.disk)


def machine_of(kind: type[Faulty]) -> type[FaultyMachine]:
    """Return a machine of one kind of persister, whose runs are counted from 0."""
    return type("FaultyMachine", (FaultyMachine,), {"kind": kind, "runs": 0})


def difference_of(
    machine: type[PersisterMachine], *, max_examples: int = 100, shrinks: bool = False
) -> PersisterDiffersError | None:
    """Run a machine always in the same way, and return the difference that it finds."""
    test = machine.TestCase
    test.settings = settings(
        test.settings,
        max_examples=max_examples,
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
        derandomize=True,
        database=None,
        print_blob=False,
    )
    try:
        test().runTest()
    except PersisterDiffersError as error:
        return error
    return None
