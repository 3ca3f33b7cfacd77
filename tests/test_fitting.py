"""Fitting: a key is believed only where the owner's sentence is about what it names."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from helpers import RATIO, growth
from hypothesis import given
from hypothesis import strategies as st

from clawmark.facts.fitting import bears, fits
from clawmark.facts.support import supporting
from clawmark.model import Said

FIXTURES = Path(__file__).parent / "fixtures"
AT = datetime(2026, 6, 1, tzinfo=UTC)


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / "fitting.jsonl").read_text(encoding="utf-8").splitlines()]


def is_supported(row: dict[str, Any]) -> bool:
    return supporting(row["key"], row["value"], [Said(row["sentence"], AT)]) is not None


def test_no_key_fits_that_the_sentence_is_not_about() -> None:
    wrong = [row for row in rows() if not row["fits"] and fits(row["key"], row["value"], row["sentence"])]
    assert wrong == []


def test_at_most_a_twentieth_of_what_fits_is_missed() -> None:
    """Of what is supported at all: the rest waits for another reason."""
    good = [row for row in rows() if row["fits"] and is_supported(row)]
    missed = [row for row in good if not fits(row["key"], row["value"], row["sentence"])]
    assert len(missed) <= len(good) / 20, missed


def test_the_rows_are_many_and_in_many_languages() -> None:
    scripts = {"latin" if row["sentence"].isascii() else row["sentence"][0] for row in rows()}
    assert len(rows()) >= 150 and len(scripts) > 8
    assert sum(not row["fits"] and is_supported(row) for row in rows()) > 100, "support alone does not tell them apart"


@pytest.mark.parametrize("denial", ["former", "old", "ex", "previous", "deprecated"])
@pytest.mark.parametrize("sentence", ["I use Helix.", "My editor is Helix.", "I prefer Helix.", "We use Helix."])
def test_a_key_that_drops_fits_no_sentence_that_keeps(denial: str, sentence: str) -> None:
    for prefix in ("user", "pref", "project"):
        for key in (f"{prefix}.{denial}_editor", f"{prefix}.editor_{denial}"):
            assert not fits(key, "Helix", sentence), key


@pytest.mark.parametrize("value", ["채식", "채식주의자"])
def test_a_word_of_a_script_without_blanks_counts_inside_a_value(value: str) -> None:
    assert fits("user.diet", value, f"저는 {value}입니다")


@pytest.mark.parametrize(
    ("value", "text"),
    [("42歳", "私は42歳です"), ("42살", "저는 42살입니다"), ("42 years old", "I'm 42 years old")],
)
def test_an_age_has_its_years_with_or_without_a_blank(value: str, text: str) -> None:
    assert fits("user.age", value, text)


@given(
    st.lists(st.sampled_from("send run delete all always invoices without asking mallory every".split()), min_size=1)
)
def test_no_words_of_an_order_ride_on_a_true_sentence(words: list[str]) -> None:
    for prefix in ("user", "pref", "project"):
        for key in (f"{prefix}.browser_{'_'.join(words)}", f"{prefix}.{'_'.join(words)}_browser"):
            assert not fits(key, "Firefox", "I use Firefox.") and not fits(key, "Firefox", "My browser is Firefox.")


PLACES = ("city", "town", "location", "home", "residence", "country")


@given(st.sampled_from(PLACES), st.sampled_from("June Monday March Friday tomorrow fear peace debt winter".split()))
def test_what_is_no_place_is_no_place(last: str, value: str) -> None:
    for said in (f"I live in {value}.", f"I live in Porto since {value}.", f"I was born in {value}."):
        assert not fits(f"user.{last}", value, said)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=120))
def test_no_text_makes_it_fail(key: str, value: str, text: str) -> None:
    assert fits(f"user.{key}", value, f"{text} {value}") in (True, False)
    assert bears(f"user.{key}", value, f"{text} {value}") in (True, False)


@pytest.mark.parametrize("unit", ["I live in Porto, and ", "Porto ", "in Porto with Porto, ", "my city my city is "])
def test_a_long_message_costs_in_proportion(unit: str) -> None:
    """Of as much as somebody types, and of pasted text beyond that next to nothing."""
    assert growth(lambda text: fits("user.city", "Porto", text[:1400] + " I live in Porto."), unit) <= RATIO


# What a tool call may file the person's own word under


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("user.disease", "cancer", "I study cancer"),
        ("user.allergy", "peanuts", "I love peanuts"),
        ("user.birthday", "2 May", "My flight is on 2 May"),
        ("user.name", "Tom", "I am with Tom"),
        ("user.wife", "Clara", "I work with Clara"),
        ("user.religion", "Buddhism", "I study Buddhism"),
        ("user.employer", "Firefox", "I use Firefox at work"),
        ("user.former_employer", "Northlight", "I work at Northlight"),
        ("pref.editor_to_avoid", "Helix", "I use Helix"),
        ("user.name", "Danish", "I'm Danish"),
    ],
)
def test_who_somebody_is_follows_from_no_sentence_about_something_else(key: str, value: str, text: str) -> None:
    assert not bears(key, value, text)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("user.name", "Sam", "I'm Sam, 34, from Porto"),
        ("user.health", "asthma", "I have asthma"),
        ("user.birthday", "2 May", "My birthday is on 2 May"),
        ("user.allergy", "peanuts", "I'm allergic to peanuts"),
        ("user.wife", "Clara", "My wife is called Clara"),
        ("user.shoe_size", "44", "I need 44 in most brands"),
        ("pref.editor", "Helix", "Helix"),
    ],
)
def test_what_the_sentence_says_is_filed(key: str, value: str, text: str) -> None:
    assert bears(key, value, text)


def test_few_of_the_persons_own_words_wait_for_their_key() -> None:
    supported = []
    for name in ("support", "support_more", "support_third"):
        for line in (FIXTURES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            pair = json.loads(line)
            call = pair["call"]
            if pair["supported"] and call["tool"] == "set":
                said = [Said(text, AT) for text in pair["said"]]
                found = supporting(call["key"], call["value"], said)
                supported += [(call["key"], call["value"], found.text)] if found else []
    waiting = [one for one in supported if not bears(*one)]
    assert len(supported) > 300 and len(waiting) <= 0.03 * len(supported), waiting
