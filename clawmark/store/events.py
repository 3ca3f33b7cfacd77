"""The audit trail. Append-only, but for values that a person had forgotten."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import apsw

from clawmark.model import Event
from clawmark.store.db import rows

TYPES: Final = {
    "create": "a fact was stored under a new key",
    "update": "a fact's value was replaced; old_value and new_value hold both",
    "reinforce": "the same value was stated again",
    "conflict_skip": "a weaker statement did not replace a stronger one",
    "forget": "a fact was erased; its values are gone from all earlier events too",
    "reject": "a fact was refused; detail holds the code, never the value",
    "skip_line": "an entry of a log could not be read; detail holds where and why",
    "source_failed": "a log could not be read; detail holds the reason",
    "embedder_unavailable": "nothing can be embedded now; recall runs on words",
    "embedder_available": "embedding works again",
    "space_opened": "another embedding model answers, or the first one; its vectors are being made",
    "space_switched": "the new vectors are complete and are searched from now on",
    "config_warning": "a setting cannot have its effect; detail says which, why and what happens instead",
    "prune": "passages were erased because their log is gone; detail holds the count",
    "upgrade": "a database of an earlier version was brought up to date; detail names the backup",
    "recover": "a damaged file was set aside; detail names it and what came back",
    "restore": "a backup took the place of the database; detail names it",
    "delete": "written by the TypeScript clawmark: a fact was hidden",
    "injection_blocked": "written by the TypeScript clawmark: a value was refused; the value itself is not carried over",
    "extract_error": "written by the TypeScript clawmark: an answer was unreadable; its text is not carried over",
    "source_fallback": "written by the TypeScript clawmark: another log was read; new_value holds the reason",
}
"""Every event type and what it records."""


def add(
    connection: apsw.Connection,
    event_type: str,
    now: datetime,
    *,
    source: str,
    scope: str | None = None,
    key: str | None = None,
    old: str | None = None,
    new: str | None = None,
    detail: str | None = None,
) -> None:
    assert event_type in TYPES, event_type
    connection.execute(
        "INSERT INTO memory_events (event_type, memory_key, old_value, new_value, source, created_at, scope, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (event_type, key, old, new, source, now.isoformat(), scope, detail),
    )


def _event(row: tuple[Any, ...]) -> Event:
    number, event_type, created, source, scope, key, old, new, detail = row
    return Event(number, event_type, datetime.fromisoformat(created), source, scope, key, old, new, detail)


def latest(connection: apsw.Connection, limit: int) -> list[Event]:
    """The newest `limit` events, newest first."""
    found = rows(
        connection,
        "SELECT id, event_type, created_at, source, scope, memory_key, old_value, new_value, detail"
        " FROM memory_events ORDER BY id DESC LIMIT ?",
        (limit,),
    )
    return [_event(row) for row in found]


def last_of(connection: apsw.Connection, *event_types: str) -> Event | None:
    """The newest event of one of these types."""
    found = rows(
        connection,
        "SELECT id, event_type, created_at, source, scope, memory_key, old_value, new_value, detail FROM memory_events"
        " WHERE event_type IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT 1",
        ('["' + '","'.join(event_types) + '"]',),
    )
    return _event(found[0]) if found else None


def is_known(connection: apsw.Connection, event_type: str, source: str, detail: str) -> bool:
    """Whether the trail holds this very event already."""
    found = rows(
        connection,
        "SELECT 1 FROM memory_events WHERE event_type = ? AND source = ? AND detail = ? LIMIT 1",
        (event_type, source, detail),
    )
    return bool(found)


def blank_values(connection: apsw.Connection, key: str, scope: str) -> None:
    """Take the values out of every event of this fact; that something happened, and when, stays."""
    connection.execute(
        "UPDATE memory_events SET old_value = NULL, new_value = NULL WHERE memory_key = ? AND scope = ?", (key, scope)
    )
