"""Vectors: what waits is read back, embedded and stored, newest first.

The model is never asked inside a transaction. A text that fails waits for its own time and holds up no other; when
nothing can be embedded at all, everything stays pending and one event says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import apsw

from clawmark.embed import Embedder, Failure
from clawmark.errors import EmbedderDown, EmbedderError
from clawmark.model import Progress, Space
from clawmark.recall.excerpt import Reader
from clawmark.store import events, passages, vectors
from clawmark.store.db import transaction

BATCH = 32
MOST_BARREN = 3
"""Batches in a row without one vector after which the pass gives up: what they held waits, and older texts come next."""

FIRST_RETRY_MS, LAST_RETRY_MS = 60_000, 24 * 3_600_000


def embed_pending(
    connection: apsw.Connection,
    path: Path,
    embedder: Embedder,
    reader: Reader,
    *,
    clock: Callable[[], datetime],
    rng: random.Random,
    progress: Progress,
) -> int:
    """Embed what is due; returns how many vectors were written. What stays behind is in `pending_vectors`."""
    written = done = barren = 0
    try:
        _open_space(connection, path, embedder, clock)
        total = vectors.count_due(connection, passages.to_ms(clock()))
        while ids := vectors.due(connection, passages.to_ms(clock()), BATCH):
            good, asked = _batch(connection, path, embedder, reader, ids, clock, rng)
            written += good
            barren = barren + 1 if asked and not good else 0
            if barren == MOST_BARREN:
                raise EmbedderDown(f"{embedder.name} embedded none of the last {barren} batches.")
            done += len(ids)
            progress("vectors", done, total)
    except (EmbedderDown, EmbedderError) as down:
        _note(connection, path, "embedder_unavailable", clock(), embedder.name, str(down))
    else:
        if written:
            _note(connection, path, "embedder_available", clock(), embedder.name, None)
    return written


PROBE = "The quick brown fox jumps over the lazy dog."


def _open_space(connection: apsw.Connection, path: Path, embedder: Embedder, clock: Callable[[], datetime]) -> None:
    """Notice a changed model: another space becomes the active one once its embedder has shown that it works."""
    active = vectors.active_space(connection)
    if active is None or _space(embedder) == active[1]:
        return
    embedder.embed([PROBE])
    if _space(embedder) not in (None, active[1]):
        with transaction(connection, path):
            vectors.activate(connection, embedder.space, clock())


def _space(embedder: Embedder) -> Space | None:
    """The embedder's space; None while only an answer could tell."""
    try:
        return embedder.space
    except EmbedderDown:
        return None


def _batch(
    connection: apsw.Connection,
    path: Path,
    embedder: Embedder,
    reader: Reader,
    ids: list[int],
    clock: Callable[[], datetime],
    rng: random.Random,
) -> tuple[int, int]:
    """Returns how many vectors were written, and how many texts were asked about."""
    texts = {found.passage_id: found.text for found in reader.read(connection, ids, exact=True)}
    wanted = [passage_id for passage_id in ids if passage_id in texts]
    results = embedder.embed([texts[passage_id] for passage_id in wanted], "document") if wanted else []
    good = [(i, r) for i, r in zip(wanted, results, strict=True) if not isinstance(r, Failure)]
    failed = {i: r.reason for i, r in zip(wanted, results, strict=True) if isinstance(r, Failure)}
    failed.update({i: "text_gone" for i in ids if i not in texts})
    now = clock()
    with transaction(connection, path):
        if good:
            active = vectors.active_space(connection)
            space_id = (
                active[0]
                if active and active[1] == embedder.space
                else vectors.activate(connection, embedder.space, now)
            )
            vectors.add(connection, space_id, good, now)
        tries = vectors.tries(connection, list(failed))
        for passage_id, reason in failed.items():
            vectors.postpone(connection, passage_id, reason, passages.to_ms(now) + _wait(tries.get(passage_id, 0), rng))
    return len(good), len(wanted)


def _wait(tries: int, rng: random.Random) -> int:
    """Milliseconds until the next try: doubling, at most a day, a little apart from each other."""
    return int(min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(tries, 20)) * rng.uniform(0.9, 1.1))


def _note(
    connection: apsw.Connection, path: Path, event_type: str, now: datetime, name: str, detail: str | None
) -> None:
    """One event per change of state, not per try."""
    last = events.last_of(connection, "embedder_unavailable", "embedder_available")
    state = "embedder_available" if last is None else last.event_type
    if state != event_type:
        with transaction(connection, path):
            events.add(connection, event_type, now, source=name, detail=detail)
