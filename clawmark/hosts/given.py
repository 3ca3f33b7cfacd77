"""When a host was given a block last, for `clawmark doctor`. Looks alone, and leaves no trace."""

from __future__ import annotations

import os
from collections.abc import Iterator

from clawmark.errors import DatabaseError
from clawmark.health import Check
from clawmark.settings import Settings
from clawmark.store import db, files, sessions


def last_block(settings: Settings, name: str, host: str) -> Iterator[Check]:
    """One finding under `name`; none where there is no database yet, or none that can be read."""
    try:
        path = files.resolved(settings.db_path)
        if not db.is_there(path):
            return
        in_use = os.path.exists(f"{path}-wal")  # what was written last may stand there alone
        with (
            db.explained(path),
            db.opened(path, readonly=True, leave_no_trace=not in_use, busy_seconds=db.QUICK_BUSY_SECONDS) as connection,
        ):
            at = sessions.last(connection, host)
    except DatabaseError:  # the database's own checks say so
        return
    yield Check(name, "ok", f"last block given {'never' if at is None else f'{at.astimezone():%Y-%m-%d %H:%M}'}")
