"""Which log is read when several could be, and what the audit trail says of it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from helpers import START, Clock, Log, query, recalled, residue

from clawmark import clean
from clawmark.errors import SourceAbsent, SourceBusy, SourceCorrupt, SourceDrift, SourceError
from clawmark.memory import Memory
from clawmark.model import Turn
from clawmark.settings import Settings


class Two(Memory):
    """A memory whose setting names two alternatives."""

    first: Log
    second: Log

    def _new_groups(self):  # type: ignore[no-untyped-def]
        return [[self.first, self.second]]

    def _sources_of_recall(self, connection):  # type: ignore[no-untyped-def]
        return {log.name: log for log in (self.first, self.second)}


class Failing(Log):
    why: SourceError | None = None

    def check(self) -> None:
        if self.why is not None:
            raise self.why
        super().check()


@pytest.fixture
def first() -> Failing:
    return Failing("lcm", host="openclaw")


@pytest.fixture
def second() -> Failing:
    return Failing("transcripts", host="openclaw")


@pytest.fixture
def both(db_path: Path, first: Failing, second: Failing, clock: Clock) -> Two:
    """One session that both logs record, each under its own refs; the second stamps what it writes 30 s later."""
    memory = Two.open(Settings(db_path=db_path, embedder="none"), clock=clock)
    memory.first, memory.second = first, second
    for number in range(4):
        said = first.say(f"topic{number} is settled" if number else "ok", "s1")
        second.copy(said, "s1", ref=f"s1/entry{number:04d}", at=said.at + timedelta(seconds=30))
    return memory


def fallbacks(memory: Memory) -> list[tuple[str, str, str | None]]:
    kinds = ("source_fallback", "source_return", "source_failed")
    return [(e.event_type, e.source, e.detail) for e in reversed(memory.events()) if e.event_type in kinds]


def test_the_preferred_log_alone_is_read_and_nothing_is_noted(both: Two, second: Failing) -> None:
    assert both.sync().read == 4
    assert second.reads == 0
    assert fallbacks(both) == []


def test_a_preferred_log_that_was_never_there_is_no_event(both: Two, first: Failing) -> None:
    first.why = SourceAbsent("no lcm.db")
    assert both.sync().read == 4
    assert fallbacks(both) == []


def test_a_log_in_an_unknown_form_is_passed_over_and_named_once(both: Two, first: Failing) -> None:
    first.why = SourceDrift("messages has no column content")
    for _ in range(3):
        both.sync()
    assert fallbacks(both) == [
        ("source_fallback", "lcm", "transcripts is read instead: messages has no column content")
    ]
    assert any("no column content" in problem for problem in both.status().problems)


def test_switching_there_and_back_repeats_nothing_loses_no_ref_and_is_noted(
    both: Two, first: Failing, second: Failing, db_path: Path
) -> None:
    both.sync()
    passages = query(db_path, "SELECT id, content_key FROM passages ORDER BY id")
    first.why = SourceDrift("messages is a view")
    assert both.sync().kept == 0
    assert query(db_path, "SELECT id, content_key FROM passages ORDER BY id") == passages
    assert len(query(db_path, "SELECT 1 FROM passage_refs")) == 2 * len(passages)
    first.why = None
    report = both.sync()
    assert (report.read, report.kept, report.pruned) == (0, 0, 0)
    first.say("back again with topic9", "s1")
    assert both.sync().kept == 1
    assert fallbacks(both) == [
        ("source_fallback", "lcm", "transcripts is read instead: messages is a view"),
        ("source_return", "lcm", "it was transcripts before"),
    ]
    for number in range(1, 4):
        assert [e.excerpt for e in recalled(both, f"topic{number}")].count(f"topic{number} is settled") == 1


def test_each_log_of_a_session_can_give_a_text_alone(both: Two, first: Failing, second: Failing) -> None:
    both.sync()
    first.why = SourceDrift("x")
    both.sync()
    first.sessions.clear()
    assert recalled(both, "topic2")
    second.sessions.clear()
    assert not recalled(both, "topic2")


def test_a_repeated_word_is_one_utterance_in_each_log_and_two_in_both(
    both: Two, first: Failing, second: Failing, db_path: Path
) -> None:
    again = first.say("ok", "s1")
    second.copy(again, "s1", ref="s1/entry0009", at=again.at + timedelta(seconds=30))
    both.sync()
    first.why = SourceDrift("x")
    both.sync()
    assert query(db_path, "SELECT count(*) FROM passages") == [(5,)]
    assert query(db_path, "SELECT count(*) FROM passage_refs GROUP BY passage_id") == [(2,)] * 5


def test_when_two_logs_disagree_who_spoke_the_first_one_stands(both: Two, first: Failing, second: Failing) -> None:
    said = first.say("the code of the shed is under the mat", "s1", origin="participant")
    second.copy(said, "s1", ref="s1/entry0010", origin="owner")
    both.sync()
    first.why = SourceDrift("x")
    assert both.sync().kept == 0


@pytest.mark.parametrize("why", [SourceCorrupt("lcm.db is damaged"), SourceBusy("lcm.db is held")])
def test_a_damaged_or_held_log_is_waited_for(both: Two, first: Failing, second: Failing, why: SourceError) -> None:
    both.sync()
    first.why = why
    with pytest.raises(type(why)):
        both.sync()
    assert second.reads == 0
    noted = [event[0] for event in fallbacks(both)]
    assert noted == (["source_failed"] if isinstance(why, SourceCorrupt) else [])
    first.why = None
    assert recalled(both, "topic1")


def test_what_is_deleted_in_a_log_that_stands_by_is_erased(both: Two, first: Failing, second: Failing) -> None:
    first.why = SourceDrift("x")
    both.sync()
    first.why = None
    both.sync()
    second.delete("s1")
    assert both.sync().pruned == 4
    assert not recalled(both, "topic1")
    first.say("said after the deletion about topic7", "s1")
    both.sync()
    assert not recalled(both, "topic7")


def test_a_session_deleted_in_one_log_comes_back_when_that_log_has_it_again(
    both: Two, first: Failing, second: Failing
) -> None:
    first.why = SourceDrift("x")
    both.sync()
    first.why = None
    both.sync()
    kept = second.sessions.pop("s1")
    both.sync()
    first.why = SourceDrift("x")
    second.sessions["s1"] = kept
    both.sync()
    first.why = None
    both.sync()
    assert recalled(both, "topic1")


def test_a_list_reads_every_log_and_one_that_fails_keeps_no_other_from_it(db_path: Path, clock: Clock) -> None:
    one, broken = Log("one"), Failing("broken")
    one.say("the boat is called Sira")
    broken.say("the dog is called Rex")
    settings = Settings(db_path=db_path, embedder="none")
    with Memory.open(settings, sources=[broken, one], clock=clock) as memory:
        broken.why = SourceCorrupt("it is damaged")
        report = memory.sync()
        assert (report.kept, report.failures) == (1, ("it is damaged",))
        broken.why = SourceBusy("it is held")
        with pytest.raises(SourceBusy):
            memory.sync()
        broken.why = None
        assert memory.sync().kept == 1
        assert sorted(e.source for e in recalled(memory, "dog boat called")) == ["broken", "one"]


def test_a_log_that_stopped_while_another_goes_on_is_a_problem(both: Two, first: Failing, second: Failing) -> None:
    both.sync()
    assert not [p for p in both.status().problems if "taken in nothing" in p]
    second.touched = START + timedelta(days=9)
    (problem,) = [p for p in both.status().problems if "taken in nothing" in p]
    assert "lcm has taken in nothing since 2026-01-05" in problem and "CLAWMARK_SOURCE=transcripts" in problem


def test_a_quiet_host_is_not_measured_by_another_one(both: Two, first: Failing, second: Failing) -> None:
    both.sync()
    second.host = "claude-code"
    second.touched = START + timedelta(days=9)
    assert not [p for p in both.status().problems if "taken in nothing" in p]


def test_status_counts_what_was_kept_and_left_out_of_each_log(both: Two, first: Failing) -> None:
    first.note("tool_result", "s1")
    first.say("[clawmark:skip] nothing", "s1")
    both.sync()
    lcm, transcripts = both.status().sources
    assert (lcm.state, lcm.seen, lcm.kept, dict(lcm.dropped)) == ("read", 6, 4, {"skip_mark": 1, "tool_result": 1})
    assert (transcripts.state, transcripts.seen, lcm.behind) == ("standing by", 0, 0)
    first.edit(first.messages()[0], "changed")
    first.say("one more", "s1")
    assert both.status().sources[0].behind == 1
    both.sync()
    assert (both.status().sources[0].seen, both.status().sources[0].kept) == (7, 5)


def test_what_was_edited_away_goes_where_the_log_stands_by(both: Two, first: Failing, second: Failing) -> None:
    first.why = SourceDrift("x")
    both.sync()
    first.why = None
    both.sync()
    for log in (first, second):
        log.take_back(next(m for m in log.messages() if "topic2" in m.text))
    assert both.sync().pruned == 1
    assert not recalled(both, "topic2") and recalled(both, "topic1")


def test_what_stands_by_and_cannot_be_listed_whole_loses_nothing(both: Two, first: Failing, second: Failing) -> None:
    first.why = SourceDrift("x")
    both.sync()
    first.why = None
    both.sync()
    hidden = second.sessions.pop("s1")
    failure = SourceError("a part of it cannot be listed")
    failure.parts = ("s",)
    second.unlisted = failure
    assert both.sync().pruned == 0
    second.unlisted, second.sessions["s1"] = None, hidden
    both.sync()
    assert recalled(both, "topic1")


def test_new_rules_reach_what_stands_by(
    both: Two, first: Failing, second: Failing, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second.say("the word of the day is zqsecret", "s1")
    with monkeypatch.context() as patch:
        patch.setattr(clean, "RECIPE", clean.RECIPE - 100)
        first.why = SourceDrift("x")
        both.sync()
        first.why = None
        both.sync()
    masked = clean.secrets.mask
    monkeypatch.setattr(clean.secrets, "mask", lambda text: masked(text).replace("zqsecret", "[REDACTED:word]"))
    both.sync()
    assert query(db_path, "SELECT DISTINCT recipe FROM passages") == [(clean.RECIPE,)]
    assert not residue(db_path.parent, "zqsecret")


def test_when_one_of_two_logs_says_that_somebody_else_spoke_it_was_not_the_owner(
    both: Two, first: Failing, second: Failing, db_path: Path
) -> None:
    said = first.say("the code of the shed is under the mat", "s1")
    second.copy(said, "s1", ref="s1/entry0010", origin="participant")
    both.sync()
    first.why = SourceDrift("x")
    both.sync()
    assert query(db_path, "SELECT origin FROM passages ORDER BY id DESC LIMIT 1") == [("participant",)]
    assert both.block(Turn("where is the code of the shed?", session="elsewhere")).text.count("shed") == 0


def test_many_repeated_words_are_matched_one_to_one_in_their_order(
    both: Two, first: Failing, second: Failing, db_path: Path
) -> None:
    for _ in range(20):
        said = first.say("yes", "s1", after=timedelta(seconds=30))
        second.copy(said, "s1", ref=f"s1/again{len(second.messages()):04d}", at=said.at + timedelta(seconds=300))
    both.sync()
    first.why = SourceDrift("x")
    assert both.sync().kept == 0
    assert query(db_path, "SELECT count(*) FROM passage_refs GROUP BY passage_id") == [(2,)] * 24


def test_a_file_that_is_renamed_where_the_log_stands_by_is_read_on(both: Two, first: Failing, second: Failing) -> None:
    second.say("only the older log knows of topic8", "old")
    first.why = SourceDrift("x")
    both.sync()
    first.why = None
    both.sync()
    second.rename("old", "old.reset")
    second.fates["old"] = "gone"
    assert both.sync().pruned == 0 and recalled(both, "topic8")


def test_a_copy_that_is_further_away_than_ten_minutes_is_its_own(both: Two, first: Failing, second: Failing) -> None:
    said = first.say("yes", "s1")
    second.copy(said, "s1", ref="s1/late00001", at=said.at + timedelta(minutes=11))
    both.sync()
    first.why = SourceDrift("x")
    assert both.sync().kept == 1


def test_another_hosts_log_that_was_read_before_goes_on_being_read(both: Two, first: Failing, second: Failing) -> None:
    second.host = "claude-code"
    second.say("the importer is called quokka", "p1")
    first.why = SourceAbsent("no lcm.db")
    both.sync()
    first.why = None
    second.say("the exporter is called numbat", "p2")
    both.sync()
    assert recalled(both, "quokka") and recalled(both, "numbat")


def test_a_log_that_was_read_and_is_not_there_now_is_a_problem(both: Two, first: Failing) -> None:
    both.sync()
    first.why = SourceAbsent("no lcm.db")
    both.sync()
    assert any("lcm was read before and is not there now" in problem for problem in both.status().problems)
