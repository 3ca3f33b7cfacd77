"""One entry of OpenClaw's log, in the form both eras write it, turned into a Message or the reason why it is none.

Pure: a parsed JSON object and what was read before it go in, a value comes out. What always holds: an entry is read the
same whichever era it stands in; text is delivered as logged, envelopes and all, except that lone surrogates become
U+FFFD; a text whose speaker is in doubt is never given to the owner.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from clawmark.model import Message, Origin, StreamKind
from clawmark_sources.jsonline import Unreadable, milliseconds, whole
from clawmark_sources.openclaw.speech import note_of_answer, note_of_command, note_of_prompt, person, sender

_SPEAKER: Final = re.compile(
    rb'\{"type":"message",[^{]{0,400}(?<=,"message":)\{"role":"(?:(toolResult",)|assistant","content":\[)'
)
_EVENT: Final = re.compile(rb'\{"type":"(custom|model_change|thinking_level_change)",')


def passed_over(data: bytes, start: int, end: int) -> str | None:
    """Why the entry at data[start:end] carries no utterance, told from its raw bytes; None = it must be parsed.

    Three of four lines of an agent's log are tool calls and their results: this is what makes reading a long history
    nearly as fast as the disk. It knows the exact bytes the host begins such lines with; no string inside JSON can hold
    them, because its quotes are escaped. Every other form is parsed, and so is all that may hold somebody's text.
    """
    if end <= start or data[end - 1] != 0x7D:  # a line that was cut has no closing brace: parsing notices it
        return None
    speaker = _SPEAKER.match(data, start, end)
    if speaker is None:
        event = _EVENT.match(data, start, end)
        return None if event is None else event[1].decode()
    if speaker[1]:
        return "tool_result"
    spoken = data.find(b'"type":"text"', speaker.end(), end) >= 0
    return "tool_call" if not spoken and data.rfind(b'"type":"toolCall"', speaker.end(), end) >= 0 else None


# --- what a stream and its past say about an entry -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """The stream an entry stands in. `note` says which kind of host run it is, "" for a conversation."""

    stream: str
    session: str
    scope: str
    kind: StreamKind
    note: str = ""
    folder: str = ""


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


def read_entry(entry: Any, run: Run, past: Past, location: str) -> Message | str:
    """The utterance that a parsed entry holds, or the reason why it holds none; `past` moves on. Raises Unreadable."""
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
    told = _when(entry, inner)
    at = past.at = told or past.at
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
        dated=told > 0,
        folder=run.folder,
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


def header_of(entry: Any) -> tuple[str, str]:
    """The session id and the host's directory that a parsed header names; "" each where it names none."""
    if not isinstance(entry, dict) or entry.get("type") != "session":
        return "", ""
    session, folder = entry_id(entry), entry.get("cwd")
    # a ref is split at its first slash
    return "" if "/" in session else session, whole(folder) if isinstance(folder, str) and len(folder) < 4096 else ""


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


def _when(entry: dict[str, Any], inner: dict[str, Any]) -> int:
    """Milliseconds, 0 when the entry does not say. When a file or row was written says nothing: both are copied."""
    return (
        milliseconds(inner.get("timestamp"))
        or milliseconds(entry.get("timestamp"))
        or milliseconds(entry.get("created_at"))
        or 0
    )


# --- who speaks ------------------------------------------------------------------------------------------------------


def _asked(
    text: str, entry: dict[str, Any], inner: dict[str, Any], run: Run, past: Past
) -> tuple[Origin, str, str | None]:
    first, past.asked = not past.asked, True
    told = sender(text)
    body = text[told.start :]
    prompt = _provenance_note(_field("provenance", entry, inner)) or note_of_prompt(body)
    past.answer = prompt
    if first and prompt == "subagent":
        past.run = prompt
    past.group = past.group or told.group
    own = _field("__openclaw", entry, inner)
    own = own if isinstance(own, dict) else {}
    owns = own.get("senderIsOwner")
    author = told.name or person(_field("senderName", entry, inner)) or person(own.get("senderName"))
    note = run.note or past.run or prompt or note_of_command(body)
    if note:
        return "host", note, author
    group = run.kind == "group" or past.group
    if owns is True or (not isinstance(owns, bool) and not group):
        return "owner", "", author
    return ("participant", "", author) if group else ("host", "not_owner", author)


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


_GATEWAY_MODELS: Final = {"gateway-injected": "gateway_note", "delivery-mirror": "delivery_mirror"}


def _answered(text: str, inner: dict[str, Any], run: Run, past: Past) -> tuple[Origin, str]:
    note = run.note or past.run or past.answer
    if not note:
        model = inner.get("model")
        if inner.get("provider") == "openclaw" and isinstance(model, str):
            note = _GATEWAY_MODELS.get(model, "")
        note = note or note_of_answer(text)
    return ("host", note) if note else ("assistant", "")
