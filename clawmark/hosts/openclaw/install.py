"""Puts clawmark's plugin into OpenClaw's configuration, and takes it away again.

What always holds: a configuration that could not be written back as it was (comments, several files) is left as it is, and
what to add is said; nothing is taken away that was not put there by us; a second run changes nothing; no key and no
password is written into the host's files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from clawmark.errors import ClawmarkError, UsageError
from clawmark.guard import secrets
from clawmark.hosts import change
from clawmark.hosts.change import Change, Edit
from clawmark.hosts.openclaw import place
from clawmark.hosts.openclaw.place import ENTRY, FILES, ID, PATHS, Home
from clawmark.settings import Settings, variable

KEPT_OUT: Final = ("disabled", "embedding_api_key", "extract_api_key")
"""Settings of the environment that are not handed on: a switch of this moment, and keys."""

ALLOWED: Final = (("plugins", "allow"), ("tools", "allow"))
"""Lists of which the host takes an empty one for "everything is allowed", in 2026.5.28 as in 2026.9.6."""

RESTART: Final = "Restart the gateway for it to notice: `openclaw gateway restart`."


def install(
    settings: Settings,
    *,
    python: str,
    environment: Mapping[str, str],
    state_dir: Path | None = None,
    link: bool = False,
    socket: Path | None = None,
    is_asked_for: bool = False,
) -> Change:
    """What has to change so that OpenClaw uses this memory, run by `python`; nothing is written yet.

    link            load the plugin out of this package, not out of a copy
    socket          ask the resident process that listens there, where the gateway may start none
    is_asked_for    a person named `python`, so that it takes the place of a socket

    What the entry says already stays, where no argument and no variable says otherwise now. Raises UsageError where
    something is in the way, ClawmarkError with what to add where it has to be added by hand.
    """
    home = place.home(settings, environment, state_dir)
    wanted = _Wanted(settings, home, environment, python, is_asked_for, socket, state_dir is not None)
    document = _readable(home, wanted)
    other = place.typescript(home.state, document)
    if other is not None:
        raise UsageError(
            f"the TypeScript clawmark in {other} goes by the same name: run `openclaw plugins uninstall {ID}`, then try "
            "again. Its database is taken over."
        )
    folder = place.plugin_folder() if link else place.copied_folder(home.state)
    config = _config(wanted, change.at(document, [*ENTRY, "config"]))
    edits = [] if link else list(_copy(folder))
    edits.append(change.edited(home.config, lambda value: _entered(value, folder, config)))
    return _noticed(Change.of(edits, [*_notes(document, environment), *_left_copies(document)]))


def uninstall(settings: Settings, *, environment: Mapping[str, str], state_dir: Path | None = None) -> Change:
    """What takes it away: its entry, its path, its name in lists of what is allowed, and this OpenClaw's copy of the
    plugin. Raises ClawmarkError where it has to be taken out by hand: then the copy stays, too."""
    home = place.home(settings, environment, state_dir)
    try:
        document = _whole(home) or {}
    except UsageError as unreadable:
        raise ClawmarkError(
            f"{unreadable} Take out by hand what names {ID}, then remove {place.copied_folder(home.state)}."
        ) from None
    folder = place.copied_folder(home.state)
    edits = [Edit(folder / name, change.read(folder / name), None, ours=True) for name in FILES]
    notes: list[str] = []
    if any(place.is_ours(str(path)) for path in place.load_paths(document)):
        edits.insert(0, change.edited(home.config, _left))
        notes = [*_last_names(document), *_left_copies(document)]
    return _noticed(Change.of(edits, notes, [folder]))


def _noticed(made: Change) -> Change:
    return replace(made, notes=(RESTART, *made.notes)) if made else made


def _readable(home: Home, wanted: _Wanted) -> dict[str, Any]:
    try:
        document = _whole(home)
    except UsageError as unreadable:
        # The package's own folder: a copy is made only by an installation that goes through.
        added = _entered({}, place.plugin_folder(), _config(wanted, None))
        raise ClawmarkError(f"{unreadable} Or add this by hand:\n{json.dumps(added, indent=2)}") from None
    if document is None:
        raise UsageError(
            f"there is no {home.config}: set OpenClaw up first (`openclaw onboard`), or name its folder with --state-dir."
        )
    return document


def _whole(home: Home) -> dict[str, Any] | None:
    """The configuration; raises UsageError for one that is not all in this file, or is no plain JSON."""
    document = place.read(home.config)
    if document is not None and place.is_included(document):
        raise UsageError(f"{home.config} is put together out of several files, so it was left as it is.")
    return document


# --- the plugin's files -----------------------------------------------------------------------------------------------


def _copy(folder: Path) -> Iterator[Edit]:
    for name in FILES:
        content = (place.plugin_folder() / name).read_bytes()
        yield Edit(folder / name, change.read(folder / name), content, ours=True)


# --- the configuration ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What an installation was asked for, and on which machine. names_state: the state directory came as an argument."""

    settings: Settings
    home: Home
    environment: Mapping[str, str]
    python: str
    is_asked_for: bool
    socket: Path | None
    names_state: bool


def _config(wanted: _Wanted, standing: object) -> dict[str, Any]:
    """The entry's configuration. standing: what it is now."""
    config: dict[str, Any] = dict(standing) if isinstance(standing, dict) else {}
    if wanted.socket is not None:
        config.pop("python", None)
        return {**config, "socket": str(wanted.socket.expanduser().absolute())}
    if isinstance(config.get("socket"), str) and not wanted.is_asked_for:
        return config
    config.pop("socket", None)
    config["python"] = os.path.abspath(wanted.python)
    before = config.pop("env", None)
    env = _env(wanted, before if isinstance(before, dict) else {})
    return {**config, **({"env": env} if env else {})}


def _env(wanted: _Wanted, standing: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the gateway's process needs to find the same memory: it starts elsewhere, with another shell."""
    return {**_unusual(wanted), **standing, **_given(wanted)}


def _unusual(wanted: _Wanted) -> dict[str, str]:
    """Where things are, where that is not the usual place."""
    database, state = wanted.settings.db_path.absolute(), wanted.home.state
    found: dict[str, str] = {}
    if database != Path("~/.local/share/clawmark/memory.db").expanduser():
        found[variable("db_path")] = str(database)
    if state != Path("~/.openclaw").expanduser().absolute():
        found[variable("openclaw_state_dir")] = str(state)
    return found


def _is_secret(given: str) -> bool:
    """Whether a value holds a secret, as an address with a password does."""
    return secrets.mask(given) != given


def _given(wanted: _Wanted) -> dict[str, str]:
    """What variables and arguments say now."""
    found: dict[str, str] = {}
    for name in Settings.model_fields:
        given = wanted.environment.get(variable(name), "").strip()
        if given and name not in KEPT_OUT and not _is_secret(given):
            value = getattr(wanted.settings, name)
            found[variable(name)] = str(value.absolute()) if isinstance(value, Path) else given
    if wanted.names_state:
        name = variable("openclaw_state_dir")
        found.pop(name, None)
        if name in (unusual := _unusual(wanted)):
            found[name] = unusual[name]
    return found


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
    for names in ALLOWED:
        if not _is_last_name(document, names):
            change.unlisted(document, names, _is_our_name)
    return change.unlisted(document, ["tools", "alsoAllow"], _is_our_name)


def _is_our_name(item: object) -> bool:
    return item == ID


def _is_last_name(document: Mapping[str, Any], names: Sequence[str]) -> bool:
    """Whether nothing but our name stands in a list: without it, everything would be allowed."""
    items = change.at(document, names)
    return isinstance(items, list) and bool(items) and all(map(_is_our_name, items))


def _last_names(document: Mapping[str, Any]) -> Iterator[str]:
    for names in ALLOWED:
        if _is_last_name(document, names):
            where = ".".join(names)
            yield f"`{where}` names {ID} alone, and still does: an empty list allows everything. Change it as you want it."


def _left_copies(document: Mapping[str, Any]) -> Iterator[str]:
    for folder in place.shared_copies(document):
        yield f"{folder} is left, for another OpenClaw may load it: remove it where none does."


def _notes(document: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    if place.is_denied(document.get("plugins")) or change.at(document, ["plugins", "enabled"]) is False:
        yield "OpenClaw is told to load no such plugin (`plugins.deny`, `plugins.enabled`): change that by hand."
    if change.at(document, [*ENTRY, "hooks", "allowPromptInjection"]) is False:
        yield f"`{'.'.join(ENTRY)}.hooks.allowPromptInjection` is false: no block reaches a prompt until it is removed."
    if place.is_denied(document.get("tools")):
        yield "`tools.deny` hides the tools of plugins: blocks come, tools do not."
    for agent in place.own_policies(document):
        yield f"The agent {agent} has a list of its own of allowed tools: add {ID} there for it to see these."
    for name in Settings.model_fields:
        given = environment.get(variable(name), "").strip()
        if given and (name == "embedding_api_key" or _is_secret(given)):
            yield f"{variable(name)} is not written into OpenClaw's files: put it into clawmark.env."
