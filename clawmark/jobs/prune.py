"""Prune: what the person deleted at the host is erased, and what stood next to it enters the lexicon anew.

A stream that is no longer listed is asked for its fate: only what was deleted, or is held no longer, is erased; what the
host expired by age is kept with its masked text; what nobody can tell is left alone. Runs only after a pass that could
read all there is: a log that could not be read just now is not a log that was deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import clean
from clawmark.erase import erase_passages, mark_unfinished
from clawmark.errors import SourceAbsent, SourceBusy, SourceError
from clawmark.jobs.index import Listed, own_cursor
from clawmark.jobs.prepare import content_key, own_words
from clawmark.model import Stream
from clawmark.recall.excerpt import Reader
from clawmark.source import MessageSource
from clawmark.store import cursors, events, kept, lexicon, passages, streams, vectors
from clawmark.store.db import transaction
from clawmark.text import lexical

BATCH = 200


def prune(
    connection: apsw.Connection,
    path: Path,
    source: MessageSource,
    listed: Listed,
    *,
    keep_text: bool,
    clock: Callable[[], datetime],
) -> int:
    """Erase what came from streams of `source` that were deleted; returns the number of passages erased.

    Streams last seen at another place are left alone: a setting that points elsewhere deletes nothing. When the log
    changed its streams since it was read, a missing one may stand under a new name: the next pass decides.
    """
    now_listed = listing(source)
    if now_listed is None or {stream.name for stream in now_listed} != listed.names:
        return 0
    live = {(stream.scope, stream.session) for stream in now_listed}
    erased = 0
    for name, stream in sorted(streams.known(connection, source.name).items()):
        if name in listed.names or name.startswith(listed.spared) or stream.place != source.place:
            continue
        cursor = cursors.get(connection, streams.cursor_name(source.name, name))
        fate = source.fate(stream.as_listed(), own_cursor(cursor), clock())
        if fate == "lost" or (stream.expired and fate == "expired" and keep_text):
            continue
        with transaction(connection, path):
            if fate == "expired" and keep_text:
                streams.expire(connection, stream.id)
                events.add(connection, "expire", clock(), source=source.name, scope=stream.scope, detail=name)
                continue
            orphans = streams.drop(connection, source.name, stream)
            if fate == "deleted" and (stream.scope, stream.session) not in live:
                orphans += streams.bury_session(connection, stream.scope, stream.session, source.name, clock())
            erase_passages(connection, orphans, clock())
            if orphans:
                detail = f"passages: {len(orphans)}"
                events.add(connection, "prune", clock(), source=source.name, scope=stream.scope, detail=detail)
        erased += len(orphans)
    return erased


def listing(source: MessageSource) -> list[Stream] | None:
    """What exists now, as far as it can be listed; None where there is no log."""
    found: list[Stream] = []
    try:
        found.extend(source.streams())
    except (SourceAbsent, SourceBusy):
        return None
    except SourceError as failure:
        return found if failure.parts else None
    return found


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
                words = own_words(found.message, found.message.author, lexical(found.text))
                lexicon.add(connection, found.passage_id, words, "")
            passages.clear_stale(connection, found_ids)
        refreshed += len(live)
    return refreshed


def forget_kept(connection: apsw.Connection, path: Path, now: datetime) -> int:
    """Erase every kept text, and what can be recalled from it alone; returns the number of passages erased."""
    if not kept.count(connection):
        return 0
    with transaction(connection, path):
        orphans: list[int] = []
        for source, stream in streams.expired(connection):
            orphans += streams.drop(connection, source, stream)
        erase_passages(connection, orphans, now)
        kept.drop(connection)
        mark_unfinished(connection, now)
        if orphans:
            events.add(connection, "prune", now, source="clawmark", detail=f"no text is kept any more: {len(orphans)}")
    return len(orphans)


def refresh_kept(connection: apsw.Connection, path: Path, rules: clean.Rules, now: datetime) -> int:
    """Clean kept texts again whose log has expired, when the rules have changed; returns how many were changed.

    A text in which a new rule finds something is stored, indexed and embedded anew; one it leaves nothing of is erased.
    """
    changed = last = 0
    while ids := kept.outdated(connection, clean.RECIPE, last, BATCH):
        last = ids[-1]
        texts = kept.texts(connection, ids)
        with transaction(connection, path):
            for passage_id in ids:
                old = texts.get(passage_id, "")
                new = clean.again(old, rules)
                if not new:
                    erase_passages(connection, [passage_id], now)
                    continue
                passage = passages.row(connection, passage_id)
                if new != old:
                    kept.replace(connection, passage_id, new)
                    followers = passages.successors(connection, [passage_id])
                    lexicon.remove(connection, [passage_id, *followers])
                    passages.mark_stale(connection, [passage_id, *followers])
                    vectors.make_anew(connection, passage_id, passage.at)
                    mark_unfinished(connection, now)
                    changed += 1
                key = passage.content_key if new == old else content_key(passage.scope, passage.role, new)
                passages.remake(connection, [passage_id], clean.RECIPE, key)
    return changed
