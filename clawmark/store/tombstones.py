"""What must not be learned again: keyed hashes of what was forgotten, which tell nothing without the key.

Of a forgotten statement its key, its value, each content stem of the value and the utterances it rested on are kept; of
forgotten messages their content key; of a forgotten session its name; of a rejected proposal its value, a short one with
its key and subject, for a time. What was said before a forgetting stays away however often its log is read; what the owner says
afterwards counts again.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import apsw

from clawmark.model import SHARED
from clawmark.store.db import rows, time_of
from clawmark.text import STATEMENT_STEMS, is_number, likeness, stem, stems, words

MESSAGE, SESSION, REJECTED, STATEMENT, STEM = "message", "session", "rejected", "statement", "stem:"
"""Kinds beside `key` and `value`. That of a stem ends in 16 digits that all stems of one statement share."""

COVERED: Final = 0.6
"""Of the stems of one statement, from which on another one says the same again."""

ECHOES: Final = timedelta(minutes=2)
"""So long after a forgetting an answer may still repeat what was forgotten."""
NEAR: Final = 12
"""Words."""
UNREAD: Final = timedelta(days=1)
"""How old a message may be that no pass has read: of one that holds a forgotten statement it is known by its words."""
TALK: Final = timedelta(minutes=10)
"""The same where the statement is one common word: its talk alone."""
ALWAYS: Final = timedelta(days=36_500)
"""The same where it is a number or a name with digits, which is in no message by chance."""


def _keyed(secret: bytes, kind: str, *parts: str) -> bytes:
    return hmac.digest(secret, "\0".join((kind, *parts)).encode(), hashlib.sha256)


def _message(secret: bytes, content_key: bytes) -> bytes:
    return hmac.digest(secret, b"message\0" + content_key, hashlib.sha256)


def _about(secret: bytes, scope: str, value: str) -> bytes:
    """What the stems of one statement have in common: 8 bytes."""
    return _keyed(secret, "about", scope, likeness(value))[:8]


def _stem(secret: bytes, scope: str, word: str) -> bytes:
    """16 bytes; the tombstone of a stem is these and those of its statement."""
    return _keyed(secret, STEM, scope, word)[:16]


def hashes(secret: bytes, scope: str, key: str, value: str) -> list[tuple[str, bytes]]:
    """(kind, keyed hash) of a statement's key and value."""
    return [("key", key_hash(secret, scope, key)), ("value", _value_hash(secret, scope, value))]


def key_hash(secret: bytes, scope: str, key: str) -> bytes:
    return _keyed(secret, "key", scope, key)


def _value_hash(secret: bytes, scope: str, value: str) -> bytes:
    return _keyed(secret, "value", scope, likeness(value))


def _statement_hash(secret: bytes, scope: str, key: str, value: str) -> bytes:
    return _keyed(secret, STATEMENT, scope, f"{key}\0{likeness(value)}")


def is_part(kind: str) -> bool:
    """Whether a tombstone stands beside those of a key and a value and is counted with them."""
    return kind == STATEMENT or kind.startswith(STEM)


# --- rows -------------------------------------------------------------------------------------------------------------

Buried = tuple[bytes, str, str, str | None]
"""Hash, kind, created_at, expires_at."""
Row = dict[str, Any]
"""The same by name, as a sidecar has it; one of an earlier version may lack the last."""


def bury(connection: apsw.Connection, kind: str, hashed: bytes, at: datetime, until: datetime | None = None) -> bool:
    """Keep something away until then, for ever where nothing else is said. What is forgotten twice is forgotten as of the
    later time, and for the longer one. False where that stands here already. Belongs inside a transaction."""
    connection.execute(
        "INSERT INTO tombstones (hash, kind, created_at, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " created_at = max(created_at, excluded.created_at), expires_at = max(expires_at, excluded.expires_at)"
        " WHERE created_at < excluded.created_at OR expires_at < excluded.expires_at"
        " OR (expires_at IS NOT NULL AND excluded.expires_at IS NULL)",  # max() of anything and NULL is NULL: for ever
        (hashed, kind, _written(at), None if until is None else _written(until)),
    )
    return bool(connection.changes())


def _written(at: datetime) -> str:
    """In UTC, so that times compare as texts."""
    return at.astimezone(UTC).isoformat()


def of_row(row: Row) -> Buried:
    return row["hash"], row["kind"], row["created_at"], row.get("expires_at")


def bury_other(connection: apsw.Connection, other: Buried) -> bool:
    """`bury` a tombstone of another file."""
    hashed, kind, at, until = other
    return bury(connection, kind, hashed, time_of(at), None if until is None else time_of(until))


def latest(others: Iterable[Row]) -> dict[bytes, Row]:
    """Rows of tombstones by their hash; of several with one hash what `bury` would make of them."""
    found: dict[bytes, Row] = {}
    for row in others:
        hashed, kind, at, end = of_row(row)
        *_, known_at, known_end = of_row(found.get(hashed, row))
        found[hashed] = {
            "hash": hashed,
            "kind": kind,
            "created_at": max(known_at, at, key=time_of),
            "expires_at": None if known_end is None or end is None else max(known_end, end, key=time_of),
        }
    return found


def buried(connection: apsw.Connection) -> list[Buried]:
    """Every tombstone."""
    return rows(connection, "SELECT hash, kind, created_at, expires_at FROM tombstones")


def standing(others: Iterable[Buried], now: datetime) -> set[bytes]:
    """Hashes of those whose time is not over."""
    return {hashed for hashed, _, _, end in others if end is None or time_of(end) > now}


def remove(connection: apsw.Connection, hashed: Iterable[bytes]) -> None:
    connection.executemany("DELETE FROM tombstones WHERE hash = ?", [(one,) for one in hashed])


def remove_kind(connection: apsw.Connection, kind: str) -> None:
    """All stems of one statement are of one kind."""
    connection.execute("DELETE FROM tombstones WHERE kind = ?", (kind,))


def drop_expired(connection: apsw.Connection, now: datetime) -> None:
    """Rejections whose time is over. Belongs inside a transaction."""
    connection.execute("DELETE FROM tombstones WHERE kind = ? AND expires_at <= ?", (REJECTED, now.isoformat()))


# --- what is forgotten ------------------------------------------------------------------------------------------------


def bury_statement(connection: apsw.Connection, secret: bytes, scope: str, key: str, value: str, now: datetime) -> None:
    """The key, the value, both together, and each content stem. Belongs inside the transaction that erases it."""
    for kind, hashed in hashes(secret, scope, key, value):
        bury(connection, kind, hashed, now)
    bury(connection, STATEMENT, _statement_hash(secret, scope, key, value), now)
    bury_stems(connection, secret, scope, value, now)


def bury_stems(connection: apsw.Connection, secret: bytes, scope: str, value: str, now: datetime) -> None:
    """What the value is made of, so that it is known again in other words."""
    about = _about(secret, scope, value)
    for word in sorted(stems(value)):
        bury(connection, STEM + about.hex(), _stem(secret, scope, word) + about, now)


def bury_messages(connection: apsw.Connection, secret: bytes, content_keys: Iterable[bytes], now: datetime) -> None:
    """What was said in these words until now is forgotten."""
    for content_key in sorted(set(content_keys)):
        bury(connection, MESSAGE, _message(secret, content_key), now)


def bury_session(connection: apsw.Connection, secret: bytes, scope: str, session: str, now: datetime) -> None:
    bury(connection, SESSION, _keyed(secret, SESSION, scope, session), now)


def bury_rejected(
    connection: apsw.Connection,
    secret: bytes,
    scope: str,
    names: Collection[str],
    value: str,
    now: datetime,
    until: datetime,
    *,
    is_owners: bool = True,
) -> None:
    """The same words are not proposed again until then: under whatever key, or few of them under these names, the key and
    what its subject is called. Those of others than the owner are not under these, and keep nothing out that the owner
    says afterwards."""
    of_names, of_itself, of_others = _rejections(secret, scope, names, value)
    said = [of_itself] if len(stems(value)) >= STATEMENT_STEMS else of_names
    for hashed in said if is_owners else of_others:
        bury(connection, REJECTED, hashed, now, until)


def _rejections(
    secret: bytes, scope: str, names: Collection[str], value: str
) -> tuple[list[bytes], bytes, list[bytes]]:
    """Of a value under each name, of the value alone, and of what others said under each; in files of earlier versions
    the key is the only name, and in the first of them the second stands for all."""
    said = likeness(value)
    of_names = [_keyed(secret, REJECTED, scope, name, said) for name in sorted(names)]
    of_others = [_keyed(secret, REJECTED, scope, name, said, "others") for name in sorted(names)]
    return of_names, _keyed(secret, REJECTED, scope, said), of_others


EVERY_SCOPE: Final = ""
"""Of a horizon: those that nothing was read of yet as well."""


def put_horizon(connection: apsw.Connection, scope: str, before: datetime) -> bool:
    """What was said in `scope`, or in EVERY_SCOPE, until `before` is forgotten. False where that stands here already."""
    connection.execute(
        "INSERT INTO horizons (scope, before) VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET before = excluded.before"
        " WHERE before < excluded.before",
        (scope, _written(before)),
    )
    return bool(connection.changes())


def horizons(connection: apsw.Connection) -> list[tuple[str, str]]:
    """Scope and time of each; none in a file of an earlier version."""
    if not rows(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'horizons'"):
        return []
    return [(scope, before) for scope, before in rows(connection, "SELECT scope, before FROM horizons")]


def state(connection: apsw.Connection) -> tuple[object, ...]:
    """What changes whenever something is forgotten, or is not any more; all that counts is 0 or "" where nothing was."""
    found = rows(
        connection,
        "SELECT count(*), coalesce(max(created_at), ''), (SELECT count(*) FROM horizons),"
        " (SELECT coalesce(max(before), '') FROM horizons) FROM tombstones WHERE kind <> ?",
        (REJECTED,),
    )
    return tuple(found[0])


@dataclass(eq=False, slots=True)
class _Stated:
    """A forgotten statement: the kind that its stems have, when it was forgotten last, and how many stems there are."""

    kind: str
    at: datetime
    count: int = 0


class Tombstones:
    """All of them, read once for many questions. Belongs inside the transaction in which the answers are acted upon."""

    def __init__(self, connection: apsw.Connection, secret: bytes) -> None:
        self._secret = secret
        self._times: dict[bytes, tuple[datetime, datetime | None]] = {}
        self._stated: dict[bytes, _Stated] = {}
        self._with: dict[bytes, list[_Stated]] = defaultdict(list)
        self._hashes: dict[tuple[str, str], bytes] = {}
        for hashed, kind, created, expires in buried(connection):
            if kind.startswith(STEM):
                at = time_of(created)
                one = self._stated.setdefault(hashed[16:], _Stated(kind, at))
                one.at, one.count = max(one.at, at), one.count + 1
                self._with[hashed[:16]].append(one)
            else:
                self._times[hashed] = time_of(created), None if expires is None else time_of(expires)
        self._horizons = {
            scope: time_of(before) for scope, before in rows(connection, "SELECT scope, before FROM horizons")
        }

    def __bool__(self) -> bool:
        return bool(self._times or self._stated or self._horizons)

    def covers(self, scopes: Sequence[str], key: str, value: str, content_keys: Iterable[bytes] = ()) -> bool:
        """Whether a statement was forgotten: it rests on a forgotten message, has the value of a forgotten one, or is
        made of its stems."""
        if any(_message(self._secret, content_key) in self._times for content_key in content_keys):
            return True
        return any(self.value_at(scope, value) is not None or self.said_again(scope, value) for scope in scopes)

    def forgotten_at(self, scopes: Iterable[str], key: str, value: str) -> datetime | None:
        """When a statement was forgotten last: its key, its value, or one that it says again; None = it was not."""
        found: list[datetime] = []
        for scope in scopes:
            found += [self._times[one][0] for _, one in hashes(self._secret, scope, key, value) if one in self._times]
            found += [one.at for one in self._saying(scope, value)]
        return max(found, default=None)

    def value_at(self, scope: str, value: str) -> datetime | None:
        """When this very value was forgotten, under whatever key; None = it was not."""
        found = self._times.get(_value_hash(self._secret, scope, value))
        return None if found is None else found[0]

    def is_forgotten_statement(self, scope: str, key: str, value: str) -> bool:
        """Whether this value was forgotten under this key. What another key says in the same words is none of it."""
        return _statement_hash(self._secret, scope, key, value) in self._times

    def message_at(self, content_key: bytes) -> datetime | None:
        """Until when what was said in these words is forgotten; None = it is not."""
        found = self._times.get(_message(self._secret, content_key))
        return None if found is None else found[0]

    def holds(self, scope: str, text: str) -> bool:
        """Whether a text has every stem of a forgotten statement."""
        found = Counter(one for word in stems(text) for one in self._with.get(self._hash(scope, word), ()))
        return any(count >= one.count for one, count in found.items())

    def said_again(self, scope: str, value: str) -> list[str]:
        """The kinds of the stems of every forgotten statement of `scope` that `value` says again."""
        return [one.kind for one in self._saying(scope, value)]

    def _saying(self, scope: str, value: str) -> list[_Stated]:
        if not self._with:
            return []
        said = stems(value)
        shared = Counter(one for word in said for one in self._with.get(self._hash(scope, word), ()))
        return [one for one, count in shared.items() if _are_same(len(said), count, one.count)]

    def _hash(self, scope: str, word: str) -> bytes:
        """Of one stem; a log is made of few words."""
        known = self._hashes.get((scope, word))
        if known is None:
            known = self._hashes[scope, word] = _stem(self._secret, scope, word)
        return known

    def is_stated(self, scope: str, text: str, at: datetime) -> bool:
        """Whether a message that was said shortly before a forgetting, or just after, holds all of the statement in one
        place: nobody had read it then, and what the person asked to forget it with, and the answer, are such."""
        return any(self._is_stated(where, text, at) for where in (scope, SHARED))

    def _is_stated(self, scope: str, text: str, at: datetime) -> bool:
        if not self._with:
            return False
        found: dict[_Stated, list[int]] = defaultdict(list)
        said = [stem(word) for word in words(text)]
        for place, word in enumerate(said):
            for one in self._with.get(self._hash(scope, word), ()):
                if one.at - _reach(one, word) <= at <= one.at + ECHOES:
                    found[one].append(place)
        return any(
            len(places) >= one.count and _are_near(places, [said[place] for place in places], one.count)
            for one, places in found.items()
        )

    def is_forgotten(self, scope: str, session: str, content_key: bytes, at: datetime) -> bool:
        """Whether a message was: by itself, with its session, or with all that was said before a time."""
        if any(at <= self._horizons[where] for where in (scope, EVERY_SCOPE) if where in self._horizons):
            return True
        return any(
            hashed in self._times and at <= self._times[hashed][0]
            for hashed in (_message(self._secret, content_key), _keyed(self._secret, SESSION, scope, session))
        )

    def is_rejected(
        self, scope: str, names: Collection[str], value: str, now: datetime, *, said_at: datetime | None = None
    ) -> bool:
        """Whether the person rejected these very words not long ago. said_at: when the owner said them; None = others."""
        of_names, of_itself, of_others = _rejections(self._secret, scope, names, value)
        known = [self._times[one] for one in (*of_names, of_itself) if one in self._times]
        others = [self._times[one] for one in of_others if one in self._times]
        known += [(at, until) for at, until in others if said_at is None or said_at <= at]
        return any(until is None or until > now for _, until in known)


def _reach(one: _Stated, word: str) -> timedelta:
    """How long before a forgetting a message counts as being of it."""
    if one.count > 1:
        return UNREAD
    return ALWAYS if is_number(word) else TALK


def _are_near(places: Sequence[int], found: Sequence[str], count: int) -> bool:
    """Whether `count` different words stand in one stretch of a text, of a sentence's length or three times their number."""
    stretch = max(NEAR, 3 * count)
    return any(
        len({word for place, word in zip(places, found, strict=True) if first <= place < first + stretch}) >= count
        for first in places
    )


def says_again(forgotten: str, value: str) -> bool:
    """Whether a value would be kept out once the other one is forgotten."""
    old, new = stems(forgotten), stems(value)
    return _are_same(len(new), len(old & new), len(old))


def _are_same(words: int, shared: int, forgotten: int) -> bool:
    """Whether one statement says the other again: `shared` of its words are among the other's, which has `forgotten`. A
    single word is the other's only where it is all of it: who forgot "tea" may still be allergic to tea tree oil."""
    of_new, of_old = shared >= COVERED * words, shared >= COVERED * forgotten
    if not shared:
        return False
    return (of_old and (forgotten > 1 or of_new)) or (of_new and words > 1)


def lift(connection: apsw.Connection, secret: bytes, scope: str, key: str, value: str, names: Collection[str]) -> None:
    """The person said it anew: nothing stands against this statement any more. Messages that were forgotten stay so.
    names: as of `bury_rejected`."""
    remove(connection, [hashed for _, hashed in hashes(secret, scope, key, value)])
    remove(connection, [_statement_hash(secret, scope, key, value)])
    of_names, of_itself, of_others = _rejections(secret, scope, names, value)
    remove(connection, [*of_names, of_itself, *of_others])
    said = stems(value)
    found = rows(
        connection,
        "SELECT kind, count(*), count(*) FILTER (WHERE substr(hash, 1, 16) IN (SELECT unhex(value) FROM json_each(?1)))"
        " AS shared FROM tombstones WHERE substr(kind, 1, length(?2)) = ?2 GROUP BY kind HAVING shared > 0",
        (json.dumps([_stem(secret, scope, word).hex() for word in said]), STEM),
    )
    for kind, count, shared in found:
        if _are_same(len(said), shared, count):
            remove_kind(connection, kind)
