"""One resident process a database: who locks the file `<database>.serve` is it, and binds the socket that the file names.

The kernel frees the lock when the process ends, however it ends, so a socket that is found by whoever holds the lock was
left behind by a dead one. Nobody but the same user is listened to.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from clawmark import socketpath
from clawmark.client import is_ours
from clawmark.errors import UsageError
from clawmark.store import files
from clawmark.store.db import system_explained

log = logging.getLogger("clawmark")

BACKLOG = 64


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to be the resident process, held as long as the descriptor is open."""

    path: Path
    handle: int

    def write(self, address: Path | None) -> None:
        """Say where this process is met; None = nowhere any more. On a full disk nobody is told."""
        said = b"" if address is None else socketpath.written(socketpath.Met(os.getpid(), address))
        try:
            os.pwrite(self.handle, said, 0)
            os.ftruncate(self.handle, len(said))
        except OSError as error:
            log.warning("place_not_written path=%s reason=%s", self.path, error.strerror)

    def close(self) -> None:
        os.close(self.handle)

    def is_held(self) -> bool:
        """Whether the file that is locked is still the one that others look at."""
        return _identity(self.path) == _identity(self.handle)


@dataclass(frozen=True, slots=True)
class Ear:
    """A listening socket and the name it has among the files, which somebody may take away."""

    socket: socket.socket
    address: Path
    identity: tuple[int, int] | None

    def is_met(self) -> bool:
        return self.identity is not None and _identity(self.address) == self.identity

    def close(self) -> None:
        """What stands at its address by now may be another's."""
        if self.is_met():
            self.address.unlink(missing_ok=True)
        self.socket.close()


def _identity(file: Path | int) -> tuple[int, int] | None:
    try:
        status = os.fstat(file) if isinstance(file, int) else os.lstat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def claim(database: Path) -> Claim | None:
    """None when another process is the resident one. Makes the database's folder where it is missing."""
    path = socketpath.file_of(database)
    with system_explained(path):
        files.make_folder(database.parent)
        while True:
            handle = files.open_or_create(path)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            if os.fstat(handle).st_nlink:
                return Claim(path, handle)
            os.close(handle)  # somebody took the file away in between: a lock on it excludes nobody


def address_of_other(database: Path) -> Path:
    """Where the resident process says that it is met, else where it is by itself: it may only just start."""
    path = socketpath.file_of(database)
    with system_explained(path):
        met = socketpath.read(files.read(path, socketpath.MOST_BYTES) or b"")
    return socketpath.socket_path(database) if met is None else met.socket


def listen(address: Path) -> Ear:
    """A listening socket at `address`, for its owner alone from its first moment. Belongs under the claim.

    Raises UsageError where none can be made, or where something stands that no dead resident process left.
    """
    socketpath.prepare(address)
    _remove_stale(address)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            listener.bind(str(address))
        finally:
            os.umask(before)
        listener.listen(BACKLOG)
        listener.setblocking(False)  # who knocked may be gone when it is opened
    except OSError as error:
        listener.close()
        raise UsageError(
            f"no socket can be made at {address} ({error.strerror}); name another with --socket."
        ) from None
    return Ear(listener, address, _identity(address))


def _remove_stale(address: Path) -> None:
    try:
        status = os.lstat(address)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        raise UsageError(f"{address} is no socket of yours; it was left as it is. Name another with --socket.")
    if connected(address) is not None:
        raise UsageError(f"another process listens at {address}, for another database; name another with --socket.")
    address.unlink(missing_ok=True)


def connected(address: Path, seconds: float = 1.0) -> socket.socket | None:
    """A connection to a process of the same user that listens there; None where there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(str(address))
        connection.settimeout(None)
        if is_ours(connection):
            return connection
    except OSError:
        pass
    connection.close()
    return None
