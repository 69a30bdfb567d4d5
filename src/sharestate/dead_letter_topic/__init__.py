"""
Dead-letter topics of share groups (KIP-1191), read and analyzed: what came there, why, and whether all of it did.

Nothing is written to a cluster. What brokers write there is in ``sharestate.dead_letters``.
"""

from sharestate.dead_letter_topic.analysis import (
    CountedPartition,
    LetterAnalysis,
    LettersInTime,
    StateGiven,
    analyze_letters,
    read_contents,
)
from sharestate.dead_letter_topic.archived import ArchivedRecords, HandedOver, StoredRecords
from sharestate.dead_letter_topic.contents import QueueContents, QueuePartition, ShareKey
from sharestate.dead_letter_topic.letters import LETTER_COLUMNS, LetterKind, LoggedLetter, QueuedLetter, read_letter
from sharestate.dead_letter_topic.lives import LetterLife, LetterLives
from sharestate.dead_letter_topic.lost_letters import (
    HandedRecords,
    LetterCheck,
    LetterIndex,
    QueueGroups,
    QueueReading,
)
from sharestate.dead_letter_topic.pattern_rules import RULES, Pattern, PatternRule, RuleRow
from sharestate.dead_letter_topic.patterns import PatternFinding, Patterns, RecordRange, find_patterns
from sharestate.dead_letter_topic.redrive import RedriveCounts, RedriveRange, redrive_ranges, write_redrive_plan
from sharestate.dead_letter_topic.sources import ClusterLetters, LetterFile, LetterFiles, LetterSource, letter_files

__all__ = [
    "LETTER_COLUMNS",
    "RULES",
    "ArchivedRecords",
    "ClusterLetters",
    "CountedPartition",
    "HandedOver",
    "HandedRecords",
    "LetterAnalysis",
    "LetterCheck",
    "LetterFile",
    "LetterFiles",
    "LetterIndex",
    "LetterKind",
    "LetterLife",
    "LetterLives",
    "LetterSource",
    "LettersInTime",
    "LoggedLetter",
    "Pattern",
    "PatternFinding",
    "PatternRule",
    "Patterns",
    "QueueContents",
    "QueueGroups",
    "QueuePartition",
    "QueueReading",
    "QueuedLetter",
    "RecordRange",
    "RedriveCounts",
    "RedriveRange",
    "RuleRow",
    "ShareKey",
    "StateGiven",
    "StoredRecords",
    "analyze_letters",
    "find_patterns",
    "letter_files",
    "read_contents",
    "read_letter",
    "redrive_ranges",
    "write_redrive_plan",
]
