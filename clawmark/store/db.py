"""Connections and the one transaction.

The file is made under the lease, whole or not at all: an existing file without our schema is damage or somebody else's,
never a new database. Each connection sets its busy timeout first and checks what it set; `transaction` is the only place
that begins, commits and rolls back, and it writes to no file that meanwhile lost its name.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import logging
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
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

CHECKPOINT_SECONDS = 0.25
"""Emptying the log keeps every writer out while it waits for readers. The next one tries again."""

PATIENCE_SECONDS = 1.0
"""A longer wait is said aloud."""

LOCK_BYTES = 20
"""More than any number of a process has."""

log = logging.getLogger("clawmark")

REMEDY = " The next sync sets it aside under another name and rebuilds it; nothing is deleted."
"""What happens about damage."""

UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)
"""What SQLite says of damage. A disk that fails is another matter: then nothing moves."""

Rows = list[tuple[Any, ...]]


Parameters = Mapping[str, Any] | Sequence[Any]


def rows(connection: apsw.Connection, sql: str, parameters: Parameters = ()) -> Rows:
    """All rows of one statement. Fetched to the end, since apsw runs a statement only as far as it is drained."""
    try:
        return connection.execute(sql, parameters).fetchall()
    except UnicodeDecodeError as error:
        raise _undecodable(error) from error


def each(connection: apsw.Connection, sql: str, parameters: Parameters = ()) -> Iterator[tuple[Any, ...]]:
    """The rows of one statement as they come, for more than should be held at once."""
    try:
        yield from connection.execute(sql, parameters)
    except UnicodeDecodeError as error:
        raise _undecodable(error) from error


def time_of(text: Any) -> datetime:
    """A time as it is stored. What is none is damage like any other, and SQLite does not notice it."""
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise apsw.CorruptError("a time in it is none") from error
    if at.tzinfo is None:
        raise apsw.CorruptError("a time in it has no offset")
    return at


def _undecodable(error: UnicodeDecodeError) -> apsw.Error:
    """Damage like any other. Told where rows are read: further up a source's text could be meant."""
    return apsw.CorruptError(f"a text in it is no UTF-8: {error.reason}")


def connect(
    path: Path, *, readonly: bool = False, leave_no_trace: bool = False, busy_seconds: float = BUSY_SECONDS
) -> apsw.Connection:
    """A connection to an existing database with our pragmas on. `open_database` makes and checks it first.

    leave_no_trace: for a quick look. A reader of a database in WAL mode makes two files beside it; where there are none,
    nobody has it open, and it can be read as it is.
    """
    files.refuse_planted_logs(path)
    has_log, has_journal = (path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal"))
    can_write = os.access(path.parent, os.W_OK)
    name, flags = str(path), apsw.SQLITE_OPEN_READONLY
    if not readonly or (has_journal and can_write):
        # What a writer without a write-ahead log left half done must be taken back before anything can be read.
        flags = apsw.SQLITE_OPEN_READWRITE
    elif not (has_log or has_journal) and (leave_no_trace or not can_write):
        # Where no file can be made, nobody can write either.
        name, flags = f"{path.absolute().as_uri()}?immutable=1", flags | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(name, flags=flags)
    try:
        connection.set_busy_timeout(int(busy_seconds * 1000))
        if readonly:
            _pragma(connection, "query_only", "ON", 1)
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


@contextmanager
def opened(
    path: Path, *, readonly: bool = False, leave_no_trace: bool = False, busy_seconds: float = BUSY_SECONDS
) -> Iterator[apsw.Connection]:
    """A connection as `connect` makes it, closed behind the caller."""
    connection = connect(path, readonly=readonly, leave_no_trace=leave_no_trace, busy_seconds=busy_seconds)
    try:
        yield connection
    finally:
        connection.close()


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
        with opened(path, readonly=True, leave_no_trace=True, busy_seconds=QUICK_BUSY_SECONDS) as connection:
            version = schema_version(connection, path)
        _refuse_newer(path, version, latest)
        if version < 2:
            raise DatabaseError(f"{path} has schema {version}, written by the TypeScript clawmark; left unchanged.")
        if version < latest:
            with opened(path) as connection, transaction(connection, path):
                migrate(connection)


def refuse_newer(connection: apsw.Connection, path: Path, latest: int) -> None:
    """Raise DatabaseNewer where a later clawmark has brought the file up to date since this process opened it."""
    found = rows(connection, "SELECT max(version) FROM schema_version")
    _refuse_newer(path, int(found[0][0] or 0), latest)


def _refuse_newer(path: Path, version: int, latest: int) -> None:
    if version > latest:
        raise DatabaseNewer(
            f"{path} has schema {version}; this clawmark knows up to {latest}. Upgrade clawmark; "
            "the file was left unchanged."
        )


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

    A log without its database would be replayed into the new one: it gets another name, never deleted.
    """
    for suffix in files.COMPANIONS:
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
    for suffix in ("", *files.COMPANIONS):  # of one that was killed
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    try:
        os.close(files.create(draft))
        with explained(draft), opened(draft) as connection:
            with transaction(connection, draft):
                fill(connection)
            if not use_log(connection):
                raise DatabaseUnwritable(
                    f"{path.parent} does not allow a write-ahead log; keep the database on a local disk."
                )
            checkpoint(connection)
    except DatabaseDamaged as damage:  # not the database's: nothing must be rebuilt because of it
        raise DatabaseUnwritable(f"{draft}: a new database came out damaged; check the disk.") from damage
    return draft


def uses_log(connection: apsw.Connection) -> bool:
    """Whether the file is in WAL mode: what its header says, since a connection of a quick look answers `delete` always.

    Read through SQLite's own descriptor: closing another one would drop the locks that this process holds on the file.
    """
    _, versions = connection.read("main", 0, 18, 2)
    return versions == b"\2\2"


def use_log(connection: apsw.Connection) -> bool:
    """Bring the file to WAL mode, in which readers and the writer do not wait for each other; whether it is."""
    return rows(connection, "PRAGMA journal_mode = WAL") == [("wal",)]


def is_there(path: Path) -> bool:
    """Whether a file with something in it stands at `path`. Raises DatabaseForeign for what is no file at all."""
    with system_explained(path):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return False
    if not stat.S_ISREG(status.st_mode):
        raise DatabaseForeign(f"{path} is no file; name one in CLAWMARK_DB_PATH. It was left as it is.")
    return status.st_size > 0


@contextmanager
def lease(path: Path, wait_seconds: float) -> Iterator[None]:
    """The right to run jobs on this database, held by one process at a time and freed by the kernel at a kill.

    Waits its turn up to `wait_seconds`, then raises DatabaseBusy naming the holder. Raises DatabaseForeign where
    another program's lock file has that name. For a path where a database of ours stands, or none.
    """
    with system_explained(_lock_of(path)):
        if lock_says(path) is None:
            raise DatabaseForeign(
                f"{_lock_of(path)} is not clawmark's but another program's. It was left as it is; name another file in "
                "CLAWMARK_DB_PATH."
            )
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
        with contextlib.suppress(OSError):  # a full disk: the number only tells others whom they wait for
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)  # closing frees the lock


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def lock_says(path: Path) -> str | None:
    """The number of the last holder of the lease, "" where there was none; None for a file that is no lock of ours."""
    content = files.read(_lock_of(path), LOCK_BYTES + 1) or b""
    return content.decode() if re.fullmatch(rb"[0-9]{0,%d}" % LOCK_BYTES, content) else None


def _written_in(handle: int) -> str:
    return os.pread(handle, LOCK_BYTES, 0).decode("ascii", "replace").strip()


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
        raise files.told(error, path) from error


def _translated(error: apsw.Error, path: Path) -> DatabaseError:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        holder = _holder(path)
        return DatabaseBusy(f"{path} is held by {f'process {holder}' if holder else 'another process'}; try again.")
    if isinstance(error, apsw.NotADBError):
        return DatabaseDamaged(f"{path} is not a SQLite database: it is damaged.{REMEDY}")
    if isinstance(error, apsw.CorruptError) or (isinstance(error, apsw.SQLError) and "no such table" in str(error)):
        return DatabaseDamaged(f"{path} is damaged ({error}).{REMEDY}")
    if isinstance(error, apsw.FullError):
        return DatabaseUnwritable(
            f"{path} could not be written: the disk is full ({_free(path)}). Nothing was lost; make room."
        )
    if isinstance(error, apsw.IOError):
        why = "disk I/O error" if "not an error" in str(error) else error  # what SQLite says where a copy fails
        return DatabaseUnwritable(f"{path} could not be read or written ({why}; {_free(path)}). Check the disk.")
    if isinstance(error, apsw.CantOpenError) and not os.path.lexists(path):
        return DatabaseUnwritable(f"{path} is gone: it was moved or deleted. The next sync makes a new one.")
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
    if not _has_log(connection):
        return True
    patience = connection.pragma("busy_timeout")
    connection.set_busy_timeout(int(CHECKPOINT_SECONDS * 1000))
    try:
        ((busy, _, _),) = rows(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.set_busy_timeout(patience)
    return not busy


def _has_log(connection: apsw.Connection) -> bool:
    try:
        return os.stat(connection.filename_wal).st_size > 0
    except FileNotFoundError:
        return False
