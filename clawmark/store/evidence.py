"""What facts and proposals rest on: which utterances, never their text.

An utterance is a content key and a time, in whichever log it stands, so that reading a log again, from another source or
into a rebuilt database adds nothing. A row belongs to a statement: a scope, a key and a value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import datetime

import apsw

from clawmark.model import SHARED, Evidence, digest
from clawmark.store.db import rows
from clawmark.store.passages import SAME_UTTERANCE_MS, from_ms, to_ms
from clawmark.text import likeness


def value_hash(value: str) -> bytes:
    """16 bytes that all spellings of one value share."""
    return digest(likeness(value))


def add(connection: apsw.Connection, scope: str, key: str, value: str, evidence: Evidence) -> bool:
    """Note an utterance; False when the statement rests on it already. Belongs inside a transaction."""
    at = to_ms(evidence.said_at)
    return add_row(connection, scope, key, value_hash(value), evidence.content_key, at, evidence.session)


def add_row(
    connection: apsw.Connection,
    scope: str,
    key: str,
    hashed: bytes,
    content_key: bytes,
    at: int,
    session: str,
    is_gone: int = 0,
) -> bool:
    """`add` of a statement that is known by its hash alone, as another file has it."""
    known = rows(
        connection,
        "SELECT 1 FROM evidence WHERE scope = ? AND key = ? AND value_hash = ? AND content_key = ?"
        " AND said_at BETWEEN ? AND ?",
        (scope, key, hashed, content_key, at - SAME_UTTERANCE_MS, at + SAME_UTTERANCE_MS),
    )
    if known:
        return False
    connection.execute(
        "INSERT INTO evidence (scope, key, value_hash, content_key, said_at, session, is_gone) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (scope, key, hashed, content_key, at, session, is_gone),
    )
    return True


def of(connection: apsw.Connection, scope: str, key: str, value: str | None = None) -> list[Evidence]:
    """What a statement rests on, or all that was ever said under its key; oldest first."""
    found = rows(
        connection,
        "SELECT DISTINCT content_key, said_at, session FROM evidence WHERE scope = ?1 AND key = ?2"
        " AND (?3 IS NULL OR value_hash = ?3) ORDER BY said_at, content_key",
        (scope, key, None if value is None else value_hash(value)),
    )
    return [Evidence(content_key, from_ms(at), session) for content_key, at, session in found]


def share(connection: apsw.Connection, old: tuple[str, str, str], new: tuple[str, str, str]) -> None:
    """A statement (scope, key, value) is stored in another place, or in other words: it rests on the same there."""
    places = [(scope, key, value_hash(value)) for scope, key, value in (old, new)]
    connection.execute(
        "INSERT OR IGNORE INTO evidence (scope, key, value_hash, content_key, said_at, session, is_gone)"
        " SELECT ?4, ?5, ?6, content_key, said_at, session, is_gone FROM evidence"
        " WHERE scope = ?1 AND key = ?2 AND value_hash = ?3",
        (*places[0], *places[1]),
    )


def remove(connection: apsw.Connection, scope: str, key: str, value: str | None = None) -> None:
    """Take away what a statement rests on, or all of a key."""
    connection.execute(
        "DELETE FROM evidence WHERE scope = ?1 AND key = ?2 AND (?3 IS NULL OR value_hash = ?3)",
        (scope, key, None if value is None else value_hash(value)),
    )


def mark_gone(connection: apsw.Connection, content_keys: Collection[bytes]) -> None:
    """Messages with this content were erased. Whether the utterance is gone is known at the end of a pass."""
    connection.execute(
        "UPDATE evidence SET is_gone = 1 WHERE content_key IN (SELECT unhex(value) FROM json_each(?))",
        (json.dumps(sorted(key.hex() for key in content_keys)),),
    )


def rename(connection: apsw.Connection, old: Collection[bytes], new: bytes) -> None:
    """A message's content is called otherwise from now on: it is cleaned by other rules. What rests on it stays."""
    for content_key in sorted(set(old) - {new}):
        connection.execute("UPDATE OR IGNORE evidence SET content_key = ? WHERE content_key = ?", (new, content_key))
        connection.execute("DELETE FROM evidence WHERE content_key = ?", (content_key,))
        connection.execute("UPDATE OR IGNORE extracted SET content_key = ? WHERE content_key = ?", (new, content_key))


def forget(connection: apsw.Connection, content_keys: Collection[bytes]) -> None:
    """Take away every trace of these messages. What rests on others, or was set by the person, stays."""
    listed = json.dumps(sorted(key.hex() for key in content_keys))
    connection.execute("DELETE FROM evidence WHERE content_key IN (SELECT unhex(value) FROM json_each(?))", (listed,))
    connection.execute("DELETE FROM extracted WHERE content_key IN (SELECT unhex(value) FROM json_each(?))", (listed,))


def settle(connection: apsw.Connection) -> list[tuple[str, str, bytes]]:
    """Forget utterances that stand in no log any more; the statements (scope, key, value hash) that rest on nothing now.

    Belongs into a transaction at the end of a pass that could read all there is.
    """
    connection.execute(
        "UPDATE evidence SET is_gone = 0 WHERE is_gone = 1 AND EXISTS"
        " (SELECT 1 FROM passages p WHERE p.content_key = evidence.content_key)"
    )
    touched = rows(connection, "SELECT DISTINCT scope, key, value_hash FROM evidence WHERE is_gone = 1")
    connection.execute("DELETE FROM evidence WHERE is_gone = 1")
    return [row for row in touched if not _rests(connection, *row)]


def _rests(connection: apsw.Connection, scope: str, key: str, hashed: bytes) -> bool:
    return bool(
        rows(
            connection,
            "SELECT 1 FROM evidence WHERE scope = ? AND key = ? AND value_hash = ? LIMIT 1",
            (scope, key, hashed),
        )
    )


def statements_on(connection: apsw.Connection, content_keys: Collection[bytes]) -> list[tuple[str, str, bytes]]:
    """(scope, key, value hash) of every statement that rests on one of these and on nothing else."""
    found = rows(
        connection,
        "SELECT e.scope, e.key, e.value_hash FROM evidence e WHERE e.content_key IN (SELECT unhex(value) FROM json_each(?1))"
        " AND NOT EXISTS (SELECT 1 FROM evidence o WHERE o.scope = e.scope AND o.key = e.key"
        " AND o.value_hash = e.value_hash AND o.content_key NOT IN (SELECT unhex(value) FROM json_each(?1)))"
        " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
        (json.dumps(sorted(key.hex() for key in content_keys)),),
    )
    return [(scope, key, hashed) for scope, key, hashed in found]


def touching(connection: apsw.Connection, content_keys: Collection[bytes]) -> set[tuple[str, str, bytes]]:
    """(scope, key, value hash) of every statement that rests on one of these, whatever else it rests on."""
    found = rows(
        connection,
        "SELECT DISTINCT scope, key, value_hash FROM evidence WHERE content_key IN (SELECT unhex(value) FROM json_each(?))",
        (json.dumps(sorted(key.hex() for key in content_keys)),),
    )
    return {(scope, key, hashed) for scope, key, hashed in found}


def utterances(connection: apsw.Connection) -> list[tuple[bytes, datetime]]:
    """Content key of everything that a statement rests on, and when it was said last."""
    found = rows(connection, "SELECT content_key, max(said_at) FROM evidence GROUP BY 1 ORDER BY 1")
    return [(content_key, from_ms(at)) for content_key, at in found]


def unread_of(connection: apsw.Connection, session: str, scope: str | None) -> set[bytes]:
    """Contents of what was said in a session and stands in no passage: no pass has read it. scope: of what rests on it, or
    None; what is shared is seen in all."""
    found = rows(
        connection,
        "SELECT DISTINCT content_key FROM evidence e WHERE session = ?1 AND (?2 IS NULL OR scope IN (?2, ?3))"
        " AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.content_key = e.content_key)",
        (session, scope, SHARED),
    )
    return {content_key for (content_key,) in found}


def sessions(connection: apsw.Connection, scope: str, key: str, value: str) -> int:
    """In how many sessions a statement was made."""
    found = rows(
        connection,
        "SELECT count(DISTINCT session) FROM evidence WHERE scope = ? AND key = ? AND value_hash = ?",
        (scope, key, value_hash(value)),
    )
    return int(found[0][0])


# --- what was looked through ------------------------------------------------------------------------------------------


def note_extracted(connection: apsw.Connection, utterances: Iterable[tuple[bytes, int]], *, by_model: bool) -> None:
    """These utterances (content key, milliseconds) were looked through. Belongs into the transaction of what came of it."""
    connection.executemany(
        "INSERT INTO extracted (content_key, said_at, by_model) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET by_model = max(by_model, excluded.by_model)",
        [(content_key, at, int(by_model)) for content_key, at in utterances],
    )
