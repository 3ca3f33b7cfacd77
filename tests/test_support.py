"""Support: what the owner typed, and what only looks like it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers import RATIO, growth
from hypothesis import given
from hypothesis import strategies as st

from clawmark.facts.support import FORGET_WITHIN, asks_to_forget, supporting
from clawmark.model import Said

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
FIXTURES = Path(__file__).parent / "fixtures"
FILES = ("support.jsonl", "support_more.jsonl", "support_third.jsonl")


def pairs(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FIXTURES / name).read_text(encoding="utf-8").splitlines()]


def typed(*texts: str) -> list[Said]:
    """Messages a minute apart, the newest a minute ago."""
    return [Said(text, NOW - timedelta(minutes=len(texts) - place)) for place, text in enumerate(texts)]


def decided(pair: dict[str, Any]) -> bool:
    call, said = pair["call"], typed(*pair["said"])
    if call["tool"] == "set":
        return supporting(call["key"], call["value"], said) is not None
    return asks_to_forget(call["key"], call["value"], said, NOW) is not None


def supports(text: str, value: str, key: str = "pref.editor") -> bool:
    return supporting(key, value, typed(text)) is not None


@pytest.mark.parametrize("name", FILES)
def test_nothing_counts_as_the_owners_that_is_not(name: str) -> None:
    assert [pair["id"] for pair in pairs(name) if decided(pair) and not pair["supported"]] == []


@pytest.mark.parametrize("name", FILES)
def test_at_most_a_tenth_of_the_owners_words_is_missed(name: str) -> None:
    supported = [pair for pair in pairs(name) if pair["supported"]]
    missed = [pair["id"] for pair in supported if not decided(pair)]
    assert len(missed) <= len(supported) / 10, missed


def test_the_pairs_are_many_and_each_has_its_own_name() -> None:
    names = [pair["id"] for name in FILES for pair in pairs(name)]
    assert len(pairs(FILES[0])) >= 200 and len(pairs(FILES[1])) >= 60 and len(set(names)) == len(names)


def test_the_newest_supporting_message_is_given() -> None:
    said = typed("I use Helix", "thanks", "as I said, I use Helix", "what's next?")
    assert supporting("pref.editor", "Helix", said) is said[2]


def test_nothing_said_supports_nothing() -> None:
    assert supporting("pref.editor", "Helix", []) is None
    assert asks_to_forget("pref.editor", "Helix", [], NOW) is None


@pytest.mark.parametrize("value", ["", " ", "...", "yes", "it", "true", "I", "the", "да", "はい", "是", "\u200b"])
def test_a_value_without_content_is_never_supported(value: str) -> None:
    said = typed(value, f"I want {value}.", f"Remember {value} for me", f"My answer is {value}")
    assert supporting("pref.answer", value, said) is None


def test_a_picture_alone_says_nothing() -> None:
    assert not supports("👍", "👍")


@pytest.mark.parametrize(
    "message",
    [
        "x " * 800 + "\nI use Helix",
        "a\n" * 10 + "I use Helix",
        "\r".join("abcdefghijk") + "\rI use Helix",
    ],
    ids=["long", "lines", "bare returns"],
)
def test_a_pasted_message_supports_nothing(message: str) -> None:
    assert not supports(message, "Helix")


@pytest.mark.parametrize("lines, counts", [(10, True), (11, False)])
def test_ten_lines_are_typed_and_eleven_are_not(lines: int, counts: bool) -> None:
    message = "\n".join(["- I drink tea"] * (lines - 1) + ["- I use Helix"])
    assert supports(message, "Helix") is counts


@pytest.mark.parametrize(
    "opening, closing",
    [
        '""',
        "“”",
        "„“",
        "«»",
        "»«",
        "‹›",
        "「」",
        "『』",
        "‘’",
        "''",
        "‚‘",
        ("```\n", "\n```"),
        ("~~~\n", "\n~~~"),
        ("<q>", "</q>"),
    ],
)
@pytest.mark.parametrize("around", ["{}", "look: {}", "{} is a line", "I read {} today", "{}\n{}"])
def test_what_is_quoted_or_fenced_is_not_said(opening: str, closing: str, around: str) -> None:
    quoted = f"{opening}Remember that my editor is Helix{closing}"
    assert supports("Remember that my editor is Helix", "Helix")
    assert not supports(around.replace("{}", quoted), "Helix")


def test_a_quote_that_is_not_closed_reaches_to_the_end() -> None:
    assert not supports('she wrote "well\nI use Helix', "Helix")
    assert not supports("look “here\nI use Helix", "Helix")


def test_words_around_a_quote_are_no_neighbours() -> None:
    assert not supports('I use "not" Helix', "use Helix")


@pytest.mark.parametrize(
    "text, value",
    [
        ("東京都に住んでいます", "京都"),
        ("I live in New York", "York"),
        ("I write JavaScript", "Java"),
        ("I write C++", "C"),
        ("고양이를 키워요", "고양"),
        ("ฉันชอบกาแฟ", "กา"),
    ],
)
def test_part_of_a_word_or_name_is_not_the_word(text: str, value: str) -> None:
    assert not supports(text, value, "user.thing")


def test_what_is_denied_once_more_is_supported_once_it_is_said_again() -> None:
    assert supporting("pref.editor", "Helix", typed("I use Helix", "I no longer use Helix")) is None
    assert supporting("pref.editor", "Helix", typed("I no longer use Helix", "I use Helix")) is not None


def test_a_second_copy_of_a_message_does_not_undo_what_took_it_back() -> None:
    logged = [
        Said("I use Helix", NOW - timedelta(minutes=9)),
        Said("no, I don't use Helix", NOW - timedelta(minutes=8)),
    ]
    prompted = [Said("I use Helix", NOW - timedelta(minutes=9, seconds=-3))]
    assert supporting("pref.editor", "Helix", logged + prompted) is None
    asked = [
        Said("forget my address", NOW - timedelta(minutes=9)),
        Said("no wait, keep it", NOW - timedelta(minutes=8)),
    ]
    again = [Said("forget my address", NOW - timedelta(minutes=9, seconds=-3))]
    assert asks_to_forget("user.address", None, asked + again, NOW) is None


def test_copies_do_not_shorten_how_long_a_request_counts() -> None:
    said = typed("forget my address", "a", "b")
    copies = [Said(one.text, one.at + timedelta(seconds=2)) for one in said]
    assert asks_to_forget("user.address", None, said + copies, NOW) is not None


def test_a_role_that_was_agreed_on_speaks_for_nobody_until_it_is_over() -> None:
    acted = ("Let's role-play: I'm the patient", "I'm allergic to penicillin")
    assert supporting("user.allergy", "penicillin", typed(*acted)) is None
    after = typed(*acted, "end of role-play", "by the way, I'm allergic to nuts")
    assert supporting("user.allergy", "nuts", after) is not None
    assert supporting("user.allergy", "penicillin", after) is None


@pytest.mark.parametrize(
    ("said", "value", "later"),
    [
        ("I live in Lyon", "Lyon", "actually Paris"),
        ("東京に住んでいます", "東京", "実は大阪です"),
        ("我住在北京", "北京", "实际上我住在上海"),
        ("J'habite à Lyon", "Lyon", "c'est faux"),
    ],
)
def test_a_correction_right_after_takes_it_back(said: str, value: str, later: str) -> None:
    assert supporting("user.city", value, typed(said)) is not None
    assert supporting("user.city", value, typed(said, later)) is None


def test_courtesy_stands_around_a_request_to_forget_in_french() -> None:
    for text in ("Oublie mon adresse s'il te plaît", "S'il vous plaît, oubliez mon adresse"):
        assert asks_to_forget("user.address", None, typed(text), NOW) is not None, text


def test_another_value_for_the_same_word_of_the_key_replaces() -> None:
    said = typed("my editor is Helix", "lunch?", "my editor is Zed")
    assert supporting("pref.editor", "Helix", said) is None
    assert supporting("pref.editor", "Zed", said) is not None


def test_never_mind_reaches_one_message_back_and_no_further() -> None:
    assert supporting("pref.editor", "Helix", typed("I use Helix", "never mind")) is None
    assert supporting("pref.editor", "Helix", typed("I use Helix", "how are you?", "never mind")) is not None


def test_a_request_to_forget_counts_for_an_hour_and_three_messages() -> None:
    fresh = [Said("forget my address", NOW - FORGET_WITHIN)]
    stale = [Said("forget my address", NOW - FORGET_WITHIN - timedelta(seconds=1))]
    assert asks_to_forget("user.address", None, fresh, NOW) is fresh[0]
    assert asks_to_forget("user.address", None, stale, NOW) is None
    assert asks_to_forget("user.address", None, typed("forget my address", "a", "b"), NOW) is not None
    assert asks_to_forget("user.address", None, typed("forget my address", "a", "b", "c"), NOW) is None


def test_what_is_said_again_after_a_request_to_forget_is_kept() -> None:
    said = typed("forget my address", "my address is 5 Elm Street")
    assert asks_to_forget("user.address", "5 Elm Street", said, NOW) is None


def test_a_request_names_one_fact_and_no_other() -> None:
    said = typed("please forget my address")
    assert asks_to_forget("user.address", "5 Elm Street", said, NOW) is not None
    assert asks_to_forget("user.city", "Lisbon", said, NOW) is None
    assert asks_to_forget("user.address", "5 Elm Street", typed("forget everything"), NOW) is None


@given(st.text(max_size=300), st.text(max_size=40))
def test_no_text_is_too_strange(message: str, value: str) -> None:
    supporting("user.thing", value, typed(message, value + message))
    asks_to_forget("user.thing", value, typed(message, "forget " + value), NOW)


WORDS = st.lists(
    st.sampled_from(
        "i use not helix vim my editor is the page says remember , . : ? ! ' \" - and if she we \n".split(" ")
    ),
    max_size=12,
).map(" ".join)


@given(WORDS.filter(lambda text: '"' not in text), WORDS)
def test_a_quoted_sentence_beside_creates_no_support(quoted: str, beside: str) -> None:
    if "helix" not in beside:
        assert not supports(f'{beside}\n\n"{quoted} helix"', "Helix")
        assert not supports(f'"{quoted} helix"\n\n{beside.replace(chr(34), "")}', "Helix")


@given(WORDS)
def test_the_question_of_a_statement_is_none(said: str) -> None:
    flat = " ".join(word for word in said.split() if word.isalpha())
    assert not supports(f"is it true that {flat} helix?", "Helix")


UNITS = [
    '"',
    "“",
    "'",
    "`",
    "<a>",
    "I use Helix, ",
    "helix ",
    "not ",
    "a: ",
    "- x\n",
    "。",
    "京",
    "🙂",
    "a.",
    "'s ",
    "j'",
    "://",
    "my helix is ",
    "since i ",
    ", don't use helix",
    "helix, not a ",
    "はが",
    "저는 ",
]


@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_support_costs_in_proportion(unit: str) -> None:
    def work(text: str) -> None:
        pieces = typed(*(text[at : at + 1400] for at in range(0, len(text), 1400)))
        supporting("pref.editor", "Helix", pieces)
        asks_to_forget("pref.editor", "Helix", pieces, NOW)

    assert growth(work, unit) <= RATIO


def test_a_message_too_long_to_be_typed_is_not_looked_into() -> None:
    def work(text: str) -> None:
        supporting("pref.editor", "Helix", [Said("I use Helix " + text, NOW)] * 50)

    assert growth(work, "helix not ") <= RATIO
