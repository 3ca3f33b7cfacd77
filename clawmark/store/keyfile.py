"""The secret beside the database: what makes nonces unguessable and tombstones tell nothing."""

from __future__ import annotations

import os
import secrets as entropy
import stat
from pathlib import Path

from clawmark.errors import DatabaseUnwritable
from clawmark.store.db import system_explained


def key_path(database: Path) -> Path:
    return database.with_name(database.name + ".key")


def secret(path: Path) -> bytes:
    """32 random bytes in a file of its own (0600): what nonces and tombstones are keyed with. Made when there is none."""
    with system_explained(path):
        return _read(path) or _made(path)


def _read(path: Path) -> bytes | None:
    try:
        # A FIFO by that name must not hold us up.
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            found = file.read(64) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
    except FileNotFoundError:
        return None
    if len(found) < 32:
        raise DatabaseUnwritable(f"{path} is cut short or no file; restore or remove it (then a new one is made).")
    return found


def _made(path: Path) -> bytes:
    """Another process may be making it at the same time: the first one's is everybody's."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{entropy.token_hex(4)}")
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        os.write(handle, entropy.token_bytes(32))
        os.fsync(handle)
    finally:
        os.close(handle)
    try:
        os.link(draft, path)  # fails where another process was first: then its secret is the one
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return secret(path)
