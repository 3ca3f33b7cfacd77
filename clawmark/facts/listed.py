"""Words and phrases that are looked for among the tokens of a text: the one reader of tables of words.

A table is written as people spell; `form` brings it into the form of the texts it meets. A `*` at the end of a single
word stands for any ending, and has no place elsewhere: there it would never match. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clawmark.text import normal

_FIRST_SPACELESS = "\u0e00"


class Phrases:
    """Words and phrases, separated by commas.

    spaceless   those of scripts without blanks are `parts`, found wherever they stand in a text; else words like others
    """

    def __init__(self, *listed: str, form: Callable[[str], str] = normal, spaceless: bool = True) -> None:
        self._heads: dict[str, list[tuple[str, ...]]] = {}
        stems: list[str] = []
        parts: list[str] = []
        for phrase in (" ".join(form(one).split()) for table in listed for one in table.split(",")):
            if not phrase:
                continue
            head, *tail = phrase.split()
            stem = phrase.removesuffix("*")
            is_part = spaceless and head[0] >= _FIRST_SPACELESS
            if "*" in stem or (stem != phrase and (is_part or tail or not stem)):
                raise ValueError(f"a * stands at the end of a single word, not as in {phrase!r}")
            if is_part:
                parts.append(phrase)
            elif stem != phrase:
                stems.append(stem)
            else:
                self._heads.setdefault(head, []).append(tuple(tail))
        self._stems, self.parts = tuple(stems), tuple(parts)

    def holds(self, word: str) -> bool:
        """Whether a word is one of them by itself."""
        return () in self._heads.get(word, ()) or word.startswith(self._stems)

    def length_at(self, tokens: Sequence[str], index: int) -> int:
        """How many tokens the longest of them that begins at `index` has; 0 when none does."""
        if index >= len(tokens):
            return 0
        token = tokens[index]
        longest = 1 if self._stems and token.startswith(self._stems) else 0
        for tail in self._heads.get(token, ()):
            if len(tail) >= longest and tuple(tokens[index + 1 : index + 1 + len(tail)]) == tail:
                longest = 1 + len(tail)
        return longest

    def stand_at(self, tokens: Sequence[str], index: int) -> bool:
        return self.length_at(tokens, index) > 0

    def first(self, tokens: Sequence[str]) -> int | None:
        """Where the first of them begins."""
        if not self._stems and self._heads.keys().isdisjoint(tokens):
            return None  # of most tables nothing stands in a text
        return next((index for index in range(len(tokens)) if self.stand_at(tokens, index)), None)

    def within(self, tokens: Sequence[str], text: str = "") -> bool:
        """Whether one stands among the tokens, or in the text as a phrase of a script without spaces."""
        return self.first(tokens) is not None or (bool(text) and any(part in text for part in self.parts))
