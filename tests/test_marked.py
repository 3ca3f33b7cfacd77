"""The marker extractor: the owner's own durable sentences, whole and in their words, and nothing else."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from helpers import ENOUGH, seconds
from hypothesis import given
from hypothesis import strategies as st

from clawmark.facts import gate, statement
from clawmark.facts.marked import LONGEST, marked
from clawmark.model import Candidate, Utterance

AT = datetime(2026, 6, 1, tzinfo=UTC)
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "fixtures" / "marked.jsonl").read_text(encoding="utf-8").splitlines()
]
SAID, NOT_SAID = [row for row in ROWS if row["value"]], [row for row in ROWS if not row["value"]]


def utterance(text: str, **changes: Any) -> Utterance:
    return replace(Utterance(1, 1, "owner", None, text, AT, True, "s", "main", b"k" * 16, True), **changes)


def of(text: str, **changes: Any) -> list[Candidate]:
    return marked([utterance(text, **changes)])


def is_found(row: dict[str, Any]) -> bool:
    return any(one.value == row["value"] and one.key.startswith(f"{row['prefix']}.") for one in of(row["said"]))


def test_the_sentences_are_many_and_of_twelve_languages() -> None:
    assert (
        len(ROWS) >= 290
        and len({row["language"] for row in ROWS}) == 12
        and len({row["id"] for row in ROWS}) == len(ROWS)
    )
    assert min(len(SAID), len(NOT_SAID)) >= 140


def test_of_what_is_meant_for_good_at_most_one_in_twenty_is_missed() -> None:
    missed = [row["id"] for row in SAID if not is_found(row)]
    assert len(missed) <= len(SAID) / 20, missed


def test_of_what_is_not_at_most_one_in_fifty_is_taken() -> None:
    taken = [row["id"] for row in NOT_SAID if of(row["said"])]
    assert len(taken) <= len(NOT_SAID) / 50, taken


@pytest.mark.parametrize("language", sorted({row["language"] for row in ROWS}))
def test_no_language_is_left_out(language: str) -> None:
    rows = [row for row in SAID if row["language"] == language]
    assert sum(map(is_found, rows)) >= 0.8 * len(rows)


def test_a_candidate_is_the_sentence_in_its_own_words() -> None:
    text = "Thanks! I always take the NIGHT train to Ulm. What is next?"
    (found,) = of(text)
    assert found.value == found.quote == "I always take the NIGHT train to Ulm."
    assert found.quote in text and found.cited == (1,) and found.confidence == 0.7
    assert found.key == "pref.take_night_train"


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("my editor is Helix", "pref.editor", "Helix"),
        ("By the way, my dog is called Biscuit.", "user.dog_name", "Biscuit"),
        ("My favourite colour is Teal.", "pref.favourite_colour", "Teal"),
        ("Mein Hund heißt Wotan.", "user.dog_name", "Wotan"),
        ("我的生日是五月四日。", "user.birthday", "五月四日"),
        ("私の名前は花子です。", "user.name", "花子"),
    ],
)
def test_a_sentence_that_names_key_and_value_gives_both(text: str, key: str, value: str) -> None:
    (found,) = of(text)
    assert (found.key, found.value, found.confidence) == (key, value, 0.8)


def test_one_sentence_said_twice_is_one_candidate_under_one_key() -> None:
    twice = [utterance("I never eat fish."), utterance("ok.  I never eat FISH.", number=2)]
    (found,) = marked(twice)
    assert found.cited == (1,)
    assert found.key == of("I never eat fish.")[0].key


@pytest.mark.parametrize("origin", ["assistant", "participant", "host"])
def test_only_the_owners_own_words_are_taken(origin: str) -> None:
    assert of("I always take the stairs.", origin=origin) == []
    assert of("I always take the stairs.", citable=False) == []


@pytest.mark.parametrize(
    "text",
    [
        "> I always take the stairs.",
        "```\nI always take the stairs.\n```",
        'he wrote "I always take the stairs." and left',
        "The mail says: I always take the stairs.",
        "Translate this: I always take the stairs.",
        "Do I always take the stairs?",
        "I always take the stairs.\n" * 12,
        "I always take " + "the long, long stairs " * 20 + ".",
        "Let me check why the test always fails.",
    ],
)
def test_what_is_quoted_pasted_asked_passing_or_too_long_is_left(text: str) -> None:
    assert of(text) == []


def test_a_sentence_with_a_secret_is_left() -> None:
    token = "ghp_" + secrets.token_hex(18)
    assert of(f"Remember that my token is {token}.") == []
    assert of("Remember that my password is [REDACTED:password].") == []


@pytest.mark.parametrize("row", SAID, ids=lambda row: str(row["id"]))
def test_the_gate_refuses_none_of_them(row: dict[str, Any]) -> None:
    """All that is found goes before the person, or is plainly theirs."""
    for one in of(row["said"]):
        ruling = gate.ruled(
            one, [utterance(row["said"])], [], threshold=0.8, promote="marker",
            is_forgotten=lambda *_: False, zone=None,
        )  # fmt: skip
        assert ruling.outcome == "propose", ruling


@given(st.text(max_size=400))
def test_candidates_are_well_formed_whatever_is_said(text: str) -> None:
    for one in of(f"I always {text}") + of(text):
        assert statement.key(one.key) == one.key
        assert 0 < len(one.value) <= LONGEST
        assert 0 <= one.confidence <= 1


@pytest.mark.parametrize(
    "unit", ["I always ", "please and so ", "remember, ", "以后", "我们因为", "my x is ", "a. ", "- never\n"]
)
def test_a_message_of_any_length_costs_what_a_typed_one_does(unit: str) -> None:
    """Only what may have been typed is read, and the longest of that is quick."""
    assert seconds(lambda text: of(text), unit * (1500 // len(unit))) < ENOUGH * 50
    assert of(unit * 100_000) == []


@pytest.mark.parametrize(
    ("own", "said", "is_found"),
    [
        ("house rule", "House rule: shoes off at the door of the studio", True),
        ("house rule", "we have a housekeeping rule about shoes in the studio", False),
        ("for good measure!", "For good measure, backups go to the blue disk", True),
        ("par principe", "Par principe, les sauvegardes vont sur le disque bleu", True),
        ("for the record", "For the record: the boiler was serviced in October", True),
        ("規則", "規則: 玄関では靴を脱ぐこと", True),
        ("house rule", "House rule: were shoes off at the door?", False),
        ("house rule", "House rule!", False),
        ("house rule", "Anna said: house rule, shoes off at the door of the studio", False),
    ],
)
def test_a_persons_own_phrase_marks_like_the_built_in_ones(own: str, said: str, is_found: bool) -> None:
    found = marked([utterance(said)], [own])
    assert [one.value for one in found] == ([said] if is_found else [])
    for one in found:
        assert one.key.startswith("user.") and not set(own.split()) & set(one.key.partition(".")[2].split("_"))
    assert not marked([utterance(said)])


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("Remember that I'm vegetarian.", "user.vegetarian"),
        ("Remember that I'm a nurse.", "user.nurse"),
        ("I always use tabs.", "pref.tabs"),
        ("Ich benutze immer Tabs.", "pref."),
        ("I always agree.", None),
        ("Remember!", None),
        ("I never mind.", None),
        ("Always happy!", None),
    ],
)
def test_one_word_is_enough_in_a_whole_sentence(said: str, key: str | None) -> None:
    found = of(said)
    assert bool(found) == (key is not None)
    assert all(one.key.startswith(key or "-") for one in found)
