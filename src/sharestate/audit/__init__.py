"""The judgment of what clients of share groups wrote down, on any cluster: see ``audit``."""

from sharestate.audit.guarantees import Guarantee
from sharestate.audit.operation_files import OperationsError, OperationsFile, OperationsReader
from sharestate.audit.operations import (
    AcknowledgedAs,
    AcknowledgedRange,
    AcknowledgedRanges,
    AcknowledgeOperation,
    AlterOffsetsOperation,
    CloseOperation,
    CrashOperation,
    DeleteRecordsOperation,
    DeliveredRange,
    EndTransactionOperation,
    FaultOperation,
    FetchedRanges,
    FetchOperation,
    LoggedOperation,
    OperationsHeader,
    ProduceOperation,
    SettingsOperation,
    View,
)

__all__ = [
    "AcknowledgeOperation",
    "AcknowledgedAs",
    "AcknowledgedRange",
    "AcknowledgedRanges",
    "AlterOffsetsOperation",
    "CloseOperation",
    "CrashOperation",
    "DeleteRecordsOperation",
    "DeliveredRange",
    "EndTransactionOperation",
    "FaultOperation",
    "FetchOperation",
    "FetchedRanges",
    "Guarantee",
    "LoggedOperation",
    "OperationsError",
    "OperationsFile",
    "OperationsHeader",
    "OperationsReader",
    "ProduceOperation",
    "SettingsOperation",
    "View",
]
