"""The hooks' client and the library under it, against real resident processes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import REPOSITORY
from serving import WAIT, Process, until

from clawmark import client
from clawmark.client import Connection, Failure

SAMPLE = REPOSITORY / "tests" / "fixtures" / "openclaw" / "sqlite"
PLACE = str(REPOSITORY / "clawmark" / "client.py")
EVENT = {"hook_event_name": "UserPromptSubmit", "session_id": "s-1", "prompt": "Which editor do I use?", "cwd": "/"}


@pytest.fixture
def path(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a resident process of this test, which does not run yet."""
    folder = Path(tempfile.mkdtemp(prefix="cm-"))
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(db_path))
    monkeypatch.setenv("CLAWMARK_TRANSCRIPTS_DIR", str(SAMPLE))
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    yield str(folder / "s.sock")
    shutil.rmtree(folder)


@pytest.fixture
def resident(path: str) -> Iterator[Process]:
    process = Process(address=Path(path))
    process.ready()
    yield process
    process.close()


@pytest.fixture
def connection(path: str) -> Iterator[Connection]:
    made = Connection(path)
    yield made
    made.close()


@pytest.fixture
def no_start(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nobody is started; who would have been."""
    started: list[str] = []

    def note(path: str, _database: str = "") -> client._Starter:
        started.append(path)
        return client._Starter(None)

    monkeypatch.setattr(client, "_started", note)
    return started


def hook(*arguments: str, event: Any = EVENT, budget: str = "30") -> subprocess.CompletedProcess[bytes]:
    said = event if isinstance(event, bytes) else json.dumps(event).encode()
    command = [sys.executable, "-I", "-S", PLACE, *arguments, *(["--budget", budget] if budget else [])]
    return subprocess.run(command, input=said, capture_output=True, timeout=WAIT, check=False)


def remember(resident: Process) -> None:
    resident.result("set", caller={"host": "mcp"}, key="pref.editor", value="Helix für Übersetzungen\n")


# --- the hook ---------------------------------------------------------------------------------------------------------


def test_a_hook_prints_exactly_the_answer(resident: Process, path: str) -> None:
    remember(resident)
    printed = hook("claude-code", "--socket", path)
    said = json.loads(printed.stdout)
    assert said["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert "Helix für Übersetzungen" in said["hookSpecificOutput"]["additionalContext"]
    assert (printed.returncode, printed.stderr) == (0, b"")


def test_an_event_over_many_lines_is_one_request(resident: Process, path: str) -> None:
    remember(resident)
    event = json.dumps(EVENT | {"prompt": "line one\nline two\r\n"}, indent=2).replace("\n", "\r\n").encode()
    assert b"Helix" in hook("claude-code", "--socket", path, event=event).stdout


@pytest.mark.parametrize(
    "event", [b"", b"\n", b"nonsense", b"[]", b'{"a":', b"\xff", b"{}", b"x" * 3_000_000, b'{"a":NaN}']
)
def test_an_event_that_is_none_prints_nothing(resident: Process, path: str, event: bytes) -> None:
    printed = hook("claude-code", "--socket", path, event=event)
    assert (printed.returncode, printed.stdout) == (0, b"")
    assert resident.result("hello")["ready"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["claude-code"],
        ["claude-code", "--socket"],
        ["claude-code", "--socket", "relative.sock"],
        ["claude-code", "--socket", "/x", "--budget", "soon"],
        ["claude-code", "--socket", "/x", "--budget", "nan"],
        ["claude-code", "--socket", "/x", "--loud", "yes"],
        ['x","event":{}}', "--socket", "/x"],
        ["--socket", "/x"],
        ["kläude", "--socket", "/x"],
    ],
)
def test_a_wrong_call_ends_with_0_and_says_why(arguments: list[str]) -> None:
    printed = hook(*arguments, budget="")
    assert (printed.returncode, printed.stdout) == (0, b"")
    assert printed.stderr.startswith(b"clawmark: ")


def test_a_host_that_keeps_the_pipe_open_waits_no_longer_than_the_budget(resident: Process, path: str) -> None:
    command = [sys.executable, "-I", "-S", PLACE, "claude-code", "--socket", path, "--budget", "0.3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(WAIT) == 0
        assert process.stdout is not None and process.stdout.read() == b""


def test_a_resident_process_that_hangs_costs_no_more_than_the_budget(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.bind(path)
        deaf.listen()
        printed = hook("claude-code", "--socket", path, budget="0.3")
    assert (printed.returncode, printed.stdout) == (0, b"")


def test_a_hook_starts_a_resident_process_where_none_runs(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = [threading.Thread(target=hook, args=("claude-code", "--socket", path)) for _ in range(4)]
    for one in hooks:
        one.start()
    for one in hooks:
        one.join()
    connection = Connection(path)
    pid = connection.call("hello", {}, 60_000)["pid"]
    assert pid != os.getpid()
    assert connection.call("hello", {}, 60_000)["pid"] == pid
    connection.close()
    os.kill(pid, 15)
    until(lambda: not os.path.exists(path), "the end of the resident process")


@pytest.fixture
def runs(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What a hook of this process would start; in its place runs what fails at once."""
    started: list[list[str]] = []
    popen = subprocess.Popen

    def fails(command: list[str], **options: Any) -> Any:
        started.append(command)
        return popen([sys.executable, "-c", "raise SystemExit(2)"], **options)

    monkeypatch.setattr(subprocess, "Popen", fails)
    return started


def test_a_process_that_fails_at_its_start_is_not_waited_for_nor_started_again(
    path: str, runs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = time.monotonic() + 10 * WAIT
    assert client.connect(path, far) is None  # long before
    for _ in range(3):
        assert client.connect(path, far) is None
    assert len(runs) == 1
    os.utime(path + ".start", (0, time.time() - 1))  # the end of the rest
    assert client.connect(path, far) is None
    assert len(runs) == 2
    os.utime(path + ".start", (0, time.time() + 1000))  # the clock was set back
    assert client.connect(path, far) is None
    assert len(runs) == 3


def test_a_process_that_cannot_be_reached_is_not_waited_for_each_time(path: str, monkeypatch: Any) -> None:
    """Another one serves at another address: the one that is started ends with 0."""
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: popen([sys.executable, "-c", ""], **more))
    until(lambda: client.connect(path, time.monotonic() + 0.5) is None and client._is_resting(path), "a rest")
    assert client.connect(path, time.monotonic() + 10 * WAIT) is None


def test_a_place_where_nothing_can_be_started_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert client.connect(str(tmp_path / "file" / "s.sock"), time.monotonic() + 10 * WAIT) is None


def test_a_wrong_setting_is_reported_by_no_hook_twice(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_RECALL", "maybe")
    for _ in range(2):
        printed = hook("claude-code", "--socket", path)
        assert (printed.returncode, printed.stdout) == (0, b"")
    assert client._is_resting(path)


def test_no_code_of_the_working_directory_runs(path: str, runs: list[list[str]]) -> None:
    client.connect(path, time.monotonic() + WAIT)
    assert runs[0][1:5] == ["-E", "-P", "-m", "clawmark"]


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_closed_descriptor_is_no_way_to_somewhere_else(resident: Process, path: str, closed: str) -> None:
    remember(resident)
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-I", "-S", PLACE, "claude-code"]
    printed = subprocess.run(
        [*command, "--socket", path, "--budget", "30"],
        input=json.dumps(EVENT).encode(),
        capture_output=True,
        timeout=WAIT,
        check=False,
    )
    assert printed.returncode == 0
    assert (b"Helix" in printed.stdout) == (closed == "2>&-")
    assert resident.result("hello")["ready"]


def test_what_a_hook_complains_of_without_standard_error_is_told_to_nobody(path: str) -> None:
    """The socket would have its number."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as resident:
        resident.bind(path)
        resident.listen()
        resident.settimeout(WAIT)
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-I", "-S", PLACE, "claude-code"]
        with subprocess.Popen([*command, "--socket", path, "--budget", "1"], stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps(EVENT).encode())
            process.stdin.close()
            connection, _ = resident.accept()
            with connection, connection.makefile("rb") as lines:
                lines.readline()  # it waits in vain for an answer
                assert lines.read() == b""


def test_a_resident_process_that_was_started_elsewhere_is_found(path: str) -> None:
    """Another environment, another place for sockets; the database's own file knows."""
    resident = Process(address=Path(path).with_name("other.sock"))
    said = resident.ready()
    connection = client.Connection(path, database=said["database"], start=False)
    assert connection.call("hello", {}, 10_000)["pid"] == said["pid"]
    connection.close()
    resident.close()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"socket": 7}', b'{"socket": "s.sock"}', b"{" * 5_000, b"\xff"])
def test_what_is_no_record_of_a_place_is_passed_over(path: str, tmp_path: Path, content: bytes) -> None:
    database = tmp_path / "memory.db"
    (tmp_path / "memory.db.serve").write_bytes(content)
    assert client.connect(path, time.monotonic() + 0.05, database=str(database), start=False) is None


def test_what_is_started_serves_the_database_that_was_named(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    given: list[Any] = []
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **how: given.append(how["env"]) or exec_failed())
    client.connect(path, time.monotonic() + WAIT, database="/somewhere/memory.db")
    assert [env["CLAWMARK_DB_PATH"] for env in given] == ["/somewhere/memory.db"]


def exec_failed() -> Any:
    raise OSError


def test_a_socket_of_somebody_else_is_told_nothing(path: str, no_start: list[str], monkeypatch: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(path)
        other.listen()
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert client.connect(path, time.monotonic() + 0.2) is None


def test_the_client_imports_little() -> None:
    """Every module is paid for at every prompt."""
    code = f"import sys; sys.argv = ['x']; sys.path.insert(0, {str(Path(PLACE).parent)!r}); before = set(sys.modules)\n"
    code += "import client; print(*sorted(set(sys.modules) - before - {'client'}))"
    imported = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert not {"enum", "json", "re", "socket", "subprocess", "threading", "typing"} & set(imported.stdout.split())


# --- the library ------------------------------------------------------------------------------------------------------


def test_a_call_gives_the_result_or_raises_what_was_answered(resident: Process, connection: Connection) -> None:
    assert connection.call("hello", {}, 60_000)["pid"] == resident.process.pid
    with pytest.raises(Failure) as raised:
        connection.call("set", {"caller": {}, "key": "nonsense!", "value": "x"}, 60_000)
    assert (raised.value.code, raised.value.data) == (-32004, {"code": "KEY_FORMAT"})
    with pytest.raises(Failure) as raised:
        connection.call("search", {"query": "x" * 2_000_000}, 60_000)
    assert raised.value.code == -32600


def test_many_threads_share_a_connection(resident: Process, connection: Connection) -> None:
    found: list[Any] = []

    def ask(number: int) -> None:
        turn = {"prompt": f"cat {number}", "host": "cli"}
        found.extend(connection.call("block", {"turn": turn}, 60_000)["text"] for _ in range(20))

    threads = [threading.Thread(target=ask, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160


def test_a_call_after_the_resident_process_was_replaced_succeeds(path: str, connection: Connection) -> None:
    for _ in range(2):
        process = Process(address=Path(path))
        process.ready()
        assert connection.call("hello", {}, 60_000)["pid"] == process.process.pid
        process.kill()
        process.close()


def test_a_call_that_nobody_answers_fails_in_time(path: str, connection: Connection, no_start: list[str]) -> None:
    with pytest.raises(Failure) as raised:
        connection.call("hello", {}, 100)
    assert raised.value.code == -32603
    assert no_start == [path]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as deaf:
        deaf.bind(path)
        deaf.listen()
        with pytest.raises(Failure) as raised:
            connection.call("hello", {}, 100)
        assert raised.value.code == -32001
