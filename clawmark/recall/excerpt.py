"""Reading passages back: from the source, checked against the stored hash, cleaned anew, cut to the best window.

A passage whose text is gone or no longer the one that was indexed is not shown, unless its host expired the log by age
and its text was kept for that. Cleaning runs again at read-back, so a secret rule added today masks what was indexed last
year.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import apsw

from clawmark import clean
from clawmark.errors import SourceBusy, SourceError
from clawmark.model import Excerpt, Gone, Message, Wanted, digest
from clawmark.source import MessageSource
from clawmark.store import kept, passages
from clawmark.text import best_window, cut, split

log = logging.getLogger("clawmark")

EXCERPT_LENGTH = 400
CLEANED = 8
"""Messages whose cleaned parts are held at once."""

WINDOW_SOURCE = 20_000
"""How much of a text is searched for the best window when its part number belongs to an older recipe."""


@dataclass(frozen=True, slots=True)
class Live:
    """A passage whose text is there now. `message` says who and when as the row does; logged_at: when its log says that
    it was said, None = it does not."""

    passage_id: int
    text: str
    message: Message
    source: str
    logged_at: datetime | None = None


class Reader:
    """Reads passages back from the sources that hold them."""

    def __init__(self, sources: Mapping[str, MessageSource], rules: clean.Rules) -> None:
        self._sources = sources
        self._rules = rules
        self._cleaned: dict[bytes, list[str] | None] = {}

    def read(self, connection: apsw.Connection, ids: Sequence[int], *, exact: bool = False) -> list[Live]:
        """The live ones among `ids`, in their order.

        A log that cannot be read now costs what it alone holds. With `exact` a busy one raises SourceBusy instead, where
        something is not read because of it: what is only not there now must not be taken for gone.

        A passage that an older recipe made is given with its whole message for text: fit to take an excerpt from, not to
        be embedded or indexed as that part. With `exact` it is left out.
        """
        waiting: dict[int, list[passages.Ref]] = {i: [] for i in ids}
        expired: dict[int, passages.Ref] = {}
        for ref in passages.refs(connection, ids):
            if exact and ref.recipe != clean.RECIPE:
                continue
            if ref.expired:
                if ref.source in self._sources:
                    expired[ref.passage_id] = ref
            else:
                waiting[ref.passage_id].append(ref)
        live: dict[int, Live] = {}
        failed: dict[str, SourceError] = {}
        while round_ := [refs.pop(0) for refs in waiting.values() if refs]:
            for ref, message in self._fetch(round_, failed):
                found = self._checked(ref, message)
                if found is not None:
                    live[ref.passage_id] = found
                    waiting[ref.passage_id] = []
        live |= self._kept(connection, [ref for i, ref in expired.items() if i not in live])
        busy = next((why for why in failed.values() if isinstance(why, SourceBusy)), None)
        if exact and busy is not None and len(live) < len(waiting):
            raise busy
        return [live[i] for i in ids if i in live]

    def _kept(self, connection: apsw.Connection, refs: Sequence[passages.Ref]) -> dict[int, Live]:
        """Passages whose log has expired, from the texts that were kept."""
        texts = kept.texts(connection, [ref.passage_id for ref in refs]) if refs else {}
        live: dict[int, Live] = {}
        for ref in refs:
            text = clean.again(texts.get(ref.passage_id, ""), self._rules)
            if text:
                row = passages.row(connection, ref.passage_id)
                at = passages.from_ms(row.at)
                message = Message(
                    ref.ref,
                    ref.stream,
                    row.session,
                    row.scope,
                    row.origin,
                    text,
                    at,
                    author=row.author,
                    dated=row.dated,
                )
                live[ref.passage_id] = Live(ref.passage_id, text, message, ref.source)
        return live

    def old_refs(self, connection: apsw.Connection, ids: Sequence[int]) -> dict[int, str]:
        """Passage id → its message's name in the TypeScript clawmark, for those that its log can name."""
        named: dict[int, str] = {}
        for ref in passages.refs(connection, ids):
            name = getattr(self._sources.get(ref.source), "old_ref", None)
            old = None if name is None else name(ref.stream, ref.location)
            if old is not None:
                named.setdefault(ref.passage_id, old)
        return named

    def _fetch(
        self, refs: Iterable[passages.Ref], failed: dict[str, SourceError]
    ) -> list[tuple[passages.Ref, Message]]:
        """What the sources give; one that fails is noted in `failed` and not asked again."""
        by_source: dict[str, list[passages.Ref]] = {}
        for ref in refs:
            by_source.setdefault(ref.source, []).append(ref)
        found: list[tuple[passages.Ref, Message]] = []
        for name, group in by_source.items():
            source = self._sources.get(name)
            if source is None or name in failed:
                continue
            try:
                answers = source.get([Wanted(ref.stream, ref.ref, ref.location) for ref in group])
            except SourceError as why:
                failed[name] = why
                log.warning("log_unread source=%s reason=%s", name, why)
                continue
            found += [(ref, m) for ref, m in zip(group, answers, strict=True) if not isinstance(m, Gone)]
        return found

    def _checked(self, ref: passages.Ref, message: Message) -> Live | None:
        if digest(message.text) != ref.text_hash:
            return None
        at = passages.from_ms(ref.at)
        logged_at = message.at if message.dated else None
        message = replace(message, origin=ref.origin, author=ref.author, at=at, dated=ref.dated, note="")
        parts = self._parts(ref.text_hash, message)
        if parts is None:
            return None
        if ref.recipe != clean.RECIPE:
            return Live(ref.passage_id, cut("\n".join(parts), WINDOW_SOURCE), message, ref.source, logged_at)
        if ref.part >= len(parts):
            return None
        return Live(ref.passage_id, parts[ref.part], message, ref.source, logged_at)

    def _parts(self, text_hash: bytes, message: Message) -> list[str] | None:
        """A message cleaned and split; None when nothing of it may be kept. A long one is asked for part by part, and
        cleaned once."""
        key = text_hash + message.folder.encode()
        if key not in self._cleaned:
            while len(self._cleaned) >= CLEANED:
                del self._cleaned[next(iter(self._cleaned))]
            allowed = clean.clean(message, self._rules)
            self._cleaned[key] = None if isinstance(allowed, clean.Dropped) else split(allowed.text)
        return self._cleaned[key]


def excerpt_of(live: Live, at: datetime | None = None) -> Excerpt:
    """A message as an excerpt that nothing was asked for; at: when it was said, where that is known better."""
    message = live.message
    said_at = at or (message.at if message.dated else None)
    text = excerpt(live.text, ())
    return Excerpt(message.ref, live.source, message.session, message.role, said_at, text, 0.0, message.author)


def excerpt(text: str, wanted: Iterable[str]) -> str:
    """The best window of `text`, at most EXCERPT_LENGTH characters on one line."""
    return best_window(text, wanted, EXCERPT_LENGTH)
