"""Opening the database whatever state it is in: made, brought up to date, recovered, or refused.

A damaged file never stops the person and is never deleted: it moves aside under a dated name, with its write-ahead log,
and a new database with the facts and tombstones takes its place. The new one is complete before the old one moves, so a
kill at any moment leaves the damaged file in its place, or the rebuilt one waiting for its name, or all done; the next
start goes on from there. Busy, full, unreadable and forbidden are no damage, and nothing moves because of them.

Facts come from whichever is later and whole, the sidecar or the damaged file; where the later one is in pieces, from
both, and what a tombstone names stays gone.

Opening looks at little. Whoever meets damage while it reads leaves a mark (`suspect`); the next opening looks at the
whole file because of it. SQLite finds damage only on pages that it reads, so every week a pass looks at all of them.

What cannot be read as a database of ours moves only where something shows that it was one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import apsw

from clawmark.errors import DatabaseBusy, DatabaseDamaged, DatabaseError, DatabaseForeign, DatabaseUnwritable
from clawmark.store import carry, check, cursors, db, events, files, keyfile, migrations, sidecar, vectors
from clawmark.store.copy import PART, RESTORING, finish_key_change
from clawmark.store.sidecar import Row
from clawmark.store.tombstones import hashes, is_part, latest

MARKS = (
    ".damaged-", ".rebuilt-", ".orphan-", ".facts-", ".backup-", ".replaced-", ".schema-1-", RESTORING, PART,
)  # fmt: skip
"""What stands in the names of files that were set aside or copied, or of copies that were cut short."""

CHECK_EVERY = timedelta(days=7)
"""A check of the whole file reads 100 MB in well under a second, beside a pass of the jobs that takes longer."""

CHECKED = "check"
"""The cursor that says when the whole file was looked at last."""

NAME = "memory.db"
"""What the file is called where nobody names another one."""

MAGIC = b"SQLite format 3\0"


def ensure(path: Path, clock: Callable[[], datetime]) -> list[str]:
    """A sound database of this version at `path`; returns lines that the caller must say to the person, mostly none.

    One that is as it should be is only read. Raises DatabaseNewer, DatabaseForeign, DatabaseBusy and DatabaseUnwritable;
    the file is then left as it was.
    """
    with db.explained(path), db.system_explained(path):
        files.refuse(path)
        files.open_to_owner(path)
        finish_key_change(path)
        try:
            said = _opened(path, clock)
        except DatabaseDamaged as damage:
            _refuse_foreign(path)
            files.secure(path)
            with db.lease(path, db.BUSY_SECONDS):
                if _damage(path) is not None:
                    return [_rebuild(path, clock(), str(damage).removesuffix(db.REMEDY))]
            said = _opened(path, clock)  # another process was first
        files.secure(path)
        _clear(path)
        return said + _examined(path, clock) if is_suspect(path) else said


def ensure_checked(path: Path, clock: Callable[[], datetime]) -> list[str]:
    """`ensure`, and a look at the whole file where one is due. For a pass of the jobs, before it takes the lease."""
    said = ensure(path, clock)
    with db.explained(path), db.system_explained(path):
        return said + _examined(path, clock) if due(path, clock()) else said


def due(path: Path, now: datetime) -> bool:
    """Whether the whole file is to be looked at: somebody met damage, or the last look lies a week back."""
    if is_suspect(path):
        return True
    try:
        with (
            db.explained(path),
            db.opened(path, readonly=True, leave_no_trace=True, busy_seconds=db.QUICK_BUSY_SECONDS) as connection,
        ):
            last = db.time_of(cursors.get(connection, CHECKED))
    except DatabaseDamaged:  # there is no such time yet, or it stands on a page that cannot be read
        return True
    return not last <= now < last + CHECK_EVERY


def _opened(path: Path, clock: Callable[[], datetime]) -> list[str]:
    found = _assess(path)
    if found is None:
        return _begin(path, clock)
    if found.version == 1:
        from clawmark.store import legacy

        return [legacy.upgrade(path, clock)]
    said = []
    if found.version != migrations.LATEST:
        db.open_database(path, lambda connection: migrations.migrate(connection, clock()), migrations.LATEST)
        said.append(f"{path} was brought from schema {found.version} to {migrations.LATEST}.")
    if not found.uses_log:
        _use_log(path)
    return said


def _use_log(path: Path) -> None:
    """A copy that a person put in place has no write-ahead log: its readers and its writer would wait for each other.

    Such a database works, so what keeps it from changing now is left to a later start.
    """
    with (
        suppress(DatabaseBusy, DatabaseUnwritable),
        db.explained(path),
        db.opened(path, busy_seconds=db.QUICK_BUSY_SECONDS) as connection,
    ):
        db.use_log(connection)


def recover(path: Path, clock: Callable[[], datetime], reason: str) -> str:
    """Set aside and rebuild a database whose damage showed late; returns the line to say.

    For a caller that holds neither the lease nor a transaction. Raises DatabaseDamaged with `reason` when no damage is
    found: then nothing moves.
    """
    reason = reason.removesuffix(db.REMEDY)
    with db.explained(path), db.system_explained(path):
        _refuse_foreign(path)
    with db.explained(path), db.system_explained(path), db.lease(path, db.BUSY_SECONDS):
        if _damage(path) is None:
            raise DatabaseDamaged(f"{reason} A check of the whole file found nothing wrong; try again.")
        return _rebuild(path, clock(), reason)


def set_aside_files(path: Path) -> list[Path]:
    """Damaged files, old sidecars, logs without a database, backups and copies cut short that stand beside `path`.

    They hold what the database held in its time, also what was forgotten since.
    """
    if not path.parent.is_dir():
        return []
    return sorted(
        other
        for other in path.parent.iterdir()
        if other.name.startswith(path.name) and any(mark in other.name for mark in MARKS)
    )


# --- damage that a reader met -----------------------------------------------------------------------------------------


def suspect(path: Path) -> None:
    """Leave a mark: the next opening looks at the whole file. For a reader, who may be in a hurry; never raises."""
    with suppress(DatabaseError, apsw.Error):
        _refuse_foreign(path)
        files.leave_mark(path)


def is_suspect(path: Path) -> bool:
    return os.path.lexists(files.mark_of(path))


def _examined(path: Path, clock: Callable[[], datetime]) -> list[str]:
    """Look at the whole file, mend what is damaged, and take the mark away; it stays where that cannot be done now."""
    try:
        with db.system_explained(path), db.lease(path, db.QUICK_BUSY_SECONDS):
            if not due(path, clock()):
                return []  # another process was first
            damage = _damage(path)
            if damage is not None:
                return [_rebuild(path, clock(), damage)]
            said = _remade(path)
            with db.explained(path), db.opened(path) as connection, db.transaction(connection, path):
                _note_check(connection, clock())
            files.mark_of(path).unlink(missing_ok=True)
            return said
    except (DatabaseBusy, DatabaseUnwritable) as hindered:
        return [f"{path} may be damaged, and could not be looked at now: {hindered}"] if is_suspect(path) else []


def _note_check(connection: apsw.Connection, now: datetime) -> None:
    cursors.put(connection, CHECKED, now.isoformat(), now)


def _remade(path: Path) -> list[str]:
    """What is wrong with vectors is no reason to rebuild anything else."""
    with db.explained(path), db.opened(path) as connection:
        broken = check.broken_vectors(connection)
        if not broken:
            return []
        with db.transaction(connection, path):
            vectors.remake(connection, broken)
    return [f"{path} held {len(broken):,} damaged vectors; the next sync makes them anew."]


# --- what is there ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    version: int
    uses_log: bool


def _assess(path: Path, *, in_passing: bool = True) -> _Found | None:
    """What can be told at once; None when there is no database. Raises DatabaseDamaged and DatabaseForeign.

    in_passing: without leaving a trace and without a lock, so that it may see what a writer who comes just now has half
    done. Too little to move a file for.
    """
    stamp = sidecar.stamp(path)  # first: a database only moves forward
    if not db.is_there(path):
        if os.path.lexists(path) and os.path.lexists(sidecar.path_of(path)):
            raise DatabaseDamaged(f"{path} is empty.")
        return None
    with (
        db.explained(path),
        db.opened(path, readonly=True, leave_no_trace=in_passing, busy_seconds=db.QUICK_BUSY_SECONDS) as connection,
    ):
        version = db.schema_version(connection, path)
        if version < 2:
            from clawmark.store import legacy

            legacy.refuse_foreign(connection, path)
        is_behind = stamp is not None and 2 <= version <= migrations.LATEST and events.newest(connection) < stamp
        found = _Found(version, db.uses_log(connection))
    if is_behind and _sidecar_of(path) is not None:
        raise DatabaseDamaged(
            f"{path} shows an older state than {sidecar.path_of(path).name}: its last changes are lost."
        )
    return found


def _sidecar_of(path: Path) -> sidecar.Sidecar | None:
    """The sidecar where one stands that can be trusted."""
    try:
        return sidecar.read(path)
    except DatabaseDamaged:
        return None


def _damage(path: Path) -> str | None:
    """What is wrong with the file, in a sentence; None when all of it is sound. Belongs under the lease.

    Looks at indexes against tables too: a quick check passes over damage that stops a writer.
    """
    try:
        found = _assess(path, in_passing=False)
        if found is None:
            return None
        with db.explained(path), db.opened(path, readonly=True) as connection:
            faults = check.faults(connection)
    except DatabaseDamaged as damaged:
        return str(damaged).removesuffix(db.REMEDY)
    return f"{path} is damaged ({'; '.join(faults)})." if faults else None


# --- whose it is ------------------------------------------------------------------------------------------------------


def must_be_ours(path: Path) -> None:
    """Raise DatabaseForeign for what stands at `path` and is not ours. For who takes a lease there; changes nothing."""
    with db.explained(path), db.system_explained(path):
        files.refuse(path)
        try:
            _assess(path)
        except DatabaseDamaged:
            _refuse_foreign(path)


def _refuse_foreign(path: Path) -> None:
    """Raise DatabaseForeign for a file that cannot be read as ours, unless something shows that it was. Takes no lease:
    its file would count as a sign the next time."""
    if not db.is_there(path):
        return
    with db.explained(path):
        header = _header(path)
        is_database = header.startswith(MAGIC)
        application = int.from_bytes(header[68:72], "big") if is_database else 0
        if application == db.APPLICATION_ID:
            return
        if application == 0 and (_has_sign(path) or (is_database and _is_typescript(path))):
            return
    what = "is a damaged database that says nothing of clawmark" if is_database else "is not a SQLite database"
    raise DatabaseForeign(
        f"{path} {what}, and nothing of clawmark's stands beside it; it was left as it is; name another file in "
        "CLAWMARK_DB_PATH."
    )


def _header(path: Path) -> bytes:
    """Read through SQLite: closing another descriptor would drop the locks that this process holds on the file."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.read("main", 0, 0, 100)[1]
    finally:
        connection.close()


def _has_sign(path: Path) -> bool:
    """Whether it has our name, or something beside it that only clawmark makes."""
    if path.name == NAME or os.path.lexists(sidecar.path_of(path)):
        return True
    with suppress(DatabaseError, OSError):
        if len(keyfile.known(keyfile.key_path(path)) or b"") == keyfile.LENGTH:
            return True
    with suppress(DatabaseError, OSError):
        return bool(db.lock_says(path))
    return False


def _is_typescript(path: Path) -> bool:
    from clawmark.store import legacy

    with (
        suppress(*db.UNREADABLE),
        db.opened(path, readonly=True, leave_no_trace=True, busy_seconds=db.QUICK_BUSY_SECONDS) as connection,
    ):
        return legacy.has_its_tables(connection)
    return False


# --- where there is none ----------------------------------------------------------------------------------------------


def _begin(path: Path, clock: Callable[[], datetime]) -> list[str]:
    """A new database, or the rebuilt one of a recovery that was cut short."""
    files.make_folder(path.parent)
    with db.lease(path, db.BUSY_SECONDS):
        if db.is_there(path):
            return []  # another process was first
        files.secure(path)
        finished = _finish(path, clock())
        if finished is not None:
            return [finished]
        said = _put_by(path, clock())
        db.make(path, lambda connection: migrations.migrate(connection, clock()))
        return said


def _put_by(path: Path, now: datetime) -> list[str]:
    """Give the sidecar of a database that is gone another name: the person may have wanted a new beginning."""
    place = sidecar.path_of(path)
    if not os.path.lexists(place):
        return []
    kept = _sidecar_of(path)
    if kept is not None and not any(kept.tables.values()):
        sidecar.discard(path)
        return []
    aside = files.dated(path, "facts", now)
    os.rename(place, aside)
    if kept is None:
        line = f"{path} was gone and is made anew. What {aside.name} says of the one before cannot be read."
    else:
        line = (
            f"{path} was gone and is made anew. Facts of the one before are kept: `clawmark restore {aside}` brings "
            "them back."
        )
    return [line]


def _finish(path: Path, now: datetime) -> str | None:
    """Complete a recovery that was killed after it had moved the damaged file; its line, or None when there was none.

    A rebuilt file has a higher number than the sidecar that it was made from. Where the sidecar has reached it, another
    database stood here since, and the sidecar's rows take the place.
    """
    for rebuilt in _rebuilt_files(path):
        aside = path.with_name(rebuilt.name.replace(".rebuilt-", ".damaged-"))
        if not os.path.lexists(aside):
            rebuilt.unlink()
            continue
        kept = _sidecar_of(path)
        if kept is not None and kept.stamp >= _newest_of(rebuilt):
            os.rename(_built_from(path, kept, now), rebuilt)
        _take_place(path, rebuilt, aside)
        with db.opened(path, readonly=True) as connection:
            event = events.last_of(connection, "recover")
        return f"{event.detail}" if event else f"{path} was rebuilt."
    return None


def _newest_of(rebuilt: Path) -> int:
    with db.explained(rebuilt), db.opened(rebuilt, readonly=True) as connection:
        return events.newest(connection)


def _built_from(path: Path, kept: sidecar.Sidecar, now: datetime) -> Path:
    tables = {table: _usable(kept, table) for table in sidecar.TABLES}
    name = sidecar.path_of(path).name
    line = f"{path} was gone. {_counted(tables)} came back from {name}, as of {kept.written_at[:16]}."

    def fill(new: apsw.Connection) -> None:
        migrations.migrate(new, now)
        sidecar.insert(new, tables)
        events.number_behind(new, kept.stamp)
        events.add(new, "recover", now, source="clawmark", detail=line)

    return db.build(path, fill)


def _clear(path: Path) -> None:
    """Remove the rebuilt files of recoveries that were killed: a database that works has taken their place."""
    with suppress(DatabaseError, OSError):  # else the next start does it
        if not _rebuilt_files(path):
            return
        with db.lease(path, 0):
            if db.is_there(path):
                remove_rebuilt(path)


def remove_rebuilt(path: Path) -> None:
    """Remove what was rebuilt and never got its name. Belongs under the lease, with a sound database at `path`."""
    for leftover in _rebuilt_files(path):
        leftover.unlink()


def _rebuilt_files(path: Path) -> list[Path]:
    start = f"{path.name}.rebuilt-"
    return sorted((path.with_name(n) for n in os.listdir(path.parent) if n.startswith(start)), reverse=True)


# --- recovery ---------------------------------------------------------------------------------------------------------


def _rebuild(path: Path, now: datetime, reason: str) -> str:
    """Belongs under the lease."""
    from clawmark.store import legacy

    remove_rebuilt(path)  # of an attempt that was killed before it moved anything
    aside = files.dated(path, "damaged", now)
    line = ""
    with _held(path) as connection:
        is_torn = _sidecar_of(path) is None and os.path.lexists(sidecar.path_of(path))
        old = None if connection is None else legacy.salvage(connection)
        salvage = None if connection is None or old is not None else _salvage(connection)

        def fill(new: apsw.Connection) -> None:
            nonlocal line
            if old is not None:
                told = legacy.rebuild(new, path, old, now, aside.name)
            else:
                told = _fill(new, path, salvage, now)
                if connection is not None and (carried := carry.kept_texts(connection, new)):
                    told += f" {carried:,} passages with kept text came back from it too."
            if is_torn:
                told += f" {sidecar.path_of(path).name} is torn and was set aside too."
            line = (
                f"{reason} It was set aside as {aside.name}, with its history of changes. {told} "
                "The next sync rebuilds recall."
            )
            _note_check(new, now)
            events.add(new, "recover", now, source="clawmark", detail=line)

        rebuilt = path.with_name(aside.name.replace(".damaged-", ".rebuilt-"))
        os.rename(db.build(path, fill), rebuilt)
        files.sync_folder(path.parent)
        if is_torn:
            os.rename(sidecar.path_of(path), files.dated(path, "facts", now))
        os.rename(path, aside)
        _take_place(path, rebuilt, aside)
    return line


def _fill(new: apsw.Connection, path: Path, salvage: Salvage | None, now: datetime) -> str:
    """The facts and tombstones that come back, in a new database; returns what to say of them."""
    kept = _sidecar_of(path)
    tables, told = _merged(path, kept, salvage)
    migrations.migrate(new, now)
    sidecar.insert(new, tables)
    # Numbers of events rise and never return; a database behind its sidecar's stamp would count as damaged.
    events.number_behind(new, max(kept.stamp if kept else 0, (salvage.newest or 0) if salvage else 0))
    return told


def _take_place(path: Path, rebuilt: Path, aside: Path) -> None:
    """The last steps of a recovery, once the damaged file is moved: its logs follow it, the rebuilt one gets the name."""
    for suffix in files.COMPANIONS:
        if os.path.lexists(path.with_name(path.name + suffix)):
            os.rename(path.with_name(path.name + suffix), aside.with_name(aside.name + suffix))
    os.rename(rebuilt, path)
    files.mark_of(path).unlink(missing_ok=True)  # it was about the damaged one
    files.sync_folder(path.parent)


@contextmanager
def _held(path: Path) -> Iterator[apsw.Connection | None]:
    """The damaged file, with other writers kept out until it has moved; None when it cannot be opened at all.

    It is closed without a checkpoint, which would write into what is to be kept as it is.
    """
    if not db.is_there(path):  # SQLite deletes the write-ahead log of an empty file
        yield None
        return
    connection: apsw.Connection | None = None
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(int(db.BUSY_SECONDS * 1000))
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.execute("BEGIN IMMEDIATE")
    except (apsw.CorruptError, apsw.NotADBError):
        if connection is not None:
            connection.close()
        connection = None
    except BaseException:
        if connection is not None:
            connection.close()
        raise
    try:
        yield connection
    finally:
        if connection is not None:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.close()


# --- what comes back --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Salvage:
    """What could be read of a damaged file. `whole` names the tables that are there to the last row."""

    newest: int | None
    tables: dict[str, list[Row]]
    whole: frozenset[str]


def _salvage(connection: apsw.Connection) -> Salvage:
    tables: dict[str, list[Row]] = {}
    whole = set()
    for table in sidecar.TABLES:
        tables[table], is_whole = _readable(connection, table)
        if is_whole:
            whole.add(table)
    try:
        newest = events.newest(connection)
    except db.UNREADABLE:
        newest = None
    return Salvage(newest, tables, frozenset(whole))


def _readable(connection: apsw.Connection, table: str) -> tuple[list[Row], bool]:
    """Rows up to the first page that cannot be read, and whether they are all: a lost page is seen by the check alone."""
    columns = sidecar.TABLES[table]
    found: list[Row] = []
    is_whole = True
    try:
        if table not in ("facts", "tombstones") and not db.rows(
            connection, "SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)
        ):
            return [], True  # a file of an earlier version
        cursor = connection.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608
        while True:
            try:
                values = next(cursor, None)
            except UnicodeDecodeError:  # of this row alone
                is_whole = False
                continue
            if values is None:
                break
            row = dict(zip(columns, values, strict=True))
            if sidecar.is_usable(table, row):
                found.append(row)
            else:
                is_whole = False
        return found, is_whole and db.rows(connection, f"PRAGMA integrity_check({table})") == [("ok",)]
    except db.UNREADABLE:
        return found, False


def _merged(path: Path, kept: sidecar.Sidecar | None, salvage: Salvage | None) -> tuple[dict[str, list[Row]], str]:
    """The rows that come back, and the sentence that says so."""
    name = sidecar.path_of(path).name
    is_later = salvage is not None and salvage.newest is not None and (kept is None or salvage.newest >= kept.stamp)
    if salvage is not None and is_later and salvage.whole >= set(sidecar.TABLES):
        return salvage.tables, f"All {_counted(salvage.tables)} came back from the damaged file."
    if kept is not None and (salvage is None or salvage.newest is None or salvage.newest <= kept.stamp):
        tables = {table: _usable(kept, table) for table in sidecar.TABLES}
        return tables, f"{_counted(tables)} came back from {name}, as of {kept.written_at[:16]}."
    if salvage is None:
        return {}, f"No fact came back: nothing of it can be read, and there is no {name} to trust."
    tables = _pieces(path, kept, salvage)
    said = f"{_counted(tables)} came back" + (
        f" from it and from {name}, as of {kept.written_at[:16]};" if kept else ";"
    )
    return tables, f"{said} it cannot be read to the end, so newer ones may be missing.{_backup_hint(path)}"


def _backup_hint(path: Path) -> str:
    backups = [p for p in set_aside_files(path) if ".backup-" in p.name and p.suffix != ".key"]
    return f" `clawmark restore {backups[-1]}` takes the last backup instead." if backups else ""


def _pieces(path: Path, kept: sidecar.Sidecar | None, salvage: Salvage) -> dict[str, list[Row]]:
    """What an older sidecar and the readable part of a later file hold together, but for what was forgotten.

    A tombstone that the sidecar has and the whole later table has not was lifted: the person said it anew.
    """
    buried = salvage.tables["tombstones"]
    if kept is not None and "tombstones" not in salvage.whole:
        buried = [*buried, *_usable(kept, "tombstones")]
    tombstones = latest(buried)
    found = {} if kept is None else {(row["scope"], row["key"]): row for row in _usable(kept, "facts")}
    found |= {(row["scope"], row["key"]): row for row in salvage.tables["facts"]}
    try:
        secret = keyfile.known(keyfile.key_path(path))
    except DatabaseUnwritable:
        secret = None
    if secret is not None and tombstones:

        def is_forgotten(row: Row) -> bool:
            return any(hashed in tombstones for _, hashed in hashes(secret, row["scope"], row["key"], row["value"]))

        found = {place: row for place, row in found.items() if not is_forgotten(row)}
    else:

        def is_forgotten(row: Row) -> bool:
            return False

    sessions = [] if kept is None else _usable(kept, "deleted_sessions")
    sessions += salvage.tables["deleted_sessions"]
    pieces = {"facts": list(found.values()), "tombstones": list(tombstones.values()), "deleted_sessions": sessions}
    for table in ("horizons", "evidence", "proposals"):
        kept_rows = [] if kept is None else _usable(kept, table)
        pieces[table] = (
            salvage.tables[table] + kept_rows
        )  # of two with one key the later file's goes in first, and stays
    pieces["proposals"] = [row for row in pieces["proposals"] if not is_forgotten(row)]
    return pieces


def _usable(kept: sidecar.Sidecar, table: str) -> list[Row]:
    """What a sidecar holds of a table, but for rows for which the rebuilt database would count as damaged again."""
    return [row for row in kept.tables.get(table, []) if sidecar.is_usable(table, row)]


def _counted(tables: dict[str, list[Row]]) -> str:
    live = sum(not row.get("is_deleted") for row in tables.get("facts", []))
    buried = sum(not is_part(row["kind"]) for row in tables.get("tombstones", []))
    return f"{live} fact{'' if live == 1 else 's'} and {buried} tombstones"
