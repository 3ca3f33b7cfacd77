"""Connections and the one transaction.

The file is made under the lease, whole or not at all: an existing file without our schema is damage or somebody else's,
never a new database. Each connection sets its busy timeout first and checks what it set; `transaction` is the only place
that begins, commits and rolls back, and it writes to no file that meanwhile lost its name.
"""

from __future__ import annotations

import ctypes
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
    DatabaseForeign,
    DatabaseNewer,
    DatabaseUnwritable,
)
from clawmark.store import files

APPLICATION_ID = 0x434C4D4B  # "CLMK"
BUSY_SECONDS = 10.0
QUICK_BUSY_SECONDS = 1.0
"""For a look on the way to a prompt."""

PATIENCE_SECONDS = 1.0
"""A longer wait is said aloud."""

log = logging.getLogger("clawmark")

REMEDY = " The next sync sets it aside under another name and rebuilds it; nothing is deleted."
"""What happens about damage."""

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

    Raises DatabaseDamaged, DatabaseForeign, DatabaseNewer, DatabaseBusy, DatabaseUnwritable; the file is left as it was
    in each case. `recovery.ensure` is this and what is done about damage.
    """
    with explained(path), system_explained(path):
        if not is_there(path):
            files.make_folder(path.parent)
            with lease(path, BUSY_SECONDS):
                if not is_there(path):  # else another process was first
                    make(path, migrate)
        connection = connect(path, readonly=True, leave_no_trace=True, busy_seconds=QUICK_BUSY_SECONDS)
        try:
            version = schema_version(connection, path)
        finally:
            connection.close()
        if version > latest:
            raise DatabaseNewer(
                f"{path} has schema {version}; this clawmark knows up to {latest}. Upgrade clawmark; "
                "the file was left unchanged."
            )
        if version < 2:
            raise DatabaseError(f"{path} has schema {version}, written by the TypeScript clawmark; left unchanged.")
        if version < latest:
            connection = connect(path)
            try:
                with transaction(connection, path):
                    migrate(connection)
            finally:
                connection.close()


def schema_version(connection: apsw.Connection, path: Path) -> int:
    """The number in `schema_version`, the authority; 1 is the TypeScript clawmark's.

    Raises DatabaseDamaged for a file of ours that lost its schema, DatabaseForeign for one that was never ours.
    """
    tables = {row[0] for row in rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    application = connection.pragma("application_id")
    if "schema_version" not in tables and (application == APPLICATION_ID or not (application or tables)):
        raise DatabaseDamaged(f"{path} exists but holds no clawmark schema: it is damaged.{REMEDY}")
    found: Rows = []
    if rows(connection, "SELECT 1 FROM pragma_table_info('schema_version') WHERE name = 'version'"):
        found = rows(connection, "SELECT max(version) FROM schema_version")
    version = found[0][0] if found else None
    if application != APPLICATION_ID and not (version == 1 and "facts" in tables):
        raise DatabaseForeign(
            f"{path} is not a clawmark database but another program's. It was left unchanged; name another file in "
            "CLAWMARK_DB_PATH."
        )
    if not isinstance(version, int) or version < 1:
        raise DatabaseDamaged(f"{path} does not say which schema it has: it is damaged.{REMEDY}")
    return version


def make(path: Path, migrate: Callable[[apsw.Connection], None]) -> None:
    """A new database in a place where there is none. Belongs under the lease.

    A write-ahead log without its database would be replayed into the new one: it gets another name, never deleted.
    """
    for suffix in ("-wal", "-shm"):
        orphan = path.with_name(path.name + suffix)
        if orphan.exists():
            os.rename(orphan, path.with_name(f"{path.name}.orphan-{orphan.stat().st_mtime_ns}{suffix}"))
    os.rename(build(path, migrate), path)
    files.sync_folder(path.parent)


def build(path: Path, fill: Callable[[apsw.Connection], None]) -> Path:
    """A whole database beside `path`, to be moved there: a kill leaves either no database or a complete one.

    `fill` runs in one transaction. Belongs under the lease.
    """
    draft = path.with_name(path.name + ".new")
    for suffix in ("", "-journal", "-wal", "-shm"):  # of one that was killed
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    os.close(files.create(draft))
    connection = connect(draft)
    try:
        with transaction(connection, draft):
            fill(connection)
        if rows(connection, "PRAGMA journal_mode = WAL") != [("wal",)]:
            raise DatabaseUnwritable(
                f"{path.parent} does not allow a write-ahead log; keep the database on a local disk."
            )
        checkpoint(connection)
    finally:
        connection.close()
    return draft


def is_there(path: Path) -> bool:
    """Whether a file with something in it stands at `path`. Raises DatabaseUnwritable for what is no file at all."""
    if not os.path.lexists(path):
        return False
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise DatabaseUnwritable(f"{path} is no file; name one in CLAWMARK_DB_PATH. It was left as it is.")
    return status.st_size > 0


@contextmanager
def lease(path: Path, wait_seconds: float) -> Iterator[None]:
    """The right to run jobs on this database, held by one process at a time and freed by the kernel at a kill.

    Waits its turn up to `wait_seconds`, then raises DatabaseBusy naming the holder.
    """
    with system_explained(path):
        handle = files.open_or_create(_lock_of(path))
    try:
        deadline = time.monotonic() + wait_seconds
        said = False
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = _written_in(handle) or "unknown"
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


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _written_in(handle: int) -> str:
    return os.pread(handle, 20, 0).decode("ascii", "replace").strip()


def _holder(path: Path) -> str | None:
    """The number of another process that holds the lease now."""
    try:
        handle = os.open(_lock_of(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        written = _written_in(handle)
        return written if written != str(os.getpid()) else None
    finally:
        os.close(handle)
    return None


@contextmanager
def transaction(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """One `BEGIN IMMEDIATE` … `COMMIT`; rolled back on anything raised inside. Never hold it over network or model calls.

    Raises DatabaseBusy when the file was set aside or replaced since it was opened: what is written there would be lost.
    """
    with explained(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _has_moved(connection):
                raise DatabaseBusy(f"{path} was set aside or replaced meanwhile; try again.")
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _has_moved(connection: apsw.Connection) -> bool:
    """Whether the open file no longer has the name it was opened under."""
    moved = ctypes.c_int(0)
    connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


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
        holder = _holder(path)
        return DatabaseBusy(f"{path} is held by {f'process {holder}' if holder else 'another process'}; try again.")
    if isinstance(error, apsw.NotADBError):
        return DatabaseDamaged(f"{path} is not a SQLite database: it is damaged.{REMEDY}")
    if isinstance(error, apsw.CorruptError):
        return DatabaseDamaged(f"{path} is damaged ({error}).{REMEDY}")
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
