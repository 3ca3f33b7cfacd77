"""The ladder: which of two statements under one key wins, and how belief fades.

The person's word beats the agent's, the agent's beats an extracted one; among equals the newer observation wins within
the tie band, else the higher confidence. What was observed earlier never replaces what was observed later, in whatever
order the two arrive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from clawmark.model import Fact
from clawmark.text import likeness

STRENGTH = {"user": 3, "agent": 2, "extracted": 1}
TIE_BAND = 0.1
FRESH_DAYS, DECAY_PER_DAY = 90, 0.01

Outcome = Literal["create", "update", "reinforce", "conflict_skip"]


@dataclass(frozen=True, slots=True)
class Statement:
    """What somebody says now. source: "user", "agent" or "extracted"."""

    key: str
    value: str
    confidence: float
    source: str
    scope: str
    observed_at: datetime


def decide(old: Fact | None, new: Statement) -> Outcome:
    if old is None:
        return "create"
    if likeness(old.value) == likeness(new.value):
        return "reinforce"
    mine, theirs = STRENGTH[new.source], STRENGTH[old.source]
    if mine != theirs:
        return "update" if mine > theirs else "conflict_skip"
    if new.observed_at < old.reinforced_at:  # when the old value was said last
        return "conflict_skip"
    if new.source == "user" or abs(new.confidence - old.confidence) < TIE_BAND or new.confidence > old.confidence:
        return "update"
    return "conflict_skip"


def apply(old: Fact | None, new: Statement, now: datetime) -> tuple[Outcome, Fact]:
    """The outcome and the fact as it then stands (the old one unchanged after a conflict)."""
    outcome = decide(old, new)
    if outcome == "conflict_skip" and old is not None:
        return outcome, old
    if outcome == "reinforce" and old is not None:
        stronger = new if STRENGTH[new.source] > STRENGTH[old.source] else old
        return outcome, Fact(
            key=old.key,
            value=new.value if stronger is new else old.value,
            confidence=max(old.confidence, new.confidence),
            source=stronger.source,
            updated_at=now,
            scope=old.scope,
            created_at=old.created_at,
            observed_at=min(old.observed_at, new.observed_at),
            reinforced_at=max(old.reinforced_at, new.observed_at),
        )
    return outcome, Fact(
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


def effective_confidence(fact: Fact, now: datetime) -> float:
    """What the person said stays; all else is full for 90 days after its last reinforcement and then fades."""
    if fact.source == "user":
        return fact.confidence
    days = max(0.0, (now - fact.reinforced_at).total_seconds() / 86_400)
    return fact.confidence * math.exp(-DECAY_PER_DAY * max(0.0, days - FRESH_DAYS))
