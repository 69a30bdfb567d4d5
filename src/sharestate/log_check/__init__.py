"""The check of a history from brokers' request logs: an order in which everything follows from Kafka's rules."""

from sharestate.log_check.budget import Budget
from sharestate.log_check.search_state import Counts
from sharestate.log_check.verify import Finding, PartitionCheck, PartitionReport, Place, Verdict, check, verify

__all__ = ["Budget", "Counts", "Finding", "PartitionCheck", "PartitionReport", "Place", "Verdict", "check", "verify"]
