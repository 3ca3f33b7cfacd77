"""What OpenClaw's texts themselves tell: who speaks, and which of them are the host's own. Pure.

One home for every log that holds such texts, so that a message is the owner's in one of them when it is in all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from clawmark_sources.jsonline import whole

_TIME: Final = re.compile(
    r"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: [^\]\n]{1,40})?\]\s*"
)
_PROMPTS: Final = (
    ("[OpenClaw heartbeat poll]", "heartbeat"),
    ("Read HEARTBEAT.md", "heartbeat"),
    ("[cron:", "cron"),
    ("[Subagent Context]", "subagent"),
    ("[Inter-session message]", "inter_session"),
    ("Pre-compaction memory flush", "memory_flush"),
)
_HEADS: Final = tuple(head for head, _ in _PROMPTS)
_COMMAND: Final = re.compile(r"/([a-z][a-z0-9_-]*)(?:\s|$)")
_PATH_ROOTS: Final = frozenset(
    ("bin", "boot", "dev", "etc", "home", "lib", "media", "mnt", "opt", "proc", "root", "srv", "tmp", "usr", "var")
)
_FAILED: Final = "[assistant turn failed before producing content]"
_SILENT: Final = ("NO_REPLY", "HEARTBEAT_OK")
_PREAMBLE: Final = re.compile(
    r"\s*(?P<title>[A-Z][A-Za-z ]{0,60}) \(untrusted[^)\n]{0,60}\):?\s*```json\s*\n(?P<json>.{0,4000}?)\n\s*```\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Sender:
    """Who is said to speak, whether others are present, and where the text itself begins."""

    name: str | None = None
    group: bool = False
    start: int = 0


def sender(text: str) -> Sender:
    """What stands in front of a person's text: the time, and the metadata blocks of a channel."""
    time = _TIME.match(text)
    name, group, start = None, False, time.end() if time else 0
    for title, block, end in _preambles(text, start):
        start = end
        if title == "Conversation info":
            group = group or block.get("is_group_chat") is True
            name = name or person(block.get("sender"))
        elif title == "Sender":
            name = person(block.get("name")) or person(block.get("label")) or name
    return Sender(name, group, start)


def _preambles(text: str, position: int) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Title and content of each block, and where it ends."""
    if "(untrusted" not in text[position : position + 100]:
        return
    while block := _PREAMBLE.match(text, position):
        position = block.end()
        yield block["title"], json_object(block["json"]), position


def json_object(raw: str) -> dict[str, Any]:
    """The JSON object that a text is; an empty one when it is none."""
    try:
        value = json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def person(value: object) -> str | None:
    """A name on one line of at most 120 characters; None when it is none."""
    return whole(" ".join(value.split()))[:120] or None if isinstance(value, str) else None


def note_of_prompt(body: str) -> str:
    """Which of the host's own prompts a text is; "" when it is none. `body` begins where the text itself does."""
    return next(note for head, note in _PROMPTS if body.startswith(head)) if body.startswith(_HEADS) else ""


def note_of_command(body: str) -> str:
    """The note of a text that is a command to the host, not a word to the agent; "" when it is none."""
    line = body.strip() if len(body) < 400 else body
    if not line.startswith("/") or len(line) > 200 or "\n" in line:
        return ""
    command = _COMMAND.match(line)
    return "slash_command" if command and command[1] not in _PATH_ROOTS else ""


def note_of_answer(text: str) -> str:
    """The note of an answer that says nothing; "" for one that does."""
    said = text.lstrip()
    if said.startswith(_SILENT):
        return "no_reply"
    return "failed_turn" if said.startswith(_FAILED) else ""
