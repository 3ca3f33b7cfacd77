"""What a session was shown: nothing twice where the host keeps it, and a gate that counts across restarts."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import apsw
import pytest
from helpers import Clock, Log, open_memory, query, residue

from clawmark.memory import Memory
from clawmark.model import Block, Turn
from clawmark.store import events, sessions

ASKED = "tell me again what we said about the boat, its name, its colour and everything else"
KEEPS = "claude-code"


@pytest.fixture
def memory(memory: Memory, log: Log) -> Memory:
    for number, said in enumerate(["the boat is called Sira", "we painted the boat grey", "the boat has a new sail"]):
        log.say(said, f"s{number}")
    for number in range(4):
        log.say(f"the boat lay at pier number {number}", f"p{number}")
    memory.sync()
    memory.set("pref.boat", "small ones")
    return memory


def given(memory: Memory, prompt: str = ASKED, *, host: str = KEEPS, session: str | None = "now") -> Block:
    turn = Turn(prompt, host=host, session=session)
    built = memory.block(turn)
    memory.shown(turn, built)
    return built


def shown(built: Block) -> set[str]:
    return {excerpt.excerpt for excerpt in built.recalled}


def test_a_host_that_keeps_blocks_is_given_nothing_twice(memory: Memory, clock: Clock) -> None:
    """A3."""
    first = given(memory)
    assert len(first.facts) == 1 and len(first.recalled) == 3
    clock.advance(seconds=61)
    second = given(memory)
    assert second.facts == () and len(second.recalled) == 3 and not shown(first) & shown(second)
    memory.set("pref.boat", "big ones")
    clock.advance(seconds=61)
    third = given(memory)
    assert [fact.value for fact in third.facts] == ["big ones"] and not shown(third) & (shown(first) | shown(second))


def test_a_prompt_with_nothing_new_gives_the_empty_block(memory: Memory) -> None:
    given(memory)
    assert all(given(memory, f"{ASKED} {number}").text == "" for number in range(9))


def test_a_host_that_takes_blocks_away_is_given_the_same_bytes_again(memory: Memory, clock: Clock) -> None:
    first = given(memory, host="openclaw")
    clock.advance(seconds=1)
    assert given(memory, host="openclaw").text == first.text != ""


def test_the_gate_counts_what_was_given_and_survives_a_restart(
    memory: Memory, db_path: Path, log: Log, clock: Clock
) -> None:
    given(memory)
    assert given(memory).skipped == "cooldown"
    memory.close()
    with open_memory(db_path, log, clock=clock) as again:
        assert given(again).skipped == "cooldown"
        for _ in range(4):
            clock.advance(seconds=61)
            log.say(f"the boat was seen at {clock.now}", f"{clock.now:%H%M%S}")
            again.sync()
            assert given(again).recalled
        clock.advance(seconds=61)
        assert given(again).skipped == "budget"
        assert given(again, session="another").recalled


def test_a_preview_counts_for_nothing(memory: Memory) -> None:
    turn = Turn(ASKED, host=KEEPS, session="now")
    assert memory.block(turn) == memory.block(turn)
    assert given(memory).recalled


def test_a_model_that_has_forgotten_is_shown_all_again(memory: Memory, clock: Clock) -> None:
    first = given(memory)
    memory.renew(KEEPS, "now")
    clock.advance(seconds=61)
    assert given(memory).text == first.text


def test_the_trail_says_why_scores_and_refs_and_never_text(memory: Memory, db_path: Path, clock: Clock) -> None:
    given(memory)
    given(memory, "hello")
    given(memory)
    clock.advance(seconds=61)
    given(
        memory, "something that nobody ever spoke of: the zeppelins of Friedrichshafen, in nineteen hundred and eight"
    )
    trail = [(event.event_type, json.loads(event.detail or "")) for event in reversed(memory.events(4))]
    assert [event for event, _ in trail] == ["recall_surfaced", "recall_skip", "recall_skip", "recall_empty"]
    assert [said.get("reason") for _, said in trail] == [None, "trivial", "cooldown", None]
    assert all(said["session"] == "now" for _, said in trail)
    for source, ref, score in trail[0][1]["excerpts"]:
        assert source == "log" and ref and score >= 0
    memory.close()
    assert not residue(db_path.parent, "zeppelins", "tell me again")


def test_what_is_forgotten_is_in_no_state_of_a_session(memory: Memory, db_path: Path) -> None:
    memory.set("pref.word", "quetzalcoatl")
    given(memory)
    memory.forget("pref.word")
    memory.close()
    assert not residue(db_path.parent, "quetzalcoatl")


def test_what_cannot_be_noted_is_one_line_and_no_error(
    memory: Memory, db_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turn = Turn(ASKED, host=KEEPS, session="now")
    built = memory.block(turn)
    other = apsw.Connection(str(db_path))
    other.execute("BEGIN IMMEDIATE")
    with caplog.at_level(logging.WARNING):
        memory.shown(turn, built)
    other.execute("ROLLBACK")
    assert [record.message.split()[0] for record in caplog.records] == ["shown_not_noted"]
    assert query(db_path, "SELECT count(*) FROM sessions") == [(0,)]


def test_events_of_recall_are_few_and_those_of_facts_all(
    memory: Memory, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G8."""
    monkeypatch.setattr(events, "MOST_NOISE", 3)
    for number in range(8):
        given(memory, "hello", session=f"n{number}")
    memory.sync()
    skips = [json.loads(e.detail or "")["session"] for e in memory.events() if e.event_type == "recall_skip"]
    assert skips == ["n7", "n6", "n5"]
    assert [e.memory_key for e in memory.events() if e.event_type == "create"] == ["pref.boat"]


def test_typed_is_what_the_owner_said_in_one_session(memory: Memory, log: Log) -> None:
    log.say("I moved to Porto", "t")
    log.say("noted", "t", origin="assistant")
    log.say("and I bought a bicycle " + "with many gears " * 200, "t")
    log.say("a red one", "t")
    log.say("in a group I said this", "g")
    memory.sync()
    assert [said.text for said in memory.typed("t")] == ["I moved to Porto", "a red one"]
    assert memory.typed("t", "main") == memory.typed("t") and memory.typed("t", "work") == []
    assert memory.typed("nobody") == []


def test_a_mark_of_changes_moves_with_every_hand(memory: Memory, db_path: Path, log: Log, clock: Clock) -> None:
    mark = memory.changes()
    assert memory.changes() == mark
    memory.forget("pref.boat")
    own = memory.changes()
    with open_memory(db_path, log, clock=clock) as other:
        other.set("pref.boat", "grey")
    assert len({mark, own, memory.changes()}) == 3


def test_a_block_of_facts_alone_spends_nothing_of_the_gate(memory: Memory, db_path: Path, clock: Clock) -> None:
    first = given(memory, "")
    assert first.facts and not first.recalled
    assert query(db_path, "SELECT blocks, recalls, recalled_at FROM sessions") == [(1, 0, None)]
    assert given(memory).recalled


def test_an_empty_block_is_no_block(memory: Memory, db_path: Path) -> None:
    given(memory, "", session="s")
    given(memory, "", session="s")
    assert query(db_path, "SELECT blocks FROM sessions") == [(1,)]


def test_recall_that_is_switched_off_leaves_no_event(db_path: Path, log: Log, clock: Clock) -> None:
    with open_memory(db_path, log, clock=clock, recall="off") as off:
        given(off)
        assert off.events() == []


def test_anothers_word_for_the_same_value_is_shown_again(memory: Memory) -> None:
    memory.set("pref.editor", "Helix", writer="agent")
    assert len(given(memory).facts) == 2
    assert given(memory).facts == ()
    memory.set("pref.editor", "Helix")
    assert [(fact.key, fact.source) for fact in given(memory).facts] == [("pref.editor", "user")]


def test_of_very_much_that_was_shown_the_newest_is_remembered(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_REMEMBERED", 1)
    memory.set("pref.editor", "Helix")
    given(memory, "")
    assert [fact.key for fact in given(memory, "").facts] == ["pref.boat"], "facts are shown in the order of their keys"
