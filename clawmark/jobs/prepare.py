"""What one batch of messages becomes before it is written: cleaned, split, put into lexicon form, named. Pure.

Everything costly happens here, outside the transaction. What is left out is left out here, and counted by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from clawmark import clean
from clawmark.model import Batch, Message, digest
from clawmark.store.passages import content_key, to_ms
from clawmark.store.tombstones import Tombstones
from clawmark.text import VECTOR_LETTERS, length_in_letters, lexical, split

LONG_TEXT = 40
"""Characters from which on a text is unlikely to be said twice within minutes."""

EARLIEST, MOST_AHEAD = datetime(2000, 1, 1, tzinfo=UTC), timedelta(days=1)
"""A message said before the one, or later from now than the other, was stamped by a clock that was wrong."""

UNDATED = datetime(1970, 1, 1, tzinfo=UTC)
"""When something was said that nobody dated, where nothing stands before it: so it is never taken for the newest."""


@dataclass(frozen=True, slots=True)
class Part:
    """`text` is "" where no text is kept."""

    own: str
    context: str
    wants_vector: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message ready to be written; `follows` is False where something that was left out stands before it.

    One without parts is left out itself; what an earlier version of it left behind goes. old_key: the content key as
    cleaners before version 2 made it.
    """

    message: Message
    at: int
    content_key: bytes
    old_key: bytes
    text_hash: bytes
    author: str | None
    long: bool
    follows: bool
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class How:
    """keep_text: whether the text itself is kept too. deleted: (scope, session) of what the person deleted elsewhere.
    forgotten: what the person had forgotten here. is_known: whether a message with this content key is kept already."""

    rules: clean.Rules
    now: datetime
    keep_text: bool = False
    deleted: Collection[tuple[str, str]] = ()
    forgotten: Tombstones | None = None
    is_known: Callable[[bytes], bool] = lambda _: False

    def is_forgotten(self, message: Message, text: str) -> bool:
        if not self.forgotten:
            return False
        key = content_key(message.scope, message.role, text)
        if self.forgotten.is_forgotten(message.scope, message.session, key, message.at):
            return True
        return self.forgotten.is_stated(message.scope, text, message.at) and not self.is_known(key)


def prepare(batch: Batch, how: How, latest: datetime = UNDATED) -> tuple[list[Prepared], Counter[str]]:
    """The messages of a batch, ready to be written, and what was left out, by reason.

    latest: when the last kept message before them was said.
    """
    dropped: Counter[str] = Counter(batch.skipped)
    dropped.update(Counter(fault.reason for fault in batch.faults))
    before = None if batch.before is None else clean.clean(batch.before, how.rules)
    said = lexical(split(before.text)[-1]) if isinstance(before, clean.Kept) else None
    speaker = None if batch.before is None else batch.before.origin
    prepared: list[Prepared] = []
    for logged in batch.messages:
        message = plausible(logged, latest, how.now)
        result = clean.clean(message, how.rules)
        if (message.scope, message.session) in how.deleted:
            result = clean.Dropped("deleted_session")
        elif isinstance(result, clean.Kept) and how.is_forgotten(message, result.text):
            result = clean.Dropped("forgotten")
        if isinstance(result, clean.Dropped):
            dropped[result.reason] += 1
            said = None
            prepared.append(Prepared(message, to_ms(message.at), b"", b"", b"", None, False, False, ()))
            continue
        latest = message.at
        follows = said is not None
        if speaker == "participant" != message.origin:
            said = ""  # a participant's words lend nothing to what is recalled outside of the conversation
        speaker = message.origin
        parts: list[Part] = []
        for text in split(result.text):
            own = lexical(text)
            wants_vector = length_in_letters(text) >= VECTOR_LETTERS
            words = own_words(message, result.author, own)
            parts.append(Part(words, said or "", wants_vector, text if how.keep_text else ""))
            said = own
        prepared.append(
            Prepared(
                message,
                to_ms(message.at),
                content_key(message.scope, message.role, result.text),
                content_key(message.scope, message.origin, result.text),
                digest(message.text),
                result.author,
                len(result.text) >= LONG_TEXT,
                follows,
                parts,
            )
        )
    return prepared, dropped


def plausible(message: Message, before: datetime, now: datetime) -> Message:
    """`message`, or without a date when its time cannot be: then at the time of what stands before it."""
    if message.dated and EARLIEST <= message.at <= now + MOST_AHEAD:
        return message
    at = message.at if not message.dated and message.at <= now else before
    return replace(message, at=at, dated=False)


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
    if not message.dated:
        return f"{speaker}: {said}"
    return f"{_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month - 1]} {at.year} {speaker}: {said}"
