"""The resident process: it holds one person's memory open and answers whoever asks (docs/protocol.md).

`run` is the command `clawmark serve`. The first process of a database is its resident one; a later one that a host started
passes everything on to it, and takes its place when it is gone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from clawmark.client import hold_standard_descriptors

if TYPE_CHECKING:
    from clawmark.serve.peer import Outlet, Stdio
    from clawmark.serve.place import Claim
    from clawmark.settings import Settings

__all__ = ["run"]

UNREAD_SECONDS = 60.0
"""A host that was stopped for a while is still there afterwards."""

PAUSE = 0.05
"""Seconds until it is looked again whether a resident process that only just starts or ends can be reached."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

log = logging.getLogger("clawmark")


def run(*, stdio: bool, socket: Path | None, idle_exit: float | None) -> int:
    """Serve until the end; gives the exit code, or ends the process with it.

    stdio       answer the host that started this process, and end with it
    socket      where others find it; None = `socket_path` of the database
    idle_exit   end after so many seconds without anybody

    Raises SettingsError, UsageError or DatabaseError where it cannot begin.
    """
    hold_standard_descriptors()
    wake, ended = _signals()  # before all that takes its time to import: a signal ends this process as it should
    if idle_exit is not None and not idle_exit > 0:
        from clawmark.errors import UsageError

        raise UsageError("--idle-exit is no number over 0.")
    from clawmark.serve.peer import take_stdio
    from clawmark.settings import load
    from clawmark.socketpath import socket_path
    from clawmark.store import files

    os.umask(0o077)
    host = take_stdio(lambda: _wake(ended), UNREAD_SECONDS) if stdio else None
    _log_to(None if host is None else host.outlet)
    settings = load()
    if _is_readable(wake, 0.0):
        return 0
    database = files.resolved(settings.db_path)
    if host is None:
        claim = _claimed_now(database)
        if claim is None:
            from clawmark.serve.place import address_of_other

            other = address_of_other(database)
            log.info("another resident process serves %s at %s", database, other)
            return 0 if socket in (None, other) else 1  # nobody will answer where we were told to
    else:
        claim = _claimed_after_others(database, host, wake)
        if claim is None:
            return 0
    _serve(settings, database, claim, host, socket or socket_path(database), idle_exit, wake, ended)
    if sys.stderr is not None:  # a process can be started without
        sys.stderr.flush()
    os._exit(0)  # threads that still wait for a disk or a server must not hold it up


def _signals() -> tuple[int, int]:
    """A pipe: readable at one end when this process is to end, and written to at the other."""
    wake, ended = os.pipe()
    os.set_blocking(ended, False)
    # The byte is written where the signal arrives, which may be another thread: a handler in Python would then wait until
    # this one wakes up, and nothing else wakes it.
    signal.set_wakeup_fd(ended, warn_on_full_buffer=False)
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    return wake, ended


def _claimed_now(database: Path) -> Claim | None:
    from clawmark.serve.place import claim

    return claim(database)


def _claimed_after_others(database: Path, host: Stdio, wake: int) -> Claim | None:
    """The place of the resident process once it is free; until then everything is passed on. None = the end."""
    from clawmark.serve import place
    from clawmark.serve.proxy import Proxy

    proxy = Proxy(host, wake)
    said = False
    while True:
        claim = place.claim(database)
        if claim is not None:
            proxy.hand_over()
            return claim
        address = place.address_of_other(database)
        connection = place.connected(address)
        if connection is None:  # it only just starts or ends
            if not said:
                log.info("waiting for the resident process at %s", address)
                said = True
            if not proxy.wait(
                PAUSE, f"the resident process cannot be reached at {address}; `clawmark doctor` says why"
            ):
                return None
            continue
        log.info("passing on to the resident process at %s", address)
        if proxy.pass_on(connection) == "stopped":
            return None
        log.info("the resident process at %s went away", address)


def _serve(
    settings: Settings,
    database: Path,
    claim: Claim,
    host: Stdio | None,
    address: Path,
    idle_exit: float | None,
    wake: int,
    ended: int,
) -> None:
    from clawmark.serve import place
    from clawmark.serve.resident import Resident

    claim.write(address)
    resident = Resident(settings, database, claim, place.listen(address), wake)
    try:
        resident.run(host, idle_exit, ended)
    finally:
        resident.end()


def _is_readable(descriptor: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def _wake(ended: int) -> None:
    with contextlib.suppress(OSError):
        os.write(ended, b"e")


# --- the log ----------------------------------------------------------------------------------------------------------


class _Lines(logging.Handler):
    """Lines on standard error and to the host. Whoever does not read them loses them: nothing waits for a log."""

    def __init__(self, host: Outlet | None) -> None:
        super().__init__(logging.INFO)
        self._host = host
        self.setFormatter(logging.Formatter("%(asctime)s clawmark[%(process)d] %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        from clawmark.serve.message import notice_line

        try:
            line = (self.format(record) + "\n").encode(errors="replace")[: select.PIPE_BUF]
            poller = select.poll()
            poller.register(2, select.POLLOUT)
            if poller.poll(0):
                os.write(2, line)
        except OSError:
            pass  # there is nobody who could be told
        if self._host is not None:
            self._host.send(notice_line("log", {"level": record.levelname.lower(), "message": record.getMessage()}))


def _log_to(host: Outlet | None) -> None:
    logging.raiseExceptions = False
    log.handlers = [_Lines(host)]
    log.setLevel(logging.INFO)
    log.propagate = False
    logging.Formatter.converter = time.gmtime
