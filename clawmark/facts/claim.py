"""A tool call's key and value, ready to be looked for among the words of a message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from clawmark import keys
from clawmark.facts import phrases as p
from clawmark.facts.typed import SPACELESS, Token, closes, is_word, opens, plain, tokens_of
from clawmark.text import normal


class Claim:
    """A call's key and value, ready to be compared."""

    def __init__(self, key: str, value: str) -> None:
        self.key = keys.spelled(key)
        self.prefix = keys.prefix(self.key)
        self.named = frozenset(keys.words(self.key))
        self.subject = frozenset(keys.last_words(self.key))
        self.text = " ".join(plain(value).split()).strip(" .,;:!?。、！？\"'")
        self.written = value.strip(" .,;:!?\"'")
        self.tokens = [token.text for token in tokens_of(self.text)]
        self.spaceless = SPACELESS.search(self.text) is not None

    @property
    def says_something(self) -> bool:
        return any(token not in p.STOP_VALUES for token in self.tokens)

    @property
    def only_symbols(self) -> bool:
        return not re.search(r"\w", self.text)

    @property
    def about_the_owner(self) -> bool:
        return self.prefix in ("user", "pref")

    def names(self, token: str) -> bool:
        """Whether `token` is a word of the key, in any language of the table."""
        bare = token.removesuffix("'s").replace("-", "")
        return bool(
            self.named & {bare, bare.removesuffix("s"), bare + "s"}
            or any(p.CONCEPTS[n].within([bare], bare) for n in self.named & p.CONCEPTS.keys())
            or any(p.PERSONS[n].within([bare], bare) for n in self.named & p.PERSONS.keys())
        )

    def is_subject(self, token: str) -> bool:
        """Whether `token` is a word of the key's last part: "editor" of `pref.editor`."""
        bare = token.removesuffix("'s")
        if self.subject & {bare, bare.removesuffix("s"), bare + "s"}:
            return True
        return any(p.CONCEPTS[n].within([bare], bare) for n in self.subject & p.CONCEPTS.keys())

    def spans(self, text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
        """Where the value stands in `text`, word by word."""
        if self.spaceless:
            yield from self._runs(text)
        else:
            yield from ((start, end) for start, end in self._rows(tokens) if opens(text, start) and closes(text, end))

    def _runs(self, text: str) -> Iterator[tuple[int, int]]:
        start = text.find(self.text)
        while start >= 0:
            end = start + len(self.text)
            if opens(text, start) and closes(text, end) and is_word(text, start, end):
                yield start, end
            start = text.find(self.text, start + 1)

    def _rows(self, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
        wanted = self.tokens
        for first, token in enumerate(tokens[: max(0, len(tokens) - len(wanted) + 1)]):
            if token.text != wanted[0]:
                continue
            at, gap = first, 0
            found = 1
            while found < len(wanted) and at + 1 < len(tokens) and gap <= 2:
                at += 1
                if tokens[at].text == wanted[found]:
                    found, gap = found + 1, 0
                elif tokens[at].text in p.GAPS:
                    gap += 1
                else:
                    break
            if found == len(wanted):
                yield token.start, tokens[at].end


_NAME_BEFORE = re.compile(r"(?<=[^\s.!?:]) ([^\W\d_]\w*) $")
_NAME_AFTER = re.compile(r" ([^\W\d_]\w+)")


def is_part_of_a_name(claim: Claim, raw: str) -> bool:
    """Whether the value stands only inside longer names: York in New York. Capitals tell, where not all are."""
    if claim.spaceless or raw.isupper():
        return False
    places = list(re.finditer(rf"(?<!\w){re.escape(claim.written)}(?!\w)", raw, re.IGNORECASE))
    return bool(places) and all(_is_flanked(claim, raw, place) for place in places)


def _is_flanked(claim: Claim, raw: str, place: re.Match[str]) -> bool:
    if not place[0][:1].isupper():
        return False
    before = _NAME_BEFORE.search(raw, max(0, place.start() - 40), place.start())
    after = _NAME_AFTER.match(raw, place.end())
    return any(
        beside is not None and beside[1][0].isupper() and beside[1] != "I" and not claim.names(normal(beside[1]))
        for beside in (before, after)
    )
