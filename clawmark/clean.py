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
from clawmark.text import PARTS_VERSION, without_surrogates

VERSION = 2

RECIPE = VERSION * 10_000 + secrets.RULES_VERSION * 100 + PARTS_VERSION
"""How a passage's text came about. Part numbers hold within one recipe: a new rule can move every border behind it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The text memory may use: stripped, masked, never blank; and the speaker's name, one masked line."""

    text: str
    author: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    reason: str


@dataclass(frozen=True, slots=True)
class Rules:
    """What a person adds to the fixed rules: a message that names one of these paths, or was said while the host worked
    below one, is left out whole."""

    never_index_paths: Sequence[str] = ()


AUTHOR_LENGTH = 80
SKIP_MARKS = ("[clawmark:skip]", "[historian:skip]")

_TIME_ENVELOPE = re.compile(r"\A\s*\[[A-Z][a-z]{2} \d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?(?: [^\]\n]{1,40})?\][ \t]*")
_SYSTEM_LINE = re.compile(r"^System: \[[^\]\n]{1,80}\][^\n]*(?:\n|\Z)", re.MULTILINE)
_METADATA = re.compile(
    r"^[A-Z][\w ,'()/-]{2,80} \(untrusted[^)\n]{0,60}\):[ \t]*\n```(?:json)?[ \t]*\n.{0,4000}?\n```[ \t]*(?:\n+|\Z)",
    re.MULTILINE | re.DOTALL,
)
_INTERNAL = re.compile(r"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>.*?(?:<<<END_OPENCLAW_INTERNAL_CONTEXT>>>|\Z)", re.DOTALL)
_OTHER_MEMORIES = re.compile(
    r"<(relevant-memories|hindsight_memories|active_memory_plugin|recalled-memories|memory-context)\b[^>]{0,200}>.*?(?:</\1>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_SYSTEM_REMINDER = re.compile(r"<system-reminder\b[^>]{0,200}>.*?(?:</system-reminder>|\Z)", re.DOTALL | re.IGNORECASE)
_WINDOWS = re.compile(r"[a-zA-Z]:|\\\\")
_PRIVATE_TAG = re.compile(r"<(?P<close>/)?private\b[^>]{0,100}>", re.IGNORECASE)
_RUNTIME_LINE = re.compile(r"^Runtime: agent=[^\n]{1,400}\|[^\n]{0,400}(?:\n|\Z)", re.MULTILINE)


def clean(message: Message, rules: Rules = Rules()) -> Kept | Dropped:
    """What memory may keep of `message`, or the reason why it keeps nothing."""
    if message.origin == "host":
        return Dropped(message.note or "host")
    if any(_lies_under(message.folder, path) for path in rules.never_index_paths):
        return Dropped("never_index_path")
    result = _allowed(message.text, rules)
    if isinstance(result, Dropped):
        return result
    author = secrets.mask(markers.defuse(message.author))[:AUTHOR_LENGTH].strip() if message.author else None
    return Kept(result, author or None)


QUERY_HEAD, QUERY_TAIL = 24_000, 8_000
"""Characters of a prompt that are cleaned."""


def query(text: str, rules: Rules = Rules()) -> str:
    """`text` of a prompt as it may be searched with and embedded; "" where a message like it would be left out.

    Of a very long one head and tail alone: far more than is asked with, so nothing that is cut in two is near it.
    """
    if len(text) > QUERY_HEAD + QUERY_TAIL:
        head, tail = text[:QUERY_HEAD], text[-QUERY_TAIL:]
        if any(mark in text.lower() for mark in SKIP_MARKS) or any(path in text for path in rules.never_index_paths):
            return ""
        text = f"{head}\n{tail}"
    return again(text, rules)


def again(text: str, rules: Rules = Rules()) -> str:
    """A text that was cleaned once, as today's rules leave it; "" where they leave nothing."""
    result = _allowed(text, rules)
    return "" if isinstance(result, Dropped) else result


def _allowed(text: str, rules: Rules) -> str | Dropped:
    """What may be kept of a text, masked. Private regions go first: what is stripped after them could hold their tags."""
    text = without_surrogates(text)
    lowered = text.lower()
    if any(mark in lowered for mark in SKIP_MARKS):
        return Dropped("skip_mark")
    if any(path in text for path in rules.never_index_paths):
        return Dropped("never_index_path")
    if "<private" in lowered:
        text = _without_private(text)
        if not text.strip():
            return Dropped("private")
    text = _without_private(markers.strip(without_envelopes(text))).strip()
    return secrets.mask(text) if text else Dropped("blank")


def _lies_under(folder: str, path: str) -> bool:
    """Whether a folder is `path` or lies below it, name by name. A path that is not absolute may begin anywhere."""
    foreign = _is_windows(folder) or _is_windows(path)  # which knows no case
    names, ruled = (_names(one.casefold() if foreign else one) for one in (folder, path))
    last = 0 if path.startswith("/") or _is_windows(path) else len(names) - len(ruled)
    return bool(ruled) and any(names[start : start + len(ruled)] == ruled for start in range(last + 1))


def _names(path: str) -> list[str]:
    return [name for name in re.split(r"[/\\]+", path) if name not in ("", ".")]


def _is_windows(path: str) -> bool:
    return _WINDOWS.match(path) is not None


def _without_private(text: str) -> str:
    """`text` without `<private>` regions: nested ones count, one that is not closed reaches to the end."""
    if "<" not in text:
        return text
    kept: list[str] = []
    position = depth = 0
    for tag in _PRIVATE_TAG.finditer(text):
        if tag["close"]:
            depth = max(0, depth - 1)
            position = tag.end() if depth == 0 else position
        else:
            if depth == 0:
                kept.append(text[position : tag.start()])
            depth += 1
    return "".join(kept) + (text[position:] if depth == 0 else "")


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
    if "<" in text and "system-reminder" in text.lower():
        text = _SYSTEM_REMINDER.sub("", text)
    return text
