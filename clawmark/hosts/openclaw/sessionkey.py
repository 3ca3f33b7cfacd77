"""What OpenClaw's session keys tell: whose a session is, who takes part, and whether the host runs it by itself. Pure.

One home for the logs, which read keys long after, and for the running host, which sends them along: a conversation is a
group in both or in neither. A kind that nobody knows is a group.
"""

from __future__ import annotations

from typing import Final

from clawmark.model import StreamKind

HOST_KEYS: Final = (
    (":subagent:", "subagent"),
    (":cron:", "cron"),
    (":hook:", "hook"),
    (":internal-session-effects:", "internal"),
    (":acp:", "acp"),
)
"""What such a key holds, and the note of it. The plugin in the gateway holds the same list."""

_OWN: Final = ("main", "webchat", "dashboard", "tui", "explicit")
"""What stands in a key where a channel would, when it is the owner's own terminal or web chat."""

_KINDS: Final = ("direct", "dm", "group", "channel", "room", "thread", "topic")


def host_run(session_key: str, spawned_by: object = None) -> str:
    """The note of a run that the host started by itself, told from its session key; "" for a conversation."""
    key = f":{session_key}"
    for part, note in HOST_KEYS:
        if part in key:
            return note
    return "subagent" if spawned_by else ""


def conversation_kind(session_key: str, chat_type: object, session_scope: object = None) -> StreamKind:
    """Whether others are present, in a log that says so beside the key. A session without a channel is the owner's own
    terminal or web chat: direct."""
    if chat_type == "direct":
        return "direct"
    if chat_type in ("group", "channel") or session_scope in ("group", "channel"):
        return "group"
    return "group" if ":group:" in session_key or ":channel:" in session_key else "direct"


def agent_of(session_key: str) -> str:
    """The agent in `agent:<id>:...`; "" where the key names none."""
    first, _, rest = session_key.partition(":")
    return rest.partition(":")[0] if first == "agent" else ""


def kind_of(session_key: str) -> StreamKind:
    """Who takes part, where the key is all there is: `agent:<id>:<name>` or
    `agent:<id>:<channel>[:<account>]:<kind>:<peer>`."""
    if host_run(session_key):
        return "host"
    rest = session_key.split(":")[2:]
    if not agent_of(session_key) or not rest or conversation_kind(session_key, None) == "group":
        return "group"
    if len(rest) == 1 or rest[0] in _OWN:
        return "direct"
    # behind the channel, or behind the account that the channel is used with; what stands later is somebody's name
    kinds = [part for part in (rest[1:3] if len(rest) > 3 else rest[1:2]) if part in _KINDS]
    return "direct" if kinds and kinds[0] in ("direct", "dm") else "group"
