"""The one way anything is forgotten.

What is erased leaves its tables, the lexicon and the words it lent to its successor, and after `finish` also the free
pages and the write-ahead log. Nothing here decides what to forget; whoever asks has decided.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import keys
from clawmark.errors import DatabaseError
from clawmark.model import SHARED, Proposal
from clawmark.store import (
    cursors,
    db,
    events,
    evidence,
    facts,
    lexicon,
    passages,
    proposals,
    sessions,
    sidecar,
    tombstones,
    vectors,
)
from clawmark.store.tombstones import Tombstones
from clawmark.text import likeness, stems

UNFINISHED = "erase:unfinished"
"""The cursor that stands while erased words may still be in the lexicon's segments, free pages or the log."""


def erase_passages(connection: apsw.Connection, ids: Sequence[int], now: datetime) -> None:
    """Erase passages with everything derived from them. Belongs inside a transaction.

    A passage that follows an erased one holds its words as context: it is marked stale, and leaves the lexicon until the
    prune job has put it in anew without them. What rests on an erased message alone is known at the end of a pass.
    """
    if not ids:
        return
    evidence.mark_gone(connection, passages.content_keys(connection, ids))
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
    """Erase a fact with all that was ever stored under its key, and leave permanent tombstones: of key, values, stems, and
    of the messages it rests on. Belongs inside a transaction. False when nothing ever stood there, in the trail neither.
    """
    values = said_under(connection, key, scope)
    if not values:
        return False
    rests_on = [one.content_key for value in values for one in evidence.of(connection, scope, key, value)]
    for value in sorted(values):  # what it was before is no less forgotten
        tombstones.bury_statement(connection, secret, scope, key, value, now)
    facts.remove(connection, key, scope)
    erase_messages(connection, rests_on, secret, now)
    evidence.remove(connection, scope, key)
    for one in beside(proposals.pending(connection), key, scope, values):
        erase_proposal(connection, one, secret, now)
    events.blank_values(connection, key, scope)
    for value in values:
        events.blank_reasons(connection, stems(value))
    _note_forgotten(connection, key, scope, values, now)
    return True


def _note_forgotten(connection: apsw.Connection, key: str, scope: str, values: Collection[str], now: datetime) -> None:
    """That it was forgotten and when, in no word of it: a key that is made of them goes out of every event."""
    said = frozenset().union(*map(stems, values))
    tells = bool(stems(keys.read(key)) & said)
    if tells:
        events.blank_key(connection, key, scope)
    events.add(connection, "forget", now, source="user", scope=scope, key=None if tells else key)
    mark_unfinished(connection, now, "fact")


def erase_messages(connection: apsw.Connection, content_keys: Collection[bytes], secret: bytes, now: datetime) -> int:
    """Erase every message with this content, and keep it out however often its log is read. Belongs inside a transaction.

    Returns how many passages went.
    """
    tombstones.bury_messages(connection, secret, content_keys, now)
    ids = passages.with_content(connection, content_keys)
    erase_passages(connection, ids, now)
    evidence.forget(connection, content_keys)
    return len(ids)


def erase_value(connection: apsw.Connection, scope: str, key: str, value: str, secret: bytes, now: datetime) -> bool:
    """Erase one thing that a fact says, or once said, from the trail and from what it rested on; what else it said stays.
    Belongs inside a transaction. Whether the fact went with it."""
    tombstones.bury_statement(connection, secret, scope, key, value, now)
    fact = facts.get(connection, key, scope, with_hidden=True)
    hashed = evidence.value_hash(value)
    is_said = fact is not None and evidence.value_hash(fact.value) == hashed
    if is_said:
        facts.remove(connection, key, scope)
    erase_messages(connection, [one.content_key for one in evidence.of(connection, scope, key, value)], secret, now)
    evidence.remove(connection, scope, key, value)
    spelled = {told for told in _told(connection, key, scope) if evidence.value_hash(told) == hashed}
    for told in spelled:
        events.blank_value(connection, key, scope, told)
    events.blank_reasons(connection, stems(value))
    if said_under(connection, key, scope):  # it is no forgotten key
        tombstones.remove(connection, [tombstones.key_hash(secret, scope, key)])
    elif is_said or spelled:
        _note_forgotten(connection, key, scope, [value], now)
    mark_unfinished(connection, now, "fact")
    return is_said


def said_under(connection: apsw.Connection, key: str, scope: str) -> set[str]:
    """What a fact says, and everything that its trail tells of it."""
    fact = facts.get(connection, key, scope, with_hidden=True)
    return _told(connection, key, scope) | ({fact.value} if fact is not None else set())


def _told(connection: apsw.Connection, key: str, scope: str) -> set[str]:
    trail = events.of_key(connection, key, scope)
    return {value for event in trail for value in (event.old_value, event.new_value) if value is not None}


def beside(waiting: Iterable[Proposal], key: str, scope: str, values: Collection[str]) -> list[Proposal]:
    """Those that stand under this key, or say the same under another one: what is shared was said in every scope."""
    said = set(map(evidence.value_hash, values))
    seen = [one for one in waiting if scope in (SHARED, one.scope)]
    return [one for one in seen if (one.scope, one.key) == (scope, key) or evidence.value_hash(one.value) in said]


def erase_proposal(connection: apsw.Connection, one: Proposal, secret: bytes, now: datetime) -> None:
    """Erase a proposal, and have what it said proposed by nobody again. Belongs inside a transaction."""
    scope, key, value = one.scope, one.key, one.value
    proposals.remove(connection, one.id)
    if value and one.kind == "set":
        tombstones.bury_statement(connection, secret, scope, key, value, now)
    drop_evidence(connection, scope, key, value)


def drop_evidence(connection: apsw.Connection, scope: str, key: str, value: str) -> None:
    """What a proposal rested on that waits no longer. A fact that says the same, or once did, rests on it still."""
    if evidence.value_hash(value) not in map(evidence.value_hash, said_under(connection, key, scope)):
        evidence.remove(connection, scope, key, value)


def erase_scope(connection: apsw.Connection, scope: str, secret: bytes, until: datetime, now: datetime) -> None:
    """Erase all that is known of a scope, and keep out what was said in it until `until`. Belongs inside a transaction."""
    for key in facts.keys_of(connection, scope):
        erase_fact(connection, key, scope, secret, now)
    for one in proposals.of_scope(connection, scope):
        erase_proposal(connection, one, secret, now)
    if scope != SHARED:  # in which nothing is said
        tombstones.put_horizon(connection, scope, until)
        erase_passages(connection, passages.of_scope(connection, scope), now)
    events.blank_scope(connection, scope)
    sessions.remove(connection, scope)
    mark_unfinished(connection, now, "fact")


def settle(connection: apsw.Connection, now: datetime) -> int:
    """Erase what an extractor stored or proposed on messages that stand in no log any more, and what such a fact once said;
    returns how many statements went.

    Nothing is forgotten for ever by it: the person deleted a conversation, not a statement. What a person or an agent
    said stays. Belongs into a transaction at the end of a pass that could read all there is.
    """
    gone = 0
    for scope, key, hashed in evidence.settle(connection):
        gone += _withdrawn(connection, scope, key, hashed, now)
        for one in proposals.saying(connection, scope, key, hashed):
            if one.origin != "agent":
                proposals.remove(connection, one.id)
                gone += 1
    if gone:
        mark_unfinished(connection, now, "fact")
    return gone


def _withdrawn(connection: apsw.Connection, scope: str, key: str, hashed: bytes, now: datetime) -> bool:
    """Whether a statement of an extractor went: from its fact, or from the trail of what the fact said before."""
    fact = facts.get(connection, key, scope, with_hidden=True)
    is_said = fact is not None and evidence.value_hash(fact.value) == hashed
    spelled = {value for value in _told(connection, key, scope) if evidence.value_hash(value) == hashed}
    trail = events.of_key(connection, key, scope)
    writers = {event.source for event in trail if event.new_value in spelled}
    if ({fact.source} if fact is not None and is_said else writers) - {"extracted"}:
        return False
    if is_said:
        facts.remove(connection, key, scope)
        events.add(connection, "withdraw", now, source="clawmark", scope=scope, key=key)
    for value in spelled:
        events.blank_value(connection, key, scope, value)
    return bool(is_said or spelled)


def enforce(connection: apsw.Connection, secret: bytes, now: datetime) -> int:
    """Erase what tombstones and horizons name, from a database that was brought back from before them: messages, what
    waits, and what facts once said. Returns how many passages went. Belongs inside a transaction."""
    known = Tombstones(connection, secret)
    if not known:
        return 0
    ids = [
        passage_id
        for passage_id, scope, session, content_key, at in passages.places(connection)
        if known.is_forgotten(scope, session, content_key, passages.from_ms(at))
    ]
    erase_passages(connection, ids, now)
    for one in proposals.pending(connection):
        rests_on = [said.content_key for said in evidence.of(connection, one.scope, one.key, one.value)]
        if known.covers([one.scope, SHARED], one.key, one.value, rests_on):
            erase_proposal(connection, one, secret, now)
    live = {(fact.scope, fact.key, likeness(fact.value)) for fact in facts.stored_in(connection)}
    for scope, key, value in events.stated(connection):
        is_forgotten = known.is_forgotten_statement(scope, key, value)
        if is_forgotten and (scope, key, likeness(value)) not in live:  # messages have tombstones of their own
            events.blank_value(connection, key, scope, value)
            evidence.remove(connection, scope, key, value)
    over = [said for said, at in evidence.utterances(connection) if _is_over(known, said, at)]
    evidence.forget(connection, over)
    events.blank_evidence(connection, over)
    events.blank_reasons_that(connection, known.holds)
    return len(ids)


def _is_over(known: Tombstones, content_key: bytes, said_at: datetime) -> bool:
    forgotten_at = known.message_at(content_key)
    return forgotten_at is not None and said_at <= forgotten_at


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
