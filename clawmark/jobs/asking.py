"""Asking: what an extractor claims of a batch of messages, and what is known of the server behind it.

A model may be down, slow, small or useless. It is asked for an answer again, then for halves, then left, and what was
learned on the way is kept for the next pass: how requests must look, that less fits into one, that no answer could be
used. What was said waits for as long as nobody can be asked. A call of the host's own model costs the person: it counts
before it is made.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Final

import apsw

from clawmark.errors import ClawmarkError, EndpointDown, ReplyUnusable
from clawmark.facts import marked, prompt, reply
from clawmark.llm import Completer, Extractor
from clawmark.model import Candidate, Event, Fact, Utterance
from clawmark.profile import is_trivial
from clawmark.store import cursors, events
from clawmark.store.db import transaction
from clawmark.store.passages import Waiting
from clawmark.text import length_in_letters

SLOW: Final = "extract:slow"
"""Counts answers that took longer than they may: until the end of the day fewer messages are shown at once."""
CALLS: Final = "extract:calls"
"""Counts calls of the host's own model."""

SHORTEST = 10
"""Letters: nothing durable is said in less."""
SECONDS, TOKENS, TRIES = 120.0, 1_500, 2
MOST_CALLS = 16
"""For one batch: enough to find one message of fifty that is to blame."""
MOST_CALLS_IN_DOUBT = 4
"""The same where the last pass ended because no answer could be used."""
UNUSABLE: Final = "unusable"
"""What counts answers that could not be used in the detail of `extract_error`, and begins that of `extract_unavailable`
where none of a server's could."""
SPENT: Final = "spent"
"""Begins the detail of `extract_unavailable` where the host's model was asked as often as a day allows."""


class Spent(EndpointDown):
    """The host's model was asked as often today as the person allows."""


@dataclass(frozen=True, slots=True)
class How:
    """What the settings say of extraction.

    completer   who is asked, None = nobody         why_not   why the model that is named cannot be; then nothing is done
    threshold   confidence from which on a fact is stored       zone   of the person
    daily_calls the most a day of the host's own model          markers   phrases of the person's own
    """

    who: Extractor
    completer: Completer | None
    threshold: float
    promote: str
    zone: tzinfo | None
    daily_calls: int
    markers: Sequence[str] = ()
    why_not: ClawmarkError | None = None

    @property
    def name(self) -> str:
        return self.who.name if self.completer is None else self.completer.name


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages of one session, and all that is shown with them. unread: those that could not be read back."""

    waiting: Sequence[Waiting]
    utterances: Sequence[Utterance]
    unread: Collection[int]

    @property
    def scope(self) -> str:
        return self.waiting[0].scope

    def halves(self) -> list[Batch]:
        """Twice half of what may be cited, each with what stands between: a request half as long, and without its
        neighbour, which may be to blame."""
        citable = [one.number for one in self.utterances if one.citable]
        middle = len(citable) // 2
        return [self._only(citable[:middle]), self._only(citable[middle:])]

    def _only(self, numbers: Sequence[int]) -> Batch:
        shown = [one for one in self.utterances if numbers[0] <= one.number <= numbers[-1]]
        return replace(self, utterances=[replace(one, citable=one.number in numbers) for one in shown])

    @property
    def citable(self) -> list[int]:
        """Passage ids of what may be cited."""
        return [one.passage_id for one in self.utterances if one.citable]

    @property
    def is_one(self) -> bool:
        return len(self.citable) < 2


@dataclass(slots=True)
class Answer:
    """What an extractor claims of a batch, what of its answers could not be used, by rule, and about which utterances
    (passage ids) it gave none that could be."""

    candidates: list[Candidate] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    left: set[int] = field(default_factory=set)

    def __iadd__(self, other: Answer) -> Answer:
        self.candidates += other.candidates
        self.refused += other.refused
        self.left |= other.left
        return self


class Asking:
    """One extractor through one pass."""

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path | None,
        how: How,
        secret: Callable[[], bytes],
        clock: Callable[[], datetime],
        spend: Callable[[], None],
    ) -> None:
        """path None: nothing is written. spend: counts a call of the host's own model."""
        self._connection = connection
        self._spend = spend
        self._path = path
        self._how = how
        self._secret = secret
        self._clock = clock
        self._calls = self._unusable = 0
        self.is_in_doubt = _is_in_doubt(connection)
        """Whether one batch is to tell if answers can be used by now."""
        self._most_calls = MOST_CALLS_IN_DOUBT if self.is_in_doubt else MOST_CALLS
        if how.completer is not None:
            self._learned_under = f"chat:{how.completer.endpoint or how.completer.name}"
            how.completer.learned = self._learned()

    def halvings(self) -> int:
        """How often what is shown at once is halved today: a server that never gets through may do with less of it."""
        return min(cursors.today(self._connection, SLOW, self._clock()), 10)

    def ask(self, batch: Batch, known: Sequence[Fact]) -> Answer:
        """What the extractor claims; nobody is asked about greetings. Raises EndpointDown, EndpointError."""
        if not any(one.citable and _may_say_something(one.text) for one in batch.utterances):
            return Answer()
        completer = self._how.completer
        if completer is None:
            return Answer(marked.marked(batch.utterances, self._how.markers))
        self._calls = self._unusable = 0
        answer = self._got(batch, known, completer, TRIES)
        if self._unusable >= TRIES and not answer.left:
            self._note_slow()  # less of it at once is what it can do
        return answer

    def note_answered(self, now: datetime, *, is_barren: bool) -> None:
        """Keep how requests must look, and that the extractor works again. Belongs inside a transaction."""
        completer = self._how.completer
        if completer is None:
            return
        if completer.learned != self._learned():
            cursors.put(self._connection, self._learned_under, completer.learned, now)
        if not is_barren and unavailable(self._connection) is not None:
            events.add(self._connection, "extract_available", now, source="extract", detail=self._how.name)

    def _got(self, batch: Batch, known: Sequence[Fact], completer: Completer, tries: int) -> Answer:
        """An answer that cannot be used is asked for once more, then by halves down to what is to blame, and so is one
        with more facts than fit. What cannot be used even so is left, and counted."""
        for _ in range(tries):
            if self._calls >= self._most_calls:
                break
            self._calls += 1
            try:
                answer = self._asked(batch, known, completer)
            except ReplyUnusable:
                self._unusable += 1
                continue
            if not answer.refused["left_out"] or batch.is_one:
                return answer
            break
        if batch.is_one or self._calls >= self._most_calls:
            return Answer(refused=Counter({UNUSABLE: 1}), left=set(batch.citable))
        both = Answer()
        for half in batch.halves():
            both += self._got(half, known, completer, 1)
        return both

    def _asked(self, batch: Batch, known: Sequence[Fact], completer: Completer) -> Answer:
        if self._how.who.kind == "host":
            self._count_call()
        first = batch.utterances[0].content_key
        nonce = hmac.digest(self._secret(), b"extract\0" + first, hashlib.sha256).hex()[:8]
        asked = prompt.built(batch.utterances, known, nonce=nonce, zone=self._how.zone)
        began = self._clock()
        try:
            text = completer.complete(asked.system, asked.user, asked.schema, most_tokens=TOKENS, seconds=SECONDS)
        except EndpointDown:
            if (self._clock() - began).total_seconds() >= 0.9 * SECONDS:
                self._note_slow()
            raise
        found = reply.read(text)
        return Answer(list(found.candidates), Counter(found.refused))

    def _count_call(self) -> None:
        count = calls_today(self._connection, self._clock())
        if count >= self._how.daily_calls:
            raise Spent(
                f"the host's model was asked {count} times today; CLAWMARK_EXTRACT_DAILY_CALLS allows no more until"
                " midnight UTC"
            )
        self._spend()

    def _note_slow(self) -> None:
        if self._path is not None:
            with transaction(self._connection, self._path):
                cursors.count_today(self._connection, SLOW, self._clock())

    def _learned(self) -> str:
        return cursors.get(self._connection, self._learned_under) or ""


def calls_today(connection: apsw.Connection, now: datetime) -> int:
    """How often the host's own model was asked today (UTC)."""
    return cursors.today(connection, CALLS, now)


def count_call(connection: apsw.Connection, path: Path, now: datetime) -> None:
    """One call of the host's own model more. It counts before it is made, whoever makes it."""
    with transaction(connection, path):
        cursors.count_today(connection, CALLS, now)


def _may_say_something(text: str) -> bool:
    return length_in_letters(text) >= SHORTEST and not is_trivial(text)


# --- what the trail says of it ----------------------------------------------------------------------------------------

_NONE_CAN_BE_USED: Final = "and none of its answers can be used."
_NUMBERS = re.compile(r"\b\d+(?:\.\d+)? s\b|\d+ times")


def none_usable(name: str) -> ReplyUnusable:
    """What is said of an extractor that answers in vain."""
    return ReplyUnusable(f"{name} answers, {_NONE_CAN_BE_USED}")


def unavailable(connection: apsw.Connection) -> Event | None:
    """The event that says why nobody can be asked; None where somebody can."""
    last = events.last_of(connection, "extract_unavailable", "extract_available")
    return last if last is not None and last.event_type == "extract_unavailable" else None


def reason_of(event: Event) -> str:
    """Why nobody could be asked, for people."""
    return (event.detail or "").removeprefix(f"{UNUSABLE}: ").removeprefix(f"{SPENT}: ")


def is_spent(event: Event) -> bool:
    """Whether an event `extract_unavailable` is about a day's calls of the host's model."""
    return (event.detail or "").startswith(f"{SPENT}: ")


def note_unavailable(connection: apsw.Connection, path: Path, why: ClawmarkError, now: datetime) -> None:
    """One event for each reason while it lasts; the numbers in it may differ."""
    last = unavailable(connection)
    if last is not None and _NUMBERS.sub("", reason_of(last)) == _NUMBERS.sub("", str(why)):
        return
    code = UNUSABLE if isinstance(why, ReplyUnusable) else SPENT if isinstance(why, Spent) else ""
    detail = f"{code}: {why}" if code else str(why)
    with transaction(connection, path):
        events.add(connection, "extract_unavailable", now, source="extract", detail=detail)


def counts_unusable(event: Event) -> bool:
    """Whether an event `extract_error` is about answers that could not be used at all."""
    try:
        counted = json.loads(event.detail or "")
    except ValueError:  # the TypeScript clawmark wrote it
        return False
    return isinstance(counted, dict) and UNUSABLE in counted


def _is_in_doubt(connection: apsw.Connection) -> bool:
    last = unavailable(connection)
    said = "" if last is None else last.detail or ""
    return said.startswith(f"{UNUSABLE}: ") or said.endswith(_NONE_CAN_BE_USED)  # as it was written without that word
