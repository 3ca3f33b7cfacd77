"""What a key is about: `pref.editor` and `user.editor` are two keys of one thing. Pure.

What is stated newly under another key of a known subject then meets what is known of it. In doubt two keys are about
two things: their statements stand side by side, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from clawmark import keys

QUALIFIERS: Final = frozenset(
    """
    home current main primary preferred favourite favorite default usual own personal my user the of is a text code full
    new
    """.split()
)
"""What a key's last part may hold or leave out and be about the same. Any other word may make it another thing:
`user.work_address` is not `user.address`, `pref.editor_theme` is not `pref.theme`."""

_OF_THE_PERSON: Final = frozenset(("user", "pref"))


def same_subject(key: str, other: str) -> bool:
    """Whether two keys are about one thing: `pref.editor` and `user.editor`, `user.home_address` and `user.address`."""
    one, two = keys.prefix(key), keys.prefix(other)
    if one != two and not {one, two} <= _OF_THE_PERSON:
        return False
    return _named_by(key) == _named_by(other)


def _named_by(key: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a key that tell what it is about: of its middle parts, and of its last one."""
    last = keys.last_words(key)
    middle = keys.words(key)[: -len(last)]
    return _singulars(middle) - QUALIFIERS, _singulars(last) - QUALIFIERS or _singulars(last)


def _singulars(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_singular, words))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word
