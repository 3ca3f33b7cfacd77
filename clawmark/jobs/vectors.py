"""Vectors: what waits is read back, embedded and stored, newest first.

The model is never asked inside a transaction, and every batch carries the probe: a vector is stored only in the space of
the model that made it. Another model opens another space, which is filled beside the old one and takes its place when
nothing waits for it any more. A text that fails waits for its own time and holds up no other; when nothing can be
embedded at all, everything stays pending and one event says so.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from clawmark.embed import Embedder, Failure, Kind
from clawmark.embed.probe import Prober, same
from clawmark.errors import EmbedderDown, EmbedderError, ModelChanged
from clawmark.jobs.reuse import OldVectors
from clawmark.model import Event, Progress
from clawmark.recall.excerpt import Reader
from clawmark.store import events, passages, spaces, vectors
from clawmark.store.db import transaction
from clawmark.store.spaces import Stored

if TYPE_CHECKING:
    from clawmark.model import Vector

BATCH = 31
"""With the probe 32, the most that some servers take."""

MOST_BARREN = 3
"""Batches in a row without one vector after which the pass gives up: what they held waits, and older texts come next."""

MOST_MODELS = 3
"""Models that may answer in one pass, before it is several of them in turn behind one name."""

FIRST_RETRY_MS, LAST_RETRY_MS = 60_000, 24 * 3_600_000
MOST_TRIES = 10
"""A text that was refused so often, over most of a day, is given up until a person says otherwise."""

DROPPED_AT_ONCE = 2_000

log = logging.getLogger("clawmark")


@dataclass(slots=True)
class _Pass:
    """What one pass works with; `written` counts its vectors."""

    connection: apsw.Connection
    path: Path
    prober: Prober
    reader: Reader
    clock: Callable[[], datetime]
    rng: random.Random
    progress: Progress
    log_is_whole: bool
    written: int = 0

    @property
    def embedder(self) -> Embedder:
        return self.prober.embedder

    def now_ms(self) -> int:
        return passages.to_ms(self.clock())


def embed_pending(
    connection: apsw.Connection,
    path: Path,
    embedder: Embedder,
    reader: Reader,
    *,
    clock: Callable[[], datetime],
    rng: random.Random,
    progress: Progress,
    log_is_whole: bool,
) -> int:
    """Embed what is due; returns how many vectors were written. What stays behind is in `pending_vectors`.

    log_is_whole: False where a part of the log cannot be read just now. What stands there gets no vector in this pass, so
    a new space is not complete however little waits for it.
    """
    run = _Pass(connection, path, Prober(embedder), reader, clock, rng, progress, log_is_whole)
    try:
        if spaces.in_use(connection) or vectors.count_due(connection, run.now_ms()):
            _embed(run)
            _note(run, "embedder_available", None)
    except (EmbedderDown, EmbedderError) as down:
        _note(run, "embedder_unavailable", str(down))
    return run.written


def _embed(run: _Pass) -> None:
    for _ in range(MOST_MODELS):
        try:
            space = _space_of_the_model(run)
            _fill(run, space)
        except ModelChanged:
            continue
        if space.is_target and run.log_is_whole and spaces.is_filled(run.connection):
            _switch(run, space)
        _drop_unused(run)
        return
    raise EmbedderDown(f"{run.embedder.name}: several models answer in turn; their vectors cannot be compared.")


def _space_of_the_model(run: _Pass) -> Stored:
    """The space of the model that answers now, which is filled from now on."""
    connection = run.connection
    if run.embedder.endpoint:
        run.embedder.batch_limit = spaces.batch_limit(connection, run.embedder.endpoint)
    stored = _known_without_asking(run) or _recognised(run)
    if (stored.id, stored.endpoint) != (_filled(connection), run.embedder.endpoint):
        with transaction(connection, run.path):
            spaces.note_endpoint(connection, stored.id, run.embedder.endpoint, run.embedder.batch_limit)
            if stored.id != _filled(connection):
                spaces.fill(connection, stored.id)
    return next(space for space in spaces.in_use(connection) if space.id == stored.id)


def _filled(connection: apsw.Connection) -> int | None:
    """The id of the space for which vectors are made."""
    used = spaces.in_use(connection)
    return used[-1].id if used else None


def _known_without_asking(run: _Pass) -> Stored | None:
    """The space of an embedder whose model cannot change behind its name: it need not even be loaded."""
    known = spaces.named(run.connection, run.embedder.space) if run.embedder.fixed else []
    return known[0] if known and known[0].query_probe is not None else None


def _recognised(run: _Pass) -> Stored:
    """The space whose probes are answered as they were when it was opened; a new one where there is none."""
    document, query = run.prober.probe("document"), run.prober.probe("query")
    claimed = run.embedder.space
    known = spaces.named(run.connection, claimed)
    for stored in known:
        if stored.document_probe is None or stored.query_probe is None:  # of a version that knew no probes
            with transaction(run.connection, run.path):
                spaces.adopt(run.connection, stored.id, document, query)
            return stored
        if same(stored.document_probe, document) and same(stored.query_probe, query):
            return stored
    _require_one_model(run, document, query)
    why = "the first model" if not spaces.in_use(run.connection) else "another model"
    if known:
        why = "other vectors under the same name: the model behind it was changed"
    detail = f"{claimed.model or 'unnamed model'}, {claimed.dimension} dimensions ({why})"
    with transaction(run.connection, run.path):
        space_id = spaces.add(
            run.connection,
            claimed,
            endpoint=run.embedder.endpoint,
            document_probe=document,
            query_probe=query,
            now=run.clock(),
        )
        events.add(run.connection, "space_opened", run.clock(), source=run.embedder.name, detail=detail)
    if spaces.in_use(run.connection):
        log.warning("space_opened embedder=%s model=%s", run.embedder.name, detail)
    return next(stored for stored in spaces.named(run.connection, claimed) if stored.id == space_id)


def _require_one_model(run: _Pass, document: Vector, query: Vector) -> None:
    """Raise ModelChanged when passages would be of one model and queries of another.

    Mostly one probe shows for both, and is proof. A server that puts something of its own in front answers them in two
    ways, as two models do that answer in turn: those it is told from by asking on, in an order that no turn-taking follows.
    """
    if same(document, query):
        return
    order: tuple[Kind, ...] = ("query", "document", "document", "query", "document", "query", "query", "document")
    for kind in order:
        if not same({"document": document, "query": query}[kind], run.prober.probe(kind)):
            raise ModelChanged(f"{run.embedder.name} answers with several models in turn.")


def _fill(run: _Pass, space: Stored) -> None:
    """Embed what is due. Raises ModelChanged when another model answers than the one whose space it is."""
    old = OldVectors(run.connection, run.reader, space)
    total = vectors.count_due(run.connection, run.now_ms())
    done = barren = 0
    while ids := vectors.due(run.connection, run.now_ms(), BATCH):
        good, asked = _batch(run, space, old, ids)
        barren = barren + 1 if asked and not good else 0
        if barren == MOST_BARREN:
            raise EmbedderDown(f"{run.embedder.name} embedded none of the last {barren} batches.")
        done += len(ids)
        run.progress("vectors", done, total)
    if old.any:
        with transaction(run.connection, run.path):
            vectors.forget_old(run.connection)


def _batch(run: _Pass, space: Stored, old: OldVectors, ids: list[int]) -> tuple[int, int]:
    """Returns how many vectors were written, and how many texts were asked about."""
    live = run.reader.read(run.connection, ids, exact=True)
    texts = {found.passage_id: found.text for found in live}
    known = old.of(live)
    made: dict[int, Vector | Failure] = _embedded(run, space, texts, old.to_compare(texts, known))
    if not old.agree(known, made):
        known = {}
    made |= {i: vector for i, vector in known.items() if i not in made}
    made |= _embedded(run, space, texts, [i for i in texts if i not in made])
    failed = {i: answer.reason for i, answer in made.items() if isinstance(answer, Failure)}
    failed.update({i: vectors.TEXT_GONE for i in ids if i not in made})
    good = [(i, vector) for i, vector in made.items() if not isinstance(vector, Failure)]
    now = run.clock()
    with transaction(run.connection, run.path):
        vectors.add(run.connection, space.id, good, now)
        _postpone(run, failed, now)
        # With the first batch that taught it, so that a kill does not unlearn how much the server takes at once.
        spaces.note_endpoint(run.connection, space.id, run.embedder.endpoint, run.embedder.batch_limit)
    run.written += len(good)
    return len(good), len(texts)


def _embedded(run: _Pass, space: Stored, texts: Mapping[int, str], ids: Sequence[int]) -> dict[int, Vector | Failure]:
    """What the model makes of these passages. Raises ModelChanged when it is not the one whose space it is."""
    if not ids:
        return {}
    probed = run.prober.embed([texts[i] for i in ids], "document")
    if not _is_of(space, probed.probe):
        raise ModelChanged(f"{run.embedder.name} answers with another model than before.")
    return dict(zip(ids, probed.results, strict=True))


def _is_of(space: Stored, probe: Vector | None) -> bool:
    """Whether this probe is the space's. One that was not asked is of a model that cannot change."""
    return probe is None or space.document_probe is None or same(space.document_probe, probe)


def _postpone(run: _Pass, failed: Mapping[int, str], now: datetime) -> None:
    """Each waits for its own time, longer each time; what was refused too often is given up. Inside a transaction."""
    tries = vectors.tries(run.connection, list(failed))
    for passage_id, reason in failed.items():
        tried = tries.get(passage_id, 0) + 1
        next_try = passages.to_ms(now) + _wait(tried, run.rng)
        give_up = reason != vectors.TEXT_GONE and tried >= MOST_TRIES
        vectors.postpone(run.connection, passage_id, reason, next_try, give_up=give_up)


def _wait(tried: int, rng: random.Random) -> int:
    """Milliseconds until the next try: doubling, at most a day, a little apart from each other."""
    return int(min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(tried - 1, 20)) * rng.uniform(0.9, 1.1))


def _switch(run: _Pass, space: Stored) -> None:
    detail = f"{space.space.model or 'unnamed model'}, {space.space.dimension} dimensions"
    with transaction(run.connection, run.path):
        spaces.switch(run.connection, space.id)
        events.add(run.connection, "space_switched", run.clock(), source=run.embedder.name, detail=detail)
    log.info("space_switched embedder=%s model=%s", run.embedder.name, detail)


def _drop_unused(run: _Pass) -> None:
    while True:
        with transaction(run.connection, run.path):
            if not spaces.drop_unused(run.connection, DROPPED_AT_ONCE):
                return


def _note(run: _Pass, event_type: str, detail: str | None) -> None:
    """One event per change of state, not per try. Another embedder or another reason is another state."""
    last = events.last_of(run.connection, "embedder_unavailable", "embedder_available")
    if detail is None and (last is None or last.event_type == event_type):
        return
    if last is None or _state(last) != (event_type, run.embedder.name, _without_seconds(detail)):
        with transaction(run.connection, run.path):
            events.add(run.connection, event_type, run.clock(), source=run.embedder.name, detail=detail)


def _state(event: Event) -> tuple[str, str, str | None]:
    return event.event_type, event.source, _without_seconds(event.detail)


def _without_seconds(detail: str | None) -> str | None:
    """How long a server asks to be left alone says nothing of its state."""
    return None if detail is None else re.sub(r"\d+ s\b", "some s", detail)
