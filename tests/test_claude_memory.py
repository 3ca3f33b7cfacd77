"""Facts as Claude Code's memory files: what a page says, what a person's hand did to it, and what no value can do."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers import LATER, START, Clock, Log, excerpt, fact, open_memory, query, residue
from hypothesis import example, given
from hypothesis import strategies as st

from clawmark import claude_memory
from clawmark.claude_memory import Answer, Question, Report
from clawmark.cli import portable as commands
from clawmark.cli.portable import export as command
from clawmark.errors import UsageError
from clawmark.hosts.claude_code.project import scope_of
from clawmark.keys import KEY_LENGTH, PREFIXES
from clawmark.memory import Memory
from clawmark.model import Evidence, Why
from clawmark.store import db, evidence, passages


def token() -> str:
    """What looks like a secret, put together here so that none stands in this file."""
    return "gh" + "p_" + "Zq3vX8" + "n1LmT5" + "wRb7Kd" + "2Yc9Hs" + "4Jf6Pg" + "0AeU1x"


def front(text: str) -> dict[str, Any]:
    """The front matter of a page, as JSON values or plain words."""
    told = (line.partition(": ") for line in text.split("---\n")[1].splitlines())
    return {name: said if said.isalpha() else json.loads(said) for name, _, said in told}


def body(text: str) -> list[str]:
    return text.split("---\n", 2)[2].strip().split("\n\n")


class Asked:
    """A person who gives one answer, and what they were asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer


def never(question: Question) -> Answer:
    raise AssertionError(f"asked about {[one.key for one in question.facts]}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "claude" / "memory"


@pytest.fixture
def known(memory: Memory) -> Memory:
    memory.set("pref.editor", "Helix")
    memory.set("user.city", "Gothenburg")
    memory.set("lesson.kiln", "cone 6 needs a slow cooling")
    memory.set("project.ledger", "the ledger moves to PostgreSQL in June", scope="main")
    memory.set("ref.wiki", "the wiki is on the shelf behind the kiln")
    return memory


def write(memory: Memory, folder: Path, ask: Callable[[Question], Answer] = never, **options: Any) -> Report:
    return claude_memory.export(memory, folder, ask=ask, **options)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- pages ------------------------------------------------------------------------------------------------------------


def test_every_fact_has_a_file_of_its_type(known: Memory, folder: Path) -> None:
    report = write(known, folder)
    assert names(folder) == {
        "feedback_editor.md",
        "user_city.md",
        "feedback_kiln.md",
        "project_ledger.md",
        "reference_wiki.md",
        ".clawmark.json",
    }
    assert len(report.written) == 5
    kinds = {path.name: front(path.read_text())["type"] for path in folder.glob("*.md")}
    assert all(name.startswith(f"{kind}_") for name, kind in kinds.items())


def test_a_page_says_what_it_is_and_where_it_is_from(known: Memory, folder: Path) -> None:
    write(known, folder)
    text = (folder / "feedback_editor.md").read_text()
    assert list(front(text))[:4] == ["name", "description", "type", "source"]
    said = front(text)
    assert (said["name"], said["description"], said["source"]) == ("Editor", "Editor: Helix", "clawmark")
    assert (said["key"], said["writer"], said["classifier_confidence"]) == ("pref.editor", "user", 1.0)
    assert said["promoted_at"] == LATER.isoformat() and re.fullmatch("[0-9a-f]{12}", said["content_hash"])


def test_feedback_and_projects_say_why_and_how_to_apply_them(known: Memory, folder: Path) -> None:
    write(known, folder)
    for path in folder.glob("*.md"):
        lines = [line[:10] for line in body(path.read_text())[1:]]
        expected = ["**Why:** t", "**How to a"] if path.name.startswith(("feedback", "project")) else []
        assert lines == expected, path.name


def test_why_cites_what_the_person_said(memory: Memory, log: Log, folder: Path) -> None:
    said = log.say("from now on I use Helix for everything")
    memory.sync()
    memory.set("pref.editor", "Helix")
    ((content_key, at),) = query(memory.path, "SELECT content_key, at FROM passages")
    with db.opened(memory.path) as connection, db.transaction(connection, memory.path):
        noted = Evidence(content_key, passages.from_ms(at), "s1")
        evidence.add(connection, "shared", "pref.editor", "Helix", noted)
    write(memory, folder)
    text = (folder / "feedback_editor.md").read_text()
    assert body(text)[1] == f'**Why:** the user said on {said.at.date()}: "from now on I use Helix for everything"'
    told = front(text)
    assert told["source_session_id"] == "s1" and told["source_artifact_ids"] == [said.ref]
    assert told["source_dates"] == [said.at.date().isoformat()]


def test_what_is_not_known_is_not_said() -> None:
    made = claude_memory.page(fact(), None)
    assert not {"source_session_id", "source_artifact_ids", "source_dates"} & front(made.text).keys()
    assert body(made.text)[1] == "**Why:** the user stated it on 2026-01-05."


def test_the_date_of_a_message_that_cannot_be_read_now_is_kept() -> None:
    why = Why("pref.editor", "shared", fact(), False, [], [START, START + timedelta(days=1)], [], [])
    assert front(claude_memory.page(fact(), why).text)["source_dates"] == ["2026-01-05", "2026-01-06"]


def test_a_faded_fact_has_no_file(known: Memory, folder: Path) -> None:
    known.set("pref.font", "Iosevka", writer="agent", observed_at=LATER - timedelta(days=300))
    write(known, folder)
    assert "feedback_font.md" not in names(folder)


def test_a_clock_that_runs_ahead_takes_no_file_away(known: Memory, log: Log, folder: Path, clock: Clock) -> None:
    log.say("I set my editor font to Iosevka again today", at=LATER)
    known.sync()
    known.set("pref.font", "Iosevka", writer="agent")
    write(known, folder)
    clock.advance(days=400)
    report = write(known, folder)
    assert report.removed == [] and "feedback_font.md" in names(folder)


def test_a_hidden_fact_has_no_file(known: Memory, folder: Path) -> None:
    known.hide("user.city")
    write(known, folder)
    assert "user_city.md" not in names(folder)


def test_no_file_holds_a_secret(known: Memory, folder: Path) -> None:
    with db.opened(known.path) as connection, db.transaction(connection, known.path):
        connection.execute("UPDATE facts SET value = ? WHERE key = 'ref.wiki'", (f"the key is {token()}",))
    write(known, folder, index=True)
    assert not residue(folder, token())


VALUES = st.one_of(
    st.text(max_size=120),
    st.lists(
        st.sampled_from(
            ["---", "\n", "\r\n", "type: user", "```", "# ", "- ", "**Why:** ", "<!--", "-->", "<script>", '"', "\\", "\u2028",
             "\x85", "\x00", "[x](y.md)", "<!-- clawmark: end -->", ": ", "'", "{", "|", ">", "\u202e", "é", "🜂", "a b"]
        ),
        max_size=12,
    ).map("".join),
)  # fmt: skip


@given(value=VALUES, quote=VALUES, session=VALUES, scope=VALUES)
@example("---\ntype: user\n---\n", "x", "x", "x")
@example("<!-- hidden -->", "<!--", "a\nkey: pref.other", "x")
def test_no_value_breaks_front_matter_or_page(value: str, quote: str, session: str, scope: str) -> None:
    said = excerpt(quote, conversation=session)
    why = Why("pref.editor", scope, None, False, [said], [], [], [])
    text = claude_memory.page(fact(value=value, scope=scope), why).text
    lines = text.split("\n")
    assert text.splitlines() == lines[:-1]  # no character of a value ends a line
    assert [n for n, line in enumerate(lines) if line == "---"] == [0, lines.index("---", 1)]
    assert list(front(text)) == [
        "name", "description", "type", "source", "key", "scope", "writer", "source_session_id", "source_artifact_ids",
        "source_dates", "classifier_confidence", "promoted_at", "content_hash",
    ]  # fmt: skip
    assert front(text)["type"] == "feedback" and front(text)["key"] == "pref.editor"
    starts = [
        line.partition(": ")[0] if line.startswith("Editor") else line[:8]
        for line in lines[lines.index("---", 1) + 1 :]
    ]
    assert starts == ["", "Editor", "", "**Why:**", "", "**How to", ""]
    assert not re.search(r"(?<!\\)<[A-Za-z/!?]", "\n".join(lines[lines.index("---", 1) :]))


KEYS = st.builds(
    lambda prefix, rest: (prefix + rest)[:KEY_LENGTH],
    st.sampled_from(PREFIXES),
    st.text("abz09_.", min_size=1, max_size=120),
)


@given(KEYS | st.text(max_size=300), st.integers(1, 10_000))
@example("pref.../../etc/passwd", 1)
@example("pref." + "a" * 95, 9999)
@example("pref.__", 1)
def test_a_file_name_is_safe_whatever_the_key(key: str, number: int) -> None:
    name = claude_memory.file_name(key, number)
    assert re.fullmatch(r"(user|feedback|project|reference)_[a-z0-9_]+\.md", name) and len(name) <= 100
    assert claude_memory._NAME.fullmatch(name)


# --- the folder -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[0o000, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_every_file_is_the_owners_alone(known: Memory, folder: Path, umask: int) -> None:
    write(known, folder, index=True)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_run_changes_nothing(known: Memory, folder: Path) -> None:
    write(known, folder, index=True)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    report = write(known, folder, index=True)
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    assert (report.written, report.unchanged) == ([], 5)


def test_a_changed_fact_changes_its_file(known: Memory, folder: Path) -> None:
    write(known, folder)
    known.set("pref.editor", "Emacs")
    assert write(known, folder).written == ["feedback_editor.md"]
    assert "Emacs" in (folder / "feedback_editor.md").read_text()


def test_a_forgotten_fact_takes_its_file_along(known: Memory, folder: Path) -> None:
    write(known, folder, index=True)
    known.forget("user.city")
    assert write(known, folder, index=True).removed == ["user_city.md"]
    assert not residue(folder, "Gothenburg")


def test_a_file_that_is_not_ours_stays(known: Memory, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "feedback_editor.md").write_text("my own words")
    write(known, folder)
    assert (folder / "feedback_editor.md").read_text() == "my own words"
    assert "Helix" in (folder / "feedback_editor_2.md").read_text()
    known.forget("pref.editor")
    write(known, folder)
    assert (folder / "feedback_editor.md").read_text() == "my own words"
    assert not (folder / "feedback_editor_2.md").exists()


def test_a_file_that_was_edited_stays(known: Memory, folder: Path) -> None:
    write(known, folder)
    place = folder / "feedback_editor.md"
    place.write_text(place.read_text() + "\nand Kakoune on Sundays\n")
    edited = place.read_text()
    report = write(known, folder)
    assert report.kept == ["feedback_editor.md"] and place.read_text() == edited
    assert "Helix" in (folder / "feedback_editor_2.md").read_text()
    known.forget("pref.editor")
    write(known, folder)
    assert place.read_text() == edited


def test_two_keys_of_one_name_have_a_file_each(known: Memory, folder: Path) -> None:
    known.set("lesson.editor", "save before you build")
    known.set("pref.editor", "Zed", scope="main")
    write(known, folder)
    said = {path.name: path.read_text() for path in folder.glob("feedback_editor*.md")}
    assert len(said) == 3
    assert all(sum(value in text for text in said.values()) == 1 for value in ("Helix", "save before", "Zed"))
    before = said
    write(known, folder)
    assert {path.name: path.read_text() for path in folder.glob("feedback_editor*.md")} == before


def test_no_link_is_followed(known: Memory, folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    victim = tmp_path / "victim.md"
    victim.write_text("precious")
    (folder / "feedback_editor.md").symlink_to(victim)
    write(known, folder)
    assert victim.read_text() == "precious"
    (folder / "user_city.md").unlink()
    (folder / "user_city.md").symlink_to(victim)
    known.forget("user.city")
    write(known, folder)
    assert victim.read_text() == "precious" and (folder / "user_city.md").is_symlink()


def test_an_index_that_is_a_link_is_left_as_it_is(known: Memory, folder: Path, tmp_path: Path) -> None:
    folder.mkdir(parents=True)
    victim = tmp_path / "victim.md"
    victim.write_text("precious\n")
    (folder / "MEMORY.md").symlink_to(victim)
    with pytest.raises(UsageError, match=r"MEMORY\.md"):
        write(known, folder, index=True)
    assert names(folder) == {"MEMORY.md"} and victim.read_text() == "precious\n"
    assert len(write(known, folder).written) == 5  # without --index nobody looks at it


def test_one_scope_leaves_the_files_of_another_alone(known: Memory, folder: Path) -> None:
    known.set("pref.tea", "green", scope="loom")
    write(known, folder, scope="loom")
    assert names(folder) >= {"feedback_tea.md", "feedback_editor.md"} and "project_ledger.md" not in names(folder)
    write(known, folder, scope="main")
    assert names(folder) >= {"feedback_tea.md", "project_ledger.md"}


def test_a_run_that_was_cut_short_is_gone_on_with(known: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_short(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(claude_memory._Folder, "_save_manifest", cut_short)
    with pytest.raises(KeyboardInterrupt):
        write(known, folder)
    monkeypatch.undo()
    (folder / ".user_city.md.clawmark-0123abcd").write_text("half")
    assert (write(known, folder).written, len(names(folder))) == ([], 6)


def test_one_export_at_a_time(known: Memory, folder: Path) -> None:
    folder.mkdir(parents=True)
    with claude_memory._alone(folder), pytest.raises(UsageError, match="another export"):
        write(known, folder)


# --- deleted by hand --------------------------------------------------------------------------------------------------


def test_a_deleted_file_has_its_fact_forgotten_for_good_once_confirmed(known: Memory, folder: Path) -> None:
    write(known, folder)
    (folder / "user_city.md").unlink()
    asked = Asked("forget")
    report = write(known, folder, asked)
    assert [one.key for one in asked.questions[0].facts] == ["user.city"]
    assert report.forgotten == ["user.city"] and "user_city.md" not in names(folder)
    with pytest.raises(UsageError, match="FORGOTTEN"):
        known.set("user.home", "Gothenburg", writer="agent")


def test_nothing_is_forgotten_or_written_while_nobody_answers(known: Memory, folder: Path) -> None:
    write(known, folder)
    (folder / "user_city.md").unlink()
    for _ in range(2):
        report = write(known, folder, Asked("later"))
        assert report.deleted == ["user_city.md"] and "user_city.md" not in names(folder)
    assert "user.city" in {one.key for one in known.facts()}


def test_a_no_keeps_the_fact_without_a_file_until_it_says_something_else(known: Memory, folder: Path) -> None:
    write(known, folder, index=True)
    (folder / "user_city.md").unlink()
    write(known, folder, Asked("keep"), index=True)
    write(known, folder, index=True)  # not asked again
    assert "user_city.md" not in names(folder) and "user_city" not in (folder / "MEMORY.md").read_text()
    known.set("user.city", "Umeå")
    assert write(known, folder).written == ["user_city.md"]


def test_a_file_of_an_older_value_that_was_deleted_asks_nothing(known: Memory, folder: Path) -> None:
    write(known, folder)
    (folder / "user_city.md").unlink()
    known.set("user.city", "Umeå")
    assert write(known, folder).written == ["user_city.md"]


def test_a_file_whose_fact_is_gone_asks_nothing(known: Memory, folder: Path) -> None:
    write(known, folder)
    (folder / "user_city.md").unlink()
    known.forget("user.city")
    write(known, folder)


def test_an_emptied_folder_is_told_from_single_deletions(known: Memory, folder: Path) -> None:
    write(known, folder)
    for path in folder.glob("*.md"):
        path.unlink()
    asked = Asked("later")
    write(known, folder, asked)
    assert asked.questions[0].everything
    (folder / ".clawmark.json").unlink()
    assert len(write(known, folder).written) == 5


# --- the manifest and the index ---------------------------------------------------------------------------------------


def test_the_manifest_holds_keys_and_hashes_only(known: Memory, folder: Path) -> None:
    write(known, folder)
    text = (folder / ".clawmark.json").read_text()
    assert not any(word in text for word in ("Helix", "Gothenburg", "cone 6", "PostgreSQL", "shelf"))
    said = json.loads(text)
    assert set(said["files"]["user_city.md"]) == {"scope", "key", "content_hash", "sha256"}


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "[" * 100_000, '{"clawmark":"claude-memory","version":2,"files":{}}', '{"version":1,"files":{}}',
     '{"clawmark":"claude-memory","version":1,"files":{"../victim.md":{"scope":"a","key":"b","content_hash":"c","sha256":"d"}}}',
     '{"clawmark":"claude-memory","version":1,"files":{"user_x.md":{"scope":1}}}'],
    ids=["empty", "torn", "a list", "deep", "later", "nobody's", "a name that leads out", "half an entry"],
)  # fmt: skip
def test_a_bad_manifest_is_named_and_nothing_is_written(known: Memory, folder: Path, content: str) -> None:
    folder.mkdir(parents=True)
    (folder.parent / "victim.md").write_text("precious")
    (folder / ".clawmark.json").write_text(content)
    with pytest.raises(UsageError, match=r"\.clawmark\.json"):
        write(known, folder)
    assert names(folder) == {".clawmark.json"} and (folder.parent / "victim.md").read_text() == "precious"


def test_the_index_is_written_on_request_alone(known: Memory, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Kiln ledger\n")
    write(known, folder)
    assert (folder / "MEMORY.md").read_text() == "# Kiln ledger\n"


def test_in_the_index_all_lines_but_ours_stay(known: Memory, folder: Path) -> None:
    folder.mkdir(parents=True)
    mine = "# Kiln ledger\r\n- [Mine](mine.md): by hand\r\n\ttail without end"
    (folder / "MEMORY.md").write_bytes(mine.encode())
    (folder / "MEMORY.md").chmod(0o640)
    write(known, folder, index=True)
    text = (folder / "MEMORY.md").read_bytes().decode()
    assert text.startswith(mine) and stat.S_IMODE((folder / "MEMORY.md").stat().st_mode) == 0o640
    listed = re.findall(r"^- \[(.+)\]\((\w+\.md)\): (.+)$", text.removeprefix(mine), re.MULTILINE)
    assert ("Editor", "feedback_editor.md", "Helix") in listed and len(listed) == 5
    (folder / "MEMORY.md").write_bytes((text + "and more\n").encode())
    known.forget("user.city")
    write(known, folder, index=True)
    text = (folder / "MEMORY.md").read_bytes().decode()
    assert text.startswith(mine) and text.endswith("and more\n") and text.count("](") == 5


def test_without_facts_our_lines_leave_the_index(known: Memory, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Kiln ledger\n")
    write(known, folder, index=True)
    for one in known.facts():
        known.forget(one.key)
    write(known, folder, index=True)
    assert (folder / "MEMORY.md").read_text().rstrip("\n") == "# Kiln ledger"
    assert not list(folder.glob("*_*.md"))


def test_an_index_that_is_behind_is_said(known: Memory, folder: Path) -> None:
    write(known, folder, index=True)
    known.forget("user.city")
    (note,) = write(known, folder).notes
    assert "--index" in note


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace(claude_memory._END, ""),
        lambda text: text + text,
        lambda text: text[::-1].replace("\n", "x"),
    ],
    ids=["half", "twice", "none of ours"],
)
def test_an_index_with_torn_marks_is_left_as_it_is(known: Memory, folder: Path, spoil: Callable[[str], str]) -> None:
    write(known, folder, index=True)
    spoiled = spoil((folder / "MEMORY.md").read_text())
    (folder / "MEMORY.md").write_text(spoiled)
    known.set("user.city", "Umeå")
    try:
        write(known, folder, index=True)
    except UsageError as refused:
        assert "MEMORY.md" in str(refused)
        assert (folder / "MEMORY.md").read_text() == spoiled
        assert "Gothenburg" in (folder / "user_city.md").read_text()  # nothing was done
    else:
        assert (folder / "MEMORY.md").read_text().startswith(spoiled)


@given(lines=st.lists(st.text(max_size=40), max_size=4), before=st.text(max_size=80))
def test_what_stands_around_our_lines_is_never_changed(lines: list[str], before: str) -> None:
    if claude_memory._BEGIN in before or claude_memory._END in before:
        return
    ours = [re.sub(r"[<\n]", "", line) for line in lines]
    once = claude_memory._with_lines(before, ours)
    assert once.startswith(before)
    assert claude_memory._with_lines(once, ours) == once
    assert claude_memory._with_lines(once, []).rstrip("\n") == before.rstrip("\n")


def test_a_folder_that_cannot_be_one_is_named(known: Memory, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="file"):
        write(known, tmp_path / "file")


# --- which folder -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/home/ana.b/my_app v2", "-home-ana-b-my-app-v2"),
        ("/srv/überall/Ö", "-srv--berall--"),
        ("/srv/🜂", "-srv---"),
        ("/A/b9", "-A-b9"),
    ],
)
def test_a_project_is_named_as_claude_code_names_it(folder: str, name: str) -> None:
    assert claude_memory.encoded(folder) == name


def test_the_folder_of_a_repository_is_that_of_its_top(tmp_path: Path) -> None:
    inside = tmp_path / "my_app v2" / "src"
    inside.mkdir(parents=True)
    (tmp_path / "my_app v2" / ".git").mkdir()
    config = tmp_path / "config"
    expected = config / "projects" / claude_memory.encoded(str(tmp_path / "my_app v2")) / "memory"
    assert claude_memory.folder_of_project(config, inside) == expected
    own = config / "projects" / claude_memory.encoded(str(inside)) / "memory"
    own.mkdir(parents=True)
    assert claude_memory.folder_of_project(config, inside) == own  # the one that is there


def test_a_name_that_cannot_be_known_is_looked_for(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 150) / ("e" * 150)
    deep.mkdir(parents=True)
    with pytest.raises(UsageError, match="too long"):
        claude_memory.folder_of_project(tmp_path, deep)
    there = tmp_path / "projects" / (claude_memory.encoded(str(deep))[:200] + "-1a2b3c")
    there.mkdir(parents=True)
    assert claude_memory.folder_of_project(tmp_path, deep) == there / "memory"


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def at(known: Memory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(known.path))
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    monkeypatch.setenv("CLAWMARK_CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("CLAWMARK_TRANSCRIPTS_DIR", str(tmp_path / "nothing"))
    known.close()
    return known.path


FILES = ["--format", "claude-memory"]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command, [*FILES, *arguments])


def test_the_command_writes_into_a_folder(at: Path, folder: Path) -> None:
    told = json.loads(run(str(folder), "--json").stdout)
    assert told["folder"] == str(folder) and len(told["written"]) == 5


def test_the_command_finds_the_projects_folder_and_its_scope(
    at: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "my_app v2"
    place.mkdir()
    monkeypatch.chdir(place)
    with open_memory(at, Log()) as memory:
        memory.set("project.only", "here", scope=scope_of(str(place)).id)
    assert run("--project").exit_code == 0
    made = tmp_path / "config" / "projects" / claude_memory.encoded(str(place.resolve())) / "memory"
    assert names(made) >= {"project_only.md", "feedback_editor.md"} and "project_ledger.md" not in names(made)


def test_yes_forgets_what_was_deleted_and_nothing_else_does(at: Path, folder: Path) -> None:
    run(str(folder))
    (folder / "user_city.md").unlink()
    told = run(str(folder))
    assert told.exit_code == 0 and "say --yes" in told.output
    assert query(at, "SELECT value FROM facts WHERE key = 'user.city'") == [("Gothenburg",)]
    assert "user.city is forgotten" in run(str(folder), "--yes").output
    assert query(at, "SELECT value FROM facts WHERE key = 'user.city'") == []


def test_yes_does_not_empty_a_memory_whose_folder_was_emptied(at: Path, folder: Path) -> None:
    run(str(folder))
    for path in folder.glob("*.md"):
        path.unlink()
    refused = run(str(folder), "--yes").exception
    assert isinstance(refused, UsageError) and "not taken for an answer" in str(refused)
    assert query(at, "SELECT count(*) FROM facts") == [(5,)]


@pytest.mark.parametrize(("answer", "left"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_what_a_person_confirms_is_forgotten(
    at: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    run(str(folder))
    (folder / "user_city.md").unlink()
    monkeypatch.setattr(commands, "is_asked", lambda: True)
    told = CliRunner().invoke(command, [*FILES, str(folder)], input=answer)
    assert told.exit_code == 0 and "deleted by hand: user.city (shared)" in told.output
    assert query(at, "SELECT count(*) FROM facts WHERE key = 'user.city'") == [(left,)]


def test_what_somebody_else_said_is_told_as_theirs(tmp_path: Path, clock: Clock) -> None:
    from helpers import Log, open_memory

    log = Log()
    log.session("g", kind="group")
    said = log.say("my favourite island is Gillöga", "g", origin="participant", author="Noor")
    with open_memory(tmp_path / "data" / "memory.db", log, clock=clock) as memory:
        memory.sync()
        one = memory.propose("set", "pref.island", "Gillöga", "main", origin="participant", reason="foreign")
        from clawmark.model import Evidence
        from clawmark.store import db, evidence, passages

        with db.opened(memory.path) as connection:
            (key,) = passages.content_keys(connection, passages.of_scope(connection, "main"))
            evidence.add(connection, "main", "pref.island", "Gillöga", Evidence(key, said.at, "g"))
        memory.accept(one.name)
        claude_memory.export(memory, tmp_path / "out", ask=lambda *_: False)
    (page,) = (tmp_path / "out").glob("feedback_*.md")
    assert "Noor said on" in page.read_text() and "the user said" not in page.read_text()


def test_what_the_person_took_on_says_how_sure_whoever_claimed_it_was(memory: Memory, log: Log, folder: Path) -> None:
    log.say("Remember that I always take the window seat.")
    memory.sync()
    (one,) = memory.proposals()
    fact = memory.accept(one.name)
    assert fact is not None and fact.confidence == 1.0 > one.confidence

    def said() -> object:
        write(memory, folder)
        (page,) = folder.glob("*.md")
        return front(page.read_text())["classifier_confidence"]

    assert said() == one.confidence
    memory.set(fact.key, fact.value, fact.scope)
    assert said() == 1.0, "their own word since"


def test_a_title_has_at_most_60_characters() -> None:
    assert len(claude_memory.title_of("pref." + "long_" * 18 + "key")) == 60
