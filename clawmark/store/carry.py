"""What a damaged database alone may still hold: messages of hosts that remove old logs by age, with their kept texts.

They are carried over into the rebuilt one, where the next pass finds what became of each log. All else of recall is read
from the logs again.
"""

from __future__ import annotations

from typing import Any

import apsw

from clawmark.store import db, kept, passages, streams, vectors
from clawmark.text import VECTOR_LETTERS, length_in_letters

_KEPT = """
SELECT s.source, s.host, s.name, s.scope, s.session, s.kind, s.place, s.touched, s.newest, s.expired,
  c.scope, c.session, c.window, c.kind, c.started_at,
  p.id, p.part, p.scope, p.origin, p.author, p.at, p.content_key, p.recipe, p.dated,
  r.ref, r.location, r.text_hash, k.text
FROM streams s
JOIN passage_refs r ON r.stream_id = s.id
JOIN passages p ON p.id = r.passage_id
JOIN conversations c ON c.id = p.conversation_id
JOIN kept_texts k ON k.passage_id = p.id
ORDER BY p.id
"""


def kept_texts(old: apsw.Connection, new: apsw.Connection) -> int:
    """Copy what can be read of them; returns the number of passages. Belongs inside a transaction of `new`.

    A row that the new tables do not take is left out: what stands here keeps no fact from coming back.
    """
    made: dict[int, int] = {}
    try:
        for row in old.execute(_KEPT):
            try:
                with new:  # a savepoint
                    _carry(new, row, made)
            except (apsw.Error, TypeError, ValueError, OverflowError):
                continue
    except db.UNREADABLE:
        pass  # up to here it could be read
    return len(made)


def _carry(new: apsw.Connection, row: tuple[Any, ...], made: dict[int, int]) -> None:
    stream, conversation, passage = row[:10], row[10:15], row[15:24]
    ref, location, text_hash, blob = row[24:]
    text = kept.unpacked(blob)
    if text is None or not all(isinstance(value, str) for value in (*stream[:7], *conversation[:4], ref)):
        return
    stream_id = streams.put_back(new, *stream)
    passage_id = made.get(passage[0])
    if passage_id is None:
        passage_id = _add(new, passages.add_conversation(new, *conversation), *passage[1:], text=text)
    passages.add_ref(new, ref, stream_id, [passage_id], location, text_hash)
    made[passage[0]] = passage_id


def _add(
    new: apsw.Connection,
    conversation: int,
    part: int,
    scope: str,
    origin: str,
    author: str | None,
    at: int,
    content_key: bytes,
    recipe: int,
    dated: int,
    *,
    text: str,
) -> int:
    """The passage, stale: the next pass puts its words into the lexicon."""
    passage_id = passages.add(
        new,
        conversation_id=conversation,
        previous_id=None,
        part=part,
        scope=scope,
        origin=origin,
        author=author,
        at=at,
        content_key=content_key,
        recipe=recipe,
        dated=bool(dated),
    )
    kept.put(new, passage_id, text)
    passages.mark_stale(new, [passage_id])
    if length_in_letters(text) >= VECTOR_LETTERS:
        vectors.expect(new, passage_id, at)
    return passage_id
