"""Passages, the conversations they stand in, and the refs by which their text is read back.

A passage lives as long as one ref points to it. Text is never here: a ref, a location hint and a hash are.
Times are milliseconds since 1970 UTC.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import apsw

from clawmark.model import Origin, Role, digest
from clawmark.store.db import each, rows
from clawmark.text import canonical

SAME_UTTERANCE_MS = 600_000
"""Two logs may stamp one utterance differently; the same words said later than this are another one."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def from_ms(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def content_key(scope: str, role: str, text: str) -> bytes:
    """What all copies of one utterance share."""
    return digest("\0".join((scope, role, canonical(text))))


@dataclass(frozen=True, slots=True)
class Ref:
    """One ref of a passage, by which its text can be read back, and what the row knows better than the text.

    Who said it and when was settled when the log was read in order; an entry read alone cannot always tell.
    """

    passage_id: int
    source: str
    stream: str
    ref: str
    location: str
    text_hash: bytes
    part: int
    recipe: int
    origin: Origin
    author: str | None
    at: int
    dated: bool
    expired: bool


@dataclass(frozen=True, slots=True)
class KnownRef:
    """One row of `passage_refs`, without its location."""

    ref: str
    stream_id: int
    passage_id: int
    text_hash: bytes
    scope: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage whose content is that of a message: what decides whether they are one utterance.

    is_kin   a log of the message's host has a ref to it
    """

    origin: str
    dated: bool
    is_kin: bool


@dataclass(frozen=True, slots=True)
class Made:
    """How a passage came about."""

    recipe: int
    content_key: bytes
    author: str | None


def refs_known(connection: apsw.Connection, source: str, refs: Collection[str]) -> dict[str, list[KnownRef]]:
    """Where these refs of `source` already stand; refs that are new are left out."""
    found = rows(
        connection,
        "SELECT r.ref, r.stream_id, r.passage_id, r.text_hash, p.scope"
        " FROM json_each(?) j CROSS JOIN passage_refs r ON r.ref = j.value"
        " JOIN streams s ON s.id = r.stream_id JOIN passages p ON p.id = r.passage_id WHERE s.source = ?",
        (json.dumps(sorted(set(refs))), source),
    )
    known: dict[str, list[KnownRef]] = {}
    for row in found:
        known.setdefault(row[0], []).append(KnownRef(*row))
    return known


def add_ref(
    connection: apsw.Connection, ref: str, stream: int, passage_ids: Iterable[int], location: str, text_hash: bytes
) -> None:
    for passage_id in passage_ids:
        connection.execute(
            "INSERT INTO passage_refs (ref, stream_id, passage_id, location, text_hash) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET location = excluded.location, text_hash = excluded.text_hash",
            (ref, stream, passage_id, location, text_hash),
        )


def drop_ref(connection: apsw.Connection, ref: str, stream: int) -> list[int]:
    """Take one ref away; returns the passages that no ref points to any more."""
    found = rows(connection, "SELECT passage_id FROM passage_refs WHERE ref = ? AND stream_id = ?", (ref, stream))
    connection.execute("DELETE FROM passage_refs WHERE ref = ? AND stream_id = ?", (ref, stream))
    return orphans(connection, [row[0] for row in found])


def orphans(connection: apsw.Connection, ids: Collection[int]) -> list[int]:
    """Those of `ids` that no ref points to."""
    found = rows(
        connection,
        "SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM passage_refs WHERE passage_id = value)",
        (json.dumps(sorted(set(ids))),),
    )
    return [row[0] for row in found]


def said(connection: apsw.Connection, content_keys: Collection[bytes]) -> dict[bytes, list[tuple[int, int]]]:
    """Content key → (at, passage id) of first parts with this content, sorted; keys that are new are left out."""
    found = rows(
        connection,
        "SELECT p.content_key, p.at, p.id FROM json_each(?) j CROSS JOIN passages p ON p.content_key = unhex(j.value)"
        " WHERE p.part = 0 ORDER BY p.at, p.id",
        (json.dumps(sorted({key.hex() for key in content_keys})),),
    )
    known: dict[bytes, list[tuple[int, int]]] = {}
    for key, at, passage_id in found:
        known.setdefault(key, []).append((at, passage_id))
    return known


def content_keys(connection: apsw.Connection, ids: Sequence[int]) -> set[bytes]:
    found = rows(
        connection,
        "SELECT p.content_key FROM json_each(?) j CROSS JOIN passages p ON p.id = j.value",
        (json.dumps(list(ids)),),
    )
    return {row[0] for row in found}


def has_entry(connection: apsw.Connection, passage_id: int, entry: str) -> bool:
    """Whether a ref of this passage ends in `entry` ("/" and an entry id): a fork's copy, whatever its time."""
    found = rows(
        connection,
        "SELECT 1 FROM passage_refs WHERE passage_id = ? AND substr(ref, -length(?2)) = ?2 LIMIT 1",
        (passage_id, entry),
    )
    return bool(found)


def candidate(connection: apsw.Connection, passage_id: int, host: str) -> Candidate:
    found = rows(
        connection,
        "SELECT p.origin, p.dated, EXISTS (SELECT 1 FROM passage_refs r JOIN streams s ON s.id = r.stream_id"
        " WHERE r.passage_id = p.id AND s.host = ?2) FROM passages p WHERE p.id = ?1",
        (passage_id, host),
    )
    origin, dated, is_kin = found[0]
    return Candidate(origin, bool(dated), bool(is_kin))


def other_logs_copy(
    connection: apsw.Connection, content_key: bytes, session: str, source: str, host: str, around: tuple[int, int]
) -> int | None:
    """The first passage with this content that another log of the host has of this session and `source` has not yet:
    two logs of one session hold each utterance once, in the same order."""
    found = rows(
        connection,
        "SELECT p.id FROM passages p JOIN conversations c ON c.id = p.conversation_id"
        " WHERE p.content_key = ?1 AND p.part = 0 AND p.at BETWEEN ?5 AND ?6 AND c.session = ?2"
        " AND EXISTS (SELECT 1 FROM passage_refs r JOIN streams s ON s.id = r.stream_id"
        "  WHERE r.passage_id = p.id AND s.host = ?4)"
        " AND NOT EXISTS (SELECT 1 FROM passage_refs r JOIN streams s ON s.id = r.stream_id"
        "  WHERE r.passage_id = p.id AND s.source = ?3)"
        " ORDER BY p.at, p.id LIMIT 1",
        (content_key, session, source, host, *around),
    )
    return found[0][0] if found else None


def make_participants(connection: apsw.Connection, ids: Sequence[int]) -> bool:
    """Of two logs one says that somebody else spoke: in doubt it is not the owner. True when that changed something."""
    connection.execute(
        "UPDATE passages SET origin = 'participant' WHERE origin = 'owner' AND id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return bool(connection.changes())


def make_group(connection: apsw.Connection, conversation_id: int) -> None:
    """Others are present in a conversation."""
    connection.execute("UPDATE conversations SET kind = 'group' WHERE id = ? AND kind <> 'group'", (conversation_id,))


def expired_refs(connection: apsw.Connection, ids: Sequence[int]) -> list[tuple[str, int, str, bytes, int]]:
    """(ref, stream, location, hash of the text, place in `ids`) of refs into logs that their host has removed by age."""
    return rows(
        connection,
        "SELECT r.ref, r.stream_id, r.location, r.text_hash, j.key FROM json_each(?) j"
        " CROSS JOIN passage_refs r ON r.passage_id = j.value JOIN streams s ON s.id = r.stream_id WHERE s.expired = 1",
        (json.dumps(list(ids)),),
    )


def refs_elsewhere(connection: apsw.Connection, ids: Sequence[int], stream: int) -> list[tuple[str, int]]:
    """(ref, stream) of these passages in other logs of the stream's host, of the same session."""
    return rows(
        connection,
        "SELECT DISTINCT r.ref, r.stream_id FROM json_each(?1) j CROSS JOIN passage_refs r ON r.passage_id = j.value"
        " JOIN streams s ON s.id = r.stream_id JOIN streams own ON own.id = ?2"
        " WHERE s.host = own.host AND s.source <> own.source AND s.session = own.session",
        (json.dumps(list(ids)), stream),
    )


def is_expired(connection: apsw.Connection, passage_id: int) -> bool:
    """Whether every log that held a passage was removed by its host."""
    found = rows(
        connection,
        "SELECT 1 FROM passage_refs r JOIN streams s ON s.id = r.stream_id WHERE r.passage_id = ? AND s.expired = 0",
        (passage_id,),
    )
    return not found


def passages_of(connection: apsw.Connection, ref: str, stream: int) -> list[int]:
    found = rows(connection, "SELECT passage_id FROM passage_refs WHERE ref = ? AND stream_id = ?", (ref, stream))
    return [row[0] for row in found]


def made(connection: apsw.Connection, ids: Sequence[int]) -> list[Made]:
    """How these passages came about, in their order."""
    found = rows(
        connection,
        "SELECT p.recipe, p.content_key, p.author FROM json_each(?) j CROSS JOIN passages p ON p.id = j.value"
        " ORDER BY j.key",
        (json.dumps(list(ids)),),
    )
    return [Made(*row) for row in found]


@dataclass(frozen=True, slots=True)
class Row:
    """What a passage says of its message."""

    at: int
    dated: bool
    scope: str
    session: str
    origin: Origin
    author: str | None
    content_key: bytes
    recipe: int

    @property
    def role(self) -> Role:
        return "assistant" if self.origin == "assistant" else "user"


def row(connection: apsw.Connection, passage_id: int) -> Row:
    found = rows(
        connection,
        "SELECT p.at, p.dated, p.scope, c.session, p.origin, p.author, p.content_key, p.recipe"
        " FROM passages p JOIN conversations c ON c.id = p.conversation_id WHERE p.id = ?",
        (passage_id,),
    )
    at, dated, *rest = found[0]
    return Row(at, bool(dated), *rest)


def remake(connection: apsw.Connection, ids: Sequence[int], recipe: int, content_key: bytes) -> None:
    """The text of these passages is the same under another recipe."""
    connection.executemany(
        "UPDATE passages SET recipe = ?, content_key = ? WHERE id = ?", [(recipe, content_key, i) for i in ids]
    )


def drop_other_names(connection: apsw.Connection, ids: Sequence[int], stream: int, prefix: str) -> None:
    """Refs of these passages in this stream that do not begin with `prefix` are names of an earlier life of the log."""
    connection.execute(
        "DELETE FROM passage_refs WHERE stream_id = ?1 AND passage_id IN (SELECT value FROM json_each(?2))"
        " AND substr(ref, 1, length(?3)) <> ?3",
        (stream, json.dumps(list(ids)), prefix),
    )


def parts_of(connection: apsw.Connection, first: int) -> list[int]:
    """The parts of the message whose first part is passage `first`: they were made one after the other."""
    found = rows(
        connection,
        "SELECT p.id FROM passages f JOIN passages p ON p.content_key = f.content_key AND p.at = f.at"
        " WHERE f.id = ? AND p.id - p.part = f.id ORDER BY p.part",
        (first,),
    )
    return [row[0] for row in found]


def conversation(connection: apsw.Connection, row_id: int) -> tuple[str, str, str] | None:
    """(scope, session, window) of a conversation."""
    found = rows(connection, "SELECT scope, session, window FROM conversations WHERE id = ?", (row_id,))
    return found[0] if found else None


def add_conversation(
    connection: apsw.Connection, scope: str, session: str, window: str, kind: str, started_at: int
) -> int:
    connection.execute(
        "INSERT INTO conversations (scope, session, window, kind, started_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (scope, session, window, kind, started_at),
    )
    found = rows(
        connection,
        "SELECT id FROM conversations WHERE scope = ? AND session = ? AND window = ? AND started_at = ?",
        (scope, session, window, started_at),
    )
    return int(found[0][0])


def conversation_of(connection: apsw.Connection, passage_id: int) -> int:
    found = rows(connection, "SELECT conversation_id FROM passages WHERE id = ?", (passage_id,))
    return int(found[0][0])


def exists(connection: apsw.Connection, passage_id: int) -> bool:
    return bool(rows(connection, "SELECT 1 FROM passages WHERE id = ?", (passage_id,)))


def add(
    connection: apsw.Connection,
    *,
    conversation_id: int,
    previous_id: int | None,
    part: int,
    scope: str,
    origin: str,
    author: str | None,
    at: int,
    content_key: bytes,
    recipe: int,
    dated: bool,
) -> int:
    connection.execute(
        "INSERT INTO passages (conversation_id, previous_id, part, scope, origin, author, at, content_key, recipe, dated)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (conversation_id, previous_id, part, scope, origin, author, at, content_key, recipe, dated),
    )
    return connection.last_insert_rowid()


def remove(connection: apsw.Connection, ids: Sequence[int]) -> None:
    """Take passages away with their refs, vectors and pending rows, and conversations that are empty then.

    The lexicon is `lexicon.remove`'s.
    """
    listed = json.dumps(list(ids))
    found = rows(
        connection,
        "SELECT DISTINCT p.conversation_id FROM json_each(?) j CROSS JOIN passages p ON p.id = j.value",
        (listed,),
    )
    connection.execute("DELETE FROM passages WHERE id IN (SELECT value FROM json_each(?))", (listed,))
    connection.execute(
        "UPDATE passages SET previous_id = NULL WHERE previous_id IN (SELECT value FROM json_each(?))", (listed,)
    )
    connection.execute(
        "DELETE FROM conversations WHERE id IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM passages WHERE conversation_id = conversations.id)",
        (json.dumps([row[0] for row in found]),),
    )


def successors(connection: apsw.Connection, ids: Sequence[int]) -> list[int]:
    """Passages whose context column holds words of one of `ids`, themselves not among them."""
    listed = json.dumps(list(ids))
    found = rows(
        connection,
        "SELECT id FROM passages WHERE previous_id IN (SELECT value FROM json_each(?1))"
        " AND id NOT IN (SELECT value FROM json_each(?1))",
        (listed,),
    )
    return [row[0] for row in found]


def refs(connection: apsw.Connection, ids: Sequence[int]) -> list[Ref]:
    """Every ref of these passages, for each the newest stream of a log that is there first."""
    found = rows(
        connection,
        "SELECT p.id, s.source, s.name, r.ref, r.location, r.text_hash, p.part, p.recipe, p.origin, p.author, p.at,"
        " p.dated, s.expired"
        " FROM json_each(?) j CROSS JOIN passages p ON p.id = j.value"
        " JOIN passage_refs r ON r.passage_id = p.id JOIN streams s ON s.id = r.stream_id"
        " ORDER BY j.key, s.expired, s.id DESC",
        (json.dumps(list(ids)),),
    )
    return [Ref(*row) for row in found]


@dataclass(frozen=True, slots=True)
class Entry:
    """What ranking needs to know of a passage."""

    id: int
    conversation_id: int
    previous_id: int | None
    at: int
    origin: str
    author: str | None
    session: str
    window: str
    scope: str


def entries(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, Entry]:
    found = rows(
        connection,
        "SELECT p.id, p.conversation_id, p.previous_id, p.at, p.origin, p.author, c.session, c.window, p.scope"
        " FROM json_each(?) j CROSS JOIN passages p ON p.id = j.value JOIN conversations c ON c.id = p.conversation_id",
        (json.dumps(list(ids)),),
    )
    return {row[0]: Entry(*row) for row in found}


def next_of(connection: apsw.Connection, ids: Sequence[int]) -> list[int]:
    """The passages that directly follow one of `ids`."""
    found = rows(
        connection,
        "SELECT p.id FROM json_each(?) j CROSS JOIN passages p ON p.previous_id = j.value",
        (json.dumps(list(ids)),),
    )
    return [row[0] for row in found]


def newest_window(connection: apsw.Connection, scope: str, session: str) -> str | None:
    """The window of a session in which something was begun to be said last."""
    found = rows(
        connection,
        "SELECT window FROM conversations WHERE scope = ? AND session = ? ORDER BY started_at DESC, id DESC LIMIT 1",
        (scope, session),
    )
    return found[0][0] if found else None


def typed_in(connection: apsw.Connection, session: str, scope: str | None, limit: int) -> list[int]:
    """The newest messages of the owner in a session, oldest first; not those of several parts."""
    found = rows(
        connection,
        "SELECT p.id FROM conversations c JOIN passages p ON p.conversation_id = c.id"
        " WHERE c.session = ?1 AND (?2 IS NULL OR c.scope = ?2) AND p.origin = 'owner' AND p.part = 0 AND NOT EXISTS"
        " (SELECT 1 FROM passages o WHERE o.content_key = p.content_key AND o.at = p.at AND o.part > 0)"
        " ORDER BY p.at DESC, p.id DESC LIMIT ?3",
        (session, scope, limit),
    )
    return [row_id for (row_id,) in reversed(found)]


def copied_into(connection: apsw.Connection, session: str, ids: Sequence[int]) -> set[int]:
    """Those of `ids` that stand in `session` too, though their conversation is another session's: a fork's copies."""
    found = rows(
        connection,
        "SELECT DISTINCT r.passage_id FROM json_each(?) j CROSS JOIN passage_refs r ON r.passage_id = j.value"
        " JOIN streams s ON s.id = r.stream_id JOIN passages p ON p.id = r.passage_id"
        " JOIN conversations c ON c.id = p.conversation_id WHERE s.session = ?2 AND c.session <> ?2",
        (json.dumps(list(ids)), session),
    )
    return {row[0] for row in found}


def with_content(connection: apsw.Connection, content_keys: Collection[bytes]) -> list[int]:
    """Every passage of every message with this content."""
    found = rows(
        connection,
        "SELECT p.id FROM json_each(?) j CROSS JOIN passages p ON p.content_key = unhex(j.value) ORDER BY p.id",
        (json.dumps(sorted({key.hex() for key in content_keys})),),
    )
    return [row[0] for row in found]


def standing(connection: apsw.Connection, content_keys: Collection[bytes]) -> set[bytes]:
    """Those of these contents that a passage still has."""
    listed = json.dumps(sorted({key.hex() for key in content_keys}))
    found = rows(
        connection,
        "SELECT DISTINCT p.content_key FROM json_each(?) j CROSS JOIN passages p ON p.content_key = unhex(j.value)",
        (listed,),
    )
    return {row[0] for row in found}


def of_scope(connection: apsw.Connection, scope: str) -> list[int]:
    return [row[0] for row in rows(connection, "SELECT id FROM passages WHERE scope = ? ORDER BY id", (scope,))]


def of_session(connection: apsw.Connection, session: str, scope: str | None) -> list[int]:
    found = rows(
        connection,
        "SELECT p.id FROM conversations c JOIN passages p ON p.conversation_id = c.id"
        " WHERE c.session = ?1 AND (?2 IS NULL OR c.scope = ?2) ORDER BY p.id",
        (session, scope),
    )
    return [row[0] for row in found]


def before(connection: apsw.Connection, at: datetime, scope: str | None) -> list[int]:
    """What was said before a time, and what nobody dated."""
    found = rows(
        connection,
        "SELECT id FROM passages WHERE (at < ?1 OR dated = 0) AND (?2 IS NULL OR scope = ?2) ORDER BY id",
        (to_ms(at), scope),
    )
    return [row[0] for row in found]


def places(connection: apsw.Connection) -> Iterator[tuple[int, str, str, bytes, int]]:
    """(id, scope, session, content key, at) of every passage."""
    return each(
        connection,
        "SELECT p.id, p.scope, c.session, p.content_key, p.at FROM passages p"
        " JOIN conversations c ON c.id = p.conversation_id",
    )


def scopes(connection: apsw.Connection) -> list[str]:
    return [row[0] for row in rows(connection, "SELECT DISTINCT scope FROM passages ORDER BY scope")]


def scopes_of_session(connection: apsw.Connection, session: str, scope: str | None) -> list[tuple[str, str]]:
    """(scope, session) under which a session was read."""
    found = rows(
        connection,
        "SELECT scope, session FROM conversations WHERE session = ?1 AND (?2 IS NULL OR scope = ?2) UNION"
        " SELECT scope, session FROM streams WHERE session = ?1 AND (?2 IS NULL OR scope = ?2) ORDER BY 1",
        (session, scope),
    )
    return [(where, name) for where, name in found]


def in_other_sessions(connection: apsw.Connection, ids: Sequence[int], session: str) -> list[int]:
    """Those of `ids` of which another session holds a copy."""
    found = rows(
        connection,
        "SELECT DISTINCT r.passage_id FROM json_each(?1) j CROSS JOIN passage_refs r ON r.passage_id = j.value"
        " JOIN streams s ON s.id = r.stream_id WHERE s.session <> ?2 ORDER BY 1",
        (json.dumps(list(ids)), session),
    )
    return [row[0] for row in found]


def count_messages(connection: apsw.Connection, ids: Sequence[int]) -> int:
    """How many messages these passages are of."""
    found = rows(
        connection,
        "SELECT count(DISTINCT hex(p.content_key) || ':' || p.at) FROM json_each(?) j"
        " CROSS JOIN passages p ON p.id = j.value",
        (json.dumps(list(ids)),),
    )
    return int(found[0][0])


# --- what extraction looks through ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message of the owner behind the cursor of extraction. whole: it is one passage."""

    id: int
    scope: str
    session: str
    at: int
    content_key: bytes
    whole: bool


def owners_after(connection: apsw.Connection, after: int, limit: int, *, by_model: bool) -> list[Waiting]:
    """The next messages of the owner, by their first passages' ids, that were not looked through yet; by a model: those
    that the embedded markers alone have looked through as well."""
    found = rows(
        connection,
        "SELECT p.id, p.scope, c.session, p.at, p.content_key, NOT EXISTS (SELECT 1 FROM passages o"
        " WHERE o.content_key = p.content_key AND o.at = p.at AND o.part > 0)"
        " FROM passages p JOIN conversations c ON c.id = p.conversation_id"
        " WHERE p.id > ?1 AND p.origin = 'owner' AND p.part = 0"
        " AND NOT EXISTS (SELECT 1 FROM extracted e WHERE e.content_key = p.content_key"
        " AND e.said_at BETWEEN p.at - ?3 AND p.at + ?3"
        " AND (e.by_model OR NOT ?4))"
        " ORDER BY p.id LIMIT ?2",
        (after, limit, SAME_UTTERANCE_MS, by_model),
    )
    return [Waiting(row[0], row[1], row[2], row[3], row[4], bool(row[5])) for row in found]


def owners_since(connection: apsw.Connection, since: int) -> list[Waiting]:
    """What the owner said since a time, by their first passages' ids, looked through or not."""
    found = rows(
        connection,
        "SELECT p.id, p.scope, c.session, p.at, p.content_key, NOT EXISTS (SELECT 1 FROM passages o"
        " WHERE o.content_key = p.content_key AND o.at = p.at AND o.part > 0)"
        " FROM passages p JOIN conversations c ON c.id = p.conversation_id"
        " WHERE p.at >= ? AND p.origin = 'owner' AND p.part = 0 ORDER BY p.id",
        (since,),
    )
    return [Waiting(row[0], row[1], row[2], row[3], row[4], bool(row[5])) for row in found]


def count_owners_after(connection: apsw.Connection, after: int, *, by_model: bool) -> int:
    """How many wait behind the cursor."""
    found = rows(
        connection,
        "SELECT count(*) FROM passages p WHERE p.id > ?1 AND p.origin = 'owner' AND p.part = 0"
        " AND NOT EXISTS (SELECT 1 FROM extracted e WHERE e.content_key = p.content_key"
        " AND e.said_at BETWEEN p.at - ?2 AND p.at + ?2"
        " AND (e.by_model OR NOT ?3))",
        (after, SAME_UTTERANCE_MS, by_model),
    )
    return int(found[0][0])


@dataclass(frozen=True, slots=True)
class Nearby:
    """A passage as its neighbours in a session know it. part: 0 = a message, or the first part of one."""

    id: int
    at: int
    content_key: bytes
    part: int


def around(connection: apsw.Connection, scope: str, session: str, first: int, last: int, before: int) -> list[Nearby]:
    """All that was said in a session from passage `first` to `last`, and the `before` passages in front of it, in the
    order in which it was said."""
    found = rows(
        connection,
        "SELECT id, at, content_key, part FROM (SELECT p.id, p.at, p.content_key, p.part FROM conversations c"
        " JOIN passages p ON p.conversation_id = c.id WHERE c.scope = ?1 AND c.session = ?2 AND p.id BETWEEN ?3 AND ?4"
        " UNION ALL SELECT * FROM (SELECT p.id, p.at, p.content_key, p.part FROM conversations c"
        " JOIN passages p ON p.conversation_id = c.id WHERE c.scope = ?1 AND c.session = ?2 AND p.id < ?3"
        " ORDER BY p.id DESC LIMIT ?5)) ORDER BY at, id",
        (scope, session, first, last, before),
    )
    return [Nearby(*row) for row in found]


def newest_at(connection: apsw.Connection) -> datetime | None:
    """When the newest dated message was said that was ever kept; None = there was none."""
    found = rows(connection, "SELECT max(newest) FROM streams")
    return None if found[0][0] is None else from_ms(found[0][0])


AHEAD = timedelta(days=1)
"""How far the clock may be ahead of the newest message before it is taken for wrong."""


def as_of(connection: apsw.Connection, now: datetime) -> datetime:
    """The time at which ages are measured: not more than a day after the newest message, whatever the clock says."""
    newest = newest_at(connection)
    return now if newest is None else min(now, newest + AHEAD)


def count(connection: apsw.Connection) -> int:
    return int(rows(connection, "SELECT count(*) FROM passages")[0][0])


def mark_stale(connection: apsw.Connection, ids: Sequence[int]) -> None:
    """These passages have left the lexicon and must enter it anew."""
    connection.executemany(
        "INSERT INTO stale_passages (passage_id) VALUES (?) ON CONFLICT DO NOTHING", [(i,) for i in ids]
    )


def stale(connection: apsw.Connection, after: int, limit: int) -> list[int]:
    """The next `limit` stale passages behind id `after`."""
    found = rows(
        connection,
        "SELECT passage_id FROM stale_passages WHERE passage_id > ? ORDER BY passage_id LIMIT ?",
        (after, limit),
    )
    return [row[0] for row in found]


def clear_stale(connection: apsw.Connection, ids: Sequence[int]) -> None:
    connection.executemany("DELETE FROM stale_passages WHERE passage_id = ?", [(i,) for i in ids])
