"""What `doctor` says of OpenClaw: whether its gateway loads the plugin, lets it in, and finds this memory with it.

The plugin cannot see what is refused to it, so this reads the host's configuration. Nothing is written; the Python that is
named there is started once and asked for its version.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeGuard

import clawmark
from clawmark.errors import SettingsError, UsageError
from clawmark.health import Check
from clawmark.hosts import change
from clawmark.hosts.given import last_block
from clawmark.hosts.openclaw import place
from clawmark.hosts.openclaw.place import ENTRY, FILES, ID, Home
from clawmark.hosts.openclaw.turn import HOST
from clawmark.settings import Settings, config_file, load, variable

NAME: Final = "openclaw"
AGAIN: Final = "Run `clawmark install openclaw` again."
RESTART: Final = "Then restart the gateway."
OWNERS: Final = ("commands", "ownerAllowFrom")
KEYS: Final = frozenset({"python", "socket", "env"})
PYTHON_SECONDS: Final = 20.0
ASK_VERSIONS: Final = (
    "import sys, importlib.metadata as m; print('%d.%d' % sys.version_info[:2]); print(m.version('clawmark'))"
)


def checks(settings: Settings, environment: Mapping[str, str]) -> Iterator[Check]:
    """Every finding; the last words on a fault are what to do about it."""
    home = place.home(settings, environment)
    try:
        document = place.read(home.config)
    except UsageError as unreadable:
        advice = f"Look with `openclaw plugins inspect {ID} --runtime`."
        yield Check(NAME, "warn", f"its configuration cannot be looked at: {unreadable}", advice)
        return
    if document is None:
        yield Check(NAME, "ok", f"not here: {home.config} does not exist")
        return
    yield from _typescript(settings, home, document)
    entry = change.at(document, ENTRY)
    if place.is_included(document):
        advice = f"Look with `openclaw plugins inspect {ID} --runtime`."
        yield Check(
            NAME, "warn", f"{home.config} is put together out of several files, which are not looked at", advice
        )
    elif not isinstance(entry, dict) or not any(place.is_ours(str(path)) for path in place.load_paths(document)):
        yield Check(NAME, "warn", "clawmark is not installed in it", "Run `clawmark install openclaw`.")
    else:
        yield from _installed(settings, home, document, entry)
        yield from last_block(settings, NAME, HOST)


# --- the TypeScript clawmark ------------------------------------------------------------------------------------------


def _typescript(settings: Settings, home: Home, document: Mapping[str, Any]) -> Iterator[Check]:
    """It goes by the same name, and would write its own rows into an upgraded file."""
    folder = place.typescript(home.state, document)
    if folder is None:
        yield Check(NAME, "ok", "no TypeScript clawmark")
        return
    if change.at(document, [*ENTRY, "enabled"]) is False:
        yield Check(NAME, "ok", f"the TypeScript clawmark in {folder} is disabled")
        return
    path = settings.db_path.absolute().resolve()
    own = change.at(document, ["env", variable("db_path")]) or change.at(document, ["env", "vars", variable("db_path")])
    if isinstance(own, str) and Path(own).expanduser().resolve() != path:
        yield Check(NAME, "warn", f"the TypeScript clawmark in {folder} is enabled, on {own}")
        return
    said = f"the TypeScript clawmark in {folder} is enabled and would write to {path}"
    yield Check(NAME, "fail", said, f"Run `openclaw plugins disable {ID}`, then restart the gateway.")


# --- the plugin -------------------------------------------------------------------------------------------------------


def _installed(
    settings: Settings, home: Home, document: Mapping[str, Any], entry: Mapping[str, Any]
) -> Iterator[Check]:
    faults = [
        *_loading(document, entry),
        *_permissions(entry),
        *_files(document),
        *_config(entry),
        *_way(settings, entry),
    ]
    yield from faults
    if not any(fault.state == "fail" for fault in faults):
        yield Check(NAME, "ok", f"the plugin is installed in {home.config}")
    yield from _tools(document)
    yield from _owner(document)


def _loading(document: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Check]:
    plugins = document["plugins"]
    if plugins.get("enabled") is False:
        yield Check(NAME, "fail", "it loads no plugin at all", f"Remove `plugins.enabled: false`. {RESTART}")
    if entry.get("enabled") is False:
        yield Check(NAME, "fail", "the plugin is disabled", f"Run `openclaw plugins enable {ID}`. {RESTART}")
    if place.is_denied(plugins):
        yield Check(NAME, "fail", "`plugins.deny` names the plugin", f"Take {ID} out of it. {RESTART}")
    allowed = plugins.get("allow")
    if isinstance(allowed, list) and allowed and ID not in allowed:
        yield Check(NAME, "fail", "`plugins.allow` does not name the plugin", AGAIN)


def _permissions(entry: Mapping[str, Any]) -> Iterator[Check]:
    """What the host refuses without the plugin's notice: it loads, its tools work, and no block is ever given."""
    where = ".".join([*ENTRY, "hooks"])
    if change.at(entry, ["hooks", "allowConversationAccess"]) is not True:
        said = "the plugin may not see conversations, so no block is given and nothing is counted"
        yield Check(NAME, "fail", said, f"Set {where}.allowConversationAccess to true. {RESTART}")
    if change.at(entry, ["hooks", "allowPromptInjection"]) is False:
        said = "the plugin may not add to a prompt, so no block is given"
        yield Check(NAME, "fail", said, f"Remove {where}.allowPromptInjection. {RESTART}")


def _files(document: Mapping[str, Any]) -> Iterator[Check]:
    for folder in place.load_paths(document):
        if not place.is_ours(str(folder)):
            continue
        if not folder.is_dir():
            yield Check(NAME, "fail", f"the plugin's folder {folder} is gone", AGAIN)
        elif any(_content(folder / name) != _content(place.plugin_folder() / name) for name in FILES):
            yield Check(
                NAME, "warn", f"the plugin in {folder} is not the one of clawmark {clawmark.__version__}", AGAIN
            )


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


# --- the plugin's configuration ---------------------------------------------------------------------------------------


def _config(entry: Mapping[str, Any]) -> Iterator[Check]:
    """What the plugin leaves out, since the host checks nothing of it, and settings that its process would refuse."""
    where = ".".join([*ENTRY, "config"])
    config = entry.get("config", {})
    if not isinstance(config, dict):
        yield Check(NAME, "fail", f"{where} is no object", AGAIN)
        return
    for name in sorted(config.keys() - KEYS):
        yield Check(NAME, "warn", f"{where}.{name} means nothing", f"Correct or remove it. {RESTART}")
    for name in ("python", "socket"):
        if name in config and not _is_path(config[name]):
            yield Check(NAME, "fail", f"{where}.{name} is no path, and is left out", AGAIN)
    env = config.get("env", {})
    if not isinstance(env, dict):
        yield Check(NAME, "fail", f"{where}.env is no object, and is left out", f"Correct it. {RESTART}")
        return
    yield from _env(f"{where}.env", env)


def _env(where: str, env: Mapping[str, Any]) -> Iterator[Check]:
    fields = {variable(field): field for field in Settings.model_fields}
    for name in sorted(env.keys() - fields.keys()):
        yield Check(NAME, "warn", f"{where}.{name} is no setting of clawmark", f"Correct or remove it. {RESTART}")
    known = {name: value for name, value in env.items() if name in fields}
    for name in [name for name, value in known.items() if not isinstance(value, str)]:
        del known[name]
        yield Check(NAME, "fail", f"{where}.{name} is no text, and is left out", f"Put it into quotes. {RESTART}")
    try:
        told = load(**{fields[name]: value for name, value in known.items() if value})
    except SettingsError as wrong:
        said = f"the gateway's process ends at once, for a setting in {where} is wrong: {wrong}"
        yield Check(NAME, "fail", said, f"Correct it there. {RESTART}")
        return
    if told.disabled and known.get(variable("disabled")):
        said = f"everything is switched off in the gateway: {where}.{variable('disabled')}"
        yield Check(NAME, "warn", said, f"Remove it. {RESTART}")


def _is_path(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


# --- the way to the memory --------------------------------------------------------------------------------------------


def _way(settings: Settings, entry: Mapping[str, Any]) -> Iterator[Check]:
    config = entry.get("config", {})
    if not isinstance(config, dict):
        return
    socket, python = config.get("socket"), config.get("python")
    if _is_path(socket):
        if not Path(socket).is_socket():
            yield Check(NAME, "fail", f"nobody listens at {socket}", "Start `clawmark serve`, and keep it running.")
        return
    if not _is_path(python):
        if python is None:
            yield Check(NAME, "fail", "the plugin is not told which Python to run", AGAIN)
        return
    yield from _python(python)
    other = _other_database(settings, entry)
    if other is not None:
        name, own = variable("db_path"), settings.db_path.absolute()
        said = f"the gateway uses another database, {other}; what you look at here is {own}"
        here = f"To use this one in the gateway: `{name}={shlex.quote(str(own))} clawmark install openclaw`"
        there = f"to use the gateway's here: put `{name}={other}` into {config_file()}"
        yield Check(NAME, "warn", said, f"{here}; {there}.")


def _python(python: str) -> Iterator[Check]:
    try:
        asked = subprocess.run(
            [python, "-E", "-P", "-c", ASK_VERSIONS],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=PYTHON_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield Check(
            NAME, "warn", f"{python} did not start within {PYTHON_SECONDS:.0f} s", "Look at this machine's load."
        )
        return
    except OSError as error:
        yield Check(NAME, "fail", f"{python} cannot be started ({error.strerror})", AGAIN)
        return
    if "unknown option: -p" in asked.stderr.lower():
        yield Check(NAME, "fail", f"{python} is older than Python 3.11", AGAIN)
        return
    versions = asked.stdout.split()
    if asked.returncode or len(versions) != 2:
        yield Check(NAME, "fail", f"clawmark is not installed for {python}", AGAIN)
    elif versions[1] != _distribution():
        yield Check(NAME, "warn", f"{python} has clawmark {versions[1]}, and this is {_distribution()}", AGAIN)


def _distribution() -> str:
    from importlib import metadata

    try:
        return metadata.version("clawmark")
    except metadata.PackageNotFoundError:  # run out of a folder
        return clawmark.__version__


def _other_database(settings: Settings, entry: Mapping[str, Any]) -> str | None:
    """The database that the gateway's process is told to use, where it is not this one."""
    told = change.at(entry, ["config", "env", variable("db_path")])
    if not isinstance(told, str):
        return None  # it takes the usual one, or what its own environment says
    return None if Path(told).expanduser().resolve() == settings.db_path.absolute().resolve() else told


# --- tools ------------------------------------------------------------------------------------------------------------


def _tools(document: Mapping[str, Any]) -> Iterator[Check]:
    tools = document.get("tools")
    hidden = place.hidden_by(tools)
    if hidden:
        yield Check(NAME, "warn", f"no model sees clawmark's tools: `{'.'.join(hidden)}` does not name them", AGAIN)
    elif place.is_denied(tools):
        yield Check(NAME, "warn", "no model sees clawmark's tools: `tools.deny` hides them", f"Take {ID} out of it.")
    for agent in place.own_policies(document):
        said = f"the agent {agent} does not see clawmark's tools: its own list of tools does not name them"
        yield Check(NAME, "warn", said, f"Add {ID} to that list.")
    if not hidden and change.at(document, ["tools", "toolSearch"]) is not False:
        said = "tools of plugins are found by search (`tools.toolSearch`): a model looks them up first, then calls them"
        yield Check(NAME, "ok", said)


# --- the owner --------------------------------------------------------------------------------------------------------


def _owner(document: Mapping[str, Any]) -> Iterator[Check]:
    if document.get("channels") and not change.at(document, OWNERS):
        said = f"`{'.'.join(OWNERS)}` names nobody: an OpenClaw that tells owners from others (2026.9.6 does) takes whoever "
        said += "writes over a channel for somebody else, who is given no private fact"
        yield Check(NAME, "warn", said, f"Name yourself there, for example `telegram:123456789`. {RESTART}")
