"""Standing: one live statement about one thing, and what waits names what stands against it now."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from helpers import LATER, START

from clawmark.facts import standing
from clawmark.model import SHARED, Fact, Proposal


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
    "key", ["pref.editor", "user.editor", "pref.main_editor", "user.work_editor", "project.editor"]
)
def test_a_subject_that_is_known_keeps_its_key(key: str) -> None:
    known = standing.known_key(key, "Helix", [fact("pref.editor", "Kate")])
    assert known == (key if "work" in key or "project" in key else "pref.editor")


@pytest.mark.parametrize(
    ("other", "ends"),
    [
        (fact("pref.editor", "Kate"), True),
        (fact("pref.editor", "helix"), False),
        (fact("user.editor", "Kate"), False),
        (fact("pref.editor", "Kate", SHARED), False),
        (fact("user.work_editor", "Kate"), False),
        (replace(fact("pref.editor", "Kate"), reinforced_at=LATER), False),
    ],
)
def test_what_is_outdated_said_something_else_of_the_same_thing_in_the_same_scope_and_not_later(
    other: Fact, ends: bool
) -> None:
    now = replace(fact("user.editor", "Helix"), observed_at=START + timedelta(days=1))
    assert standing.outdated(now, [other]) == ([other] if ends else [])


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
    assert standing.as_it_stands(replace(second, key="user.package"), [], [first, second]).against is None
