"""
The topic ``__share_group_state`` as a whole: its records, out of dumps or log segments, and the state they add up to.

No broker is needed, and none is asked.
"""

from sharestate.state_topic.decoded import decoded_form, from_decoded_form
from sharestate.state_topic.files import StateTopicFile, TopicRecord, state_topic_files
from sharestate.state_topic.rebuild import Pruning, RebuiltPartition, StandingStart, StatePartition, StateTopic

__all__ = [
    "Pruning",
    "RebuiltPartition",
    "StandingStart",
    "StatePartition",
    "StateTopic",
    "StateTopicFile",
    "TopicRecord",
    "decoded_form",
    "from_decoded_form",
    "state_topic_files",
]
