"""How a statement that comes in, or waits, stands to what is known by now. Pure.

One live statement about one thing: what the person says under another key of a known subject is stored under the key
that they gave it, and ends what was said of it before; what waits names the fact that stands against it, whichever of
the two came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from clawmark.facts.ladder import STRENGTH
from clawmark.facts.placing import placed
from clawmark.facts.subject import same_subject
from clawmark.model import CONFIDENCE, Draft, Fact, Proposal
from clawmark.text import STATEMENT_STEMS, likeness, stems


def seen_from(scope: str, stored: Sequence[Fact]) -> list[Fact]:
    """Of the facts of a scope and of `shared` one for each key, as a block shows them: the stronger writer's, then its own
    before the shared one."""
    best: dict[str, Fact] = {}
    for fact in sorted(stored, key=lambda fact: (-STRENGTH[fact.source], fact.scope != scope)):
        best.setdefault(fact.key, fact)
    return list(best.values())


def known_key(key: str, value: str, known: Sequence[Fact]) -> str:
    """The key under which the subject of `key` is known: itself where it is or nothing is, else one that has the value
    already before the others."""
    same = [fact for fact in known if same_subject(fact.key, key)]
    if not same or any(fact.key == key for fact in same):
        return key
    return placed(key, value, same).key


def outdated(fact: Fact, known: Sequence[Fact], said_at: datetime) -> list[Fact]:
    """The facts of its scope that said something else about its subject, and not after `said_at`, under other keys."""
    return [
        one
        for one in _twins(fact, known)
        if one.scope == fact.scope and one.reinforced_at <= said_at and likeness(one.value) != likeness(fact.value)
    ]


def outweighed(fact: Fact, known: Sequence[Fact]) -> list[Fact]:
    """What others than the person state in its scope about the subject of their own word under other keys: it gives way
    as it does under the same key, whatever it says and however late. What is shared is seen by other scopes too."""
    return [one for one in _twins(fact, known) if one.scope == fact.scope and one.source != "user"]


def _twins(fact: Fact, known: Sequence[Fact]) -> list[Fact]:
    return [one for one in known if one.key != fact.key and same_subject(one.key, fact.key)]


def says_the_same(one: Proposal, other: Draft) -> bool:
    """Whether the same words under two keys are one statement: of one subject, or in words that tell what they are about
    and both the owner's or both not. A stranger's key for them is no statement of the owner's."""
    if likeness(one.value) != likeness(other.value):
        return False
    if same_subject(one.key, other.key):
        return True
    return len(stems(one.value)) >= STATEMENT_STEMS and (one.origin == "owner") == (other.origin == "owner")


def as_it_stands(one: Proposal, known: Sequence[Fact], waiting: Sequence[Proposal] = ()) -> Proposal:
    """A proposal with the fact that it repeats or contradicts now; without one, with what waits longer than it and says
    the opposite, or something else of what may be the same, since a yes to both would leave both."""
    if one.kind != "set":
        return one
    place = placed(one.key, one.value, known)
    held = place.against or next((fact for fact in known if place.in_use and fact.key == place.key), None)
    if held is not None and (held.key != one.key or one.against is None):
        if held.key == one.key and likeness(held.value) == likeness(one.value):
            return one
        conflict = "conflict_candidate" if place.conflict == "none" else place.conflict
        return replace(one, conflict=conflict, against=held.key)
    if one.against is not None:
        return one
    earlier = [_as_fact(other) for other in waiting if other.id < one.id and _may_stand_beside(other, one)]
    opposite = placed(one.key, one.value, earlier)
    if opposite.conflict != "conflict_candidate" or opposite.against is None:
        return one
    return replace(one, conflict="conflict_candidate", against=opposite.against.key)


def _may_stand_beside(other: Proposal, one: Proposal) -> bool:
    """Of one subject the later yes replaces the earlier."""
    return other.kind == "set" and other.scope == one.scope and not same_subject(other.key, one.key)


def _as_fact(one: Proposal) -> Fact:
    at = one.observed_at
    return Fact(one.key, one.value, CONFIDENCE["user"], "user", at, one.scope, at, at, at)
