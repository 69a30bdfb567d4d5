"""
Diagnoses of share groups: what is wrong, what shows it, and what to do, by rules that are data.

They are made of histories, or of the state topic alone; two histories can be compared.
"""

from sharestate.diagnose.comparison import MEASURES, Change, Comparison, Measure, compare
from sharestate.diagnose.diagnosis import (
    PARTITION_RULES,
    Diagnosis,
    HistoryFacts,
    diagnose,
    read_facts,
)
from sharestate.diagnose.group_rules import GROUP_RULES, GroupFacts
from sharestate.diagnose.partition_facts import PartitionFacts
from sharestate.diagnose.rule import Finding, Need, NotChecked, Place, Rule, Severity
from sharestate.diagnose.stored_rules import STORED_RULES, StoredFacts, diagnose_stored

__all__ = [
    "GROUP_RULES",
    "MEASURES",
    "PARTITION_RULES",
    "STORED_RULES",
    "Change",
    "Comparison",
    "Diagnosis",
    "Finding",
    "GroupFacts",
    "HistoryFacts",
    "Measure",
    "Need",
    "NotChecked",
    "PartitionFacts",
    "Place",
    "Rule",
    "Severity",
    "StoredFacts",
    "compare",
    "diagnose",
    "diagnose_stored",
    "read_facts",
]
