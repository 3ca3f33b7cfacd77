"""What must not be learned again: keyed hashes of what was forgotten, which tell nothing without the key.

Of a forgotten statement its key, its value, each content stem of the value and the utterances it rested on are kept; of
forgotten messages their content key; of a forgotten session its name; of a rejected proposal its value, for a time. What
was said before a forgetting stays away however often its log is read; what the owner says afterwards counts again.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import apsw

from clawmark.model import SHARED
from clawmark.store import facts
from clawmark.store.db import rows, time_of
from clawmark.text import likeness, stem, stems, words

MESSAGE, SESSION, REJECTED, STEM = "message", "session", "rejected", "stem:"
"""Kinds beside `key` and `value`. That of a stem ends in 16 digits that all stems of one statement share."""

COVERED: Final = 0.6
"""Of the stems of one statement, from which on another one says the same again."""


ECHOES: Final = timedelta(minutes=2)
"""So long after a forgetting an answer may still repeat what was forgotten."""
NEAR: Final = 12
"""Words."""
_RARE: Final = re.compile(r"(?=.*\d.*\d).{5,}|\d{4,}")
"""A single word that is nobody's but the forgotten one's."""


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


def bury_statement(connection: apsw.Connection, secret: bytes, scope: str, key: str, value: str, now: datetime) -> None:
    """The key, the value, and each content stem of it. Belongs inside the transaction that erases it."""
    for kind, hashed in facts.tombstones(secret, scope, key, value):
        facts.bury(connection, kind, hashed, now)
    bury_stems(connection, secret, scope, value, now)


def bury_stems(connection: apsw.Connection, secret: bytes, scope: str, value: str, now: datetime) -> None:
    """What the value is made of, so that it is known again in other words."""
    about = _about(secret, scope, value)
    for word in sorted(stems(value)):
        facts.bury(connection, STEM + about.hex(), _stem(secret, scope, word) + about, now)


def bury_messages(connection: apsw.Connection, secret: bytes, content_keys: Iterable[bytes], now: datetime) -> None:
    """What was said in these words until now is forgotten."""
    for content_key in sorted(set(content_keys)):
        facts.bury(connection, MESSAGE, _message(secret, content_key), now)


def bury_session(connection: apsw.Connection, secret: bytes, scope: str, session: str, now: datetime) -> None:
    facts.bury(connection, SESSION, _keyed(secret, SESSION, scope, session), now)


def bury_rejected(
    connection: apsw.Connection, secret: bytes, scope: str, value: str, now: datetime, until: datetime
) -> None:
    """The same words are not proposed again until then, under whatever key."""
    connection.execute(
        "INSERT INTO tombstones (hash, kind, created_at, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
        " created_at = max(created_at, excluded.created_at), expires_at = max(expires_at, excluded.expires_at)",
        (_keyed(secret, REJECTED, scope, likeness(value)), REJECTED, now.isoformat(), until.isoformat()),
    )


EVERY_SCOPE: Final = ""
"""Of a horizon: those that nothing was read of yet as well."""


def put_horizon(connection: apsw.Connection, scope: str, before: datetime) -> None:
    """What was said in `scope`, or in EVERY_SCOPE, until `before` is forgotten."""
    connection.execute(
        "INSERT INTO horizons (scope, before) VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET"
        " before = max(before, excluded.before)",
        (scope, before.isoformat()),
    )


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
        for hashed, kind, created, expires in facts.buried(connection):
            if kind.startswith(STEM):
                one = self._stated.setdefault(hashed[16:], _Stated(kind, time_of(created)))
                one.count += 1
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
        for scope in scopes:
            hashes = dict(facts.tombstones(self._secret, scope, key, value))
            if hashes["value"] in self._times or self.said_again(scope, value):
                return True
        return False

    def said_again(self, scope: str, value: str) -> list[str]:
        """The kinds of the stems of every forgotten statement of `scope` that `value` says again."""
        said = stems(value)
        shared = Counter(one for word in said for one in self._with.get(self._hash(scope, word), ()))
        return [one.kind for one, count in shared.items() if _are_same(len(said), count, one.count)]

    def _hash(self, scope: str, word: str) -> bytes:
        """Of one stem; a log is made of few words."""
        known = self._hashes.get((scope, word))
        if known is None:
            known = self._hashes[scope, word] = _stem(self._secret, scope, word)
        return known

    def _is_stated(self, scope: str, text: str, at: datetime) -> bool:
        """Whether a message that was said until then, or just after, holds all of a forgotten statement in one place: what
        the person asked to forget it with, and the answer, too."""
        if not self._with:
            return False
        found: dict[_Stated, list[int]] = defaultdict(list)
        said = [stem(word) for word in words(text)]
        for place, word in enumerate(said):
            for one in self._with.get(self._hash(scope, word), ()):
                if at <= one.at + ECHOES and (one.count > 1 or _RARE.search(word)):
                    found[one].append(place)
        return any(
            len(places) >= one.count and _are_near(places, [said[place] for place in places], one.count)
            for one, places in found.items()
        )

    def is_forgotten(self, scope: str, session: str, content_key: bytes, at: datetime, text: str = "") -> bool:
        """Whether a message was: by itself, with its session, with all that was said before a time, or because it holds
        what was forgotten."""
        if any(at <= self._horizons[where] for where in (scope, EVERY_SCOPE) if where in self._horizons):
            return True
        return any(
            hashed in self._times and at <= self._times[hashed][0]
            for hashed in (_message(self._secret, content_key), _keyed(self._secret, SESSION, scope, session))
        ) or any(self._is_stated(where, text, at) for where in (scope, SHARED) if text)

    def is_rejected(self, scope: str, value: str, now: datetime) -> bool:
        """Whether the person rejected these very words not long ago."""
        known = self._times.get(_keyed(self._secret, REJECTED, scope, likeness(value)))
        return known is not None and (known[1] is None or known[1] > now)


def _are_near(places: Sequence[int], found: Sequence[str], count: int) -> bool:
    """Whether `count` different words stand in one stretch of a text, of a sentence's length or three times their number."""
    stretch = max(NEAR, 3 * count)
    return any(
        len({word for place, word in zip(places, found, strict=True) if first <= place < first + stretch}) >= count
        for first in places
    )


def _are_same(words: int, shared: int, forgotten: int) -> bool:
    """Whether one statement says the other again: `shared` of its words are among the other's, which has `forgotten`. A
    single word is the other's only where it is all of it: who forgot "tea" may still be allergic to tea tree oil."""
    of_new, of_old = shared >= COVERED * words, shared >= COVERED * forgotten
    if not shared:
        return False
    return (of_old and (forgotten > 1 or of_new)) or (of_new and words > 1)


def lift(connection: apsw.Connection, secret: bytes, scope: str, key: str, value: str) -> None:
    """The person said it anew: nothing stands against this statement any more. Messages that were forgotten stay so."""
    facts.lift(connection, [hashed for _, hashed in facts.tombstones(secret, scope, key, value)])
    facts.lift(connection, [_keyed(secret, REJECTED, scope, likeness(value))])
    for kind in Tombstones(connection, secret).said_again(scope, value):
        connection.execute("DELETE FROM tombstones WHERE kind = ?", (kind,))


def drop_expired(connection: apsw.Connection, now: datetime) -> None:
    """Rejections whose time is over. Belongs inside a transaction."""
    connection.execute("DELETE FROM tombstones WHERE kind = ? AND expires_at <= ?", (REJECTED, now.isoformat()))
