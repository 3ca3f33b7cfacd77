"""What a person's wish to forget means: which facts, proposals and messages go, and what keeps them out from then on.

`planned` looks and changes nothing: it reads logs, so it stands outside of any transaction. `carried_out` erases inside
one, what was planned and what has come under the same names since. What is erased stays away however often a log is read;
what the person says afterwards counts again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import apsw

from clawmark import erase, keys
from clawmark.errors import UsageError
from clawmark.facts.claim import Claim
from clawmark.facts.support import supporting
from clawmark.facts.typed import plain, tokens_of
from clawmark.model import SHARED, Fact, Forgetting, Forgotten, Said
from clawmark.recall.excerpt import Live, Reader, excerpt_of
from clawmark.store import events, evidence, facts, lexicon, passages, proposals, streams, tombstones
from clawmark.text import is_number, query_words, stems, words

MOST_LOOKED_AT: Final = 2_000
"""Passages that are read for one fact."""
MOST_ECHOES: Final = 50
"""A value that stands in more messages is a common word: those that state it go, those that mention it stay."""
MOST_SHOWN: Final = 20


@dataclass(slots=True)
class Plan:
    """What goes.

    values        (scope, key, value) of what facts once said, which say something else now
    content_keys  of messages          sessions   (scope, session)          scopes     whole ones
    horizons      scope → until when; everything: scopes that are not known yet as well
    words, named  of a query; by what it was named, for the trail
    """

    facts: set[tuple[str, str]] = field(default_factory=set)
    values: set[tuple[str, str, str]] = field(default_factory=set)
    proposals: set[int] = field(default_factory=set)
    content_keys: set[bytes] = field(default_factory=set)
    passages: set[int] = field(default_factory=set)
    sessions: set[tuple[str, str]] = field(default_factory=set)
    scopes: set[str] = field(default_factory=set)
    horizons: dict[str, datetime] = field(default_factory=dict)
    before: datetime | None = None
    scope: str | None = None
    everything: bool = False
    words: frozenset[str] = frozenset()
    named: str = ""


def planned(connection: apsw.Connection, reader: Reader, what: Forgetting) -> Plan:
    """What `what` names. Raises UsageError where it names nothing, or several things."""
    _one_of(what)
    scope = None if what.scope is None else streams.scope_called(connection, what.scope)
    plan = Plan(scope=scope, everything=what.everything, named=_name(what))
    if what.key is not None:
        _of_key(connection, reader, keys.spelled(what.key), scope, plan)
    elif what.query is not None:
        _of_query(connection, what.query, scope, plan)
    elif what.conversation is not None:
        _of_conversation(connection, what.conversation, scope, plan)
    elif what.before is not None:
        _before(connection, what.before, scope, plan)
    else:
        _of_scopes(connection, _scopes(connection) if scope is None else [scope], plan)
    return plan


def of_proposal(connection: apsw.Connection, reader: Reader, name: str) -> Plan | None:
    """What goes with a yes to the proposal `name`; None where it is none to forget something."""
    number = name.strip().partition("-")[0]
    one = proposals.get(connection, int(number)) if number.isdigit() and len(number) < 16 else None
    if one is None or one.kind != "forget" or one.state != "pending":
        return None
    return planned(connection, reader, Forgetting(key=one.key, scope=one.scope))


def shown(connection: apsw.Connection, reader: Reader, plan: Plan) -> Forgotten:
    """The plan for a person to look at."""
    ids = sorted(plan.passages | set(passages.with_content(connection, plan.content_keys)))
    live = reader.read(connection, ids[:MOST_SHOWN])
    found = [excerpt_of(one) for one in live]
    waiting = [one for number in sorted(plan.proposals) if (one := proposals.get(connection, number)) is not None]
    messages = passages.count_messages(connection, ids)
    return Forgotten(sorted(plan.facts), len(plan.proposals), messages, found, waiting=waiting)


def carried_out(connection: apsw.Connection, plan: Plan, secret: bytes, now: datetime) -> Forgotten:
    """Erase it. Belongs inside a transaction."""
    ids = plan.passages | set(passages.with_content(connection, plan.content_keys))
    messages = passages.count_messages(connection, sorted(ids))
    for number in sorted(plan.proposals):
        one = proposals.get(connection, number)
        if one is not None:
            erase.erase_proposal(connection, one, secret, now)
    gone = [place for place in sorted(plan.facts) if erase.erase_fact(connection, place[1], place[0], secret, now)]
    for scope, key, value in sorted(plan.values):
        erase.erase_value(connection, scope, key, value, secret, now)
    until = _until(connection, now)  # of messages: a clock that is behind must leave none of them in
    for scope, session in sorted(plan.sessions):
        tombstones.bury_session(connection, secret, scope, session, until)
    for scope, before in sorted(plan.horizons.items()):
        tombstones.put_horizon(connection, scope, min(before, until))
    keys_of_all = passages.content_keys(connection, sorted(ids)) | plan.content_keys
    tombstones.bury_messages(connection, secret, plan.content_keys, until)
    erase.erase_passages(connection, sorted(ids), now)
    evidence.forget(connection, keys_of_all - passages.standing(connection, keys_of_all))
    if plan.everything:
        tombstones.put_horizon(connection, tombstones.EVERY_SCOPE, until)
    for scope in sorted(plan.scopes):
        erase.erase_scope(connection, scope, secret, until, now)
    if plan.before is not None:
        events.blank_before(connection, plan.scope, plan.before)
    events.blank_reasons(connection, plan.words)
    if messages:
        detail = json.dumps({"by": plan.named, "messages": messages})
        events.add(connection, "erase", now, source="user", scope=plan.scope, detail=detail)
    if plan.before is not None or plan.proposals or plan.values:
        erase.mark_unfinished(connection, now, "fact")
    return Forgotten(gone, len(plan.proposals), messages)


def _one_of(what: Forgetting) -> None:
    named = [one for one in (what.key, what.query, what.conversation, what.before, what.everything or None) if one]
    if len(named) > 1 or (not named and what.scope is None) or (what.everything and what.scope is not None):
        raise UsageError("name one thing to forget: a key, a query, a conversation, a date, a scope, or all.")
    if what.query is not None and not stems(what.query):
        raise UsageError("a query to forget by has at least one word.")


def _name(what: Forgetting) -> str:
    named = {
        "key": what.key, "query": what.query, "conversation": what.conversation, "before": what.before,
        "all": what.everything or None,
    }  # fmt: skip
    return next((name for name, value in named.items() if value is not None), "scope")


def _scopes(connection: apsw.Connection) -> list[str]:
    """All of which anything is known."""
    held = {fact.scope for hidden in (False, True) for fact in facts.live(connection, hidden=hidden)}
    waiting = {one.scope for one in proposals.pending(connection)}
    return sorted({*streams.scopes(connection), *passages.scopes(connection), *held, *waiting, SHARED})


def _until(connection: apsw.Connection, now: datetime) -> datetime:
    """Later than all that was said, whatever the clock says."""
    newest = passages.newest_at(connection)
    return now if newest is None else max(now, newest + timedelta(milliseconds=1))


# --- one fact ---------------------------------------------------------------------------------------------------------


def _of_key(connection: apsw.Connection, reader: Reader, key: str, scope: str | None, plan: Plan) -> None:
    stated = {(where, value) for where, of_key, value in events.stated(connection) if of_key == key}
    told = {where for where, _ in stated}
    held = [one for one in {*facts.scopes_of(connection, key), *told} if scope in (None, one)]
    for where in held:
        fact = facts.get(connection, key, where, deleted=True)
        plan.facts.add((where, key))
        values = {value for of, value in stated if of == where} | ({fact.value} if fact is not None else set())
        for value in values:
            plan.content_keys |= {one.content_key for one in evidence.of(connection, where, key, value)}
        if fact is not None:
            plan.content_keys |= _messages_about(connection, reader, fact)
            _saying_the_same(connection, fact, plan)
    for one in proposals.pending(connection, None if scope is None else [scope]):
        if one.key == key:
            plan.proposals.add(one.id)
            if not held:  # else what was said of another value stays
                plan.content_keys |= {e.content_key for e in evidence.of(connection, one.scope, key, one.value)}


def _messages_about(connection: apsw.Connection, reader: Reader, fact: Fact) -> set[bytes]:
    """Messages in which the owner states the fact, the answers that repeat it, and all that hold a value which is no
    common word."""
    terms = query_words(fact.value)
    if not terms:
        return set()
    scopes = None if fact.scope == SHARED else [fact.scope]
    ids = lexicon.holding(connection, terms, scopes, MOST_LOOKED_AT)
    claim = Claim(fact.key, fact.value)
    holding = [one for one in reader.read(connection, ids) if _holds(claim, one.text)]
    stated = [one for one in holding if _states(fact, one)]
    if _is_rare(fact.value) and len(holding) <= MOST_ECHOES:
        return passages.content_keys(connection, [one.passage_id for one in holding])
    next_to = set(passages.next_of(connection, [one.passage_id for one in stated]))
    echoes = [one.passage_id for one in holding if one.passage_id in next_to and one.message.role == "assistant"]
    return passages.content_keys(connection, [*(one.passage_id for one in stated), *echoes])


def _saying_the_same(connection: apsw.Connection, fact: Fact, plan: Plan) -> None:
    """What was extracted from the same messages: a fact with the same value under another key, and whatever waits."""
    said = evidence.value_hash(fact.value)
    for where, key, hashed in evidence.statements_on(connection, plan.content_keys):
        other = facts.get(connection, key, where, deleted=True)
        if other is not None and other.source == "extracted" and evidence.value_hash(other.value) == hashed == said:
            plan.facts.add((where, key))
        for one in proposals.pending(connection, [where]):
            if one.key == key and evidence.value_hash(one.value) == hashed:
                plan.proposals.add(one.id)


def _holds(claim: Claim, text: str) -> bool:
    written = " ".join(plain(text).split())
    return next(claim.spans(written, tokens_of(written)), None) is not None


def _states(fact: Fact, one: Live) -> bool:
    said = Said(one.text, one.message.at)
    return one.message.origin == "owner" and supporting(fact.key, fact.value, [said]) is not None


def _is_rare(value: str) -> bool:
    """Whether a value is more than a word that anybody uses: several words, or a number."""
    return len(stems(value)) > 1 or any(map(is_number, words(value)))


# --- more than one ----------------------------------------------------------------------------------------------------


def _of_query(connection: apsw.Connection, query: str, scope: str | None, plan: Plan) -> None:
    wanted = plan.words = stems(query)
    for hidden in (False, True):
        for fact in facts.live(connection, None if scope is None else [scope], hidden=hidden):
            if wanted <= stems(_as_text(fact.key, fact.value)):
                plan.facts.add((fact.scope, fact.key))
                said = evidence.of(connection, fact.scope, fact.key, fact.value)
                plan.content_keys |= {one.content_key for one in said}
    for where, key, value in events.stated(connection, scope):
        if (where, key) not in plan.facts and wanted <= stems(_as_text(key, value)):
            plan.values.add((where, key, value))
    for one in proposals.pending(connection, None if scope is None else [scope]):
        if wanted <= stems(_as_text(one.key, one.value)):
            plan.proposals.add(one.id)
    ids = lexicon.holding(connection, query_words(query), None if scope is None else [scope], None)
    plan.content_keys |= passages.content_keys(connection, ids)


def _as_text(key: str, value: str) -> str:
    return f"{key.replace('_', ' ').replace('.', ' ')} {value}"


def _of_conversation(connection: apsw.Connection, session: str, scope: str | None, plan: Plan) -> None:
    ids = passages.of_session(connection, session, scope)
    plan.passages |= set(ids)
    plan.sessions |= set(passages.scopes_of_session(connection, session, scope))
    # What others said in the same words stays; a copy that is read later, under whatever session, does not come in.
    said = passages.content_keys(connection, ids)
    copied = passages.content_keys(connection, passages.in_other_sessions(connection, ids, session))
    elsewhere = passages.content_keys(connection, sorted(set(passages.with_content(connection, said)) - set(ids)))
    plan.content_keys |= copied | (said - elsewhere)
    _resting_on(connection, passages.content_keys(connection, ids), plan)


def _resting_on(connection: apsw.Connection, content_keys: Iterable[bytes], plan: Plan) -> None:
    """Facts and proposals that rest on nothing else."""
    for where, key, hashed in evidence.statements_on(connection, set(content_keys)):
        fact = facts.get(connection, key, where, deleted=True)
        if fact is not None and fact.source != "user" and evidence.value_hash(fact.value) == hashed:
            plan.facts.add((where, key))
        for one in proposals.pending(connection, [where]):
            if one.key == key and evidence.value_hash(one.value) == hashed:
                plan.proposals.add(one.id)


def _before(connection: apsw.Connection, at: datetime, scope: str | None, plan: Plan) -> None:
    plan.before = at
    plan.passages |= set(passages.before(connection, at, scope))
    plan.horizons[tombstones.EVERY_SCOPE if scope is None else scope] = at - timedelta(milliseconds=1)
    for where in _scopes(connection) if scope is None else [scope]:
        for hidden in (False, True):
            old = [fact for fact in facts.live(connection, [where], hidden=hidden) if fact.reinforced_at < at]
            plan.facts |= {(fact.scope, fact.key) for fact in old}
        plan.proposals |= {one.id for one in proposals.pending(connection, [where]) if one.observed_at < at}


def _of_scopes(connection: apsw.Connection, scopes: Sequence[str], plan: Plan) -> None:
    for scope in scopes:
        plan.scopes.add(scope)
        plan.facts |= {(scope, key) for key in facts.keys_of(connection, scope)}
        plan.proposals |= {one.id for one in proposals.pending(connection, [scope])}
        plan.passages |= set(passages.of_scope(connection, scope))
