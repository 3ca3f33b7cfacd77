"""Facts as rows. What may become a fact, and which of two wins, is decided in `clawmark.facts`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import apsw

from clawmark.model import Fact
from clawmark.store.db import rows, time_of

WRITERS: Final = ("user", "agent", "extracted")

_COLUMNS = "key, value, confidence, source, updated_at, scope, created_at, observed_at, reinforced_at"


def _fact(row: tuple[Any, ...]) -> Fact:
    key, value, confidence, source, updated, scope, created, observed, reinforced = row
    if not is_said(key, scope, value, source, confidence):
        raise apsw.CorruptError("a fact in it is none")
    return Fact(
        key,
        value,
        confidence,
        source,
        time_of(updated),
        scope,
        time_of(created),
        time_of(observed),
        time_of(reinforced),
    )


def is_said(key: Any, scope: Any, value: Any, source: Any, confidence: Any) -> bool:
    """Whether these cells are a statement of a writer whom the program knows. SQLite lets any type stand anywhere."""
    has_place = all(isinstance(text, str) and text for text in (key, scope))
    is_sure = isinstance(confidence, int | float) and 0 <= confidence <= 1
    return has_place and isinstance(value, str) and source in WRITERS and is_sure


def get(connection: apsw.Connection, key: str, scope: str, *, with_hidden: bool = False) -> Fact | None:
    """The fact under this key; one that is hidden only `with_hidden`."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM facts WHERE scope = ? AND key = ? AND (? OR is_deleted = 0)",  # noqa: S608
        (scope, key, with_hidden),
    )
    return _fact(found[0]) if found else None


def live(connection: apsw.Connection, scopes: Sequence[str] | None = None, *, hidden: bool = False) -> list[Fact]:
    """All facts that are shown, or those that are hidden, of these scopes (None = all), by key and scope."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM facts WHERE is_deleted = ?2"  # noqa: S608
        " AND (?1 IS NULL OR scope IN (SELECT value FROM json_each(?1))) ORDER BY key, scope",
        (None if scopes is None else json.dumps(list(scopes)), int(hidden)),
    )
    return [_fact(row) for row in found]


def stored_in(connection: apsw.Connection, scopes: Sequence[str] | None = None) -> list[Fact]:
    """All facts of these scopes (None = all), hidden ones included, by key and scope."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM facts WHERE ?1 IS NULL OR scope IN (SELECT value FROM json_each(?1))"  # noqa: S608
        " ORDER BY key, scope",
        (None if scopes is None else json.dumps(list(scopes)),),
    )
    return [_fact(row) for row in found]


def stored(connection: apsw.Connection) -> list[tuple[str, str, str, str, bool]]:
    """Scope, key, value, updated_at and is_deleted of every fact, as they stand in the file, hidden ones included."""
    return rows(connection, "SELECT scope, key, value, updated_at, is_deleted FROM facts ORDER BY scope, key")


def scopes_of(connection: apsw.Connection, key: str) -> list[str]:
    """Scopes that hold this key, deleted rows included."""
    return [row[0] for row in rows(connection, "SELECT scope FROM facts WHERE key = ? ORDER BY scope", (key,))]


def is_hidden(connection: apsw.Connection, key: str, scope: str) -> bool:
    found = rows(connection, "SELECT is_deleted FROM facts WHERE scope = ? AND key = ?", (scope, key))
    return bool(found and found[0][0])


def keys_of(connection: apsw.Connection, scope: str) -> list[str]:
    """Keys that stand in a scope, hidden ones included."""
    return [row[0] for row in rows(connection, "SELECT key FROM facts WHERE scope = ? ORDER BY key", (scope,))]


def put(connection: apsw.Connection, fact: Fact) -> None:
    connection.execute(
        "INSERT INTO facts (key, value, confidence, source, updated_at, scope, created_at, observed_at, reinforced_at,"
        " is_deleted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
        " ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, confidence = excluded.confidence,"
        " source = excluded.source, updated_at = excluded.updated_at, created_at = excluded.created_at,"
        " observed_at = excluded.observed_at, reinforced_at = excluded.reinforced_at, is_deleted = 0",
        (
            fact.key,
            fact.value,
            fact.confidence,
            fact.source,
            fact.updated_at.isoformat(),
            fact.scope,
            fact.created_at.isoformat(),
            fact.observed_at.isoformat(),
            fact.reinforced_at.isoformat(),
        ),
    )


def hide(connection: apsw.Connection, key: str, scope: str | None, *, is_hidden: bool, now: datetime) -> list[str]:
    """Hide a fact, or take it back, in `scope` or wherever it stands; the scopes in which that changed something."""
    found = rows(
        connection,
        "UPDATE facts SET is_deleted = ?3, updated_at = ?4 WHERE key = ?1 AND (?2 IS NULL OR scope = ?2)"
        " AND is_deleted <> ?3 RETURNING scope",
        (key, scope, int(is_hidden), now.isoformat()),
    )
    return sorted(scope for (scope,) in found)


def remove(connection: apsw.Connection, key: str, scope: str) -> None:
    connection.execute("DELETE FROM facts WHERE scope = ? AND key = ?", (scope, key))
