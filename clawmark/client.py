"""Asks the resident process; what hosts' hooks run, and what the MCP server stands on.

    <python> -I -S <this file> HOST --socket PATH [--database PATH] [--budget SECONDS]

passes the hook's JSON on and prints what the hook is to print. Whatever happens it ends with 0 and within its budget,
printing nothing where there is no answer. It starts a resident process where none runs.

Standard library alone, and of that as little as can be: `json` and `socket` take longer to import than Python to start,
so the hook's path uses what stands beneath them.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BUDGET = 1.5
MOST_BYTES = 1 << 20
"""Of a line, as the protocol has it."""

PAUSE = 0.02
GRACE = 0.25
"""Seconds an answer may come behind its deadline."""

FAULT, LATE = -32603, -32001
IDLE_SECONDS = "3600"

START_SECONDS = 10.0
"""How long a call with much time waits for a process that starts: meanwhile nobody else starts one."""

RESTING_SECONDS = 30.0
"""Where a process that was started cannot serve, none is started for so long: a lasting fault must not cost each prompt
its whole budget."""

RESTING_BESIDE = 5.0
"""As long where another one serves that cannot be reached: most of those only just end."""


class Failure(Exception):
    """The resident process answered with an error, or not at all. `code` and `data` as in docs/protocol.md."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Unreached(Failure):
    """Nobody answers for this database, or whoever did went away."""


# --- one connection ---------------------------------------------------------------------------------------------------


def connect(path: str, until: float, *, database: str = "", start: bool = True) -> Any:
    """A connected socket; None where nobody listens by then, or where one that was started cannot serve.

    database: whose resident process is asked. It may have been started elsewhere, and listen at another place than `path`.
    """
    starter = None
    try:
        while True:
            connection = _connected(path, until) or _connected_elsewhere(path, database, until)
            if connection is not None:
                return connection
            if start and _is_resting(path):
                return None
            if start and starter is None:
                starter = _started(path, database)
            if starter is not None and starter.has_failed():
                return None
            if time.monotonic() + PAUSE >= until:
                if starter is not None:
                    starter.give_up()
                return None
            time.sleep(PAUSE)
    finally:
        if starter is not None:
            starter.close()


def _connected(path: str, until: float) -> Any:
    """A connected socket; None where nobody listens now."""
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(max(0.001, until - time.monotonic()))
        connection.connect(path)
        if is_ours(connection):
            return connection
    except OSError:
        pass
    connection.close()
    return None


def _connected_elsewhere(path: str, database: str, until: float) -> Any:
    """A connection to where the resident process says that it listens, in its file beside the database."""
    if not database:
        return None
    import json

    try:
        handle = os.open(database + ".serve", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            is_own = os.fstat(handle).st_uid == os.geteuid()
            named = json.loads(os.read(handle, 4096))["socket"] if is_own else None
        finally:
            os.close(handle)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _connected(named, until) if isinstance(named, str) and named.startswith("/") and named != path else None


def is_ours(connection: Any) -> bool:
    """Whether the process at the other end of a Unix socket runs as this one's user: nobody else is told a prompt."""
    try:
        if sys.platform == "linux":
            said = connection.getsockopt(1, 17, 12)  # SOL_SOCKET, SO_PEERCRED: process, user, group
        else:
            said = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: version, user, ...
    except OSError:
        return False
    return int.from_bytes(said[4:8], sys.byteorder) == os.geteuid()


class _Starter:
    """Who starts a resident process; while it lives nobody else does.

    handle    `<socket>.start`, locked; None = somebody else starts one just now, or nobody can
    process   what was started; None = nothing
    is_vain   nothing can be started here
    """

    def __init__(self, handle: int | None, process: Any = None, *, is_vain: bool = False) -> None:
        self._handle = handle
        self._process = process
        self._is_vain = is_vain

    def has_failed(self) -> bool:
        """Whether there is nothing to wait for. Who finds another resident process ends with 0: that one is waited for."""
        if self._process is not None and self._process.returncode:
            self._rest(RESTING_SECONDS)
            return True
        return self._is_vain

    def give_up(self) -> None:
        """Nobody listens in time: a process that still starts is left to it, one that is gone is no help next time."""
        if self._process is not None and self._process.returncode is not None:
            self._rest(RESTING_BESIDE)

    def close(self) -> None:
        """From here on another one may start one."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _rest(self, seconds: float) -> None:
        """The time of the file, which all processes see, is the end of the rest."""
        if self._handle is not None:
            end = time.time() + seconds
            os.utime(self._handle, (end, end))


def _is_resting(path: str) -> bool:
    try:
        left = os.lstat(path + ".start").st_mtime - time.time()
    except OSError:
        return False
    return 0 < left <= RESTING_SECONDS  # more where the clock was set back


def _started(path: str, database: str = "") -> _Starter:
    """Start a resident process unless somebody does just now: of many hooks at once one is enough."""
    import fcntl

    handle = -1
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle = os.open(path + ".start", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if handle >= 0:
            os.close(handle)
        return _Starter(None, is_vain=not isinstance(error, BlockingIOError))
    import subprocess
    import threading

    # -E -P: no code comes from where the host was started, whatever PYTHONPATH says.
    command = [sys.executable, "-E", "-P", "-m", "clawmark", "serve", "--socket", path, "--idle-exit", IDLE_SECONDS]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, "CLAWMARK_DB_PATH": database} if database else None,
            start_new_session=True,
        )
    except OSError:
        return _Starter(handle, is_vain=True)
    threading.Thread(target=process.wait, daemon=True).start()  # it ends at once where there is a resident process
    return _Starter(handle, process)


def exchange(connection: Any, line: bytes, until: float) -> bytes:
    """The line that answers `line`. Raises OSError or EOFError where there is none in time."""
    connection.settimeout(max(0.001, until - time.monotonic()))
    connection.sendall(line + b"\n")
    parts = []
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        chunk = connection.recv(1 << 16)
        if not chunk:
            raise EOFError
        end = chunk.find(b"\n")
        if end >= 0:
            parts.append(chunk[:end])
            return b"".join(parts)
        parts.append(chunk)


class Connection:
    """The resident process at a socket, for many threads: each call has a connection to itself, kept for the next one."""

    def __init__(self, path: str, *, database: str = "", start: bool = True, tries: int = 2) -> None:
        """database, start: as for `connect`. tries: how often it is asked where the other end goes away meanwhile."""
        import threading

        self._path = path
        self._tries = tries
        self._database = database
        self._start = start
        self._lock = threading.Lock()
        self._idle: list[Any] = []

    def call(self, method: str, params: dict[str, Any], deadline_ms: int) -> Any:
        """The result. Raises Failure."""
        import json

        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "deadline_ms": deadline_ms}}
        line = json.dumps(request).encode()
        if len(line) > MOST_BYTES:
            raise Failure(-32600, "too much at once: at most 1 MiB")
        until = time.monotonic() + deadline_ms / 1000
        answer = json.loads(self._exchanged(line, until))
        error = answer.get("error")
        if error is not None:
            raise Failure(error["code"], error["message"], error.get("data"))
        return answer["result"]

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _exchanged(self, line: bytes, until: float) -> bytes:
        for _ in range(self._tries):
            soon = min(until, time.monotonic() + START_SECONDS)
            connection = self._kept() or connect(self._path, soon, database=self._database, start=self._start)
            if connection is None:
                raise Unreached(FAULT, "the resident process cannot be reached; `clawmark doctor` says why")
            try:
                answer = exchange(connection, line, until + GRACE)
            except TimeoutError:
                connection.close()
                raise Failure(LATE, "the deadline has passed") from None
            except (OSError, EOFError):
                connection.close()
                continue
            with self._lock:
                self._idle.append(connection)
            return answer
        raise Unreached(FAULT, "the resident process went away")

    def _kept(self) -> Any:
        """A connection of an earlier call whose other end is still there."""
        import select

        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not select.select([connection], [], [], 0)[0]:  # nothing to read: neither its end nor a stray line
                return connection
            connection.close()


# --- a hook -----------------------------------------------------------------------------------------------------------

_BEFORE, _AFTER = b'{"jsonrpc":"2.0","id":1,"result":{"stdout":', b"}}"
"""How the resident process writes the answer to a hook."""


def answer(host: str, event: bytes, path: str, until: float, database: str = "") -> str:
    """What a hook prints. `event` is JSON, passed on as it is: in JSON a line feed can only be a blank."""
    milliseconds = int((until - time.monotonic()) * 1000)
    said = event.strip().replace(b"\r", b" ").replace(b"\n", b" ")
    if not said.startswith(b"{") or milliseconds <= 0:
        return ""
    line = b'{"jsonrpc":"2.0","id":1,"method":"hook","params":{"host":"%s","deadline_ms":%d,"event":%s}}' % (
        host.encode(),
        milliseconds,
        said,
    )
    if len(line) > MOST_BYTES:
        return ""
    connection = connect(path, until, database=database)
    if connection is None:
        return ""
    found = exchange(connection, line, until)
    if not (found.startswith(_BEFORE + b'"') and found.endswith(_AFTER)):
        return ""  # an error
    from _json import scanstring

    return str(scanstring(found.decode(), len(_BEFORE) + 1)[0])


def hold_standard_descriptors() -> None:
    """Open 0, 1 and 2 where the host closed them: the next file or socket would get the number, and be written to."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


def main(arguments: list[str]) -> None:
    """Ends the process, with 0: a hook that fails must not hold the host up."""
    until = time.monotonic() + BUDGET
    try:
        hold_standard_descriptors()
        host, path, database, budget = _understood(arguments)
        until += budget - BUDGET
        printed = answer(host, _read(until), path, until, database).encode()
        while printed:
            printed = printed[os.write(1, printed) :]
    except Exception as failed:  # noqa: BLE001 - a host's hook: nothing of ours may reach the host but an answer
        said = str(failed) if isinstance(failed, ValueError) else type(failed).__name__
        os.write(2, f"clawmark: {said}\n".encode(errors="replace"))
    finally:
        os._exit(0)


def _understood(arguments: list[str]) -> tuple[str, str, str, float]:
    usage = "usage: client.py HOST --socket PATH [--database PATH] [--budget SECONDS]"
    options = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    host, path = (arguments or [""])[0], options.get("--socket", "")
    if not host.replace("-", "").isalnum() or not host.isascii() or not path.startswith("/"):
        raise ValueError(usage)
    if len(arguments) != 1 + 2 * len(options) or not options.keys() <= {"--socket", "--database", "--budget"}:
        raise ValueError(usage)
    budget = float(options.get("--budget", BUDGET))
    if not budget >= 0:  # no number at all is among these
        raise ValueError(usage)
    return host, path, options.get("--database", ""), min(budget, 60.0)


def _read(until: float) -> bytes:
    """The hook's JSON, however late the host closes the pipe."""
    import select

    parts: list[bytes] = []
    size = 0
    while size <= MOST_BYTES and select.select([0], [], [], max(0.0, until - time.monotonic()))[0]:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            return b"".join(parts)
        parts.append(chunk)
        size += len(chunk)
    return b""


if __name__ == "__main__":
    main(sys.argv[1:])
