"""The log of the OpenClaw gateway, both eras of it: session files (up to 2026.7.1) and an agent's database (later).

Both eras of an agent are read where both exist, because a person who updated has one history, not two: the same session
and entry id is the same ref, wherever it stands. What the person deleted stays away: a tombstone outweighs every
copy, a `.deleted.` archive every other archive, the database's branch a file's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from clawmark.errors import SourceAbsent, SourceBusy, SourceEmpty, SourceError
from clawmark.model import Batch, Fate, Gone, Message, Stream, Wanted
from clawmark.source import Folders
from clawmark_sources.openclaw import jsonl, sqlite
from clawmark_sources.openclaw.files import IMPORTED
from clawmark_sources.openclaw.jsonl import SessionFolder
from clawmark_sources.openclaw.known import NOTHING_KNOWN, Session
from clawmark_sources.openclaw.reading import Position
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
            yield from self.folder.streams(stored.known)

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        if self.database and stream.name.startswith(sqlite.PREFIX):
            return self.database.read(stream, cursor, limit)
        if self.folder and stream.name.startswith(jsonl.PREFIX):
            return self.folder.read(stream, cursor, limit, self._whose)
        return Batch(messages=(), cursor=cursor or "")

    def find(self, wanted: Sequence[Wanted]) -> dict[str, Message]:
        """Each message from the era it was read from, else from the other one."""
        rows = [want for want in wanted if want.stream.startswith(sqlite.PREFIX)]
        # the database is asked even when no row is wanted: it knows which sessions were forgotten
        stored = self.database.find(rows) if self.database else Found()
        found = dict(stored.messages)
        missing = [
            want
            for want in wanted
            if want.ref not in found
            and want.ref not in stored.taken_back
            and want.ref.partition("/")[0] not in stored.forgotten
        ]
        if self.folder and missing:
            found |= self.folder.find(missing, stored.deleted)
        moved = [w for w in missing if w.ref not in found and w.stream.startswith(jsonl.PREFIX)]
        if self.database and moved:
            found |= self.database.find(moved).messages
        return found

    def withdrawn(self, stream: Stream, refs: Sequence[str]) -> set[str]:
        """What the database says was taken back is so in the files too."""
        taken: set[str] = set()
        own = stream.name.startswith(sqlite.PREFIX)
        if self.database:
            taken |= self.database.withdrawn({ref.partition("/")[0] for ref in refs}, refs, own=own)
        if self.folder and not own:
            taken |= self.folder.withdrawn(stream, refs)
        return taken

    def fate(self, stream: Stream, session: str, now: datetime) -> Fate:
        """What became of a stream of this agent, whose place is there. Raises when that cannot be told now."""
        known = self.database.known() if self.database else NOTHING_KNOWN
        if not {session, stream.session}.isdisjoint(known.forgotten | known.deleted):
            return "deleted"
        if session in known.held or (self.folder is not None and self.folder.holds(session)):
            return "gone"
        if stream.name.startswith(sqlite.PREFIX):
            there = self.database is not None
        else:
            there = self.folder is not None and self.folder.is_there(stream.name)
            if self.folder is not None and self.folder.was_cleared(stream, now):
                return "lost"
        # rows are taken out in one step, the archive file is written in the next
        return "deleted" if there and session not in known.pending else "lost"

    def _whose(self, session: str) -> Session | None:
        return self.database.whose(session) if self.database else None


class TranscriptSource:
    """Every agent's transcripts under one place. Keeps nothing but the listing of folders, which is safe to lose."""

    name = "transcripts"
    host = "openclaw"
    expires = False

    def __init__(self, places: Folders) -> None:
        self._root = places.transcripts or places.openclaw
        self._failures: dict[str, SourceError] = {}
        self._folders: dict[Path, SessionFolder] = {}
        self._databases: dict[Path, AgentDatabase] = {}
        self._known: dict[str, Agent] = {}

    @property
    def place(self) -> str:
        return str(self._root.absolute())

    def check(self) -> None:
        """One agent's damage is that agent's: it is raised here only when no other agent can be read."""
        present = False
        agents = self._agents()
        failures = list(self._failures.values())
        for agent in agents:
            try:
                if agent.database:
                    agent.database.check()
                    present = True
                present = present or (agent.folder is not None and jsonl.holds_transcripts(agent.folder.path))
            except SourceError as failure:
                failures.append(failure)
        if not present:
            raise failures[0] if failures else self._nothing_found()

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
        """An agent that cannot be listed is raised after all others were.

        What is raised names in `parts` how the streams begin that may be missing from the list.
        """
        agents = self._agents()
        failures = dict(self._failures)
        if not agents and not failures:  # not mounted, or moved: what is not there was not deleted
            raise self._nothing_found()
        for agent in agents:
            try:
                yield from agent.listing()
            except SourceError as failure:
                failures[agent.name] = failure
        if failures:
            raise _of_parts(failures)

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        agent = self._agent_of(stream.name)
        return agent.read(stream, cursor, limit) if agent else Batch(messages=(), cursor=cursor or "")

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        self._agents()
        by_agent: dict[str, list[Wanted]] = {}
        for want in wanted:
            by_agent.setdefault(_agent_name(want.stream), []).append(want)
        found = {name: self._found(self._known[name], wants) for name, wants in by_agent.items() if name in self._known}
        return [found.get(_agent_name(want.stream), {}).get(want.ref) or Gone(want.ref) for want in wanted]

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        agent = self._agent_of(stream.name)
        return agent.withdrawn(stream, refs) if agent else set()

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        """An agent whose folder or database is not there, or cannot be read, is lost: a disk that is not mounted or an
        agent that was renamed is no deletion."""
        position = Position.parse(cursor) if cursor and stream.name.startswith(jsonl.PREFIX) else None
        session = position.session if position and position.session else stream.session
        try:
            self._agents()
            agent = self._known.get(_agent_name(stream.name))
            return agent.fate(stream, session, now) if agent else "lost"
        except SourceError:
            return "lost"

    def old_ref(self, stream: str, location: str) -> str | None:
        """The name under which the TypeScript clawmark kept a vector of this message; None where it kept none."""
        return jsonl.old_ref(stream, location)

    def _found(self, agent: Agent, wanted: Sequence[Wanted]) -> dict[str, Message]:
        """One agent's damage hides that agent's messages; `check` and `streams` are where it is told."""
        try:
            return agent.find(wanted)
        except SourceBusy:
            raise
        except SourceError:
            return {}

    def _agent_of(self, stream: str) -> Agent | None:
        name = _agent_name(stream)
        if name not in self._known:
            self._agents()
        return self._known.get(name)

    # --- where the logs are ------------------------------------------------------------------------------------------

    def _agents(self) -> list[Agent]:
        """The agents of a state directory, else the one whose own directory or `sessions` folder the root is."""
        root = self._root
        self._failures = {}
        if _is_folder(root / "agents"):
            made = [
                self._tried(home, home / "sessions", jsonl.readable(home.name)) for home in _folders(root / "agents")
            ]
        elif _is_file(root / _DATABASE) or _is_folder(root / "sessions"):
            made = [self._agent(root, root / "sessions", self._name_of(root / "sessions") or root.name)]
        elif (root.name == "sessions" and _is_folder(root)) or jsonl.holds_transcripts(root):
            # a setting from before the update still names the `sessions` folder, and the database stands next to it
            made = [self._agent(root.parent, root, self._name_of(root) or "main")]
        else:
            made = []
        self._known = {agent.name: agent for agent in made if agent}
        return list(self._known.values())

    def _tried(self, home: Path, sessions: Path, name: str) -> Agent | None:
        """One agent that cannot be looked at costs itself alone; `check` and `streams` say so."""
        try:
            return self._agent(home, sessions, name)
        except SourceError as failure:
            self._failures[name] = failure
            return None

    def _name_of(self, sessions: Path) -> str | None:
        known = self._folders.get(sessions)
        return known.agent if known else jsonl.agent_of(sessions)

    def _agent(self, home: Path, sessions: Path, name: str) -> Agent | None:
        database = home / _DATABASE
        stored, files = None, None
        if _is_file(database):
            stored = self._databases.setdefault(database, AgentDatabase(database, name))
        if _is_folder(sessions) or _is_folder(home / IMPORTED):
            files = self._folders.setdefault(sessions, SessionFolder(sessions, name))
        return Agent(name, stored, files) if stored or files else None

    def _nothing_found(self) -> SourceAbsent:
        root = self._root
        if not _is_folder(root):
            return SourceAbsent(f"no session was found: {root} is not a folder")
        return SourceEmpty(
            f"no session was found in {root}: looked for "
            "agents/*/agent/openclaw-agent.sqlite (OpenClaw from 2026.7.2) and agents/*/sessions/*.jsonl (before)"
        )


def _of_parts(failures: dict[str, SourceError]) -> SourceError:
    """The first failure, and how the streams of all agents begin that failed."""
    (failure, *_) = failures.values()
    parts = tuple(f"{prefix}{agent}/" for agent in failures for prefix in (jsonl.PREFIX, sqlite.PREFIX))
    failure.parts = parts
    return failure


def _agent_name(stream: str) -> str:
    return stream.partition(":")[2].partition("/")[0]


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return sorted(Path(entry.path) for entry in entries if jsonl.is_kind(entry, os.DirEntry.is_dir))
    except OSError as error:
        raise _unreadable(path, error) from error


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path))


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    """0 where nothing is. What only cannot be looked at raises: it must not count as deleted."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be read ({error.strerror}); check its permissions, then try again")


def _short(path: Path) -> str:
    """`path` as a person writes it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
