"""The readings of a text: what it says to a model, whatever it was dressed up as. Pure, the standard library alone.

People who hide an order write it with look-alike letters, invisible characters, markup, escapes, digits for letters,
backwards or encoded. `sources` gives the text and what is packed inside it; `disguises` gives each of them in the forms
that undo a costume. What always holds:

- Readings serve matching only. Nothing here is stored, shown or sent.
- There are at most `MOST_SOURCES` sources, and together they are not much longer than the text, so the time that is
  spent on a text grows with its length.
- A word table that went through `folded` meets the words of a reading.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import unquote

MOST_SOURCES = 12
ROUNDS = 3
"""How often what was unpacked is unpacked again."""


def folded(text: str) -> str:
    """One form for all spellings: compatibility letters plain, no case, no accents, no invisible characters."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", _UNSEEN.sub("", plain).translate(_PLAIN))


_UNSEEN = re.compile(
    "[\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u061c\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\ufeff"
    "\uffa0\ufff9-\ufffb\U000e0100-\U000e01ef\U0001bca0-\U0001bca3\U0001d173-\U0001d17a]"
)
"""Accents, and what takes no room: joiners, direction marks, fillers, selectors."""
_PLAIN = {ord(a): b for a, b in zip("ıłøđðħŧ’‘ʼ", "iloddht'''", strict=True)} | {ord("æ"): "ae", ord("œ"): "oe"}


def undone(text: str) -> str:
    """`text` folded, letters of other scripts that look like Latin ones read as those."""
    return folded(text if text.isascii() else text.translate(_LOOKALIKES))


def sources(text: str) -> list[str]:
    """`text` without what only a terminal or a renderer sees, then what is packed in it: in tags' places, escaped, encoded."""
    found = [revealed(text)]
    left = 2 * len(text) + 4_000
    first = 0
    for _ in range(ROUNDS):
        last = len(found)
        for source in found[first:last]:
            for unpack in _UNPACKERS:
                for inner in unpack(source):
                    if len(found) < MOST_SOURCES and len(inner) <= left and inner not in found:
                        left -= len(inner)
                        found.append(inner)
        first = last
    return found


def disguises(source: str) -> Iterator[str]:
    """`source` folded, as it stands and with each costume taken off that it may wear."""
    plain = folded(source)
    yield plain
    forms = [plain]
    latin = undone(source)
    if latin != plain:
        forms.append(latin)
        yield latin
    for form in forms:
        if _LEET.search(form):
            digits = form.translate(_AS_LETTERS)
            yield digits
            if "1" in form or "!" in form or "|" in form:
                yield form.translate(_ONE_AS_L)
        if _SPACED.search(form):
            yield _ALONE.sub(lambda run: re.sub(r"[\W_]", "", run[0]), form)
    if _LETTERS.search(plain):
        yield codecs.encode(plain, "rot13")
    yield plain[::-1]


def has_hidden_text(text: str) -> bool:
    """Whether `text` holds letters or bytes that nobody sees: tag characters outside a flag, rows of selectors, or an
    order to show Latin letters from right to left."""
    if text.isascii():
        return False
    return _HIDDEN.search(_FLAG.sub("", text)) is not None


def revealed(text: str) -> str:
    """`text` without terminal colours, and with the letters that tag characters and selectors carry put into it."""
    if text.isascii():
        return _ANSI.sub("", text) if "\x1b" in text else text
    text = _TAGS.sub(_from_tags, _FLAG.sub("", text))
    text = _SELECTORS.sub(_from_selectors, text)
    return _ANSI.sub("", text).translate(_ENCLOSED)


_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-9;:?]{0,40}[@-~]|\x1b\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)")
_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f")
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_HIDDEN = re.compile(
    "[\U000e0000-\U000e007f]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}|\u202e[^\u202c\u202e]{0,40}[A-Za-z]"
)
_ENCLOSED = {
    first + place: chr(ord("a") + place) for first in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6) for place in range(26)
}
"""Letters in squares and circles, and those that flags are made of."""


def _from_tags(run: re.Match[str]) -> str:
    return " " + "".join(chr(ord(char) - 0xE0000) for char in run[0] if 0x20 <= ord(char) - 0xE0000 < 0x7F) + " "


def _from_selectors(run: re.Match[str]) -> str:
    data = bytes(ord(c) - 0xFE00 if ord(c) < 0x10000 else ord(c) - 0xE0100 + 16 for c in run[0])
    return f" {_readable(data) or ''} "


# ---------------------------------------------------------------------------------------------------------------------
# Packed texts
# ---------------------------------------------------------------------------------------------------------------------

_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_COMMENT = re.compile(r"<!--|-->|/\*|\*/")
_UNICODE_ESCAPE = re.compile(r"\\u\{?([0-9A-Fa-f]{4,6})\}?|\\x([0-9A-Fa-f]{2})|\\([0-7]{3})")
_URL_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_QUOTED_PRINTABLE = re.compile(r"=([0-9A-F]{2})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}={0,6}")
_HEX = re.compile(r"(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ ,:]?){8,}")
_BITS = re.compile(r"(?:[01]{8}[ ,]?){4,}")
_CODES = re.compile(r"(?:\b\d{2,3}[ ,;]+){7,}\d{2,3}\b")
_MOST_RUNS = 6


def _without_tags(source: str) -> Iterator[str]:
    if "<" in source or "*/" in source:
        yield _TAG.sub("", _COMMENT.sub(" ", source))


def _unescaped(source: str) -> Iterator[str]:
    if "\\" in source:
        yield _UNICODE_ESCAPE.sub(_from_escape, source).replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
    if "%" in source and _URL_ESCAPE.search(source):
        yield unquote(source.replace("+", " "), errors="replace")
    if "&" in source:
        yield html.unescape(source)
    if "=" in source and len(_QUOTED_PRINTABLE.findall(source)) >= 4:
        yield _QUOTED_PRINTABLE.sub(lambda m: chr(int(m[1], 16)), source.replace("=\n", ""))


def _from_escape(escape: re.Match[str]) -> str:
    code = int(escape[1] or escape[2], 16) if not escape[3] else int(escape[3], 8)
    return chr(code) if code < 0xD800 or 0xDFFF < code <= 0x10FFFF else " "


def _decoded(source: str) -> Iterator[str]:
    for pattern, decode in _ENCODINGS:
        for count, run in enumerate(pattern.finditer(source)):
            if count == _MOST_RUNS:
                break
            text = _readable(decode(run[0]))
            if text:
                yield text


def _base64(run: str) -> bytes:
    body = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(body[: len(body) - (len(body) % 4 == 1)] + "=" * (-len(body) % 4))
    except (ValueError, binascii.Error):
        return b""


def _base32(run: str) -> bytes:
    body = run.rstrip("=")
    body = body[: len(body) - len(body) % 8 + {0: 0, 1: 0, 2: 2, 3: 2, 4: 4, 5: 5, 6: 5, 7: 7}[len(body) % 8]]
    try:
        return base64.b32decode(body + "=" * (-len(body) % 8))
    except (ValueError, binascii.Error):
        return b""


def _hex(run: str) -> bytes:
    return bytes.fromhex(re.sub(r"0x|\\x|[ ,:]", "", run))


def _bits(run: str) -> bytes:
    return bytes(int(eight, 2) for eight in re.findall(r"[01]{8}", run))


def _codes(run: str) -> bytes:
    return bytes(code for code in map(int, re.findall(r"\d+", run)) if code < 256)


def _readable(data: bytes) -> str | None:
    """`data` as text, when it is nearly all letters and blanks: chance gives that to no run worth looking at."""
    if len(data) < 4:
        return None
    text = data.decode("utf-8", "replace")
    good = sum(char.isalpha() or char in " .,:;!?'\"-_/@\n" for char in text)
    return text if good >= 0.85 * len(text) and "\ufffd" not in text[:-2] else None


_ENCODINGS: tuple[tuple[re.Pattern[str], Callable[[str], bytes]], ...] = (
    (_BITS, _bits),
    (_HEX, _hex),
    (_CODES, _codes),
    (_BASE64, _base64),
    (_BASE32, _base32),
)
_UNPACKERS: tuple[Callable[[str], Iterator[str]], ...] = (_without_tags, _unescaped, _decoded)


# ---------------------------------------------------------------------------------------------------------------------
# Costumes
# ---------------------------------------------------------------------------------------------------------------------

_LETTERS = re.compile(r"[a-z]{3}")
_LEET = re.compile(r"[a-z][0-9@$!|]|[0-9@$!|][a-z]")
_AS_LETTERS = str.maketrans("0134578@$!|", "oieastbasii")
_ONE_AS_L = str.maketrans("0134578@$!|", "oleastbasll")
_SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ ._*·~|+-][^\W_]){3,}(?![^\W_])")
_ALONE = re.compile(r"(?<![^\W_])[^\W_](?:[ ._*·~|+-][^\W_])+(?![^\W_])")
"""At least four letters, each alone, with one sign between them, tell of it: a wider gap is where a word ends."""

_SHAPES = {
    "a": "АаΑαάᎪᴀɑɐ", "b": "ВвΒβᏴʙ", "c": "СсϹϲᏟᴄɔς", "d": "ԁᎠᴅꓒ", "e": "ЕеЁёЄєѐΕεέᎬᴇǝɛ", "f": "ꜰɟϝ", "g": "ɡɢցᏀƃ",
    "h": "НнһΗհᎻʜɥ", "i": "ІіЇїΙιίɩɪᎥᴉǃ", "j": "ЈјᎫᴊյɾ", "k": "КкΚκᏦᴋʞ", "l": "ӏӀɭᏞʟǀ", "m": "МмΜᎷᴍɯ",
    "n": "ΝηήɴПпИиոռ", "o": "ОоΟοόσօᴏՕ", "p": "РрΡρᏢᴘ", "q": "ԛզգ", "r": "гГᎡʀɹяЯꭇ", "s": "ЅѕᏚꜱՏ", "t": "ТтΤτᎢᴛʇ",
    "u": "υύսᴜʋՍμ", "v": "ѴѵνᏙᴠʌ", "w": "ԜԝωώᎳᏔᴡʍա", "x": "ХхΧχ", "y": "УуҮүΥγўЎʏʎ", "z": "ΖᏃᴢʐ",
}  # fmt: skip
_LOOKALIKES = {ord(char): letter for letter, chars in _SHAPES.items() for char in chars}
"""By shape, capitals and small letters apart: `Η` looks like H, `η` like n."""
