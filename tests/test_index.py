"""Index: every utterance once, with its context, together with the cursor that covers it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers import LATER, START, Clock, Log, dump, open_memory, query, recalled, residue, words_of

from clawmark import clean
from clawmark.errors import DatabaseBusy, SourceBusy
from clawmark.jobs import index as index_job
from clawmark.memory import Memory
from clawmark.model import Batch, Fault, Stream, Turn
from clawmark.store import cursors
from clawmark.store.passages import content_key, to_ms
from clawmark.testing import FakeEmbedder, ListSource

DANGLING = "SELECT count(*) FROM passages WHERE previous_id NOT IN (SELECT id FROM passages)"
QUESTION = "which colour is the boat painted?"
LONG = "the spare key hangs on the hook behind the boiler in the cellar"


def passages(path: Path) -> int:
    return int(query(path, "SELECT count(*) FROM passages")[0][0])


# --- once each --------------------------------------------------------------------------------------------------------


def test_reading_again_changes_nothing(memory: Memory, log: Log, db_path: Path) -> None:
    for number in range(12):
        log.say(
            f"note number {number} about the greenhouse", f"s{number % 3}", origin=("owner", "assistant")[number % 2]
        )
    log.say("long story. " * 300, "s1")
    memory.sync()
    before = dump(db_path)
    query(db_path, "DELETE FROM cursors")
    query(db_path, "UPDATE streams SET mark = ''")
    report = memory.sync()
    assert dump(db_path) == before
    assert (report.kept, report.dropped["known"]) == (0, 13)


def test_an_unchanged_stream_is_not_opened(memory: Memory, log: Log) -> None:
    log.say("the boat is called Sira")
    memory.sync()
    reads = log.reads
    memory.sync()
    assert log.reads == reads


def test_a_stream_that_grows_later_is_read_on_from_its_cursor(memory: Memory, log: Log) -> None:
    log.say("first words about quinces", "a")
    log.say("first words about medlars", "b")
    memory.sync()
    log.say("later words about sloes", "a")
    assert memory.sync().read == 1
    assert len(recalled(memory, "quinces medlars sloes")) == 3


def test_the_same_words_within_two_seconds_are_one_passage(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("ok", "a", at=START)
    log.say("ok", "b", at=START + timedelta(seconds=2))
    memory.sync()
    assert passages(db_path) == 1
    assert len(dump(db_path)["refs"]) == 2


def test_ok_said_again_after_an_hour_is_its_own_passage(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("ok", at=START)
    log.say("ok", at=START + timedelta(hours=1))
    log.say("ok", "b", at=START + timedelta(seconds=3))
    memory.sync()
    assert passages(db_path) == 3


def test_ok_at_the_same_place_of_two_sessions_is_two_utterances(db_path: Path, clock: Clock) -> None:
    log = ListSource()
    for number, session in enumerate("ab"):
        log.append(session, "user", "ok", START + timedelta(days=30 * number))
    with open_memory(db_path, log, clock=clock) as memory:
        memory.sync()
    assert passages(db_path) == 2


def test_a_long_sentence_within_ten_minutes_is_one_passage_with_two_refs(
    memory: Memory, log: Log, db_path: Path
) -> None:
    log.say(LONG, "a", at=START)
    log.say(LONG, "b", at=START + timedelta(minutes=9))
    memory.sync()
    assert passages(db_path) == 1
    assert [row[1] for row in dump(db_path)["refs"]] == ["a", "b"]
    assert len(recalled(memory, "spare key boiler")) == 1


def test_a_long_sentence_months_later_is_its_own_passage(memory: Memory, log: Log, db_path: Path) -> None:
    log.say(LONG, "a", at=START)
    log.say(LONG, "b", at=START + timedelta(days=90))
    memory.sync()
    assert passages(db_path) == 2


def test_another_scope_or_speaker_is_another_utterance(memory: Memory, log: Log, db_path: Path) -> None:
    log.session("b", scope="work")
    log.say(LONG, "a", at=START)
    log.say(LONG, "b", at=START)
    log.say(LONG, "c", at=START, origin="assistant")
    memory.sync()
    assert passages(db_path) == 3


def test_a_renamed_stream_keeps_its_passages(memory: Memory, log: Log, db_path: Path) -> None:
    """F3: rotation is no deletion and no second reading."""
    log.say(LONG, "a.jsonl")
    log.say("the answer to it is yes, behind the boiler", "a.jsonl", origin="assistant")
    memory.sync()
    before = dump(db_path)["lexicon"]
    log.rename("a.jsonl", "a.jsonl.reset")
    memory.sync()
    assert dump(db_path)["lexicon"] == before
    assert len(recalled(memory, "boiler")) == 2


def test_a_text_changed_at_the_host_replaces_what_was_indexed(memory: Memory, log: Log, db_path: Path) -> None:
    said = log.say("the meeting is in Ghent on Tuesday")
    log.say("the host wrote something after it", origin="assistant")
    memory.sync()
    log.edit(said, "the meeting is in Porto on Tuesday")
    memory.sync()
    assert not recalled(memory, "Ghent")
    assert recalled(memory, "Porto")[0].excerpt == "the meeting is in Porto on Tuesday"
    assert "ghent" not in {row[3] for row in dump(db_path)["lexicon"]}


def test_the_old_words_of_a_changed_text_leave_the_file(memory: Memory, log: Log, db_path: Path) -> None:
    said = log.say("the meeting is in zqcanaryxenon7731 on Tuesday")
    memory.sync()
    log.edit(said, "the meeting is in Porto on Tuesday")
    memory.sync()
    assert not residue(db_path.parent, "zqcanaryxenon7731")


def test_two_lines_with_one_ref_in_one_batch_leave_the_later_text(memory: Memory, log: Log, db_path: Path) -> None:
    """A host that logs a message again, edited: the first text is erased while the batch is being written."""
    log.say("a sentence before it about the lighthouse")
    log.say("the meeting is in zqcanaryxenon on Tuesday", ref="s1/twice")
    log.say("the meeting is in Porto on Tuesday", ref="s1/twice")
    log.say("the sentence after it speaks of lavender")
    memory.sync()
    assert not recalled(memory, "zqcanaryxenon")
    assert not any("zqcanaryxenon" in row for row in dump(db_path)["lexicon"])
    assert [e.excerpt for e in recalled(memory, "Porto")][:1] == ["the meeting is in Porto on Tuesday"]
    assert recalled(memory, "lavender"), "the index goes on behind it"
    assert query(db_path, DANGLING) == [(0,)]
    assert not residue(db_path.parent, "zqcanaryxenon")
    assert memory.sync().failures == ()


def test_a_predecessor_erased_inside_a_batch_leaves_no_link_to_it(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("the meeting is in zqcanaryxenon on Tuesday", ref="s1/twice")
    log.say("the answer in between speaks of lavender", origin="assistant")
    log.say("the meeting is in Porto on Tuesday", ref="s1/twice")
    log.say("the line behind it speaks of marzipan", origin="assistant")
    memory.sync()
    assert query(db_path, DANGLING) == [(0,)]
    assert query(db_path, "SELECT count(*) FROM stale_passages") == [(0,)]
    assert not any("zqcanaryxenon" in row for row in dump(db_path)["lexicon"])
    assert recalled(memory, "lavender") and recalled(memory, "marzipan")


def test_thousands_of_one_short_word_cost_no_more_than_linear(
    memory: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    has_entry = index_job.passages.has_entry

    def counted(*args: Any) -> bool:
        nonlocal asked
        asked += 1
        return has_entry(*args)

    monkeypatch.setattr(index_job.passages, "has_entry", counted)
    count = 3_000
    for number in range(count):
        log.say("continue", ref=f"s1/entry-{number:08d}")
    memory.sync()
    assert passages(db_path) == count
    assert 0 < asked <= index_job.COPIES * count


# --- rows and cursor commit together ----------------------------------------------------------------------------------


def test_cursor_commits_with_rows(memory: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault between rows and cursor leaves neither."""
    for number in range(5):
        log.say(f"sentence {number} about the harbour")

    def fail(*args: object) -> None:
        raise RuntimeError("between rows and cursor")

    with monkeypatch.context() as patch:
        patch.setattr(index_job.cursors, "advance", fail)
        with pytest.raises(RuntimeError, match="between rows and cursor"):
            memory.sync()
    assert dump(db_path) == {"passages": [], "refs": [], "lexicon": [], "pending": []}
    assert query(db_path, "SELECT count(*) FROM cursors WHERE name LIKE 'index:%'") == [(0,)]
    assert query(db_path, "SELECT count(*) FROM streams") == [(0,)]
    assert memory.sync().kept == 5


def test_rows_never_commit_without_their_mark(
    memory: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say("a sentence about the harbour")

    def fail(*args: object) -> None:
        raise RuntimeError("after the cursor")

    with monkeypatch.context() as patch:
        patch.setattr(index_job.streams, "set_mark", fail)
        with pytest.raises(RuntimeError):
            memory.sync()
    assert passages(db_path) == 0
    assert query(db_path, "SELECT count(*) FROM cursors WHERE name LIKE 'index:%'") == [(0,)]


def test_a_cursor_moved_by_another_process_rolls_the_batch_back(
    memory: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say("a sentence about the harbour")
    memory.sync()
    log.say("one more about the lighthouse")
    get = cursors.get

    def stale(connection: object, name: str) -> str | None:
        value = get(connection, name)  # type: ignore[arg-type]
        return None if value is None else value.replace("0:1", "0:0")

    with monkeypatch.context() as patch:
        patch.setattr(index_job.cursors, "get", stale)
        with pytest.raises(DatabaseBusy):
            memory.sync()
    assert passages(db_path) == 1
    assert memory.sync().kept == 1


# --- context ----------------------------------------------------------------------------------------------------------


def a_day(log: Log) -> None:
    """All that can stand in a log: both speakers, a long text, dropped and foreign entries, silences, windows, repeats."""
    log.say("shall we paint the shed in copper green", origin="owner")
    log.say("copper green will need two coats", origin="assistant")
    log.note("tool")
    log.say("first coat on saturday then")
    log.say("Read HEARTBEAT.md if it exists", origin="host", note="heartbeat")
    log.say("what else is on the list")
    log.say("[clawmark:skip] the birthday surprise is a kayak")
    log.say("buy brushes and tape", origin="assistant")
    log.say("\n\n".join(f"Paragraph {n} of the plan deals with plank {n}. " * 12 for n in range(8)))
    log.note(Fault("bad_json", "line 9"))
    log.say("ok")
    log.note("tool")
    log.say("good morning, is the paint dry", after=timedelta(hours=7))
    log.say("ok")
    log.say("the window was reset here", window="w2")
    log.say("ok", window="w2", origin="assistant")


def indexed(folder: Path, most: int) -> dict[str, list[object]]:
    log = Log()
    log.most = most
    a_day(log)
    path = folder / f"batches-{most}" / "memory.db"
    with open_memory(path, log) as memory:
        memory.sync()
    return dump(path)


def test_batches_may_fall_anywhere(tmp_path: Path) -> None:
    whole = indexed(tmp_path, 100)
    assert len(whole["passages"]) > 12
    for most in range(1, 14):
        assert indexed(tmp_path, most) == whole, f"with batches of {most}"


def grown(folder: Path, log: Log) -> dict[str, list[object]]:
    """`log` indexed by one pass after each entry."""
    entries, growing = log.sessions["s1"].entries, Log()
    path = folder / "grown" / "memory.db"
    with open_memory(path, growing) as memory:
        for entry in entries:
            growing.note(entry)
            memory.sync()
    return dump(path)


def test_passes_may_fall_between_any_two_messages(tmp_path: Path) -> None:
    log = Log()
    for number in range(6):
        log.say(f"line {number} speaks of item{number}", origin=("owner", "assistant")[number % 2])
    log.say("a new day", after=timedelta(hours=8))
    log.say("and its second line")
    path = tmp_path / "whole" / "memory.db"
    with open_memory(path, log) as memory:
        memory.sync()
    assert grown(tmp_path, log) == dump(path)


def test_passes_may_fall_behind_an_entry_without_an_utterance(tmp_path: Path) -> None:
    log = Log()
    log.say("where did we leave the ladder")
    log.note("tool")
    log.say("behind the shed", origin="assistant")
    path = tmp_path / "whole" / "memory.db"
    with open_memory(path, log) as memory:
        memory.sync()
    assert grown(tmp_path, log) == dump(path)


def test_a_passage_knows_the_words_before_it(memory: Memory, log: Log, db_path: Path) -> None:
    question = log.say("which paint did we choose for the shed")
    answer = log.say("copper green", origin="assistant")
    memory.sync()
    context = words_of(db_path, "context")
    assert "paint" in context[f"{answer.ref}#0"]
    assert f"{question.ref}#0" not in context


@pytest.mark.parametrize("between", ["host", "skip", "private", "never"])
def test_neighbours_are_never_linked_over_a_dropped_message(
    db_path: Path, log: Log, clock: Clock, between: str
) -> None:
    log.say("which paint did we choose")
    if between == "host":
        log.say("Read HEARTBEAT.md", origin="host", note="heartbeat")
    else:
        log.say({"skip": "[clawmark:skip] x", "private": "<private>x</private>", "never": "see /vault/x"}[between])
    answer = log.say("copper green it was")
    with open_memory(db_path, log, clock=clock, never_index_paths=("/vault",)) as memory:
        memory.sync()
    assert f"{answer.ref}#0" not in words_of(db_path, "context")
    assert query(db_path, "SELECT count(*) FROM passages WHERE previous_id IS NOT NULL") == [(0,)]


def test_a_silence_of_more_than_six_hours_starts_a_conversation(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("one")
    log.say("two", after=timedelta(hours=6))
    log.say("three", after=timedelta(hours=6, seconds=1))
    memory.sync()
    assert query(db_path, "SELECT count(*) FROM conversations") == [(2,)]
    assert query(db_path, "SELECT count(*) FROM passages WHERE previous_id IS NOT NULL") == [(1,)]


def test_a_new_window_starts_a_conversation(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("one", window="w1")
    log.say("two", window="w2")
    memory.sync()
    assert query(db_path, "SELECT count(*) FROM conversations") == [(2,)]


def test_a_log_that_began_anew_goes_on_in_a_conversation_of_its_own(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("the last sentence before the log was rewritten")
    memory.sync()
    home = log.sessions["s1"]
    home.entries, home.era = [], home.era + 1
    log.say("the first sentence of what was written anew")
    memory.sync()
    assert query(db_path, "SELECT count(DISTINCT conversation_id) FROM passages WHERE previous_id IS NULL") == [(2,)]


# --- what is left out, and what fails ---------------------------------------------------------------------------------


def test_everything_left_out_is_counted_by_reason(memory: Memory, log: Log) -> None:
    """A5."""
    log.say("good morning")
    log.say("[cron:nightly] daily digest", origin="host", note="cron")
    log.say("Read HEARTBEAT.md if it exists", origin="host", note="heartbeat")
    log.say("[clawmark:skip] no")
    log.say("<private>no</private>")
    log.say("   ")
    log.note("tool")
    log.note(Fault("bad_json", "line 8"))
    report = memory.sync()
    assert report.kept == 1
    assert report.dropped == {
        "cron": 1, "heartbeat": 1, "skip_mark": 1, "private": 1, "blank": 1, "tool": 1, "bad_json": 1,
    }  # fmt: skip


def test_a_bad_line_is_one_event_and_the_next_is_read(memory: Memory, log: Log) -> None:
    log.note(Fault("bad_json", "line 1"))
    log.say("the next line speaks of marzipan")
    memory.sync()
    assert recalled(memory, "marzipan")
    events = [e for e in memory.events() if e.event_type == "skip_line"]
    assert [e.detail for e in events] == ["bad_json at line 1"]


def test_a_thousand_bad_lines_are_a_few_events(memory: Memory, log: Log) -> None:
    for number in range(1000):
        log.note(Fault("bad_json", f"line {number}"))
    memory.sync()
    assert len([e for e in memory.events(2000) if e.event_type == "skip_line"]) == index_job.FAULT_EVENTS + 1


def test_a_stream_that_fails_holds_up_no_other_and_deletes_nothing(memory: Memory, log: Log) -> None:
    log.say("alpha speaks of marzipan", "a")
    log.say("beta speaks of nougat", "b")
    memory.sync()
    log.broken.add("a")
    log.say("more from alpha", "a")
    log.say("beta speaks of praline", "b")
    report = memory.sync()
    assert report.failures == ("a cannot be read",)
    assert recalled(memory, "praline")
    assert recalled(memory, "marzipan")
    assert [e.event_type for e in memory.events(1)] == ["source_failed"]


def failures(memory: Memory) -> list[str | None]:
    return [e.detail for e in memory.events() if e.event_type == "source_failed"]


def test_an_unreadable_stream_is_one_event_however_often_it_is_tried(memory: Memory, log: Log) -> None:
    log.say("alpha speaks of marzipan", "a")
    log.broken.add("a")
    for _ in range(5):
        assert memory.sync().failures == ("a cannot be read",)
    assert failures(memory) == ["a cannot be read"]


def test_each_of_two_unreadable_streams_is_one_event(memory: Memory, log: Log) -> None:
    log.say("alpha speaks of marzipan", "a")
    log.say("beta speaks of nougat", "b")
    log.broken |= {"a", "b"}
    for _ in range(5):
        memory.sync()
    assert sorted(map(str, failures(memory))) == ["a cannot be read", "b cannot be read"]


@pytest.mark.parametrize("gives", ["nothing", "the same again"])
def test_a_source_that_never_gets_on_is_a_failure_and_no_loop(
    memory: Memory, log: Log, gives: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = log.say("alpha speaks of marzipan", "a")
    log.say("beta speaks of nougat", "b")
    read, reads = log.read, 0

    def stuck(stream: Stream, cursor: str | None, limit: int) -> Batch:
        nonlocal reads
        if stream.name == "b":
            return read(stream, cursor, limit)
        reads += 1
        assert reads < 50, "read for ever"
        return Batch([] if gives == "nothing" else [said], "0:0", end=False)

    monkeypatch.setattr(log, "read", stuck)
    report = memory.sync()
    assert len(report.failures) == 1 and "does not get on in a" in report.failures[0]
    assert recalled(memory, "nougat"), "the other stream is read"
    assert failures(memory) == list(report.failures)


def test_a_busy_log_is_tried_later_and_loses_nothing(memory: Memory, log: Log) -> None:
    log.say("alpha speaks of marzipan")
    log.busy = True
    with pytest.raises(SourceBusy):
        memory.sync()
    log.busy = False
    memory.sync()
    assert recalled(memory, "marzipan")


def test_short_words_are_searchable_and_only_longer_ones_wait_for_a_vector(
    db_path: Path, log: Log, embedder: FakeEmbedder, clock: Clock
) -> None:
    """E3: 20 Latin characters, or 4 of a script that says more with each."""
    log.say("ok, sure")
    log.say("twenty letters or more of it")
    log.say("我过敏")
    log.say("我对芝麻严重过敏")
    embedder.down = True
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        report = memory.sync()
        assert report.kept == 4
        assert report.pending == 2
        assert recalled(memory, "我过敏")


class Twins(ListSource):
    """A source that calls two streams by one name."""

    def streams(self) -> Iterator[Stream]:
        for stream in super().streams():
            yield stream
            yield stream


def test_two_streams_of_one_name_cost_the_second_alone(db_path: Path, clock: Clock) -> None:
    log = Twins()
    log.append("s", "user", "the boat is called Sira")
    with open_memory(db_path, log, clock=clock) as memory:
        report = memory.sync()
        assert report.kept == 1 and "two streams" in report.failures[0]
        log.append("s", "user", "the skipper is called Henrik")
        assert memory.sync().kept == 1


@pytest.mark.parametrize("now", ["<private>the code is zebulon</private>", "[clawmark:skip] the code is zebulon"])
def test_an_edit_that_withdraws_a_message_takes_its_words_away(
    memory: Memory, log: Log, db_path: Path, now: str
) -> None:
    said = log.say("the code of the gate is zebulon")
    log.say("thank you, I will write that down")
    memory.sync()
    log.edit(said, now)
    memory.sync()
    assert not recalled(memory, "zebulon")
    assert not any("zebulon" in words for column in ("own", "context") for words in words_of(db_path, column).values())
    assert not residue(db_path.parent, "zebulon")


# --- times that cannot be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [LATER + timedelta(days=400), datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)])
def test_what_a_wrong_clock_stamped_stands_where_it_was_said_and_has_no_date(
    memory: Memory, log: Log, db_path: Path, wrong: datetime
) -> None:
    first = log.say("the boat is called Sira")
    log.say("it is painted blue", at=wrong)
    last = log.say("and lies in the harbour", at=first.at + timedelta(minutes=2))
    memory.sync()
    times = query(db_path, "SELECT at, dated FROM passages ORDER BY id")
    assert times == [(to_ms(first.at), 1), (to_ms(first.at), 0), (to_ms(last.at), 1)]
    assert len(query(db_path, "SELECT 1 FROM conversations")) == 1
    assert {e.excerpt: e.at for e in recalled(memory, "painted blue boat")}["it is painted blue"] is None
    block = memory.block(QUESTION).text
    assert '(date unknown, you) "it is painted blue"' in block
    assert memory.status().sources[0].newest == last.at


def test_what_has_no_time_at_all_is_never_the_newest(memory: Memory, log: Log, db_path: Path) -> None:
    said = log.say("the boat is painted blue")
    log.sessions["s1"].entries[:] = [replace(said, dated=False, at=datetime(1970, 1, 1, tzinfo=UTC))]
    memory.sync()
    assert query(db_path, "SELECT at, dated FROM passages") == [(0, 0)]
    assert memory.status().sources[0].newest is None
    assert "1970" not in memory.block(QUESTION).text and "thursday" not in words_of(db_path)["s1/e00001#0"]


def test_a_repeated_word_without_a_time_stays_its_own(memory: Memory, log: Log, db_path: Path) -> None:
    for _ in range(3):
        said = log.say("ok, do that")
        log.sessions["s1"].entries[-1] = replace(said, dated=False, at=START)
    memory.sync()
    assert passages(db_path) == 3


def test_undated_batches_may_fall_anywhere(db_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    times = [START, LATER + timedelta(days=999), LATER + timedelta(days=999), START + timedelta(hours=1)]
    for number, at in enumerate(times):
        log.say(f"sentence {number} of the story", at=at)
    dumps = []
    for size in (1, 2, 3, 500):
        monkeypatch.setattr(index_job, "BATCH", size)
        path = db_path.with_name(f"{size}.db")
        with open_memory(path, log) as memory:
            memory.sync()
        dumps.append(dump(path))
    assert all(one == dumps[0] for one in dumps)


# --- a log that was numbered anew -------------------------------------------------------------------------------------


def test_a_log_numbered_anew_repeats_nothing_and_leaves_no_dead_ref(memory: Memory, log: Log, db_path: Path) -> None:
    for number in range(3):
        log.say(f"{LONG}, number {number}", ref=f"lcm:1:{number}")
    log.say("ok", ref="lcm:1:3")
    memory.sync()
    old = log.messages()
    log.sessions["s1"].entries[:] = [
        replace(m, ref=m.ref.replace("lcm:1:", "lcm:2:1"), at=m.at + timedelta(days=30 if len(m.text) > 9 else 0))
        for m in old
    ]
    log.sessions["s1"].era += 1
    log.renumbered = "lcm:2:"
    report = memory.sync()
    assert (report.kept, report.dropped["known"]) == (0, 4)
    assert [e.detail for e in memory.events() if e.event_type == "renumber"] == ["lcm:2:"]
    assert sorted(query(db_path, "SELECT ref FROM passage_refs")) == [(f"lcm:2:1{number}",) for number in range(4)]
    assert query(db_path, "SELECT count(*) FROM passages") == [(4,)]


def test_the_same_sentence_said_again_months_later_is_its_own_where_nothing_was_renumbered(
    memory: Memory, log: Log, db_path: Path
) -> None:
    log.say(LONG)
    log.say(LONG, after=timedelta(days=90))
    memory.sync()
    assert passages(db_path) == 2


# --- other rules ------------------------------------------------------------------------------------------------------


def test_other_rules_index_anew_what_they_change_and_nothing_else(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = FakeEmbedder()
    log.say("the boat is called Sira and lies in the harbour")
    log.say("the word of the day is zqsecret and nobody knows it")
    log.say("the dog is called Rex and sleeps all day long")
    log.say("zqsecret")
    masked = clean.secrets.mask
    with monkeypatch.context() as patch:
        patch.setattr(clean, "RECIPE", clean.RECIPE - 10_000)
        with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
            memory.sync()
    before = dict(query(db_path, "SELECT r.ref, p.id FROM passages p JOIN passage_refs r ON r.passage_id = p.id"))
    embedder.asked.clear()
    monkeypatch.setattr(clean.secrets, "mask", lambda text: masked(text).replace("zqsecret", "[REDACTED:word]"))
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        report = memory.sync()
        assert (report.kept, report.dropped["known"]) == (2, 2)
        after = dict(query(db_path, "SELECT r.ref, p.id FROM passages p JOIN passage_refs r ON r.passage_id = p.id"))
        kept = {ref for ref in before if after[ref] == before[ref]}
        assert kept == {"s1/e00001", "s1/e00003"}
        assert embedder.asked == ["the word of the day is [REDACTED:word] and nobody knows it"]
        assert not residue(db_path.parent, "zqsecret")
        assert query(db_path, "SELECT DISTINCT recipe FROM passages") == [(clean.RECIPE,)]
        assert memory.sync().read == 0


def test_passages_of_an_earlier_version_are_known_by_its_content_key(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say("the boat is called Sira and lies in the harbour")
    log.say("nice", origin="assistant")
    with open_memory(db_path, log, clock=clock) as memory:
        memory.sync()
        before = dump(db_path)
        for origin in ("owner", "assistant"):
            said = next(m.text for m in log.messages() if m.origin == origin)
            old = content_key("main", origin, said)
            query(db_path, "UPDATE passages SET content_key = ?, recipe = recipe - 10000 WHERE origin = ?", old, origin)
        query(db_path, "DELETE FROM cursors WHERE name LIKE 'recipe:%'")
        assert memory.sync().kept == 0
        assert dump(db_path) == before


# --- groups -----------------------------------------------------------------------------------------------------------


def test_a_participants_words_lend_nothing_to_what_follows_them_but_another_participants(
    memory: Memory, log: Log, db_path: Path
) -> None:
    log.session("g", kind="group")
    log.say("I bought a xylophone", "g", origin="participant", author="Mia")
    log.say("fine by me then", "g")
    log.say("the zither is mine", "g", origin="participant", author="Jo")
    log.say("and the harp is mine too", "g", origin="participant", author="Mia")
    memory.sync()
    assert "zither" in words_of(db_path, "context")["g/e00004#0"]
    assert not any("xylophon" in " ".join(found) for found in words_of(db_path, "context").values())
    assert not recalled(memory, "xylophone")


def test_a_conversation_in_which_somebody_else_spoke_is_a_groups(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("the boat is called Sira", "s1")
    assert memory.sync().kept == 1
    assert query(db_path, "SELECT kind FROM conversations") == [("direct",)]
    log.say("which boat?", "s1", origin="participant")
    memory.sync()
    assert query(db_path, "SELECT kind FROM conversations") == [("group",)]


def test_a_copy_of_somebody_elses_words_is_not_the_owners(memory: Memory, log: Log, db_path: Path) -> None:
    entry = "deadbeef-0001"
    log.say("the code of the shed is under the mat", "fork", ref=f"fork/{entry}")
    log.session("g", kind="group")
    log.say("the code of the shed is under the mat", "g", ref=f"g/{entry}", origin="participant")
    memory.sync()
    assert query(db_path, "SELECT origin FROM passages ORDER BY id") == [("owner",), ("participant",)]


def test_the_newest_window_is_the_one_begun_last_however_late_an_older_one_was_read(
    memory: Memory, log: Log, db_path: Path
) -> None:
    log.say("the old window speaks of quinces", "s1", window="w1")
    old = log.sessions.pop("s1")
    log.session("s1b", session="s1")
    log.say("the new window speaks of medlars", "s1b", window="w2")
    memory.sync()
    log.sessions["s1"] = old
    memory.sync()
    shown = memory.block(Turn("what about quinces and medlars?", session="s1")).text
    assert "quinces" in shown and "medlars" not in shown


def test_an_upgraded_passage_is_found_by_a_copy_in_the_same_transaction(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = log.say("the boat is called Sira and lies in the harbour", ref="s1/deadbeef01")
    with open_memory(db_path, log, clock=clock) as memory:
        memory.sync()
    query(
        db_path, "UPDATE passages SET content_key = ?, recipe = recipe - 10000", content_key("main", "owner", said.text)
    )
    query(db_path, "DELETE FROM cursors WHERE name LIKE 'recipe:%'")
    log.copy(said, "fork", ref="fork/deadbeef01")
    with open_memory(db_path, log, clock=clock) as memory:
        assert memory.sync().kept == 0
    assert passages(db_path) == 1


def test_a_session_that_others_have_joined_is_a_groups_without_a_new_word(
    memory: Memory, log: Log, db_path: Path
) -> None:
    log.say("the boat is called Sira", "s1")
    memory.sync()
    log.sessions["s1"].kind = "group"
    memory.sync()
    assert query(db_path, "SELECT kind FROM streams") == [("group",)]
    assert not memory.block(Turn("which boat?", session="s1")).facts
