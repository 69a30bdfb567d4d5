"""The test of share groups from their clients' side: see `ShareGroupMachine` (extra ``testing``)."""

from sharestate.audit.guarantees import Guarantee, GuaranteeBrokenError
from sharestate.testing.groups.allowances import KAFKA_ALLOWANCES, Allowance
from sharestate.testing.groups.machine import ShareGroupMachine
from sharestate.testing.groups.model import Delivery
from sharestate.testing.groups.settings import READ_COMMITTED, READ_UNCOMMITTED, GroupSettings
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.records import AcquireMode

__all__ = [
    "KAFKA_ALLOWANCES",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "AcquireMode",
    "Allowance",
    "Delivery",
    "GroupSettings",
    "Guarantee",
    "GuaranteeBrokenError",
    "ShareGroupMachine",
]
