"""
The group's side of share groups, as brokers keep it: sans-I/O, like the leaders of share partitions.

``TestBroker`` is that behind a socket; it is loaded when it is asked for, as it takes the extra ``broker``.
"""

from importlib import import_module

__all__ = ["TestBroker"]

TYPE_CHECKING = False  # as in `sharestate`

if TYPE_CHECKING:
    from sharestate.broker.server import TestBroker as TestBroker
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Load ``TestBroker`` on its first use."""
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        globals()[name] = getattr(import_module("sharestate.broker.server"), name)
        return globals()[name]
