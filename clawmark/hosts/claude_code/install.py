"""Puts clawmark's plugin beside Claude Code's skills, and takes it away again.

A folder with a plugin's manifest below the skills is loaded in place, hooks and tools with it, in every project and
without a marketplace (Claude Code 2.1.157 and later): nothing that the host or the person wrote is edited for it. What
always holds: a folder that is not this plugin is refused; what else lies in it stays; a second run changes nothing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import clawmark
from clawmark.errors import SourceError, UsageError
from clawmark.hosts import change
from clawmark.hosts.change import Change, Edit
from clawmark.settings import Settings, config_file, variable
from clawmark.socketpath import socket_path
from clawmark.source import ANY, Folders, choose, select
from clawmark.store import files

NAME: Final = "clawmark"
ID: Final = f"{NAME}@skills-dir"
"""What Claude Code calls the plugin."""

SOURCE: Final = "claude-code"
MANIFEST: Final = ".claude-plugin/plugin.json"
HOOKS: Final = "hooks/hooks.json"
TOOLS: Final = ".mcp.json"
FILES: Final = (MANIFEST, HOOKS, TOOLS, "skills/clawmark/SKILL.md")
BOTH: Final = f"{ANY},{SOURCE}"


def folder(settings: Settings) -> Path:
    return settings.claude_config_dir / "skills" / NAME


def client() -> Path:
    """What the hooks run: by its path, since they import nothing that is installed."""
    return Path(os.path.abspath(clawmark.__file__)).with_name("client.py")


def socket(settings: Settings) -> Path:
    """Where the hooks ask; what `clawmark serve` takes for this database too."""
    return socket_path(files.resolved(settings.db_path))


def install(settings: Settings, *, python: str, environment: Mapping[str, str]) -> Change:
    """What has to change so that Claude Code uses this memory, run by `python`; nothing is written yet.

    environment: what the settings were read in, which Claude Code may not have. Raises UsageError where Claude Code is
    not there, or something is in the way.
    """
    if not settings.claude_config_dir.is_dir():
        raise UsageError(
            f"there is no {settings.claude_config_dir}: start Claude Code once first, or set CLAUDE_CONFIG_DIR."
        )
    _require_plugin_or_nothing(settings)
    has_tools = importlib.util.find_spec("mcp") is not None
    values = {
        "python": os.path.abspath(python),
        "client": str(client()),
        "socket": str(socket(settings)),
        "database": str(files.resolved(settings.db_path)),
    }
    edits = []
    for name, content in _plugin(values):
        path = folder(settings) / name
        edits.append(Edit(path, change.read(path), content if name != TOOLS or has_tools else None, ours=True))
    edits.append(_reading(settings))
    return Change.of(edits, _notes(settings, has_tools, environment))


def uninstall(settings: Settings) -> Change:
    """What takes it away: these files, the folders that they leave empty, and the line that `install` added."""
    root = folder(settings)
    if _manifest(settings) is None:
        edits = []
    else:
        edits = [Edit(root / name, change.read(root / name), None, ours=True) for name in FILES]
    edits.append(_not_reading())
    folders = {root / parent for name in FILES for parent in Path(name).parents}
    return Change.of(edits, [], sorted(folders))


def _notes(settings: Settings, has_tools: bool, environment: Mapping[str, str]) -> Iterator[str]:
    yield "Claude Code loads it when it starts next, from version 2.1.157 on; /reload-plugins does it at once."
    if not has_tools:
        yield "Its tools need the extra `mcp`: pip install 'clawmark[mcp]', then run this again."
    if is_switched_off(settings):
        yield f"It is switched off in Claude Code: run `claude plugin enable {ID}`."
    if given := _given(environment):
        yield f"Its hooks read settings where Claude Code is started: put {', '.join(given)} into {config_file()}."


def _given(environment: Mapping[str, str]) -> list[str]:
    """The settings of this environment. A hook cannot be given any, and another database must not answer for this one."""
    return [name for name in map(variable, Settings.model_fields) if environment.get(name, "").strip()]


# --- the plugin's files -----------------------------------------------------------------------------------------------


def _plugin(values: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    for name in FILES:
        content = resources.files(__package__).joinpath("plugin", name).read_bytes()
        if name == MANIFEST:
            content = _json(json.loads(content) | {"version": clawmark.__version__})
        elif name.endswith(".json"):
            content = _json(_filled(json.loads(content), values))
        yield name, content


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """The template with `@name@` replaced, as whole values: no path has to be quoted."""
    if isinstance(value, dict):
        return {key: _filled(inner, values) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    return values.get(value.strip("@"), value) if isinstance(value, str) and value.startswith("@") else value


def _manifest(settings: Settings) -> dict[str, Any] | None:
    """This plugin's manifest; None where there is none, or another's."""
    path = folder(settings) / MANIFEST
    content = change.read(path)
    found = None if content is None else change.document(path, content)
    return found if found is not None and found.get("name") == NAME else None


def _require_plugin_or_nothing(settings: Settings) -> None:
    place = folder(settings)
    if os.path.lexists(place) and _manifest(settings) is None and not _is_empty(place):
        raise UsageError(f"{place} holds something else; move it away, then try again.")


def _is_empty(place: Path) -> bool:
    try:
        return next(place.iterdir(), None) is None
    except OSError:
        return False


def installed(settings: Settings) -> dict[str, Any] | None:
    """What the installed hooks say; None where there are none that can be read."""
    try:
        if _manifest(settings) is None:
            return None
        path = folder(settings) / HOOKS
        return change.document(path, change.read(path))
    except UsageError:
        return None


def is_switched_off(settings: Settings) -> bool:
    """Whether the person disabled the plugin in Claude Code. A file in a form we do not know says nothing."""
    path = settings.claude_config_dir / "settings.json"
    try:
        return change.at(change.document(path, change.read(path)), ["enabledPlugins", ID]) is False
    except UsageError:
        return False


# --- which logs are read ----------------------------------------------------------------------------------------------

_SOURCE_LINE: Final = re.compile(r"[ \t]*(?:export[ \t]+)?CLAWMARK_SOURCE[ \t]*=", re.IGNORECASE)


def reads_instead(settings: Settings) -> str | None:
    """The source that `auto` reads in the place of Claude Code's log; None where it reads that one, or none yet."""
    if settings.source.strip() not in ("", ANY):
        return None
    folders = Folders(
        settings.transcripts_dir,
        settings.openclaw_state_dir,
        settings.lcm_db_path,
        settings.claude_config_dir,
        settings.subagents,
    )
    try:
        chosen = choose(select(ANY, folders)[0])
    except (SourceError, UsageError, IndexError):  # nothing to choose from: `doctor` says so
        return None
    name = chosen.failing if chosen.source is None else chosen.source.name
    return name if name and name != SOURCE else None


def _reading(settings: Settings) -> Edit:
    """The config file with both hosts' logs named, where `auto` would read the other one alone."""
    path = config_file()
    before = change.read(path)
    if reads_instead(settings) is None:
        return Edit(path, before, before)
    lines = (before or b"").decode(errors="surrogateescape").splitlines(keepends=True)
    kept = [line if line.endswith("\n") else line + "\n" for line in lines if not _SOURCE_LINE.match(line)]
    after = "".join([*kept, f"CLAWMARK_SOURCE={BOTH}\n"])
    return Edit(path, before, after.encode(errors="surrogateescape"))


def _not_reading() -> Edit:
    path = config_file()
    before = change.read(path)
    if before is None:
        return Edit(path, None, None)
    lines = before.decode(errors="surrogateescape").splitlines(keepends=True)
    after = "".join(line for line in lines if line.strip() != f"CLAWMARK_SOURCE={BOTH}")
    return Edit(path, before, after.encode(errors="surrogateescape") or None)
