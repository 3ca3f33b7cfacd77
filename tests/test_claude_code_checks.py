"""What `doctor` says of Claude Code, each finding with what to do about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from helpers import Log, open_memory
from test_claude_code_install import claude_log, content, openclaw_log

from clawmark.hosts.claude_code import install
from clawmark.hosts.claude_code.checks import checks
from clawmark.model import Turn
from clawmark.settings import Settings, load

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".claude").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "CLAUDE_CONFIG_DIR", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(install, "client", lambda: Path(__file__))  # any file that is there
    return tmp_path


def found(settings: Settings, state: str) -> str:
    return "\n".join(f"{check.said}: {check.advice}" for check in checks(settings) if check.state == state)


def put(settings: Settings) -> Path:
    install.install(settings, python=sys.executable, environment={}).apply(NOW)
    return install.folder(settings)


def test_machine_without_claude_code_has_no_findings(home: Path) -> None:
    (home / ".claude").rmdir()
    assert [check.state for check in checks(load())] == ["ok"]


def test_missing_installation_is_named_with_its_command(home: Path) -> None:
    assert "not installed in it: Run `clawmark install claude-code`." in found(load(), "warn")


def test_sound_installation_has_no_faults_and_nothing_is_changed(home: Path) -> None:
    claude_log(home)
    put(load())
    before = content(home)
    assert found(load(), "fail") == ""
    assert "hooks in" in found(load(), "ok")
    assert content(home) == before


def spoiled(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / "hooks" / "hooks.json"
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))

    return spoil


def hook(value: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = value["hooks"]["UserPromptSubmit"][0]["hooks"][0]
    return made


def of_version(version: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        path = folder / ".claude-plugin" / "plugin.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"version": version}))

    return spoil


FAULTS: dict[str, Callable[[Path], None]] = {
    "/gone/python, which is gone": spoiled(lambda value: hook(value).update(command="/gone/python")),
    "/gone/client.py, which is gone": spoiled(lambda value: hook(value)["args"].__setitem__(2, "/gone/client.py")),
    "database /other.db, and this is another": spoiled(lambda value: hook(value)["args"].__setitem__(7, "/other.db")),
    "UserPromptSubmit is not as it was installed": spoiled(lambda value: value["hooks"].pop("UserPromptSubmit")),
    "SessionStart is not as it was installed": spoiled(lambda value: value["hooks"].update(SessionStart=7)),
    "the plugin is of clawmark 0.1": of_version("0.1"),
}


@pytest.mark.parametrize("said", FAULTS)
def test_what_keeps_hooks_from_asking_is_named(home: Path, said: str) -> None:
    settings = load()
    FAULTS[said](put(settings))
    assert said in found(settings, "fail")
    assert "Run `clawmark install claude-code` again." in found(settings, "fail")
    put(settings)
    assert found(settings, "fail") == ""


def test_hooks_that_are_no_json_count_as_not_installed(home: Path) -> None:
    (put(load()) / "hooks" / "hooks.json").write_text("{")
    assert "not installed in it" in found(load(), "warn")


def test_plugin_that_was_switched_off_is_named_with_its_command(home: Path) -> None:
    put(load())
    (home / ".claude" / "settings.json").write_text('{"enabledPlugins": {"clawmark@skills-dir": false}}')
    assert "claude plugin enable clawmark@skills-dir" in found(load(), "fail")


def test_missing_tools_are_named_with_the_extra(home: Path) -> None:
    (put(load()) / ".mcp.json").unlink(missing_ok=True)
    assert "pip install 'clawmark[mcp]'" in found(load(), "warn")


def test_log_that_auto_passes_over_is_named(home: Path) -> None:
    claude_log(home)
    openclaw_log(home)
    assert "`auto` reads transcripts: Set CLAWMARK_SOURCE=auto,claude-code" in found(load(), "warn")
    put(load())
    assert "conversations are not read" not in found(load(), "warn")


def test_log_that_the_setting_leaves_out_is_named(home: Path) -> None:
    assert "CLAWMARK_SOURCE is transcripts" in found(load(source="transcripts"), "warn")


def test_texts_that_are_lost_with_the_log_are_named(home: Path) -> None:
    (home / ".claude" / "settings.json").write_text('{"cleanupPeriodDays": 12}')
    assert "after 12 days" in found(load(keep_text="off"), "warn")
    assert "days" not in found(load(), "warn")


def test_last_block_is_told(home: Path) -> None:
    settings = load(embedder="none")
    assert "last block" not in found(settings, "ok")
    with open_memory(settings.db_path, Log()) as memory:
        assert "last block given never" in found(settings, "ok")
        memory.set("pref.glaze", "celadon")
        turn = Turn("", "claude-code", "p1", "s1", "direct", now=NOW)
        memory.shown(turn, memory.block(turn))
        memory.shown(replace(turn, host="openclaw", now=NOW.replace(year=2027)), memory.block(turn))
        assert f"last block given {NOW.astimezone():%Y-%m-%d %H:%M}" in found(settings, "ok")
