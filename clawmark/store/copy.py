"""Whole copies of a database: built beside their place, checked, then put there under a name that nobody had; and the
other way round, a copy that takes the place of a database in use, with the key that its tombstones belong to.

What always holds: a copy is the owner's alone from its first byte, is one file with no log beside it, and appears whole
or not at all. No file is overwritten and no link is followed. A copy that was cut short is a `.part`, locked while
somebody still works on it, and removed by whoever finds it free; a copy on its way into a database's place is
`.restoring`, and the lease says whether somebody still works on that. Nothing is removed but under a name that no person
can have given a copy: `is_reserved` keeps them from it.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import re
import secrets as entropy
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import keys
from clawmark.errors import DatabaseBusy, DatabaseDamaged, DatabaseUnwritable, UsageError
from clawmark.store import check, cursors, files, keyfile, migrations
from clawmark.store.db import (
    BUSY_SECONDS,
    QUICK_BUSY_SECONDS,
    checkpoint,
    each,
    explained,
    is_there,
    lease,
    opened,
    rows,
    schema_version,
    system_explained,
    use_log,
)

PART, RESTORING, OLD_KEY = ".part", ".restoring", ".key.old"

_PART_END = re.compile(r"\.[0-9a-f]{8}" + re.escape(PART))
_RESERVED = re.compile(
    ".+(?:"
    + "|".join(re.escape(end) for end in (*files.BESIDE, RESTORING, OLD_KEY))
    + f"|{_PART_END.pattern}"
    + r"|\.(?:damaged|rebuilt|orphan|facts|replaced|schema-1)-.*)",
    re.IGNORECASE | re.DOTALL,
)

_READING = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS)
"""Failures of a disk that are no failures to write."""


def is_reserved(name: str) -> bool:
    """Whether a file of this name would be taken, beside some memory, for one of clawmark's or SQLite's own: removed,
    renamed or read as what it is not."""
    return _RESERVED.fullmatch(name) is not None


@contextmanager
def copying(source: Path, target: Path) -> Iterator[None]:
    """SQLite's errors as ours: what cannot be written is the target's fault, all else the source's."""
    with explained(source):
        try:
            yield
        except (apsw.FullError, apsw.IOError) as failed:
            if getattr(failed, "extendedresult", None) in _READING:  # which apsw's types do not know
                raise
            with explained(target):
                raise


def copy_database(source: Path, target: Path, *, at_rest: bool = False) -> None:
    """Copy a database that may be in use to `target`, where no file is yet.

    at_rest: nobody has `source` open, so that it can be read without making files beside it.
    Raises UsageError when `target` is there, DatabaseDamaged when `source` is damaged: then there is no copy.
    """
    with copying(source, target), system_explained(target), _draft(target) as (part, _):
        with opened(source, readonly=True, leave_no_trace=at_rest) as reader:
            rows(reader, "BEGIN")
            expected = _counts(reader)  # opens the snapshot that is then copied
            _copy_pages(reader, part, target)
        _check(part, source, expected)


def _copy_pages(reader: apsw.Connection, part: Path, target: Path) -> None:
    writer = apsw.Connection(str(part), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with writer.backup("main", reader, "main") as backup:
            backup.step(-1)
        # The copy of a file in WAL mode is in WAL mode too, and would make two files beside it at the first look.
        if rows(writer, "PRAGMA journal_mode = DELETE") != [("delete",)]:
            raise DatabaseUnwritable(f"{target} could not be made one file.")
    finally:
        writer.close()


def _check(part: Path, source: Path, expected: dict[str, int]) -> None:
    with opened(part, readonly=True) as copy:
        found = check.pages(copy)
        if found:
            raise DatabaseDamaged(f"{source} is damaged ({found[0]}), so no copy was made. It was left unchanged.")
        if _counts(copy) != expected:
            raise DatabaseDamaged(f"a copy of {source} did not hold the same rows; it was removed. Check the disk.")


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
    remove_parts(target)
    part = target.with_name(f"{target.name}.{entropy.token_hex(4)}{PART}")
    handle = files.create(part)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield part, handle
        os.fsync(handle)
        try:
            files.give_name(part, target)  # unlike a rename, it fails where something is
        except FileExistsError:
            raise UsageError(f"{target} is there already and was left as it is; name another file.") from None
    finally:
        discard(part)
        os.close(handle)
    files.sync_folder(target.parent)


def restoring(path: Path) -> Path:
    """Where a copy stands that is to take the place of `path`."""
    return path.with_name(path.name + RESTORING)


def remove_leftovers(path: Path) -> None:
    """Remove what backups and restores that were killed left beside `path`, which may hold what was forgotten since.

    Belongs under the lease: who restores holds it, so that no restore is going on.
    """
    remove_parts(path)
    discard(restoring(path))
    settle_key(path)
    key = keyfile.key_path(path)
    key.with_name(key.name + ".new").unlink(missing_ok=True)


def remove_parts(path: Path) -> None:
    """Remove the parts of copies of `path`, or beside it, that were cut short; those somebody works on stay."""
    for part in _parts(path):
        try:
            handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # gone meanwhile, or a link that is not ours
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            discard(part)
        except OSError:
            continue  # somebody's work, or nothing that we may remove
        finally:
            os.close(handle)


def _parts(path: Path) -> list[Path]:
    """`<path>.<8 hex>.part`, and the same of a copy whose name begins with that of `path`."""
    if not path.parent.is_dir():
        return []
    is_part = re.compile(re.escape(path.name) + r"(?:\..+)?" + _PART_END.pattern, re.DOTALL)
    return [path.with_name(name) for name in os.listdir(path.parent) if is_part.fullmatch(name)]


def discard(copy: Path) -> None:
    """Remove a copy that is not needed, and what SQLite left beside it."""
    for suffix in (*files.COMPANIONS, ""):  # itself last: as long as it is there, it is found
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)


# --- a copy in the place of a database --------------------------------------------------------------------------------


@contextmanager
def overwriting(target: Path, draft: Path, busy_seconds: float = BUSY_SECONDS) -> Iterator[None]:
    """Give the database `target` the content of `draft`, as `draft` is at the end, in one transaction.

    `target` cannot be written by anybody else meanwhile, and can be read. Renaming another file over a database in use
    would be quicker, and leave who has it open with a write-ahead log that belongs to neither.
    """
    with (
        explained(target),
        system_explained(target),
        opened(target, busy_seconds=busy_seconds) as writer,
        opened(draft, readonly=True) as reader,
    ):
        with writer.backup("main", reader, "main") as backup:
            backup.step(0)  # copies nothing, and takes the lock for writing
            yield
            backup.step(-1)
        empty_log(writer)


def empty_log(connection: apsw.Connection) -> None:
    """Move the write-ahead log into the file; while a reader holds it back, that is left to the next writer."""
    connection.set_busy_timeout(int(QUICK_BUSY_SECONDS * 1000))
    checkpoint(connection)


def exchange(target: Path, draft: Path, aside: Path) -> None:
    """Put `draft` in the place of a file that is no sound database, or of none; that and its log are called `aside` then.

    There is a file at every moment, where one can have two names. Belongs under the lease.
    """
    with explained(draft), system_explained(target):
        with opened(draft) as connection:
            use_log(connection)
            checkpoint(connection)
        if os.path.lexists(target):
            files.give_name(target, aside)
        for suffix in files.COMPANIONS:  # before the new file comes: its readers would take the old log for its own
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
            with opened(draft) as connection:
                rows(connection, f"PRAGMA page_size = {sizes[1]:d}")
                rows(connection, "VACUUM")


def _page_size(path: Path) -> int:
    with opened(path, readonly=True, leave_no_trace=True) as connection:
        return int(connection.pragma("page_size"))


def is_sound(path: Path) -> bool:
    """Whether SQLite finds no damage, so that it can be replaced in use. Errors of other kinds are raised.

    Rows that contradict each other are no hindrance: what was forgotten can be read, and all of them are replaced.
    """
    try:
        with explained(path), opened(path, readonly=True) as connection:
            schema_version(connection, path)
            return not check.pages(connection)
    except DatabaseDamaged:
        return False


# --- whether a copy can be a memory -----------------------------------------------------------------------------------


def unfit(connection: apsw.Connection, now: datetime) -> list[str]:
    """What keeps a copy that was brought up to the newest schema from being a memory, each in a few words.

    Whoever made the file may have put anything into it: a trigger would run with our writes, a row that nobody can read
    would stop every command, a name of two lines would write a line of a block.
    """
    return _schema_faults(connection, now) or check.faults(connection) or _name_faults(connection)


def _schema_faults(connection: apsw.Connection, now: datetime) -> list[str]:
    """Where the schema differs from a new database's. One that was migrated went through the same steps."""
    new = apsw.Connection(":memory:")
    try:
        migrations.migrate(new, now)
        ours, found = _schema(new), _schema(connection)
    finally:
        new.close()
    faults = []
    for kind, name in sorted(ours.keys() | found.keys()):
        what = f"the {kind} {name[:100]!r}"
        if (kind, name) not in found:
            faults.append(f"{what} is missing")
        elif (kind, name) not in ours:
            if not (name.startswith("sqlite_") and kind in ("table", "index")):  # of ANALYZE, say
                faults.append(f"{what} is not clawmark's; drop it there and try again")
        elif found[kind, name] != ours[kind, name]:
            faults.append(f"{what} is not as clawmark makes it")
    return faults


def _schema(connection: apsw.Connection) -> dict[tuple[str, str], tuple[str, str]]:
    """Kind and name → table and SQL of everything in the file, without differences of blanks and case; but for indexes
    that SQLite makes for a table on its own."""
    found = rows(
        connection,
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master"
        " WHERE NOT (type = 'index' AND sql IS NULL AND name GLOB 'sqlite_autoindex_*')",
    )
    return {(kind, name): (table, " ".join(sql.split()).lower()) for kind, name, table, sql in found}


def _name_faults(connection: apsw.Connection) -> list[str]:
    """Facts whose key or scope is not one line."""
    return [
        f"the fact {key[: keys.KEY_LENGTH]!r} has a key or a scope that is none"
        for key, scope in each(connection, "SELECT key, scope FROM facts")
        if not key.isprintable() or keys.scope_fault(scope) is not None
    ]


# --- the key of a database that another one replaces ------------------------------------------------------------------

KEY_NOTE = "key:fingerprint"
"""The cursor in a restored database that says which key its tombstones belong to."""


def fingerprint(key: bytes) -> str:
    """What tells one key from another, and says nothing of it."""
    return hmac.digest(key, b"clawmark key", "sha256").hex()[:16]


def note_key(connection: apsw.Connection, key: bytes, now: datetime) -> None:
    """Write into a copy which key goes with it. Belongs inside a transaction."""
    cursors.put(connection, KEY_NOTE, fingerprint(key), now)


def noted_key(connection: apsw.Connection) -> str | None:
    """The fingerprint of the key that a restored database needs; None where any will do."""
    return cursors.get(connection, KEY_NOTE)


def change_key(path: Path, key: bytes) -> None:
    """Give the database `path` the key of the copy that is about to take its place; `settle_key` says afterwards
    whether it did. Belongs under the lease.

    The key comes first, while nobody can write: who waits for the database finds both changed.
    """
    place, old = keyfile.key_path(path), keyfile.known(keyfile.key_path(path))
    draft = place.with_name(place.name + ".new")
    if old == key:
        return
    if old is not None:
        files.replace(_old_key(path), old, draft)
    files.replace(place, key, draft)


def settle_key(path: Path) -> None:
    """Complete a change of key whose database has come, and take back one whose database has not. Nothing where no
    change is under way. Belongs under the lease."""
    kept, place = _old_key(path), keyfile.key_path(path)
    with system_explained(kept):
        if not os.path.lexists(kept):
            return
        keyfile.known(kept)  # refuses a link, or another user's file
        key = keyfile.known(place)
        if key is not None and _noted_key(path) == fingerprint(key):
            kept.unlink()
        else:
            os.rename(kept, place)
        files.sync_folder(path.parent)


def finish_key_change(path: Path) -> None:
    """`settle_key` for whoever opens a database without the lease. A restore that is under way does it itself, and what
    cannot be written now is left to a later start: it can still be read."""
    if os.path.lexists(_old_key(path)):
        with suppress(DatabaseBusy, DatabaseUnwritable), lease(path, 0):
            settle_key(path)


def _old_key(path: Path) -> Path:
    """Where the key of `path` stands while another one takes its place."""
    return path.with_name(path.name + OLD_KEY)


def _noted_key(path: Path) -> str | None:
    """The fingerprint that the database holds; None also where it cannot be read: then it is not the restored one."""
    if not is_there(path):
        return None
    with explained(path):
        try:
            with opened(path, readonly=True, leave_no_trace=True) as connection:
                return noted_key(connection)
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
            return None
