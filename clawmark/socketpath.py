"""Where the resident process of a database is met: everybody who asks it works this out alike, without asking."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from clawmark.errors import UsageError
from clawmark.settings import environment

LONGEST = 103
"""Bytes that the address of a Unix socket may have on macOS, which has fewer than Linux."""


def socket_path(database: Path) -> Path:
    """The socket's place for the database at this (resolved) path: the first folder that is, or can be, ours alone."""
    uid = os.geteuid()
    name = hashlib.sha256(os.fsencode(database)).hexdigest()[:16] + ".sock"
    runtime = environment().get("XDG_RUNTIME_DIR", "")
    folders = [Path(runtime) / "clawmark"] if os.path.isabs(runtime) else []
    folders += [Path(f"/run/user/{uid}/clawmark"), database.parent]
    for folder in folders:
        path = folder / name
        # The folder of the system that stands above is not made: where it is missing, nobody logged in.
        if fault(path) is None and (folder.is_dir() or _is_ours(folder.parent)):
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


def _is_ours(folder: Path) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
