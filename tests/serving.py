"""Resident processes of tests: started for real, asked over their pipes and sockets, ended with the test."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, Queue
from typing import Any

WAIT = 60.0
"""Seconds. Far more than anything here takes: a machine under load is no fault."""

CODE = """
import sys
from pathlib import Path
from clawmark.serve import run
sys.exit(run(stdio={stdio}, socket={socket}, idle_exit={idle_exit}))
"""


def until(true: Callable[[], Any], what: str = "what was waited for") -> Any:
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come")


class Talk:
    """One side of a connection: lines out, lines in, answers by id."""

    def __init__(self, write: Callable[[bytes], Any], read: Callable[[], bytes]) -> None:
        self.write = write
        self.lines: Queue[bytes] = Queue()
        self.notices: list[dict[str, Any]] = []
        self.strays: list[bytes] = []
        self.is_over = False
        self._count = 0
        self._answers: dict[Any, dict[str, Any]] = {}
        self._read = read
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while line := self._read():
                self.lines.put(line)
        except (OSError, ValueError):  # closed by the test
            pass
        self.is_over = True
        self.lines.put(b"")

    def send(self, method: str, **params: Any) -> int:
        self._count += 1
        self.line(json.dumps({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}).encode())
        return self._count

    def line(self, line: bytes) -> None:
        self.write(line + b"\n")

    def answer(self, id: Any) -> dict[str, Any]:
        """The answer with this id."""
        while id not in self._answers:
            try:
                line = self.lines.get(timeout=WAIT)
            except Empty:
                raise AssertionError(f"no answer to {id}") from None
            assert line, "the connection ended"
            try:
                said = json.loads(line)
            except ValueError:
                self.strays.append(line)
                continue
            if "id" in said:
                self._answers[said["id"]] = said
            else:
                self.notices.append(said)
        return self._answers.pop(id)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.answer(self.send(method, **params))

    def result(self, method: str, **params: Any) -> Any:
        said = self.ask(method, **params)
        assert "result" in said, said
        return said["result"]

    def ready(self) -> dict[str, Any]:
        return dict(until(lambda: (said := self.result("hello"))["ready"] and said, "a memory that is open"))


class Process(Talk):
    """A `clawmark serve`; with `stdio` this test is its host."""

    def __init__(
        self,
        *,
        address: Path | None = None,
        stdio: bool = True,
        idle_exit: float | None = None,
        code: str = CODE,
        **more: str,
    ) -> None:
        where = None if address is None else f"Path({str(address)!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code.format(stdio=stdio, socket=where, idle_exit=idle_exit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **more},
        )
        self.stderr: list[str] = []
        self._log = threading.Thread(target=self._read_stderr, daemon=True)
        self._log.start()
        assert self.process.stdin is not None and self.process.stdout is not None
        super().__init__(self._write, self.process.stdout.readline)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr.append(line.decode())

    def _write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def says(self, words: str) -> str:
        """The line of its log that holds these words."""
        return str(until(lambda: next((line for line in list(self.stderr) if words in line), ""), words))

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT)

    def end(self) -> int:
        """Close its standard input; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(WAIT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(WAIT)
        until(lambda: self.is_over, "the end of its output")
        self._log.join(WAIT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                pass


class Client(Talk):
    """A connection to the socket of a resident process."""

    @classmethod
    def at(cls, address: Path) -> Client | None:
        """None where nobody listens yet."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(address))
        except OSError:
            connection.close()
            return None
        return cls(connection)

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._file = self.socket.makefile("rb")
        super().__init__(self.socket.sendall, self._file.readline)

    def close(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        until(lambda: self.is_over, "the end of the connection")
        self._file.close()
        self.socket.close()
