"""`clawmark serve`: the protocol over pipes and sockets, one process a database, and how it ends."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import REPOSITORY
from server import Reply, serving
from serving import CODE, WAIT, Client, Process, Talk, until

from clawmark.errors import EndpointDown
from clawmark.health import Check
from clawmark.hosts.checks import checks
from clawmark.memory import Memory
from clawmark.serve.hostmodel import ByResident, HostModel
from clawmark.settings import Settings

SAMPLE = REPOSITORY / "tests" / "fixtures" / "openclaw" / "sqlite"

Start = Callable[..., Process]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name: the address of a socket has few bytes."""
    made = Path(tempfile.mkdtemp(prefix="cm-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def start(db_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(db_path))
    monkeypatch.setenv("CLAWMARK_TRANSCRIPTS_DIR", str(SAMPLE))
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    started: list[Process] = []

    def start(**options: Any) -> Process:
        started.append(Process(**{"address": folder / "s.sock"} | options))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture
def connect(folder: Path) -> Iterator[Callable[[], Client]]:
    made: list[Client] = []

    def connect() -> Client:
        made.append(until(lambda: Client.at(folder / "s.sock"), "somebody who listens"))
        return made[-1]

    yield connect
    for client in made:
        client.close()


def turn(prompt: str, **more: Any) -> dict[str, Any]:
    return {"prompt": prompt, "host": "cli", "scope": "main", "kind": "direct", **more}


# --- lines ------------------------------------------------------------------------------------------------------------


def test_hello_is_answered_before_the_memory_is_open(start: Start, db_path: Path) -> None:
    process = start(code="import clawmark.store.recovery as r, time; r.ensure = lambda *_: time.sleep(600)\n" + CODE)
    said = process.result("hello", client="test", version="1", protocol=1)
    assert (said["protocol"], said["ready"], said["problem"]) == (1, False, "opening")
    assert (said["database"], said["pid"]) == (str(db_path), process.process.pid)
    assert process.result("block", turn=turn("What is the cat called?"), deadline_ms=500) == {"text": ""}
    error = process.ask("search", query="cat")["error"]
    assert error == {"code": -32002, "message": "memory is not ready: opening"}


def test_standard_output_carries_the_protocol_alone(start: Start) -> None:
    stray = "import os, threading, clawmark.serve as s; was = s._log_to\n"
    stray += "s._log_to = lambda host: (print('stray', flush=True), os.write(1, b'stray'), was(host))\n"
    process = start(code=stray + CODE)
    process.ready()
    process.result("status")
    assert process.strays == []
    process.says("stray")


GARBAGE = [
    (b"nonsense", -32700),
    (b"\xff\xfe{}", -32700),
    (b'{"jsonrpc":"2.0","id":9,"method":"hello","params":{"a":NaN}}', -32700),
    (b'{"jsonrpc":"2.0","id":9,"method":"hello","params":{"a":1e999}}', -32700),
    (b'{"jsonrpc":"2.0","id":9,"method":"hello","params":{"a":' + b"9" * 5000 + b"}}", -32700),
    (b"[" * 100_000, -32700),
    (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, -32700),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":9,"method":"hello"}]', -32600),
    (b"7", -32600),
    (b"{}", -32600),
    (b'{"jsonrpc":"2.0","id":[9],"method":"hello"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"hello"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"hello"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"hello"}', -32600),
    (b"x" * 10_000_000, -32600),
]


@pytest.mark.parametrize(("line", "code"), GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_named_and_the_connection_lives_on(start: Start, line: bytes, code: int) -> None:
    process = start()
    process.line(line)
    error = process.answer(None)["error"]
    assert error["code"] == code
    assert "nonsense" not in error["message"]
    assert process.result("hello")["protocol"] == 1


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"jsonrpc": "1.0", "method": "hello"}, -32600),
        ({"jsonrpc": "2.0", "method": 7}, -32600),
        ({"jsonrpc": "2.0", "method": "hello", "params": [1]}, -32602),
        ({"jsonrpc": "2.0", "method": "hello", "params": {"deadline_ms": "soon"}}, -32602),
        ({"jsonrpc": "2.0", "method": "hello", "params": {"deadline_ms": 0}}, -32602),
        ({"jsonrpc": "2.0", "method": "unheard-of"}, -32601),
        ({"jsonrpc": "2.0", "method": "block"}, -32602),
        ({"jsonrpc": "2.0", "method": "block", "params": {"turn": {"prompt": 7}}}, -32602),
        ({"jsonrpc": "2.0", "method": "block", "params": {"turn": {"prompt": "x", "kind": "odd"}}}, -32602),
        ({"jsonrpc": "2.0", "method": "block", "params": {"turn": {"host": "openclaw", "prompt": 7}}}, -32602),
        ({"jsonrpc": "2.0", "method": "hook", "params": {"host": "vi", "event": {}}}, -32602),
        ({"jsonrpc": "2.0", "method": "notify", "params": {"event": "lunch"}}, -32602),
    ],
)
def test_a_wrong_request_is_answered_under_its_own_id(start: Start, request_: dict[str, Any], code: int) -> None:
    process = start()
    process.line(json.dumps(request_ | {"id": "mine"}).encode())
    assert process.answer("mine")["error"]["code"] == code


def test_half_a_line_is_no_request_until_it_is_whole(start: Start) -> None:
    process = start()
    process.result("hello")
    whole = json.dumps({"jsonrpc": "2.0", "id": "x", "method": "hello"}).encode() + b"\n"
    process.write(whole[:20])
    process.write(whole[20:])
    assert process.answer("x")["result"]["protocol"] == 1


def test_half_a_character_is_read_as_a_whole_one(start: Start) -> None:
    process = start()
    process.ready()
    process.line(b'{"jsonrpc":"2.0","id":"x","method":"block","params":{"turn":{"prompt":"who is \\ud83d Ulla?"}}}')
    assert "text" in process.answer("x")["result"]


def test_an_id_that_is_under_way_is_not_taken_twice(start: Start) -> None:
    process = start(code="import clawmark.store.recovery as r, time; r.ensure = lambda *_: time.sleep(600)\n" + CODE)
    line = {"jsonrpc": "2.0", "id": "x", "method": "block", "params": {"turn": turn("cat?"), "deadline_ms": 1000}}
    process.line(json.dumps(line).encode())
    process.line(json.dumps(line).encode())
    assert process.answer(None)["error"]["code"] == -32600
    assert process.answer("x")["result"] == {"text": ""}


# --- requests ---------------------------------------------------------------------------------------------------------

STALLING = """
import threading
import clawmark.memory as m
def stall(self, *args, **kwargs):
    threading.Event().wait(600)
"""


def test_a_deadline_is_answered_and_what_comes_later_is_dropped(start: Start) -> None:
    process = start(code=STALLING + "m.Memory.block = stall\n" + CODE)
    process.ready()
    assert process.ask("block", turn=turn("cat?"), deadline_ms=50)["error"]["code"] == -32001
    assert process.result("hello")["ready"]


def test_a_cancelled_request_is_answered_at_once(start: Start) -> None:
    process = start(code=STALLING + "m.Memory.block = stall\n" + CODE)
    process.ready()
    asked = process.send("block", turn=turn("cat?"))
    process.line(json.dumps({"jsonrpc": "2.0", "method": "cancel", "params": {"id": asked}}).encode())
    assert process.answer(asked)["error"]["code"] == -32003


def test_slow_requests_of_one_kind_do_not_hold_up_a_block(start: Start) -> None:
    process = start(code=STALLING + "m.Memory.status = m.Memory.search = m.Memory.sync = stall\n" + CODE)
    process.ready()
    for method, params in (("status", {}), ("search", {"query": "cat"}), ("reconcile", {})):
        for _ in range(20):
            process.send(method, **params)
    assert "text" in process.result("block", turn=turn("What is the cat called?"))


def test_a_fault_is_answered_without_the_words_of_the_prompt(start: Start) -> None:
    fail = "import clawmark.memory as m\ndef fail(self, turn): raise RuntimeError(turn.prompt)\n"
    process = start(code=fail + "m.Memory.block = fail\n" + CODE)
    process.ready()
    said = process.ask("block", turn=turn("canary in the coal mine"))
    assert said["error"]["code"] == -32603
    process.says("request_failed")
    assert "canary" not in json.dumps(said) + "".join(process.stderr) + json.dumps(process.notices)


def test_a_memory_that_fails_gives_an_empty_block_and_one_line(start: Start) -> None:
    fail = "import clawmark.memory as m\nfrom clawmark.errors import DatabaseBusy\n"
    fail += "def fail(self, turn): raise DatabaseBusy('held; try again')\n"
    process = start(code=fail + "m.Memory.block = fail\n" + CODE)
    process.ready()
    for _ in range(3):
        assert process.result("block", turn=turn("cat?")) == {"text": ""}
    process.says("held; try again")
    assert sum("no_block" in line for line in process.stderr) == 1


def test_a_database_that_cannot_be_opened_is_named(start: Start, db_path: Path) -> None:
    db_path.parent.mkdir()
    with sqlite3.connect(db_path) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    process = start(code="import clawmark.serve.desk as d; d.PATIENCE = 3600.0\n" + CODE)
    assert process.result("block", turn=turn("cat?")) == {"text": ""}  # nobody waits for it
    problem = until(lambda: (said := process.result("hello")["problem"]) != "opening" and said, "the problem")
    assert str(db_path) in problem
    assert process.result("block", turn=turn("cat?"), deadline_ms=300) == {"text": ""}
    assert process.ask("search", query="cat")["error"] == {"code": -32002, "message": f"memory is not ready: {problem}"}


def test_a_run_that_is_tried_again_gets_the_same_bytes_while_nothing_changed(start: Start) -> None:
    count = "import clawmark.memory as m, itertools\nfrom clawmark.model import Block\nn = itertools.count()\n"
    count += "m.Memory.shown = lambda self, turn, block: None\n"
    process = start(code=count + "m.Memory.block = lambda self, turn: Block('block ' + str(next(n)))\n" + CODE)
    process.ready()
    process.result("reconcile", caller={})
    first = process.result("block", turn=turn("cat?", run="r1"))
    assert process.result("block", turn=turn("cat?", run="r1")) == first
    assert process.result("block", turn=turn("cat?", run="r2")) != first
    assert process.result("block", turn=turn("another prompt?", run="r1")) != first


def test_what_was_shown_is_noted_after_the_answer_and_only_if_it_went_out(start: Start) -> None:
    note = "import clawmark.memory as m, sys, time\nfrom clawmark.model import Block\n"
    note += "m.Memory.shown = lambda self, turn, block: print('noted', turn.run, file=sys.stderr, flush=True)\n"
    note += "m.Memory.block = lambda self, turn: (time.sleep(0.3 if turn.run == 'late' else 0), Block('text'))[1]\n"
    process = start(code=note + CODE)
    process.ready()
    assert process.ask("block", turn=turn("cat?", run="late"), deadline_ms=20)["error"]["code"] == -32001
    process.result("block", turn=turn("cat?", run="one"))
    process.result("block", turn=turn("cat?", run="one"))
    process.says("noted one")
    process.result("block", turn=turn("cat?", run="late"), deadline_ms=5000)  # made in the meantime
    process.says("noted late")
    assert [line for line in process.stderr if line.startswith("noted")] == ["noted one\n", "noted late\n"]


def test_what_the_owner_typed_decides_whose_word_a_fact_is(start: Start) -> None:
    process = start()
    process.ready()
    process.result("block", turn=turn("I use Helix as my editor.", session="s-1", owner=True))
    process.result("block", turn=turn("I use Kakoune as my shell.", session="s-2", owner=False, kind="group"))

    def outcome(value: str, host: str = "cli", session: str | None = "s-1") -> Any:
        caller = {"host": host, "scope": "main", "session": session, "kind": "direct", "owner": True}
        return process.result("set", caller=caller, key="pref.editor", value=value)["outcome"]

    assert outcome("Kakoune", "cli", "s-2") == "agent"  # its host is one whose owner is seen by nobody
    strangers = {"host": "claude-code", "scope": "main", "session": "s-4", "kind": "direct", "owner": False}
    process.result("block", turn={**strangers, "prompt": "I use Kakoune as my editor."})
    assert outcome("Kakoune", "claude-code", "s-4") == "agent"
    assert outcome("Helix", "mcp") == "agent"
    assert outcome("Helix", "cli", None) == "agent"
    typed = {"host": "claude-code", "scope": "main", "session": "s-3", "kind": "direct"}
    process.result("block", turn={**typed, "owner": True, "prompt": "I use Helix as my editor."})
    assert outcome("Helix", "claude-code", "s-3") == "user"
    stranger = {"host": "claude-code", "scope": "main", "session": "s-3", "kind": "direct", "owner": False}
    said = process.result("set", caller=stranger, key="pref.shell", value="Helix")
    assert said["outcome"] == "agent"  # the owner typed it, and somebody else is speaking


def test_what_is_forgotten_is_in_no_block_of_a_run_that_is_tried_again(start: Start) -> None:
    process = start()
    process.ready()
    process.result("set", caller={"host": "mcp"}, key="pref.editor", value="Helix")
    assert "Helix" in process.result("block", turn=turn("hm", run="r1"))["text"]
    process.result("forget", caller={"host": "mcp"}, key="pref.editor")
    assert "Helix" not in process.result("block", turn=turn("hm", run="r1"))["text"]


def test_what_was_forgotten_elsewhere_is_in_no_block_of_a_run_that_is_tried_again(start: Start, db_path: Path) -> None:
    process = start()
    process.ready()
    process.result("set", caller={"host": "mcp"}, key="pref.editor", value="Helix")
    assert "Helix" in process.result("block", turn=turn("hm", run="r1"))["text"]
    with Memory.open(Settings(db_path=db_path)) as other:
        assert other.forget("pref.editor")
    assert "Helix" not in process.result("block", turn=turn("hm", run="r1"))["text"]


def test_a_block_that_is_made_again_with_the_same_bytes_is_shown_once(start: Start) -> None:
    note = "import clawmark.memory as m, sys\nwas = m.Memory.shown\n"
    note += "def shown(self, turn, block): was(self, turn, block); print('noted', file=sys.stderr, flush=True)\n"
    process = start(code=note + "m.Memory.shown = shown\n" + CODE)
    process.ready()
    process.result("set", caller={"host": "mcp"}, key="pref.editor", value="Helix")
    first = process.result("block", turn=turn("hm", run="r1"))
    process.says("noted")
    assert process.result("block", turn=turn("hm", run="r1")) == first
    process.result("block", turn=turn("hm", run="r2"))
    until(lambda: process.stderr.count("noted\n") == 2, "the second run")


def test_a_database_of_a_newer_version_is_written_by_nobody(start: Start, db_path: Path) -> None:
    process = start()
    process.ready()
    process.result("set", caller={"host": "mcp"}, key="pref.editor", value="Helix")
    with sqlite3.connect(db_path) as other:
        other.execute(
            "UPDATE schema_version SET version = 99 WHERE version = (SELECT max(version) FROM schema_version)"
        )
    other.close()
    for method, said in (("set", {"key": "pref.editor", "value": "Kakoune"}), ("forget", {"key": "pref.editor"})):
        error = process.ask(method, caller={"host": "mcp"}, **said)["error"]
        assert (error["code"], "Upgrade clawmark" in error["message"]) == (-32004, True)
    with sqlite3.connect(db_path) as other:
        assert other.execute("SELECT value FROM facts WHERE key = 'pref.editor'").fetchall() == [("Helix",)]
    other.close()


def test_a_refusal_carries_its_code(start: Start) -> None:
    process = start()
    process.ready()
    error = process.ask("set", caller={"host": "mcp"}, key="no such prefix", value="x")["error"]
    assert (error["code"], error["data"]) == (-32004, {"code": "KEY_FORMAT"})


def test_reconcile_reads_what_was_just_said(start: Start, tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    process = start(CLAWMARK_TRANSCRIPTS_DIR=str(sessions))
    process.ready()
    session = "5a5a5a5a-0000-4000-8000-000000000001"
    said = {"role": "user", "content": [{"type": "text", "text": "the spare key hangs behind the boiler"}]}
    entries = [
        {"type": "session", "version": 3, "id": session, "timestamp": "2026-01-01T00:00:00Z"},
        {"type": "message", "id": "00000001", "timestamp": "2026-01-01T00:00:00Z", "message": said},
    ]
    (sessions / f"{session}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert process.result("reconcile", caller={})["read"] == 1
    assert "boiler" in process.result("search", caller={}, query="spare key")["text"]


def test_status_says_what_the_process_does(start: Start, connect: Callable[[], Client]) -> None:
    process = start()
    process.ready()
    client = connect()
    client.result("hello")
    resident = client.result("status")["resident"]
    assert (resident["pid"], resident["clients"], resident["last_block"]) == (process.process.pid, 2, None)
    process.result("reconcile", caller={})
    assert process.result("block", turn=turn("Who feeds the cat while we are away?"))["text"]
    until(lambda: client.result("status")["resident"]["last_block"], "the time of the last block")


def test_the_sources_are_named_at_the_start(start: Start, db_path: Path) -> None:
    process = start()
    line = process.says("serving version=")
    assert str(db_path) in line
    assert str(SAMPLE) in line


# --- lines and places that nobody foresaw ------------------------------------------------------------------------------

HUGE = b'{"jsonrpc":"2.0","id":"huge","method":"hello","params":{"deadline_ms":' + b"9" * 400 + b"}}"
FAULTY = "import clawmark.serve.message as m\ndef fail(line): raise RuntimeError(line)\nm.parsed = fail\n"


def test_a_number_beyond_all_bounds_is_a_number(start: Start) -> None:
    process = start()
    process.line(HUGE)
    assert process.answer("huge")["result"]["protocol"] == 1
    second = start()
    second.line(HUGE)
    assert second.answer("huge")["result"]["pid"] == process.process.pid


def test_a_fault_with_a_line_is_answered_and_its_side_is_read_on(start: Start, connect: Callable[[], Client]) -> None:
    process = start(code=FAULTY + CODE)
    for side in (process, connect()):
        for _ in range(2):
            side.line(b"canary")
            assert side.answer(None)["error"]["code"] == -32603
    assert "canary" not in "".join(process.stderr) + json.dumps(process.notices)
    assert process.end() == 0


def test_a_reader_that_dies_frees_its_place(start: Start, connect: Callable[[], Client]) -> None:
    """None of what is caught: nothing may, and the place is free all the same."""
    dying = "import clawmark.serve.methods as m, threading\nclass Dead(BaseException): pass\n"
    dying += "threading.excepthook = lambda _: None\nwas = m.Methods._received\n"
    dying += "def received(self, peer, line):\n    if b'die' in line: raise Dead\n    was(self, peer, line)\n"
    process = start(code=dying + "m.Methods._received = received\n" + CODE)
    process.ready()
    client = connect()
    client.line(b"die")
    until(lambda: client.is_over, "the end of the connection")
    assert process.result("status")["resident"]["clients"] == 1
    process.line(b"die")
    assert process.process.wait(WAIT) == 0


QUICK_LOOK = "import clawmark.serve.resident as r; r.LOOK_SECONDS = 0.1\n"


@pytest.mark.parametrize("gone", ["socket", "folder", "another's"])
def test_a_socket_that_was_taken_away_is_made_again(start: Start, folder: Path, gone: str) -> None:
    address = folder / "run" / "s.sock"
    process = start(address=address, code=QUICK_LOOK + CODE)
    process.ready()
    address.unlink()
    if gone == "folder":
        address.parent.rmdir()
    elif gone == "another's":
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(str(address))
    client = until(lambda: Client.at(address), "somebody who listens")
    assert client.result("hello")["pid"] == process.process.pid
    client.close()
    assert stat.S_IMODE(os.lstat(address.parent).st_mode) & 0o077 == 0
    assert process.end() == 0
    assert not address.exists()


def test_a_process_that_cannot_be_met_again_ends_unless_it_has_a_host(start: Start, folder: Path) -> None:
    for stdio in (True, False):
        address = folder / f"{stdio}" / "s.sock"
        process = start(address=address, stdio=stdio, code=QUICK_LOOK + CODE)
        process.says("serving version=")
        address.unlink()
        address.write_text("precious")
        process.says("address_lost")
        if stdio:
            assert process.result("hello")["ready"]
            assert process.end() == 0
        else:
            assert process.process.wait(WAIT) == 0
        assert address.read_text() == "precious"


def test_a_lock_file_that_was_taken_away_is_locked_again(start: Start, db_path: Path) -> None:
    process = start(code=QUICK_LOOK + CODE)
    process.ready()
    serve = db_path.with_name("memory.db.serve")
    serve.unlink()
    until(lambda: serve.exists() and str(process.process.pid) in serve.read_text(), "its name")
    second = start()
    assert second.result("hello")["pid"] == process.process.pid


def holding(db_path: Path, address: Path) -> int:
    """Somebody holds the lock, and nobody listens."""
    db_path.parent.mkdir(exist_ok=True)
    handle = os.open(db_path.with_name("memory.db.serve"), os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.write(handle, json.dumps({"pid": 4711, "socket": str(address)}).encode())
    return handle


def test_who_waits_for_a_process_that_cannot_be_reached_answers_and_ends(
    start: Start, db_path: Path, folder: Path
) -> None:
    handle = holding(db_path, folder / "nobody.sock")
    process = start()
    assert process.result("block", turn=turn("cat?"), deadline_ms=300) == {"text": ""}
    assert process.result("hook", host="claude-code", event={}, deadline_ms=300) == {"stdout": ""}
    error = process.ask("search", query="cat", deadline_ms=300)["error"]
    assert (error["code"], error["message"].startswith("memory is not ready: ")) == (-32002, True)
    process.line(b"nonsense")
    assert process.answer(None)["error"]["code"] == -32700
    assert process.end() == 0
    os.close(handle)


def test_what_was_asked_of_who_waits_is_answered_once_the_place_is_free(
    start: Start, db_path: Path, folder: Path
) -> None:
    handle = holding(db_path, folder / "nobody.sock")
    process = start()
    process.says("waiting for the resident process")
    asked = process.send("hello", deadline_ms=50_000)
    os.close(handle)
    assert process.answer(asked)["result"]["pid"] == process.process.pid


def test_doctor_names_a_process_that_holds_the_place_and_answers_nobody(db_path: Path, folder: Path) -> None:
    def found() -> Check:
        return next(checks(Settings(db_path=db_path), {}))

    assert found().state == "ok"
    handle = holding(db_path, folder / "nobody.sock")
    assert (found().state, "4711" in found().said, "kill 4711" in found().advice) == ("fail", True, True)
    os.close(handle)
    assert found().state == "ok"


# --- sides ------------------------------------------------------------------------------------------------------------


def test_a_side_that_does_not_read_holds_nobody_up(start: Start, folder: Path, connect: Callable[[], Client]) -> None:
    start()
    connect().ready()
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deaf.connect(str(folder / "s.sock"))
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello"}).encode() + b"\n"
    deaf.settimeout(0.2)
    try:
        for _ in range(200):
            deaf.sendall(line * 100)
    except OSError:
        pass  # nobody takes any more of it, or we were dropped: both are right
    other = connect()
    for _ in range(5):
        assert other.result("hello")["protocol"] == 1
    deaf.close()


def test_a_side_that_does_not_read_is_dropped(start: Start, folder: Path, connect: Callable[[], Client]) -> None:
    quick = "import clawmark.serve.peer as p; p.Outlet.__init__.__defaults__ = (0.3,)\n"
    start(code=quick + CODE)
    connect().ready()
    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deaf.connect(str(folder / "s.sock"))
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello"}).encode() + b"\n"

    def is_dropped() -> bool:
        try:
            deaf.sendall(line * 1000)
        except OSError:
            return True
        return False

    until(is_dropped, "the end of the connection")
    deaf.close()
    assert connect().result("hello")["protocol"] == 1


def test_the_socket_is_for_its_owner_alone(start: Start, folder: Path, connect: Callable[[], Client]) -> None:
    previous = os.umask(0)
    try:
        start(address=folder / "sub" / "s.sock")
    finally:
        os.umask(previous)
    until(lambda: (folder / "sub" / "s.sock").exists(), "the socket")
    assert stat.S_IMODE(os.lstat(folder / "sub" / "s.sock").st_mode) == 0o600
    assert stat.S_IMODE(os.lstat(folder / "sub").st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root to be somebody else")
def test_another_user_is_refused(start: Start, folder: Path, connect: Callable[[], Client]) -> None:
    process = start()
    connect().ready()
    folder.chmod(0o755)
    (folder / "s.sock").chmod(0o666)
    ask = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
    ask += 's.settimeout(30); s.sendall(b\'{"jsonrpc":"2.0","id":1,"method":"hello"}\\n\'); print(s.recv(99))'
    command = [
        "setpriv",
        "--reuid=65534",
        "--clear-groups",
        "/usr/bin/env",
        "python3",
        "-c",
        ask,
        str(folder / "s.sock"),
    ]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False, cwd="/")
    assert "protocol" not in asked.stdout
    process.says("another user")


# --- one process a database -------------------------------------------------------------------------------------------


def test_a_second_host_is_passed_on_to_the_first_process(start: Start) -> None:
    first = start()
    first.ready()
    second = start()
    assert second.result("hello")["pid"] == first.process.pid
    second.line(b"x" * 3_000_000)
    assert second.answer(None)["error"]["code"] == -32600
    second.line(b"nonsense")
    assert second.answer(None)["error"]["code"] == -32700
    assert second.result("hello")["pid"] == first.process.pid
    assert second.end() == 0
    assert first.result("hello")["pid"] == first.process.pid


def test_a_proxy_takes_the_place_of_a_process_that_was_killed(start: Start, folder: Path, connect: Any) -> None:
    first = start(code=STALLING + "m.Memory.block = stall\n" + CODE)
    first.ready()
    second = start()
    second.ready()
    asked = second.send("block", turn=turn("cat?"))
    second.result("hello")
    first.kill()
    error = second.answer(asked)["error"]
    assert error == {"code": -32603, "message": "the resident process went away"}
    assert second.ready()["pid"] == second.process.pid
    assert connect().result("hello")["pid"] == second.process.pid


def test_of_many_that_start_at_once_one_is_the_resident_process(start: Start, db_path: Path) -> None:
    for _ in range(3):
        processes = [start() for _ in range(4)]
        asked = [(process, process.send("hello")) for process in processes]
        assert len({process.answer(id)["result"]["pid"] for process, id in asked}) == 1
        for process in processes:
            process.kill()


def test_a_process_without_a_host_leaves_the_place_to_the_one_that_is_there(start: Start) -> None:
    first = start()
    first.ready()
    second = start(stdio=False)
    assert second.process.wait(WAIT) == 0
    second.says("another resident process")
    assert first.result("hello")["ready"]


def test_a_socket_that_a_dead_process_left_is_replaced(
    start: Start, folder: Path, connect: Callable[[], Client]
) -> None:
    first = start(stdio=False)
    connect().ready()
    first.kill()
    assert (folder / "s.sock").exists()
    second = start(stdio=False)
    second.says("serving version=")
    assert connect().result("hello")["pid"] == second.process.pid


@pytest.mark.parametrize("planted", ["file", "link"])
def test_what_is_no_socket_of_ours_is_left_as_it_is(start: Start, folder: Path, planted: str) -> None:
    address = folder / "s.sock"
    (folder / "target").write_text("precious")
    address.symlink_to(folder / "target") if planted == "link" else address.write_text("precious")
    process = start(stdio=False)
    assert process.process.wait(WAIT) != 0
    process.says("no socket of yours")
    assert address.read_text() == "precious"


def test_a_socket_of_another_database_is_left_to_its_process(start: Start, tmp_path: Path, connect: Any) -> None:
    first = start(stdio=False)
    connect().ready()
    second = start(stdio=False, CLAWMARK_DB_PATH=str(tmp_path / "other" / "memory.db"))
    assert second.process.wait(WAIT) != 0
    second.says("for another database")
    assert connect().result("hello")["pid"] == first.process.pid


def test_a_socket_in_a_folder_of_everybody_is_refused(start: Start, folder: Path) -> None:
    folder.chmod(0o777)
    process = start(stdio=False)
    assert process.process.wait(WAIT) != 0
    process.says("nobody else can write to")


# --- the host's own model ---------------------------------------------------------------------------------------------

ASKING = """
import clawmark.memory as m
from clawmark.model import SyncReport
def sync(self, *args, **how):
    return SyncReport(read=len(self._host_model.complete("S", "canary U", dict(), most_tokens=9, seconds=SECONDS)))
m.Memory.sync = sync
"""
"""A pass that asks the host's model one thing, and says how long the answer was."""


def asking(seconds: float = WAIT) -> str:
    return f"SECONDS = {seconds}\n{ASKING}{CODE}"


def offer(talk: Talk) -> None:
    talk.result("hello", offers=["complete"])


def questions(talk: Talk) -> list[dict[str, Any]]:
    """What this side was asked and has not answered yet."""
    talk.result("notify", event="messages", count=0)  # reads on
    found = [id for id, said in talk._answers.items() if said.get("method") == "complete"]
    return [talk._answers.pop(id) for id in found]


def question(talk: Talk) -> dict[str, Any]:
    found: dict[str, Any] = until(lambda: next(iter(questions(talk)), None), "a question")
    return found


def answer(talk: Talk, asked: dict[str, Any], text: Any) -> None:
    talk.line(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"text": text, "model": "a/b"}}).encode())


def report(asker: Talk, pass_: int, answering: Talk, text: str) -> Any:
    """The result of a pass, once this side has answered whatever was asked for it, and for passes before it."""

    def answered() -> bool:
        for asked in questions(answering):
            answer(answering, asked, text)
        asker.result("notify", event="messages", count=0)
        return pass_ in asker._answers

    until(answered, "the pass")
    return asker.answer(pass_)["result"]


def test_the_hosts_model_is_asked_and_no_prompt_waits_for_it(start: Start) -> None:
    process = start(code=asking())
    offer(process)
    pass_ = process.send("reconcile", caller={})
    asked = question(process)
    assert asked["params"]["user"] == "canary U"
    assert 0 < asked["params"]["deadline_ms"] <= WAIT * 1000
    assert "text" in process.result("block", turn=turn("What is the cat called?"))
    answer(process, asked, "[1]")
    answer(process, asked, "again")
    assert report(process, pass_, process, "[1]")["read"] == 3
    assert "canary" not in "".join(process.stderr) + json.dumps(process.notices)


def test_a_command_asks_the_hosts_model_by_way_of_the_resident_process(
    start: Start, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAWMARK_ALLOW_REMOTE", "host")
    monkeypatch.setenv("CLAWMARK_EXTRACT_URL", "host")
    process = start(CLAWMARK_SOURCE="claude-code")
    process.ready()
    model = HostModel(ByResident(str(folder / "s.sock")))
    with pytest.raises(EndpointDown, match="clawmark install openclaw"):
        model.complete("S", "canary U", {}, most_tokens=9, seconds=WAIT)
    offer(process)
    said: list[str] = []
    command = threading.Thread(
        target=lambda: said.append(model.complete("S", "canary U", {}, most_tokens=9, seconds=WAIT))
    )
    command.start()
    asked = question(process)
    assert (asked["params"]["user"], asked["params"]["most_tokens"]) == ("canary U", 9)
    answer(process, asked, "[1]")
    command.join(WAIT)
    assert said == ["[1]"]
    assert "canary" not in "".join(process.stderr)


@pytest.mark.parametrize(("url", "allowed"), [("off", "host"), ("host", "")])
def test_no_command_asks_the_hosts_model_where_that_is_not_allowed(
    start: Start, folder: Path, url: str, allowed: str
) -> None:
    process = start(CLAWMARK_EXTRACT_URL=url, CLAWMARK_ALLOW_REMOTE=allowed)
    process.ready()
    offer(process)
    model = HostModel(ByResident(str(folder / "s.sock")))
    with pytest.raises(EndpointDown, match="do not name `host`"):
        model.complete("S", "canary U", {}, most_tokens=9, seconds=WAIT)
    assert questions(process) == []


def test_a_command_that_went_away_asks_no_model_any_more(
    start: Start, connect: Callable[[], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start(CLAWMARK_SOURCE="claude-code", CLAWMARK_EXTRACT_URL="host", CLAWMARK_ALLOW_REMOTE="host")
    process.ready()
    offer(process)
    command = connect()
    for wrong in ({}, {"most_tokens": 0}, {"most_tokens": 10**12}, {"user": 5}):
        params = {"system": "S", "user": "U", "most_tokens": 9} | wrong if wrong else {}
        assert command.ask("complete", **params)["error"]["code"] == -32602
    command.send("complete", system="S", user="U", most_tokens=9)
    asked = question(process)
    command.socket.shutdown(socket.SHUT_RDWR)

    def cancelled() -> list[Any]:
        process.result("notify", event="messages", count=0)  # reads on
        return [one for one in process.notices if one["method"] == "cancel"]

    until(cancelled, "the cancellation")
    assert cancelled()[0]["params"] == {"id": asked["id"]}


def test_a_command_asks_a_paid_model_once(folder: Path) -> None:
    """Also where whoever is asked goes away: the call is counted once."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(folder / "s.sock"))
        listening.listen()

        def hang_up() -> None:
            while True:
                other, _ = listening.accept()
                with other:
                    said = other.recv(1 << 16)
                if said == b"over":
                    return
                asked.append(said)

        hanging_up = threading.Thread(target=hang_up)
        hanging_up.start()
        with pytest.raises(EndpointDown):
            HostModel(ByResident(str(folder / "s.sock"))).complete("S", "U", {}, most_tokens=9, seconds=WAIT)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last:
            last.connect(str(folder / "s.sock"))
            last.sendall(b"over")
        hanging_up.join(WAIT)
    assert [b'"complete"' in one for one in asked] == [True]


def test_a_model_that_nobody_offers_ends_a_pass_with_a_line_for_the_person(start: Start) -> None:
    process = start(code=asking())
    process.ready()
    assert "clawmark install openclaw" in process.ask("reconcile", caller={})["error"]["message"]
    offer(process)
    answer(process, question(process), "[1]")  # without being asked again
    process.says("after=offer")


def test_a_model_that_does_not_answer_is_given_up_and_told_so(start: Start) -> None:
    process = start(code=asking(0.2))
    offer(process)
    process.ready()
    offer(process)
    assert "within 0.2 s" in process.ask("reconcile", caller={})["error"]["message"]
    cancelled = [one["params"]["id"] for one in process.notices if one["method"] == "cancel"]
    assert cancelled and all(id.startswith("clawmark-") for id in cancelled)


def test_a_client_that_goes_away_is_not_waited_for(start: Start, connect: Callable[[], Client]) -> None:
    process = start(code=asking())
    process.ready()
    client = connect()
    offer(client)
    pass_ = process.send("reconcile", caller={})
    question(client)
    client.socket.shutdown(socket.SHUT_RDWR)
    assert "went away" in process.answer(pass_)["error"]["message"]


def test_the_model_of_a_second_gateway_is_asked_through_it(start: Start) -> None:
    first = start(code=asking())
    first.ready()
    second = start(code=asking())
    offer(second)
    pass_ = first.send("reconcile", caller={})
    assert report(first, pass_, second, "[12]")["read"] == 4


def test_what_a_second_gateway_offers_is_known_to_whoever_takes_the_place(start: Start) -> None:
    first = start(code=asking())
    first.ready()
    second = start(code=asking())
    offer(second)
    early = question(second)
    first.kill()
    asked = question(second)
    cancelled = [one["params"]["id"] for one in second.notices if one["method"] == "cancel"]
    assert cancelled == [early["id"]] and asked["id"] != early["id"]
    pass_ = second.send("reconcile", caller={})
    answer(second, early, "of the process before")
    answer(second, asked, "[12]")
    assert report(second, pass_, second, "[12]")["read"] == 4


def claimed(asked: dict[str, Any]) -> str:
    """What a model says of a batch: one thing that was said in it, and one that nobody said."""
    found = re.search(
        r"^\[(\d+)\] [^\n]*, may be cited\n\| (Mamma turns 70 on 14 June\.)", asked["params"]["user"], re.MULTILINE
    )
    number = int(found[1]) if found else 1
    lie = {"key": "user.city", "value": "Atlantis", "quote": "I live in Atlantis.", "messages": [number]}
    truth = {
        "key": "user.mother",
        "value": "Mamma turns 70 on 14 June",
        "quote": found and found[2],
        "messages": [number],
    }
    return json.dumps({"facts": [one | {"confidence": 0.95} for one in (lie, truth) if one["quote"]]})


def test_facts_come_of_what_the_hosts_model_finds_in_the_persons_own_words(start: Start, db_path: Path) -> None:
    process = start(CLAWMARK_EXTRACT_URL="host", CLAWMARK_ALLOW_REMOTE="host")
    offer(process)
    process.ready()
    offer(process)
    process.send("reconcile", caller={})

    def known() -> list[str]:
        for asked in questions(process):
            answer(process, asked, claimed(asked))
        with sqlite3.connect(db_path) as stored:
            told = stored.execute("SELECT value FROM facts UNION ALL SELECT value FROM proposals").fetchall()
        stored.close()
        return [value for (value,) in told]

    until(known, "a fact or a proposal")
    assert known() == ["Mamma turns 70 on 14 June"]
    assert "Mamma" not in "".join(process.stderr) + json.dumps(process.notices)


@pytest.mark.parametrize("url", ["host", "off", None])
def test_a_model_is_asked_only_where_the_person_named_it_twice(start: Start, url: str | None) -> None:
    process = start(**({} if url is None else {"CLAWMARK_EXTRACT_URL": url}))
    offer(process)
    process.ready()
    offer(process)
    process.result("reconcile", caller={})
    assert questions(process) == []


def test_a_model_that_is_waited_for_does_not_hold_up_the_end(start: Start) -> None:
    process = start(code=asking())
    offer(process)
    question(process)
    assert process.end() == 0
    assert not any("left in the middle" in line for line in process.stderr)


# --- the end ----------------------------------------------------------------------------------------------------------


def test_the_end_of_the_hosts_pipe_ends_it_and_empties_the_log(start: Start, folder: Path, db_path: Path) -> None:
    process = start()
    process.ready()
    process.result("reconcile", caller={})
    assert process.end() == 0
    assert not (folder / "s.sock").exists()
    log = db_path.with_name("memory.db-wal")
    assert not log.exists() or log.stat().st_size == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("stdio", [True, False])
def test_a_signal_ends_it(start: Start, folder: Path, connect: Any, number: signal.Signals, stdio: bool) -> None:
    process = start(stdio=stdio)
    connect().ready()
    process.process.send_signal(number)
    assert process.process.wait(WAIT) == 0
    assert not (folder / "s.sock").exists()


def test_a_pass_that_hangs_at_an_endpoint_does_not_hold_up_the_end(start: Start, db_path: Path) -> None:
    hang = threading.Event()

    def hangs(_request: object) -> Reply:
        hang.wait(WAIT)
        return Reply(500)

    with serving(hangs) as server:
        process = start(CLAWMARK_EMBEDDER="auto", CLAWMARK_EMBEDDING_URL=server.url)
        process.ready()
        until(lambda: server.requests, "a request to the endpoint")
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(WAIT) == 0
        hang.set()
    with sqlite3.connect(db_path) as stored:
        assert stored.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    stored.close()


def test_nothing_that_was_stored_is_lost_at_a_kill(start: Start, db_path: Path) -> None:
    process = start()
    process.ready()
    process.result("set", caller={"host": "mcp"}, key="pref.editor", value="Helix")
    process.kill()
    again = start()
    again.ready()
    assert "Helix" in again.result("block", turn=turn("", session=None))["text"]


def test_it_ends_when_nobody_asks_any_more(start: Start, folder: Path, connect: Callable[[], Client]) -> None:
    process = start(stdio=False, idle_exit=0.5)
    client = connect()
    client.ready()
    assert process.process.poll() is None
    client.close()
    assert process.process.wait(WAIT) == 0
    assert not (folder / "s.sock").exists()


def test_a_proxy_ends_at_a_signal(start: Start) -> None:
    first = start()
    first.ready()
    second = start()
    second.result("hello")
    second.process.send_signal(signal.SIGTERM)
    assert second.process.wait(WAIT) == 0
    assert first.result("hello")["ready"]


def test_a_disabled_memory_says_nothing(start: Start) -> None:
    process = start(CLAWMARK_DISABLED="1")
    process.ready()
    assert process.result("block", turn=turn("What is the name of Ulla's cat?")) == {"text": ""}


@pytest.mark.parametrize("stdio", [True, False])
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "0<&- 1>&-", "0<&- 1>&- 2>&-"])
def test_it_ends_whatever_descriptors_were_closed(start: Start, folder: Path, stdio: bool, closed: str) -> None:
    start(address=folder / "x" / "s.sock").end()  # with what it needs in the environment
    code = CODE.format(stdio=stdio, socket=f"Path({str(folder / 's.sock')!r})", idle_exit=None)
    command = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if not (stdio and "0<&-" in closed):  # a host that is gone from the start: it ends by itself
        client = until(lambda: Client.at(folder / "s.sock"), "somebody who listens")
        client.ready()
        client.close()
        process.stdin.close() if stdio else process.terminate()  # type: ignore[union-attr]
    assert process.wait(WAIT) == 0
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()  # type: ignore[union-attr]


def test_log_lines_land_in_no_other_file(start: Start, folder: Path, db_path: Path) -> None:
    start(address=folder / "x" / "s.sock").end()
    code = CODE.format(stdio=False, socket=f"Path({str(folder / 's.sock')!r})", idle_exit=None)
    command = ["sh", "-c", 'exec "$0" -c "$1" 0<&- 1>&- 2>&-', sys.executable, code]
    process = subprocess.Popen(command)
    client = until(lambda: Client.at(folder / "s.sock"), "somebody who listens")
    client.ready()
    client.close()
    said = json.loads(db_path.with_name("memory.db.serve").read_text())
    assert said["pid"] == process.pid
    process.terminate()
    assert process.wait(WAIT) == 0
    for file in db_path.parent.iterdir():
        assert b"clawmark[" not in file.read_bytes()


def test_a_signal_during_the_start_ends_it_quietly(start: Start) -> None:
    """The handlers stand before whatever takes its time to import."""
    slow = "import builtins, os, signal\nwas = builtins.__import__\ndef slow(name, *rest):\n"
    slow += "    if name == 'clawmark.settings': os.kill(os.getpid(), signal.SIGTERM)\n    return was(name, *rest)\n"
    for stdio in (True, False):
        process = start(stdio=stdio, code=CODE.replace("sys.exit", slow + "builtins.__import__ = slow\nsys.exit"))
        assert process.process.wait(WAIT) == 0
        assert process.stderr == []


@pytest.mark.parametrize("seconds", ["nan", "-1.0"])
def test_an_idle_time_that_is_none_is_refused(start: Start, seconds: str) -> None:
    process = start(stdio=False, code=CODE.replace("{idle_exit}", f"float('{seconds}')"))
    assert process.process.wait(WAIT) != 0
    process.says("idle-exit")


def test_connections_that_are_refused_are_told_once(start: Start, connect: Callable[[], Client], folder: Path) -> None:
    process = start(stdio=False, code="import clawmark.serve.resident as r; r.MOST_CLIENTS = 1\n" + CODE)
    first = connect()
    first.ready()
    for _ in range(5):
        refused = until(lambda: Client.at(folder / "s.sock"), "somebody who listens")
        until(lambda refused=refused: refused.is_over, "the end of the connection")
        refused.close()
    first.result("hello")
    assert sum("connection_refused" in line for line in process.stderr) == 1


def test_it_starts_without_standard_error(folder: Path, start: Start) -> None:
    start(address=folder / "x" / "s.sock").end()
    code = CODE.format(stdio=True, socket=f"Path({str(folder / 's.sock')!r})", idle_exit=None)
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello"})
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, code]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()
    assert until(lambda: b'"protocol":1' in process.stdout.readline(), "an answer")  # type: ignore[union-attr]
    process.stdin.close()
    assert process.wait(WAIT) == 0
    process.stdout.close()


def test_a_quick_host_is_shown_nothing_twice(start: Start) -> None:
    """Its next prompt comes before it is written down what the last one was shown."""
    slow = "import clawmark.memory as m, time\nshown = m.Memory.shown\n"
    slow += "m.Memory.shown = lambda self, turn, block: (time.sleep(0.15), shown(self, turn, block))[1]\n"
    process = start(code=slow + CODE)
    process.ready()
    process.result("set", caller={"host": "mcp"}, key="pref.editor", value="Helix")
    asked = {"host": "claude-code", "scope": "main", "session": "s-1", "kind": "direct", "owner": True, "prompt": "hm"}
    assert "Helix" in process.result("block", turn=asked)["text"]
    assert process.result("block", turn=asked)["text"] == ""


def test_what_the_model_has_forgotten_is_shown_again_also_by_a_process_that_only_starts(start: Start) -> None:
    process = start()
    process.ready()
    process.result("set", caller={"host": "mcp"}, key="pref.editor", value="Helix")
    hooked = {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": "/"}
    first = process.result("hook", host="claude-code", event={**hooked, "source": "startup"})["stdout"]
    assert "Helix" in first
    assert process.result("hook", host="claude-code", event={**hooked, "source": "resume"})["stdout"] == ""
    process.close()
    again = start(
        code="import clawmark.store.recovery as r, time\nensure = r.ensure\n"
        "r.ensure = lambda *given: (time.sleep(0.3), ensure(*given))[1]\n" + CODE
    )
    compacted = again.result("hook", host="claude-code", event={**hooked, "source": "compact"})["stdout"]
    assert compacted == first
