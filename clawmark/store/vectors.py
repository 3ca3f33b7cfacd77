"""Vectors, and what waits for one.

A vector is `dimension` little-endian float32 of length 1, beside the passage and the space it belongs to. What has no
vector yet is one row of `pending_vectors` with a reason, whatever the reason: rows appear with their passage and go with
their vector, in the same transaction, so this table is the vectors job's cursor.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import apsw

from clawmark.store.db import rows

if TYPE_CHECKING:
    from clawmark.model import Vector

FORMAT = "<f4"
LONGEST_WAIT_MS = 2 * 86_400_000
"""A next try further away than this was set by a clock that was wrong."""


def encode(vector: Vector) -> bytes:
    return vector.astype(FORMAT).tobytes()


def decode(blob: bytes) -> Vector:
    import numpy as np

    return np.frombuffer(blob, dtype=FORMAT)


def expect(connection: apsw.Connection, passage_id: int, at: int) -> None:
    """A new passage waits for its vector."""
    connection.execute("INSERT INTO pending_vectors (passage_id, at, reason) VALUES (?, ?, 'new')", (passage_id, at))


_DUE = "NOT given_up AND (next_try <= ?1 OR next_try > ?1 + ?2)"


def due(connection: apsw.Connection, now_ms: int, limit: int) -> list[int]:
    """Passages whose vector is due, newest first. One that failed waits for its time and holds up no other."""
    found = rows(
        connection,
        f"SELECT passage_id FROM pending_vectors WHERE {_DUE} ORDER BY at DESC, passage_id DESC LIMIT ?3",  # noqa: S608
        (now_ms, LONGEST_WAIT_MS, limit),
    )
    return [row[0] for row in found]


def count_due(connection: apsw.Connection, now_ms: int) -> int:
    found = rows(connection, f"SELECT count(*) FROM pending_vectors WHERE {_DUE}", (now_ms, LONGEST_WAIT_MS))  # noqa: S608
    return int(found[0][0])


def add(connection: apsw.Connection, space_id: int, vectors: Iterable[tuple[int, Vector]], now: datetime) -> None:
    """Store vectors and take their passages off the pending list. A passage erased meanwhile is passed over."""
    for passage_id, vector in vectors:
        connection.execute(
            "INSERT INTO message_vectors (passage_id, space_id, embedding, created_at)"
            " SELECT id, ?, ?, ? FROM passages WHERE id = ? ON CONFLICT DO NOTHING",
            (space_id, encode(vector), now.isoformat(), passage_id),
        )
        connection.execute("DELETE FROM pending_vectors WHERE passage_id = ?", (passage_id,))


def postpone(connection: apsw.Connection, passage_id: int, reason: str, next_try: int, *, give_up: bool) -> None:
    connection.execute(
        "UPDATE pending_vectors SET reason = ?, tries = tries + 1, next_try = ?, given_up = ? WHERE passage_id = ?",
        (reason, next_try, give_up, passage_id),
    )


def try_again(connection: apsw.Connection) -> None:
    """Make everything that failed due now, what was given up too."""
    connection.execute("UPDATE pending_vectors SET next_try = 0, given_up = 0, tries = min(tries, 1)")


def tries(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, int]:
    found = rows(
        connection,
        "SELECT passage_id, tries FROM pending_vectors WHERE passage_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return dict(found)


def pending_by_reason(connection: apsw.Connection) -> dict[str, int]:
    return dict(rows(connection, "SELECT reason, count(*) FROM pending_vectors GROUP BY reason ORDER BY reason"))


@dataclass(frozen=True, slots=True)
class Failed:
    """A passage that has no vector because it failed: its message's name, and what is known. Never its text."""

    source: str
    ref: str
    reason: str
    tries: int
    next_try: int
    given_up: bool


def failed(connection: apsw.Connection, limit: int) -> list[Failed]:
    """The newest passages that were tried and have no vector, at most `limit`."""
    found = rows(
        connection,
        "SELECT s.source, min(r.ref), v.reason, v.tries, v.next_try, v.given_up FROM pending_vectors v"
        " JOIN passage_refs r ON r.passage_id = v.passage_id JOIN streams s ON s.id = r.stream_id"
        " WHERE v.tries > 0 GROUP BY v.passage_id ORDER BY v.at DESC, v.passage_id DESC LIMIT ?",
        (limit,),
    )
    return [Failed(source, ref, why, tried, next_try, bool(up)) for source, ref, why, tried, next_try, up in found]


def count_given_up(connection: apsw.Connection) -> int:
    return int(rows(connection, "SELECT count(*) FROM pending_vectors WHERE given_up")[0][0])


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
