"""A broker for tests: a node of Kafka behind a socket (extra ``broker``)."""

from sharestate.broker.server.test_broker import TestBroker

__all__ = ["TestBroker"]
