"""Vectors of the TypeScript clawmark, taken over where the model that answers now is the one that made them.

That file named no model, and its model may have changed over the years. So of each batch two texts are embedded again and
compared with their old vectors: where they differ the whole batch is made anew. Only a text that was embedded exactly as
it is today has its old vector taken over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import apsw

from clawmark.embed import Failure
from clawmark.embed.probe import same
from clawmark.recall.excerpt import Live, Reader
from clawmark.store import vectors
from clawmark.store.spaces import Stored

if TYPE_CHECKING:
    from clawmark.model import Vector

CUT = 2_000
"""UTF-16 units after which the old clawmark cut a text."""


class OldVectors:
    """What is left of them, for one pass."""

    def __init__(self, connection: apsw.Connection, reader: Reader, space: Stored) -> None:
        self._connection = connection
        self._reader = reader
        self._length = 4 * space.space.dimension
        self.any = vectors.has_old(connection)
        self._usable = self.any and not space.space.document_prefix  # it put nothing in front of a text

    def of(self, live: Sequence[Live]) -> dict[int, Vector]:
        """Passage id → old vector of the very text that is to be embedded."""
        if not self._usable:
            return {}
        whole = {found.passage_id for found in live if found.text == found.message.text and _units(found.text) <= CUT}
        refs = self._reader.old_refs(self._connection, sorted(whole))
        blobs = vectors.reusable(self._connection, list(refs.values()))
        return {
            passage_id: vectors.decode(blobs[ref])
            for passage_id, ref in refs.items()
            if ref in blobs and len(blobs[ref]) == self._length
        }

    def to_compare(self, texts: Mapping[int, str], old: Mapping[int, Vector]) -> list[int]:
        """What is embedded although it has an old vector: the newest and the oldest of the batch.

        Batches go back in time, so where the old model was changed once, those two tell of it.
        """
        known = [passage_id for passage_id in texts if passage_id in old]
        return [] if not known else list(dict.fromkeys([known[0], known[-1]]))

    def agree(self, old: Mapping[int, Vector], made: Mapping[int, Vector | Failure]) -> bool:
        """Whether what was embedded then and now is the same, and there is something to compare at all."""
        compared = [
            same(vector, new) for i, vector in old.items() if not isinstance(new := made.get(i, _NOTHING), Failure)
        ]
        return bool(compared) and all(compared)


_NOTHING = Failure("not_compared")


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
