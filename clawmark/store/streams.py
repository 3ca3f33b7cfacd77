"""Streams: which logs were read and how far, what each held by reason, and what became of those that are no longer listed.

Times are milliseconds since 1970 UTC.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import floor
from typing import cast

import apsw

from clawmark.model import SHARED, Stream, StreamKind
from clawmark.store import cursors
from clawmark.store.db import rows
from clawmark.store.passages import from_ms, orphans

IN_DOUBT = "?"
"""What stands for `losses` while something that was read may have been taken back, and nobody has asked yet."""

KEPT = "kept"
"""The reason under which messages are counted that have passages; all other reasons say why something has none."""


def cursor_name(source: str, stream: str) -> str:
    return f"index:{source}:{stream}"


@dataclass(frozen=True, slots=True)
class Known:
    """A stream's row.

    mark, losses   up to which it was read, and looked through for what was taken back
    place          where it was last seen
    newest         when the newest message read from it was said
    expired        the host removed it by age, and its kept text stands for it
    """

    id: int
    name: str
    scope: str
    session: str
    kind: str
    mark: str
    losses: str
    place: str
    touched: int | None
    newest: int | None
    expired: bool

    def as_listed(self) -> Stream:
        """As the source listed it last."""
        touched = None if self.touched is None else from_ms(self.touched)
        kind = cast("StreamKind", self.kind)
        return Stream(self.name, self.mark, self.scope, self.session, kind, self.losses, touched)


def put(
    connection: apsw.Connection, source: str, host: str, place: str, stream: Stream, scope: str | None = None
) -> int:
    """The stream's row, made when new. Its mark stays empty until it was read to its end.

    scope: whose its messages are said to be now; None = as before, where it is known: a project that is moved keeps its
    memory.
    """
    # never later than it was: the host counts a log's age from it
    touched = None if stream.touched is None else floor(stream.touched.timestamp() * 1000)
    connection.execute(
        "INSERT INTO streams (source, host, name, scope, session, kind, mark, losses, place, touched)"
        " VALUES (?1, ?2, ?3, coalesce(?10, ?4), ?5, ?6, '', ?7, ?8, ?9)"
        " ON CONFLICT (source, name) DO UPDATE SET scope = coalesce(?10, scope), host = excluded.host,"
        " session = excluded.session, kind = excluded.kind, place = excluded.place, touched = excluded.touched,"
        " expired = 0",
        (
            source, host, stream.name, stream.scope, stream.session, stream.kind, IN_DOUBT if stream.losses else "",
            place, touched, scope,
        ),
    )  # fmt: skip
    if stream.scope_name:
        connection.execute(
            "INSERT INTO scopes (scope, name, source) VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET name = excluded.name WHERE name <> excluded.name",
            (scope or stream.scope, stream.scope_name, source),
        )
    found = rows(connection, "SELECT id FROM streams WHERE source = ? AND name = ?", (source, stream.name))
    return int(found[0][0])


_KNOWN = "SELECT id, name, scope, session, kind, mark, losses, place, touched, newest, expired FROM streams"


def sources(connection: apsw.Connection) -> set[str]:
    """The names of sources of which something was read."""
    found = rows(
        connection,
        "WITH RECURSIVE held(one) AS (SELECT min(source) FROM streams UNION ALL"
        " SELECT (SELECT min(source) FROM streams WHERE source > held.one) FROM held WHERE held.one IS NOT NULL)"
        " SELECT one FROM held WHERE one IS NOT NULL",
    )
    return {row[0] for row in found}


def put_back(
    connection: apsw.Connection,
    source: str,
    host: str,
    name: str,
    scope: str,
    session: str,
    kind: str,
    place: str,
    touched: int | None,
    newest: int | None,
    expired: int,
) -> int:
    """The row of a stream as another file had it, to be read from its beginning where its log is there."""
    connection.execute(
        "INSERT INTO streams (source, host, name, scope, session, kind, mark, place, touched, newest, expired)"
        " VALUES (?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (source, host, name, scope, session, kind, place, touched, newest, expired),
    )
    found = rows(connection, "SELECT id FROM streams WHERE source = ? AND name = ?", (source, name))
    return int(found[0][0])


def known(connection: apsw.Connection, source: str) -> dict[str, Known]:
    """By name."""
    found = rows(connection, f"{_KNOWN} WHERE source = ?", (source,))
    return {row[1]: Known(*row) for row in found}


def known_one(connection: apsw.Connection, source: str, name: str) -> Known | None:
    found = rows(connection, f"{_KNOWN} WHERE source = ? AND name = ?", (source, name))
    return Known(*found[0]) if found else None


def expired(connection: apsw.Connection) -> list[tuple[str, Known]]:
    """Every stream that its host has removed by age, with its source."""
    found = rows(connection, _KNOWN.replace("SELECT ", "SELECT source, ") + " WHERE expired = 1")
    return [(source, Known(*row)) for source, *row in found]


def set_mark(connection: apsw.Connection, row_id: int, mark: str) -> None:
    connection.execute("UPDATE streams SET mark = ? WHERE id = ?", (mark, row_id))


def doubt(connection: apsw.Connection, source: str, passage_ids: Collection[int]) -> None:
    """Another copy of these passages is gone: streams of `source` that still hold them are asked whether they do."""
    connection.execute(
        "UPDATE streams SET losses = ?1 WHERE source = ?2 AND expired = 0 AND id IN ("
        " SELECT r.stream_id FROM json_each(?3) j CROSS JOIN passage_refs r ON r.passage_id = j.value)",
        (IN_DOUBT, source, json.dumps(sorted(passage_ids))),
    )


def set_losses(connection: apsw.Connection, row_id: int, losses: str) -> None:
    connection.execute("UPDATE streams SET losses = ? WHERE id = ?", (losses, row_id))


def saw(connection: apsw.Connection, row_id: int, newest: int) -> None:
    """A message said at `newest` was read."""
    connection.execute("UPDATE streams SET newest = max(coalesce(newest, ?2), ?2) WHERE id = ?1", (row_id, newest))


def expire(connection: apsw.Connection, row_id: int) -> None:
    connection.execute("UPDATE streams SET expired = 1 WHERE id = ?", (row_id,))


def read_again(connection: apsw.Connection, source: str, session: str | None = None) -> None:
    """Every stream of `source` (of one session) is read from its beginning in the next pass: what is known stays known."""
    found = rows(
        connection,
        "SELECT id, name FROM streams WHERE source = ?1 AND expired = 0 AND (?2 IS NULL OR session = ?2)",
        (source, session),
    )
    for row_id, name in found:
        set_mark(connection, row_id, "")
        cursors.drop(connection, cursor_name(source, name))


def has_kept_text(connection: apsw.Connection, row_id: int) -> bool:
    """Whether the text of any passage of a stream is kept."""
    found = rows(
        connection,
        "SELECT 1 FROM passage_refs r JOIN kept_texts k ON k.passage_id = r.passage_id WHERE r.stream_id = ? LIMIT 1",
        (row_id,),
    )
    return bool(found)


def has_other_logs(connection: apsw.Connection, source: str, host: str) -> bool:
    """Whether something was read of another log of the host."""
    return bool(rows(connection, "SELECT 1 FROM streams WHERE host = ? AND source <> ? LIMIT 1", (host, source)))


def drop(connection: apsw.Connection, source: str, stream: Known) -> list[int]:
    """Take a stream, its cursor and its refs away; returns the passages that no ref points to any more."""
    found = rows(connection, "SELECT passage_id FROM passage_refs WHERE stream_id = ?", (stream.id,))
    connection.execute("DELETE FROM passage_refs WHERE stream_id = ?", (stream.id,))
    connection.execute("DELETE FROM streams WHERE id = ?", (stream.id,))
    cursors.drop(connection, cursor_name(source, stream.name))
    ids = {row[0] for row in found}
    gone = orphans(connection, ids)
    doubt(connection, source, ids.difference(gone))
    return gone


def refs(connection: apsw.Connection, row_id: int, after: str, limit: int) -> list[str]:
    """The next `limit` refs of a stream behind `after`, in order."""
    found = rows(
        connection,
        "SELECT DISTINCT ref FROM passage_refs WHERE stream_id = ? AND ref > ? ORDER BY ref LIMIT ?",
        (row_id, after, limit),
    )
    return [row[0] for row in found]


# What was in them


def count(connection: apsw.Connection, row_id: int, reasons: Mapping[str, int], *, anew: bool) -> None:
    """Add to the stream's counts; `anew` when it is read from its beginning."""
    if anew:
        connection.execute("DELETE FROM stream_counts WHERE stream_id = ?", (row_id,))
    connection.executemany(
        "INSERT INTO stream_counts (stream_id, reason, count) VALUES (?, ?, ?)"
        " ON CONFLICT DO UPDATE SET count = count + excluded.count",
        [(row_id, reason, number) for reason, number in reasons.items() if number],
    )


def counts(connection: apsw.Connection, source: str) -> dict[str, int]:
    """Reason → how many messages and entries of `source`, over all its streams."""
    found = rows(
        connection,
        "SELECT c.reason, sum(c.count) FROM streams s JOIN stream_counts c ON c.stream_id = s.id"
        " WHERE s.source = ? GROUP BY c.reason ORDER BY c.reason",
        (source,),
    )
    return dict(found)


# Scopes and sessions


def scopes(connection: apsw.Connection) -> list[str]:
    return [row[0] for row in rows(connection, "SELECT DISTINCT scope FROM streams ORDER BY scope")]


def scope_names(connection: apsw.Connection) -> dict[str, str]:
    """Scope → what a person calls it, for those that are no names themselves."""
    return dict(rows(connection, "SELECT scope, name FROM scopes ORDER BY scope"))


def scope_called(connection: apsw.Connection, name: str) -> str:
    """The scope that a person means by `name`: one of that id, else the only one that is called so, else `name`."""
    if name == SHARED or name in scopes(connection):
        return name
    called = [scope for scope, known in scope_names(connection).items() if known == name]
    return called[0] if len(called) == 1 else name


def session(connection: apsw.Connection, name: str) -> tuple[str, str] | None:
    """(scope, kind) of a session; a group where any of its streams is one, or where a participant spoke."""
    found = rows(
        connection,
        "SELECT scope, kind FROM streams WHERE session = ? ORDER BY kind = 'group' DESC, id DESC LIMIT 1",
        (name,),
    )
    if not found:
        return None
    scope, kind = found[0]
    others = rows(
        connection,
        "SELECT 1 FROM conversations WHERE scope = ? AND session = ? AND kind = 'group' LIMIT 1",
        (scope, name),
    )
    return scope, "group" if others else kind


def deleted_sessions(connection: apsw.Connection, host: str) -> dict[tuple[str, str], set[str]]:
    """(scope, session) → the sources at whose logs the person deleted it, of one host."""
    found = rows(connection, "SELECT scope, session, source FROM deleted_sessions WHERE host = ?", (host,))
    deleted: dict[tuple[str, str], set[str]] = {}
    for scope, name, source in found:
        deleted.setdefault((scope, name), set()).add(source)
    return deleted


def all_deleted(connection: apsw.Connection) -> list[tuple[str, str, str, str]]:
    """(scope, session, source, host) of every deleted session; none in a file of an earlier version."""
    if not rows(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'deleted_sessions'"):
        return []
    return [tuple(row) for row in rows(connection, "SELECT scope, session, source, host FROM deleted_sessions")]


def bury_session(
    connection: apsw.Connection, scope: str, name: str, source: str, host: str, now: datetime
) -> list[int]:
    """The person deleted a session at `source`: the copies in other logs of its host go too, now and when they are read
    later. Returns the passages that no ref points to any more.
    """
    connection.execute(
        "INSERT INTO deleted_sessions (scope, session, source, host, deleted_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (scope, name, source, host, now.isoformat()),
    )
    found = rows(
        connection,
        "SELECT r.ref, r.stream_id, r.passage_id FROM streams s JOIN passage_refs r ON r.stream_id = s.id"
        " WHERE s.session = ? AND s.scope = ? AND s.host = ? AND s.source <> ?",
        (name, scope, host, source),
    )
    connection.executemany("DELETE FROM passage_refs WHERE ref = ? AND stream_id = ? AND passage_id = ?", found)
    return orphans(connection, [row[2] for row in found])


def lift_session(connection: apsw.Connection, scope: str, name: str, source: str, host: str) -> None:
    """The session is there again in `source`: its copies in other logs count again, and are read again."""
    connection.execute(
        "DELETE FROM deleted_sessions WHERE scope = ? AND session = ? AND source = ?", (scope, name, source)
    )
    listed = rows(
        connection,
        "SELECT DISTINCT source FROM streams WHERE session = ? AND host = ? AND source <> ?",
        (name, host, source),
    )
    for (other,) in listed:
        read_again(connection, other, name)
