"""Opening the database whatever state it is in: made, brought up to date, recovered, or refused.

A damaged file never stops the person and is never deleted: it moves aside under a dated name, with its write-ahead log,
and a new database with the facts and tombstones takes its place. The new one is complete before the old one moves, so a
kill at any moment leaves the damaged file in its place, or the rebuilt one waiting for its name, or all done; the next
start goes on from there. Busy, full, unreadable and forbidden are no damage, and nothing moves because of them.

Facts come from whichever is later and whole, the sidecar or the damaged file; where the later one is in pieces, from
both, and what a tombstone names stays gone.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apsw

from clawmark.errors import DatabaseDamaged, DatabaseUnwritable
from clawmark.store import db, events, facts, files, keyfile, migrations, sidecar
from clawmark.store.sidecar import Row

MARKS = (".damaged-", ".rebuilt-", ".orphan-", ".facts-", ".backup-", ".replaced-", ".schema-1-")
"""What stands in the names of files that were set aside or copied."""

LOG_SUFFIXES = ("-wal", "-shm")
UNREADABLE = (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)
"""What SQLite says of damage. A disk that fails is another matter: then nothing moves."""


def ensure(path: Path, clock: Callable[[], datetime]) -> list[str]:
    """A sound database of this version at `path`; returns lines that the caller must say to the person, mostly none.

    One that is as it should be is only read. Raises DatabaseNewer, DatabaseForeign, DatabaseBusy and DatabaseUnwritable;
    the file is then left as it was.
    """
    with db.explained(path), db.system_explained(path):
        files.secure(path)
        try:
            return _opened(path, clock)
        except DatabaseDamaged as damage:
            with db.lease(path, db.BUSY_SECONDS):
                if _is_damaged(path):
                    return [_rebuild(path, clock(), str(damage).removesuffix(db.REMEDY))]
        return _opened(path, clock)  # another process was first


def _opened(path: Path, clock: Callable[[], datetime]) -> list[str]:
    version = _assess(path)
    if version is None:
        return _begin(path, clock)
    if version == migrations.LATEST:
        return []
    if version == 1:
        from clawmark.store import legacy

        return [legacy.upgrade(path, clock)]
    db.open_database(path, lambda connection: migrations.migrate(connection, clock()), migrations.LATEST)
    return [f"{path} was brought from schema {version} to {migrations.LATEST}."]


def recover(path: Path, clock: Callable[[], datetime], reason: str) -> str:
    """Set aside and rebuild a database whose damage showed late; returns the line to say.

    For a caller that holds neither the lease nor a transaction. Raises DatabaseDamaged with `reason` when no damage is
    found: then nothing moves.
    """
    reason = reason.removesuffix(db.REMEDY)
    with db.explained(path), db.system_explained(path), db.lease(path, db.BUSY_SECONDS):
        if not _is_damaged(path):
            raise DatabaseDamaged(f"{reason} A check of the whole file found nothing wrong; try again.")
        return _rebuild(path, clock(), reason)


def set_aside_files(path: Path) -> list[Path]:
    """Damaged files, old sidecars, write-ahead logs without a database and backups that stand beside `path`.

    They hold what the database held in its time, also what was forgotten since.
    """
    if not path.parent.is_dir():
        return []
    return sorted(
        other
        for other in path.parent.iterdir()
        if other.name.startswith(path.name) and any(mark in other.name for mark in MARKS)
    )


# --- what is there ----------------------------------------------------------------------------------------------------


def _assess(path: Path) -> int | None:
    """The schema's version; None when there is no database. Raises DatabaseDamaged and DatabaseForeign."""
    stamp = sidecar.stamp(path)  # first: a database only moves forward
    if not db.is_there(path):
        if os.path.lexists(path) and os.path.lexists(sidecar.path_of(path)):
            raise DatabaseDamaged(f"{path} is empty.")
        return None
    with db.explained(path):
        connection = db.connect(path, readonly=True, leave_no_trace=True, busy_seconds=db.QUICK_BUSY_SECONDS)
        try:
            version = db.schema_version(connection, path)
            is_behind = (
                stamp is not None and 2 <= version <= migrations.LATEST and sidecar.newest_event(connection) < stamp
            )
        finally:
            connection.close()
    if is_behind and _sidecar_of(path) is not None:
        raise DatabaseDamaged(
            f"{path} shows an older state than {sidecar.path_of(path).name}: its last changes are lost."
        )
    return version


def _sidecar_of(path: Path) -> sidecar.Sidecar | None:
    """The sidecar where one stands that can be trusted."""
    try:
        return sidecar.read(path)
    except DatabaseDamaged:
        return None


def _is_damaged(path: Path) -> bool:
    """Looks at the whole file, indexes against tables too: a quick check passes over damage that stops a writer."""
    try:
        if _assess(path) is None:
            return False
        with db.explained(path):
            connection = db.connect(path, readonly=True)
            try:
                return db.rows(connection, "PRAGMA integrity_check(1)") != [("ok",)]
            finally:
                connection.close()
    except DatabaseDamaged:
        return True


# --- where there is none ----------------------------------------------------------------------------------------------


def _begin(path: Path, clock: Callable[[], datetime]) -> list[str]:
    """A new database, or the rebuilt one of a recovery that was cut short."""
    files.make_folder(path.parent)
    with db.lease(path, db.BUSY_SECONDS):
        if db.is_there(path):
            return []  # another process was first
        finished = _finish(path)
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
    if kept is not None and not (kept.facts or kept.tombstones):
        sidecar.discard(path)
        return []
    aside = place.with_name(f"{place.name}-{_free_stamp(path, now)}")
    os.rename(place, aside)
    if kept is None:
        line = f"{path} was gone and is made anew. What {aside.name} says of the one before cannot be read."
    else:
        line = (
            f"{path} was gone and is made anew. Facts of the one before are kept: `clawmark restore {aside}` brings "
            "them back."
        )
    return [line]


def _finish(path: Path) -> str | None:
    """Complete a recovery that was killed after it had moved the damaged file; its line, or None when there was none."""
    for rebuilt in _rebuilt_files(path):
        aside = path.with_name(rebuilt.name.replace(".rebuilt-", ".damaged-"))
        if os.path.lexists(aside):
            _take_place(path, rebuilt, aside)
            connection = db.connect(path, readonly=True)
            try:
                event = events.last_of(connection, "recover")
            finally:
                connection.close()
            return f"{event.detail}" if event else f"{path} was rebuilt."
        rebuilt.unlink()
    return None


def _rebuilt_files(path: Path) -> list[Path]:
    start = f"{path.name}.rebuilt-"
    return sorted((other for other in path.parent.iterdir() if other.name.startswith(start)), reverse=True)


# --- recovery ---------------------------------------------------------------------------------------------------------


def _rebuild(path: Path, now: datetime, reason: str) -> str:
    """Belongs under the lease."""
    for leftover in _rebuilt_files(path):  # of an attempt that was killed before it moved anything
        leftover.unlink()
    stamp = _free_stamp(path, now)
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    with _held(path) as connection:
        kept = _sidecar_of(path)
        is_torn = kept is None and os.path.lexists(sidecar.path_of(path))
        salvage = None if connection is None else _salvage(connection)
        tables, told = _merged(path, kept, salvage)
        if is_torn:
            told += f" {sidecar.path_of(path).name} is torn and was set aside too."
        line = f"{reason} It was set aside as {aside.name}, with its history of changes. {told} The next sync rebuilds recall."

        def fill(new: apsw.Connection) -> None:
            migrations.migrate(new, now)
            sidecar.insert(new, tables)
            # Numbers of events rise and never return; a database behind its sidecar's stamp would count as damaged.
            last = max(kept.stamp if kept else 0, (salvage.newest or 0) if salvage else 0)
            new.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('memory_events', ?)", (last,))
            events.add(new, "recover", now, source="clawmark", detail=line)

        rebuilt = path.with_name(f"{path.name}.rebuilt-{stamp}")
        os.rename(db.build(path, fill), rebuilt)
        files.sync_folder(path.parent)
        if is_torn:
            os.rename(sidecar.path_of(path), path.with_name(f"{sidecar.path_of(path).name}-{stamp}"))
        os.rename(path, aside)
        _take_place(path, rebuilt, aside)
    return line


def _take_place(path: Path, rebuilt: Path, aside: Path) -> None:
    """The last steps of a recovery, once the damaged file is moved: its logs follow it, the rebuilt one gets the name."""
    for suffix in LOG_SUFFIXES:
        if os.path.lexists(path.with_name(path.name + suffix)):
            os.rename(path.with_name(path.name + suffix), aside.with_name(aside.name + suffix))
    os.rename(rebuilt, path)
    files.sync_folder(path.parent)


def _free_stamp(path: Path, now: datetime) -> str:
    """A date no file that was set aside has yet."""
    base = f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = [other.name for other in set_aside_files(path)]
    for stamp in itertools.chain([base], (f"{base}-{n}" for n in itertools.count(2))):
        if not any(name.endswith((f"-{stamp}", *(f"-{stamp}{suffix}" for suffix in LOG_SUFFIXES))) for name in names):
            return stamp
    raise AssertionError("unreachable")


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
    for table, columns in sidecar.TABLES.items():
        tables[table], is_whole = _readable(connection, table, columns)
        if is_whole:
            whole.add(table)
    try:
        newest = sidecar.newest_event(connection)
    except UNREADABLE:
        newest = None
    return Salvage(newest, tables, frozenset(whole))


def _readable(connection: apsw.Connection, table: str, columns: tuple[str, ...]) -> tuple[list[Row], bool]:
    """Rows up to the first page that cannot be read, and whether they are all: a lost page is seen by the check alone."""
    found: list[Row] = []
    is_whole = True
    try:
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
            if _is_sound(table, row):
                found.append(row)
            else:
                is_whole = False
        return found, is_whole and db.rows(connection, f"PRAGMA integrity_check({table})") == [("ok",)]
    except UNREADABLE:
        return found, False


def _is_sound(table: str, row: Row) -> bool:
    """Whether the rest of the program can live with this row."""
    try:
        for column, value in row.items():
            if column == "expires_at" and value is None:
                continue
            if column.endswith("_at") and datetime.fromisoformat(value).tzinfo is None:
                return False
        if table == "tombstones":
            return isinstance(row["hash"], bytes) and isinstance(row["kind"], str)
        texts = (row["key"], row["value"], row["source"], row["scope"])
        is_complete = all(isinstance(text, str) and text for text in texts)
        return is_complete and 0 <= row["confidence"] <= 1 and row["is_deleted"] in (0, 1)
    except (TypeError, ValueError):
        return False


def _merged(path: Path, kept: sidecar.Sidecar | None, salvage: Salvage | None) -> tuple[dict[str, list[Row]], str]:
    """The rows that come back, and the sentence that says so."""
    name = sidecar.path_of(path).name
    is_later = salvage is not None and salvage.newest is not None and (kept is None or salvage.newest >= kept.stamp)
    if salvage is not None and is_later and salvage.whole >= set(sidecar.TABLES):
        return salvage.tables, f"All {_counted(salvage.tables)} came back from the damaged file."
    if kept is not None and (salvage is None or salvage.newest is None or salvage.newest <= kept.stamp):
        tables = {table: list(kept.tables.get(table, [])) for table in sidecar.TABLES}
        return tables, f"{_counted(tables)} came back from {name}, as of {kept.written_at[:16]}."
    if salvage is None:
        return {}, f"No fact came back: nothing of it can be read, and there is no {name} to trust."
    tables = _pieces(path, kept, salvage)
    said = f"{_counted(tables)} came back" + (
        f" from it and from {name}, as of {kept.written_at[:16]};" if kept else ";"
    )
    return tables, f"{said} it cannot be read to the end, so newer ones may be missing."


def _pieces(path: Path, kept: sidecar.Sidecar | None, salvage: Salvage) -> dict[str, list[Row]]:
    """What an older sidecar and the readable part of a later file hold together, but for what was forgotten.

    A tombstone that the sidecar has and the whole later table has not was lifted: the person said it anew.
    """
    tombstones = {row["hash"]: row for row in salvage.tables["tombstones"]}
    if kept is not None and "tombstones" not in salvage.whole:
        tombstones = {row["hash"]: row for row in kept.tombstones} | tombstones
    found = {} if kept is None else {(row["scope"], row["key"]): row for row in kept.facts}
    found |= {(row["scope"], row["key"]): row for row in salvage.tables["facts"]}
    try:
        secret = keyfile.known(keyfile.key_path(path))
    except DatabaseUnwritable:
        secret = None
    if secret is not None and tombstones:

        def is_forgotten(row: Row) -> bool:
            return any(
                hashed in tombstones for _, hashed in facts.tombstones(secret, row["scope"], row["key"], row["value"])
            )

        found = {place: row for place, row in found.items() if not is_forgotten(row)}
    return {"facts": list(found.values()), "tombstones": list(tombstones.values())}


def _counted(tables: dict[str, list[Row]]) -> str:
    live = sum(not row.get("is_deleted") for row in tables.get("facts", []))
    return f"{live} fact{'' if live == 1 else 's'} and {len(tables.get('tombstones', []))} tombstones"
