"""The secret beside the database: what makes nonces unguessable and tombstones tell nothing."""

from __future__ import annotations

import os
import secrets as entropy
from pathlib import Path

from clawmark.errors import DatabaseUnwritable
from clawmark.store import files
from clawmark.store.db import system_explained

LENGTH = 32


def key_path(database: Path) -> Path:
    return database.with_name(database.name + ".key")


def secret(path: Path) -> bytes:
    """32 random bytes in a file of its own (0600): what nonces and tombstones are keyed with. Made when there is none."""
    with system_explained(path):
        return known(path) or _made(path)


def known(path: Path) -> bytes | None:
    """The secret, where there is one already."""
    with system_explained(path):
        found = files.read(path, 2 * LENGTH)
    if found is not None and len(found) < LENGTH:
        raise DatabaseUnwritable(f"{path} is cut short; restore or remove it (then a new one is made).")
    return found


def _made(path: Path) -> bytes:
    """Another process may be making it at the same time: the first one's is everybody's."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{entropy.token_hex(4)}")
    files.written(draft, entropy.token_bytes(LENGTH))
    try:
        files.give_name(draft, path)  # fails where another process was first: then its secret is the one
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    files.sync_folder(path.parent)
    return secret(path)
