"""Connections and the one transaction.

The file is made under the lease, whole or not at all: an existing file without our schema is damage to report, never a
new database. Each connection sets its busy timeout first and checks what it set; `transaction` is the only place that
begins, commits and rolls back.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from clawmark.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseError,
    DatabaseNewer,
    DatabaseUnwritable,
)

APPLICATION_ID = 0x434C4D4B  # "CLMK"
BUSY_SECONDS = 10.0
QUICK_BUSY_SECONDS = 1.0
"""For a look on the way to a prompt."""

PATIENCE_SECONDS = 1.0
"""A longer wait is said aloud."""

log = logging.getLogger("clawmark")

Rows = list[tuple[Any, ...]]


def rows(connection: apsw.Connection, sql: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> Rows:
    """All rows of one statement. Fetched to the end, since apsw runs a statement only as far as it is drained."""
    return connection.execute(sql, parameters).fetchall()


def connect(
    path: Path, *, readonly: bool = False, leave_no_trace: bool = False, busy_seconds: float = BUSY_SECONDS
) -> apsw.Connection:
    """A connection to an existing database with our pragmas on. `open_database` makes and checks it first.

    leave_no_trace: for a quick look. A reader of a database in WAL mode makes two files beside it; where there are none,
    nobody has it open, and it can be read as it is.
    """
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE
    name = str(path)
    at_rest = not path.with_name(path.name + "-wal").exists()
    if readonly and at_rest and (leave_no_trace or not os.access(path.parent, os.W_OK)):
        # Where no file can be made, nobody can write either.
        name, flags = f"{path.absolute().as_uri()}?immutable=1", flags | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(name, flags=flags)
    try:
        connection.set_busy_timeout(int(busy_seconds * 1000))
        _pragma(connection, "foreign_keys", "ON", 1)
        _pragma(connection, "temp_store", "MEMORY", 2)  # a sorter's spill would put text into a file of its own
        if not readonly:
            _pragma(connection, "synchronous", "FULL", 2)
            _pragma(connection, "secure_delete", "ON", 1)
            rows(connection, "PRAGMA journal_size_limit = 16777216")
            rows(
                connection, "PRAGMA wal_autocheckpoint = 4000"
            )  # pages of 4 KiB: fewer waits for the disk in long passes
            rows(connection, "PRAGMA cache_size = -32768")  # KiB
    except BaseException:
        connection.close()
        raise
    return connection


def _pragma(connection: apsw.Connection, name: str, value: str, expected: int) -> None:
    rows(connection, f"PRAGMA {name} = {value}")
    got = connection.pragma(name)
    if got != expected:
        raise DatabaseError(f"SQLite did not accept {name}={value} (it says {got!r})")


def open_database(path: Path, migrate: Callable[[apsw.Connection], None], latest: int) -> None:
    """Make the file when there is none, bring an older schema up to `latest`, and refuse what is not ours.

    Raises DatabaseDamaged, DatabaseNewer, DatabaseBusy, DatabaseUnwritable; the file is left as it was in each case.
    A file that is as it should be is only read.
    """
    with explained(path), system_explained(path):
        if not _is_there(path):
            _create(path, migrate)
        connection = connect(path, readonly=True, leave_no_trace=True, busy_seconds=QUICK_BUSY_SECONDS)
        try:
            version = schema_version(connection, path)
        finally:
            connection.close()
        if version == latest:
            return
        connection = connect(path)
        try:
            if version > latest:
                raise DatabaseNewer(
                    f"{path} has schema {version}; this clawmark knows up to {latest}. Upgrade clawmark; "
                    "the file was left unchanged."
                )
            if version < latest:
                if version < 2:
                    raise DatabaseDamaged(
                        f"{path} has schema {version}, written by the TypeScript clawmark, which this version cannot "
                        "upgrade yet. Name another file in CLAWMARK_DB_PATH; this one was left unchanged."
                    )
                with transaction(connection, path):
                    migrate(connection)
        finally:
            connection.close()


def schema_version(connection: apsw.Connection, path: Path) -> int:
    """The number in `schema_version`, the authority. Raises DatabaseDamaged when the file holds no schema of ours."""
    if not rows(connection, "SELECT 1 FROM sqlite_master WHERE type='table' AND name='schema_version'"):
        raise DatabaseDamaged(
            f"{path} exists but holds no clawmark schema, so it is damaged or somebody else's. It was left unchanged; "
            "move it away or name another file in CLAWMARK_DB_PATH."
        )
    ((version,),) = rows(connection, "SELECT coalesce(max(version), 0) FROM schema_version")
    if version >= 2 and connection.pragma("application_id") != APPLICATION_ID:
        raise DatabaseDamaged(
            f"{path} has a schema_version table but is not a clawmark database. It was left unchanged."
        )
    return int(version)


def _create(path: Path, migrate: Callable[[apsw.Connection], None]) -> None:
    """Build the whole file beside its place and move it there: a kill leaves either no database or a complete one."""
    _make_folder(path.parent)
    with lease(path, BUSY_SECONDS):
        if _is_there(path):
            return  # another process was first
        _set_aside(path)
        draft = path.with_name(path.name + ".new")
        for leftover in (draft, draft.with_name(draft.name + "-journal")):
            leftover.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        os.chmod(draft, 0o600)  # a umask can only take away, but it can take away the owner's own bits
        connection = connect(draft)
        try:
            with transaction(connection, draft):
                migrate(connection)
            if rows(connection, "PRAGMA journal_mode = WAL") != [("wal",)]:
                raise DatabaseUnwritable(
                    f"{path.parent} does not allow a write-ahead log; keep the database on a local disk."
                )
            rows(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
        os.replace(draft, path)
        _sync_directory(path.parent)


def _is_there(path: Path) -> bool:
    """Whether a file with something in it stands at `path`. Raises DatabaseUnwritable for what is no file at all."""
    if not os.path.lexists(path):
        return False
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise DatabaseUnwritable(f"{path} is no file; name one in CLAWMARK_DB_PATH. It was left as it is.")
    return status.st_size > 0


def _make_folder(folder: Path) -> None:
    """Every folder that is missing, each for the owner alone whatever the umask says."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _set_aside(path: Path) -> None:
    """A write-ahead log without its database would be replayed into the new one: it gets another name, never deleted."""
    for suffix in ("-wal", "-shm"):
        orphan = path.with_name(path.name + suffix)
        if orphan.exists():
            os.rename(orphan, path.with_name(f"{path.name}.orphan-{orphan.stat().st_mtime_ns}{suffix}"))


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def lease(path: Path, wait_seconds: float) -> Iterator[None]:
    """The right to run jobs on this database, held by one process at a time and freed by the kernel at a kill.

    Waits its turn up to `wait_seconds`, then raises DatabaseBusy naming the holder.
    """
    with system_explained(path):
        name = path.with_name(path.name + ".lock")
        handle = os.open(name, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + wait_seconds
        said = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip() or "unknown"
                if time.monotonic() >= deadline:
                    raise DatabaseBusy(
                        f"another clawmark (process {holder}) is working on {path}; try again."
                    ) from None
                if not said and time.monotonic() > deadline - wait_seconds + PATIENCE_SECONDS:
                    log.warning("waiting for process %s, which is working on %s", holder, path)
                    said = True
                time.sleep(0.05)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)  # closing frees the lock


@contextmanager
def transaction(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """One `BEGIN IMMEDIATE` … `COMMIT`; rolled back on anything raised inside. Never hold it over network or model calls."""
    with explained(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """SQLite's errors as ours, naming the file and what to do."""
    try:
        yield
    except apsw.Error as error:
        raise _translated(error, path) from error


@contextmanager
def system_explained(path: Path) -> Iterator[None]:
    """The system's errors about our own files as ours. Never around a source or an embedder, whose errors name others."""
    try:
        yield
    except OSError as error:
        raise DatabaseUnwritable(
            f"{path}: {error.strerror or error}; check the path, its permissions and the disk."
        ) from error


def _translated(error: apsw.Error, path: Path) -> DatabaseError:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return DatabaseBusy(f"{path} is held by another process; try again.")
    if isinstance(error, apsw.NotADBError):
        return DatabaseDamaged(f"{path} is not a SQLite database. It was left unchanged; move it away to start anew.")
    if isinstance(error, apsw.CorruptError):
        return DatabaseDamaged(f"{path} is damaged ({error}). It was left unchanged; restore a backup or move it away.")
    if isinstance(error, apsw.FullError | apsw.IOError):
        return DatabaseUnwritable(f"{path} could not be written ({error}; {_free(path)}). Nothing was lost; make room.")
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        return DatabaseUnwritable(f"{path} cannot be opened for writing ({error}); check the path and its permissions.")
    return DatabaseError(f"{path}: {error}")


def _free(path: Path) -> str:
    try:
        return f"{shutil.disk_usage(path.parent).free:,} bytes free"
    except OSError:
        return "free space unknown"


def checkpoint(connection: apsw.Connection) -> bool:
    """Move the whole write-ahead log into the file and empty it. False while a reader's snapshot keeps it back."""
    ((busy, _, _),) = rows(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    return not busy
