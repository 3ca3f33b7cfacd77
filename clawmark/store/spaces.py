"""Spaces: the embedding models whose vectors the file holds, told apart by name, dimension, prefixes and probe.

At most one space is active: its vectors are searched. At most one other is the target: it is being filled, and takes the
active one's place in one transaction when nothing waits for it any more. What waits in `pending_vectors` waits for the
target, or for the active space where there is no target.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import apsw

from clawmark.model import Space
from clawmark.store.db import rows
from clawmark.store.vectors import encode

if TYPE_CHECKING:
    from clawmark.model import Vector

_COLUMNS = (
    "id, model, dimension, document_prefix, query_prefix, probe, endpoint, batch_limit, is_active, is_target,"
    " document_probe, query_probe"
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A space as the file knows it.

    endpoint       the URL that made its vectors, without credentials; "" = in this process
    batch_limit    most texts that endpoint takes at once, as far as it was learned
    *_probe        the vector that the model gave the probe text, as it is stored; None where it was never asked
    """

    id: int
    space: Space
    endpoint: str
    batch_limit: int | None
    is_active: bool
    is_target: bool
    document_probe: bytes | None
    query_probe: bytes | None


def _stored(row: tuple[Any, ...]) -> Stored:
    number, model, dimension, document_prefix, query_prefix, probe, endpoint, limit, active, target, *probes = row
    space = Space(model, dimension, document_prefix, query_prefix, probe)
    return Stored(number, space, endpoint, limit, bool(active), bool(target), *probes)


def in_use(connection: apsw.Connection) -> list[Stored]:
    """The active space and the target, as far as there are any, in this order."""
    found = rows(connection, f"SELECT {_COLUMNS} FROM spaces WHERE is_active OR is_target ORDER BY is_active DESC")  # noqa: S608
    return [_stored(row) for row in found]


def active(connection: apsw.Connection) -> Stored | None:
    """The space whose vectors are searched."""
    return next((space for space in in_use(connection) if space.is_active), None)


def named(connection: apsw.Connection, claimed: Space) -> list[Stored]:
    """The spaces of this model, dimension and prefixes, whatever their probe; those in use first."""
    found = rows(
        connection,
        f"SELECT {_COLUMNS} FROM spaces WHERE model = ? AND dimension = ? AND document_prefix = ? AND query_prefix = ?"  # noqa: S608
        " ORDER BY is_active DESC, is_target DESC, id DESC",
        (claimed.model, claimed.dimension, claimed.document_prefix, claimed.query_prefix),
    )
    return [_stored(row) for row in found]


def add(
    connection: apsw.Connection,
    claimed: Space,
    *,
    endpoint: str,
    document_probe: Vector,
    query_probe: Vector,
    now: datetime,
) -> int:
    """A new space that is neither searched nor filled yet; returns its id."""
    connection.execute(
        "INSERT INTO spaces (model, dimension, document_prefix, query_prefix, probe, endpoint, document_probe,"
        " query_probe, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            claimed.model,
            claimed.dimension,
            claimed.document_prefix,
            claimed.query_prefix,
            _name(document_probe, query_probe),
            endpoint,
            encode(document_probe),
            encode(query_probe),
            now.isoformat(),
        ),
    )
    return connection.last_insert_rowid()


def adopt(connection: apsw.Connection, space_id: int, document_probe: Vector, query_probe: Vector) -> None:
    """Give a space of an earlier version, which knew no probes, those of the model that answers now."""
    connection.execute(
        "UPDATE spaces SET probe = ?, document_probe = ?, query_probe = ? WHERE id = ?",
        (_name(document_probe, query_probe), encode(document_probe), encode(query_probe), space_id),
    )


def _name(document_probe: Vector, query_probe: Vector) -> str:
    """What tells this space from others of the same model name, in a table that people read."""
    return hashlib.blake2b(encode(document_probe) + encode(query_probe), digest_size=8).hexdigest()


def note_endpoint(connection: apsw.Connection, space_id: int, endpoint: str, batch_limit: int | None) -> None:
    connection.execute(
        "UPDATE spaces SET endpoint = ?, batch_limit = ? WHERE id = ?", (endpoint, batch_limit, space_id)
    )


def batch_limit(connection: apsw.Connection, endpoint: str) -> int | None:
    """Most texts this endpoint takes at once, as far as it was learned."""
    found = rows(connection, "SELECT min(batch_limit) FROM spaces WHERE endpoint = ? AND endpoint != ''", (endpoint,))
    return None if found[0][0] is None else int(found[0][0])


def fill(connection: apsw.Connection, space_id: int) -> None:
    """From now on vectors are made for this space: at once the active one where there is none, else the target.

    Every passage that has a vector elsewhere and none here waits for one; what another model refused is tried anew.
    """
    connection.execute("UPDATE spaces SET is_target = 0")
    connection.execute(
        "UPDATE spaces SET is_active = NOT EXISTS (SELECT 1 FROM spaces WHERE is_active) WHERE id = ? AND NOT is_active",
        (space_id,),
    )
    connection.execute("UPDATE spaces SET is_target = 1 WHERE id = ? AND NOT is_active", (space_id,))
    connection.execute(
        "DELETE FROM pending_vectors WHERE passage_id IN (SELECT passage_id FROM message_vectors WHERE space_id = ?)",
        (space_id,),
    )
    connection.execute("UPDATE pending_vectors SET tries = 0, next_try = 0, given_up = 0")
    connection.execute(
        "INSERT OR IGNORE INTO pending_vectors (passage_id, at, reason)"
        " SELECT v.passage_id, p.at, 'space' FROM message_vectors v JOIN passages p ON p.id = v.passage_id"
        " WHERE NOT EXISTS (SELECT 1 FROM message_vectors w WHERE w.passage_id = v.passage_id AND w.space_id = ?)",
        (space_id,),
    )


ENOUGH, FEW = 0.9, 3
"""How much of the searched space a new one must hold before it takes its place: few texts are refused by a sound model."""


def is_filled(connection: apsw.Connection) -> bool:
    """Whether the target may be searched: nothing waits for it but what failed, and that is little."""
    if rows(connection, "SELECT 1 FROM pending_vectors WHERE tries = 0 LIMIT 1"):
        return False
    ((old, new),) = rows(
        connection,
        "SELECT coalesce(sum(s.is_active), 0), coalesce(sum(s.is_target), 0) FROM message_vectors v"
        " JOIN spaces s ON s.id = v.space_id",
    )
    return not old or bool(new and (new >= ENOUGH * old or old - new <= FEW))


def switch(connection: apsw.Connection, target_id: int) -> None:
    """Search the target from now on. The old vectors are unused then; `drop_unused` takes them away."""
    connection.execute("UPDATE spaces SET is_active = (id = ?1), is_target = 0", (target_id,))


def drop_unused(connection: apsw.Connection, limit: int) -> int:
    """Delete at most `limit` vectors of spaces that are neither searched nor filled; returns how many.

    Belongs inside a transaction: some memory may hold them still, and tells by the generation that they are gone.
    """
    found = rows(
        connection,
        "DELETE FROM message_vectors WHERE id IN (SELECT v.id FROM message_vectors v JOIN spaces s ON s.id = v.space_id"
        " WHERE NOT s.is_active AND NOT s.is_target LIMIT ?) RETURNING space_id",
        (limit,),
    )
    for space in set(found):
        connection.execute("UPDATE spaces SET generation = generation + 1 WHERE id = ?", space)
    return len(found)


def newest_generation(connection: apsw.Connection) -> int:
    """The highest generation of all spaces."""
    return int(rows(connection, "SELECT coalesce(max(generation), 0) FROM spaces")[0][0])


def renew_generations(connection: apsw.Connection, generation: int) -> None:
    """Give every space one above `generation` and its own: vectors that somebody holds in memory are of none of these."""
    connection.execute("UPDATE spaces SET generation = max(generation, ?) + 1", (generation,))


def same_model(space: Space, other: Space) -> bool:
    """Whether two spaces bear one name. Only their probes say whether they are one."""
    return replace(space, probe="") == replace(other, probe="")
