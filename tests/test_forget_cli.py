"""`clawmark forget`: one thing is named, shown before it goes, and messages go only after a yes."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Commands
from helpers import REPOSITORY, START, residue

from clawmark.memory import Memory

SAMPLE = REPOSITORY / "tests" / "fixtures" / "openclaw" / "sqlite"
WORD = "Havsörn"
"""The name of a boat, in many messages of the sample."""
CHARTER = "Skärkust Båtcharter"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(monkeypatch, capsys)


@pytest.fixture
def sample(run: Commands, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(SAMPLE))
    assert run("sync", "--json").code == 0
    return run


def passages() -> int:
    with Memory.open() as memory:
        return memory.status().passages


def sessions_with(word: str) -> list[str]:
    with Memory.open() as memory:
        return [one.conversation for one in memory.search(word, limit=50).recalled]


def test_a_fact_alone_goes_unasked(run: Commands) -> None:
    run("set", "pref.editor", "Helix")
    result = run("forget", "Pref.Editor")
    assert (result.code, result.out, result.err) == (0, "pref.editor is forgotten (shared)\n", "")
    assert run("facts").out == ""
    again = run("forget", "pref.editor")
    assert (again.code, again.out) == (0, "nothing was stored under pref.editor\n")


def test_a_fact_that_takes_messages_along_needs_a_yes(sample: Commands) -> None:
    sample("set", "ref.charter", CHARTER)
    before = passages()
    assert sessions_with(CHARTER)
    refused = sample("forget", "ref.charter")
    assert (refused.code, "--yes" in refused.err, passages()) == (2, True, before)
    assert "ref.charter" in sample("facts").out
    assert sample("forget", "ref.charter", "--yes").code == 0
    assert passages() < before and "ref.charter" not in sample("facts").out


def test_messages_by_words_go_with_a_yes_and_stay_without(sample: Commands, machine: Path) -> None:
    assert sessions_with(WORD)
    before = passages()
    refused = sample("forget", "--query", WORD)
    assert (refused.code, passages()) == (2, before) and "messages would go" in refused.err
    declined = sample.answering("n")("forget", "--query", WORD)
    assert (declined.code, passages()) == (1, before)
    agreed = sample.answering("y")("forget", "--query", WORD)
    assert agreed.code == 0 and agreed.out.splitlines()[-2].startswith("forgotten: ")
    assert sessions_with(WORD) == []
    assert sample("sync").code == 0, "the host's log still holds it"
    assert sessions_with(WORD) == []
    assert residue(machine / ".local/share/clawmark", WORD, WORD.lower()) == {}


def test_what_goes_is_shown_before_it_is_asked_about(sample: Commands) -> None:
    sample("set", "pref.boat", f"{WORD} again")
    shown = sample.answering("n")("forget", "--query", WORD).out
    first, *rest = shown.splitlines()
    assert first.startswith("what goes: 1 fact, ") and "messages" in first
    assert rest[0] == "  pref.boat  (shared)" and any(WORD in line for line in rest[1:])


def test_a_dry_run_shows_and_erases_nothing(sample: Commands) -> None:
    before = passages()
    result = sample("forget", "--query", WORD, "--dry-run")
    assert (result.code, passages()) == (0, before)
    assert result.out.startswith("what goes: ") and result.out.endswith("nothing was erased\n")
    shown = sample("forget", "--query", WORD, "--dry-run", "--json").json
    assert (shown["dry_run"], shown["forgotten_in"], shown["messages"] > 3) == (True, [], True)
    assert all(WORD.casefold() in one["excerpt"].casefold() for one in shown["excerpts"])


def test_the_proposals_that_go_are_named(run: Commands) -> None:
    with Memory.open() as memory:
        one = memory.propose("set", "user.home", "Lund since May", "main", origin="agent", reason="about_person")
    for arguments in (["--query", "lund"], ["user.home"]):
        shown = run("forget", *arguments, "--dry-run").out
        assert f"  proposed {one.name}  user.home: Lund since May  (main)" in shown.splitlines()
        (named,) = run("forget", *arguments, "--dry-run", "--json").json["waiting"]
        assert (named["id"], named["key"], named["value"]) == (one.name, "user.home", "Lund since May")
    result = run("forget", "user.home")
    assert one.name in result.out and result.out.endswith("forgotten: 1 proposal\n")


def test_a_second_thing_to_forget_is_not_taken_for_the_first(run: Commands) -> None:
    run("set", "pref.editor", "Helix")
    result = run("forget", "--query", "helix", "--query", "lund", "--yes")
    assert (result.code, "--query" in result.err, "Helix" in run("facts").out) == (2, True, True)


def test_who_said_what_goes_is_named_as_everywhere(sample: Commands) -> None:
    shown = sample("forget", "--query", WORD, "--dry-run").out
    assert "  you: " in shown and "  assistant: " in shown and "  user" not in shown


def test_a_dry_run_of_one_fact_shows_it_too(run: Commands) -> None:
    run("set", "pref.editor", "Helix")
    result = run("forget", "pref.editor", "--dry-run")
    assert (result.code, "pref.editor  (shared)" in result.out) == (0, True)
    assert "pref.editor: Helix" in run("facts").out


def test_a_conversation_goes_whole(sample: Commands) -> None:
    session, *_ = sessions_with(WORD)
    assert sample("forget", "--conversation", session, "--yes").code == 0
    assert session not in sessions_with(WORD)
    sample("sync")
    assert session not in sessions_with(WORD)


def test_what_was_said_before_a_day_goes_and_the_rest_stays(sample: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_TIMEZONE", "Europe/Stockholm")
    before = passages()
    result = sample("forget", "--before", "2026-06-01", "--yes", "--json").json
    assert 0 < result["messages"] < before
    found = sample("search", WORD, "--limit", "50", "--json").json["recalled"]
    assert found and all(one["at"] >= "2026-05-31T22:00:00+00:00" for one in found)


def test_all_of_a_scope_goes_and_no_other(sample: Commands) -> None:
    sample("set", "pref.editor", "Helix", "--scope", "work")
    sample("set", "pref.boat", "small ones", "--scope", "main")
    assert sample("forget", "--scope", "work", "--yes").code == 0
    assert "pref.editor" not in sample("facts").out and "pref.boat" in sample("facts").out
    assert sample("search", "meeting", "--scope", "work", "--json").json["recalled"] == []
    assert sessions_with(WORD)


def test_everything_goes_with_all(sample: Commands, machine: Path) -> None:
    sample("set", "user.name", "Mira Lindqvist")
    assert sample("forget", "--all", "--yes").code == 0
    sample("sync")
    status = sample("status", "--json").json
    assert (status["facts"], status["passages"], status["proposals"]) == (0, 0, 0)
    assert residue(machine / ".local/share/clawmark", "Lindqvist", WORD) == {}


def test_nothing_to_forget_is_no_question(run: Commands) -> None:
    result = run("forget", "--query", "zeppelin")
    assert (result.code, result.out) == (0, "what goes: nothing\nforgotten: nothing\n")


def test_json_asks_nothing_on_standard_output(sample: Commands) -> None:
    result = sample.answering("y")("forget", "--query", WORD, "--json")
    assert result.json["messages"] > 3 and "for good?" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what"),
        (["pref.a", "--query", "x"], "KEY, --query"),
        (["--query", "x", "--all"], "--query, --all"),
        (["--all", "--scope", "main"], "--scope alone"),
        (["--query", " "], "--query is blank"),
        (["--query", "?!"], "word"),
        (["--scope", ""], "--scope is blank"),
        (["--conversation", ""], "--conversation is blank"),
        (["--before", "yesterday"], "2026-05-31"),
        (["--before", "2026-13-01"], "2026-13-01"),
        (["everything"], "KEY_FORMAT"),
    ],
)
def test_a_wrong_use_is_named_and_erases_nothing(run: Commands, arguments: list[str], said: str) -> None:
    run("set", "pref.editor", "Helix")
    result = run("forget", *arguments, "--yes")
    assert (result.code, result.out) == (2, "") and said in result.err
    assert "pref.editor" in run("facts").out


def test_a_wrong_use_opens_nothing(run: Commands, machine: Path) -> None:
    for arguments in ([], ["everything"], ["--before", "soon"], ["pref.a", "--all"]):
        assert run("forget", *arguments).code == 2
    assert not list(machine.rglob("memory.db*"))


def test_copies_that_may_still_hold_it_are_named(sample: Commands) -> None:
    sample("backup")
    result = sample("forget", "--query", WORD, "--yes")
    assert "memory.db.backup-" in result.err
    assert "backup" not in sample("forget", "--query", "zeppelin", "--yes").err


def test_what_is_shown_is_harmless_and_one_line_each(run: Commands) -> None:
    run("set", "pref.odd", "\x1b[31mred\nline")
    shown = run("forget", "--query", "red line", "--dry-run").out
    assert all(line.isprintable() for line in shown.splitlines())


def test_facts_that_were_stated_in_it_and_stay_are_counted(run: Commands) -> None:
    for key, value in (("pref.editor", "Helix"), ("pref.shell", "fish")):
        with Memory.open() as memory:
            memory.set(key, value, observed_at=START)
    run("set", "pref.shell", "fish")
    wish = ("forget", "--before", "2026-02-01")
    line = "what stays: 1 fact that was stated in it too, and elsewhere or since\n"
    assert run(*wish, "--dry-run", "--json").json["staying"] == 1
    assert line in run(*wish, "--dry-run").out
    shown = run(*wish, "--yes").out
    assert shown.count(line) == 2 and "pref.editor" in shown
    assert run("facts").out.startswith("pref.shell")
