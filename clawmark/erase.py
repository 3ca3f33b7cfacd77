"""The one way anything is forgotten.

What is erased leaves its tables, the lexicon and the words it lent to its successor, and after `finish` also the free
pages and the write-ahead log. Nothing here decides what to forget; whoever asks has decided.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import apsw

from clawmark.errors import DatabaseError
from clawmark.store import cursors, db, events, facts, lexicon, passages, sidecar, vectors

UNFINISHED = "erase:unfinished"
"""The cursor that stands while erased words may still be in the lexicon's segments, free pages or the log."""


def erase_passages(connection: apsw.Connection, ids: Sequence[int], now: datetime) -> None:
    """Erase passages with everything derived from them. Belongs inside a transaction.

    A passage that follows an erased one holds its words as context: it is marked stale, and leaves the lexicon until the
    prune job has put it in anew without them.
    """
    if not ids:
        return
    followers = passages.successors(connection, ids)
    lexicon.remove(connection, [*ids, *followers])
    passages.mark_stale(connection, followers)
    passages.remove(connection, ids)
    vectors.forget_old(connection)  # they are of messages, and which of them are erased ones is not written down
    vectors.bump_generation(connection)
    mark_unfinished(connection, now)


def mark_unfinished(connection: apsw.Connection, now: datetime, what: str = "passages") -> None:
    """Note in this transaction that something was erased.

    Each erasure makes a mark of its own, so that one that is finished takes away no other's; words outweigh values.
    """
    old = cursors.get(connection, UNFINISHED) or ""
    kind = "passages" if old.startswith("passages") else what
    cursors.put(connection, UNFINISHED, f"{kind} {uuid.uuid4().hex}", now)


def erase_fact(connection: apsw.Connection, key: str, scope: str, secret: bytes, now: datetime) -> bool:
    """Erase a fact, its values in all events, and leave permanent tombstones. Belongs inside a transaction.

    False when there was no such fact.
    """
    fact = facts.get(connection, key, scope, deleted=True)
    if fact is None:
        return False
    for kind, hashed in facts.tombstones(secret, scope, key, fact.value):
        facts.bury(connection, kind, hashed, now)
    facts.remove(connection, key, scope)
    events.blank_values(connection, key, scope)
    events.add(connection, "forget", now, source="user", scope=scope, key=key)
    mark_unfinished(connection, now, "fact")
    return True


def forget_in_sidecar(connection: apsw.Connection, path: Path, now: datetime) -> None:
    """Take what was just erased out of the facts' sidecar too. Belongs inside the transaction that erases.

    So an erasure that was acknowledged is never undone by a recovery. A sidecar that cannot be rewritten goes away; a
    database that cannot be read forgets nothing, and keeps its sidecar, from which it is rebuilt.
    """
    held = sidecar.state(connection, path)
    try:
        sidecar.put(path, held, now)
    except DatabaseError:
        sidecar.discard(path)


def finish(connection: apsw.Connection, path: Path) -> bool:
    """Take what was erased, now or in a pass that was cut short, out of segments, free pages and write-ahead log.

    False while another process's snapshot keeps the log back; the next call completes it.
    """
    what = cursors.get(connection, UNFINISHED)
    if what is None:
        return True
    if what.startswith("passages"):  # facts have no words in the lexicon
        with db.transaction(connection, path):
            lexicon.purge(connection)
    with db.explained(path):
        if not db.checkpoint(connection):
            return False
    with db.transaction(connection, path):
        cursors.drop_if(connection, UNFINISHED, what)  # unless more was erased meanwhile
    return True
