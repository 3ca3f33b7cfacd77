"""The ladder: which of two statements under one key wins, and how belief fades.

The person's word beats the agent's, the agent's beats an extracted one; among equals the newer observation wins within
the tie band, else the higher confidence. What was observed earlier never replaces what was observed later, in whatever
order the two arrive.

- A restatement reinforces, also in other words: the first wording stays, with the first time, the latest time and the
  higher confidence. Only the person's own rewording replaces words, for they chose them.
- What others say changes nothing of a person's fact, not even its times: no clock of a log, and no agent that repeats an
  old value, puts the person's next correction in the past.
- Extracted statements of one tie band, each of its own time, end in the same value and latest time in whatever order they
  arrive: the newest. Beyond the band no rule can give that, since then an earlier statement neither replaces a later one
  nor gives way to it; whichever came first stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from clawmark.model import Fact, Stale
from clawmark.text import likeness

STRENGTH = {"user": 3, "agent": 2, "extracted": 1}
TIE_BAND = 0.1
FRESH_DAYS, DECAY_PER_DAY = 90, 0.01
SPENT_DAYS = 365

Step = Literal["create", "update", "reinforce", "conflict_skip"]
"""What a new statement does to a fact."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What somebody says now. source: "user", "agent" or "extracted"."""

    key: str
    value: str
    confidence: float
    source: str
    scope: str
    observed_at: datetime


def decide(old: Fact | None, new: Statement) -> Step:
    if old is None:
        return "create"
    if _says_again(old, new):
        return "reinforce"
    mine, theirs = STRENGTH[new.source], STRENGTH[old.source]
    if mine != theirs:
        return "update" if mine > theirs else "conflict_skip"
    if new.observed_at < old.reinforced_at:  # when the old value was said last
        return "conflict_skip"
    if new.source == "user" or abs(new.confidence - old.confidence) < TIE_BAND or new.confidence > old.confidence:
        return "update"
    return "conflict_skip"


def _says_again(old: Fact, new: Statement) -> bool:
    if likeness(old.value) == likeness(new.value):
        return True
    if new.source == "user":
        return False
    from clawmark.facts.alike import is_paraphrase  # its tables take their time, and a prompt decides nothing

    return is_paraphrase(old.value, new.value)


def apply(old: Fact | None, new: Statement, now: datetime) -> tuple[Step, Fact]:
    """The step and the fact as it then stands (the old one unchanged after a conflict)."""
    step = decide(old, new)
    if old is not None and step == "conflict_skip":
        return step, old
    if old is not None and step == "reinforce":
        return step, _reinforced(old, new, now)
    return step, Fact(
        key=new.key,
        value=new.value,
        confidence=new.confidence,
        source=new.source,
        updated_at=now,
        scope=new.scope,
        created_at=now if old is None else old.created_at,
        observed_at=new.observed_at,
        reinforced_at=new.observed_at,
    )


def _reinforced(old: Fact, new: Statement, now: datetime) -> Fact:
    mine, theirs = STRENGTH[new.source], STRENGTH[old.source]
    if old.source == "user" and mine < theirs:
        return old
    takes_words = mine > theirs or (mine == theirs and new.observed_at < old.observed_at)
    return replace(
        old,
        value=new.value if takes_words else old.value,
        confidence=max(old.confidence, new.confidence),
        source=new.source if mine > theirs else old.source,
        updated_at=now,
        observed_at=min(old.observed_at, new.observed_at),
        reinforced_at=max(old.reinforced_at, new.observed_at),
    )


def effective_confidence(fact: Fact, now: datetime) -> float:
    """What the person said stays; all else is full for 90 days after its last reinforcement and then fades."""
    if fact.source == "user":
        return fact.confidence
    return fact.confidence * math.exp(-DECAY_PER_DAY * max(0.0, _age(fact, now) - FRESH_DAYS))


def is_spent(fact: Fact, now: datetime) -> bool:
    """Whether nobody has stated for a year what is not the person's own word."""
    return fact.source != "user" and _age(fact, now) >= SPENT_DAYS


def stale(facts: Iterable[Fact], now: datetime, days: int) -> list[Stale]:
    """What others than the person said and nobody has stated for `days` days, the longest silence first."""
    found = [
        Stale(fact, int(_age(fact, now)), effective_confidence(fact, now))
        for fact in facts
        if fact.source != "user" and _age(fact, now) >= days
    ]
    return sorted(found, key=lambda one: (one.fact.reinforced_at, one.fact.scope, one.fact.key))


def _age(fact: Fact, now: datetime) -> float:
    """Days since the last statement; 0 where the clock is behind it."""
    return max(0.0, (now - fact.reinforced_at).total_seconds() / 86_400)
