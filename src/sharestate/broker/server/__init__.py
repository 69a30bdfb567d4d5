"""A broker for tests: a node of Kafka behind a socket, its time, and what goes wrong (extra ``broker``)."""

from sharestate.broker.server.clocks import AutoAdvance, StandingClock
from sharestate.broker.server.faults import AppliedFault, Delay, Disconnect, Drop, Fail, Fault, Reorder, SeenRequest
from sharestate.broker.server.insight import HeldShare
from sharestate.broker.server.recording import BrokerHistory
from sharestate.broker.server.server_config import QUICK_SETTINGS
from sharestate.broker.server.test_broker import TestBroker

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
