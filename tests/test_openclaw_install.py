"""What `install openclaw` writes into the host's configuration, what `uninstall` takes away, what `doctor` says of it."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import LATER

from clawmark.errors import ClawmarkError, UsageError
from clawmark.health import Check
from clawmark.hosts.openclaw import place
from clawmark.hosts.openclaw.checks import checks
from clawmark.hosts.openclaw.install import install, uninstall
from clawmark.settings import Settings, load

PLAIN: dict[str, Any] = {
    "gateway": {"mode": "local", "port": 18793},
    "agents": {"defaults": {"workspace": "/home/ada/workspace"}},
}


@pytest.fixture
def state(machine: Path) -> Path:
    folder = machine / ".openclaw"
    folder.mkdir()
    return folder


@pytest.fixture
def settings(machine: Path) -> Settings:
    return load()


def put(state: Path, document: dict[str, Any] | str) -> Path:
    config = state / "openclaw.json"
    config.write_text(document if isinstance(document, str) else json.dumps(document, indent=2) + "\n")
    return config


def installed(settings: Settings, **arguments: Any) -> dict[str, Any]:
    change = install(settings, python=sys.executable, environment={}, **arguments)
    change.apply(LATER)
    document = place.read(place.home(settings, {}, arguments.get("state_dir")).config)
    assert document is not None
    return document


def said(settings: Settings, state: str | None = None) -> str:
    return "\n".join(f"{c.state}: {c.said} {c.advice}" for c in checks(settings, {}) if state in (None, c.state))


def faults(settings: Settings) -> list[Check]:
    return [check for check in checks(settings, {}) if check.state != "ok"]


# --- install ----------------------------------------------------------------------------------------------------------


def test_the_plugin_is_loaded_let_in_and_told_its_python(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    document = installed(settings)
    folder = state / "clawmark-plugin"
    assert document == {
        **PLAIN,
        "plugins": {
            "entries": {
                "clawmark": {
                    "enabled": True,
                    "hooks": {"allowConversationAccess": True},
                    "config": {"python": sys.executable},
                }
            },
            "load": {"paths": [str(folder)]},
        },
    }
    assert {path.name for path in folder.iterdir()} == set(place.FILES)
    assert faults(settings) == []


def test_nothing_is_written_before_it_is_wanted(settings: Settings, state: Path) -> None:
    config = put(state, PLAIN)
    before = config.read_bytes()
    change = install(settings, python=sys.executable, environment={})
    assert '"allowConversationAccess": true' in change.diff()
    assert config.read_bytes() == before
    assert not settings.db_path.parent.exists()


def test_a_second_installation_changes_nothing(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    installed(settings)
    assert not install(settings, python=sys.executable, environment={})


def test_a_second_installation_keeps_what_is_configured(settings: Settings, state: Path, tmp_path: Path) -> None:
    put(state, PLAIN)
    document = installed(load(db_path=tmp_path / "mine.db"))
    config = document["plugins"]["entries"]["clawmark"]["config"]
    config["env"]["CLAWMARK_TIMEZONE"] = "Europe/Lisbon"
    config["python"] = "/gone/python"
    config["own"] = 1
    put(state, document)
    wanted = {**config, "python": sys.executable}
    assert installed(settings)["plugins"]["entries"]["clawmark"]["config"] == wanted
    elsewhere = load(db_path=tmp_path / "of_clawmark.env")
    assert installed(elsewhere)["plugins"]["entries"]["clawmark"]["config"] == wanted


def test_a_variable_set_now_takes_the_place_of_what_is_configured(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(state, PLAIN)
    installed(load(db_path=tmp_path / "mine.db"))
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(tmp_path / "other.db"))
    install(load(), python=sys.executable, environment=dict(os.environ)).apply(LATER)
    entry = json.loads((state / "openclaw.json").read_text())["plugins"]["entries"]["clawmark"]
    assert entry["config"]["env"] == {"CLAWMARK_DB_PATH": str(tmp_path / "other.db")}


def test_a_socket_stays_until_a_python_is_asked_for(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    installed(settings, socket=Path("/run/a.sock"))
    assert not install(settings, python=sys.executable, environment={})
    document = installed(settings, is_asked_for=True)
    assert document["plugins"]["entries"]["clawmark"]["config"] == {"python": sys.executable}


def test_uninstalling_leaves_the_configuration_as_it_was(settings: Settings, state: Path) -> None:
    config = put(
        state,
        {
            **PLAIN,
            "plugins": {
                "allow": ["memory-core"],
                "load": {"paths": ["/home/ada/other"]},
                "entries": {"memory-core": {"enabled": True}},
            },
            "tools": {"profile": "coding"},
        },
    )
    before = config.read_bytes()
    document = installed(settings)
    assert document["plugins"]["allow"] == ["memory-core", "clawmark"]
    assert document["tools"] == {"profile": "coding", "alsoAllow": ["clawmark"]}
    uninstall(settings, environment={}).apply(LATER)
    assert config.read_bytes() == before
    assert not (state / "clawmark-plugin").exists()


def test_uninstalling_leaves_other_openclaws_alone(settings: Settings, state: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    put(state, PLAIN)
    put(other, PLAIN)
    folder = Path(installed(settings)["plugins"]["load"]["paths"][0])
    installed(settings, state_dir=other)
    uninstall(settings, environment={}, state_dir=other).apply(LATER)
    assert {path.name for path in folder.iterdir()} == set(place.FILES)
    assert faults(settings) == []


def test_a_copy_that_others_may_load_is_left_and_named(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    document = installed(settings)
    folder = settings.db_path.parent / "openclaw-plugin"  # as an earlier clawmark made it
    shutil.copytree(place.plugin_folder(), folder)
    document["plugins"]["load"]["paths"] = [str(folder)]
    config = put(state, document)
    assert faults(settings) == []
    again = install(settings, python=sys.executable, environment={})
    change = uninstall(settings, environment={})
    for one in (again, change):
        assert any(str(folder) in note for note in one.notes)
    change.apply(LATER)
    assert json.loads(config.read_text()) == PLAIN
    assert (folder / "index.js").is_file()
    assert not (state / "clawmark-plugin").exists()


@pytest.mark.parametrize("text", ['{"plugins": {"$include": "./plugins.json5"}}', "{plugins: {}}"])
def test_what_cannot_be_taken_out_keeps_its_plugin(settings: Settings, state: Path, text: str) -> None:
    put(state, PLAIN)
    folder = Path(installed(settings)["plugins"]["load"]["paths"][0])
    config = put(state, text)
    with pytest.raises(ClawmarkError, match="Take out by hand what names clawmark"):
        uninstall(settings, environment={})
    assert config.read_text() == text
    assert {path.name for path in folder.iterdir()} == set(place.FILES)


@pytest.mark.parametrize("part", ["plugins", "tools"])
def test_uninstalling_never_leaves_a_list_that_allows_everything(settings: Settings, state: Path, part: str) -> None:
    config = put(state, {**PLAIN, part: {"allow": ["clawmark"]}})
    before = config.read_bytes()
    installed(settings)
    change = uninstall(settings, environment={})
    assert any(f"`{part}.allow` names clawmark alone" in note for note in change.notes)
    change.apply(LATER)
    assert config.read_bytes() == before
    assert not uninstall(settings, environment={})


def test_uninstalling_what_is_not_there_changes_nothing(settings: Settings, state: Path) -> None:
    put(state, {**PLAIN, "plugins": {"entries": {"clawmark": {"enabled": False}}}})
    assert not uninstall(settings, environment={})


def test_the_file_keeps_its_mode_and_a_copy_is_the_owners_alone(settings: Settings, state: Path) -> None:
    config = put(state, PLAIN)
    config.chmod(0o640)
    before = config.read_bytes()
    (copy,) = install(settings, python=sys.executable, environment={}).apply(LATER)
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert copy.read_bytes() == before
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // mine\n  "gateway": {}\n}\n',
        "{gateway: {}}",
        '{"gateway": {},}',
        '{"$include": "./base.json5"}',
        '{"plugins": {"$include": "./plugins.json5"}}',
        '{"plugins": {"entries": {"x": {"$include": "./x.json5"}}}}',
        '{"limit": 1e999}',
    ],
)
def test_what_could_be_lost_is_left_and_what_to_add_is_said(settings: Settings, state: Path, text: str) -> None:
    config = put(state, text)
    with pytest.raises(ClawmarkError) as raised:
        install(settings, python=sys.executable, environment={})
    assert raised.value.exit_code == 1
    added = json.loads(str(raised.value).partition("by hand:\n")[2])
    assert added["plugins"]["entries"]["clawmark"]["config"]["python"] == sys.executable
    (folder,) = added["plugins"]["load"]["paths"]
    assert (Path(folder) / "index.js").is_file()
    assert config.read_text() == text


def test_an_include_in_a_part_of_somebody_else_is_kept(settings: Settings, state: Path) -> None:
    put(state, {"channels": {"$include": "./channels.json5"}})
    assert installed(settings)["channels"] == {"$include": "./channels.json5"}


def test_without_a_configuration_openclaw_is_to_be_set_up_first(settings: Settings) -> None:
    with pytest.raises(UsageError, match="openclaw onboard"):
        install(settings, python=sys.executable, environment={})


def test_the_typescript_clawmark_has_to_go_first(settings: Settings, state: Path) -> None:
    config = put(state, PLAIN)
    before = config.read_bytes()
    folder = state / "extensions" / "clawmark"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "openclaw-clawmark"}')
    with pytest.raises(UsageError, match="plugins uninstall clawmark"):
        install(settings, python=sys.executable, environment={})
    assert config.read_bytes() == before


def test_another_state_directory_and_its_memory_are_named(machine: Path, tmp_path: Path) -> None:
    other = tmp_path / "state"
    other.mkdir()
    put(other, PLAIN)
    document = installed(load(db_path=tmp_path / "mine.db"), state_dir=other)
    assert document["plugins"]["entries"]["clawmark"]["config"]["env"] == {
        "CLAWMARK_DB_PATH": str(tmp_path / "mine.db"),
        "CLAWMARK_OPENCLAW_STATE_DIR": str(other),
    }


def test_the_config_file_that_the_environment_names_is_changed(settings: Settings, state: Path, tmp_path: Path) -> None:
    named = tmp_path / "named.json"
    named.write_text(json.dumps(PLAIN))
    change = install(settings, python=sys.executable, environment={"OPENCLAW_CONFIG_PATH": str(named)})
    assert named in [edit.path for edit in change.edits]


def test_settings_of_the_shell_reach_the_gateway_and_keys_do_not(
    state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(state, PLAIN)
    monkeypatch.chdir(tmp_path)
    given = {
        "CLAWMARK_EMBEDDING_URL": "http://127.0.0.1:8092/v1",
        "CLAWMARK_EMBEDDING_API_KEY": "canary-key",
        "CLAWMARK_EXTRACT_API_KEY": "canary-key",
        "CLAWMARK_TRANSCRIPTS_DIR": "logs",
        "CLAWMARK_DISABLED": "true",
        "CLAWMARK_RECALL_LIMIT": "",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    change = install(load(), python=sys.executable, environment=dict(os.environ))
    change.apply(LATER)
    document = json.loads((state / "openclaw.json").read_text())
    assert document["plugins"]["entries"]["clawmark"]["config"]["env"] == {
        "CLAWMARK_EMBEDDING_URL": "http://127.0.0.1:8092/v1",
        "CLAWMARK_TRANSCRIPTS_DIR": str(tmp_path / "logs"),
    }
    assert "canary-key" not in json.dumps(document) + change.diff() + "".join(change.notes)
    assert any("CLAWMARK_EMBEDDING_API_KEY is not written" in note for note in change.notes)


def test_an_address_with_a_password_is_not_written(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(state, PLAIN)
    monkeypatch.setenv("CLAWMARK_EMBEDDING_URL", "http://ada:canary-pass@127.0.0.1:9/v1")
    change = install(load(), python=sys.executable, environment=dict(os.environ))
    change.apply(LATER)
    assert "canary" not in (state / "openclaw.json").read_text() + change.diff()
    assert any("CLAWMARK_EMBEDDING_URL is not written" in note for note in change.notes)


def test_a_socket_takes_the_place_of_a_python(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    document = installed(settings, socket=Path("/run/user/1000/clawmark/a.sock"))
    assert document["plugins"]["entries"]["clawmark"]["config"] == {"socket": "/run/user/1000/clawmark/a.sock"}
    assert "nobody listens" in said(settings, "fail")


def test_a_linked_plugin_is_loaded_out_of_the_package(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    installed(settings)
    document = installed(settings, link=True)
    assert document["plugins"]["load"]["paths"] == [str(place.plugin_folder())]
    assert faults(settings) == []


@pytest.mark.parametrize(
    ("tools", "after"),
    [
        ({"profile": "coding"}, {"profile": "coding", "alsoAllow": ["clawmark"]}),
        ({"profile": "minimal", "alsoAllow": ["x"]}, {"profile": "minimal", "alsoAllow": ["x", "clawmark"]}),
        ({"profile": "coding", "allow": ["read"]}, {"profile": "coding", "allow": ["read", "clawmark"]}),
        ({"allow": ["group:plugins"]}, {"allow": ["group:plugins"]}),
        ({"profile": "full"}, {"profile": "full"}),
        ({"deny": ["exec"]}, {"deny": ["exec"]}),
    ],
)
def test_tools_are_allowed_where_a_policy_would_hide_them(
    settings: Settings, state: Path, tools: dict[str, Any], after: dict[str, Any]
) -> None:
    put(state, {**PLAIN, "tools": tools})
    assert installed(settings)["tools"] == after
    assert faults(settings) == []


def test_what_a_person_has_to_change_by_hand_is_said(settings: Settings, state: Path) -> None:
    put(
        state,
        {
            "plugins": {"deny": ["clawmark"], "entries": {"clawmark": {"hooks": {"allowPromptInjection": False}}}},
            "tools": {"deny": ["group:plugins"]},
            "agents": {
                "entries": {"work": {"tools": {"allow": ["read"]}}},
                "list": [{"id": "old", "tools": {"profile": "coding"}}],
            },
        },
    )
    notes = "\n".join(install(settings, python=sys.executable, environment={}).notes)
    for word in ("plugins.deny", "allowPromptInjection", "tools.deny", "agent work", "agent old", "gateway restart"):
        assert word in notes


# --- doctor -----------------------------------------------------------------------------------------------------------


def test_doctor_says_where_openclaw_is_not(settings: Settings) -> None:
    assert "not here" in said(settings)
    assert faults(settings) == []


def test_doctor_says_that_it_is_not_installed(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    assert "Run `clawmark install openclaw`." in said(settings, "warn")


def test_doctor_does_not_guess_at_a_configuration_it_cannot_read(settings: Settings, state: Path) -> None:
    put(state, "{gateway: {}}")
    assert "cannot be looked at" in said(settings, "warn")


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        (["plugins", "enabled"], False, "loads no plugin at all"),
        (["plugins", "entries", "clawmark", "enabled"], False, "is disabled"),
        (["plugins", "deny"], ["clawmark"], "`plugins.deny`"),
        (["plugins", "allow"], ["memory-core"], "`plugins.allow`"),
        (["plugins", "entries", "clawmark", "hooks", "allowConversationAccess"], False, "may not see conversations"),
        (["plugins", "entries", "clawmark", "hooks", "allowPromptInjection"], False, "may not add to a prompt"),
        (["plugins", "load", "paths"], ["/nowhere/openclaw-plugin"], "is gone"),
        (["plugins", "load", "paths"], ["/nowhere/clawmark-plugin"], "is gone"),
        (["plugins", "entries", "clawmark", "config"], {}, "which Python"),
        (["plugins", "entries", "clawmark", "config"], {"python": "/nowhere/python"}, "cannot be started"),
        (["plugins", "entries", "clawmark", "config"], "x", "config is no object"),
        (["plugins", "entries", "clawmark", "config", "python"], 42, "config.python is no path"),
        (["plugins", "entries", "clawmark", "config", "socket"], 7, "config.socket is no path"),
        (["plugins", "entries", "clawmark", "config", "env"], "x", "config.env is no object"),
        (["plugins", "entries", "clawmark", "config", "env"], {"CLAWMARK_RECALL_LIMIT": 6}, "RECALL_LIMIT is no text"),
        (["plugins", "entries", "clawmark", "config", "env"], {"CLAWMARK_RECALL_LIMIT": "six"}, "'six'"),
    ],
)
def test_doctor_says_what_keeps_blocks_away(
    settings: Settings, state: Path, where: list[str], value: Any, says: str
) -> None:
    put(state, PLAIN)
    document = installed(settings)
    *folders, last = where
    part = document
    for name in folders:
        part = part[name]
    part[last] = value
    put(state, document)
    (fault,) = faults(settings)
    assert fault.state == "fail"
    assert says in fault.said
    assert fault.advice


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"foo": 1}, "config.foo means nothing"),
        ({"env": {"CLAWMARK_DBPATH": "/x.db"}}, "env.CLAWMARK_DBPATH is no setting"),
        ({"env": {"PATH": "/bin"}}, "env.PATH is no setting"),
        ({"env": {"CLAWMARK_DISABLED": "1"}}, "switched off in the gateway"),
    ],
)
def test_doctor_says_what_is_not_as_it_was_meant(
    settings: Settings, state: Path, config: dict[str, Any], says: str
) -> None:
    put(state, PLAIN)
    document = installed(settings)
    document["plugins"]["entries"]["clawmark"]["config"].update(config)
    put(state, document)
    (fault,) = faults(settings)
    assert fault.state == "warn"
    assert says in fault.said


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'Unknown option: -P' >&2; exit 2", "older than Python 3.11"),
        ("exit 1", "clawmark is not installed for"),
        ("echo 3.12; echo 9.9.9", "has clawmark 9.9.9"),
    ],
)
def test_doctor_asks_the_python_that_the_gateway_runs(
    settings: Settings, state: Path, tmp_path: Path, script: str, says: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    put(state, PLAIN)
    install(settings, python=str(python), environment={}).apply(LATER)
    assert says in said(settings)


def test_doctor_sees_a_plugin_of_another_version(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    installed(settings)
    with open(place.copied_folder(state) / "index.js", "a", encoding="utf-8") as file:
        file.write("// an older one\n")
    assert "is not the one of clawmark" in said(settings, "warn")


def test_doctor_sees_a_gateway_on_another_database(settings: Settings, state: Path, tmp_path: Path) -> None:
    put(state, PLAIN)
    installed(load(db_path=tmp_path / "other.db"))
    (fault,) = faults(settings)
    assert f"another database, {tmp_path / 'other.db'}; what you look at here is {settings.db_path}" in fault.said
    assert f"CLAWMARK_DB_PATH={settings.db_path} clawmark install openclaw" in fault.advice
    assert f"CLAWMARK_DB_PATH={tmp_path / 'other.db'}` into" in fault.advice


def test_doctor_says_when_nobody_on_a_channel_counts_as_the_owner(settings: Settings, state: Path) -> None:
    put(state, {**PLAIN, "channels": {"telegram": {"enabled": True}}})
    document = installed(settings)
    (fault,) = faults(settings)
    assert (fault.state, "ownerAllowFrom` names nobody" in fault.said) == ("warn", True)
    put(state, {**document, "commands": {"ownerAllowFrom": ["telegram:7"]}})
    assert faults(settings) == []


def test_doctor_says_what_tool_search_means_and_calls_it_no_fault(settings: Settings, state: Path) -> None:
    put(state, PLAIN)
    installed(settings)
    assert "found by search" in said(settings, "ok")
    put(
        state,
        {**json.loads((state / "openclaw.json").read_text()), "tools": {"toolSearch": False, "profile": "coding"}},
    )
    assert "found by search" not in said(settings)
    assert "no model sees clawmark's tools" in said(settings, "warn")


@pytest.mark.parametrize("enabled", [True, False])
def test_doctor_sees_the_typescript_clawmark(settings: Settings, state: Path, enabled: bool) -> None:
    put(state, {**PLAIN, "plugins": {"entries": {"clawmark": {"enabled": enabled}}}})
    folder = state / "extensions" / "clawmark"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "openclaw-clawmark"}')
    assert "TypeScript clawmark" in said(settings, "fail" if enabled else "ok")
