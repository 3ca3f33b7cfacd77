"""The one path by which anything is recalled: for the block, the tool, the command line and the benchmark.

Words and meaning each bring a list, both restricted to what may be seen before they are cut; fused into one order, and
read back until enough live excerpts stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import apsw

from clawmark.model import Excerpt
from clawmark.recall import fuse
from clawmark.recall.excerpt import Reader, excerpt
from clawmark.store import lexicon, passages
from clawmark.text import canonical, jaccard, query_words, words

if TYPE_CHECKING:
    from clawmark.model import Vector
    from clawmark.recall.matrix import Snapshot

LIST_LENGTH = 300
"""How far each list is looked at before fusing."""

MEANING_ALONE = 3.0
"""A passage that shares no word with the query must stand out of the log's own cosines by this many deviations. A fixed
cosine does not carry over from one model to the next."""

NEAR_DUPLICATE = 0.8
QUERY_HEAD, QUERY_TAIL = 1500, 500


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, and within which bounds.

    scopes         whose memory; None = all
    session        the running one: a participant's words are found only there
    only_session   look nowhere else (a group that others read)
    visible        (session, window) that the model still sees: left out
    asked          the prompt itself, never recalled as an answer to itself; None = text
    """

    text: str
    limit: int
    now: datetime
    scopes: Sequence[str] | None = None
    session: str | None = None
    only_session: bool = False
    visible: tuple[str, str] | None = None
    asked: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    passage_id: int
    score: float
    entry: passages.Entry


def shortened(text: str) -> str:
    """Head and tail of a long query: what is asked stands at one of its ends."""
    if len(text) <= QUERY_HEAD + QUERY_TAIL:
        return text
    return f"{text[:QUERY_HEAD]}\n{text[-QUERY_TAIL:]}"


def recall(
    connection: apsw.Connection, reader: Reader, query: Query, vector: Vector | None, snapshot: Snapshot | None
) -> list[Excerpt]:
    """At most `query.limit` live excerpts, best first, no two of them alike."""
    if query.limit <= 0:
        return []
    hits = rank(connection, query, vector, snapshot)
    terms = query_words(query.text)
    chosen: list[Excerpt] = []
    seen: list[set[str]] = []
    asked = canonical(query.asked or query.text)
    position = 0
    while len(chosen) < query.limit and position < len(hits):
        batch = hits[position : position + 2 * query.limit]
        position += len(batch)
        live = {found.passage_id: found for found in reader.read(connection, [hit.passage_id for hit in batch])}
        for hit in batch:
            found = live.get(hit.passage_id)
            if found is None or len(chosen) == query.limit or canonical(found.text) == asked:
                continue
            vocabulary = set(words(found.text))
            if any(jaccard(vocabulary, other) > NEAR_DUPLICATE for other in seen):
                continue
            seen.append(vocabulary)
            chosen.append(
                Excerpt(
                    ref=found.message.ref,
                    source=found.source,
                    conversation=hit.entry.session,
                    role="assistant" if hit.entry.origin == "assistant" else "user",
                    at=found.message.at,
                    excerpt=excerpt(found.text, terms),
                    score=hit.score,
                    author=hit.entry.author if hit.entry.origin == "participant" else None,
                )
            )
    return chosen


def rank(connection: apsw.Connection, query: Query, vector: Vector | None, snapshot: Snapshot | None) -> list[Hit]:
    """Candidates in order, not yet read back."""
    terms = query_words(query.text)
    bounds = {
        "scopes": query.scopes,
        "session": query.session,
        "only_session": query.only_session,
        "limit": LIST_LENGTH,
    }
    own = dict(lexicon.search(connection, terms, "own", **bounds))  # type: ignore[arg-type]
    context = dict(lexicon.search(connection, terms, "own context", **bounds))  # type: ignore[arg-type]
    dense = _dense(query, vector, snapshot)
    ids = list(dict.fromkeys([*own, *context, *(dense.best if dense else ())]))
    entries = passages.entries(connection, ids)
    around = [e.previous_id for e in entries.values() if e.previous_id is not None and e.previous_id not in entries]
    entries |= passages.entries(connection, list(dict.fromkeys([*around, *passages.next_of(connection, ids)])))
    cosines = dense.of(list(entries)) if dense else {}
    items = [
        fuse.Item(
            e.id,
            e.conversation_id,
            e.previous_id,
            own.get(e.id),
            context.get(e.id),
            cosines.get(e.id),
            max(0.0, (query.now - passages.from_ms(e.at)).total_seconds() / 86_400),
        )
        for e in entries.values()
        if _may_be_seen(e, query)
    ]
    scores = fuse.fuse(items, dense_floor=dense.mean if dense else None)
    floor = dense.floor if dense else float("inf")
    hits = [
        Hit(i.id, scores[i.id], entries[i.id])
        for i in items
        if (i.own is not None or i.context is not None or (i.dense is not None and i.dense >= floor))
        and (entries[i.id].session, entries[i.id].window) != query.visible
    ]
    return sorted(hits, key=lambda hit: (-hit.score, -hit.entry.at, hit.passage_id))


def _may_be_seen(entry: passages.Entry, query: Query) -> bool:
    """The bounds of `query` once more, for neighbours that came in beside a hit."""
    if query.scopes is not None and entry.scope not in query.scopes:
        return False
    return entry.session == query.session or not (query.only_session or entry.origin == "participant")


@dataclass(frozen=True, slots=True)
class _Dense:
    """Cosines of one query: the best passages, and any passage's on request; mean and floor over what may be seen."""

    best: Sequence[int]
    mean: float
    floor: float
    scores: object
    snapshot: Snapshot

    def of(self, ids: Sequence[int]) -> dict[int, float]:
        rows = self.snapshot.rows_of(ids)
        return {i: float(self.scores[r]) for i, r in zip(ids, rows, strict=True) if r >= 0}  # type: ignore[index]


def _dense(query: Query, vector: Vector | None, snapshot: Snapshot | None) -> _Dense | None:
    if vector is None or snapshot is None or not len(snapshot.ids):
        return None
    import numpy as np

    scores = snapshot.vectors @ vector
    mask = snapshot.allowed(query.scopes, query.session, query.only_session)
    rows = np.arange(len(scores)) if mask is None else np.flatnonzero(mask)
    if not len(rows):
        return None
    seen = scores if mask is None else scores[rows]
    k = min(LIST_LENGTH, len(rows))
    top = rows[np.argpartition(seen, len(seen) - k)[len(seen) - k :]]
    mean, deviation = float(seen.mean()), float(seen.std())
    return _Dense(snapshot.ids[top].tolist(), mean, mean + MEANING_ALONE * deviation, scores, snapshot)
