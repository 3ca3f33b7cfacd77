"""A person's home with a conversation of Claude Code in it, and the real resident process over its memory."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clawmark import client
from clawmark.hosts.claude_code.project import scope_of
from clawmark.socketpath import socket_path

PATIENCE = 60.0
"""Seconds for what takes one on a machine that does nothing else."""

SAID = (
    ("which glaze shall we take for the tall vases?", "The celadon glaze suits tall vases and forgives a hot kiln."),
    ("and how long between the two firings?", "Leave three days between the firings so that the clay dries through."),
    ("the kiln's door is warped, whom do we call?", "Call the smith in the harbour street about the kiln door."),
    ("remind me what the market fee is", "The market fee is twelve a day, paid before eight in the morning."),
)


@dataclass(frozen=True, slots=True)
class Home:
    """`variables` is all that a process of this person gets of an environment."""

    folder: Path
    runtime: Path

    @property
    def project(self) -> Path:
        return self.folder / "kiln-ledger"

    @property
    def scope(self) -> str:
        return scope_of(str(self.project)).id

    @property
    def database(self) -> Path:
        return self.folder / ".local" / "share" / "clawmark" / "memory.db"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.folder),
            "PATH": os.environ["PATH"],
            "XDG_RUNTIME_DIR": str(self.runtime),
            "CLAWMARK_EMBEDDER": "none",
        }

    @property
    def socket(self) -> Path:
        return socket_path(self.database)

    def say(self, session: str = "s1", pairs: Sequence[tuple[str, str]] = SAID) -> None:
        """One session of Claude Code in the project, as the host logs it."""
        folder = self.folder / ".claude" / "projects" / "-kiln-ledger"
        folder.mkdir(parents=True, exist_ok=True)
        at, parent, lines = datetime(2026, 3, 1, 9, 0, tzinfo=UTC), None, []
        for number, (role, text) in enumerate(
            (role, text) for pair in pairs for role, text in zip(("user", "assistant"), pair, strict=True)
        ):
            uuid = f"{session}-u{number}"
            at += timedelta(minutes=1)
            line: dict[str, Any] = {"parentUuid": parent, "isSidechain": False, "type": role, "uuid": uuid}
            content: Any = text if role == "user" else [{"type": "text", "text": text}]
            line |= {"sessionId": session, "timestamp": at.isoformat().replace("+00:00", "Z"), "cwd": str(self.project)}
            line |= {"message": {"role": role, "content": content}}
            lines.append(json.dumps(line))
            parent = uuid
        (folder / f"{session}.jsonl").write_text("\n".join(lines) + "\n")

    @contextmanager
    def resident(self) -> Iterator[subprocess.Popen[bytes]]:
        """`clawmark serve`, ready; ended behind the caller."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "clawmark", "serve"], env=self.variables, stdin=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: process.poll() is not None or self._is_ready())
            assert process.poll() is None
            yield process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            finally:
                process.kill()  # no test leaves one behind
                process.wait(PATIENCE)

    def _is_ready(self) -> bool:
        connection = client.connect(str(self.socket), time.monotonic() + 1, start=False)
        if connection is None:
            return False
        with closing(connection):
            return bool(_hello(connection)["ready"])

    def end_detached(self) -> None:
        """End the resident process that somebody started here, if there is one; it may not have come up yet."""
        was_started = os.path.exists(f"{self.socket}.start")
        connection = client.connect(str(self.socket), time.monotonic() + (20 if was_started else 0.1), start=False)
        if connection is None:
            return
        with closing(connection):
            pid = _hello(connection)["pid"]
        os.kill(pid, signal.SIGTERM)
        try:
            wait_for(lambda: not _is_alive(pid))
        except AssertionError:
            os.kill(pid, signal.SIGKILL)
            raise


def _hello(connection: Any) -> dict[str, Any]:
    asked = b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{}}'
    result: dict[str, Any] = json.loads(client.exchange(connection, asked, time.monotonic() + PATIENCE))["result"]
    return result


@contextmanager
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """This process too has the person's environment. The runtime folder has a short path: a socket's may have about a
    hundred bytes."""
    runtime = Path(tempfile.mkdtemp(prefix="cm-"))
    made = Home(folder, runtime)
    made.project.mkdir(parents=True)
    for name in [name for name in os.environ if name.startswith(("CLAWMARK_", "CLAUDE_", "OPENCLAW_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    try:
        yield made
    finally:
        made.end_detached()
        shutil.rmtree(runtime, ignore_errors=True)


def wait_for(is_so: Callable[[], object], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return sys.platform != "linux"


def hooked(home: Home, event: Mapping[str, Any] | bytes, *more: str) -> subprocess.CompletedProcess[bytes]:
    """What the installed hook does with an event."""
    given = event if isinstance(event, bytes) else json.dumps(event).encode()
    command = [
        sys.executable,
        "-I",
        "-S",
        client.__file__,
        "claude-code",
        "--socket",
        str(home.socket),
        "--database",
        str(home.database),
        *more,
    ]
    return subprocess.run(command, input=given, capture_output=True, env=home.variables, timeout=PATIENCE, check=False)
