"""Access: the ways to one database, and what is kept beside it.

The prompt path has one connection, read-only, for one caller at a time; it waits for no writer. Whoever writes, and
whoever reads for long, has a connection of its own. A file that somebody put in another's place is opened anew, and damage
that anybody meets is noted, so that the next pass looks at the whole file.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import apsw

from clawmark.errors import DatabaseDamaged, DatabaseUnwritable
from clawmark.store import copy, db, keyfile, migrations, recovery

log = logging.getLogger("clawmark")


class Access:
    def __init__(self, path: Path, clock: Callable[[], datetime], *, replaced: Callable[[], None]) -> None:
        """replaced: called where another file stands at `path` than before."""
        self.path = path
        self._clock = clock
        self._replaced = replaced
        self._lock = threading.RLock()
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, ...] | None = None
        self._fallback_key = os.urandom(32)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """The prompt path's connection, read-only, for one caller at a time."""
        with self._lock, self.watched():
            if self._connection is not None and _identity(self.path) != self._file:
                self._connection.close()
                self._connection = None
                self._replaced()
            if self._connection is None:
                self._connection = db.connect(self.path, readonly=True, busy_seconds=db.QUICK_BUSY_SECONDS)
                self._file = _identity(self.path)
            yield self._connection

    @contextmanager
    def apart(self) -> Iterator[apsw.Connection]:
        """A connection of its own, read-only, for what takes its time: no prompt waits for it."""
        with self.watched(), db.opened(self.path, readonly=True, busy_seconds=db.QUICK_BUSY_SECONDS) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """A connection for one writer, closed behind it."""
        with self.watched():
            if not db.is_there(self.path):  # somebody took it away under a process that goes on
                for line in recovery.ensure(self.path, self._clock):
                    log.warning("%s", line)
            with db.opened(self.path) as connection:
                db.refuse_newer(connection, self.path, migrations.LATEST)  # another version may have come meanwhile
                yield connection

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Damage that somebody meets is noted."""
        try:
            with db.explained(self.path):
                yield
        except DatabaseDamaged:
            recovery.suspect(self.path)
            raise

    def changes(self) -> tuple[int, ...]:
        """A mark that is another one whenever anybody may have changed what the database holds."""
        with self.reading() as connection:
            return (*(self._file or ()), connection.pragma("data_version"))

    def secret(self) -> bytes:
        """The key of tombstones and hashes. Raises DatabaseUnwritable where there is none and none can be made."""
        copy.finish_key_change(self.path)  # of a restore that was killed: its key is not this database's
        return keyfile.secret(keyfile.key_path(self.path))

    def key(self) -> bytes:
        """The secret, on the prompt path: a block is no reason to fail, and any number that nobody knows will do."""
        try:
            return self.secret()
        except DatabaseUnwritable as failed:
            log.warning("key_of_this_process reason=%s", failed)
            return self._fallback_key


def _identity(path: Path) -> tuple[int, ...] | None:
    """What changes when an open connection no longer shows the file: another file, or, where it is read without locks
    because no file can be made beside it, any change at all."""
    try:
        status = path.stat()
    except OSError:
        return None
    if os.access(path.parent, os.W_OK):
        return status.st_dev, status.st_ino
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, path.with_name(path.name + "-wal").exists()
