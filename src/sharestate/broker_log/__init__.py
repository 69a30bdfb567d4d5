"""
The request log of a real broker, read: a history in order of arrival.

The import reads log segments, which needs the extra ``segments``. ``sharestate.log_check`` checks that history.
"""

from sharestate.broker_log.clocks import ClockChange, Offset
from sharestate.broker_log.group_configs import read_group_configs
from sharestate.broker_log.importer import LogImport
from sharestate.broker_log.lines import LoggedRequest
from sharestate.broker_log.request_log import RequestLog
from sharestate.broker_log.server_properties import read_server_properties
from sharestate.broker_log.settings import Disagreement, read_all_properties, read_properties
from sharestate.broker_log.topic_logs import TopicLog, TopicLogs
from sharestate.errors import RequestLogError

__all__ = [
    "ClockChange",
    "Disagreement",
    "LogImport",
    "LoggedRequest",
    "Offset",
    "RequestLog",
    "RequestLogError",
    "TopicLog",
    "TopicLogs",
    "read_all_properties",
    "read_group_configs",
    "read_properties",
    "read_server_properties",
]
