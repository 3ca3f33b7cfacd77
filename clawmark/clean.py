"""The one step between a logged message and what memory may keep of it.

What is dropped here is never indexed, embedded, extracted, stored, shown or sent; what is kept has its secrets masked.
The same step runs when a text is read back, so what was stored under older rules is shown under the newest. VERSION
changes with every rule that could change a result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clawmark.guard import markers, secrets
from clawmark.model import Message
from clawmark.text import without_surrogates

VERSION = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """The text memory may use: stripped, masked, never blank. `masked` counts the secrets in it."""

    text: str
    masked: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    reason: str


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person adds to the fixed rules: a message naming one of these paths is left out whole."""

    never_index_paths: Sequence[str] = ()


SKIP_MARKS = ("[clawmark:skip]", "[historian:skip]")

_TIME_ENVELOPE = re.compile(r"\A\s*\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?(?: [^\]\n]{1,40})?\][ \t]*")
_SYSTEM_LINE = re.compile(r"^System: \[[^\]\n]{1,80}\][^\n]*(?:\n|\Z)", re.MULTILINE)
_METADATA = re.compile(
    r"^[A-Z][\w ,'()/-]{2,80} \(untrusted[^)\n]{0,60}\):[ \t]*\n```(?:json)?[ \t]*\n.*?\n```[ \t]*(?:\n+|\Z)",
    re.MULTILINE | re.DOTALL,
)
_INTERNAL = re.compile(r"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?(?:<<<END_OPENCLAW_INTERNAL_CONTEXT>>>|\Z)", re.DOTALL)
_OTHER_MEMORIES = re.compile(
    r"<(relevant-memories|hindsight_memories|active_memory_plugin|recalled-memories|memory-context)\b[^>]*>.*?(?:</\1>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
_RUNTIME_LINE = re.compile(r"^Runtime: agent=[^\n]{1,400}\|[^\n]{0,400}(?:\n|\Z)", re.MULTILINE)


def clean(message: Message, rules: Rules = Rules()) -> Kept | Dropped:
    """What memory may keep of `message`, or the reason why it keeps nothing."""
    if message.origin == "host":
        return Dropped(message.note or "host")
    text = without_envelopes(without_surrogates(message.text))
    text = markers.strip(text)
    lowered = text.lower()
    if any(mark in lowered for mark in SKIP_MARKS):
        return Dropped("skip_mark")
    if "<private>" in lowered:
        text = _PRIVATE.sub("", text)
        if not text.strip():
            return Dropped("private")
    if any(path in text for path in rules.never_index_paths):
        return Dropped("never_index_path")
    text = text.strip()
    if not text:
        return Dropped("blank")
    found = secrets.find(text)
    return Kept(_masked(text, found), len(found))


def query(text: str) -> str:
    """`text` of a prompt as it may be searched with and embedded: stripped like a message, secrets masked."""
    text = markers.strip(without_envelopes(without_surrogates(text)))
    return secrets.mask(_PRIVATE.sub("", text))


def without_envelopes(text: str) -> str:
    """`text` without what the host or another plugin put around the person's or the agent's words."""
    if "(untrusted" in text:
        text = _METADATA.sub("", text)
    text = _TIME_ENVELOPE.sub("", text, count=1)
    if "System: [" in text:
        text = _SYSTEM_LINE.sub("", text)
    if "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>" in text:
        text = _INTERNAL.sub("", text)
    if "Runtime: agent=" in text:
        text = _RUNTIME_LINE.sub("", text)
    if "memor" in text and "<" in text:
        text = _OTHER_MEMORIES.sub("", text)
    return text


def _masked(text: str, found: Sequence[secrets.Secret]) -> str:
    if not found:
        return text
    pieces: list[str] = []
    position = 0
    for secret in found:
        pieces += (text[position : secret.start], f"[REDACTED:{secret.kind}]")
        position = secret.end
    return "".join([*pieces, text[position:]])
