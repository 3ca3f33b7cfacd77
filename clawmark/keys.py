"""The rules of a fact: how its key is spelled and read, what its scope may be, and how long key and value may be. Pure.

One home for what is said now and for what an earlier version stored: a value stands only under a key by which it can be
read, replaced and forgotten.
"""

from __future__ import annotations

import re

PREFIXES = ("user.", "pref.", "lesson.", "project.", "ref.")
"""In the order in which a block shows them: an allergy never falls off the end."""

KEY_LENGTH, VALUE_LENGTH, SCOPE_LENGTH = 100, 2000, 200
_KEY = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+")
_WORD = re.compile(r"[^\W_]+")
_SEPARATORS = re.compile(r"[\s\-]+")


def spelled(raw: str) -> str:
    """`raw` as keys are written: `Pref.Editor` is `pref.editor`, `pref.x y` and `pref.x-y` are `pref.x_y`."""
    return _SEPARATORS.sub("_", raw.strip()).lower()


def fault(key: str) -> str | None:
    """Why `key` is none, in words; None when it is one."""
    if len(key) > KEY_LENGTH:
        return f"a key has at most {KEY_LENGTH} characters"
    if not key.startswith(PREFIXES):
        return f"a key begins with one of {', '.join(PREFIXES)} (for example pref.editor)"
    if not _KEY.fullmatch(key) or not key[-1].isalnum():
        return "a key is made of lower-case letters, digits, _ and dots, and ends in a letter or digit"
    return None


def prefix(key: str) -> str:
    """`pref` of `pref.editor_theme`."""
    return key.partition(".")[0]


def words(key: str, *, whole: bool = False) -> list[str]:
    """The words of a key: `app`, `test`, `port` of `project.app.test_port`. whole: its prefix is one of them."""
    return _WORD.findall(key if whole else key.partition(".")[2])


def last_words(key: str) -> list[str]:
    """The words of a key's last part: `test`, `port` of `project.app.test_port`."""
    return _WORD.findall(key.rpartition(".")[2])


def read(key: str, *, whole: bool = False) -> str:
    """A key as it is read: `app test port` for `project.app.test_port`. whole: with its prefix."""
    return " ".join(words(key, whole=whole))


def scope_fault(scope: str) -> str | None:
    """Why `scope` is none, in words; None when it is one. It is printed as it is, so it cannot hold a line of its own."""
    if not scope.strip() or not scope.isprintable() or len(scope) > SCOPE_LENGTH:
        return f"a scope is a name on one line, of at most {SCOPE_LENGTH} characters"
    return None
