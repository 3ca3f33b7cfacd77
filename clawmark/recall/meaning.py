"""What a query means: its vector, and the vectors it may be compared with.

Each space is asked through the embedder that made it, and only as long as that answers its probe as it did then: no
vector is ever compared with one of another model. The active space comes first; the one being filled serves where the
old model is gone. Without either, recall runs on words.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import apsw

from clawmark.embed import Embedder, Failure, of_space
from clawmark.embed.probe import Probed, Prober, same
from clawmark.errors import EmbedderDown, EmbedderError
from clawmark.model import Space
from clawmark.settings import Settings
from clawmark.store import spaces
from clawmark.store.spaces import Stored

if TYPE_CHECKING:
    from clawmark.model import Vector
    from clawmark.recall.matrix import Matrix, Snapshot

KEPT_VECTORS = 512
SECOND_TRY_SECONDS = 0.5
"""A prompt that waited longer than this for one embedder does not ask another."""

log = logging.getLogger("clawmark")


class Meaning:
    """Embeds queries, and keeps the searched space's vectors in memory. For one caller at a time."""

    def __init__(
        self, settings: Settings, given: Embedder | None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """given: asked instead of what the settings name."""
        self._settings = settings
        self._given = given
        self._monotonic = monotonic
        self._probers: dict[tuple[Space, str] | None, Prober | None] = {}
        self._kept: OrderedDict[tuple[int, str], Vector] = OrderedDict()
        self._matrix: Matrix | None = None
        self._said: str | None = None

    def of(self, connection: apsw.Connection, text: str) -> tuple[Vector, Snapshot] | None:
        """The query's vector and the vectors of the same space; None where there is none now."""
        used = spaces.in_use(connection)
        for stored in used:
            if (stored.id, text) in self._kept:
                self._kept.move_to_end((stored.id, text))
                return self._kept[stored.id, text], self._snapshot(connection, stored)
        found = self._asked(used, text)
        if found is None:
            return None
        stored, vector = found
        self._kept[stored.id, text] = vector
        if len(self._kept) > KEPT_VECTORS:
            self._kept.popitem(last=False)
        return vector, self._snapshot(connection, stored)

    def forget_vectors(self) -> None:
        """Another file stands in the database's place."""
        self._kept.clear()
        self._matrix = None

    def _asked(self, used: list[Stored], text: str) -> tuple[Stored, Vector] | None:
        """The first space whose own model answers. A failure is never kept."""
        answers: dict[int, Probed] = {}
        reasons = []
        start = self._monotonic()
        for stored in used:
            prober = self._prober(stored)
            if prober is None:
                reasons.append(f"the model of the vectors ({stored.space.model or 'unnamed'}) is not at hand")
                continue
            if id(prober) not in answers:
                if self._monotonic() - start > SECOND_TRY_SECONDS:
                    break
                try:
                    answers[id(prober)] = prober.embed([text], "query")
                except (EmbedderDown, EmbedderError) as down:
                    reasons.append(str(down))
                    continue
            probed = answers[id(prober)]
            if not self._comparable(prober, stored, probed):
                reasons.append(f"{prober.embedder.name} answers with another model than the one that made the vectors")
            elif isinstance(vector := probed.results[0], Failure):
                reasons.append(f"{prober.embedder.name} did not embed the query ({vector.reason})")
            else:
                self._say(None)
                return stored, vector
        self._say("; ".join(reasons) or None)
        return None

    @staticmethod
    def _comparable(prober: Prober, stored: Stored, probed: Probed) -> bool:
        return (
            stored.query_probe is not None
            and spaces.same_model(prober.embedder.space, stored.space)
            and same(stored.query_probe, probed.probe)
        )

    def _prober(self, stored: Stored) -> Prober | None:
        """The embedder that made this space; None where it is not at hand any more."""
        claimed = replace(stored.space, probe="")  # a swapped model and its predecessor answer to one name
        name = None if self._given is not None else (claimed, stored.endpoint)
        if name not in self._probers:
            embedder = self._given or of_space(self._settings, claimed, stored.endpoint, batch_limit=stored.batch_limit)
            self._probers[name] = None if embedder is None else Prober(embedder)
        return self._probers[name]

    def _snapshot(self, connection: apsw.Connection, stored: Stored) -> Snapshot:
        if self._matrix is None:
            from clawmark.recall.matrix import Matrix

            self._matrix = Matrix()
        return self._matrix.current(connection, stored.id, stored.space)

    def _say(self, reason: str | None) -> None:
        """One line per change of state, not per prompt."""
        if reason != self._said and reason is not None:
            log.warning("query_not_embedded reason=%s; recall runs on words", reason)
        self._said = reason
