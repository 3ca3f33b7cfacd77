"""The era from 2026.7.2 on: one SQLite database an agent, whose table transcript_events holds one entry a row.

What always holds: the file is opened read-only, for one call at a time, and only the tables named here are read (it
holds credentials as well). A position is (generation, seq, entry id): the host deletes and re-inserts whole sessions,
so that seq alone proves nothing; a position that no longer fits is answered by reading from the beginning.

The host says itself which events are on the active branch. What it has not looked at yet, or is about to look at anew,
counts as active.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import apsw

from clawmark.errors import SourceDrift
from clawmark.hosts.openclaw.sessionkey import conversation_kind, host_run
from clawmark.model import Batch, Fault, Message, Stream, StreamKind, Wanted
from clawmark_sources.foreign import ForeignDatabase
from clawmark_sources.jsonline import LINE_LIMIT, Unreadable, milliseconds, parse
from clawmark_sources.openclaw.files import File
from clawmark_sources.openclaw.known import Known, Session
from clawmark_sources.openclaw.lines import Unpacked, decompressor, zstd
from clawmark_sources.openclaw.messages import (
    Past,
    Run,
    entry_id,
    header_of,
    passed_over,
    read_entry,
    remembered,
    restored,
)
from clawmark_sources.openclaw.reading import HEADER_BYTES, Reading, header, resumed, tree_of
from clawmark_sources.openclaw.reading import Position as FilePosition

PREFIX: Final = "sqlite:"
EVENT_LIMIT: Final = 4 << 20
"""Bytes of the longest event that the host compresses."""
ROWS_A_READ: Final = 20_000
BYTES_A_READ: Final = 64 << 20
FAULTS_A_READ: Final = 1_000
"""A read ends early at any of these three: the caller gets control, and the host's checkpoint its turn."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The streams that exist, and what is known of their sessions."""

    streams: Sequence[Stream] = ()
    known: Known = field(default_factory=Known)


@dataclass(frozen=True, slots=True)
class Found:
    """Messages by ref; refs that were taken back; the sessions the person asked to forget or deleted."""

    messages: dict[str, Message] = field(default_factory=dict)
    taken_back: Set[str] = frozenset()
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
_NODES = "SELECT * FROM session_nodes"
_NODE = "SELECT * FROM session_nodes WHERE current_session_id = ?"
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

_BRANCHES = """
SELECT session_id, indexed_seq + 1 - active_event_count FROM session_transcript_index_state WHERE needs_rebuild = 0
"""
_BRANCH = """
SELECT indexed_seq FROM session_transcript_index_state WHERE session_id = ? AND needs_rebuild = 0
"""
_ACTIVE = "SELECT 1 FROM session_transcript_active_events WHERE session_id = ? AND event_seq = ?"
_COLD = """
SELECT session_id, archive_name, storage, archived_at, archive_bytes FROM session_transcript_cold_archives
"""
_COLD_BLOB = """
SELECT archive_blob FROM session_transcript_cold_archives WHERE archive_name = ? AND storage = 'sqlite'
"""
_RESET = "SELECT session_id FROM session_transcript_archives WHERE reason = 'reset'"

_REQUIRED: Final = ("session_id", "seq", "event_json", "created_at")


class AgentDatabase:
    """Reads one agent's database. `agent` is the folder's name: what its streams are called by."""

    def __init__(self, path: Path, agent: str) -> None:
        self.path = path
        self.agent = agent
        self._cold = f"{PREFIX}{agent}/cold/"
        self._file = ForeignDatabase(path, "OpenClaw")

    def check(self) -> None:
        with self._opened():
            pass

    def listing(self) -> Listing:
        with self._opened() as db:
            rows = db.rows(_SESSIONS)
            known = db.known(rows)
            scope = db.scope(self.agent)
            generations = db.generations()
            plain = Session()
            streams = [
                Stream(
                    name=f"{PREFIX}{self.agent}/{session_id}",
                    mark=f"{generations.get(session_id, '')}:{last}:{created_at}",
                    scope=scope,
                    session=session_id,
                    kind=known.sessions.get(session_id, plain).kind,
                    losses=known.losses.get(session_id, ""),
                    touched=_moment(created_at),
                )
                for session_id, last, created_at in rows
                if session_id not in known.forgotten
            ]
            streams += [
                Stream(
                    name=f"{self._cold}{name}",
                    mark=f"{archived_at}:{size}",
                    scope=scope,
                    session=session_id,
                    kind=known.sessions.get(session_id, plain).kind,
                    touched=_moment(archived_at),
                )
                for session_id, name, storage, archived_at, size in db.cold()
                if storage == "sqlite" and session_id not in known.forgotten
            ]
            return Listing(streams, known)

    def known(self) -> Known:
        with self._opened() as db:
            return db.known(db.rows(_SESSIONS))

    def whose(self, session_id: str) -> Session | None:
        with self._opened() as db:
            return db.session(session_id)

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        if stream.name.startswith(self._cold):
            archive = self._archive(stream.name, stream.session)
            if archive is None:
                return Batch(messages=(), cursor=cursor or FilePosition().dump())
            reading, content = archive
            return reading.batch(resumed(content, cursor), max(1, limit))
        with self._opened() as db:
            run = db.run(stream.session, stream.name, db.scope(self.agent))
            position = self._resume(db, stream.session, cursor)
            before = _before(db, run, position)
            return _read_on(db, run, position, before, max(1, limit))

    def withdrawn(self, session_ids: Collection[str], refs: Sequence[str], *, own: bool) -> set[str]:
        """Those of the refs that the person took back.

        own   True for what was read from rows: what the session no longer holds was taken back too, because the host
              moves what it only wants out of the way into an archive. Files may hold what never came here.
        """
        taken: set[str] = set()
        with self._opened() as db:
            forgotten = db.forgotten()
            cold = {session_id for session_id, *_ in db.cold()}
            for session_id in session_ids:
                some = {ref for ref in refs if ref.partition("/")[0] == session_id}
                if session_id in forgotten:
                    taken |= some
                elif session_id not in cold and db.last(session_id) >= 0:
                    taken |= _taken_back(db, session_id, some, own=own)
        return taken

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
            runs: dict[str, Run] = {}
            taken_back: set[str] = set()
            for want in wanted:
                session_id, _, entry = want.ref.partition("/")
                if session_id in forgotten or want.ref in found:
                    continue
                if session_id not in runs:
                    runs[session_id] = db.run(session_id, want.stream, scope)
                run = replace(runs[session_id], stream=want.stream)
                message = _find(db, run, want, entry)
                if message is None:
                    continue
                seq = int(message.location)
                if seq <= db.branch_end(session_id) and not db.is_active(session_id, seq):
                    taken_back.add(want.ref)
                else:
                    found[want.ref] = message
            archived = [(s, n) for s, n, storage, *_ in db.cold() if storage == "sqlite" and s not in forgotten]
        for session_id, name in archived:
            some = [w for w in wanted if w.ref not in found and w.ref.startswith(f"{session_id}/")]
            archive = self._archive(f"{self._cold}{name}", session_id) if some else None
            if archive is not None:
                found |= archive[0].search({want.ref for want in some})
        return Found(found, taken_back, forgotten, deleted)

    def _archive(self, stream: str, session_id: str) -> tuple[Reading, Unpacked] | None:
        """A cold archive that lies in the database itself."""
        name = stream.removeprefix(self._cold)
        with self._opened() as db:
            blob = db.cold_blob(name)
            whose = db.session(session_id) or Session()
            scope = db.scope(self.agent)
        if blob is None:
            return None
        content = Unpacked(io.BytesIO(blob).read)
        session, folder = header(content.pread(HEADER_BYTES, 0))
        run = Run(stream, session or session_id, scope, whose.kind, whose.note, folder)
        return Reading(
            content, File(name, "", "", session_id, session_id, packed=True), run, lambda: tree_of(content)
        ), content

    @contextmanager
    def _opened(self) -> Iterator[_Open]:
        with self._file.opened() as connection:
            yield _Open(connection, self.path)


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

    def known(self, rows: Sequence[tuple[Any, ...]]) -> Known:
        cold = self.cold()
        blobs = {session_id for session_id, _, storage, *_ in cold if storage == "sqlite"}
        return Known(
            forgotten=self.forgotten(),
            deleted=self.deleted(),
            sessions=self.sessions(),
            losses=self.losses(),
            cold={name: session_id for session_id, name, *_ in cold},
            held=frozenset(blobs.union(session_id for session_id, *_ in rows)),
            pending=self.reset().union(session_id for session_id, *_ in cold),
        )

    def losses(self) -> dict[str, str]:
        """Of each session what changes when something in it was taken back: its generation, and how much is inactive.

        While the host has yet to look at a session anew, only its generation is certain.
        """
        generations = self.generations()
        inactive = dict(self.rows(_BRANCHES)) if self._has_branches() else {}
        return {i: f"{generations.get(i, '')}:{inactive.get(i, '')}" for i in generations.keys() | inactive.keys()}

    def branch_end(self, session_id: str) -> int:
        """The last event of which the host has said whether it is active; -1 = it has said nothing."""
        rows = self.rows(_BRANCH, (session_id,)) if self._has_branches() else []
        return rows[0][0] if rows and isinstance(rows[0][0], int) else -1

    def is_active(self, session_id: str, seq: int) -> bool:
        return bool(self.rows(_ACTIVE, (session_id, seq)))

    def _has_branches(self) -> bool:
        return {"session_transcript_index_state", "session_transcript_active_events"} <= self.tables

    def cold(self) -> list[tuple[Any, ...]]:
        return self.rows(_COLD) if "session_transcript_cold_archives" in self.tables else []

    def cold_blob(self, name: str) -> bytes | None:
        rows = self.rows(_COLD_BLOB, (name,)) if "session_transcript_cold_archives" in self.tables else []
        return rows[0][0] if rows and isinstance(rows[0][0], bytes) else None

    def reset(self) -> frozenset[str]:
        known = "session_transcript_archives" in self.tables
        return frozenset(i for (i,) in self.rows(_RESET)) if known else frozenset()

    def sessions(self) -> dict[str, Session]:
        """A window says whose a session is; where it is missing, the node that is current in it."""
        return dict(self._sessions("session_nodes", _NODES)) | dict(self._sessions("session_windows", _WINDOWS))

    def session(self, session_id: str) -> Session | None:
        for table, sql in (("session_windows", _WINDOW), ("session_nodes", _NODE)):
            for _, session in self._sessions(table, sql, (session_id,)):
                return session
        return None

    def run(self, session_id: str, stream: str, scope: str) -> Run:
        session = self.session(session_id) or Session()
        return Run(stream, session_id, scope, session.kind, session.note, self._folder(session_id))

    def _folder(self, session_id: str) -> str:
        """The directory in the session's header."""
        first = self.event(session_id, 0)
        try:
            return header_of(parse(first.raw()))[1] if first else ""
        except Unreadable:
            return ""

    def _sessions(self, table: str, sql: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[str, Session]]:
        if table not in self.tables:
            return
        cursor = self._connection.execute(sql, values)
        for row in cursor:  # columns come and go between versions: each is taken where it is there
            named = dict(zip((column[0] for column in cursor.get_description()), row, strict=True))
            yield str(named.get("session_id", named.get("current_session_id"))), _session(named)

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
    if not note:
        note = _STARTED_BY.get(str(row.get("created_via")), "")
    kind: StreamKind = "host" if note else conversation_kind(key, row.get("chat_type"), row.get("session_scope"))
    return Session(kind, note)


_STARTED_BY: Final = {"spawn": "subagent", "cron": "cron", "internal": "internal"}


def _moment(ms: object) -> datetime | None:
    known = milliseconds(ms)
    return datetime.fromtimestamp(known / 1000, UTC) if known else None


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
    try:
        unpacking = decompressor()
        data: bytes = unpacking.decompress(frame, max_length=EVENT_LIMIT + 1)
    except zstd().ZstdError:
        raise Unreadable("zstd") from None
    if len(data) > EVENT_LIMIT:
        raise Unreadable("oversize")
    if not unpacking.eof:
        raise Unreadable("zstd")
    return data


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
    branch_end = db.branch_end(run.session)
    for event in db.events(run.session, position.seq):
        latest = event
        size += event.size
        try:
            raw = event.raw()
            read: Message | str | None = passed_over(raw, 0, len(raw))
            if read is None:
                entry = parse(raw)
                if event.seq <= branch_end and _is_inactive(db, run.session, event.seq, entry):
                    read = "off_branch"
                else:
                    read = read_entry(entry, run, position.past, str(event.seq))
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
    read = read_entry(parse(event.raw()), run, past, str(event.seq))
    return None if isinstance(read, str) else read


def _is_inactive(db: _Open, session_id: str, seq: int, entry: Any = None) -> bool:
    """Whether the host left the event behind; its header is never on the branch."""
    header = isinstance(entry, dict) and entry.get("type") == "session"
    return not header and not db.is_active(session_id, seq)


def _taken_back(db: _Open, session_id: str, refs: set[str], *, own: bool) -> set[str]:
    """Those of one session's refs that stand on inactive rows alone or, with `own`, on none."""
    branch_end = db.branch_end(session_id)
    rows: dict[str, bool] = {}
    for ref in refs:
        seq = db.seq_of(session_id, ref.partition("/")[2])
        if seq is not None:
            rows[ref] = seq > branch_end or db.is_active(session_id, seq)
    indexed = "transcript_event_identities" in db.tables
    # no index names entries without an id; and before rows count as gone, they are looked for
    if unsure := {ref for ref in refs - rows.keys() if own or not indexed or "/@" in ref}:
        rows |= _standing(db, session_id, unsure, branch_end)
    return {ref for ref in refs if not rows.get(ref, not own)}


def _standing(db: _Open, session_id: str, refs: set[str], branch_end: int) -> dict[str, bool]:
    """Whether each ref that stands in the session stands on its branch."""
    run = Run("", session_id, "", "direct")
    found: dict[str, bool] = {}
    for event in _all_events(db, session_id):
        try:
            message = _message(event, run, Past())
        except Unreadable:
            continue
        if message is not None and message.ref in refs:
            active = event.seq > branch_end or db.is_active(session_id, event.seq)
            found[message.ref] = found.get(message.ref, False) or active
    return found


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
    return next((m for event in _all_events(db, run.session) if (m := _matching(event, run, ref)) is not None), None)


def _all_events(db: _Open, session_id: str) -> Iterator[_Event]:
    after, last = -1, None
    while after != last:
        last = after
        for event in db.events(session_id, after):
            after = event.seq
            yield event
