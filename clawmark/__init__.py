"""clawmark: a private memory for AI agents.

Public names are loaded on first use, so that `import clawmark` stays cheap for a host that only wants a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clawmark.errors import (
        ClawmarkError,
        DatabaseError,
        EmbedderDown,
        EmbedderError,
        Refused,
        SettingsError,
        SourceError,
        UsageError,
    )
    from clawmark.memory import Memory
    from clawmark.model import Block, Event, Excerpt, Fact, Found, Message, SyncReport, Turn
    from clawmark.settings import Settings

__version__ = "0.4.0.dev0"

_HOME = {
    "Memory": "clawmark.memory",
    "Settings": "clawmark.settings",
    **dict.fromkeys(("Block", "Event", "Excerpt", "Fact", "Found", "Message", "SyncReport", "Turn"), "clawmark.model"),
    **dict.fromkeys(
        (
            "ClawmarkError",
            "DatabaseError",
            "EmbedderDown",
            "EmbedderError",
            "Refused",
            "SettingsError",
            "SourceError",
            "UsageError",
        ),
        "clawmark.errors",
    ),
}

__all__ = [
    "Block",
    "ClawmarkError",
    "DatabaseError",
    "EmbedderDown",
    "EmbedderError",
    "Event",
    "Excerpt",
    "Fact",
    "Found",
    "Memory",
    "Message",
    "Refused",
    "Settings",
    "SettingsError",
    "SourceError",
    "SyncReport",
    "Turn",
    "UsageError",
    "__version__",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'clawmark' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
