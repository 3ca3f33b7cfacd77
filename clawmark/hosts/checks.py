"""What `clawmark doctor` finds at the hosts, and of the resident process that answers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clawmark import __version__
from clawmark.client import Connection, Failure
from clawmark.errors import ClawmarkError
from clawmark.health import Check
from clawmark.hosts.claude_code.checks import checks as claude_code
from clawmark.hosts.openclaw.checks import checks as openclaw
from clawmark.settings import Settings
from clawmark.socketpath import socket_path
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
        address = socket_path(files.resolved(settings.db_path))
    except ClawmarkError:  # the database's own checks say so
        return
    connection = Connection(str(address), start=False)
    try:
        said = connection.call("hello", {"client": "doctor", "version": __version__, "protocol": 1}, PATIENCE_MS)
    except Failure:
        yield Check("resident", "ok", "none runs; hosts start it when they need it")
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
