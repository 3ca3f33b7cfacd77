"""Where a statement belongs among the known facts: its key, and the fact that says it already or stands against it.

Whatever is known of one subject stands under one key, so that keys do not drift, and what another fact says already is
that fact. A fact of the person or an agent about the same subject that says something else is named, and never passed
over for one that an extractor found; so is any fact that says the opposite, or something else of what may be the same
subject. One thing said under two keys is compared only where both statements say by themselves what they are about.
Which of two wins is not decided here. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from clawmark import keys
from clawmark.facts.alike import is_paraphrase, relation
from clawmark.facts.ladder import STRENGTH
from clawmark.facts.subject import may_be_same_subject, same_subject
from clawmark.model import Conflict, Fact
from clawmark.text import STATEMENT_STEMS, stems


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement belongs among the known facts.

    key, value   as they are to stand there: under the known key, in the known words where they are known already
    against      the fact that `conflict` is about
    restated     the fact that says it already
    in_use       whether a fact has this key
    """

    key: str
    value: str
    conflict: Conflict = "none"
    against: Fact | None = None
    restated: Fact | None = None
    in_use: bool = False


def placed(key: str, value: str, known: Sequence[Fact]) -> Place:
    """The place of `value`, stated under `key`, among `known`: facts of its scope and of `shared`, no hidden ones."""
    same = [fact for fact in known if same_subject(fact.key, key)]
    if same:
        return _under_one_subject(value, sorted(same, key=lambda fact: _nearest_first(fact, key)))
    place = _beside(key, value, known)
    return _beside_its_like(place, known) if place.conflict == "none" else place


def _nearest_first(fact: Fact, key: str) -> tuple[bool, int, str, str]:
    return fact.key != key, -STRENGTH[fact.source], fact.scope, fact.key


def _under_one_subject(value: str, same: Sequence[Fact]) -> Place:
    """Its place where facts about the same thing are known: under the key of the first of them."""
    restated = next((fact for fact in same if relation(value, fact.value) == "duplicate"), None)
    if restated is not None:
        # In its own words the ladder knows it again; in others it takes those that it has.
        again = is_paraphrase(value, restated.value) and restated.source == "extracted"
        return Place(restated.key, value if again else restated.value, "duplicate", restated, restated, True)
    stronger = next((fact for fact in same if fact.source != "extracted"), None)
    if stronger is not None:
        return Place(stronger.key, value, "conflict_candidate", stronger, in_use=True)
    return Place(same[0].key, value, in_use=True)


def _beside(key: str, value: str, known: Sequence[Fact]) -> Place:
    """Its place among facts about other things: only what says by itself what it is about is compared."""
    found: dict[Conflict, Fact] = {}
    mine = stems(value)
    if len(mine) >= STATEMENT_STEMS:
        for fact in known:
            theirs = stems(fact.value)
            # Without a word in common there is nothing to compare; of hundreds of facts most have none.
            if len(theirs) >= STATEMENT_STEMS and mine & theirs and _is_comparable(key, fact.key):
                found.setdefault(relation(value, fact.value), fact)
    if "conflict_candidate" in found:
        return Place(key, value, "conflict_candidate", found["conflict_candidate"])
    if "duplicate" in found:
        fact = found["duplicate"]
        return Place(fact.key, fact.value, "duplicate", fact, fact, True)
    if "merge_candidate" in found:
        return Place(key, value, "merge_candidate", found["merge_candidate"])
    return Place(key, value)


def _beside_its_like(place: Place, known: Sequence[Fact]) -> Place:
    """A place of its own, with the fact of what may be the same subject, one that says something else first."""
    alike = [fact for fact in known if may_be_same_subject(fact.key, place.key)]
    if not alike:
        return place
    alike.sort(key=lambda fact: _nearest_first(fact, place.key))
    other = next((fact for fact in alike if relation(place.value, fact.value) != "duplicate"), None)
    if other is None:
        return replace(place, conflict="duplicate", against=alike[0])
    return replace(place, conflict="conflict_candidate", against=other)


_COMPARABLE: Final = frozenset(("user", "pref", "lesson"))


def _is_comparable(key: str, other: str) -> bool:
    """Whether two keys may be about one thing at all: two projects have the same words for different things."""
    if {keys.prefix(key), keys.prefix(other)} <= _COMPARABLE:
        return True
    return key.rpartition(".")[0] == other.rpartition(".")[0]
