"""The gate: what a key and a value must be. Refusals carry a stable code and a reason, never the value."""

from __future__ import annotations

import re

from clawmark.errors import Refused
from clawmark.guard import markers, secrets
from clawmark.text import without_surrogates

PREFIXES = ("user.", "pref.", "lesson.", "project.", "ref.")
"""In the order in which a block shows them: an allergy never falls off the end."""

KEY_LENGTH, VALUE_LENGTH = 100, 2000
_KEY = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+")
_SEPARATORS = re.compile(r"[\s\-]+")


def key(raw: str) -> str:
    """`raw` as a key: `Pref.Editor` is `pref.editor`, `pref.x y` and `pref.x-y` are `pref.x_y`. Raises Refused KEY_FORMAT."""
    normal = _SEPARATORS.sub("_", raw.strip()).lower()
    if len(normal) > KEY_LENGTH:
        raise Refused("KEY_FORMAT", f"a key has at most {KEY_LENGTH} characters")
    if not normal.startswith(PREFIXES):
        raise Refused("KEY_FORMAT", f"a key begins with one of {', '.join(PREFIXES)} (for example pref.editor)")
    if not _KEY.fullmatch(normal) or not normal[-1].isalnum():
        raise Refused(
            "KEY_FORMAT", "a key is made of lower-case letters, digits, _ and dots, and ends in a letter or digit"
        )
    return normal


def value(raw: str) -> str:
    """`raw` without outer blanks. Raises Refused VALUE_SIZE for a blank or long one, SECRET for one that holds a secret."""
    text = without_surrogates(raw).strip()
    if len(text) > VALUE_LENGTH:
        raise Refused("VALUE_SIZE", f"a value has at most {VALUE_LENGTH} characters; this one has {len(text)}")
    if not markers.defuse(text):
        raise Refused("VALUE_SIZE", "the value is blank")
    found = secrets.find(text)
    if found:
        raise Refused("SECRET", f"the value holds a secret ({found[0].kind}); it was not stored")
    return text
