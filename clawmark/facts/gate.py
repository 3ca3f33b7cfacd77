"""The gate: what a key and a value must be. Refusals carry a stable code and a reason, never the value."""

from __future__ import annotations

from clawmark import keys
from clawmark.errors import Refused
from clawmark.guard import markers, secrets
from clawmark.keys import VALUE_LENGTH
from clawmark.text import without_surrogates


def key(raw: str) -> str:
    """`raw` as a key: `Pref.Editor` is `pref.editor`, `pref.x y` and `pref.x-y` are `pref.x_y`. Raises Refused KEY_FORMAT."""
    spelled = keys.spelled(raw)
    fault = keys.fault(spelled)
    if fault is not None:
        raise Refused("KEY_FORMAT", fault)
    return spelled


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
