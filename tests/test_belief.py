"""Belief: who may state a fact, and that whatever decides a proposal understands its name alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from helpers import START, Clock, Log, open_memory, query
from test_extract import Model, with_model

from clawmark.errors import Refused, UsageError
from clawmark.facts import standing
from clawmark.memory import Memory
from clawmark.model import SHARED, Proposal, Said, Writer
from clawmark.testing import ListSource


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "memory.db", ListSource()) as opened:
        yield opened


def proposed(memory: Memory, key: str = "user.boat", value: str = "a blue sloop") -> Proposal:
    return memory.propose("set", key, value, "main", origin="agent", reason="unsupported")


def test_what_an_extractor_claims_is_stated_by_nobody(memory: Memory) -> None:
    writer: Any = "extracted"
    with pytest.raises(UsageError, match="extracted"):
        memory.set("user.boat", "a blue sloop", writer=writer)
    assert (memory.facts(), memory.events()) == ([], [])


def test_an_event_that_says_nothing_more_holds_no_detail(memory: Memory) -> None:
    memory.set("user.boat", "a blue sloop")
    assert query(memory.path, "SELECT event_type, detail FROM memory_events") == [("create", None)]


def test_prompts_are_answered_while_what_waits_is_compared(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[bool] = []

    def compared(one: Proposal, *_: object) -> Proposal:
        prompt = Thread(target=memory.block, args=("what do you know of my boat",))
        prompt.start()
        prompt.join(5)
        answered.append(not prompt.is_alive())
        return one

    one = proposed(memory)
    monkeypatch.setattr(standing, "as_it_stands", compared)
    assert memory.proposals() == [memory.proposal(one.name)] == [one]
    assert answered == [True, True]


DECIDING: list[Callable[[Memory, str], object]] = [
    Memory.proposal,
    Memory.accept,
    Memory.reject,
    Memory.defer,
]


@pytest.mark.parametrize("decide", DECIDING)
def test_a_name_is_the_number_alone_or_with_the_head_of_the_hash(
    memory: Memory, decide: Callable[[Memory, str], object]
) -> None:
    for digits in (0, 4, 6, 12):
        one = proposed(memory, f"user.boat{digits}", f"a blue sloop of {digits} tons")
        decide(memory, f" {one.id}-{one.content_hash[:digits]}".removesuffix("-"))


@pytest.mark.parametrize("decide", DECIDING)
@pytest.mark.parametrize("name", ["", "one", "-", "²", "٣", "-1", "1.0", "999", "9" * 40, "999-abcdef"])
def test_what_names_nothing_is_said_to_name_nothing(
    memory: Memory, decide: Callable[[Memory, str], object], name: str
) -> None:
    one = proposed(memory)
    with pytest.raises(UsageError, match="nothing waits under"):
        decide(memory, name)
    assert memory.proposals() == [one]


@pytest.mark.parametrize("decide", DECIDING)
def test_a_name_that_does_not_bind_or_binds_to_other_words_decides_nothing(
    memory: Memory, decide: Callable[[Memory, str], object]
) -> None:
    one = proposed(memory)
    other = "0" if one.content_hash[0] != "0" else "1"
    for said, told in (
        ("", "too little"),
        (one.content_hash[:3], "too little"),
        (other + one.content_hash[1:6], "something else"),
        (one.content_hash + "0", "something else"),
    ):
        with pytest.raises(UsageError, match=f"{told}.* {one.name}"):
            decide(memory, f"{one.id}-{said}")
    assert memory.proposals() == [one]


@pytest.mark.parametrize("decide", DECIDING)
def test_what_is_decided_is_decided_once(memory: Memory, decide: Callable[[Memory, str], object]) -> None:
    one = proposed(memory)
    memory.reject(one.name)
    for name in (str(one.id), one.name):
        with pytest.raises(UsageError, match="rejected already"):
            decide(memory, name)


# --- one live statement about one thing -------------------------------------------------------------------------------


def live(memory: Memory) -> dict[str, str]:
    return {fact.key: fact.value for fact in memory.facts()}


def said_at(memory: Memory, key: str, value: str, at: datetime, **more: Any) -> Proposal:
    return memory.propose("set", key, value, "main", origin="owner", reason="unsupported", observed_at=at, **more)


@pytest.mark.parametrize("scope", ["main", SHARED])
def test_a_yes_takes_the_place_of_what_stands_under_another_key_of_the_subject(memory: Memory, scope: str) -> None:
    memory.set("user.current_city", "Ghent", scope, observed_at=START)
    one = said_at(memory, "user.city", "Porto", START + timedelta(days=1))
    (shown,) = memory.proposals()
    assert (shown.conflict, shown.against) == ("conflict_candidate", "user.current_city")
    fact = memory.accept(one.name)
    assert fact is not None and (fact.key, fact.scope) == ("user.current_city", scope)
    assert live(memory) == {"user.current_city": "Porto"}
    assert [decided.edited for decided in memory.decisions()] == [False]


def test_a_yes_leaves_what_only_may_be_of_the_subject_and_says_what_that_is(memory: Memory) -> None:
    memory.set("user.city", "Berlin", "main", observed_at=START)
    one = said_at(memory, "pref.favourite_city", "Paris", START + timedelta(days=1))
    (shown,) = memory.proposals()
    assert (shown.conflict, shown.against) == ("conflict_candidate", "user.city")
    memory.accept(one.name)
    assert live(memory) == {"user.city": "Berlin", "pref.favourite_city": "Paris"}


def test_a_yes_ends_what_was_hidden_under_another_key_of_the_subject(memory: Memory) -> None:
    memory.set("user.current_city", "Ghent", "main", observed_at=START)
    memory.hide("user.current_city", "main")
    memory.accept(said_at(memory, "user.city", "Porto", START + timedelta(days=1)).name)
    assert memory.unhide("user.current_city") == [] and live(memory) == {"user.city": "Porto"}


def test_a_yes_to_what_was_said_earlier_says_what_becomes_of_the_later(memory: Memory) -> None:
    one = said_at(memory, "user.city", "Porto", START)
    memory.set("user.current_city", "Ghent", "main")
    (shown,) = memory.proposals()
    assert (shown.conflict, shown.against, shown.name) == ("conflict_candidate", "user.current_city", one.name)
    with pytest.raises(UsageError, match=r"user\.current_city says something else since"):
        memory.accept(one.name)
    assert live(memory) == {"user.current_city": "Ghent"}
    memory.accept(one.name, way="supersede")
    assert live(memory) == {"user.city": "Porto"}
    (why,) = memory.why("user.current_city")
    assert [one.old_value for one in why.history if one.event_type == "supersede"] == ["Ghent"]


def test_a_yes_that_names_a_key_or_keeps_both_leaves_what_stands_there(memory: Memory) -> None:
    memory.set("user.current_city", "Ghent", "main", observed_at=START)
    later = START + timedelta(days=1)
    memory.accept(said_at(memory, "user.city", "Porto", later).name, way="keep_both")
    assert live(memory) == {"user.current_city": "Ghent", "user.city": "Porto"}
    memory.accept(said_at(memory, "user.town", "Lund", later).name, key="user.usual_city")
    assert live(memory) == {"user.current_city": "Ghent", "user.city": "Porto", "user.usual_city": "Lund"}


def test_of_two_that_wait_the_later_names_the_opposite_that_it_would_stand_beside(memory: Memory) -> None:
    """R27."""
    first = proposed(memory, "pref.packages", "Prefer pnpm over npm in this monorepo")
    second = proposed(memory, "lesson.monorepo_tools", "Avoid pnpm in this monorepo")
    relations = {one.id: (one.conflict, one.against) for one in memory.proposals()}
    assert relations == {first.id: ("none", None), second.id: ("conflict_candidate", "pref.packages")}
    memory.reject(first.name)
    assert [(one.conflict, one.against) for one in memory.proposals()] == [("none", None)]
    third = proposed(memory, "pref.packages", "Prefer pnpm over npm in this repository, always")
    memory.accept(second.name, way="supersede")
    assert live(memory) == {"lesson.monorepo_tools": "Avoid pnpm in this monorepo"}, "a yes ends facts alone"
    assert [one.id for one in memory.proposals()] == [third.id]


@pytest.mark.parametrize(
    ("key", "value", "is_one"),
    [
        ("user.office_city", "Lisbon", False),
        ("user.current_city", "Lisbon", True),
        ("user.home_city", "Lisbon", False),
        ("pref.holiday", "lisbon", False),
    ],
)
def test_one_short_value_is_one_statement_only_about_one_thing(
    memory: Memory, key: str, value: str, is_one: bool
) -> None:
    first = proposed(memory, "user.city", "Lisbon")
    assert (proposed(memory, key, value).id == first.id) is is_one
    sentence = proposed(memory, "pref.tea", "green tea from a big blue pot")
    assert proposed(memory, "lesson.kitchen", "Green tea from a big blue pot").id == sentence.id


@pytest.mark.parametrize("origin", ["owner", "agent"])
@pytest.mark.parametrize("again", ["user.employer", "pref.employer", "user.current_employer"])
def test_a_rejection_of_a_short_value_is_of_its_subject(memory: Memory, origin: str, again: str) -> None:
    def propose(key: str, value: str) -> Proposal:
        return memory.propose("set", key, value, "main", origin=origin, reason="unsupported", observed_at=START)

    memory.reject(propose("user.employer", "Firefox").name)
    assert propose("pref.browser", "Firefox").state == "pending"
    with pytest.raises(Refused, match="REVIEW"):
        propose(again, "firefox")
    memory.set(again, "Firefox", "main")
    assert propose("user.employer", "firefox").state == "pending", "the person said it since"


@pytest.mark.parametrize("said", ["My shell is fish.", "My shell is zsh."])
def test_whoever_wanted_an_ended_fact_forgotten_is_answered(memory: Memory, said: str) -> None:
    memory.set("pref.default_shell", "fish", "main", writer="agent")
    memory.hide("pref.default_shell", "main")
    memory.propose("forget", "pref.default_shell", "fish", "main", origin="agent", reason="unasked")
    memory.set("pref.shell", said.split()[-1].strip("."), "main", typed=Said(said, START))
    assert memory.proposals() == [] and list(live(memory)) == ["pref.shell"]
    assert memory.events()[1].event_type == "answer"


GARDEN = "Anna Berger looks after the garden and pond"


def test_a_strangers_proposal_takes_nothing_of_the_owners_own_sentence(db_path: Path, log: Log, clock: Clock) -> None:
    """Neither the message as evidence, nor what a yes or a no to it means."""
    model = Model({f"{GARDEN}.": [("user.gardener", GARDEN, 0.9)]})
    with with_model(db_path, log, clock, model) as memory:
        theirs = proposed(memory, "ref.trusted_admin", GARDEN)
        log.say(f"{GARDEN}.", "s1")
        memory.sync()
        strangers, owners = memory.proposals()
        assert (strangers.name, strangers.confidence) == (theirs.name, theirs.confidence)
        assert (owners.key, owners.origin) == ("user.gardener", "owner")
        assert query(db_path, "SELECT DISTINCT key FROM evidence") == [("user.gardener",)]
        memory.reject(theirs.name)
        assert memory.proposals() == [owners]
        with pytest.raises(Refused, match="REVIEW"):
            proposed(memory, "ref.trusted_admin", GARDEN)
        memory.accept(owners.name)
        assert live(memory) == {"user.gardener": GARDEN}


@pytest.mark.parametrize("value", [GARDEN, "Anna Berger"])
def test_a_no_to_what_others_said_keeps_out_nothing_that_the_owner_says_afterwards(
    db_path: Path, log: Log, clock: Clock, value: str
) -> None:
    with open_memory(db_path, log, clock=clock) as memory:
        memory.reject(proposed(memory, "user.gardener", value).name)
        with pytest.raises(Refused, match="REVIEW"):
            proposed(memory, "user.gardener", value)
        with pytest.raises(Refused, match="REVIEW"):
            said_at(memory, "user.gardener", value, clock.now)
        clock.advance(minutes=1)
        memory.reject(said_at(memory, "user.gardener", value, clock.now).name)
        for origin in ("owner", "agent"):
            with pytest.raises(Refused, match="REVIEW"):
                memory.propose("set", "user.gardener", value, "main", origin=origin, reason="unsupported")


def test_of_one_subject_the_owners_words_take_the_place_of_the_same_of_others(memory: Memory) -> None:
    theirs = proposed(memory, "user.current_gardener", "Anna")
    own = said_at(memory, "user.gardener", "Anna", START)
    assert memory.proposals() == [own] and own.id != theirs.id
    with pytest.raises(UsageError, match="superseded"):
        memory.accept(theirs.name)
    assert proposed(memory, "user.current_gardener", "anna").id == own.id
    assert said_at(memory, "pref.gardener", "Anna", START).id == own.id


@pytest.mark.parametrize("by_hand", [True, False])
def test_what_waits_and_says_what_is_stored_in_other_words_waits_no_longer(memory: Memory, by_hand: bool) -> None:
    """R5."""
    proposed(memory, "pref.tea", "likes decaffeinated tea")
    other = proposed(memory, "pref.tea", "prefers tea without caffeine")
    assert len(memory.proposals()) == 2
    if by_hand:
        memory.set("pref.tea", "prefers tea without caffeine", "main")
    else:
        memory.accept(other.name)
    assert memory.proposals() == []


def test_what_waits_under_another_key_of_the_subject_is_answered_too(memory: Memory) -> None:
    proposed(memory, "user.editor", "Helix")
    work = proposed(memory, "user.work_editor", "Helix")
    memory.set("pref.editor", "Helix", "main")
    assert memory.proposals() == [work]


@pytest.mark.parametrize("writer", ["user", "agent"])
def test_what_is_refused_leaves_rule_hash_and_length(memory: Memory, writer: Writer) -> None:
    """R14. Two refusals of one value can be told to be of one."""
    secret = "ghp_" + "".join("abcd1234EFGH"[i % 12] for i in range(36))
    for _ in range(2):
        with pytest.raises(Refused):
            memory.set("user.note", secret, writer=writer)
    details = [json.loads(event.detail or "") for event in memory.events()]
    assert details[0] == details[1] and details[0].keys() == {"rule", "hash", "length"}
    assert (details[0]["rule"], details[0]["length"]) == ("SECRET", len(secret))
