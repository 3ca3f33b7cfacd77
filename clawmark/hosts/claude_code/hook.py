"""What a hook of Claude Code prints: one exact JSON object, or nothing.

Claude Code refuses an object with a key it does not expect as a whole, and fires the same events for what it says to
itself. So: this object alone, and only for what the person typed in a session of their own. The block stands in it as it
was made, within the host's length by its profile: what is cut away here would be noted as shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from clawmark.hosts.claude_code.project import scope_of
from clawmark.hosts.desk import HookDesk
from clawmark.model import Turn
from clawmark.text import without_surrogates

HOST: Final = "claude-code"
MESSAGES: Final = 2
"""A prompt and its answer."""

FORGETS: Final = ("clear", "compact")
"""How a session starts whose model no longer sees what it was shown."""


def answer(event: Mapping[str, Any], desk: HookDesk, now: datetime) -> str:
    """The text for the hook's standard output; "" = nothing."""
    name, session = event.get("hook_event_name"), _text(event.get("session_id"))
    if event.get("agent_id"):  # a sub-agent's: its prompts are the model's
        return ""
    if name == "UserPromptSubmit":
        prompt = _text(event.get("prompt")) or ""
        said = "" if is_from_host(prompt) else _block(event, desk, prompt, session, now)
        desk.notify("messages", HOST, session, MESSAGES)
        return _printed(name, said)
    if name == "SessionStart":
        if session is not None and event.get("source") in FORGETS:
            desk.renew(HOST, session)
        said = _block(event, desk, "", session, now)
        desk.notify("session_start", HOST, session, 0)
        return _printed(name, said)
    return ""


def _block(event: Mapping[str, Any], desk: HookDesk, prompt: str, session: str | None, now: datetime) -> str:
    """The block for a prompt; without one, for facts alone."""
    folder = _text(event.get("cwd"))
    scope = None if folder is None else scope_of(folder).id
    turn = Turn(prompt, host=HOST, scope=scope, session=session, kind="direct", now=now)
    return desk.block(turn, owner=True).text


def _text(value: object) -> str | None:
    return without_surrogates(value) if isinstance(value, str) and value else None


def _printed(event: str, said: str) -> str:
    """In ASCII, which no locale of whoever prints it can spoil."""
    if not said:
        return ""
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": said}})


# --- what is not the person's -----------------------------------------------------------------------------------------

_REMINDER: Final = re.compile(r"<system-reminder\b[^>]{0,200}>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_OF_HOST: Final = re.compile(
    r"<\\?(?:command-(?:name|message|args|contents)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)"
    r"|task-notification|scheduled-task|agent-message|teammate-message|cross-session-message|channel|slack-tag-message"
    r"|fetched-web-content)\b"
    r"|(?:Another Claude|A peer) session sent a message\b"
    r"|Background agent \"|\d+ background agents were stopped\b"
    r"|\[(?:SYSTEM NOTIFICATION\b|Request interrupted by user)"
    r"|/[a-z][\w:-]*(?:\s|\Z)",
    re.IGNORECASE,
)


def is_from_host(prompt: str) -> bool:
    """Whether a prompt is the host's: a task's end, another session's message, a command's call or its output.

    The event has no field that says so. Its beginning alone is looked at: a person may quote any of these further on.
    """
    said = _REMINDER.sub("", prompt).lstrip() if "<system-reminder" in prompt else prompt.lstrip()
    return not said or _OF_HOST.match(said) is not None
