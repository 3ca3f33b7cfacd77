"""The resident vectors: one matrix in memory, a copy of what the file holds and never more than that.

A snapshot is published whole and never changes, so a search on another thread sees one consistent state. Rows are
appended, into spare room, when the file's highest vector id grew, and loaded anew when its generation says that some
went away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import apsw
import numpy as np
from numpy.typing import NDArray

from clawmark.model import Space
from clawmark.store import vectors

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float32]
Bools: TypeAlias = NDArray[np.bool_]

SPARE = 1.25
"""Room that is made beyond what is needed, so that most new vectors are copied once and nothing else is."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Row i is passage ids[i]: unit vector vectors[i] (float32, dimension), its scope and session as codes.

    private marks a participant's words, found only in their own session.
    """

    space_id: int
    space: Space
    generation: int
    last_vector: int
    ids: Ints
    scopes: Ints
    sessions: Ints
    private: Bools
    vectors: Floats
    row_of: dict[int, int]
    scope_codes: dict[str, int]
    session_codes: dict[str, int]

    def allowed(self, scopes: Sequence[str] | None, session: str | None, only_session: bool) -> Bools | None:
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
        # row_of is shared with later snapshots and may know rows that this one has not.
        count = len(self.ids)
        found = [self.row_of.get(passage_id, -1) for passage_id in passage_ids]
        return np.array([row if row < count else -1 for row in found], dtype=np.int64)


class Matrix:
    """Keeps the snapshot of one space current; another space takes its place."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._room: _Room | None = None

    def current(self, connection: apsw.Connection, space_id: int, space: Space) -> Snapshot:
        """The vectors of this space as they are now."""
        state = (space_id, vectors.generation(connection, space_id))
        last = vectors.last_id(connection)
        old = self._snapshot
        if old is not None and self._room is not None and (old.space_id, old.generation) == state:
            if old.last_vector == last:
                return old
            after = old.last_vector
        else:
            after, self._room, self._snapshot = 0, _Room(space.dimension), None
        self._room.load(connection, space_id, after, last)
        self._snapshot = self._room.snapshot(space, *state, last)
        return self._snapshot


class _Room:
    """Arrays with spare room at their end. What a snapshot has seen of them is never written again."""

    def __init__(self, dimension: int) -> None:
        self.count = 0
        self.vectors: Floats = np.empty((0, dimension), dtype=np.float32)
        self.ids: Ints = np.empty(0, dtype=np.int64)
        self.scopes: Ints = np.empty(0, dtype=np.int64)
        self.sessions: Ints = np.empty(0, dtype=np.int64)
        self.private: Bools = np.empty(0, dtype=np.bool_)
        self.row_of: dict[int, int] = {}
        self.scope_codes: dict[str, int] = {}
        self.session_codes: dict[str, int] = {}

    def load(self, connection: apsw.Connection, space_id: int, after: int, last: int) -> None:
        self._grow(vectors.count_between(connection, space_id, after, last))
        width = self.vectors.shape[1] * 4
        row = self.count
        for passage_id, scope, session, origin, blob in vectors.between(connection, space_id, after, last):
            if len(blob) != width:
                continue  # damaged; found by its words alone
            self.vectors[row] = np.frombuffer(blob, dtype=vectors.FORMAT)
            self.ids[row] = passage_id
            self.scopes[row] = self.scope_codes.setdefault(scope, len(self.scope_codes))
            self.sessions[row] = self.session_codes.setdefault(session, len(self.session_codes))
            self.private[row] = origin == "participant"
            self.row_of[passage_id] = row
            row += 1
        self.count = row  # not before: what was broken off is loaded again

    def _grow(self, more: int) -> None:
        needed = self.count + more
        if needed <= len(self.ids):
            return
        room = int(needed * SPARE) if self.count else needed
        for name in ("vectors", "ids", "scopes", "sessions", "private"):
            old = getattr(self, name)
            new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)

    def snapshot(self, space: Space, space_id: int, generation: int, last: int) -> Snapshot:
        n = self.count
        return Snapshot(
            space_id,
            space,
            generation,
            last,
            self.ids[:n],
            self.scopes[:n],
            self.sessions[:n],
            self.private[:n],
            self.vectors[:n],
            self.row_of,
            self.scope_codes,
            self.session_codes,
        )
