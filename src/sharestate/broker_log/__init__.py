"""
The request log of a real broker, read: a history in order of arrival.

The import reads log segments, which needs the extra ``segments``. ``sharestate.log_check`` checks that history.
"""

from sharestate.broker_log.importer import LogImport
from sharestate.broker_log.lines import LoggedRequest, RequestLog
from sharestate.broker_log.settings import read_properties
from sharestate.broker_log.topic_logs import TopicLog, TopicLogs
from sharestate.errors import RequestLogError

__all__ = [
    "LogImport",
    "LoggedRequest",
    "RequestLog",
    "RequestLogError",
    "TopicLog",
    "TopicLogs",
    "read_properties",
]
