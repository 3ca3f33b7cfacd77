"""Vectors of the TypeScript clawmark, taken over where the model that answers now is the one that made them.

That file named no model. So the first texts it embedded are embedded again and compared: only what agrees everywhere is
one space, and only a text that was embedded exactly as it is today has its old vector taken over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import apsw

from clawmark.embed import Failure
from clawmark.embed.probe import same
from clawmark.recall.excerpt import Live, Reader
from clawmark.store import legacy, vectors
from clawmark.store.spaces import Stored

if TYPE_CHECKING:
    from clawmark.model import Vector

CUT = 2_000
"""UTF-16 units after which the old clawmark cut a text."""

COMPARED = 8
"""Texts whose vectors must agree before an old one is trusted."""


class OldVectors:
    """What is left of them, for one pass."""

    def __init__(self, connection: apsw.Connection, reader: Reader, space: Stored) -> None:
        self._connection = connection
        self._reader = reader
        self._length = 4 * space.space.dimension
        self._agreed = 0
        self.any = legacy.has_old(connection)
        self._usable = self.any and not space.space.document_prefix  # it put nothing in front of a text

    def of(self, live: Sequence[Live]) -> dict[int, Vector]:
        """Passage id → old vector of the very text that is to be embedded."""
        if not self._usable:
            return {}
        whole = {found.passage_id for found in live if found.text == found.message.text and _units(found.text) <= CUT}
        refs = self._reader.old_refs(self._connection, sorted(whole))
        blobs = legacy.reusable(self._connection, list(refs.values()))
        return {
            passage_id: vectors.decode(blobs[ref])
            for passage_id, ref in refs.items()
            if ref in blobs and len(blobs[ref]) == self._length
        }

    @property
    def trusted(self) -> bool:
        return self._agreed >= COMPARED

    def compare(self, old: Mapping[int, Vector], made: Mapping[int, Vector | Failure]) -> None:
        """Learn from texts embedded both then and now. One that differs tells that another model made the old ones."""
        for passage_id, vector in old.items():
            new = made[passage_id]
            if isinstance(new, Failure):
                continue
            if not same(vector, new):
                self._usable = False
                return
            self._agreed += 1


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
