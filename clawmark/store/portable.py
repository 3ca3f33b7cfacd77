"""Rows of a memory on their way out of the file and into another one, as they stand there.

Nothing is decided here. A row that another file brought in keeps its times, and each `add` says whether it changed
anything: what is there already is recognised by what it says and when, not by a number, which is the file's own.
"""

from __future__ import annotations

from typing import Any, Final

import apsw

from clawmark.store import sidecar
from clawmark.store.db import Rows, rows

Row = dict[str, Any]

TRAIL: Final = "memory_events"
"""The table of what an export holds beside the tables of a sidecar and names of scopes: events of facts."""

EVENT: Final = ("event_type", "created_at", "source", "scope", "memory_key", "old_value", "new_value", "detail")
SCOPE_NAME: Final = ("scope", "name", "source")


def of_table(connection: apsw.Connection, table: str, scope: str | None) -> list[Row]:
    """Rows of a table of the sidecar, of one scope or of all, in an order that is always the same.

    Nobody can read which scope a tombstone is of: they are given where all are asked for.
    """
    columns = sidecar.TABLES[table]
    listed = ", ".join(columns)
    place = "NULL" if table == "tombstones" else "scope"
    return _named(
        columns,
        rows(
            connection,
            f"SELECT {listed} FROM {table} WHERE ?1 IS NULL OR {place} = ?1 ORDER BY {listed}",  # noqa: S608
            (scope,),
        ),
    )


def events_of_facts(connection: apsw.Connection, scope: str | None) -> list[Row]:
    """Everything the trail says of a key, oldest first."""
    found = rows(
        connection,
        "SELECT event_type, created_at, source, scope, memory_key, old_value, new_value, detail FROM memory_events"
        " WHERE memory_key IS NOT NULL AND scope IS NOT NULL AND (?1 IS NULL OR scope = ?1) ORDER BY id",
        (scope,),
    )
    return _named(EVENT, found)


def scope_names(connection: apsw.Connection, scope: str | None) -> list[Row]:
    found = rows(
        connection, "SELECT scope, name, source FROM scopes WHERE ?1 IS NULL OR scope = ?1 ORDER BY scope", (scope,)
    )
    return _named(SCOPE_NAME, found)


def _named(columns: tuple[str, ...], found: Rows) -> list[Row]:
    return [dict(zip(columns, row, strict=True)) for row in found]


# --- into a memory. All of this belongs inside a transaction ----------------------------------------------------------


def add_event(connection: apsw.Connection, row: Row) -> bool:
    """False for one that is known by what happened, to what and when: its values may have been forgotten since."""
    known = rows(
        connection,
        # A key has a few events, a type has most of them: the sign keeps SQLite from the index of types.
        "SELECT 1 FROM memory_events WHERE memory_key = ? AND scope = ? AND +event_type = ? AND created_at = ?"
        " AND source = ? LIMIT 1",
        (row["memory_key"], row["scope"], row["event_type"], row["created_at"], row["source"]),
    )
    if known:
        return False
    connection.execute(
        "INSERT INTO memory_events (event_type, created_at, source, scope, memory_key, old_value, new_value, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [row[column] for column in EVENT],
    )
    return True


def proposal_like(connection: apsw.Connection, row: Row) -> tuple[int, str] | None:
    """Number and state of a proposal that is this one: made at the same time about the same, whatever became of it since,
    or waiting with the same words. Of the key of one that was decided nothing but the prefix is left."""
    found = rows(
        connection,
        "SELECT id, state, key, updated_at FROM proposals WHERE (value = ?8 OR value = '' OR ?8 = '')"
        " AND kind = ?1 AND scope = ?2 AND ("
        "(created_at = ?4 AND observed_at = ?5 AND origin = ?6 AND reason = ?7"
        " AND (key IN (?3, substr(?3, 1, instr(?3, '.'))) OR substr(key, 1, instr(key, '.')) = ?3))"
        " OR (state = 'pending' AND ?9 = 'pending' AND key = ?3 AND value = ?8)) ORDER BY created_at = ?4 DESC, id",
        [
            row[name]
            for name in ("kind", "scope", "key", "created_at", "observed_at", "origin", "reason", "value", "state")
        ],
    )
    is_cut = row["key"].endswith(".")
    known = [(number, state) for number, state, key, _ in found if key == row["key"] and not is_cut]
    known += [(number, state) for number, state, _, _ in found if number == row["id"]]
    known += [(number, state) for number, state, _, at in found if (state, at) == (row["state"], row["updated_at"])]
    if not known and len(found) == 1 and (found[0][1] == "pending") != (row["state"] == "pending"):
        return found[0][0], found[0][1]
    return known[0] if known else None


def add_proposal(connection: apsw.Connection, row: Row) -> None:
    """Under its own number, where that is free: a person may have it written down, and the trail names it."""
    columns = sidecar.TABLES["proposals"]
    taken = rows(connection, "SELECT 1 FROM proposals WHERE id = ?", (row["id"],))
    values = [None if column == "id" and taken else row[column] for column in columns]
    connection.execute(
        f"INSERT INTO proposals ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",  # noqa: S608
        values,
    )


def add_deleted_session(connection: apsw.Connection, row: Row) -> bool:
    connection.execute(
        "INSERT INTO deleted_sessions (scope, session, source, host, deleted_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        [row[column] for column in sidecar.TABLES["deleted_sessions"]],
    )
    return bool(connection.changes())


def add_scope_name(connection: apsw.Connection, row: Row) -> bool:
    """What a log called the scope here stays."""
    connection.execute(
        "INSERT INTO scopes (scope, name, source) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [row[column] for column in SCOPE_NAME],
    )
    return bool(connection.changes())
