"""Reading passages back: from the source, checked against the stored hash, cleaned anew, cut to the best window.

A passage whose text is gone or no longer the one that was indexed is not shown. Cleaning runs again at read-back, so a
secret rule added today masks what was indexed last year.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
    """A passage whose text is there now."""

    passage_id: int
    text: str
    message: Message
    source: str


class Reader:
    """Reads passages back from the sources that hold them."""

    def __init__(self, sources: Mapping[str, MessageSource], rules: clean.Rules, recipe: int) -> None:
        self._sources = sources
        self._rules = rules
        self._recipe = recipe

    def read(self, connection: apsw.Connection, ids: Sequence[int]) -> list[Live]:
        """The live ones among `ids`, in their order. Raises SourceBusy when a log cannot be read just now."""
        waiting: dict[int, list[passages.Place]] = {i: [] for i in ids}
        for place in passages.places(connection, ids):
            waiting[place.passage_id].append(place)
        live: dict[int, Live] = {}
        while round_ := [places.pop(0) for places in waiting.values() if places]:
            for place, message in self._fetch(round_):
                text = self._text(place, message)
                if text is not None:
                    live[place.passage_id] = Live(place.passage_id, text, message, place.source)
                    waiting[place.passage_id] = []
        return [live[i] for i in ids if i in live]

    def _fetch(self, places: Iterable[passages.Place]) -> list[tuple[passages.Place, Message]]:
        by_source: dict[str, list[passages.Place]] = {}
        for place in places:
            by_source.setdefault(place.source, []).append(place)
        found: list[tuple[passages.Place, Message]] = []
        for name, group in by_source.items():
            source = self._sources.get(name)
            if source is None:
                continue
            answers = source.get([Wanted(place.stream, place.ref, place.location) for place in group])
            found += [(p, m) for p, m in zip(group, answers, strict=True) if not isinstance(m, Gone)]
        return found

    def _text(self, place: passages.Place, message: Message) -> str | None:
        if digest(message.text) != place.text_hash:
            return None
        kept = clean.clean(message, self._rules)
        if isinstance(kept, clean.Dropped):
            return None
        if place.recipe != self._recipe:
            return cut(kept.text, WINDOW_SOURCE)
        parts = split(kept.text)
        return parts[place.part] if place.part < len(parts) else None


def excerpt(text: str, wanted: Iterable[str]) -> str:
    """The best window of `text`, at most EXCERPT_LENGTH characters on one line."""
    return best_window(text, wanted, EXCERPT_LENGTH)
