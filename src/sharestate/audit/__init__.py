"""The judgment of what clients of share groups wrote down, on any cluster: see ``audit``."""

from sharestate.audit.circumstances import AuditSettings
from sharestate.audit.duplicates import DuplicateCause, Duplicates
from sharestate.audit.guarantees import Guarantee
from sharestate.audit.judgment import audit
from sharestate.audit.operation_files import OperationsError, OperationsFile, OperationsReader
from sharestate.audit.operation_log import LogPlace, OperationLog, SharePartitionName, read_operations
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
from sharestate.audit.verdicts import CONFORMANCE, JUDGED, Audit, AuditFinding, AuditVerdict, GuaranteeVerdict

__all__ = [
    "CONFORMANCE",
    "JUDGED",
    "AcknowledgeOperation",
    "AcknowledgedAs",
    "AcknowledgedRange",
    "AcknowledgedRanges",
    "AlterOffsetsOperation",
    "Audit",
    "AuditFinding",
    "AuditSettings",
    "AuditVerdict",
    "CloseOperation",
    "CrashOperation",
    "DeleteRecordsOperation",
    "DeliveredRange",
    "DuplicateCause",
    "Duplicates",
    "EndTransactionOperation",
    "FaultOperation",
    "FetchOperation",
    "FetchedRanges",
    "Guarantee",
    "GuaranteeVerdict",
    "LogPlace",
    "LoggedOperation",
    "OperationLog",
    "OperationsError",
    "OperationsFile",
    "OperationsHeader",
    "OperationsReader",
    "ProduceOperation",
    "SettingsOperation",
    "SharePartitionName",
    "View",
    "audit",
    "read_operations",
]
