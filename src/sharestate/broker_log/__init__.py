"""
The request log of a real broker: its import to a history, and the check that this history follows Kafka's rules.

The import reads log segments, which needs the extra ``segments``.
"""

from sharestate.broker_log.importer import LogImport
from sharestate.broker_log.lines import LoggedRequest, RequestLog
from sharestate.broker_log.progress import Counts
from sharestate.broker_log.settings import read_properties
from sharestate.broker_log.topic_logs import TopicLog, TopicLogs
from sharestate.broker_log.verify import Finding, PartitionReport, Place, Verdict, verify
from sharestate.errors import RequestLogError

__all__ = [
    "Counts",
    "Finding",
    "LogImport",
    "LoggedRequest",
    "PartitionReport",
    "Place",
    "RequestLog",
    "RequestLogError",
    "TopicLog",
    "TopicLogs",
    "Verdict",
    "read_properties",
    "verify",
]
