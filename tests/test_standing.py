"""Standing: one live statement about one thing, and what waits names what stands against it now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers import LATER, START

from clawmark.facts import standing
from clawmark.model import SHARED, Draft, Fact, Proposal


def fact(key: str, value: str, scope: str = "main", source: str = "user") -> Fact:
    return Fact(key, value, 1.0, source, START, scope, START, START, START)


def waiting(key: str, value: str, number: int = 2, **more: object) -> Proposal:
    one = Proposal(
        number, "set", "main", key, value, 0.7, "owner", "x", "none", None, "pending", LATER, LATER, LATER, LATER
    )
    return replace(one, **more)  # type: ignore[arg-type]


def test_of_one_key_the_stronger_writer_is_seen_then_the_scopes_own() -> None:
    own, shared = fact("pref.editor", "Helix"), fact("pref.editor", "Kate", SHARED)
    assert standing.seen_from("main", [shared, own]) == [own]
    assert standing.seen_from("main", [shared, replace(own, source="extracted")]) == [shared]


@pytest.mark.parametrize(
    "key", ["pref.editor", "user.editor", "pref.usual_editor", "pref.main_editor", "user.work_editor", "project.editor"]
)
def test_a_subject_that_is_known_keeps_its_key(key: str) -> None:
    known = standing.known_key(key, "Helix", [fact("pref.editor", "Kate")])
    assert known == (key if any(word in key for word in ("main", "work", "project")) else "pref.editor")


def test_the_very_key_is_taken_before_one_that_says_the_same_and_that_before_any_other() -> None:
    known = [fact("pref.editor", "Vim"), fact("user.editor", "Helix")]
    assert standing.known_key("pref.editor", "Helix", known) == "pref.editor"
    assert standing.known_key("pref.code_editor", "Helix", known) == "user.editor"
    assert standing.known_key("pref.code_editor", "Zed", known) == "pref.editor"


@pytest.mark.parametrize("source", ["user", "agent", "extracted"])
@pytest.mark.parametrize(
    ("key", "is_one"), [("pref.editor", True), ("user.main_editor", False), ("user.editor", False)]
)
@pytest.mark.parametrize("scope", ["main", SHARED])
def test_what_others_state_of_the_subject_gives_way_to_the_persons_word(
    source: str, key: str, is_one: bool, scope: str
) -> None:
    """Whatever and whenever they state it. What they share stands, for no other scope sees the person's word."""
    other = replace(fact(key, "helix", scope, source), reinforced_at=LATER)
    gives_way = is_one and source != "user" and scope == "main"
    assert standing.outweighed(fact("user.editor", "Helix"), [other]) == ([other] if gives_way else [])


@pytest.mark.parametrize(
    ("other", "ends"),
    [
        (fact("pref.editor", "Kate"), True),
        (fact("pref.editor", "helix"), False),
        (fact("user.editor", "Kate"), False),
        (fact("pref.editor", "Kate", SHARED), False),
        (fact("user.work_editor", "Kate"), False),
        (fact("user.main_editor", "Kate"), False),
        (replace(fact("pref.editor", "Kate"), reinforced_at=LATER), False),
    ],
)
def test_what_is_outdated_said_something_else_of_the_same_thing_in_the_same_scope_and_not_later(
    other: Fact, ends: bool
) -> None:
    assert standing.outdated(fact("user.editor", "Helix"), [other], START) == ([other] if ends else [])


@pytest.mark.parametrize(
    ("key", "value", "conflict"),
    [
        ("user.city", "Porto", "none"),
        ("user.city", "Ghent", "conflict_candidate"),
        ("user.home_city", "Ghent", "conflict_candidate"),
        ("user.home_city", "Porto", "duplicate"),
        ("user.office_city", "Ghent", "none"),
    ],
)
def test_a_proposal_names_the_fact_of_its_subject_however_late_that_came(key: str, value: str, conflict: str) -> None:
    one = standing.as_it_stands(waiting(key, value), [fact("user.city", "Porto", source="extracted")])
    assert (one.conflict, one.against) == (conflict, None if conflict == "none" else "user.city")


def test_only_what_waits_longer_and_says_the_opposite_of_another_subject_is_named() -> None:
    first = waiting("pref.packages", "Prefer pnpm over npm in this monorepo", 1)
    second = waiting("lesson.tools", "Avoid pnpm in this monorepo")
    assert standing.as_it_stands(first, [], [first, second]) == first
    assert standing.as_it_stands(second, [], [first, second]).against == "pref.packages"
    assert standing.as_it_stands(second, [], [replace(first, scope="work"), second]) == second
    assert standing.as_it_stands(replace(second, key="user.packages"), [], [first, second]).against is None


def test_of_what_may_be_one_subject_the_later_that_waits_names_the_earlier() -> None:
    first, second = waiting("user.city", "Porto", 1), waiting("pref.favourite_city", "Paris")
    assert standing.as_it_stands(second, [], [first, second]).against == "user.city"
    assert standing.as_it_stands(replace(second, key="user.current_city"), [], [first, second]).against is None


@pytest.mark.parametrize("key", ["pref.gardener", "user.gardener", "user.home_gardener"])
@pytest.mark.parametrize("origin", ["owner", "agent", "participant"])
@pytest.mark.parametrize("value", ["Anna Berger looks after the garden", "Anna"])
def test_the_same_words_are_one_statement_across_keys_only_of_the_owner_or_only_of_others(
    key: str, origin: str, value: str
) -> None:
    drafted = Draft("set", key, value, "main", origin=origin, reason="x")
    for theirs in ("owner", "agent"):
        is_one = key != "user.home_gardener" or (value != "Anna" and (theirs == "owner") == (origin == "owner"))
        assert standing.says_the_same(waiting("user.gardener", value, origin=theirs), drafted) is is_one
