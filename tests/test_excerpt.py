"""Read-back: the text as the log holds it now, checked, cleaned again, cut to what was asked about."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from helpers import START, Clock, Log, open_memory, query, recalled

from clawmark import clean
from clawmark.guard.secrets import Secret
from clawmark.memory import Memory
from clawmark.model import Gone, Message, Turn, Wanted
from clawmark.recall.excerpt import EXCERPT_LENGTH, Reader
from clawmark.store.passages import EPOCH

NEEDLE = "the spare key hangs behind the boiler"


def a_long_message(at: int = 4200, length: int = 5000) -> str:
    filler = "The weather of that week was mild and the garden needed nothing. "
    said = (filler * 200)[:at] + f" {NEEDLE}. " + filler * 200
    return said[:length]


def test_a_needle_at_character_4200_is_found_and_shown(memory: Memory, log: Log) -> None:
    """R1."""
    log.say("an earlier line about something else altogether")
    log.say(a_long_message())
    memory.sync()
    found = recalled(memory, "where is the spare key of the boiler?", limit=3)
    assert NEEDLE in found[0].excerpt
    assert len(found[0].excerpt) <= EXCERPT_LENGTH == 400


def test_a_long_message_is_recalled_once_in_a_window_of_one_line(memory: Memory, log: Log) -> None:
    log.say("\n\n".join(f"Paragraph {n} deals with plank {n} of the hull and its paint." for n in range(200)))
    memory.sync()
    for found in recalled(memory, "which paint for plank 117 of the hull"):
        assert len(found.excerpt) <= 400
        assert "\n" not in found.excerpt


@pytest.mark.parametrize("at", [900, 1000, 1050, 1100, 1150, 1200, 1250])
def test_a_needle_is_shown_once_wherever_parts_meet(memory: Memory, log: Log, at: int) -> None:
    said = " ".join(f"filler{n}" for n in range(500))
    log.say(f"{said[:at]} {NEEDLE} {said[at:]}")
    memory.sync()
    assert len([e for e in recalled(memory, "spare key boiler", 6) if NEEDLE in e.excerpt]) == 1


def test_a_text_that_changed_since_is_not_shown(memory: Memory, log: Log) -> None:
    said = log.say("the boat is called Sira")
    memory.sync()
    log.edit(said, "the boat is called Vindil")
    assert not recalled(memory, "boat called")
    memory.sync()
    assert [e.excerpt for e in recalled(memory, "boat called")] == ["the boat is called Vindil"]


def test_a_text_is_read_back_by_its_ref_when_the_log_was_renamed(memory: Memory, log: Log) -> None:
    log.say("the boat is called Sira", "a")
    memory.sync()
    log.rename("a", "a.reset")
    assert [e.excerpt for e in recalled(memory, "boat called")] == ["the boat is called Sira"]


def test_a_rule_added_since_masks_what_was_indexed_before(memory: Memory, log: Log) -> None:
    log.say("the gate opens with the word opensesame as always")
    memory.sync()
    real = clean.secrets.find

    def stricter(text: str) -> list[Secret]:
        at = text.find("opensesame")
        return [Secret(at, at + 10, "password")] if at >= 0 else list(real(text))

    clean.secrets.find, before = stricter, clean.secrets.find  # type: ignore[assignment]
    try:
        (found,) = recalled(memory, "gate opens word")
    finally:
        clean.secrets.find = before
    assert "opensesame" not in found.excerpt
    assert "[REDACTED:password]" in found.excerpt


def test_a_path_ruled_out_since_is_not_shown(db_path: Path, log: Log, clock: Clock) -> None:
    log.say("the notes lie in /home/mira/vault/notes.txt as before")
    with open_memory(db_path, log, clock=clock) as memory:
        memory.sync()
        assert recalled(memory, "notes")
    with open_memory(db_path, log, clock=clock, never_index_paths=("/home/mira/vault",)) as memory:
        assert not recalled(memory, "notes")


def test_a_secret_is_masked_in_words_and_excerpt(memory: Memory, log: Log, db_path: Path) -> None:
    """H1."""
    token = "ghp_" + secrets.token_hex(18)
    log.say(f"my token for the deploy job is {token}, keep it")
    memory.sync()
    (found,) = recalled(memory, "token deploy job")
    assert token not in found.excerpt and "[REDACTED:" in found.excerpt
    assert not [e for e in recalled(memory, f"was it {token}?") if token in e.excerpt]
    assert token.encode() not in b"".join(path.read_bytes() for path in db_path.parent.iterdir())


def test_parts_of_an_older_recipe_are_still_shown(memory: Memory, log: Log, db_path: Path) -> None:
    log.say(a_long_message())
    memory.sync()
    query(db_path, "UPDATE passages SET recipe = recipe - 1")
    assert any(NEEDLE in e.excerpt for e in recalled(memory, "spare key boiler"))


def test_two_logs_of_one_utterance_stand_in_for_each_other(memory: Memory, log: Log) -> None:
    said = log.say("the spare key hangs on the hook behind the boiler", "a")
    log.copy(said, "b")
    memory.sync()
    del log.sessions["b"]
    assert len(recalled(memory, "spare key boiler")) == 1


def test_who_said_it_and_when_is_what_the_row_says(memory: Memory, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry read alone cannot always tell: a time taken from the line before, a sender named by the session."""
    log.say("the spare key hangs behind the boiler", "a")
    log.session("g", kind="group")
    log.say("the participants key hangs in the shed", "g", origin="participant", author="Jonas", window="w1")
    log.say("a line of the newest window", "g", window="w2")
    memory.sync()
    get = log.get

    def alone(wanted: Sequence[Wanted]) -> list[Message | Gone]:
        answers = get(wanted)
        return [
            m if isinstance(m, Gone) else replace(m, origin="host", note="cron", author="nobody", at=EPOCH)
            for m in answers
        ]

    monkeypatch.setattr(log, "get", alone)
    (found,) = recalled(memory, "spare key boiler")
    assert (found.at, found.role, found.author) == (START + timedelta(minutes=1), "user", None)
    (theirs,) = memory.block(Turn("where is the key of the participants", session="g", scope="main")).recalled
    assert (theirs.role, theirs.author) == ("user", "Jonas")
    built = memory.block("where does the spare key hang?")
    assert '- (2026-01-05, you) "the spare key hangs behind the boiler"' in built.text


def test_only_parts_of_todays_recipe_are_read_back_exactly(memory: Memory, log: Log, db_path: Path) -> None:
    log.say(a_long_message())
    log.say("a short sentence about the lighthouse")
    memory.sync()
    ids = [row[0] for row in query(db_path, "SELECT id FROM passages ORDER BY id")]
    reader = Reader({log.name: log}, clean.Rules())
    query(db_path, "UPDATE passages SET recipe = recipe - 1 WHERE id < ?", ids[-1])
    with memory._reading() as connection:
        assert [live.passage_id for live in reader.read(connection, ids)] == ids
        assert [live.passage_id for live in reader.read(connection, ids, exact=True)] == ids[-1:]


def test_a_long_message_is_cleaned_once_for_all_its_parts(
    memory: Memory, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say("a sentence about the boat and its many sails. " * 900)
    memory.sync()
    cleaned: list[int] = []
    clean_one = clean.clean

    def counted(message: Message, rules: clean.Rules) -> clean.Kept | clean.Dropped:
        cleaned.append(len(message.text))
        return clean_one(message, rules)

    monkeypatch.setattr(clean, "clean", counted)
    assert recalled(memory, "boat sails")
    assert len(cleaned) == 1
