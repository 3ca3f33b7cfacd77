"""The sidecar: facts and tombstones in a file of their own, which a damaged database is recovered from.

UTF-8 JSON lines: a header, one line per row, and a last line with the count and a checksum, so that a file that is torn
or edited is told from one that is whole. It is written while its writer holds the database's write lock: no older state
ever replaces a newer one, and what a committed erasure took away is not in it. Its stamp is the number of the newest
event that was committed before, so a database whose newest event lies behind it has lost something.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from clawmark.errors import DatabaseDamaged, DatabaseUnwritable
from clawmark.store import files
from clawmark.store.db import connect, explained, rows, system_explained, transaction

VERSION = 1
TABLES: Mapping[str, tuple[str, ...]] = {
    "facts": (
        "key", "value", "confidence", "source", "created_at", "updated_at", "is_deleted", "scope", "observed_at",
        "reinforced_at",
    ),
    "tombstones": ("hash", "kind", "created_at", "expires_at"),
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


def newest_event(connection: apsw.Connection) -> int:
    """The number of the newest event there ever was; it does not fall when events are pruned."""
    found = rows(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'memory_events'")
    return int(found[0][0]) if found else 0


# --- writing ----------------------------------------------------------------------------------------------------------


def write(connection: apsw.Connection, database: Path, now: datetime) -> None:
    """Bring the sidecar up to date; a file that says the same already is left alone.

    Inside a transaction it shows that transaction's state, under the stamp of what was committed before: should the
    commit fail, the database is not behind. Write again after the commit, so that its loss would be noticed.
    """
    if connection.in_transaction:
        with explained(database), system_explained(path_of(database)):
            _write(connection, database, _committed(database), now)
    else:
        with transaction(connection, database), system_explained(path_of(database)):
            _write(connection, database, newest_event(connection), now)


def _committed(database: Path) -> int:
    """The newest event as others see it."""
    connection = connect(database, readonly=True)
    try:
        return newest_event(connection)
    finally:
        connection.close()


def _write(connection: apsw.Connection, database: Path, stamp: int, now: datetime) -> None:
    place = path_of(database)
    tables = {table: _rows_of(connection, table, columns) for table, columns in TABLES.items()}
    old = files.read(place)
    if old is not None:
        try:
            written_at = _parsed(old, place).written_at
        except DatabaseDamaged as damaged:
            log.warning("sidecar_rewritten reason=%s", damaged)  # the database is sound, so nothing is lost with it
        else:
            if old == _text(stamp, written_at, tables):
                return
    files.replace(place, _text(stamp, now.isoformat(), tables), _draft_of(database))


def _rows_of(connection: apsw.Connection, table: str, columns: tuple[str, ...]) -> list[Row]:
    listed = ", ".join(columns)
    # An order that is always the same keeps an unchanged file unchanged.
    found = rows(connection, f"SELECT {listed} FROM {table} ORDER BY {listed}")  # noqa: S608
    return [dict(zip(columns, row, strict=True)) for row in found]


def _text(stamp: int, written_at: str, tables: Mapping[str, Iterable[Row]]) -> bytes:
    lines = [_line({"clawmark": "facts", "version": VERSION, "stamp": stamp, "written_at": written_at})]
    for table, found in tables.items():
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
    except (DatabaseDamaged, DatabaseUnwritable):  # a sidecar that fails is no reason why the database should
        return None


def insert(connection: apsw.Connection, tables: Mapping[str, Iterable[Row]]) -> None:
    """Put rows of a sidecar into a database that has none of them. Belongs inside a transaction."""
    for table, columns in TABLES.items():
        for row in tables.get(table, ()):
            known = [column for column in columns if column in row]
            connection.execute(
                f"INSERT INTO {table} ({', '.join(known)}) VALUES ({', '.join('?' * len(known))})",  # noqa: S608
                [row[column] for column in known],
            )


def _header(content: bytes) -> dict[str, Any]:
    try:
        header = json.loads(content[: content.index(b"\n")])
        numbers, text = (header["stamp"], header["version"]), header["written_at"]
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
            row = {column: _from_json(value) for column, value in entry["row"].items()}
            tables.setdefault(entry["table"], []).append(row)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise damaged from None
    return Sidecar(header["stamp"], header["written_at"], tables)
