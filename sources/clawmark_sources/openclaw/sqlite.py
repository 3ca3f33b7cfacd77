"""The era from 2026.7.2 on: one SQLite database an agent, whose table transcript_events holds one entry a row.

What always holds: the file is opened read-only, for one call at a time, and only the tables named here are read (it
holds credentials as well). A position is (generation, seq, entry id): the host deletes and re-inserts whole sessions,
so that seq alone proves nothing; a position that no longer fits is answered by reading from the beginning.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import apsw

from clawmark.errors import SourceBusy, SourceCorrupt, SourceDrift, SourceError
from clawmark.model import Batch, Fault, Message, Stream, StreamKind, Wanted
from clawmark_sources.openclaw.messages import (
    LINE_LIMIT,
    Past,
    Run,
    Unreadable,
    conversation_kind,
    entry_id,
    host_run,
    parse,
    passed_over,
    read_entry,
    remembered,
    restored,
)

PREFIX: Final = "sqlite:"
BUSY_MS: Final = 2_000
EVENT_LIMIT: Final = 4 << 20
"""Bytes of the longest event that the host compresses."""
ROWS_A_READ: Final = 20_000
BYTES_A_READ: Final = 64 << 20
FAULTS_A_READ: Final = 1_000
"""A read ends early at any of these three: the caller gets control, and the host's checkpoint its turn."""


@dataclass(frozen=True, slots=True)
class Session:
    """What session_windows says about one session. Sessions without a row are the agent's own plain ones."""

    key: str = ""
    kind: StreamKind = "direct"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """streams that exist; ids of sessions the person asked to forget; ids of deleted sessions without a live row."""

    streams: Sequence[Stream] = ()
    forgotten: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Found:
    """Messages by ref, and the sessions the person asked to forget or deleted."""

    messages: dict[str, Message] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()


@dataclass(slots=True)
class Position:
    """Where reading of one session goes on, and the latest utterance before that place."""

    generation: str = ""
    seq: int = -1
    entry: str = ""
    past: Past = field(default_factory=Past)
    before: dict[str, Any] | None = None

    @classmethod
    def parse(cls, cursor: str) -> Position | None:
        try:
            value = json.loads(cursor)
            return cls(value["g"], value["n"], value["e"], Past(**value["p"]), value["b"])
        except (ValueError, TypeError, KeyError):
            return None

    def dump(self) -> str:
        value = {"g": self.generation, "n": self.seq, "e": self.entry, "p": self.past.as_json(), "b": self.before}
        return json.dumps(value, separators=(",", ":"))


_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_COLUMNS = "SELECT name FROM pragma_table_info('transcript_events')"
_AGENT = "SELECT agent_id FROM schema_meta WHERE role = 'agent' AND agent_id IS NOT NULL"
_TOMBSTONES = "SELECT session_id FROM memory_session_tombstones"
_DELETED = """
SELECT a.session_id FROM session_transcript_archives a
WHERE a.reason = 'deleted' AND NOT EXISTS (SELECT 1 FROM transcript_events e WHERE e.session_id = a.session_id)
"""
_SESSIONS = """
WITH RECURSIVE ids(id) AS (
  SELECT min(session_id) FROM transcript_events
  UNION ALL
  SELECT (SELECT min(session_id) FROM transcript_events WHERE session_id > id) FROM ids WHERE id IS NOT NULL
), ends(id, seq) AS (
  SELECT id, (SELECT max(seq) FROM transcript_events WHERE session_id = id) FROM ids WHERE id IS NOT NULL
)
SELECT id, seq, (SELECT created_at FROM transcript_events e WHERE e.session_id = id AND e.seq = ends.seq) FROM ends
"""
"""One index seek a session: the rows between are never walked."""
_WINDOWS = "SELECT * FROM session_windows"
_WINDOW = "SELECT * FROM session_windows WHERE session_id = ?"
_GENERATIONS = "SELECT session_id, generation FROM transcript_rewrite_watermarks"
_GENERATION = "SELECT session_id, generation FROM transcript_rewrite_watermarks WHERE session_id = ?"
_LAST = "SELECT max(seq) FROM transcript_events WHERE session_id = ? AND typeof(seq) = 'integer'"
_EVENTS = """
SELECT seq, CAST(event_json AS BLOB), event_zstd, created_at FROM transcript_events
WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?
"""
_EVENT = """
SELECT seq, CAST(event_json AS BLOB), event_zstd, created_at FROM transcript_events WHERE session_id = ? AND seq = ?
"""
_SEQ = "SELECT seq FROM transcript_event_identities WHERE session_id = ? AND event_id = ?"
# Databases of the first weeks have no compressed events.
_EVENTS_PLAIN = """
SELECT seq, CAST(event_json AS BLOB), NULL, created_at FROM transcript_events
WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?
"""
_EVENT_PLAIN = """
SELECT seq, CAST(event_json AS BLOB), NULL, created_at FROM transcript_events WHERE session_id = ? AND seq = ?
"""

_REQUIRED: Final = ("session_id", "seq", "event_json", "created_at")


class AgentDatabase:
    """Reads one agent's database. `agent` is the folder's name: what its streams are called by."""

    def __init__(self, path: Path, agent: str) -> None:
        self.path = path
        self.agent = agent
        self._in_wal_mode: dict[int, bool] = {}

    def check(self) -> None:
        with self._opened():
            pass

    def listing(self) -> Listing:
        with self._opened() as db:
            scope = db.scope(self.agent)
            forgotten = db.forgotten()
            generations = db.generations()
            sessions = db.sessions()
            plain = Session()
            streams = [
                Stream(
                    name=f"{PREFIX}{self.agent}/{session_id}",
                    mark=f"{generations.get(session_id, '')}:{last}:{created_at}",
                    scope=scope,
                    session=session_id,
                    kind=sessions.get(session_id, plain).kind,
                )
                for session_id, last, created_at in db.rows(_SESSIONS)
                if session_id not in forgotten
            ]
            return Listing(streams, forgotten, db.deleted())

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        with self._opened() as db:
            run = db.run(stream.session, stream.name, db.scope(self.agent))
            position = self._resume(db, stream.session, cursor)
            before = _before(db, run, position)
            return _read_on(db, run, position, before, max(1, limit))

    def _resume(self, db: _Open, session_id: str, cursor: str | None) -> Position:
        generation = db.generation(session_id)
        position = Position.parse(cursor) if cursor else None
        if position is None or position.generation != generation:
            return Position(generation)
        if position.seq >= 0:
            row = db.event(session_id, position.seq)
            if row is None or row.identity() != position.entry:
                return Position(generation)
        return position

    def find(self, wanted: Sequence[Wanted]) -> Found:
        """Those of the wanted messages that stand here now: by the hint first, then by their entry's id."""
        found: dict[str, Message] = {}
        with self._opened() as db:
            forgotten, deleted = db.forgotten(), db.deleted()
            scope = db.scope(self.agent)
            for want in wanted:
                session_id, _, entry = want.ref.partition("/")
                if session_id in forgotten or want.ref in found:
                    continue
                run = db.run(session_id, want.stream, scope)
                message = _find(db, run, want, entry)
                if message is not None:
                    found[want.ref] = message
        return Found(found, forgotten, deleted)

    @contextmanager
    def _opened(self) -> Iterator[_Open]:
        """One read transaction. Raises what a caller can act on, whichever step failed."""
        alone = self._at_rest()
        try:
            connection = apsw.Connection(
                f"{self.path.absolute().as_uri()}?{'immutable=1' if alone else 'mode=ro'}",
                flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
            )
            try:
                connection.set_busy_timeout(BUSY_MS)
                connection.execute("BEGIN")
                yield _Open(connection, self.path)
            finally:
                connection.close(True)
            error: apsw.Error | None = None
        except apsw.Error as failed:
            error = failed
        except UnicodeDecodeError as failed:
            raise SourceDrift(f"{self.path} names a session in bytes that are no text") from failed
        if alone is not None and self._at_rest() != alone:
            raise SourceBusy(f"{self.path} was opened by OpenClaw just now; try again") from error
        if error is not None:
            raise _failure(self.path, error) from error

    def _at_rest(self) -> tuple[int, int, int] | None:
        """What tells a database that nobody has open from the same one later; None when somebody may have it open.

        A database in WAL mode without a -wal file is at rest. Opened in the ordinary way, even for reading alone, it
        would get two new files beside it from us; as immutable it gets none.
        """
        try:
            stat = os.stat(self.path)
            if os.path.exists(f"{self.path}-wal") or os.path.exists(f"{self.path}-journal"):
                return None
            if stat.st_ino not in self._in_wal_mode:
                # once a file, because closing it drops the locks that SQLite holds on it in another thread
                with open(self.path, "rb") as file:
                    self._in_wal_mode = {stat.st_ino: file.read(20)[18:] == b"\x02\x02"}
        except OSError:
            return None
        return (stat.st_ino, stat.st_size, stat.st_mtime_ns) if self._in_wal_mode[stat.st_ino] else None


def _failure(path: Path, error: apsw.Error) -> SourceError:
    if isinstance(error, apsw.BusyError | apsw.LockedError | apsw.SchemaChangeError):
        return SourceBusy(f"{path} is held by another process ({error}); try again")
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return SourceCorrupt(
            f"{path} is damaged ({error}). It was left untouched: stop OpenClaw and restore it from a backup."
        )
    if isinstance(error, apsw.SQLError):
        return SourceDrift(f"{path} has a form that this version of clawmark does not know: {error}")
    return SourceError(f"{path} cannot be read ({error}); check its permissions, then try again")


class _Open:
    """An open database, inside one read transaction."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self.tables = frozenset(name for (name,) in self.rows(_TABLES))
        if "transcript_events" not in self.tables:
            raise SourceDrift(f"{path} has no table transcript_events: another version of OpenClaw wrote it")
        columns = {name for (name,) in self.rows(_COLUMNS)}
        missing = [name for name in _REQUIRED if name not in columns]
        if missing:
            raise SourceDrift(f"{path}: transcript_events has no column {', '.join(missing)}")
        self._compressed = "event_zstd" in columns

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(sql, values))

    def scope(self, otherwise: str) -> str:
        rows = self.rows(_AGENT) if "schema_meta" in self.tables else []
        return str(rows[0][0]) if rows and rows[0][0] else otherwise

    def forgotten(self) -> frozenset[str]:
        known = "memory_session_tombstones" in self.tables
        return frozenset(i for (i,) in self.rows(_TOMBSTONES)) if known else frozenset()

    def deleted(self) -> frozenset[str]:
        known = "session_transcript_archives" in self.tables
        return frozenset(i for (i,) in self.rows(_DELETED)) if known else frozenset()

    def generations(self) -> dict[str, str]:
        known = "transcript_rewrite_watermarks" in self.tables
        return {i: str(g) for i, g in self.rows(_GENERATIONS)} if known else {}

    def generation(self, session_id: str) -> str:
        known = "transcript_rewrite_watermarks" in self.tables
        rows = self.rows(_GENERATION, (session_id,)) if known else []
        return str(rows[0][1]) if rows else ""

    def sessions(self) -> dict[str, Session]:
        return dict(self._windows(_WINDOWS, ()))

    def run(self, session_id: str, stream: str, scope: str) -> Run:
        session = dict(self._windows(_WINDOW, (session_id,))).get(session_id, Session())
        return Run(stream, session_id, scope, session.kind, session.note)

    def _windows(self, sql: str, values: tuple[Any, ...]) -> Iterator[tuple[str, Session]]:
        if "session_windows" not in self.tables:
            return
        cursor = self._connection.execute(sql, values)
        for row in cursor:  # columns come and go between versions: each is taken where it is there
            named = dict(zip((column[0] for column in cursor.get_description()), row, strict=True))
            yield str(named.get("session_id")), _session(named)

    def event(self, session_id: str, seq: int) -> _Event | None:
        rows = self.rows(_EVENT if self._compressed else _EVENT_PLAIN, (session_id, seq))
        if not rows:
            return None
        seq, plain, packed, created = rows[0]
        return _Event(seq, plain, packed, created if isinstance(created, int) else 0)

    def events(self, session_id: str, after: int) -> Iterator[_Event]:
        sql = _EVENTS if self._compressed else _EVENTS_PLAIN
        for seq, plain, packed, created in self._connection.execute(sql, (session_id, after, ROWS_A_READ)):
            if isinstance(seq, int):  # the host's table is STRICT; a copy may hold anything
                yield _Event(seq, plain, packed, created if isinstance(created, int) else 0)

    def last(self, session_id: str) -> int:
        (last,) = self.rows(_LAST, (session_id,))[0]
        return last if isinstance(last, int) else -1

    def seq_of(self, session_id: str, entry: str) -> int | None:
        known = "transcript_event_identities" in self.tables
        rows = self.rows(_SEQ, (session_id, entry)) if known else []
        return int(rows[0][0]) if rows else None


def _session(row: dict[str, Any]) -> Session:
    key = str(row.get("session_key") or "")
    note = host_run(key, row.get("spawned_by"))
    if not note and row.get("acp_owned"):
        note = "acp"
    if not note and row.get("hook_external_content_source"):
        note = "hook"
    kind: StreamKind = "host" if note else conversation_kind(key, row.get("chat_type"), row.get("session_scope"))
    return Session(key, kind, note)


@dataclass(slots=True)
class _Event:
    """One row; its JSON stands in it plain or as one zstd frame."""

    seq: int
    plain: bytes | None
    packed: bytes | None
    created_at: int

    @property
    def size(self) -> int:
        return len(self.plain or b"") + len(self.packed or b"")

    def raw(self) -> bytes:
        """The JSON as it was logged. Raises Unreadable."""
        if self.plain is not None:
            if len(self.plain) > LINE_LIMIT:
                raise Unreadable("oversize")
            return self.plain
        if self.packed is None:
            raise Unreadable("no_event")
        return _unpack(self.packed)

    def identity(self) -> str:
        """What tells this row from another one at the same seq."""
        try:
            raw = self.raw()
            named = entry_id(parse(raw))
        except Unreadable:
            raw, named = self.plain or self.packed or b"", ""
        return named or "@" + hashlib.blake2b(raw, digest_size=12).hexdigest()


def _unpack(frame: bytes) -> bytes:
    zstd = _zstd()
    try:
        # 8 MiB of window cover every frame of the host's; a forged one must not make us allocate more
        unpacking = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
        data: bytes = unpacking.decompress(frame, max_length=EVENT_LIMIT + 1)
    except zstd.ZstdError:
        raise Unreadable("zstd") from None
    if len(data) > EVENT_LIMIT:
        raise Unreadable("oversize")
    if not unpacking.eof:
        raise Unreadable("zstd")
    return data


@cache
def _zstd() -> Any:
    """The zstd module, loaded when the first compressed event is met."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


# --- reading ---------------------------------------------------------------------------------------------------------


def _before(db: _Open, run: Run, position: Position) -> Message | None:
    """The utterance the position remembers, read back from its row with what only reading in order could tell."""
    if position.before is None:
        return None
    kept = position.before
    event = db.event(run.session, kept["n"])
    try:
        message = _message(event, run, Past(window=kept["w"], at=kept["t"])) if event else None
    except Unreadable:
        return None
    return restored(message, kept)


def _read_on(db: _Open, run: Run, position: Position, before: Message | None, limit: int) -> Batch:
    messages: list[Message] = []
    skipped: dict[str, int] = {}
    faults: list[Fault] = []
    latest: _Event | None = None
    size = 0
    restarted = position.seq < 0
    for event in db.events(run.session, position.seq):
        latest = event
        size += event.size
        try:
            raw = event.raw()
            read = passed_over(raw, 0, len(raw)) or read_entry(
                parse(raw), run, position.past, str(event.seq), event.created_at
            )
        except Unreadable as unreadable:
            faults.append(Fault(unreadable.reason, f"{run.session}#{event.seq}"))
        else:
            if isinstance(read, str):
                skipped[read] = skipped.get(read, 0) + 1
            else:
                messages.append(read)
        if len(messages) >= limit or size >= BYTES_A_READ or len(faults) >= FAULTS_A_READ:
            break
    if latest is not None:
        position.seq = latest.seq
        position.entry = latest.identity()
    if messages:
        position.before = {"n": int(messages[-1].location), **remembered(messages[-1])}
    return Batch(
        messages=messages,
        cursor=position.dump(),
        before=before if messages else None,
        skipped=skipped,
        faults=faults,
        end=position.seq >= db.last(run.session),
        restarted=restarted,
    )


def _message(event: _Event | None, run: Run, past: Past) -> Message | None:
    if event is None:
        return None
    read = read_entry(parse(event.raw()), run, past, str(event.seq), event.created_at)
    return None if isinstance(read, str) else read


def _find(db: _Open, run: Run, want: Wanted, entry: str) -> Message | None:
    """The wanted message at its hinted row, else at the row its entry's id names, else wherever it stands."""
    hinted = int(want.location) if want.location.isascii() and want.location.isdecimal() else None
    for seq in (hinted, None):
        if seq is None:
            seq = db.seq_of(run.session, entry)
        if seq is None or seq >= 1 << 62:
            continue
        message = _matching(db.event(run.session, seq), run, want.ref)
        if message is not None:
            return message
    if entry.startswith("@") or "transcript_event_identities" not in db.tables:
        return _search(db, run, want.ref)
    return None


def _matching(event: _Event | None, run: Run, ref: str) -> Message | None:
    try:
        message = _message(event, run, Past())
    except Unreadable:
        return None
    return message if message is not None and message.ref == ref else None


def _search(db: _Open, run: Run, ref: str) -> Message | None:
    """Every row of the session: for entries that no index names."""
    after = -1
    while True:
        last = after
        for event in db.events(run.session, after):
            after = event.seq
            if (message := _matching(event, run, ref)) is not None:
                return message
        if after == last:
            return None
