"""One line of a transcript: what it says, and where it hangs in the conversation.

Pure: bytes go in, a value comes out. What always holds: only what a person or the model said is an utterance; what the
host, a tool or another agent put into a line of type `user` is never the owner's; text is as logged, except that lone
surrogates become U+FFFD.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from clawmark.model import Origin
from clawmark_sources.jsonline import Unreadable, milliseconds, parse, whole

DERIVED: Final = "@"
"""What the ref of a line without uuid begins with."""


class Entry(NamedTuple):
    """A line. It says something (`text`), or there is a `reason` why it does not.

    parent   uuid of the line it follows; "" = what stands before it in the file
    aside    part of a sub-agent's run: not a line of the conversation
    turn     the conversation can end here: somebody's line, not the host's
    group    id of the answer that this line is one block of
    begins   a prompt of which the host says that it follows nothing
    opens    the uuid or time by which the window is called that begins here

    A tuple, since there is one for every line of a long history.
    """

    uuid: str = ""
    parent: str = ""
    aside: bool = False
    turn: bool = False
    reason: str = ""
    text: str = ""
    origin: Origin = "host"
    note: str = ""
    ref: str = ""
    group: str = ""
    at: datetime | None = None
    folder: str = ""
    opens: str = ""
    begins: bool = False

    @property
    def on_tree(self) -> bool:
        return bool(self.uuid) and not self.aside


# --- parsing ---------------------------------------------------------------------------------------------------------

_HEAD: Final = re.compile(rb'\{"parentUuid":(?:null|"([^"\\]{1,100})"),"isSidechain":false,')
_HEAD_BYTES: Final = 2_000
_SNAPSHOT: Final = b'{"type":"file-history-snapshot",'
_ATTACHMENT: Final = b'"attachment":{'
_MESSAGE: Final = b'"message":{"'
_USER: Final = b'"type":"user",'
_RESULTS: Final = (b'role":"user","content":[{"tool_use_id":"', b'role":"user","content":[{"type":"tool_result",')
_ANSWER: Final = re.compile(
    rb'model":"[^"\\<]{1,100}","id":"([^"\\]{1,100})","type":"message","role":"assistant",'
    rb'"content":\[\{"type":"((?:redacted_)?thinking|tool_use)"'
)


def skim(data: bytes, start: int, stop: int) -> Entry | None:
    """The line at data[start:stop] told from its raw bytes, where it is a tool's call or result, a thought, or what
    the host attached; None = it must be parsed.

    These are most of a transcript's lines. It knows the exact bytes the host writes; no string inside JSON can hold
    them, because its quotes are escaped. Every other form is parsed, and so is all that may hold somebody's text. A
    uuid that is found in the wrong place only costs a look at the branches.
    """
    if stop <= start or data[stop - 1] != 0x7D:  # a line that was cut has no closing brace: parsing notices it
        return None
    if data.startswith(_SNAPSHOT, start):
        return _SKIPPED_SNAPSHOT
    head = _HEAD.match(data, start, stop)
    if head is None:
        return None
    at = head.end()
    group, turn = b"", True
    if data.startswith(_ATTACHMENT, at):
        reason, before, turn = "attachment", b'},"type":"attachment","uuid":"', False
    else:
        at = data.find(_MESSAGE, at, min(stop, start + _HEAD_BYTES)) + len(_MESSAGE)
        if at < len(_MESSAGE):
            return None
        if data.startswith(_RESULTS, at) and data.startswith(_USER, at - len(_MESSAGE) - len(_USER)):
            reason, before = "tool_result", b'}]},"uuid":"'
        elif answer := _ANSWER.match(data, at, stop):
            reason, before, group = _BLOCKS[answer[2].decode()], b'"type":"assistant","uuid":"', answer[1]
        else:
            return None
    uuid = data.find(before, at, stop) + len(before)
    if uuid < len(before) or data.find(b'"type":"text"', at, uuid) >= 0:
        return None
    end = data.find(b'"', uuid, uuid + 100)
    try:
        named, parent, answered = data[uuid:end].decode(), (head[1] or b"").decode(), group.decode()
    except UnicodeDecodeError:
        return None
    if end <= uuid or "\\" in named:
        return None
    return Entry(named, parent, turn=turn, reason=reason, group=answered)


def read_line(line: bytes) -> Entry:
    """What a line says. Raises Unreadable."""
    try:
        value = parse(line)
    except Unreadable:
        if line.strip():
            raise
        return Entry(reason="blank")
    return read_entry(value)


# --- one entry -------------------------------------------------------------------------------------------------------

_OTHER_TYPES: Final = {
    "system": "system",
    "summary": "summary",
    "attachment": "attachment",
    "progress": "progress",
    "file-history-snapshot": "snapshot",
    "file-history-delta": "snapshot",
    "custom-title": "title",
    "ai-title": "title",
    "agent-name": "title",
    "queue-operation": "queue_operation",
    "mode": "mode",
    "last-prompt": "last_prompt",
    "pr-link": "pr_link",
}
_SKIPPED_SNAPSHOT: Final = Entry(reason="snapshot")


def read_entry(value: Any) -> Entry:
    """What a parsed line says. Raises Unreadable for a line of a person or the model that is not in their form."""
    if not isinstance(value, dict):
        return Entry(reason="not_a_message")
    uuid, parent, kind = _identity(value.get("uuid")), _identity(value.get("parentUuid")), value.get("type")
    aside = value.get("isSidechain") is True
    at = when(value.get("timestamp"))
    if kind not in ("user", "assistant"):
        boundary = kind == "system" and value.get("subtype") == "compact_boundary"
        opens = (uuid or _stamp(value)) if boundary else ""
        if boundary and not parent and not _preserves(value):
            parent = _identity(value.get("logicalParentUuid"))
        reason = _OTHER_TYPES.get(kind, "other_type") if isinstance(kind, str) else "other_type"
        return Entry(uuid, parent, aside, reason=reason, at=at, opens="" if aside else opens)
    inner = value.get("message")
    if not isinstance(inner, dict):
        raise Unreadable("message_type")
    role = inner.get("role")
    if not isinstance(role, str):
        raise Unreadable("role_type")
    reason = _left_out(value, inner, kind, role)
    if reason:
        opens = (uuid or _stamp(value)) if reason == "compact_summary" and not aside else ""
        return Entry(uuid, parent, aside, turn=False, reason=reason, at=at, opens=opens)
    text, reason = _said(inner)
    group = _identity(inner.get("id")) if kind == "assistant" else ""
    if not text:
        return Entry(uuid, parent, aside, turn=True, reason=reason, group=group, at=at)
    origin, note = _speaker(value, kind, aside)
    return Entry(
        uuid=uuid,
        parent=parent,
        aside=aside,
        turn=True,
        text=text,
        origin=origin,
        note=note,
        ref=uuid or _derived(kind, value, text),
        group=group,
        at=at,
        folder=_folder(value.get("cwd")),
        begins=origin == "owner" and not aside and value.get("parentUuid", "") is None,
    )


def _left_out(value: Mapping[str, Any], inner: Mapping[str, Any], kind: str, role: str) -> str:
    """Why a line of a person or the model holds nothing that either of them said; "" = look at its content."""
    if value.get("isCompactSummary") is True:
        return "compact_summary"
    if value.get("isVisibleInTranscriptOnly") is True:
        return "transcript_only"
    if value.get("isMeta") is True:
        return "meta"
    if value.get("isApiErrorMessage") is True:
        return "api_error"
    if inner.get("model") == "<synthetic>":
        return "synthetic"
    return "" if role == kind else "other_role"


def _speaker(value: Mapping[str, Any], kind: str, aside: bool) -> tuple[Origin, str]:
    """Who said it. A prompt that the host marks as anybody's but the person's is not the owner's."""
    if kind == "assistant":
        return "assistant", ""
    if aside:
        return "host", "subagent"
    if value.get("isSynthetic") is True:
        return "host", "synthetic"
    origin = value.get("origin")
    if origin is None:
        return "owner", ""
    name = origin.get("kind") if isinstance(origin, dict) else None
    if name == "human":
        return "owner", ""
    if isinstance(name, str) and re.fullmatch(r"[a-z][a-z-]{0,40}", name):
        return "host", name.replace("-", "_")
    return "host", "other_origin"


_BLOCKS: Final = {
    "tool_result": "tool_result",
    "tool_use": "tool_use",
    "server_tool_use": "tool_use",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "image": "image",
    "document": "document",
}
_TAGS: Final = (
    r"(?:command-(?:name|message|args|contents)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|task-notification)"
)
_MARKUP_FIRST: Final = re.compile(rf"\s*<{_TAGS}\b[^<>]{{0,200}}>")
_MARKUP_LAST: Final = re.compile(rf"</{_TAGS}>\s*\Z")
_MARKUP_TAIL: Final = 100
_REMINDER: Final = re.compile(r"<system-reminder\b[^>]{0,200}>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_INTERRUPTED: Final = re.compile(r"\s*\[Request interrupted by user[^\]\n]{0,40}\]\s*")


def _said(inner: Mapping[str, Any]) -> tuple[str, str]:
    """The text of a message, or why it has none."""
    content = inner.get("content")
    if isinstance(content, str):
        texts, reason = [content], "empty"
    elif isinstance(content, list):
        texts, reason = _texts(content)
    else:
        raise Unreadable("text_type")
    heard = [text for text in texts if not _INTERRUPTED.fullmatch(text)]
    said = "\n".join(heard)
    if not said or said.isspace():
        return "", "interrupted" if len(heard) < len(texts) else reason
    rest = _REMINDER.sub("", said) if "<system-reminder" in said else said
    if not rest or rest.isspace() or is_markup(rest):
        return "", "host_markup"
    return whole(said), ""


def _texts(content: list[Any]) -> tuple[list[str], str]:
    """The text blocks, and what else there is."""
    texts: list[str] = []
    others: list[str] = []
    for block in content:
        if not isinstance(block, dict):
            raise Unreadable("text_type")
        kind = block.get("type")
        if kind == "text":
            if not isinstance(block.get("text"), str):
                raise Unreadable("text_type")
            texts.append(block["text"])
        else:
            others.append(_BLOCKS.get(kind, "other_block") if isinstance(kind, str) else "other_block")
    return texts, others[0] if others else "empty"


def is_markup(text: str) -> bool:
    """Whether a text is the host's markup from its beginning to its end.

    What stands between the first tag and the last is not looked at: a command's output may hold tags of its own, and
    must not pass for a person's words behind one of them.
    """
    if _MARKUP_FIRST.match(text) is None:
        return False
    return _MARKUP_LAST.search(text.rstrip()[-_MARKUP_TAIL:]) is not None


# --- the small fields ------------------------------------------------------------------------------------------------


def _identity(value: object) -> str:
    """An id that the host gave; "" where it gave none that can name anything."""
    if type(value) is not str or not 0 < len(value) <= 200:
        return ""
    return value if value.isascii() else whole(value)


def _folder(value: object) -> str:
    return whole(value) if isinstance(value, str) and len(value) <= 4_096 else ""


def _preserves(value: Mapping[str, Any]) -> bool:
    """Whether a compaction kept the last lines as they are. They stand before it and nobody took them back, wherever
    its link leads."""
    metadata = value.get("compactMetadata")
    return isinstance(metadata, dict) and bool(metadata.get("preservedSegment") or metadata.get("preservedMessages"))


def _stamp(value: Mapping[str, Any]) -> str:
    return f"{DERIVED}{str(value.get('timestamp'))[:40]}"


def _derived(kind: str, value: Mapping[str, Any], text: str) -> str:
    """A ref for a line that has no uuid: what it says and when."""
    stamp = value.get("timestamp")
    named = json.dumps([kind, stamp if isinstance(stamp, str | int | float) else None, text])
    return DERIVED + hashlib.blake2b(named.encode(), digest_size=12).hexdigest()


def when(value: object) -> datetime | None:
    """A logged time; None when it is none."""
    ms = milliseconds(value)
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
