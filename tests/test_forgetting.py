"""Forgetting: what is named goes with all that was said of it, and stays away however often the logs are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from helpers import LATER, START, Clock, Log, open_memory, query, recalled, residue
from test_erase import harness
from test_extract import Model, with_model

from clawmark import transfer
from clawmark.errors import Refused, UsageError
from clawmark.memory import Memory
from clawmark.model import Forgetting, Said
from clawmark.text import remembered

CANARY = "zqcanaryxenon7731"


def read_again(memory: Memory, path: Path) -> None:
    """As after a reset of every cursor: all logs are read from their beginning."""
    query(path, "DELETE FROM cursors")
    query(path, "UPDATE streams SET mark = ''")
    memory.sync()


def said(memory: Memory) -> set[str]:
    """Every text that recall still has."""
    rows = query(memory.path, "SELECT id FROM passages ORDER BY id")
    with memory._apart() as (connection, reader):
        return {one.text for one in reader.read(connection, [row[0] for row in rows])}


def test_a_key_goes_with_the_messages_that_state_it(memory: Memory, log: Log, db_path: Path) -> None:
    log.say(f"Remember that my boat is called {CANARY}.")
    log.say(f"Noted, your boat is {CANARY}.", origin="assistant")
    log.say("the mast needs paint before spring")
    memory.sync()
    memory.set("user.boat", CANARY)
    plan = memory.forgetting(Forgetting(key="user.boat"))
    assert list(plan.facts) == [("shared", "user.boat")] and plan.messages == 2
    assert {one.role for one in plan.excerpts} == {"user", "assistant"}
    assert memory.forget("user.boat") == ["shared"]
    assert not residue(db_path.parent, CANARY)
    read_again(memory, db_path)
    assert not residue(db_path.parent, CANARY)
    assert said(memory) == {"the mast needs paint before spring"}


def test_a_common_word_goes_where_it_is_stated_alone(memory: Memory, log: Log) -> None:
    log.say("My editor is Helix.")
    log.say("Helix crashed on the big file today, please look at the trace")
    memory.sync()
    memory.set("pref.editor", "Helix")
    memory.forget("pref.editor")
    assert said(memory) == {"Helix crashed on the big file today, please look at the trace"}


@pytest.mark.parametrize(
    "what",
    [
        Forgetting(query=CANARY),
        Forgetting(before=LATER + timedelta(days=1)),
        Forgetting(before=LATER + timedelta(days=1), scope="main"),
        Forgetting(scope="main"),
        Forgetting(everything=True),
    ],
)
def test_what_is_hidden_goes_like_what_is_shown(memory: Memory, db_path: Path, what: Forgetting) -> None:
    memory.set("user.boat", f"{CANARY} sloop", "main")
    memory.set("user.ship", f"{CANARY} ketch", "main")
    memory.hide("user.ship", "main")
    assert {key for _, key in memory.erase(what).facts} == {"user.boat", "user.ship"}
    assert memory.facts() == memory.facts(hidden=True) == []
    assert not residue(db_path.parent, CANARY)


def test_a_dry_run_changes_nothing(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("My editor is Helix.")
    memory.sync()
    memory.set("pref.editor", "Helix")
    before = query(db_path, "SELECT * FROM facts"), said(memory)
    plan = memory.forgetting(Forgetting(key="pref.editor"))
    assert plan.messages == 1 and [one.excerpt for one in plan.excerpts] == ["My editor is Helix."]
    assert (query(db_path, "SELECT * FROM facts"), said(memory)) == before


def test_what_is_said_after_a_forgetting_is_kept(memory: Memory, log: Log, clock: Clock, db_path: Path) -> None:
    log.say(f"My boat is called {CANARY}.")
    memory.sync()
    memory.set("user.boat", CANARY)
    memory.forget("user.boat")
    log.say(f"My boat is called {CANARY}.", at=LATER + timedelta(hours=1))
    clock.advance(hours=2)
    read_again(memory, db_path)
    assert said(memory) == {f"My boat is called {CANARY}."}
    assert query(db_path, "SELECT count(*) FROM passages") == [(1,)], "the old one stays away"


def test_what_a_forgetting_is_asked_with_is_not_remembered(
    memory: Memory, log: Log, clock: Clock, db_path: Path
) -> None:
    """The request and the answer are logged before and after it, and read later."""
    memory.set("user.address", "Rua das Flores 12, Porto")
    asked = clock.now
    log.say("Please forget that I live in Rua das Flores 12, Porto.", at=asked)
    clock.advance(seconds=5)
    memory.forget("user.address")
    log.say("Forgotten: Rua das Flores 12 in Porto.", at=asked + timedelta(seconds=20), origin="assistant")
    log.say(
        "Flores has many streets, and Porto has 12 bridges, they say, and a Rua or two", at=asked - timedelta(days=1)
    )
    log.say("the 12 flowers of Porto", at=asked)
    clock.advance(hours=1)
    memory.sync()
    left = {"the 12 flowers of Porto"}
    assert said(memory) - {"Flores has many streets, and Porto has 12 bridges, they say, and a Rua or two"} == left
    log.say("We moved back to Rua das Flores 12, Porto!", at=clock.now)
    memory.sync()
    assert "We moved back to Rua das Flores 12, Porto!" in said(memory), "what is said later counts"


def test_a_forgotten_number_is_not_remembered_from_a_log_that_is_read_later(memory: Memory, log: Log) -> None:
    memory.set("user.badge", CANARY)
    memory.forget("user.badge")
    log.say(f"somebody wrote {CANARY} on the door")
    memory.sync()
    assert said(memory) == set()


def test_a_query_finds_what_a_fact_said_before(memory: Memory, db_path: Path) -> None:
    memory.set("pref.editor", "Emacsqzx")
    memory.set("pref.editor", "Helix")
    gone = memory.erase(Forgetting(query="Emacsqzx"))
    assert not residue(db_path.parent, "Emacsqzx")
    assert [fact.value for fact in memory.facts()] == ["Helix"] and list(gone.facts) == []
    with pytest.raises(Refused):
        memory.set("pref.other", "Emacsqzx", writer="agent")
    assert memory.set("pref.editor", "Helix 25", writer="user").value == "Helix 25"


def test_a_key_under_which_nothing_stands_any_more_is_forgotten_with_its_history(memory: Memory, db_path: Path) -> None:
    memory.set("pref.editor", "Emacsqzx", scope="main")
    one = memory.propose(
        "set", "user.editor", "Helix", "main", origin="agent", reason="x", conflict="conflict_candidate",
        against="pref.editor",
    )  # fmt: skip
    memory.accept(one.name, way="supersede")
    memory.forget("pref.editor")
    assert not residue(db_path.parent, "Emacsqzx")
    assert [fact.value for fact in memory.facts()] == ["Helix"]


def test_words_typed_before_a_forgetting_bring_nothing_back_under_any_key(memory: Memory, clock: Clock) -> None:
    typed = clock.now
    memory.set("user.city", "Lisbon Alfama district")
    clock.advance(minutes=1)
    memory.forget("user.city")
    for key in ("user.city", "user.home"):
        with pytest.raises(Refused) as refused:
            memory.set(key, "Lisbon Alfama district", observed_at=typed)
        assert refused.value.code == "FORGOTTEN"
    clock.advance(minutes=1)
    assert memory.set("user.home", "Lisbon Alfama district", observed_at=clock.now)


def test_what_was_forgotten_in_one_scope_does_not_come_back_through_what_is_shared(memory: Memory) -> None:
    memory.set("user.street", "Rua das Flores", scope="main")
    memory.forget("user.street", "main")
    with pytest.raises(Refused):
        memory.set("ref.street", "Rua das Flores", writer="agent")


def test_messages_that_a_forgetting_left_stay_when_their_log_is_read_again(
    memory: Memory, log: Log, db_path: Path
) -> None:
    for number in range(60):
        log.say(f"the dark mode of program {number} is a dark one", at=LATER - timedelta(hours=3, minutes=number))
    memory.sync()
    memory.set("pref.theme", "dark mode", scope="main")
    assert memory.forgetting(Forgetting(key="pref.theme")).messages == 0, "a common word"
    memory.forget("pref.theme")
    read_again(memory, db_path)
    assert len(said(memory)) == 60


def test_a_common_word_is_not_remembered_from_the_talk_about_forgetting_it(
    memory: Memory, log: Log, clock: Clock
) -> None:
    memory.set("user.city", "Lisbonqzx", scope="main")
    asked = clock.now
    log.say("Lisbonqzx has fine trams", at=asked - timedelta(days=3))
    log.say("I live in Lisbonqzx.", at=asked - timedelta(minutes=1))
    log.say("Please forget that I live in Lisbonqzx.", at=asked)
    clock.advance(seconds=5)
    memory.forget("user.city")
    log.say("Done, I no longer know about Lisbonqzx.", at=asked + timedelta(seconds=30), origin="assistant")
    clock.advance(hours=1)
    memory.sync()
    assert said(memory) == {"Lisbonqzx has fine trams"}


def test_a_forgotten_proposal_does_not_come_back(memory: Memory) -> None:
    memory.propose("set", "user.note", "the seven keys lie in the blue drawer", "main", origin="assistant", reason="x")
    memory.erase(Forgetting(query="blue drawer"))
    with pytest.raises(Refused):
        memory.propose("set", "user.other", "the seven keys lie in the blue drawer", "main", origin="agent", reason="x")


def test_a_horizon_is_never_in_the_future(memory: Memory, log: Log, clock: Clock) -> None:
    memory.erase(Forgetting(before=LATER + timedelta(days=30_000)))
    clock.advance(days=2)
    log.say("the ferry leaves at nine", at=LATER + timedelta(days=1))
    memory.sync()
    assert said(memory) == {"the ferry leaves at nine"}


def test_a_clock_that_was_behind_lets_no_message_back_in(memory: Memory, log: Log, clock: Clock, db_path: Path) -> None:
    log.say(f"My boat is called {CANARY}.", at=LATER)
    memory.sync()
    memory.set("user.boat", CANARY)
    clock.now = LATER - timedelta(days=2)
    memory.forget("user.boat")
    clock.now = LATER + timedelta(days=1)
    read_again(memory, db_path)
    assert said(memory) == set()


def test_a_yes_to_forget_takes_the_messages_along(memory: Memory, log: Log, db_path: Path) -> None:
    log.say(f"My boat is called {CANARY}.")
    memory.sync()
    memory.set("user.boat", CANARY, scope="main")
    memory.hide("user.boat", "main")
    one = memory.propose("forget", "user.boat", CANARY, "main", origin="agent", reason="unasked")
    memory.accept(one.name)
    assert not residue(db_path.parent, CANARY)
    read_again(memory, db_path)
    assert not residue(db_path.parent, CANARY)


def test_a_query_takes_facts_and_messages_that_hold_all_its_words(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("the clinic moved my appointment to Thursday")
    log.say("an appointment at the bank")
    log.say("the clinic has a new door")
    memory.sync()
    memory.set("user.doctor", "clinic appointment on Thursdays")
    memory.set("user.bank", "Northlight")
    gone = memory.erase(Forgetting(query="clinic appointments"))
    assert list(gone.facts) == [("shared", "user.doctor")] and gone.messages == 1
    assert said(memory) == {"an appointment at the bank", "the clinic has a new door"}
    read_again(memory, db_path)
    assert said(memory) == {"an appointment at the bank", "the clinic has a new door"}


def test_a_conversation_goes_whole(memory: Memory, log: Log, clock: Clock, db_path: Path) -> None:
    log.say("the garden wants water in July", "s1")
    log.say("then I water it at six", "s1", origin="assistant")
    log.say("the shed wants a lock", "s2")
    memory.sync()
    gone = memory.erase(Forgetting(conversation="s1"))
    assert gone.messages == 2
    log.say("and a new hose", "s1", at=LATER + timedelta(hours=1))
    clock.advance(hours=2)
    read_again(memory, db_path)
    assert said(memory) == {"the shed wants a lock", "and a new hose"}


def test_a_copy_in_a_fork_goes_with_its_conversation(memory: Memory, log: Log, db_path: Path) -> None:
    first = log.say("the garden wants water in July when it is dry", "s1")
    log.copy(first, "fork")
    log.say("the fork goes on with the shed", "fork")
    memory.sync()
    memory.erase(Forgetting(conversation="s1"))
    read_again(memory, db_path)
    assert said(memory) == {"the fork goes on with the shed"}


def test_what_was_said_before_a_date_goes(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("the old ferry left at nine", at=START)
    log.say("the new ferry leaves at ten", at=START + timedelta(days=30))
    memory.sync()
    gone = memory.erase(Forgetting(before=START + timedelta(days=1)))
    assert gone.messages == 1
    read_again(memory, db_path)
    assert said(memory) == {"the new ferry leaves at ten"}


def test_facts_stated_since_a_date_stay(memory: Memory, clock: Clock) -> None:
    clock.now = START
    memory.set("pref.old", "oak")
    memory.set("pref.both", "elm")
    clock.now = LATER
    memory.set("pref.both", "elm")
    memory.set("pref.new", "fir")
    memory.erase(Forgetting(before=LATER - timedelta(days=1)))
    assert [fact.key for fact in memory.facts()] == ["pref.both", "pref.new"]


def test_a_scope_goes_and_no_other(memory: Memory, log: Log, db_path: Path) -> None:
    log.session("w", scope="work")
    log.say("the ledger closes on Friday", "w")
    log.say("the ferry leaves at nine", "s1")
    memory.sync()
    memory.set("project.ledger", "closes Fridays", scope="work")
    memory.set("pref.ferry", "nine", scope="main")
    memory.erase(Forgetting(scope="work"))
    read_again(memory, db_path)
    assert said(memory) == {"the ferry leaves at nine"}
    assert [fact.key for fact in memory.facts()] == ["pref.ferry"]


def test_all_goes(memory: Memory, log: Log, db_path: Path) -> None:
    log.say(f"the {CANARY} lies in the drawer")
    memory.sync()
    memory.set("user.thing", CANARY)
    memory.set("user.thing", f"{CANARY} two", scope="main")
    memory.propose("set", "user.other", f"{CANARY} three", origin="assistant", reason="foreign")
    memory.erase(Forgetting(everything=True))
    assert not residue(db_path.parent, CANARY)
    read_again(memory, db_path)
    assert not residue(db_path.parent, CANARY)
    assert (said(memory), memory.facts(), memory.proposals()) == (set(), [], [])


def test_a_proposal_goes_with_its_key(memory: Memory, db_path: Path) -> None:
    memory.set("user.boat", "sloop")
    memory.propose("set", "user.boat", f"{CANARY} sloop", "shared", origin="assistant", reason="foreign")
    memory.forget("user.boat")
    assert memory.proposals() == [] and not residue(db_path.parent, CANARY)


def test_an_older_value_of_a_forgotten_fact_is_forgotten_too(memory: Memory) -> None:
    memory.set("user.address", "Rua das Flores 12, Porto")
    memory.set("user.address", "Kouter 7, Ghent")
    memory.forget("user.address")
    for value in ("Rua das Flores 12, Porto", "Kouter 7, Ghent"):
        with pytest.raises(Refused) as refused:
            memory.set("user.home", value, writer="agent")
        assert refused.value.code == "FORGOTTEN"


@pytest.mark.parametrize(
    "what",
    [
        Forgetting(),
        Forgetting(key="user.boat", query="boat"),
        Forgetting(everything=True, scope="main"),
        Forgetting(query="  "),
        Forgetting(query="!?"),
    ],
)
def test_one_thing_is_named(memory: Memory, what: Forgetting) -> None:
    with pytest.raises(UsageError):
        memory.erase(what)


def test_a_busy_log_does_not_bring_back_what_is_forgotten_meanwhile(tmp_path: Path, clock: Clock) -> None:
    """A batch that was read before the forgetting is not written after it."""
    from clawmark.errors import DatabaseBusy

    path = tmp_path / "race" / "memory.db"
    log = Log()
    log.say(f"My boat is called {CANARY}.")
    memory = open_memory(path, log, clock=clock)
    memory.set("user.boat", CANARY)
    read = log.read

    def forgetful(*arguments: object) -> object:
        batch = read(*arguments)  # type: ignore[arg-type]
        memory.erase(Forgetting(everything=True))
        return batch

    log.read = forgetful  # type: ignore[assignment, method-assign]
    with memory:
        with pytest.raises(DatabaseBusy):
            memory.sync()
        del log.read
        memory.sync()
        assert not residue(path.parent, CANARY)
        assert recalled(memory, "boat") == []


# --- what rests on what goes ------------------------------------------------------------------------------------------

GHENT, PORTO = "Zqghentxenon", "Zqportoxenon"
SUPERSEDED: list[Callable[[Memory, Log], object]] = [
    lambda memory, log: memory.erase(Forgetting(conversation="s1")),
    lambda memory, log: memory.erase(Forgetting(conversation="s1", scope="main")),
    lambda memory, log: memory.erase(Forgetting(before=START + timedelta(days=1))),
    lambda memory, log: memory.erase(Forgetting(before=START + timedelta(days=1), scope="main")),
    lambda memory, log: memory.erase(Forgetting(query=GHENT)),
    lambda memory, log: log.end("s1", "deleted"),
]


@pytest.fixture
def noted(db_path: Path, log: Log, clock: Clock) -> Memory:
    """The person lived in one city, and lives in another; a model has noted both, from logs that were read long after."""
    said = {
        f"I live in {GHENT}.": [("user.city", GHENT, 0.95)],
        f"I live in {PORTO} now.": [("user.city", PORTO, 0.95)],
    }
    memory = with_model(db_path, log, clock, Model(said))
    log.say(f"I live in {GHENT}.", "s1", at=START)
    log.say(f"I live in {PORTO} now.", "s2", at=START + timedelta(days=30))
    memory.sync()
    assert told(memory, "user.city") == {GHENT, PORTO}
    return memory


def told(memory: Memory, key: str) -> set[str]:
    """Every value that the trail of a key tells."""
    events = [event for one in memory.why(key) for event in one.history]
    return {value for event in events for value in (event.old_value, event.new_value) if value is not None}


@pytest.mark.parametrize("forget", SUPERSEDED)
def test_what_a_fact_once_said_goes_with_what_it_rests_on(
    noted: Memory, log: Log, db_path: Path, forget: Callable[[Memory, Log], object]
) -> None:
    left = harness().residue
    assert left([str(db_path.parent)], [GHENT])
    forget(noted, log)
    log.say("another day", "s3", at=LATER)
    noted.sync()
    assert left([str(db_path.parent)], [GHENT]) == {}
    assert told(noted, "user.city") == {PORTO}
    assert [fact.value for fact in noted.facts()] == [PORTO]


@pytest.mark.parametrize("at_the_host", [False, True])
def test_what_a_fact_said_elsewhere_stays_in_its_trail(
    noted: Memory, log: Log, db_path: Path, at_the_host: bool
) -> None:
    """What goes is what was named, and no message of another session."""
    if at_the_host:
        log.end("s2", "deleted")
    else:
        noted.erase(Forgetting(conversation="s2"))
    log.say("another day", "s3", at=LATER)
    noted.sync()
    assert noted.facts() == [] and not residue(db_path.parent, PORTO)
    assert told(noted, "user.city") == {GHENT} and f"I live in {GHENT}." in said(noted)


@pytest.mark.parametrize("forget", SUPERSEDED)
def test_what_was_superseded_under_another_key_goes_too(
    db_path: Path, log: Log, clock: Clock, forget: Callable[[Memory, Log], object]
) -> None:
    memory = with_model(db_path, log, clock, Model({f"I live in {GHENT}.": [("user.city", GHENT, 0.95)]}))
    log.say(f"I live in {GHENT}.", "s1", at=START)
    memory.sync()
    clock.advance(minutes=1)
    one = memory.propose("set", "user.home", PORTO, "main", origin="agent", reason="x", against="user.city")
    memory.accept(one.name, way="supersede")
    assert told(memory, "user.city") == {GHENT}
    forget(memory, log)
    log.say("another day", "s3", at=LATER)
    memory.sync()
    assert not residue(db_path.parent, GHENT)
    assert [(fact.key, fact.value) for fact in memory.facts()] == [("user.home", PORTO)]


def test_what_was_set_by_hand_before_a_date_goes_from_the_trail_too(
    memory: Memory, clock: Clock, db_path: Path
) -> None:
    clock.now = START
    memory.set("pref.editor", GHENT)
    memory.set("pref.shell", "fish")
    clock.now = START + timedelta(days=30)
    memory.set("pref.editor", PORTO)
    memory.set("pref.shell", "nushell", observed_at=clock.now)
    clock.now = START + timedelta(days=40)
    memory.set("pref.shell", "zsh")
    memory.erase(Forgetting(before=START + timedelta(days=20)))
    assert not residue(db_path.parent, GHENT)
    assert told(memory, "pref.editor") == {PORTO} and told(memory, "pref.shell") == {"nushell", "zsh"}
    assert [fact.value for fact in memory.facts()] == [PORTO, "zsh"]


def test_what_was_stated_again_since_a_date_stays_in_the_trail(memory: Memory, clock: Clock) -> None:
    for days, value in ((0, "Kate"), (30, "Kate"), (40, "Helix")):
        clock.now = START + timedelta(days=days)
        memory.set("pref.editor", value)
    memory.erase(Forgetting(before=START + timedelta(days=20)))
    assert told(memory, "pref.editor") == {"Kate", "Helix"}


def test_a_value_that_was_said_long_before_it_was_stored_is_as_old_as_it_was_said(memory: Memory) -> None:
    memory.set("pref.editor", "Kate", observed_at=START)
    memory.set("pref.editor", "Helix")
    memory.erase(Forgetting(before=START + timedelta(days=20)))
    assert told(memory, "pref.editor") == {"Helix"}


def test_a_key_made_of_a_forgotten_value_names_only_what_else_it_said(db_path: Path, log: Log, clock: Clock) -> None:
    """Forgotten value by value, nothing of it is left that no forgetting finds."""
    memory = with_model(db_path, log, clock, Model({}))
    for session, value in (("s1", f"{CANARY} black"), ("s2", f"{CANARY.upper()} white")):
        message = log.say(f"I drink {value} in the morning.", session, at=START)
        memory.sync()
        memory.set(f"pref.{CANARY}", value, "main", typed=Said(message.text, message.at), session=session)
        clock.advance(days=1)
    memory.erase(Forgetting(conversation="s2"))
    assert told(memory, f"pref.{CANARY}") == {f"{CANARY} black"} and memory.facts() == []
    memory.erase(Forgetting(conversation="s1"))
    assert not residue(db_path.parent, CANARY, CANARY.upper())


OF_S1: list[Forgetting] = [
    Forgetting(conversation="s1"),
    Forgetting(before=START + timedelta(days=1)),
    Forgetting(query="Lantern"),
]


@pytest.mark.parametrize("what", OF_S1)
def test_a_fact_that_rests_on_what_goes_alone_goes_whoever_wrote_it(
    memory: Memory, log: Log, db_path: Path, what: Forgetting
) -> None:
    log.say(f"Remember that the Lantern Club meets at {CANARY} on Fridays.", "s1", at=START)
    memory.sync()
    (one,) = memory.proposals()
    memory.accept(one.name)
    (fact,) = memory.facts()
    plan = memory.forgetting(what)
    assert list(plan.facts) == [("main", fact.key)] and plan.staying == 0
    assert list(memory.erase(what).facts) == [("main", fact.key)]
    assert memory.facts() == [] and not residue(db_path.parent, CANARY)
    assert CANARY not in memory.block("hello there").text


@pytest.mark.parametrize("what", OF_S1)
def test_a_fact_that_rests_on_something_else_too_stays_and_is_counted(
    db_path: Path, log: Log, clock: Clock, what: Forgetting
) -> None:
    claims = [("user.club", "Lantern Club", 0.95)]
    lines = ("My club is the Lantern Club.", "My club is still the Lantern Club.")
    memory = with_model(db_path, log, clock, Model(dict.fromkeys(lines, claims)))
    log.say(lines[0], "s1", at=START)
    log.say(lines[1], "s2", at=START + timedelta(days=30))
    memory.set("pref.lamp", "a brass one", scope="main")
    memory.sync()
    assert len(list(memory.why("user.club")[0].evidence)) == 2
    if what.query:
        what = Forgetting(conversation="s2")
    plan = memory.forgetting(what)
    assert (list(plan.facts), plan.staying) == ([], 1)
    assert memory.erase(what).staying == 1
    assert [fact.key for fact in memory.facts()] == ["pref.lamp", "user.club"]
    assert len(list(memory.why("user.club")[0].evidence)) == 1


def test_what_was_said_elsewhere_in_the_same_words_stays(db_path: Path, log: Log, clock: Clock) -> None:
    memory = with_model(db_path, log, clock, Model({"My editor is Helix.": [("pref.editor", "Helix", 0.95)]}))
    log.say("My editor is Helix.", "s1", at=START)
    log.say("My editor is Helix.", "s2", at=START + timedelta(days=1))
    memory.sync()
    memory.erase(Forgetting(conversation="s1"))
    assert [fact.value for fact in memory.facts()] == ["Helix"]
    assert said(memory) == {"My editor is Helix."}


def test_what_the_person_confirmed_stays_when_its_conversation_is_deleted_at_the_host(memory: Memory, log: Log) -> None:
    log.say(f"Remember that the Lantern Club meets at {CANARY} on Fridays.", "s1", at=START)
    memory.sync()
    (one,) = memory.proposals()
    memory.accept(one.name)
    log.end("s1", "deleted")
    log.say("another day", "s2", at=LATER)
    memory.sync()
    assert CANARY in memory.facts()[0].value


# --- whose word stays, and what else a fact said ----------------------------------------------------------------------

TYPED_GHENT, TYPED_PORTO = f"I live in {GHENT}.", f"I live in {PORTO} now."


BY_HAND = [
    (Forgetting(conversation="s1"), "main", True),
    (Forgetting(conversation="s1"), "main", False),
    (Forgetting(query="restated"), "main", True),
    (Forgetting(query="restated"), "main", False),
    (Forgetting(scope="main"), "shared", True),
]


@pytest.mark.parametrize(("what", "scope", "is_set_first"), BY_HAND)
def test_what_the_person_set_by_hand_stays_when_messages_that_repeat_it_go(
    db_path: Path, log: Log, clock: Clock, what: Forgetting, scope: str, is_set_first: bool
) -> None:
    line = f"I live in {PORTO}, restated."
    memory = with_model(db_path, log, clock, Model({line: [("user.city", PORTO, 0.95)]}))
    if is_set_first:
        memory.set("user.city", PORTO, scope)
    log.say(line, "s1", at=START)
    memory.sync()
    if not is_set_first:
        memory.set("user.city", PORTO, scope)
    assert [one.excerpt for one in memory.why("user.city")[0].evidence] == [line]
    plan = memory.forgetting(what)
    assert (list(plan.facts), plan.messages, plan.staying) == ([], 1, 1)
    assert memory.erase(what).staying == 1
    assert [(fact.value, fact.scope) for fact in memory.facts()] == [(PORTO, scope)] and said(memory) == set()
    assert memory.set("user.home", PORTO, writer="agent"), "nothing stands against it"


def test_a_query_that_names_what_was_set_by_hand_takes_it(memory: Memory, db_path: Path) -> None:
    memory.set("user.city", PORTO)
    memory.erase(Forgetting(query=PORTO))
    assert memory.facts() == [] and not residue(db_path.parent, PORTO)


@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("is_new_session", [True, False])
def test_what_was_typed_goes_with_its_conversation_whenever_that_was_read(
    memory: Memory, log: Log, db_path: Path, is_read: bool, is_new_session: bool
) -> None:
    """A tool is called before the log has the prompt that it rests on."""
    if not is_new_session:
        log.say("hello over there", "s1")
        memory.sync()
    message = log.say(f"After years of trying I use {CANARY} for all code now.", "s1")
    memory.set("pref.editor", CANARY, "main", typed=Said(message.text, message.at), session="s1")
    assert memory.why("pref.editor")[0].unread == [message.at]
    if is_read:
        memory.sync()
        memory.sync()
        assert [one.excerpt for one in memory.why("pref.editor")[0].evidence] == [message.text]
        assert query(db_path, "SELECT count(*) FROM evidence") == [(1,)], "one utterance, whoever noted it"
    plan = memory.forgetting(Forgetting(conversation="s1"))
    assert list(plan.facts) == [("main", "pref.editor")] == list(memory.erase(Forgetting(conversation="s1")).facts)
    memory.sync()
    assert memory.facts() == [] and not residue(db_path.parent, CANARY)
    assert said(memory) == set()


def test_what_was_typed_is_not_withdrawn_before_its_log_was_read(memory: Memory, log: Log) -> None:
    memory.set("pref.editor", "Helix", "main", typed=Said("My editor is Helix.", LATER), session="s1")
    log.say("another day", "s2")
    memory.sync()
    assert [fact.value for fact in memory.facts()] == ["Helix"] and memory.why("pref.editor")[0].unread == [LATER]


def test_what_was_said_since_a_date_keeps_a_fact_that_is_older(db_path: Path, log: Log, clock: Clock) -> None:
    memory = with_model(db_path, log, clock, Model({TYPED_PORTO: [("user.city", PORTO, 0.95)]}))
    clock.now = START
    memory.set("user.city", GHENT, "main")
    memory.set("user.city", PORTO, "main")
    clock.now = LATER
    log.say(TYPED_PORTO, at=START + timedelta(days=100))
    memory.sync()
    what = Forgetting(before=START + timedelta(days=50))
    plan = memory.forgetting(what)
    assert (list(plan.facts), plan.messages, plan.staying) == ([], 0, 1)
    memory.erase(what)
    assert [fact.value for fact in memory.facts()] == [PORTO] and said(memory) == {TYPED_PORTO}
    assert told(memory, "user.city") == {PORTO}


def test_what_was_said_since_a_date_and_waits_outlives_the_older_fact(
    memory: Memory, clock: Clock, db_path: Path
) -> None:
    clock.now = START
    memory.set("user.city", GHENT, "main")
    clock.now = LATER
    memory.propose("set", "user.city", PORTO, "main", origin="owner", reason="conflict", observed_at=LATER)
    memory.propose("set", "user.town", GHENT, "main", origin="owner", reason="x", observed_at=START)
    memory.erase(Forgetting(before=START + timedelta(days=50)))
    (one,) = memory.proposals()
    assert memory.facts() == [] and one.value == PORTO and not residue(db_path.parent, GHENT)
    assert memory.accept(one.name) is not None


def test_words_that_were_said_again_since_a_date_are_not_erased_with_an_older_fact(
    memory: Memory, log: Log, clock: Clock
) -> None:
    for days in (0, 100):
        clock.now = START + timedelta(days=days)
        message = log.say(TYPED_PORTO, f"s{days}", at=clock.now)
    memory.sync()
    memory.set("user.city", PORTO, "main", typed=Said(message.text, START), session="s0")
    clock.now = LATER
    what = Forgetting(before=START + timedelta(days=50))
    plan = memory.forgetting(what)
    gone = memory.erase(what)
    assert (plan.messages, plan.staying) == (gone.messages, gone.staying) == (1, 1)
    assert said(memory) == {TYPED_PORTO} and [fact.value for fact in memory.facts()] == [PORTO]


@pytest.mark.parametrize(("words", "left"), [(PORTO, {GHENT}), (GHENT, {PORTO}), ("city", set())])
def test_a_query_takes_the_values_that_it_names_and_shows_what_goes(
    noted: Memory, db_path: Path, words: str, left: set[str]
) -> None:
    """All of them where it names the key itself."""
    plan = noted.forgetting(Forgetting(query=words))
    gone = noted.erase(Forgetting(query=words))
    assert plan.messages == gone.messages == 2 - len(left)
    assert told(noted, "user.city") == left
    assert said(noted) == {TYPED_GHENT if value == GHENT else TYPED_PORTO for value in left}
    assert not residue(db_path.parent, *{GHENT, PORTO} - left)


def test_an_earlier_value_outlives_the_one_that_is_forgotten(noted: Memory) -> None:
    """Its key is no forgotten one: what nobody had forgotten may be stated under it."""
    noted.erase(Forgetting(query=PORTO))
    assert noted.set("user.city", "Nazaré", "main", writer="agent").value == "Nazaré"
    noted.erase(Forgetting(query=GHENT))
    with pytest.raises(Refused):
        noted.set("user.town", GHENT, "main", writer="agent")


@pytest.mark.parametrize("scope", ["main", "shared"])
def test_a_scope_goes_with_what_rests_on_its_messages_and_they_with_what_it_holds(
    memory: Memory, log: Log, db_path: Path, scope: str
) -> None:
    message = log.say(f"My boat is called {CANARY}.")
    log.say("the ferry leaves at nine")
    memory.sync()
    memory.set("user.boat", CANARY, "shared", typed=Said(message.text, message.at), session="s1")
    plan = memory.forgetting(Forgetting(scope=scope))
    gone = memory.erase(Forgetting(scope=scope))
    messages = 2 if scope == "main" else 1
    assert (
        (list(plan.facts), plan.messages) == (list(gone.facts), gone.messages) == ([("shared", "user.boat")], messages)
    )
    assert not residue(db_path.parent, CANARY)


def test_what_waits_in_another_scope_goes_with_what_is_shared(memory: Memory, db_path: Path) -> None:
    memory.set("user.boat", CANARY)
    memory.propose("set", "pref.ship_type", CANARY, "main", origin="agent", reason="x")
    memory.propose("set", "user.boat", "a raft", "main", origin="agent", reason="x")
    plan = memory.forgetting(Forgetting(key="user.boat", scope="shared"))
    assert plan.proposals == 1
    assert memory.erase(Forgetting(key="user.boat", scope="shared")).proposals == 1
    assert [one.value for one in memory.proposals()] == ["a raft"] and not residue(db_path.parent, CANARY)


def test_a_message_that_states_an_earlier_value_goes_with_the_key(memory: Memory, log: Log, db_path: Path) -> None:
    log.say(f"My boat is called {CANARY}.")
    log.say("the ferry leaves at nine")
    memory.sync()
    memory.set("user.boat", CANARY)
    memory.set("user.boat", "Aurora")
    memory.forget("user.boat")
    assert said(memory) == {"the ferry leaves at nine"} and not residue(db_path.parent, CANARY)


def test_no_event_tells_what_a_forgotten_fact_rested_on(noted: Memory) -> None:
    def rested() -> list[int]:
        rows = query(noted.path, "SELECT detail FROM memory_events WHERE detail LIKE '%evidence%' ORDER BY id")
        return [len(json.loads(detail)["evidence"]) for (detail,) in rows]

    assert rested() == [1, 1]
    noted.erase(Forgetting(conversation="s1"))
    assert rested() == [0, 1]
    noted.forget("user.city")
    assert rested() == [0, 0]


def test_nor_does_one_of_a_fact_that_stays(db_path: Path, log: Log, clock: Clock) -> None:
    lines = ("My club is the Lantern Club.", "My club is still the Lantern Club.")
    memory = with_model(db_path, log, clock, Model({line: [("user.club", "Lantern Club", 0.95)] for line in lines}))
    for number, line in enumerate(lines):
        log.say(line, f"s{number}", at=START + timedelta(days=number))
        memory.sync()
    memory.erase(Forgetting(conversation="s0"))
    rested = [json.loads(event.detail or "{}").get("evidence") for event in memory.why("user.club")[0].history]
    assert [len(of) for of in rested if of is not None] == [0, 1]


def test_a_process_remembers_no_text_after_a_forgetting(memory: Memory) -> None:
    asked: list[str] = []

    @remembered(4)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    memory.set("user.boat", CANARY)
    length(CANARY)
    length(CANARY)
    memory.forget("user.boat")
    length(CANARY)
    assert asked == [CANARY, CANARY]


def test_a_second_yes_to_forget_says_that_it_is_accepted_already(memory: Memory) -> None:
    memory.set("user.boat", CANARY, "main")
    one = memory.propose("forget", "user.boat", CANARY, "main", origin="agent", reason="unasked")
    other = memory.propose("set", "user.boat", f"{CANARY} two", "main", origin="agent", reason="x")
    memory.accept(one.name)
    with pytest.raises(UsageError, match="accepted already"):
        memory.accept(one.name)
    with pytest.raises(UsageError, match="nothing waits"):
        memory.accept(other.name)


# --- what a decision leaves of an earlier value -----------------------------------------------------------------------

DECIDED: list[Callable[[Memory, str], object]] = [
    lambda memory, name: memory.reject(name),
    lambda memory, name: memory.accept(name, value="Lisbon"),
    lambda memory, name: memory.accept(name),
    lambda memory, _: query(memory.path, "UPDATE proposals SET expires_at = '2026-01-01T00:00:00+00:00'"),
]


@pytest.mark.parametrize("decide", DECIDED)
def test_an_earlier_value_rests_on_its_messages_whatever_becomes_of_a_proposal_of_it(
    noted: Memory, log: Log, clock: Clock, db_path: Path, decide: Callable[[Memory, str], object]
) -> None:
    clock.advance(minutes=1)
    one = noted.propose("set", "user.city", GHENT, "main", origin="agent", reason="x", observed_at=clock.now)
    decide(noted, one.name)
    log.say("another day", "s3", at=LATER)
    noted.sync()
    assert noted.proposals() == []
    noted.erase(Forgetting(conversation="s1"))
    assert not residue(db_path.parent, GHENT)


def test_what_the_person_typed_in_a_review_rests_on_nothing(memory: Memory, log: Log) -> None:
    log.say(f"Remember that the Lantern Club meets at {CANARY} on Fridays.", "s1", at=START)
    memory.sync()
    (one,) = memory.proposals()
    memory.accept(one.name, value="the club meets on Mondays")
    assert query(memory.path, "SELECT count(*) FROM evidence") == [(0,)]
    memory.erase(Forgetting(conversation="s1"))
    assert [fact.value for fact in memory.facts()] == ["the club meets on Mondays"]


def test_what_is_answered_by_the_same_in_other_words_takes_its_messages_along(memory: Memory, log: Log) -> None:
    log.say(f"Remember that the Lantern Club meets at {CANARY} on Fridays.", "s1", at=START)
    memory.sync()
    (one,) = memory.proposals()
    memory.set(one.key, one.value.upper(), "main", typed=Said("x", LATER), session="s2")
    assert memory.proposals() == []
    assert len(memory.why(one.key)[0].evidence) == 1


def typed(memory: Memory, log: Log, clock: Clock, text: str, key: str, value: str) -> None:
    said = log.say(text, at=clock.now)
    memory.sync()
    memory.set(key, value, "main", typed=Said(said.text, said.at), session=said.session)
    clock.advance(days=1)


def test_a_restore_takes_nothing_that_another_key_said_in_the_same_words(
    memory: Memory, log: Log, clock: Clock, db_path: Path
) -> None:
    typed(memory, log, clock, "My dog is Alder.", "user.dog", "Alder")
    typed(memory, log, clock, "My dog is Birch.", "user.dog", "Birch")
    memory.set("project.room", "Alder", "main")
    backup = transfer.backup(db_path, db_path.with_name("b.db"), clock)
    clock.advance(days=1)
    memory.forget("project.room")
    before = [(one.old_value, one.new_value) for one in memory.why("user.dog")[0].history]
    assert ("Alder", "Birch") in before
    memory.close()
    transfer.restore(db_path, backup, clock, 1)
    with open_memory(db_path, log, clock=clock) as restored:
        restored.sync()
        assert [(one.old_value, one.new_value) for one in restored.why("user.dog")[0].history] == before
        assert "My dog is Alder." in [one.excerpt for one in recalled(restored, "dog alder")]
        assert [fact.key for fact in restored.facts()] == ["user.dog"]


def test_where_the_trail_is_lost_a_fact_of_the_persons_counts_as_set_by_hand(
    memory: Memory, log: Log, db_path: Path
) -> None:
    memory.set("pref.editor", "Helix", "main")
    log.say("My editor is Helix.", "s1")
    memory.sync()
    query(db_path, "DELETE FROM memory_events")
    memory.erase(Forgetting(conversation="s1"))
    assert [fact.value for fact in memory.facts()] == ["Helix"]
