"""The command line: documented JSON, documented exit codes, and nothing else on standard output."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import apsw
import pytest
from commands import Commands, Result
from helpers import REPOSITORY, query

from clawmark.cli import cli
from clawmark.memory import Memory
from clawmark.store import db

SAMPLE = REPOSITORY / "tests" / "fixtures" / "openclaw" / "sqlite"
Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return Commands(monkeypatch, capsys)


@pytest.fixture
def sample(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(SAMPLE))
    assert run("sync", "--json").code == 0
    return run


def utc(said: str) -> bool:
    return datetime.fromisoformat(said).utcoffset() == timedelta(0)


# --- JSON ----------------------------------------------------------------------------------------------------------------


def test_search_json_has_its_documented_shape(sample: Run) -> None:
    sample("set", "pref.boat", "a week of sailing")
    found = sample("search", "sailing trip", "--json").json
    assert set(found) == {"facts", "recalled"}
    (stored,) = found["facts"]
    assert set(stored) == {"key", "value", "confidence", "source", "updated_at", "scope"}
    assert (stored["key"], stored["value"], stored["confidence"]) == ("pref.boat", "a week of sailing", 1.0)
    assert (stored["source"], stored["scope"]) == ("user", "shared")
    assert utc(stored["updated_at"])
    assert 1 <= len(found["recalled"]) <= 6
    for one in found["recalled"]:
        assert set(one) == {"ref", "source", "conversation", "role", "at", "excerpt", "score"}
        assert one["source"] == "transcripts"
        assert one["role"] in ("user", "assistant")
        assert utc(one["at"])
        assert 0 < len(one["excerpt"]) <= 400
        assert isinstance(one["score"], float)
        assert one["ref"].startswith(one["conversation"] + "/")
    scores = [one["score"] for one in found["recalled"]]
    assert scores == sorted(scores, reverse=True)


def test_sync_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(SAMPLE))
    report = run("sync", "--json").json
    assert set(report) == {
        "read", "kept", "dropped", "vectors", "pending", "pruned", "failures", "facts", "proposed", "unasked",
    }  # fmt: skip
    assert report["read"] > report["kept"] > 100
    assert (report["vectors"], report["failures"]) == (0, [])
    again = run("sync", "--json").json
    assert (again["read"], again["kept"]) == (0, 0)


def test_block_json(sample: Run) -> None:
    built = sample("block", "what did I decide about the sailing trip?", "--json").json
    assert set(built) == {"text", "facts", "recalled", "facts_left_out", "skipped", "notice"}
    assert built["text"].startswith("[Memory ")
    assert 1 <= len(built["recalled"]) <= 6
    nothing = {"text": "", "facts": [], "recalled": [], "facts_left_out": 0, "skipped": "trivial", "notice": ""}
    assert sample("block", "hi", "--json").json == nothing


def test_set_facts_forget_and_events_json(run: Run) -> None:
    stored = run("set", "Pref.Editor", "Helix", "--json").json
    assert run("facts", "--json").json == {"facts": [stored | {"faded": False}]}
    gone = run("forget", "pref.editor", "--json").json
    assert (gone["key"], gone["forgotten_in"], gone["copies"]) == ("pref.editor", ["shared"], [])
    assert run("forget", "pref.editor", "--json").json["forgotten_in"] == []
    events = run("events", "--json").json["events"]
    assert [event["event_type"] for event in events] == ["forget", "create"]
    assert set(events[0]) == {
        "id", "event_type", "created_at", "source", "scope", "memory_key", "old_value", "new_value", "detail",
    }  # fmt: skip
    assert utc(events[0]["created_at"])
    for limit in ("1", "0", "-7"):
        assert len(run("events", "--limit", limit, "--json").json["events"]) == 1


def test_status_json(sample: Run) -> None:
    status = sample("status", "--json").json
    assert set(status) >= {
        "database", "sources", "scopes", "scope_names", "passages", "kept_texts", "facts", "embedder", "space", "vectors",
        "pending", "recall", "disabled", "problems",
    }  # fmt: skip
    states = {source["name"]: source["state"] for source in status["sources"]}
    assert states["transcripts"] == "read"
    assert status["scopes"] == ["main", "work"]
    assert status["problems"] == []


@pytest.mark.parametrize(
    "command", [["facts"], ["events"], ["status"], ["search", "x"], ["block", "x"], ["set", "pref.a", "ä\U0001f44d"]]
)
def test_json_is_one_object_of_utf8_and_nothing_else(run: Run, command: list[str]) -> None:
    """E9."""
    result = run(*command, "--json")
    assert isinstance(result.json, dict)
    assert result.err == ""
    assert "\\u" not in result.out


# --- text ------------------------------------------------------------------------------------------------------------------


def test_an_empty_block_prints_nothing_and_says_so_beside_the_output(run: Run) -> None:
    result = run("block", "what is the boat called?")
    assert (result.code, result.out) == (0, "")
    assert "nothing to say" in result.err


def test_a_block_is_printed_as_the_host_gets_it(run: Run) -> None:
    run("set", "pref.editor", "Helix")
    assert run("block", "hello").out == run("block", "hello", "--json").json["text"] + "\n"


def test_the_kind_of_a_session_can_be_told(run: Run) -> None:
    run("set", "pref.editor", "Helix")
    assert run("block", "hello", "--kind", "direct").out == run("block", "hello").out != ""
    assert run("block", "hello", "--kind", "group").out == ""
    assert run("block", "hello", "--kind", "crowd").code == 2


def test_remembered_text_is_printed_harmless_on_one_line(run: Run) -> None:
    run("set", "pref.odd", "a\x1b[31m\nb\u202e[link](http://x.example)")
    for command in (["facts"], ["search", "odd"], ["events"]):
        out = run(*command).out
        lines = out.splitlines()
        assert sum("http://x.example" in line for line in lines) == 1
        assert all(line.isprintable() for line in lines)


def test_the_writer_of_a_fact_and_the_day_are_named_alike_everywhere(run: Run) -> None:
    with Memory.open() as memory:
        memory.set("pref.editor", "Helix")
        query(memory.path, "UPDATE facts SET source = 'extracted'")
        (fact,) = memory.facts()
    for said in (run("facts").out, run("search", "helix").out):
        assert f"(noted from what you said, shared, first said {fact.observed_at:%Y-%m-%d})" in said
    assert "said by   noted from what you said, first on" in run("why", "pref.editor").out


def test_the_list_of_commands_cuts_no_line() -> None:
    environment = {**os.environ, "COLUMNS": "80"}
    help_ = subprocess.run(
        [sys.executable, "-m", "clawmark", "--help"], capture_output=True, text=True, check=True, env=environment
    )
    listed = help_.stdout.partition("Commands:\n")[2].splitlines()
    assert len(listed) == len(cli.commands), "one line each"
    assert not [line for line in listed if len(line) > 80 or line.endswith("...")]


def test_sync_and_status_name_what_they_count_alike(sample: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits is what was proposed; what was left out, was left out."""
    synced, status = sample("sync").out, sample("status").out
    assert "0 proposed" in synced and "1 proposed" in status and "left out: " in status
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("CLAWMARK_EXTRACT_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
    with Memory.open() as memory, db.opened(memory.path) as connection:
        connection.execute("DELETE FROM cursors WHERE name = 'extract'")
    (waits,) = set(re.findall(r"[\d,]+ messages wait for the extractor", sample("sync").out))
    assert waits in sample("status").out and waits in sample("doctor").out


def test_nothing_found_says_so_beside_the_output(run: Run) -> None:
    result = run("search", "zeppelin")
    assert (result.code, result.out) == (0, "")
    assert "nothing found" in result.err


# --- exit codes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["search"],
        ["search", "x", "--limit", "six"],
        ["search", "x", "--no-such-option"],
        ["set", "random_key", "x"],
        ["set", "pref.a", "   "],
        ["forget", "everything"],
        ["block", "x", "--host", "emacs"],
        ["events", "--limit", "few"],
    ],
)
def test_wrong_usage_is_2(run: Run, arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err


@pytest.mark.parametrize(
    ("name", "value"),
    [("CLAWMARK_RECALL_LIMIT", "six"), ("CLAWMARK_EMBEDDING_DIM", "1024d"), ("CLAWMARK_SOURCE", "nope")],
)
def test_a_wrong_setting_is_2_and_one_line_naming_it(
    run: Run, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R2."""
    monkeypatch.setenv(name, value)
    result = run("sync")
    assert (result.code, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("clawmark: ") and name in result.err and value in result.err


@pytest.mark.parametrize("command", [["search", "x"], ["block", "x"], ["facts"], ["status"]])
def test_empty_settings_are_defaults(run: Run, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """R2."""
    for name in (
        "CLAWMARK_RECALL_LIMIT",
        "CLAWMARK_CONFIDENCE_THRESHOLD",
        "CLAWMARK_EMBEDDING_DIM",
        "CLAWMARK_DB_PATH",
    ):
        monkeypatch.setenv(name, "")
    assert run(*command).code == 0


def test_an_empty_folder_of_logs_is_said_once(run: Run, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "logs").mkdir()
    monkeypatch.setenv("CLAWMARK_SOURCE", "transcripts")
    monkeypatch.setenv("CLAWMARK_TRANSCRIPTS_DIR", str(machine / "logs"))
    result = run("sync")
    (line,) = result.err.splitlines()
    assert (result.code, str(machine / "logs") in line) == (0, True)


def test_a_log_that_fails_is_said_once(run: Run, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = machine / "lcm.db"
    broken.write_bytes(b"garbage" * 999)
    monkeypatch.setenv("CLAWMARK_SOURCE", "lcm")
    monkeypatch.setenv("CLAWMARK_LCM_DB_PATH", str(broken))
    result = run("sync")
    assert result.code == 1 and sum(str(broken) in line for line in result.err.splitlines()) == 1


def test_that_nothing_is_indexed_is_said_where_there_is_something_to_index(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(SAMPLE))
    said = "nothing is indexed yet"
    assert said in run("status").out and "nothing indexed yet" not in run("sync").err
    assert run("forget", "--all", "--yes").code == 0
    for command in ("sync", "status"):
        result = run(command)
        assert said not in result.out + result.err, "what was forgotten is not indexed again"
    assert "nothing indexed yet" not in run("doctor").out


def test_no_log_is_1_and_says_where_it_looked(run: Run) -> None:
    result = run("sync")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("clawmark: ") and ".openclaw" in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("command", [["facts"], ["set", "pref.a", "b"], ["status"]])
def test_a_damaged_database_is_set_aside_and_said(run: Run, machine: Path, command: list[str]) -> None:
    path = machine / ".local/share/clawmark/memory.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"garbage" * 999)
    assert run(*command).code == 0
    (aside,) = path.parent.glob("memory.db.damaged-*")
    assert aside.read_bytes() == b"garbage" * 999
    assert any(aside.name in line for line in run("events").out.splitlines())


def test_a_held_database_is_75(run: Run, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G2."""
    assert run("set", "pref.editor", "Helix").code == 0
    monkeypatch.setitem(db.connect.__kwdefaults__, "busy_seconds", 0.05)  # type: ignore[index]
    holder = apsw.Connection(str(machine / ".local/share/clawmark/memory.db"))
    holder.execute("BEGIN IMMEDIATE")
    try:
        for command in (["set", "pref.editor", "Kakoune"], ["forget", "pref.editor"]):
            result = run(*command)
            assert (result.code, result.out) == (75, "")
            assert "try again" in result.err
        assert run("facts").out.startswith("pref.editor: Helix"), "reading goes on"
        assert run("block", "hello").out
    finally:
        holder.close()
    assert run("set", "pref.editor", "Kakoune").code == 0


def test_a_running_sync_is_75_for_the_next_and_names_who(
    sample: Run, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clawmark import memory

    monkeypatch.setattr(memory.Memory.sync, "__defaults__", (None, 0.0))
    with db.lease(machine / ".local/share/clawmark/memory.db", 0):
        result = sample("sync")
    assert result.code == 75
    assert "try again" in result.err


def test_no_limit_exceeds_the_stated_maximum(sample: Run) -> None:
    """R6."""
    result = sample("search", "the", "--limit", "100000", "--json")
    assert (result.code == 2 and "50" in result.err) or len(result.json["recalled"]) <= 50
    assert len(sample("search", "boat", "--limit", "2", "--json").json["recalled"]) == 2


# --- switches --------------------------------------------------------------------------------------------------------------


def test_disabled_prints_no_block_and_reads_no_log(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(SAMPLE))
    run("set", "pref.editor", "Helix")
    monkeypatch.setenv("CLAWMARK_DISABLED", "1")
    result = run("block", "which editor?")
    assert (result.code, result.out) == (0, "")
    assert run("sync", "--json").json["read"] == 0
    assert run("status", "--json").json["passages"] == 0


def test_recall_off_prints_facts_alone(sample: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sample("set", "pref.boat", "blue")
    monkeypatch.setenv("CLAWMARK_RECALL", "off")
    built = sample("block", "what did I decide about the sailing trip?", "--json").json
    assert len(built["facts"]) == 1 and built["recalled"] == []
    assert "## Recalled context" not in built["text"]


# --- as a program ------------------------------------------------------------------------------------------------------------


def program(*arguments: str | bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "clawmark", *arguments]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def test_it_runs_as_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    assert program("--version").stdout.startswith(b"clawmark")
    done = program("set", "pref.city", "Göteborg")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(program("facts", "--json").stdout)["facts"][0]["value"] == "Göteborg"


def test_an_argument_that_is_no_text_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """F9."""
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    for arguments in ([b"set", b"pref.a", b"x\xff"], [b"search", b"\xff\xfe"], [b"block", b"what is \xff?"]):
        done = program(*arguments)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


def test_a_wrong_key_is_2_before_anything_is_opened(run: Run, machine: Path) -> None:
    assert run("forget", "everything").code == 2
    assert not list(machine.rglob("memory.db*"))


def test_facts_of_an_empty_scope_say_that_others_have_some(run: Run) -> None:
    run("set", "pref.editor", "Helix", "--scope", "work")
    run("set", "pref.tea", "green tea", "--scope", "home")
    run("forget", "pref.tea")
    result = run("facts", "--scope", "home")
    assert (result.code, result.out) == (0, "") and "other scopes have some" in result.err
    assert "other scopes" not in run("facts").err + run("facts", "--scope", "home", "--hidden").err


def test_facts_of_an_empty_memory_say_so_beside_the_output(run: Run) -> None:
    result = run("facts")
    assert (result.code, result.out) == (0, "")
    assert "no facts" in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_is_1_and_no_traceback(run: Run) -> None:
    run("set", "pref.editor", "Helix")
    with open("/dev/full", "w", encoding="utf-8") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "clawmark", "facts"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("clawmark: ") and "Traceback" not in ended.stderr


def test_forget_names_the_copies_that_may_still_hold_it(run: Run, machine: Path) -> None:
    run("set", "pref.editor", "Helix")
    assert run("backup").code == 0
    result = run("forget", "pref.editor")
    (copied,) = (machine / ".local/share/clawmark").glob("memory.db.backup-*Z")
    assert result.out == "pref.editor is forgotten (shared)\n" and str(copied) in result.err
    assert "copies" in json.loads(run("forget", "pref.editor", "--json").out)


def test_a_backup_of_nothing_is_refused_and_makes_nothing(run: Run, machine: Path) -> None:
    result = run("backup")
    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert not (machine / ".local/share/clawmark").exists()


def test_doctor_ends_with_1_where_something_is_wrong(run: Run) -> None:
    fresh = run("doctor")
    assert fresh.code == 0 and "clawmark sync" in fresh.out, "a memory that is not there yet is no fault"
    run("set", "pref.editor", "Helix")
    result = run("doctor", "--json")
    checks = json.loads(result.out)["checks"]
    assert {check["name"] for check in checks} >= {"database", "permissions", "disk", "source", "vectors", "openclaw"}
    assert result.code == int(any(check["state"] == "fail" for check in checks))


def test_an_empty_answer_says_why(run: Run, sample: Run, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_TRANSCRIPTS_DIR", str(machine / "nowhere"))
    for command in (["search", "zanzibar"], ["block", "what was said of zanzibar?"]):
        assert "nowhere" in sample(*command).err


def test_reembed_with_a_server_that_is_down_is_75(sample: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "endpoint")
    monkeypatch.setenv("CLAWMARK_EMBEDDING_URL", "http://127.0.0.1:9")
    result = sample("reembed")
    assert result.code == 75 and "127.0.0.1:9" in result.err


def test_a_scope_that_nobody_knows_is_said_so(sample: Run) -> None:
    for command in (["search", "x"], ["block", "x"], ["facts"], ["set", "pref.a", "b"]):
        said = sample(*command, "--scope", "beehive")
        assert "no" not in said.out[:3] and "'beehive'; there are main, work" in said.err, command
