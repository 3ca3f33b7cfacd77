"""Installing into Claude Code, and changes to files of hosts in general: shown first, made whole, taken back alone."""

from __future__ import annotations

import json
import os
import stat
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clawmark.client import BUDGET
from clawmark.errors import UsageError
from clawmark.hosts import change
from clawmark.hosts.change import Change, Edit
from clawmark.hosts.claude_code import install as installer
from clawmark.settings import Settings, config_file, load
from clawmark.socketpath import socket_path

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- a change ---------------------------------------------------------------------------------------------------------


def with_plugin(value: dict[str, Any]) -> dict[str, Any]:
    return change.put(value, ["plugins", "clawmark"], {"enabled": True})


def test_nothing_is_written_before_apply(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text('{"a": 1}\n')
    made = Change.of([change.edited(path, with_plugin)])
    assert made and '"enabled": true' in made.diff()
    assert content(tmp_path) == {"host.json": b'{"a": 1}\n'}


def test_file_keeps_mode_spelling_and_order(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text('{\n    "z": 1,\n    "a": "é"\n}')
    path.chmod(0o640)
    Change.of([change.edited(path, with_plugin)]).apply(NOW)
    expected = '{\n    "z": 1,\n    "a": "é",\n    "plugins": {\n        "clawmark": {\n            "enabled": true\n'
    assert path.read_text() == expected + "        }\n    }\n}"
    assert mode(path) == 0o640


def test_copy_is_for_its_owner_alone_and_says_what_was(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text('{"a": 1}\n')
    path.chmod(0o644)
    (copy,) = Change.of([change.edited(path, with_plugin)]).apply(NOW)
    assert (copy.read_text(), mode(copy), copy.parent) == ('{"a": 1}\n', 0o600, tmp_path)
    assert "20260301T090000Z" in copy.name


def test_new_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        Change.of([change.edited(tmp_path / "new" / "host.json", with_plugin)]).apply(NOW)
    finally:
        os.umask(old)
    assert (mode(tmp_path / "new" / "host.json"), mode(tmp_path / "new")) == (0o600, 0o700)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, // why\n "b": 2}',
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        "[1]",
        "3",
        "{",
        "\ufeff{}",
        "[" * 100_000,
    ],
)
def test_what_is_not_plain_json_is_refused_and_left(tmp_path: Path, text: str) -> None:
    path = tmp_path / "host.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="plain JSON"):
        change.edited(path, with_plugin)
    assert content(tmp_path) == {"host.json": text.encode()}


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "host.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(UsageError, match="no UTF-8"):
        change.edited(tmp_path / "host.json", with_plugin)


def test_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text("{}\n")
    second.write_text("{}\n")
    made = Change.of([change.edited(first, with_plugin), change.edited(second, with_plugin)])
    second.write_text('{"theirs": 1}\n')
    with pytest.raises(UsageError, match="changed meanwhile"):
        made.apply(NOW)
    assert content(tmp_path) == {"a.json": b"{}\n", "b.json": b'{"theirs": 1}\n'}


def test_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.json", tmp_path / "host.json"
    real.write_text("{}\n")
    link.symlink_to(real)
    Change.of([change.edited(link, with_plugin)]).apply(NOW)
    assert link.is_symlink()
    assert json.loads(real.read_text()) == {"plugins": {"clawmark": {"enabled": True}}}


def test_pipe_and_folder_hold_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(UsageError):
            change.read(tmp_path / name)


def test_diff_shows_changed_lines_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text('{\n  "note": "mine",\n  "token": "not-shown"\n}\n')
    diff = change.edited(path, with_plugin).diff()
    assert "clawmark" in diff
    assert "not-shown" not in diff
    assert "mine" not in diff


def test_diff_shows_lines_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text('{\n  "a": 1,\n  "b": 2\n}\n')
    diff = change.edited(path, lambda value: {**value, "a": 3, "c": [1, 2]}).diff()
    lines = ['-  "a": 1,', '+  "a": 3,', '+  "c": [', "+    1,", "+    2", "+  ]"]
    assert diff.splitlines() == [f"--- {path}", f"+++ {path}", *lines]
    assert Edit(path, None, b"x\n" * 500, ours=True).diff().splitlines()[1:] == [f"+++ {path}", "(500 lines)"]
    assert Edit(path, b"x\n", None).diff().splitlines() == [f"--- {path}", "+++ /dev/null", "-x"]


def test_entries_are_put_and_taken_alone() -> None:
    theirs: dict[str, Any] = {"plugins": {"other": {"enabled": True}, "paths": ["/theirs"]}, "theme": "dark"}
    before = json.dumps(theirs)
    ours = change.listed(with_plugin(json.loads(before)), ["plugins", "paths"], "/ours")
    assert ours["plugins"] == {
        "other": {"enabled": True},
        "paths": ["/theirs", "/ours"],
        "clawmark": {"enabled": True},
    }
    assert change.listed(json.loads(json.dumps(ours)), ["plugins", "paths"], "/ours") == ours
    left = change.taken(ours, ["plugins", "clawmark"])
    left = change.unlisted(left, ["plugins", "paths"], lambda item: item == "/ours")
    assert json.dumps(left) == before


def test_objects_that_are_left_empty_go() -> None:
    assert change.taken(with_plugin({}), ["plugins", "clawmark"]) == {}
    assert change.unlisted(change.listed({}, ["a", "b"], 1), ["a", "b"], lambda item: item == 1) == {}
    assert change.taken({"plugins": {}}, ["plugins", "clawmark"]) == {"plugins": {}}


@pytest.mark.parametrize("value", [{"plugins": [1]}, {"plugins": "on"}, {"plugins": None}])
def test_something_else_in_the_way_is_named(value: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="plugins is no object"):
        with_plugin(value)


def test_edit_that_changes_nothing_is_no_change() -> None:
    assert not Change.of([Edit(Path("a"), b"x", b"x"), Edit(Path("b"), None, None)])


# --- Claude Code ------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home with Claude Code in it, and nothing of this machine's."""
    (tmp_path / ".claude").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def installed(settings: Settings) -> Change:
    made = installer.install(settings, python=sys.executable, environment={})
    made.apply(NOW)
    return made


def claude_log(home: Path) -> None:
    folder = home / ".claude" / "projects" / "-home-ines-kiln"
    folder.mkdir(parents=True)
    line: dict[str, Any] = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": "2026-03-01T09:00:00Z",
    }
    line |= {"cwd": "/home/ines/kiln", "message": {"role": "user", "content": "the kiln is warm"}}
    (folder / "s1.jsonl").write_text(json.dumps(line) + "\n")


def openclaw_log(home: Path) -> None:
    folder = home / ".openclaw" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    head = {"type": "session", "version": 3, "id": "o1", "timestamp": "2026-03-01T09:00:00.000Z", "cwd": "/home/ines"}
    said = {"role": "user", "content": [{"type": "text", "text": "the kiln is cold"}], "timestamp": 1772355600000}
    line = {"type": "message", "id": "e1", "parentId": None, "timestamp": "2026-03-01T09:00:00.000Z", "message": said}
    (folder / "o1.jsonl").write_text(json.dumps(head) + "\n" + json.dumps(line) + "\n")


def test_installed_plugin_is_one_that_claude_code_loads_by_itself(home: Path) -> None:
    settings = load()
    installed(settings)
    root = home / ".claude" / "skills" / "clawmark"
    manifest = json.loads((root / ".claude-plugin" / "plugin.json").read_text())
    assert (manifest["name"], root.name) == ("clawmark", "clawmark")
    assert "@" not in (root / "hooks" / "hooks.json").read_text()
    assert (root / "skills" / "clawmark" / "SKILL.md").read_text().startswith("---\nname: clawmark\n")
    assert not (root / ".claude-plugin" / "hooks").exists()


def test_hooks_run_the_client_by_absolute_paths_and_without_a_shell(home: Path) -> None:
    settings = load()
    installed(settings)
    hooks = json.loads((home / ".claude/skills/clawmark/hooks/hooks.json").read_text())["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit"}
    for groups in hooks.values():
        ((hook,),) = [group["hooks"] for group in groups]
        assert (hook["type"], hook["command"]) == ("command", os.path.abspath(sys.executable))
        assert hook["timeout"] > 2 * BUDGET, "whoever is ended from outside could not say that it has nothing to say"
        client, socket, database = (hook["args"][place] for place in (2, 5, 7))
        assert hook["args"] == ["-I", "-S", client, "claude-code", "--socket", socket, "--database", database]
        assert os.path.isabs(client) and client.endswith("clawmark/client.py")
        assert (socket, database) == (str(socket_path(settings.db_path)), str(settings.db_path))


def test_tools_come_with_the_extra(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    without = installed(settings)
    assert any("clawmark[mcp]" in note for note in without.notes)
    assert not (home / ".claude/skills/clawmark/.mcp.json").exists()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    installed(settings)
    server = json.loads((home / ".claude/skills/clawmark/.mcp.json").read_text())["mcpServers"]["clawmark"]
    assert server["args"] == ["-E", "-P", "-m", "clawmark", "mcp", "--host", "claude-code"]
    assert os.path.isabs(server["command"])


def test_installed_twice_is_installed_once(home: Path) -> None:
    claude_log(home)
    openclaw_log(home)
    settings = load()
    installed(settings)
    first = content(home)
    assert not installer.install(load(), python=sys.executable, environment={})
    installed(load())
    assert content(home) == first


def test_uninstall_leaves_what_was_there_before(home: Path) -> None:
    claude_log(home)
    openclaw_log(home)
    (home / ".claude" / "settings.json").write_text('{"theme": "dark"} // mine\n')
    config_file().parent.mkdir(parents=True)
    config_file().write_text("CLAWMARK_RECALL=on\n")
    before = content(home)
    installed(load())
    assert content(home) != before
    installer.uninstall(load()).apply(NOW)
    after = content(home)
    copies = {name for name in after if ".clawmark-2026" in name}
    assert {name: text for name, text in after.items() if name not in copies} == before
    assert not (home / ".claude" / "skills" / "clawmark").exists()
    assert not installer.uninstall(load())


def test_uninstall_leaves_a_file_that_somebody_put_there(home: Path) -> None:
    installed(load())
    note = home / ".claude/skills/clawmark/skills/clawmark/notes.md"
    note.write_text("mine")
    installer.uninstall(load()).apply(NOW)
    assert content(home / ".claude" / "skills") == {"clawmark/skills/clawmark/notes.md": b"mine"}


@pytest.mark.parametrize("name", ["SKILL.md", ".claude-plugin/plugin.json"])
def test_skill_of_the_same_name_is_refused_and_left(home: Path, name: str) -> None:
    path = home / ".claude/skills/clawmark" / name
    path.parent.mkdir(parents=True)
    path.write_text('{"name": "another"}')
    before = content(home)
    with pytest.raises(UsageError, match="holds something else"):
        installer.install(load(), python=sys.executable, environment={})
    assert not installer.uninstall(load())
    assert content(home) == before


def test_settings_of_claude_code_are_never_touched(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.write_text('{"enabledPlugins": {"clawmark@skills-dir": false}}\n')
    made = installed(load())
    assert any("claude plugin enable clawmark@skills-dir" in note for note in made.notes)
    assert path.read_text() == '{"enabledPlugins": {"clawmark@skills-dir": false}}\n'


def test_directory_of_claude_code_may_be_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "elsewhere").mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    installed(load())
    assert (home / "elsewhere" / "skills" / "clawmark" / "hooks" / "hooks.json").is_file()
    assert not (home / ".claude" / "skills").exists()


def test_both_logs_are_read_where_openclaw_has_one_too(home: Path) -> None:
    claude_log(home)
    openclaw_log(home)
    made = installer.install(load(), python=sys.executable, environment={})
    assert "+CLAWMARK_SOURCE=auto,claude-code" in made.diff()
    made.apply(NOW)
    assert config_file().read_text() == "CLAWMARK_SOURCE=auto,claude-code\n"
    assert load().source == "auto,claude-code"


def test_other_lines_of_the_config_file_stay(home: Path) -> None:
    claude_log(home)
    openclaw_log(home)
    config_file().parent.mkdir(parents=True)
    config_file().write_text("# mine\nCLAWMARK_SOURCE=auto\nCLAWMARK_RECALL_LIMIT=4")
    installed(load())
    assert config_file().read_text() == "# mine\nCLAWMARK_RECALL_LIMIT=4\nCLAWMARK_SOURCE=auto,claude-code\n"


@pytest.mark.parametrize("logs", [[], [claude_log]])
def test_config_file_is_left_where_auto_reads_claude_code(home: Path, logs: list[Any]) -> None:
    for write in logs:
        write(home)
    installed(load())
    assert not config_file().exists()


def test_source_that_the_person_chose_is_left(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claude_log(home)
    openclaw_log(home)
    monkeypatch.setenv("CLAWMARK_SOURCE", "transcripts")
    installed(load())
    assert not config_file().exists()


def test_setting_of_this_shell_alone_is_pointed_out(home: Path) -> None:
    given = {"CLAWMARK_DB_PATH": "/elsewhere/memory.db", "CLAWMARK_RECALL": " ", "CLAWMARK_SHARED": "/x", "HOME": "/h"}
    notes = "\n".join(installer.install(load(), python=sys.executable, environment=given).notes)
    assert "CLAWMARK_DB_PATH into" in notes
    assert str(config_file()) in notes
    assert not {"CLAWMARK_RECALL", "CLAWMARK_SHARED", "HOME,"} & set(notes.split())
    assert "into" not in "".join(installer.install(load(), python=sys.executable, environment={}).notes)


def test_without_claude_code_nothing_is_installed(home: Path) -> None:
    (home / ".claude").rmdir()
    with pytest.raises(UsageError, match="start Claude Code once first"):
        installer.install(load(), python=sys.executable, environment={})
    assert content(home) == {}
