"""Index: messages become passages, words in the lexicon and refs, together with the cursor that covers them.

A batch is read and prepared outside the database and written in one transaction, so a kill at any instant leaves whole
batches only. A message that is already known, by its ref or as another copy of the same utterance, gains a ref and
nothing else: reading a log again changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import clean
from clawmark.erase import erase_passages
from clawmark.errors import DatabaseBusy, SourceAbsent, SourceBusy, SourceDrift, SourceError
from clawmark.jobs.prepare import UNDATED, How, Prepared, prepare
from clawmark.model import Batch, Fault, Progress, Stream
from clawmark.source import MessageSource
from clawmark.store import cursors, events, evidence, kept, lexicon, passages, streams, tombstones, vectors
from clawmark.store.db import transaction
from clawmark.store.streams import cursor_name
from clawmark.store.tombstones import Tombstones
from clawmark.text import PARTS_VERSION

BATCH = 500
"""Messages asked of a source at once."""

GROUP, GROUP_STREAMS, GROUP_LETTERS = 2_000, 500, 8_000_000
"""Messages, batches of different streams and characters that share a transaction and so one wait for the disk."""

SILENCE_MS = 6 * 3_600_000
"""A longer silence ends a conversation."""

SAME_MOMENT_MS = 2_000
SAME_LONG_TEXT_MS = 600_000
"""Two messages with the same text are one utterance within 2 s, or within 10 minutes when it has 40 characters: a
repeated "ok" and a sentence said again months later stay their own. Of two logs of one session each may stamp a message
when it likes, and holds it once: there any text within 10 minutes is the other log's copy, which nobody else is yet."""

ENTRY_ID_LENGTH = 8
"""A shorter entry id may be a mere count; two of them being equal says nothing."""

COPIES = 4
"""How many earlier utterances of the same text, the nearest in time, are asked whether they are copies."""

PARTS_PLACES = 100
"""A recipe's last two digits say how texts are split."""

TAKEN_BACK = 50_000
"""Refs that a source is asked about at once."""

FAULT_EVENTS = 20
"""Unreadable entries of one batch that get an event of their own; the rest shares one."""


@dataclass(slots=True)
class Tally:
    """Counts of one pass, for the report."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    withdrawn: int = 0
    failures: list[SourceError] = field(default_factory=list)


@dataclass(slots=True)
class Written:
    """What a group of batches did: messages that are new and known."""

    kept: int = 0
    known: int = 0


@dataclass(frozen=True, slots=True)
class Thread:
    """Where a stream stands: the conversation that goes on, and the passage that the next one follows."""

    conversation: int | None = None
    passage: int | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class Listed:
    """What one pass saw of a source.

    names    all streams that exist now
    spared   beginnings of the names of streams that could not be listed: they are none that are gone
    sessions (scope, session) of all
    """

    names: frozenset[str]
    spared: tuple[str, ...]
    sessions: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, found: Collection[Stream], spared: tuple[str, ...]) -> Listed:
        return cls(
            frozenset(stream.name for stream in found),
            spared,
            frozenset((stream.scope, stream.session) for stream in found),
        )


def index(
    connection: apsw.Connection,
    path: Path,
    source: MessageSource,
    *,
    rules: clean.Rules,
    keep_text: bool,
    clock: Callable[[], datetime],
    tally: Tally,
    progress: Progress,
    secret: Callable[[], bytes],
    known_alone: bool = False,
) -> Listed | None:
    """Read everything that is new; None where there is no log, or where a part of it could not be read.

    A stream that cannot be read is put on `tally.failures` and the others go on; a busy source raises SourceBusy.
    keep_text: whether the text of what a host deletes by itself is kept. known_alone: only sessions that were read before
    are read on, whatever their streams are called now; what is new is another log's to tell.
    """
    _begin(connection, path, source, rules, keep_text and source.expires, clock())
    known = streams.known(connection, source.name)
    sessions = {(stream.scope, stream.session) for stream in known.values()}
    buried = streams.deleted_sessions(connection, source.host)
    elsewhere = {place for place, sources in buried.items() if sources != {source.name}}
    buried_at = tombstones.state(connection)
    forgotten = Tombstones(connection, secret()) if any(buried_at) else None
    how = How(
        rules,
        clock(),
        keep_text and source.expires,
        elsewhere,
        forgotten,
        lambda content_key: bool(passages.standing(connection, [content_key])),
    )
    listed: dict[str, Stream] = {}
    whole = True
    spared: tuple[str, ...] = ()
    group = Group()

    def flush() -> None:
        nonlocal group
        if group.reads:
            _commit(connection, path, source, group.reads, clock, tally, buried_at)
            progress("messages", tally.read, None)
            group = Group()

    def failed(failure: SourceError, scope: str | None) -> None:
        tally.failures.append(failure)
        note_failure(connection, path, source.name, failure, scope, clock())

    try:
        for stream in source.streams():
            if stream.name in listed:
                failed(
                    SourceDrift(f"two streams of {source.name} are called {stream.name}; one is not read."),
                    stream.scope,
                )
                whole = False
                continue
            listed[stream.name] = stream
            if source.name in buried.get((stream.scope, stream.session), ()):
                with transaction(connection, path):
                    streams.lift_session(connection, stream.scope, stream.session, source.name, source.host)
            old = known.get(stream.name)
            is_new = old is None and (stream.scope, stream.session) not in sessions
            if _is_read(old, stream, source.place) or (known_alone and is_new):
                continue
            try:
                for read in _reads(connection, source, stream, old, how):
                    group.add(read)
                    if group.is_full():
                        flush()
            except SourceBusy:
                raise
            except SourceError as failure:
                failed(failure, stream.scope)
                whole = False
    except SourceBusy:
        flush()
        raise
    except SourceAbsent:
        return None
    except SourceError as failure:  # what could be listed was read; a log that cannot be listed is none that is gone
        failed(failure, None)
        spared = failure.parts
        whole = whole and bool(spared)
    flush()
    asked: set[str] = set()
    while waiting := sorted(_waiting(connection, source, listed) - asked):
        for name in waiting:  # what one of them gives up puts others that hold it in doubt
            asked.add(name)
            try:
                tally.withdrawn += _take_back(connection, path, source, listed[name], clock)
            except SourceBusy:
                raise
            except SourceError as failure:  # asked again in the next pass
                failed(failure, listed[name].scope)
                whole = False
    return Listed.of(listed.values(), spared) if whole else None


def note_failure(
    connection: apsw.Connection, path: Path, source: str, failure: SourceError, scope: str | None, now: datetime
) -> None:
    """One event for a failure, however often it is met."""
    if not events.is_known(connection, "source_failed", source, str(failure)):
        with transaction(connection, path):
            events.add(connection, "source_failed", now, source=source, scope=scope, detail=str(failure))


def _is_read(old: streams.Known | None, stream: Stream, place: str) -> bool:
    if old is None or old.expired:
        return False
    return (old.mark, old.losses, old.kind, old.place) == (stream.mark, stream.losses, stream.kind, place)


def _waiting(connection: apsw.Connection, source: MessageSource, listed: Mapping[str, Stream]) -> set[str]:
    """Streams, read to their end, that must be asked what was taken back since they were asked last."""
    return {
        name
        for name, row in streams.known(connection, source.name).items()
        if name in listed and row.mark == listed[name].mark and row.losses != listed[name].losses
    }


def rules_now(rules: clean.Rules) -> str:
    """What is noted of the rules a log was read under."""
    own = "\0".join(rules.never_index_paths)
    return f"{clean.RECIPE}:{hashlib.blake2b(own.encode(), digest_size=8).hexdigest()}" if own else str(clean.RECIPE)


def _begin(
    connection: apsw.Connection, path: Path, source: MessageSource, rules: clean.Rules, keeps: bool, now: datetime
) -> None:
    """Have the log read anew when it was read under other rules, or without keeping texts that are to be kept now."""
    recipe, keeping = f"recipe:{source.name}", f"keep:{source.name}"
    old_recipe, old_keeping = cursors.get(connection, recipe), cursors.get(connection, keeping)
    new_recipe, new_keeping = rules_now(rules), "on" if keeps else "off"
    if (old_recipe, old_keeping) == (new_recipe, new_keeping):
        return
    with transaction(connection, path):
        if old_recipe != new_recipe or keeps:
            streams.read_again(connection, source.name)
        cursors.put(connection, recipe, new_recipe, now)
        cursors.put(connection, keeping, new_keeping, now)


def _take_back(
    connection: apsw.Connection, path: Path, source: MessageSource, stream: Stream, clock: Callable[[], datetime]
) -> int:
    """Erase what the host has taken back of a stream that was just read; returns the number of passages erased."""
    known = streams.known_one(connection, source.name, stream.name)
    if known is None or known.losses == stream.losses:
        return 0
    cursor = own_cursor(cursors.get(connection, cursor_name(source.name, stream.name)))
    erased, after = 0, ""
    while refs := streams.refs(connection, known.id, after, TAKEN_BACK):
        after = refs[-1]
        gone = source.withdrawn(stream, cursor, refs)
        if not gone:
            continue
        with transaction(connection, path):
            orphans: list[int] = []
            touched: set[int] = set()
            for ref in sorted(gone.intersection(refs)):
                ids = passages.passages_of(connection, ref, known.id)
                touched.update(ids)
                for copy, other in [(ref, known.id), *passages.refs_elsewhere(connection, ids, known.id)]:
                    orphans += passages.drop_ref(connection, copy, other)
            streams.doubt(connection, source.name, touched.difference(orphans))
            erase_passages(connection, orphans, clock())
            if orphans:
                detail = f"taken back: {len(orphans)}"
                events.add(connection, "prune", clock(), source=source.name, scope=stream.scope, detail=detail)
        erased += len(orphans)
    with transaction(connection, path):
        streams.set_losses(connection, known.id, stream.losses)
    return erased


@dataclass(slots=True)
class Group:
    """Batches that will share a transaction, and how much that is."""

    reads: list[Read] = field(default_factory=list)
    messages: int = 0
    letters: int = 0

    def add(self, read: Read) -> None:
        self.reads.append(read)
        self.messages += len(read.batch.messages)
        self.letters += sum(len(message.text) for message in read.batch.messages)

    def is_full(self) -> bool:
        return len(self.reads) >= GROUP_STREAMS or self.messages >= GROUP or self.letters >= GROUP_LETTERS


@dataclass(frozen=True, slots=True)
class Read:
    """One batch of one stream, ready to be written. `start` is the cursor it was read from."""

    stream: Stream
    start: str | None
    batch: Batch
    prepared: Sequence[Prepared]
    dropped: Counter[str]


def _reads(
    connection: apsw.Connection, source: MessageSource, stream: Stream, old: streams.Known | None, how: How
) -> Iterator[Read]:
    """The batches of a stream from its cursor to its end. One that is read anew stays whose it was."""
    start, thread = _decode(cursors.get(connection, cursor_name(source.name, stream.name)))
    latest, end = passages.from_ms(thread.at), False
    if start is None and old is not None:
        stream = replace(stream, scope=old.scope)
    while not end:
        batch = source.read(stream, start, BATCH)
        if not batch.end and batch.cursor == start:
            raise SourceDrift(f"{source.name} does not get on in {stream.name}; its adapter is at fault.")
        prepared, dropped = prepare(batch, how, UNDATED if batch.restarted else latest)
        yield Read(stream, start, batch, prepared, dropped)
        start, end = batch.cursor, batch.end
        latest = next((item.message.at for item in reversed(prepared) if item.parts), latest)


def _commit(
    connection: apsw.Connection,
    path: Path,
    source: MessageSource,
    group: Sequence[Read],
    clock: Callable[[], datetime],
    tally: Tally,
    buried_at: tuple[object, ...],
) -> None:
    """Write a group of batches and their cursors in one transaction; many small streams share one wait for the disk.

    buried_at: what was forgotten when the batches were prepared; what is forgotten meanwhile must not come in with them.
    """
    now = clock()
    kept_count = known_count = 0
    with transaction(connection, path):
        if tombstones.state(connection) != buried_at:
            raise DatabaseBusy("something was forgotten while the log was read; try again.")
        seen = Seen.of(connection, source, [item for read in group for item in read.prepared])
        for read in group:
            stream, batch = read.stream, read.batch
            name = cursor_name(source.name, stream.name)
            value = cursors.get(connection, name)
            start, thread = _decode(value)
            if start != read.start:
                raise DatabaseBusy(f"another process moved the cursor {name}; try again.")
            if batch.restarted:
                thread = Thread()
            scope = batch.messages[0].scope if batch.messages else None
            row_id = streams.put(connection, source.name, source.host, source.place, stream, scope)
            written = Written()
            thread = _write(connection, row_id, read, thread, seen, written, now)
            for fault in _fault_details(batch.faults):
                events.add(connection, "skip_line", now, source=source.name, scope=stream.scope, detail=fault)
            new = _encode(batch.cursor, thread)
            if new != value:
                cursors.advance(connection, name, value, new, now)
            counts = read.dropped + Counter({streams.KEPT: written.kept + written.known})
            streams.count(connection, row_id, counts, anew=batch.restarted)
            if batch.renumbered and not events.is_known(connection, "renumber", source.name, batch.renumbered):
                events.add(connection, "renumber", now, source=source.name, scope=stream.scope, detail=batch.renumbered)
            if batch.took_back or (batch.restarted and start is not None):
                streams.set_losses(connection, row_id, streams.IN_DOUBT)
            if batch.end:
                streams.set_mark(connection, row_id, stream.mark)
            kept_count += written.kept
            known_count += written.known
    tally.read += sum(len(read.batch.messages) for read in group)
    tally.kept += kept_count
    for read in group:
        tally.dropped.update(read.dropped)
    tally.dropped.update({"known": known_count} if known_count else {})


def _encode(cursor: str, thread: Thread) -> str:
    return json.dumps([cursor, thread.conversation, thread.passage, thread.at], ensure_ascii=False)


def own_cursor(value: str | None) -> str | None:
    """The source's own cursor in what is stored for a stream."""
    return _decode(value)[0]


def _decode(value: str | None) -> tuple[str | None, Thread]:
    if value is None:
        return None, Thread()
    cursor, conversation, passage, at = json.loads(value)
    return cursor, Thread(conversation, passage, at)


def _fault_details(faults: Sequence[Fault]) -> list[str]:
    details = [f"{fault.reason} at {fault.where}" for fault in faults[:FAULT_EVENTS]]
    if len(faults) > FAULT_EVENTS:
        details.append(f"{len(faults) - FAULT_EVENTS} more up to {faults[-1].where}")
    return details


@dataclass(slots=True)
class Seen:
    """What the store already holds of a group's messages, looked up at once and kept up while the group is written.

    refs            ref → where it stands          said   content key → (at, first part's passage), sorted
    refs_of         passage → its refs among them
    conversations   id → (scope, session, window)
    """

    source: str
    host: str
    refs: dict[str, list[passages.KnownRef]]
    said: dict[bytes, list[tuple[int, int]]]
    refs_of: dict[int, set[str]] = field(default_factory=dict)
    conversations: dict[int, tuple[str, str, str] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: apsw.Connection, source: MessageSource, prepared: Sequence[Prepared]) -> Seen:
        seen = cls(
            source.name,
            source.host,
            passages.refs_known(connection, source.name, [item.message.ref for item in prepared]),
            passages.said(connection, [item.content_key for item in prepared]),
        )
        for ref, known in seen.refs.items():
            for one in known:
                seen.refs_of.setdefault(one.passage_id, set()).add(ref)
        return seen

    def refer(self, ref: str, known: Sequence[passages.KnownRef]) -> None:
        self.refs[ref] = list(known)
        for one in known:
            self.refs_of.setdefault(one.passage_id, set()).add(ref)

    def say(self, content_key: bytes, at: int, passage_id: int) -> None:
        said = self.said.setdefault(content_key, [])
        if (at, passage_id) not in said:
            insort(said, (at, passage_id))

    def forget(self, gone: Collection[int], content_keys: Iterable[bytes]) -> None:
        """These passages are no more."""
        for ref in {ref for passage_id in gone for ref in self.refs_of.pop(passage_id, ())}:
            self.refs[ref] = [one for one in self.refs[ref] if one.passage_id not in gone]
        for key in content_keys:
            if key in self.said:
                self.said[key] = [one for one in self.said[key] if one[1] not in gone]
        self.conversations.clear()


def _write(
    connection: apsw.Connection,
    stream_row: int,
    read: Read,
    thread: Thread,
    seen: Seen,
    written: Written,
    now: datetime,
) -> Thread:
    """Write a batch, count it in `written`; returns where the stream now stands."""
    thread = _still_there(connection, thread)
    newest = max((item.at for item in read.prepared if item.parts and item.message.dated), default=None)
    if newest is not None:
        streams.saw(connection, stream_row, newest)
    for item in read.prepared:
        if _drop_changed(connection, stream_row, item, seen, now):
            thread = _still_there(connection, thread)
        if not item.parts:
            continue
        ids = _known_passages(connection, item, seen, renumbered=bool(read.batch.renumbered))
        expired: list[tuple[str, int, str, bytes, int]] = []
        if ids and not _is_up_to_date(connection, item, ids, seen):
            expired = passages.expired_refs(connection, ids)
            evidence.rename(connection, passages.content_keys(connection, ids), item.content_key)
            _erase(connection, ids, seen, now)
            thread, ids = _still_there(connection, thread), []
        if ids:
            written.known += 1
            conversation = passages.conversation_of(connection, ids[-1])
            if item.message.origin == "participant" and passages.make_participants(connection, ids):
                vectors.bump_generation(connection)
        else:
            conversation = _conversation(connection, read.stream, item, thread, seen)
            ids = _insert(connection, conversation, item, thread)
            seen.say(item.content_key, item.at, ids[0])
            written.kept += 1
        if item.message.origin == "participant":
            passages.make_group(connection, conversation)
        for ref, other, location, text_hash, place in expired:
            passages.add_ref(connection, ref, other, ids[place : place + 1], location, text_hash)
        for passage_id, part in zip(ids, item.parts, strict=False):
            if part.text:
                kept.put(connection, passage_id, part.text)
        _refer(connection, stream_row, item, ids, seen)
        if read.batch.renumbered:
            passages.drop_other_names(connection, ids, stream_row, read.batch.renumbered)
        thread = Thread(conversation, ids[-1], item.at)
    return thread


def _is_up_to_date(connection: apsw.Connection, item: Prepared, ids: Sequence[int], seen: Seen) -> bool:
    """Whether these passages hold the message as it is cleaned and split today; those that only say otherwise are told."""
    made = passages.made(connection, ids)
    if all(one.recipe == clean.RECIPE for one in made):
        return True
    same = len(ids) == len(item.parts) and all(
        one.recipe % PARTS_PLACES == PARTS_VERSION
        and one.content_key in (item.content_key, item.old_key)
        and one.author == item.author
        for one in made
    )
    if same:
        evidence.rename(connection, {one.content_key for one in made}, item.content_key)
        passages.remake(connection, ids, clean.RECIPE, item.content_key)
        seen.say(item.content_key, passages.row(connection, ids[0]).at, ids[0])
    return same


def _refer(connection: apsw.Connection, stream_row: int, item: Prepared, ids: Sequence[int], seen: Seen) -> None:
    ref = item.message.ref
    passages.add_ref(connection, ref, stream_row, ids, item.message.location, item.text_hash)
    others = [known for known in seen.refs.get(ref, ()) if known.stream_id != stream_row]
    own = [passages.KnownRef(ref, stream_row, i, item.text_hash, item.message.scope) for i in ids]
    seen.refer(ref, others + own)


def _still_there(connection: apsw.Connection, thread: Thread) -> Thread:
    """What the cursor remembers may have been erased since: the passage, or the whole conversation."""
    if thread.passage is not None and passages.exists(connection, thread.passage):
        return thread
    if thread.conversation is not None and passages.conversation(connection, thread.conversation) is not None:
        return Thread(thread.conversation, None, thread.at)
    return Thread()


def _drop_changed(connection: apsw.Connection, stream_row: int, item: Prepared, seen: Seen, now: datetime) -> bool:
    """Erase what this stream held under this ref when the host has changed its text, or it is somebody else's now; True
    when something went."""
    known = seen.refs.get(item.message.ref, [])
    held = [ref for ref in known if ref.stream_id == stream_row]
    if all((ref.text_hash, ref.scope) == (item.text_hash, item.message.scope) for ref in held):
        return False
    orphans = passages.drop_ref(connection, item.message.ref, stream_row)
    seen.refs[item.message.ref] = [ref for ref in known if ref.stream_id != stream_row]
    _erase(connection, orphans, seen, now)
    return True


def _erase(connection: apsw.Connection, ids: Sequence[int], seen: Seen, now: datetime) -> None:
    """Erase passages, and take them out of what is `seen`."""
    keys = passages.content_keys(connection, ids)
    erase_passages(connection, ids, now)
    seen.forget(set(ids), keys)


def _known_passages(connection: apsw.Connection, item: Prepared, seen: Seen, *, renumbered: bool) -> list[int]:
    """The passages that already hold this utterance: under its ref, or as another copy of it."""
    message = item.message
    known = seen.refs.get(message.ref, ())
    same = sorted({ref.passage_id for ref in known if (ref.text_hash, ref.scope) == (item.text_hash, message.scope)})
    if same:
        return same
    said = seen.said.get(item.content_key, ())
    if not said:
        return []
    _, slash, entry = message.ref.rpartition("/")
    named = slash + entry if slash and len(entry) >= ENTRY_ID_LENGTH else ""
    for at, passage_id in _nearest(said, item.at):
        candidate = passages.candidate(connection, passage_id, seen.host)
        is_named = bool(named) and passages.has_entry(connection, passage_id, named)
        if candidate.origin == message.origin and (
            is_named or _is_copy(item, candidate, abs(at - item.at), renumbered=renumbered)
        ):
            return passages.parts_of(connection, passage_id)
    around = (item.at - SAME_LONG_TEXT_MS, item.at + SAME_LONG_TEXT_MS)
    copy = passages.other_logs_copy(connection, item.content_key, message.session, seen.source, seen.host, around)
    return [] if copy is None else passages.parts_of(connection, copy)


def _is_copy(item: Prepared, candidate: passages.Candidate, apart: int, *, renumbered: bool) -> bool:
    """Whether a passage of the same speaker with the same content, `apart` milliseconds away, is the same utterance."""
    if not candidate.is_kin:
        return False  # two hosts never log one utterance
    if item.long and renumbered:
        return True
    within = SAME_LONG_TEXT_MS if item.long else SAME_MOMENT_MS
    return item.message.dated and candidate.dated and apart <= within


def _nearest(said: Sequence[tuple[int, int]], at: int) -> list[tuple[int, int]]:
    """The COPIES of `said` (sorted) that are nearest to `at`, nearest first."""
    place = bisect(said, (at, 0))
    around = said[max(0, place - COPIES) : place + COPIES]
    return sorted(around, key=lambda one: (abs(one[0] - at), one[1]))[:COPIES]


def _insert(connection: apsw.Connection, conversation: int, item: Prepared, thread: Thread) -> list[int]:
    message = item.message
    follows = item.follows and thread.passage is not None and conversation == thread.conversation
    previous = thread.passage if follows else None
    ids: list[int] = []
    for number, part in enumerate(item.parts):
        passage_id = passages.add(
            connection,
            conversation_id=conversation,
            previous_id=previous,
            part=number,
            scope=message.scope,
            origin=message.origin,
            author=item.author,
            at=item.at,
            content_key=item.content_key,
            recipe=clean.RECIPE,
            dated=message.dated,
        )
        lexicon.add(connection, passage_id, part.own, part.context if number or follows else "")
        if part.wants_vector:
            vectors.expect(connection, passage_id, item.at)
        ids.append(passage_id)
        previous = passage_id
    return ids


def _conversation(connection: apsw.Connection, stream: Stream, item: Prepared, thread: Thread, seen: Seen) -> int:
    """The conversation that goes on, or a new one after a silence, in a new window or in another session."""
    message = item.message
    identity = (message.scope, message.session, message.window)
    if thread.conversation is not None and item.at - thread.at <= SILENCE_MS:
        if thread.conversation not in seen.conversations:
            seen.conversations[thread.conversation] = passages.conversation(connection, thread.conversation)
        if seen.conversations[thread.conversation] == identity:
            return thread.conversation
    row_id = passages.add_conversation(connection, *identity, stream.kind, item.at)
    seen.conversations[row_id] = identity
    return row_id
