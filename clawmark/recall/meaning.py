"""What a query means: its vector, and the vectors it may be compared with.

Each space is asked through the embedder that made it, and only as long as that answers its probe as it did then: no
vector is ever compared with one of another model. The active space comes first; the one being filled serves where the
old model is gone. Without either, recall runs on words. One that fails slowly is left alone for a while.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
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
SLOW_SECONDS, REST_SECONDS = 0.2, 30.0
"""A failure that took longer than the first costs the next prompts nothing: nobody there is asked for so long."""

SECOND_TRY_SECONDS = 0.1
"""A prompt that waited longer than this for one embedder does not ask another."""

log = logging.getLogger("clawmark")


class Meaning:
    """Embeds queries, several at once where the embedder takes them, and keeps the searched space's vectors in memory."""

    def __init__(
        self, settings: Settings, given: Embedder | None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """given: asked instead of what the settings name."""
        self._is_off = settings.disabled or (given is None and settings.embedder == "none")
        self._settings = settings
        self._given = given
        self._monotonic = monotonic
        self._lock = threading.Lock()  # of what is remembered; never held while anybody is asked
        self._probers: dict[tuple[Space, str] | None, Prober | None] = {}
        self._one_at_a_time = threading.Lock()
        self._kept: OrderedDict[tuple[Space, str], Vector] = OrderedDict()
        self._resting: dict[str, float] = {}
        self._is_down = False
        self._matrix: Matrix | None = None

    def spaces(self, connection: apsw.Connection) -> list[Stored]:
        """The spaces in which a query may be embedded, best first."""
        return [] if self._is_off else spaces.in_use(connection)

    def vector(self, used: Sequence[Stored], text: str) -> tuple[Space, Vector] | None:
        """The query's vector in the first space whose own model answers; None where there is none now."""
        with self._lock:
            for stored in used:
                # By the space itself, whose probe names its model: row numbers come anew with a restored backup.
                if (stored.space, text) in self._kept:
                    self._kept.move_to_end((stored.space, text))
                    return stored.space, self._kept[stored.space, text]
        found = self._asked(used, text)
        if found is not None:  # a failure is never kept
            with self._lock:
                self._kept[found[0], text] = found[1]
                if len(self._kept) > KEPT_VECTORS:
                    self._kept.popitem(last=False)
        return found

    def snapshot(self, connection: apsw.Connection, space: Space) -> Snapshot | None:
        """The vectors of `space` as they are now; None where it is not in use any more. For one caller at a time."""
        stored = next((stored for stored in spaces.in_use(connection) if stored.space == space), None)
        if stored is None:
            return None
        if self._matrix is None:
            from clawmark.recall.matrix import Matrix

            self._matrix = Matrix()
        return self._matrix.current(connection, stored.id, stored.space)

    def forget_vectors(self) -> None:
        """Another file stands in the database's place."""
        self._matrix = None

    def _asked(self, used: Sequence[Stored], text: str) -> tuple[Space, Vector] | None:
        answers: dict[int, Probed] = {}
        took: dict[str, float] = {}
        reasons: list[str] = []
        for stored in used:
            prober = self._prober(stored)
            if prober is None:
                reasons.append(f"the model of the vectors ({stored.space.model or 'unnamed'}) is not at hand")
                continue
            if id(prober) not in answers:
                if sum(took.values()) > SECOND_TRY_SECONDS or self._rests(stored.endpoint):
                    continue
                began = self._monotonic()
                try:
                    answers[id(prober)] = self._embedded(prober, stored, text)
                except (EmbedderDown, EmbedderError) as down:
                    reasons.append(str(down))
                    continue
                finally:
                    took[stored.endpoint] = took.get(stored.endpoint, 0.0) + self._monotonic() - began
            answer = answers[id(prober)]
            if not _comparable(prober, stored, answer):
                reasons.append(f"{prober.embedder.name} answers with another model than the one that made the vectors")
            elif isinstance(vector := answer.results[0], Failure):
                reasons.append(f"{prober.embedder.name} did not embed the query ({vector.reason})")
            else:
                self._resting.clear()
                self._is_down = False
                return stored.space, vector
        self._rest(took)
        self._say(reasons)
        return None

    def _embedded(self, prober: Prober, stored: Stored, text: str) -> Probed:
        embedder = prober.embedder
        if embedder.endpoint:
            embedder.batch_limit = stored.batch_limit or embedder.batch_limit  # as the jobs have learned it since
            return prober.embed([text], "query")
        with self._one_at_a_time:  # a model in this process is not made to be shared
            return prober.embed([text], "query")

    def _prober(self, stored: Stored) -> Prober | None:
        """The embedder that made this space; None where it is not at hand any more."""
        claimed = replace(stored.space, probe="")  # a swapped model and its predecessor answer to one name
        name = None if self._given is not None else (claimed, stored.endpoint)
        with self._lock:
            if name not in self._probers:
                embedder = self._given or of_space(
                    self._settings, claimed, stored.endpoint, batch_limit=stored.batch_limit
                )
                self._probers[name] = None if embedder is None else Prober(embedder)
            return self._probers[name]

    def _rests(self, endpoint: str) -> bool:
        return self._monotonic() < self._resting.get(endpoint, float("-inf"))

    def _rest(self, took: dict[str, float]) -> None:
        for endpoint, seconds in took.items():
            if seconds > SLOW_SECONDS:
                self._resting[endpoint] = self._monotonic() + REST_SECONDS

    def _say(self, reasons: list[str]) -> None:
        """One line per change of state, not per prompt."""
        if reasons and not self._is_down:
            log.warning("query_not_embedded reason=%s", "; ".join(reasons))
            self._is_down = True


def _comparable(prober: Prober, stored: Stored, probed: Probed) -> bool:
    if not spaces.same_model(prober.embedder.space, stored.space):
        return False
    return probed.probe is None or (stored.query_probe is not None and same(stored.query_probe, probed.probe))
