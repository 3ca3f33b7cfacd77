"""A message as its owner typed it: without what is quoted, fenced, pasted or marked up, in words and sentences.

What was taken out leaves a hole, so that the words around it are no neighbours; where a quote ends in doubt, more goes.
Pure; a message too long to be typed costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from clawmark.facts import phrases as p
from clawmark.text import normal

TYPED_LENGTH, TYPED_LINES = 1500, 10
"""What is longer was pasted."""
CODE_LENGTH = 40
"""Longest name in single backticks that still reads as typed."""


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    start: int
    end: int


_FORMAT = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]"
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_APOSTROPHE = re.compile(r"(?<=\w)[‘’ʼ´`′](?=\w)")
HOLE = "\ufffc"
"""Stands for what was taken out, so that the words around it are no neighbours."""

_FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<[a-z!/][^<>\n]{0,200}>")
_CODE = re.compile(r"`([^`\n]*)(`|$)", re.MULTILINE)
_CITED_LINE = re.compile(r"^\s*(?:>|\|).*$", re.MULTILINE)
_STAMPED_LINE = re.compile(r"^\s*\[?\d{1,4}[-:/.]\d{2}(?:[-:/.]\d{2,4})?[\] ,T].*$", re.MULTILINE)
_MAIL_HEAD = re.compile(
    r"^(?:from|to|subject|sent|date|cc|von|an|betreff|gesendet|de|para|asunto|objet|oggetto):", re.MULTILINE
)
_PAIRS = ("“”", "„“", "«»", "‹›", "「」", "『』", "‚‘", "‘’", "»«", "〝〟", "《》", "”“")
_SINGLE_OPEN, _SINGLE_CLOSE = re.compile(r"(?<!\w)'(?=\S)"), re.compile(r"(?<=\S)'(?!\w)")


def plain(text: str) -> str:
    """`text` in normal form, without format characters, with one apostrophe and one line end."""
    if not text.isascii():
        text = _FORMAT.sub("", text)
    return _APOSTROPHE.sub("'", normal(_LINE_END.sub("\n", text)))


def typed_of(text: str) -> str | None:
    """What of a message the owner typed as his own words; None when all of it was pasted."""
    if len(text) > TYPED_LENGTH:
        return None
    text = plain(text).strip()
    if text.count("\n") >= TYPED_LINES or len(text) > 2 * TYPED_LENGTH or len(_MAIL_HEAD.findall(text)) > 1:
        return None
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(HOLE, text)
    if "<" in text:
        text = _without_tagged(text)
    if "`" in text:
        text = _CODE.sub(lambda m: m[0] if m[2] and len(m[1]) <= CODE_LENGTH else HOLE, text)
    text = _STAMPED_LINE.sub(HOLE, _CITED_LINE.sub(HOLE, text))
    return _without_quotes(text)


def _without_tagged(text: str) -> str:
    """From the first tag to the last one is markup that nobody types."""
    tags = list(_TAGGED.finditer(text))
    return text[: tags[0].start()] + HOLE + text[tags[-1].end() :] if tags else text


def _without_quotes(text: str) -> str:
    """From a first opening mark to the last closing one of its kind; what is not closed reaches to the end. Quotes in
    quotes and quotes in a row go as a whole: what stands between them is a miss at most."""
    if '"' in text:
        text = _cut_straight(text)
    for pair in _PAIRS:
        first = text.find(pair[0])
        if first >= 0:
            last = max(text.rfind(pair[1], first + 1), text.rfind(pair[0], first + 1) if pair[1] == "“" else -1)
            text = text[:first] + HOLE + (text[last + 1 :] if last > first else "")
    if "'" in text:
        text = "\n".join(_cut_single(line) for line in text.split("\n"))
    return text


def _cut_straight(text: str) -> str:
    text = re.sub(r'(?<=\d)"(?![^"\n]*")', " ", text)  # inches
    lines = text.split("\n")
    if any(line.count('"') % 2 for line in lines):
        lines = [text]
    cut = []
    for line in lines:
        first, last = line.find('"'), line.rfind('"')
        cut.append(line if first < 0 else line[:first] + HOLE + (line[last + 1 :] if last > first else ""))
    return "\n".join(cut)


def _cut_single(line: str) -> str:
    opening = _SINGLE_OPEN.search(line)
    if opening is None:
        return line
    closing = [m.end() for m in _SINGLE_CLOSE.finditer(line, opening.end())]
    return line[: opening.start()] + HOLE + (line[closing[-1] :] if closing else "")


SPACELESS = re.compile(f"[{p.SPACELESS}]")
_LETTER = (
    rf"(?:(?![{p.SPACELESS}])[\w\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670"
    r"\u0900-\u0963\u0966-\u0dff\u1ab0-\u1aff\u20d0-\u20ff])"
)
_TOKEN = re.compile(
    rf"[a-z][a-z+.-]{{1,20}}://[^\s{HOLE}]*[\w/]"
    rf"|(?:(?<!\S)(?:-(?=\d)|[.@#](?=\w)))?{_LETTER}+(?:(?:[-'.@/&+#%~]|(?<=\d)[,:](?=\d)){_LETTER}+)*[+#%]*"
    rf"|[{p.SPACELESS}]+"
    "|[$£¥€\u20a0-\u20cf\u2190-\u21ff\u2300-\u2bff\u3030\u303d\ufffc\U0001f000-\U0001faff]"
)
KANA = re.compile("[\u3041-\u30ff]")
HANGUL = re.compile("[\uac00-\ud7af]+")
_HAN_FIRST, _HAN_LAST = "\u3400", "\u9fff"


def tokens_of(text: str) -> list[Token]:
    """The words of `text` in normal form: what is joined without a blank is one word (`node.js`, `o'brien`), but for an
    elided article."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        head, apostrophe, tail = match[0].partition("'")
        if apostrophe and tail and head in p.ELISIONS and tail not in ("s", "t", "m", "d"):
            middle = match.start() + len(head) + 1
            found += [Token(head, match.start(), middle), Token(tail, middle, match.end())]
        else:
            found.append(Token(match[0], match.start(), match.end()))
    return found


def words_of(text: str) -> list[str]:
    return [token.text for token in tokens_of(text)]


def opens(text: str, at: int) -> bool:
    """Whether a word may begin at `at`, as far as the character before it tells."""
    if at == 0 or not SPACELESS.match(text[at - 1]):
        return True
    before = text[at - 1]
    if KANA.search(text):
        return before in p.JA_PARTICLES
    if HANGUL.match(before):
        run = re.search("[\uac00-\ud7af]+$", text[max(0, at - 12) : at])
        return not HANGUL.match(text, at) and run is not None and run[0].endswith(tuple(p.KO_AFTER))
    return before in p.ZH_BEFORE


def closes(text: str, at: int) -> bool:
    """Whether a word may end at `at`, as far as what follows tells."""
    if at >= len(text) or not SPACELESS.match(text[at]):
        return True
    hangul = HANGUL.match(text, at)
    if hangul:
        return hangul[0] in p.KO_AFTER
    if KANA.search(text):
        return text[at] in p.JA_PARTICLES or text.startswith(p.JA_AFTER, at)
    return text[at] in p.ZH_AFTER or text.startswith(p.ZH_AFTER_WORDS, at)


def is_word(text: str, start: int, end: int) -> bool:
    """Whether a run of a script without blanks is long enough to be told from part of a word."""
    apart = not any(SPACELESS.match(text[i]) for i in (start - 1, end) if 0 <= i < len(text))
    if apart:
        return not ((start and text[start - 1].isalnum()) or (end < len(text) and text[end].isalnum()))
    if "\u0e00" <= text[start] < "\u1100" or "\u1780" <= text[start] < "\u1800":
        return False
    run = text[start:end]
    if all("\u3041" <= char <= "\u309f" for char in run):
        return len(run) >= 3
    han = _HAN_FIRST <= run[0] <= _HAN_LAST
    return len(run) >= 2 or (han and KANA.search(text) is not None)


@dataclass(frozen=True)
class Sentence:
    """A sentence and how it ends.

    asked    a question mark ended it
    under    the heading ("Things I don't like:") of the list that this is an item of
    """

    text: str
    asked: bool
    under: str = ""
    item: bool = False

    @cached_property
    def tokens(self) -> list[Token]:
        return tokens_of(self.text)

    @cached_property
    def words(self) -> list[str]:
        return [token.text for token in self.tokens]

    @cached_property
    def starts(self) -> list[re.Match[str]]:
        """Where statements of their own begin: at a comma or "and" before "I" or the like."""
        return [match for match in _SEPARATOR.finditer(self.text) if _starts(self.text, match)]

    def statement(self, start: int, end: int) -> tuple[int, int]:
        """The bounds of the statement that holds `start` to `end`. What stands there does not begin one by itself."""
        begun = [match.start() for match in self.starts if self.text[match.end() : start].strip()]
        ended = [match.start() for match in self.starts if match.start() >= end]
        return max(begun, default=0), min(ended, default=len(self.text))


_JOINS = "and|but|because|so|und|aber|weil|denn|pero|porque|y|et|mais|car|perché|mas|maar|want|omdat|и|но|потому"
_SEPARATOR = re.compile(rf"[,;:()\[\]—–\n]|(?<!\S)-(?!\S)|(?<![\w'])(?:{_JOINS})(?![\w'])")
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*•·–]|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_FIELD = re.compile(r"\s*[\w ]{1,30}[:=]\s*\S")
_ENDING = re.compile(
    r"[.!?]+(?=[\s)\]*_]|$|\ufffc|[\U0001f000-\U0001faff])|[。؟।]|[!?](?=\S)|\.{2,}|\n(?=\s*\n)|\x01|;"
)
SPEAKER = re.compile(r"^[ \t]*([^\W\d_]\w*)(?: \w+)?[ \t]*:[ \t]*(?=\S)", re.MULTILINE)


def _starts(text: str, separator: re.Match[str]) -> bool:
    rest = text[separator.end() : separator.end() + 80]
    if separator[0] == "\n" and _FIELD.match(rest):
        return True
    if rest.lstrip().startswith(p.STARTS_SPACELESS):
        return True
    words = words_of(rest)[:5]
    if separator[0] in p.REASONS and words and words[0] in p.REASON_STARTS:
        return True
    while words and words[0] in p.LEADS:
        del words[0]
    if not words:
        return False
    return p.STARTS.stand_at(words, 0) or (separator[0] != "\n" and p.COMMANDS.stand_at(words, 0))


def sentences_of(text: str) -> Iterator[Sentence]:
    """The sentences of a typed text. A line's end is none by itself; an item of a list is a sentence of its own, under
    the heading that a colon ends."""
    heading = ""
    marked = _LIST_MARK.sub("\x01\x02", text)  # an item's start
    for raw, ending in _parts(marked):
        item = raw.lstrip().startswith("\x02")
        body = raw.replace("\x02", " ").strip()
        if not body:
            continue
        if not item:
            heading = ""
        yield Sentence(body, "?" in ending or "؟" in ending or "¿" in raw, heading, item)
        if not item and body.endswith(":"):
            heading = body


def _parts(text: str) -> Iterator[tuple[str, str]]:
    start = 0
    for match in _ENDING.finditer(text):
        if match[0] == "." and (_is_abbreviation(text[start : match.start()]) or _is_day(text, match)):
            continue
        yield text[start : match.start()], match[0]
        start = match.end()
    yield text[start:], ""


_MONTH = re.compile(r"\.\s(?:jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez)")


def _is_day(text: str, end: re.Match[str]) -> bool:
    """ "30. September"."""
    return text[max(0, end.start() - 1) : end.start()].isdigit() and _MONTH.match(text, end.start()) is not None


def _is_abbreviation(before: str) -> bool:
    last = re.search(r"[^\s,;:(]+$", before[-12:])
    return last is not None and (last[0] in p.ABBREVIATIONS or (len(last[0]) == 1 and last[0].isalpha()))
