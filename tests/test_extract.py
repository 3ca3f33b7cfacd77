"""Extraction: facts commit with their cursor, an utterance is looked through once, and no model's word is believed alone."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from helpers import LATER, START, Clock, Log, audit, dump, open_memory, query, residue

from clawmark import transfer
from clawmark.errors import EndpointDown, EndpointError, ReplyUnusable
from clawmark.jobs import asking, extract
from clawmark.memory import Memory
from clawmark.model import Forgetting, Proposal, Turn
from clawmark.store import db


@dataclass
class Model:
    """A host's model that reads the messages it is shown: what `says` gives of each citable line is claimed.

    A claim is (key, value, confidence); its quote is the whole line."""

    claims: dict[str, list[tuple[str, str, float]]] = field(default_factory=dict)
    name: str = "host"
    endpoint: str = ""
    learned: str = ""
    calls: int = 0
    raises: list[Exception] = field(default_factory=list)
    reply: Callable[[str], str] | None = None

    def complete(self, system: str, user: str, schema: Mapping[str, Any], *, most_tokens: int, seconds: float) -> str:
        self.calls += 1
        if self.raises:
            raise self.raises.pop(0)
        if self.reply is not None:
            return self.reply(user)
        found = []
        for said, claims in self.claims.items():
            number = number_of(user, said)
            if number is not None:
                found += [
                    {"key": k, "value": v, "confidence": c, "messages": [number], "quote": said} for k, v, c in claims
                ]
        return json.dumps({"facts": found})


def number_of(user: str, said: str) -> int | None:
    """The number of the message that may be cited and holds `said`."""
    number = None
    for line in user.splitlines():
        header = re.match(r"\[(\d+)\] .*may be cited", line)
        if line.startswith("["):
            number = int(header[1]) if header else None
        elif said in line:
            return number
    return None


EDITOR = "My editor is Helix."
CITY = "I live in Porto since June."


@pytest.fixture
def model() -> Model:
    return Model(
        {
            EDITOR: [("pref.editor", "Helix", 0.95)],
            CITY: [("user.city", "Porto", 0.95)],
            "I live in Ghent now.": [("user.city", "Ghent", 0.95)],
        }
    )


@pytest.fixture
def believing(db_path: Path, log: Log, clock: Clock, model: Model) -> Memory:
    return with_model(db_path, log, clock, model)


def with_model(path: Path, log: Log, clock: Clock, model: Model, **changes: Any) -> Memory:
    settings = {"extract_url": "host", "allow_remote": ("host",)} | changes
    memory = open_memory(path, log, clock=clock, **settings)
    memory._host_model = model
    return memory


def facts_of(memory: Memory) -> dict[str, str]:
    return {fact.key: fact.value for fact in memory.facts()}


def kinds(memory: Memory) -> list[str]:
    return [event.event_type for event in reversed(memory.events())]


def again(path: Path) -> None:
    query(path, "DELETE FROM cursors")
    query(path, "UPDATE streams SET mark = ''")


# --- facts, evidence and cursor ---------------------------------------------------------------------------------------


def test_what_the_owner_said_becomes_a_fact_with_its_evidence(believing: Memory, log: Log) -> None:
    said = log.say(EDITOR)
    report = believing.sync()
    assert (report.facts, report.unasked) == (1, 0)
    (fact,) = believing.facts()
    assert (fact.key, fact.value, fact.source, fact.scope) == ("pref.editor", "Helix", "extracted", "main")
    assert fact.observed_at == said.at
    (why,) = believing.why("pref.editor")
    assert [(one.excerpt, one.at) for one in why.evidence] == [(EDITOR, said.at)]


@pytest.mark.parametrize("together", [True, False])
def test_one_live_statement_about_one_thing_however_it_was_batched(
    believing: Memory, log: Log, model: Model, together: bool
) -> None:
    claims = {
        "My editor is Kate.": [("pref.editor", "Kate", 0.95), ("user.editor", "Kate", 0.95)],
        "I live in Porto since June.": [("user.city", "Porto", 0.95), ("user.current_city", "Porto", 0.95)],
        "My editor is Helix.": [("pref.current_editor", "Helix", 0.95), ("user.editor", "Helix", 0.95)],
    }
    model.claims = claims
    for text in claims:
        log.say(text)
        if not together:
            believing.sync()
    believing.sync()
    assert sorted(facts_of(believing).values()) == ["Helix", "Porto"]


def test_facts_evidence_and_cursor_commit_together(
    believing: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say(EDITOR)
    from clawmark.store import evidence

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed here")

    monkeypatch.setattr(evidence, "note_extracted", fails)
    with pytest.raises(RuntimeError):
        believing.sync()
    assert query(db_path, "SELECT count(*) FROM facts") == query(db_path, "SELECT count(*) FROM evidence") == [(0,)]
    assert query(db_path, "SELECT count(*) FROM cursors WHERE name = 'extract'") == [(0,)]
    monkeypatch.undo()
    believing.sync()
    assert facts_of(believing) == {"pref.editor": "Helix"}


def test_a_log_that_is_read_again_calls_no_model_and_reinforces_nothing(
    believing: Memory, log: Log, db_path: Path, model: Model
) -> None:
    log.say(EDITOR)
    believing.sync()
    before = audit(db_path, "SELECT * FROM facts"), kinds(believing)
    again(db_path)
    model.calls = 0
    believing.sync()
    assert model.calls == 0
    assert (audit(db_path, "SELECT * FROM facts"), kinds(believing)) == before


def test_a_model_that_is_asked_again_about_known_words_reinforces_nothing(
    believing: Memory, log: Log, db_path: Path
) -> None:
    log.say(EDITOR)
    believing.sync()
    before = audit(db_path, "SELECT * FROM facts"), kinds(believing)
    query(db_path, "DELETE FROM extracted")
    again(db_path)
    believing.sync()
    assert (audit(db_path, "SELECT * FROM facts"), kinds(believing)) == before


def test_saying_it_on_another_day_reinforces(believing: Memory, log: Log) -> None:
    log.say(EDITOR)
    believing.sync()
    said = log.say(EDITOR, "s2", after=timedelta(days=40))
    believing.sync()
    (fact,) = believing.facts()
    assert (fact.observed_at, fact.reinforced_at) == (log.messages()[0].at, said.at)
    assert kinds(believing)[-1] == "reinforce"


def test_an_old_log_that_is_read_later_replaces_nothing(believing: Memory, log: Log) -> None:
    log.say(CITY, at=START + timedelta(days=150))
    believing.sync()
    log.say("I live in Ghent now.", "old", at=START)
    believing.sync()
    assert facts_of(believing) == {"user.city": "Porto"}


def test_a_newer_statement_supersedes_and_the_older_keeps_its_dates(believing: Memory, log: Log) -> None:
    log.say("I live in Ghent now.", at=START)
    log.say(CITY, "s2", at=START + timedelta(days=150))
    believing.sync()
    assert facts_of(believing) == {"user.city": "Porto"}
    (why,) = believing.why("user.city")
    (update,) = [event for event in why.history if event.event_type == "update"]
    assert (update.old_value, update.new_value) == ("Ghent", "Porto")
    said = json.loads(update.detail or "{}")
    assert (said["from"], said["until"]) == ("2026-01-05", "2026-06-04")


def test_the_persons_word_is_never_replaced(believing: Memory, log: Log) -> None:
    believing.set("pref.editor", "Kate", scope="main")
    log.say(EDITOR)
    believing.sync()
    assert facts_of(believing) == {"pref.editor": "Kate"}
    (waits,) = believing.proposals()
    assert (waits.value, waits.conflict, waits.against) == ("Helix", "conflict_candidate", "pref.editor")


def test_a_shared_word_of_the_person_outweighs_a_scopes_guess(believing: Memory, log: Log) -> None:
    believing.set("pref.editor", "Kate")
    log.say(EDITOR)
    believing.sync()
    assert facts_of(believing) == {"pref.editor": "Kate"}


# --- what is not believed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["main", "shared"])
def test_what_the_owner_says_of_a_fact_of_theirs_is_what_it_rests_on_too(
    db_path: Path, log: Log, clock: Clock, scope: str
) -> None:
    """Though it would have had to wait, for an address is risky."""
    said = "My invoice address is billing@example.net."
    memory = with_model(db_path, log, clock, Model({said: [("user.invoice_address", "billing@example.net", 0.95)]}))
    memory.set("user.invoice_address", "billing@example.net", scope)
    stored = memory.facts()
    log.say(said)
    memory.sync()
    (why,) = memory.why("user.invoice_address")
    assert [one.excerpt for one in why.evidence] == [said]
    assert memory.facts() == stored and memory.proposals() == []


@pytest.mark.parametrize("origin", ["assistant", "participant"])
def test_what_others_said_becomes_no_fact(believing: Memory, log: Log, origin: Any) -> None:
    log.say("good evening to all of you", "s1")
    log.say(EDITOR, "s1", origin=origin)
    log.say("what a nice evening it is", "s1")
    believing.sync()
    assert believing.facts() == []


def test_review_sends_everything_to_the_person(db_path: Path, log: Log, clock: Clock, model: Model) -> None:
    memory = with_model(db_path, log, clock, model, promote="review")
    log.say(EDITOR)
    assert memory.sync().proposed == 1
    assert memory.facts() == []
    (waits,) = memory.proposals()
    assert (waits.key, waits.value, waits.reason) == ("pref.editor", "Helix", "review")


def test_a_sure_model_with_nothing_to_cite_is_not_believed(believing: Memory, log: Log, model: Model) -> None:
    log.say("the weather was fine all week")
    model.claims = {"the weather was fine all week": [("user.allergy", "peanuts", 1.0)]}
    believing.sync()
    assert (believing.facts(), believing.proposals()) == ([], [])
    assert "reject" in kinds(believing)
    assert "peanuts" not in json.dumps([event.as_json() for event in believing.events()])


def test_forgotten_facts_are_not_learned_again(believing: Memory, log: Log, db_path: Path) -> None:
    log.say(CITY)
    believing.sync()
    assert believing.forget("user.city") == ["main"]
    query(db_path, "DELETE FROM extracted")
    again(db_path)
    believing.sync()
    assert believing.facts() == []
    log.say("Yes, I live in Porto.", "s2", at=LATER - timedelta(hours=1))
    believing.sync()
    assert believing.facts() == [], "only their own set brings it back"
    believing.set("user.city", "Porto")
    assert facts_of(believing) == {"user.city": "Porto"}


def test_a_fact_that_an_agent_hid_stays_hidden(believing: Memory, log: Log) -> None:
    log.say(EDITOR)
    believing.sync()
    believing.hide("pref.editor")
    log.say(EDITOR, "s2", after=timedelta(days=3))
    believing.sync()
    assert believing.facts() == []


def test_what_one_agent_learned_another_does_not_know(believing: Memory, log: Log) -> None:
    log.session("w", scope="work")
    log.say(EDITOR, "w")
    believing.sync()
    assert believing.facts("main") == []
    assert [fact.value for fact in believing.facts("work")] == ["Helix"]
    assert "Helix" not in believing.block(Turn("which editor is it", scope="main")).text


# --- a conversation that is deleted -----------------------------------------------------------------------------------


def test_what_rests_on_a_deleted_conversation_alone_goes_with_it(believing: Memory, log: Log, db_path: Path) -> None:
    log.say(EDITOR, "s1")
    log.say("the shed wants a lock", "s2")
    believing.sync()
    log.end("s1", "deleted")
    believing.sync()
    assert believing.facts() == []
    assert "withdraw" in kinds(believing)
    assert query(db_path, "SELECT count(*) FROM memory_events WHERE new_value LIKE '%Helix%'") == [(0,)]


def test_what_the_person_set_stays_when_a_conversation_is_deleted(believing: Memory, log: Log) -> None:
    log.say(EDITOR, "s1")
    believing.sync()
    believing.set("pref.editor", "Helix", scope="main")
    log.end("s1", "deleted")
    log.say("another day", "s2")
    believing.sync()
    assert facts_of(believing) == {"pref.editor": "Helix"}


def test_a_log_that_expired_withdraws_nothing(db_path: Path, clock: Clock, model: Model) -> None:
    log = Log(expires=True)
    memory = with_model(db_path, log, clock, model)
    log.say(EDITOR, "s1")
    log.say("the shed wants a lock", "s2")
    memory.sync()
    log.end("s1", "expired")
    memory.sync()
    assert facts_of(memory) == {"pref.editor": "Helix"}


# --- when it is asked -------------------------------------------------------------------------------------------------


def test_a_few_messages_wait_for_more_until_nothing_more_is_said(believing: Memory, log: Log, model: Model) -> None:
    log.say(EDITOR)
    report = believing.sync(hurry=False)
    assert (model.calls, report.unasked) == (0, 1)
    assert believing.sync().facts == 1


def test_one_pass_looks_through_as_much_as_it_may(believing: Memory, log: Log, model: Model) -> None:
    for number in range(4):
        log.say(f"the note of day {number} speaks of the harbour", f"s{number}")
    report = believing.sync(most_batches=3)
    assert (model.calls, report.unasked) == (3, 1)


def test_two_sessions_are_never_shown_together(believing: Memory, log: Log, model: Model) -> None:
    shown: list[str] = []
    model.reply = lambda user: shown.append(user) or '{"facts": []}'  # type: ignore[func-returns-value]
    log.say("the first session speaks of herons", "s1")
    log.say("the second session speaks of otters", "s2")
    believing.sync()
    assert len(shown) == 2
    assert not any("herons" in one and "otters" in one for one in shown)


def test_greetings_ask_no_model(believing: Memory, log: Log, model: Model) -> None:
    log.say("thanks!")
    log.say("ok")
    report = believing.sync()
    assert (model.calls, report.unasked) == (0, 0)


def test_a_long_message_is_no_evidence(believing: Memory, log: Log, model: Model) -> None:
    pasted = EDITOR + " " + "a page about gardens goes on and on. " * 60
    model.claims = {EDITOR: [("pref.editor", "Helix", 0.95)]}
    log.say(pasted)
    log.say("what do you make of that page?")
    believing.sync()
    assert believing.facts() == []


# --- a model that fails -----------------------------------------------------------------------------------------------


def test_an_endpoint_that_is_down_keeps_the_cursor(believing: Memory, log: Log, model: Model, db_path: Path) -> None:
    log.say(EDITOR)
    model.raises = [EndpointDown("the model sleeps"), EndpointDown("the model sleeps")]
    for _ in range(2):
        report = believing.sync()
        assert (report.facts, report.unasked) == (0, 1)
    assert kinds(believing) == ["extract_unavailable"], "said once"
    assert believing.sync().facts == 1
    assert kinds(believing) == ["extract_unavailable", "create", "extract_available"]


def test_a_server_that_never_gets_through_is_shown_less(
    believing: Memory, log: Log, model: Model, clock: Clock
) -> None:
    shown: list[int] = []

    def slow(user: str) -> str:
        shown.append(user.count("may be cited"))
        if shown[-1] > 3:
            clock.advance(seconds=120)
            raise EndpointDown("it did not answer within 120 s.")
        return '{"facts": []}'

    model.reply = slow
    for number in range(16):
        log.say(f"the note of hour {number} speaks of the harbour")
    for _ in range(5):
        believing.sync()
    assert shown == [16, 16, 12, 6, 3, 3, 3, 3, 3, 1]
    assert believing.status().unasked == 0


def test_a_wrong_setting_is_said_and_loses_nothing(believing: Memory, log: Log, model: Model) -> None:
    log.say(EDITOR)
    model.raises = [EndpointError("CLAWMARK_EXTRACT_API_KEY is refused")]
    assert believing.sync().unasked == 1
    assert believing.sync().facts == 1


POISON = "The lapis gecko sits on the wall."


def chokes(model: Model, error: Exception) -> None:
    """The model answers about anything but one message."""

    def reply(user: str) -> str:
        if POISON in user:
            raise error
        found = [
            {"key": k, "value": v, "confidence": c, "messages": [number_of(user, said)], "quote": said}
            for said, claims in model.claims.items()
            for k, v, c in claims
            if number_of(user, said) is not None
        ]
        return json.dumps({"facts": found})

    model.reply = reply


def test_one_message_that_is_to_blame_costs_no_other(believing: Memory, log: Log, model: Model, clock: Clock) -> None:
    log.say(EDITOR)
    log.say(POISON)
    for number in range(30):
        log.say(f"the note of hour {number} speaks of the harbour")
    log.say(CITY)
    chokes(model, ReplyUnusable("it refuses"))
    report = believing.sync()
    assert facts_of(believing) == {"pref.editor": "Helix", "user.city": "Porto"}
    assert report.unasked == 0 and model.calls <= asking.MOST_CALLS
    model.calls = 0
    believing.sync()
    assert model.calls == 0, "not twice a day"
    for _ in range(extract.DAYS + 2):
        clock.advance(days=1)
        believing.sync()
    clock.advance(days=1)
    model.calls = 0
    believing.sync()
    assert model.calls == 0, "nor for ever"


def test_a_server_with_a_small_window_is_shown_less(believing: Memory, log: Log, model: Model) -> None:
    sizes: list[int] = []

    def narrow(user: str) -> str:
        sizes.append(user.count("may be cited"))
        if sizes[-1] > 6:
            raise ReplyUnusable("too long")
        return '{"facts": []}'

    model.reply = narrow
    for number in range(24):
        log.say(f"the note of hour {number} speaks of the harbour")
    assert believing.sync().unasked == 0
    assert sizes == [24, 24, 12, 6, 6, 12, 6, 6]
    for number in range(30):
        log.say(f"the note of minute {number} speaks of the lighthouse")
    sizes.clear()
    believing.sync()
    assert sizes[0] == extract.BATCH // 2, "less at once from then on"
    assert query(believing.path, "SELECT count(*) FROM extracted") == [(54,)]


def test_a_server_of_which_no_answer_can_be_used_is_left_alone_and_loses_nothing(
    believing: Memory, log: Log, model: Model, clock: Clock
) -> None:
    for number in range(8):
        log.say(f"the note of day {number} speaks of the harbour", f"s{number}")
    log.say(EDITOR, "s0")
    model.reply = lambda user: (_ for _ in ()).throw(ReplyUnusable("empty"))
    report = believing.sync()
    assert model.calls < 20 and report.unasked > 0
    assert "extract_unavailable" in kinds(believing)
    model.calls = 0
    believing.sync()
    assert model.calls <= 2, "one batch tells whether that has changed"
    model.reply = None
    clock.advance(days=1)
    believing.sync()
    assert facts_of(believing) == {"pref.editor": "Helix"}


def test_another_reason_is_another_event(believing: Memory, log: Log, model: Model) -> None:
    log.say(EDITOR)
    for error in (
        EndpointDown("a cannot be reached"),
        EndpointError("b answered 401"),
        EndpointError("b answered 401"),
    ):
        model.raises = [error]
        believing.sync()
    told = [event.detail for event in believing.events() if event.event_type == "extract_unavailable"]
    assert told == ["b answered 401", "a cannot be reached"]


@pytest.mark.parametrize("behind", [timedelta(hours=25), timedelta(days=400)])
def test_what_is_learned_while_the_clock_is_behind_keeps_the_logs_date(
    believing: Memory, log: Log, clock: Clock, behind: timedelta
) -> None:
    said = LATER - timedelta(days=2)
    clock.now = said - behind
    log.say(CITY, at=said)
    believing.sync()
    clock.now = LATER
    log.say("I live in Ghent now.", "old", at=said - timedelta(days=30))
    believing.sync()
    (fact,) = believing.facts()
    assert (fact.value, fact.observed_at) == ("Porto", said)


def test_what_is_forgotten_while_a_model_is_asked_leaves_no_trace(
    believing: Memory, log: Log, model: Model, db_path: Path
) -> None:
    log.say(EDITOR)

    def forgetful(user: str) -> str:
        believing.erase(Forgetting(everything=True))
        model.reply = None
        return model.complete("", user, {}, most_tokens=1, seconds=1)

    model.reply = forgetful
    believing.sync()
    assert believing.facts() == []
    assert query(db_path, "SELECT count(*) FROM extracted") == [(0,)]


def meanwhile(model: Model, work: Callable[[], object]) -> None:
    """`work` is done once, while the model is asked."""

    def reply(user: str) -> str:
        model.reply = None
        work()
        return model.complete("", user, {}, most_tokens=1, seconds=1)

    model.reply = reply


def test_nobody_waits_for_a_model(believing: Memory, log: Log, model: Model) -> None:
    held = []

    def take() -> None:
        with db.lease(believing.path, 0):
            held.append(True)

    log.say(EDITOR)
    meanwhile(model, take)
    assert believing.sync().facts == len(held) == 1


def test_another_thread_indexes_while_a_model_is_asked(believing: Memory, log: Log, model: Model) -> None:
    reports = []

    def sync_beside() -> None:
        log.say(CITY, "s2")
        thread = threading.Thread(target=lambda: reports.append(believing.sync()))
        thread.start()
        thread.join(30)

    log.say(EDITOR)
    meanwhile(model, sync_beside)
    believing.sync()
    assert [(one.read, one.facts, one.unasked) for one in reports] == [(1, 0, 2)]
    assert facts_of(believing) == {"pref.editor": "Helix", "user.city": "Porto"}


def test_what_a_pass_read_is_told_where_nobody_can_take_the_turn_to_extract(believing: Memory, log: Log) -> None:
    turn = believing.path.with_name(believing.path.name + ".extract.lock")
    turn.write_text("another program's")
    log.say(EDITOR)
    report = believing.sync()
    assert (report.read, report.facts) == (1, 0) and len(report.failures) == 1 and turn.name in report.failures[0]
    assert turn.read_text() == "another program's"
    turn.unlink()
    assert believing.sync().facts == 1


def test_two_passes_never_ask_about_the_same_messages(
    believing: Memory, log: Log, model: Model, db_path: Path, clock: Clock
) -> None:
    other, reports = Model(model.claims), []

    def sync() -> None:
        log.say(CITY, "s2")
        with with_model(db_path, log, clock, other) as memory:
            reports.append(memory.sync())

    log.say(EDITOR)
    meanwhile(model, sync)
    believing.sync()
    assert [(one.read, one.facts, one.unasked) for one in reports] == [(1, 0, 2)]
    assert other.calls == 0 and facts_of(believing) == {"pref.editor": "Helix", "user.city": "Porto"}


def test_what_is_forgotten_while_a_model_is_asked_costs_no_other_message(
    believing: Memory, log: Log, model: Model
) -> None:
    log.say(EDITOR)
    log.say(CITY)
    meanwhile(model, lambda: believing.erase(Forgetting(query="Porto June")))
    assert believing.sync().unasked == 0
    assert facts_of(believing) == {"pref.editor": "Helix"}


def test_an_answer_about_one_memory_never_enters_the_backup_that_took_its_place(
    believing: Memory, log: Log, model: Model, clock: Clock, db_path: Path, tmp_path: Path
) -> None:
    """Nor does the cursor: what the backup holds is looked through as if nothing had been asked."""
    with open_memory(tmp_path / "other.db", Log(), clock=clock) as other:
        other.set("pref.tea", "green")
        backup = transfer.backup(other.path, tmp_path / "backup.db", clock)
    log.say(EDITOR)
    meanwhile(model, lambda: transfer.restore(db_path, backup, clock, 1))
    believing.sync()
    assert facts_of(believing) == {"pref.tea": "green"}
    assert query(db_path, "SELECT * FROM cursors WHERE name = 'extract'") == []
    believing.sync()
    assert facts_of(believing) == {"pref.tea": "green", "pref.editor": "Helix"}


@pytest.mark.parametrize("word", ["unusable: ", ""])
def test_a_server_that_answered_in_vain_is_told_without_the_word_for_it(
    believing: Memory, log: Log, model: Model, db_path: Path, word: str
) -> None:
    """Events of earlier versions lack it."""
    said = "host answers, and none of its answers can be used."
    for number in range(8):
        log.say(f"the note of hour {number} speaks of the harbour")
    model.reply = lambda user: "no idea"
    query(
        db_path,
        "INSERT INTO memory_events (event_type, source, created_at, detail) VALUES"
        f" ('extract_unavailable', 'extract', '2026-12-01T11:00:00+00:00', '{word}{said}')",
    )
    believing.sync()
    assert model.calls == asking.MOST_CALLS_IN_DOUBT
    assert kinds(believing).count("extract_unavailable") == 1, "said once"
    (problem,) = [one for one in believing.status().problems if one.startswith("extractor: host")]
    assert problem.startswith(f"extractor: {said[:-1]} (since 2026-12-01 11:00 UTC)")


def test_an_unusable_answer_is_asked_for_again_then_in_halves_then_left(
    believing: Memory, log: Log, model: Model
) -> None:
    log.say(EDITOR)
    log.say(CITY)
    model.raises = [ReplyUnusable("prose"), ReplyUnusable("prose"), ReplyUnusable("prose")]
    report = believing.sync()
    assert (model.calls, report.unasked) == (4, 0)
    assert facts_of(believing) == {"user.city": "Porto"}, "the half that could be used"
    (error,) = [event for event in believing.events() if event.event_type == "extract_error"]
    assert json.loads(error.detail or "") == {"unusable": 1}


def test_an_answer_that_is_never_usable_costs_its_batch_alone(believing: Memory, log: Log, model: Model) -> None:
    log.say(EDITOR, "s1")
    log.say(CITY, "s2")
    model.raises = [ReplyUnusable("prose"), ReplyUnusable("prose")]
    assert believing.sync().unasked == 0
    assert facts_of(believing) == {"user.city": "Porto"}


def test_more_facts_than_fit_are_asked_for_in_halves(believing: Memory, log: Log, model: Model) -> None:
    words = "ash birch cedar fir hazel larch oak pine rowan yew elm alder aspen beech holly maple".split()
    for number, word in enumerate(words):
        log.say(f"My {word} is {word}hammer.")
        model.claims[f"My {word} is {word}hammer."] = [(f"pref.{word}", f"{word}hammer", 0.9)]
        assert number < 16
    believing.sync()
    assert model.calls == 3
    assert len(believing.facts()) == 16


def test_without_consent_nothing_is_asked(db_path: Path, log: Log, clock: Clock, model: Model) -> None:
    memory = with_model(db_path, log, clock, model, allow_remote=())
    log.say(EDITOR)
    report = memory.sync()
    assert (model.calls, report.unasked) == (0, 1)
    assert kinds(memory) == ["extract_unavailable"]


def test_the_hosts_model_is_asked_as_often_as_it_may_be(db_path: Path, log: Log, clock: Clock, model: Model) -> None:
    memory = with_model(db_path, log, clock, model, extract_daily_calls=2)
    for number in range(4):
        log.say(f"the note of day {number} speaks of the harbour", f"s{number}")
    assert memory.sync().unasked == 2
    assert model.calls == 2
    assert memory.status().calls == (2, 2)
    (told,) = [line for line in memory.status().problems if "midnight UTC" in line]
    assert "asked 2 times today" in told and "asked again then" in told and "sync" not in told
    clock.advance(days=1)
    assert memory.sync().unasked == 0
    assert not any("midnight" in line for line in memory.status().problems)


def test_a_dry_run_spends_what_the_day_allows(db_path: Path, log: Log, clock: Clock, model: Model) -> None:
    memory = with_model(db_path, log, clock, model, extract_daily_calls=2)
    log.say(EDITOR)
    memory.sync()
    memory.dry_run(3650)
    with pytest.raises(EndpointDown, match="asked 2 times today"):
        memory.dry_run(3650)
    assert (model.calls, memory.status().calls) == (2, (2, 2))


def test_calls_that_an_earlier_version_counted_count(db_path: Path, log: Log, clock: Clock, model: Model) -> None:
    memory = with_model(db_path, log, clock, model, extract_daily_calls=2)
    today = f"{clock.now:%Y-%m-%d}"
    query(db_path, f"INSERT INTO cursors VALUES ('extract:calls', '{today} 2', '2026-12-01T00:00:00+00:00')")
    query(db_path, f"INSERT INTO cursors VALUES ('extract:slow', '3 {today}', '2026-12-01T00:00:00+00:00')")
    log.say(EDITOR)
    assert (memory.sync().unasked, model.calls, memory.status().calls) == (1, 0, (2, 2))


def test_a_model_that_cannot_be_asked_keeps_its_name(db_path: Path, log: Log, clock: Clock, model: Model) -> None:
    memory = with_model(db_path, log, clock, model, allow_remote=())
    how = memory.extraction()
    assert (how.who.kind, how.name, how.completer) == ("host", "host", None) and how.why_not is not None
    model.name = "fake"
    assert with_model(db_path, log, clock, model).extraction().name == "fake"


def test_off_means_that_nobody_looks(db_path: Path, log: Log, clock: Clock, model: Model) -> None:
    memory = with_model(db_path, log, clock, model, extract_url="off")
    log.say("Remember: I always take the window seat.")
    memory.sync()
    assert (model.calls, memory.proposals(), memory.facts()) == (0, [], [])


def test_a_passage_that_cannot_be_read_now_is_looked_through_another_day(
    believing: Memory, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say(EDITOR)
    get = log.get
    monkeypatch.setattr(log, "get", lambda wanted: [_gone(one) for one in get(wanted)])
    assert believing.sync().facts == 0
    monkeypatch.undo()
    clock.advance(days=1)
    assert believing.sync().facts == 1


def _gone(one: Any) -> Any:
    from clawmark.model import Gone

    return Gone(one.ref)


# --- without any model ------------------------------------------------------------------------------------------------


def test_without_a_model_marked_sentences_are_proposed_and_nothing_is_stored(memory: Memory, log: Log) -> None:
    log.say("Remember that I always take the window seat.")
    log.say("the window was open all night")
    report = memory.sync()
    assert (report.facts, report.proposed, report.unasked) == (0, 1, 0)
    (waits,) = memory.proposals()
    assert "window seat" in waits.value and waits.reason == "marker" and waits.scope == "main"
    accepted = memory.accept(waits.name)
    assert accepted is not None and accepted.source == "user"


def test_a_model_that_is_set_up_later_looks_through_what_the_markers_have(
    db_path: Path, log: Log, clock: Clock, model: Model
) -> None:
    log.say(EDITOR)
    open_memory(db_path, log, clock=clock).sync()
    memory = with_model(db_path, log, clock, model)
    memory.sync()
    assert facts_of(memory) == {"pref.editor": "Helix"}
    model.calls = 0
    open_memory(db_path, log, clock=clock).sync()
    assert with_model(db_path, log, clock, model).sync().unasked == model.calls == 0


# --- what time does ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [-400, 400])
def test_a_clock_that_jumps_prunes_nothing(believing: Memory, log: Log, clock: Clock, days: int) -> None:
    log.say(EDITOR, at=LATER - timedelta(days=1))
    log.say("Remember that I always take the window seat.", "s2", at=LATER - timedelta(hours=20))
    believing.sync()
    believing.propose("set", "user.boat", "sloop", "main", origin="agent", reason="unsupported")
    before = believing.facts(), believing.proposals()
    clock.advance(days=days)
    believing.sync()
    assert believing.facts() == before[0]
    assert [one.id for one in believing.proposals(deferred=True)] == [one.id for one in before[1]]
    assert "Helix" in believing.block(Turn("which editor", scope="main")).text or days < 0


def test_what_nobody_said_for_a_year_is_hidden(believing: Memory, log: Log, clock: Clock) -> None:
    log.say(EDITOR, at=LATER - timedelta(days=370))
    believing.sync()
    log.say("a new day in the harbour", "s2", at=LATER - timedelta(hours=1))
    believing.sync()
    assert believing.facts() == []
    assert "decay" in kinds(believing)
    log.say(EDITOR, "s3", at=LATER)
    believing.sync()
    assert facts_of(believing) == {"pref.editor": "Helix"}


def test_a_proposal_runs_out_and_what_was_hidden_for_it_is_shown_again(
    believing: Memory, log: Log, clock: Clock
) -> None:
    believing.set("pref.editor", "Kate", scope="main")
    believing.hide("pref.editor", "main")
    believing.propose("forget", "pref.editor", "Kate", "main", origin="agent", reason="forget")
    clock.advance(days=31)
    log.say("a new day in the harbour", at=clock.now)
    believing.sync()
    assert believing.proposals() == []
    assert facts_of(believing) == {"pref.editor": "Kate"}
    assert kinds(believing)[-2:] == ["unhide", "lapse"]


# --- events -----------------------------------------------------------------------------------------------------------


def test_the_history_of_facts_outlives_noise(believing: Memory, log: Log, db_path: Path) -> None:
    log.say(EDITOR)
    believing.sync()
    query(
        db_path,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050)"
        " INSERT INTO memory_events (event_type, source, created_at)"
        " SELECT 'reject', 'extracted', '2026-12-01T12:00:00+00:00' FROM n",
    )
    believing.sync()
    assert query(db_path, "SELECT count(*) FROM memory_events WHERE event_type = 'reject'") == [(5000,)]
    assert query(db_path, "SELECT count(*) FROM memory_events WHERE event_type = 'create'") == [(1,)]


def test_the_first_block_of_a_session_says_what_waits_and_what_was_noted(believing: Memory, log: Log) -> None:
    log.say(EDITOR)
    believing.sync()
    believing.propose("set", "user.boat", "sloop", "main", origin="agent", reason="unsupported")
    first = Turn("which editor do I use", host="openclaw", scope="main", session="new")
    block = believing.block(first)
    assert "1 proposed statement waits" in block.text and "Noted since the last session: pref.editor" in block.text
    assert "sloop" not in block.text
    believing.shown(first, block)
    assert believing.block(first).notice == "", "once a session"
    other = believing.block(Turn("and my editor?", host="openclaw", scope="main", session="newer"))
    assert "1 proposed statement waits" in other.text and "Noted" not in other.text


def test_more_than_twenty_proposals_are_not_counted(believing: Memory) -> None:
    for number in range(25):
        believing.propose("set", f"pref.tool{number}", f"hammer number {number}", "main", origin="agent", reason="x")
    block = believing.block(Turn("hello there, how is it", host="openclaw", scope="main", session="new"))
    assert "20+ proposed statements wait" in block.text


def test_a_group_is_told_nothing_of_proposals(believing: Memory) -> None:
    believing.propose("set", "user.boat", "sloop", "main", origin="agent", reason="unsupported")
    assert believing.block(Turn("hi all", host="openclaw", scope="main", session="new", kind="group")).text == ""


# --- decisions --------------------------------------------------------------------------------------------------------


def waiting(memory: Memory, key: str = "user.boat", value: str = "a blue sloop", **changes: Any) -> Proposal:
    said = {"origin": "agent", "reason": "unsupported"} | changes
    return memory.propose("set", key, value, "main", **said)


def test_accepting_makes_it_the_persons_word(memory: Memory) -> None:
    one = waiting(memory)
    fact = memory.accept(one.name)
    assert fact is not None and (fact.source, fact.confidence, fact.value) == ("user", 1.0, "a blue sloop")
    assert memory.proposals() == []


def test_an_approval_is_bound_to_its_content(memory: Memory, db_path: Path) -> None:
    from clawmark.errors import UsageError

    one = waiting(memory)
    query(db_path, "UPDATE proposals SET value = 'a red sloop'")
    with pytest.raises(UsageError, match="says something else"):
        memory.accept(one.name)
    assert memory.facts() == []


def test_a_rejection_holds_for_180_days(memory: Memory, clock: Clock, log: Log) -> None:
    from clawmark.errors import Refused

    memory.reject(waiting(memory).name, "it is not mine")
    with pytest.raises(Refused):
        waiting(memory)
    clock.advance(days=181)
    log.say("a new day", at=clock.now)
    memory.sync()
    assert waiting(memory).state == "pending"


def test_what_was_rejected_becomes_no_fact_by_itself(believing: Memory, log: Log) -> None:
    believing.reject(believing.propose("set", "pref.editor", "Helix", "main", origin="agent", reason="x").name)
    log.say(EDITOR)
    believing.sync()
    assert believing.facts() == [] and believing.proposals() == []
    believing.set("pref.editor", "Helix")
    assert facts_of(believing) == {"pref.editor": "Helix"}


def test_what_is_decided_loses_its_value(memory: Memory, db_path: Path) -> None:
    memory.reject(waiting(memory).name)
    assert query(db_path, "SELECT state, value FROM proposals") == [("rejected", "")]
    assert not residue(db_path.parent, "blue sloop")


def test_the_same_statement_waits_once(memory: Memory) -> None:
    assert waiting(memory).id == waiting(memory).id
    assert waiting(memory, "pref.boat", "A blue SLOOP").id == waiting(memory).id


def test_setting_it_by_hand_answers_what_waits(memory: Memory) -> None:
    waiting(memory)
    memory.set("user.boat", "a blue sloop", scope="main")
    assert memory.proposals() == []


def test_merging_joins_both(memory: Memory) -> None:
    memory.set("pref.tea", "green", scope="main")
    one = waiting(memory, "pref.drink", "from a big pot")
    fact = memory.accept(one.name, into="pref.tea")
    assert fact is not None and (fact.key, fact.value) == ("pref.tea", "green; from a big pot")


def test_what_is_merged_rests_on_what_both_rested_on(believing: Memory, log: Log) -> None:
    first = log.say(EDITOR, "s1")
    believing.sync()
    one = waiting(believing, "pref.theme", "with a dark theme")
    believing.accept(one.name, into="pref.editor")
    (why,) = believing.why("pref.editor")
    assert why.fact is not None and why.fact.value == "Helix; with a dark theme"
    assert [(said.excerpt, said.at) for said in why.evidence] == [(EDITOR, first.at)]


def test_superseding_takes_the_other_away_and_keeps_its_dates(memory: Memory) -> None:
    memory.set("pref.editor", "Kate", scope="main")
    one = waiting(memory, "user.editor", "Helix", conflict="conflict_candidate", against="pref.editor")
    memory.accept(one.name, way="supersede")
    assert facts_of(memory) == {"user.editor": "Helix"}
    (event,) = [one for one in memory.why("pref.editor")[0].history if one.event_type == "supersede"]
    assert event.old_value == "Kate" and json.loads(event.detail or "{}")["by"] == "user.editor"


def test_forgetting_what_superseded_takes_its_value_out_of_the_other_keys_trail(memory: Memory, db_path: Path) -> None:
    memory.set("pref.editor", "Kate", scope="main")
    one = waiting(memory, "user.editor", "zyzzyvahelix", conflict="conflict_candidate", against="pref.editor")
    memory.accept(one.name, way="supersede")
    memory.forget("user.editor")
    assert not residue(db_path.parent, "zyzzyvahelix")


def test_a_decided_proposal_keeps_no_word_of_what_was_said(memory: Memory, db_path: Path) -> None:
    for decide in (lambda name: memory.reject(name), lambda name: memory.accept(name, key="user.other")):
        one = waiting(memory, "user.sister_aurelindra", "Aurelindra lives in Lisbon", against="user.aurelindra")
        decide(one.name)
        memory.forget("user.other")
        assert not residue(db_path.parent, "aurelindra", "Aurelindra")
        query(db_path, "DELETE FROM tombstones")


def test_the_reason_of_a_rejection_holds_no_secret_and_is_forgotten_with_its_words(
    memory: Memory, db_path: Path
) -> None:
    from clawmark.model import Forgetting

    secret = "ghp_" + "".join("abcd1234EFGH"[i % 12] for i in range(36))
    memory.reject(waiting(memory).name, f"the token {secret} has nothing to do with Aurelindra in Porto")
    assert not residue(db_path.parent, secret)
    memory.erase(Forgetting(query="Aurelindra Porto"))
    assert not residue(db_path.parent, "Aurelindra")


def test_what_is_forgotten_is_not_named_as_noted(believing: Memory, log: Log) -> None:
    log.say(EDITOR)
    believing.sync()
    believing.forget("pref.editor")
    assert believing.block(Turn("hello there, how is it", host="openclaw", scope="main", session="new")).notice == ""


def test_each_forgetting_of_messages_leaves_an_event(memory: Memory, log: Log) -> None:
    from clawmark.model import Forgetting

    log.say("the shed wants a lock")
    memory.sync()
    memory.erase(Forgetting(conversation="s1"))
    (event,) = [one for one in memory.events() if one.event_type == "erase"]
    assert json.loads(event.detail or "") == {"by": "conversation", "messages": 1}


def test_a_vanished_path_lowers_a_proposal_and_decides_nothing(memory: Memory, log: Log, tmp_path: Path) -> None:
    there = tmp_path / "notes.txt"
    there.write_text("x")
    log.say(f"Remember that I always keep the list in {there} at home.")
    log.say("Remember that I always keep the plan in /nowhere/at/all/plan.txt at home.", "s2")
    memory.sync()
    found = {("nowhere" in one.value): one.confidence for one in memory.proposals()}
    assert found[False] > found[True] >= 0.6


def test_a_dry_run_looks_at_all_that_a_pass_would(memory: Memory, log: Log, clock: Clock) -> None:
    for number in range(60):
        log.say(f"Remember that I always take seat number {number} in row {number + 100}. " + "It is fine there. " * 12)
    clock.now = log.messages()[-1].at + timedelta(days=1)
    memory.sync()
    proposed = len(memory.proposals())
    assert proposed == len([ruling for _, ruling in memory.dry_run(30) if ruling.outcome == "propose"]) == 60


def test_a_dry_run_of_a_model_that_stumbles_writes_nothing(
    believing: Memory, log: Log, model: Model, clock: Clock
) -> None:
    for number in range(6):
        log.say(f"the note of hour {number} speaks of the harbour")
    clock.now = log.messages()[-1].at + timedelta(hours=1)
    model.raises = [ReplyUnusable("prose"), ReplyUnusable("prose")]
    before = dump(believing.path)
    assert believing.dry_run(30) == []
    assert dump(believing.path) == before


def test_a_dry_run_asks_the_hosts_model_no_more_than_it_may(
    db_path: Path, log: Log, clock: Clock, model: Model
) -> None:
    memory = with_model(db_path, log, clock, model, extract_daily_calls=2)
    clock.now = START + timedelta(days=1)
    for number in range(4):
        log.say(f"the note of day {number} speaks of the harbour", f"s{number}")
    open_memory(db_path, log, clock=clock, extract_url="off").sync()
    with pytest.raises(EndpointDown):
        memory.dry_run(30)
    assert model.calls == 2


def test_an_older_saying_replaces_a_later_one_only_when_the_person_says_so(memory: Memory, clock: Clock) -> None:
    from clawmark.errors import UsageError

    one = memory.propose("set", "pref.editor", "Kate", "main", origin="owner", reason="x", observed_at=START)
    clock.advance(minutes=1)
    memory.set("pref.editor", "Helix", scope="main")
    (shown,) = memory.proposals()
    assert (shown.conflict, shown.against) == ("conflict_candidate", "pref.editor")
    with pytest.raises(UsageError, match="something else since"):
        memory.accept(one.name)
    clock.advance(days=1)
    memory.accept(one.name, way="supersede")
    assert facts_of(memory) == {"pref.editor": "Kate"}
    (event,) = [one for one in memory.why("pref.editor")[0].history if one.event_type == "update"]
    said = json.loads(event.detail or "")
    assert said["from"] <= said["until"] == clock.now.date().isoformat()


def test_evidence_of_one_value_is_none_of_another(believing: Memory, log: Log) -> None:
    log.say(EDITOR)
    believing.sync()
    believing.set("pref.editor", "Kate", scope="main")
    (why,) = believing.why("pref.editor")
    assert list(why.evidence) == []
    one = believing.propose("set", "pref.editor", "Emacs", "main", origin="agent", reason="x")
    assert believing.evidence(one) == []
    believing.accept(one.name, way="supersede")


def test_a_fact_that_has_faded_is_told(believing: Memory, log: Log) -> None:
    log.say(EDITOR, at=LATER - timedelta(days=200))
    log.say(CITY, "s2", at=LATER - timedelta(days=1))
    believing.sync()
    assert believing.faded(believing.facts()) == {("main", "pref.editor")}


def test_a_yes_to_forget_is_about_the_value_that_was_shown(memory: Memory) -> None:
    from clawmark.errors import UsageError

    memory.set("user.city", "Lisbon", scope="main")
    one = memory.propose("forget", "user.city", "Lisbon", "main", origin="agent", reason="unasked")
    memory.set("user.city", "Porto", scope="main")
    with pytest.raises(UsageError, match="superseded"):
        memory.accept(one.name)
    assert facts_of(memory) == {"user.city": "Porto"}


def test_a_fact_that_changed_since_is_superseded_by_nothing_older(memory: Memory, clock: Clock) -> None:
    from clawmark.errors import UsageError

    memory.set("pref.editor", "Kate", scope="main")
    one = waiting(memory, "user.editor", "Helix", conflict="conflict_candidate", against="pref.editor")
    clock.advance(minutes=1)
    memory.set("pref.editor", "Emacs", scope="main")
    with pytest.raises(UsageError, match="has changed since"):
        memory.accept(one.name, way="supersede")
    assert facts_of(memory) == {"pref.editor": "Emacs"}


def test_others_proposals_never_keep_the_owners_words_out(memory: Memory, log: Log) -> None:
    from clawmark.belief import MOST_PENDING
    from clawmark.errors import Refused

    for number in range(MOST_PENDING):
        waiting(memory, f"pref.tool{number}", f"hammer number {number}")
    with pytest.raises(Refused):
        waiting(memory, "pref.more", "one more hammer")
    log.say("Remember that I always take the window seat.")
    assert memory.sync().proposed == 1


def test_a_message_without_a_date_makes_no_old_fact(db_path: Path, clock: Clock, model: Model) -> None:
    log = Log()
    memory = with_model(db_path, log, clock, model)
    log.say("a day in the harbour", "s0", at=LATER - timedelta(days=1))
    log.say(EDITOR, "s1", at=LATER + timedelta(days=30_000))
    memory.sync()
    assert facts_of(memory) == {"pref.editor": "Helix"}


@pytest.mark.parametrize("way", ["replace", "supersede"])
def test_accepting_against_what_is_shared_replaces_it_for_all(memory: Memory, way: Any) -> None:
    memory.set("user.city", "Ghent")
    one = waiting(memory, "user.city", "Porto")
    memory.accept(one.name, way=way)
    assert [(fact.scope, fact.value) for fact in memory.facts()] == [("shared", "Porto")]


def test_keeping_both_finds_a_key(memory: Memory) -> None:
    memory.set("pref.editor", "Kate", scope="main")
    one = waiting(memory, "pref.editor", "Helix", conflict="conflict_candidate", against="pref.editor")
    memory.accept(one.name, way="keep_both")
    assert facts_of(memory) == {"pref.editor": "Kate", "pref.editor_2": "Helix"}


def test_putting_off_counts_it_no_more_until_then(memory: Memory, clock: Clock) -> None:
    one = waiting(memory)
    memory.defer(one.name, 7)
    assert memory.proposals() == [] and len(memory.proposals(deferred=True)) == 1
    clock.advance(days=8)
    assert [found.id for found in memory.proposals()] == [one.id]


def test_accepting_to_forget_erases(memory: Memory) -> None:
    memory.set("user.address", "Kouter 7, Ghent", scope="main")
    memory.hide("user.address", "main")
    one = memory.propose("forget", "user.address", "Kouter 7, Ghent", "main", origin="agent", reason="forget")
    assert memory.accept(one.name) is None
    assert memory.facts() == memory.facts(hidden=True) == []


def test_rejecting_to_forget_shows_it_again(memory: Memory) -> None:
    memory.set("user.address", "Kouter 7, Ghent", scope="main")
    memory.hide("user.address", "main")
    one = memory.propose("forget", "user.address", "Kouter 7, Ghent", "main", origin="agent", reason="forget")
    memory.reject(one.name)
    assert facts_of(memory) == {"user.address": "Kouter 7, Ghent"}


def test_what_waits_survives_a_damaged_file(memory: Memory, log: Log, clock: Clock, db_path: Path) -> None:
    waiting(memory)
    memory.set("pref.editor", "Kate")
    memory.close()
    db_path.write_bytes(b"no database at all" * 500)
    again_open = open_memory(db_path, log, clock=clock)
    assert [one.value for one in again_open.proposals()] == ["a blue sloop"]
