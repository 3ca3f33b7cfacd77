"""Statements that wait for the person. What is decided loses its value: the row says what became of it, and no more."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, get_args

import apsw

from clawmark.errors import UsageError
from clawmark.model import Conflict, Decision, Draft, Proposal, ProposalKind, ProposalState
from clawmark.store.db import rows, time_of
from clawmark.store.evidence import value_hash

KINDS: Final = get_args(ProposalKind)
CONFLICTS: Final = get_args(Conflict)
STATES: Final = get_args(ProposalState)

HASH_DIGITS: Final = 4
"""Of the hash in a name, at least: fewer would bind a yes to nothing."""
_NUMBER: Final = re.compile(r"[0-9]{1,15}")

_COLUMNS: Final = (
    "id, kind, scope, key, value, confidence, origin, reason, conflict, against, state, observed_at, created_at,"
    " updated_at, expires_at, deferred_until"
)


def _proposal(row: tuple[Any, ...]) -> Proposal:
    number, kind, scope, key, value, confidence, origin, reason, conflict, against, state, *times = row
    observed, created, updated, expires, deferred = times
    if not is_one(kind, scope, key, value, confidence, state):
        raise apsw.CorruptError("a proposal in it is none")
    return Proposal(
        number,
        kind,
        scope,
        key,
        value,
        confidence,
        origin,
        reason,
        conflict,
        against,
        state,
        time_of(observed),
        time_of(created),
        time_of(updated),
        time_of(expires),
        None if deferred is None else time_of(deferred),
    )


def is_one(kind: Any, scope: Any, key: Any, value: Any, confidence: Any, state: Any) -> bool:
    """Whether these cells are a proposal. SQLite lets any type stand anywhere."""
    has_place = all(isinstance(text, str) and text for text in (scope, key)) and isinstance(value, str)
    is_sure = isinstance(confidence, int | float) and 0 <= confidence <= 1
    return has_place and is_sure and kind in KINDS and state in STATES


def add(connection: apsw.Connection, draft: Draft, now: datetime, expires_at: datetime) -> Proposal:
    """Have it wait. Nothing was observed later than now, whatever a log's clock said."""
    connection.execute(
        "INSERT INTO proposals (kind, scope, key, value, confidence, origin, reason, conflict, against, state,"
        " observed_at, created_at, updated_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?)",
        (
            draft.kind,
            draft.scope,
            draft.key,
            draft.value,
            draft.confidence,
            draft.origin,
            draft.reason,
            draft.conflict,
            draft.against,
            min(draft.observed_at or now, now).isoformat(),
            now.isoformat(),
            now.isoformat(),
            expires_at.isoformat(),
        ),
    )
    made = get(connection, connection.last_insert_rowid())
    assert made is not None
    return made


def get(connection: apsw.Connection, number: int) -> Proposal | None:
    found = rows(connection, f"SELECT {_COLUMNS} FROM proposals WHERE id = ?", (number,))  # noqa: S608
    return _proposal(found[0]) if found else None


def number_in(name: str) -> int | None:
    """The number that a proposal's name begins with; None in what is no name."""
    number = name.strip().partition("-")[0]
    return int(number) if _NUMBER.fullmatch(number) else None


def named(connection: apsw.Connection, name: str) -> Proposal:
    """The one that waits under this name, `12` or `12-3fa9c1`. Who gives the hash means these very words; who gives the
    number alone, what stands there now. Raises UsageError for one that is unknown, decided, or says something else."""
    name = name.strip()
    number = number_in(name)
    _, dash, head = name.partition("-")
    one = None if number is None else get(connection, number)
    if one is None:
        raise UsageError(f"nothing waits under {name!r}; `clawmark review --list` names what does.")
    if one.state != "pending":
        raise UsageError(f"proposal {one.id} is {one.state} already.")
    if dash and len(head) < HASH_DIGITS:
        raise UsageError(
            f"{name} names too little of what it says: give {one.name}, at least {HASH_DIGITS} digits of its "
            "hash, or the number alone."
        )
    if not one.content_hash.startswith(head):
        raise UsageError(f"{name} says something else by now: it is {one.name}; look at it again.")
    return one


def pending(
    connection: apsw.Connection,
    scopes: Sequence[str] | None = None,
    *,
    key: str | None = None,
    now: datetime | None = None,
) -> list[Proposal]:
    """Those that wait, oldest first; scopes, key None = all; with `now` without those that are put off until later."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM proposals WHERE state = 'pending'"  # noqa: S608
        " AND (?1 IS NULL OR scope IN (SELECT value FROM json_each(?1)))"
        " AND (?2 IS NULL OR key = ?2)"
        " AND (?3 IS NULL OR deferred_until IS NULL OR deferred_until <= ?3) ORDER BY id",
        (None if scopes is None else json.dumps(list(scopes)), key, None if now is None else now.isoformat()),
    )
    return [_proposal(row) for row in found]


def saying(connection: apsw.Connection, scope: str, key: str, hashed: bytes) -> list[Proposal]:
    """Those that wait under this key with the value of this hash, as evidence names it."""
    return [one for one in pending(connection, [scope], key=key) if value_hash(one.value) == hashed]


def count(connection: apsw.Connection, scopes: Sequence[str] | None, now: datetime, most: int) -> int:
    """How many wait and are not put off, counted up to `most`."""
    found = rows(
        connection,
        "SELECT count(*) FROM (SELECT 1 FROM proposals WHERE state = 'pending'"
        " AND (?1 IS NULL OR scope IN (SELECT value FROM json_each(?1)))"
        " AND (deferred_until IS NULL OR deferred_until <= ?2) LIMIT ?3)",
        (None if scopes is None else json.dumps(list(scopes)), now.isoformat(), most),
    )
    return int(found[0][0])


def decide(connection: apsw.Connection, number: int, state: ProposalState, now: datetime) -> None:
    """What became of it. Its words are not kept, and of its key, which may be made of them, the prefix."""
    connection.execute(
        "UPDATE proposals SET state = ?, value = '', key = substr(key, 1, instr(key, '.')), against = NULL,"
        " deferred_until = NULL, updated_at = ? WHERE id = ?",
        (state, now.isoformat(), number),
    )


def defer(connection: apsw.Connection, number: int, until: datetime, expires_at: datetime, now: datetime) -> None:
    """Put it off; what is put off does not run out meanwhile."""
    connection.execute(
        "UPDATE proposals SET deferred_until = ?, expires_at = max(expires_at, ?), updated_at = ? WHERE id = ?",
        (until.isoformat(), expires_at.isoformat(), now.isoformat(), number),
    )


def believe(connection: apsw.Connection, number: int, confidence: float, now: datetime) -> None:
    """It was said again: how sure one may be of it has changed. What it says has not."""
    connection.execute(
        "UPDATE proposals SET confidence = ?, updated_at = ? WHERE id = ?", (confidence, now.isoformat(), number)
    )


def run_out(connection: apsw.Connection, now: datetime) -> list[Proposal]:
    """Those whose time is over."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM proposals WHERE state = 'pending' AND expires_at <= ? ORDER BY id",  # noqa: S608
        (now.isoformat(),),
    )
    return [_proposal(row) for row in found]


def of_scope(connection: apsw.Connection, scope: str) -> list[Proposal]:
    """All of a scope, decided or not."""
    found = rows(connection, f"SELECT {_COLUMNS} FROM proposals WHERE scope = ? ORDER BY id", (scope,))  # noqa: S608
    return [_proposal(row) for row in found]


def decided(connection: apsw.Connection) -> list[Decision]:
    """About statements, in the order in which these were proposed. Whether one was edited the trail knows."""
    found = rows(
        connection,
        "SELECT confidence, state = 'accepted', origin, updated_at, EXISTS (SELECT 1 FROM memory_events e"
        " WHERE e.event_type = 'accept' AND e.created_at = p.updated_at AND e.scope = p.scope"
        " AND CASE WHEN json_valid(e.detail) THEN json_extract(e.detail, '$.edited') END = 1)"
        " FROM proposals p WHERE kind = 'set' AND state IN ('accepted', 'rejected') ORDER BY id",
    )
    return [
        Decision(confidence, bool(accepted), bool(accepted and edited), origin, time_of(at))
        for confidence, accepted, origin, at, edited in found
    ]


def remove(connection: apsw.Connection, number: int) -> None:
    connection.execute("DELETE FROM proposals WHERE id = ?", (number,))
