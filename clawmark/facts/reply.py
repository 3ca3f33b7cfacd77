"""Reads an extraction model's reply: whatever it is wrapped in, whole facts are taken and torn ones dropped.

Small models reason aloud, fence, explain, rename the wrapper, repeat themselves and are cut off; hostile text makes them
do worse. So the caps come first, only whole objects count, and an object is guessed at (json-repair) when nothing at all
could be read as it stands. What is read is still nobody's word: the gate decides. Pure.

Why an item is refused, as counted in `Reply.refused`:

    broken       not whole, or no object      key         no text            value   no text or number, or blank
    confidence   no number within 0 and 1     uncited     names no message   unquoted   no quote
    size         longer than what it can be   repeated    the same again     left_out   more than MOST_FACTS
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from clawmark.errors import ReplyUnusable
from clawmark.facts.prompt import MOST_FACTS
from clawmark.keys import KEY_LENGTH, VALUE_LENGTH
from clawmark.model import Candidate
from clawmark.text import without_surrogates

MOST_CHARACTERS = 200_000
"""Of a longer reply the head is read."""
MOST_TRIES = 200
"""So many places are tried that could be the beginning of something."""
MOST_REPAIRS, REPAIR_LENGTH = 40, 8000
MOST_DEPTH = 4
"""How deep a wrapper may lie in others."""

_NAMES = "key|value|confidence|messages|quote"
_QUOTE = "[\"'“”‘’]?"
_ITEM = re.compile(rf"\{{\s*{_QUOTE}(?:{_NAMES}){_QUOTE}\s*:", re.IGNORECASE)
_BEGINNING = re.compile(rf"{_ITEM.pattern}|[\[{{](?=\s*[\"\[{{\]}}])", re.IGNORECASE)
_WRAPPERS: Final = ("facts", "memories", "items", "data", "results", "candidates", "output")
_NO_FACTS = re.compile(
    rf"\{{\s*{_QUOTE}(?:{'|'.join(_WRAPPERS)}){_QUOTE}\s*:\s*(?:\[\s*\]|null|None)\s*,?\s*\}}", re.IGNORECASE
)
_FENCES = re.compile(r"```[a-z]*", re.IGNORECASE)
_BROKEN_ESCAPE = re.compile(r"\\u(?![0-9a-fA-F]{4})")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,6}(?:\.0)?")


@dataclass(frozen=True, slots=True)
class Reply:
    """refused: rule → how many items."""

    candidates: tuple[Candidate, ...]
    refused: Mapping[str, int]


def read(text: str) -> Reply:
    """The facts of a reply. Raises ReplyUnusable when it holds neither a fact nor the word that there is none."""
    answer = _final(text[:MOST_CHARACTERS])
    items, refused = _items(answer)
    seen: set[Candidate] = set()
    kept: list[Candidate] = []
    for number, item in enumerate(items):
        if len(kept) >= MOST_FACTS:
            refused["left_out"] += len(items) - number
            break
        candidate = _candidate(item)
        if isinstance(candidate, str):
            refused[candidate] += 1
        elif candidate in seen:
            refused["repeated"] += 1
        else:
            seen.add(candidate)
            kept.append(candidate)
    return Reply(tuple(kept), dict(refused))


# --- what of a reply is the answer ------------------------------------------------------------------------------------

_THOUGHTS = "think(?:ing)?|thoughts?|reason(?:ing)?|reflection|analysis|scratchpad"
_EDGE = re.compile(
    rf"<(?P<close>/)?(?:{_THOUGHTS})>|\[(?P<close2>/)?THINK\]|◁(?P<close3>/)?think▷"
    r"|<\|channel>thought|(?P<close4><channel\|>)",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<name>\w{1,20})[^<]{0,60}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|channel|call)\|>")
_SPOKEN_CHANNEL, _SPOKEN_FINAL = "analysis", "assistantfinal"


def _final(text: str) -> str:
    """`text` without what the model thought before it answered. What is JSON from its beginning is all answer."""
    start = text.lstrip("\ufeff \t\r\n")
    if start[:1] in ("{", "[", '"'):
        value = _decoded(start)
        if isinstance(value, str) and not isinstance(value, _Number):
            return value  # JSON in JSON
        if value is not None:
            return start
    return _without_thoughts(_without_channels(text))


def _without_channels(text: str) -> str:
    """The final channel of a reply in several; where there is none, what stands before the first."""
    channels = list(_CHANNEL.finditer(text))
    final = next((channel for channel in reversed(channels) if channel["name"] == "final"), None)
    if final is not None:
        end = _CHANNEL_END.search(text, final.end())
        return text[final.end() : end.start() if end else len(text)]
    if channels:
        return text[: channels[0].start()]
    if text.lstrip().startswith(_SPOKEN_CHANNEL):  # the marks left out, the names of the channels still there
        return text.rpartition(_SPOKEN_FINAL)[2]
    return text


def _without_thoughts(text: str) -> str:
    """A closing mark without an opening one ends a thought that began before the reply; an open one reaches to the end."""
    kept: list[str] = []
    position = 0
    opened: int | None = None
    for edge in _EDGE.finditer(text):
        if any(edge[name] for name in ("close", "close2", "close3", "close4")):
            if opened is None:
                kept.clear()
            else:
                kept.append(text[position:opened])
            position, opened = edge.end(), None
        elif opened is None:
            opened = edge.start()
    kept.append(text[position : len(text) if opened is None else opened])
    return "".join(kept)


# --- what of an answer is an item -------------------------------------------------------------------------------------


class _Number(str):
    """A number as it was written: 1.50 stays 1.50, and thousands of digits cost nothing."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=lambda constant: None, strict=False)


def _decoded(text: str) -> Any:
    """The JSON value that `text` begins with; None where there is none."""
    try:
        return _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _items(answer: str) -> tuple[list[Any], Counter[str]]:
    """The items of the first wrapper that has some, else whole items wherever they stand, else repaired ones."""
    loose: list[Any] = []
    broken: list[int] = []
    is_empty = bool(_NO_FACTS.search(answer)) or _FENCES.sub("", answer).strip() == "[]"
    for start, value in _values(answer):
        if value is None:
            broken.append(start)
            continue
        wrapped = _wrapped(value, 0)
        if wrapped:
            return wrapped, Counter()
        if _is_item(value):
            loose.append(value)
    if loose:
        return loose, +Counter(broken=len(broken))
    if broken:
        return _repaired(answer, broken)
    if not is_empty:
        raise ReplyUnusable("the model's reply holds no facts that can be read.")
    return [], Counter()


def _values(answer: str) -> Iterator[tuple[int, Any]]:
    """Every JSON value that begins outside of another one, with its place; None for an item that cannot be read."""
    position = tries = 0
    while tries < MOST_TRIES and (found := _BEGINNING.search(answer, position)):
        try:
            value, position = _DECODER.raw_decode(answer, found.start())
        except (ValueError, RecursionError):
            tries += 1
            position = found.start() + 1
            if _ITEM.match(answer, found.start()):
                yield found.start(), None
        else:
            if value is not None:
                yield found.start(), value


def _wrapped(value: Any, depth: int) -> list[Any]:
    """The items in a wrapper, by its usual names first; [] where it is none."""
    if isinstance(value, list):
        return value if any(_is_item(item) for item in value) else []
    if not isinstance(value, dict) or depth >= MOST_DEPTH or _is_item(value):
        return []
    named = {name.strip().lower(): member for name, member in value.items()}
    for name in (*_WRAPPERS, *named):
        member = named.get(name)
        found = [member] if _is_item(member) else _wrapped(member, depth + 1)
        if found:
            return found
    return []


def _is_item(value: Any) -> bool:
    return isinstance(value, dict) and not {"key", "value"}.isdisjoint(name.strip().lower() for name in value)


def _repaired(answer: str, starts: list[int]) -> tuple[list[Any], Counter[str]]:
    """What json-repair makes of each item that ends. One that was cut off would be completed with what nobody said."""
    from json_repair import repair_json

    items: list[Any] = []
    for start, following in zip(starts[:MOST_REPAIRS], [*starts[1:], len(answer)], strict=False):
        end = answer.rfind("}", start, min(following, start + REPAIR_LENGTH)) + 1
        piece = answer[start:end]
        if not piece or _BROKEN_ESCAPE.search(piece):
            continue
        try:
            value = _decoded(repair_json(piece))
        except (ValueError, RecursionError):
            continue
        if _is_item(value):
            items.append(value)
    if not items:
        raise ReplyUnusable("the model's reply holds no fact that is whole.")
    return items, +Counter(broken=len(starts) - len(items))


# --- one item ---------------------------------------------------------------------------------------------------------


def _candidate(item: Any) -> Candidate | str:
    """The candidate, or the rule by which it is refused."""
    if not isinstance(item, dict):
        return "broken"
    named = {name.strip().lower(): member for name, member in item.items()}
    key, value, quote = _text(named.get("key")), _text(named.get("value"), number=True), _text(named.get("quote"))
    confidence, cited = _confidence(named.get("confidence")), _cited(named.get("messages"))
    if not key:
        return "key"
    if not value:
        return "value"
    if confidence is None:
        return "confidence"
    if not cited:
        return "uncited"
    if not quote:
        return "unquoted"
    if len(key) > KEY_LENGTH or max(len(value), len(quote)) > VALUE_LENGTH:
        return "size"
    return Candidate(key, value, confidence, cited, quote)


def _text(raw: Any, *, number: bool = False) -> str:
    if not isinstance(raw, str) or (isinstance(raw, _Number) and not number):
        return ""
    return without_surrogates(str(raw)).strip()


def _confidence(raw: Any) -> float | None:
    if not isinstance(raw, _Number):
        return None
    confidence = float(raw)
    return confidence if 0 <= confidence <= 1 else None


def _cited(raw: Any) -> tuple[int, ...]:
    """Numbers, or texts that are one; what is neither names nothing."""
    given = raw if isinstance(raw, list) else [raw]
    found = [int(float(each)) for each in given if isinstance(each, str) and _WHOLE_NUMBER.fullmatch(each.strip())]
    return tuple(dict.fromkeys(found))
