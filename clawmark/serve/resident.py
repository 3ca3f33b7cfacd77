"""The resident process: who may talk to it, and how it ends.

It answers before the memory is open. It ends within three seconds of the end of its host's pipe or of a signal, whatever
it is doing: what was committed stands, what was not never was.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import secrets
import select
import socket
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import clawmark
from clawmark import __version__, llm
from clawmark.client import is_ours
from clawmark.errors import ClawmarkError
from clawmark.serve import place
from clawmark.serve.hostmodel import HostModel
from clawmark.serve.jobs import BATCHES, BATCHES_OF_A_MODEL, Jobs
from clawmark.serve.methods import Facts, Methods
from clawmark.serve.outgoing import Outgoing
from clawmark.serve.peer import Outlet, Peer, Stdio
from clawmark.settings import Settings

if TYPE_CHECKING:
    from clawmark.memory import Memory

log = logging.getLogger("clawmark")

MOST_CLIENTS = 128
JOBS_SECONDS = 1.5
CHECKPOINT_SECONDS = 0.8
"""Of the three seconds that the end may take."""

LOOK_SECONDS = 5.0
"""How often it is looked whether others still find this process, and whether clawmark was brought up to date under it."""

FULL = 0.05
"""Seconds until it is tried again to take a connection for which there is no descriptor."""

SWITCH_SECONDS = 0.0005
"""How long the jobs may keep a prompt from the interpreter. Python's own 5 ms are paid at every file and every query."""


class Resident:
    def __init__(self, settings: Settings, database: Path, claim: place.Claim, ear: place.Ear, wake: int) -> None:
        """wake: readable when the process is to end."""
        self._settings = settings
        self._database = database
        self._claim = claim
        self._ear: place.Ear | None = ear
        self._wake = wake
        self._address = ear.address
        self._installed = _installed()
        self._refusing = ""
        self._unmet = ""
        self._clients: dict[Peer, socket.socket] = {}
        self._asked_at = time.monotonic()
        self._has_parent = False
        self._jobs = Jobs(
            self._opened,
            self._announce,
            every=settings.job_every_n_messages,
            idle_seconds=settings.idle_hours * 3600,
            prompts_waiting=lambda: self._methods.prompts_waiting(),
            batches=BATCHES_OF_A_MODEL if llm.named(settings).is_model else BATCHES,
        )
        self._outgoing = Outgoing(f"clawmark-{secrets.token_hex(4)}")
        self._methods = Methods(self._jobs, Facts(database, datetime.now(UTC), self._count), self._outgoing)

    def run(self, host: Stdio | None, idle_exit: float | None, ended: int) -> None:
        """Until its end is due. ended: written to when the host's pipe ends."""
        sys.setswitchinterval(SWITCH_SECONDS)
        if host is not None:
            self._has_parent = True
            threading.Thread(target=self._serve_host, args=(host, ended), name="clawmark-host", daemon=True).start()
        self._jobs.start()
        look_at = time.monotonic() + LOOK_SECONDS
        while True:
            until = look_at if idle_exit is None else min(look_at, self._asked_at + idle_exit)
            is_ending, is_knocked = self._waited(until - time.monotonic())
            if is_ending:
                return
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + LOOK_SECONDS
                self._methods.tidy()
                if not self._is_in_place():
                    return
            elif is_knocked and self._ear is not None:
                self._accept(self._ear.socket)
            elif idle_exit is not None and self._count():
                self._asked_at = time.monotonic()  # somebody is there, asking or not
            elif idle_exit is not None and time.monotonic() >= self._asked_at + idle_exit:
                log.info("nobody asked anything for %g s", idle_exit)
                return

    def end(self) -> None:
        """Leave the place to whoever comes next, end the jobs, empty the write-ahead log."""
        with contextlib.suppress(OSError):
            if self._ear is not None:
                self._ear.close()  # before the lock is free: it could be the next one's
        with contextlib.suppress(ClawmarkError):
            self._claim.write(None)
        self._outgoing.close()  # the jobs may wait for a host's model
        if not self._jobs.stop(JOBS_SECONDS):
            log.info("the jobs are left in the middle of what they do")
        if self._jobs.memory is not None:
            checkpoint = threading.Thread(target=self._checkpoint, name="clawmark-checkpoint", daemon=True)
            checkpoint.start()
            checkpoint.join(CHECKPOINT_SECONDS)

    def _waited(self, seconds: float) -> tuple[bool, bool]:
        """Whether this process is to end, and whether somebody knocks."""
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        if self._ear is not None:
            poller.register(self._ear.socket, select.POLLIN)
        ready = {descriptor for descriptor, _ in poller.poll(max(0.0, seconds) * 1000 + 1)}
        return self._wake in ready, bool(ready - {self._wake})

    # Whether others find it

    def _is_in_place(self) -> bool:
        """Whether it goes on. What somebody took away, file or socket or folder, is made again where that can be."""
        if _installed() not in (self._installed, None):
            log.info("clawmark was brought up to date; the next process serves")
            return False
        if not self._claim.is_held() and not self._claimed_again():
            log.warning("place_lost reason=the file that says who serves %s is another's, or gone", self._database)
            return False
        return (self._ear is not None and self._ear.is_met()) or self._met_again()

    def _claimed_again(self) -> bool:
        if not self._database.parent.is_dir():  # nor is the folder made again for nobody's sake
            return False
        try:
            claim = place.claim(self._database)
        except ClawmarkError:
            return False
        if claim is None:
            return False
        self._claim.close()
        self._claim = claim
        claim.write(self._address)
        return True

    def _met_again(self) -> bool:
        """Without an address a process is of use to its host alone."""
        if self._ear is not None:
            self._ear.socket.close()
            self._ear = None
        try:
            self._ear = place.listen(self._address)
        except ClawmarkError as failed:
            if self._unmet != str(failed):
                self._unmet = str(failed)
                log.warning("address_lost reason=%s", failed)
            return self._has_parent
        self._unmet = ""
        log.warning("address_made_again path=%s", self._address)
        return True

    # Who talks

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._refused("no descriptor is free")
                time.sleep(FULL)
            return  # else: gone again
        self._asked_at = time.monotonic()
        if not is_ours(connection):
            self._refused("another user")
        elif len(self._clients) >= MOST_CLIENTS:
            self._refused(f"{MOST_CLIENTS} are open")
        else:
            try:
                self._welcome(connection)
            except (OSError, RuntimeError):  # the system gives no more descriptors, or threads
                self._refused("the system gives no more descriptors or threads")
            else:
                self._refusing = ""
                return
        connection.close()

    def _refused(self, reason: str) -> None:
        """One line where it is news."""
        if reason != self._refusing:
            self._refusing = reason
            log.warning("connection_refused reason=%s", reason)

    def _welcome(self, connection: socket.socket) -> None:
        connection.setblocking(True)  # on some systems it is as its listener is
        outlet = Outlet(connection.fileno(), lambda: _shut(connection))
        peer = Peer(connection.fileno(), outlet, self._received)
        self._clients[peer] = connection
        try:
            threading.Thread(target=self._serve, args=(peer, connection), name="clawmark-client", daemon=True).start()
        except RuntimeError:
            del self._clients[peer]
            outlet.close()
            raise

    def _received(self, peer: Peer, line: bytes | None) -> None:
        self._asked_at = time.monotonic()
        self._methods.received(peer, line)

    def _serve(self, peer: Peer, connection: socket.socket) -> None:
        try:
            peer.read()
        finally:  # whatever it was, its place is free again
            self._methods.ended(peer)
            self._clients.pop(peer, None)
            connection.close()
            self._asked_at = time.monotonic()

    def _serve_host(self, host: Stdio, ended: int) -> None:
        peer = Peer(host.inlet, host.outlet, self._received, lines=host.lines, early=tuple(host.early))
        try:
            peer.read()
        finally:
            with contextlib.suppress(BlockingIOError):  # it is to end already
                os.write(ended, b"e")

    def _count(self) -> int:
        return len(self._clients) + self._has_parent

    # The memory

    def _opened(self) -> Memory:
        from clawmark.memory import Memory

        return Memory.open(self._settings, completer=HostModel(self._outgoing))

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
