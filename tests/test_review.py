"""`clawmark review`, `why` and `facts --stale`: what waits is seen whole and decided once, by its very words."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from helpers import REPOSITORY, START

from clawmark.cli.reasons import WORDS
from clawmark.cli.review import history
from clawmark.memory import Memory
from clawmark.model import SHARED, Event, Fact, Proposal

SAMPLE = REPOSITORY / "tests" / "fixtures" / "openclaw" / "sqlite"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(monkeypatch, capsys)


def proposed(key: str = "pref.tea", value: str = "green tea in the morning", **more: Any) -> Proposal:
    """One that waits in the memory of the settings."""
    said = {"origin": "owner", "reason": "low_confidence"} | more
    with Memory.open() as memory:
        return memory.propose(said.pop("kind", "set"), key, value, said.pop("scope", SHARED), **said)


def conflict() -> Proposal:
    """A fact of the person's, and a proposal that says something else."""
    with Memory.open() as memory:
        memory.set("user.city", "Lund")
    return proposed("user.home", "Malmö", conflict="conflict_candidate", against="user.city")


def facts() -> dict[str, str]:
    with Memory.open() as memory:
        return {fact.key: fact.value for fact in memory.facts()}


def waiting() -> list[str]:
    with Memory.open() as memory:
        return [one.name for one in memory.proposals()]


# --- listing --------------------------------------------------------------------------------------------------------------


def test_where_nobody_can_be_asked_it_lists(run: Commands) -> None:
    one = proposed()
    listed = run("review")
    assert (listed.code, listed.err) == (0, "")
    assert listed.out.startswith(f"{one.name}  pref.tea: green tea in the morning\n")
    assert WORDS["low_confidence"] in listed.out and "0.90" in listed.out
    assert run("review", "--list").out == listed.out


def test_nothing_that_waits_is_said_beside_the_output(run: Commands) -> None:
    result = run("review")
    assert (result.code, result.out, "nothing waits" in result.err) == (0, "", True)


def test_json_lists_proposals_as_they_are(run: Commands) -> None:
    one = proposed()
    assert run("review", "--json").json == {"decided": [], "proposals": [one.as_json()]}


def test_a_scope_narrows_the_list(run: Commands) -> None:
    proposed("pref.tea", "green tea", scope="home")
    proposed("pref.desk", "a standing desk", scope="work")
    listed = run("review", "--list", "--scope", "work").out
    assert "pref.desk" in listed and "pref.tea" not in listed


def test_a_value_is_shown_whole_harmless_and_on_one_line(run: Commands) -> None:
    value = "a\x1b[31m\nb\u202e " + "word " * 300
    proposed(value=value)
    first, *_ = run("review", "--list").out.splitlines()
    assert first.isprintable() and first.count("word") == 300


def test_every_rule_that_keeps_a_statement_waiting_has_words_for_a_person() -> None:
    from clawmark.facts import gate, shape

    of_gate = {
        rule
        for names in re.findall(r"^\| ([a-z_, …]+) \| waits \|", gate.__doc__ or "", re.MULTILINE)
        for rule in re.findall(r"[a-z_]+", names)
    }
    assert {"foreign", "unsupported", "low_confidence", "marker"} <= of_gate, "the gate's table names its rules"
    of_tools = {"about_person", "not_plain", "unasked", "injection"}
    assert of_gate | of_tools | set(shape.RISKS) <= set(WORDS)


def against(scope: str, value: str = "Lund") -> Proposal:
    """A proposal in `main`, and a fact of its own key in `scope`."""
    with Memory.open() as memory:
        memory.set("user.city", value, scope)
    return proposed("user.city", "Malmö", scope="main", origin="agent", reason="about_person")


@pytest.mark.parametrize("scope", ["main", SHARED])
def test_what_a_yes_would_replace_is_shown_and_replaced(run: Commands, scope: str) -> None:
    against(scope)
    listed = run("review", "--list").out
    asked = run.answering("a")("review").out
    for shown in (listed, asked):
        (line,) = [line for line in shown.splitlines() if 'against user.city: "Lund"' in line]
        assert line.endswith("a yes replaces it") and ("shared" in line) == (scope == SHARED)
    assert "[s]upersede, [k]eep both" in asked
    with Memory.open() as memory:
        assert [(fact.scope, fact.value) for fact in memory.facts()] == [(scope, "Malmö")]


def test_an_older_saying_replaces_a_later_one_only_where_the_person_says_so(run: Commands) -> None:
    proposed("user.city", "Malmö", observed_at=START)
    run("set", "user.city", "Lund")
    assert "which was said later: only superseding replaces it" in run("review", "--list").out
    assert "later" in run.answering("a", "q")("review").err and facts() == {"user.city": "Lund"}
    assert run.answering("s")("review").code == 0 and facts() == {"user.city": "Malmö"}


def test_what_was_said_in_an_order_is_said_yes_to_in_it(run: Commands) -> None:
    """However late: a yes is no new saying."""
    proposed("user.car", "Fiat", observed_at=START)
    proposed("user.car", "Skoda", observed_at=START + timedelta(days=1))
    assert run.answering("a", "a")("review").code == 0 and facts() == {"user.car": "Skoda"}


def test_a_yes_names_what_it_ended(run: Commands) -> None:
    said = run("review", "--accept", conflict().name, "--supersede").out
    assert [line for line in said.splitlines() if " ended: " in line] == ['user.city ended: "Lund"  (shared)']


def test_what_a_letter_does_is_told_of_an_erasure_too(run: Commands) -> None:
    run("set", "user.city", "Lund")
    proposed("user.city", "Lund", kind="forget", origin="agent", reason="unasked")
    asked = run.answering("?", "q")("review").out
    assert "a  erase it" in asked and "r  keep it" in asked


def test_a_fact_that_was_stored_since_is_shown_too(run: Commands) -> None:
    proposed("user.city", "Malmö")
    assert "against" not in run("review", "--list").out
    run("set", "user.city", "Lund")
    assert 'against user.city: "Lund"' in run("review", "--list").out


def test_what_says_the_same_is_nothing_to_be_against(run: Commands) -> None:
    against("main", value="malmö")
    assert "against" not in run("review", "--list").out


def test_a_scope_in_which_nothing_waits_is_said_to_be_it(run: Commands) -> None:
    proposed(scope="home")
    result = run("review", "--list", "--scope", "work")
    assert (result.code, result.out) == (0, "") and "nothing waits for you in work" in result.err


# --- deciding by ID -------------------------------------------------------------------------------------------------------


def test_accepting_stores_it_as_the_persons_word(run: Commands) -> None:
    one = proposed()
    result = run("review", "--accept", one.name)
    assert (result.code, result.out) == (0, "pref.tea is set: green tea in the morning  (shared)\n")
    with Memory.open() as memory:
        (fact,) = memory.facts()
    assert (fact.source, fact.value) == ("user", "green tea in the morning")
    assert waiting() == []


def test_the_number_alone_will_do(run: Commands) -> None:
    assert run("review", "--accept", str(proposed().id)).code == 0
    assert facts() == {"pref.tea": "green tea in the morning"}


def test_a_yes_to_other_words_stores_nothing(run: Commands) -> None:
    one = proposed()
    other = f"{one.id}-{'0' if one.content_hash[0] != '0' else '1'}{one.content_hash[1:6]}"
    result = run("review", "--accept", other)
    assert (result.code, result.out) == (2, "") and one.name in result.err
    assert (facts(), waiting()) == ({}, [one.name])


def test_rejecting_leaves_nothing_and_is_not_asked_again(run: Commands) -> None:
    one = proposed()
    assert run("review", "--reject", one.name, "--reason", "only that once").code == 0
    assert (facts(), waiting()) == ({}, [])
    with pytest.raises(Exception, match="REVIEW"):
        proposed()
    assert "only that once" in run("events").out


def test_what_is_put_off_is_listed_only_where_it_is_asked_for(run: Commands) -> None:
    one = proposed()
    result = run("review", "--defer", one.name, "--days", "3")
    until = datetime.now(UTC) + timedelta(days=3)
    assert (result.code, f"{until:%Y-%m-%d}" in result.out) == (0, True)
    assert run("review").out == ""
    assert one.name in run("review", "--deferred").out
    assert run("review", "--accept", one.name).code == 0, "it can be decided all the same"


def test_editing_stores_what_the_person_wrote(run: Commands) -> None:
    one = proposed()
    assert run("review", "--edit", one.name, "--value", "black tea", "--key", "pref.drink").code == 0
    assert facts() == {"pref.drink": "black tea"}


def test_editing_into_a_secret_is_refused_and_it_waits(run: Commands) -> None:
    one = proposed()
    result = run("review", "--edit", one.name, "--value", "my password is " + "hunter2-" + "Kx9!mq")
    assert (result.code, "SECRET" in result.err, "hunter2" in result.err) == (2, True, False)
    assert (facts(), waiting()) == ({}, [one.name])


def test_the_editor_is_opened_for_key_and_value(run: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i -e "2s/.*/# black tea/" "$1"\n')
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    one = proposed()
    assert run.answering()("review", "--edit", one.name).code == 0
    assert facts() == {"pref.tea": "# black tea"}


@pytest.mark.parametrize(
    ("editor", "said"),
    [
        ("""sh -c 'printf "pref.tea\\n\\377" > "$0"'""", "UTF-8"),
        ("sh -c 'printf", "EDITOR"),
        ("/nonexistent/editor", "editor"),
        ("false", "Editing failed"),
    ],
)
def test_an_editor_that_fails_is_one_line_and_holds_up_nothing(
    run: Commands, monkeypatch: pytest.MonkeyPatch, editor: str, said: str
) -> None:
    monkeypatch.setenv("VISUAL", editor)
    tea, desk = proposed(), proposed("pref.desk", "a standing desk")
    result = run.answering()("review", "--edit", tea.name, "--reject", desk.name)
    assert result.code == 2 and desk.name in result.out, "the other one is decided"
    (line,) = result.err.splitlines()
    assert line.startswith("clawmark: ") and said in line and tea.name in line
    assert (facts(), waiting()) == ({}, [tea.name])
    asked = run.answering("e", "q")("review")
    assert (asked.code, said in asked.err, waiting()) == (0, True, [tea.name])


@pytest.mark.parametrize("written", ["true", ': > "$1"', 'sed -i "1,2d" "$1"', 'printf "pref.tea\n\n" > "$1"'])
def test_an_editor_that_leaves_nothing_changes_nothing(
    run: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{written}\ntouch -d '2001-01-01' \"$1\"\n")
    editor.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(editor))
    one = proposed()
    result = run.answering()("review", "--edit", one.name)
    assert (result.code, "as it was" in result.out, facts(), waiting()) == (0, True, {}, [one.name])


def test_merging_keeps_one_fact_that_says_both(run: Commands) -> None:
    assert run("review", "--accept", conflict().name, "--merge", "user.city").code == 0
    (key, value), *more = facts().items()
    assert (key, "Lund" in value, "Malmö" in value, more) == ("user.city", True, True, [])


def test_superseding_ends_the_fact_it_is_against(run: Commands) -> None:
    assert run("review", "--accept", conflict().name, "--supersede").code == 0
    assert facts() == {"user.home": "Malmö"}
    told = run("why", "user.city").out
    assert re.search(r'"Lund", true from \d{4}-\d\d-\d\d until \d{4}-\d\d-\d\d', told) and "user.home" in told


def test_keeping_both_leaves_the_fact_it_is_against(run: Commands) -> None:
    assert run("review", "--accept", conflict().name, "--keep-both").code == 0
    assert facts() == {"user.city": "Lund", "user.home": "Malmö"}


def test_many_are_decided_at_once_and_one_bad_holds_up_none(run: Commands) -> None:
    tea, desk, city = proposed(), proposed("pref.desk", "a standing desk"), proposed("pref.city", "small ones")
    result = run(
        "review", "--accept", tea.name, "--accept", "999", "--accept", desk.name, "--reject", city.name, "--json"
    )
    assert result.code == 2 and "999" in result.err
    assert [(d["id"], d["became"]) for d in result.json["decided"]] == [
        (tea.name, "accepted"), (desk.name, "accepted"), (city.name, "rejected"),
    ]  # fmt: skip
    assert set(facts()) == {"pref.tea", "pref.desk"} and waiting() == []


def test_what_is_decided_cannot_be_decided_again(run: Commands) -> None:
    one = proposed()
    assert run("review", "--reject", one.name).code == 0
    for option in ("--accept", "--reject", "--defer"):
        result = run("review", option, one.name)
        assert (result.code, result.out, str(one.id) in result.err) == (2, "", True)
    assert facts() == {}


@pytest.mark.parametrize("digits", [0, 1, 3])
def test_a_name_holds_enough_of_the_hash_to_bind_the_yes(run: Commands, digits: int) -> None:
    one = proposed()
    result = run("review", "--accept", f"{one.id}-{one.content_hash[:digits]}")
    assert (result.code, facts(), waiting()) == (2, {}, [one.name]) and one.name in result.err
    assert run("review", "--accept", f"{one.id}-{one.content_hash[:4]}").code == 0


@pytest.mark.parametrize("option", ["--edit", "--value", "--key", "--merge", "--reason", "--days", "--scope"])
def test_an_option_of_one_value_is_given_once(run: Commands, option: str) -> None:
    tea, desk = proposed(), proposed("pref.desk", "a standing desk")
    result = run("review", "--edit", tea.name, option, desk.name, option, "3")
    assert (result.code, result.out, option in result.err) == (2, "", True)
    assert (facts(), waiting()) == ({}, [tea.name, desk.name])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--list", "--accept", "1"], "--list"),
        (["--deferred", "--reject", "1"], "--deferred"),
        (["--accept", "1", "--scope", "main"], "--scope"),
        (["--accept", "1", "--reject", "1-abcdef"], "twice"),
        (["--accept", "1", "--supersede", "--keep-both"], "one of them"),
        (["--accept", "1", "--merge", "user.city", "--supersede"], "one of them"),
        (["--reject", "1", "--supersede"], "--accept"),
        (["--merge", "user.city"], "--accept"),
        (["--accept", "1", "--value", "x"], "--edit"),
        (["--edit", "1", "--merge", "user.city", "--key", "user.home"], "--key"),
        (["--edit", "1"], "--value"),
        (["--accept", "1", "--reason", "x"], "--reject"),
        (["--accept", "1", "--days", "3"], "--defer"),
        (["--defer", "1", "--days", "0"], "days"),
        (["--accept", "one"], "'one'"),
        (["--accept", ""], "''"),
    ],
)
def test_a_wrong_use_is_named_and_decides_nothing(run: Commands, arguments: list[str], said: str) -> None:
    one = proposed()
    result = run("review", *arguments)
    assert (result.code, result.out) == (2, "") and said in result.err
    assert (facts(), waiting()) == ({}, [one.name])


# --- erasures that wait ---------------------------------------------------------------------------------------------------


def hidden() -> Proposal:
    with Memory.open() as memory:
        memory.set("pref.editor", "Helix")
        memory.hide("pref.editor")
    return proposed("pref.editor", "Helix", kind="forget", origin="agent", reason="unasked")


def test_accepting_an_erasure_erases(run: Commands) -> None:
    one = hidden()
    assert run("review", "--list").out.startswith(f"{one.name}  erase pref.editor: Helix\n")
    assert run("review", "--accept", one.name).out == "pref.editor is erased (shared)\n"
    with Memory.open() as memory:
        assert (memory.facts(), memory.facts(hidden=True)) == ([], [])


def test_rejecting_an_erasure_shows_the_fact_again(run: Commands) -> None:
    one = hidden()
    assert run("review", "--reject", one.name).out == "pref.editor stays (shared)\n"
    assert facts() == {"pref.editor": "Helix"}


@pytest.mark.parametrize("more", [["--supersede"], ["--merge", "pref.editor"]])
def test_an_erasure_has_nothing_to_merge(run: Commands, more: list[str]) -> None:
    one = hidden()
    assert run("review", "--accept", one.name, *more).code == 2
    assert run("review", "--edit", one.name, "--value", "Vim").code == 2
    assert waiting() == [one.name]


# --- one by one -----------------------------------------------------------------------------------------------------------


def test_on_a_terminal_each_is_shown_and_asked_about(run: Commands) -> None:
    tea, desk = proposed(), proposed("pref.desk", "a standing desk")
    city = proposed("pref.city", "small ones")
    result = run.answering("a", "r not any more", "l 30")("review")
    assert result.code == 0
    for number, one in enumerate((tea, desk, city), 1):
        assert f"{number} of 3  {one.name}\n  {one.key}: {one.value}\n" in result.out
    assert set(facts()) == {"pref.tea"}
    assert result.out.endswith("nothing waits any more\n"), "what is put off is not counted"


def test_stopping_keeps_what_was_decided_and_the_rest_waits(run: Commands) -> None:
    proposed()
    desk = proposed("pref.desk", "a standing desk")
    for answers in (["a", "q"], []):  # and at the end of what can be read
        result = run.answering(*answers)("review")
        assert (result.code, "1 still waits" in result.out) == (0, True)
        assert (set(facts()), waiting()) == ({"pref.tea"}, [desk.name])


def test_what_cannot_be_answered_is_asked_again(run: Commands) -> None:
    proposed()
    result = run.answering("?", "x", "", "ab", "m", "l soon", "l 0", "q")("review")
    assert result.code == 0 and facts() == {}
    assert result.out.count("[a]ccept") == 8 and "m  make it" not in result.out


def test_the_fact_it_is_against_is_shown_and_can_be_dealt_with(run: Commands) -> None:
    conflict()
    result = run.answering("s")("review")
    assert '  against user.city: "Lund"  (you, first said ' in result.out and "[s]upersede" in result.out
    assert facts() == {"user.home": "Malmö"}


@pytest.mark.parametrize("yes", ["a", "A", "accept", " Accept "])
def test_a_letter_and_its_word_are_the_same_answer(run: Commands, yes: str) -> None:
    proposed(), proposed("pref.desk", "a standing desk")
    result = run.answering(yes, "Quit")("review")
    assert (set(facts()), "1 still waits" in result.out) == ({"pref.tea"}, True)


@pytest.mark.parametrize("unclear", ["a lot", "accept not", "aa", "e now", "no"])
def test_an_answer_that_says_more_decides_nothing(run: Commands, unclear: str) -> None:
    one = proposed()
    result = run.answering(unclear, "q")("review")
    assert (facts(), waiting()) == ({}, [one.name]) and "store it as your word" in result.out


def test_enter_shows_again_what_is_asked_about(run: Commands) -> None:
    conflict()
    result = run.answering("", "q")("review")
    assert result.out.count("user.home: Malmö") == result.out.count('against user.city: "Lund"') == 2
    assert "store it as your word" not in result.out


def test_what_stands_under_its_own_key_can_be_ended_or_kept(run: Commands) -> None:
    against("main")
    assert run.answering("k")("review").code == 0
    with Memory.open() as memory:
        assert {fact.key: fact.value for fact in memory.facts("main")} == {"user.city": "Lund", "user.city_2": "Malmö"}
    proposed("user.city", "Ystad", scope="main")
    assert "[s]upersede, [k]eep both" in run.answering("s")("review").out
    assert facts()["user.city"] == "Ystad"


@pytest.mark.parametrize(
    ("answer", "becomes"), [("m", {SHARED: "Lund; Malmö"}), ("k", {SHARED: "Lund", "main": "Malmö"})]
)
def test_a_shared_fact_can_be_added_to_or_kept_beside(run: Commands, answer: str, becomes: dict[str, str]) -> None:
    against(SHARED)
    assert run.answering(answer)("review").code == 0
    with Memory.open() as memory:
        assert {fact.scope: fact.value for fact in memory.facts()} == becomes


def test_what_an_earlier_answer_changed_is_seen_by_the_next(run: Commands) -> None:
    proposed("user.city", "Lund", scope="main")
    proposed("user.city", "Malmö", scope="main")
    result = run.answering("a", "q")("review")
    assert 'against user.city: "Lund"  (you, ' in result.out


def test_what_fails_is_said_and_the_next_is_asked_about(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "/nonexistent/editor")
    proposed(), proposed("pref.desk", "a standing desk")
    result = run.answering("e", "r", "a")("review")
    assert result.code == 0 and "editor" in result.err
    assert facts() == {"pref.desk": "a standing desk"}


def test_what_somebody_else_decided_meanwhile_is_said(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    one = proposed()

    def first() -> str:
        with Memory.open() as memory:
            memory.reject(one.name)
        monkeypatch.setattr("builtins.input", lambda *_: "q")
        return "a"

    monkeypatch.setattr("click.termui.visible_prompt_func", lambda *_: first())
    result = run.answering()("review")
    assert "rejected" in result.err and facts() == {}


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_it_works_on_a_real_terminal() -> None:
    proposed()
    primary, secondary = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "clawmark", "review"],
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        env={**os.environ, "CLAWMARK_EMBEDDER": "none"},
    )
    os.close(secondary)
    os.write(primary, b"a\n")
    printed = b""
    try:
        while chunk := os.read(primary, 4096):
            printed += chunk
    except OSError:  # the other end is closed
        pass
    os.close(primary)
    assert child.wait(60) == 0 and b"pref.tea is set" in printed
    assert set(facts()) == {"pref.tea"}


# --- where it is from -----------------------------------------------------------------------------------------------------


@pytest.fixture
def sample(run: Commands, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(SAMPLE))
    assert run("sync", "--json").json["proposed"] > 0, "the sample holds sentences with durable markers"
    return run


def test_a_proposal_is_shown_with_the_words_it_rests_on(sample: Commands) -> None:
    with Memory.open() as memory:
        one, *_ = memory.proposals()
        (rests_on, *_) = memory.evidence(one)
    assert rests_on.at is not None
    for shown in (sample.answering("q")("review").out, sample("review", "--list").out):
        assert f'  {rests_on.at:%Y-%m-%d}  you: "' in shown
    brief = [line for line in sample("review", "--list").out.splitlines() if ' you: "' in line]
    assert brief and all(len(line) < 200 for line in brief)


def test_what_another_value_of_its_key_rests_on_is_not_shown_for_it(sample: Commands) -> None:
    with Memory.open() as memory:
        one, *_ = memory.proposals()
    proposed(one.key, "something else altogether", scope=one.scope, origin="agent")
    *_, last = sample("review", "--list").out.split("something else altogether")
    assert ' you: "' not in last


def test_why_names_value_writer_words_and_dates(sample: Commands) -> None:
    with Memory.open() as memory:
        one, *_ = memory.proposals()
    assert sample("review", "--accept", one.name).code == 0
    told = sample("why", one.key).out
    assert told.splitlines()[0] == f"{one.key}  ({one.scope})"
    assert f"said by   you, first on {one.observed_at:%Y-%m-%d}" in told
    assert "rests on  " in told and "you accepted what was proposed" in told
    (known,) = sample("why", one.key, "--json").json["why"]
    assert known["fact"]["value"] in told and known["evidence"] and known["proposals"] == []


def test_why_of_an_unknown_key_says_so_and_of_a_wrong_one_is_2(run: Commands, machine: Path) -> None:
    assert run("why", "everything").code == 2
    assert not list(machine.rglob("memory.db*"))
    result = run("why", "pref.none")
    assert (result.code, result.out, "nothing is known" in result.err) == (0, "", True)


def test_why_of_a_forgotten_key_tells_that_and_no_value(run: Commands) -> None:
    run("set", "user.city", "Lund")
    run("forget", "user.city")
    told = run("why", "user.city").out
    assert "it was erased" in told and "Lund" not in told and "something that was forgotten" in told


def event(kind: str, day: int, new: str | None = None, old: str | None = None, detail: str | None = None) -> Event:
    return Event(day, kind, START + timedelta(days=day), "user", "main", "user.cat", old, new, detail)


def test_the_history_says_from_when_to_when_each_value_was_true() -> None:
    stands = Fact("user.cat", "Sol", 1.0, "user", START, "main", START, START + timedelta(days=9), START)
    told = history(
        [
            event("create", 0, "Kate"),
            event("reinforce", 2),
            event("conflict_skip", 3),
            event("update", 10, "Sol", "Kate", '{"from": "2026-01-03", "until": "2026-06-12"}'),
        ],
        stands,
    )
    assert told[0] == '"Kate", true from 2026-01-03 until 2026-06-12  (you, said 2 times)'
    assert told[2] == f'"Sol", true from {stands.observed_at:%Y-%m-%d}  (you)'
    assert "did not replace" in told[1]


@pytest.mark.parametrize("detail", [None, "", "no json", "[1]", '{"from": 7, "rule": []}', '"x"'])
def test_a_detail_that_is_none_does_no_harm(detail: str | None) -> None:
    assert len(history([event("create", 0, "a", detail=detail), event("forget", 1, detail=detail)], None)) == 2


def test_an_event_of_a_later_version_is_told_by_its_name() -> None:
    assert history([event("turned_around", 1)], None) == [f"{START + timedelta(days=1):%Y-%m-%d}  turned around"]


# --- stale facts ----------------------------------------------------------------------------------------------------------


def test_stale_facts_are_those_nobody_has_stated_for_long(run: Commands) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=120)
    with Memory.open() as memory:
        memory.set("pref.editor", "Helix", writer="agent", observed_at=long_ago)
        memory.set("pref.shell", "fish", writer="agent")
    listed = run("facts", "--stale")
    assert listed.out.startswith("pref.editor: Helix") and "120 days" in listed.out and "fish" not in listed.out
    (one,) = run("facts", "--stale", "--json").json["facts"]
    assert (one["days"], one["key"]) == (120, "pref.editor") and 0 < one["effective"] < 0.9
    assert run("facts", "--stale", "--days", "200").out == ""


def test_a_fact_that_no_agent_is_shown_any_more_is_said_to_be_faded(run: Commands) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=200)
    with Memory.open() as memory:
        memory.set("pref.editor", "Helix", writer="agent", observed_at=long_ago)
        memory.set("pref.shell", "fish", writer="agent")
    assert "Helix" not in run("block", "hello").out and "fish" in run("block", "hello").out
    faded, shown = run("facts").out.splitlines()
    assert "faded, not shown to agents" in faded and "faded" not in shown
    assert f"first said {long_ago:%Y-%m-%d}" in faded and "(the agent, shared, " in faded
    assert [one["faded"] for one in run("facts", "--json").json["facts"]] == [True, False]
    assert "faded, not shown to agents" in run("why", "pref.editor").out and "faded" not in run("why", "pref.shell").out
    assert run("why", "pref.editor", "--json").json["why"][0]["faded"] is True
    assert "1 of them faded, not shown to agents" in run("status").out
    assert run("status", "--json").json["faded"] == 1


def test_a_participant_is_called_by_name() -> None:
    from clawmark.cli.common import told
    from clawmark.model import Excerpt

    said = Excerpt("r", "s", "c", "user", START, "hello", 0.0, "you")
    assert told(said) == f'{START:%Y-%m-%d}  "you": "hello"', "whoever calls themselves so is not the owner"
    assert told(Excerpt("r", "s", "c", "user", START, "hello", 0.0)) == f'{START:%Y-%m-%d}  you: "hello"'
    assert told(Excerpt("r", "s", "c", "assistant", None, "hello", 0.0)) == 'unknown     assistant: "hello"'


@pytest.mark.parametrize("arguments", [["--stale", "--hidden"], ["--days", "9"], ["--stale", "--days", "0"]])
def test_wrong_uses_of_facts_are_2(run: Commands, arguments: list[str]) -> None:
    result = run("facts", *arguments)
    assert (result.code, result.out) == (2, "") and "--" in result.err


# --- one live statement about one thing -------------------------------------------------------------------------------


def test_what_a_yes_would_replace_under_another_key_is_shown_and_replaced(run: Commands) -> None:
    with Memory.open() as memory:
        memory.set("user.current_city", "Lund", observed_at=START)
    proposed("user.city", "Malmö")
    shown = run.answering("a")("review").out
    (line,) = [line for line in shown.splitlines() if 'against user.current_city: "Lund"' in line]
    assert line.endswith("a yes replaces it") and "user.current_city is set: Malmö" in shown
    assert facts() == {"user.current_city": "Malmö"}


def test_what_only_may_be_of_the_subject_is_shown_and_a_yes_leaves_it(run: Commands) -> None:
    with Memory.open() as memory:
        memory.set("user.city", "Lund", observed_at=START)
    proposed("pref.favourite_city", "Malmö")
    shown = run.answering("a")("review").out
    (line,) = [line for line in shown.splitlines() if 'against user.city: "Lund"' in line]
    assert "a yes" not in line and facts() == {"user.city": "Lund", "pref.favourite_city": "Malmö"}


def test_a_word_set_by_hand_holds_wherever_its_key_stands(run: Commands) -> None:
    run("set", "pref.editor", "Kate", "--scope", "main")
    run("set", "pref.editor", "Vim", "--scope", "work")
    assert run("set", "Pref.Editor", "Helix").out == "pref.editor is set (main)\npref.editor is set (work)\n"
    run("set", "user.boat", "Sira")
    assert run("set", "user.boat", "Ada").out == "user.boat is set\n"
    assert run("set", "user.boat", "Runa", "--scope", "main").code == 0
    with Memory.open() as memory:
        assert [(fact.key, fact.scope, fact.value) for fact in memory.facts()] == [
            ("pref.editor", "main", "Helix"),
            ("pref.editor", "work", "Helix"),
            ("user.boat", "main", "Runa"),
            ("user.boat", "shared", "Ada"),
        ]


def test_a_fact_that_is_shown_again_is_no_more_to_be_erased(run: Commands) -> None:
    run("set", "user.city", "Lund")
    with Memory.open() as memory:
        memory.hide("user.city")
    proposed("user.city", "Lund", kind="forget", origin="agent", reason="unasked")
    assert run("unhide", "user.city").code == 0
    with Memory.open() as memory:
        assert memory.proposals() == [] and facts() == {"user.city": "Lund"}


def test_setting_by_hand_names_what_stands_beside_it_and_how_to_end_that(run: Commands) -> None:
    assert run("set", "pref.editor", "Kate", "--scope", "main").code == 0
    result = run("set", "user.editor", "Helix")
    assert (result.code, result.out) == (0, "user.editor is set\n")
    (line,) = result.err.splitlines()
    assert 'pref.editor stands beside it and says "Kate"' in line
    assert facts() == {"pref.editor": "Kate", "user.editor": "Helix"}
    told = line[line.index("`clawmark ") + len("`clawmark ") : line.rindex("`")]
    assert run(*told.split()).code == 0 and facts() == {"user.editor": "Helix"}
    assert run("set", "user.editor", "Zed").err == run("set", "pref.editor", "zed").err == ""


def test_no_advice_about_what_stands_beside_it_keeps_out_what_was_just_set(run: Commands) -> None:
    run("set", "pref.role", "lead engineer at Acme", "--scope", "a b")
    line = run("set", "user.role", "lead engineer at Beta's", "--scope", "a b").err.splitlines()[-1]
    told = line[line.index("`clawmark ") + len("`clawmark ") : line.rindex("`")]
    assert run(*shlex.split(told)).code == 0
    with Memory.open() as memory:
        assert {fact.value for fact in memory.facts("a b")} == {"lead engineer at Beta's"}
        assert memory.set("ref.work", "lead engineer at Beta's", "a b", writer="agent")


def test_what_waits_and_says_the_opposite_is_shown(run: Commands) -> None:
    first = proposed("pref.packages", "Prefer pnpm over npm in this monorepo")
    proposed("lesson.monorepo_tools", "Avoid pnpm in this monorepo")
    line = f"against what waits as {first.name}: pref.packages: Prefer pnpm over npm in this monorepo"
    assert run("review", "--list").out.count(line) == 1
    walked = run.answering("r", "q")("review").out
    assert line not in walked, "it is decided by then"
