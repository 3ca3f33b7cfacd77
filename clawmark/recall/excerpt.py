"""Reading passages back: from the source, checked against the stored hash, cleaned anew, cut to the best window.

A passage whose text is gone or no longer the one that was indexed is not shown. Cleaning runs again at read-back, so a
secret rule added today masks what was indexed last year.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import apsw

from clawmark import clean
from clawmark.model import Gone, Message, Wanted, digest
from clawmark.source import MessageSource
from clawmark.store import passages
from clawmark.text import best_window, cut, split

EXCERPT_LENGTH = 400
WINDOW_SOURCE = 20_000
"""How much of a text is searched for the best window when its part number belongs to an older recipe."""


@dataclass(frozen=True, slots=True)
class Live:
    """A passage whose text is there now. `message` says who and when as the row does."""

    passage_id: int
    text: str
    message: Message
    source: str


class Reader:
    """Reads passages back from the sources that hold them."""

    def __init__(self, sources: Mapping[str, MessageSource], rules: clean.Rules) -> None:
        self._sources = sources
        self._rules = rules

    def read(self, connection: apsw.Connection, ids: Sequence[int], *, exact: bool = False) -> list[Live]:
        """The live ones among `ids`, in their order. Raises SourceBusy when a log cannot be read just now.

        A passage that an older recipe made is given with its whole message for text: fit to take an excerpt from, not to
        be embedded or indexed as that part. With `exact` it is left out.
        """
        waiting: dict[int, list[passages.Ref]] = {i: [] for i in ids}
        for ref in passages.refs(connection, ids):
            if not exact or ref.recipe == clean.RECIPE:
                waiting[ref.passage_id].append(ref)
        live: dict[int, Live] = {}
        while round_ := [refs.pop(0) for refs in waiting.values() if refs]:
            for ref, message in self._fetch(round_):
                found = self._checked(ref, message)
                if found is not None:
                    live[ref.passage_id] = found
                    waiting[ref.passage_id] = []
        return [live[i] for i in ids if i in live]

    def old_refs(self, connection: apsw.Connection, ids: Sequence[int]) -> dict[int, str]:
        """Passage id → its message's name in the TypeScript clawmark, for those that its log can name."""
        named: dict[int, str] = {}
        for ref in passages.refs(connection, ids):
            name = getattr(self._sources.get(ref.source), "old_ref", None)
            old = None if name is None else name(ref.stream, ref.location)
            if old is not None:
                named.setdefault(ref.passage_id, old)
        return named

    def _fetch(self, refs: Iterable[passages.Ref]) -> list[tuple[passages.Ref, Message]]:
        by_source: dict[str, list[passages.Ref]] = {}
        for ref in refs:
            by_source.setdefault(ref.source, []).append(ref)
        found: list[tuple[passages.Ref, Message]] = []
        for name, group in by_source.items():
            source = self._sources.get(name)
            if source is None:
                continue
            answers = source.get([Wanted(ref.stream, ref.ref, ref.location) for ref in group])
            found += [(ref, m) for ref, m in zip(group, answers, strict=True) if not isinstance(m, Gone)]
        return found

    def _checked(self, ref: passages.Ref, message: Message) -> Live | None:
        if digest(message.text) != ref.text_hash:
            return None
        message = replace(message, origin=ref.origin, author=ref.author, at=passages.from_ms(ref.at), note="")
        kept = clean.clean(message, self._rules)
        if isinstance(kept, clean.Dropped):
            return None
        if ref.recipe != clean.RECIPE:
            return Live(ref.passage_id, cut(kept.text, WINDOW_SOURCE), message, ref.source)
        parts = split(kept.text)
        return Live(ref.passage_id, parts[ref.part], message, ref.source) if ref.part < len(parts) else None


def excerpt(text: str, wanted: Iterable[str]) -> str:
    """The best window of `text`, at most EXCERPT_LENGTH characters on one line."""
    return best_window(text, wanted, EXCERPT_LENGTH)
