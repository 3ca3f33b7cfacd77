"""How a statement that comes in, or waits, stands to what is known by now. Pure.

One live statement about one thing: what the person says under another key of a known subject is stored under the known
key, and what waits names the fact that stands against it, whichever of the two came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clawmark.facts.ladder import STRENGTH
from clawmark.facts.placing import STATEMENT_STEMS, placed
from clawmark.facts.subject import same_subject
from clawmark.model import CONFIDENCE, Draft, Fact, Proposal
from clawmark.text import likeness, stems


def seen_from(scope: str, stored: Sequence[Fact]) -> list[Fact]:
    """Of the facts of a scope and of `shared` one for each key, as a block shows them: the stronger writer's, then its own
    before the shared one."""
    best: dict[str, Fact] = {}
    for fact in sorted(stored, key=lambda fact: (-STRENGTH[fact.source], fact.scope != scope)):
        best.setdefault(fact.key, fact)
    return list(best.values())


def known_key(key: str, value: str, known: Sequence[Fact]) -> str:
    """The key under which the subject of `key` is known; itself where nothing is known of it."""
    place = placed(key, value, known)
    return place.key if same_subject(place.key, key) else key


def outdated(fact: Fact, known: Sequence[Fact]) -> list[Fact]:
    """The facts of its scope that said something else about its subject, and not later, under other keys."""
    return [
        one
        for one in known
        if one.scope == fact.scope
        and one.key != fact.key
        and one.reinforced_at <= fact.observed_at
        and same_subject(one.key, fact.key)
        and likeness(one.value) != likeness(fact.value)
    ]


def says_the_same(one: Proposal, other: Draft) -> bool:
    """Whether the same words under two keys are one statement: of one subject, or in words that tell what they are about."""
    if likeness(one.value) != likeness(other.value):
        return False
    return same_subject(one.key, other.key) or len(stems(one.value)) >= STATEMENT_STEMS


def as_it_stands(one: Proposal, known: Sequence[Fact], waiting: Sequence[Proposal] = ()) -> Proposal:
    """A proposal with the fact that it repeats or contradicts now; without one, with what waits longer than it and says the
    opposite, since a yes to both would leave both."""
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
