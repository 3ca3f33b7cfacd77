"""Subject: keys of one thing are told from keys that share a word, and from keys that may be of one thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark import keys
from clawmark.facts.subject import may_be_same_subject, names_of, same_subject


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pref.editor", "user.editor"),
        ("pref.favourite_editor", "pref.editor"),
        ("pref.preferred_editor", "pref.editor_preference"),
        ("pref.favourite_city", "pref.preferred_city"),
        ("user.editor", "user.text_editor"),
        ("pref.code_editor", "user.my_usual_editor"),
        ("user.current_city", "user.city"),
        ("project.app.default_port", "project.app.port"),
        ("user.own_name", "pref.name"),
    ],
)
def test_keys_that_differ_in_words_that_say_nothing_are_of_one_thing(one: str, other: str) -> None:
    """A8."""
    assert same_subject(one, other) and same_subject(other, one) and may_be_same_subject(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("user.city", "pref.favourite_city"),
        ("user.city", "user.favourite_city"),
        ("user.city", "user.home_city"),
        ("user.home_address", "user.address"),
        ("user.language", "user.favourite_language"),
        ("user.country", "user.home_country"),
        ("user.name", "user.user_name"),
        ("user.name", "user.code_name"),
        ("user.name", "pref.favourite_name"),
        ("user.team", "pref.favourite_team"),
        ("pref.color", "pref.text_color"),
        ("user.allergy", "user.allergies"),
        ("user.school", "user.primary_school"),
        ("user.office", "user.home_office"),
        ("user.phone", "user.home_phone"),
        ("user.email", "user.personal_email"),
        ("project.home.port", "project.code.port"),
        ("project.app.port", "project.app.ports"),
        ("project.code_server.url", "project.server.url"),
        ("project.x.text_model", "project.x.code_model"),
        ("user.mothers_dog", "user.dogs_mother"),
        ("user.brother_of_boss", "user.boss_of_brother"),
        ("pref.tabs_over_spaces", "pref.spaces_over_tabs"),
    ],
)
def test_keys_that_may_be_of_one_thing_only_warn(one: str, other: str) -> None:
    assert not same_subject(one, other) and not same_subject(other, one)
    assert may_be_same_subject(one, other) and may_be_same_subject(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("user.work_address", "user.address"),
        ("user.dog_name", "user.name"),
        ("pref.editor_theme", "pref.editor"),
        ("pref.editor_theme", "pref.theme"),
        ("project.alpha.port", "project.beta.port"),
        ("project.editor", "pref.editor"),
        ("user.birthplace", "user.birthday"),
    ],
)
def test_keys_that_share_a_word_are_of_two_things(one: str, other: str) -> None:
    assert not may_be_same_subject(one, other) and not may_be_same_subject(other, one)


def test_projects_are_told_apart_by_the_order_of_their_parts() -> None:
    assert not same_subject("project.a.b.c", "project.b.a.c")


WORDS = st.sampled_from("editor city text code current favourite home name of new a".split())
KEYS = st.builds(
    lambda prefix, parts: prefix + ".".join("_".join(words) for words in parts),
    st.sampled_from(keys.PREFIXES),
    st.lists(st.lists(WORDS, min_size=1, max_size=3), min_size=1, max_size=3),
)


@given(KEYS, KEYS)
def test_what_is_surely_one_thing_may_be_and_order_asks_for_no_difference(one: str, other: str) -> None:
    assert same_subject(one, one)
    assert same_subject(one, other) is same_subject(other, one)
    assert may_be_same_subject(one, other) is may_be_same_subject(other, one)
    assert may_be_same_subject(one, other) or not same_subject(one, other)


@given(KEYS, KEYS)
def test_keys_of_one_thing_have_a_name_in_common(one: str, other: str) -> None:
    assert one in names_of(one)
    assert not same_subject(one, other) or names_of(one) & names_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("user.drink", "pref.favourite_drink"), ("user.city", "user.home_city"), ("project.a.port", "project.b.port")],
)
def test_keys_of_two_things_have_no_name_in_common(one: str, other: str) -> None:
    assert not names_of(one) & names_of(other)
