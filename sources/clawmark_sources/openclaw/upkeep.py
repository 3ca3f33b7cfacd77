"""What OpenClaw clears away by itself in the era of session files: no deletion of the person's.

From 2026.5 on it renames the file of a session that nobody used for 30 days to `.deleted.`, and removes archives of a
reset as old as that, unless its configuration says otherwise (`session.maintenance` in openclaw.json).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

MONTH: Final = timedelta(days=30)
_CONFIG_BYTES: Final = 16 << 20
_STAMP: Final = re.compile(
    r"\.jsonl\.(?P<kind>reset|deleted)\.(?P<date>\d{4}-\d\d-\d\d)T(?P<h>\d\d)-(?P<m>\d\d)-(?P<s>\d\d(?:\.\d+)?)Z"
)
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Upkeep:
    """How long OpenClaw keeps an unused session, and an archive of a reset; None = for ever."""

    sessions: timedelta | None = MONTH
    resets: timedelta | None = MONTH

    def cleared(self, name: str, written: datetime) -> bool:
        """Whether a file of this name, last written then, was renamed by the host and not for the person."""
        stamped = stamp(name, "deleted")
        return stamped is not None and self.sessions is not None and stamped - written >= self.sessions

    def removes(self, name: str, written: datetime | None, now: datetime) -> bool:
        """Whether the host itself may have removed such a file by now."""
        archived = stamp(name, "reset") or stamp(name, "deleted")
        if archived is not None:
            return self.resets is not None and now - archived >= self.resets
        return self.sessions is not None and written is not None and now - written >= self.sessions


def stamp(name: str, kind: str) -> datetime | None:
    """When a file was made an archive of this kind; None when it is none."""
    found = _STAMP.search(name)
    if found is None or found["kind"] != kind:
        return None
    try:
        return datetime.fromisoformat(f"{found['date']}T{found['h']}:{found['m']}:{found['s']}").replace(tzinfo=UTC)
    except ValueError:
        return None


def upkeep_of(state: Path) -> Upkeep:
    """What the state directory's configuration says; the host's own defaults where it cannot be read."""
    try:
        with open(state / "openclaw.json", "rb") as file:
            value: Any = json.loads(file.read(_CONFIG_BYTES))
    except (OSError, ValueError, RecursionError):
        return Upkeep()
    for name in ("session", "maintenance"):
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        return Upkeep()
    if value.get("mode", "enforce") != "enforce":
        return Upkeep(None, None)
    sessions = _duration(value.get("pruneAfter", value.get("pruneDays"))) or MONTH
    resets = value.get("resetArchiveRetention")
    return Upkeep(sessions, None if resets is False else _duration(resets) or sessions)


def _duration(value: object) -> timedelta | None:
    """A time as OpenClaw writes it, "30d" or a number of days; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    found = _DURATION.fullmatch(str(value).strip().lower())
    try:
        return timedelta(seconds=float(found[1]) * _SECONDS[found[2] or "d"]) if found else None
    except OverflowError:
        return None
