"""What a value looks like, whoever says it: an order, an address, a plain statement, a remark about passing work.

Origin decides what is believed; shape decides what waits for the person although its origin is fine. `risks` names what
may do harm once it stands in a memory. `is_plain` is the opposite and stricter: it says yes only to what reads as a short
attribute or one short statement about somebody, in a language whose orders are known here. In doubt it says no, and no
costs a question. Pure; a value longer than a fact may be is never plain, and patterns are bounded.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from clawmark import keys
from clawmark.facts import manner
from clawmark.facts.listed import Phrases
from clawmark.guard import injection, views
from clawmark.keys import VALUE_LENGTH
from clawmark.text import count_cjk, length_in_letters

RISKS = (
    "injection",
    "imperative",
    "url",
    "email",
    "telephone",
    "address",
    "command",
    "payment",
    "credentials",
    "tools",
    "length",
)
"""The rules of `risks`, in the order in which they are given."""


def risks(value: str) -> tuple[str, ...]:
    """What in `value` makes it wait for the person when anybody but they themselves states it."""
    found = {"injection"} if injection.score(value) else set()
    if len(value) > VALUE_LENGTH:
        found.add("length")
        value = value[:VALUE_LENGTH]
    seen = views.revealed(value)
    readings = {views.folded(seen), views.undone(seen)}
    tokens = {reading: _tokens(reading) for reading in readings}
    if any(_orders(reading, found_tokens) for reading, found_tokens in tokens.items()):
        found.add("imperative")
    if any(pattern.search(seen) for pattern in _URLS):
        found.add("url")
    if any(pattern.search(seen) for pattern in _EMAILS):
        found.add("email")
    if _holds_telephone(seen):
        found.add("telephone")
    if any(pattern.search(seen) for pattern in _ADDRESSES):
        found.add("address")
    if any(pattern.search(seen) for pattern in _COMMANDS):
        found.add("command")
    for name, words in (("payment", _PAYMENT), ("credentials", _CREDENTIALS), ("tools", _TOOLS)):
        if any(words.within(found_tokens) for found_tokens in tokens.values()) or _MONEY_AND_KEYS[name].search(seen):
            found.add(name)
    return tuple(name for name in RISKS if name in found)


def is_plain(value: str) -> bool:
    """Whether `value` reads as a short attribute or one short statement about somebody, and nothing else."""
    text = value.strip()
    if not _is_short(text) or not _is_clean(text) or not _is_one_sentence(text):
        return False
    plain = views.folded(text)
    tokens = _tokens(plain)
    if not tokens:
        return _PICTURES.search(text) is not None
    if _speaks_of_machines(text, tokens) or _speaks_of_everything(tokens) or risks(text):
        return False
    return _states_without_blanks(text) if count_cjk(text) else _states(text, tokens)


def is_to_somebody_elsewhere(value: str) -> bool:
    """Whether `value` speaks to somebody in a language of which no statement is known here: there nobody can tell what
    the owner says of themselves from what an agent is told. Such a word by itself, among known words alone, or with a
    capital is a name."""
    small = _tokens(views.folded(" ".join(word for word in value.split() if not word[0].isupper())))
    tokens = _tokens(views.folded(value))
    if len(tokens) < LEAST_SPEECH or not _YOU_ELSEWHERE.within(small) or all(map(_is_known, small)):
        return False
    return not any(_reads_as(language, value, tokens) for language in manner.OPENERS)


LEAST_SPEECH = 3
"""Words."""


def _is_known(word: str) -> bool:
    """Whether a word is one of those that speak to somebody elsewhere, or of a language known here."""
    listed = (_YOU_ELSEWHERE, _COMMAND_VERBS, _OBJECTS, _FINITE, *_GLUE.values(), *_OPENERS.values())
    return any(one.holds(word) for one in listed)


def is_plain_key(key: str) -> bool:
    """Whether a key does nothing but name: a few words, none of a sentence, and no verb that something is done to. A key is
    shown beside its value, so it must not be the statement itself."""
    words = keys.words(key)
    if not words or len(words) > MOST_KEY_WORDS or any(len(word) > LONGEST_WORD for word in words):
        return False
    named = " ".join(words)
    if _says_more_than_a_name(words) or injection.score(named) or any(found.search(named) for found in _COMMANDS):
        return False
    return not any(_is_done(words, at) for at in range(len(words)))


def keyed_risk(key: str, value: str) -> str:
    """The rule by which a value waits that has no risk of its own, and has one beside its key; "" = none."""
    named = keys.read(key)
    together = [f"{named}: {value}", f"{named} {value}"]
    if not injection.score(value) and any(map(injection.score, together)):
        return "key"
    return "" if is_plain_key(key) else "key"


def is_empty(value: str) -> bool:
    """Whether a value says nothing without its key: yes, true, always."""
    tokens = _tokens(views.folded(value))
    return all(_SAYS_NOTHING.holds(token) for token in tokens)


def is_about_person(key: str, value: str) -> bool:
    """Whether a note is about whoever the memory is of, whatever prefix its key has: who, where and how they are."""
    prefix, words = keys.prefix(key), keys.words(key)
    if prefix == "user" or _PERSON.within(words) or _IDENTITY.within(words):
        return True
    if prefix in ("pref", "lesson") and _WHEREABOUTS.within(words):
        return True
    seen = views.revealed(value)
    tokens = _tokens(views.folded(seen))
    if _PERSON.within(tokens) or _IDENTITY.within(tokens) or _OF_SOMEBODY.stand_at(tokens, 0):
        return True
    return any(word in seen for word in manner.IDENTITY_SPACELESS)


def is_passing(text: str) -> bool:
    """Whether `text` speaks of the work or the state of the moment: true while it is said, wrong an hour later."""
    plain = views.folded(text)
    return any(pattern.search(plain) for pattern in _passing())


# ---------------------------------------------------------------------------------------------------------------------
# Words
# ---------------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CLAUSE = re.compile(
    r"(?<=\S)[.!?;:,](?=\s|$)|[。！？；，、：\n]|\s[-–—]\s| and | then | und | dann | y | luego | et | puis | e | poi | en | и "
)


def _listed(*tables: str) -> Phrases:
    """Tables of `manner`. A word of a script without blanks is a token here; what is found inside a text stands in
    tables of its own."""
    return Phrases(*tables, form=views.folded, spaceless=False)


_YOU, _YOU_ELSEWHERE = _listed(manner.YOU, manner.YOU_ELSEWHERE), _listed(manner.YOU_ELSEWHERE)
_OUGHT, _EVER = _listed(manner.OUGHT), _listed(manner.EVER)
_PLEASE, _FORBIDS = _listed(manner.PLEASE), _listed(manner.FORBIDS)
_COMMAND_VERBS, _NOUNS_TOO, _OBJECTS = _listed(manner.COMMANDS), _listed(manner.NOUNS_TOO), _listed(manner.OBJECTS)
_ARTICLES, _BARRED = _listed(manner.ARTICLES), _listed(manner.BARRED)
_QUANTIFIERS, _TIMES = _listed(manner.QUANTIFIERS), _listed(manner.TIMES)
_PAYMENT, _CREDENTIALS, _TOOLS = _listed(manner.PAYMENT), _listed(manner.CREDENTIALS), _listed(manner.TOOLS)
_NO_NAME, _HEADS, _SAYS_NOTHING = _listed(manner.NO_NAME), _listed(manner.HEADS), _listed(manner.SAYS_NOTHING)
_KEY_NOUNS = _listed(manner.NOUNS_TOO, manner.KEY_NOUNS)
_PERSON, _IDENTITY = _listed(manner.PERSON_WORDS), _listed(manner.IDENTITY)
_OF_SOMEBODY, _WHEREABOUTS = _listed(manner.OF_SOMEBODY), _listed(manner.WHEREABOUTS)
_GLUE = {language: _listed(listed) for language, listed in manner.GLUE.items()}
_OPENERS = {language: _listed(listed) for language, listed in manner.OPENERS.items()}
_FINITE = _listed(manner.FINITE)


@cache
def _passing() -> tuple[re.Pattern[str], ...]:
    """Compiled when it is first asked: most commands never judge a text."""
    return tuple(re.compile(views.folded(pattern)) for pattern in manner.PASSING)


def _tokens(plain: str) -> list[str]:
    return _TOKEN.findall(plain)


# ---------------------------------------------------------------------------------------------------------------------
# Orders
# ---------------------------------------------------------------------------------------------------------------------


def _orders(plain: str, tokens: Sequence[str]) -> bool:
    """Whether somebody is told what to do, what they ought to do, or what is to be done every time."""
    if _YOU.within(tokens) or _OUGHT.within(tokens) or _EVER.within(tokens) or _PLEASE.within(tokens):
        return True
    if any(phrase in plain for phrase in manner.SPACELESS_ORDERS) or _ORDER_ENDS.search(plain):
        return True
    return any(_is_order(_tokens(clause)) for clause in _CLAUSE.split(plain))


_ORDER_ENDS = re.compile(
    r"(?:세요|십시오|해라|하라|마라|줘)[.!]?$|(?:して|って|んで|いて|えて|べて|みて|れ|けろ|めろ|えろ|せ)[。.!！]$|\w(?:yin|yiniz|melisin|malisin)\b"
)


def _is_order(words: Sequence[str]) -> bool:
    """Whether a clause begins with a verb as it stands in orders; one that may be a noun counts when it has an object."""
    if _FORBIDS.stand_at(words, 0):
        return True
    if not _has_verb_first(words):
        return False
    if not _NOUNS_TOO.holds(words[0]):
        return len(words) > 1
    return len(words) > 1 and _OBJECTS.holds(words[1]) and words[1] not in _AFTER_NOUNS


def _has_verb_first(words: Sequence[str]) -> bool:
    """Whether the first word is a verb of orders and no name: `Mark lives in Ulm` is told of somebody."""
    return bool(words) and _COMMAND_VERBS.holds(words[0]) and not (len(words) > 1 and _FINITE.holds(words[1]))


_AFTER_NOUNS = frozenset("for from to in on at by with as into no".split())
"""What follows a noun as easily as a verb: `Call for papers`."""


# ---------------------------------------------------------------------------------------------------------------------
# Keys
# ---------------------------------------------------------------------------------------------------------------------

MOST_KEY_WORDS = 5
_FIRST_OF = frozenset("name language".split())


def _says_more_than_a_name(words: Sequence[str]) -> bool:
    listed = (_NO_NAME, _YOU, _OUGHT, _EVER, _PLEASE, _QUANTIFIERS)
    if any(one.within(words) for one in listed):
        return True
    return any(word == "first" and not _FIRST_OF.intersection(words[at + 1 :]) for at, word in enumerate(words))


def _is_done(words: Sequence[str], at: int) -> bool:
    """Whether the word is a verb as it stands in orders. One that is a noun as well counts where it begins a key and what
    follows is no head that it could be a part of."""
    if not _COMMAND_VERBS.holds(words[at]):
        return False
    if not _KEY_NOUNS.holds(words[at]):
        return True
    followed = at == 0 and len(words) > 1 and words[1] != "of"
    return followed and not _HEADS.holds(words[-1]) and not words[-1].isdigit()


# ---------------------------------------------------------------------------------------------------------------------
# Addresses, commands, money, keys
# ---------------------------------------------------------------------------------------------------------------------

_TLD = (
    "com|net|org|edu|gov|mil|int|io|dev|app|ai|co|info|biz|xyz|example|test|invalid|local|site|online|top|shop|store|tech|cloud|page|link|live|news"
    "|me|tv|to|gg|ly|fm|eu|uk|us|ca|au|nz|ie|de|at|ch|fr|es|it|pt|nl|be|lu|dk|se|no|fi|is|pl|cz|sk|hu|ro|bg|gr|tr|ru|ua|by|il|ir|sa|ae|eg|za|ng|ke"
    "|in|pk|bd|lk|cn|hk|tw|jp|kr|vn|th|my|sg|id|ph|br|ar|mx|cl|pe|onion|zip|mov"
)
_URLS = (
    re.compile(
        r"\b[a-z][a-z0-9+.-]{1,20}://\S|\bhxxps?\b|\bwww\d?\.\S|\b(?:javascript|data|mailto|tel|file|vbscript):\S", re.I
    ),
    re.compile(rf"(?<![\w@.-])(?:[^\W_](?:[\w-]{{0,60}}[^\W_])?\.){{1,5}}(?:{_TLD})(?![\w-])(?:[:/?#]\S*)?", re.I),
    re.compile(rf"\b[\w-]{{2,60}}\s?(?:\[\.\]|\(\.\)|\[dot\]|\(dot\)|\sdot\s)\s?(?:{_TLD})\b", re.I),
    re.compile(
        r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|\[[0-9a-f:]{4,40}\]|\blocalhost\b|\b[\w-]{1,60}\.(?:ipfs|eth)\b",
        re.I,
    ),
)
_EMAILS = (
    re.compile(r"[^\s@<>]{1,64}@[^\s@<>.]{1,63}(?:\.[^\s@<>.]{1,63})+"),
    re.compile(
        rf"\b[\w.-]{{2,60}}\s?(?:\[at\]|\(at\)|\sat\s)\s?[\w-]{{2,60}}\s?(?:\[dot\]|\(dot\)|\sdot\s)\s?(?:{_TLD})\b",
        re.I,
    ),
)
_NUMBER = re.compile(r"(?<![\w.])(?:\+|\(|00)?\d(?:[\d ()./–-]{5,20})\d(?!\w)")
_DATE = re.compile(
    r"\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|\d{4}\s?[-–/]\s?\d{2,4}|\d{1,3}(?:[ .,]\d{3})+"
)
_TELEPHONE_WORD = re.compile(
    r"\b(?:tel|phone|mobile|cell|whatsapp|fax|telefon|handy|teléfono|móvil|téléphone|telefono|celular|телефон|電話|电话|전화)\b",
    re.I,
)


def _holds_telephone(seen: str) -> bool:
    """Whether a row of digits is one by which somebody is called: with a prefix or in groups, or announced as one."""
    announced = _TELEPHONE_WORD.search(seen) is not None
    for found in _NUMBER.finditer(seen):
        digits = sum(char.isdigit() for char in found[0])
        if _DATE.fullmatch(found[0].strip()) or digits > 15:
            continue
        if digits >= 7 and (
            found[0].startswith(("+", "0", "(")) or announced or (digits >= 9 and re.search(r"[ ()/-]", found[0]))
        ):
            return True
    return False


_ADDRESSES = (
    re.compile(
        r"\b\d{1,5}[a-z]?,? (?:[\w.'-]{1,30} ){1,4}(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|boulevard|blvd"
        r"|court|ct|terrace|close|crescent|square|place|way|highway|hwy)\b",
        re.I,
    ),
    re.compile(
        r"\b\w{2,40}(?:straße|strasse|str\.|weg|platz|gasse|allee|damm|ufer|straat|laan|plein|gracht|kade|gatan|vägen|vej|gade|utca)\s\d{1,4}\s?[a-z]?\b",
        re.I,
    ),
    re.compile(
        r"\b(?:calle|avenida|avda\.?|av\.|paseo|plaza|carrer|rua|travessa|praça|via|viale|piazza|corso|vicolo|ul\.|ulica|rue|impasse|chemin|quai)"
        r"\s(?:[\w.'-]{1,30}[ ,]{1,2}){1,5}(?:n[ºo°.]{0,2}\s?)?\d{1,5}\b",
        re.I,
    ),
    re.compile(r"\b\d{1,4}(?:\s?(?:bis|ter))?,?\s(?:rue|avenue|boulevard|place|chemin|impasse|quai|allée)\s", re.I),
    re.compile(
        r"(?:\bул\.|\bулица\b|\bпроспект\b|\bпр-т\b|\bпереулок\b|\bпер\.)[^\n]{0,40}\d|\b(?:sokak|sokağı|caddesi|cad\.|mahallesi|mah\.)(?=\W)[^\n]{0,40}\d",
        re.I,
    ),
    re.compile(
        r"〒\s?\d{3}|\d{1,3}丁目|\d{1,4}番地|(?:路|街|大道|巷|弄)\s?\d{1,5}\s?[号號]|[가-힣](?:로|길)\s?\d{1,4}"
    ),
    re.compile(
        r"\b(?i:p\.?\s?o\.?\s?box|postfach)\s\d|\b[A-Z]{2}\s\d{5}(?:-\d{4})?\b|\b[A-Z]{1,2}\d[A-Z\d]?\s\d[A-Z]{2}\b"
    ),
)
_COMMANDS = (
    re.compile(
        r"`|\$\(|\$\{|&&|\|\||>>|\|\s?\w|;\s?\w+\s-|(?:^|\s)--?[a-z][\w-]*=|(?:^|\s)--[a-z][\w-]+|(?:^|\s)-[a-z]{1,3}\s\S+.*\s[./~]"
    ),
    re.compile(
        r"(?:^|[\s'\"(])(?:~|\.{1,2})?/(?:[\w.-]+/)+[\w.-]*|(?:^|\s)~/|(?:^|\s)/(?:etc|usr|var|bin|home|root|tmp|opt)\b|\b[A-Za-z]:\\"
    ),
    re.compile(
        r"(?:^|[\s;|&])(?:sudo|curl|wget|chmod|chown|rm|scp|ssh|nc|eval|exec|powershell|cmd\.exe|osascript|crontab|mkfs|dd)\s+[-\w./~:]"
        r"|(?:^|[\s;|&])(?:npm|pnpm|yarn|pip|pipx|uv|cargo|brew|apt|apt-get|docker|git|kubectl|go|npx|uvx)\s(?:install|i|add|run|exec|publish|push|reset"
        r"|remove|uninstall|clone|apply|delete|get|tool)\b"
        r"|\b(?:drop|truncate)\s+table\b|\bdelete\s+from\s|\b[a-z]+_[a-z_]+\(|\b\w+\([\w'\", ]*\)",
        re.I,
    ),
)
_MONEY_AND_KEYS = {
    "payment": re.compile(
        r"\b[A-Z]{2}\d{2}(?:\s?[A-Z0-9]{4}){3,7}\b|\b(?:bc1|0x)[0-9a-z]{20,60}\b|付款|支付|转账|轉帳|汇款|匯款|发票|發票|收款|支払|振込|送金|請求書|결제|송금|계좌|입금",
        re.I,
    ),
    "credentials": re.compile(
        r"密码|密碼|密钥|密鑰|口令|验证码|パスワード|暗証番号|秘密鍵|認証情報|비밀번호|암호|인증번호"
    ),
    "tools": re.compile(
        r"\b[a-z]{2,20}(?:_[a-z]{2,20}){1,4}\s?\(|(?:^|\s)/[a-z]{3,20}(?:\s|$)|工具|ツール|플러그인|插件|プラグイン"
    ),
}


# ---------------------------------------------------------------------------------------------------------------------
# Plainness
# ---------------------------------------------------------------------------------------------------------------------

MOST_LETTERS, MOST_WORDS, LONGEST_WORD, MOST_DIGITS = 100, 14, 24, 12
"""In letters' worth, so that 20 Chinese characters are as much as 100 letters."""


def _is_short(text: str) -> bool:
    if not text or len(text) > MOST_LETTERS or length_in_letters(text) > MOST_LETTERS:
        return False
    words = text.split()
    return len(words) <= MOST_WORDS and all(len(word) <= LONGEST_WORD for word in words)


_SIGN = re.compile(
    r"""(?<=\w)['’.,/_&+-](?=\w) | (?<=\d):(?=\d) | (?<=\w)[.,](?=\s) | \.$ | (?<=\s)&(?=\s) | \#(?=\d) | (?<=[CF])\# | (?<=C)\+\+
      | (?<=[A-Za-z])\+ | [+-](?=\d) | (?<=\d)\s?[%€$£¥₽₺°](?=\s|$)
      | [€$£¥](?=\d) | (?<=\d)–(?=\d) | [・·ー々〜] | [、。，](?=\S|$) | [²³½¼¾°]""",
    re.X,
)
"""Every sign that a plain value may hold, where it may stand."""
_PICTURES = re.compile("[\u2600-\u27bf\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f900-\U0001faff]\ufe0f?")
_DIGIT_INSIDE = re.compile(r"[^\W\d_]\d+[^\W\d_]|(?<!\w)\d[^\W\d_]{2,}\d", re.I)


def _is_clean(text: str) -> bool:
    """Whether `text` is letters of one script beside Latin ones, digits, blanks and the signs that names and figures have."""
    if unicodedata.normalize("NFC", text) != text or sum(char.isdigit() for char in text) > MOST_DIGITS:
        return False
    rest = _SIGN.sub(" ", text)
    bare = _PICTURES.sub("", rest)
    if len(rest) - len(bare) > 4 or not all(_is_letter_or_digit(char) or char == " " for char in bare):
        return False
    words = bare.split()
    scripts = [{_script(char) for char in word if char.isalpha()} for word in words]
    others = set().union(*scripts) - {"latin"}
    if len(others) > 1 or (others and others != {"cjk"} and any(len(script) > 1 for script in scripts)):
        return False
    if (
        others
        and others != {"cjk"}
        and any(
            script == others and views.undone(w).isascii()
            for w, script in zip(words, scripts, strict=True)
            if len(w) > 1
        )
    ):
        return "latin" not in set().union(*scripts)
    loud = sum(len(word) > 4 and word.isupper() for word in words)
    return loud <= 1 and len(_DIGIT_INSIDE.findall(text)) <= 1 and not any(map(_looks_encoded, words))


def _is_letter_or_digit(char: str) -> bool:
    """A letter or digit as it is written by itself: no look-alike from the mathematical, full-width or enclosed sets."""
    if char.isascii():
        return char.isalnum()
    kind = unicodedata.category(char)
    return (
        kind in ("Ll", "Lu", "Lo", "Lm", "Mc", "Mn")
        and not "\u0300" <= char <= "\u036f"
        and unicodedata.normalize("NFKC", char) == char
    )


def _script(char: str) -> str:
    if char < "\u0250" or "\u1e00" <= char <= "\u1eff":
        return "latin"
    if count_cjk(char) or char in "ー々":
        return "cjk"
    return unicodedata.name(char, "unknown").split()[0]


def _looks_encoded(word: str) -> bool:
    """Whether a word changes between capitals, small letters and digits as no name does."""
    kinds = ["u" if char.isupper() else "d" if char.isdigit() else "l" for char in word]
    changes = sum(a != b for a, b in pairwise(kinds))
    return len(word) >= 8 and changes > 3


_END = re.compile(r"[.!?。！？;；:：](?=\s)|[。！？](?=.)|\s[-–—]\s")
_NO_END = re.compile(r"(?:\b(?:dr|mr|mrs|ms|st|prof|no|nr|jr|sr|approx|ca|e\.g|i\.e|vs)|\b[A-Z]|\d)\.(?=\s)", re.I)


def _is_one_sentence(text: str) -> bool:
    return text.isprintable() and not _END.search(_NO_END.sub("", text)) and not re.search(r"[?!？！]", text)


_TELLING = frozenset(
    "DROP DROP_LAST UNBOUND GUARD SECRET SECRET_FILE OBEY IMMORAL DECODE TOLD MACHINE PERSON PROMPT".split()
)
"""Ideas of orders to models that a plain value has no word for."""


def _speaks_of_machines(text: str, tokens: Sequence[str]) -> bool:
    if _BARRED.within(tokens) or _BARRED.within(_tokens(views.undone(text))):
        return True
    return any(word in text for word in manner.SPACELESS_BARRED) or bool(injection.ideas(text) & _TELLING)


def _speaks_of_everything(tokens: Sequence[str]) -> bool:
    return any(
        _QUANTIFIERS.stand_at(tokens, at)
        and not (_TIMES.stand_at(tokens, at + 1) or _starts_with_digit(tokens, at + 1))
        for at in range(len(tokens))
    )


def _starts_with_digit(tokens: Sequence[str], at: int) -> bool:
    return at < len(tokens) and tokens[at][0].isdigit()


def _states(text: str, tokens: Sequence[str]) -> bool:
    """Whether words parted by blanks read as an attribute (up to three words) or as a statement in a known language."""
    if len(tokens) == 1:
        return True
    if _has_verb_first(tokens) or _follows_a_joint(tokens) or _orders_by_form(tokens):
        return False
    if len(tokens) <= 3 or any(_reads_as(language, text, tokens) for language in manner.OPENERS):
        return True
    items = [item for item in _ITEM.split(text) if item]
    return len(items) > 1 and all(_states(item, _tokens(views.folded(item))) for item in items if _TOKEN.search(item))


_ITEM = re.compile(r", (?:and |or |und |oder |y |o |et |ou |e |en |и )?| (?:and|und|y|et|e|en|и|&) ")
_JOINTS = frozenset(
    "and then or but so und dann oder y luego o pero et puis ou mais e poi ed en dan и а но затем i ve".split()
)


def _follows_a_joint(tokens: Sequence[str]) -> bool:
    """Whether behind `and` or `then` stands a verb as in orders that is little else: `lives in Ulm and send …`."""
    return any(
        before in _JOINTS and _COMMAND_VERBS.holds(word) and not _NOUNS_TOO.holds(word)
        for before, word in pairwise(tokens)
    )


_RUSSIAN_ORDER = re.compile(r"[а-я]+(?:ите|ьте)")
_THIRD_PERSON = re.compile(r"(?:[a-z]{2,}[^su\W]s|does|has|is|was|goes|uses|[a-z]{3,}sses|[a-z]+'s)")
_ENGLISH_OPENER = re.compile(rf"{_THIRD_PERSON.pattern}|[a-z]{{3,}}(?:ing|ed)")
_BARE = re.compile(r"[a-z]+")


def _orders_by_form(tokens: Sequence[str]) -> bool:
    """Whether an unknown verb is given an object at the very beginning, as only orders do: `Skim the logs`."""
    if _RUSSIAN_ORDER.fullmatch(tokens[0]):
        return True
    if not _ARTICLES.holds(tokens[1]) or not _BARE.fullmatch(tokens[0]):
        return False
    return not _THIRD_PERSON.fullmatch(tokens[0]) and not any(
        opener.stand_at(tokens, 0) for opener in _OPENERS.values()
    )


def _reads_as(language: str, text: str, tokens: Sequence[str]) -> bool:
    """Whether more than three words read as a statement in `language`: its letters, its small words, its beginnings."""
    if language == "ru":
        return any("\u0430" <= char <= "\u044f" for char in tokens[0]) and _begins(language, tokens)
    if not set("".join(word for word in _TOKEN.findall(text) if word.islower())) <= _ALPHABETS[language]:
        return False
    glue = sum(_GLUE[language].stand_at(tokens, at) for at in range(len(tokens)))
    glue += language == "en" and _THIRD_PERSON.fullmatch(tokens[0]) is not None
    return glue >= (1 if len(tokens) <= 8 else 2) and _begins(language, tokens)


_ALPHABETS = {
    language: set("abcdefghijklmnopqrstuvwxyz'’0123456789" + more) for language, more in manner.LETTERS.items()
}


def _begins(language: str, tokens: Sequence[str]) -> bool:
    """Whether the first words are those of a statement: a known opener, an English verb in the third person, or a name or
    noun with what is said of it within the next words."""
    if _OPENERS[language].stand_at(tokens, 0) or _starts_with_digit(tokens, 0):
        return True
    if language == "en" and _ENGLISH_OPENER.fullmatch(tokens[0]):
        return True
    return any(_says(language, word) for word in tokens[1:6])


def _says(language: str, word: str) -> bool:
    return _FINITE.holds(word) or (
        language == "en" and (_THIRD_PERSON.fullmatch(word) is not None or word.endswith("ed"))
    )


def _states_without_blanks(text: str) -> bool:
    """Whether a value in a script without blanks is a name or, when longer, has a particle of a statement."""
    return count_cjk(text) <= 8 or any(mark in text for mark in manner.SPACELESS_STATES)
