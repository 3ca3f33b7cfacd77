"""Index: messages become passages, words in the lexicon and refs, together with the cursor that covers them.

A batch is read and prepared outside the database and written in one transaction, so a kill at any instant leaves whole
batches only. A message that is already known, by its ref or as another copy of the same utterance, gains a ref and
nothing else: reading a log again changes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import apsw

from clawmark import clean
from clawmark.erase import erase_passages
from clawmark.errors import SourceBusy, SourceError
from clawmark.model import Batch, Fault, Message, Stream, digest
from clawmark.source import MessageSource
from clawmark.store import cursors, events, lexicon, passages, vectors
from clawmark.store.db import transaction
from clawmark.text import canonical, length_in_letters, lexical, split

BATCH = 500
SILENCE = timedelta(hours=6)
"""A longer silence ends a conversation."""

SAME_MOMENT_MS = 2_000
SAME_LONG_TEXT_MS = 600_000
LONG_TEXT = 40
"""Two messages with the same text are one utterance within 2 s, or within 10 minutes when it has 40 characters: a
repeated "ok" and a sentence said again months later stay their own."""

VECTOR_LETTERS = 20
"""Shorter passages are found by their words; a vector of "ok, thanks" is near everything."""

RECIPE = clean.VERSION * 100 + 1
"""How a passage's text came about: cleaning, parts and lexicon form. Part numbers hold within one recipe."""

FAULT_EVENTS = 20
"""Unreadable entries of one batch that get an event of their own; the rest shares one."""


@dataclass(slots=True)
class Tally:
    """Counts of one pass, for the report."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    failures: list[SourceError] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Part:
    own: str
    context: str
    wants_vector: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message ready to be written; `follows` is False where something that was left out stands before it."""

    message: Message
    at: int
    content_key: bytes
    text_hash: bytes
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
    progress: Callable[[str, int], None],
) -> set[str]:
    """Read everything that is new; returns the names of all streams that exist now.

    A stream that cannot be read is put on `tally.failures` and the others go on; a busy source raises SourceBusy.
    """
    known = passages.marks(connection, source.name)
    seen: set[str] = set()
    for stream in source.streams():
        seen.add(stream.name)
        if known.get(stream.name, (0, ""))[1] == stream.mark:
            continue
        try:
            for batch_size in _index_stream(connection, path, source, stream, rules, clock, tally):
                progress("messages", batch_size)
        except SourceBusy:
            raise
        except SourceError as failure:
            tally.failures.append(failure)
            with transaction(connection, path):
                events.add(
                    connection, "source_failed", clock(), source=source.name, scope=stream.scope, detail=str(failure)
                )
    return seen


def _index_stream(
    connection: apsw.Connection,
    path: Path,
    source: MessageSource,
    stream: Stream,
    rules: clean.Rules,
    clock: Callable[[], datetime],
    tally: Tally,
) -> Iterator[int]:
    name = cursor_name(source.name, stream.name)
    end = False
    while not end:
        value = cursors.get(connection, name)
        cursor, thread = _decode(value)
        batch = source.read(stream, cursor, BATCH)
        end = batch.end
        if batch.messages and batch.before is None:
            thread = Thread()  # the source began anew, or begins
        prepared, dropped = prepare(batch, rules)
        with transaction(connection, path):
            row_id = passages.stream_id(connection, source.name, stream)
            thread, kept, repeated = _write(connection, source.name, row_id, stream, prepared, thread)
            for fault in _fault_details(batch.faults):
                events.add(connection, "skip_line", clock(), source=source.name, scope=stream.scope, detail=fault)
            new = _encode(batch.cursor, thread)
            if new != value:
                cursors.advance(connection, name, value, new, clock())
            if end:
                passages.set_mark(connection, row_id, stream.mark)
        tally.read += len(batch.messages)
        tally.kept += kept
        tally.dropped.update(dropped)
        tally.dropped.update({"known": repeated} if repeated else {})
        yield len(batch.messages)


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
    said = split(before.text)[-1] if isinstance(before, clean.Kept) else None
    follows = said is not None
    prepared: list[Prepared] = []
    for message in batch.messages:
        result = clean.clean(message, rules)
        if isinstance(result, clean.Dropped):
            dropped[result.reason] += 1
            said, follows = None, False
            continue
        texts = split(result.text)
        context = said or ""
        parts: list[Part] = []
        for text in texts:
            parts.append(Part(own_words(message, text), lexical(context), length_in_letters(text) >= VECTOR_LETTERS))
            context = text
        prepared.append(
            Prepared(
                message,
                passages.to_ms(message.at),
                content_key(message, result.text),
                digest(message.text),
                len(result.text) >= LONG_TEXT,
                follows,
                parts,
            )
        )
        said, follows = texts[-1], True
    return prepared, dropped


def own_words(message: Message, text: str) -> str:
    """The lexicon's own column: date and speaker in words, so that "in May" and a name find what was said then and by whom."""
    return lexical(f"{message.at:%A} {message.at.day} {message.at:%B %Y} {message.author or message.role}: {text}")


def content_key(message: Message, text: str) -> bytes:
    """What all copies of one utterance share."""
    said = "\0".join((message.scope, message.role, canonical(text)))
    return hashlib.blake2b(said.encode(), digest_size=16).digest()


def _fault_details(faults: Sequence[Fault]) -> list[str]:
    details = [f"{fault.reason} at {fault.where}" for fault in faults[:FAULT_EVENTS]]
    if len(faults) > FAULT_EVENTS:
        details.append(f"{len(faults) - FAULT_EVENTS} more up to {faults[-1].where}")
    return details


def _write(
    connection: apsw.Connection,
    source: str,
    stream_row: int,
    stream: Stream,
    prepared: Sequence[Prepared],
    thread: Thread,
) -> tuple[Thread, int, int]:
    """Write a batch; returns where the stream now stands, and how many messages were new and how many known."""
    thread = _still_there(connection, thread)
    kept = repeated = 0
    for item in prepared:
        ids = _known_passages(connection, source, stream_row, item)
        if ids:
            repeated += 1
        else:
            ids = _insert(connection, stream, item, thread)
            kept += 1
        passages.add_ref(connection, item.message.ref, stream_row, ids, item.message.location, item.text_hash)
        thread = Thread(passages.conversation_of(connection, ids[-1]), ids[-1], item.at)
    return thread, kept, repeated


def _still_there(connection: apsw.Connection, thread: Thread) -> Thread:
    """What the cursor remembers may have been erased since."""
    if thread.passage is None or not passages.exists(connection, thread.passage):
        return Thread()
    return thread


def _known_passages(connection: apsw.Connection, source: str, stream_row: int, item: Prepared) -> list[int]:
    """The passages that already hold this utterance: under its ref, or as another copy of it."""
    known = [ref for ref in passages.refs_known(connection, item.message.ref) if ref.source == source]
    same = sorted({ref.passage_id for ref in known if ref.text_hash == item.text_hash})
    if same:
        return same
    if any(ref.stream_id == stream_row for ref in known):  # its text was changed at the host
        erase_passages(connection, passages.drop_ref(connection, item.message.ref, stream_row))
    within = SAME_LONG_TEXT_MS if item.long else SAME_MOMENT_MS
    twins = passages.twins(connection, item.content_key, item.at, within)
    if not twins:
        entry = item.message.ref.rpartition("/")[2]
        if entry and entry != item.message.ref:
            twins = passages.same_entry(connection, item.content_key, "/" + entry)
    return passages.parts_of(connection, item.content_key, twins[0][1]) if twins else []


def _insert(connection: apsw.Connection, stream: Stream, item: Prepared, thread: Thread) -> list[int]:
    message = item.message
    conversation = _conversation(connection, stream, item, thread)
    follows = item.follows and conversation == thread.conversation
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
            author=message.author,
            at=item.at,
            content_key=item.content_key,
            recipe=RECIPE,
        )
        lexicon.add(connection, passage_id, part.own, part.context if number or follows else "")
        if part.wants_vector:
            vectors.expect(connection, passage_id, item.at)
        ids.append(passage_id)
        previous = passage_id
    return ids


def _conversation(connection: apsw.Connection, stream: Stream, item: Prepared, thread: Thread) -> int:
    message = item.message
    if thread.conversation is not None and item.at - thread.at <= SILENCE / timedelta(milliseconds=1):
        identity = (message.scope, message.session, message.window)
        if passages.conversation(connection, thread.conversation) == identity:
            return thread.conversation
    return passages.add_conversation(connection, message.scope, message.session, message.window, stream.kind, item.at)
