"""Search: what bears on a query, within what may be seen, alive, none twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from helpers import LATER, START, Clock, Log, fake, open_memory, recalled

from clawmark.memory import Memory
from clawmark.model import Turn
from clawmark.recall.search import QUERY_HEAD, QUERY_TAIL, shortened


@pytest.fixture(params=["words", "words and vectors"])
def both(request: pytest.FixtureRequest, db_path: Path, log: Log, clock: Clock) -> Iterator[Memory]:
    """A memory on words alone, and one with vectors."""
    embedder = fake() if "vectors" in request.param else None
    with open_memory(db_path, log, embedder=embedder, clock=clock) as opened:
        yield opened


def texts(memory: Memory, query: str, limit: int = 20) -> list[str]:
    return [e.excerpt for e in recalled(memory, query, limit)]


# --- words of every script ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("第3步 重建idx-cache后12个失效链接归零", "失效链接"),
        ("第3步 重建idx-cache后12个失效链接归零", "cache"),
        ("第3步 重建idx-cache后12个失效链接归零", "idx"),
        ("灰度发布流程", "灰度发布流程文档"),
        ("我对芝麻严重过敏", "芝麻过敏"),
        ("我对芝麻严重过敏", "麻"),
        ("ﾌﾟﾘﾝﾀは廊下", "プリンタ"),
        ("회의실은 3층에 있다", "회의실"),
        ("we met in the café", "cafe\u0301"),
        ("we met in the cafe\u0301", "café"),
        ("die Straße ist gesperrt", "STRASSE"),
        ("die STRASSE ist gesperrt", "Straße"),
        ("we fly to İzmir in May", "izmir"),
        ("the ﬁle is on the shelf", "file"),
        ("המפתח תלוי מאחורי הדוד", "המפתח"),
        ("we paint the boats on Saturday", "painting a boat"),
    ],
)
def test_forms_of_one_word_find_each_other(memory: Memory, log: Log, stored: str, query: str) -> None:
    """E1, E2, E3, E4."""
    log.say("something else entirely, about the weather of last week")
    log.say(stored)
    memory.sync()
    assert texts(memory, query)[:1] == [stored]


@pytest.mark.parametrize(
    "prompt",
    [
        "🦜🦜🦜",
        "",
        "   ",
        "?!",
        "מה שלומך",
        "a" * 200_000,
        "\0",
        'AND OR NOT NEAR( "',
        "own:x",
        "* - ^",
        "'; --",
        "\ud83d x",
    ],
)
def test_every_prompt_gets_an_answer(both: Memory, log: Log, prompt: str) -> None:
    """D9, E4, F9."""
    log.say("the spare key hangs behind the boiler in the cellar")
    both.sync()
    both.search(prompt)
    both.block(Turn(prompt, recent=(prompt,)))


# --- what is found -------------------------------------------------------------------------------------------------------


def test_limit_live_excerpts_are_returned_when_the_best_ones_are_gone(both: Memory, log: Log) -> None:
    """E6."""
    numerals = "ant bee cat dog elk fox gnu hen ibis jay koi lynx mole newt owl pig quail rat seal toad".split()
    for number, animal in enumerate(numerals):
        log.say(f"harbour harbour harbour sighting of the {animal}", f"gone{number}")
    for number in range(10):
        log.say(
            f"a walk to the harbour with visitor{number} and much else besides that day number{number}", f"kept{number}"
        )
    both.sync()
    best = recalled(both, "harbour", 20)
    assert sum(e.conversation.startswith("gone") for e in best) >= 15
    for number in range(len(numerals)):
        log.delete(f"gone{number}")
    found = recalled(both, "harbour", 6)
    assert len(found) == 6
    assert all(e.conversation.startswith("kept") for e in found)


def test_the_answer_stands_among_forty_lines_that_are_alike(both: Memory, log: Log) -> None:
    """E7."""
    for number in range(40):
        log.say("run the tests" + "!" * (number % 4), f"s{number % 7}", after=timedelta(minutes=11))
    log.say("the tests fail because the clock of the runner is set to another time zone", "s3", origin="assistant")
    both.sync()
    found = texts(both, "run the tests", 6)
    assert any("another time zone" in one for one in found)
    assert len([one for one in found if one.startswith("run the tests")]) == 1


def test_what_was_asked_is_no_answer_to_itself(both: Memory, log: Log) -> None:
    log.say("where does the spare key hang?")
    log.say("behind the boiler in the cellar", origin="assistant")
    both.sync()
    assert "where does the spare key hang?" not in texts(both, "where does the spare key hang?")


def test_an_exact_old_answer_is_not_buried_by_newer_lines(both: Memory, log: Log) -> None:
    log.say("the boiler's serial number is KX-4471", "old", at=LATER - timedelta(days=2000))
    for number in range(30):
        log.say(f"the boiler makes a noise again, day {number}", f"n{number}", at=LATER - timedelta(days=number))
    both.sync()
    assert (
        texts(both, "what is the serial number of the boiler KX-4471", 6)[0] == "the boiler's serial number is KX-4471"
    )


def test_an_answer_is_found_by_the_words_of_its_question(both: Memory, log: Log) -> None:
    log.say("and which paint did we choose for the shed?")
    log.say("copper green, two coats", origin="assistant")
    for number in range(20):
        log.say(f"unrelated line {number} about trains", f"t{number}")
    both.sync()
    assert "copper green, two coats" in texts(both, "paint of the shed", 3)


def test_nothing_is_found_by_words_that_nobody_said(memory: Memory, log: Log) -> None:
    for number in range(30):
        log.say(f"line {number} about the harbour")
    memory.sync()
    assert texts(memory, "zeppelin") == []


def test_what_is_no_nearer_than_the_rest_is_not_recalled_by_its_vector(db_path: Path, log: Log, clock: Clock) -> None:
    for number in range(30):
        log.say(f"sentence {number} speaks of harbour{number} {'and so on ' * (number % 5)}")
    with open_memory(db_path, log, embedder=fake(dimension=1024), clock=clock) as memory:
        memory.sync()
        assert texts(memory, "zeppelin and") == []


@pytest.mark.parametrize("lines", [1, 30])
def test_what_is_near_to_nothing_is_not_recalled_by_its_vector(
    db_path: Path, log: Log, clock: Clock, lines: int
) -> None:
    for number in range(lines):
        log.say(f"sentence {number} speaks of harbour{number} and of little else")
    with open_memory(db_path, log, embedder=fake(dimension=1024), clock=clock) as memory:
        memory.sync()
        assert texts(memory, "zeppelin") == []


# --- what may be seen ----------------------------------------------------------------------------------------------------


def test_better_hits_of_another_scope_do_not_crowd_out_mine(both: Memory, log: Log) -> None:
    """Scope is a predicate inside both lists."""
    log.session("mine", scope="main")
    for number in range(500):
        log.session(f"w{number}", scope="work")
        log.say(f"harbour dues {number}", f"w{number}")
    log.say("last spring we also paid something like dues for a berth in that harbour, it was not little", "mine")
    both.sync()
    found = recalled(both, "harbour dues", 6, scope="main")
    assert [e.conversation for e in found] == ["mine"]


def test_a_dense_leg_looks_inside_the_scope_too(db_path: Path, log: Log, clock: Clock) -> None:
    log.session("mine", scope="main")
    for number in range(400):
        log.session(f"w{number}", scope="work")
        log.say(f"the zeppelin lands here {number}", f"w{number}")
    for number in range(60):
        log.say(f"nothing of note happened on that day {number}", "mine")
    log.say("a zeppelinlike thing landed", "mine")
    with open_memory(db_path, log, embedder=fake(dimension=512), clock=clock) as memory:
        memory.sync()
        snapshot_scope = {e.conversation for e in recalled(memory, "zeppelinlike lands here", 6, scope="main")}
        assert snapshot_scope == {"mine"}


def test_one_agent_never_sees_another(both: Memory, log: Log) -> None:
    """H4."""
    log.session("a", scope="main")
    log.session("b", scope="work")
    log.say("the gift for Lin is a kayak", "a")
    log.say("the release for Lin is on Friday", "b")
    both.sync()
    assert [e.conversation for e in recalled(both, "Lin kayak release", scope="work")] == ["b"]
    assert [e.conversation for e in both.block(Turn("what about Lin and the kayak?", scope="work")).recalled] == ["b"]
    assert {e.conversation for e in recalled(both, "Lin kayak release")} == {"a", "b"}


def test_a_participants_words_are_found_only_in_their_own_session(both: Memory, log: Log) -> None:
    """H4."""
    log.session("group", kind="group")
    log.say("the caterer is called Bonsmak", "group", origin="participant", author="Jonas")
    log.say("the caterer comes at noon", "direct")
    log.say("and I asked the caterer for lentils", "group")
    both.sync()

    def seen(**changes: object) -> set[str]:
        turn = Turn("who is the caterer?", scope="main", **changes)  # type: ignore[arg-type]
        return {e.excerpt for e in both.block(turn).recalled}

    assert "the caterer is called Bonsmak" not in seen()
    assert "the caterer is called Bonsmak" not in seen(session="direct")
    assert "and I asked the caterer for lentils" in seen()
    assert not [e for e in recalled(both, "caterer Bonsmak") if e.author]


def test_a_group_sees_its_own_session_alone_and_no_fact(both: Memory, log: Log) -> None:
    """H4."""
    log.session("group", kind="group")
    log.say("the caterer is called Bonsmak", "group", origin="participant", author="Jonas", window="old")
    log.say("a line of the newest window", "group", window="new")
    log.say("the caterer must not know that we are broke", "direct")
    both.sync()
    both.set("user.allergy", "caterer: no sesame")
    built = both.block(Turn("who is the caterer?", scope="main", session="group", kind="group"))
    assert built.facts == ()
    assert [e.excerpt for e in built.recalled] == ["the caterer is called Bonsmak"]
    assert [e.author for e in built.recalled] == ["Jonas"]


def test_what_the_model_still_sees_is_left_out(both: Memory, log: Log) -> None:
    log.say("the boat is called Sira", "s", window="w1")
    log.say("the boat is red", "s", window="w2")
    log.say("the boat is for sale", "other")
    both.sync()
    shown = {e.excerpt for e in both.block(Turn("what about the boat?", session="s")).recalled}
    assert shown == {"the boat is called Sira", "the boat is for sale"}


def test_a_copy_that_the_model_still_sees_is_left_out(both: Memory, log: Log) -> None:
    """A fork begins with the lines of another session."""
    said = log.say("the boat that we looked at in spring is called Sira", "first")
    log.copy(said, "fork")
    both.sync()
    assert not both.block(Turn("what is the boat called?", session="fork")).recalled


def test_no_answer_names_a_session_that_was_deleted(both: Memory, log: Log) -> None:
    said = log.say("the boat that we looked at in spring is called Sira", "first")
    log.copy(said, "fork")
    both.sync()
    log.delete("first")
    both.sync()
    assert [e.conversation for e in recalled(both, "boat called Sira")] == ["fork"]


# --- long queries ----------------------------------------------------------------------------------------------------------


def test_a_long_query_keeps_its_head_and_tail() -> None:
    """D9."""
    said = "head " * 400 + "x" * 200_000 + " the tail asks"
    short = shortened(said)
    assert len(short) <= QUERY_HEAD + QUERY_TAIL + 1 <= 2001
    assert short.startswith("head") and short.endswith("the tail asks")
    assert shortened("short") == "short"


def test_a_long_query_is_cut_between_visible_characters() -> None:
    """F10."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    said = "a" * (QUERY_HEAD - 1) + family + "b" * 3000
    assert shortened(said).split("\n")[0] in ("a" * (QUERY_HEAD - 1), "a" * (QUERY_HEAD - 1) + family)


def test_a_search_writes_nothing(both: Memory, log: Log, db_path: Path) -> None:
    log.say("the boat is called Sira", at=START)
    both.sync()
    before = db_path.read_bytes()
    both.search("boat")
    both.block("what is the boat called?")
    assert db_path.read_bytes() == before
