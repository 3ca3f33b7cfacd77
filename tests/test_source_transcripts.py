"""The OpenClaw transcripts, both eras: the source contract over logs written as the gateway writes them, its recorded
data, every hostile line of the corpus, and what is true of one era alone."""

from __future__ import annotations

import base64
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
import pytest
from helpers import fake, open_memory, recalled

from clawmark.errors import SourceAbsent, SourceBusy, SourceCorrupt, SourceDrift, SourceError
from clawmark.model import Batch, Gone, Message, Role, Stream, Wanted
from clawmark.source import Folders, MessageSource
from clawmark.testing import START, SourceContract, drain, everything, messages_of, wanted
from clawmark_sources.openclaw import TranscriptSource, jsonl
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
    return f"{ord(name[0]):08x}-0000-4000-8000-000000000000"


class FilesLog:
    """The files era: <state>/agents/main/sessions/<id>.jsonl."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "agents" / "main" / "sessions"
        self.folder.mkdir(parents=True)
        self.torn = b""
        self.count = 0

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

    def entry(self, role: Role, text: str, at: datetime) -> dict[str, Any]:
        self.count += 1
        return (user if role == "user" else assistant)(f"{self.count:08x}", text, at)

    def append(self, session: str, role: Role, text: str, at: datetime) -> str:
        entry = self.entry(role, text, at)
        self.write(session, entry, tool_result(f"{entry['id']}-r", text, at))
        return str(entry["id"])

    def rename_reset(self, session: str) -> None:
        self.path(session).rename(f"{self.path(session)}.reset.2026-03-18T04-02-18.203Z")

    def delete(self, session: str) -> None:
        self.path(session).rename(f"{self.path(session)}.deleted.2026-03-18T04-02-18.203Z")

    def tear_last_line(self, session: str, role: Role, text: str, at: datetime) -> str:
        entry = self.entry(role, text, at)
        line = compact(entry) + b"\n"
        with open(self.path(session), "ab") as file:
            file.write(line[: len(line) // 2])
        self.torn = line[len(line) // 2 :]
        return str(entry["id"])

    def complete(self, session: str) -> None:
        with open(self.path(session), "ab") as file:
            file.write(self.torn)

    def shrink_to_tail(self, session: str, keep: int) -> None:
        first, *rest = self.path(session).read_bytes().splitlines(keepends=True)
        self.path(session).write_bytes(first + b"".join(rest[-2 * keep :]))


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
CREATE TABLE auth_profile_store (store_key TEXT PRIMARY KEY, store_json TEXT) STRICT;
"""


class SqliteLog:
    """The SQLite era: <state>/agents/main/agent/openclaw-agent.sqlite, with every other event compressed."""

    def __init__(self, root: Path, agent: str = "main") -> None:
        self.root = root
        self.home = root / "agents" / agent
        self.path = self.home / "agent" / "openclaw-agent.sqlite"
        self.path.parent.mkdir(parents=True)
        self.count = 0
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
        return entry

    def rename_reset(self, session: str) -> None:
        self.write(session, {"type": "reset", "id": "0178bb33", "parentId": None, "reason": "new"})

    def delete(self, session: str) -> None:
        name = f"{session}.jsonl.deleted.2026-03-18T04-02-18.203Z.26c64bf5.zst"
        self.db.execute("DELETE FROM session_windows WHERE session_id = ?", (session,))
        self.db.execute("INSERT INTO session_transcript_archives VALUES (?, 'g0', '', 'deleted', ?)", (session, name))
        (self.home / "sessions").mkdir(exist_ok=True)
        (self.home / "sessions" / name).write_bytes(zstd.compress(b"{}\n"))

    def shrink_to_tail(self, session: str, keep: int) -> None:
        rows = [
            json.loads(text) if text is not None else json.loads(zstd.decompress(blob))
            for text, blob in self.db.execute(
                "SELECT event_json, event_zstd FROM transcript_events WHERE session_id = ? ORDER BY seq", (session,)
            )
        ]
        with self.db:
            self.db.execute("DELETE FROM transcript_events WHERE session_id = ?", (session,))
            self.write(session, rows[0], *rows[-2 * keep :])
            self.db.execute(
                "UPDATE transcript_rewrite_watermarks SET generation = 'g1' WHERE session_id = ?", (session,)
            )

    def tear_last_line(self, session: str, role: Role, text: str, at: datetime) -> str:
        raise NotImplementedError  # a row is there or it is not

    def complete(self, session: str) -> None:
        raise NotImplementedError


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
    root = Path(os.environ.get("CLAWMARK_SHARED") or Path(__file__).parents[2] / "shared")
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the shared test data is not there ({path}); set CLAWMARK_SHARED")
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


@pytest.mark.parametrize("stamp", ["yesterday", 9e18, float("inf"), -5, True, None, [], "9" * 30, "10000-01-01"])
def test_an_unreadable_time_is_the_previous_one(files: FilesLog, stamp: Any) -> None:
    files.write("s", header("s", START - timedelta(days=1)))
    line = {"id": "a", "role": "user", "text": "first", "timestamp": 0}
    late = {"id": "c", "role": "user", "text": "third", "timestamp": stamp}
    files.write("s", line, user("b", "second"), json.dumps(late).replace("Infinity", "1e999").encode())
    assert [m.at for m in everything(files.source())] == [START - timedelta(days=1), START, START]


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
    monkeypatch.setattr(jsonl, "LINE_LIMIT", 400)
    monkeypatch.setattr(jsonl, "CHUNK", chunk)
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
    from clawmark_sources.openclaw.messages import Past, Run, parse, read_entry

    told = 0
    for path in shared("fixtures", "openclaw").rglob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            event = json.loads(line).get("event")
            raw = compact(event) if isinstance(event, dict) and "type" in event else line
            reason = passed_over(raw, 0, len(raw))
            if reason is not None:
                told += 1
                assert reason == read_entry(parse(raw), Run("", "", "", "direct"), Past(), "", 1)
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
    (files.folder / "session-sqlite-import-archive" / "old.jsonl.imported-1").write_bytes(line)
    (files.folder / "dangling.jsonl").symlink_to(files.folder / "nothing")
    source = files.source()
    assert [s.name for s in source.streams()] == [f"file:main/{session}.jsonl"]
    assert [m.text for m in everything(source)] == ["real"]


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
    with pytest.raises(SourceCorrupt, match=damaged):
        for stream in source.streams():
            listed.append(stream)  # noqa: PERF402 - what came before the error counts
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
    from clawmark_sources.openclaw import sqlite

    monkeypatch.setattr(sqlite, "BUSY_MS", 20)
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
    from clawmark_sources.openclaw import sqlite

    rows.append(rows.new_session("a"), "user", "hello", START)
    rows.db.close()
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
