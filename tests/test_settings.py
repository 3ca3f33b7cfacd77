"""Settings: nothing is required, later wins, a wrong value is named with what is allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from clawmark.errors import SettingsError
from clawmark.settings import PREFIX, Settings, config_file, load, variable


def configure(text: str) -> None:
    config_file().parent.mkdir(parents=True, exist_ok=True)
    config_file().write_text(text, encoding="utf-8")


def test_nothing_is_required(machine: Path) -> None:
    settings = load()
    assert settings.db_path == machine / ".local/share/clawmark/memory.db"
    assert settings.openclaw_state_dir == machine / ".openclaw"
    assert (settings.source, settings.embedder, settings.recall) == ("auto", "auto", "on")
    assert settings.recall_limit == 6


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_empty_means_the_default(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """R2."""
    default = load()
    monkeypatch.setenv(variable(name), "")
    assert load() == default
    monkeypatch.delenv(variable(name))
    configure(f"{variable(name)}=\n")
    assert load() == default


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CLAWMARK_RECALL_LIMIT", "six"),
        ("CLAWMARK_EMBEDDING_DIM", "1024d"),
        ("CLAWMARK_EMBEDDING_DIM", "0"),
        ("CLAWMARK_RECALL_LIMIT", "-1"),
        ("CLAWMARK_RECALL_LIMIT", "51"),
        ("CLAWMARK_CONFIDENCE_THRESHOLD", "1.5"),
        ("CLAWMARK_CONFIDENCE_THRESHOLD", "nan"),
        ("CLAWMARK_RECALL", "maybe"),
        ("CLAWMARK_EMBEDDER", "best"),
        ("CLAWMARK_DISABLED", "perhaps"),
        ("CLAWMARK_EMBEDDING_URL", "127.0.0.1:8092"),
        ("CLAWMARK_EMBEDDING_URL", "http://[::1"),
        ("CLAWMARK_EMBEDDING_URL", "http://box:99999/v1"),
        ("CLAWMARK_EMBEDDING_URL", "http://box:port"),
        ("CLAWMARK_EMBEDDING_URL", "http://box:0"),
        ("CLAWMARK_EMBEDDING_URL", "http://"),
        ("CLAWMARK_EMBEDDING_URL", "ftp://box/v1"),
        ("CLAWMARK_TIMEZONE", "Mars/Olympus"),
    ],
)
@pytest.mark.parametrize("where", ["environment", "file"])
def test_a_wrong_value_names_variable_and_value(
    name: str, value: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R2."""
    if where == "environment":
        monkeypatch.setenv(name, value)
    else:
        configure(f"{name}={value}\n")
    with pytest.raises(SettingsError) as wrong:
        load()
    assert name in str(wrong.value)
    assert repr(value) in str(wrong.value)
    assert wrong.value.exit_code == 2


def test_later_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    configure("CLAWMARK_RECALL_LIMIT=3\nCLAWMARK_TIMEZONE=Europe/Stockholm\n")
    assert load().recall_limit == 3
    monkeypatch.setenv("CLAWMARK_RECALL_LIMIT", "4")
    assert load().recall_limit == 4
    assert load(recall_limit=5).recall_limit == 5
    assert load().timezone == "Europe/Stockholm"


def test_an_env_file_of_the_working_directory_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strange = tmp_path / "repository"
    strange.mkdir()
    for name in (".env", "clawmark.env"):
        (strange / name).write_text("CLAWMARK_EMBEDDING_URL=http://collector.example/\nCLAWMARK_RECALL_LIMIT=1\n")
    monkeypatch.chdir(strange)
    assert load().embedding_url is None
    assert load().recall_limit == 6


def test_a_path_is_taken_literally(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H9."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAWMARK_DB_PATH", "$(touch pwned)/`touch pwned`.db")
    assert str(load().db_path) == "$(touch pwned)/`touch pwned`.db"
    assert not (tmp_path / "pwned").exists()


def test_a_tilde_is_the_home(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_DB_PATH", "~/x/memory.db")
    assert load().db_path == machine / "x/memory.db"


def test_openclaws_own_variable_is_honoured_and_ours_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_DIR", "/srv/openclaw")
    assert load().openclaw_state_dir == Path("/srv/openclaw")
    monkeypatch.setenv("CLAWMARK_OPENCLAW_STATE_DIR", "/srv/other")
    assert load().openclaw_state_dir == Path("/srv/other")


def test_lists_are_comma_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_ALLOW_REMOTE", " api.example.com , ,b.example ")
    assert load().allow_remote == ("api.example.com", "b.example")


def test_a_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """D10."""
    monkeypatch.setenv("CLAWMARK_EMBEDDING_API_KEY", "s3cr3t-value")
    settings = load()
    assert "s3cr3t-value" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


@pytest.mark.parametrize("key", ["schlüssel-4711", "k\u200bey-4711", "key-4711\nX-Other: 1", "key\t4711"])
def test_a_key_that_cannot_be_sent_is_refused_and_never_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_EMBEDDING_API_KEY", key)
    with pytest.raises(SettingsError, match="CLAWMARK_EMBEDDING_API_KEY: a key of printable ASCII") as wrong:
        load()
    assert "4711" not in str(wrong.value)


def test_a_password_in_a_broken_url_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_EMBEDDING_URL", "http://user:hunter2@box:99999/v1")
    with pytest.raises(SettingsError, match="CLAWMARK_EMBEDDING_URL") as wrong:
        load()
    assert "hunter2" not in str(wrong.value)


def test_an_unknown_argument_is_named_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"'dbpath' is no setting.*db_path"):
        load(dbpath="x")


def test_a_misspelt_name_is_refused_where_settings_are_made() -> None:
    with pytest.raises(ValueError, match="dbpath"):
        Settings(dbpath="x")  # type: ignore[call-arg]


def test_a_misspelt_name_in_the_file_is_named_as_it_stands_there() -> None:
    configure("CLAWMARK_RECAL=off\n")
    with pytest.raises(SettingsError) as wrong:
        load()
    assert "CLAWMARK_RECAL=" in str(wrong.value).upper()
    assert "CLAWMARK_CLAWMARK" not in str(wrong.value).upper()


def test_openclaws_own_variable_may_stand_in_the_file() -> None:
    configure("OPENCLAW_STATE_DIR=/srv/openclaw\n")
    assert load().openclaw_state_dir == Path("/srv/openclaw")


def test_settings_are_the_only_reader_of_the_environment() -> None:
    package = Path(__import__("clawmark").__file__).parent
    readers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "os.environ" in (text := path.read_text(encoding="utf-8")) or "getenv" in text
    }
    assert readers <= {"settings.py", "client.py"}  # a hook's client imports nothing, and hands its own on


def test_every_setting_has_a_description() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
    assert variable("db_path") == PREFIX + "DB_PATH"
    assert not [name for name in os.environ if name.startswith(PREFIX) and name != "CLAWMARK_SHARED"]


@pytest.mark.parametrize("name", ["QUERY", "DOCUMENT"])
def test_one_prefix_alone_is_refused_and_no_key_is_shown(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The other one would be the known model's, and the two need not fit together."""
    monkeypatch.setenv(f"CLAWMARK_EMBEDDING_{name}_PREFIX", "query: ")
    monkeypatch.setenv("CLAWMARK_EMBEDDING_API_KEY", "zq-canary")
    with pytest.raises(SettingsError) as refused:
        load()
    assert "set both" in str(refused.value) and "zq-canary" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["localhost:8080/v1?api_key=zq-canary", "http://user:zq-canary@@h:0", "http://user:zq/canary@h:x"],
)
def test_a_mistyped_address_shows_no_password(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("CLAWMARK_EMBEDDING_URL", url)
    with pytest.raises(SettingsError) as refused:
        load()
    assert "CLAWMARK_EMBEDDING_URL" in str(refused.value) and "canary" not in str(refused.value)


def test_an_unknown_name_in_the_file_shows_no_value(machine: Path) -> None:
    """It may be a key under a name with a slip in it."""
    path = config_file()
    path.parent.mkdir(parents=True)
    path.write_text("CLAWMARK_EMBEDDING_APIKEY=zq-canary\n")
    with pytest.raises(SettingsError) as refused:
        load()
    assert "CLAWMARK_EMBEDDING_APIKEY" in str(refused.value) and "zq-canary" not in str(refused.value)


def test_settings_print_no_password() -> None:
    assert "zq-canary" not in repr(Settings(embedding_url="http://user:zq-canary@127.0.0.1/v1"))


def test_a_never_index_path_below_the_home_is_known_by_both_its_spellings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ines")
    assert Settings(never_index_paths="~/vault, /srv/x").never_index_paths == ("~/vault", "/srv/x", "/home/ines/vault")  # type: ignore[arg-type]


def test_where_the_other_hosts_keep_their_logs_is_read_from_their_own_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LCM_DATABASE_PATH", "/srv/lcm.db")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/srv/claude")
    assert (load().lcm_db_path, load().claude_config_dir) == (Path("/srv/lcm.db"), Path("/srv/claude"))
    monkeypatch.setenv("CLAWMARK_LCM_DB_PATH", "/srv/other.db")
    assert load().lcm_db_path == Path("/srv/other.db")


def test_a_marker_is_a_phrase_as_it_is_typed() -> None:
    assert Settings(markers="house rule, par principe,").markers == ("house rule", "par principe")  # type: ignore[arg-type]
    for wrong in ("rule*", "house rule, !"):
        with pytest.raises(ValidationError, match="is no phrase"):
            Settings(markers=wrong)  # type: ignore[arg-type]
