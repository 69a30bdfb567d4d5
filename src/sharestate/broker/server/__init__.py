"""A broker for tests: a node of Kafka behind a socket (extra ``broker``)."""

try:
    from sharestate.broker.server.test_broker import TestBroker
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"aiokafka", "cramjam", "kio", "xxhash"}:
        raise
    message = "a broker needs the extra 'broker': pip install 'sharestate[broker]'"
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = ["TestBroker"]
