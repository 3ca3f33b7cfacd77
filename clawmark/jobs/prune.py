"""Prune: what the log no longer holds is erased, and what stood next to it enters the lexicon anew.

A stream that is no longer listed was deleted at the host. Runs only after a pass that read every stream: a log that
could not be read just now is not a log that was deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import apsw

from clawmark.erase import erase_passages
from clawmark.jobs.index import cursor_name, own_words
from clawmark.recall.excerpt import Reader
from clawmark.store import cursors, events, lexicon, passages
from clawmark.store.db import transaction

BATCH = 200


def prune(
    connection: apsw.Connection, path: Path, source: str, seen: set[str], *, clock: Callable[[], datetime]
) -> int:
    """Erase what came from streams of `source` that are not among `seen`; returns the number of passages erased."""
    erased = 0
    for name, (row_id, _) in sorted(passages.marks(connection, source).items()):
        if name in seen:
            continue
        with transaction(connection, path):
            orphans = passages.drop_stream(connection, row_id)
            erase_passages(connection, orphans)
            cursors.drop(connection, cursor_name(source, name))
            if orphans:
                events.add(connection, "prune", clock(), source=source, detail=f"{len(orphans)} passages")
        erased += len(orphans)
    return erased


def refresh_stale(connection: apsw.Connection, path: Path, reader: Reader) -> int:
    """Put stale passages into the lexicon again, without the words of a predecessor that was erased."""
    refreshed = 0
    while ids := passages.stale(connection, BATCH):
        live = reader.read(connection, ids)
        with transaction(connection, path):
            lexicon.remove(connection, ids)
            for found in live:
                lexicon.add(connection, found.passage_id, own_words(found.message, found.text), "")
            passages.clear_stale(connection, ids)
        refreshed += len(live)
    return refreshed
