"""One connection: whole lines in, whole lines out.

A line is never held beyond its limit, never mixed with another, and whoever does not read holds nobody up: what cannot be
written at once waits in a queue of its own, and a side that reads nothing for too long is dropped.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MOST_BYTES = 1 << 20
"""Of one line."""

MOST_WAITING = 8 * MOST_BYTES
"""Bytes that may wait for one side to read."""

UNREAD_SECONDS = 5.0
CHUNK = 1 << 16


class Lines:
    """Whole lines out of chunks as they come. A line over MOST_BYTES comes as None and is never held."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes | None]:
        *ended, rest = chunk.split(b"\n")
        lines: list[bytes | None] = []
        for part in ended:
            self._hold(part)
            lines.append(None if self._size > MOST_BYTES else b"".join(self._held))
            self._held, self._size = [], 0
        self._hold(rest)
        return lines

    def _hold(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MOST_BYTES:
            self._held = []
        elif part:
            self._held.append(part)


def read_some(descriptor: int) -> bytes:
    """What there is to read, b"" at the end; waits for it, whether or not the other side made reading non-blocking."""
    while True:
        try:
            return os.read(descriptor, CHUNK)
        except BlockingIOError:
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            poller.poll()
        except OSError:  # reset by the other side: as good as its end
            return b""


Then = Callable[[], None]


class Outlet:
    """Writes whole lines to one descriptor. `broken` is called once when nobody reads them any more."""

    def __init__(self, descriptor: int, broken: Callable[[], None], unread_seconds: float = UNREAD_SECONDS) -> None:
        is_socket = stat.S_ISSOCK(os.fstat(descriptor).st_mode)
        # One of its own: the reading side closes the other, and its number may be somebody else's by then.
        self._socket = socket.socket(fileno=os.dup(descriptor)) if is_socket else None
        self._descriptor = descriptor if self._socket is None else self._socket.fileno()
        self._broken = broken
        self._unread_seconds = unread_seconds
        self._lock = threading.Lock()
        self._waiting: deque[tuple[bytes, Then | None]] = deque()
        self._size = 0
        self._is_draining = False
        self._is_closed = False

    def send(self, line: bytes, then: Then | None = None) -> None:
        """Write `line` and its end. `then` is called when all of it is out, never when it is not."""
        content = line + b"\n"
        try:
            with self._lock:
                if self._is_closed:
                    return
                written = 0 if self._waiting else self._write(content)
                if written < len(content):
                    self._wait(content[written:], then)
                    return
        except OSError:
            self.close()
            self._broken()
            return
        if then is not None:
            then()

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._waiting.clear()
            if self._socket is not None:
                self._socket.close()

    def _wait(self, rest: bytes, then: Then | None) -> None:
        self._size += len(rest)
        if self._size > MOST_WAITING:
            raise BrokenPipeError
        self._waiting.append((rest, then))
        if not self._is_draining:
            self._is_draining = True
            try:
                threading.Thread(target=self._drain, name="clawmark-drain", daemon=True).start()
            except RuntimeError:  # the system gives no more threads
                raise BrokenPipeError from None

    def _drain(self) -> None:
        last = time.monotonic()
        poller = select.poll()
        poller.register(self._descriptor, select.POLLOUT)
        try:
            while time.monotonic() - last < self._unread_seconds:
                poller.poll(250)
                with self._lock:
                    if self._is_closed:
                        return
                    content, then = self._waiting[0]
                    written = self._write(content)
                    if written:
                        last = time.monotonic()
                    self._size -= written
                    if written < len(content):
                        self._waiting[0] = (content[written:], then)
                        continue
                    self._waiting.popleft()
                    more = self._is_draining = bool(self._waiting)
                if then is not None:
                    then()
                if not more:
                    return
        except OSError:
            pass
        self.close()
        self._broken()

    def _write(self, content: bytes) -> int:
        """As much as goes out without waiting."""
        if self._socket is not None:
            try:
                return self._socket.send(content, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return 0
        written = 0
        poller = select.poll()
        poller.register(self._descriptor, select.POLLOUT)
        while written < len(content) and poller.poll(0):
            # A pipe that is ready takes this much without blocking.
            written += os.write(self._descriptor, content[written : written + select.PIPE_BUF])
        return written


class Peer:
    """One side that asks: its lines go to `received`, in the thread that calls `read`."""

    def __init__(
        self,
        inlet: int,
        outlet: Outlet,
        received: Callable[[Peer, bytes | None], None],
        *,
        lines: Lines | None = None,
        early: Sequence[bytes | None] = (),
    ) -> None:
        """early, lines: what was read of this side already, whole lines and what is none yet."""
        self._inlet = inlet
        self._outlet = outlet
        self._received = received
        self._lines = lines or Lines()
        self._early = early

    def read(self) -> None:
        """Until the end."""
        try:
            for line in self._early:
                self._received(self, line)
            while chunk := read_some(self._inlet):
                for line in self._lines.feed(chunk):
                    self._received(self, line)
        finally:
            self._outlet.close()

    def send(self, line: bytes, then: Then | None = None) -> None:
        self._outlet.send(line, then)


@dataclass(frozen=True, slots=True)
class Stdio:
    """The pipes of the host that started this process, taken away from everything else in it."""

    inlet: int
    outlet: Outlet
    lines: Lines
    early: deque[bytes | None]
    """Lines that were read while there was nobody to answer them."""


def take_stdio(broken: Callable[[], None], unread_seconds: float) -> Stdio:
    """From here on whatever prints, C libraries too, prints to standard error, and whatever reads gets nothing."""
    inlet, outlet = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
    os.close(nothing)
    return Stdio(inlet, Outlet(outlet, broken, unread_seconds), Lines(), deque())
