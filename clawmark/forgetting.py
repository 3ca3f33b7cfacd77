"""What a person's wish to forget means: which facts, proposals and messages go, and what keeps them out from then on.

`planned` looks and changes nothing: it reads logs, so it stands outside of any transaction. `carried_out` erases inside
one, what was planned and what has come under the same names since. What is erased stays away however often a log is read;
what the person says afterwards counts again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import apsw

from clawmark import erase, keys
from clawmark.errors import UsageError
from clawmark.facts.claim import Claim
from clawmark.facts.support import supporting
from clawmark.facts.typed import plain, tokens_of
from clawmark.model import SHARED, Evidence, Fact, Forgetting, Forgotten, Proposal, Said
from clawmark.recall.excerpt import Live, Reader, excerpt_of
from clawmark.store import events, evidence, facts, lexicon, passages, proposals, streams, tombstones
from clawmark.text import is_number, query_words, stems, words

MOST_LOOKED_AT: Final = 2_000
"""Passages that are read for one fact."""
MOST_ECHOES: Final = 50
"""A value that stands in more messages is a common word: those that state it go, those that mention it stay."""
MOST_SHOWN: Final = 20

Stated: TypeAlias = tuple[str, str, str]
"""Scope, key and value."""


@dataclass(slots=True)
class Plan:
    """What goes.

    values        (scope, key, value) of what facts say or once said, where what else they said stays
    staying       (scope, key) of facts that were stated in these messages, or then, and stay
    content_keys  of messages          sessions   (scope, session)          scopes     whole ones
    horizons      scope → until when; everything: scopes that are not known yet as well
    words, named  of a query; by what it was named, for the trail
    """

    facts: set[tuple[str, str]] = field(default_factory=set)
    values: set[Stated] = field(default_factory=set)
    staying: set[tuple[str, str]] = field(default_factory=set)
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
    _with_statements(connection, plan)
    plan.values = {one for one in plan.values if one[:2] not in plan.facts}
    plan.staying -= _going(connection, plan)
    return plan


def of_proposal(connection: apsw.Connection, reader: Reader, name: str) -> Plan | None:
    """What goes with a yes to the proposal `name`; None where it is none to forget something. Raises UsageError as
    `proposals.named`."""
    one = proposals.named(connection, name)
    if one.kind != "forget":
        return None
    plan = planned(connection, reader, Forgetting(key=one.key, scope=one.scope))
    plan.proposals.discard(one.id)  # which is decided, and says so from then on
    return plan


def shown(connection: apsw.Connection, reader: Reader, plan: Plan) -> Forgotten:
    """The plan for a person to look at."""
    ids = sorted(plan.passages | set(passages.with_content(connection, plan.content_keys)))
    live = reader.read(connection, ids[:MOST_SHOWN])
    found = [excerpt_of(one) for one in live]
    waiting = [one for number in sorted(plan.proposals) if (one := proposals.get(connection, number)) is not None]
    messages = passages.count_messages(connection, ids)
    going = sorted(_going(connection, plan))
    return Forgotten(going, len(plan.proposals), messages, found, waiting=waiting, staying=len(plan.staying))


def _going(connection: apsw.Connection, plan: Plan) -> set[tuple[str, str]]:
    """Scope and key of every fact that goes."""
    return plan.facts | {(scope, key) for scope, key, _ in _said_now(connection, plan.values)}


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
        if erase.erase_value(connection, scope, key, value, secret, now):
            gone.append((scope, key))
    until = _until(connection, now)  # of messages: a clock that is behind must leave none of them in
    for scope, session in sorted(plan.sessions):
        tombstones.bury_session(connection, secret, scope, session, until)
    for scope, before in sorted(plan.horizons.items()):
        tombstones.put_horizon(connection, scope, min(before, until))
    keys_of_all = passages.content_keys(connection, sorted(ids)) | plan.content_keys
    tombstones.bury_messages(connection, secret, plan.content_keys, until)
    erase.erase_passages(connection, sorted(ids), now)
    over = keys_of_all - passages.standing(connection, keys_of_all)
    evidence.forget(connection, over)
    events.blank_evidence(connection, over)
    if plan.everything:
        tombstones.put_horizon(connection, tombstones.EVERY_SCOPE, until)
    for scope in sorted(plan.scopes):
        erase.erase_scope(connection, scope, secret, until, now)
    events.blank_reasons(connection, plan.words)
    if messages:
        detail = json.dumps({"by": plan.named, "messages": messages})
        events.add(connection, "erase", now, source="user", scope=plan.scope, detail=detail)
    if plan.before is not None or plan.proposals or plan.values:
        erase.mark_unfinished(connection, now, "fact")
    return Forgotten(sorted(gone), len(plan.proposals), messages, staying=len(plan.staying))


def _one_of(what: Forgetting) -> None:
    named = [one for one in (what.key, what.query, what.conversation, what.before, what.everything or None) if one]
    if len(named) > 1 or (not named and what.scope is None) or (what.everything and what.scope is not None):
        raise UsageError("name one thing to forget: a key, a query, a conversation, a date, a scope, or all.")
    if what.query is not None and not stems(what.query):
        raise UsageError("a query to forget by has at least one word.")


def _name(what: Forgetting) -> str:
    named = {
        "key": what.key,
        "query": what.query,
        "conversation": what.conversation,
        "before": what.before,
        "all": what.everything or None,
    }
    return next((name for name, value in named.items() if value is not None), "scope")


def _scopes(connection: apsw.Connection) -> list[str]:
    """All of which anything is known."""
    held = {fact.scope for fact in facts.stored_in(connection)}
    waiting = {one.scope for one in proposals.pending(connection)}
    return sorted({*streams.scopes(connection), *passages.scopes(connection), *held, *waiting, SHARED})


def _until(connection: apsw.Connection, now: datetime) -> datetime:
    """Later than all that was said, whatever the clock says."""
    newest = passages.newest_at(connection)
    return now if newest is None else max(now, newest + timedelta(milliseconds=1))


# --- one fact ---------------------------------------------------------------------------------------------------------


def _of_key(connection: apsw.Connection, reader: Reader, key: str, scope: str | None, plan: Plan) -> None:
    told = {where for where, of_key, _ in events.stated(connection) if of_key == key}
    held = [one for one in {*facts.scopes_of(connection, key), *told} if scope in (None, one)]
    for where in held:
        plan.facts.add((where, key))
        values = erase.said_under(connection, key, where)
        for value in values:
            plan.content_keys |= {one.content_key for one in evidence.of(connection, where, key, value)}
            plan.content_keys |= _messages_about(connection, reader, where, key, value)
        _saying_the_same(connection, values, plan)
    for one in proposals.pending(connection, None if scope is None else [scope], key=key):
        plan.proposals.add(one.id)
        if not held:  # else what was said of another value stays
            plan.content_keys |= {e.content_key for e in evidence.of(connection, one.scope, key, one.value)}


def _messages_about(connection: apsw.Connection, reader: Reader, scope: str, key: str, value: str) -> set[bytes]:
    """Messages in which the owner states this value, the answers that repeat it, and all that hold a value which is no
    common word."""
    terms = query_words(value)
    if not terms:
        return set()
    ids = lexicon.holding(connection, terms, None if scope == SHARED else [scope], MOST_LOOKED_AT)
    claim = Claim(key, value)
    holding = [one for one in reader.read(connection, ids) if _holds(claim, one.text)]
    stated = [one for one in holding if _states(key, value, one)]
    if _is_rare(value) and len(holding) <= MOST_ECHOES:
        return passages.content_keys(connection, [one.passage_id for one in holding])
    next_to = set(passages.next_of(connection, [one.passage_id for one in stated]))
    echoes = [one.passage_id for one in holding if one.passage_id in next_to and one.message.role == "assistant"]
    return passages.content_keys(connection, [*(one.passage_id for one in stated), *echoes])


def _saying_the_same(connection: apsw.Connection, values: Collection[str], plan: Plan) -> None:
    """What was extracted from the same messages: one of these values under another key, and whatever waits."""
    said = set(map(evidence.value_hash, values))
    for where, key, hashed, spelled in _resting_on(connection, plan.content_keys):
        other = facts.get(connection, key, where, with_hidden=True)
        is_noted = other is None or evidence.value_hash(other.value) != hashed or other.source == "extracted"
        if hashed in said and is_noted:
            plan.values |= {(where, key, value) for value in spelled}
        plan.proposals |= {one.id for one in proposals.saying(connection, where, key, hashed)}


def _resting_on(
    connection: apsw.Connection, content_keys: Collection[bytes]
) -> Iterator[tuple[str, str, bytes, set[str]]]:
    """Every statement that rests on these messages and on nothing else: scope, key and value hash, and the value as the fact
    and the trail spell it."""
    told: dict[tuple[str, str, bytes], set[str]] = defaultdict(set)
    now = [(fact.scope, fact.key, fact.value) for fact in facts.stored_in(connection)]
    for scope, key, value in [*events.stated(connection), *now]:
        told[scope, key, evidence.value_hash(value)].add(value)
    for place in evidence.statements_on(connection, content_keys):
        yield *place, told[place]


def _said_now(connection: apsw.Connection, values: Collection[Stated]) -> list[Stated]:
    """Those of these statements that a fact makes now."""
    held = {(one.scope, one.key): evidence.value_hash(one.value) for one in facts.stored_in(connection)}
    return [one for one in values if held.get(one[:2]) == evidence.value_hash(one[2])]


def _holds(claim: Claim, text: str) -> bool:
    written = " ".join(plain(text).split())
    return next(claim.spans(written, tokens_of(written)), None) is not None


def _states(key: str, value: str, one: Live) -> bool:
    said = Said(one.text, one.message.at)
    return one.message.origin == "owner" and supporting(key, value, [said]) is not None


def _is_rare(value: str) -> bool:
    """Whether a value is more than a word that anybody uses: several words, or a number."""
    return len(stems(value)) > 1 or any(map(is_number, words(value)))


# --- more than one ----------------------------------------------------------------------------------------------------


def _of_query(connection: apsw.Connection, query: str, scope: str | None, plan: Plan) -> None:
    wanted = plan.words = stems(query)
    scopes = None if scope is None else [scope]
    held = [(fact.scope, fact.key, fact.value) for fact in facts.stored_in(connection, scopes)]
    plan.facts |= {(where, key) for where, key, _ in held if wanted <= stems(_as_text(key))}
    for where, key, value in [*held, *events.stated(connection, scope)]:
        if wanted <= stems(_as_text(key, value)):
            plan.values.add((where, key, value))
    for one in proposals.pending(connection, scopes):
        if wanted <= stems(_as_text(one.key, one.value)):
            plan.proposals.add(one.id)
    ids = lexicon.holding(connection, query_words(query), scopes, None)
    plan.content_keys |= passages.content_keys(connection, ids)
    _with_statements(connection, plan)
    _with_messages(connection, plan.content_keys, plan)


def _as_text(key: str, value: str = "") -> str:
    return f"{keys.read(key, whole=True)} {value}"


def _with_statements(connection: apsw.Connection, plan: Plan) -> None:
    """With what is said go the messages that it rests on; with a fact all that it ever said, and what waits beside it."""
    values, waiting = set(plan.values), proposals.pending(connection)
    for where, key in plan.facts:
        said = erase.said_under(connection, key, where)
        values |= {(where, key, value) for value in said}
        plan.proposals |= {one.id for one in erase.beside(waiting, key, where, said)}
    for stated in values:
        plan.content_keys |= {one.content_key for one in evidence.of(connection, *stated)}


def _of_conversation(connection: apsw.Connection, session: str, scope: str | None, plan: Plan) -> None:
    ids = passages.of_session(connection, session, scope)
    plan.passages |= set(ids)
    plan.sessions |= set(passages.scopes_of_session(connection, session, scope))
    # What others said in the same words stays; a copy that is read later, under whatever session, does not come in.
    copied = passages.content_keys(connection, passages.in_other_sessions(connection, ids, session))
    plan.content_keys |= copied | _said_in_no_other(connection, ids) | evidence.unread_of(connection, session, scope)
    _with_messages(connection, plan.content_keys, plan)


def _said_in_no_other(connection: apsw.Connection, ids: Sequence[int]) -> set[bytes]:
    """The contents of these passages that stand in no other one."""
    said = passages.content_keys(connection, ids)
    return said - passages.content_keys(connection, sorted(set(passages.with_content(connection, said)) - set(ids)))


def _with_messages(connection: apsw.Connection, content_keys: Collection[bytes], plan: Plan) -> None:
    """With messages goes what rests on them and on nothing else: facts, what facts once said, and whatever waits. What the
    person set by hand, or anybody stated without a message since the date that is named, does not rest on them alone. Facts
    that were stated in them as well are counted among those that stay."""
    stays = _since(connection, plan.before) if plan.before is not None else _by_hand(connection)
    for where, key, hashed, values in _resting_on(connection, content_keys):
        stated = {(where, key, value) for value in values}
        if stays.isdisjoint(stated):
            plan.values |= stated
        plan.proposals |= {one.id for one in proposals.saying(connection, where, key, hashed)}
    held = {(one.scope, one.key, evidence.value_hash(one.value)) for one in facts.stored_in(connection)}
    plan.staying |= {(where, key) for where, key, _ in held & evidence.touching(connection, content_keys)}


def _by_hand(connection: apsw.Connection) -> set[Stated]:
    """What the person set themselves. Where the trail is lost, or older than its marks, nobody knows; then it is not taken."""
    theirs = {(one.scope, one.key, one.value) for one in facts.stored_in(connection) if one.source == "user"}
    return events.set_by_hand(connection) | (theirs - set(events.stated(connection)))


def _before(connection: apsw.Connection, at: datetime, scope: str | None, plan: Plan) -> None:
    plan.before = at
    plan.passages |= set(passages.before(connection, at, scope))
    plan.horizons[tombstones.EVERY_SCOPE if scope is None else scope] = at - timedelta(milliseconds=1)
    scopes = None if scope is None else [scope]
    stored, waiting = facts.stored_in(connection, scopes), proposals.pending(connection, scopes)
    newer = [one for one in waiting if one.observed_at >= at]
    plan.proposals |= {one.id for one in waiting} - {one.id for one in newer}
    for fact in stored:
        if fact.reinforced_at < at:
            _with_old(connection, fact, at, newer, plan)
    _with_messages(connection, _said_in_no_other(connection, sorted(plan.passages)), plan)
    dated = events.stated_without_message(connection)
    for stated in dated.keys() - set(_said_now(connection, dated)):
        is_old = dated[stated] < at and scope in (None, stated[0])
        if is_old and not evidence.of(connection, *stated):  # else what it rests on has decided
            plan.values.add(stated)
    plan.staying |= {(fact.scope, fact.key) for fact in stored if fact.observed_at < at <= fact.reinforced_at}


def _since(connection: apsw.Connection, at: datetime) -> set[Stated]:
    """What was stated without a message at a time or later."""
    return {stated for stated, stated_at in events.stated_without_message(connection).items() if stated_at >= at}


def _with_old(connection: apsw.Connection, fact: Fact, at: datetime, newer: Sequence[Proposal], plan: Plan) -> None:
    """A fact that nobody stated since goes with all that it ever said, but for what was said again in a message, and for what
    was said since and waits."""
    place = (fact.scope, fact.key)
    said = erase.said_under(connection, fact.key, fact.scope)
    again = {value for value in said if _is_said_since(connection, evidence.of(connection, *place, value), at)}
    if not again and not erase.beside(newer, fact.key, fact.scope, said):
        plan.facts.add(place)
        return
    plan.values |= {(*place, value) for value in said - again}
    if evidence.value_hash(fact.value) in map(evidence.value_hash, again):
        plan.staying.add(place)


def _is_said_since(connection: apsw.Connection, said: Sequence[Evidence], at: datetime) -> bool:
    """Whether a statement rests on what was said at a time or later, or on words that were said again then."""
    found = passages.said(connection, {one.content_key for one in said})
    return any(one.said_at >= at for one in said) or any(
        when >= passages.to_ms(at) for times in found.values() for when, _ in times
    )


def _of_scopes(connection: apsw.Connection, scopes: Sequence[str], plan: Plan) -> None:
    for scope in scopes:
        plan.scopes.add(scope)
        plan.facts |= {(scope, key) for key in facts.keys_of(connection, scope)}
        plan.proposals |= {one.id for one in proposals.pending(connection, [scope])}
        plan.passages |= set(passages.of_scope(connection, scope))
    _with_messages(connection, _said_in_no_other(connection, sorted(plan.passages)), plan)
