"""Which files are transcripts: told by their names alone, and what a folder's sessions.json says of them.

What always holds: names come from listing a folder, never from what stands in a log. Live files, archives of a reset or
an import and cold archives are history; archives of a session that was deleted since are none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clawmark.errors import SourceError
from clawmark.hosts.openclaw.sessionkey import conversation_kind, host_run
from clawmark_sources.openclaw.known import Session

COLD: Final = "cold"
IMPORTED: Final = "session-sqlite-import-archive"
PLACES: Final = ("", COLD, IMPORTED, f"../{IMPORTED}")
"""Where transcripts lie, seen from the `sessions` folder."""

_TRANSCRIPT: Final = re.compile(
    r"(?P<stem>.+?)\.jsonl(?P<archive>\.(?:reset\.|imported-)[^/]+|(?P<deleted>\.deleted\.[^/]+))?", re.DOTALL
)
_COLD: Final = re.compile(r"(?P<stem>[0-9a-f]{64})\.jsonl\.zst")
_TOPIC: Final = "-topic-"
_INDEX_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class File:
    """A transcript as its name tells it; `session` is the id the name begins with, the header's may be another.

    label     its place seen from the `sessions` folder, and its name
    path      where it lies
    within    the same, seen from the `sessions` folder where it lies in it
    session   "" for a cold archive, whose name tells none
    live      the host still writes to it
    """

    label: str
    path: str
    within: str
    stem: str
    session: str
    live: bool = False
    deleted: bool = False
    packed: bool = False

    @property
    def topic(self) -> bool:
        return _TOPIC in self.stem

    @property
    def name(self) -> str:
        return self.label.rpartition("/")[2]


def named(place: str, folder: str, name: str) -> File | None:
    """What a file of this name in one of the places is; None when it is no transcript."""
    label, path = f"{place}/{name}" if place else name, os.path.join(folder, name)
    if place == COLD:
        cold = _COLD.fullmatch(name)
        return File(label, path, label, cold["stem"], "", packed=True) if cold else None
    found = _TRANSCRIPT.fullmatch(name) if ".jsonl" in name else None
    if found is None or ".trajectory.jsonl" in name or name.endswith(".lock"):
        return None
    stem = found["stem"]
    return File(
        label,
        path,
        path if place.startswith("../") else label,
        stem,
        stem.partition(_TOPIC)[0],
        live=not place and not found["archive"],
        deleted=found["deleted"] is not None,
        packed=name.endswith(".zst"),
    )


def history(files: Iterable[File], header: Callable[[File], str | None]) -> list[File]:
    """The files that are read: what the person deleted is not brought back by older copies.

    header   whose a file is whose name does not tell
    """
    files = list(files)
    deleted = {file.stem for file in files if file.deleted}
    if not deleted:
        return files
    deleted -= {file.stem for file in files if file.live}
    return [file for file in files if not file.deleted and (file.stem if file.session else header(file)) not in deleted]


def holds_transcripts(folder: Path) -> bool:
    """Whether sessions were ever kept here, deleted ones included. Stops at the first: this runs on the prompt path."""
    try:
        with os.scandir(folder) as entries:
            return any(named("", "", entry.name) is not None for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise unreadable(folder, error) from error


def readable(name: str) -> str:
    """A file's name as text; bytes that are none stay apart from each other."""
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def is_kind(entry: os.DirEntry[str], test: Callable[[os.DirEntry[str]], bool]) -> bool:
    """`test` of a directory's entry; a link that leads nowhere or to itself is of no kind."""
    try:
        return test(entry)
    except OSError:
        return False


def unreadable(path: Path, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be read ({error.strerror}); check its permissions, then try again")


# --- sessions.json ---------------------------------------------------------------------------------------------------


def agent_of(folder: Path) -> str | None:
    """The agent whose `sessions` folder this is, told from where it lies or from the keys of its sessions.json."""
    home = folder.absolute().parent
    if home.parent.name == "agents":
        return home.name
    keys = (key.split(":") for key in _load_index(folder))
    return next((parts[1] for parts in keys if len(parts) > 2 and parts[0] == "agent" and parts[1]), None)


def _load_index(folder: Path) -> dict[str, dict[str, Any]]:
    """Session key -> entry. The host rewrites this file while it runs: what cannot be read now counts as empty."""
    try:
        with open(folder / "sessions.json", "rb") as file:
            raw = file.read(_INDEX_BYTES + 1)
        value = json.loads(raw) if len(raw) <= _INDEX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in value.items() if isinstance(v, dict)} if isinstance(value, dict) else {}


def indexed(folder: Path) -> dict[str, Session]:
    """By session id and by file name: topics of one session share its id, never its file."""
    known: dict[str, Session] = {}
    for key, entry in _load_index(folder).items():
        note = host_run(key, entry.get("spawnedBy"))
        origin = entry.get("origin")
        chat_type = entry.get("chatType") or (origin.get("chatType") if isinstance(origin, dict) else None)
        session = Session("host" if note else conversation_kind(key, chat_type), note)
        for name in (entry.get("sessionId"), entry.get("sessionFile")):
            if isinstance(name, str) and name:
                known[name.replace("\\", "/").rpartition("/")[2]] = session
    return known
