"""Prune: what the host deleted goes; what could not be read just now stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers import Log, dump, query, recalled

from clawmark.jobs import prune as job
from clawmark.memory import Memory
from clawmark.model import Stream


def test_a_deleted_session_is_not_recalled(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "gone")
    log.say("the boat is called Sira", "kept")
    memory.sync()
    log.delete("gone")
    assert memory.sync().pruned == 1
    assert [e.conversation for e in recalled(memory, "kayak boat surprise")] == ["kept"]


def test_a_deleted_session_is_not_recalled_before_the_next_pass_either(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "gone")
    memory.sync()
    log.delete("gone")
    assert not recalled(memory, "kayak")


def test_a_stream_that_comes_back_is_read_again(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "a")
    memory.sync()
    kept = log.sessions["a"]
    log.delete("a")
    memory.sync()
    log.sessions["a"] = kept
    assert memory.sync().kept == 1
    assert len(recalled(memory, "kayak")) == 1


def test_nothing_is_deleted_while_a_stream_cannot_be_read(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "a")
    log.say("the boat is called Sira", "b")
    memory.sync()
    log.delete("a")
    log.broken.add("b")
    log.say("one more", "b")
    assert memory.sync().pruned == 0
    log.broken.clear()
    assert memory.sync().pruned == 1


def test_a_setting_that_points_elsewhere_deletes_nothing(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "a")
    memory.sync()
    here, log.sessions, log.place = log.sessions, {}, "elsewhere"
    log.say("the boat is called Sira", "b")
    assert memory.sync().pruned == 0
    log.sessions, log.place = here, "memory"
    memory.sync()
    assert len(recalled(memory, "kayak")) == 1


def test_the_same_streams_at_a_new_place_are_read_without_doubles(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "a")
    memory.sync()
    log.place = "moved"
    assert memory.sync().kept == 0
    assert len(recalled(memory, "kayak")) == 1
    log.delete("a")
    assert memory.sync().pruned == 1


def test_a_conversation_without_passages_goes_with_them(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "a")
    log.say("the boat is called Sira", "b")
    memory.sync()
    log.delete("a")
    memory.sync()
    assert query(memory.path, "SELECT session FROM conversations") == [("b",)]
    assert query(memory.path, "SELECT name FROM streams") == [("b",)]


def test_the_event_counts_and_tells_no_text(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "a")
    memory.sync()
    log.delete("a")
    memory.sync()
    (event,) = memory.events()
    assert (event.event_type, event.detail) == ("prune", "passages: 1")


def test_a_stale_passage_that_is_still_there_enters_the_lexicon_anew(memory: Memory, log: Log) -> None:
    log.say("my question speaks of quinces", "a")
    answer = log.say("the answer speaks of lavender and not of what came before", "a", origin="assistant")
    log.copy(answer, "b")
    memory.sync()
    log.delete("a")
    memory.sync()
    words = {(column, term) for _, column, _, term in dump(memory.path)["lexicon"]}
    assert ("own", "lavend") in words
    assert not [term for column, term in words if column == "context"]
    assert query(memory.path, "SELECT count(*) FROM stale_passages") == [(0,)]


def test_a_busy_log_leaves_a_stale_passage_for_the_next_pass(memory: Memory, log: Log) -> None:
    answer_to = log.say("my question speaks of quinces", "a")
    answer = log.say("the answer speaks of lavender and not of what came before", "a", origin="assistant")
    log.copy(answer, "b")
    memory.sync()
    query(memory.path, "INSERT INTO stale_passages SELECT id FROM passages WHERE previous_id IS NOT NULL")
    query(memory.path, "DELETE FROM lexicon WHERE rowid IN (SELECT passage_id FROM stale_passages)")
    assert not [e for e in recalled(memory, "lavender") if e.ref != answer_to.ref]
    memory.sync()
    assert recalled(memory, "lavender")


def test_a_stream_renamed_during_a_pass_is_not_pruned(
    memory: Memory, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing that meets a rename shows the stream under neither name."""
    log.say("the surprise is a kayak", "a")
    log.say("the boat is called Sira", "b")
    memory.sync()
    streams = log.streams

    def meets_a_rename() -> Iterator[Stream]:
        if "a" not in log.sessions:
            yield from streams()
            return
        log.rename("a", "a.reset")
        yield from (stream for stream in streams() if stream.name != "a.reset")

    monkeypatch.setattr(log, "streams", meets_a_rename)
    assert memory.sync().pruned == 0
    assert len(recalled(memory, "kayak")) == 1
    report = memory.sync()
    assert (report.kept, report.pruned) == (0, 0)
    assert len(recalled(memory, "kayak")) == 1
    assert query(memory.path, "SELECT name FROM streams ORDER BY name") == [("a.reset",), ("b",)]


def test_a_stale_passage_that_cannot_be_read_back_holds_up_no_other(
    memory: Memory, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "BATCH", 1)
    for word in ("quinces", "medlars", "lavender"):
        log.say(f"a sentence that speaks of {word} and of nothing else")
    memory.sync()
    query(memory.path, "INSERT INTO stale_passages SELECT id FROM passages")
    query(memory.path, "DELETE FROM lexicon")
    query(memory.path, "UPDATE passages SET recipe = recipe - 1 WHERE id = 1")
    memory.sync()
    assert recalled(memory, "medlars") and recalled(memory, "lavender")
    assert query(memory.path, "SELECT passage_id FROM stale_passages") == [(1,)]
