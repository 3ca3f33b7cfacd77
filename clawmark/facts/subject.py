"""What a key is about: `pref.editor` and `user.editor` are two keys of one thing. Pure.

Two answers. By `same_subject` a statement moves under another key, says a fact again or ends one, so it is narrow: in
doubt two keys are two things, whose statements stand side by side. `may_be_same_subject` is wide, for it takes nothing
away: it warns, and has wait what an extractor or an agent says.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Final

from clawmark import keys

QUALIFIERS: Final = frozenset(
    """
    home current main primary preferred favourite favorite default usual own personal my user the of is a text code full
    new
    """.split()
)
"""What a key's last part may hold or leave out and perhaps be about the same. Any other word makes it another thing:
`user.work_address` is not `user.address`, `pref.editor_theme` is not `pref.theme`."""

_SAYING_NOTHING: Final = frozenset("current own my the usual default".split())
_OF_TASTE: Final = frozenset("favourite favorite preferred preference".split())
"""They say nothing among preferences. The city that somebody likes best is not the one they live in."""
_KINDS: Final = {"editor": frozenset(("text", "code"))}
"""What a word may have before it and be the same. A text model is no code model."""

_OF_THE_PERSON: Final = frozenset(("user", "pref"))


def same_subject(key: str, other: str) -> bool:
    """Whether two keys are surely about one thing: `pref.editor` and `user.editor`, `user.current_city` and `user.city`."""
    if not _are_joined(key, other) or _middle(key) != _middle(other):
        return False
    of_taste = _OF_TASTE if keys.prefix(key) == keys.prefix(other) == "pref" else frozenset()
    return _telling(key, _SAYING_NOTHING | of_taste) == _telling(other, _SAYING_NOTHING | of_taste)


def names_of(key: str) -> frozenset[str]:
    """The key, and keys that its subject goes by: two keys of one subject have a name in common. One name is not enough:
    `pref.drink` is about the same as `user.drink`, and as `pref.favourite_drink`, but these two are two things."""
    prefix = keys.prefix(key)
    if prefix not in _OF_THE_PERSON:
        return frozenset((key, _name(prefix, key, _SAYING_NOTHING)))
    names = {key, _name("user", key, _SAYING_NOTHING)}
    if prefix == "pref":
        names.add(_name("pref", key, _SAYING_NOTHING | _OF_TASTE))
    return frozenset(names)


def _name(prefix: str, key: str, dropped: frozenset[str]) -> str:
    return ".".join(filter(None, (prefix, _middle(key), "_".join(_telling(key, dropped)))))


def may_be_same_subject(key: str, other: str) -> bool:
    """Whether two keys are, or may be, about one thing: `user.home_address` and `user.address`, `user.allergies` and
    `user.allergy`."""
    return same_subject(key, other) or (_are_joined(key, other) and _named_by(key) == _named_by(other))


def _are_joined(key: str, other: str) -> bool:
    one, two = keys.prefix(key), keys.prefix(other)
    return one == two or {one, two} <= _OF_THE_PERSON


def _middle(key: str) -> str:
    return key.rpartition(".")[0].partition(".")[2]


def _telling(key: str, dropped: frozenset[str]) -> list[str]:
    """The words of a key's last part, in their order, without those that tell nothing."""
    words = keys.last_words(key)
    told = [word for word in words if word not in dropped] or words
    return [word for word, head in zip_longest(told, told[1:], fillvalue="") if word not in _KINDS.get(head, ())]


def _named_by(key: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a key that tell what it may be about, in any order: of its middle parts, and of its last one."""
    last = keys.last_words(key)
    middle = keys.words(key)[: -len(last)]
    return _singulars(middle) - QUALIFIERS, _singulars(last) - QUALIFIERS or _singulars(last)


def _singulars(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_singular, words))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word
