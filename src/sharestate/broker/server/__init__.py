"""A broker for tests: a node of Kafka behind a socket, its time, and what goes wrong (extra ``broker``)."""

try:
    from sharestate.broker.server.clocks import AutoAdvance, StandingClock
    from sharestate.broker.server.faults import AppliedFault, Delay, Disconnect, Drop, Fail, Fault, Reorder, SeenRequest
    from sharestate.broker.server.insight import HeldShare
    from sharestate.broker.server.recording import BrokerHistory
    from sharestate.broker.server.server_config import QUICK_SETTINGS
    from sharestate.broker.server.test_broker import TestBroker
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"aiokafka", "cramjam", "kio", "xxhash"}:
        raise
    message = "a broker needs the extra 'broker': pip install 'sharestate[broker]'"
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = [
    "QUICK_SETTINGS",
    "AppliedFault",
    "AutoAdvance",
    "BrokerHistory",
    "Delay",
    "Disconnect",
    "Drop",
    "Fail",
    "Fault",
    "HeldShare",
    "Reorder",
    "SeenRequest",
    "StandingClock",
    "TestBroker",
]
