"""Prune: what the person deleted at the host is erased, and what stood next to it enters the lexicon anew.

A stream that is no longer listed is asked for its fate: only what was deleted, or is held no longer, is erased; what the
host expired by age is kept with its masked text; what nobody can tell is left alone. Runs only after a pass that could
read all there is: a log that could not be read just now is not a log that was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import clean
from clawmark.erase import erase_passages, forget_in_sidecar, mark_unfinished
from clawmark.errors import SourceAbsent, SourceBusy, SourceError
from clawmark.jobs.index import Listed, own_cursor, rules_now
from clawmark.jobs.prepare import own_words
from clawmark.model import Fate, Stream
from clawmark.recall.excerpt import Reader
from clawmark.source import MessageSource
from clawmark.store import cursors, events, kept, lexicon, passages, streams, vectors
from clawmark.store.db import transaction
from clawmark.text import lexical

BATCH = 200
ENDS = 500
"""Streams that share a transaction, and one look at the sidecar."""
RULES = "rules"
"""The cursor that says under which rules kept texts were cleaned last."""


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
    if now_listed is None or (now_listed.names, now_listed.spared) != (listed.names, listed.spared):
        return 0
    ends = _ended(connection, source, listed, keep_text=keep_text, now=clock())
    erased = 0
    for start in range(0, len(ends), ENDS):
        erased += _end(connection, path, source, ends[start : start + ENDS], now_listed, clock())
    return erased


@dataclass(frozen=True, slots=True)
class Ended:
    """A stream that is no longer listed, and what became of it."""

    stream: streams.Known
    fate: Fate

    @property
    def place(self) -> tuple[str, str]:
        return self.stream.scope, self.stream.session


def _ended(
    connection: apsw.Connection,
    source: MessageSource,
    listed: Listed,
    *,
    keep_text: bool,
    now: datetime,
) -> list[Ended]:
    """The streams something must be done about, in the order of their names. The source is asked outside a transaction."""
    buried = streams.deleted_sessions(connection, source.host)
    found: list[Ended] = []
    for name, stream in sorted(streams.known(connection, source.name).items()):
        if name in listed.names or name.startswith(listed.spared) or stream.place != source.place:
            continue
        fate = _fate(connection, source, stream, now)
        if source.name in buried.get((stream.scope, stream.session), ()):
            fate = "deleted"  # it was deleted before, and a restored backup brought it back
        elif stream.expired and keep_text and fate != "gone":
            continue  # what was expired once stays so, whatever clock or settings say now
        elif fate == "expired" and not (keep_text and streams.has_kept_text(connection, stream.id)):
            fate = "gone"  # nothing could be shown of it
        if fate != "lost":
            found.append(Ended(stream, fate))
    return found


def _end(
    connection: apsw.Connection,
    path: Path,
    source: MessageSource,
    ends: Sequence[Ended],
    now_listed: Listed,
    now: datetime,
) -> int:
    """Do what each stream's fate asks for, in one transaction; returns the number of passages erased."""
    remember = source.expires or streams.has_other_logs(connection, source.name, source.host)
    erased = 0
    buried = False
    with transaction(connection, path):
        for end in ends:
            stream = end.stream
            if end.fate == "expired":
                streams.expire(connection, stream.id)
                events.add(connection, "expire", now, source=source.name, scope=stream.scope, detail=stream.name)
                continue
            orphans = streams.drop(connection, source.name, stream)
            if end.fate == "deleted" and remember and end.place not in now_listed.sessions:
                orphans += streams.bury_session(connection, *end.place, source.name, source.host, now)
                buried = True
            erase_passages(connection, orphans, now)
            if orphans:
                detail = f"passages: {len(orphans)}"
                events.add(connection, "prune", now, source=source.name, scope=stream.scope, detail=detail)
            erased += len(orphans)
        if buried:
            forget_in_sidecar(connection, path, now)
    return erased


def _fate(connection: apsw.Connection, source: MessageSource, stream: streams.Known, now: datetime) -> Fate:
    """What the source says; "lost" while it cannot say anything."""
    cursor = cursors.get(connection, streams.cursor_name(source.name, stream.name))
    try:
        return source.fate(stream.as_listed(), own_cursor(cursor), now)
    except SourceError:
        return "lost"


def listing(source: MessageSource) -> Listed | None:
    """What exists now, as far as it can be listed; None where there is no log."""
    found: list[Stream] = []
    spared: tuple[str, ...] = ()
    try:
        found.extend(source.streams())
    except (SourceAbsent, SourceBusy):
        return None
    except SourceError as failure:
        if not failure.parts:
            return None
        spared = failure.parts
    return Listed.of(found, spared)


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
    """Clean kept texts again that were cleaned under other rules; returns how many were changed.

    A text in which a new rule finds something is stored, indexed and embedded anew; one it leaves nothing of is erased.
    Where the log can be read, reading it has done that before.
    """
    ruled = rules_now(rules)
    everything = cursors.get(connection, RULES) != ruled
    changed = last = 0
    while ids := kept.of_other_rules(connection, clean.RECIPE, last, BATCH, everything=everything):
        last = ids[-1]
        texts = kept.texts(connection, ids)
        with transaction(connection, path):
            for passage_id in ids:
                changed += _refresh(connection, passage_id, texts.get(passage_id), rules, now)
    if everything:
        with transaction(connection, path):
            cursors.put(connection, RULES, ruled, now)
    return changed


def _refresh(connection: apsw.Connection, passage_id: int, old: str | None, rules: clean.Rules, now: datetime) -> bool:
    if old is None:  # damaged; where its log is there, reading that again keeps it anew
        kept.drop_one(connection, passage_id)
        return False
    new = clean.again(old, rules)
    if not new:
        erase_passages(connection, [passage_id], now)
        return True
    passage = passages.row(connection, passage_id)
    # which part of its message this is holds under its own recipe: only reading the log can tell it anew
    recipe = clean.RECIPE if passages.is_expired(connection, passage_id) else passage.recipe
    if new == old:
        passages.remake(connection, [passage_id], recipe, passage.content_key)
        return False
    kept.replace(connection, passage_id, new)
    followers = passages.successors(connection, [passage_id])
    lexicon.remove(connection, [passage_id, *followers])
    passages.mark_stale(connection, [passage_id, *followers])
    vectors.make_anew(connection, passage_id, passage.at)
    mark_unfinished(connection, now)
    passages.remake(connection, [passage_id], recipe, passage.content_key)
    return True
