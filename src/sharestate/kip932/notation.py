"""The KIP's notation for requests and records, which is JSON but for names and remarks in brackets."""

from __future__ import annotations

import re
from typing import Final

from sharestate.errors import MalformedInputError
from sharestate.json_checks import an_object, refuse
from sharestate.json_lines import Json, read_json

TOPIC_NAME: Final = "topic_uuid"
"""What the KIP calls the topic id, without quotes: a name, not a value."""

_REMARK: Final = re.compile(r"(\d) \([^)]*\)")
_NAME: Final = re.compile(rf"(?<!\"){TOPIC_NAME}(?!\")")
_HEADED: Final = re.compile(r"(?:(SHARE_CHECKPOINT|SHARE_DELTA)(?: offset \d+)?:\n)?(\{.*)", re.DOTALL)
_KEYED: Final = re.compile(r'(ShareCheckpoint|ShareDelta): key: "([^"]*)", value: "([^"]*)"')


def read_request(text: str, path: str = "") -> Json:
    """
    Read a request: what is a name becomes a string, what is a remark goes.

    >>> read_request('{"TopicId": topic_uuid, "State": 0 (Available)}')
    {'TopicId': 'topic_uuid', 'State': 0}

    Raises:
        MalformedInputError: It is none.
    """
    try:
        return an_object(read_json(_NAME.sub(f'"{TOPIC_NAME}"', _REMARK.sub(r"\1", text))), path)
    except MalformedInputError as error:
        raise MalformedInputError(error.message, path) from error


def read_control_record(text: str, path: str = "") -> Json:
    r"""
    Read a control record, with its type or, where the KIP leaves that out, as a SHARE_CHECKPOINT.

    Where it stands in the log is passed over: a leader does not know what producers have written there.

    >>> read_control_record('SHARE_DELTA offset 131:\n{"GroupId": "G1"}')
    {'SHARE_DELTA': {'GroupId': 'G1'}}

    Raises:
        MalformedInputError: It is none.
    """
    match = _HEADED.fullmatch(text)
    if match is None:
        refuse("a control record", text, path)
    return {match[1] or "SHARE_CHECKPOINT": read_request(match[2], path)}


def read_keyed_record(text: str, path: str = "") -> Json:
    """
    Read a line of the list of record keys.

    >>> read_keyed_record('ShareCheckpoint: key: "groupId:topicId:partition", value: "checkpointEpoch=0"')
    {'ShareCheckpoint': {'key': 'groupId:topicId:partition', 'value': 'checkpointEpoch=0'}}

    Raises:
        MalformedInputError: It is none.
    """
    match = _KEYED.fullmatch(text)
    if match is None:
        refuse("a record with its key", text, path)
    return {match[1]: {"key": match[2], "value": match[3]}}
