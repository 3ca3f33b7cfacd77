"""Whether a text gives orders to a model: a score of named rules, never a verdict.

Every word list misses paraphrases and hits harmless sentences, so what is flagged here waits for the person; nothing is
dropped because of it, and nothing counts as safe because it is not flagged. A rule is a row of ideas (`orders`) or a
shape that only forged markup has, and is looked for in every reading of the text (`views`). Time grows with the length
of the text; of a text over `LONGEST` characters head and tail are read, and its length is flagged as well.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from clawmark.guard import orders, views

LONGEST = 60_000
"""Longer is nothing that a person typed."""


@dataclass(frozen=True, slots=True)
class Score:
    """The rules that hit, in the order of the tables. Truthy when there is one."""

    rules: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules)


def score(text: str) -> Score:
    """What in `text` reads like an order to a model."""
    hit: set[str] = set()
    if len(text) > LONGEST:
        hit.add("length")
        text = f"{text[: LONGEST // 2]}\n{text[-LONGEST // 2 :]}"
    if views.has_hidden_text(text):
        hit.add("hidden")
    for source in views.sources(text):
        hit.update(name for name, pattern in orders.SHAPES if pattern.search(source))
        for reading in views.disguises(source):
            hit.update(_in_words(reading))
            hit.update(name for name, pattern in orders.RUNS if pattern.search(reading))
    return Score(tuple(name for name in RULES if name in hit))


def ideas(text: str) -> frozenset[str]:
    """The ideas of `orders.CLASSES` that single words of `text` stand for, in any of its readings as it is written."""
    found: set[str] = set()
    for reading in {views.folded(text), views.undone(text)}:
        found.update(_places(reading)[0])
    return frozenset(idea for idea in found if idea.isupper())


RULES = (*orders.RULES, "marker", "markup", "tool", "command", "hidden", "length")
"""Every rule there is."""


# ---------------------------------------------------------------------------------------------------------------------
# Rows of ideas: in the words of a reading
# ---------------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"(?P<address>(?:https?://|www\.)[^\s<>]{1,400}|[^\W_][\w.+-]{0,60}@[\w-]{1,60}\.[\w.-]{2,60}"
    r"|(?<![\w.])(?:[a-z0-9-]{1,60}\.){1,4}"
    r"(?:com|net|org|io|dev|app|ai|co|info|biz|xyz|example|test|site|online|me|ru|cn|de|uk)\b)"
    r"|[^\W_]+|(?P<end>(?<=\S)[.!?;](?=\s|$)|[。！？；])"
)
_LONGEST_WORD = 24
_SHORTEST_TYPO = 5
_ADDRESS = frozenset({"ADDRESS", "OUTSIDE"})
_TWO_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


class _Lexicon:
    """Which ideas a word stands for. A word with two neighbouring letters changed over stands for them as well."""

    def __init__(self) -> None:
        self.words: dict[str, frozenset[str]] = {}
        self.heads: dict[str, frozenset[str]] = {}
        self.pairs: dict[str, frozenset[str]] = {}
        self._firsts: frozenset[str] = frozenset()
        for idea, listed in orders.CLASSES.items():
            for phrase in filter(None, (" ".join(one.split()) for one in listed.split(","))):
                self._learn(phrase, idea)
                self._learn(phrase.translate(_TWO_LETTERS), idea)
        for row in (row for rows in orders.RULES.values() for row in rows):
            for idea in row.split()[::2]:
                if not idea.isupper():
                    self._learn(idea, idea)
        self._firsts = frozenset(pair.split()[0] for pair in self.pairs)
        self._lengths = sorted({len(head) for head in self.heads})
        for table in (self.words, self.heads):
            for word, ideas in list(table.items()):
                for wrong in _changed_over(word):
                    if wrong not in self.words and wrong not in self.heads:
                        table.setdefault(wrong, ideas)

    def _learn(self, phrase: str, idea: str) -> None:
        plain = views.folded(phrase)
        table = self.pairs if " " in plain else self.heads if plain.endswith("*") else self.words
        key = plain.removesuffix("*")
        table[key] = table.get(key, frozenset()) | {idea}

    def ideas(self, word: str) -> frozenset[str]:
        if len(word) > _LONGEST_WORD:
            return frozenset()
        found = self.words.get(word, frozenset())
        for length in self._lengths:
            if length > len(word):
                break
            more = self.heads.get(word[:length])
            if more:
                found = found | more
        return found

    def of_pair(self, first: str, second: str) -> frozenset[str]:
        if first not in self._firsts:
            return frozenset()
        return self.pairs.get(f"{first} {second}", frozenset())


def _changed_over(word: str) -> Iterator[str]:
    if len(word) >= _SHORTEST_TYPO and word.isascii():
        for at in range(len(word) - 1):
            if word[at] != word[at + 1]:
                yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


@cache
def _lexicon() -> _Lexicon:
    """Made when it is first asked: most commands never score a text."""
    return _Lexicon()


@dataclass(frozen=True, slots=True)
class _Row:
    """Ideas in their order, and how far behind the one before each may stand."""

    first: str
    rest: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, written: str) -> _Row:
        parts = written.split()
        return cls(parts[0], tuple((int(gap) + 1, idea) for gap, idea in zip(parts[1::2], parts[2::2], strict=True)))

    def stands_in(self, places: dict[str, list[int]], ends: list[int]) -> bool:
        """Whether the ideas stand in `places` in this order, near enough, with none of `ends` between two of them.

        The last place before an idea is the nearest and has the fewest ends behind it: no other needs a look.
        """
        reached = places.get(self.first)
        for reach, idea in self.rest:
            if not reached:
                return False
            further: list[int] = []
            last = 0
            for place in places.get(idea, ()):
                while last < len(reached) and reached[last] < place:
                    last += 1
                if last and place - reached[last - 1] <= reach and not _is_between(ends, reached[last - 1], place):
                    further.append(place)
            reached = further
        return bool(reached)


def _is_between(ends: list[int], first: int, last: int) -> bool:
    at = bisect_left(ends, first)
    return at < len(ends) and ends[at] < last


_ROWS = tuple((name, tuple(map(_Row.of, rows))) for name, rows in orders.RULES.items())


def _in_words(reading: str) -> Iterator[str]:
    """The rules whose ideas stand together in `reading`."""
    places, ends = _places(reading)
    for name, rows in _ROWS:
        if any(row.stands_in(places, ends) for row in rows):
            yield name


def _places(reading: str) -> tuple[dict[str, list[int]], list[int]]:
    """For each idea the words that stand for it, counted from one; and the words behind which a sentence ends."""
    places: dict[str, list[int]] = {}
    ends: list[int] = []
    lexicon = _lexicon()
    before = ""
    place = 0
    for token in _TOKEN.finditer(reading):
        if token["end"]:
            ends.append(place)
            continue
        place += 1
        word = token[0]
        if token["address"]:
            found = _ADDRESS.union(*map(lexicon.ideas, re.findall(r"[^\W_]+", word)))
        else:
            found = lexicon.ideas(word) | lexicon.of_pair(before, word)
        for idea in found:
            places.setdefault(idea, []).append(place)
        before = word
    return places, ends
