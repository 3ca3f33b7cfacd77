"""What a key and a value must be, whoever states them: the person, an agent, an extractor or a file that comes in.

A key is spelled in one way; neither it nor its value, nor what both say together, holds a secret. Refusals carry a
stable code and a reason, never the value. Light, so that whatever takes a statement can ask at once: what may become of
one that an extractor claims needs tables of words, and stands in `gate`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from clawmark import keys
from clawmark.errors import Refused
from clawmark.guard import markers, secrets
from clawmark.keys import VALUE_LENGTH
from clawmark.text import without_surrogates


def statement(raw_key: str, raw_value: str) -> tuple[str, str]:
    """A key and its value in their one form, for whoever states them. Raises Refused KEY_FORMAT, VALUE_SIZE or SECRET,
    the last also for what is a secret by its key alone: `hunter2` under `user.password`."""
    spelled, text = key(raw_key), value(raw_value)
    found = [secret for said in _together(spelled, text) for secret in secrets.find(said)]
    if found:
        raise Refused("SECRET", f"the value is a secret by its key ({found[0].kind}); it was not stored")
    return spelled, text


def _together(spelled: str, text: str) -> Iterator[str]:
    """What a key and its value say in one."""
    read = keys.read(spelled)
    yield from (f"{read}: {text}", f"{read} is {text}")


def named(raw: str) -> str:
    """`raw` as a key by which something stored is named, to forget, hide or explain it: its format alone is judged, for
    what was stored long ago must be found. Raises Refused KEY_FORMAT."""
    spelled = keys.spelled(raw)
    fault = keys.fault(spelled)
    if fault is not None:
        raise Refused("KEY_FORMAT", fault)
    return spelled


def key(raw: str) -> str:
    """`raw` as a key: `Pref.Editor` is `pref.editor`, `pref.x y` and `pref.x-y` are `pref.x_y`. Raises Refused
    KEY_FORMAT, or SECRET for one that holds a secret."""
    spelled = named(raw)
    found = [secret.kind for part in _readings(raw) for secret in secrets.find(part)]
    if found or _is_random(spelled):
        kind = found[0] if found else "random"
        raise Refused("SECRET", f"the key holds a secret ({kind}); choose another key, this one was not stored")
    return spelled


def _readings(raw: str) -> Iterator[str]:
    """A key as it is and in its parts: a secret that a dot or an underscore leads up to is one all the same."""
    yield raw
    for part in raw.split("."):
        yield part
        yield from part.split("_")
        yield part.replace("_", "-")
    yield " ".join(re.split(r"[._]+", raw)[1:])


LEAST_RANDOM, LEAST_CHANGES = 16, 4
"""Characters, and changes between letters and digits, of what is left of a secret in a key: small letters, pieces."""
_LEADS_UP: Final = frozenset("glpat gocspx dckr ghp gho ghu ghs ghr xoxb xoxp xoxa xoxr hf shpat".split())
"""Words that only secrets begin with."""


def _is_random(spelled: str) -> bool:
    """Whether a key mixes letters and digits as no name does, in one word or in what separators left of one."""
    words = keys.words(spelled)
    if not _LEADS_UP.isdisjoint(words[:-1]):
        return True
    mixed = [word for word in words if _changes(word) > 1]
    if any(len(word) >= LEAST_RANDOM for word in mixed):
        return True
    return sum(map(len, mixed)) >= LEAST_RANDOM and sum(map(_changes, mixed)) >= LEAST_CHANGES


def _changes(word: str) -> int:
    return sum(one.isdigit() != other.isdigit() for one, other in pairwise(word))


def value(raw: str) -> str:
    """`raw` without outer blanks. Raises Refused VALUE_SIZE for a blank or long one, SECRET for one that holds a
    secret."""
    text = without_surrogates(raw).strip()
    if len(text) > VALUE_LENGTH:
        raise Refused("VALUE_SIZE", f"a value has at most {VALUE_LENGTH} characters; this one has {len(text)}")
    if not markers.defuse(text):
        raise Refused("VALUE_SIZE", "the value is blank")
    found = secrets.find(text)
    if found:
        raise Refused("SECRET", f"the value holds a secret ({found[0].kind}); it was not stored")
    return text
