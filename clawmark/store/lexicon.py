"""The words of every passage: FTS5 without its text, so that nothing here can be read back as a sentence.

Column `own` holds a passage's own words with date and speaker, `context` those of the passage before it; a question
often shares its words with the one and its answer with the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import apsw

from clawmark.store.db import rows

Column = Literal["own", "own context"]


def add(connection: apsw.Connection, passage_id: int, own: str, context: str) -> None:
    """Both in lexicon form (`text.lexical`)."""
    connection.execute("INSERT INTO lexicon (rowid, own, context) VALUES (?, ?, ?)", (passage_id, own, context))


def remove(connection: apsw.Connection, ids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM lexicon WHERE rowid = ?", [(i,) for i in ids])


def purge(connection: apsw.Connection) -> None:
    """Rewrite the index without what was removed: until then its segments still hold the removed words."""
    connection.execute("INSERT INTO lexicon (lexicon) VALUES ('optimize')")


def match_expression(terms: Iterable[str], column: Column) -> str:
    """An FTS5 query for any of `terms`. Each is quoted; a single CJK character stands for every pair it begins."""
    quoted = [_term(term) for term in terms]
    return f"{{{column}}} : ({' OR '.join(quoted)})" if quoted else ""


def _term(term: str) -> str:
    safe = '"' + term.replace('"', '""') + '"'
    return f"{safe} *" if len(term) == 1 and not term.isascii() else safe


def holding(
    connection: apsw.Connection, terms: Sequence[str], scopes: Sequence[str] | None, limit: int | None
) -> list[int]:
    """Passages whose own words hold all of `terms`, by id; scopes None = all, limit None = all of them."""
    if not terms:
        return []
    expression = f"own : ({' AND '.join(_term(term) for term in terms)})"
    found = rows(
        connection,
        "SELECT lexicon.rowid FROM lexicon CROSS JOIN passages p ON p.id = lexicon.rowid WHERE lexicon MATCH ?1"
        " AND (?2 IS NULL OR p.scope IN (SELECT value FROM json_each(?2))) ORDER BY lexicon.rowid LIMIT ?3",
        (expression, None if scopes is None else json.dumps(list(scopes)), -1 if limit is None else limit),
    )
    return [row[0] for row in found]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be seen: scopes (None = all), a participant's words only in `session`, nothing else with only_session."""

    scopes: Sequence[str] | None = None
    session: str | None = None
    only_session: bool = False


def search(
    connection: apsw.Connection, terms: Sequence[str], column: Column, bounds: Bounds, limit: int
) -> list[tuple[int, float]]:
    """The best `limit` passages by BM25 with their scores (higher is better).

    The bounds stand inside the query: filtering after the limit would lose what lies behind others' hits.
    """
    expression = match_expression(terms, column)
    if not expression:
        return []
    return rows(
        connection,
        "SELECT lexicon.rowid, -bm25(lexicon) AS score FROM lexicon"
        " CROSS JOIN passages p ON p.id = lexicon.rowid CROSS JOIN conversations c ON c.id = p.conversation_id"
        " WHERE lexicon MATCH :match"
        " AND (:scopes IS NULL OR p.scope IN (SELECT value FROM json_each(:scopes)))"
        " AND (p.origin <> 'participant' OR c.session = :session)"
        " AND (NOT :only OR c.session = :session)"
        " ORDER BY score DESC, lexicon.rowid LIMIT :limit",
        {
            "match": expression,
            "scopes": None if bounds.scopes is None else json.dumps(list(bounds.scopes)),
            "session": bounds.session,
            "only": bounds.only_session,
            "limit": limit,
        },
    )
