"""The ladder: who beats whom does not depend on who comes first."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import permutations

import apsw
import pytest
from helpers import LATER, START, fact
from hypothesis import given
from hypothesis import strategies as st

from clawmark.facts import ladder
from clawmark.facts.ladder import Statement
from clawmark.store import passages

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


def test_a_newer_statement_that_is_far_less_sure_waits_for_the_one_that_came_first() -> None:
    """The one pair whose end depends on the order: neither may replace the other."""
    sure, doubtful = said("Porto", day=0, confidence=0.95), said("Ghent", day=1, confidence=0.8)
    assert stand(sure, doubtful).value == "Porto"
    assert stand(doubtful, sure).value == "Ghent"


IN_ONE_BAND = st.lists(
    st.tuples(
        st.sampled_from(
            ["Porto", "Ghent", "Gothenburg", "porto", "likes decaffeinated tea", "prefers tea without caffeine"]
        ),
        st.integers(0, 400),
        st.sampled_from([0.81, 0.85, 0.9]),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda one: one[1],
)


@given(IN_ONE_BAND)
def test_extracted_statements_of_one_tie_band_end_the_same_in_any_order(rows: list[tuple[str, int, float]]) -> None:
    statements = [said(value, day=day, confidence=confidence) for value, day, confidence in rows]
    newest = max(statements, key=lambda one: one.observed_at)
    for order in permutations(statements):
        standing = stand(*order)
        assert ladder.decide(standing, newest) == "reinforce", "the newest says what stands"
        assert standing.reinforced_at == newest.observed_at
        assert standing.source == "extracted"


@given(IN_ONE_BAND)
def test_values_said_once_each_end_in_the_very_same_fact_in_any_order(rows: list[tuple[str, int, float]]) -> None:
    different = {ladder.likeness(value): (value, day, sure) for value, day, sure in rows if "tea" not in value}
    statements = [said(value, day=day, confidence=sure) for value, day, sure in different.values()]
    assert len({stand(*order) for order in permutations(statements)} if statements else {None}) == 1


@given(STATEMENTS, STATEMENTS)
def test_what_others_say_changes_nothing_of_the_persons_fact(one: Statement, other: Statement) -> None:
    """Not even its times: a log with a wrong clock must not put the person's next correction in the past."""
    if one.source == "user" and other.source != "user":
        standing = stand(one)
        assert ladder.apply(standing, other, LATER)[1] == standing


@given(STATEMENTS, STATEMENTS)
def test_a_fact_keeps_its_first_observation_and_its_latest_support(one: Statement, other: Statement) -> None:
    standing = stand(one, other)
    assert standing.observed_at <= standing.reinforced_at
    if one.source == "user" != other.source:
        return  # see above
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


TEA, ALSO_TEA = "prefers tea without caffeine", "likes decaffeinated tea"


def test_a_paraphrase_reinforces_and_the_first_wording_stays() -> None:
    """R5: in either order."""
    for order in ((0, 1), (1, 0)):
        both = [said(TEA, day=0, confidence=0.85), said(ALSO_TEA, day=30, confidence=0.9)]
        first = stand(both[order[0]])
        outcome, standing = ladder.apply(first, both[order[1]], LATER)
        assert outcome == "reinforce"
        assert (standing.value, standing.confidence) == (TEA, 0.9)
        assert (standing.observed_at, standing.reinforced_at) == (both[0].observed_at, both[1].observed_at)


def test_only_the_person_rewords_by_saying_it_in_other_words() -> None:
    assert stand(said(TEA, "user", 0), said(ALSO_TEA, "user", 1)).value == ALSO_TEA
    assert stand(said(TEA, "user", 0), said(ALSO_TEA, "extracted", 1)).value == TEA
    assert stand(said(TEA, "extracted", 0), said(ALSO_TEA, "user", 1)).value == ALSO_TEA


def test_the_opposite_is_no_paraphrase() -> None:
    """B7."""
    always, never = "Always use tabs for indentation here", "Never use tabs for indentation here"
    assert ladder.decide(stand(said(always)), said(never, day=1)) == "update"
    assert ladder.decide(stand(said(never, day=1)), said(always)) == "conflict_skip"


def as_of(now: datetime, newest: datetime | None) -> datetime:
    """By which ages are measured at `now`, where `newest` is when the last message was said."""
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE TABLE streams AS SELECT ? AS newest", (None if newest is None else passages.to_ms(newest),)
    )
    return passages.as_of(connection, now)


def test_ages_are_measured_no_later_than_a_day_after_the_newest_message() -> None:
    """B6: a clock that is ahead makes nothing older."""
    assert as_of(START + timedelta(days=400), START) == START + timedelta(days=1)
    assert as_of(START - timedelta(days=400), START) == START - timedelta(days=400)
    assert as_of(LATER, None) == LATER


@given(st.integers(-400, 400), st.integers(0, 360))
def test_no_clock_makes_spent_what_was_stated_within_a_year_of_the_newest_message(off: int, quiet: int) -> None:
    """B6."""
    noted = fact(source="extracted", confidence=0.9)
    newest = START + timedelta(days=quiet)
    assert not ladder.is_spent(noted, as_of(newest + timedelta(days=off), newest))


@pytest.mark.parametrize(("source", "spent"), [("user", False), ("agent", True), ("extracted", True)])
def test_a_year_without_a_word_spends_all_but_the_persons(source: str, spent: bool) -> None:
    held = fact(source=source, confidence=0.9)
    assert ladder.is_spent(held, START + timedelta(days=365)) is spent
    assert not ladder.is_spent(held, START + timedelta(days=364, hours=23))


def test_stale_are_others_statements_the_longest_silence_first() -> None:
    held = [
        fact("user.a", source="extracted", confidence=0.9, reinforced_at=START + timedelta(days=50)),
        fact("user.b", source="agent", confidence=0.9, reinforced_at=START),
        fact("user.c", source="user", reinforced_at=START),
        fact("user.d", source="extracted", confidence=0.9, reinforced_at=START + timedelta(days=150)),
    ]
    found = ladder.stale(held, START + timedelta(days=200), 90)
    assert [(one.fact.key, one.days) for one in found] == [("user.b", 200), ("user.a", 150)]
    assert found[0].effective == pytest.approx(0.9 * 2.718281828 ** (-1.1))
    assert ladder.stale(held, START - timedelta(days=9), 90) == []
