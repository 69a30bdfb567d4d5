"""The share-partition leader's state machine, sans-I/O: one file per concern, each named after what it holds."""

from importlib.util import find_spec


def is_compiled() -> bool:
    """
    Return whether the state machine is compiled: False unless the wheel was built so, which has to be asked for.

    Either way it does the same; compiled it takes less time.
    """
    spec = find_spec("sharestate.partition.acquire")
    return spec is not None and not str(spec.origin).endswith(".py")
