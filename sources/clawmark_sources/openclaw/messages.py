"""One entry of OpenClaw's log, in the form both eras write it, turned into a Message or the reason why it is none.

Pure: a parsed JSON object and what was read before it go in, a value comes out. What always holds: an entry is read the
same whichever era it stands in; text is delivered as logged, envelopes and all, except that lone surrogates become
U+FFFD; a text whose speaker is in doubt is never given to the owner.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from clawmark.model import Message, Origin, StreamKind

LINE_LIMIT: Final = 8 << 20
"""Bytes of the longest entry that is read; the host's own limit for a stored event is half of it."""


class Unreadable(Exception):
    """An entry that should have been readable. `reason` is the Fault's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# --- parsing ---------------------------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> Any:
    raise Unreadable("number_constant")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
_BLANKS: Final = " \t\r\n"


def parse(line: bytes) -> Any:
    """The JSON value of one line. Raises Unreadable: stricter than the standard library, which lets NaN through."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise Unreadable("invalid_utf8") from None
    if not text.startswith("{"):
        text = text.removeprefix("\ufeff").lstrip(_BLANKS)
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError:
        raise Unreadable("invalid_json") from None
    except ValueError:  # an integer of more digits than Python converts
        raise Unreadable("number_size") from None
    except RecursionError:
        raise Unreadable("too_deep") from None
    if end != len(text) and text[end:].strip(_BLANKS):
        raise Unreadable("invalid_json")
    return value


_HEAD_BYTES: Final = 400
_MESSAGE: Final = b'{"type":"message",'
_ROLE: Final = b',"message":{"role":"'
_RESULT: Final = b'toolResult",'
_PARTS: Final = b'assistant","content":['
_EVENTS: Final = tuple(
    (b'{"type":"' + name.encode() + b'",', name) for name in ("custom", "model_change", "thinking_level_change")
)


def passed_over(data: bytes, start: int, end: int) -> str | None:
    """Why the entry at data[start:end] carries no utterance, told from its raw bytes; None = it must be parsed.

    Three of four lines of an agent's log are tool calls and their results: this is what makes reading a long history
    nearly as fast as the disk. It knows the exact bytes the host begins such lines with; no string inside JSON can hold
    them, because its quotes are escaped. Every other form is parsed, and so is all that may hold somebody's text.
    """
    if end <= start or data[end - 1] != 0x7D:  # a line that was cut has no closing brace: parsing notices it
        return None
    if not data.startswith(_MESSAGE, start):
        return next((name for head, name in _EVENTS if data.startswith(head, start, end)), None)
    role = data.find(_ROLE, start, min(end, start + _HEAD_BYTES)) + len(_ROLE)
    if role < len(_ROLE):
        return None
    if data.startswith(_RESULT, role):
        return "tool_result"
    if not data.startswith(_PARTS, role) or data.find(b'"type":"text"', role, end) >= 0:
        return None
    return "tool_call" if data.rfind(b'"type":"toolCall"', role, end) >= 0 else None


# --- what a stream and its past say about an entry -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """The stream an entry stands in. `note` says which kind of host run it is, "" for a conversation."""

    stream: str
    session: str
    scope: str
    kind: StreamKind
    note: str = ""


@dataclass(slots=True)
class Past:
    """What earlier entries of a stream say about the next one; travels in the cursor, so batches may fall anywhere.

    window   entry id of the latest reset or compaction
    answer   note of the host's own prompt that is being answered now
    run      note of a host run that only its first prompt showed
    asked    a user text was seen
    group    a text said that others are present
    at       milliseconds of the latest message, else of the header; 0 = none yet
    """

    window: str = ""
    answer: str = ""
    run: str = ""
    asked: bool = False
    group: bool = False
    at: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


_HOST_KEYS: Final = (
    (":subagent:", "subagent"),
    (":cron:", "cron"),
    (":hook:", "hook"),
    (":internal-session-effects:", "internal"),
    (":acp:", "acp"),
)


def host_run(session_key: str, spawned_by: object = None) -> str:
    """The note of a run that the host started by itself, told from its session key; "" for a conversation."""
    key = f":{session_key}"
    for part, note in _HOST_KEYS:
        if part in key:
            return note
    return "subagent" if spawned_by else ""


def conversation_kind(session_key: str, chat_type: object, session_scope: object = None) -> StreamKind:
    """Whether others are present. A session without a channel is the owner's own terminal or web chat: direct."""
    if chat_type == "direct":
        return "direct"
    if chat_type in ("group", "channel") or session_scope in ("group", "channel"):
        return "group"
    return "group" if ":group:" in session_key or ":channel:" in session_key else "direct"


# --- one entry -------------------------------------------------------------------------------------------------------

_SKIPPED_TYPES: Final = {
    "session": "session_header",
    "session_info": "session_info",
    "model_change": "model_change",
    "thinking_level_change": "thinking_level_change",
    "custom": "custom",
    "custom_message": "custom_message",
    "branch_summary": "branch_summary",
    "compaction": "compaction",
    "reset": "reset",
    "leaf": "leaf",
}
_SKIPPED_ROLES: Final = {"toolResult": "tool_result", "tool": "tool_result", "custom": "custom", "system": "system"}


def read_entry(entry: Any, run: Run, past: Past, location: str, fallback_ms: int) -> Message | str:
    """The utterance that a parsed entry holds, or the reason why it holds none; `past` moves on. Raises Unreadable.

    fallback_ms   when the entry was stored, for one that does not say when it was said
    """
    if not isinstance(entry, dict):
        return "not_a_message"
    inner, kind = entry.get("message"), entry.get("type")
    if kind != "message" or not isinstance(inner, dict):
        inner = _other_form(entry, inner, kind, past)
        if isinstance(inner, str):
            return inner
    role = inner.get("role")
    if not isinstance(role, str):
        raise Unreadable("role_type")
    if role not in ("user", "assistant"):
        return _SKIPPED_ROLES.get(role, "other_role")
    said = _text(inner)
    if isinstance(said, tuple):
        return said[0]
    at = _when(entry, inner, past, fallback_ms)
    past.at = at
    if role == "user":
        origin, note, author = _asked(said, entry, inner, run, past)
    else:
        origin, note = _answered(said, inner, run, past)
        author = None
    return Message(
        ref=f"{run.session}/{entry_id(entry) or _derived_id(role, entry, inner, said)}",
        stream=run.stream,
        session=run.session,
        scope=run.scope,
        origin=origin,
        text=said,
        at=datetime.fromtimestamp(at / 1000, UTC),
        window=past.window,
        author=author,
        note=note,
        location=location,
    )


def _other_form(entry: dict[str, Any], inner: Any, kind: Any, past: Past) -> dict[str, Any] | str:
    """What holds role and text in an entry that is not the host's own message form, or why it is no message."""
    if isinstance(kind, str) and kind != "message" and "role" not in entry:
        if kind in ("reset", "compaction"):
            past.window = entry_id(entry) or f"@{past.at}"
        elif kind == "session":
            past.at = past.at or milliseconds(entry.get("timestamp")) or 0
        return _SKIPPED_TYPES.get(kind, "other_type")
    if isinstance(inner, dict):
        return inner
    if "role" in entry:
        return entry
    if kind == "message":
        raise Unreadable("message_type")
    return "not_a_message"


def entry_id(entry: Any) -> str:
    """The id the host gave an entry; "" where it gave none that can name it."""
    value = entry.get("id") if isinstance(entry, dict) else None
    if type(value) is str and 0 < len(value) <= 200:
        return whole(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 1 << 63 else ""
    return ""


def _derived_id(role: str, entry: dict[str, Any], inner: dict[str, Any], text: str) -> str:
    stamp = inner.get("timestamp", entry.get("timestamp"))
    named = json.dumps([role, stamp if isinstance(stamp, str | int | float) else None, text])
    return "@" + hashlib.blake2b(named.encode(), digest_size=12).hexdigest()


_LONE: Final = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """`text` without lone surrogates, which neither SQLite nor UTF-8 can hold."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


def _text(inner: dict[str, Any]) -> str | tuple[str]:
    """The text of a message, or a 1-tuple with the reason why it has none."""
    content = inner["content"] if "content" in inner else inner.get("text")
    if isinstance(content, str):
        said, others = content, ""
    elif isinstance(content, list):
        said, others = _parts(content)
    else:
        raise Unreadable("text_type")
    if not said or said.isspace():
        return (others or "empty",)
    return said if said.isascii() else whole(said)


_PART_REASONS: Final = (("toolCall", "tool_call"), ("thinking", "thinking"), ("image", "image"))


def _parts(content: list[Any]) -> tuple[str, str]:
    texts: list[str] = []
    kinds: list[object] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, dict):
            raise Unreadable("text_type")
        kind = part.get("type")
        if kind == "text":
            if not isinstance(part.get("text"), str):
                raise Unreadable("text_type")
            texts.append(part["text"])
        else:
            kinds.append(kind)
    if texts:
        return "\n".join(texts), ""
    return "", next((reason for kind, reason in _PART_REASONS if kind in kinds), "")


# --- the utterance a cursor remembers --------------------------------------------------------------------------------


def remembered(message: Message) -> dict[str, Any]:
    """What reading in order told about `message`, small enough for a cursor; its text stays in the log."""
    ms = round(message.at.timestamp() * 1000)
    return {"r": message.ref, "o": message.origin, "k": message.note, "w": message.window, "t": ms}


def restored(message: Message | None, kept: dict[str, Any]) -> Message | None:
    """`message`, read back alone, as it was when it was read in order; None when another one stands there now."""
    if message is None or message.ref != kept["r"]:
        return None
    at = datetime.fromtimestamp(kept["t"] / 1000, UTC)
    return replace(message, origin=kept["o"], note=kept["k"], window=kept["w"], at=at)


# --- time ------------------------------------------------------------------------------------------------------------

_SECONDS_BELOW: Final = 10**11
"""A smaller number is seconds: as milliseconds it would lie before March 1973."""
_LAST_MS: Final = 253_402_300_799_000  # the end of the year 9999, where datetime ends


def milliseconds(value: object) -> int | None:
    """Milliseconds since 1970 of a logged time (a number or ISO text); None when it is no time."""
    if type(value) is int and _SECONDS_BELOW <= value <= _LAST_MS:
        return value
    if isinstance(value, str):
        if not (value.isascii() and value.isdecimal()):
            return _iso_milliseconds(value)
        value = int(value) if len(value) <= 16 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    ms = int(value) if abs(value) >= _SECONDS_BELOW else int(value * 1000)
    return ms if 0 < ms <= _LAST_MS else None


def _iso_milliseconds(text: str) -> int | None:
    if len(text) > 40:
        return None
    try:
        at = datetime.fromisoformat(text.strip())
        ms = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return ms if 0 < ms <= _LAST_MS else None


def _when(entry: dict[str, Any], inner: dict[str, Any], past: Past, fallback_ms: int) -> int:
    return (
        milliseconds(inner.get("timestamp"))
        or milliseconds(entry.get("timestamp"))
        or milliseconds(entry.get("created_at"))
        or past.at
        or min(max(fallback_ms, 1), _LAST_MS)
    )


# --- who speaks ------------------------------------------------------------------------------------------------------

_ENVELOPE: Final = re.compile(
    r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: [^\]\n]{1,40})?\]\s*"
)
_MARKERS: Final = (
    ("[OpenClaw heartbeat poll]", "heartbeat"),
    ("Read HEARTBEAT.md", "heartbeat"),
    ("[cron:", "cron"),
    ("[Subagent Context]", "subagent"),
    ("[Inter-session message]", "inter_session"),
    ("Pre-compaction memory flush", "memory_flush"),
)
_MARKS: Final = tuple(mark for mark, _ in _MARKERS)
_SLASH: Final = re.compile(r"/([a-z][a-z0-9_-]*)(?:\s|$)")
_PATH_ROOTS: Final = (
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "srv",
    "tmp",
    "usr",
    "var",
)


def _asked(
    text: str, entry: dict[str, Any], inner: dict[str, Any], run: Run, past: Past
) -> tuple[Origin, str, str | None]:
    first, past.asked = not past.asked, True
    envelope = _ENVELOPE.match(text)
    bare = text[envelope.end() :] if envelope else text
    prompt = _provenance_note(_field("provenance", entry, inner)) or _marker_note(bare)
    past.answer = prompt
    if first and prompt == "subagent":
        past.run = prompt
    sender = _sender(bare)
    past.group = past.group or sender.group
    author = sender.name or _name(_field("senderName", entry, inner))
    note = run.note or past.run or prompt or _slash_note(bare)
    if note:
        return "host", note, author
    group = run.kind == "group" or past.group
    own = _field("__openclaw", entry, inner)
    owns = own.get("senderIsOwner") if isinstance(own, dict) else None
    if owns is True or (not isinstance(owns, bool) and not group):
        return "owner", "", author
    return ("participant", "", author) if group else ("host", "not_owner", author)


def _marker_note(bare: str) -> str:
    if not bare.startswith(_MARKS):
        return ""
    return next(note for mark, note in _MARKERS if bare.startswith(mark))


def _field(name: str, entry: dict[str, Any], inner: dict[str, Any]) -> Any:
    """A field that stands in the message, in some versions beside it."""
    value = inner.get(name)
    return entry.get(name) if value is None else value


def _provenance_note(provenance: Any) -> str:
    if not isinstance(provenance, dict):
        return ""
    kind = provenance.get("kind")
    if kind == "internal_system":
        tool = provenance.get("sourceTool")
        return whole(tool)[:40] if isinstance(tool, str) and tool else "internal"
    return "inter_session" if kind == "inter_session" else ""


def _slash_note(bare: str) -> str:
    text = bare.strip() if len(bare) < 400 else bare
    if not text.startswith("/") or len(text) > 200 or "\n" in text:
        return ""
    command = _SLASH.match(text)
    return "slash_command" if command and command[1] not in _PATH_ROOTS else ""


@dataclass(frozen=True, slots=True)
class _Sender:
    name: str | None = None
    group: bool = False


_NOBODY: Final = _Sender()
_PREAMBLE: Final = re.compile(
    r"\s*(?P<title>[A-Z][A-Za-z ]{0,60}) \(untrusted[^)\n]{0,60}\):?\s*```json\s*\n(?P<json>.{0,4000}?)\n\s*```",
    re.DOTALL,
)


def _preambles(bare: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The metadata blocks a channel puts in front of a person's text, by title."""
    start = 0
    while block := _PREAMBLE.match(bare, start):
        start = block.end()
        try:
            value = json.loads(block["json"])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield block["title"], value


def _sender(bare: str) -> _Sender:
    name, group = None, False
    if "(untrusted" not in bare[:100]:
        return _NOBODY
    for title, block in _preambles(bare):
        if title == "Conversation info":
            group = block.get("is_group_chat") is True
            name = name or _name(block.get("sender"))
        elif title == "Sender":
            name = _name(block.get("name")) or _name(block.get("label")) or name
    return _Sender(name, group)


def _name(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    return whole(" ".join(value.split()))[:120] or None


_FAILED: Final = "[assistant turn failed before producing content]"
_SILENT: Final = ("NO_REPLY", "HEARTBEAT_OK")
_GATEWAY_MODELS: Final = {"gateway-injected": "gateway_note", "delivery-mirror": "delivery_mirror"}


def _answered(text: str, inner: dict[str, Any], run: Run, past: Past) -> tuple[Origin, str]:
    note = run.note or past.run or past.answer
    if not note:
        bare = text.lstrip()
        model = inner.get("model")
        if inner.get("provider") == "openclaw" and isinstance(model, str):
            note = _GATEWAY_MODELS.get(model, "")
        if not note and bare.startswith(_SILENT):
            note = "no_reply"
        elif not note and bare.startswith(_FAILED):
            note = "failed_turn"
    return ("host", note) if note else ("assistant", "")
