"""Where OpenClaw keeps its configuration, and which plugins go by our name there. Looks alone.

OpenClaw reads its configuration as JSON5, put together out of several files where it says so. What is no plain JSON here
is not guessed at: whoever asks is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clawmark.errors import UsageError
from clawmark.hosts import change
from clawmark.settings import Settings

ID: Final = "clawmark"
ENTRY: Final = ("plugins", "entries", ID)
PATHS: Final = ("plugins", "load", "paths")
FILES: Final = ("index.js", "openclaw.plugin.json", "package.json")
TYPESCRIPT_PACKAGE: Final = "openclaw-clawmark"
PACKAGE: Final = "clawmark"
COPIES: Final = ("clawmark-plugin", "openclaw-plugin")
"""Names of a copy's folder: as it is made, and as it was made beside the database, where several OpenClaws may share it."""

LIMITED_PROFILES: Final = ("minimal", "coding", "messaging")
"""Of `tools.profile`: those that hide the tools of plugins."""

OURS: Final = frozenset({ID, "group:plugins", "*"})
"""What lets our tools through in a list of allowed ones, as their plugin's name does."""


@dataclass(frozen=True, slots=True)
class Home:
    """A state directory, and the configuration that a gateway on it reads."""

    state: Path
    config: Path


def home(settings: Settings, environment: Mapping[str, str], state_dir: Path | None = None) -> Home:
    """`state_dir`, else what the environment and the settings say."""
    state = (state_dir or settings.openclaw_state_dir).expanduser().absolute()
    named = environment.get("OPENCLAW_CONFIG_PATH", "").strip()
    return Home(state, Path(named).expanduser().absolute() if named and state_dir is None else state / "openclaw.json")


def plugin_folder() -> Path:
    """The plugin as this package carries it."""
    return Path(__file__).absolute().with_name("shim")


def copied_folder(state: Path) -> Path:
    """Where a copy of the plugin stands: in the state directory, so that each OpenClaw has its own, and where no upgrade of
    the package moves it away. Not below `extensions`, which the host looks after itself."""
    return state / COPIES[0]


def is_included(document: Mapping[str, Any]) -> bool:
    """Whether a part that we would write to is put together out of other files."""
    parts = [document.get("plugins"), document.get("tools")]
    return "$include" in document or any(_has_include(part) for part in parts)


def _has_include(value: Any) -> bool:
    if isinstance(value, list):
        return any(_has_include(one) for one in value)
    return isinstance(value, dict) and ("$include" in value or any(_has_include(one) for one in value.values()))


def folders(state: Path, document: Mapping[str, Any]) -> Iterator[Path]:
    """Every folder that a plugin is loaded from."""
    extensions = state / "extensions"
    try:
        yield from sorted(extensions.iterdir())
    except OSError:  # not there, or nothing that can be listed
        pass
    yield from load_paths(document)


def load_paths(document: Mapping[str, Any]) -> list[Path]:
    listed = change.at(document, PATHS)
    return [Path(name).expanduser() for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def shared_copies(document: Mapping[str, Any]) -> list[Path]:
    """Copies that an earlier clawmark made beside a database."""
    return [path for path in load_paths(document) if path.name == COPIES[1] and path.is_dir() and is_ours(str(path))]


def typescript(state: Path, document: Mapping[str, Any]) -> Path | None:
    """The TypeScript clawmark, which goes by the same name; None where it is not installed."""
    return next((folder for folder in folders(state, document) if _package(folder) == TYPESCRIPT_PACKAGE), None)


def is_ours(name: object) -> bool:
    """Whether a path that plugins are loaded from is this plugin's, also where the folder is gone."""
    if not isinstance(name, str):
        return False
    folder = Path(name).expanduser()
    if folder.exists():
        return _package(folder) == PACKAGE
    return folder.name in COPIES or folder.parts[-4:] == ("clawmark", "hosts", "openclaw", "shim")


def _package(folder: Path) -> str:
    try:
        value = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""


def hidden_by(tools: object) -> tuple[str, ...]:
    """Where a policy of tools that hides ours would have to name them; () where it does not hide them."""
    if not isinstance(tools, dict):
        return ()
    allowed, beside = tools.get("allow"), tools.get("alsoAllow")
    if isinstance(allowed, list) and allowed:
        return () if OURS & _names(allowed) else ("tools", "allow")
    if tools.get("profile") in LIMITED_PROFILES and not OURS & _names(beside):
        return ("tools", "alsoAllow")
    return ()


def is_denied(value: object) -> bool:
    """Whether a part of the configuration (`plugins`, `tools`) names us among what is denied."""
    return isinstance(value, dict) and bool(OURS & _names(value.get("deny")))


def own_policies(document: Mapping[str, Any]) -> list[str]:
    """The agents whose own policy of tools hides ours."""
    agents = document.get("agents")
    agents = agents if isinstance(agents, dict) else {}
    entries = agents.get("entries")
    named = list(entries.items()) if isinstance(entries, dict) else []
    listed = agents.get("list")
    named += [(one.get("id"), one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [str(name) for name, one in named if isinstance(one, dict) and hidden_by(one.get("tools"))]


def _names(value: object) -> set[str]:
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


def read(config: Path) -> dict[str, Any] | None:
    """The configuration; None where there is none. Raises UsageError for one that is no plain JSON."""
    content = change.read(config)
    return None if content is None else change.document(config, content)


def readable(config: Path) -> dict[str, Any]:
    """The same for whoever only looks: nothing where it cannot be read."""
    try:
        return read(config) or {}
    except UsageError:
        return {}
