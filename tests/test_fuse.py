"""Fusing: scaled, weighted, smoothed over neighbours; age never outweighs a match."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.recall import fuse
from clawmark.recall.fuse import Item, Lists

UNIT = st.floats(0, 1)
ITEMS = st.lists(st.tuples(UNIT, st.integers(0, 3), st.floats(0, 4000), st.booleans()), max_size=20).map(
    lambda rows: [
        Item(i, conversation, i - 1 if i and linked else None, score, age)
        for i, (score, conversation, age, linked) in enumerate(rows)
    ]
)


def item(number: int, score: float, **changes: Any) -> Item:
    return Item(**({"id": number, "conversation": number, "previous": None, "score": score} | changes))


@given(st.dictionaries(st.integers(), st.floats(-50, 50)), st.none() | st.floats(-1, 1))
def test_scaled_is_between_0_and_1_and_keeps_the_order(scores: dict[int, float], floor: float | None) -> None:
    found = fuse.scaled(scores, floor)
    assert found.keys() == scores.keys()
    assert all(0 <= s <= 1 for s in found.values())
    assert all(found[a] <= found[b] for a, b in pairwise(sorted(scores, key=lambda i: scores[i])))


@given(
    st.dictionaries(st.integers(0, 5), UNIT), st.dictionaries(st.integers(0, 5), UNIT), st.none() | st.just({0: 1.0})
)
def test_what_the_lists_say_together_is_between_0_and_1(own: Any, context: Any, dense: Any) -> None:
    lists = Lists(own, context, dense)
    assert all(0 <= lists.score(i) <= 1 + 1e-9 for i in range(7))
    assert lists.score(6) == 0, "what is in no list counts as nothing"


def test_the_weights_of_the_lists_add_up_with_and_without_vectors() -> None:
    assert Lists({1: 1.0}, {1: 1.0}, {1: 1.0}).score(1) == pytest.approx(1)
    assert Lists({1: 1.0}, {1: 1.0}, None).score(1) == pytest.approx(1)
    assert Lists({1: 1.0}, {1: 1.0}, None).score(1) > Lists({}, {1: 1.0}, None).score(1)


@given(ITEMS)
def test_every_candidate_gets_a_score_in_range(items: list[Item]) -> None:
    scores = fuse.fuse(items)
    most = {i.id: 1 + fuse.NEIGHBOUR * (1 + sum(j.previous == i.id for j in items)) for i in items}
    assert scores.keys() == {i.id for i in items}
    limit = max(most.values(), default=0) * (1 + fuse.CONVERSATION) + fuse.RECENCY + 1e-9
    assert all(i.score <= scores[i.id] <= limit for i in items)


@given(ITEMS)
def test_the_order_of_candidates_does_not_matter(items: list[Item]) -> None:
    assert fuse.fuse(items) == pytest.approx(fuse.fuse(items[::-1]))


def test_a_neighbour_lends_a_share_and_only_inside_its_conversation() -> None:
    pair = [item(1, 0.5, conversation=1), item(2, 0.1, conversation=1, previous=1)]
    assert fuse.smoothed(pair) == pytest.approx({1: 0.5 + 0.2 * 0.1, 2: 0.1 + 0.2 * 0.5})
    apart = [item(1, 0.5, conversation=1), item(2, 0.1, conversation=2, previous=1)]
    assert fuse.smoothed(apart) == {1: 0.5, 2: 0.1}
    assert fuse.smoothed([item(2, 0.1, previous=1)]) == {2: 0.1}


def test_neighbours_lend_what_they_had_before_they_borrowed() -> None:
    chain = [item(n, s, conversation=1, previous=n - 1 if n else None) for n, s in enumerate((1.0, 0.0, 0.0))]
    assert fuse.smoothed(chain) == pytest.approx({0: 1.0, 1: 0.2, 2: 0.0})


@given(st.floats(0, 20_000), st.floats(0, 20_000))
def test_age_never_buries_a_match(old: float, young: float) -> None:
    scores = fuse.fuse([item(1, 0.9, age_days=old), item(2, 0.1, age_days=young)])
    assert scores[1] > scores[2]


def test_of_equals_the_younger_comes_first() -> None:
    scores = fuse.fuse([item(1, 0.5, age_days=400), item(2, 0.5, age_days=3)])
    assert scores[2] > scores[1]


@given(st.lists(UNIT, min_size=1, max_size=9))
def test_the_conversation_prior_is_the_mean_of_its_three_best(scores: list[float]) -> None:
    items = [item(n, s, conversation=1) for n, s in enumerate(scores)]
    prior = fuse.conversation_prior(items, dict(enumerate(scores)))
    assert prior == {1: pytest.approx(sum(sorted(scores)[-3:]) / 3)}
