"""Text as memory handles it: normal forms, words, parts, cuts. Pure functions.

Two forms of one word meet in `normal`; scripts written without spaces are split into overlapping pairs of characters,
since a tokenizer would take a whole run for one word; no cut ever falls inside a visible character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar, cast

import apsw.unicode

PART_LENGTH = 1200
"""Longest passage, in characters. Long units rank badly (a needle drowns) and models embed at most some 500 tokens."""
PARTS_VERSION = 1
"""Changes with every rule that moves a border between parts."""

PART_OVERLAP = 150
"""What two neighbouring parts share, so that a sentence at their border is whole in one of them."""

STATEMENT_STEMS = 3
"""From so many on a value says by itself what it is about; a shorter one says it together with its key."""

STOP_WORDS = frozenset(
    """
    a about again all also am an and any are as at be been being but by can could did do does doing done for from
    get got had has have having he her here hers him his how i if in into is it its just let like me mine my no nor not
    of off on once only or our ours out over own same shall she should so some such than that the their theirs them
    then there these they this those to too under until up us very was we were what when where which while who whom
    whose why will with would you your yours
    don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn ain s t d m re ve ll
    """.split()
)
"""English function words that a question is made of. Left in, BM25 ranks by them (measured: a tenth of the recall)."""

_CJK = "\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0002fa1f"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_WORD = re.compile(r"\w+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def normal(text: str) -> str:
    """NFKC, case-folded: `Straße` and `STRASSE`, `ﾌﾟﾘﾝﾀ` and `プリンタ`, `é` in one or two code points become one."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def canonical(text: str) -> str:
    """What two copies of one utterance have in common: composed letters, single blanks. Case and words stay."""
    return " ".join((text if text.isascii() else unicodedata.normalize("NFC", text)).split())


def likeness(text: str) -> str:
    """What two spellings of one statement have in common, whatever their case: what it is recognised by when it is said
    again, and when it must not be learned again."""
    return canonical(normal(text))


def without_surrogates(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD: such a string cannot be written as UTF-8 at all."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text


def _pairs(run: str) -> str:
    if len(run) == 1:
        return f" {run} "
    return f" {' '.join(run[i : i + 2] for i in range(len(run) - 1))} "


def lexical(text: str) -> str:
    """The form that enters the lexicon: normal, runs of Han, Kana and Hangul as pairs of characters."""
    if text.isascii():
        return (text if text.isprintable() else _CONTROL.sub(" ", text)).lower()
    return _CJK_RUN.sub(lambda m: _pairs(m[0]), _CONTROL.sub(" ", normal(text)))


def words(text: str) -> list[str]:
    """All words of `text` in order, in lexicon form (CJK runs as pairs)."""
    return _WORD.findall(lexical(text))


def content_words(text: str) -> list[str]:
    """The distinct words of `text` that carry meaning, in order: no function words, no single Latin letters."""
    return [
        word
        for word in dict.fromkeys(words(text))
        if word not in STOP_WORDS and (len(word) > 1 or not word.isascii() or word.isdigit())
    ]


def stem(word: str) -> str:
    """The head of a long Latin word, so that "editors" finds "editor"; what holds a digit is a name or a number, and whole.

    The keyed hashes of `clawmark.store.tombstones` are made of stems: any change here silently un-forgets what is buried.
    """
    return word[:5] if word.isascii() and word.isalpha() and len(word) > 5 else word


def is_number(word: str) -> bool:
    """Whether a word is somebody's or something's own: a number, or a name with digits in it."""
    digits = sum(char.isdigit() for char in word)
    return digits >= 4 or (digits >= 2 and len(word) >= 5)


def stems(text: str) -> frozenset[str]:
    """What a statement is made of, whatever its order and endings: the stems of its content words, or of all its words
    where it has none."""
    return frozenset(map(stem, content_words(text))) or frozenset(words(text))


def query_words(text: str, most: int = 64) -> list[str]:
    """The words to look for: the content words of `text`, or all of them when it has none. At most `most`, head and tail."""
    found = content_words(text) or list(dict.fromkeys(words(text)))
    if len(found) > most:
        found = found[: most // 2] + found[-(most - most // 2) :]
    return found


VECTOR_LETTERS = 20
"""Shorter texts are found by their words; a vector of "ok, thanks" is near everything."""


def count_cjk(text: str) -> int:
    """How many characters of `text` are Chinese, Japanese or Korean."""
    return sum(len(run) for run in _CJK_RUN.findall(text))


def length_in_letters(text: str) -> int:
    """Length in Latin letters' worth: a CJK character says about as much as five of them."""
    if text.isascii():
        return len(text)
    return len(text) + 4 * count_cjk(text)


def jaccard(a: Iterable[str], b: Iterable[str]) -> float:
    """Shared words of two texts over all their words; 0 when both are empty."""
    left, right = set(a), set(b)
    union = len(left | right)
    return len(left & right) / union if union else 0.0


def cut(text: str, limit: int) -> str:
    """The longest head of `text` of at most `limit` code points that ends between visible characters."""
    if len(text) <= limit:
        return text
    return text[: boundary(text, limit)]


def boundary(text: str, at: int) -> int:
    """The last border between visible characters at or before `at`."""
    if at <= 0:
        return 0
    if at >= len(text):
        return len(text)
    start = at
    while start > 0:
        start -= 1
        while start > 0 and at - start < LONGEST_CHARACTER and not _may_begin(text[start]):
            start -= 1
        last = _last_border(text, start, at)
        # What begins at `start` may go on from before; a border found behind it is one.
        if last > start or at - start >= LONGEST_CHARACTER:
            return last
    return 0


def _last_border(text: str, start: int, at: int) -> int:
    """The last border at or before `at`, walking from `start`."""
    piece = text[start : at + 1]  # one more than `at` tells whether a border is there
    last = position = 0
    while position < len(piece):
        last = position
        position = apsw.unicode.grapheme_next_break(piece, position)
    return start + last


LONGEST_CHARACTER = 256
"""How far back the beginning of a visible character is looked for; what is longer is cut inside."""


def _may_begin(char: str) -> bool:
    """Whether a visible character is likely to begin here: no mark, joiner, selector, picture or flag."""
    if char.isascii():
        return char.isalnum() or char in ".,;:!?"
    return unicodedata.category(char) in ("Lo", "Ll", "Lu", "Lt", "Po", "Nd")


def split(text: str, length: int = PART_LENGTH, overlap: int = PART_OVERLAP) -> list[str]:
    """`text` in parts of at most `length` characters that overlap by about `overlap`; whole when it fits.

    Borders fall at a paragraph, else a line, else a sentence, else a blank, else between visible characters: the
    strongest of them that stands in the second half of the part.
    """
    text = text.strip()
    parts: list[str] = []
    start = 0
    while len(text) - start > length:
        end = _border(text, start + length // 2, start + length)
        if end <= start:  # one visible character, longer than a part
            end = start + length
        parts.append(text[start:end].strip())
        back = _border(text, max(start + 1, end - 2 * overlap), end - overlap)
        start = back if back > start else end
    parts.append(text[start:].strip())
    return [part for part in parts if part] or [""]


_BORDERS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?])\s|(?<=[。！？])"), re.compile(r"\s"))


def _border(text: str, low: int, high: int) -> int:
    for pattern in _BORDERS:
        found = [m.end() for m in pattern.finditer(text, low, high)]
        if found:
            return found[-1]
    return boundary(text, high)


def one_line(text: str) -> str:
    """`text` with every run of blanks and line ends as one space."""
    return " ".join(text.split())


def best_window(text: str, wanted: Iterable[str], limit: int) -> str:
    """The stretch of `text` of at most `limit` characters that holds most of the `wanted` words, whole sentences first.

    Cut ends are marked with an ellipsis, which counts towards the limit.
    """
    text = one_line(text)
    if len(text) <= limit:
        return text
    spans = _sentences(text, limit - 2)
    targets = set(wanted)
    weights = [len(targets.intersection(words(text[a:b]))) for a, b in spans]
    best, best_score = (0, 0), -1.0
    for first in range(len(spans)):
        last = first
        while last + 1 < len(spans) and spans[last + 1][1] - spans[first][0] <= limit - 2:
            last += 1
        score = sum(weights[first : last + 1]) + len(
            targets.intersection(words(text[spans[first][0] : spans[last][1]]))
        )
        if score > best_score:
            best, best_score = (first, last), score
    start, end = spans[best[0]][0], spans[best[1]][1]
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    return f"{head}{text[start:end].strip()}{tail}"


_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[。！？；])")


def _sentences(text: str, limit: int) -> list[tuple[int, int]]:
    """Spans of sentences; one longer than half of `limit` is cut at blanks or between visible characters."""
    ends = [m.end() for m in _SENTENCE_END.finditer(text)] + [len(text)]
    spans: list[tuple[int, int]] = []
    start = 0
    for end in ends:
        while end - start > limit // 2:
            middle = _border(text, start + limit // 4, start + limit // 2)
            middle = middle if middle > start else min(end, start + limit // 2)
            spans.append((start, middle))
            start = middle
        if end > start:
            spans.append((start, end))
        start = end
    return spans


# --- what this process remembers of texts -----------------------------------------------------------------------------

F = TypeVar("F", bound=Callable[..., Any])

_remembered: list[Callable[[], None]] = []


def remembered(most: int) -> Callable[[F], F]:
    """Have a function remember its answers about the last texts, until `forget_texts`: they are the person's words."""

    def keeping(function: F) -> F:
        cached = lru_cache(maxsize=most)(function)
        _remembered.append(cached.cache_clear)
        return cast("F", cached)

    return keeping


def forget_texts() -> None:
    """What was read is remembered no longer."""
    for clear in _remembered:
        clear()
