"""The resident vectors: one matrix in memory, a copy of what the file holds and never more than that.

A snapshot is published whole and never changes, so a search on another thread sees one consistent state. Rows are
appended when the file's highest vector id grew and loaded anew when its generation says that some went away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import apsw
import numpy as np
from numpy.typing import NDArray

from clawmark.model import Space
from clawmark.store import vectors
from clawmark.store.db import rows

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Row i is passage ids[i]: unit vector vectors[i] (float32, dimension), its scope and session as codes.

    private marks a participant's words, found only in their own session. order sorts ids into ordered.
    """

    space_id: int
    space: Space
    generation: int
    last_vector: int
    ids: Ints
    scopes: Ints
    sessions: Ints
    private: NDArray[np.bool_]
    vectors: Floats
    order: Ints
    ordered: Ints
    scope_codes: dict[str, int]
    session_codes: dict[str, int]

    def allowed(
        self, scopes: Sequence[str] | None, session: str | None, only_session: bool
    ) -> NDArray[np.bool_] | None:
        """Which rows may be seen; None = all of them."""
        own = (
            self.sessions == self.session_codes.get(session, -1)
            if session is not None
            else np.zeros(len(self.ids), bool)
        )
        if only_session:
            mask = own
        elif self.private.any():
            mask = ~self.private | own
        else:
            mask = np.ones(len(self.ids), bool)
        if scopes is not None:
            mask = mask & np.isin(self.scopes, [self.scope_codes[s] for s in scopes if s in self.scope_codes])
        return None if mask.all() else mask

    def rows_of(self, passage_ids: Sequence[int]) -> Ints:
        """Row of each passage, -1 where it has no vector."""
        wanted = np.asarray(passage_ids, dtype=np.int64)
        if not len(self.ids):
            return np.full(len(wanted), -1, dtype=np.int64)
        position = np.minimum(np.searchsorted(self.ordered, wanted), len(self.ordered) - 1)
        return np.where(self.ordered[position] == wanted, self.order[position], -1)


class Matrix:
    """Keeps the snapshot of the active space current."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None

    def current(self, connection: apsw.Connection) -> Snapshot | None:
        """The active space's vectors as they are now; None when there is no space."""
        active = vectors.active_space(connection)
        if active is None:
            return None
        space_id, space = active
        generation = vectors.generation(connection, space_id)
        last = rows(connection, "SELECT max(id) FROM message_vectors")[0][0] or 0
        old = self._snapshot
        if old is None or old.space_id != space_id or old.generation != generation:
            self._snapshot = _load(connection, space_id, space, generation, last, None)
        elif old.last_vector != last:
            self._snapshot = _load(connection, space_id, space, generation, last, old)
        return self._snapshot


def _load(
    connection: apsw.Connection, space_id: int, space: Space, generation: int, last: int, old: Snapshot | None
) -> Snapshot:
    after = 0 if old is None else old.last_vector
    ((count,),) = rows(
        connection,
        "SELECT count(*) FROM message_vectors WHERE id > ? AND id <= ? AND space_id = ?",
        (after, last, space_id),
    )
    scope_codes = {} if old is None else dict(old.scope_codes)
    session_codes = {} if old is None else dict(old.session_codes)
    matrix = np.empty((count, space.dimension), dtype=vectors.FORMAT)
    raw = matrix.view(np.uint8).reshape(-1).data if count else memoryview(b"")
    width = space.dimension * 4
    ids, scopes, sessions = (np.empty(count, dtype=np.int64) for _ in range(3))
    private = np.empty(count, dtype=np.bool_)
    row = 0
    for passage_id, scope, session, origin, blob in connection.execute(
        "SELECT v.passage_id, p.scope, c.session, p.origin, v.embedding FROM message_vectors v"
        " JOIN passages p ON p.id = v.passage_id JOIN conversations c ON c.id = p.conversation_id"
        " WHERE v.id > ? AND v.id <= ? AND v.space_id = ? ORDER BY v.id",
        (after, last, space_id),
    ):
        if row == count or len(blob) != width:
            continue  # written between the two statements, or damaged: the next look, or doctor, deals with it
        raw[row * width : (row + 1) * width] = blob
        ids[row] = passage_id
        scopes[row] = scope_codes.setdefault(scope, len(scope_codes))
        sessions[row] = session_codes.setdefault(session, len(session_codes))
        private[row] = origin == "participant"
        row += 1
    order = np.argsort(ids[:row], kind="stable")
    new = Snapshot(
        space_id,
        space,
        generation,
        last,
        ids[:row],
        scopes[:row],
        sessions[:row],
        private[:row],
        matrix[:row].astype(np.float32, copy=False),
        order,
        ids[:row][order],
        scope_codes,
        session_codes,
    )
    return new if old is None else _joined(old, new)


def _joined(old: Snapshot, new: Snapshot) -> Snapshot:
    ids = np.concatenate((old.ids, new.ids))
    order = np.argsort(ids, kind="stable")
    return replace(
        new,
        ids=ids,
        scopes=np.concatenate((old.scopes, new.scopes)),
        sessions=np.concatenate((old.sessions, new.sessions)),
        private=np.concatenate((old.private, new.private)),
        vectors=np.concatenate((old.vectors, new.vectors)),
        order=order,
        ordered=ids[order],
    )
