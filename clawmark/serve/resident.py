"""The resident process: who may talk to it, and how it ends.

It answers before the memory is open. It ends within three seconds of the end of its host's pipe or of a signal, whatever
it is doing: what was committed stands, what was not never was.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import clawmark
from clawmark import __version__
from clawmark.client import is_ours
from clawmark.errors import ClawmarkError
from clawmark.serve import place
from clawmark.serve.jobs import Jobs
from clawmark.serve.methods import Facts, Methods
from clawmark.serve.peer import Outlet, Peer, Stdio
from clawmark.settings import Settings

if TYPE_CHECKING:
    from clawmark.memory import Memory

log = logging.getLogger("clawmark")

MOST_CLIENTS = 128
JOBS_SECONDS = 1.5
CHECKPOINT_SECONDS = 0.8
"""Of the three seconds that the end may take."""

LOOK_SECONDS = 30.0
"""How often it is looked whether clawmark was brought up to date under a process that goes on."""

SWITCH_SECONDS = 0.0005
"""How long the jobs may keep a prompt from the interpreter. Python's own 5 ms are paid at every file and every query."""


class Resident:
    def __init__(
        self, settings: Settings, database: Path, claim: place.Claim, listener: socket.socket, wake: int
    ) -> None:
        """wake: readable when the process is to end."""
        self._settings = settings
        self._database = database
        self._claim = claim
        self._listener = listener
        self._wake = wake
        self._address = Path(listener.getsockname())
        self._clients: dict[Peer, socket.socket] = {}
        self._asked_at = time.monotonic()
        self._has_parent = False
        self._jobs = Jobs(
            self._opened,
            self._announce,
            every=settings.job_every_n_messages,
            idle_seconds=settings.idle_hours * 3600,
            prompts_waiting=lambda: self._methods.prompts_waiting(),
        )
        self._methods = Methods(self._jobs, Facts(database, datetime.now(UTC), self._count))

    def run(self, host: Stdio | None, idle_exit: float | None, ended: int) -> None:
        """Until its end is due. ended: written to when the host's pipe ends."""
        sys.setswitchinterval(SWITCH_SECONDS)
        if host is not None:
            self._has_parent = True
            threading.Thread(target=self._serve_host, args=(host, ended), name="clawmark-host", daemon=True).start()
        self._jobs.start()
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        poller.register(self._listener, select.POLLIN)
        installed = _installed()
        while True:
            wait = LOOK_SECONDS
            if idle_exit is not None:
                wait = max(0.0, min(wait, self._asked_at + idle_exit - time.monotonic()))
            ready = {descriptor for descriptor, _ in poller.poll(wait * 1000 + 1)}
            if self._wake in ready:
                return
            if not ready and _installed() not in (installed, None):
                log.info("clawmark was brought up to date; the next process serves")
                return
            if self._listener.fileno() in ready:
                self._accept()
            elif idle_exit is not None and self._count():
                self._asked_at = time.monotonic()  # somebody is there, asking or not
            elif idle_exit is not None and time.monotonic() >= self._asked_at + idle_exit:
                log.info("nobody asked anything for %g s", idle_exit)
                return

    def end(self) -> None:
        """Leave the place to whoever comes next, end the jobs, empty the write-ahead log."""
        with contextlib.suppress(OSError):
            self._address.unlink()  # before the lock is free: it could be the next one's
        with contextlib.suppress(ClawmarkError):
            self._claim.write(None)
        self._listener.close()
        if not self._jobs.stop(JOBS_SECONDS):
            log.info("the jobs are left in the middle of what they do")
        if self._jobs.memory is not None:
            checkpoint = threading.Thread(target=self._checkpoint, name="clawmark-checkpoint", daemon=True)
            checkpoint.start()
            checkpoint.join(CHECKPOINT_SECONDS)

    # Who talks

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
            connection.setblocking(True)  # on some systems it is as its listener is
        except OSError:  # gone again, or no descriptor is free
            time.sleep(0.01)
            return
        self._asked_at = time.monotonic()
        if not is_ours(connection):
            log.warning("connection_refused reason=another user")
            connection.close()
        elif len(self._clients) >= MOST_CLIENTS:
            log.warning("connection_refused reason=%d are open", MOST_CLIENTS)
            connection.close()
        else:
            peer = Peer(connection.fileno(), Outlet(connection.fileno(), lambda: _shut(connection)), self._received)
            self._clients[peer] = connection
            try:
                threading.Thread(
                    target=self._serve, args=(peer, connection), name="clawmark-client", daemon=True
                ).start()
            except RuntimeError:  # the system gives no more threads
                del self._clients[peer]
                connection.close()

    def _received(self, peer: Peer, line: bytes | None) -> None:
        self._asked_at = time.monotonic()
        self._methods.received(peer, line)

    def _serve(self, peer: Peer, connection: socket.socket) -> None:
        peer.read()
        self._methods.ended(peer)
        self._clients.pop(peer, None)
        connection.close()
        self._asked_at = time.monotonic()

    def _serve_host(self, host: Stdio, ended: int) -> None:
        peer = Peer(host.inlet, host.outlet, self._received, lines=host.lines)
        peer.read()
        os.write(ended, b"e")

    def _count(self) -> int:
        return len(self._clients) + self._has_parent

    # The memory

    def _opened(self) -> Memory:
        from clawmark.memory import Memory

        return Memory.open(self._settings)

    def _announce(self, memory: Memory) -> None:
        status = memory.status()
        sources = "; ".join(f"{source.name} ({source.state}) {source.where}" for source in status.sources)
        log.info(
            "serving version=%s database=%s sources=%s embedder=%s",
            __version__,
            self._database,
            sources,
            status.embedder,
        )

    def _checkpoint(self) -> None:
        from clawmark.store import db

        try:
            with db.opened(self._database, busy_seconds=db.CHECKPOINT_SECONDS) as connection:
                if not db.checkpoint(connection):
                    log.info("checkpoint_left reason=somebody reads the database")
        except Exception as failed:  # noqa: BLE001 - the end of the process: the next one does it
            log.warning("checkpoint_left reason=%s", type(failed).__name__)


def _installed() -> tuple[int, int] | None:
    """What changes when another version is installed; None while there is none."""
    try:
        status = os.stat(clawmark.__file__)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _shut(connection: socket.socket) -> None:
    """Its reading thread notices, and closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
