"""Placing: where a statement belongs among the known facts, whoever states it."""

from __future__ import annotations

import pytest
from helpers import fact

from clawmark.facts.placing import Place, placed
from clawmark.model import Fact


def held(key: str, value: str, source: str = "extracted", scope: str = "main") -> Fact:
    return fact(key, value, source=source, scope=scope)


def test_what_is_known_of_nothing_stands_under_its_own_key() -> None:
    assert placed("pref.editor", "Helix", []) == Place("pref.editor", "Helix")
    assert placed("pref.editor", "Helix", [held("pref.shell", "fish")]) == Place("pref.editor", "Helix")


def test_one_subject_has_one_key() -> None:
    """Its own where that is in use, else that of the strongest."""
    known = [held("user.editor", "Kate"), held("pref.editor", "Kate")]
    assert placed("pref.editor", "Helix", known) == Place("pref.editor", "Helix", in_use=True)
    assert placed("user.editor", "Helix", known) == Place("user.editor", "Helix", in_use=True)
    assert placed("user.code_editor", "Helix", known).key == "pref.editor"
    stronger = held("user.editor", "Kate", "agent")
    assert placed("user.code_editor", "Helix", [held("pref.editor", "Kate"), stronger]).key == "user.editor"


@pytest.mark.parametrize("source", ["user", "agent"])
def test_a_stronger_word_that_says_something_else_is_named(source: str) -> None:
    theirs = held("pref.editor", "Kate", source)
    expected = Place("pref.editor", "Helix", "conflict_candidate", theirs, in_use=True)
    assert placed("user.editor", "Helix", [theirs]) == expected


def test_what_is_known_already_keeps_the_known_words() -> None:
    mine, found = held("pref.editor", "Helix", "user"), held("pref.editor", "Helix")
    assert placed("user.editor", "helix", [mine]) == Place("pref.editor", "Helix", "duplicate", mine, mine, True)
    assert placed("user.editor", "helix", [found]) == Place("pref.editor", "helix", "duplicate", found, found, True)


@pytest.mark.parametrize("source", ["user", "agent", "extracted"])
def test_what_may_be_of_one_subject_stands_apart_and_names_the_other(source: str) -> None:
    """Nobody's fact is moved, said again or ended by it."""
    city = held("user.city", "Berlin", source)
    assert placed("pref.favourite_city", "Paris", [city]) == Place(
        "pref.favourite_city", "Paris", "conflict_candidate", city
    )
    assert placed("pref.favourite_city", "berlin", [city]) == Place("pref.favourite_city", "berlin", "duplicate", city)
    home = held("user.home_city", "Porto", source)
    assert placed("pref.favourite_city", "Berlin", [city, home]).against == home
    assert placed("user.city", "Paris", [city, home]).against == (None if source == "extracted" else city)


def test_only_what_says_by_itself_what_it_is_about_is_compared_under_two_keys() -> None:
    city = held("user.city", "Porto")
    assert placed("user.birthplace", "Porto", [city]) == Place("user.birthplace", "Porto")
    tabs = held("lesson.tabs", "tabs for indentation in the old parser")
    for value, conflict in (
        ("never use tabs for indentation in the old parser", "conflict_candidate"),
        ("tabs for indentation in the old parser", "duplicate"),
        ("tabs for indentation in the new parser", "merge_candidate"),
    ):
        place = placed("pref.indentation", value, [tabs])
        assert (place.conflict, place.against, place.key) == (
            conflict, tabs, "lesson.tabs" if conflict == "duplicate" else "pref.indentation"
        ), value  # fmt: skip


def test_two_projects_have_the_same_words_for_different_things() -> None:
    alpha = held("project.alpha.port", "the staging database listens on 5433")
    for key, conflict in (("project.beta.port", "none"), ("project.alpha.database", "duplicate")):
        assert placed(key, "the staging database listens on 5433", [alpha]).conflict == conflict
