"""Puts clawmark's plugin into OpenClaw's configuration, and takes it away again.

What always holds: a configuration that could not be written back as it was (comments, several files) is left as it is, and
what to add is said; nothing is taken away that was not put there by us; a second run changes nothing; no key and no
password is written into the host's files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from clawmark.errors import ClawmarkError, UsageError
from clawmark.hosts import change
from clawmark.hosts.change import Change, Edit
from clawmark.hosts.openclaw import place
from clawmark.hosts.openclaw.place import ENTRY, FILES, ID, PATHS, Home
from clawmark.settings import Settings, variable

KEPT_OUT: Final = ("disabled", "embedding_api_key", "openclaw_state_dir", "db_path")
"""Settings of the environment that are not handed on as they are: a switch of this moment, a key, and two paths that are
handed on wherever they are not the usual ones."""

RESTART: Final = "Restart the gateway for it to notice: `openclaw gateway restart`."


def install(
    settings: Settings,
    *,
    python: str,
    environment: Mapping[str, str],
    state_dir: Path | None = None,
    link: bool = False,
    socket: Path | None = None,
) -> Change:
    """What has to change so that OpenClaw uses this memory, run by `python`; nothing is written yet.

    link      load the plugin out of this package, not out of a copy
    socket    ask the resident process that listens there, where the gateway may start none

    Raises UsageError where something is in the way, ClawmarkError with what to add where it has to be added by hand.
    """
    home = place.home(settings, environment, state_dir)
    document = _readable(home, settings, python, environment, socket)
    other = place.typescript(home.state, document)
    if other is not None:
        raise UsageError(
            f"the TypeScript clawmark in {other} goes by the same name: run `openclaw plugins uninstall {ID}`, then try "
            "again. Its database is taken over."
        )
    folder = place.plugin_folder() if link else place.copied_folder(settings)
    config = _config(settings, home, python, environment, socket)
    edits = [] if link else list(_copy(folder))
    edits.append(change.edited(home.config, lambda value: _entered(value, folder, config)))
    return _noticed(Change.of(edits, _notes(document, settings, environment)))


def uninstall(settings: Settings, *, environment: Mapping[str, str], state_dir: Path | None = None) -> Change:
    """What takes it away: its entry, its path, its name in lists of what is allowed, and the copy of the plugin."""
    home = place.home(settings, environment, state_dir)
    try:
        document = place.read(home.config) or {}
    except UsageError as unreadable:
        raise ClawmarkError(f"{unreadable}\nTake out by hand what names {ID}.") from None
    folder = place.copied_folder(settings)
    edits = [Edit(folder / name, change.read(folder / name), None, ours=True) for name in FILES]
    if any(place.is_ours(str(path)) for path in place.load_paths(document)):
        edits.insert(0, change.edited(home.config, _left))
    return _noticed(Change.of(edits, [], [folder]))


def _noticed(made: Change) -> Change:
    return replace(made, notes=(RESTART, *made.notes)) if made else made


def _readable(
    home: Home, settings: Settings, python: str, environment: Mapping[str, str], socket: Path | None
) -> dict[str, Any]:
    try:
        document = place.read(home.config)
        if document is not None and place.is_included(document):
            raise UsageError(f"{home.config} is put together out of several files, so it was left as it is.")
    except UsageError as unreadable:
        # The package's own folder: a copy is made only by an installation that goes through.
        added = _entered({}, place.plugin_folder(), _config(settings, home, python, environment, socket))
        raise ClawmarkError(f"{unreadable} Or add this by hand:\n{json.dumps(added, indent=2)}") from None
    if document is None:
        raise UsageError(
            f"there is no {home.config}: set OpenClaw up first (`openclaw onboard`), or name its folder with --state-dir."
        )
    return document


# --- the plugin's files -----------------------------------------------------------------------------------------------


def _copy(folder: Path) -> Iterator[Edit]:
    for name in FILES:
        content = (place.plugin_folder() / name).read_bytes()
        yield Edit(folder / name, change.read(folder / name), content, ours=True)


# --- the configuration ------------------------------------------------------------------------------------------------


def _config(
    settings: Settings, home: Home, python: str, environment: Mapping[str, str], socket: Path | None
) -> dict[str, Any]:
    if socket is not None:
        return {"socket": str(socket.expanduser().absolute())}
    env = _env(settings, home, environment)
    return {"python": os.path.abspath(python), **({"env": env} if env else {})}


def _env(settings: Settings, home: Home, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings that the gateway's process needs to find the same memory: it starts elsewhere, with another shell."""
    env: dict[str, str] = {}
    for name in Settings.model_fields:
        given = environment.get(variable(name), "").strip()
        if given and name not in KEPT_OUT:
            value = getattr(settings, name)
            env[variable(name)] = str(value.absolute()) if isinstance(value, Path) else given
    if settings.db_path.absolute() != Path("~/.local/share/clawmark/memory.db").expanduser():
        env[variable("db_path")] = str(settings.db_path.absolute())
    if home.state != Path("~/.openclaw").expanduser().absolute():
        env[variable("openclaw_state_dir")] = str(home.state)
    return env


def _entered(document: dict[str, Any], folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    change.put(document, [*ENTRY, "enabled"], True)
    change.put(document, [*ENTRY, "hooks", "allowConversationAccess"], True)
    change.put(document, [*ENTRY, "config"], config)
    change.unlisted(document, PATHS, lambda name: place.is_ours(name) and name != str(folder))
    change.listed(document, PATHS, str(folder))
    if change.at(document, ["plugins", "allow"]):  # only these plugins are loaded
        change.listed(document, ["plugins", "allow"], ID)
    if hidden := place.hidden_by(document.get("tools")):
        change.listed(document, hidden, ID)
    return document


def _left(document: dict[str, Any]) -> dict[str, Any]:
    change.taken(document, ENTRY)
    change.unlisted(document, PATHS, place.is_ours)
    for names in (["plugins", "allow"], ["tools", "allow"], ["tools", "alsoAllow"]):
        change.unlisted(document, names, lambda item: item == ID)
    return document


def _notes(document: Mapping[str, Any], settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    if place.is_denied(document.get("plugins")) or change.at(document, ["plugins", "enabled"]) is False:
        yield "OpenClaw is told to load no such plugin (`plugins.deny`, `plugins.enabled`): change that by hand."
    if change.at(document, [*ENTRY, "hooks", "allowPromptInjection"]) is False:
        yield f"`{'.'.join(ENTRY)}.hooks.allowPromptInjection` is false: no block reaches a prompt until it is removed."
    if place.is_denied(document.get("tools")):
        yield "`tools.deny` hides the tools of plugins: blocks come, tools do not."
    for agent in place.own_policies(document):
        yield f"The agent {agent} has a list of its own of allowed tools: add {ID} there for it to see these."
    if settings.embedding_api_key is not None and environment.get(variable("embedding_api_key")):
        yield f"{variable('embedding_api_key')} is not written into OpenClaw's files: put it into clawmark.env."
