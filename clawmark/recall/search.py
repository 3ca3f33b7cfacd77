"""The one path by which anything is recalled: for the block, the tool, the command line and the benchmark.

Words and meaning each bring a list, both restricted to what may be seen before they are cut; fused into one order, and
read back until enough live excerpts stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import apsw

from clawmark.model import Excerpt
from clawmark.recall import fuse
from clawmark.recall.excerpt import Reader, excerpt
from clawmark.store import lexicon, passages
from clawmark.text import boundary, canonical, cut, jaccard, query_words, words

if TYPE_CHECKING:
    from clawmark.model import Vector
    from clawmark.recall.matrix import Floats, Ints, Snapshot

LIST_LENGTH, CANDIDATES = 300, 100
"""How far each list is looked at, and how many of all are weighed with their neighbours."""

DAY_MS = 86_400_000

MEANING_ALONE = 2.0
"""A passage that shares no word with the query must stand out of the log's own cosines by this many deviations. A fixed
cosine does not carry over from one model to the next. Measured on LoCoMo with e5: at 3 three quarters of the answers
that share no word are lost, and unrelated questions find something almost as often."""

NEAR_DUPLICATE = 0.8
QUERY_HEAD, QUERY_TAIL = 1500, 500


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, and within which bounds.

    scopes         whose memory; None = all
    session        the running one: a participant's words are found only there
    only_session   look nowhere else (a group that others read)
    visible        the window of `session` that the model still sees, left out together with the session's copies of
                   other sessions' messages; None = nothing is visible
    asked          the prompt itself, never recalled as an answer to itself; None = text
    shown          (source, ref) of what the session was shown before
    """

    text: str
    limit: int
    now: datetime
    scopes: Sequence[str] | None = None
    session: str | None = None
    only_session: bool = False
    visible: str | None = None
    asked: str | None = None
    shown: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Hit:
    passage_id: int
    score: float
    entry: passages.Entry


def shortened(text: str) -> str:
    """Head and tail of a long query: what is asked stands at one of its ends."""
    if len(text) <= QUERY_HEAD + QUERY_TAIL:
        return text
    return f"{cut(text, QUERY_HEAD)}\n{text[boundary(text, len(text) - QUERY_TAIL) :]}"


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
    said: set[tuple[str, str]] = set()  # parts of one message overlap: its best one speaks for it
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
            if (name := (found.source, found.message.ref)) in said or name in query.shown:
                continue
            vocabulary = set(words(found.text))
            if any(jaccard(vocabulary, other) > NEAR_DUPLICATE for other in seen):
                continue
            seen.append(vocabulary)
            said.add(name)
            chosen.append(
                Excerpt(
                    ref=found.message.ref,
                    source=found.source,
                    conversation=found.message.session,
                    role=found.message.role,
                    at=found.message.at if found.message.dated else None,
                    excerpt=excerpt(found.text, terms),
                    score=hit.score,
                    author=found.message.author if found.message.origin == "participant" else None,
                )
            )
    return chosen


def rank(connection: apsw.Connection, query: Query, vector: Vector | None, snapshot: Snapshot | None) -> list[Hit]:
    """Candidates in order, not yet read back."""
    terms = query_words(query.text)
    bounds = lexicon.Bounds(query.scopes, query.session, query.only_session)
    own = dict(lexicon.search(connection, terms, "own", bounds, LIST_LENGTH))
    context = dict(lexicon.search(connection, terms, "own context", bounds, LIST_LENGTH))
    dense = _dense(query, vector, snapshot)
    ids = list(dict.fromkeys([*own, *context, *(dense.best if dense else ())]))
    cosines = dense.of(ids) if dense else {}
    lists = _lists(own, context, dense, cosines)
    best = sorted(ids, key=lambda i: (-lists.score(i), i))[:CANDIDATES]
    entries = passages.entries(connection, best)
    around = [e.previous_id for e in entries.values() if e.previous_id is not None]
    around = [i for i in dict.fromkeys([*around, *passages.next_of(connection, best)]) if i not in entries]
    entries |= {i: e for i, e in passages.entries(connection, around).items() if _may_be_seen(e, query)}
    if dense:
        cosines |= dense.of(around)
        lists = _lists(own, context, dense, cosines)
    now = passages.to_ms(query.now)
    items = [
        fuse.Item(e.id, e.conversation_id, e.previous_id, lists.score(e.id), max(0, now - e.at) / DAY_MS)
        for e in entries.values()
    ]
    scores = fuse.fuse(items)
    hits = [
        Hit(e.id, scores[e.id], e)
        for e in entries.values()
        if (e.id in own or e.id in context or (dense is not None and cosines.get(e.id, -1.0) > dense.floor))
        and not (query.visible is not None and (e.session, e.window) == (query.session, query.visible))
    ]
    if query.visible is not None and query.session is not None:
        copies = passages.copied_into(connection, query.session, [hit.passage_id for hit in hits])
        hits = [hit for hit in hits if hit.passage_id not in copies]
    return sorted(hits, key=lambda hit: (-hit.score, -hit.entry.at, hit.passage_id))


def _lists(
    own: Mapping[int, float], context: Mapping[int, float], dense: _Dense | None, cosines: Mapping[int, float]
) -> fuse.Lists:
    meaning = None if dense is None else fuse.scaled(cosines, floor=dense.mean)
    return fuse.Lists(fuse.scaled(own), fuse.scaled(context), meaning)


def _may_be_seen(entry: passages.Entry, query: Query) -> bool:
    """The bounds of `query` once more, for neighbours that came in beside a hit."""
    if query.scopes is not None and entry.scope not in query.scopes:
        return False
    return entry.session == query.session or not (query.only_session or entry.origin == "participant")


class _Dense:
    """The cosines of one query: the best passages, and any passage's on request."""

    def __init__(self, snapshot: Snapshot, scores: Floats, rows: Ints | None) -> None:
        """scores: a cosine per row of the snapshot; rows: those that may be seen (None = all)."""
        import numpy as np

        seen = scores if rows is None else scores[rows]
        k = min(LIST_LENGTH, len(seen))
        top = np.argpartition(seen, len(seen) - k)[len(seen) - k :]
        self._snapshot = snapshot
        self._scores = scores
        self.best: list[int] = snapshot.ids[top if rows is None else rows[top]].tolist()
        self.mean = float(seen.mean())
        self.floor = self.mean + MEANING_ALONE * float(seen.std())

    def of(self, ids: Sequence[int]) -> dict[int, float]:
        """Passage id → cosine, for those that have a vector."""
        rows = self._snapshot.rows_of(ids)
        found = rows >= 0
        return {i: s for i, s, f in zip(ids, self._scores[rows].tolist(), found.tolist(), strict=True) if f}


def _dense(query: Query, vector: Vector | None, snapshot: Snapshot | None) -> _Dense | None:
    if vector is None or snapshot is None or not len(snapshot.ids):
        return None
    import numpy as np

    mask = snapshot.allowed(query.scopes, query.session, query.only_session)
    rows = None if mask is None else np.flatnonzero(mask)
    if rows is not None and not len(rows):
        return None
    return _Dense(snapshot, snapshot.vectors @ vector, rows)
