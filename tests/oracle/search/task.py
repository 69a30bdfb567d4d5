"""What the jobs of a search beside Kafka have in common."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from sharestate.testing.search import Task
from tests.oracle.search.divergences import DIVERGENCES
from tests.oracle.search.mixes import mix_of, sequence

if TYPE_CHECKING:
    from sharestate.testing import Steps
    from sharestate.testing.search import Divergence


@frozen(kw_only=True)
class KafkaTask(Task):
    """Kafka in a JVM, with its known divergences, over sequences of several mixes."""

    kafka: str
    """The release of Kafka."""

    wild: int | None = None
    """How many steps are wild in all mixes; None to leave that to the mixes. [%]"""

    plants: tuple[str, ...] = ()
    """Modules whose ``plant`` changes the library first: the search has to notice."""

    divergences: tuple[Divergence, ...] = field(default=DIVERGENCES)

    @property
    def identity(self) -> Any:  # noqa: ANN401 - JSON
        """What must not change when a search is taken up again; the command may, with the machine."""
        return {"kafka": self.kafka, "profile": self.profile.name, "wild": self.wild}

    def prepare(self) -> None:
        """Plant what is to be noticed."""
        for module in self.plants:
            import_module(module).plant()

    def kind_of(self, number: int) -> str:
        """Return the mix of the sequence *number*."""
        return mix_of(number)

    def sequence(self, number: int) -> Steps[None]:
        """Return the sequence *number*."""
        return sequence(number, self.profile, self.wild)
