"""The audit trail. Append-only, but for values that a person had forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Final

import apsw

from clawmark.model import Event
from clawmark.store.db import each, rows, time_of
from clawmark.text import stems

TYPES: Final = {
    "create": "a fact was stored under a new key",
    "update": "a fact's value was replaced; old_value and new_value hold both",
    "reinforce": "the same value was stated again",
    "conflict_skip": "a weaker statement did not replace a stronger one",
    "forget": "a fact was erased; its values are gone from all earlier events too",
    "hide": "an agent had a fact forgotten that nobody asked it to: it is shown nowhere, and stays until a person decides",
    "unhide": "a person took a hidden fact back",
    "reject": "a statement was refused; detail holds the rule, a keyed hash and the length of its value, never the value (in "
    "events of earlier versions the rule alone, as a word)",
    "propose": "a statement waits for the person; detail holds the proposal, the rule and how it stands to what is known",
    "accept": "a person took a proposal on; detail holds the proposal, and whether and how it was changed",
    "decline": "a person rejected a proposal, which leaves a tombstone for 180 days; detail holds the proposal",
    "defer": "a person put a proposal off; detail holds the proposal",
    "answer": "what waited was stored meanwhile; detail holds the proposal",
    "erase": "a person had messages forgotten; detail holds by what they were named and how many went",
    "lapse": "nobody decided a proposal in time; detail holds it",
    "supersede": "a fact gave way to one under another key, which detail names",
    "decay": "a fact that was not stated for a year is hidden",
    "withdraw": "an extracted fact was erased, since every message it rested on was deleted",
    "injection_flag": "a person set what reads like an instruction; detail holds the rules",
    "import": "facts of an exported file were brought in; detail holds the counts",
    "recall_skip": "a prompt was given no recall; source is the host, detail holds the session and the reason",
    "recall_empty": "nothing was found for a prompt; source is the host, detail holds the session",
    "recall_surfaced": "a block held excerpts; source is the host, detail holds the session, and each one's ref and score",
    "skip_line": "an entry of a log could not be read; detail holds where and why",
    "source_failed": "a log could not be read; detail holds the reason",
    "source_fallback": "a preferred log cannot be read, and another one is; detail (in events of the TypeScript clawmark: "
    "new_value) says which and why",
    "source_return": "a preferred log is read again",
    "embedder_unavailable": "nothing can be embedded now; recall runs on words",
    "embedder_available": "embedding works again",
    "space_opened": "another embedding model answers, or the first one; its vectors are being made",
    "space_switched": "the new vectors are complete and are searched from now on",
    "config_warning": "a setting cannot have its effect; detail says which, why and what happens instead",
    "prune": "passages were erased because their log is gone; detail holds the count",
    "renumber": "a host has numbered its entries anew (a restored or recreated log); what was known is recognised. detail "
    "is what its refs begin with now",
    "expire": "the host removed a log by age; its messages are kept; detail names the stream",
    "upgrade": "a database of an earlier version was brought up to date; detail names the backup",
    "recover": "a damaged file was set aside; detail names it and what came back",
    "restore": "a backup took the place of the database; detail names it",
    "delete": "written by the TypeScript clawmark: a fact was hidden",
    "injection_blocked": "written by the TypeScript clawmark: a value was refused; the value itself is not carried over",
    "extract_error": "what a model answered could not be used, or only in part; detail says why. Its text is nowhere",
    "extract_unavailable": "nobody can be asked to extract facts now; detail says why, and begins with `unusable: ` where "
    "no answer could be used",
    "extract_available": "extraction works again",
}
"""Every event type and what it records."""

EVIDENCE_DIGITS: Final = 12
"""Of a content key, as an event names what a statement rested on."""

_COLUMNS: Final = "id, event_type, created_at, source, scope, memory_key, old_value, new_value, detail"


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
    texts = (scope, key, old, new, detail)
    if not (isinstance(event_type, str) and isinstance(source, str)) or any(
        text is not None and not isinstance(text, str) for text in texts
    ):
        raise apsw.CorruptError("an event in it is none")
    return Event(number, event_type, time_of(created), source, scope, key, old, new, detail)


def latest(connection: apsw.Connection, limit: int) -> list[Event]:
    """The newest `limit` events, newest first."""
    found = rows(connection, f"SELECT {_COLUMNS} FROM memory_events ORDER BY id DESC LIMIT ?", (limit,))  # noqa: S608
    return [_event(row) for row in found]


def last_of(connection: apsw.Connection, *event_types: str) -> Event | None:
    """The newest event of one of these types."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM memory_events"  # noqa: S608
        " WHERE event_type IN (SELECT value FROM json_each(?)) ORDER BY id DESC LIMIT 1",
        (json.dumps(event_types),),
    )
    return _event(found[0]) if found else None


def are_usable(connection: apsw.Connection) -> bool:
    """Whether every event can be read as what it is."""
    stored = each(connection, f"SELECT {_COLUMNS} FROM memory_events")  # noqa: S608
    try:
        return all(map(_event, stored))
    except apsw.CorruptError:
        return False


def is_known(connection: apsw.Connection, event_type: str, source: str, detail: str) -> bool:
    """Whether the trail holds this very event already."""
    found = rows(
        connection,
        "SELECT 1 FROM memory_events WHERE event_type = ? AND source = ? AND detail = ? LIMIT 1",
        (event_type, source, detail),
    )
    return bool(found)


def forgets(connection: apsw.Connection) -> frozenset[tuple[str, str, str]]:
    """Scope, key and time of every fact that was forgotten."""
    return frozenset(
        rows(
            connection,
            "SELECT scope, memory_key, created_at FROM memory_events"
            " WHERE event_type = 'forget' AND scope IS NOT NULL AND memory_key IS NOT NULL",
        )
    )


def stated(connection: apsw.Connection, scope: str | None = None) -> list[tuple[str, str, str]]:
    """Scope, key and value of everything that the trail says of facts, of all scopes or of one."""
    return rows(
        connection,
        "SELECT scope, memory_key, old_value FROM memory_events WHERE scope IS NOT NULL AND (?1 IS NULL OR scope = ?1)"
        " AND memory_key IS NOT NULL AND old_value IS NOT NULL UNION"
        " SELECT scope, memory_key, new_value FROM memory_events WHERE scope IS NOT NULL AND (?1 IS NULL OR scope = ?1)"
        " AND memory_key IS NOT NULL AND new_value IS NOT NULL",
        (scope,),
    )


def set_by_hand(connection: apsw.Connection) -> set[tuple[str, str, str]]:
    """(scope, key, value) of what the person set themselves: neither in a message nor by a yes to what waited."""
    return set(
        rows(
            connection,
            "SELECT scope, memory_key, new_value FROM memory_events WHERE event_type IN ('create', 'update', 'reinforce')"
            " AND source = 'user' AND scope IS NOT NULL AND memory_key IS NOT NULL AND new_value IS NOT NULL"
            " AND CASE WHEN json_valid(detail) THEN json_type(detail, '$.evidence') END IS NULL"
            " AND (scope, memory_key, created_at) NOT IN (SELECT scope, memory_key, created_at FROM memory_events"
            " WHERE event_type = 'accept' AND scope IS NOT NULL AND memory_key IS NOT NULL)",
        )
    )


def stated_without_message(connection: apsw.Connection) -> dict[tuple[str, str, str], datetime]:
    """(scope, key, value) → when it was stated last by what is no message, as far as the trail tells.

    What was stated long before it was stored, or stored by a file that is lost, is dated by the event that ended it.
    """
    found = rows(
        connection,
        "SELECT event_type, scope, memory_key, old_value, new_value, created_at, detail FROM memory_events"
        " WHERE event_type IN ('create', 'update', 'reinforce', 'supersede', 'accept') AND memory_key IS NOT NULL"
        " AND scope IS NOT NULL ORDER BY id",
    )
    last: dict[tuple[str, str, str], datetime] = {}
    begun: dict[tuple[str, str], datetime] = {}
    standing: dict[tuple[str, str], str] = {}
    for kind, where, key, old, new, created, detail in found:
        at, told, place = time_of(created), _told(detail), (where, key)
        if old is not None and kind in ("update", "supersede"):
            said, day = begun.pop(place, None), told.get("from")
            if isinstance(day, str) and (said is None or said.date().isoformat() != day):
                said = time_of(f"{day}T00:00:00+00:00")
            last[where, key, old] = max(said or at, last.get((where, key, old), said or at))
        if kind == "accept" and begun.get(place) == at:
            del begun[place]  # a yes to what was said elsewhere
        elif new is not None and "evidence" not in told:
            if kind == "reinforce":
                last[where, key, new] = max(at, last.get((where, key, new), at))
            else:
                begun[place], standing[place] = at, new
    for (where, key), at in begun.items():
        stated = (where, key, standing[where, key])
        last[stated] = max(at, last.get(stated, at))
    return last


def _told(detail: str | None) -> dict[str, Any]:
    """What a detail says by name; earlier versions wrote plain words."""
    try:
        told = json.loads(detail or "")
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def of_key(connection: apsw.Connection, key: str, scope: str) -> list[Event]:
    """All that happened to a key, oldest first."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM memory_events WHERE memory_key = ? AND scope = ? ORDER BY id",  # noqa: S608
        (key, scope),
    )
    return [_event(row) for row in found]


def scopes(connection: apsw.Connection) -> list[str]:
    """Scopes in which anything ever happened."""
    return [row[0] for row in rows(connection, "SELECT DISTINCT scope FROM memory_events WHERE scope IS NOT NULL")]


def scopes_of(connection: apsw.Connection, key: str) -> list[str]:
    """Scopes in which something happened to a key."""
    found = rows(
        connection, "SELECT DISTINCT scope FROM memory_events WHERE memory_key = ? AND scope IS NOT NULL", (key,)
    )
    return sorted(row[0] for row in found)


def noted_since(connection: apsw.Connection, number: int, scopes: Sequence[str]) -> list[str]:
    """Keys that extraction stored or replaced by itself after event `number`, in these scopes, oldest first."""
    found = rows(
        connection,
        "SELECT memory_key, min(id) FROM memory_events e WHERE event_type IN ('create', 'update') AND id > ?1"
        " AND source = 'extracted' AND scope IN (SELECT value FROM json_each(?2)) AND EXISTS (SELECT 1 FROM facts f"
        " WHERE f.key = e.memory_key AND f.scope = e.scope AND f.source = 'extracted' AND f.is_deleted = 0)"
        " GROUP BY memory_key ORDER BY 2",
        (number, json.dumps(list(scopes))),
    )
    return [key for key, _ in found]


def newest(connection: apsw.Connection) -> int:
    """The number of the newest event there ever was; it does not fall when events are pruned."""
    found = rows(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'memory_events'")
    return int(found[0][0]) if found else 0


def number_behind(connection: apsw.Connection, number: int) -> None:
    """The next event gets a higher number than `number`, which another file has used. Belongs inside a transaction."""
    connection.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'memory_events'", (number,))
    if not connection.changes():
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('memory_events', ?)", (number,))


_RESTING_ON_NOTHING: Final = (
    "detail = CASE WHEN json_type(CASE WHEN json_valid(detail) THEN detail END, '$.evidence') IS NULL THEN detail"
    " ELSE json_set(detail, '$.evidence', json('[]')) END"
)
"""Of the event of a statement that rested on messages: how these begin is gone, that there were some stays."""


def blank_values(connection: apsw.Connection, key: str, scope: str) -> None:
    """Take the values out of every event of this fact, and what they rested on; that something happened, and when, stays."""
    connection.execute(
        f"UPDATE memory_events SET old_value = NULL, new_value = NULL, {_RESTING_ON_NOTHING}"  # noqa: S608
        " WHERE memory_key = ? AND scope = ?",
        (key, scope),
    )


def blank_evidence(connection: apsw.Connection, content_keys: Collection[bytes]) -> None:
    """Take what statements rested on out of every event that names one of these messages."""
    connection.execute(
        f"UPDATE memory_events SET {_RESTING_ON_NOTHING} WHERE event_type IN ('create', 'update', 'reinforce')"  # noqa: S608
        " AND EXISTS (SELECT 1 FROM json_each(CASE WHEN json_valid(detail) THEN detail END, '$.evidence') e"
        " WHERE e.value IN (SELECT value FROM json_each(?)))",
        (json.dumps([key.hex()[:EVIDENCE_DIGITS] for key in content_keys]),),
    )


def blank_key(connection: apsw.Connection, key: str, scope: str) -> None:
    """Take the key itself out of every event that names it: it is made of the value's words."""
    connection.execute("UPDATE memory_events SET memory_key = NULL WHERE memory_key = ? AND scope = ?", (key, scope))
    connection.execute(
        "UPDATE memory_events SET detail = NULL WHERE event_type = 'supersede' AND json_extract(detail, '$.by') = ?",
        (key,),
    )


def blank_reasons(connection: apsw.Connection, words: frozenset[str]) -> None:
    """Take away what a person wrote of a rejection, where it holds all of these stems."""
    blank_reasons_that(connection, lambda _, reason: bool(words) and words <= stems(reason))


def blank_reasons_that(connection: apsw.Connection, goes: Callable[[str, str], bool]) -> None:
    """The same of those of which that is true; it is asked about scope and reason."""
    found = rows(
        connection,
        "SELECT id, scope, json_extract(detail, '$.reason') FROM memory_events"
        " WHERE event_type = 'decline' AND json_extract(detail, '$.reason') IS NOT NULL",
    )
    for number, scope, reason in found:
        if goes(scope, reason):
            connection.execute(
                "UPDATE memory_events SET detail = json_remove(detail, '$.reason') WHERE id = ?", (number,)
            )


def blank_value(connection: apsw.Connection, key: str, scope: str, value: str) -> None:
    """Take one value out of every event of a fact, and what it rested on."""
    for blanked in ("old_value = NULL", f"new_value = NULL, {_RESTING_ON_NOTHING}"):
        column = blanked.partition(" ")[0]
        connection.execute(
            f"UPDATE memory_events SET {blanked} WHERE memory_key = ? AND scope = ? AND {column} = ?",  # noqa: S608
            (key, scope, value),
        )


def blank_scope(connection: apsw.Connection, scope: str) -> None:
    """Take values, keys and details out of every event of a scope."""
    connection.execute(
        "UPDATE memory_events SET memory_key = NULL, old_value = NULL, new_value = NULL, detail = NULL WHERE scope = ?",
        (scope,),
    )


OF_FACTS: Final = frozenset(
    "create update reinforce forget hide unhide decay withdraw supersede accept decline answer erase delete upgrade recover"
    " restore import".split()
)
"""What happened to facts: kept for good, while anything else is thinned."""
MOST_NOISE: Final = 5_000
"""How many events of each other type are kept: one run may refuse thousands of statements, and each prompt has one."""


def thin(connection: apsw.Connection) -> None:
    """Take away all but the newest events of each type that is not about what became of facts. Belongs inside a
    transaction."""
    for event_type in sorted(TYPES.keys() - OF_FACTS):
        connection.execute(
            "DELETE FROM memory_events WHERE event_type = ?1 AND id <= (SELECT id FROM memory_events"
            " WHERE event_type = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            (event_type, MOST_NOISE),
        )
