"""Fusing: scaled, weighted, smoothed over neighbours; age never outweighs a match."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.recall import fuse
from clawmark.recall.fuse import Item

SCORES = st.none() | st.floats(-50, 50)
ITEMS = st.lists(
    st.tuples(SCORES, SCORES, SCORES | st.floats(-1, 1), st.integers(0, 3), st.floats(0, 4000), st.booleans()),
    max_size=20,
).map(
    lambda rows: [
        Item(i, conversation, i - 1 if i and linked else None, own, context, dense, age)
        for i, (own, context, dense, conversation, age, linked) in enumerate(rows)
    ]
)


def item(number: int, own: float | None = None, **changes: Any) -> Item:
    values: dict[str, Any] = {"conversation": number, "previous": None, "context": None, "dense": None} | changes
    return Item(number, own=own, **values)


@given(st.dictionaries(st.integers(), SCORES), st.none() | st.floats(-1, 1))
def test_scaled_is_between_0_and_1_and_keeps_the_order(scores: dict[int, float | None], floor: float | None) -> None:
    found = fuse.scaled(scores, floor)
    present = {i: s for i, s in scores.items() if s is not None}
    assert found.keys() == present.keys()
    assert all(0 <= s <= 1 for s in found.values())
    order = sorted(present, key=lambda i: present[i])
    assert all(found[a] <= found[b] for a, b in zip(order, order[1:], strict=False))


@given(ITEMS, st.none() | st.floats(-1, 1))
def test_every_candidate_gets_a_score_in_range(items: list[Item], floor: float | None) -> None:
    scores = fuse.fuse(items, dense_floor=floor)
    most = 1 + 2 * fuse.NEIGHBOUR
    assert scores.keys() == {i.id for i in items}
    limit = most * (1 + fuse.CONVERSATION) + fuse.RECENCY + 1e-9
    assert all(0 <= s <= limit for s in scores.values())


@given(ITEMS)
def test_the_order_of_candidates_does_not_matter(items: list[Item]) -> None:
    one, other = fuse.fuse(items), fuse.fuse(items[::-1])
    assert one == pytest.approx(other)


def test_a_neighbour_lends_a_share_and_only_inside_its_conversation() -> None:
    hit, empty = item(1, 5.0, conversation=1), item(9, 1.0, conversation=9)
    same = fuse.fuse([hit, empty, item(2, 1.0, conversation=1, previous=1)])
    other = fuse.fuse([hit, empty, item(2, 1.0, conversation=2, previous=1)])
    assert same[2] > other[2]
    base = {1: 0.5, 2: 0.1}
    pair = [item(1, conversation=1), item(2, conversation=1, previous=1)]
    assert fuse.smoothed(pair, base) == pytest.approx({1: 0.5 + 0.2 * 0.1, 2: 0.1 + 0.2 * 0.5})


def test_own_words_count_more_than_borrowed_ones() -> None:
    scores = fuse.fuse([item(1, 5.0, context=5.0), item(2, None, context=5.0), item(3, 1.0, context=1.0)])
    assert scores[1] > scores[2] > scores[3]


@given(st.floats(0, 20_000), st.floats(0, 20_000))
def test_age_never_buries_a_match(old: float, young: float) -> None:
    scores = fuse.fuse([item(1, 9.0, context=9.0, age_days=old), item(2, 1.0, context=1.0, age_days=young)])
    assert scores[1] > scores[2]


def test_of_equals_the_younger_comes_first() -> None:
    scores = fuse.fuse([item(1, 5.0, age_days=400), item(2, 5.0, age_days=3)])
    assert scores[2] > scores[1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_the_conversation_prior_is_the_mean_of_its_three_best(scores: list[float]) -> None:
    items = [item(n, conversation=1) for n in range(len(scores))]
    prior = fuse.conversation_prior(items, dict(enumerate(scores)))
    assert prior == {1: pytest.approx(sum(sorted(scores)[-3:]) / 3)}


def test_without_vectors_words_carry_everything() -> None:
    assert max(fuse.fuse([item(1, 3.0, context=3.0), item(2, 1.0)]).values()) > 1
