"""The log of the OpenClaw gateway, both eras of it: session files (up to 2026.7.1) and an agent's database (later).

Both eras of an agent are read where both exist, because a person who updated has one history, not two: the same session
and entry id is the same ref, wherever it stands. What the person deleted stays away: a `.deleted.` archive and a
tombstone outweigh every copy.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clawmark.errors import SourceAbsent, SourceError
from clawmark.model import Batch, Gone, Message, Stream, Wanted
from clawmark.source import Places
from clawmark_sources.openclaw import jsonl, sqlite
from clawmark_sources.openclaw.jsonl import SessionFolder
from clawmark_sources.openclaw.sqlite import AgentDatabase, Found, Listing

__all__ = ["TranscriptSource"]

_DATABASE: Final = Path("agent", "openclaw-agent.sqlite")


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent's logs: either era may be missing."""

    name: str
    database: AgentDatabase | None
    folder: SessionFolder | None

    def listing(self) -> Iterator[Stream]:
        stored = self.database.listing() if self.database else Listing()
        yield from stored.streams
        if self.folder:
            yield from self.folder.streams(stored.forgotten, stored.deleted)

    def find(self, wanted: Sequence[Wanted]) -> dict[str, Message]:
        """Each message from the era it was read from, else from the other one."""
        rows = [want for want in wanted if want.stream.startswith(sqlite.PREFIX)]
        # the database is asked even when no row is wanted: it knows which sessions were forgotten
        stored = self.database.find(rows) if self.database else Found()
        found = dict(stored.messages)
        missing = [w for w in wanted if w.ref not in found and w.ref.partition("/")[0] not in stored.forgotten]
        if self.folder and missing:
            found |= self.folder.find(missing, stored.deleted)
        moved = [w for w in missing if w.ref not in found and w.stream.startswith(jsonl.PREFIX)]
        if self.database and moved:
            found |= self.database.find(moved).messages
        return found


class TranscriptSource:
    """Every agent's transcripts under one place. Keeps nothing but the listing of folders, which is safe to lose."""

    name = "transcripts"

    def __init__(self, places: Places) -> None:
        self._root = places.transcripts or places.openclaw
        self._folders: dict[Path, SessionFolder] = {}

    @property
    def place(self) -> str:
        return str(self._root.absolute())

    def check(self) -> None:
        present = False
        for agent in self._agents():
            if agent.database:
                agent.database.check()
                present = True
            present = present or (agent.folder is not None and jsonl.holds_transcripts(agent.folder.path))
        if not present:
            raise SourceAbsent(self._nothing_found())

    def describe(self) -> str:
        try:
            agents = self._agents()
            stored = any(agent.database for agent in agents)
            files = any(agent.folder and jsonl.holds_transcripts(agent.folder.path) for agent in agents)
        except SourceError:  # `check` says what is wrong; this only names the place
            return _short(self._root)
        eras = " and ".join(name for name, present in (("SQLite", stored), ("session files", files)) if present)
        count = f"{len(agents)} agent{'' if len(agents) == 1 else 's'}"
        return f"{_short(self._root)} ({count}; {eras or 'no session yet'})"

    def streams(self) -> Iterator[Stream]:
        for agent in self._agents():
            yield from agent.listing()

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        agent = self._agent_of(stream.name)
        if agent and agent.database and stream.name.startswith(sqlite.PREFIX):
            return agent.database.read(stream, cursor, limit)
        if agent and agent.folder and stream.name.startswith(jsonl.PREFIX):
            return agent.folder.read(stream, cursor, limit)
        return Batch(messages=(), cursor=cursor or "")

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        by_agent: dict[str, list[Wanted]] = {}
        for want in wanted:
            by_agent.setdefault(_agent_name(want.stream), []).append(want)
        found: dict[str, dict[str, Message]] = {}
        agents = {agent.name: agent for agent in self._agents()}
        for name, wants in by_agent.items():
            found[name] = agents[name].find(wants) if name in agents else {}
        return [found[_agent_name(want.stream)].get(want.ref) or Gone(want.ref) for want in wanted]

    # --- where the logs are ------------------------------------------------------------------------------------------

    def _agent_of(self, stream: str) -> Agent | None:
        name = _agent_name(stream)
        return next((agent for agent in self._agents() if agent.name == name), None)

    def _agents(self) -> list[Agent]:
        """The agents of a state directory, else the one whose own directory or `sessions` folder the root is."""
        root = self._root
        if (root / "agents").is_dir():
            made = [self._agent(home, home / "sessions", home.name) for home in _folders(root / "agents")]
        elif (root / _DATABASE).is_file() or (root / "sessions").is_dir():
            made = [self._agent(root, root / "sessions", jsonl.agent_of(root / "sessions") or root.name)]
        elif (root.name == "sessions" and (root.parent / _DATABASE).is_file()) or jsonl.holds_transcripts(root):
            # a setting from before the update still names the `sessions` folder, and the database stands next to it
            made = [self._agent(root.parent, root, jsonl.agent_of(root) or "main")]
        else:
            made = []
        return [agent for agent in made if agent]

    def _agent(self, home: Path, sessions: Path, name: str) -> Agent | None:
        database = home / _DATABASE
        stored = AgentDatabase(database, name) if database.is_file() else None
        files = self._folder(sessions, name) if sessions.is_dir() else None
        return Agent(name, stored, files) if stored or files else None

    def _folder(self, path: Path, name: str) -> SessionFolder:
        if path not in self._folders:
            self._folders[path] = SessionFolder(path, name)
        return self._folders[path]

    def _nothing_found(self) -> str:
        root = self._root
        if not root.is_dir():
            return f"no session was found: {root} is not a folder"
        return (
            f"no session was found in {root}: looked for "
            "agents/*/agent/openclaw-agent.sqlite (OpenClaw from 2026.7.2) and agents/*/sessions/*.jsonl (before)"
        )


def _agent_name(stream: str) -> str:
    return stream.partition(":")[2].partition("/")[0]


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(path) if entry.is_dir())
    except OSError as error:
        raise SourceError(f"{path} cannot be listed ({error.strerror}); check that you may read it") from error


def _short(path: Path) -> str:
    """`path` as a person writes it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
