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
from clawmark.source import MessageSource
from clawmark.store import cursors, events, lexicon, passages
from clawmark.store.db import transaction
from clawmark.text import lexical

BATCH = 200


def prune(
    connection: apsw.Connection, path: Path, source: MessageSource, seen: set[str], *, clock: Callable[[], datetime]
) -> int:
    """Erase what came from streams of `source` that are not among `seen`; returns the number of passages erased.

    Streams last seen at another place are left alone: a setting that points elsewhere deletes nothing. When the log
    changed its streams since it was read, a missing one may stand under a new name: the next pass decides.
    """
    if {stream.name for stream in source.streams()} != seen:
        return 0
    erased = 0
    for name, stream in sorted(passages.known_streams(connection, source.name).items()):
        if name in seen or stream.place != source.place:
            continue
        with transaction(connection, path):
            orphans = passages.drop_stream(connection, stream.id)
            erase_passages(connection, orphans, clock())
            cursors.drop(connection, cursor_name(source.name, name))
            if orphans:
                events.add(connection, "prune", clock(), source=source.name, detail=f"passages: {len(orphans)}")
        erased += len(orphans)
    return erased


def refresh_stale(connection: apsw.Connection, path: Path, reader: Reader) -> int:
    """Put stale passages into the lexicon again, without the words of a predecessor that was erased.

    One whose text cannot be read back now stays stale until a later pass can.
    """
    refreshed = last = 0
    while ids := passages.stale(connection, last, BATCH):
        last = ids[-1]
        live = reader.read(connection, ids, exact=True)
        with transaction(connection, path):
            found_ids = [found.passage_id for found in live]
            lexicon.remove(connection, found_ids)
            for found in live:
                lexicon.add(
                    connection,
                    found.passage_id,
                    own_words(found.message, found.message.author, lexical(found.text)),
                    "",
                )
            passages.clear_stale(connection, found_ids)
        refreshed += len(live)
    return refreshed
