"""What `doctor` says of Claude Code: whether its hooks ask this memory, whether its log is read, when it was told last.

Looks alone: nothing is written, started or run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import clawmark
from clawmark.errors import DatabaseError, UsageError
from clawmark.health import Check
from clawmark.hosts import change
from clawmark.hosts.claude_code import install
from clawmark.hosts.claude_code.hook import HOST
from clawmark.hosts.given import last_block
from clawmark.settings import Settings
from clawmark.source import ANY
from clawmark.store import files

NAME: Final = "claude code"
AGAIN: Final = "Run `clawmark install claude-code` again."
EVENTS: Final = ("SessionStart", "UserPromptSubmit")
DAYS: Final = 30
"""How long Claude Code keeps a transcript where its settings do not say."""


def checks(settings: Settings) -> Iterator[Check]:
    if not settings.claude_config_dir.is_dir():
        yield Check(NAME, "ok", f"not here: {settings.claude_config_dir} does not exist")
        return
    hooks = install.installed(settings)
    if hooks is None:
        yield Check(NAME, "warn", "clawmark is not installed in it", "Run `clawmark install claude-code`.")
    else:
        yield from _installed(settings, hooks)
    yield from _log(settings)
    yield from last_block(settings, NAME, HOST)


# --- the plugin -------------------------------------------------------------------------------------------------------


def _installed(settings: Settings, hooks: dict[str, Any]) -> Iterator[Check]:
    place = install.folder(settings)
    faults = list(_faults(settings, hooks))
    for said, advice in faults:
        yield Check(NAME, "fail", said, advice)
    if install.is_switched_off(settings):
        yield Check(
            NAME,
            "fail",
            "the plugin is switched off in it",
            f"Run `claude plugin enable {install.ID}`, then restart it.",
        )
    elif not faults:
        yield Check(NAME, "ok", f"hooks in {place} (loaded by Claude Code 2.1.157 and later)")
    if not (place / install.TOOLS).exists():
        yield Check(NAME, "warn", "it has no tools of the memory", f"pip install 'clawmark[mcp]'. {AGAIN}")


def _faults(settings: Settings, hooks: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What keeps the hooks from asking this memory, and what to do."""
    for event in EVENTS:
        command = _command(hooks, event)
        if command is None:
            yield f"the hook {event} is not as it was installed", AGAIN
            return
        python, client, database = command
        if not os.access(python, os.X_OK):
            yield f"the hooks run {python}, which is gone", AGAIN
        elif not Path(client).is_file():
            yield f"the hooks run {client}, which is gone", AGAIN
        elif not _is_database(settings, database):
            yield f"the hooks ask for the database {database}, and this is another", AGAIN
        else:
            continue
        return
    version = _version(settings)
    if version != clawmark.__version__:
        yield f"the plugin is of clawmark {version}, and this is {clawmark.__version__}", AGAIN


def _command(hooks: dict[str, Any], event: str) -> tuple[str, str, str] | None:
    """Python, client and database of one hook; None where it is another than ours."""
    try:
        (group,) = hooks["hooks"][event]
        (hook,) = group["hooks"]
        isolated, bare, client, host, at, socket, of, database = hook["args"]
        python = hook["command"]
    except (KeyError, TypeError, ValueError):
        return None
    if [isolated, bare, host, at, of] != ["-I", "-S", HOST, "--socket", "--database"]:
        return None
    if not all(isinstance(path, str) for path in (python, client, socket, database)):
        return None
    return python, client, database


def _is_database(settings: Settings, database: str) -> bool:
    try:
        return Path(database) == files.resolved(settings.db_path)
    except DatabaseError:  # the database's own check says what is wrong with its path
        return True


def _version(settings: Settings) -> str:
    path = install.folder(settings) / install.MANIFEST
    try:
        return str(change.document(path, change.read(path)).get("version", "an earlier version"))
    except UsageError:
        return "an unknown version"


# --- its log ----------------------------------------------------------------------------------------------------------


def _log(settings: Settings) -> Iterator[Check]:
    other = install.reads_instead(settings)
    wanted = [name.strip() for name in settings.source.split(",")]
    if other is not None:
        advice = f"Set CLAWMARK_SOURCE={install.BOTH}, or run `clawmark install claude-code` again."
        yield Check(NAME, "warn", f"its conversations are not read: `auto` reads {other}", advice)
    elif settings.source.strip() and install.SOURCE not in wanted and ANY not in wanted:
        advice = f"Set CLAWMARK_SOURCE={settings.source.strip()},{install.SOURCE}."
        yield Check(NAME, "warn", f"its conversations are not read: CLAWMARK_SOURCE is {settings.source}", advice)
    elif settings.keep_text == "off":
        days = _days(settings)
        said = f"it deletes conversations after {days} days, and CLAWMARK_KEEP_TEXT=off: older ones are not recalled"
        yield Check(NAME, "warn", said, "Unset CLAWMARK_KEEP_TEXT, or raise cleanupPeriodDays in its settings.json.")


def _days(settings: Settings) -> int:
    path = settings.claude_config_dir / "settings.json"
    try:
        days = change.document(path, change.read(path)).get("cleanupPeriodDays", DAYS)
    except UsageError:
        return DAYS
    return days if isinstance(days, int) and not isinstance(days, bool) and days > 0 else DAYS
