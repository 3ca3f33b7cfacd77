"""Vectors, and what waits for one.

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

from clawmark.model import FailedText
from clawmark.store.db import each, rows
from clawmark.store.passages import from_ms

if TYPE_CHECKING:
    from clawmark.model import Vector

FORMAT = "<f4"
LONGEST_WAIT_MS = 2 * 86_400_000
"""A next try further away than this was set by a clock that was wrong."""

TEXT_GONE = "text_gone"
"""Why a passage has no vector whose text cannot be read back now: no fault of its own, so it is never given up."""


def encode(vector: Vector) -> bytes:
    return vector.astype(FORMAT).tobytes()


def decode(blob: bytes) -> Vector:
    import numpy as np

    return np.frombuffer(blob, dtype=FORMAT)


def of_length_one(blobs: Sequence[bytes]) -> list[bool]:
    """Which of these vectors of one dimension are finite and of length 1, as far as float32 can be."""
    import numpy as np  # only here: a block on words alone loads no numbers

    numbers = np.frombuffer(b"".join(blobs), dtype=FORMAT).reshape(len(blobs), -1).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
        return [bool(near) for near in np.abs(lengths - 1) < 1e-3]


def expect(connection: apsw.Connection, passage_id: int, at: int) -> None:
    """A new passage waits for its vector."""
    connection.execute("INSERT INTO pending_vectors (passage_id, at, reason) VALUES (?, ?, 'new')", (passage_id, at))


def make_anew(connection: apsw.Connection, passage_id: int, at: int) -> None:
    """A passage's text has changed: its vectors go, and it waits for one of the new text."""
    connection.execute("DELETE FROM message_vectors WHERE passage_id = ?", (passage_id,))
    connection.execute(
        "INSERT INTO pending_vectors (passage_id, at, reason) VALUES (?, ?, 'new')"
        " ON CONFLICT DO UPDATE SET reason = 'new', tries = 0, next_try = 0, given_up = 0",
        (passage_id, at),
    )
    bump_generation(connection)


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


def failed(connection: apsw.Connection, limit: int) -> list[FailedText]:
    """The newest passages that a model was asked about in vain, at most `limit`."""
    found = rows(
        connection,
        "SELECT s.source, min(r.ref), v.reason, v.tries, CASE WHEN v.given_up THEN NULL ELSE v.next_try END"
        " FROM pending_vectors v JOIN passage_refs r ON r.passage_id = v.passage_id"
        " JOIN streams s ON s.id = r.stream_id WHERE v.tries > 0 AND v.reason <> ?"
        " GROUP BY v.passage_id ORDER BY v.at DESC, v.passage_id DESC LIMIT ?",
        (TEXT_GONE, limit),
    )
    return [
        FailedText(source, ref, reason, tried, None if next_try is None else from_ms(next_try))
        for source, ref, reason, tried, next_try in found
    ]


def count_failed(connection: apsw.Connection) -> int:
    """How many `failed` would name without a limit."""
    found = rows(connection, "SELECT count(*) FROM pending_vectors WHERE tries > 0 AND reason <> ?", (TEXT_GONE,))
    return int(found[0][0])


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
    yield from each(
        connection,
        "SELECT v.passage_id, p.scope, c.session, p.origin, v.embedding FROM message_vectors v"
        " CROSS JOIN passages p ON p.id = v.passage_id CROSS JOIN conversations c ON c.id = p.conversation_id"
        " WHERE v.id > ? AND v.id <= ? AND v.space_id = ? ORDER BY v.id",
        (after, last, space_id),
    )


def remake(connection: apsw.Connection, ids: Sequence[int]) -> None:
    """Drop these damaged vectors, by their own ids; those of the space that is filled are made anew, at once.

    Belongs inside a transaction.
    """
    listed = (json.dumps(list(ids)),)
    connection.execute(
        "INSERT INTO pending_vectors (passage_id, at, reason) SELECT p.id, p.at, 'damaged' FROM message_vectors v"
        " JOIN passages p ON p.id = v.passage_id JOIN spaces s ON s.id = v.space_id"
        " WHERE v.id IN (SELECT value FROM json_each(?))"
        " AND (s.is_target OR (s.is_active AND NOT EXISTS (SELECT 1 FROM spaces WHERE is_target)))"
        " ON CONFLICT (passage_id) DO UPDATE SET reason = 'damaged', tries = 0, next_try = 0, given_up = 0",
        listed,
    )
    connection.execute("DELETE FROM message_vectors WHERE id IN (SELECT value FROM json_each(?))", listed)
    bump_generation(connection)


# --- vectors of the TypeScript clawmark -------------------------------------------------------------------------------


def reusable(connection: apsw.Connection, refs: Sequence[str]) -> dict[str, bytes]:
    """The old vectors of these refs, by ref: little-endian float32 of length 1, of some model nobody wrote down."""
    return dict(
        rows(
            connection,
            "SELECT source_ref, embedding FROM old_vectors WHERE source_ref IN (SELECT value FROM json_each(?))",
            (json.dumps(list(refs)),),
        )
    )


def has_old(connection: apsw.Connection) -> bool:
    return bool(rows(connection, "SELECT 1 FROM old_vectors LIMIT 1"))


def forget_old(connection: apsw.Connection) -> None:
    """Nothing asks for the old vectors any more, or one of them may be of a text that was erased: they name no passage."""
    connection.execute("DELETE FROM old_vectors")


# --- what tells resident vectors to load anew -------------------------------------------------------------------------


def bump_generation(connection: apsw.Connection) -> None:
    """Tell every resident matrix that vectors went away. Belongs into the transaction that removes them."""
    connection.execute("UPDATE spaces SET generation = generation + 1")


def generation(connection: apsw.Connection, space_id: int) -> int:
    found = rows(connection, "SELECT generation FROM spaces WHERE id = ?", (space_id,))
    return int(found[0][0]) if found else -1
