"""Reading another program's SQLite database: one read transaction a call, and not a byte beside it or in it.

What always holds: the file is opened for reading alone; what fails says which of the four failures it is; nothing is kept
but which file is in WAL mode.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import apsw

from clawmark.errors import SourceBusy, SourceCorrupt, SourceDrift, SourceError

BUSY_MS: Final = 2_000

_Identity = tuple[int, int, int, int]


_wal_modes: dict[tuple[int, int], tuple[_Identity, bool]] = {}
_looking = Lock()


def _is_in_wal_mode(path: Path, identity: _Identity) -> bool:
    """Looked up once in this process until the file changes: closing it drops the locks that SQLite holds on it in
    another thread."""
    with _looking:
        known = _wal_modes.get(identity[:2])
        if known is None or known[0] != identity:
            with open(path, "rb") as file:
                known = _wal_modes[identity[:2]] = (identity, file.read(20)[18:] == b"\x02\x02")
        return known[1]


@dataclass(frozen=True, slots=True)
class ForeignDatabase:
    """The file at `path`, which `host` writes.

    advice     what a person can do about a form that nobody knows
    is_shared  a file that cannot be opened just now is held, as far as anybody can tell: SourceBusy, not SourceError
    """

    path: Path
    host: str
    advice: str = ""
    is_shared: bool = False

    @contextmanager
    def opened(self) -> Iterator[apsw.Connection]:
        """One read transaction. Raises what a caller can act on, whichever step failed."""
        alone = self._at_rest()
        try:
            connection = apsw.Connection(
                f"{self.path.absolute().as_uri()}?{'immutable=1' if alone else 'mode=ro'}",
                flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
            )
            try:
                connection.set_busy_timeout(BUSY_MS)
                connection.execute("PRAGMA query_only = 1")
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.close(True)
            error: apsw.Error | None = None
        except apsw.Error as failed:
            error = failed
        except UnicodeDecodeError as failed:
            raise SourceDrift(
                f"{self.path} names something in bytes that are no text. {self.advice}".rstrip()
            ) from failed
        if alone is not None and self._at_rest() != alone:
            raise SourceBusy(f"{self.path} was opened by {self.host} just now; try again") from error
        if error is not None:
            raise self._failure(error) from error

    def _at_rest(self) -> _Identity | None:
        """What tells a database that nobody has open from the same one later; None when somebody may have it open.

        A database in WAL mode without a -wal file is at rest. Opened in the ordinary way, even for reading alone, it
        would get two new files beside it from us; as immutable it gets none, and an unwritable folder is no obstacle.
        """
        try:
            found = os.stat(self.path)
            if os.path.exists(f"{self.path}-wal") or os.path.exists(f"{self.path}-journal"):
                return None
            identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            return identity if _is_in_wal_mode(self.path, identity) else None
        except OSError:
            return None

    def _failure(self, error: apsw.Error) -> SourceError:
        path = self.path
        if isinstance(error, apsw.BusyError | apsw.LockedError | apsw.SchemaChangeError):
            return SourceBusy(f"{path} is held by another process ({error}); try again")
        if isinstance(error, apsw.NotADBError | apsw.CorruptError):
            return SourceCorrupt(
                f"{path} is damaged ({error}). It was left untouched: stop OpenClaw and restore it from a backup."
            )
        if isinstance(error, apsw.SQLError):
            return SourceDrift(
                f"{path} has a form that this version of clawmark does not know ({error}). {self.advice}".rstrip()
            )
        if self.is_shared and isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError):
            return SourceBusy(
                f"{path} cannot be opened now ({error}); try again, and check the permissions of it and its folder if it "
                "stays so"
            )
        return SourceError(f"{path} cannot be read ({error}); check its permissions, then try again")
