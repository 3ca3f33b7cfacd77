"""Lossless Claw's database: the source contract over files written as it writes them, its recorded data and every
variant of it, and what is true of this log alone: epochs, rows that move, rows that are no utterance."""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import fixture, shared

from clawmark.errors import SourceAbsent, SourceBusy, SourceCorrupt, SourceDrift
from clawmark.model import Batch, Gone, Message, Role, Stream, Wanted
from clawmark.source import Folders, MessageSource
from clawmark.testing import START, Log, SourceContract, drain, everything, messages_of, wanted
from clawmark_sources import foreign
from clawmark_sources.lcm import LcmSource, database

lcm = fixture("lcm")


@pytest.fixture(autouse=True)
def soon_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that is held on purpose need not be waited for."""
    monkeypatch.setattr(foreign, "BUSY_MS", 50)


def source_of(path: Path, transcripts: Path | None = None) -> LcmSource:
    return LcmSource(Folders(transcripts, path.parent / "openclaw", path))


# --- the contract -----------------------------------------------------------------------------------------------------


class LcmLog(Log):
    """<state>/lcm.db, with a tool's result behind each message."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "lcm.db"
        self.file = lcm.LcmFile(self.path)
        self.conversations: dict[str, int] = {}

    def source(self) -> MessageSource:
        return LcmSource(Folders(None, self.root))

    def new_session(self, name: str) -> str:
        session = f"{name}-0000-4000-8000-000000000000"
        key = f"agent:main:telegram:direct:{len(self.conversations)}"
        self.conversations[session] = self.file.conversation(session, key)
        return session

    def append(self, session: str, role: Role, text: str, at: datetime) -> str:
        conversation = self.conversations[session]
        row = self.file.say(conversation, role, text, at)
        self.file.say(conversation, "tool", text, at)
        return f"lcm:1:{row}"

    def rename_reset(self, session: str) -> None:
        self.file.archive(self.conversations[session], "rollover-fallback")
        self.file.conversation("next", "agent:main:telegram:direct:0")

    def delete(self, session: str) -> None:
        self.file.archive(self.conversations[session], "session-deleted")

    def fork(self, session: str, name: str) -> str:
        copy = self.new_session(name)
        self.file.db.execute(
            "INSERT INTO messages (conversation_id, seq, role, content, token_count, created_at)"
            " SELECT ?, seq, role, content, token_count, created_at FROM messages WHERE conversation_id = ?"
            " ORDER BY message_id",
            (self.conversations[copy], self.conversations[session]),
        )
        return copy

    def absent(self) -> None:
        self.file.close()
        self.path.unlink()

    def drift(self) -> None:
        self.file.db.execute("ALTER TABLE messages RENAME COLUMN content TO body")

    def corrupt(self) -> None:
        self.file.close()
        with open(self.path, "r+b") as file:
            file.write(b"no database at all" * 10)

    def hold(self) -> None:
        self.file.db.execute("PRAGMA journal_mode = DELETE")
        self.file.db.execute("BEGIN EXCLUSIVE")


class TestLcmSource(SourceContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> LcmLog:
        return LcmLog(tmp_path)


# --- one file, and what is said in it ---------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lcm.db"


@pytest.fixture
def file(path: Path) -> Iterator[Any]:
    made = lcm.LcmFile(path)
    yield made
    made.close()


def say(file: Any, conversation: int, *said: tuple[str, str | bytes], start: int = 0) -> list[int]:
    """So many messages, a minute apart; their ids."""
    return [
        file.say(conversation, role, text, START + timedelta(minutes=start + number))
        for number, (role, text) in enumerate(said)
    ]


def stream_of(source: LcmSource, conversation: int) -> Stream:
    return next(stream for stream in source.streams() if stream.name == str(conversation))


def read(source: LcmSource, conversation: int, cursor: str | None = None, limit: int = 1_000) -> list[Batch]:
    return drain(source, stream_of(source, conversation), cursor, limit)


def told(batches: Sequence[Batch]) -> list[tuple[str, str]]:
    return [(m.ref, m.text) for m in messages_of(batches)]


def skipped(batches: Sequence[Batch]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for batch in batches:
        total.update(batch.skipped)
    return dict(total)


def only(batches: Sequence[Batch]) -> Message:
    (message,) = messages_of(batches)
    return message


# --- opening ----------------------------------------------------------------------------------------------------------


def beside(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.parent.iterdir() if p.is_file()}


def test_the_database_is_in_the_state_directory_unless_a_setting_names_it(tmp_path: Path) -> None:
    assert LcmSource(Folders(None, tmp_path)).place == str(tmp_path / "lcm.db")
    assert LcmSource(Folders(None, tmp_path, tmp_path / "other.db")).place == str(tmp_path / "other.db")


@pytest.mark.parametrize(
    "make", [lambda p: None, lambda p: p.touch(), lambda p: p.mkdir()], ids=["none", "empty", "folder"]
)
def test_without_a_file_the_log_is_absent(path: Path, make: Callable[[Path], object]) -> None:
    make(path)
    with pytest.raises(SourceAbsent):
        source_of(path).check()


def test_at_rest_nothing_is_written_and_no_file_is_left(path: Path) -> None:
    file = lcm.LcmFile(path)
    say(file, file.conversation("s1"), ("user", "one"), ("assistant", "two"))
    file.close()
    before = beside(path)
    source = source_of(path)
    source.check()
    messages = everything(source)
    assert len(messages) == 2
    source.get(wanted(messages))
    source.fate(Stream("1", "", "main", "s1"), None, START)
    source.withdrawn(next(source.streams()), read(source, 1)[-1].cursor, ["lcm:1:1"])
    assert beside(path) == before


def test_rows_that_stand_in_the_write_ahead_log_alone_are_read(file: Any, path: Path) -> None:
    say(file, file.conversation("s1"), ("user", "only in the write-ahead log"))
    before = beside(path)
    assert path.name + "-wal" in before
    assert only(read(source_of(path), 1)).text == "only in the write-ahead log"
    assert {name: data for name, data in beside(path).items() if not name.endswith("-shm")} == {
        name: data for name, data in before.items() if not name.endswith("-shm")
    }


def test_a_database_with_a_rollback_journal_is_read(path: Path) -> None:
    file = lcm.LcmFile(path, wal=False)
    say(file, file.conversation("s1"), ("user", "one"))
    assert only(read(source_of(path), 1)).text == "one"
    assert list(beside(path)) == ["lcm.db"]
    file.close()


def test_a_writer_that_comes_while_an_unlocked_file_is_read_makes_the_read_invalid(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = lcm.LcmFile(path)
    say(file, file.conversation("s1"), ("user", "one"))
    file.close()
    listed = database.Snapshot.listed
    writers = []

    def interrupted(snapshot: database.Snapshot) -> list[database.Listed]:
        writers.append(lcm.LcmFile(path))
        writers[-1].conversation("s2")
        return listed(snapshot)

    source = source_of(path)
    with monkeypatch.context() as patched:
        patched.setattr(database.Snapshot, "listed", interrupted)
        with pytest.raises(SourceBusy):
            list(source.streams())
    assert len(list(source.streams())) == 1
    writers[0].close()


def test_a_file_that_was_replaced_is_read_anew(path: Path, tmp_path: Path) -> None:
    file = lcm.LcmFile(path)
    say(file, file.conversation("s1"), ("user", "of the old file"))
    file.close()
    source = source_of(path)
    assert only(read(source, 1)).text == "of the old file"
    other = lcm.LcmFile(tmp_path / "other.db")
    say(other, other.conversation("s1"), ("user", "of the new file"))
    other.close()
    os.replace(tmp_path / "other.db", path)
    assert only(read(source, 1)).text == "of the new file"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a folder that cannot be written to")
def test_a_folder_that_cannot_be_written_to_is_no_obstacle(path: Path) -> None:
    file = lcm.LcmFile(path)
    say(file, file.conversation("s1"), ("user", "one"))
    file.close()
    path.parent.chmod(0o500)
    try:
        assert only(read(source_of(path), 1)).text == "one"
    finally:
        path.parent.chmod(0o700)


def test_a_writer_in_the_middle_of_a_transaction_is_no_obstacle(file: Any, path: Path) -> None:
    say(file, file.conversation("s1"), ("user", "one"))
    file.db.execute("BEGIN EXCLUSIVE")
    say(file, 1, ("assistant", "not yet"))
    assert only(read(source_of(path), 1)).text == "one"
    file.db.execute("ROLLBACK")


REBUILT = "CREATE TABLE messages ({0} conversation_id INTEGER, seq INTEGER, role TEXT, content TEXT, created_at TEXT)"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["ALTER TABLE messages RENAME COLUMN content TO body"], "messages has no column content"),
        (["ALTER TABLE messages RENAME COLUMN message_id TO id"], "messages has no column message_id"),
        (["ALTER TABLE messages RENAME COLUMN created_at TO said_at"], "messages has no column created_at"),
        (["ALTER TABLE conversations RENAME COLUMN session_id TO session"], "conversations has no column session_id"),
        (["ALTER TABLE messages RENAME TO lcm_messages"], "it has no table messages"),
        (["ALTER TABLE conversations RENAME TO talks"], "it has no table conversations"),
        (["ALTER TABLE messages RENAME TO m", "CREATE VIEW messages AS SELECT * FROM m"], "messages is a view"),
        (["DROP TABLE messages", REBUILT.format("message_id TEXT PRIMARY KEY,")], "messages.message_id is TEXT"),
        (["DROP TABLE messages", REBUILT.format("message_id INTEGER,")], "message_id is not the primary key"),
        (["DROP TABLE messages", REBUILT.format("message_id INTEGER PRIMARY KEY,")], "is not AUTOINCREMENT"),
    ],
)
def test_another_form_is_drift_and_the_message_names_it(file: Any, path: Path, change: list[str], named: str) -> None:
    say(file, file.conversation("s1"), ("user", "one"))
    file.db.execute("PRAGMA foreign_keys = OFF")
    for sql in change:
        file.db.execute(sql)
    source = source_of(path)
    for look in (source.check, lambda: list(source.streams()), lambda: source.get([Wanted("1", "lcm:1:1")])):
        with pytest.raises(SourceDrift, match=named):
            look()


def test_drift_is_noticed_between_two_reads(file: Any, path: Path) -> None:
    say(file, file.conversation("s1"), ("user", "one"))
    source = source_of(path)
    stream = stream_of(source, 1)
    assert messages_of([source.read(stream, None, 9)])
    file.db.execute("ALTER TABLE messages RENAME COLUMN content TO body")
    with pytest.raises(SourceDrift):
        source.read(stream, None, 9)


def test_texts_in_utf_16_are_drift(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("PRAGMA encoding = 'UTF-16le'")
    db.execute("CREATE TABLE messages (message_id INTEGER PRIMARY KEY AUTOINCREMENT)")
    db.close()
    with pytest.raises(SourceDrift, match="UTF-16"):
        source_of(path).check()


def test_columns_and_tables_that_nobody_knows_are_no_drift(file: Any, path: Path) -> None:
    file.db.execute("ALTER TABLE messages ADD COLUMN mood TEXT")
    file.db.execute("CREATE TABLE turn_advancements (id INTEGER)")
    say(file, file.conversation("s1"), ("user", "one"))
    assert only(read(source_of(path), 1)).text == "one"


@pytest.mark.parametrize("column", sorted(lcm.OLD))
def test_each_column_that_came_later_may_be_missing(path: Path, column: str) -> None:
    file = lcm.LcmFile(path, lacking=frozenset([column]))
    key = None if column == "session_key" else "agent:main:main"
    say(file, file.conversation("s1", key), ("user", "one"), ("assistant", "two"))
    file.close()
    messages = everything(source_of(path))
    assert [m.text for m in messages] == ["one", "two"]
    assert source_of(path).get(wanted(messages)) == messages


def test_the_first_version_s_file_is_read(path: Path) -> None:
    file = lcm.LcmFile(path, lacking=lcm.OLD)
    say(file, file.conversation("s1", None), ("user", "one"), ("tool", "x"), ("assistant", "two"))
    file.close()
    source = source_of(path)
    assert [(m.text, m.scope, m.origin) for m in everything(source)] == [
        ("one", "lcm-unkeyed", "participant"),
        ("two", "lcm-unkeyed", "assistant"),
    ]


def test_a_file_without_conversations_is_no_failure(file: Any, path: Path) -> None:
    source = source_of(path)
    source.check()
    assert list(source.streams()) == []


def test_what_it_reads_is_described(file: Any, path: Path) -> None:
    source = source_of(path)
    assert source.describe() == f"{path} (0 conversations)"
    say(file, file.conversation("s1"), ("user", "one"))
    assert source.describe() == f"{path} (1 conversation, the newest of 2026-03-02)"
    assert source_of(path.parent / "none.db").describe() == str(path.parent / "none.db")


# --- which conversations, and whose -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "scope", "kind"),
    [
        ("agent:main:main", "main", "direct"),
        ("agent:research:main", "research", "direct"),
        ("agent:main:heartbeat-lane", "main", "direct"),
        ("agent:main:webchat:5f", "main", "direct"),
        ("agent:main:main:thread:7", "main", "direct"),
        ("agent:main:telegram:direct:70000001", "main", "direct"),
        ("agent:main:telegram:direct:70000001:thread:fork1", "main", "direct"),
        ("agent:main:telegram:work:direct:70000001", "main", "direct"),
        ("agent:main:whatsapp:group:12@g.us", "main", "group"),
        ("agent:main:discord:channel:4242", "main", "group"),
        ("agent:main:matrix:room:4242", "main", "group"),
        ("agent:main:webchat:group:7", "main", "group"),
        ("agent:main:telegram", "main", "direct"),
        ("global", "lcm-unkeyed", "group"),
        ("agent", "lcm-unkeyed", "group"),
        ("agent::main", "lcm-unkeyed", "group"),
        ("", "lcm-unkeyed", "group"),
        (None, "lcm-unkeyed", "group"),
    ],
)
def test_the_key_says_whose_a_conversation_is_and_who_takes_part(
    file: Any, path: Path, key: str | None, scope: str, kind: str
) -> None:
    say(file, file.conversation("s1", key), ("user", "one"), ("assistant", "two"))
    source = source_of(path)
    (stream,) = source.streams()
    assert (stream.name, stream.session, stream.scope, stream.kind) == ("1", "s1", scope, kind)
    asked, answered = everything(source)
    assert (asked.scope, asked.origin) == (scope, "owner" if kind == "direct" else "participant")
    assert answered.origin == "assistant"
    assert source.get(wanted([asked, answered])) == [asked, answered]


HOST_KEYS = [
    f"agent:main:{part}"
    for part in ("cron:job-7:run:1", "subagent:9f", "hook:mail", "internal-session-effects:1", "acp:5")
] + ["cron:job-7"]


@pytest.mark.parametrize("key", HOST_KEYS)
def test_the_host_s_own_runs_are_not_there(file: Any, path: Path, key: str) -> None:
    say(file, file.conversation("s1", key), ("user", "Produce the digest."))
    source = source_of(path)
    assert list(source.streams()) == []
    assert source.read(Stream("1", "", "main", "s1"), None, 9).messages == ()
    assert source.get([Wanted("1", "lcm:1:1")]) == [Gone("lcm:1:1")]


@pytest.mark.parametrize("cause", ["manual-reset", "session-deleted"])
def test_what_the_person_wiped_is_not_there(file: Any, path: Path, cause: str) -> None:
    conversation = file.conversation("s1")
    say(file, conversation, ("user", "one"))
    source = source_of(path)
    stream = stream_of(source, conversation)
    cursor = drain(source, stream)[-1].cursor
    file.archive(conversation, cause)
    assert list(source.streams()) == []
    assert source.read(stream, cursor, 9).messages == ()
    assert source.get([Wanted("1", "lcm:1:1")]) == [Gone("lcm:1:1")]
    assert source.withdrawn(stream, cursor, ["lcm:1:1"]) == {"lcm:1:1"}
    assert source.fate(stream, cursor, START) == "deleted"


@pytest.mark.parametrize("cause", ["session-end", "rollover-fallback", "cron-rotation", ""])
def test_what_was_only_archived_stays(file: Any, path: Path, cause: str) -> None:
    say(file, file.conversation("s1"), ("user", "one"))
    file.archive(1, cause)
    assert only(read(source_of(path), 1)).text == "one"


def test_a_conversation_without_messages_is_not_listed(file: Any, path: Path) -> None:
    file.conversation("s1")
    assert list(source_of(path).streams()) == []


def test_a_conversation_that_gets_another_session_or_key_has_another_mark(file: Any, path: Path) -> None:
    say(file, file.conversation("s1"), ("user", "one"))
    source = source_of(path)
    marks = {stream_of(source, 1).mark}
    for change in ("session_id = 's2'", "session_key = 'agent:work:main'", "session_key = 'agent:work:main:thread:1'"):
        file.db.execute(f"UPDATE conversations SET {change}")
        marks.add(stream_of(source, 1).mark)
    assert len(marks) == 4
    assert (stream_of(source, 1).session, stream_of(source, 1).scope) == ("s2", "work")


def test_a_stream_tells_when_it_was_last_written(file: Any, path: Path) -> None:
    say(file, file.conversation("s1"), ("user", "one"), ("tool", "two"))
    assert stream_of(source_of(path), 1).touched == START + timedelta(minutes=1)
    file.say(1, "user", "three", "no date")
    assert stream_of(source_of(path), 1).touched is None


def transcript(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).touch()


@pytest.mark.parametrize("name", ["s1.jsonl", "s1.jsonl.reset.2026-03-18T04-02-18.203Z", "s1-topic-3.jsonl"])
def test_without_a_key_the_agent_is_the_one_whose_transcripts_hold_the_session(
    file: Any, path: Path, tmp_path: Path, name: str
) -> None:
    transcript(tmp_path / "state" / "agents" / "work" / "sessions", name)
    transcript(tmp_path / "state" / "agents" / "main" / "sessions", "s10.jsonl")
    say(file, file.conversation("s1", None), ("user", "one"))
    state = tmp_path / "state"
    for transcripts, openclaw in ((state, tmp_path / "none"), (None, state)):
        source = LcmSource(Folders(transcripts, openclaw, path))
        message = only(read(source, 1))
        assert (message.scope, message.origin, stream_of(source, 1).kind) == ("work", "owner", "direct")
        assert source.get(wanted([message])) == [message]


@pytest.mark.parametrize(
    ("place", "root", "agent"),
    [
        ("agents/work/sessions", "agents/work", "work"),
        ("agents/work/sessions", "agents/work/sessions", "work"),
        ("copies/sessions", "copies/sessions", "main"),
        ("copies", "copies", "main"),
        ("home/work/sessions", "home/work", "work"),
    ],
)
def test_the_setting_for_transcripts_may_name_an_agent_or_its_sessions(
    file: Any, path: Path, tmp_path: Path, place: str, root: str, agent: str
) -> None:
    transcript(tmp_path / place, "s1.jsonl")
    say(file, file.conversation("s1", None), ("user", "one"))
    assert stream_of(source_of(path, tmp_path / root), 1).scope == agent


def test_a_session_that_two_agents_hold_is_nobody_s(file: Any, path: Path, tmp_path: Path) -> None:
    for agent in ("main", "work"):
        transcript(tmp_path / "agents" / agent / "sessions", "s1.jsonl")
    say(file, file.conversation("s1", None), ("user", "one"))
    message = only(read(source_of(path, tmp_path), 1))
    assert (message.scope, message.origin) == ("lcm-unkeyed", "participant")


@pytest.mark.parametrize(
    ("key", "entry", "kind"),
    [
        ("agent:main:main", {}, "direct"),
        ("agent:main:telegram:group:7", {}, "group"),
        ("agent:main:discord:7", {"chatType": "channel"}, "group"),
        ("agent:main:discord:7", {"origin": {"chatType": "group"}}, "group"),
        ("agent:main:matrix:7:8", {}, "group"),
        ("agent:main:matrix:7:8", {"chatType": "direct"}, "direct"),
        ("agent:main:cron:7", {}, None),
        ("agent:main:x", {"spawnedBy": "agent:main:main"}, None),
    ],
)
def test_the_transcripts_say_who_takes_part_where_the_database_has_no_key(
    file: Any, path: Path, tmp_path: Path, key: str, entry: dict[str, Any], kind: str | None
) -> None:
    folder = tmp_path / "agents" / "main" / "sessions"
    transcript(folder, "s1.jsonl")
    (folder / "sessions.json").write_text(json.dumps({key: {"sessionId": "s1", **entry}, "other": 1}))
    say(file, file.conversation("s1", None), ("user", "one"))
    source = source_of(path, tmp_path)
    assert [stream.kind for stream in source.streams()] == ([kind] if kind else [])
    (answer,) = source.get([Wanted("1", "lcm:1:1")])
    assert isinstance(answer, Message) is (kind is not None)


def test_a_conversation_whose_owner_becomes_known_is_read_again(file: Any, path: Path) -> None:
    say(file, file.conversation("s1", None), ("user", "one"))
    source = source_of(path)
    cursor = read(source, 1)[-1].cursor
    file.db.execute("UPDATE conversations SET session_key = 'agent:main:main'")
    (batch,) = read(source, 1, cursor)
    assert batch.restarted
    assert [(m.ref, m.scope, m.origin) for m in batch.messages] == [("lcm:1:1", "main", "owner")]
    assert messages_of(read(source, 1, batch.cursor)) == []


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "text", "reason"),
    [
        ("tool", "total 0", "tool_result"),
        ("system", "a note", "system"),
        ("developer", "a role nobody knows", "other_role"),
        ("assistant", "", "empty"),
        ("user", " \n", "empty"),
        ("assistant", '[{"type":"text","text":""}]', "empty"),
        ("assistant", '[{"type":"toolCall","name":"exec"}]', "empty"),
        ("user", "## Compaction summary\nThe user lives in Tromsø.", "compaction"),
        (
            "user",
            "The conversation history before this point was compacted into the following summary:\n\n<summary>\nx",
            "compaction",
        ),
        (
            "user",
            "The following is a summary of a branch that this conversation came back from:\n\n<summary>\nx",
            "branch_summary",
        ),
        ("user", "[User image: cat.png (image/png, 70 bytes) | LCM file: file_1e0fe9f315c44e15]", "externalised"),
    ],
)
def test_a_row_without_an_utterance_is_skipped_with_a_reason(
    file: Any, path: Path, role: str, text: str, reason: str
) -> None:
    say(file, file.conversation("s1"), ("user", "one"), (role, text), ("assistant", "two"))
    batches = read(source_of(path), 1)
    assert [m.text for m in messages_of(batches)] == ["one", "two"]
    assert skipped(batches) == {reason: 1}
    assert source_of(path).get([Wanted("1", "lcm:1:2")]) == [Gone("lcm:1:2")]


@pytest.mark.parametrize(
    ("role", "text", "note"),
    [
        ("user", "Read HEARTBEAT.md if it exists. If nothing needs attention, reply HEARTBEAT_OK.", "heartbeat"),
        ("user", "[OpenClaw heartbeat poll]", "heartbeat"),
        ("user", "[cron:job-7 daily digest] Produce the daily digest.", "cron"),
        ("user", "[Subagent Context] You are running as a subagent.", "subagent"),
        ("user", "[Inter-session message] from research", "inter_session"),
        ("user", "$ ls -la\ntotal 0", "shell"),
        ("user", "/status", "slash_command"),
        ("user", "[Mon 2026-03-02 09:00 UTC] /new", "slash_command"),
        ("assistant", "HEARTBEAT_OK", "no_reply"),
        ("assistant", "NO_REPLY", "no_reply"),
        ("assistant", "[assistant turn failed before producing content]", "failed_turn"),
    ],
)
def test_what_the_host_says_is_the_host_s_whatever_its_role(
    file: Any, path: Path, role: str, text: str, note: str
) -> None:
    say(file, file.conversation("s1"), (role, text))
    message = only(read(source_of(path), 1))
    assert (message.origin, message.note, message.text) == ("host", note, text)


@pytest.mark.parametrize(
    "text", ["/tmp/notes is full", "/tmp is full", "$ 40 is too much", "I read HEARTBEAT.md today", "a/b"]
)
def test_what_only_looks_like_it_stays_the_owner_s(file: Any, path: Path, text: str) -> None:
    say(file, file.conversation("s1"), ("user", text))
    assert only(read(source_of(path), 1)).origin == "owner"


def test_the_answer_to_a_host_s_prompt_is_the_host_s(file: Any, path: Path) -> None:
    said = [
        ("user", "[OpenClaw heartbeat poll]"),
        ("tool", "checked"),
        ("assistant", "The greenhouse sensor is offline."),
        ("user", "since when?"),
        ("assistant", "Since two."),
    ]
    say(file, file.conversation("s1"), *said)
    for limit in (1, 2, 9):
        assert [m.origin for m in messages_of(read(source_of(path), 1, limit=limit))] == [
            *("host", "host", "owner", "assistant"),
        ]


def test_a_conversation_that_begins_with_a_subagent_s_task_is_the_host_s_to_its_end(file: Any, path: Path) -> None:
    said = [("user", "[Subagent Context] Count the ferries."), ("assistant", "Four."), ("user", "And boats?")]
    say(file, file.conversation("s1", None), *said)
    assert {(m.origin, m.note) for m in messages_of(read(source_of(path), 1, limit=1))} == {("host", "subagent")}


def test_a_subagent_s_task_in_the_middle_of_a_conversation_is_the_host_s_alone(file: Any, path: Path) -> None:
    said = [("user", "hello"), ("user", "[Subagent Context] Count."), ("assistant", "Four."), ("user", "And boats?")]
    say(file, file.conversation("s1"), *said)
    assert [m.origin for m in messages_of(read(source_of(path), 1))] == ["owner", "host", "host", "owner"]


def test_a_text_that_the_assistant_delivers_twice_is_one(file: Any, path: Path) -> None:
    said = [("user", "when?"), ("assistant", "At nine."), ("tool", "sent"), ("assistant", "At nine."), ("user", "ok")]
    say(file, file.conversation("s1"), *said)
    for limit in (1, 2, 9):
        batches = read(source_of(path), 1, limit=limit)
        assert [m.text for m in messages_of(batches)] == ["when?", "At nine.", "ok"]
        assert skipped(batches) == {"tool_result": 1, "repeat": 1}


def test_the_same_text_behind_a_compaction_is_another(file: Any, path: Path) -> None:
    said = [("assistant", "At nine."), ("user", "## Compaction summary\nx"), ("assistant", "At nine.")]
    say(file, file.conversation("s1"), *said)
    assert [m.ref for m in messages_of(read(source_of(path), 1))] == ["lcm:1:1", "lcm:1:3"]


def test_a_repeated_ok_stays_its_own(file: Any, path: Path) -> None:
    said = [("user", "ok"), ("user", "ok"), ("assistant", "ok"), ("user", "ok"), ("assistant", "ok")]
    ids = say(file, file.conversation("s1"), *said)
    assert [m.ref for m in messages_of(read(source_of(path), 1))] == [f"lcm:1:{row}" for row in ids]


def preamble(name: str, *, group: bool = False) -> str:
    info = {"message_id": "9000", "sender": name, **({"is_group_chat": True} if group else {})}
    blocks = (("Conversation info", info), ("Sender", {"label": f"{name} (7)", "name": name}))
    return "\n\n".join(f"{title} (untrusted metadata):\n```json\n{json.dumps(b, indent=2)}\n```" for title, b in blocks)


def test_a_channel_s_preamble_names_the_author_and_stays_in_the_text(file: Any, path: Path) -> None:
    text = f"{preamble('Ada Example')}\n\nWhere is the boat?"
    say(file, file.conversation("s1", "agent:main:telegram:direct:7"), ("user", text))
    message = only(read(source_of(path), 1))
    assert (message.author, message.origin, message.text) == ("Ada Example", "owner", text)


def test_a_command_behind_a_preamble_is_a_command(file: Any, path: Path) -> None:
    say(file, file.conversation("s1", "agent:main:telegram:direct:7"), ("user", f"{preamble('Ada')}\n\n/status"))
    assert only(read(source_of(path), 1)).note == "slash_command"


def test_once_a_text_says_that_others_are_present_nobody_is_the_owner(file: Any, path: Path) -> None:
    say(file, file.conversation("s1"), ("user", f"{preamble('Ada', group=True)}\n\nhello"), ("user", "and you?"))
    for limit in (1, 2):
        assert [m.origin for m in messages_of(read(source_of(path), 1, limit=limit))] == ["participant"] * 2


@pytest.mark.parametrize(
    ("stored", "author"),
    [
        ('{"senderId":"800","senderName":"Ana","senderUsername":"ana"}', "Ana"),
        ('{"senderId":"800","senderUsername":"ana"}', "ana"),
        ('{"senderName":"A\\n na\\ud800"}', "A na\ufffd"),
        ('{"senderName":7}', None),
        ("[1]", None),
        ("{", None),
        (None, None),
    ],
)
def test_a_group_s_sender_is_the_author(file: Any, path: Path, stored: str | None, author: str | None) -> None:
    conversation = file.conversation("s1", "agent:main:discord:channel:4242")
    for role in ("user", "assistant"):
        file.say(conversation, role, "hello", START, openclaw_sender_metadata=stored)
    told_by = [(m.origin, m.author) for m in messages_of(read(source_of(path), 1))]
    assert told_by == [("participant", author), ("assistant", None)]


def test_a_message_that_is_seen_before_its_parts_is_delivered_whole_and_once(file: Any, path: Path) -> None:
    (row,) = say(file, file.conversation("s1"), ("assistant", "the whole text"))
    source = source_of(path)
    batches = read(source, 1)
    assert told(batches) == [("lcm:1:1", "the whole text")]
    mark = stream_of(source, 1).mark
    file.db.execute("INSERT INTO message_parts VALUES ('p1', ?, 's1', 'text', 0, 'the whole text', NULL)", (row,))
    file.db.execute("UPDATE messages SET transcript_entry_id = 'e1', identity_hash = 'h'")
    assert stream_of(source, 1).mark == mark
    assert told(read(source, 1, batches[-1].cursor)) == []


# --- text -------------------------------------------------------------------------------------------------------------

EXPLORED = """Exploration Summary:
Text exploration summary (greenhouse.log):
Characters: 17,808.
Words: 2,340.
Lines: 262.
Detected section headers: none detected.
Opening excerpt: row 0: sensor=0 row 1: sensor=1.
Closing excerpt: row 259: sensor=1."""
FETCH = 'Call lcm_describe(id="<file_id above>", expandFile=true) to fetch the full payload content from disk.'
FILE = "[LCM File: file_bfed72cd0b1d47d9 | greenhouse.log | text/plain | 17,808 bytes]"
IMAGE = "[User image: user-image.png (image/png, 70 bytes) | LCM file: file_1e0fe9f315c44e15]"
PAYLOAD = "[LCM Raw Payload: file_7a5e1edaca2c4a82 | role=user | reason=large_raw_message | 26,289 bytes]"
BY_A_MODEL = "Exploration Summary:\nThe document is about ferries.\n\nIt names Ada."


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (f"Please look\n{FILE}\n\n{EXPLORED}\nthanks", "Please look\n\nthanks"),
        (f"{FILE}\n\n{EXPLORED}", None),
        (f"{FILE}\n\n{EXPLORED}\n{FILE}\n\n{EXPLORED}\nboth?", "both?"),
        (f"Here is a photo\n{IMAGE}", "Here is a photo"),
        (f"{IMAGE} and {IMAGE}", "and"),
        (f"{PAYLOAD}\n\n{EXPLORED}\n\n{FETCH}", None),
        (f"{PAYLOAD}\n\n{BY_A_MODEL}\n\n{FETCH}\n\nwhat is it?", "what is it?"),
        (f"look\n{FILE}\n\n{BY_A_MODEL}\nand this", "look"),
        (f"{FILE}\n\n{BY_A_MODEL}\n{IMAGE}\na photo too", "a photo too"),
        (f"{FILE}\n\nExploration Summary:\n(no summary available)\nsee?", "see?"),
        (f"{FILE}\n\nExploration Summary:\nStructured summary (CSV):\nRows: 3.\nColumns (2): a, b.\nhere", "here"),
        ("the word LCM File: alone", "the word LCM File: alone"),
        ("[LCM File: not-an-id | x]  ", "[LCM File: not-an-id | x]  "),
    ],
)
def test_what_was_moved_out_of_a_text_leaves_nothing_of_the_machine_s(
    file: Any, path: Path, stored: str, text: str | None
) -> None:
    say(file, file.conversation("s1"), ("user", stored))
    source = source_of(path)
    batches = read(source, 1)
    assert [m.text for m in messages_of(batches)] == ([] if text is None else [text])
    assert skipped(batches) == ({"externalised": 1} if text is None else {})
    assert source.get(wanted(messages_of(batches))) == messages_of(batches)


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("größer, 東京, \U0001f44d, \u05e9\u05dc\u05d5\u05dd", "größer, 東京, \U0001f44d, \u05e9\u05dc\u05d5\u05dd"),
        ("  spaces stay  \n", "  spaces stay  \n"),
        ("before\0behind", "before\0behind"),
        (b"foo\xff bar", "foo\ufffd bar"),
        (b"a lone \xed\xa0\x80 surrogate", "a lone \ufffd\ufffd\ufffd surrogate"),
        ('[{"type":"text","text":"one"},{"type":"image"},{"type":"text","text":"two \\ud83d"}]', "one\ntwo \ufffd"),
        ('[{"name":"a list of the person\'s own"}]', '[{"name":"a list of the person\'s own"}]'),
        ('[{"type":"text","text":"cut off', '[{"type":"text","text":"cut off'),
        ("[" * 5_000, "[" * 5_000),
        ('[{"type":' * 5_000, '[{"type":' * 5_000),
    ],
)
def test_text_is_delivered_as_stored_and_read_back_the_same(
    file: Any, path: Path, stored: str | bytes, text: str
) -> None:
    say(file, file.conversation("s1"), ("user", stored), ("assistant", "still here"))
    source = source_of(path)
    messages = messages_of(read(source, 1))
    assert [m.text for m in messages] == [text, "still here"]
    assert source.get(wanted(messages)) == messages


def test_a_text_that_is_too_long_costs_itself_alone(file: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LINE_LIMIT", 50)
    say(file, file.conversation("s1"), ("user", "one"), ("user", "ö" * 26), ("user", "ö" * 25))
    source = source_of(path)
    batches = read(source, 1)
    assert [m.text for m in messages_of(batches)] == ["one", "ö" * 25]
    assert [(fault.reason, fault.where) for batch in batches for fault in batch.faults] == [("oversize", "1#2")]
    assert source.get([Wanted("1", "lcm:1:2")]) == [Gone("lcm:1:2")]
    assert messages_of(read(source, 1, batches[-1].cursor)) == []


def test_cells_of_other_types_and_bytes_break_nothing(file: Any, path: Path) -> None:
    broken = "CAST(x'ff61' AS TEXT)"
    say(file, file.conversation("s1", "agent:main:main"), ("user", "one"), ("assistant", "two"))
    file.db.execute(f"UPDATE conversations SET session_id = {broken}, archive_cause = {broken}")
    file.db.execute(f"UPDATE messages SET created_at = {broken}, openclaw_sender_metadata = {broken}")
    file.db.execute("UPDATE messages SET content = x'626c6f62' WHERE message_id = 2")
    assert [(m.text, m.session) for m in everything(source_of(path))] == [("one", "\ufffda"), ("blob", "\ufffda")]


def test_a_read_ends_at_so_many_bytes(file: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clawmark_sources.lcm.BYTES_A_READ", 250)
    said = [("user", f"{number:0100d}") for number in range(7)]
    say(file, file.conversation("s1"), *said)
    batches = read(source_of(path), 1)
    assert [len(batch.messages) for batch in batches] == [3, 3, 1]
    assert [m.text for m in messages_of(batches)] == [text for _, text in said]


def test_a_read_ends_at_so_many_rows_and_gets_on(file: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clawmark_sources.lcm.ROWS_A_READ", 3)
    say(file, file.conversation("s1"), *[("tool", "x")] * 7, ("user", "one"), ("user", "two"))
    batches = read(source_of(path), 1)
    assert [m.text for m in messages_of(batches)] == ["one", "two"]
    assert len({batch.cursor for batch in batches[:-1]}) == len(batches) - 1
    assert skipped(batches) == {"tool_result": 7}


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "at"),
    [
        ("2026-03-02 09:00:00", START),
        ("2026-03-02T09:00:00.123Z", START + timedelta(milliseconds=123)),
        ("2026-03-02T11:00:00+02:00", START),
        ("2026-03-02 09:00", START),
        ("1772442000000", START),
    ],
)
def test_a_time_without_a_zone_is_utc_and_others_say_theirs(file: Any, path: Path, stored: str, at: datetime) -> None:
    file.say(file.conversation("s1"), "user", "one", stored)
    message = only(read(source_of(path), 1))
    assert (message.at, message.dated) == (at, True)


@pytest.mark.parametrize("stored", ["not a date", "", "2026-13-40 09:00:00", "NaN", "9" * 400])
def test_what_nobody_can_date_stands_with_the_row_before_it(file: Any, path: Path, stored: str) -> None:
    conversation = file.conversation("s1")
    file.say(conversation, "user", "first", stored)
    file.say(conversation, "user", "one", START)
    file.say(conversation, "tool", "two", START + timedelta(minutes=5))
    file.say(conversation, "user", "three", stored)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = [(epoch, False), (START, True), (START + timedelta(minutes=5), False)]
    for limit in (1, 2, 9):
        batches = read(source_of(path), 1, limit=limit)
        assert [(m.at, m.dated) for m in messages_of(batches)] == expected


def test_ids_are_the_order_and_times_are_not(file: Any, path: Path) -> None:
    conversation = file.conversation("s1")
    for number in (5, 1, 9, 3):
        file.say(conversation, "user", str(number), START + timedelta(days=number))
    assert [m.text for m in messages_of(read(source_of(path), 1, limit=1))] == ["5", "1", "9", "3"]


# --- windows and batches ----------------------------------------------------------------------------------------------


def test_a_window_begins_at_each_compaction_summary_wherever_batches_fall(file: Any, path: Path) -> None:
    said = [
        ("user", "one"),
        ("assistant", "two"),
        ("user", "## Compaction summary\nfirst"),
        ("assistant", "three"),
        ("tool", "x"),
        ("user", "## Compaction summary\nsecond"),
        ("user", "The following is a summary of a branch that this conversation came back from:\n\n<summary>\nx"),
        ("user", "four"),
    ]
    say(file, file.conversation("s1"), *said)
    for limit in (1, 2, 3, 9):
        windows = [m.window for m in messages_of(read(source_of(path), 1, limit=limit))]
        assert windows == ["", "", "lcm:3", "lcm:6"]


def test_what_stands_before_a_batch_is_as_it_was_read(file: Any, path: Path) -> None:
    said = [
        ("user", f"{preamble('Ada', group=True)}\n\nhello"),
        ("user", "[OpenClaw heartbeat poll]"),
        ("assistant", "The boat is cold."),
        ("user", "## Compaction summary\nx"),
        ("assistant", "At nine."),
        ("assistant", "At nine."),
        ("user", "thanks"),
    ]
    conversation = file.conversation("s1")
    say(file, conversation, *said)
    file.say(conversation, "assistant", "undated", "no date")
    file.say(conversation, "user", "last", START)
    source = source_of(path)
    whole = messages_of(read(source, 1))
    previous: dict[str, Message | None] = dict(zip([m.ref for m in whole], [None, *whole[:-1]], strict=True))
    for limit in (1, 2, 3):
        for batch in read(source, 1, limit=limit):
            if batch.messages:
                assert batch.before == previous[batch.messages[0].ref]


# --- the life of a file -----------------------------------------------------------------------------------------------


def copied(path: Path, name: str) -> Path:
    """A copy of a database that nobody has open."""
    return Path(shutil.copy(path, path.with_name(name)))


def five(path: Path) -> None:
    file = lcm.LcmFile(path)
    say(file, file.conversation("s1"), *[("user", f"message {number}") for number in range(5)])
    file.close()


def test_a_recreated_file_begins_an_epoch(path: Path) -> None:
    five(path)
    source = source_of(path)
    cursor = read(source, 1)[-1].cursor
    path.unlink()
    file = lcm.LcmFile(path)
    say(file, file.conversation("s9"), ("user", "first of the new file"))
    file.close()
    (batch,) = read(source, 1, cursor)
    assert told([batch]) == [("lcm:2:1", "first of the new file")]
    assert (batch.restarted, batch.renumbered) == (True, "lcm:2:")
    assert read(source, 1, batch.cursor)[0].renumbered == ""


def test_a_restored_file_whose_ids_were_given_again_begins_an_epoch(path: Path) -> None:
    five(path)
    kept = copied(path, "kept.db")
    file = lcm.LcmFile(path)
    say(file, 1, ("user", "lost"), ("user", "lost too"))
    file.close()
    source = source_of(path)
    cursor = read(source, 1)[-1].cursor
    os.replace(kept, path)
    file = lcm.LcmFile(path)
    say(file, 1, ("user", "given again"), ("user", "and again"), ("user", "and new"))
    file.close()
    batches = read(source, 1, cursor, limit=2)
    assert [m.ref for m in messages_of(batches)] == [f"lcm:2:{number}" for number in range(1, 9)]
    assert batches[0].restarted and not any(batch.restarted for batch in batches[1:])


def test_only_what_stood_there_when_the_epoch_began_may_be_a_copy(path: Path) -> None:
    five(path)
    source = source_of(path)
    cursor = read(source, 1)[-1].cursor
    path.unlink()
    file = lcm.LcmFile(path)
    say(file, file.conversation("s1"), *[("user", f"message {number}") for number in range(3)])
    file.close()
    first = source.read(stream_of(source, 1), cursor, 2)
    assert (len(first.messages), first.renumbered, first.end) == (2, "lcm:2:", False)
    file = lcm.LcmFile(path)
    say(file, 1, ("user", "new"), ("user", "newer"), start=9)
    file.close()
    old, new = read(source, 1, first.cursor)
    assert [(m.ref) for m in old.messages] == ["lcm:2:3"] and old.renumbered == "lcm:2:" and not old.end
    assert [(m.ref) for m in new.messages] == ["lcm:2:4", "lcm:2:5"] and new.renumbered == ""


def test_a_file_that_only_grows_is_one_epoch(path: Path) -> None:
    five(path)
    source = source_of(path)
    cursor = None
    for number in range(12):
        batches = read(source, 1, cursor)
        assert {batch.renumbered for batch in batches} == {""}
        assert [batch.restarted for batch in batches] == [number == 0]
        cursor = batches[-1].cursor
        file = lcm.LcmFile(path)
        say(file, 1, ("user", f"later {number}"))
        file.close()


def test_a_vacuum_and_late_stamps_change_nothing(path: Path) -> None:
    five(path)
    source = source_of(path)
    cursor = read(source, 1)[-1].cursor
    file = lcm.LcmFile(path)
    file.db.execute(
        "UPDATE messages SET transcript_entry_id = message_id, identity_hash = 'h', large_content = 'file_1'"
    )
    file.db.execute("VACUUM")
    file.close()
    (batch,) = read(source, 1, cursor)
    assert (list(batch.messages), batch.restarted, batch.took_back) == ([], False, False)


def test_a_position_all_of_whose_rows_were_pruned_goes_on(path: Path) -> None:
    five(path)
    source = source_of(path)
    cursor = read(source, 1)[-1].cursor
    file = lcm.LcmFile(path)
    say(file, 1, ("user", "new"))
    file.prune(1, 2, 3, 4, 5)
    file.close()
    (batch,) = read(source, 1, cursor)
    assert told([batch]) == [("lcm:1:6", "new")]
    assert (batch.restarted, batch.took_back) == (False, True)


def test_a_cursor_stays_small(path: Path) -> None:
    file = lcm.LcmFile(path)
    say(file, file.conversation("s1"), *[("user", "long " * 200)] * 50)
    file.close()
    assert len(read(source_of(path), 1)[-1].cursor) < 1_000


# --- rows that go and rows that move ----------------------------------------------------------------------------------


def test_pruned_rows_are_withdrawn_and_only_they(file: Any, path: Path) -> None:
    ids = say(file, file.conversation("s1"), *[("user", f"message {number}") for number in range(6)])
    source = source_of(path)
    refs = [f"lcm:1:{row}" for row in ids]
    cursor = read(source, 1)[-1].cursor
    assert source.withdrawn(stream_of(source, 1), cursor, refs) == set()
    file.prune(2, 4)
    say(file, 1, ("user", "new"))
    (batch,) = read(source, 1, cursor)
    assert (told([batch]), batch.restarted, batch.took_back) == ([("lcm:1:7", "new")], False, True)
    assert source.withdrawn(stream_of(source, 1), batch.cursor, [*refs, "lcm:1:7"]) == {"lcm:1:2", "lcm:1:4"}
    assert not read(source, 1, batch.cursor)[0].took_back
    assert source.get([Wanted("1", "lcm:1:2")]) == [Gone("lcm:1:2")]


def test_more_refs_than_one_query_takes_are_looked_at(file: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "IDS_A_QUERY", 2)
    ids = say(file, file.conversation("s1"), *[("user", f"message {number}") for number in range(7)])
    source = source_of(path)
    cursor = read(source, 1)[-1].cursor
    file.prune(5)
    refs = [f"lcm:1:{row}" for row in ids]
    assert source.withdrawn(stream_of(source, 1), cursor, refs) == {"lcm:1:5"}


def test_rows_whose_conversation_is_missing_are_not_withdrawn(file: Any, path: Path) -> None:
    say(file, file.conversation("s1"), ("user", "one"))
    source = source_of(path)
    stream = stream_of(source, 1)
    cursor = read(source, 1)[-1].cursor
    file.db.execute("PRAGMA foreign_keys = OFF")
    file.db.execute("DELETE FROM conversations")
    assert source.withdrawn(stream, cursor, ["lcm:1:1"]) == set()


def test_refs_of_an_earlier_epoch_are_never_withdrawn(path: Path) -> None:
    five(path)
    source = source_of(path)
    old = read(source, 1)[-1].cursor
    path.unlink()
    file = lcm.LcmFile(path)
    say(file, file.conversation("s1"), ("user", "new"))
    file.close()
    stream = stream_of(source, 1)
    refs = [f"lcm:1:{number}" for number in range(1, 6)]
    assert source.withdrawn(stream, old, refs) == set()
    new = read(source, 1, old)[-1].cursor
    assert source.withdrawn(stream, new, [*refs, "lcm:2:1", "lcm:2:4"]) == {"lcm:2:4"}
    assert source.withdrawn(stream, None, refs) == set()


def test_rows_that_are_moved_into_a_conversation_are_read_and_nothing_is_withdrawn(file: Any, path: Path) -> None:
    a, b = file.conversation("s1", "agent:main:split"), file.conversation("s2", "agent:main:split", active=0)
    say(file, a, ("user", "half one"), ("assistant", "one"))
    say(file, b, ("user", "half two"), ("assistant", "two"))
    source = source_of(path)
    streams = {stream.name: stream for stream in source.streams()}
    cursors = {name: drain(source, stream)[-1].cursor for name, stream in streams.items()}
    for row, seq in ((3, 13), (4, 14), (1, 1), (2, 2)):
        file.move(row, b, seq)
    (now,) = source.streams()
    assert now.mark != streams[str(b)].mark
    (batch,) = read(source, b, cursors[str(b)])
    assert [m.ref for m in batch.messages] == [f"lcm:1:{number}" for number in (1, 2, 3, 4)]
    assert (batch.restarted, batch.renumbered) == (True, "")
    refs = ["lcm:1:1", "lcm:1:2"]
    assert source.withdrawn(streams[str(a)], cursors[str(a)], refs) == set()
    assert source.fate(streams[str(a)], cursors[str(a)], START) == "gone"
    assert [m.stream for m in source.get([Wanted(str(a), ref) for ref in refs]) if isinstance(m, Message)] == ["2", "2"]


def test_rows_that_are_moved_in_begin_no_epoch(path: Path) -> None:
    five(path)
    source = source_of(path)
    cursor = read(source, 1)[-1].cursor
    path.unlink()
    file = lcm.LcmFile(path)
    a, b = file.conversation("s1"), file.conversation("s2", "agent:main:other")
    say(file, b, ("user", "half one"))
    say(file, a, ("user", "half two"))
    cursor = read(source, a, cursor)[-1].cursor
    file.move(1, a, 9)
    (batch,) = read(source, a, cursor)
    assert told([batch]) == [("lcm:2:1", "half one"), ("lcm:2:2", "half two")]
    assert (batch.restarted, batch.renumbered) == (True, "lcm:2:")
    file.close()


def test_rows_that_are_moved_away_leave_the_others_where_they_are(file: Any, path: Path) -> None:
    a, b = file.conversation("s1"), file.conversation("s2", "agent:main:other")
    say(file, a, ("user", "one"), ("user", "two"), ("user", "three"))
    source = source_of(path)
    cursor = read(source, a)[-1].cursor
    file.move(1, b, 1)
    say(file, a, ("user", "four"))
    (batch,) = read(source, a, cursor)
    assert (told([batch]), batch.took_back) == ([("lcm:1:4", "four")], True)
    assert source.withdrawn(stream_of(source, a), batch.cursor, ["lcm:1:1", "lcm:1:2"]) == set()


# --- what became of a stream ------------------------------------------------------------------------------------------


def test_a_conversation_that_was_pruned_is_gone(file: Any, path: Path) -> None:
    a, b = file.conversation("s1"), file.conversation("s2", "agent:main:other")
    say(file, a, ("user", "one"))
    say(file, b, ("user", "two"))
    source = source_of(path)
    streams = {stream.name: stream for stream in source.streams()}
    cursors = {name: drain(source, stream)[-1].cursor for name, stream in streams.items()}
    file.db.execute("DELETE FROM conversations WHERE conversation_id = ?", (a,))
    file.prune(2)
    assert {source.fate(streams[str(one)], cursors[str(one)], START) for one in (a, b)} == {"gone"}
    assert source.fate(streams["1"], "no cursor", START) == "lost"
    assert source.fate(streams["1"], None, START) == "lost"


def test_a_conversation_that_another_file_does_not_hold_is_lost(path: Path) -> None:
    five(path)
    source = source_of(path)
    stream = stream_of(source, 1)
    cursor = read(source, 1)[-1].cursor
    path.unlink()
    file = lcm.LcmFile(path)
    assert source.fate(stream, cursor, START) == "lost"
    say(file, file.conversation("x"), *[("user", f"another {number}") for number in range(9)])
    file.archive(1, "manual-reset")
    assert source.fate(stream, cursor, START) == "lost"
    file.close()


def test_a_conversation_that_became_the_host_s_is_lost(file: Any, path: Path) -> None:
    say(file, file.conversation("s1"), ("user", "one"))
    source = source_of(path)
    stream = stream_of(source, 1)
    cursor = read(source, 1)[-1].cursor
    file.db.execute("UPDATE conversations SET session_key = 'agent:main:cron:job-7'")
    assert source.fate(stream, cursor, START) == "lost"


def test_nothing_is_said_of_a_stream_while_the_file_is_away_or_held(path: Path) -> None:
    five(path)
    source = source_of(path)
    stream = stream_of(source, 1)
    cursor = read(source, 1)[-1].cursor
    holder = apsw.Connection(str(path))
    holder.execute("PRAGMA journal_mode = DELETE")
    holder.execute("BEGIN EXCLUSIVE")
    source = source_of(path)
    for ask in (
        lambda: source.fate(stream, cursor, START),
        lambda: source.withdrawn(stream, cursor, ["lcm:1:1"]),
        lambda: source.get([Wanted("1", "lcm:1:1")]),
        lambda: source.read(stream, cursor, 9),
    ):
        with pytest.raises(SourceBusy):
            ask()
    holder.close()
    path.unlink()
    with pytest.raises(SourceAbsent):
        source.fate(stream, cursor, START)


# --- the recorded data ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Path:
    found = shared("fixtures", "lossless-claw", "lcm.db")
    if found is None:
        pytest.skip("the shared fixtures are not at hand")
    return found


@pytest.fixture
def copy(recorded: Path, path: Path) -> Path:
    """The recorded database; a copy, because the original is not ours to open."""
    return Path(shutil.copyfile(recorded, path))


def unpacked(recorded: Path, name: str, path: Path) -> Path:
    path.write_bytes(lzma.decompress((recorded.parent / f"{name}.db.xz").read_bytes()))
    return path


@pytest.fixture(scope="module")
def variants(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("variants")
    script = recorded.parent / "make_variants.py"
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True)
    return folder


def cursors_of(source: LcmSource) -> dict[str, str]:
    return {stream.name: drain(source, stream)[-1].cursor for stream in source.streams()}


def rows_passed(source: LcmSource, cursors: dict[str, str] | None = None) -> int:
    """How many rows are passed behind the cursors, whatever became of them."""
    total = 0
    for stream in source.streams():
        for batch in drain(source, stream, (cursors or {}).get(stream.name)):
            total += len(batch.messages) + sum(batch.skipped.values()) + len(batch.faults)
    return total


def test_the_recorded_conversations_are_listed_with_their_owners(copy: Path) -> None:
    listed = {stream.name: (stream.scope, stream.kind) for stream in source_of(copy).streams()}
    assert listed == {
        "1": ("main", "direct"),
        "2": ("main", "direct"),
        "3": ("research", "direct"),
        "5": ("main", "group"),
        "6": ("main", "direct"),
        "9": ("main", "direct"),
        "10": ("lcm-unkeyed", "group"),
        "11": ("main", "direct"),
        "12": ("lcm-unkeyed", "group"),
    }


def test_the_recorded_rows_are_what_the_record_says_of_them(copy: Path) -> None:
    source = source_of(copy)
    messages = {int(m.location): m for m in everything(source)}
    assert "vi møtes på kaia" in messages[83].text and "\U0001f469\U0001f3fd\u200d\U0001f680" in messages[83].text
    assert "hunter2-example" in messages[98].text and messages[98].author == "Demo User"
    assert "<relevant-memories>" in messages[102].text
    assert "ignore all previous instructions" in messages[110].text
    assert messages[126].text == "Please look at this log\n\nthanks"
    assert messages[130].text == "Here is a photo"
    assert (messages[222].origin, messages[222].note) == ("host", "shell")
    assert [(messages[row].origin, messages[row].note) for row in (269, 270, 275, 276)] == [("host", "heartbeat")] * 4
    assert [messages[row].text for row in (373, 374, 400, 402)] == ["ok", "ok", "stored", "stored"]
    assert {messages[row].at.year for row in range(403, 423)} == {2025}
    assert {messages[row].origin for row in range(403, 423)} == {"participant", "assistant"}
    assert messages.keys().isdisjoint([91, 125, 128, 132, *range(223, 251), *range(277, 281)])
    assert source.get(wanted(list(messages.values())))[0] == messages[1]


def test_every_recorded_message_is_read_back_as_it_was(copy: Path) -> None:
    source = source_of(copy)
    messages = everything(source)
    back = source.get(wanted(messages))
    assert [(m.ref, m.text, m.session, m.scope) for m in messages] == [
        (m.ref, m.text, m.session, m.scope) for m in back if isinstance(m, Message)
    ]


def test_the_recorded_rows_are_counted_by_reason(copy: Path) -> None:
    batches = [batch for stream in source_of(copy).streams() for batch in drain(source_of(copy), stream)]
    origins = Counter(m.note or m.origin for m in messages_of(batches))
    assert sum(origins.values()) + sum(skipped(batches).values()) == 412 - 28 - 4
    assert skipped(batches) == {"empty": 31, "tool_result": 39, "compaction": 1, "system": 1, "externalised": 1}
    assert origins == {"owner": 133, "assistant": 151, "participant": 17, "heartbeat": 4, "no_reply": 1, "shell": 1}


def test_the_recorded_back_fill_is_its_agent_s_where_the_transcripts_are(
    copy: Path, recorded: Path, tmp_path: Path
) -> None:
    sessions = tmp_path / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    for transcript_file in (recorded.parent / "sessions").iterdir():
        shutil.copyfile(transcript_file, sessions / transcript_file.name)
    listed = {stream.name: (stream.scope, stream.kind) for stream in source_of(copy, tmp_path).streams()}
    assert (listed["10"], listed["12"]) == (("lcm-unkeyed", "group"), ("main", "direct"))


def test_following_a_pruned_file_gives_its_two_new_rows(copy: Path, recorded: Path) -> None:
    source = source_of(copy)
    cursors = cursors_of(source)
    unpacked(recorded, "lcm-pruned", copy)
    assert rows_passed(source, cursors) == 2
    streams = {stream.name: stream for stream in source_of(copy).streams()}
    vanished = [Stream(name, "", "main", "") for name in cursors if name not in streams]
    assert {source.fate(stream, cursors[stream.name], START) for stream in vanished} == {"gone"}


def test_following_a_repaired_file_gives_its_four_new_rows(copy: Path, recorded: Path) -> None:
    source = source_of(copy)
    cursors = cursors_of(source)
    unpacked(recorded, "lcm-doctor-repaired", copy)
    assert rows_passed(source, cursors) == 4
    assert not any(
        b.restarted or b.took_back
        for s in source.streams()
        if s.name in cursors
        for b in drain(source, s, cursors[s.name])
    )


@pytest.mark.parametrize("version", ["v0.1.2", "v0.9.2", "v0.12.0", "next_1.0"])
def test_every_version_s_file_is_read(recorded: Path, path: Path, version: str) -> None:
    source = source_of(unpacked(recorded, f"lcm-schema-{version}", path))
    source.check()
    assert rows_passed(source) == 36
    assert source.get(wanted(everything(source))) == everything(source)


def test_a_copy_that_was_taken_while_the_file_was_open_is_read_with_its_write_ahead_log(
    recorded: Path, tmp_path: Path
) -> None:
    with tarfile.open(recorded.parent / "wal-live.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    before = {p.name for p in tmp_path.iterdir()}
    assert rows_passed(source_of(tmp_path / "lcm.db")) == 4
    assert {p.name for p in tmp_path.iterdir()} <= before


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("drift-content-renamed", "no column content"),
        ("drift-id-renamed", "no column message_id"),
        ("drift-table-renamed", "no table messages"),
        ("drift-id-text", "message_id is TEXT"),
        ("drift-view", "messages is a view"),
        ("empty-no-tables", "no table messages"),
    ],
)
def test_a_variant_in_another_form_is_drift(variants: Path, path: Path, name: str, named: str) -> None:
    shutil.copyfile(variants / f"{name}.db", path)
    for look in (source_of(path).check, lambda: list(source_of(path).streams())):
        with pytest.raises(SourceDrift, match=named):
            look()


@pytest.mark.parametrize("name", ["corrupt-truncated", "corrupt-messages-root", "corrupt-header"])
def test_a_damaged_variant_is_corrupt_and_left_as_it_is(variants: Path, path: Path, name: str) -> None:
    shutil.copyfile(variants / f"{name}.db", path)
    before = beside(path)
    with pytest.raises(SourceCorrupt):
        source_of(path).check()
        everything(source_of(path))
    assert beside(path) == before


def test_an_empty_variant_is_absent(variants: Path, path: Path) -> None:
    shutil.copyfile(variants / "empty-0-bytes.db", path)
    with pytest.raises(SourceAbsent):
        source_of(path).check()


def test_a_variant_without_rows_is_read(variants: Path, path: Path) -> None:
    shutil.copyfile(variants / "empty-no-rows.db", path)
    source_of(path).check()
    assert everything(source_of(path)) == []


@pytest.mark.parametrize("name", ["created-at-mixed", "role-new-value", "invalid-utf8"])
def test_an_odd_variant_is_read(variants: Path, path: Path, name: str) -> None:
    shutil.copyfile(variants / f"{name}.db", path)
    batches = read(source_of(path), 1)
    messages = {int(m.location): m for m in messages_of(batches)}
    if name == "created-at-mixed":
        assert [row for row, m in messages.items() if not m.dated] == [5]
        ((before,),) = apsw.Connection(str(path)).execute("SELECT created_at FROM messages WHERE message_id = 4")
        assert messages[5].at == datetime.fromisoformat(before).replace(tzinfo=UTC)
    elif name == "role-new-value":
        assert skipped(batches)["other_role"] == 1
    else:
        assert messages[6].text == "foo\ufffdbar"


def test_a_variant_whose_ids_restart_begins_an_epoch(copy: Path, variants: Path) -> None:
    source = source_of(copy)
    cursors = cursors_of(source)
    shutil.copyfile(variants / "reset-ids-restart.db", copy)
    (batch,) = read(source, 1, cursors["1"])
    assert [m.ref for m in batch.messages] == ["lcm:2:1", "lcm:2:2"]
    assert (batch.restarted, batch.renumbered) == (True, "lcm:2:")
    vanished = [Stream(name, "", "main", "") for name in cursors if name != "1"]
    assert {source.fate(stream, cursors[stream.name], START) for stream in vanished} == {"lost"}


def test_a_variant_that_was_restored_begins_an_epoch_where_ids_were_given_again(copy: Path, variants: Path) -> None:
    source = source_of(copy)
    cursors = cursors_of(source)
    shutil.copyfile(variants / "restored-older-backup.db", copy)
    streams = {stream.name: stream for stream in source.streams()}
    (batch,) = read(source, 9, cursors["9"])
    assert batch.restarted and batch.renumbered == "lcm:2:"
    assert len(messages_of(read(source, 1, cursors["1"]))) == 150
    vanished = [Stream(name, "", "main", "") for name in cursors if name not in streams]
    assert {source.fate(stream, cursors[stream.name], START) for stream in vanished} == {"lost"}
    assert rows_passed(source) == 440 - 28 - 4


# --- beside a writer --------------------------------------------------------------------------------------------------


def follow(path: Path, steps: int) -> tuple[Counter[str], list[Batch], dict[str, str]]:
    """Reads beside three writers until they are done: how often each ref came, every batch, and the last cursors."""
    script = path.parent / "writer.py"
    writers = [
        subprocess.Popen([sys.executable, str(script), str(path), str(steps), str(seed)], stdout=subprocess.DEVNULL)
        for seed in (1, 2, 3)
    ]
    source = source_of(path)
    cursors: dict[str, str] = {}
    seen: Counter[str] = Counter()
    batches: list[Batch] = []
    end = False
    while not end:
        end = all(writer.poll() is not None for writer in writers)
        try:
            for stream in source.streams():
                for batch in drain(source, stream, cursors.get(stream.name), limit=50):
                    seen.update(m.ref for m in batch.messages)
                    batches.append(batch)
                    cursors[stream.name] = batch.cursor
        except SourceBusy:  # the first writer opened the file, or the last one closed it
            end = False
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    return seen, batches, cursors


def test_beside_three_writers_nothing_is_lost_and_nothing_comes_twice(copy: Path, recorded: Path) -> None:
    shutil.copyfile(recorded.parent / "concurrent_writer.py", copy.parent / "writer.py")
    seen, batches, cursors = follow(copy, 300)
    there = {m.ref for m in everything(source_of(copy))}
    assert there - seen.keys() == set()
    assert [ref for ref, times in seen.items() if times > 1] == []
    assert {batch.renumbered for batch in batches} == {""}
    assert sum(batch.restarted for batch in batches) == len(cursors)
