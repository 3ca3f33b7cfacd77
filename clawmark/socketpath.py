"""Where the resident process of a database is met: by a place that everybody works out alike, or, where it was told
another one, by what it says in its file beside the database."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from clawmark.errors import UsageError
from clawmark.settings import environment

LONGEST = 103
"""Bytes that the address of a Unix socket may have on macOS, which has fewer than Linux."""

MOST_BYTES = 4096
"""Of the file below, which holds a number and a path."""


@dataclass(frozen=True, slots=True)
class Met:
    """What the resident process says in the file beside its database: who it is, and where it is met."""

    pid: int
    socket: Path


def file_of(database: Path) -> Path:
    """What the resident process holds locked as long as it lives."""
    return database.with_name(database.name + ".serve")


def written(met: Met) -> bytes:
    return json.dumps({"pid": met.pid, "socket": str(met.socket)}).encode()


def read(content: bytes) -> Met | None:
    """None where it holds nothing of the kind: nobody serves, or somebody only just starts."""
    try:
        said = json.loads(content)
        pid, socket = said["pid"], said["socket"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(pid, int) or not isinstance(socket, str) or not socket.startswith("/"):
        return None
    return Met(pid, Path(socket))


def socket_path(database: Path) -> Path:
    """The socket's place for the database at this (resolved) path: the first folder that is, or can be, ours alone."""
    uid = os.geteuid()
    name = hashlib.sha256(os.fsencode(database)).hexdigest()[:16] + ".sock"
    runtime = environment().get("XDG_RUNTIME_DIR", "")
    folders = [Path(runtime) / "clawmark"] if os.path.isabs(runtime) else []
    folders += [Path(f"/run/user/{uid}/clawmark"), database.parent]
    for folder in folders:
        path = folder / name
        # The folder of the system that stands above is not made: where it is missing, nobody logged in. The database's
        # is made sooner or later, and this must not depend on when it is asked.
        above = _there(folder) if folder == database.parent else folder.parent
        if fault(path) is None and (folder.is_dir() or _is_ours(above)):
            return path
    return Path(tempfile.gettempdir()).resolve() / f"clawmark-{uid}" / name


def fault(path: Path) -> str | None:
    """Why no socket can stand at `path`; None where one can, once the last folder is made."""
    if not path.is_absolute():
        return f"{path} is no absolute path"
    if len(os.fsencode(path)) > LONGEST:
        return f"{path} is longer than {LONGEST} bytes"
    folder = path.parent
    if os.path.lexists(folder) and not _is_ours(folder):
        return f"{folder} is no folder that belongs to you and that nobody else can write to"
    return None


def prepare(path: Path) -> None:
    """Make the folder of a socket, for its owner alone. Raises UsageError where none can stand there."""
    why = fault(path)
    if why is None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = f"{path.parent} cannot be made ({error.strerror})"
    why = why or fault(path)  # somebody else may have been quicker
    if why is not None:
        raise UsageError(f"no socket can be made: {why}; name another place with --socket.")


def _there(folder: Path) -> Path:
    """`folder`, or what is there above it."""
    return next((place for place in (folder, *folder.parents) if place.exists()), folder)


def _is_ours(folder: Path) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
