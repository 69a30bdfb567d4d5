"""
Conformance of brokers: raw members ask any cluster what brokers of Kafka were asked (extras ``kafka``, ``segments``).

A broker shows less than a share partition does: neither its state nor its clock. What can be seen is what members get,
how their acknowledgements are answered, and which offsets are stored.
"""

try:
    from sharestate.conformance.brokers.asking import PREFIX, conform_cluster
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"aiokafka", "kio"}:
        raise
    message = (
        "sharestate.conformance.brokers needs the extras 'kafka' and 'segments': "
        "pip install 'sharestate[kafka,segments]'"
    )
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = ["PREFIX", "conform_cluster"]
