"""
Diagnoses of share groups: what is wrong, what shows it, and what to do, by rules that are data.

They are made of histories, or of the state topic alone; two histories can be compared.
"""

from sharestate.diagnose.comparison import Change, Comparison, Measure, compare
from sharestate.diagnose.diagnosis import Diagnosis, HistoryFacts, diagnose, read_facts
from sharestate.diagnose.rule import (
    DiagnosisFinding,
    DiagnosisPlace,
    DiagnosisRule,
    NotChecked,
    RuleNeed,
    Severity,
    computed_lines,
)
from sharestate.diagnose.stored_rules import diagnose_stored

__all__ = [
    "Change",
    "Comparison",
    "Diagnosis",
    "DiagnosisFinding",
    "DiagnosisPlace",
    "DiagnosisRule",
    "HistoryFacts",
    "Measure",
    "NotChecked",
    "RuleNeed",
    "Severity",
    "compare",
    "computed_lines",
    "diagnose",
    "diagnose_stored",
    "read_facts",
]
