"""
A pure-Python model of what Kafka brokers do for share groups (KIP-932, queues for Kafka).

Import from here, and the requests and answers of persisters from ``sharestate.persister``. The core does no I/O, reads
no clock and starts no thread: time comes in as ``now_ms``, and side effects are returned as values.

The names are loaded when the first of them is used, so that what needs only a part, such as the command line or a
reader of files, begins at once.
"""

from importlib import import_module

__version__ = "0.2.0"

TYPE_CHECKING = False  # the name is enough for type checkers; `typing` takes longer to load than the rest of this

if TYPE_CHECKING:
    from sharestate.api import *  # noqa: F403 - what it exports is listed there
    from sharestate.api import __all__ as __all__
else:  # hidden from type checkers, for which every name would exist

    def __getattr__(name: str) -> object:
        """Load the names on the first use of one; modules of the package are loaded one by one."""
        module = f"{__name__}.{name}"
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
        api = import_module("sharestate.api")
        if not hasattr(api, name):
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        globals()[name] = getattr(api, name)
        return globals()[name]

    def __dir__() -> list[str]:
        """Return the names, for those who look around."""
        return [*globals(), *import_module("sharestate.api").__all__]
