"""The sidecar: facts and what was forgotten, in a file of their own, which a damaged database is recovered from.

UTF-8 JSON lines: a header, one line per row, and a last line with the count and a checksum, so that a file that is torn
or edited is told from one that is whole. It is written while its writer holds the database's write lock: no older state
ever replaces a newer one in silence, and what a committed erasure took away is not in it. Its stamp is the number of
the newest event that was committed before, so a database whose newest event lies behind it has lost something.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from clawmark.errors import DatabaseDamaged, DatabaseError
from clawmark.store import events, facts, files, proposals
from clawmark.store.db import explained, opened, rows, system_explained, time_of, transaction

VERSION = 1
TABLES: Mapping[str, tuple[str, ...]] = {
    "facts": (
        "key", "value", "confidence", "source", "created_at", "updated_at", "is_deleted", "scope", "observed_at",
        "reinforced_at",
    ),
    "tombstones": ("hash", "kind", "created_at", "expires_at"),
    "deleted_sessions": ("scope", "session", "source", "host", "deleted_at"),
    "horizons": ("scope", "before"),
    "evidence": ("scope", "key", "value_hash", "content_key", "said_at", "session", "is_gone"),
    "proposals": (
        "id", "kind", "scope", "key", "value", "confidence", "origin", "reason", "conflict", "against", "state",
        "observed_at", "created_at", "updated_at", "expires_at", "deferred_until",
    ),
}  # fmt: skip
"""What is kept: each table and its columns, the key included."""

HEADER_BYTES = 4096
"""More than any header has."""

log = logging.getLogger("clawmark")

Row = dict[str, Any]
"""Column → value, as in the database."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What one file holds."""

    stamp: int
    written_at: str
    tables: Mapping[str, list[Row]] = field(default_factory=dict)

    @property
    def facts(self) -> list[Row]:
        return self.tables.get("facts", [])

    @property
    def tombstones(self) -> list[Row]:
        return self.tables.get("tombstones", [])


def path_of(database: Path) -> Path:
    return database.with_name(database.name + ".facts")


def _draft_of(database: Path) -> Path:
    return database.with_name(database.name + ".facts.new")


# --- writing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class State:
    """What the database holds, under the number of the newest event that others see."""

    stamp: int
    tables: Mapping[str, list[Row]]


def write(connection: apsw.Connection, database: Path, now: datetime) -> None:
    """Bring the sidecar up to date; a file that says the same already is left alone.

    Inside a transaction it shows that transaction's state, under the stamp of what was committed before: should the
    commit fail, the database is not behind. Write again after the commit, so that its loss would be noticed.
    Raises DatabaseDamaged when the database holds a row that nobody can use: what the sidecar has of it is better.
    """
    if connection.in_transaction:
        put(database, state(connection, database), now)
    else:
        with transaction(connection, database):
            put(database, _state(connection, events.newest(connection)), now)


def save(connection: apsw.Connection, database: Path, now: datetime) -> None:
    """`write` after a commit: the database holds everything, so a failure is only said. Damage leaves a mark."""
    try:
        write(connection, database, now)
    except DatabaseError as failed:
        log.warning("sidecar_not_written reason=%s", failed)
        if isinstance(failed, DatabaseDamaged):
            files.leave_mark(database)


def state(connection: apsw.Connection, database: Path) -> State:
    """What the transaction of `connection` holds, under the stamp of what was committed before it."""
    with explained(database):
        with opened(database, readonly=True) as others:
            committed = events.newest(others)
        return _state(connection, committed)


def _state(connection: apsw.Connection, stamp: int) -> State:
    tables = {table: _rows_of(connection, table, columns) for table, columns in TABLES.items()}
    for table, found in tables.items():
        if not all(is_usable(table, row) for row in found):
            raise apsw.CorruptError(f"a row of {table} cannot be used")
    return State(stamp, tables)


def put(database: Path, held: State, now: datetime) -> None:
    """Make the sidecar say what `held` does. Belongs inside the transaction that it was read in.

    One with a higher stamp knows of something that the database has lost: it gets a dated name.
    """
    place = path_of(database)
    with system_explained(place):
        old = files.read(place)
        if old is not None:
            try:
                known = _parsed(old, place)
            except DatabaseDamaged as damaged:
                log.warning("sidecar_rewritten reason=%s", damaged)  # the database is sound, so nothing is lost with it
            else:
                if old == _text(held, known.written_at):
                    return
                if known.stamp > held.stamp:
                    aside = files.dated(database, "facts", now)
                    os.rename(place, aside)
                    log.warning("sidecar_set_aside file=%s reason=it is later than the database", aside)
        files.replace(place, _text(held, now.isoformat()), _draft_of(database))


def _rows_of(connection: apsw.Connection, table: str, columns: tuple[str, ...]) -> list[Row]:
    listed = ", ".join(columns)
    # An order that is always the same keeps an unchanged file unchanged.
    found = rows(connection, f"SELECT {listed} FROM {table} ORDER BY {listed}")  # noqa: S608
    return [dict(zip(columns, row, strict=True)) for row in found]


def _text(held: State, written_at: str) -> bytes:
    lines = [_line({"clawmark": "facts", "version": VERSION, "stamp": held.stamp, "written_at": written_at})]
    for table, found in held.tables.items():
        lines += [_line({"table": table, "row": {k: _to_json(v) for k, v in row.items()}}) for row in found]
    body = b"".join(lines)
    return body + _line({"rows": len(lines) - 1, "sha256": hashlib.sha256(body).hexdigest()})


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _to_json(value: Any) -> Any:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _from_json(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


def discard(database: Path) -> None:
    """Take the sidecar away: for when it cannot be rewritten while something is being forgotten."""
    with system_explained(path_of(database)):
        for path in (path_of(database), _draft_of(database)):
            path.unlink(missing_ok=True)
        files.sync_folder(database.parent)


# --- reading ----------------------------------------------------------------------------------------------------------


def read(database: Path) -> Sidecar | None:
    """The sidecar of this database; None when there is none. Raises DatabaseDamaged as `load` does."""
    return load(path_of(database))


def load(place: Path) -> Sidecar | None:
    """The sidecar that stands at `place`, whatever its name; None when nothing does.

    Raises DatabaseDamaged, naming the file, for one that is torn, edited, or written by a later clawmark.
    """
    with system_explained(place):
        content = files.read(place)
    return None if content is None else _parsed(content, place)


def stamp(database: Path) -> int | None:
    """The stamp that the header states, at the price of one short read; None where no header can be read.

    The checksum is not looked at: `read` before anything is done because of it.
    """
    try:
        with system_explained(path_of(database)):
            content = files.read(path_of(database), HEADER_BYTES)
        return None if content is None else int(_header(content)["stamp"])
    except DatabaseError:  # a sidecar that fails is no reason why the database should
        return None


def is_usable(table: str, row: Row) -> bool:
    """Whether the rest of the program can live with this row, whatever file it was read from."""
    try:
        for column, value in row.items():
            if column in ("expires_at", "deferred_until") and value is None and table != "facts":
                continue
            if (column.endswith("_at") and column != "said_at") or column in ("deferred_until", "before"):
                time_of(value)
        if table == "horizons":
            return isinstance(row["scope"], str)
        if table == "evidence":
            has_place = all(isinstance(row[column], str) for column in ("scope", "key", "session"))
            is_known = all(isinstance(row[column], bytes) for column in ("value_hash", "content_key"))
            return has_place and is_known and is_time(row["said_at"]) and row["is_gone"] in (0, 1)
        if table == "proposals":
            texts = all(isinstance(row[column], str) for column in ("origin", "reason"))
            against = row["against"] is None or isinstance(row["against"], str)
            cells = (row[column] for column in ("kind", "scope", "key", "value", "confidence", "state"))
            is_one = row["conflict"] in proposals.CONFLICTS and proposals.is_one(*cells)
            return texts and against and is_one and isinstance(row["id"], int)
        if table == "deleted_sessions":
            return all(isinstance(row[column], str) for column in TABLES[table])
        if table == "tombstones":
            return isinstance(row["hash"], bytes) and isinstance(row["kind"], str) and "created_at" in row
        is_said = facts.is_said(*(row[column] for column in ("key", "scope", "value", "source", "confidence")))
        return is_said and row["is_deleted"] in (0, 1)
    except (KeyError, apsw.CorruptError):
        return False


def is_time(value: Any) -> bool:
    """Whether it is a number of milliseconds that a date can be made of."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 250_000_000_000_000


def insert(connection: apsw.Connection, tables: Mapping[str, Iterable[Row]]) -> None:
    """Put rows of a sidecar into a database that has none of them. Belongs inside a transaction."""
    for table, columns in TABLES.items():
        for row in tables.get(table, ()):
            known = [column for column in columns if column in row]
            connection.execute(
                f"INSERT OR IGNORE INTO {table} ({', '.join(known)}) VALUES ({', '.join('?' * len(known))})",  # noqa: S608
                [row[column] for column in known],
            )


def _require_text(value: Any) -> None:
    """Raise ValueError where half a character stands, written as an escape: no database takes it."""
    json.dumps(value, ensure_ascii=False).encode()


def _header(content: bytes) -> dict[str, Any]:
    try:
        header = json.loads(content[: content.index(b"\n")])
        numbers, text = (header["stamp"], header["version"]), header["written_at"]
        _require_text(header)
        if header["clawmark"] != "facts" or not isinstance(text, str):
            raise ValueError
        if not all(isinstance(number, int) and 0 <= number < 1 << 62 for number in numbers):
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DatabaseDamaged("the first line of the sidecar is no header.") from None
    return dict(header)


def _parsed(content: bytes, place: Path) -> Sidecar:
    damaged = DatabaseDamaged(f"{place} is torn or was edited; it cannot be trusted.")
    try:
        header = _header(content)
    except DatabaseDamaged:
        raise damaged from None
    if header["version"] > VERSION:
        raise DatabaseDamaged(f"{place} was written by a later clawmark (version {header['version']}).")
    body, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n"
    try:
        end = json.loads(last)
        lines = body.split(b"\n")[1:-1]
        if end != {"rows": len(lines), "sha256": hashlib.sha256(body).hexdigest()} or not content.endswith(b"\n"):
            raise damaged
        tables: dict[str, list[Row]] = {}
        for line in lines:
            entry = json.loads(line)
            _require_text(entry)
            row = {column: _from_json(value) for column, value in entry["row"].items()}
            tables.setdefault(entry["table"], []).append(row)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged from None
    return Sidecar(header["stamp"], header["written_at"], tables)
