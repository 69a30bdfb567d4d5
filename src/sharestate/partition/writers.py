"""Which code follows which write policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from sharestate.partition.broker_writes import BrokerWrites
from sharestate.partition.kip_writes import KipWrites
from sharestate.values.write_policies import BrokerWritePolicy, KipWritePolicy

if TYPE_CHECKING:
    from sharestate.partition.writing import Writer
    from sharestate.values.snapshot_rows import KipMemoryRow
    from sharestate.values.write_policies import WritePolicy


def writer_for(policy: WritePolicy, memory: KipMemoryRow | None = None) -> Writer:
    """Return what follows *policy*, with the *memory* that it had if it goes on."""
    match policy:
        case BrokerWritePolicy():
            return BrokerWrites()
        case KipWritePolicy():
            return KipWrites(policy, memory)
        case _:
            assert_never(policy)
