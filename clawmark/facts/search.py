"""Finding facts by words. Pure: facts in, facts out."""

from __future__ import annotations

from collections.abc import Sequence

from clawmark import keys
from clawmark.model import Fact
from clawmark.text import content_words, stem, words

MOST_FOUND = 50


def about(query: str, facts: Sequence[Fact]) -> list[Fact]:
    """Facts that share a content word with `query` in key or value, those that share most first."""
    wanted = {stem(word) for word in content_words(query)}
    scored = [(len(wanted & _stems_of(fact)), fact) for fact in facts]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].key, pair[1].scope))
    return [fact for _, fact in best[:MOST_FOUND]]


def _stems_of(fact: Fact) -> set[str]:
    return {stem(word) for word in words(f"{keys.read(fact.key, whole=True)} {fact.value}")}
