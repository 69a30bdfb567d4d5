"""
The persister that keeps its state on a Kafka cluster (extra ``kafka``).

``KafkaPersister("localhost:9092")`` is all that it takes.
"""

try:
    from sharestate.persister.kafka.persister import KafkaPersister
except ModuleNotFoundError as error:
    if str(error.name).partition(".")[0] != "kio":
        raise
    message = "sharestate.persister.kafka needs the extra 'kafka': pip install 'sharestate[kafka]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.persister.kafka.security import Security

__all__ = ["KafkaPersister", "Security"]
