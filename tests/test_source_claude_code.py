"""Claude Code's transcripts: the source contract over files written as the host writes them, the sample history, every
hostile line of the corpus, and each rule about what is an utterance, what was left behind and whose memory it is."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tracemalloc
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers import REPOSITORY, fixture, shared
from hypothesis import given
from hypothesis import strategies as st

from clawmark.errors import SourceAbsent, SourceEmpty, SourceError
from clawmark.hosts.claude_code.project import scope_of
from clawmark.model import Batch, Gone, Message, Role, Stream, Wanted
from clawmark.source import Folders
from clawmark.testing import START, Log, SourceContract, drain, everything, messages_of, wanted
from clawmark_sources.claude_code import ClaudeCodeSource, transcript
from clawmark_sources.claude_code.branches import Node, Says, branches, node_of
from clawmark_sources.claude_code.entry import is_markup, read_line, skim, when
from clawmark_sources.jsonline import LINE_LIMIT

claude = fixture("claude")
SAMPLE = REPOSITORY / "tests" / "fixtures" / "claude"
CWD = "/home/ines/kiln-ledger"
PROJECT = claude.project_folder(CWD)


# --- logs written as the host writes them ----------------------------------------------------------------------------


def later(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


class ClaudeLog(Log):
    """<root>/projects/<project>/<session>.jsonl. After each prompt comes a tool call with its result."""

    def __init__(self, root: Path, *, subagents: bool = False) -> None:
        self.root = root
        self.folder = root / "projects" / PROJECT
        self.subagents = subagents
        self.sessions: dict[str, Any] = {}
        self.spoken: dict[str, list[tuple[str, list[Any]]]] = {}
        self.torn = b""

    def source(self) -> ClaudeCodeSource:
        return ClaudeCodeSource(Folders(None, self.root, claude=self.root, subagents=self.subagents))

    def path(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def write(self, session: str, *lines: Any, at: datetime = START) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.path(session), "ab") as file:
            file.writelines(line + b"\n" if isinstance(line, bytes) else claude.encoded(line) for line in lines)
        os.utime(self.path(session), (at.timestamp(), at.timestamp()))

    def new_session(self, name: str) -> str:
        made = claude.Session(name, CWD)
        code = name.encode().hex().ljust(32, "0")
        made.id = "-".join((code[:8], code[8:12], code[12:16], code[16:20], code[20:]))
        self.sessions[made.id] = made
        self.spoken[made.id] = []
        self.write(made.id, made.snapshot(START))
        return str(made.id)

    def lines(self, session: str, role: Role, text: str, at: datetime) -> list[Any]:
        made = self.sessions[session]
        if role == "assistant":
            return [made.answer(text, at)]
        call = f"toolu_{made.count}"
        return [
            made.user(text, at),
            made.block(claude.tool_block(call, "ls"), at, answer=f"msg_tool{made.count}"),
            made.result(call, "kiln.py", at),
        ]

    def append(self, session: str, role: Role, text: str, at: datetime) -> str:
        lines = self.lines(session, role, text, at)
        self.write(session, *lines, at=at)
        self.spoken[session].append((lines[0]["uuid"], lines))
        return str(lines[0]["uuid"])

    def rename_reset(self, session: str) -> None:
        raise NotImplementedError  # a reset begins another session

    def drift(self) -> None:
        raise NotImplementedError  # a form nobody knows yet is lines nobody knows yet

    corrupt = hold = drift

    def delete(self, session: str) -> None:
        self.path(session).unlink()

    def expire(self, session: str) -> datetime:
        written = datetime.fromtimestamp(self.path(session).stat().st_mtime, UTC)
        self.path(session).unlink()
        return written + timedelta(days=30)

    def branch(self, session: str, keep: int) -> None:
        del self.spoken[session][keep:]
        self.sessions[session].tip = self.spoken[session][-1][0]

    def fork(self, session: str, name: str) -> str:
        copy = self.new_session(name)
        self.spoken[copy] = [(ref, claude.copied(lines, self.sessions[copy])) for ref, lines in self.spoken[session]]
        self.write(copy, *(line for _, lines in self.spoken[copy] for line in lines))
        self.sessions[copy].tip = self.spoken[copy][-1][1][-1]["uuid"]
        return copy

    def absent(self) -> None:
        shutil.rmtree(self.root / "projects")

    def tear_last_line(self, session: str, role: Role, text: str, at: datetime) -> str:
        line = self.lines(session, role, text, at)[0]
        data = claude.encoded(line)
        with open(self.path(session), "ab") as file:
            file.write(data[: len(data) // 2])
        self.torn = data[len(data) // 2 :]
        return str(line["uuid"])

    def complete(self, session: str) -> None:
        with open(self.path(session), "ab") as file:
            file.write(self.torn)

    def shrink_to_tail(self, session: str, keep: int) -> None:
        self.spoken[session] = self.spoken[session][-keep:] if keep else []
        kept = [line for _, spoken in self.spoken[session] for line in spoken]
        self.path(session).write_bytes(b"".join(map(claude.encoded, kept)))


class TestClaudeCode(SourceContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> ClaudeLog:
        return ClaudeLog(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> ClaudeLog:
    return ClaudeLog(tmp_path)


def read_all(log: ClaudeLog, limit: int = 1_000) -> list[Message]:
    return [m for batch in batches_of(log, limit) for m in batch.messages]


def batches_of(log: ClaudeLog, limit: int = 1_000) -> list[Batch]:
    source = log.source()
    return [batch for stream in source.streams() for batch in drain(source, stream, limit=limit)]


def counts(batches: Iterable[Batch]) -> dict[str, int]:
    total: dict[str, int] = {}
    for batch in batches:
        for reason, count in batch.skipped.items():
            total[reason] = total.get(reason, 0) + count
    return total


def reasons(batches: Iterable[Batch]) -> list[str]:
    return [fault.reason for batch in batches for fault in batch.faults]


def texts(messages: Iterable[Message]) -> list[str]:
    return [message.text for message in messages]


def one_session(log: ClaudeLog, *lines: Any) -> str:
    """A session that holds just these lines."""
    session = f"{len(list(log.folder.glob('*'))):08x}" if log.folder.exists() else "00000000"
    log.write(session, *lines)
    return session


def stream_of(log: ClaudeLog, session: str) -> Stream:
    return next(stream for stream in log.source().streams() if stream.session == session)


def talk() -> Any:
    return claude.Session("talk", CWD)


# --- the sample history ----------------------------------------------------------------------------------------------


def sample(*, subagents: bool = False) -> ClaudeCodeSource:
    return ClaudeCodeSource(Folders(None, SAMPLE, claude=SAMPLE, subagents=subagents))


def test_the_committed_history_is_what_its_script_writes() -> None:
    assert claude.main(["--check"]) == 0


def test_the_history_reads_as_it_was_said() -> None:
    source = sample()
    streams = list(source.streams())
    assert {(s.name.partition("/")[0], s.kind, s.scope_name) for s in streams} == {
        (PROJECT, "direct", "kiln-ledger"),
        ("-home-ines-tide-clock", "direct", "tide-clock"),
    }
    said = {s.session: messages_of(drain(source, s)) for s in streams}
    glaze = said[claude.Session("glaze").id]
    assert [(m.origin, m.text.splitlines()[-1]) for m in glaze][-3:] == [
        ("assistant", "Noted: eight kilos of Audrey Blackman from Tveit."),
        ("owner", "Keep the June test tiles in the blue crate."),
        ("assistant", "The June tiles go into the blue crate."),
    ]
    assert {m.folder for m in glaze} == {CWD} and all(m.dated for m in glaze)
    assert texts(said[claude.Session("moon").id]) == [
        "The dial in this photo runs eleven minutes fast.",
        "Why does the text <bash-input> show up in our changelog, by the way?",
        "A template leaves the tag in; the fix is one line in changelog.py.",
    ]


def test_reading_the_history_changes_and_leaves_nothing() -> None:
    before = {path: path.stat().st_mtime_ns for path in SAMPLE.rglob("*")}
    source = sample(subagents=True)
    source.get(wanted(everything(source)))
    assert {path: path.stat().st_mtime_ns for path in SAMPLE.rglob("*")} == before


def test_a_line_that_is_skimmed_is_what_it_is_when_parsed() -> None:
    skimmed = 0
    for path in SAMPLE.rglob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            quick = skim(b"x" + line, 1, 1 + len(line))
            if quick is not None:
                skimmed += 1
                assert read_line(line)._replace(at=None) == quick
    assert skimmed >= 6


def test_a_result_beside_somebodys_text_is_not_skimmed() -> None:
    session = talk()
    line = session.user([session.result("t", "x", START)["message"]["content"][0], claude.text_block("stop")], START)
    data = claude.encoded(line).rstrip()
    assert skim(data, 0, len(data)) is None
    assert read_line(data).text == "stop"


# --- what is an utterance --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"isMeta": True}, "meta"),
        ({"isCompactSummary": True}, "compact_summary"),
        ({"isVisibleInTranscriptOnly": True}, "transcript_only"),
        ({"isSidechain": True}, "sidechain"),
        ({"type": "summary"}, "summary"),
        ({"type": "attachment"}, "attachment"),
        ({"type": "system"}, "system"),
        ({"type": "progress"}, "progress"),
        ({"type": "file-history-delta"}, "snapshot"),
        ({"type": "ai-title"}, "title"),
        ({"type": "queue-operation"}, "queue_operation"),
        ({"type": "something-new"}, "other_type"),
        ({"type": 7}, "other_type"),
        ({"message": {"role": "system", "content": "x"}}, "other_role"),
        ({"message": {"role": "assistant", "content": "x"}}, "other_role"),
        ({"message": {"role": "user", "content": []}}, "empty"),
        ({"message": {"role": "user", "content": " \n"}}, "empty"),
        ({"message": {"role": "user", "content": [claude.IMAGE]}}, "image"),
        ({"message": {"role": "user", "content": [{"type": "document"}]}}, "document"),
        ({"message": {"role": "user", "content": [{"type": "tool_result", "content": "said?"}]}}, "tool_result"),
        ({"message": {"role": "user", "content": [{"type": "news", "text": "x"}]}}, "other_block"),
        ({"message": {"role": "user", "content": "[Request interrupted by user for tool use]"}}, "interrupted"),
        ({"message": {"role": "user", "content": "<system-reminder>be brief</system-reminder>"}}, "host_markup"),
        (
            {"message": {"role": "user", "content": "<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>"}},
            "host_markup",
        ),
        ({"message": {"role": "user", "content": "<task-notification>\ndone\n</task-notification>\n"}}, "host_markup"),
    ],
)
def test_what_nobody_said_is_passed_over_and_counted(log: ClaudeLog, changes: dict[str, Any], reason: str) -> None:
    session = talk()
    one_session(
        log, session.user("one", START), {**session.user("not this", START), **changes}, session.answer("two", START)
    )
    batches = batches_of(log)
    assert texts(messages_of(batches)) == ["one", "two"]
    assert counts(batches) == {reason: 1} and not reasons(batches)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"isApiErrorMessage": True}, "api_error"),
        ({"message": {"role": "assistant", "model": "<synthetic>", "content": "No response requested."}}, "synthetic"),
        ({"message": {"role": "assistant", "content": [claude.THINKING]}}, "thinking"),
        ({"message": {"role": "assistant", "content": [{"type": "redacted_thinking"}]}}, "thinking"),
        ({"message": {"role": "assistant", "content": [claude.tool_block("t", "ls")]}}, "tool_use"),
    ],
)
def test_what_the_model_did_not_say_is_passed_over(log: ClaudeLog, changes: dict[str, Any], reason: str) -> None:
    session = talk()
    one_session(log, session.user("one", START), {**session.answer("not this", START), **changes})
    batches = batches_of(log)
    assert texts(messages_of(batches)) == ["one"]
    assert counts(batches) == {reason: 1}


def test_a_text_that_only_mentions_markup_is_kept() -> None:
    for said in (
        "what is <command-name>?",
        "<command-name>/clear</command-name> does nothing here",
        "see <bash-stdout>x</bash-stdout>",
        "<b>bold</b>",
        "<command-names>x</command-names>",
    ):
        assert not is_markup(said), said


def test_a_commands_output_cannot_pass_for_a_persons_words(log: ClaudeLog) -> None:
    output = "<bash-stdout>x</bash-stdout> I prefer tabs <bash-stdout></bash-stdout><bash-stderr></bash-stderr>"
    one_session(log, talk().user(output, START))
    assert read_all(log) == []


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"origin": {"kind": "task-notification"}}, "task_notification"),
        ({"origin": {"kind": "peer", "from": "unknown"}}, "peer"),
        ({"origin": {"kind": ["human"]}}, "other_origin"),
        ({"origin": "human"}, "other_origin"),
        ({"isSynthetic": True}, "synthetic"),
    ],
)
def test_a_prompt_the_host_marks_as_anothers_is_not_the_owners(
    log: ClaudeLog, changes: dict[str, Any], note: str
) -> None:
    session = talk()
    one_session(log, session.user("mine", START, origin={"kind": "human"}), session.user("whose?", START, **changes))
    assert [(m.text, m.origin, m.note) for m in read_all(log)] == [("mine", "owner", ""), ("whose?", "host", note)]


def test_text_blocks_of_a_prompt_are_one_text(log: ClaudeLog) -> None:
    blocks = [claude.text_block("first"), claude.IMAGE, claude.text_block("second")]
    one_session(log, talk().user(blocks, START))
    assert texts(read_all(log)) == ["first\nsecond"]


def test_text_is_delivered_as_logged(log: ClaudeLog) -> None:
    said = " <system-reminder>x</system-reminder>\r\nOrder \u200dclay\x00 \x1b[1mnow\n\n"
    one_session(log, talk().user(said, START))
    assert texts(read_all(log)) == [said]


def test_a_lone_surrogate_is_replaced(log: ClaudeLog) -> None:
    """F9."""
    session = talk()
    line = claude.encoded(session.user("half HERE", START)).rstrip().replace(b"HERE", rb"\ud83d")
    one_session(log, line, session.user("whole \U0001f44d", START))
    assert texts(read_all(log)) == ["half \ufffd", "whole \U0001f44d"]


# --- the lines of one answer -----------------------------------------------------------------------------------------


def an_answer(session: Any, *parts: str, answer: str = "msg_one") -> list[Any]:
    """An answer whose blocks of text have a tool call with its result between them."""
    lines = []
    for number, part in enumerate(parts):
        lines.append(session.block(claude.text_block(part), later(number), answer=answer))
        lines.append(session.block(claude.tool_block(f"t{number}", "ls"), later(number), answer=answer))
        lines.append(session.result(f"t{number}", "out", later(number)))
    return lines


def test_the_lines_of_one_answer_are_one_message(log: ClaudeLog) -> None:
    session = talk()
    asked = session.user("go", START)
    lines = an_answer(session, "one", "two", "three")
    one_session(log, asked, *lines, session.user("next", later(9)), session.answer("done", later(10)))
    for limit in (1, 2, 3, 9):
        read = read_all(log, limit)
        assert texts(read) == ["go", "one\ntwo\nthree", "next", "done"], limit
    assert read[1].ref == lines[0]["uuid"] and read[1].at == START
    assert read[1].location.count("+") == 2


def test_a_line_that_joins_a_delivered_answer_gives_it_again_under_its_ref(log: ClaudeLog) -> None:
    session = talk()
    asked, *lines = [session.user("go", START), *an_answer(session, "one", "two", "three")]
    name = one_session(log, asked, *lines[:3])
    source = log.source()
    (stream,) = source.streams()
    first = source.read(stream, None, 10)
    log.write(name, *lines[3:])
    (again,) = source.read(stream, first.cursor, 10).messages
    assert again.ref == first.messages[-1].ref and again.text == "one\ntwo\nthree"
    assert source.read(stream, first.cursor, 10).before == first.messages[0]
    assert source.get(wanted([again])) == [replace(again, scope="")]
    assert texts(source.get([Wanted(stream.name, again.ref)])) == [again.text]  # type: ignore[arg-type]


def test_another_answer_ends_the_one_before(log: ClaudeLog) -> None:
    session = talk()
    lines = [*an_answer(session, "a", answer="msg_a"), *an_answer(session, "b", answer="msg_b")]
    one_session(log, session.user("go", START), *lines)
    assert texts(read_all(log)) == ["go", "a", "b"]


def test_answers_without_an_id_are_never_joined(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.answer(text, START) for text in ("a", "b")]
    for line in lines:
        del line["message"]["id"]
    one_session(log, *lines)
    assert texts(read_all(log)) == ["a", "b"]


# --- windows, time, folder, refs -------------------------------------------------------------------------------------


def test_a_compaction_begins_a_window(log: ClaudeLog) -> None:
    session = talk()
    before = [session.user("one", START), session.answer("two", START)]
    border, summary = session.compaction("what was said", later(1))
    one_session(log, *before, border, summary, session.user("three", later(2)))
    for limit in (1, 9):
        assert [m.window for m in read_all(log, limit)] == ["", "", summary["uuid"]]


def test_a_compaction_takes_nothing_back_wherever_its_link_leads(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START), session.user("three", START)]
    tail = session.answer("four", START)
    border, summary = session.compaction("what was said", later(1))
    kept = {"headUuid": lines[2]["uuid"], "anchorUuid": summary["uuid"], "tailUuid": tail["uuid"]}
    border["logicalParentUuid"] = lines[1]["uuid"]
    border["compactMetadata"]["preservedSegment"] = kept
    name = one_session(log, *lines, tail, border, summary, session.user("five", later(2)))
    batches = batches_of(log)
    assert texts(messages_of(batches)) == ["one", "two", "three", "four", "five"]
    refs = [m.ref for m in messages_of(batches)]
    assert log.source().withdrawn(stream_of(log, name), None, refs) == set()


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-03-02T09:00:00.000Z",
        "2026-03-02T10:00:00+01:00",
        "2026-03-02T09:00:00",
        1772442000,
        1772442000000,
        "1772442000",
    ],
)
def test_times_are_read_in_every_form(stamp: object) -> None:
    assert when(stamp) == START


@pytest.mark.parametrize(
    "stamp", [None, True, "", "soon", [], {}, 10**400, 1e300, "9" * 5000, "0001-01-01T00:00+09:00"]
)
def test_a_line_without_a_readable_time_stands_where_the_one_before_it_does(log: ClaudeLog, stamp: object) -> None:
    session = talk()
    lines = [session.user(text, later(minute)) for minute, text in enumerate(("a", "b", "c"))]
    lines[0]["timestamp"] = lines[2]["timestamp"] = stamp
    one_session(log, *lines)
    for limit in (1, 9):
        assert [(m.dated, m.at) for m in read_all(log, limit)] == [
            (False, datetime(1970, 1, 1, tzinfo=UTC)),
            (True, later(1)),
            (False, later(1)),
        ]


def test_the_folder_is_the_one_the_host_worked_in(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("a", START), session.user("b", START), session.user("c", START)]
    lines[1]["cwd"], lines[2]["cwd"] = "C:\\Users\\ines\\vault", 5
    one_session(log, *lines)
    assert [m.folder for m in read_all(log)] == [CWD, "C:\\Users\\ines\\vault", ""]


def test_a_line_without_uuid_has_a_ref_that_can_be_read_back(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("a", START), session.user("b", START), session.user("c", START)]
    del lines[0]["uuid"]
    lines[1]["uuid"], lines[2]["uuid"] = 5, ""
    one_session(log, *lines)
    read = read_all(log)
    assert len({m.ref for m in read}) == 3
    source = log.source()
    assert texts(source.get(wanted(read))) == texts(source.get(wanted(read, ""))) == ["a", "b", "c"]  # type: ignore[arg-type]


# --- branches --------------------------------------------------------------------------------------------------------


def left_in(log: ClaudeLog, session: str, lines: Sequence[Any]) -> set[str]:
    """What is withdrawn of everything said in a session."""
    said = {line["uuid"]: read_line(claude.encoded(line)).text for line in lines}
    refs = [ref for ref, text in said.items() if text]
    return {said[ref] for ref in log.source().withdrawn(stream_of(log, session), None, refs)}


def test_an_edited_prompt_leaves_the_older_branch_behind(log: ClaudeLog) -> None:
    """F7."""
    session = talk()
    lines = [session.user("one", START), session.answer("two", START)]
    fork = session.tip
    lines += [session.user("old", START), session.answer("old answer", START)]
    lines += [session.attachment(START, parent=fork), session.user("new", START), session.answer("new answer", START)]
    name = one_session(log, *lines)
    assert left_in(log, name, lines) == {"old", "old answer"}
    batches = batches_of(log)
    assert any(batch.took_back for batch in batches)


def test_what_is_written_behind_an_edit_is_read_without_the_branch_it_left(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START)]
    fork = session.tip
    lines.append(session.user("old", START))
    other = session.tip
    lines.append(session.user("new", START, parent=fork))
    tip = session.tip
    lines.append(session.answer("late answer to old", START, parent=other))
    lines.append(session.answer("new answer", START, parent=tip))
    name = one_session(log, *lines)
    for limit in (1, 2, 9):
        batches = batches_of(log, limit)
        assert "late answer to old" not in texts(messages_of(batches))
        assert counts(batches) == {"abandoned": 1}
    assert left_in(log, name, lines) == {"old", "late answer to old"}


def test_a_hooks_line_before_an_edited_prompt_may_be_read_alone(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START)]
    fork = session.tip
    name = one_session(log, *lines, session.user("old", START))
    source = log.source()
    cursor = drain(source, stream_of(log, name))[-1].cursor
    log.write(name, session.attachment(START, parent=fork))
    hook = source.read(stream_of(log, name), cursor, 9)
    log.write(name, session.user("new", START))
    prompt = source.read(stream_of(log, name), hook.cursor, 9)
    assert (hook.took_back, prompt.took_back) == (False, True)


def test_an_edit_is_seen_where_lines_were_cut_off_and_written_anew(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START)]
    fork = session.tip
    lines.append(session.user("three", START, parent="nowhere"))
    name = one_session(log, *lines)
    kept = log.path(name).stat().st_size
    log.write(name, *(session.user(text * 900, START) for text in ("four", "five")))
    source = log.source()
    cursor = source.read(stream_of(log, name), None, 3).cursor
    os.truncate(log.path(name), kept)
    cursor = source.read(stream_of(log, name), cursor, 9).cursor
    log.write(name, session.user("new", START, parent=fork))
    batch = source.read(stream_of(log, name), cursor, 9)
    assert texts(batch.messages) == ["new"] and batch.took_back


def test_an_answer_asked_for_again_replaces_the_first(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START)]
    fork = session.tip
    lines += [session.answer("first try", START), session.answer("second try", START, parent=fork)]
    name = one_session(log, *lines)
    assert left_in(log, name, lines) == {"first try"}


@pytest.mark.parametrize("behind", ["a", "b"])
def test_parallel_tool_calls_leave_nothing_behind(log: ClaudeLog, behind: str) -> None:
    session = talk()
    lines = [session.user("go", START)]
    said = ("first", "between", "after")
    made = {}
    for text, call in zip(said, ("a", "b", ""), strict=True):
        lines.append(session.block(claude.text_block(text), START, answer="msg_p"))
        if call:
            lines.append(session.block(claude.tool_block(call, "ls"), START, answer="msg_p"))
            made[call] = session.tip
    results = {}
    for call in "ab":
        lines.append(session.result(call, "out", START, parent=made[call]))
        results[call] = session.tip
    lines += [session.answer("done", START, parent=results[behind]), session.user("thanks", START)]
    name = one_session(log, *lines)
    assert left_in(log, name, lines) == set()
    batches = batches_of(log, 1)
    assert texts(messages_of(batches)) == ["go", "first\nbetween\nafter", "done", "thanks"]
    assert not any(batch.took_back for batch in batches)


def test_a_link_that_leads_nowhere_takes_nothing_back(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START)]
    lines += [session.user("three", START, parent="00000000-nowhere"), session.answer("four", START)]
    lines += [session.user("five", START, parent=""), session.answer("six", START)]
    del lines[4]["parentUuid"]
    lines[5]["parentUuid"] = 7
    name = one_session(log, *lines)
    assert left_in(log, name, lines) == set()
    assert len(read_all(log)) == 6


def test_the_first_prompt_can_be_edited_too(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START), session.user("three", START)]
    name = one_session(log, *lines)
    (stream,) = log.source().streams()
    cursor = drain(log.source(), stream)[-1].cursor
    edited = [{**session.user("one, better", START), "parentUuid": None}, session.answer("two, better", START)]
    log.write(name, *edited)
    later_on = drain(log.source(), stream_of(log, name), cursor)
    assert any(batch.took_back for batch in later_on)
    assert texts(messages_of(later_on)) == ["one, better", "two, better"]
    assert left_in(log, name, [*lines, *edited]) == {"one", "two", "three"}
    again = {**session.user("one, at last", START), "parentUuid": None}
    log.write(name, again)
    assert left_in(log, name, [*lines, *edited, again]) == {"one", "two", "three", "one, better", "two, better"}


def test_a_host_that_links_no_line_to_another_says_nothing_by_it(log: ClaudeLog) -> None:
    session = talk()
    lines = [{**session.user(f"prompt {n}", START), "parentUuid": None} for n in range(4)]
    name = one_session(log, *lines)
    assert left_in(log, name, lines) == set() and len(read_all(log)) == 4


def test_a_prompt_that_follows_a_compaction_is_in_nobodys_place(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START), *session.compaction("what was said", START)]
    lines.append({**session.user("three", START), "parentUuid": None})
    name = one_session(log, *lines)
    assert left_in(log, name, lines) == set()
    assert texts(read_all(log)) == ["one", "two", "three"]


def test_links_in_a_circle_take_nothing_back(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START), session.user("three", START, parent="")]
    lines[0]["parentUuid"] = lines[2]["uuid"]
    lines[2]["parentUuid"] = lines[1]["uuid"]
    name = one_session(log, *lines)
    assert left_in(log, name, lines) == set()
    assert len(read_all(log)) == 3


def test_who_goes_back_to_a_branch_has_it_again(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START)]
    fork = session.tip
    lines += [session.user("old", START), session.answer("old answer", START)]
    old = session.tip
    name = one_session(log, *lines, session.user("new", START, parent=fork))
    source = log.source()
    (stream,) = source.streams()
    cursor = drain(source, stream)[-1].cursor
    log.write(name, session.user("and back", START, parent=old))
    (stream,) = source.streams()
    later_on = drain(source, stream, cursor)
    assert later_on[0].restarted
    assert texts(messages_of(later_on)) == ["one", "two", "old", "old answer", "and back"]


def test_who_goes_back_after_a_tool_call_elsewhere_has_the_branch_again(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START)]
    fork = session.tip
    lines.append(session.user("old", START))
    old = session.tip
    call = session.block(claude.tool_block("t", "ls"), START, answer="msg_t", parent=fork)
    name = one_session(log, *lines, call)
    source = log.source()
    cursor = drain(source, stream_of(log, name))[-1].cursor
    log.write(name, session.user("and back", START, parent=old))
    batch = source.read(stream_of(log, name), cursor, 9)
    assert batch.restarted and texts(batch.messages) == ["one", "old", "and back"]


def test_what_another_transcript_still_says_is_not_withdrawn(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START)]
    fork = session.tip
    old = [session.user("old", START), session.answer("old answer", START)]
    name = one_session(log, *lines, *old)
    copy = one_session(log, *claude.copied([*lines, *old], claude.Session("copy")))
    log.write(name, session.user("new", START, parent=fork))
    assert left_in(log, name, [*lines, *old]) == set()
    log.path(copy).unlink()
    assert left_in(log, name, [*lines, *old]) == {"old", "old answer"}


def test_a_sidechain_is_no_branch(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.answer("two", START)]
    tip = session.tip
    lines += [{**session.user("task", START, parent=tip), "isSidechain": True}]
    lines += [session.user("three", START, parent=tip)]
    name = one_session(log, *lines)
    assert left_in(log, name, lines) == set()
    assert texts(read_all(log)) == ["one", "two", "three"]


SAYS: tuple[Says, ...] = ("prompt", "answer", "call", "turn", "")


@st.composite
def trees(draw: st.DrawFn) -> list[Node]:
    """Lines whose links lead back, ahead, to themselves or nowhere."""
    count = draw(st.integers(0, 14))
    nodes = []
    for number in range(count):
        usual = st.just(number - 1)
        parent = draw(st.one_of(usual, usual, st.integers(-2, count)))
        says = draw(st.sampled_from(SAYS))
        group = draw(st.sampled_from(["", "a", "b", "c"])) if says in ("answer", "call") else ""
        nodes.append(Node(str(number), str(parent) if parent >= 0 else "", says, group))
    return nodes


def left_by_the_rule(nodes: list[Node]) -> set[str]:
    """The rule of `branches`, said once more and slowly."""
    by_id = {node.id: node for node in nodes}
    ids = [node.id for node in nodes]

    def explicit(node: Node) -> str | None:
        return node.parent if node.parent in by_id and node.parent != node.id else None

    def parent(node: Node) -> str | None:
        if explicit(node):
            return explicit(node)
        earlier = ids[: ids.index(node.id)]
        while earlier and int(explicit(by_id[earlier[-1]]) or -1) > int(earlier[-1]):
            earlier.pop()
        return earlier[-1] if earlier else None

    def ancestry(start: str) -> list[str] | None:
        """From a line to the beginning; None for a circle."""
        chain = [start]
        while (above := parent(by_id[chain[-1]])) is not None:
            if above in chain:
                return None
            chain.append(above)
        return chain

    turns = [node.id for node in nodes if node.says]
    way = ancestry(turns[-1]) if turns else None
    if way is None:
        return set()
    left = set()
    for root in ids:
        fork = parent(by_id[root])
        if root in way or fork not in way or fork == way[0]:
            continue
        branch = [by_id[i] for i in ids if (chain := ancestry(i)) is not None and root in chain]
        onward = [by_id[i] for i in reversed(way[: way.index(fork)])]
        speaks = next((node.says for node in onward if node.says), "")
        answers = {by_id[i].group for i in way} - {""}
        if any(node.says == "prompt" for node in branch) or (
            any(node.says == "answer" for node in branch)
            and speaks in ("prompt", "answer", "call")
            and not any(node.group in answers for node in branch)
        ):
            left |= {node.id for node in branch}
    return left


@given(trees())
def test_branches_are_told_as_the_rule_says(nodes: list[Node]) -> None:
    assert branches(nodes).left == left_by_the_rule(nodes)


@given(trees())
def test_the_conversation_as_it_stands_is_never_left_behind(nodes: list[Node]) -> None:
    found = branches(nodes)
    turns = [node.id for node in nodes if node.says]
    assert not turns or turns[-1] not in found.left
    assert set(found.roots) <= found.left <= found.lines
    assert branches(nodes + nodes).left == found.left


@st.composite
def transcripts(draw: st.DrawFn) -> list[Any]:
    """A session of prompts, answers in several lines, tool results, compactions, and jumps back to earlier lines."""
    session = claude.Session("drawn", CWD)
    lines: list[Any] = []
    uuids: list[str] = []
    kinds = st.sampled_from(["prompt", "text", "more", "call", "result", "meta", "hook", "compaction", "jump", "side"])
    for number, kind in enumerate(draw(st.lists(kinds, max_size=18))):
        at = later(number)
        answer = f"msg_{number // 3}"
        if kind == "jump" and uuids:
            session.tip = draw(st.sampled_from(uuids))
        elif kind == "prompt":
            lines.append(session.user(f"prompt {number}", at))
        elif kind in ("text", "more"):
            lines.append(session.block(claude.text_block(f"text {number}"), at, answer=answer))
        elif kind == "call":
            lines.append(session.block(claude.tool_block("t", "ls"), at, answer=answer))
        elif kind == "result":
            lines.append(session.result("t", "out", at))
        elif kind == "meta":
            lines.append(session.user("meta", at, isMeta=True))
        elif kind == "hook":
            lines.append(session.attachment(at))
        elif kind == "compaction":
            lines += session.compaction("sum", at)
        elif kind == "side":
            lines.append({**session.user("task", at), "isSidechain": True})
        uuids = [line["uuid"] for line in lines if not line["isSidechain"]]
        session.tip = session.tip if session.tip in uuids else (uuids[-1] if uuids else None)
    return lines


def node_of_line(line: Any) -> Node | None:
    return node_of(read_line(claude.encoded(line)))


@given(transcripts(), st.integers(1, 5))
def test_any_split_into_batches_gives_the_same_messages(tmp_path: Path, lines: list[Any], limit: int) -> None:
    log = ClaudeLog(tmp_path)
    shutil.rmtree(log.folder, ignore_errors=True)
    name = one_session(log, *lines)
    stream = stream_of(log, name)
    whole = drain(log.source(), stream)
    parts = drain(log.source(), stream, limit=limit)
    assert messages_of(parts) == messages_of(whole)
    assert counts(parts) == counts(whole)
    said = [None, *messages_of(parts)]
    for batch in parts:
        if batch.messages:
            assert batch.before == said[said.index(batch.messages[0]) - 1]


@given(transcripts(), st.data())
def test_a_file_read_as_it_grows_ends_as_one_read_at_once(
    tmp_path: Path, lines: list[Any], data: st.DataObject
) -> None:
    """What the index holds, after it replaced by ref and erased what was withdrawn, is the conversation as it stands."""
    log = ClaudeLog(tmp_path)
    shutil.rmtree(log.folder, ignore_errors=True)

    def index(held: dict[str, str], name: str, cursor: str | None) -> str:
        source, stream = log.source(), stream_of(log, name)
        read = drain(source, stream, cursor, data.draw(st.integers(1, 5)))
        held |= {m.ref: m.text for m in messages_of(read)}
        if any(batch.took_back or batch.restarted for batch in read):
            for ref in source.withdrawn(stream, read[-1].cursor, list(held)):
                del held[ref]
        return read[-1].cursor

    grown: dict[str, str] = {}
    name = one_session(log)
    cursor = None
    place = 0
    while place < len(lines):
        step = data.draw(st.integers(1, 6))
        log.write(name, *lines[place : place + step])
        place += step
        cursor = index(grown, name, cursor)
    fresh: dict[str, str] = {}
    index(fresh, name, None)
    assert grown.keys() == fresh.keys()  # nobody can go back into the middle of an answer, but these lines can
    left = branches(node for line in lines if (node := node_of_line(line)) is not None).left
    assert not {ref for ref in fresh if ref in left}


# --- positions -------------------------------------------------------------------------------------------------------


def test_a_rewritten_file_is_read_anew(log: ClaudeLog) -> None:
    session = talk()
    name = one_session(log, session.user("one", START), session.user("two", START))
    source = log.source()
    (stream,) = source.streams()
    cursor = source.read(stream, None, 9).cursor
    other = claude.Session("other", CWD)
    log.path(name).write_bytes(b"".join(claude.encoded(other.user(text, START)) for text in ("three", "four", "five")))
    batch = source.read(stream, cursor, 9)
    assert batch.restarted and texts(batch.messages) == ["three", "four", "five"]


def test_the_scope_of_the_first_reading_stays(log: ClaudeLog) -> None:
    session = talk()
    name = one_session(log, session.user("one", START))
    source = log.source()
    (stream,) = source.streams()
    first = source.read(stream, None, 9)
    log.write(name, session.user("two", START))
    moved = replace(stream, scope="0123456789ab")
    assert {m.scope for m in source.read(moved, first.cursor, 9).messages} == {stream.scope}
    log.path(name).write_bytes(claude.encoded(session.user("three", START)) * 3)
    assert {m.scope for m in source.read(moved, first.cursor, 9).messages} == {stream.scope}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda c: st.lists(c) | st.dictionaries(st.text(max_size=3), c),
        max_leaves=6,
    )
)
def test_a_strange_field_of_a_cursor_is_no_crash(tmp_path: Path, value: Any) -> None:
    log = ClaudeLog(tmp_path)
    shutil.rmtree(log.folder, ignore_errors=True)
    session = talk()
    name = one_session(log, session.user("one", START), session.answer("two", START))
    source, stream = log.source(), stream_of(log, name)
    cursor = json.loads(source.read(stream, None, 1).cursor)
    for key in cursor:
        read = drain(source, stream, json.dumps(cursor | {key: value}))
        assert messages_of(read)[-1].text == "two"


def test_a_result_longer_than_a_chunk_is_read_over(log: ClaudeLog) -> None:
    session = talk()
    lines = [session.user("one", START), session.result("t", "x" * 700_000, START), session.answer("two", START)]
    one_session(log, *lines)
    assert texts(read_all(log)) == ["one", "two"]


def test_a_line_over_the_limit_costs_itself_alone_and_little_memory(log: ClaudeLog) -> None:
    session = talk()
    one_session(log, session.user("one", START))
    big = claude.encoded(session.user("x" * (3 * LINE_LIMIT), START))
    with open(log.path("00000000"), "ab") as file:
        file.write(big)
    del big
    log.write("00000000", session.answer("two", START))
    tracemalloc.start()
    batches = batches_of(log)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert texts(messages_of(batches)) == ["one", "two"] and reasons(batches) == ["oversize"]
    assert peak < 3 * LINE_LIMIT


def test_a_fault_says_where_it_stands_and_nothing_else(log: ClaudeLog) -> None:
    name = one_session(log, b'{"a secret')
    (fault,) = batches_of(log)[0].faults
    assert (fault.reason, fault.where) == ("invalid_json", f"{PROJECT}/{name}.jsonl:0")


# --- hostile lines and files -----------------------------------------------------------------------------------------


def hostile_lines() -> list[tuple[str, str, bytes]]:
    path = shared("corpora", "hostile_lines.jsonl")
    if path is None:
        pytest.skip("the corpora are not at hand")
    return [
        (r["name"], r["expect"], base64.b64decode(r["b64"])) for r in map(json.loads, path.read_text().splitlines())
    ]


NO_FAULT = {"own/array_line", "own/empty_line", "own/spaces"}
"""Rows that are passed over and well-formed: nothing is lost with them, so nothing is reported."""


def in_our_form(line: bytes) -> bytes:
    """A row of the corpus that is a message in the generic form, as the host would write it."""
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return line
    if not isinstance(value, dict) or "role" not in value:
        return line
    message = {"role": value["role"], "content": value.get("text")}
    return json.dumps({"type": "user", "message": message, "uuid": "hostile", "extra": value}).encode()


def test_what_follows_a_hostile_line_is_read_as_without_it(log: ClaudeLog) -> None:
    session = talk()
    first, last = session.user("before it", START), session.answer("behind it", START)
    for name, expect, line in hostile_lines():
        log.write("s", first, in_our_form(line), last)
        stream = Stream(f"{PROJECT}/s", "", "main", "s")
        for limit in (1, 9):
            batches = drain(log.source(), stream, limit=limit)
            read = texts(messages_of(batches))
            assert (read[0], read[-1]) == ("before it", "behind it"), name
            if expect == "skip" and name not in NO_FAULT:
                assert reasons(batches), f"{name} was lost in silence"
                assert len(read) == 2, name
            elif expect == "ok":
                assert not reasons(batches), name
        log.path("s").unlink()


def test_hostile_texts_are_read_back_as_they_were_read(log: ClaudeLog) -> None:
    session = talk()
    spoken = []
    for name, expect, line in hostile_lines():
        if expect == "ok" and not name.startswith("jsontestsuite/"):
            text = json.loads(line.decode("utf-8-sig"))["text"]
            spoken.append(json.dumps(session.user(text, START)).encode())
    one_session(log, *spoken)
    source = log.source()
    read = everything(source)
    assert len(read) > 300
    assert all(m.text == m.text.encode("utf-8", "strict").decode() for m in read)
    assert texts(source.get(wanted(read))) == texts(source.get(wanted(read, ""))) == texts(read)  # type: ignore[arg-type]


BAD = [
    (b'{"type":"user","message":{"role":"user","content":"a', "invalid_json"),
    (b'{"type":"user","message":{"role":"user","content":"\xff"}}', "invalid_utf8"),
    (b'{"type":"user","message":{"role":"user","content":"a"},"n":NaN}', "number_constant"),
    (b'{"type":"user","message":{"role":"user","content":"a"},"n":' + b"9" * 4301 + b"}", "number_size"),
    (b'{"type":"user","message":{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "too_deep"),
    (b'{"type":"user","message":null}', "message_type"),
    (b'{"type":"user","message":{"content":"a"}}', "role_type"),
    (b'{"type":"user","message":{"role":["user"],"content":"a"}}', "role_type"),
    (b'{"type":"user","message":{"role":"user","content":5}}', "text_type"),
    (b'{"type":"user","message":{"role":"user","content":["a"]}}', "text_type"),
    (b'{"type":"user","message":{"role":"user","content":[{"type":"text","text":null}]}}', "text_type"),
    (b'{"type":"mode"} {"type":"mode"}', "invalid_json"),
    (b"\0" * 4096, "invalid_json"),
]


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_an_unreadable_line_costs_itself_alone(log: ClaudeLog, line: bytes, reason: str) -> None:
    session = talk()
    name = one_session(log, session.user("one", START), line, session.answer("two", START))
    batches = batches_of(log)
    assert texts(messages_of(batches)) == ["one", "two"] and reasons(batches) == [reason]
    assert log.source().withdrawn(stream_of(log, name), None, [m.ref for m in messages_of(batches)]) == set()


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.data())
def test_a_wrong_type_in_any_field_is_no_crash(tmp_path: Path, data: st.DataObject) -> None:
    log = ClaudeLog(tmp_path)
    shutil.rmtree(log.folder, ignore_errors=True)
    session = talk()
    lines = [session.user("one", START), session.answer("two", START), *session.compaction("s", START)]
    line = data.draw(st.sampled_from(lines))
    outer = data.draw(st.sampled_from([line, line.get("message", line)]))
    outer[data.draw(st.sampled_from(sorted(outer)))] = data.draw(ANYTHING)
    name = one_session(log, *lines, session.user("last", START))
    source, stream = log.source(), stream_of(log, name)
    read = drain(source, stream)
    messages = messages_of(read)
    assert messages[-1].text == "last"
    assert [m for m in source.get(wanted(messages, "")) if isinstance(m, Gone)] == []
    source.withdrawn(stream, read[-1].cursor, [m.ref for m in messages])


def test_marks_carriage_returns_and_blank_lines_are_no_obstacle(log: ClaudeLog) -> None:
    session = talk()
    lines = [claude.encoded(session.user(text, START)).rstrip() for text in ("one", "two")]
    one_session(log, b"\xef\xbb\xbf" + lines[0] + b"\r", b"", b"  \r", lines[1] + b"\r")
    batches = batches_of(log)
    assert texts(messages_of(batches)) == ["one", "two"]
    assert counts(batches) == {"blank": 2} and not reasons(batches)


def test_only_files_of_sessions_are_read(log: ClaudeLog) -> None:
    name = one_session(log, talk().user("one", START))
    folder = log.folder
    (folder / "directory.jsonl").mkdir()
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    (folder / "nowhere.jsonl").symlink_to("nothing")
    os.mkfifo(folder / "pipe.jsonl")
    for below in ("memory", f"{name}/tool-results", f"{name}/subagents"):
        (folder / below).mkdir(parents=True)
        (folder / below / "agent-x.jsonl").write_bytes(claude.encoded(talk().user("not this", START)))
    shutil.copy(log.path(name), folder / "agent-old.jsonl")
    shutil.copy(log.path(name), folder / "notes.json")
    shutil.copy(log.path(name), log.root / "projects" / "loose.jsonl")
    (log.root / "projects" / "loop").symlink_to("loop")
    assert [s.session for s in log.source().streams()] == [name]
    for strange in ("directory", "loop", "nowhere", "pipe"):
        stream = Stream(f"{PROJECT}/{strange}", "", "s", strange)
        assert log.source().read(stream, None, 9).messages == ()


@pytest.mark.parametrize(
    "name",
    ["../../outside", f"{PROJECT}/../../../outside", "..", "/etc/passwd", f"{PROJECT}/..", "a/b/c", "\0/x", "\ud800/x"],
)
def test_a_streams_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    log = ClaudeLog(tmp_path / "root")
    one_session(log, talk().user("one", START))
    line = claude.Session("outside").user("outside", START)
    (tmp_path / "outside.jsonl").write_bytes(claude.encoded(line))
    (log.root / "outside.jsonl").write_bytes(claude.encoded(line))
    source = log.source()
    assert source.read(Stream(name, "", "s", "s"), None, 9).messages == ()
    assert source.get([Wanted(name, line["uuid"])]) == [Gone(line["uuid"])]
    assert source.withdrawn(Stream(name, "", "s", "s"), None, [line["uuid"]]) == set()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_project_that_cannot_be_listed_is_raised_after_the_others(log: ClaudeLog) -> None:
    one_session(log, talk().user("one", START))
    closed = log.root / "projects" / "-a-closed"
    closed.mkdir(mode=0)
    found = []
    try:
        with pytest.raises(SourceError) as failure:
            found.extend(log.source().streams())
    finally:
        closed.chmod(0o700)
    assert len(found) == 1 and not isinstance(failure.value, SourceAbsent)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_cannot_be_read_is_raised(log: ClaudeLog) -> None:
    name = one_session(log, talk().user("one", START))
    log.path(name).chmod(0)
    with pytest.raises(SourceError):
        log.source().read(stream_of(log, name), None, 9)


# --- sub-agents ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subagents", [False, True])
def test_sub_agents_are_read_only_where_they_are_wanted(subagents: bool) -> None:
    source = sample(subagents=subagents)
    helpers = [s for s in source.streams() if "/subagents/" in s.name]
    assert [s.session for s in helpers] == (["agent-7c1de20a"] if subagents else [])
    for stream in helpers:
        said = messages_of(drain(source, stream))
        assert [(m.origin, m.note) for m in said] == [("host", "subagent"), ("assistant", "")]
        assert source.get(wanted(said)) == [replace(m, window="", scope="") for m in said]


def test_a_sidechain_in_a_session_is_the_hosts_where_it_is_wanted(tmp_path: Path) -> None:
    log = ClaudeLog(tmp_path, subagents=True)
    session = claude.Session("side", CWD, sidechain=True)
    one_session(log, session.user("task", START), session.answer("done", START))
    assert [(m.origin, m.note) for m in read_all(log)] == [("host", "subagent"), ("assistant", "")]


def test_helpers_that_are_no_longer_wanted_are_gone(tmp_path: Path) -> None:
    root = tmp_path / "claude"
    shutil.copytree(SAMPLE, root)
    helper = next(
        s for s in ClaudeCodeSource(Folders(None, root, claude=root, subagents=True)).streams() if "agent-" in s.name
    )
    now = datetime.now(UTC)
    assert ClaudeCodeSource(Folders(None, root, claude=root)).fate(helper, None, now) == "gone"


# --- absent, empty, fate ---------------------------------------------------------------------------------------------


def test_without_a_folder_the_log_is_absent(tmp_path: Path) -> None:
    for folder in (None, tmp_path / "nothing", tmp_path):
        source = ClaudeCodeSource(Folders(None, tmp_path, claude=folder))
        with pytest.raises(SourceAbsent) as failure:
            source.check()
        assert not isinstance(failure.value, SourceEmpty)
        assert source.describe()
        assert source.get([Wanted("a/b", "c")]) == [Gone("c")]


def test_a_folder_without_sessions_is_empty(log: ClaudeLog) -> None:
    (log.folder / "memory").mkdir(parents=True)
    with pytest.raises(SourceEmpty):
        log.source().check()
    assert list(log.source().streams()) == []


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        (None, 30),
        (b'{"cleanupPeriodDays": 7}', 7),
        (b'\xef\xbb\xbf{"cleanupPeriodDays": 7}', 7),
        (b'{"cleanupPeriodDays": 0}', 30),
        (b'{"cleanupPeriodDays": true}', 30),
        (b'{"cleanupPeriodDays": "7"}', 30),
        (b'{"cleanupPeriodDays": 1' + b"0" * 400 + b"}", 30),
        (b"[7]", 30),
        (b'{"cleanup', 30),
        (b"\xff", 30),
    ],
)
def test_a_session_expires_when_the_host_removes_it_by_age(log: ClaudeLog, settings: bytes | None, days: int) -> None:
    """F6."""
    name = one_session(log, talk().user("one", START))
    stream = stream_of(log, name)
    if settings is not None:
        (log.root / "settings.json").write_bytes(settings)
    log.delete(name)
    source = log.source()
    assert source.fate(stream, None, START + timedelta(days=days, seconds=-1)) == "deleted"
    assert source.fate(stream, None, START + timedelta(days=days)) == "expired"


def test_what_became_of_a_session_is_unknown_while_the_folder_is_away(log: ClaudeLog) -> None:
    stream = stream_of(log, one_session(log, talk().user("one", START)))
    log.root.joinpath("projects").rename(log.root / "moved")
    assert log.source().fate(stream, None, START) == "lost"


def test_a_session_whose_project_was_renamed_is_gone_from_the_old_one_alone(log: ClaudeLog) -> None:
    stream = stream_of(log, one_session(log, talk().user("one", START)))
    log.folder.rename(log.root / "projects" / "-home-ines-studio")
    assert log.source().fate(stream, None, START) == "gone"


def test_a_session_that_is_still_there_was_not_deleted(log: ClaudeLog) -> None:
    stream = stream_of(log, one_session(log, talk().user("one", START)))
    assert log.source().fate(stream, None, START + timedelta(days=400)) == "lost"


def test_a_uuid_is_seen_wherever_a_chunk_ends(tmp_path: Path) -> None:
    border = 8 * transcript.CHUNK
    path = tmp_path / "file"
    for before in [*range(border - 60, border + 5), border - transcript.OVERLAP, 2 * border - transcript.OVERLAP - 40]:
        path.write_bytes(b"x" * before + b'{"uuid":"here","parentUuid":"there"}' + b"x" * border)
        with transcript.opened(path) as (fd, stat):
            assert transcript.holds(fd, stat.st_size, {b"other", b"here"}), before
            assert not transcript.holds(fd, stat.st_size, {b"there", b"her", b""}), before


# --- whose memory ----------------------------------------------------------------------------------------------------


def key(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:12]


def repository(top: Path, config: str | None = None) -> Path:
    (top / ".git").mkdir(parents=True)
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    if config is not None:
        (top / ".git" / "config").write_text(config)
    return top


TOKEN = "hunter" + "2"


@pytest.mark.parametrize(
    ("config", "remote", "name"),
    [
        (
            '[remote "origin"]\n\turl = https://example.org/ines/ledger.git\n',
            "https://example.org/ines/ledger.git",
            "ledger",
        ),
        (f'[remote "origin"]\nurl = https://ines:{TOKEN}@example.org/l.git', "https://example.org/l.git", "l"),
        (f'[remote "origin"]\nurl = https://ines@corp:{TOKEN}@example.org/l', "https://example.org/l", "l"),
        ('[remote "origin"]\nurl = ssh://git@example.org:22/ines/l.git/\n', "ssh://example.org:22/ines/l.git/", "l"),
        ('[remote "origin"]\nurl = git@example.org:ines/l.git\n', "git@example.org:ines/l.git", "l"),
        ('[REMOTE "origin"] URL = "https://example.org/a b" # ours\n', "https://example.org/a b", "a b"),
        ('[remote "origin"]\n url = https://example.org/"x;y"#z ; note\n', "https://example.org/x;y", "x;y"),
        ('[remote "origin"]\nurl = https://example.org/\\\n  long  \n', "https://example.org/  long", "  long"),
        (
            '[remote "or\\"igin"]\nurl = no\n[remote "origin"]\nfetch = x\nurl = /srv/git/l.git\nurl = no\n',
            "/srv/git/l.git",
            "l",
        ),
        ('[remote "origin"]\nurl = C:\\\\repos\\\\l.git\n', "C:\\repos\\l.git", "l"),
        ("[remote.origin]\nurl = https://example.org/old\n", "https://example.org/old", "old"),
    ],
)
def test_a_repository_with_a_remote_is_one_scope_wherever_it_lies(
    tmp_path: Path, config: str, remote: str, name: str
) -> None:
    """U16."""
    top = repository(tmp_path / "clone", config)
    (top / "src").mkdir()
    for folder in (top, top / "src"):
        scope = scope_of(str(folder))
        assert (scope.id, scope.name) == (key(f"remote:{remote}"), name)


@pytest.mark.parametrize(
    "config",
    [
        None,
        "",
        '[remote "upstream"]\nurl = x\n',
        '[remote "Origin"]\nurl = x\n',
        '[remote "origin"]\nurl\n',
        '[remote "origin"\nurl = x',
        "\0\xff[[[",
    ],
)
def test_a_repository_without_a_remote_is_its_top_level(tmp_path: Path, config: str | None) -> None:
    top = repository(tmp_path / "ledger", config)
    (top / "a" / "b").mkdir(parents=True)
    scope = scope_of(str(top / "a" / "b"))
    assert (scope.id, scope.name) == (key(f"root:{top.resolve()}"), "ledger")


def test_a_worktree_and_a_submodule_know_their_remotes(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", '[remote "origin"]\nurl = https://example.org/main.git\n')
    linked = main / ".git" / "worktrees" / "tree"
    module = main / ".git" / "modules" / "part"
    for git in (linked, module):
        git.mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
    (linked / "commondir").write_text("../..\n")
    (module / "config").write_text('[remote "origin"]\nurl = https://example.org/part.git\n')
    tree, part = tmp_path / "tree", main / "part"
    for folder, git in ((tree, str(linked)), (part, "../.git/modules/part")):
        folder.mkdir()
        (folder / ".git").write_text(f"gitdir: {git}\n")
    assert scope_of(str(tree)) == scope_of(str(main))
    assert scope_of(str(part)).id == key("remote:https://example.org/part.git")


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/home/ines/kiln-ledger", "kiln-ledger"),
        ("C:\\Users\\ines\\dial", "dial"),
        ("/", "/"),
        ("relative", "relative"),
    ],
)
def test_a_folder_that_is_no_repository_or_not_there_is_itself(folder: str, name: str) -> None:
    scope = scope_of(folder)
    assert (scope.id, scope.name) == (key(f"root:{folder}"), name)


def test_a_stray_git_folder_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    assert scope_of(str(tmp_path / "a")).id == key(f"root:{tmp_path / 'a'}")


def test_a_projects_scope_is_that_of_the_folder_it_was_started_in(log: ClaudeLog, tmp_path: Path) -> None:
    top = repository(tmp_path / "work" / "ledger")
    session = claude.Session("one", str(top))
    one_session(log, session.snapshot(START), session.user("one", START))
    (stream,) = log.source().streams()
    assert (stream.scope, stream.scope_name) == (key(f"root:{top.resolve()}"), "ledger")


def test_a_project_that_never_names_its_folder_has_a_scope_of_its_own(log: ClaudeLog) -> None:
    one_session(log, {"type": "summary", "summary": "x", "leafUuid": "y"})
    (stream,) = log.source().streams()
    assert (stream.scope, stream.scope_name) == (key(f"root:{PROJECT}"), PROJECT)


def test_a_session_that_is_read_before_it_names_its_folder_gets_its_scope_then(log: ClaudeLog) -> None:
    session = talk()
    name = one_session(log, session.snapshot(START))
    source = log.source()
    (stream,) = source.streams()
    cursor = source.read(stream, None, 9).cursor
    log.write(name, session.user("one", START))
    (stream,) = source.streams()
    (message,) = source.read(stream, cursor, 9).messages
    assert message.scope == stream.scope == key(f"root:{CWD}")


def test_the_listing_opens_one_file_of_a_project_once(log: ClaudeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        one_session(log, talk().user("one", START))
    real, opened = os.open, []
    monkeypatch.setattr(os, "open", lambda path, *rest, **more: opened.append(path) or real(path, *rest, **more))
    source = log.source()
    assert len(list(source.streams())) == len(list(source.streams())) == 5
    assert len([path for path in opened if str(path).endswith(".jsonl")]) == 1


def test_a_projects_folder_is_called_as_the_host_calls_it() -> None:
    """R28."""
    assert claude.project_folder("/home/ana.b/my_app v2") == "-home-ana-b-my-app-v2"
