"""What `clawmark doctor` finds at the hosts, and of the resident process that answers them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from clawmark import __version__
from clawmark.client import Connection, Failure
from clawmark.errors import ClawmarkError
from clawmark.health import Check
from clawmark.hosts.claude_code.checks import checks as claude_code
from clawmark.hosts.openclaw.checks import checks as openclaw
from clawmark.settings import Settings
from clawmark.socketpath import MOST_BYTES, Met, file_of, read, socket_path
from clawmark.store import files

PATIENCE_MS = 2_000


def checks(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Every host's, whether clawmark is installed there or not."""
    yield from _resident(settings)
    yield from openclaw(settings, environment)
    yield from claude_code(settings)


def _resident(settings: Settings) -> Iterator[Check]:
    """One process answers every gateway, hook and client of a database: two gateways are no fault."""
    try:
        database = files.resolved(settings.db_path)
        met = _met(database)
    except (ClawmarkError, OSError):  # the database's own checks say so
        return
    address = socket_path(database) if met is None else met.socket
    connection = Connection(str(address), start=False)
    try:
        said = connection.call("hello", {"client": "doctor", "version": __version__, "protocol": 1}, PATIENCE_MS)
    except Failure:
        if met is None:
            yield Check("resident", "ok", "none runs; hosts start it when they need it")
        else:
            who = f"process {met.pid} serves this database, but does not answer at {address}"
            yield Check("resident", "fail", who, f"End it (`kill {met.pid}`) and restart the gateway, if there is one.")
        return
    finally:
        connection.close()
    who = f"process {said['pid']}, version {said['version']}, at {address}"
    if said["version"] != __version__:
        yield Check("resident", "warn", f"{who}; this is {__version__}", "Restart the gateway, or end that process.")
    elif not said["ready"] and said["problem"] != "opening":
        yield Check("resident", "fail", f"{who}; memory is not ready: {said['problem']}")
    else:
        yield Check("resident", "ok", who)


def _met(database: Path) -> Met | None:
    """Who says that they serve this database, and hold its lock; None = nobody does."""
    path = file_of(database)
    met = read(files.read(path, MOST_BYTES) or b"")
    if met is None:
        return None
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return met
    finally:
        os.close(handle)
    return None  # it was killed
