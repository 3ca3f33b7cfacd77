"""One row of Lossless Claw's messages, turned into a Message or the reason why it is none.

Pure. What always holds: the role says nothing about the speaker, because compaction summaries, heartbeats, cron prompts
and shell output are stored as the user's: a text whose speaker is in doubt is never given to the owner. Text is
delivered as stored, except for what Lossless Claw itself wrote into it: references to files that it moved out, with
their summaries. The same row gives the same text at any time.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from clawmark.model import Message, Origin, StreamKind
from clawmark_sources.jsonline import milliseconds, whole
from clawmark_sources.lcm.database import Row
from clawmark_sources.openclaw.speech import (
    Sender,
    json_object,
    note_of_answer,
    note_of_command,
    note_of_prompt,
    person,
    sender,
)

UNDATED: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of what nobody dated and nothing stands before."""


class Oversize(Exception):
    """A row whose text is too long to be loaded."""


@dataclass(frozen=True, slots=True)
class Run:
    """The stream a row stands in, and what its refs begin with."""

    stream: str
    session: str
    scope: str
    kind: StreamKind
    prefix: str


@dataclass(slots=True)
class Past:
    """What earlier rows of a conversation say about the next one; travels in the cursor, so batches may fall anywhere.

    window   ref of the latest compaction summary, without its epoch
    answer   note of the host's own prompt that is being answered now
    run      note of a host run that only its first prompt showed
    asked    a user text was seen
    group    a text said that others are present
    said     hash of what the assistant said last, "" when somebody spoke since
    at       milliseconds of the latest row that has a time; 0 = none yet
    """

    window: str = ""
    answer: str = ""
    run: str = ""
    asked: bool = False
    group: bool = False
    said: str = ""
    at: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


_SKIPPED_ROLES: Final = {"tool": "tool_result", "system": "system"}


def read_row(row: Row, run: Run, past: Past) -> Message | str:
    """The utterance that a row holds, or the reason why it holds none; `past` moves on. Raises Oversize."""
    logged = milliseconds(row.created_at)
    past.at = logged or past.at
    if row.role not in ("user", "assistant"):
        return _SKIPPED_ROLES.get(row.role, "other_role")
    if row.content is None:
        raise Oversize
    stored = _unwrapped(row.content.decode("utf-8", "replace"))
    text = without_references(stored)
    if not text.strip():
        return "externalised" if stored.strip() else "empty"
    asked = row.role == "user"
    if asked and (summary := _summary(text)):
        past.said = ""
        past.window = f"lcm:{row.id}" if summary == "compaction" else past.window
        return summary
    if not asked and _repeats(text, past):
        return "repeat"
    told = sender(text) if asked else Sender()
    origin, note = _asked(text, told, run, past) if asked else _answered(text, past)
    return Message(
        ref=f"{run.prefix}{row.id}",
        stream=run.stream,
        session=run.session,
        scope=run.scope,
        origin=origin,
        text=text,
        at=datetime.fromtimestamp(past.at / 1000, UTC) if past.at else UNDATED,
        dated=logged is not None,
        window=past.window,
        author=_author(row.sender, told) if asked else None,
        note=note,
        location=str(row.id),
    )


def _repeats(text: str, past: Past) -> bool:
    """Whether the assistant's text is the one before it again: a copy that the delivery to a channel left behind."""
    said = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    repeated, past.said = said == past.said, said
    return repeated


# --- text ------------------------------------------------------------------------------------------------------------


def _unwrapped(text: str) -> str:
    """The text of a message that was stored as the JSON of its parts, as Lossless Claw does where it finds no text."""
    if not text.startswith('[{"'):
        return text
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts):
        return text
    texts = (part.get("text") for part in parts if part["type"] == "text")
    return whole("\n".join(said for said in texts if isinstance(said, str)))


_REFERENCE: Final = re.compile(
    r"\[(?:LCM (?:File|Tool Output|Raw Payload): file_[0-9a-f]{16}\b[^\n]{0,2000}?\]|"
    r"[A-Z][a-z]{1,20} image: [^\n]{0,400}? \| LCM file: file_[0-9a-f]{16}\])"
)
_SUMMARY: Final = re.compile(r"\s*(?:(?:Command|Original text on disk): [^\n]*\s*){0,2}Exploration Summary:[ \t]*\n?")
_MADE_BY_RULE: Final = re.compile(
    r"(?:(?:Text exploration|Code exploration|Structured) summary\b[^\n]*|\(no summary available\))"
    r"(?:\n(?:Characters|Words|Lines|Detected section headers|Opening excerpt|Closing excerpt|Top-level type|Shape|Rows|"
    r"Columns \(\d+\)|First row sample|Top-level keys \(\d+\)|Root element|Child elements seen|"
    r"Imports/dependencies \(\d+\)|Top-level definitions \(\d+\)): [^\n]*)*"
)
_HOW_TO_FETCH: Final = re.compile(r"(?:- )?Call lcm_describe\(id=[^\n]*from disk\.")


def without_references(text: str) -> str:
    """`text` without the places of files that Lossless Claw moved out, and without what it says about their content."""
    if "LCM " not in text:
        return text
    kept: list[str] = []
    position = 0
    while reference := _REFERENCE.search(text, position):
        kept.append(text[position : reference.start()])
        position = _behind(text, reference.end())
    return text if not position else ("".join(kept) + text[position:]).strip()


def _behind(text: str, position: int) -> int:
    """Where the text goes on behind a reference that ends at `position`.

    A summary that a model wrote shows no end but the line on how to fetch the file, or the next reference. Without
    either it reaches to the end of the text: a word of the person's is lost rather than a machine's called theirs.
    """
    heading = _SUMMARY.match(text, position)
    if not heading:
        return position
    following = _REFERENCE.search(text, heading.end())
    end = following.start() if following else len(text)
    if fetch := _HOW_TO_FETCH.search(text, heading.end(), end):
        return fetch.end()
    made = _MADE_BY_RULE.match(text, heading.end(), end)
    return made.end() if made else end


# --- who speaks ------------------------------------------------------------------------------------------------------

_SUMMARIES: Final = (
    ("## Compaction summary", "compaction"),
    ("The conversation history before this point was compacted into the following summary:", "compaction"),
    ("The following is a summary of a branch that this conversation came back from:", "branch_summary"),
)
_SHELL: Final = re.compile(r"\$ \S[^\n]*\n")


def _summary(text: str) -> str:
    """The kind of a summary that the host put in the place of what was said; "" for none."""
    return next((kind for head, kind in _SUMMARIES if text.startswith(head)), "")


def _asked(text: str, told: Sender, run: Run, past: Past) -> tuple[Origin, str]:
    body = text[told.start :]
    prompt = note_of_prompt(body)
    first, past.asked = not past.asked, True
    past.said, past.answer = "", prompt
    past.group = past.group or told.group
    if first and prompt == "subagent":
        past.run = prompt
    if note := past.run or prompt or ("shell" if _SHELL.match(body) else note_of_command(body)):
        return "host", note
    return ("participant" if run.kind == "group" or past.group else "owner"), ""


def _answered(text: str, past: Past) -> tuple[Origin, str]:
    note = past.run or past.answer or note_of_answer(text)
    return ("host", note) if note else ("assistant", "")


def _author(stored: str, told: Sender) -> str | None:
    """The name that stands in front of the text, else the one stored beside the row."""
    beside = json_object(stored)
    return told.name or person(beside.get("senderName")) or person(beside.get("senderUsername"))
