"""Alike: opposites before likeness, and what differs in a number or a name is never the same."""

from __future__ import annotations

import pytest
from helpers import RATIO, growth
from hypothesis import given
from hypothesis import strategies as st

from clawmark.facts import alike

OPPOSITES = [
    ("Always use tabs for indentation in this repository", "Never use tabs for indentation in this repository"),
    ("Prefer pnpm over npm in this monorepo", "Avoid pnpm in this monorepo"),
    ("Prefer pnpm over npm", "Prefer npm over pnpm"),
    ("enable telemetry", "disable telemetry"),
    ("keep the old changelog", "remove the old changelog"),
    ("use Docker for tests", "avoid Docker for tests"),
    ("likes cilantro", "dislikes cilantro"),
    ("do rebase feature branches", "don't rebase feature branches"),
    ("allergic to peanuts", "not allergic to peanuts"),
    ("uses tabs, never spaces", "uses spaces, never tabs"),
    ("I eat meat", "I no longer eat meat"),
    ("eats meat", "eats no meat"),
    ("coffee with sugar", "coffee without sugar"),
    ("Benutze immer Tabs zum Einrücken", "Benutze nie Tabs zum Einrücken"),
    ("mag Koriander", "mag keinen Koriander"),
    ("siempre usa tabuladores", "nunca usa tabuladores"),
    ("toujours utiliser des tabulations", "ne jamais utiliser des tabulations"),
    ("usa sempre i tab", "evita i tab"),
    ("gosto de coentro", "não gosto de coentro"),
    ("gebruik altijd tabs", "gebruik nooit tabs"),
    ("всегда использовать табы", "никогда не использовать табы"),
    ("her zaman çay içerim", "asla çay içmem"),
    ("我喜欢香菜", "我不喜欢香菜"),
    ("紅茶が好き", "紅茶が嫌い"),
    ("고수를 좋아해", "고수를 싫어해"),
]


@pytest.mark.parametrize(("one", "other"), OPPOSITES)
def test_opposites_are_a_conflict_whatever_words_they_share(one: str, other: str) -> None:
    """B7, R27."""
    assert alike.relation(one, other) == alike.relation(other, one) == "conflict_candidate"
    assert not alike.is_paraphrase(one, other)


PARAPHRASES = [
    ("prefers tea without caffeine", "likes decaffeinated tea"),
    ("prefers tea without caffeine", "caffeine-free tea"),
    ("enjoys hiking in the mountains", "likes mountain hikes"),
    ("works at Northlight", "employed at Northlight"),
    ("short answers", "brief replies"),
    ("two cats", "2 cats"),
    ("colour scheme is teal", "color scheme is teal"),
    ("I prefer dark mode", "dark mode"),
    ("no sugar in coffee", "coffee without sugar"),
    ("喜欢喝茶", "我喜欢喝茶"),
    ("São  Paulo", "são paulo"),
]


@pytest.mark.parametrize(("one", "other"), PARAPHRASES)
def test_the_same_in_other_words_is_a_paraphrase(one: str, other: str) -> None:
    """R5."""
    assert alike.is_paraphrase(one, other) and alike.is_paraphrase(other, one)
    assert alike.relation(one, other) == "duplicate"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("standup at 09:30 daily in the main room", "standup at 10:30 daily in the main room"),
        ("lives in Porto with two children and a dog", "lives in Ghent with two children and a dog"),
        ("three cats", "two cats"),
        ("三只猫", "两只猫"),
        ("the train from porto to ghent", "the train from ghent to porto"),
        ("Anna is the sister of Maria", "Maria is the sister of Anna"),
        ("christina", "christopher"),
        ("decaffeinated coffee", "caffeinated coffee"),
        ("prefers dark mode", "prefers light mode"),
        ("drinks decaf coffee", "drinks coffee"),
        ("东京", "京都"),
        ("5433", "5432"),
    ],
)
def test_what_differs_in_a_number_a_name_or_a_word_of_weight_is_neither_the_same_nor_a_paraphrase(
    one: str, other: str
) -> None:
    assert not alike.is_paraphrase(one, other)
    assert alike.relation(one, other) not in ("duplicate",)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("deploys run from the green server at night", "deploys run from the green server every night", "duplicate"),
        ("deploys run from the green server", "deploys run from the green cluster nightly", "merge_candidate"),
        ("deploys run from the green server", "invoices go out in March", "none"),
        ("Prefer pnpm over npm", "Avoid npm", "merge_candidate"),
        ("takes the stairs", "never eats fish", "none"),
    ],
)
def test_likeness_has_three_steps(one: str, other: str, expected: str) -> None:
    assert alike.relation(one, other) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("always rebase", 1), ("prefers tea", 1), ("mag Tee", 1), ("любит чай", 1), ("いつも使う", 1),
        ("never rebase", -1), ("avoid rebasing", -1), ("eats no meat", -1), ("kein Fleisch", -1),
        ("не ест мясо", -1), ("不吃肉", -1),
        ("Helix", 0), ("lives in Porto", 0), ("住在京都", 0), ("", 0),
        ("never disable the cache", 1), ("don't forget the cache, use it", 1), ("prefers tea without milk", 1),
        ("I no longer drink coffee", -1), ("can't stand jazz", -1), ("trabalho no banco", 0),
    ],
)  # fmt: skip
def test_polarity_tells_for_against_and_neither(text: str, expected: int) -> None:
    assert alike.polarity(text) == expected


TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            "never always prefers avoid no without tea coffee tabs over in Porto 3 , . 不 喜欢 茶 nicht mag".split()
        ),
        max_size=10,
    ).map(" ".join),
)


@given(TEXTS, TEXTS)
def test_likeness_knows_no_first_and_second(one: str, other: str) -> None:
    assert alike.relation(one, other) == alike.relation(other, one)
    assert alike.is_paraphrase(one, other) == alike.is_paraphrase(other, one)


@given(TEXTS)
def test_a_statement_is_its_own_repetition(text: str) -> None:
    assert alike.relation(text, text) == "duplicate"
    assert alike.is_paraphrase(text, text)


@given(TEXTS, TEXTS)
def test_a_paraphrase_has_the_same_numbers_and_never_the_opposite_polarity(one: str, other: str) -> None:
    if alike.is_paraphrase(one, other) and alike.likeness(one) != alike.likeness(other):
        assert alike.numbers(one) == alike.numbers(other)
        assert alike.polarity(one) * alike.polarity(other) >= 0
        assert not alike.is_opposite(one, other)


@pytest.mark.parametrize(
    "unit", ["never avoid tea " * 20, "不喜欢" * 20, "instead of " * 20, "a" * 50 + " "], ids=range(4)
)
def test_cost_grows_with_the_text(unit: str) -> None:
    assert growth(lambda said: alike.relation(said, said + " x"), unit) < RATIO
