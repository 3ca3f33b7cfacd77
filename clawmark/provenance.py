"""Provenance: what is known of a key and where it is from, as the person reads it.

Reads only. The words of what a fact rests on are read back from the logs, never from a copy; what cannot be read just now is
named by the time at which it was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import apsw

from clawmark.model import Evidence, Excerpt, Why
from clawmark.recall.excerpt import Reader, excerpt_of
from clawmark.store import events, evidence, facts, passages, proposals


def why(connection: apsw.Connection, reader: Reader, key: str, scope: str | None) -> list[Why]:
    """What is known of a key, or was, in one scope or, None, in each that it has."""
    return [_why(connection, reader, key, one) for one in _scopes(connection, key) if scope in (None, one)]


def _scopes(connection: apsw.Connection, key: str) -> list[str]:
    waiting = {one.scope for one in proposals.pending(connection, key=key)}
    return sorted({*facts.scopes_of(connection, key), *events.scopes_of(connection, key), *waiting})


def _why(connection: apsw.Connection, reader: Reader, key: str, scope: str) -> Why:
    fact = facts.get(connection, key, scope, with_hidden=True)
    excerpts, unread = read(connection, reader, evidence.of(connection, scope, key, fact.value) if fact else [])
    return Why(
        key,
        scope,
        fact,
        facts.is_hidden(connection, key, scope),
        excerpts,
        unread,
        events.of_key(connection, key, scope),
        proposals.pending(connection, [scope], key=key),
    )


def read(
    connection: apsw.Connection, reader: Reader, rests_on: Sequence[Evidence]
) -> tuple[list[Excerpt], list[datetime]]:
    """The utterances as excerpts, and when those were said that cannot be read now."""
    excerpts: list[Excerpt] = []
    unread: list[datetime] = []
    for one in rests_on:
        live = reader.read(connection, passages.with_content(connection, [one.content_key])[:1])
        if live:
            excerpts.append(excerpt_of(live[0], one.said_at))
        else:
            unread.append(one.said_at)
    return excerpts, unread
