"""Cursors: durable positions, moved by compare-and-set so that a second process can never take one back."""

from __future__ import annotations

from datetime import datetime

import apsw

from clawmark.errors import DatabaseBusy
from clawmark.store.db import rows


def get(connection: apsw.Connection, name: str) -> str | None:
    found = rows(connection, "SELECT value FROM cursors WHERE name = ?", (name,))
    return found[0][0] if found else None


def advance(connection: apsw.Connection, name: str, old: str | None, new: str, now: datetime) -> None:
    """Move `name` from `old` to `new`. Belongs into the transaction of the rows it covers.

    Raises DatabaseBusy when somebody else moved it meanwhile: roll back and read again from where it stands.
    """
    if old is None:
        connection.execute(
            "INSERT OR IGNORE INTO cursors (name, value, updated_at) VALUES (?, ?, ?)", (name, new, now.isoformat())
        )
    else:
        connection.execute(
            "UPDATE cursors SET value = ?, updated_at = ? WHERE name = ? AND value = ?",
            (new, now.isoformat(), name, old),
        )
    if not connection.changes():
        raise DatabaseBusy(f"another process moved the cursor {name}; try again.")


def put(connection: apsw.Connection, name: str, value: str, now: datetime) -> None:
    """Set a note that one process at a time reads and writes, whatever it was before."""
    connection.execute(
        "INSERT INTO cursors (name, value, updated_at) VALUES (?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
        (name, value, now.isoformat()),
    )


def drop_if(connection: apsw.Connection, name: str, value: str) -> None:
    connection.execute("DELETE FROM cursors WHERE name = ? AND value = ?", (name, value))


def drop(connection: apsw.Connection, name: str) -> None:
    connection.execute("DELETE FROM cursors WHERE name = ?", (name,))


def today(connection: apsw.Connection, name: str, now: datetime) -> int:
    """How often `count_today` was called on this day (UTC); 0 where `name` holds no such count."""
    day, _, count = (get(connection, name) or "").partition(" ")
    return int(count) if day == now.date().isoformat() and count.isdecimal() else 0


def count_today(connection: apsw.Connection, name: str, now: datetime) -> None:
    put(connection, name, f"{now.date().isoformat()} {today(connection, name, now) + 1}", now)
