"""
The group's side of share groups, as brokers keep it: sans-I/O, like the leaders of share partitions.

``TestBroker`` is that behind a socket, with a clock that stands and faults to go with it; they are loaded when they are
asked for, as they take the extra ``broker``.
"""

from importlib import import_module

__all__ = ["QUICK_SETTINGS", "Delay", "Disconnect", "Drop", "Fail", "Fault", "Reorder", "StandingClock", "TestBroker"]

TYPE_CHECKING = False  # as in `sharestate`

if TYPE_CHECKING:
    from sharestate.broker.server import QUICK_SETTINGS as QUICK_SETTINGS
    from sharestate.broker.server import Delay as Delay
    from sharestate.broker.server import Disconnect as Disconnect
    from sharestate.broker.server import Drop as Drop
    from sharestate.broker.server import Fail as Fail
    from sharestate.broker.server import Fault as Fault
    from sharestate.broker.server import Reorder as Reorder
    from sharestate.broker.server import StandingClock as StandingClock
    from sharestate.broker.server import TestBroker as TestBroker
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Load one of them on its first use."""
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        globals()[name] = getattr(import_module("sharestate.broker.server"), name)
        return globals()[name]
