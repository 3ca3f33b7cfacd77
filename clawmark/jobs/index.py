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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import clean
from clawmark.erase import erase_passages
from clawmark.errors import DatabaseBusy, SourceAbsent, SourceBusy, SourceDrift, SourceError
from clawmark.model import Batch, Fault, Message, Progress, Stream, digest
from clawmark.source import MessageSource
from clawmark.store import cursors, events, lexicon, passages, vectors
from clawmark.store.db import transaction
from clawmark.text import canonical, length_in_letters, lexical, split

BATCH = 500
"""Messages asked of a source at once."""

GROUP, GROUP_STREAMS, GROUP_LETTERS = 2_000, 500, 8_000_000
"""Messages, batches of different streams and characters that share a transaction and so one wait for the disk."""

SILENCE_MS = 6 * 3_600_000
"""A longer silence ends a conversation."""

SAME_MOMENT_MS = 2_000
SAME_LONG_TEXT_MS = 600_000
LONG_TEXT = 40
"""Two messages with the same text are one utterance within 2 s, or within 10 minutes when it has 40 characters: a
repeated "ok" and a sentence said again months later stay their own."""

ENTRY_ID_LENGTH = 8
"""A shorter entry id may be a mere count; two of them being equal says nothing."""

COPIES = 4
"""How many earlier utterances of the same text, the nearest in time, are asked whether they are copies."""

VECTOR_LETTERS = 20
"""Shorter passages are found by their words; a vector of "ok, thanks" is near everything."""

FAULT_EVENTS = 20
"""Unreadable entries of one batch that get an event of their own; the rest shares one."""


@dataclass(slots=True)
class Tally:
    """Counts of one pass, for the report."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    failures: list[SourceError] = field(default_factory=list)


@dataclass(slots=True)
class Written:
    """What a group of batches did: messages that are new and known."""

    kept: int = 0
    known: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    own: str
    context: str
    wants_vector: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message ready to be written; `follows` is False where something that was left out stands before it.

    One without parts is left out itself; what an earlier version of it left behind goes.
    """

    message: Message
    at: int
    content_key: bytes
    text_hash: bytes
    author: str | None
    long: bool
    follows: bool
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Thread:
    """Where a stream stands: the conversation that goes on, and the passage that the next one follows."""

    conversation: int | None = None
    passage: int | None = None
    at: int = 0


def index(
    connection: apsw.Connection,
    path: Path,
    source: MessageSource,
    *,
    rules: clean.Rules,
    clock: Callable[[], datetime],
    tally: Tally,
    progress: Progress,
) -> set[str] | None:
    """Read everything that is new; returns the names of all streams that exist now, None where there is no log.

    A stream that cannot be read is put on `tally.failures` and the others go on; a busy source raises SourceBusy.
    """
    known = passages.known_streams(connection, source.name)
    seen: set[str] = set()
    group = Group()

    def flush() -> None:
        nonlocal group
        if group.reads:
            _commit(connection, path, source, group.reads, clock, tally)
            progress("messages", tally.read, None)
            group = Group()

    def failed(failure: SourceError, scope: str | None) -> None:
        tally.failures.append(failure)
        if not events.is_known(connection, "source_failed", source.name, str(failure)):  # not one per try
            with transaction(connection, path):
                events.add(connection, "source_failed", clock(), source=source.name, scope=scope, detail=str(failure))

    try:
        for stream in source.streams():
            if stream.name in seen:
                failed(
                    SourceDrift(f"two streams of {source.name} are called {stream.name}; one is not read."),
                    stream.scope,
                )
                continue
            seen.add(stream.name)
            old = known.get(stream.name)
            if old is not None and (old.mark, old.place) == (stream.mark, source.place):
                continue
            try:
                for read in _reads(connection, source, stream, rules):
                    group.add(read)
                    if group.is_full():
                        flush()
            except SourceBusy:
                raise
            except SourceError as failure:
                failed(failure, stream.scope)
    except SourceBusy:
        flush()
        raise
    except SourceAbsent:
        return None
    except SourceError as failure:  # what could be listed was read; a log that cannot be listed is none that is gone
        failed(failure, None)
    flush()
    return seen


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


def _reads(connection: apsw.Connection, source: MessageSource, stream: Stream, rules: clean.Rules) -> Iterator[Read]:
    """The batches of a stream from its cursor to its end."""
    start = _decode(cursors.get(connection, cursor_name(source.name, stream.name)))[0]
    end = False
    while not end:
        batch = source.read(stream, start, BATCH)
        if not batch.end and batch.cursor == start:
            raise SourceDrift(f"{source.name} does not get on in {stream.name}; its adapter is at fault.")
        yield Read(stream, start, batch, *prepare(batch, rules))
        start, end = batch.cursor, batch.end


def _commit(
    connection: apsw.Connection,
    path: Path,
    source: MessageSource,
    group: Sequence[Read],
    clock: Callable[[], datetime],
    tally: Tally,
) -> None:
    """Write a group of batches and their cursors in one transaction; many small streams share one wait for the disk."""
    now = clock()
    total = Written()
    with transaction(connection, path):
        seen = Seen.of(connection, source.name, [item for read in group for item in read.prepared])
        for read in group:
            stream, batch = read.stream, read.batch
            name = cursor_name(source.name, stream.name)
            value = cursors.get(connection, name)
            start, thread = _decode(value)
            if start != read.start:
                raise DatabaseBusy(f"another process moved the cursor {name}; try again.")
            if batch.restarted:
                thread = Thread()
            row_id = passages.stream_id(connection, source.name, source.place, stream)
            thread = _write(connection, row_id, stream, read.prepared, thread, seen, total, now)
            for fault in _fault_details(batch.faults):
                events.add(connection, "skip_line", now, source=source.name, scope=stream.scope, detail=fault)
            new = _encode(batch.cursor, thread)
            if new != value:
                cursors.advance(connection, name, value, new, now)
            if batch.end:
                passages.set_mark(connection, row_id, stream.mark)
    tally.read += sum(len(read.batch.messages) for read in group)
    tally.kept += total.kept
    for read in group:
        tally.dropped.update(read.dropped)
    tally.dropped.update({"known": total.known} if total.known else {})


def cursor_name(source: str, stream: str) -> str:
    return f"index:{source}:{stream}"


def _encode(cursor: str, thread: Thread) -> str:
    return json.dumps([cursor, thread.conversation, thread.passage, thread.at], ensure_ascii=False)


def _decode(value: str | None) -> tuple[str | None, Thread]:
    if value is None:
        return None, Thread()
    cursor, conversation, passage, at = json.loads(value)
    return cursor, Thread(conversation, passage, at)


def prepare(batch: Batch, rules: clean.Rules) -> tuple[list[Prepared], Counter[str]]:
    """Clean, split and put into lexicon form. Pure; everything costly happens here, outside the transaction."""
    dropped: Counter[str] = Counter(batch.skipped)
    dropped.update(Counter(fault.reason for fault in batch.faults))
    before = None if batch.before is None else clean.clean(batch.before, rules)
    said = lexical(split(before.text)[-1]) if isinstance(before, clean.Kept) else None
    prepared: list[Prepared] = []
    for message in batch.messages:
        result = clean.clean(message, rules)
        if isinstance(result, clean.Dropped):
            dropped[result.reason] += 1
            said = None
            prepared.append(Prepared(message, passages.to_ms(message.at), b"", b"", None, False, False, ()))
            continue
        follows = said is not None
        parts: list[Part] = []
        for text in split(result.text):
            own = lexical(text)
            parts.append(
                Part(own_words(message, result.author, own), said or "", length_in_letters(text) >= VECTOR_LETTERS)
            )
            said = own
        prepared.append(
            Prepared(
                message,
                passages.to_ms(message.at),
                content_key(message, result.text),
                digest(message.text),
                result.author,
                len(result.text) >= LONG_TEXT,
                follows,
                parts,
            )
        )
    return prepared, dropped


_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


def own_words(message: Message, author: str | None, said: str) -> str:
    """The lexicon's own column for text `said` (in lexicon form): date and speaker in words stand before it, so that
    "in May" and a name find what was said then and by whom."""
    at = message.at
    speaker = lexical(author) if author else message.role
    return f"{_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month - 1]} {at.year} {speaker}: {said}"


def content_key(message: Message, text: str) -> bytes:
    """What all copies of one utterance share."""
    said = "\0".join((message.scope, message.origin, canonical(text)))
    return hashlib.blake2b(said.encode(), digest_size=16).digest()


def _fault_details(faults: Sequence[Fault]) -> list[str]:
    details = [f"{fault.reason} at {fault.where}" for fault in faults[:FAULT_EVENTS]]
    if len(faults) > FAULT_EVENTS:
        details.append(f"{len(faults) - FAULT_EVENTS} more up to {faults[-1].where}")
    return details


@dataclass(slots=True)
class Seen:
    """What the store already holds of a group's messages, looked up at once and kept up while the group is written.

    refs            ref → where it stands          said   content key → (at, first part's passage), sorted
    conversations   id → (scope, session, window)
    """

    refs: dict[str, list[passages.KnownRef]]
    said: dict[bytes, list[tuple[int, int]]]
    conversations: dict[int, tuple[str, str, str] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: apsw.Connection, source: str, prepared: Sequence[Prepared]) -> Seen:
        return cls(
            passages.refs_known(connection, source, [item.message.ref for item in prepared]),
            passages.said(connection, [item.content_key for item in prepared]),
        )


def _write(
    connection: apsw.Connection,
    stream_row: int,
    stream: Stream,
    prepared: Sequence[Prepared],
    thread: Thread,
    seen: Seen,
    written: Written,
    now: datetime,
) -> Thread:
    """Write a batch, count it in `written`; returns where the stream now stands."""
    thread = _still_there(connection, thread)
    for item in prepared:
        if _drop_changed(connection, stream_row, item, seen, now):
            thread = _still_there(connection, thread)
        if not item.parts:
            continue
        ids = _known_passages(connection, item, seen)
        if ids:
            written.known += 1
            conversation = passages.conversation_of(connection, ids[-1])
        else:
            conversation = _conversation(connection, stream, item, thread, seen)
            ids = _insert(connection, conversation, item, thread)
            insort(seen.said.setdefault(item.content_key, []), (item.at, ids[0]))
            written.kept += 1
        _refer(connection, stream_row, item, ids, seen)
        thread = Thread(conversation, ids[-1], item.at)
    return thread


def _refer(connection: apsw.Connection, stream_row: int, item: Prepared, ids: Sequence[int], seen: Seen) -> None:
    ref = item.message.ref
    passages.add_ref(connection, ref, stream_row, ids, item.message.location, item.text_hash)
    others = [known for known in seen.refs.get(ref, ()) if known.stream_id != stream_row]
    seen.refs[ref] = others + [passages.KnownRef(ref, stream_row, i, item.text_hash, item.message.scope) for i in ids]


def _still_there(connection: apsw.Connection, thread: Thread) -> Thread:
    """What the cursor remembers may have been erased since: the passage, or the whole conversation."""
    if thread.passage is not None and passages.exists(connection, thread.passage):
        return thread
    if thread.conversation is not None and passages.conversation(connection, thread.conversation) is not None:
        return Thread(thread.conversation, None, thread.at)
    return Thread()


def _drop_changed(connection: apsw.Connection, stream_row: int, item: Prepared, seen: Seen, now: datetime) -> bool:
    """Erase what this stream held under this ref when the host has changed its text; True when something went."""
    known = seen.refs.get(item.message.ref, [])
    if not any(ref.stream_id == stream_row and ref.text_hash != item.text_hash for ref in known):
        return False
    orphans = passages.drop_ref(connection, item.message.ref, stream_row)
    keys = passages.content_keys(connection, orphans)
    erase_passages(connection, orphans, now)
    seen.refs[item.message.ref] = [ref for ref in known if ref.stream_id != stream_row]
    for key in keys & seen.said.keys():
        seen.said[key] = [one for one in seen.said[key] if one[1] not in orphans]
    seen.conversations.clear()
    return True


def _known_passages(connection: apsw.Connection, item: Prepared, seen: Seen) -> list[int]:
    """The passages that already hold this utterance: under its ref, or as another copy of it."""
    known = seen.refs.get(item.message.ref, ())
    same = sorted(
        {ref.passage_id for ref in known if (ref.text_hash, ref.scope) == (item.text_hash, item.message.scope)}
    )
    if same:
        return same
    within = SAME_LONG_TEXT_MS if item.long else SAME_MOMENT_MS
    _, slash, entry = item.message.ref.rpartition("/")
    named = bool(slash) and len(entry) >= ENTRY_ID_LENGTH
    for at, passage_id in _nearest(seen.said.get(item.content_key, ()), item.at):
        if abs(at - item.at) <= within or (named and passages.has_entry(connection, passage_id, slash + entry)):
            return passages.parts_of(connection, item.content_key, at)
    return []


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
