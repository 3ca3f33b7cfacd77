"""Vectors and the spaces they belong to.

A vector is `dimension` little-endian float32 of length 1, beside the passage and the space it belongs to. What has no
vector yet is one row of `pending_vectors` with a reason, whatever the reason: rows appear with their passage and go with
their vector, in the same transaction, so this table is the vectors job's cursor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import apsw

from clawmark.model import Space
from clawmark.store.db import rows

if TYPE_CHECKING:
    from clawmark.model import Vector

FORMAT = "<f4"
LONGEST_WAIT_MS = 2 * 86_400_000
"""A next try further away than this was set by a clock that was wrong."""


def encode(vector: Vector) -> bytes:
    return vector.astype(FORMAT).tobytes()


def active_space(connection: apsw.Connection) -> tuple[int, Space] | None:
    """The space whose vectors are searched, and its row."""
    found = rows(
        connection, "SELECT id, model, dimension, document_prefix, query_prefix, probe FROM spaces WHERE is_active"
    )
    return (found[0][0], Space(*found[0][1:])) if found else None


def activate(connection: apsw.Connection, space: Space, now: datetime) -> int:
    """Make `space` the one that is searched and filled; every passage without a vector in it becomes pending."""
    values = (space.model, space.dimension, space.document_prefix, space.query_prefix, space.probe)
    connection.execute("UPDATE spaces SET is_active = 0 WHERE is_active")
    connection.execute(
        "INSERT INTO spaces (model, dimension, document_prefix, query_prefix, probe, is_active, created_at)"
        " VALUES (?, ?, ?, ?, ?, 1, ?) ON CONFLICT DO UPDATE SET is_active = 1",
        (*values, now.isoformat()),
    )
    row_id = int(rows(connection, "SELECT id FROM spaces WHERE is_active")[0][0])
    connection.execute(
        "INSERT OR IGNORE INTO pending_vectors (passage_id, at, reason)"
        " SELECT v.passage_id, p.at, 'space' FROM message_vectors v JOIN passages p ON p.id = v.passage_id"
        " WHERE NOT EXISTS (SELECT 1 FROM message_vectors w WHERE w.passage_id = v.passage_id AND w.space_id = ?)",
        (row_id,),
    )
    return row_id


def expect(connection: apsw.Connection, passage_id: int, at: int) -> None:
    """A new passage waits for its vector."""
    connection.execute("INSERT INTO pending_vectors (passage_id, at, reason) VALUES (?, ?, 'new')", (passage_id, at))


def due(connection: apsw.Connection, now_ms: int, limit: int) -> list[int]:
    """Passages whose vector is due, newest first. One that failed waits for its time and holds up no other."""
    found = rows(
        connection,
        "SELECT passage_id FROM pending_vectors WHERE next_try <= ?1 OR next_try > ?1 + ?2"
        " ORDER BY at DESC, passage_id DESC LIMIT ?3",
        (now_ms, LONGEST_WAIT_MS, limit),
    )
    return [row[0] for row in found]


def count_due(connection: apsw.Connection, now_ms: int) -> int:
    return int(
        rows(
            connection,
            "SELECT count(*) FROM pending_vectors WHERE next_try <= ?1 OR next_try > ?1 + ?2",
            (now_ms, LONGEST_WAIT_MS),
        )[0][0]
    )


def add(connection: apsw.Connection, space_id: int, vectors: Iterable[tuple[int, Vector]], now: datetime) -> None:
    """Store vectors and take their passages off the pending list. A passage erased meanwhile is passed over."""
    for passage_id, vector in vectors:
        connection.execute(
            "INSERT INTO message_vectors (passage_id, space_id, embedding, created_at)"
            " SELECT id, ?, ?, ? FROM passages WHERE id = ? ON CONFLICT DO NOTHING",
            (space_id, encode(vector), now.isoformat(), passage_id),
        )
        connection.execute("DELETE FROM pending_vectors WHERE passage_id = ?", (passage_id,))


def postpone(connection: apsw.Connection, passage_id: int, reason: str, next_try: int) -> None:
    connection.execute(
        "UPDATE pending_vectors SET reason = ?, tries = tries + 1, next_try = ? WHERE passage_id = ?",
        (reason, next_try, passage_id),
    )


def tries(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, int]:
    found = rows(
        connection,
        "SELECT passage_id, tries FROM pending_vectors WHERE passage_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return dict(found)


def pending_by_reason(connection: apsw.Connection) -> dict[str, int]:
    return dict(rows(connection, "SELECT reason, count(*) FROM pending_vectors GROUP BY reason ORDER BY reason"))


def count(connection: apsw.Connection, space_id: int) -> int:
    return int(rows(connection, "SELECT count(*) FROM message_vectors WHERE space_id = ?", (space_id,))[0][0])


def last_id(connection: apsw.Connection) -> int:
    """The highest vector id of all spaces; ids rise and never return."""
    return int(rows(connection, "SELECT coalesce(max(id), 0) FROM message_vectors")[0][0])


def count_between(connection: apsw.Connection, space_id: int, after: int, last: int) -> int:
    found = rows(
        connection,
        "SELECT count(*) FROM message_vectors WHERE id > ? AND id <= ? AND space_id = ?",
        (after, last, space_id),
    )
    return int(found[0][0])


def between(
    connection: apsw.Connection, space_id: int, after: int, last: int
) -> Iterator[tuple[int, str, str, str, bytes]]:
    """(passage id, scope, session, origin, vector) of the vectors with after < id <= last, in their order."""
    yield from connection.execute(
        "SELECT v.passage_id, p.scope, c.session, p.origin, v.embedding FROM message_vectors v"
        " CROSS JOIN passages p ON p.id = v.passage_id CROSS JOIN conversations c ON c.id = p.conversation_id"
        " WHERE v.id > ? AND v.id <= ? AND v.space_id = ? ORDER BY v.id",
        (after, last, space_id),
    )


def bump_generation(connection: apsw.Connection) -> None:
    """Tell every resident matrix that vectors went away. Belongs into the transaction that removes them."""
    connection.execute("UPDATE spaces SET generation = generation + 1")


def generation(connection: apsw.Connection, space_id: int) -> int:
    found = rows(connection, "SELECT generation FROM spaces WHERE id = ?", (space_id,))
    return int(found[0][0]) if found else -1
