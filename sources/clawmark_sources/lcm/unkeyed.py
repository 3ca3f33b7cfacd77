"""Whose a conversation is that Lossless Claw stored without a key: half of an old database can be such.

OpenClaw's session files tell it: they lie in their agent's folder and are called by the session's id. Nothing is opened
but the folder's listing and sessions.json. A session in two agents' folders is nobody's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from clawmark.hosts.openclaw.sessionkey import agent_of, conversation_kind, host_run, kind_of
from clawmark.model import StreamKind
from clawmark_sources.jsonline import whole

UNKEYED: Final = "lcm-unkeyed"
"""The scope of conversations that no agent can be found for."""

_INDEX_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Home:
    """Whose a conversation is, and who takes part in it."""

    scope: str
    kind: StreamKind


NOBODY: Final = Home(UNKEYED, "group")
"""Who spoke is not known: as in a group, nothing is taken for the owner's."""


@lru_cache(maxsize=4096)
def of_key(key: str) -> Home:
    """What the key of a conversation tells: `agent:<id>:...`. Cached, since a listing asks for all of them each time."""
    if host_run(key):
        return Home(key.partition(":")[2].partition(":")[0], "host")
    agent = agent_of(key)
    return Home(agent, kind_of(key)) if agent else NOBODY


class SessionFolders:
    """OpenClaw's session files under `root`: a state directory, an agent's directory or a `sessions` directory."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def homes(self) -> dict[str, Home]:
        """By session id. What cannot be listed now tells nothing."""
        found: dict[str, Home] = {}
        for agent, folder in self._folders():
            index = _index(folder)
            for session in _sessions(folder):
                home = Home(agent, index.get(session, "direct"))
                found[session] = home if found.get(session, home).scope == agent else NOBODY
        return found

    def _folders(self) -> Iterator[tuple[str, Path]]:
        root = self._root
        homes = list(_listed(root / "agents"))
        if homes:
            yield from ((whole(Path(home).name), Path(home, "sessions")) for home in homes)
        elif os.path.isdir(root / "sessions"):
            yield whole(root.name), root / "sessions"
        else:
            home = root.parent
            yield whole(home.name) if home.parent.name == "agents" else "main", root


def _listed(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries)
    except OSError:
        return []


def _sessions(folder: Path) -> set[str]:
    """The ids that session files are called by; the topics of one session share its id."""
    names = (os.path.basename(path).partition(".jsonl") for path in _listed(folder))
    return {stem.partition("-topic-")[0] for stem, dot, _ in names if dot and stem}


def _index(folder: Path) -> dict[str, StreamKind]:
    """Who takes part, by session id, as sessions.json says; the host rewrites it while it runs."""
    try:
        with open(folder / "sessions.json", "rb") as file:
            raw = file.read(_INDEX_BYTES + 1)
        value = json.loads(raw) if len(raw) <= _INDEX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    entries = value.items() if isinstance(value, dict) else ()
    return {str(e.get("sessionId")): _kind_of_entry(k, e) for k, e in entries if isinstance(e, dict)}


def _kind_of_entry(key: str, entry: dict[str, Any]) -> StreamKind:
    if host_run(key, entry.get("spawnedBy")):
        return "host"
    origin = entry.get("origin")
    chat = entry.get("chatType") or (origin.get("chatType") if isinstance(origin, dict) else None)
    said = conversation_kind(key, chat)
    return said if chat == "direct" or said == "group" else of_key(key).kind
