"""The ladder: who beats whom does not depend on who comes first."""

from __future__ import annotations

from datetime import timedelta

import pytest
from helpers import LATER, START, fact
from hypothesis import given
from hypothesis import strategies as st

from clawmark.facts import ladder
from clawmark.facts.ladder import Statement

DAYS = st.integers(0, 400).map(lambda days: START + timedelta(days=days))
STATEMENTS = st.builds(
    Statement,
    key=st.just("user.city"),
    value=st.sampled_from(["Porto", "Ghent", "porto", "Gothenburg"]),
    confidence=st.sampled_from([0.8, 0.85, 0.9, 1.0]),
    source=st.sampled_from(["user", "agent", "extracted"]),
    scope=st.just("shared"),
    observed_at=DAYS,
)


def stand(*statements: Statement) -> ladder.Fact:
    standing = None
    for statement in statements:
        _, standing = ladder.apply(standing, statement, LATER)
    assert standing is not None
    return standing


def said(value: str, source: str = "extracted", day: int = 0, confidence: float = 0.9) -> Statement:
    return Statement("user.city", value, confidence, source, "shared", START + timedelta(days=day))


@given(STATEMENTS, STATEMENTS)
def test_the_outcome_does_not_depend_on_the_order_of_arrival(one: Statement, other: Statement) -> None:
    same_time = one.observed_at == other.observed_at and one.source == other.source
    newer_is_weaker = one.source == other.source != "user" and (
        (one.observed_at > other.observed_at and one.confidence + ladder.TIE_BAND <= other.confidence)
        or (other.observed_at > one.observed_at and other.confidence + ladder.TIE_BAND <= one.confidence)
    )
    if same_time or newer_is_weaker:
        return  # equals at one instant: the first stays; the doubtful newer one: see below
    a, b = stand(one, other), stand(other, one)
    assert (a.value.lower(), a.source) == (b.value.lower(), b.source)


@given(STATEMENTS, STATEMENTS)
def test_the_stronger_writer_stands_whoever_came_first(one: Statement, other: Statement) -> None:
    stronger = max(one, other, key=lambda s: ladder.STRENGTH[s.source])
    if one.source != other.source:
        assert stand(one, other).source == stand(other, one).source == stronger.source
        assert stand(one, other).value.lower() == stronger.value.lower()


@given(st.lists(STATEMENTS, min_size=1, max_size=4, unique_by=lambda s: s.value.lower()))
def test_saying_it_all_again_brings_back_nothing_older(statements: list[Statement]) -> None:
    """B5: replaying an old log never overwrites what is newer."""
    once = stand(*statements)
    twice = stand(*statements, *statements)
    assert twice.source == once.source
    assert twice.value == once.value or twice.observed_at > once.observed_at


def test_what_was_observed_earlier_never_replaces_what_was_observed_later() -> None:
    """B5."""
    assert stand(said("Porto", day=150), said("Ghent", day=0)).value == "Porto"
    assert ladder.decide(stand(said("Porto", day=150)), said("Ghent", day=0, confidence=1.0)) == "conflict_skip"


@pytest.mark.parametrize("source", ["user", "extracted"])
def test_what_was_said_in_between_never_replaces_what_was_said_again_later(source: str) -> None:
    """B5: in whatever order the three arrive."""
    first, between, again = said("Porto", source, 0), said("Ghent", source, 50), said("Porto", source, 100)
    assert stand(first, between, again).value == "Porto"
    assert stand(first, again, between).value == "Porto"


def test_the_person_corrects_the_person() -> None:
    assert stand(said("Porto", "user", 0), said("Ghent", "user", 1)).value == "Ghent"


def test_among_equals_the_newer_wins_within_the_tie_band_else_the_more_confident() -> None:
    old = said("Porto", day=0, confidence=0.95)
    assert stand(old, said("Ghent", day=1, confidence=0.9)).value == "Ghent"
    assert stand(old, said("Ghent", day=1, confidence=0.8)).value == "Porto"
    assert stand(said("Porto", day=0, confidence=0.8), said("Ghent", day=1, confidence=0.95)).value == "Ghent"


@given(STATEMENTS, STATEMENTS)
def test_a_fact_keeps_its_first_observation_and_its_latest_support(one: Statement, other: Statement) -> None:
    standing = stand(one, other)
    assert standing.observed_at <= standing.reinforced_at
    if one.value.lower() == other.value.lower():
        assert standing.observed_at == min(one.observed_at, other.observed_at)
        assert standing.reinforced_at == max(one.observed_at, other.observed_at)
        assert standing.confidence == max(one.confidence, other.confidence)


def test_another_spelling_of_one_value_reinforces() -> None:
    assert ladder.decide(stand(said("São  Paulo")), said("são paulo", day=1)) == "reinforce"


@given(st.integers(-500, 5000))
def test_what_the_person_said_never_decays(days: int) -> None:
    assert ladder.effective_confidence(fact(), START + timedelta(days=days)) == 1.0


@given(st.integers(-500, 5000), st.integers(0, 500))
def test_belief_is_full_for_90_days_and_then_only_falls(days: int, more: int) -> None:
    noted = fact(source="extracted", confidence=0.9)
    now = ladder.effective_confidence(noted, START + timedelta(days=days))
    later = ladder.effective_confidence(noted, START + timedelta(days=days + more))
    assert 0 <= later <= now <= 0.9
    if days <= ladder.FRESH_DAYS:
        assert now == pytest.approx(0.9)
