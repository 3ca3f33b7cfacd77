"""The OpenClaw transcripts, both eras: the source contract over logs written as the gateway writes them, its recorded
data, every hostile line of the corpus, and what is true of one era alone."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import helpers
import pytest
from helpers import fake, open_memory, recalled
from hypothesis import given, settings, strategies

from clawmark.errors import SourceAbsent, SourceBusy, SourceCorrupt, SourceDrift, SourceError
from clawmark.model import Batch, Gone, Message, Role, Stream, Wanted
from clawmark.source import Folders, MessageSource
from clawmark.testing import START, Log, SourceContract, drain, everything, messages_of, wanted
from clawmark_sources import foreign
from clawmark_sources.openclaw import TranscriptSource, jsonl, lines
from clawmark_sources.openclaw.branch import grown, link, link_of
from clawmark_sources.openclaw.messages import passed_over

try:
    from compression import zstd
except ImportError:
    from backports import zstd


# --- logs written as the gateway writes them -------------------------------------------------------------------------


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def compact(entry: Any) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()


def message(entry: str, role: str, content: Any, at: datetime = START, **inner: Any) -> dict[str, Any]:
    said = {"role": role, "content": content, **inner, "timestamp": ms(at)}
    return {"type": "message", "id": entry, "parentId": None, "timestamp": iso(at), "message": said}


def user(entry: str, text: str, at: datetime = START, **inner: Any) -> dict[str, Any]:
    return message(entry, "user", text, at, **inner)


def assistant(entry: str, text: str, at: datetime = START, **inner: Any) -> dict[str, Any]:
    return message(entry, "assistant", [{"type": "text", "text": text}], at, **inner)


def tool_result(entry: str, text: str, at: datetime = START) -> dict[str, Any]:
    return message(entry, "toolResult", [{"type": "text", "text": text}], at)


def tool_call(entry: str, command: str, at: datetime = START) -> dict[str, Any]:
    call = {"type": "toolCall", "id": "call_1", "name": "exec", "arguments": {"command": command}}
    return message(entry, "assistant", [{"type": "thinking", "thinking": "hm"}, call], at, stopReason="toolUse")


def header(session: str, at: datetime = START) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": session, "timestamp": iso(at), "cwd": "/home/ada"}


def session_id(name: str) -> str:
    return f"{ord(name[0]):08x}-0000-4000-8000-{name[1:][-6:].encode().hex():0>12}"


class FilesLog(Log):
    """The files era: <state>/agents/main/sessions/<id>.jsonl."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "agents" / "main" / "sessions"
        self.folder.mkdir(parents=True)
        self.torn = b""
        self.count = 0
        self.said: dict[str, list[str]] = {}
        """Of each session the last entry of each turn on its branch."""

    def source(self) -> TranscriptSource:
        return TranscriptSource(Folders(None, self.root))

    def path(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def write(self, session: str, *entries: Any) -> None:
        with open(self.path(session), "ab") as file:
            file.writelines((e if isinstance(e, bytes) else compact(e)) + b"\n" for e in entries)

    def index(self, **entries: Any) -> None:
        (self.folder / "sessions.json").write_text(json.dumps(entries))

    def new_session(self, name: str) -> str:
        session = session_id(name)
        snapshot = {"type": "custom", "customType": "model-snapshot", "data": {}, "id": "0", "parentId": None}
        self.write(session, header(session), snapshot)
        return session

    def entry(self, session: str, role: Role, text: str, at: datetime) -> dict[str, Any]:
        self.count += 1
        made = (user if role == "user" else assistant)(f"{self.count:08x}", text, at)
        return made | {"parentId": self.said.get(session, ["0"])[-1]}

    def append(self, session: str, role: Role, text: str, at: datetime) -> str:
        entry = self.entry(session, role, text, at)
        result = tool_result(f"{entry['id']}-r", text, at) | {"parentId": entry["id"]}
        self.write(session, entry, result)
        self.said.setdefault(session, []).append(result["id"])
        return f"{session}/{entry['id']}"

    def rename_reset(self, session: str) -> None:
        self.path(session).rename(f"{self.path(session)}.reset.2026-03-18T04-02-18.203Z")

    def delete(self, session: str) -> None:
        self.path(session).rename(f"{self.path(session)}.deleted.2026-03-18T04-02-18.203Z")

    def tear_last_line(self, session: str, role: Role, text: str, at: datetime) -> str:
        entry = self.entry(session, role, text, at)
        line = compact(entry) + b"\n"
        with open(self.path(session), "ab") as file:
            file.write(line[: len(line) // 2])
        self.torn = line[len(line) // 2 :]
        return f"{session}/{entry['id']}"

    def complete(self, session: str) -> None:
        with open(self.path(session), "ab") as file:
            file.write(self.torn)

    def shrink_to_tail(self, session: str, keep: int) -> None:
        first, *rest = self.path(session).read_bytes().splitlines(keepends=True)
        self.path(session).write_bytes(first + b"".join(rest[-2 * keep :]))

    def expire(self, session: str) -> datetime:
        raise NotImplementedError  # the host keeps every session until the person deletes it

    def branch(self, session: str, keep: int) -> None:
        del self.said[session][keep:]

    def fork(self, session: str, name: str) -> str:
        copy = session_id(name)
        first, *rest = self.path(session).read_bytes().splitlines(keepends=True)
        parent = {"parentSession": str(self.path(session))}
        self.path(copy).write_bytes(compact(json.loads(first) | {"id": copy} | parent) + b"\n" + b"".join(rest))
        self.said[copy] = list(self.said[session])
        return copy

    def absent(self) -> None:
        shutil.rmtree(self.root / "agents")

    def drift(self) -> None:
        raise NotImplementedError  # a line of an unknown form is passed over, and the rest is read

    def hold(self) -> None:
        raise NotImplementedError  # nobody can lock a file against reading


SCHEMA = """
CREATE TABLE schema_meta (meta_key TEXT PRIMARY KEY, role TEXT NOT NULL, schema_version INTEGER, agent_id TEXT) STRICT;
CREATE TABLE session_windows (
  session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, session_scope TEXT NOT NULL DEFAULT 'conversation',
  acp_owned INTEGER NOT NULL DEFAULT 0, hook_external_content_source TEXT, chat_type TEXT, channel TEXT, spawned_by TEXT
) STRICT;
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL REFERENCES session_windows(session_id) ON DELETE CASCADE, seq INTEGER NOT NULL,
  event_json TEXT, created_at INTEGER NOT NULL, event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT,
  PRIMARY KEY (session_id, seq)
) STRICT;
CREATE TABLE transcript_event_identities (
  session_id TEXT NOT NULL, event_id TEXT NOT NULL, seq INTEGER NOT NULL, event_type TEXT, created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, event_id),
  FOREIGN KEY (session_id, seq) REFERENCES transcript_events(session_id, seq) ON DELETE CASCADE
) STRICT;
CREATE TABLE transcript_rewrite_watermarks (
  session_id TEXT NOT NULL PRIMARY KEY, generation TEXT NOT NULL, updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE memory_session_tombstones (
  session_id TEXT NOT NULL PRIMARY KEY, agent_id TEXT NOT NULL, reason TEXT NOT NULL, created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_transcript_archives (
  session_id TEXT NOT NULL, generation TEXT NOT NULL, session_key TEXT NOT NULL, reason TEXT NOT NULL,
  archive_name TEXT NOT NULL, PRIMARY KEY (session_id, generation)
) STRICT;
CREATE TABLE session_nodes (
  session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL, created_via TEXT, spawned_by TEXT
) STRICT;
CREATE TABLE session_transcript_index_state (
  session_id TEXT NOT NULL PRIMARY KEY, indexed_seq INTEGER NOT NULL, needs_rebuild INTEGER NOT NULL DEFAULT 0,
  active_event_count INTEGER NOT NULL DEFAULT 0,
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE session_transcript_active_events (
  session_id TEXT NOT NULL, active_position INTEGER NOT NULL, event_seq INTEGER NOT NULL,
  PRIMARY KEY (session_id, active_position),
  FOREIGN KEY (session_id, event_seq) REFERENCES transcript_events(session_id, seq) ON DELETE CASCADE
) STRICT;
CREATE TABLE session_transcript_cold_archives (
  session_id TEXT NOT NULL PRIMARY KEY, archive_name TEXT NOT NULL UNIQUE, archive_bytes INTEGER NOT NULL,
  archived_at INTEGER NOT NULL, storage TEXT NOT NULL, archive_blob BLOB,
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE
) STRICT;
CREATE TABLE auth_profile_store (store_key TEXT PRIMARY KEY, store_json TEXT) STRICT;
"""


class SqliteLog(Log):
    """The SQLite era: <state>/agents/main/agent/openclaw-agent.sqlite, with every other event compressed."""

    def __init__(self, root: Path, agent: str = "main") -> None:
        self.root = root
        self.home = root / "agents" / agent
        self.path = self.home / "agent" / "openclaw-agent.sqlite"
        self.path.parent.mkdir(parents=True)
        self.count = 0
        self.said: dict[str, list[int]] = {}
        """Of each session the last row of each turn on its branch."""
        self.db = apsw.Connection(str(self.path))
        self.db.set_busy_timeout(1000)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA foreign_keys = ON")
        self.db.execute(SCHEMA)
        self.db.execute("INSERT INTO schema_meta VALUES ('primary', 'agent', 23, ?)", (agent,))

    def source(self) -> TranscriptSource:
        return TranscriptSource(Folders(None, self.root))

    def new_session(self, name: str, key: str = "agent:main:main", **columns: Any) -> str:
        session = session_id(name)
        names = ", ".join(["session_id", "session_key", *columns])
        marks = ", ".join("?" * (2 + len(columns)))
        self.db.execute(f"INSERT INTO session_windows ({names}) VALUES ({marks})", (session, key, *columns.values()))
        self.db.execute("INSERT INTO transcript_rewrite_watermarks VALUES (?, 'g0', 0)", (session,))
        self.write(session, header(session))
        return session

    def write(self, session: str, *entries: Any) -> None:
        for entry in entries:
            ((last,),) = self.db.execute("SELECT max(seq) FROM transcript_events WHERE session_id = ?", (session,))
            self.put(session, 0 if last is None else last + 1, entry)

    def put(self, session: str, seq: int, entry: Any, packed: bool | None = None) -> None:
        raw = entry if isinstance(entry, bytes) else compact(entry)
        packed = seq % 2 == 1 if packed is None else packed
        self.db.execute(
            "INSERT INTO transcript_events VALUES (?, ?, CAST(? AS TEXT), ?, ?, ?, ?)",
            (session, seq, None if packed else raw, ms(START), zstd.compress(raw) if packed else None, len(raw), "{}"),
        )
        if isinstance(entry, dict) and "id" in entry:
            self.db.execute(
                "INSERT INTO transcript_event_identities VALUES (?, ?, ?, ?, 0)",
                (session, entry["id"], seq, entry.get("type")),
            )

    def append(self, session: str, role: Role, text: str, at: datetime) -> str:
        self.count += 1
        entry = f"{self.count:08x}-1111-4000-8000-000000000000"
        self.write(session, (user if role == "user" else assistant)(entry, text, at), tool_result(f"{entry}-r", text))
        self.said.setdefault(session, []).append(self.last(session))
        self.look(session)
        return f"{session}/{entry}"

    def last(self, session: str) -> int:
        ((last,),) = self.db.execute("SELECT max(seq) FROM transcript_events WHERE session_id = ?", (session,))
        return int(last)

    def look(self, session: str) -> None:
        """The host looks which events are on the branch: each turn's message and tool result, and never the header."""
        seqs = [seq for end in self.said[session] for seq in (end - 1, end)]
        with self.db:
            self.db.execute("DELETE FROM session_transcript_active_events WHERE session_id = ?", (session,))
            self.db.executemany(
                "INSERT INTO session_transcript_active_events VALUES (?, ?, ?)",
                [(session, position, seq) for position, seq in enumerate(seqs)],
            )
            self.db.execute(
                "REPLACE INTO session_transcript_index_state VALUES (?, ?, 0, ?)",
                (session, self.last(session), len(seqs)),
            )

    def rename_reset(self, session: str) -> None:
        self.write(
            session, {"type": "reset", "id": f"{self.last(session):08x}-reset", "parentId": None, "reason": "new"}
        )

    def delete(self, session: str) -> None:
        name = f"{session}.jsonl.deleted.2026-03-18T04-02-18.203Z.26c64bf5.zst"
        self.db.execute("DELETE FROM session_windows WHERE session_id = ?", (session,))
        self.db.execute("INSERT INTO session_transcript_archives VALUES (?, 'g0', '', 'deleted', ?)", (session, name))
        (self.home / "sessions").mkdir(exist_ok=True)
        (self.home / "sessions" / name).write_bytes(zstd.compress(b"{}\n"))

    def events(self, session: str) -> list[dict[str, Any]]:
        return [
            json.loads(text) if text is not None else json.loads(zstd.decompress(blob))
            for text, blob in self.db.execute(
                "SELECT event_json, event_zstd FROM transcript_events WHERE session_id = ? ORDER BY seq", (session,)
            )
        ]

    def rewrite(self, session: str, *entries: Any) -> None:
        """The whole session anew, as the host does it."""
        with self.db:
            self.db.execute("DELETE FROM transcript_events WHERE session_id = ?", (session,))
            self.db.execute("DELETE FROM session_transcript_index_state WHERE session_id = ?", (session,))
            self.write(session, *entries)
            self.db.execute(
                "UPDATE transcript_rewrite_watermarks SET generation = generation || '+' WHERE session_id = ?",
                (session,),
            )

    def cool(self, session: str, blob: bool) -> Path | None:
        """The rows move into a cold archive: a file, or a blob in the database itself."""
        packed = zstd.compress(b"".join(compact(entry) + b"\n" for entry in self.events(session)))
        name = f"{hashlib.sha256(packed).hexdigest()}.jsonl.zst"
        with self.db:
            self.db.execute("DELETE FROM transcript_events WHERE session_id = ?", (session,))
            self.db.execute(
                "INSERT INTO session_transcript_cold_archives VALUES (?, ?, ?, ?, ?, ?)",
                (session, name, len(packed), ms(START), "sqlite" if blob else "file", packed if blob else None),
            )
        if blob:
            return None
        file = self.home / "sessions" / "cold" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(packed)
        return file

    def shrink_to_tail(self, session: str, keep: int) -> None:
        raise NotImplementedError  # what the host wants out of the way goes into an archive

    def expire(self, session: str) -> datetime:
        raise NotImplementedError  # the host keeps every session until the person deletes it

    def branch(self, session: str, keep: int) -> None:
        del self.said[session][keep:]
        self.look(session)

    def fork(self, session: str, name: str) -> str:
        copy = self.new_session(name, f"agent:main:{name}")
        self.write(copy, *self.events(session)[1:])
        self.said[copy] = list(self.said[session])
        self.look(copy)
        return copy

    def absent(self) -> None:
        self.db.close()
        shutil.rmtree(self.root / "agents")

    def drift(self) -> None:
        self.db.execute("PRAGMA foreign_keys = OFF")
        self.db.execute("ALTER TABLE transcript_events RENAME TO transcript_entries")

    def corrupt(self) -> None:
        self.db.close()
        damage(self.path, lambda data: data[:4096] + b"\xff" * (len(data) - 4096))

    def hold(self) -> None:
        self.db.execute("PRAGMA journal_mode = DELETE")
        self.db.execute("BEGIN EXCLUSIVE")

    def tear_last_line(self, session: str, role: Role, text: str, at: datetime) -> str:
        raise NotImplementedError  # a row is there or it is not


class TestFilesEra(SourceContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> FilesLog:
        return FilesLog(tmp_path)


class TestSqliteEra(SourceContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> SqliteLog:
        return SqliteLog(tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> FilesLog:
    return FilesLog(tmp_path)


@pytest.fixture
def rows(tmp_path: Path) -> SqliteLog:
    return SqliteLog(tmp_path)


@pytest.fixture(params=[FilesLog, SqliteLog])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> FilesLog | SqliteLog:
    made: FilesLog | SqliteLog = request.param(tmp_path)
    return made


def batches_of(source: MessageSource, limit: int = 1000) -> list[Batch]:
    return [batch for stream in source.streams() for batch in drain(source, stream, limit=limit)]


def skipped(batches: Iterable[Batch]) -> Counter[str]:
    total: Counter[str] = Counter()
    for batch in batches:
        total.update(batch.skipped)
    return total


def notes(messages: Iterable[Message]) -> list[tuple[str, str]]:
    return [(m.origin, m.note) for m in messages]


def reasons(batches: Iterable[Batch]) -> list[str]:
    return [fault.reason for batch in batches for fault in batch.faults]


# --- the recorded gateways -------------------------------------------------------------------------------------------


def shared(*parts: str) -> Path:
    path = helpers.shared(*parts)
    if path is None:
        pytest.skip("the shared test data is not there; set CLAWMARK_SHARED")
    return path


def recorded(version: str) -> TranscriptSource:
    return TranscriptSource(Folders(shared("fixtures", "openclaw", version, "state"), Path("nowhere")))


def test_the_recorded_files_give_exactly_their_messages() -> None:
    batches = batches_of(recorded("2026.5.28"), limit=3)
    counts = Counter(notes(messages_of(batches)))
    assert counts == {
        ("owner", ""): 13,
        ("assistant", ""): 14,
        ("host", "heartbeat"): 2,
        ("host", "subagent"): 2,
        ("host", "slash_command"): 3,
        ("host", "no_reply"): 1,
        ("host", "failed_turn"): 1,
    }
    assert skipped(batches) == {
        "session_header": 4,
        "model_change": 4,
        "thinking_level_change": 4,
        "custom": 4,
        "tool_call": 3,
        "tool_result": 3,
    }
    assert reasons(batches) == []


def test_the_recorded_database_gives_exactly_its_messages() -> None:
    batches = batches_of(recorded("2026.9.6"), limit=2)
    counts = Counter(notes(messages_of(batches)))
    assert counts == {
        ("owner", ""): 10,
        ("assistant", ""): 9,
        ("host", "heartbeat"): 2,
        ("host", "cron"): 2,
        ("host", "subagent"): 2,
        ("host", "no_reply"): 1,
        ("host", "gateway_note"): 1,
    }
    assert skipped(batches) == {
        "session_header": 4,
        "model_change": 6,
        "thinking_level_change": 6,
        "custom": 6,
        "tool_call": 1,
        "tool_result": 1,
        "compaction": 1,
        "reset": 2,
    }
    assert reasons(batches) == []


def test_the_recorded_database_agrees_with_its_decompressed_copy() -> None:
    copy = shared("fixtures", "openclaw", "2026.9.6", "transcript_events.jsonl").read_text().splitlines()
    said = set()
    for row in map(json.loads, copy):
        inner = row["event"].get("message", {})
        content = inner.get("content") or []
        spoken = isinstance(content, str) or any(part["type"] == "text" for part in content)
        if inner.get("role") in ("user", "assistant") and spoken:
            said.add(f"{row['session_id']}/{row['event']['id']}")
    assert {m.ref for m in everything(recorded("2026.9.6"))} == said


def test_a_recorded_long_message_is_decompressed_and_read_back() -> None:
    source = recorded("2026.9.6")
    (long,) = [m for m in everything(source) if m.text.startswith("a long one")]
    assert len(long.text) > 2500 and long.location == "17"
    assert source.get([Wanted(long.stream, long.ref, long.location)]) == [long]


def test_recorded_windows_begin_at_resets_and_compactions() -> None:
    windows = [m.window for m in everything(recorded("2026.9.6")) if m.session.startswith("cd302a93")]
    assert list(dict.fromkeys(windows)) == ["", "608b9a52-5d1d-4545-bdb9-0ae615e82c6f", "0178bb33", "e8c4d957"]


def test_a_recorded_deleted_session_stays_away() -> None:
    source = recorded("2026.9.6")
    assert not [s for s in source.streams() if s.session.startswith("b826b484")]
    session = "b826b484-390a-40e1-983c-b9542e2ae94c"
    assert source.get([Wanted(f"sqlite:main/{session}", f"{session}/x", "4")]) == [Gone(f"{session}/x")]


def test_the_recorded_data_is_read_without_a_trace(tmp_path: Path) -> None:
    for version in ("2026.5.28", "2026.9.6"):
        state = tmp_path / version
        shutil.copytree(shared("fixtures", "openclaw", version, "state"), state)
        before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
        source = TranscriptSource(Folders(state, Path("nowhere")))
        source.get(wanted(everything(source)))
        assert {path: path.read_bytes() for path in state.rglob("*") if path.is_file()} == before


# --- hostile lines ---------------------------------------------------------------------------------------------------


NO_FAULT = {"own/array_line", "own/empty_line", "own/spaces"}
"""Rows that the corpus passes over and that are well-formed: nothing is lost with them, so nothing is reported."""


def hostile_lines() -> list[tuple[str, str, bytes]]:
    lines = shared("corpora", "hostile_lines.jsonl").read_text().splitlines()
    return [(row["name"], row["expect"], base64.b64decode(row["b64"])) for row in map(json.loads, lines)]


def test_what_follows_a_hostile_line_is_read_as_without_it(tmp_path: Path) -> None:
    first, last = user("first", "before it"), user("last", "behind it", START + timedelta(minutes=1))
    log = FilesLog(tmp_path)
    for number, (name, expect, line) in enumerate(hostile_lines()):
        session = f"s{number}"
        log.write(session, header(session), first, line, last)
        source = log.source()
        stream = Stream(f"file:main/{session}.jsonl", "", "main", session)
        for limit in (1, 9):
            batches = drain(source, stream, limit=limit)
            refs = [m.ref for m in messages_of(batches)]
            assert refs[0] == f"{session}/first" and refs[-1] == f"{session}/last", name
            if expect == "skip" and name not in NO_FAULT:
                assert reasons(batches), f"{name} was lost in silence"
                assert len(refs) == 2, name
            elif expect == "ok":
                assert not reasons(batches), name
                if not name.startswith("jsontestsuite/"):
                    spoken = json.loads(line.decode("utf-8-sig"))["text"].strip()
                    assert len(refs) == (3 if spoken else 2), f"{name} is a message"
        os.unlink(log.path(session))


def test_what_follows_a_hostile_row_is_read_as_without_it(rows: SqliteLog) -> None:
    session = rows.new_session("a")
    first, last = user("first", "before it"), user("last", "behind it", START + timedelta(minutes=1))
    rows.db.execute("PRAGMA foreign_keys = OFF")
    for name, expect, line in hostile_lines():
        with rows.db:
            rows.db.execute("DELETE FROM transcript_events")
            rows.db.execute("DELETE FROM transcript_event_identities")
            for seq, entry in enumerate((first, line, last)):
                rows.put(session, seq, entry, packed=bool(seq))
        source = rows.source()
        (stream,) = source.streams()
        for limit in (1, 9):
            batches = drain(source, stream, limit=limit)
            refs = [m.ref for m in messages_of(batches)]
            assert refs[0] == f"{session}/first" and refs[-1] == f"{session}/last", name
            if expect == "skip" and name not in NO_FAULT:
                assert reasons(batches), f"{name} was lost in silence"
            elif expect == "ok":
                assert not reasons(batches), name


def test_hostile_texts_are_read_back_as_they_were_read(tmp_path: Path) -> None:
    log = FilesLog(tmp_path)
    lines = [line for name, expect, line in hostile_lines() if expect == "ok" and not name.startswith("jsontestsuite/")]
    log.write("s", header("s"), *(line.replace(b'"id": "h"', f'"id": "e{n}"'.encode()) for n, line in enumerate(lines)))
    source = log.source()
    read = everything(source)
    assert all(m.text == m.text.encode("utf-8", "strict").decode() for m in read)
    assert [(m.ref, m.text) for m in source.get(wanted(read)) if isinstance(m, Message)] == [
        (m.ref, m.text) for m in read
    ]


BAD = [
    (b'{"id":"x","role":"user","text":"a', "invalid_json"),
    (b'{"id":"x","role":"user","text":"\xff"}', "invalid_utf8"),
    (b'{"id":"x","role":"user","text":"\xed\xa0\xbd"}', "invalid_utf8"),
    (b'{"id":"x","role":"user","text":"a","n":NaN}', "number_constant"),
    (b'{"id":"x","role":"user","text":"a","n":-Infinity}', "number_constant"),
    (b'{"id":"x","role":"user","text":"a","n":' + b"9" * 4301 + b"}", "number_size"),
    (b'{"id":"x","role":"user","text":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too_deep"),
    (b'{"id":"x","role":["user"],"text":"a"}', "role_type"),
    (b'{"id":"x","role":"user","text":null}', "text_type"),
    (b'{"id":"x","role":"user","content":[{"type":"text","text":5}]}', "text_type"),
    (b'{"type":"message","id":"x","message":null}', "message_type"),
    (b'{"type":"message","id":"x","message":{"content":"a"}}', "role_type"),
    (b'{"id":"x"} {"id":"y"}', "invalid_json"),
    (b"\xef\xbb\xbf", "invalid_json"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_an_unreadable_entry_costs_itself_alone(log: FilesLog | SqliteLog, line: bytes, reason: str) -> None:
    session = log.new_session("a")
    log.write(session, user("before", "one"), line, user("behind", "two"))
    batches = batches_of(log.source())
    assert [m.text for m in messages_of(batches)] == ["one", "two"]
    assert reasons(batches) == [reason]


def test_a_fault_says_where_it_stands_and_nothing_else(files: FilesLog, tmp_path: Path) -> None:
    session = files.new_session("a")
    at = files.path(session).stat().st_size
    files.write(session, b'{"secret":')
    (fault,) = [fault for batch in batches_of(files.source()) for fault in batch.faults]
    assert (fault.reason, fault.where) == ("invalid_json", f"{session}.jsonl:{at}")
    rows = SqliteLog(tmp_path, "other")
    session = rows.new_session("b")
    rows.write(session, b'{"secret":')
    faults = [fault for batch in batches_of(rows.source()) for fault in batch.faults]
    assert [fault.where for fault in faults if "#" in fault.where] == [f"{session}#1"]


def test_what_is_no_message_is_counted_and_no_fault(files: FilesLog) -> None:
    session = files.new_session("a")
    files.write(session, b"[1,2,3]", b"7", b'"text"', b"null", b"{}", b"", b"  \t ", b"\r")
    batches = batches_of(files.source())
    assert skipped(batches) == {"session_header": 1, "custom": 1, "not_a_message": 5, "blank": 3}
    assert reasons(batches) == []


def test_a_generic_line_is_a_message(files: FilesLog) -> None:
    files.write(
        "plain",
        {"id": "1", "role": "user", "text": "hello", "timestamp": "2026-03-02T09:00:00Z"},
        {"id": 2, "role": "assistant", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        b"\xef\xbb\xbf" + compact({"id": "3", "role": "user", "content": "with a mark"}) + b"\r",
    )
    read = everything(files.source())
    assert [(m.ref, m.text, m.origin) for m in read] == [
        ("plain/1", "hello", "owner"),
        ("plain/2", "one\ntwo", "assistant"),
        ("plain/3", "with a mark", "owner"),
    ]
    assert [m.at for m in read] == [START] * 3


def test_lone_surrogates_become_replacement_characters(log: FilesLog | SqliteLog) -> None:
    session = log.new_session("a")
    log.write(session, rb'{"id":"x\udc00","role":"user","text":"\ud83d alone, \ud83d\ude00 paired"}')
    (read,) = everything(log.source())
    assert (read.text, read.ref) == ("\ufffd alone, \U0001f600 paired", f"{session}/x\ufffd")


def test_entries_without_an_id_have_a_stable_ref(log: FilesLog | SqliteLog) -> None:
    session = log.new_session("a")
    log.write(session, {"role": "user", "text": "no id", "timestamp": 5}, {"role": "user", "text": "other"})
    source = log.source()
    one, other = everything(source)
    assert one.ref.startswith(f"{session}/@") and other.ref != one.ref
    for hint in ("", "0:3", one.location):
        assert source.get([Wanted(one.stream, one.ref, hint)]) == [one]


STAMPS = ["yesterday", 9e18, float("inf"), -5, True, None, [], "9" * 30, "10000-01-01"]


@pytest.mark.parametrize("stamp", STAMPS)
def test_an_entry_without_a_readable_time_has_that_of_what_stands_before_it(
    log: FilesLog | SqliteLog, stamp: Any
) -> None:
    session = log.new_session("a")
    late = {"id": "c", "role": "user", "text": "third", "timestamp": stamp}
    first = {"id": "a", "role": "user", "text": "first", "timestamp": 0}
    second = user("b", "second", START + timedelta(days=1))
    log.write(session, first, second, json.dumps(late).replace("Infinity", "1e999").encode())
    for limit in (1, 9):
        (stream,) = log.source().streams()
        read = messages_of(drain(log.source(), stream, limit=limit))
        assert [(m.at, m.dated) for m in read] == [
            (START, False),  # that of the header
            (START + timedelta(days=1), True),
            (START + timedelta(days=1), False),
        ]


def test_where_nothing_has_a_time_it_is_1970(files: FilesLog) -> None:
    files.write("s", {"id": "a", "role": "user", "text": "hello"})
    (read,) = everything(files.source())
    assert (read.at, read.dated) == (datetime(1970, 1, 1, tzinfo=UTC), False)


def test_a_stream_says_when_it_was_last_written(tmp_path: Path) -> None:
    files, rows = FilesLog(tmp_path / "files"), SqliteLog(tmp_path / "rows")
    session = files.new_session("a")
    os.utime(files.path(session), (START.timestamp(), START.timestamp()))
    rows.new_session("a")
    assert [s.touched for log in (files, rows) for s in log.source().streams()] == [START, START]


@pytest.mark.parametrize("folder", ["/home/ada", "C:\\Users\\ada\\work", "\\\\server\\share", ""])
def test_a_message_tells_where_the_host_worked(log: FilesLog | SqliteLog, folder: str) -> None:
    session = session_id("a")
    entries = [header(session) | {"cwd": folder}, user("1", "hello")]
    if isinstance(log, SqliteLog):
        log.new_session("a")
        log.rewrite(session, *entries)
    else:
        log.write(session, *entries)
    source = log.source()
    (read,) = everything(source)
    assert read.folder == folder
    assert source.get(wanted([read])) == [read]


def test_times_are_read_in_every_form_the_host_writes(files: FilesLog) -> None:
    forms = [ms(START), ms(START) / 1000, str(ms(START)), iso(START), "2026-03-02T10:00:00+01:00", "2026-03-02 09:00"]
    files.write("s", *({"id": str(n), "role": "user", "text": "x", "timestamp": t} for n, t in enumerate(forms)))
    assert {m.at for m in everything(files.source())} == {START}


# --- long lines, long files ------------------------------------------------------------------------------------------


def test_a_line_too_long_is_passed_over_without_being_held(files: FilesLog) -> None:
    session = files.new_session("a")
    files.write(session, user("before", "one"))
    with open(files.path(session), "ab") as file:
        file.write(b'{"id":"x","role":"user","text":"')
        for _ in range(100):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n')
    files.write(session, user("behind", "two"))
    source = files.source()
    (stream,) = source.streams()
    tracemalloc.start()
    batches = drain(source, stream, limit=1)
    source.get(wanted(messages_of(batches), ""))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [m.text for m in messages_of(batches)] == ["one", "two"]
    assert reasons(batches) == ["oversize"]
    assert peak < 40 << 20


def test_a_line_just_under_the_limit_is_read(files: FilesLog) -> None:
    session = files.new_session("a")
    text = "y" * ((8 << 20) - 1000)
    files.write(session, user("long", text), user("behind", "two"))
    source = files.source()
    read = everything(source)
    assert [len(m.text) for m in read] == [len(text), 3]
    assert source.get(wanted(read)) == read


@pytest.mark.parametrize("chunk", [1, 7, 64, 300, 401])
def test_lines_are_read_the_same_wherever_chunks_fall(
    files: FilesLog, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(lines, "LINE_LIMIT", 400)
    monkeypatch.setattr(lines, "CHUNK", chunk)
    session = files.new_session("a")
    for n in range(20):
        files.write(session, user(str(n), "x" * (n * 13)), b"", b"y" * (n * 60), tool_result(f"r{n}", "z" * 30 * n))
    source = files.source()
    (stream,) = source.streams()
    for limit in (1, 4, 99):
        batches = drain(source, stream, limit=limit)
        read = messages_of(batches)
        assert [m.text for m in read] == ["x" * (n * 13) for n in range(1, 20) if n * 13 < 400 - 146]
        assert skipped(batches)["blank"] == 21
        lost = Counter(reasons(batches))
        assert lost["invalid_json"] == 6
        assert len(read) + lost.total() + skipped(batches).total() == 2 + 4 * 20
        assert source.get(wanted(read, "")) == read


def test_reading_many_files_lists_their_folder_once(files: FilesLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcdefgh":
        files.append(files.new_session(name), "user", "hello", START)
    for place in (files.root, files.folder):
        source = TranscriptSource(Folders(place, Path("nowhere")))
        streams = list(source.streams())
        listed = 0
        scandir = os.scandir

        def counting(path: Any) -> Any:
            nonlocal listed
            listed += 1
            return scandir(path)  # noqa: B023

        monkeypatch.setattr(jsonl.os, "scandir", counting)
        assert [len(messages_of(drain(source, stream))) for stream in streams] == [1] * 8
        monkeypatch.undo()
        assert listed == 0


def test_each_batch_reads_only_what_it_gives(files: FilesLog, monkeypatch: pytest.MonkeyPatch) -> None:
    session = files.new_session("a")
    for n in range(300):
        files.append(session, "user", f"{n} " + "word " * 2000, START)
    source = files.source()
    (stream,) = source.streams()
    read = 0
    pread = os.pread

    def counting(fd: int, count: int, offset: int) -> bytes:
        nonlocal read
        data = pread(fd, count, offset)
        read += len(data)
        return data

    monkeypatch.setattr(jsonl.os, "pread", counting)
    assert len(messages_of(drain(source, stream, limit=20))) == 300
    assert read < 3 * files.path(session).stat().st_size


def test_reading_back_costs_one_small_read_a_message(files: FilesLog, monkeypatch: pytest.MonkeyPatch) -> None:
    session = files.new_session("a")
    for n in range(2000):
        files.append(session, "user", f"{n} " + "word " * 200, START)
    source = files.source()
    read = everything(source)[::100]
    sizes: list[int] = []
    pread = os.pread

    def counting(fd: int, count: int, offset: int) -> bytes:
        sizes.append(count)
        return pread(fd, count, offset)

    monkeypatch.setattr(jsonl.os, "pread", counting)
    assert source.get(wanted(read)) == read
    assert len(sizes) == len(read) + 1 and max(sizes) < 20_000


def test_no_file_is_left_open(log: FilesLog | SqliteLog) -> None:
    def open_files() -> int:
        return len(os.listdir("/dev/fd"))

    session = log.new_session("a")
    log.write(session, user("x", "one"), b"garbage")
    if isinstance(log, SqliteLog):
        log.db.close()  # SQLite keeps a descriptor as long as another connection of the process has locks
    before = open_files()
    source = log.source()
    for _ in range(3):
        source.check()
        source.describe()
        read = everything(source)
        source.get(wanted(read))
        source.get(wanted(read, ""))
        source.get([Wanted(read[0].stream, "x/y", "0")])
        assert open_files() == before


# --- which lines are told by their head ------------------------------------------------------------------------------


def test_lines_told_by_their_head_are_told_as_by_parsing() -> None:
    from clawmark_sources.jsonline import parse
    from clawmark_sources.openclaw.messages import Past, Run, read_entry

    told = 0
    for path in shared("fixtures", "openclaw").rglob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            event = json.loads(line).get("event")
            raw = compact(event) if isinstance(event, dict) and "type" in event else line
            reason = passed_over(raw, 0, len(raw))
            if reason is not None:
                told += 1
                assert reason == read_entry(parse(raw), Run("", "", "", "direct"), Past(), "")
    assert told > 20


@pytest.mark.parametrize(
    "text",
    [
        '"role":"toolResult"',
        '{"type":"message","message":{"role":"toolResult"',
        ',"message":{"role":"toolResult",',
        "}",
    ],
)
def test_no_text_can_pass_itself_off_as_a_tool_result(log: FilesLog | SqliteLog, text: str) -> None:
    session = log.new_session("a")
    log.write(session, user("u", text), assistant("a", text))
    assert [m.text for m in everything(log.source())] == [text, text]


def test_a_short_line_is_not_judged_by_the_next_one(files: FilesLog) -> None:
    session = files.new_session("a")
    files.write(session, {"type": "message", "id": "1", "role": "user", "text": "short"}, tool_result("r", "x"))
    assert [m.text for m in everything(files.source())] == ["short"]


def test_a_cut_tool_result_is_noticed(files: FilesLog) -> None:
    session = files.new_session("a")
    files.write(session, compact(tool_result("r", "x" * 500))[:300], user("u", "next"))
    batches = batches_of(files.source())
    assert reasons(batches) == ["invalid_json"] and [m.text for m in messages_of(batches)] == ["next"]


# --- who speaks ------------------------------------------------------------------------------------------------------

ENVELOPE = "[Mon 2026-03-02 09:00 UTC] "


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        (user("x", "[OpenClaw heartbeat poll]"), "heartbeat"),
        (user("x", ENVELOPE + "Read HEARTBEAT.md if it exists"), "heartbeat"),
        (user("x", "[cron:917c c1] say the time"), "cron"),
        (user("x", ENVELOPE + "[Inter-session message] sourceSession=a"), "inter_session"),
        (user("x", "Pre-compaction memory flush. Store durable memories now."), "memory_flush"),
        (user("x", "tick", provenance={"kind": "internal_system", "sourceTool": "heartbeat"}), "heartbeat"),
        (user("x", "job", provenance={"kind": "internal_system", "sourceTool": "cron"}), "cron"),
        (user("x", "done", provenance={"kind": "inter_session", "sourceTool": "subagent_announce"}), "inter_session"),
    ],
)
def test_the_hosts_prompt_and_its_answers_are_the_hosts(log: FilesLog | SqliteLog, entry: Any, note: str) -> None:
    session = log.new_session("a")
    answers = [assistant("b", "one"), tool_call("c", "ls"), tool_result("d", "x"), assistant("e", "two")]
    log.write(session, user("0", "before"), entry, *answers, user("f", "thanks"), assistant("g", "welcome"))
    source = log.source()
    expected = [("owner", ""), *[("host", note)] * 3, ("owner", ""), ("assistant", "")]
    for limit in (1, 2, 10):
        (stream,) = source.streams()
        assert notes(messages_of(drain(source, stream, limit=limit))) == expected


def test_a_stream_that_begins_as_a_subagents_task_is_the_hosts(log: FilesLog | SqliteLog) -> None:
    session = log.new_session("a")
    log.write(session, user("1", ENVELOPE + "[Subagent Context] You are"), assistant("2", "a"), user("3", "b"))
    (stream,) = log.source().streams()
    for limit in (1, 5):
        assert notes(messages_of(drain(log.source(), stream, limit=limit))) == [("host", "subagent")] * 3


def test_a_quoted_subagent_task_changes_nothing_behind_it(log: FilesLog | SqliteLog) -> None:
    session = log.new_session("a")
    log.write(session, user("1", "hello"), user("2", "[Subagent Context] x"), user("3", "and I say"))
    assert notes(everything(log.source())) == [("owner", ""), ("host", "subagent"), ("owner", "")]


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        (assistant("x", "NO_REPLY"), "no_reply"),
        (assistant("x", "HEARTBEAT_OK all fine"), "no_reply"),
        (assistant("x", "[assistant turn failed before producing content]"), "failed_turn"),
        (assistant("x", "a note", provider="openclaw", model="gateway-injected"), "gateway_note"),
        (assistant("x", "a copy", provider="openclaw", model="delivery-mirror"), "delivery_mirror"),
        (user("x", "/reset"), "slash_command"),
        (user("x", ENVELOPE + "/model opus"), "slash_command"),
        (user("x", "a stranger", __openclaw={"senderIsOwner": False}), "not_owner"),
    ],
)
def test_an_utterance_of_the_host_is_told_by_itself(log: FilesLog | SqliteLog, entry: Any, note: str) -> None:
    session = log.new_session("a")
    log.write(session, user("0", "before"), entry, user("1", "behind"))
    assert notes(everything(log.source())) == [("owner", ""), ("host", note), ("owner", "")]


@pytest.mark.parametrize(
    "text",
    ["/etc/hosts is empty", "/tmp is full", "/", "/Users are many", "/new\nand another line", "see /reset", "/x" * 150],
)
def test_a_path_or_a_sentence_is_no_command(log: FilesLog | SqliteLog, text: str) -> None:
    log.write(log.new_session("a"), user("x", text))
    assert notes(everything(log.source())) == [("owner", "")]


HOST_KEYS = [
    ("agent:main:subagent:1870", "subagent"),
    ("agent:main:cron:917c:run:2382", "cron"),
    ("agent:main:hook:gmail:1", "hook"),
    ("agent:main:internal-session-effects:5", "internal"),
    ("agent:main:acp:7", "acp"),
]


@pytest.mark.parametrize(("key", "note"), HOST_KEYS)
def test_a_host_run_is_told_by_its_session_key(tmp_path: Path, key: str, note: str) -> None:
    files, rows = FilesLog(tmp_path / "files"), SqliteLog(tmp_path / "rows")
    sessions = [files.new_session("a"), rows.new_session("a", key)]
    files.index(**{key: {"sessionId": sessions[0], "sessionFile": f"/x/{sessions[0]}.jsonl"}})
    for log, session in ((files, sessions[0]), (rows, sessions[1])):
        log.write(session, user("1", "task"), assistant("2", "done"))
        (stream,) = log.source().streams()
        assert stream.kind == "host"
        assert notes(everything(log.source())) == [("host", note)] * 2


def test_an_index_that_disagrees_is_believed_by_file_name_first(files: FilesLog) -> None:
    session, other = files.new_session("a"), files.new_session("b")
    for name in (session, other):
        files.write(name, user("1", "whose?"))
    files.index(
        **{
            "agent:main:cron:1": {"sessionId": session, "sessionFile": f"C:\\state\\sessions\\{other}.jsonl"},
            "agent:main:main": {"sessionId": other, "sessionFile": f"/elsewhere/{session}.jsonl"},
        }
    )
    assert [(s.session, s.kind) for s in files.source().streams()] == [(session, "direct"), (other, "host")]
    assert notes(everything(files.source())) == [("owner", ""), ("host", "cron")]
    (files.folder / "sessions.json").write_bytes(b'{"agent:main:cron:1": ')  # being rewritten
    assert notes(everything(files.source())) == [("owner", "")] * 2


def test_a_spawned_session_is_a_host_run(tmp_path: Path) -> None:
    files, rows = FilesLog(tmp_path / "files"), SqliteLog(tmp_path / "rows")
    key = "agent:main:odd"
    sessions = files.new_session("a"), rows.new_session("a", key, spawned_by="agent:main:main")
    files.index(**{key: {"sessionId": sessions[0], "spawnedBy": "agent:main:main"}})
    assert [[s.kind for s in log.source().streams()] for log in (files, rows)] == [["host"], ["host"]]


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("agent:main:main", {"chat_type": "group"}),
        ("agent:main:main", {"chat_type": "channel"}),
        ("agent:main:discord:channel:99", {}),
        ("agent:main:whatsapp:group:1@g.us", {}),
        ("agent:main:main", {"session_scope": "group"}),
    ],
)
def test_in_a_group_a_text_is_the_owners_only_when_the_host_says_so(
    tmp_path: Path, key: str, columns: dict[str, str]
) -> None:
    logs: list[tuple[FilesLog | SqliteLog, str]] = []
    rows = SqliteLog(tmp_path / "rows")
    logs.append((rows, rows.new_session("a", key, **columns)))
    if "session_scope" not in columns:
        files = FilesLog(tmp_path / "files")
        logs.append((files, files.new_session("a")))
        files.index(**{key: {"sessionId": logs[1][1], "chatType": columns.get("chat_type")}})
    for log, session in logs:
        log.write(session, user("1", "mine", __openclaw={"senderIsOwner": True}))
        log.write(session, user("2", "theirs", __openclaw={"senderIsOwner": False}), user("3", "whose?"))
        log.write(session, assistant("4", "hello all"))
        assert [s.kind for s in log.source().streams()] == ["group"]
        origins = [m.origin for m in everything(log.source())]
        assert origins == ["owner", "participant", "participant", "assistant"]


def preamble(**info: Any) -> str:
    sender = {"label": "Mia (7)", "id": "7", "name": "Mia"}
    return (
        f"Conversation info (untrusted metadata):\n```json\n{json.dumps(info, indent=2)}\n```\n\n"
        f"Sender (untrusted metadata):\n```json\n{json.dumps(sender, indent=2)}\n```\n\n"
    )


def test_a_text_that_says_it_is_from_a_group_is_a_participants(log: FilesLog | SqliteLog) -> None:
    session = log.new_session("a")
    text = preamble(is_group_chat=True) + "who is coming?"
    log.write(session, user("1", "alone"), user("2", ENVELOPE + text), user("3", "and I?"))
    for limit in (1, 3):
        (stream,) = log.source().streams()
        read = messages_of(drain(log.source(), stream, limit=limit))
        assert [(m.origin, m.author) for m in read] == [("owner", None), ("participant", "Mia"), ("participant", None)]
        assert read[1].text == ENVELOPE + text


def test_a_name_stays_with_the_owners_text(log: FilesLog | SqliteLog) -> None:
    log.write(log.new_session("a"), user("1", preamble(is_group_chat=False) + "hello"))
    (read,) = everything(log.source())
    assert (read.origin, read.author) == ("owner", "Mia")


def test_each_sender_of_a_group_keeps_their_name(log: FilesLog | SqliteLog) -> None:
    session = log.new_session("a")
    block = "Conversation info (untrusted metadata):\n```json\n" + json.dumps({"is_group_chat": True, "sender": "Jo"})
    log.write(
        session,
        user("1", f"{block}\n```\n\nfirst"),
        user("2", "second", senderName="Mia"),
        user("3", "third", __openclaw={"senderIsOwner": False, "senderName": "Tom"}),
        user("4", "fourth", __openclaw={"senderIsOwner": True, "senderName": "Ada"}),
        user("5", "fifth"),
    )
    read = everything(log.source())
    assert [(m.origin, m.author) for m in read] == [
        ("participant", "Jo"),
        ("participant", "Mia"),
        ("participant", "Tom"),
        ("owner", "Ada"),
        ("participant", None),
    ]


def test_a_topic_nobody_lists_counts_as_a_group(files: FilesLog) -> None:
    session = session_id("a")
    files.write(f"{session}-topic-42", header(session), user("1", "whose?"))
    (read,) = everything(files.source())
    assert (read.origin, read.session, read.stream) == ("participant", session, f"file:main/{session}-topic-42.jsonl")


def test_only_text_is_said(log: FilesLog | SqliteLog) -> None:
    session = log.new_session("a")
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "one"},
        image,
        {"type": "text", "text": "two"},
    ]
    log.write(
        session,
        message("1", "assistant", parts),
        message("2", "user", [image]),
        message("3", "custom", "", customType="openclaw.nested-tool.v1"),
        message("4", "assistant", []),
        message("5", "assistant", [{"type": "thinking", "thinking": "hm"}]),
        message("6", "user", "  \n "),
        message("7", "system", "be good"),
        {"type": "branch_summary", "id": "8"},
        {"type": "something_new", "id": "9"},
        tool_call("10", "ls"),
        tool_result("11", "x"),
    )
    batches = batches_of(log.source())
    assert [m.text for m in messages_of(batches)] == ["one\ntwo"]
    counts = skipped(batches)
    del counts["session_header"], counts["custom"]
    assert counts == {
        "image": 1, "empty": 2, "thinking": 1, "system": 1, "branch_summary": 1, "other_type": 1,
        "tool_call": 1, "tool_result": 1,
    }  # fmt: skip
    assert reasons(batches) == []


def test_a_window_begins_at_each_reset_and_compaction(log: FilesLog | SqliteLog) -> None:
    session = log.new_session("a")
    log.write(session, user("1", "a"), {"type": "compaction", "id": "c1", "summary": "s"}, user("2", "b"))
    log.write(session, {"type": "reset", "id": "r1", "reason": "new"}, assistant("3", "c"), user("4", "d"))
    for limit in (1, 9):
        (stream,) = log.source().streams()
        batches = drain(log.source(), stream, limit=limit)
        assert [m.window for m in messages_of(batches)] == ["", "c1", "r1", "r1"]


# --- branches --------------------------------------------------------------------------------------------------------


def entry(name: str, parent: str | None, role: Role = "user", at: datetime = START) -> dict[str, Any]:
    return (user if role == "user" else assistant)(name, f"said in {name}", at) | {"parentId": parent}


def kept_of(log: FilesLog, session: str, limit: int = 1000) -> list[str]:
    """Entry ids that remain when a session was read to its end and what was taken back is left out."""
    stream = stream_of(log, session)
    batches = drain(log.source(), stream, limit=limit)
    refs = [m.ref for m in messages_of(batches)]
    back = log.source().withdrawn(stream, batches[-1].cursor, refs)
    assert any(batch.took_back for batch in batches) or not back
    return [ref.partition("/")[2] for ref in refs if ref not in back]


def stream_of(log: FilesLog | SqliteLog, session: str) -> Stream:
    return next(stream for stream in log.source().streams() if stream.session == session)


def on_branch(parents: Sequence[int | None]) -> set[int]:
    """The walk over parents from the last entry, as one would do it by hand."""
    found, at = set(), len(parents) - 1
    while at >= 0:
        found.add(at)
        parent = parents[at]
        at = at - 1 if parent is None or parent >= at or parent < 0 else parent
    return found


TREES = strategies.lists(strategies.one_of(strategies.none(), strategies.integers(-1, 30)), min_size=1, max_size=24)
"""Of each entry the one it follows: none, one that is not there, an earlier one, itself or a later one."""


def name_of(number: int) -> str:
    return f"{number & 0xFFFFFFFF:08x}"


@given(TREES)
def test_the_branch_is_the_walk_over_parents_from_the_last_entry(parents: list[int | None]) -> None:
    nodes = [
        (number * 10, (name_of(number).encode(), None if parent is None else name_of(parent).encode()))
        for number, parent in enumerate(parents)
    ]
    tree = grown(nodes)
    assert {n for n in range(len(parents)) if not tree.abandoned(n * 10)} == on_branch(parents)


@given(TREES, strategies.integers(1, 5), strategies.integers(0, 24))
@settings(deadline=None, max_examples=60)
def test_what_remains_of_a_file_is_its_branch_however_it_was_read(
    tmp_path_factory: pytest.TempPathFactory, parents: list[int | None], limit: int, cut: int
) -> None:
    log = FilesLog(tmp_path_factory.mktemp("tree"))
    session = session_id("a")
    written = [entry(name_of(n), None if p is None else name_of(p)) for n, p in enumerate(parents)]
    log.write(session, header(session), *written[:cut])
    cursor = drain(log.source(), stream_of(log, session), limit=limit)[-1].cursor
    log.write(session, *written[cut:])
    stream = stream_of(log, session)
    at_once = messages_of(drain(log.source(), stream))
    in_parts = drain(log.source(), stream, limit=limit)
    assert messages_of(in_parts) == at_once
    assert any(b.took_back for b in in_parts) == any(b.took_back for b in drain(log.source(), stream))
    refs = [f"{session}/{e['id']}" for e in written]
    back = log.source().withdrawn(stream, in_parts[-1].cursor, refs)
    branch = {refs[n] for n in on_branch(parents)}
    assert {*refs} - back == branch <= {m.ref for m in at_once}
    lost = on_branch(parents[:cut]) - on_branch(parents)
    assert not lost or any(batch.took_back for batch in drain(log.source(), stream, cursor, limit))


def test_an_edit_leaves_the_old_branch(files: FilesLog) -> None:
    session = session_id("a")
    files.write(session, header(session), entry("a", None), entry("b", "a", "assistant"), entry("c", "b"))
    files.write(session, entry("d", "a", "assistant"), entry("e", "d"))
    for limit in (1, 2, 9):
        assert kept_of(files, session, limit) == ["a", "d", "e"]


def test_an_edit_of_an_edit_leaves_both(files: FilesLog) -> None:
    session = session_id("a")
    files.write(session, header(session), entry("a", None), entry("b", "a"), entry("c", "b"), entry("d", "b"))
    files.write(session, entry("e", "d"), entry("f", "a"), entry("g", "f"))
    for limit in (1, 2, 9):
        assert kept_of(files, session, limit) == ["a", "f", "g"]
        stream = stream_of(files, session)
        read = [m.ref[-1] for m in messages_of(drain(files.source(), stream, limit=limit))]
        assert read == ["a", "b", "c", "f", "g"], "what is off the branch is not delivered once that is known"


def test_what_is_missing_is_bridged_where_it_is_missing(files: FilesLog) -> None:
    session = session_id("a")
    files.write(session, header(session), entry("a", "nowhere"), entry("b", "a"), entry("c", None), entry("d", "later"))
    files.write(session, {"role": "user", "text": "no id"}, entry("later", "d"), entry("g", "g"))
    assert len(kept_of(files, session)) == 7
    (stream,) = files.source().streams()
    assert not any(batch.took_back for batch in drain(files.source(), stream, limit=1))


def test_an_entry_without_an_id_counts_with_the_one_before_it(files: FilesLog) -> None:
    session = session_id("a")
    said = [{"role": "user", "text": f"no id {n}"} for n in range(2)]
    files.write(session, header(session), entry("a", None), said[0], entry("b", "a"), said[1], entry("c", "a"))
    stream = stream_of(files, session)
    batches = drain(files.source(), stream)
    read = messages_of(batches)
    back = files.source().withdrawn(stream, batches[-1].cursor, [m.ref for m in read])
    assert [m.text for m in read if m.ref not in back] == ["said in a", "no id 0", "said in c"]


def test_a_leaf_moves_the_conversation_back(files: FilesLog) -> None:
    session = session_id("a")
    leaf = {"type": "leaf", "id": "l", "parentId": "c", "timestamp": iso(START), "targetId": "a"}
    files.write(session, header(session), entry("a", None), entry("b", "a"), entry("c", "b"), leaf)
    assert kept_of(files, session) == ["a"]
    files.write(session, entry("d", "a"))
    assert kept_of(files, session, 1) == ["a", "d"]


def test_a_branch_that_tool_calls_begin_is_seen(files: FilesLog) -> None:
    session = session_id("a")
    call, result = tool_call("t", "ls") | {"parentId": "a"}, tool_result("r", "x") | {"parentId": "t"}
    files.write(session, header(session), entry("a", None), entry("b", "a"), call, result, entry("e", "r"))
    assert kept_of(files, session) == ["a", "e"]


def test_growth_behind_an_edit_costs_no_second_look_at_the_file(
    files: FilesLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_id("a")
    files.write(session, header(session), entry("a", None), entry("b", "a"), entry("c", "a"))
    source = files.source()
    cursor = drain(source, stream_of(files, session), limit=1)[-1].cursor
    files.write(session, entry("d", "c"))

    def refused(content: Any) -> Any:
        raise AssertionError("the whole file was read for its tree")

    monkeypatch.setattr(jsonl, "tree_of", refused)
    (batch,) = drain(files.source(), stream_of(files, session), cursor)
    assert [m.text for m in batch.messages] == ["said in d"] and not batch.took_back


def test_what_another_file_of_the_session_still_holds_is_not_withdrawn(files: FilesLog) -> None:
    session = session_id("a")
    files.write(session, header(session), entry("a", None), entry("b", "a"))
    shutil.copy(files.path(session), f"{files.path(session)}.reset.2026-03-01T04-00-00.000Z")
    files.write(session, entry("c", "a"))
    stream = next(s for s in files.source().streams() if s.name.endswith(".jsonl"))
    refs = [f"{session}/{name}" for name in "abc"]
    assert files.source().withdrawn(stream, None, refs) == set()
    os.unlink(f"{files.path(session)}.reset.2026-03-01T04-00-00.000Z")
    assert files.source().withdrawn(stream, None, refs) == {f"{session}/b"}


def test_a_compaction_off_the_branch_begins_no_window(files: FilesLog) -> None:
    session = session_id("a")
    lost = {"type": "compaction", "id": "b2", "parentId": "b", "summary": "s"}
    files.write(session, header(session), entry("a", None), entry("x", "a"), entry("b", "a"), lost, entry("c", "x"))
    read = messages_of(drain(files.source(), stream_of(files, session)))
    assert [(m.ref[-1], m.window) for m in read] == [("a", ""), ("x", ""), ("c", "")]


def test_links_told_by_their_bytes_are_those_told_by_parsing() -> None:
    told = 0
    for path in shared("fixtures", "openclaw").rglob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            event = json.loads(line).get("event")
            raw = compact(event) if isinstance(event, dict) and "type" in event else line
            found = link(raw, 0, len(raw))
            if found is not None:
                told += 1
                assert found == link_of(json.loads(raw))
    assert told > 90


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"message","id":"x","parentId":"y",',
        ',"id":"x","parentId":"y","timestamp":"2026-03-02T09:00:00Z"}',
        ',"id":"x","parentId":null}',
    ],
)
def test_no_text_can_pass_itself_off_as_a_link(text: str) -> None:
    for line in (
        user("u", text),
        {"type": "custom", "data": text, "id": "u"},
        {"id": "u", "role": "user", "text": text},
    ):
        raw = compact(line)
        assert link(raw, 0, len(raw)) in (None, link_of(line))


@pytest.mark.parametrize("unsure", ["needs_rebuild", "behind", "missing"])
def test_rows_the_host_has_not_looked_at_count_as_active(rows: SqliteLog, unsure: str) -> None:
    session = rows.new_session("a")
    refs = [rows.append(session, "user", f"said {n}", START) for n in range(4)]
    rows.branch(session, 2)
    rows.db.execute("PRAGMA foreign_keys = OFF")
    rows.db.execute(
        {
            "needs_rebuild": "UPDATE session_transcript_index_state SET needs_rebuild = 1",
            "behind": "UPDATE session_transcript_index_state SET indexed_seq = 4",
            "missing": "DROP TABLE session_transcript_active_events",
        }[unsure]
    )
    stream = stream_of(rows, session)
    read = everything(rows.source())
    assert [m.ref for m in read] == refs
    assert rows.source().withdrawn(stream, None, refs) == set()
    assert rows.source().get(wanted(read)) == read


def test_what_was_taken_back_is_not_read_back(rows: SqliteLog) -> None:
    session = rows.new_session("a")
    for n in range(3):
        rows.append(session, "user", f"said {n}", START)
    read = everything(rows.source())
    before = stream_of(rows, session).losses
    rows.branch(session, 1)
    assert stream_of(rows, session).losses != before
    back = rows.source().get(wanted(read))
    assert back == [read[0], Gone(read[1].ref), Gone(read[2].ref)]
    assert skipped(batches_of(rows.source()))["off_branch"] == 2


def test_growth_takes_nothing_back(rows: SqliteLog) -> None:
    session = rows.new_session("a")
    rows.append(session, "user", "one", START)
    before = stream_of(rows, session).losses
    rows.append(session, "user", "two", START)
    assert stream_of(rows, session).losses == before


def test_what_a_rewritten_session_holds_no_more_was_taken_back(rows: SqliteLog) -> None:
    session = rows.new_session("a")
    anonymous = {"role": "user", "text": "no id", "timestamp": 5000}
    rows.write(session, user("1", "one"), user("2", "two"), anonymous, anonymous | {"text": "gone without an id"})
    read = [m.ref for m in everything(rows.source())]
    before = stream_of(rows, session)
    rows.rewrite(session, header(session), user("1", "one"), anonymous, user("3", "three"))
    now = stream_of(rows, session)
    assert now.losses != before.losses
    assert rows.source().withdrawn(now, None, [*read, f"{session}/3"]) == {read[1], read[3]}


@pytest.mark.parametrize("blob", [True, False])
def test_a_session_that_went_cold_was_not_taken_back(rows: SqliteLog, blob: bool) -> None:
    session = rows.new_session("a")
    for n in range(3):
        rows.append(session, "user", f"said {n}", START + timedelta(minutes=n))
    read = everything(rows.source())
    stream = stream_of(rows, session)
    rows.cool(session, blob)
    source = rows.source()
    assert source.withdrawn(stream, None, [m.ref for m in read]) == set()
    assert source.fate(stream, None, START) == "gone"
    again = everything(source)
    assert [(m.ref, m.text, m.at, m.session, m.scope) for m in again] == [
        (m.ref, m.text, m.at, m.session, m.scope) for m in read
    ]
    assert [s.name.startswith("sqlite:main/cold/" if blob else "file:main/cold/") for s in source.streams()] == [True]
    assert [m.text for m in source.get(wanted(read)) if isinstance(m, Message)] == [m.text for m in read]
    assert source.get(wanted(again)) == again
    rows.db.execute("INSERT INTO memory_session_tombstones VALUES (?, 'main', 'user', 0)", (session,))
    assert list(rows.source().streams()) == []
    assert rows.source().get(wanted(again)) == [Gone(m.ref) for m in again]


def test_what_was_taken_back_in_the_database_is_so_in_the_files(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path)
    session = rows.new_session("a")
    refs = [rows.append(session, "user", f"said {n}", START) for n in range(3)]
    archive = rows.home / "session-sqlite-import-archive" / f"{session}.jsonl.imported-1"
    archive.parent.mkdir()
    older = user("older", "never came to the database")
    archive.write_bytes(b"".join(compact(e) + b"\n" for e in [*rows.events(session), older]))

    def of_the_file() -> Stream:
        return next(s for s in rows.source().streams() if s.name.startswith("file:"))

    before = of_the_file()
    assert rows.source().withdrawn(before, None, [*refs, f"{session}/older"]) == set()
    rows.branch(session, 2)
    now = of_the_file()
    assert now.losses != before.losses and now.mark == before.mark
    assert rows.source().withdrawn(now, None, [*refs, f"{session}/older"]) == {refs[2]}


# --- files -----------------------------------------------------------------------------------------------------------


def test_trajectory_is_no_transcript(files: FilesLog) -> None:
    session = files.new_session("a")
    files.write(session, user("1", "real"))
    line = compact(user("2", "decoy")) + b"\n"
    for name in (
        f"{session}.trajectory.jsonl",
        f"{session}.trajectory.jsonl.reset.2026-03-18T04-02-18.203Z",
        f"{session}.trajectory-path.json",
        f"{session}.jsonl.lock",
        f"{session}.jsonl.bak.2026-03-18T04-02-18.203Z",
        "other.jsonl.deleted.2026-03-18T04-02-18.203Z",
        "other.jsonl.reset.2026-03-18T04-02-18.203Z.zst",
        "sessions.json.tmp",
    ):
        (files.folder / name).write_bytes(line)
    (files.folder / "folder.jsonl").mkdir()
    (files.folder / "session-sqlite-import-archive").mkdir()
    (files.folder / "session-sqlite-import-archive" / "other.jsonl.imported-1").write_bytes(line)
    (files.folder / "dangling.jsonl").symlink_to(files.folder / "nothing")
    source = files.source()
    assert [s.name for s in source.streams()] == [f"file:main/{session}.jsonl"]
    assert [m.text for m in everything(source)] == ["real"]


def test_what_is_no_plain_file_is_passed_over(files: FilesLog) -> None:
    session = files.new_session("a")
    files.append(session, "user", "real", START)
    (files.folder / "loop.jsonl").symlink_to("loop.jsonl")
    os.mkfifo(files.folder / "fifo.jsonl")
    source = files.source()
    assert [s.name for s in source.streams()] == [f"file:main/{session}.jsonl"]
    os.unlink(files.path(session))
    os.mkfifo(files.path(session))  # between the listing and the reading
    (stream,) = [Stream(f"file:main/{session}.jsonl", "", "main", session)]
    with pytest.raises(SourceError):
        source.read(stream, None, 5)


def test_a_topic_outlives_the_session_it_branched_from(files: FilesLog) -> None:
    session = files.new_session("a")
    files.append(session, "user", "deleted", START)
    files.write(f"{session}-topic-42", header(session), user("1", "stays"))
    files.delete(session)
    assert [m.text for m in everything(files.source())] == ["stays"]


def test_an_unreadable_file_costs_itself_alone(files: FilesLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        files.append(files.new_session(name), "user", f"hello from {name}", START)
    read = everything(files.source())
    opened = os.open

    def refused(path: Any, *values: Any, **named: Any) -> int:
        if str(path) == str(files.path(session_id("b"))):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *values, **named)

    monkeypatch.setattr(jsonl.os, "open", refused)
    source = files.source()
    streams = list(source.streams())
    assert len(streams) == 3
    with pytest.raises(SourceError, match="Permission denied"):
        source.read(streams[1], None, 5)
    for hint in (None, ""):
        back = files.source().get(wanted(read, hint))
        assert [isinstance(m, Gone) for m in back] == [False, True, False]


def test_an_archive_of_a_reset_is_history(files: FilesLog) -> None:
    session = files.new_session("a")
    files.append(session, "user", "old", START)
    files.rename_reset(session)
    other = files.new_session("b")
    files.append(other, "user", "new", START)
    assert sorted(m.text for m in everything(files.source())) == ["new", "old"]


def test_an_archive_of_a_deleted_session_is_not_history(files: FilesLog) -> None:
    session = files.new_session("a")
    files.append(session, "user", "old", START)
    read = everything(files.source())
    shutil.copy(files.path(session), f"{files.path(session)}.reset.2026-03-01T04-00-00.000Z")
    files.delete(session)
    source = files.source()
    assert list(source.streams()) == []
    assert source.get(wanted(read)) == [Gone(read[0].ref)]


def test_a_message_is_found_in_whichever_file_of_its_session_it_stands(files: FilesLog) -> None:
    session = files.new_session("a")
    files.append(session, "user", "old", START)
    read = everything(files.source())
    files.path(session).rename(files.folder / "renamed-by-hand.jsonl")
    (found,) = files.source().get(wanted(read))
    assert isinstance(found, Message) and (found.text, found.stream) == ("old", "file:main/renamed-by-hand.jsonl")


def test_a_message_of_another_session_at_the_same_place_is_not_taken(files: FilesLog) -> None:
    session = files.new_session("a")
    files.write(session, user("1", "mine"))
    read = everything(files.source())
    other = session_id("b")
    files.path(session).write_bytes(compact(header(other)) + b"\n" + compact(user("1", "not mine")) + b"\n")
    assert files.source().get(wanted(read)) == [Gone(read[0].ref)]


def test_a_rewritten_file_is_read_from_its_beginning(files: FilesLog) -> None:
    session = files.new_session("a")
    files.write(session, user("1", "aaaa"), user("2", "bbbb"))
    source = files.source()
    (stream,) = source.streams()
    cursor = drain(source, stream)[-1].cursor
    size = files.path(session).stat().st_size
    files.path(session).write_bytes(files.path(session).read_bytes().replace(b"bbbb", b"cccc"))
    assert files.path(session).stat().st_size == size
    assert [m.text for m in messages_of(drain(source, stream, cursor))] == ["aaaa", "cccc"]


def test_a_file_that_is_one_array_is_one_fault(files: FilesLog) -> None:
    for session, indent in (("one", None), ("many", 2)):
        files.path(session).write_text(json.dumps([user("1", "a"), user("2", "b")], indent=indent))
    batches = batches_of(files.source())
    assert reasons(batches) == ["json_array"] * 2 and all(batch.end for batch in batches)


def test_paths_in_ids_lead_nowhere(files: FilesLog, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(compact(user("1", "secret")) + b"\n")
    files.write("s", {"type": "session", "id": "../../../secret"}, user("../../etc/passwd", "mine"))
    source = files.source()
    (read,) = everything(source)
    assert read.ref == "s/../../etc/passwd"
    assert source.get([Wanted(read.stream, read.ref, "")]) == [read]
    tricks = [
        Wanted("file:main/../../../secret.jsonl", "../../../secret/1", "0:200"),
        Wanted(f"file:main/{secret}", f"{secret}/1", "0:200"),
        Wanted("file:../../secret.jsonl", "secret/1", "0:200"),
    ]
    assert source.get(tricks) == [Gone(want.ref) for want in tricks]


def test_a_header_gives_the_session_and_its_absence_the_files_name(files: FilesLog) -> None:
    files.write("name", header("from-the-header"), user("1", "a"))
    files.write("nameless", user("1", "b"))
    assert [m.ref for m in everything(files.source())] == ["from-the-header/1", "nameless/1"]


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_forgotten_session_is_gone_in_both_eras(tmp_path: Path) -> None:
    rows, files = SqliteLog(tmp_path), None
    session = rows.new_session("a")
    rows.append(session, "user", "forget me", START)
    folder = rows.home / "sessions"
    folder.mkdir()
    (folder / f"{session}.jsonl").write_bytes(compact(header(session)) + b"\n" + compact(user("1", "too")) + b"\n")
    read = everything(rows.source())
    assert len(read) == 2 and files is None
    rows.db.execute("INSERT INTO memory_session_tombstones VALUES (?, 'main', 'user', 0)", (session,))
    source = rows.source()
    assert list(source.streams()) == []
    assert source.get(wanted(read)) == [Gone(m.ref) for m in read]


def test_a_migrated_session_is_one_session(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path)
    session = rows.new_session("a")
    entries = [user("1", "hello"), assistant("2", "hi")]
    rows.write(session, *entries)
    folder = rows.home / "sessions"
    folder.mkdir()
    file = folder / f"{session}.jsonl"
    file.write_bytes(b"".join(compact(e) + b"\n" for e in [header(session), *entries]))
    source = rows.source()
    read = everything(source)
    assert Counter(m.ref for m in read) == {f"{session}/1": 2, f"{session}/2": 2}
    assert {s.name.partition(":")[0] for s in source.streams()} == {"sqlite", "file"}
    file.unlink()
    assert [m.text for m in rows.source().get(wanted(read)) if isinstance(m, Message)] == [m.text for m in read]
    file.write_bytes(b"".join(compact(e) + b"\n" for e in [header(session), *entries]))
    rows.db.execute("DELETE FROM session_windows")
    assert [m.text for m in rows.source().get(wanted(read)) if isinstance(m, Message)] == [m.text for m in read]


def test_an_old_archive_does_not_bring_a_deleted_session_back(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path)
    session = rows.new_session("a")
    rows.append(session, "user", "old", START)
    read = everything(rows.source())
    rows.delete(session)
    line = compact(header(session)) + b"\n" + compact(user("1", "old")) + b"\n"
    archive = rows.home / "session-sqlite-import-archive"
    archive.mkdir()
    (archive / f"{session}.jsonl.imported-1").write_bytes(line)
    (rows.home / "sessions" / f"{session}.jsonl.reset.2026-03-01T04-00-00.000Z").write_bytes(line)
    source = rows.source()
    assert list(source.streams()) == [] and source.get(wanted(read)) == [Gone(read[0].ref)]


def test_a_session_inserted_anew_is_read_from_its_beginning(rows: SqliteLog) -> None:
    session = rows.new_session("a")
    rows.write(session, user("1", "one"), user("2", "two"))
    source = rows.source()
    (stream,) = source.streams()
    cursor = drain(source, stream)[-1].cursor
    with rows.db:
        rows.db.execute("DELETE FROM transcript_events")
        rows.write(session, header(session), user("1", "one"), user("3", "three"))
    (changed,) = source.streams()
    assert [m.text for m in messages_of(drain(source, changed, cursor))] == ["one", "three"]


def test_a_new_generation_changes_the_mark_and_drops_the_cursor(rows: SqliteLog) -> None:
    session = rows.new_session("a")
    rows.write(session, user("1", "one"))
    source = rows.source()
    (stream,) = source.streams()
    cursor = drain(source, stream)[-1].cursor
    rows.db.execute("UPDATE transcript_rewrite_watermarks SET generation = 'g9'")
    (changed,) = source.streams()
    assert changed.mark != stream.mark
    assert [m.text for m in messages_of(drain(source, changed, cursor))] == ["one"]


def test_a_frame_that_swells_is_a_fault(rows: SqliteLog) -> None:
    session = rows.new_session("a")
    rows.put(session, 1, compact(user("1", "x" * (5 << 20))), packed=True)
    rows.put(session, 2, compact(user("2", "next")), packed=False)
    rows.db.execute("INSERT INTO transcript_events VALUES (?, 3, NULL, 0, x'00112233', 9, '{}')", (session,))
    whole = zstd.compress(compact(user("4", "cut" * 500)))
    rows.db.execute("INSERT INTO transcript_events VALUES (?, 4, NULL, 0, ?, 9, '{}')", (session, whole[:-8]))
    rows.db.execute("INSERT INTO transcript_events VALUES (?, 5, NULL, 0, NULL, 9, '{}')", (session,))
    batches = batches_of(rows.source())
    assert reasons(batches) == ["oversize", "zstd", "zstd", "no_event"]
    assert [m.text for m in messages_of(batches)] == ["next"]


@pytest.mark.parametrize(
    "table",
    [
        "session_windows",
        "transcript_rewrite_watermarks",
        "memory_session_tombstones",
        "session_transcript_archives",
        "schema_meta",
        "transcript_event_identities",
        "session_nodes",
        "session_transcript_index_state",
        "session_transcript_active_events",
        "session_transcript_cold_archives",
    ],
)
def test_every_other_table_may_be_missing(rows: SqliteLog, table: str) -> None:
    session = rows.new_session("a")
    rows.append(session, "user", "hello", START)
    rows.db.execute("PRAGMA foreign_keys = OFF")
    rows.db.execute(f"DROP TABLE {table}")
    source = rows.source()
    source.check()
    read = everything(source)
    assert [m.text for m in read] == ["hello"]
    assert source.get(wanted(read, "")) == read


def test_the_scope_is_the_agent_that_the_database_names(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path, "folder")
    rows.append(rows.new_session("a"), "user", "hello", START)
    rows.db.execute("UPDATE schema_meta SET agent_id = 'work'")
    source = rows.source()
    (read,) = everything(source)
    assert (read.scope, read.stream) == ("work", f"sqlite:folder/{session_id('a')}")
    assert source.get(wanted([read])) == [read]


# --- archives --------------------------------------------------------------------------------------------------------

RESET = ".jsonl.reset.2026-03-18T04-02-18.203Z"


def lines_of(session: str, *entries: Any) -> bytes:
    return b"".join((e if isinstance(e, bytes) else compact(e)) + b"\n" for e in [header(session), *entries])


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        (f"{{}}{RESET}", False),
        (f"{{}}{RESET}.26c64bf5.zst", True),
        ("{}.jsonl.imported-1789885304363", False),
        ("session-sqlite-import-archive/{}.jsonl.imported-1789885304363", False),
        ("../session-sqlite-import-archive/{}.jsonl.imported-1789885304363", False),
        ("../session-sqlite-import-archive/{}.jsonl.imported-1789885304363.zst", True),
        (f"cold/{'ab' * 32}.jsonl.zst", True),
    ],
)
def test_every_archive_is_history_until_its_session_is_deleted(files: FilesLog, name: str, packed: bool) -> None:
    session = session_id("a")
    data = lines_of(session, user("1", "one"), assistant("2", "two"))
    path = Path(os.path.normpath(files.folder / name.format(session)))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zstd.compress(data) if packed else data)
    source = files.source()
    read = everything(source)
    assert [(m.ref, m.session, m.stream) for m in read] == [
        (f"{session}/{n}", session, f"file:main/{name.format(session)}") for n in "12"
    ]
    assert {s.session for s in source.streams()} == {session}
    for limit in (1, 9):
        (stream,) = source.streams()
        assert messages_of(drain(files.source(), stream, limit=limit)) == read
    assert source.get(wanted(read)) == read and files.source().get(wanted(read, "")) == read
    (files.folder / f"{session}.jsonl.deleted.2026-03-19T04-02-18.203Z.26c6.zst").write_bytes(b"")
    assert list(files.source().streams()) == []
    assert files.source().get(wanted(read)) == [Gone(m.ref) for m in read]


@pytest.mark.parametrize("reason", ["memory_session_tombstones", "session_transcript_archives"])
def test_an_archive_of_a_session_that_the_database_calls_deleted_is_not_history(tmp_path: Path, reason: str) -> None:
    rows = SqliteLog(tmp_path)
    session = session_id("a")
    data = lines_of(session, user("1", "one"))
    for name in (
        f"sessions/cold/{'ab' * 32}.jsonl.zst",
        f"sessions/{session}{RESET}.26c64bf5.zst",
        f"session-sqlite-import-archive/{session}.jsonl.imported-1",
    ):
        path = rows.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstd.compress(data) if name.endswith(".zst") else data)
    read = everything(rows.source())
    assert len(read) == 3
    values = "(?, 'main', 'user', 0)" if reason == "memory_session_tombstones" else "(?, 'g', '', 'deleted', 'x')"
    rows.db.execute(f"INSERT INTO {reason} VALUES {values}", (session,))
    assert list(rows.source().streams()) == []
    assert rows.source().get(wanted(read)) == [Gone(m.ref) for m in read]


def archive(files: FilesLog, packed: bytes) -> Path:
    path = files.folder / f"{session_id('a')}{RESET}.26c64bf5.zst"
    path.write_bytes(packed)
    return path


def test_the_frames_of_an_archive_are_one_file(files: FilesLog) -> None:
    data = lines_of(session_id("a"), *(user(str(n), f"said {n} " * 5000) for n in range(9)))
    third = len(data) // 3
    archive(files, b"".join(zstd.compress(part) for part in (data[:third], data[third : 2 * third], data[2 * third :])))
    batches = batches_of(files.source(), limit=2)
    assert len(messages_of(batches)) == 9 and reasons(batches) == []


def test_the_last_line_of_an_archive_needs_no_newline(files: FilesLog) -> None:
    archive(files, zstd.compress(lines_of(session_id("a"), user("1", "one"))[:-1]))
    assert [m.text for m in everything(files.source())] == ["one"]


@pytest.mark.parametrize("harm", ["cut", "second frame", "no frame"])
@pytest.mark.parametrize("limit", [1, 100])
def test_of_a_damaged_archive_the_lines_before_the_damage_are_read(files: FilesLog, harm: str, limit: int) -> None:
    texts = [hashlib.sha256(str(n).encode()).hexdigest() * 40 for n in range(200)]
    data = lines_of(session_id("a"), *(user(str(n), text) for n, text in enumerate(texts)))
    packed = zstd.compress(data)
    half = data.index(b"\n", len(data) // 2) + 1
    harmed = {
        "cut": packed[: len(packed) // 2],
        "second frame": zstd.compress(data[:half]) + b"\xff" * 400 + zstd.compress(data[half:]),
        "no frame": data,
    }
    archive(files, harmed[harm])
    source = files.source()
    batches = batches_of(source, limit=limit)
    read = [m.text for m in messages_of(batches)]
    assert read == texts[: len(read)] and len(read) < 200 and bool(read) == (harm != "no frame")
    assert reasons(batches) == ["zstd"]
    (stream,) = source.streams()
    again = source.read(stream, batches[-1].cursor, 5)
    assert again.messages in ([], ()) and again.end and (not again.faults or harm == "no frame")


def test_an_archive_that_swells_is_one_fault(files: FilesLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "CONTENT_LIMIT", 1 << 20)
    archive(files, zstd.compress(b"x" * (50 << 20)))
    tracemalloc.start()
    batches = batches_of(files.source())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reasons(batches) == ["oversize"] and messages_of(batches) == []
    assert peak < 8 << 20


def test_an_archive_is_unpacked_once_for_all_its_excerpts(files: FilesLog, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(files, zstd.compress(lines_of(session_id("a"), *(user(str(n), f"said {n}") for n in range(50)))))
    source = files.source()
    unpacked = 0
    unpack = lines._unpacked

    def counting(*values: Any) -> Any:
        nonlocal unpacked
        unpacked += 1
        return unpack(*values)

    monkeypatch.setattr(lines, "_unpacked", counting)
    (stream,) = source.streams()
    read = messages_of(drain(source, stream, limit=5))
    for message_ in read:
        assert source.get(wanted([message_])) == [message_]
    assert unpacked == 1
    monkeypatch.setattr(jsonl, "KEPT_UNPACKED", 10)
    other = files.source()
    assert messages_of(drain(other, stream)) == read and other._folders
    assert all(folder._unpacked is None for folder in other._folders.values())


def test_what_the_database_says_of_a_session_holds_for_its_archive(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path)
    child = rows.new_session("c", "agent:main:subagent:1")
    group = rows.new_session("g", "agent:main:main", chat_type="group")
    folder = rows.home / "session-sqlite-import-archive"
    folder.mkdir()
    for session in (child, group):
        (folder / f"{session}.jsonl.imported-1").write_bytes(lines_of(session, user("1", "whose?")))
    streams = [s for s in rows.source().streams() if s.name.startswith("file:")]
    assert [s.kind for s in streams] == ["host", "group"]
    read = [m for s in streams for m in messages_of(drain(rows.source(), s))]
    assert notes(read) == [("host", "subagent"), ("participant", "")]


def test_a_session_without_a_window_is_told_by_its_node(rows: SqliteLog) -> None:
    sessions = [rows.new_session(name) for name in "abcd"]
    rows.db.execute("PRAGMA foreign_keys = OFF")
    rows.db.execute("DELETE FROM session_windows")
    nodes = [
        ("agent:main:subagent:1", None, None),
        ("agent:main:odd", None, "agent:main:main"),
        ("agent:main:odder", "cron", None),
        ("agent:main:plain", "operator", None),
    ]
    for session, (key, via, spawned_by) in zip(sessions, nodes, strict=True):
        rows.db.execute("INSERT INTO session_nodes VALUES (?, ?, ?, ?)", (key, session, via, spawned_by))
        rows.write(session, user("1", "task"))
    assert [s.kind for s in rows.source().streams()] == ["host", "host", "host", "direct"]
    assert notes(everything(rows.source())) == [("host", n) for n in ("subagent", "subagent", "cron")] + [("owner", "")]


# --- what became of a stream -----------------------------------------------------------------------------------------


def fate_of(log: FilesLog | SqliteLog, session: str, change: Callable[[], Any]) -> str:
    """What is said of the session's first stream after `change`."""
    stream = stream_of(log, session)
    cursor = drain(log.source(), stream)[-1].cursor
    change()
    try:
        assert stream.name not in {s.name for s in log.source().streams()}
    except SourceError:
        pass
    return log.source().fate(stream, cursor, START)


def test_a_file_that_is_gone_was_deleted_unless_another_holds_its_session(files: FilesLog) -> None:
    session = files.new_session("a")
    files.append(session, "user", "hello", START)
    files.append(files.new_session("b"), "user", "stays", START)
    path = files.path(session)
    reset = Path(f"{path}.reset.2026-03-18T04-02-18.203Z")
    assert fate_of(files, session, lambda: path.rename(reset)) == "gone"
    shutil.copy(reset, f"{path}.reset.2026-03-19T04-02-18.203Z")
    assert fate_of(files, session, reset.unlink) == "gone"
    last = Path(f"{path}.reset.2026-03-19T04-02-18.203Z")
    assert fate_of(files, session, lambda: last.rename(files.folder / "renamed-by-hand.jsonl")) == "gone"
    session = "renamed-by-hand"
    assert fate_of(files, session, (files.folder / "renamed-by-hand.jsonl").unlink) == "deleted"


def test_a_file_under_another_name_is_known_by_its_header(files: FilesLog) -> None:
    files.write("odd-name", header(session_id("a")), user("1", "hello"))
    shutil.copy(files.path("odd-name"), files.path("another"))
    assert fate_of(files, "odd-name", files.path("odd-name").unlink) == "gone"


@pytest.mark.parametrize("place", ["agents", "agents/main", "agents/main/sessions"])
def test_a_place_that_is_not_there_was_not_deleted(files: FilesLog, place: str) -> None:
    session = files.new_session("a")
    files.append(session, "user", "hello", START)
    (files.root / "agents" / "other" / "sessions").mkdir(parents=True)
    assert fate_of(files, session, lambda: (files.root / place).rename(files.root / "elsewhere")) == "lost"


def test_a_database_that_is_not_there_or_not_readable_lost_its_sessions(tmp_path: Path) -> None:
    for number, change in enumerate(
        [lambda rows: os.unlink(rows.path), lambda rows: damage(rows.path, lambda data: b"not a database, " * 400)]
    ):
        rows = SqliteLog(tmp_path / str(number))
        session = rows.new_session("a")
        rows.append(session, "user", "hello", START)
        (rows.home / "sessions").mkdir()
        rows.db.close()
        assert fate_of(rows, session, lambda change=change, rows=rows: change(rows)) == "lost"  # type: ignore[misc]


def test_a_database_that_is_held_says_nothing_yet(rows: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(foreign, "BUSY_MS", 20)
    session = rows.new_session("a")
    rows.append(session, "user", "hello", START)
    assert fate_of(rows, session, rows.hold) == "lost"


def test_rows_that_are_gone_were_deleted_unless_an_archive_holds_or_will_hold_them(tmp_path: Path) -> None:
    def deleted(rows: SqliteLog, session: str) -> None:
        rows.delete(session)

    def forgotten(rows: SqliteLog, session: str) -> None:
        rows.db.execute("INSERT INTO memory_session_tombstones VALUES (?, 'main', 'user', 0)", (session,))

    def without_a_word(rows: SqliteLog, session: str) -> None:
        rows.db.execute("DELETE FROM session_windows WHERE session_id = ?", (session,))

    def back_to_files(rows: SqliteLog, session: str) -> None:
        data = lines_of(session, *rows.events(session)[1:])
        without_a_word(rows, session)
        (rows.home / "sessions").mkdir()
        (rows.home / "sessions" / f"{session}.jsonl").write_bytes(data)

    def archive_to_come(rows: SqliteLog, session: str) -> None:
        without_a_word(rows, session)
        rows.db.execute("INSERT INTO session_transcript_archives VALUES (?, 'g0', '', 'reset', 'x')", (session,))

    def cold_file_to_come(rows: SqliteLog, session: str) -> None:
        file = rows.cool(session, blob=False)
        assert file is not None
        file.unlink()

    told = {}
    for change in (deleted, forgotten, without_a_word, back_to_files, archive_to_come, cold_file_to_come):
        rows = SqliteLog(tmp_path / change.__name__)
        session = rows.new_session("a")
        rows.append(session, "user", "hello", START)
        told[change.__name__] = fate_of(rows, session, lambda c=change, r=rows, s=session: c(r, s))  # type: ignore[misc]
    assert told == {
        "deleted": "deleted",
        "forgotten": "deleted",
        "without_a_word": "deleted",
        "back_to_files": "gone",
        "archive_to_come": "lost",
        "cold_file_to_come": "lost",
    }


def test_a_file_that_moved_into_the_database_is_gone(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path)
    session = session_id("a")
    path = rows.home / "sessions" / f"{session}.jsonl"
    path.parent.mkdir()
    path.write_bytes(lines_of(session, user("1", "hello")))

    def migrate() -> None:
        rows.new_session("a")
        rows.write(session, user("1", "hello"))
        shutil.rmtree(path.parent)

    assert fate_of(rows, session, migrate) == "gone"


def test_the_same_entry_with_another_text_in_each_era_is_read_back_by_its_own_stream(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path)
    session = rows.new_session("a")
    rows.write(session, user("1", "in the database"))
    (rows.home / "sessions").mkdir()
    (rows.home / "sessions" / f"{session}.jsonl").write_bytes(lines_of(session, user("1", "in the file")))
    source = rows.source()
    read = everything(source)
    assert [m.ref for m in read] == [f"{session}/1"] * 2
    for message_ in read:
        for hint in (message_.location, ""):
            assert source.get(wanted([message_], hint)) == [message_]


# --- where it looks, and what it says when it cannot read ------------------------------------------------------------


@pytest.mark.parametrize("place", [".", "agents/main", "agents/main/sessions"])
def test_a_state_an_agent_and_a_sessions_folder_are_all_understood(tmp_path: Path, place: str) -> None:
    files = FilesLog(tmp_path)
    files.append(files.new_session("a"), "user", "hello", START)
    source = TranscriptSource(Folders(tmp_path / place, Path("nowhere")))
    source.check()
    (read,) = everything(source)
    assert (read.scope, read.text) == ("main", "hello")


def test_a_folder_named_before_the_update_leads_to_the_database(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path)
    rows.append(rows.new_session("a"), "user", "hello", START)
    (rows.home / "sessions").mkdir()
    source = TranscriptSource(Folders(rows.home / "sessions", Path("nowhere")))
    source.check()
    assert [m.text for m in everything(source)] == ["hello"]


def test_a_bare_folder_takes_its_agent_from_the_session_keys(tmp_path: Path) -> None:
    folder = tmp_path / "copied" / "sessions"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_bytes(compact(user("1", "hello")) + b"\n")
    source = TranscriptSource(Folders(folder, Path("nowhere")))
    assert [m.scope for m in everything(source)] == ["main"]
    (folder / "sessions.json").write_text(json.dumps({"agent:work:main": {"sessionId": "s"}}))
    assert [m.scope for m in everything(TranscriptSource(Folders(folder, Path("nowhere"))))] == ["work"]


def test_every_agent_is_read_and_kept_apart(tmp_path: Path) -> None:
    one, two = SqliteLog(tmp_path, "main"), SqliteLog(tmp_path, "work")
    for log in (one, two):
        log.append(log.new_session("a"), "user", f"in {log.home.name}", START)
    source = one.source()
    read = everything(source)
    assert {m.scope: m.text for m in read} == {"main": "in main", "work": "in work"}
    assert source.get(wanted(read)) == read
    assert "2 agents" in source.describe() and "SQLite" in source.describe()


@pytest.mark.parametrize("made", [[], ["agents"], ["agents/main/sessions"], ["agents/main/agent"], ["agents/x"]])
def test_nothing_there_says_what_was_looked_for(tmp_path: Path, made: Sequence[str]) -> None:
    for folder in made:
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(SourceAbsent) as absent:
        TranscriptSource(Folders(None, tmp_path)).check()
    for part in (str(tmp_path), "openclaw-agent.sqlite", "2026.7.2", "sessions/*.jsonl"):
        assert part in str(absent.value)


def test_a_place_that_is_not_there_is_absent(tmp_path: Path) -> None:
    for place in (tmp_path / "missing", tmp_path / "file"):
        (tmp_path / "file").touch()
        with pytest.raises(SourceAbsent, match=str(place)):
            TranscriptSource(Folders(place, tmp_path)).check()
        assert str(place) in TranscriptSource(Folders(place, tmp_path)).describe()


def damage(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def test_four_failures_are_told_apart(tmp_path: Path) -> None:
    for number, (error, part, harm) in enumerate(
        [
            (SourceDrift, "transcript_events", "DROP TABLE transcript_events"),
            (SourceDrift, "created_at", "ALTER TABLE transcript_events DROP COLUMN created_at"),
            (SourceCorrupt, "damaged", lambda data: b"not a database, " * 400),
            (SourceCorrupt, "damaged", lambda data: data[:4096] + os.urandom(len(data) - 4096)),
        ]
    ):
        rows = SqliteLog(tmp_path / str(number))
        session = rows.new_session("a")
        for n in range(50):
            rows.append(session, "user", f"{n} " * 300, START)
        if isinstance(harm, str):
            rows.db.execute("PRAGMA foreign_keys = OFF")
            rows.db.execute("DROP TABLE transcript_event_identities")
            rows.db.execute(harm)
        rows.db.close()
        if not isinstance(harm, str):
            damage(rows.path, harm)
        before = rows.path.read_bytes()
        with pytest.raises(error, match=part) as raised:
            rows.source().check()
            everything(rows.source())
        assert str(rows.path) in str(raised.value)
        assert rows.path.read_bytes() == before


@pytest.mark.parametrize("damaged", ["alpha", "omega"])
def test_a_damaged_agent_stops_no_other(tmp_path: Path, damaged: str) -> None:
    for agent in ("alpha", "omega"):
        rows = SqliteLog(tmp_path, agent)
        rows.append(rows.new_session("a", f"agent:{agent}:main"), "user", f"hello from {agent}", START)
        rows.db.close()
        if agent == damaged:
            damage(rows.path, lambda data: b"not a database, " * 400)
    healthy = {"alpha": "omega", "omega": "alpha"}[damaged]
    source = TranscriptSource(Folders(None, tmp_path))
    source.check()
    listed: list[Stream] = []
    with pytest.raises(SourceCorrupt, match=damaged) as failed:
        for stream in source.streams():
            listed.append(stream)  # noqa: PERF402 - what came before the error counts
    assert failed.value.parts == (f"file:{damaged}/", f"sqlite:{damaged}/")
    assert [stream.scope for stream in listed] == [healthy]
    read = messages_of(drain(source, listed[0]))
    assert [m.text for m in read] == [f"hello from {healthy}"]
    assert source.get(wanted(read)) == read


def test_when_every_agent_is_damaged_the_check_says_so(tmp_path: Path) -> None:
    rows = SqliteLog(tmp_path)
    rows.db.close()
    damage(rows.path, lambda data: b"not a database, " * 400)
    with pytest.raises(SourceCorrupt):
        TranscriptSource(Folders(None, tmp_path)).check()


def test_a_pass_over_a_damaged_agent_and_a_healthy_one_keeps_what_both_gave(tmp_path: Path, db_path: Path) -> None:
    """What cannot be read just now is not pruned, and what can be is read on and recalled."""
    logs = {agent: SqliteLog(tmp_path, agent) for agent in ("alpha", "omega")}
    for agent, rows in logs.items():
        session = rows.new_session(agent, f"agent:{agent}:main")
        rows.append(session, "user", f"the boat of {agent} is called Sira", START)
    with open_memory(db_path, TranscriptSource(Folders(None, tmp_path))) as memory:
        assert memory.sync().kept == 2
        logs["alpha"].db.close()
        whole = logs["alpha"].path.read_bytes()
        damage(logs["alpha"].path, lambda data: b"not a database, " * 400)
        logs["omega"].append(
            session_id("omega"), "assistant", "and the boat of omega is red", START + timedelta(minutes=1)
        )
        report = memory.sync()
        assert (report.kept, report.pruned, len(report.failures)) == (1, 0, 1)
        assert len(recalled(memory, "boat", scope="omega")) == 2
        assert [e.event_type for e in memory.events()] == ["source_failed"]
        damage(logs["alpha"].path, lambda data: whole)
        assert memory.sync().failures == ()
        assert len(recalled(memory, "boat")) == 3


def two_agents(root: Path) -> dict[str, SqliteLog]:
    logs = {agent: SqliteLog(root, agent) for agent in ("alpha", "omega")}
    for agent, rows in logs.items():
        session = rows.new_session(agent, f"agent:{agent}:main")
        rows.append(session, "user", f"the boat of {agent} is called Sira", START)
        rows.db.close()
    return logs


def test_a_damaged_agent_costs_a_search_its_own_lines_alone(tmp_path: Path, db_path: Path) -> None:
    logs = two_agents(tmp_path)
    with open_memory(db_path, TranscriptSource(Folders(None, tmp_path))) as memory:
        memory.sync()
        damage(logs["alpha"].path, lambda data: b"not a database, " * 400)
        assert [e.excerpt for e in recalled(memory, "boat")] == ["the boat of omega is called Sira"]


def test_a_damaged_agent_costs_the_others_no_vector(tmp_path: Path, db_path: Path) -> None:
    logs = two_agents(tmp_path)
    embedder = fake()
    with open_memory(db_path, TranscriptSource(Folders(None, tmp_path)), embedder=embedder) as memory:
        embedder.down = True
        assert memory.sync().pending == 2
        embedder.down = False
        damage(logs["alpha"].path, lambda data: b"not a database, " * 400)
        report = memory.sync()
        assert (report.vectors, report.pending, len(report.failures)) == (1, 1, 1)


def test_a_held_database_is_busy(rows: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(foreign, "BUSY_MS", 20)
    rows.append(rows.new_session("a"), "user", "hello", START)
    read = everything(rows.source())
    rows.db.execute("PRAGMA journal_mode = DELETE")
    rows.db.execute("BEGIN EXCLUSIVE")
    for act in (rows.source().check, lambda: everything(rows.source()), lambda: rows.source().get(wanted(read))):
        with pytest.raises(SourceBusy):
            act()
    rows.db.execute("ROLLBACK")
    assert everything(rows.source()) == read


def test_a_writer_does_not_hold_up_the_reader(rows: SqliteLog) -> None:
    session = rows.new_session("a")
    rows.append(session, "user", "hello", START)
    rows.db.execute("BEGIN IMMEDIATE")
    rows.append(session, "user", "not yet committed", START)
    assert [m.text for m in everything(rows.source())] == ["hello"]
    rows.db.execute("COMMIT")


def test_a_database_that_is_opened_while_it_is_read_is_read_again(
    rows: SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:

    rows.append(rows.new_session("a"), "user", "hello", START)
    rows.db.close()
    from clawmark_sources.openclaw import sqlite

    forgotten = sqlite._Open.forgotten

    def opened_meanwhile(self: Any) -> frozenset[str]:
        Path(f"{rows.path}-wal").touch()
        return forgotten(self)

    monkeypatch.setattr(sqlite._Open, "forgotten", opened_meanwhile)
    with pytest.raises(SourceBusy, match="just now"):
        list(rows.source().streams())
    monkeypatch.undo()
    assert [m.text for m in everything(rows.source())] == ["hello"]


def test_a_database_at_rest_gets_no_file_beside_it(rows: SqliteLog) -> None:
    rows.append(rows.new_session("a"), "user", "hello", START)
    rows.db.close()
    before = sorted(os.listdir(rows.path.parent))
    source = rows.source()
    assert source.get(wanted(everything(source)))
    assert sorted(os.listdir(rows.path.parent)) == before == ["openclaw-agent.sqlite"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_forbidden_folder_says_so(files: FilesLog) -> None:
    files.append(files.new_session("a"), "user", "hello", START)
    files.folder.chmod(0)
    try:
        with pytest.raises(SourceError, match="permission") as raised:
            files.source().check()
        assert not isinstance(raised.value, SourceAbsent | SourceCorrupt)
    finally:
        files.folder.chmod(0o700)


def test_a_folder_that_cannot_be_listed_is_neither_absent_nor_corrupt(
    files: FilesLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.append(files.new_session("a"), "user", "hello", START)
    scandir = os.scandir

    def refused(path: Any) -> Any:
        if Path(path) == files.folder:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(jsonl.os, "scandir", refused)
    with pytest.raises(SourceError, match=r"sessions cannot be read \(Permission denied\)") as raised:
        files.source().check()
    assert type(raised.value) is SourceError
    assert files.source().describe()


def test_an_agent_that_cannot_be_looked_at_costs_itself_alone(tmp_path: Path, db_path: Path) -> None:
    two_agents(tmp_path)
    loop = tmp_path / "agents" / "gamma" / "sessions"
    loop.parent.mkdir()
    loop.symlink_to(loop.name)
    with open_memory(db_path, TranscriptSource(Folders(None, tmp_path))) as memory:
        memory.sync()
        assert len(recalled(memory, "boat")) == 2


def test_file_names_that_are_no_text_stay_apart(tmp_path: Path, db_path: Path) -> None:
    sessions = tmp_path / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    for number, name in enumerate((b"\xff.jsonl", b"\xfe.jsonl", b"plain.jsonl")):
        line = {"id": f"0000000{number}", "role": "user", "text": f"the boat of number {number} is called Sira"}
        with open(os.fsencode(sessions) + b"/" + name, "w", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    with open_memory(db_path, TranscriptSource(Folders(None, tmp_path))) as memory:
        assert memory.sync().kept == 3
        assert len(recalled(memory, "boat")) == 3


def test_the_last_session_goes_also_where_its_own_folder_is_named(tmp_path: Path, db_path: Path) -> None:
    sessions = tmp_path / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    file = sessions / "a.jsonl"
    file.write_text('{"id": "00000001", "role": "user", "text": "the boat is called Sira"}\n', encoding="utf-8")
    with open_memory(db_path, TranscriptSource(Folders(sessions, tmp_path))) as memory:
        assert memory.sync().kept == 1
        file.unlink()
        assert memory.sync().pruned == 1


# --- the names that the TypeScript clawmark used ----------------------------------------------------------------------


def test_the_old_name_of_a_message_is_its_file_and_the_offset_of_its_line(files: FilesLog) -> None:
    session = files.new_session("old")
    for number in range(3):
        files.append(session, "user", f"the {number}. utterance, with an é in it", START + timedelta(minutes=number))
    source = files.source()
    data = files.path(session).read_bytes()
    found = messages_of(batches_of(source))
    assert len(found) == 3
    for message_ in found:
        name, _, offset = str(source.old_ref(message_.stream, message_.location)).rpartition(":")
        assert name == f"{session}.jsonl"
        assert message_.text.encode() in data[int(offset) :].split(b"\n")[0]
        assert int(offset) == 0 or data[int(offset) - 1 : int(offset)] == b"\n"


@pytest.mark.parametrize(
    ("stream", "location"),
    [
        ("sqlite:main/s1", "17"),
        ("file:main/s1.jsonl", ""),
        ("file:main/s1.jsonl", "x:9"),
        ("file:main/s1.jsonl", "12"),
        ("file:main/s1.jsonl.reset.2026-03-18T04-02-18.203Z", "12:30"),
        ("", ""),
    ],
)
def test_what_the_old_program_never_read_has_no_old_name(files: FilesLog, stream: str, location: str) -> None:
    assert files.source().old_ref(stream, location) is None


# --- what the host clears away by itself ------------------------------------------------------------------------------


def aged(log: FilesLog, session: str, at: datetime) -> None:
    os.utime(log.path(session), (at.timestamp(), at.timestamp()))


def cleared(files: FilesLog, idle: timedelta) -> str:
    """A session that was renamed to `.deleted.` after nobody had used it for so long."""
    session = files.new_session("a")
    files.append(session, "user", "the boat is called Sira", START)
    aged(files, session, datetime(2026, 3, 18, 4, 2, 18, 203_000, tzinfo=UTC) - idle)
    files.delete(session)
    return session


def test_a_session_that_the_host_cleared_away_is_history(files: FilesLog) -> None:
    cleared(files, timedelta(days=30))
    assert [m.text for m in everything(files.source())] == ["the boat is called Sira"]


def test_a_session_that_was_in_use_was_deleted_by_the_person(files: FilesLog) -> None:
    cleared(files, timedelta(days=29))
    assert everything(files.source()) == []


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({"mode": "warn"}, False),
        ({"pruneAfter": "10d"}, True),
        ({"pruneAfter": 10}, True),
        ({"pruneDays": 10}, True),
        ({"pruneAfter": "240h"}, True),
        ({"pruneAfter": "60d"}, False),
        ({"pruneAfter": "nonsense"}, False),
        ([], False),
    ],
)
def test_how_long_the_host_keeps_a_session_stands_in_its_configuration(
    files: FilesLog, config: Any, kept: bool
) -> None:
    (files.root / "openclaw.json").write_text(json.dumps({"session": {"maintenance": config}}))
    cleared(files, timedelta(days=20))
    assert bool(everything(files.source())) == kept


def test_what_the_host_removes_by_age_is_lost_and_not_deleted(files: FilesLog) -> None:
    reset, old, young = (files.new_session(name) for name in ("a", "b", "c"))
    for session in (reset, old, young):
        files.append(session, "user", f"a word of {session}", START)
        aged(files, session, START)
    files.rename_reset(reset)
    listed = {stream.session: stream for stream in files.source().streams()}
    cursors = {name: drain(files.source(), stream)[-1].cursor for name, stream in listed.items()}
    kept = files.new_session("d")
    files.append(kept, "user", "still here", START)
    for path in files.folder.glob("*.jsonl*"):
        if kept not in path.name:
            path.unlink()
    late = datetime(2026, 3, 18, 4, 2, 19, tzinfo=UTC) + timedelta(days=30)

    def fates(now: datetime) -> list[str]:
        source = files.source()
        return [source.fate(listed[name], cursors[name], now) for name in (reset, old, young)]

    assert fates(late) == ["lost", "lost", "lost"]
    assert fates(START + timedelta(days=16)) == ["deleted", "deleted", "deleted"]


def test_an_edit_before_a_migration_is_not_undone_by_the_file_that_was_imported(rows: SqliteLog, db_path: Path) -> None:
    session = rows.new_session("a")
    for number in range(4):
        rows.append(session, "user", f"word{number} was said", START + timedelta(minutes=number))
    imported = rows.home / "sessions" / f"{session}.jsonl.imported-1"
    imported.parent.mkdir(parents=True)
    imported.write_bytes(b"".join(compact(entry) + b"\n" for entry in rows.events(session)))
    rows.branch(session, 2)
    rows.append(session, "user", "word9 instead", START + timedelta(minutes=9))
    with open_memory(db_path, rows.source()) as memory:
        memory.sync()
        found = " ".join(e.excerpt for e in recalled(memory, "word0 word1 word2 word3 word9 said instead"))
        assert [word for word in ("word0", "word1", "word2", "word3", "word9") if word in found] == [
            "word0", "word1", "word9",
        ]  # fmt: skip


def test_a_text_edited_away_in_a_session_and_then_in_its_fork_is_erased(files: FilesLog, db_path: Path) -> None:
    session = files.new_session("a")
    for number in range(4):
        files.append(session, "user", f"word{number} was said", START + timedelta(minutes=number))
    fork = files.fork(session, "b")
    with open_memory(db_path, files.source()) as memory:
        memory.sync()
        files.branch(session, 2)
        files.append(session, "user", "word8 instead", START + timedelta(minutes=8))
        memory.sync()
        assert recalled(memory, "word3")
        files.branch(fork, 2)
        files.append(fork, "user", "word9 instead", START + timedelta(minutes=9))
        memory.sync()
        assert not [e for e in recalled(memory, "word3 word2") if "word3" in e.excerpt or "word2" in e.excerpt]
