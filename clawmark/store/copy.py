"""Whole copies of a database: built beside their place, checked, then put there under a name that nobody had; and the
other way round, a copy that takes the place of a database in use.

What always holds: a copy is the owner's alone from its first byte, is one file with no log beside it, and appears whole
or not at all. No file is overwritten and no link is followed. A copy that was cut short is a `.part`, locked while
somebody still works on it, and removed by whoever finds it free.
"""

from __future__ import annotations

import fcntl
import glob
import itertools
import os
import secrets as entropy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apsw

from clawmark.errors import DatabaseDamaged, DatabaseUnwritable, UsageError
from clawmark.store import files
from clawmark.store.db import (
    BUSY_SECONDS,
    QUICK_BUSY_SECONDS,
    checkpoint,
    connect,
    explained,
    rows,
    schema_version,
    system_explained,
)
from clawmark.store.keyfile import key_path
from clawmark.store.sidecar import newest_event

PART = ".part"
COMPANIONS = ("-journal", "-wal", "-shm")


def copy_database(source: Path, target: Path, *, at_rest: bool = False) -> None:
    """Copy a database that may be in use to `target`, where no file is yet.

    at_rest: nobody has `source` open, so that it can be read without making files beside it.
    Raises UsageError when `target` is there, DatabaseDamaged when `source` is damaged: then there is no copy.
    """
    with explained(source), system_explained(target), _draft(target) as (part, _):
        reader = connect(source, readonly=True, leave_no_trace=at_rest)
        try:
            rows(reader, "BEGIN")
            expected = _counts(reader)  # opens the snapshot that is then copied
            _copy_pages(reader, part, target)
        finally:
            reader.close()
        _check(part, source, expected)


def _copy_pages(reader: apsw.Connection, part: Path, target: Path) -> None:
    writer = apsw.Connection(str(part), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with writer.backup("main", reader, "main") as backup:
            backup.step(-1)
        # The copy of a file in WAL mode is in WAL mode too, and would make two files beside it at the first look.
        if rows(writer, "PRAGMA journal_mode = DELETE") != [("delete",)]:
            raise DatabaseUnwritable(f"{target} could not be made one file.")
    except apsw.FullError:
        with explained(target):  # no room is the target's fault, all else the source's
            raise
    finally:
        writer.close()


def _check(part: Path, source: Path, expected: dict[str, int]) -> None:
    copy = connect(part, readonly=True)
    try:
        found = rows(copy, "PRAGMA integrity_check(1)")
        if found != [("ok",)]:
            raise DatabaseDamaged(f"{source} is damaged ({found[0][0]}), so no copy was made. It was left unchanged.")
        if _counts(copy) != expected:
            raise DatabaseDamaged(f"a copy of {source} did not hold the same rows; it was removed. Check the disk.")
    finally:
        copy.close()


def _counts(connection: apsw.Connection) -> dict[str, int]:
    """Rows of every table that is stored; a virtual one has its rows in those of its module."""
    tables = rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
    quoted = {name: '"' + name.replace('"', '""') + '"' for (name,) in tables}
    return {name: rows(connection, f"SELECT count(*) FROM {table}")[0][0] for name, table in quoted.items()}  # noqa: S608


def write_new(target: Path, data: bytes) -> None:
    """A small file, under the same promises."""
    with system_explained(target), _draft(target) as (_, handle):
        os.write(handle, data)


@contextmanager
def _draft(target: Path) -> Iterator[tuple[Path, int]]:
    """An empty file beside `target`; it becomes `target` when nothing was raised."""
    remove_leftovers(target)
    part = target.with_name(f"{target.name}.{entropy.token_hex(4)}{PART}")
    handle = files.create(part)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield part, handle
        os.fsync(handle)
        try:
            os.link(part, target)  # unlike a rename, it fails where something is
        except FileExistsError:
            raise UsageError(f"{target} is there already and was left as it is; name another file.") from None
    finally:
        _remove(part)
        os.close(handle)
    files.sync_folder(target.parent)


def remove_leftovers(path: Path) -> None:
    """Remove the parts of copies of `path`, or beside it, that were cut short; those somebody works on stay."""
    for name in glob.glob(f"{glob.escape(str(path))}.*{PART}"):
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # gone meanwhile, or a link that is not ours
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(Path(name))
        except OSError:
            continue  # somebody's work, or nothing that we may remove
        finally:
            os.close(handle)


def _remove(part: Path) -> None:
    for suffix in (*COMPANIONS, ""):  # itself last: as long as it is there, it is found
        part.with_name(part.name + suffix).unlink(missing_ok=True)


def dated(path: Path, what: str, now: datetime, suffix: str = "") -> Path:
    """`memory.db.<what>-20261201T120000Z<suffix>` beside `path`, or the next such name that is free with its key's."""
    stem = f"{path.name}.{what}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    for number in itertools.count(1):
        name = path.with_name(f"{stem}{'' if number == 1 else f'-{number}'}{suffix}")
        if not os.path.lexists(name) and not os.path.lexists(key_path(name)):
            return name
    raise AssertionError("numbers do not end")


# --- a copy in the place of a database --------------------------------------------------------------------------------


@contextmanager
def overwriting(target: Path, draft: Path, busy_seconds: float = BUSY_SECONDS) -> Iterator[None]:
    """Give the database `target` the content of `draft`, as `draft` is at the end, in one transaction.

    `target` cannot be written by anybody else meanwhile, and can be read. Renaming another file over a database in use
    would be quicker, and leave who has it open with a write-ahead log that belongs to neither.
    """
    with explained(target), system_explained(target):
        writer = connect(target, busy_seconds=busy_seconds)
        reader = connect(draft, readonly=True)
        try:
            with writer.backup("main", reader, "main") as backup:
                backup.step(0)  # copies nothing, and takes the lock for writing
                yield
                backup.step(-1)
            empty_log(writer)
        finally:
            reader.close()
            writer.close()


def empty_log(connection: apsw.Connection) -> None:
    """Move the write-ahead log into the file; while a reader holds it back, that is left to the next writer."""
    connection.set_busy_timeout(int(QUICK_BUSY_SECONDS * 1000))
    checkpoint(connection)


def exchange(target: Path, draft: Path, aside: Path) -> None:
    """Put `draft` in the place of a file that is no sound database, or of none; that and its log are called `aside` then.

    There is a file at every moment. Belongs under the lease.
    """
    with explained(draft), system_explained(target):
        connection = connect(draft)
        try:
            rows(connection, "PRAGMA journal_mode = WAL")
            checkpoint(connection)
        finally:
            connection.close()
        if os.path.lexists(target):
            os.link(target, aside, follow_symlinks=False)
        for suffix in COMPANIONS:  # before the new file comes: its readers would take the old log for its own
            companion = target.with_name(target.name + suffix)
            if os.path.lexists(companion):
                os.rename(companion, aside.with_name(aside.name + suffix))
        os.rename(draft, target)
        files.sync_folder(target.parent)


def match_page_size(draft: Path, target: Path) -> None:
    """The pages of a database in use cannot change their size, so those of the copy must."""
    with explained(draft):
        sizes = [_page_size(draft), _page_size(target)]
        if sizes[0] != sizes[1]:
            connection = connect(draft)
            try:
                rows(connection, f"PRAGMA page_size = {sizes[1]:d}")
                rows(connection, "VACUUM")
            finally:
                connection.close()


def _page_size(path: Path) -> int:
    connection = connect(path, readonly=True, leave_no_trace=True)
    try:
        return int(connection.pragma("page_size"))
    finally:
        connection.close()


def is_sound(path: Path) -> bool:
    """Whether SQLite finds no damage. Errors of other kinds are raised."""
    try:
        with explained(path):
            connection = connect(path, readonly=True, leave_no_trace=True)
            try:
                schema_version(connection, path)
                return rows(connection, "PRAGMA integrity_check(1)") == [("ok",)]
            finally:
                connection.close()
    except DatabaseDamaged:
        return False


def discard(draft: Path) -> None:
    """Remove a copy that is not needed, and what SQLite left beside it."""
    _remove(draft)


# --- what the database that is replaced knows, and no older copy does -------------------------------------------------


@dataclass(frozen=True, slots=True)
class Present:
    """What must outlive the replacement.

    tombstones     rows: hash, kind, created_at, expires_at
    forgets        scope, key and time of every fact that was forgotten
    live           scope, key and value of every fact that is not
    newest_event   the highest number an event ever had
    generation     of its vectors: memories that hold some in memory tell by another one that these are gone
    """

    tombstones: Sequence[tuple[bytes, str, str, str | None]] = ()
    forgets: frozenset[tuple[str, str, str]] = frozenset()
    live: frozenset[tuple[str, str, str]] = frozenset()
    newest_event: int = 0
    generation: int = 0


def present(connection: apsw.Connection) -> Present:
    ((generation,),) = rows(connection, "SELECT coalesce(max(generation), 0) FROM spaces")
    return Present(
        rows(connection, "SELECT hash, kind, created_at, expires_at FROM tombstones"),
        forgets(connection),
        frozenset(rows(connection, "SELECT scope, key, value FROM facts WHERE is_deleted = 0")),
        newest_event(connection),
        generation,
    )


def both(one: Present, other: Present) -> Present:
    return Present(
        [*one.tombstones, *other.tombstones],
        one.forgets | other.forgets,
        one.live | other.live,
        max(one.newest_event, other.newest_event),
        max(one.generation, other.generation),
    )


def forgets(connection: apsw.Connection) -> frozenset[tuple[str, str, str]]:
    return frozenset(
        rows(
            connection,
            "SELECT scope, memory_key, created_at FROM memory_events"
            " WHERE event_type = 'forget' AND scope IS NOT NULL AND memory_key IS NOT NULL",
        )
    )


def stored_facts(connection: apsw.Connection) -> list[tuple[str, str, str, str]]:
    """Scope, key, value and updated_at of every fact, hidden ones included."""
    return rows(connection, "SELECT scope, key, value, updated_at FROM facts ORDER BY scope, key")


def add_tombstones(connection: apsw.Connection, tombstones: Iterable[tuple[bytes, str, str, str | None]]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO tombstones (hash, kind, created_at, expires_at) VALUES (?, ?, ?, ?)", tombstones
    )


def renew_generations(connection: apsw.Connection, generation: int) -> None:
    """Vectors that somebody holds in memory are of none of these generations."""
    connection.execute("UPDATE spaces SET generation = max(generation, ?) + 1", (generation,))


def number_events_behind(connection: apsw.Connection, newest: int) -> None:
    """The next event gets a higher number than `newest`, which another file has used. Belongs inside a transaction."""
    connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'memory_events'", (newest,))
    if not connection.changes():
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('memory_events', ?)", (newest,))
