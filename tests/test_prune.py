"""Prune: what the host deleted goes; what could not be read just now stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import Clock, Log, dump, fake, query, recalled, residue

from clawmark import clean, transfer
from clawmark.errors import SourceBusy, SourceError
from clawmark.jobs import prune as job
from clawmark.jobs import runner
from clawmark.memory import Memory
from clawmark.model import Stream
from clawmark.settings import Settings


def open_memories(path: Path, clock: Clock, *logs: Log, embedder: Any = None, **changes: Any) -> Memory:
    """A memory over several logs, each of which is read."""
    settings = Settings(db_path=path, embedder="none", **changes)
    return Memory.open(settings, sources=logs, embedder=embedder, clock=clock)


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


# --- what became of a log ---------------------------------------------------------------------------------------------


def test_what_nobody_can_tell_of_is_kept_and_asked_again(memory: Memory, log: Log) -> None:
    log.say("the surprise is a kayak", "a")
    memory.sync()
    kept = log.sessions["a"]
    log.end("a", "lost")
    assert (memory.sync().pruned, memory.sync().pruned) == (0, 0)
    log.sessions["a"] = kept
    assert recalled(memory, "kayak")
    log.end("a", "deleted")
    assert memory.sync().pruned == 1


def test_what_a_log_holds_no_more_goes_from_this_log_alone(db_path: Path, clock: Clock) -> None:
    one, other = Log("one", host="h"), Log("other", host="h")
    said = one.say("the surprise is a kayak", "s1")
    other.copy(said, "s1", ref="s1/entry0001")
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        one.end("s1", "gone")
        assert memory.sync().pruned == 0
        assert recalled(memory, "kayak")


def test_what_the_person_deleted_goes_from_every_log_of_the_session(db_path: Path, clock: Clock) -> None:
    one, other = Log("one", host="h"), Log("other", host="h")
    said = one.say("the surprise is a kayak", "s1")
    other.copy(said, "s1", ref="s1/entry0001")
    other.say("and nobody knows of the lighthouse", "s1")
    other.say("the boat is called Sira", "s2")
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        one.end("s1", "deleted")
        assert memory.sync().pruned == 2
        assert not recalled(memory, "kayak lighthouse") and recalled(memory, "Sira")
        other.say("the lighthouse is white", "s1")
        report = memory.sync()
        assert report.dropped["deleted_session"] == 1 and not recalled(memory, "lighthouse")


def test_a_part_of_a_session_that_goes_deletes_no_other_log_of_it(db_path: Path, clock: Clock) -> None:
    one, other = Log("one", host="h"), Log("other", host="h")
    one.say("the surprise is a kayak", "s1")
    one.session("s1b", session="s1")
    one.say("it is red", "s1b")
    other.say("the lighthouse is white", "s1")
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        one.end("s1", "deleted")
        assert memory.sync().pruned == 1
        assert recalled(memory, "lighthouse")


def test_a_part_that_could_not_be_listed_spares_its_own_streams_alone(memory: Memory, log: Log) -> None:
    for name in ("work/a", "work/b", "home/a"):
        log.say(f"a word of {name.replace('/', 'x')}", name)
    memory.sync()
    log.delete("work/a")
    log.delete("home/a")
    failure = SourceError("work cannot be listed")
    failure.parts = ("work/",)
    log.unlisted = failure
    assert memory.sync().pruned == 1
    log.unlisted = None
    assert memory.sync().pruned == 1


# --- taken back -------------------------------------------------------------------------------------------------------


def test_what_the_person_edited_away_is_erased(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("let us go to Croatia in August")
    wrong = log.say("my number is zqwrong1")
    log.say("the boat is called Sira")
    memory.sync()
    log.take_back(wrong)
    assert memory.sync().pruned == 1
    assert not recalled(memory, "zqwrong1") and not residue(db_path.parent, "zqwrong1")
    assert recalled(memory, "Croatia") and recalled(memory, "Sira")


def test_a_pass_that_was_killed_before_it_asked_is_made_up_for(
    memory: Memory, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = log.say("my number is zqwrong1")
    log.say("the boat is called Sira")
    memory.sync()
    log.take_back(wrong)

    def dying(*asked: object) -> set[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(log, "withdrawn", dying)
        with pytest.raises(KeyboardInterrupt):
            memory.sync()
    assert memory.sync().pruned == 1
    assert not recalled(memory, "zqwrong1")


def test_nothing_is_asked_of_a_stream_that_only_grows(
    memory: Memory, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say("the boat is called Sira")
    memory.sync()
    asked: list[object] = []
    monkeypatch.setattr(log, "withdrawn", lambda *arguments: asked.append(arguments) or set())
    log.say("and lies in the harbour")
    memory.sync()
    memory.sync()
    assert asked == []


# --- a host that deletes its old logs ---------------------------------------------------------------------------------


@pytest.fixture
def short_lived() -> Log:
    return Log("claude-code", expires=True)


PASSWORD = "my password is " + "hunter2" + "-xy!9"


def test_what_a_host_expired_is_recalled_from_its_masked_text(db_path: Path, clock: Clock, short_lived: Log) -> None:
    short_lived.say(f"the boat is called Sira, and {PASSWORD}", "a")
    short_lived.say("[clawmark:skip] the safe is behind the picture", "a")
    short_lived.say("the dog is called Rex", "b")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        assert memory.status().kept_texts == 2
        short_lived.end("a", "expired")
        assert memory.sync().pruned == 0
        (found,) = recalled(memory, "boat")
        assert found.excerpt == "the boat is called Sira, and my password is [REDACTED:password]"
        assert (found.conversation, found.ref, found.role) == ("a", "a/e00001", "user")
        assert not residue(db_path.parent, "hunter2", "safe is behind")
        assert [e.event_type for e in memory.events() if e.event_type == "expire"] == ["expire"]
        memory.sync()
        assert len([e for e in memory.events() if e.event_type == "expire"]) == 1


def test_what_the_person_deleted_there_is_erased_text_and_all(db_path: Path, clock: Clock, short_lived: Log) -> None:
    short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        short_lived.end("a", "deleted")
        assert memory.sync().pruned == 1
        assert memory.status().kept_texts == 0 and not recalled(memory, "boat")


def test_a_log_that_is_there_is_read_from_the_log(db_path: Path, clock: Clock, short_lived: Log) -> None:
    said = short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        short_lived.sessions["a"].entries.remove(said)
        assert not recalled(memory, "boat")  # what is not there was not expired


def test_no_text_is_kept_where_that_is_switched_off_or_the_host_keeps_its_log(
    db_path: Path, clock: Clock, short_lived: Log, log: Log
) -> None:
    short_lived.say("the boat is called Sira", "a")
    log.say("the dog is called Rex", "b")
    with open_memories(db_path, clock, short_lived, log, keep_text="off") as memory:
        memory.sync()
        assert memory.status().kept_texts == 0
        short_lived.end("a", "expired")
        assert memory.sync().pruned == 1


def test_switching_it_off_erases_what_was_kept_and_on_keeps_what_is_still_there(
    db_path: Path, clock: Clock, short_lived: Log
) -> None:
    short_lived.say("the boat is called Sira", "a")
    short_lived.say("the dog is called Rex", "b")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        short_lived.end("a", "expired")
        memory.sync()
    with open_memories(db_path, clock, short_lived, keep_text="off") as memory:
        assert memory.sync().pruned == 1
        assert memory.status().kept_texts == 0 and not recalled(memory, "boat") and recalled(memory, "dog")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        assert memory.status().kept_texts == 1
        short_lived.end("b", "expired")
        memory.sync()
        assert recalled(memory, "dog")


def test_an_expired_session_that_comes_back_is_read_again(db_path: Path, clock: Clock, short_lived: Log) -> None:
    short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        kept = short_lived.sessions["a"]
        short_lived.end("a", "expired")
        memory.sync()
        short_lived.sessions["a"] = kept
        short_lived.say("and is painted blue", "a")
        report = memory.sync()
        assert (report.kept, report.dropped.get("known")) == (1, None)
        assert [e.ref for e in recalled(memory, "boat called Sira")].count("a/e00001") == 1


def test_a_new_rule_masks_what_was_kept_under_an_older_one(
    db_path: Path, clock: Clock, short_lived: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memories(db_path, clock, short_lived, embedder=fake()) as memory:
        with monkeypatch.context() as patch:
            patch.setattr(clean.secrets, "mask", lambda text: text)
            patch.setattr(clean, "RECIPE", clean.RECIPE - 100)
            short_lived.say(f"the boat is called Sira, and {PASSWORD}", "a")
            short_lived.say("the dog is called Rex and sleeps all day", "a")
            memory.sync()
            short_lived.end("a", "expired")
            memory.sync()
        made = "SELECT v.id FROM message_vectors v JOIN passages p ON p.id = passage_id ORDER BY p.id"
        boat, dog = query(db_path, made)
        memory.sync()
        assert "[REDACTED:password]" in recalled(memory, "boat")[0].excerpt
        assert query(db_path, "SELECT DISTINCT recipe FROM passages") == [(clean.RECIPE,)]
        kept = query(db_path, "SELECT id FROM message_vectors ORDER BY id")
        assert dog in kept and boat not in kept and len(kept) == 2  # what changed is embedded anew, and nothing else
        assert "hunter2" not in str(dump(db_path))


def test_what_a_damaged_database_alone_held_comes_back(db_path: Path, clock: Clock, short_lived: Log) -> None:
    short_lived.say("the boat is called Sira", "a")
    short_lived.say("long story about the boat. " * 300, "a")
    short_lived.say("the dog is called Rex", "b")
    with open_memories(db_path, clock, short_lived, embedder=fake()) as memory:
        memory.sync()
        short_lived.end("a", "expired")
        memory.sync()
        before = {e.excerpt for e in recalled(memory, "boat story")}
    query(db_path, "DROP TABLE memory_events")
    with open_memories(db_path, clock, short_lived, embedder=fake()) as memory:
        memory.sync()
        assert any("came back from it too" in str(e.detail) for e in memory.events())
        assert {e.excerpt for e in recalled(memory, "boat story")} == before
        assert memory.status().pending == {} and query(db_path, "SELECT count(*) FROM stale_passages") == [(0,)]


def test_a_session_that_was_deleted_stays_so_when_the_database_is_rebuilt(db_path: Path, clock: Clock) -> None:
    one, other = Log("one", host="h"), Log("other", host="h")
    said = one.say("the surprise is a kayak", "s1")
    other.copy(said, "s1", ref="s1/entry0001")
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        one.end("s1", "deleted")
        memory.sync()
    db_path.write_bytes(b"\0" * 4096)
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        assert not recalled(memory, "kayak")


def test_what_expired_once_stays_so_whatever_the_settings_of_the_host_say_later(
    db_path: Path, clock: Clock, short_lived: Log
) -> None:
    short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        short_lived.end("a", "expired")
        memory.sync()
        short_lived.fates["a"] = "deleted"
        assert memory.sync().pruned == 0 and recalled(memory, "boat")
        short_lived.fates["a"] = "gone"
        assert memory.sync().pruned == 1


def test_a_log_of_another_host_with_the_same_names_is_another_log(db_path: Path, clock: Clock) -> None:
    one, other = Log("one"), Log("other")
    one.say("the surprise is a kayak", "main")
    other.say("ok", "main")
    one.say("ok", "main", at=other.messages()[0].at)
    other.say("the lighthouse is white", "main")
    with open_memories(db_path, clock, one, other) as memory:
        assert memory.sync().kept == 4
        one.end("main", "deleted")
        assert memory.sync().pruned == 2
        other.say("and has a red roof", "main")
        assert memory.sync().kept == 1 and recalled(memory, "lighthouse")


def test_an_edit_in_one_log_takes_the_copy_in_another_log_along(db_path: Path, clock: Clock) -> None:
    one, other = Log("one", host="h"), Log("other", host="h")
    wrong = one.say("my number is zqwrong1", "s1")
    other.copy(wrong, "s1", ref="s1/entry0001")
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        one.take_back(wrong)
        assert memory.sync().pruned == 1
        assert not recalled(memory, "zqwrong1") and not residue(db_path.parent, "zqwrong1")


@pytest.mark.parametrize("asked", ["withdrawn", "fate"])
def test_a_source_that_cannot_answer_costs_itself_alone(
    db_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    one, other = Log("one"), Log("other")
    wrong = one.say("my number is zqwrong1", "s1")
    one.say("the boat is called Sira", "s2")
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        if asked == "withdrawn":
            one.take_back(wrong)
        else:
            one.delete("s1")
        other.say("the lighthouse is white", "s3")

        def failing(*arguments: object) -> Any:
            raise SourceError("nothing can be said of it now")

        with monkeypatch.context() as patch:
            patch.setattr(one, asked, failing)
            report = memory.sync()
            assert (report.kept, report.pruned) == (1, 0) and recalled(memory, "lighthouse")
        assert memory.sync().pruned == 1


def test_a_busy_log_keeps_no_other_from_being_read(db_path: Path, clock: Clock) -> None:
    one, other = Log("one"), Log("other")
    one.say("the boat is called Sira")
    other.say("the lighthouse is white")
    with open_memories(db_path, clock, one, other) as memory:
        reading = one.read

        def held(*arguments: Any) -> Any:
            raise SourceBusy("it is held")

        one.read = held  # type: ignore[method-assign]
        with pytest.raises(SourceBusy):
            memory.sync()
        assert recalled(memory, "lighthouse")
        one.read = reading  # type: ignore[method-assign]
        assert memory.sync().kept == 1


def test_a_deleted_session_that_an_older_backup_brings_back_goes_again_even_when_it_looks_expired(
    db_path: Path, clock: Clock, short_lived: Log
) -> None:
    short_lived.say("the surprise is a kayak", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        transfer.backup(db_path, db_path.parent / "mine.db", clock)
        short_lived.end("a", "deleted")
        memory.sync()
    transfer.restore(db_path, db_path.parent / "mine.db", clock, wait_seconds=5.0)
    short_lived.fates["a"] = "expired"
    with open_memories(db_path, clock, short_lived) as memory:
        assert memory.sync().pruned == 1 and not recalled(memory, "kayak")


def test_what_was_deleted_is_in_the_sidecar_as_soon_as_it_is_erased(
    db_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Log("one", host="h"), Log("other", host="h")
    said = one.say("the surprise is a kayak", "s1")
    other.copy(said, "s1", ref="s1/entry0001")
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        one.end("s1", "deleted")

        def dying(*arguments: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(runner, "refresh_stale", dying)
            with pytest.raises(KeyboardInterrupt):
                memory.sync()
    db_path.write_bytes(b"\0" * 4096)
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        assert not recalled(memory, "kayak")


def test_a_kept_text_whose_log_went_just_before_the_damage_comes_back(
    db_path: Path, clock: Clock, short_lived: Log
) -> None:
    short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
    short_lived.end("a", "expired")
    query(db_path, "DROP TABLE memory_events")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        assert [e.excerpt for e in recalled(memory, "boat")] == ["the boat is called Sira"]


def test_a_path_that_is_never_to_be_indexed_from_now_on_erases_what_was_kept(
    db_path: Path, clock: Clock, short_lived: Log
) -> None:
    short_lived.say("the key lies in /vault/keys", "a")
    short_lived.say("the boat is called Sira", "b")
    short_lived.say("and the map is in /vault/maps", "b")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        short_lived.end("a", "expired")
        memory.sync()
    with open_memories(db_path, clock, short_lived, never_index_paths=("/vault",)) as memory:
        memory.sync()
        assert memory.status().passages == 1
        assert recalled(memory, "boat") and not recalled(memory, "key map lies")


def test_new_rules_keep_the_ref_of_a_log_that_has_expired(
    db_path: Path, clock: Clock, short_lived: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    masked = clean.secrets.mask
    with monkeypatch.context() as patch:
        patch.setattr(clean, "RECIPE", clean.RECIPE - 100)
        said = short_lived.say("the word of the day is zqsecret and nobody knows it", "a")
        short_lived.copy(said, "b", ref=said.ref)
        with open_memories(db_path, clock, short_lived) as memory:
            memory.sync()
            short_lived.end("a", "expired")
            memory.sync()
    monkeypatch.setattr(clean.secrets, "mask", lambda text: masked(text).replace("zqsecret", "[REDACTED:word]"))
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        short_lived.end("b", "deleted")
        memory.sync()
        assert "[REDACTED:word]" in recalled(memory, "word of the day")[0].excerpt
        assert not residue(db_path.parent, "zqsecret")


def test_texts_of_a_log_that_is_not_named_any_more_are_not_shown(db_path: Path, clock: Clock, short_lived: Log) -> None:
    short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        short_lived.end("a", "expired")
        memory.sync()
    with open_memories(db_path, clock, Log("other")) as memory:
        assert not recalled(memory, "boat")


def test_a_session_that_came_back_and_is_deleted_then_goes(db_path: Path, clock: Clock, short_lived: Log) -> None:
    short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        kept = short_lived.sessions["a"]
        short_lived.end("a", "expired")
        memory.sync()
        short_lived.sessions["a"] = kept
        memory.sync()
        short_lived.end("a", "deleted")
        assert memory.sync().pruned == 1 and not recalled(memory, "boat")


def test_what_expired_without_a_kept_text_is_erased(db_path: Path, clock: Clock, short_lived: Log) -> None:
    short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived, keep_text="off") as memory:
        memory.sync()
    short_lived.end("a", "expired")
    with open_memories(db_path, clock, short_lived) as memory:
        assert memory.sync().pruned == 1


def test_a_damaged_kept_text_costs_no_passage_whose_log_is_there(db_path: Path, clock: Clock, short_lived: Log) -> None:
    short_lived.say("the boat is called Sira", "a")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        query(db_path, "UPDATE kept_texts SET text = x'00'")
        query(db_path, "DELETE FROM cursors WHERE name = 'rules'")
        assert memory.sync().pruned == 0 and recalled(memory, "boat")


def test_a_row_that_no_table_takes_keeps_no_fact_from_coming_back(
    db_path: Path, clock: Clock, short_lived: Log
) -> None:
    short_lived.say("the boat is called Sira", "a")
    short_lived.say("the dog is called Rex", "b")
    with open_memories(db_path, clock, short_lived) as memory:
        memory.sync()
        memory.set("pref.editor", "Helix")
    connection = apsw.Connection(str(db_path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = replace(sql, 'origin TEXT NOT NULL', 'origin TEXT') WHERE name = 'passages'"
    )
    connection.close()
    query(db_path, "UPDATE passages SET origin = NULL WHERE id = 1")
    query(db_path, "DROP TABLE memory_events")
    with open_memories(db_path, clock, short_lived) as memory:
        assert [f.value for f in memory.facts()] == ["Helix"]
        memory.sync()
        assert recalled(memory, "boat") and recalled(memory, "dog")


def test_many_deletions_share_a_transaction_and_one_sidecar(
    db_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Log("one", host="h"), Log("other", host="h")
    for number in range(30):
        one.say(f"sentence {number}", f"s{number}")
    other.say("elsewhere", "x")
    written: list[object] = []
    with open_memories(db_path, clock, one, other) as memory:
        memory.sync()
        for number in range(30):
            one.end(f"s{number}", "deleted")
        monkeypatch.setattr(job, "forget_in_sidecar", lambda *arguments: written.append(arguments))
        assert memory.sync().pruned == 30 and len(written) == 1
