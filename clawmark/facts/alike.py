"""How two statements stand to each other: whether they say the same, much of the same, or the opposite.

Opposites are told apart before likeness is measured: "always X" and "never X" share nearly every word, and a correction
must not be taken for a repetition. What differs in a number or a name never says the same. Words and tables alone decide,
no model; in doubt two statements are different ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rapidfuzz.fuzz import ratio

from clawmark.facts import phrases as p
from clawmark.facts.typed import SPACELESS, tokens_of
from clawmark.model import Conflict
from clawmark.text import jaccard, likeness, normal, remembered, words

Polarity = Literal[-1, 0, 1]

SAME, MUCH = 0.7, 0.45
"""Shared words over all words: from where on two statements are one, and from where on they belong together."""
SUBJECT = 0.5
"""Shared words over those of the shorter statement, from where on opposites are about one thing."""

# ---------------------------------------------------------------------------------------------------------------------
# For and against
# ---------------------------------------------------------------------------------------------------------------------

NOT: Final = p.Phrases(
    """
    not, never, don't, dont, do not, doesn't, doesnt, didn't, won't, wont, can't, cant, cannot, isn't, aren't, shouldn't,
    mustn't, wouldn't, neither, nor, nothing, nobody,
    nicht, nie, niemals, weder, nichts, nunca, jamás, jamas, tampoco, ne, n, pas, jamais, mai più, non, não, nao, nem, niet,
    nooit, не, никогда, нет, ни, değil, asla, hiç,
    不, 没, 沒, 别, 別, 勿, 从不, 從不, 从来不, ない, ません, なく, 안 , 않, 못, 없, 절대, 말고, 지 마, 지마
    """
)
"""Deny what a clause says. Two of them deny once: many languages say it twice."""

NO: Final = p.Phrases(
    """
    no, kein, keine, keinen, keinem, keiner, keines, ningún, ninguna, aucun, aucune, nessun, nessuno, nessuna, nenhum,
    nenhuma, geen, hiçbir
    """
)
"""Deny a thing and with it the clause: "eats no meat"."""

WITHOUT: Final = p.Phrases(
    "without, free of, free from, minus, ohne, sin, sans, senza, sem, zonder, без, 抜き, なし, 无, 無, 없이"
)
"""Deny a thing and nothing else: "tea without milk" is still for tea."""

AGAINST: Final = p.Phrases(
    """
    avoid, avoids, avoiding, hate, hates, dislike, dislikes, detest, detests, loathe, loathes, disable, disables, disabled,
    remove, removes, removed, delete, drop, dropped, stop, stops, stopped, quit, refuse, refuses, reject, rejects, forbid,
    forbids, forbidden, ban, banned, skip, exclude, deny, disallow, disallowed, ignore, against, unsubscribe, can't stand,
    cannot stand, no longer, not anymore, turn off, turned off, switch off, switched off, opt out,
    vermeide, vermeiden, vermeidet, vermeid, meide, meiden, meidet, hasse, hasst, hassen, deaktivier*, entfern*, abschalten,
    ausschalten, schalte aus, verzichte, verzichtet, verbiet*, verboten, nicht mehr, lehne ab,
    evita, evito, evitar, evite, odia, odio, odeio, detesta, detesto, desactiva*, desativ*, elimina*, quita, quito, quitar,
    prohíbe, prohibido, deja de, dejé de, ya no,
    évite, éviter, évitez, déteste, détester, désactiv*, supprim*, enlève, enlever, interdi*, arrête, arrêter, ne plus,
    evitare, disattiv*, rimuov*, togli, togliere, vieta*, smett*, smesso,
    evitando, remov*, proíb*, deixei de, vermijd, vermijden, haat, haten, uitschakelen, verwijder*, verbied*, verboden,
    избега*, ненавид*, отключ*, удал*, убер*, убир*, запрет*, запрещ*, перестал*,
    kaçın*, nefret, devre dışı, kaldır*, sil, sevmem, sevmiyorum, yasak,
    讨厌, 討厭, 避免, 禁用, 关闭, 關閉, 删除, 刪除, 禁止, 嫌い, 避け, 無効, 削除, 外して, 止め, やめ, 싫, 피해, 피하, 끄,
    비활성, 삭제, 제거, 금지
    """
)
"""Verbs of rejecting. Denied, they are for their object: "never disable X"."""

FOR: Final = p.Phrases(
    """
    always, prefer, prefers, preferred, like, likes, love, loves, enjoy, enjoys, favour, favours, favor, favors, favourite,
    favorite, use, uses, using, used, keep, keeps, enable, enables, enabled, want, wants, do, does, turn on, turned on,
    switch on, allow, allows, allowed, add, adds, include, includes, stick to, stick with, go with, choose, chooses, adore,
    adores,
    immer, stets, bevorzug*, mag, mögen, liebe, liebt, gern, gerne, lieber, benutz*, nutz*, verwend*, behalt*, aktivier*,
    will, möchte, einschalten,
    siempre, prefier*, prefer*, gusta, gustan, encanta, usa, uso, usar, utiliza*, mantén, mantener, activa*, quiero, quiere,
    toujours, préfèr*, aime, adore, utilis*, garde, garder, activ*, veux, veut,
    sempre, preferi*, piace, piacciono, ama, amo, usare, tieni, tenere, attiv*, voglio, vuole,
    gosto, gosta, adoro, mantenha, manter, ativ*, quero, quer,
    altijd, voorkeur, hou van, houdt van, graag, gebruik*, behoud*, inschakelen, wil,
    всегда, предпочита*, люблю, любит, нравится, использ*, пользу*, оставь*, включ*, хочу, хочет,
    her zaman, daima, tercih, sever, severim, seviyorum, kullan*, tut, etkinleştir*, istiyorum, ister,
    总是, 總是, 一直, 喜欢, 喜歡, 爱, 愛, 偏好, 使用, 用, 保留, 启用, 啟用, 开启, 想要, いつも, 必ず, 好き, 好む, 使う, 使って,
    使い, 残し, 有効, 항상, 좋아, 선호, 사용, 써, 쓰, 유지, 활성
    """
)

_NO_DENIAL: Final = p.Phrases(
    "don't forget, do not forget, not only, no later, no less, no idea, no problem, nicht nur, nicht vergessen, no olvides,"
    " n oublie pas, ne pas oublier, non dimenticare, não esqueça, niet vergeten, не забудь"
)
"""What looks like a denial and denies nothing."""

_INSTEAD: Final = p.Phrases(
    """
    instead of, rather than, statt, anstatt, anstelle, en vez de, en lugar de, antes que, plutôt que, au lieu de, invece di,
    al posto di, anziché, em vez de, ao invés de, in plaats van, вместо, yerine
    """
)
"""Between what is wanted and what is not."""
_RATHER: Final = p.Phrases("over, than, versus, vs, als, que, che, di, do que, dan, чем, à")
"""The same, behind a word that prefers: "tea over coffee", but not "over 18"."""

_CLAUSE: Final = re.compile(
    r"[.;!?。！？\n]+|[,，、]|\b(?:but|and|sondern|aber|und|sino|pero|mais|ma|mas|maar|но|а)\b(?= \w)"
)
_SENTENCE: Final = re.compile(r"[.;!?。！？\n]")
_PLACE: Final = frozenset(
    """
    in for at on with when while because during im am bei für beim en para por con pour dans avec per nel nella em voor met bij
    в для на при
    """.split()
)
"""A word with which the part of a contrast ends: what follows holds for both of its sides."""


_once = remembered(1024)
"""What is known of one text is worked out once, for it is compared with hundreds."""


@_once
def polarity(text: str) -> Polarity:
    """1 for what is wanted or always done, -1 for what is not, 0 for what says neither."""
    for clause in _CLAUSE.split(normal(text)):
        head, _ = _contrast(_tokens(clause))
        found = _sign(head, clause)
        if found:
            return found
    return 0


def _tokens(text: str) -> list[str]:
    """Words in their normal form, numbers as digits."""
    words_found = (token.text.removesuffix("'s") for token in tokens_of(text))
    return [_NUMBER_WORDS.get(word, word) for word in words_found]


@_once
def _all_tokens(text: str) -> tuple[str, ...]:
    return tuple(_tokens(normal(text)))


def _sign(tokens: Sequence[str], text: str) -> Polarity:
    if not tokens:
        return 0
    denied = _NO_DENIAL.first(tokens) is None and (NOT.within(tokens, text) or _says_no(tokens))
    against = AGAINST.within(tokens, text)
    if denied and against:
        return -1 if _denial_is_part(tokens, text) else 1
    if denied or against:
        return -1
    return 1 if FOR.within(tokens, text) else 0


def _says_no(tokens: Sequence[str]) -> bool:
    return NO.within([token for token in tokens if token != "no"] if p.PORTUGUESE.within(tokens) else tokens)


def _denial_is_part(tokens: Sequence[str], text: str) -> bool:
    """Whether the denial belongs to the rejecting words themselves: "no longer", "can't stand", "ne … plus"."""
    rest = list(tokens)
    for index in range(len(tokens)):
        length = AGAINST.length_at(tokens, index)
        if length > 1:
            rest[index : index + length] = ["\n"] * length
    for part in AGAINST.parts:
        text = text.replace(part, "\n")
    return not NOT.within(rest, text) and not _says_no(rest)


@dataclass(frozen=True, slots=True)
class _Stance:
    """What a statement is for and what it is against, in roots of content words."""

    wanted: frozenset[str]
    unwanted: frozenset[str]


@_once
def _stance(text: str) -> _Stance:
    wanted: set[str] = set()
    unwanted: set[str] = set()
    plain = normal(text)
    sign: Polarity = 0
    at = 0
    for match in [*_CLAUSE.finditer(plain), None]:
        clause = plain[at : match.start()] if match else plain[at:]
        head, tail = _contrast(_tokens(clause))
        head, lacking = _without(head)
        sign = _sign(head, clause) or sign  # a clause that says neither goes on with what the one before it said
        mine, others = (unwanted, wanted) if sign < 0 else (wanted, unwanted)
        mine |= _roots(head, clause)
        others |= _roots(tail, "")
        unwanted |= _roots(lacking, "")
        if match:
            at = match.end()
            sign = 0 if _SENTENCE.search(match[0]) else sign
    return _Stance(frozenset(wanted), frozenset(unwanted))


def _contrast(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """A clause as what it says and what it sets that against: "pnpm in this repository", "npm"."""
    prefers = False
    for index in range(1, len(tokens)):
        prefers = prefers or p.PREFERS.stand_at(tokens, index - 1)
        length = _INSTEAD.length_at(tokens, index)
        if not length and prefers:
            length = _RATHER.length_at(tokens, index)
        if length:
            end = index + length
            while end < len(tokens) and tokens[end] not in _PLACE:
                end += 1
            return [*tokens[:index], *tokens[end:]], list(tokens[index + length : end])
    return list(tokens), []


def _without(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a clause, and those of what it says to be lacking: one word each."""
    held: list[str] = []
    lacking: list[str] = []
    no = NO if not p.PORTUGUESE.within(tokens) else WITHOUT
    index = 0
    while index < len(tokens):
        length = WITHOUT.length_at(tokens, index) or no.length_at(tokens, index)
        if any(listed.length_at(tokens, index) > length for listed in (AGAINST, _NO_DENIAL)):
            length = 0  # "no longer", "no later than"
        bare = _FREE_OF.sub("", tokens[index])
        if length:
            lacking += tokens[index + length : index + length + 1]
            index += length + 1
        elif bare != tokens[index] and len(bare) > _LEAST_ROOT:
            lacking.append(bare)
            index += 1
        else:
            held.append(tokens[index])
            index += 1
    return held, lacking


# ---------------------------------------------------------------------------------------------------------------------
# Words
# ---------------------------------------------------------------------------------------------------------------------

_ENDINGS: Final = ("ings", "ing", "ies", "es", "ed", "s", "en", "er", "e")
_LEAST_ROOT: Final = 3


def root(word: str) -> str:
    """A word without its ending, whole otherwise: two names that begin alike stay two."""
    word = word.removesuffix("'s")
    if not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_ROOT and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    if len(word) > _LEAST_ROOT and word[-1] == word[-2] and word[-1] not in "aeios":
        word = word[:-1]
    return word


_EMPTY: Final = p.STOP_VALUES - frozenset("on off enabled disabled default new good bad true false".split())
_FILLING: Final = frozenset(
    """
    really very usually generally mostly normally often mainly typically also just still currently actually simply please
    every time whenever person user owner thing things kind sort lot lots much many quite rather fairly always never from now
    future remember note immer meistens normalerweise sehr siempre normalmente muy toujours souvent très sempre spesso molto
    muito altijd vaak heel всегда обычно очень
    """.split()
)
"""What may be said or left out without another meaning."""


def _roots(tokens: Sequence[str], text: str) -> set[str]:
    """What the tokens are about: roots of content words without those that say for or against; pairs of characters in
    scripts without blanks."""
    found: set[str] = set()
    index = 0
    while index < len(tokens):
        length = max(listed.length_at(tokens, index) for listed in _SIGNS)
        if length:
            index += length
            continue
        token = tokens[index]
        index += 1
        if SPACELESS.match(token):
            continue
        if token not in _EMPTY and token not in _FILLING and (len(token) > 1 or token.isdigit()):
            found.add(root(token))
    return found | _pairs(text)


_SIGNS: Final = (NOT, NO, WITHOUT, AGAINST, FOR)


def _pairs(text: str) -> set[str]:
    for part in (part for listed in _SIGNS for part in listed.parts):
        text = text.replace(part, " ")
    runs = re.findall(f"{SPACELESS.pattern}+", text)
    return {pair for run in runs for pair in words(run)}


_NUMBER_WORDS: Final = {
    word: str(number)
    for number, said in enumerate(
        (
            "zero null",
            "one eins uno",
            "two zwei dos deux due dois twee два",
            "three drei tres trois tre três drie три",
            "four vier cuatro quatre quattro quatro четыре",
            "five fünf cinco cinq cinque vijf пять",
            "six sechs seis sei zes шесть",
            "seven sieben siete sept sette sete zeven семь",
            "eight acht ocho huit otto oito восемь",
            "nine neun nueve neuf nove negen девять",
            "ten zehn diez dix dieci dez tien десять",
            "eleven elf once onze undici",
            "twelve zwölf doce douze dodici doze twaalf",
        )
    )
    for word in said.split()
}
_CJK_DIGITS: Final = re.compile("[一二三四五六七八九十百千两兩]+")
_DIGITS: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")


@_once
def numbers(text: str) -> tuple[str, ...]:
    """The numbers of a text in their order, written in digits or words."""
    plain = normal(text)
    found = [(match.start(), match[0]) for match in _DIGITS.finditer(plain)]
    found += [(match.start(), match[0]) for match in _CJK_DIGITS.finditer(plain)]
    found += [(t.start, _NUMBER_WORDS[t.text]) for t in tokens_of(plain) if t.text in _NUMBER_WORDS]
    return tuple(number for _, number in sorted(found))


_NAME: Final = re.compile(r"[^\W\d_][\w.+#'’-]*")


@_once
def names(text: str) -> tuple[str, ...]:
    """Words with a capital inside a sentence, or anywhere inside a word: what is spelled so is a name, as far as known."""
    found = []
    for match in _NAME.finditer(text):
        word = match[0].rstrip(".'’-")
        inner = any(char.isupper() for char in word[1:])
        first = not text[: match.start()].strip() or text[: match.start()].rstrip()[-1] in ".!?:"
        if inner or (word[0].isupper() and not first):
            found.append(normal(word).removesuffix("'s").removesuffix("’s"))
    return tuple(found)


# ---------------------------------------------------------------------------------------------------------------------
# The verdicts
# ---------------------------------------------------------------------------------------------------------------------


def relation(value: str, other: str) -> Conflict:
    """How `value` stands to `other`. Opposites first: they are no repetition, however many words they share."""
    if likeness(value) == likeness(other):
        return "duplicate"
    if is_opposite(value, other):
        return "conflict_candidate"
    if is_paraphrase(value, other):
        return "duplicate"
    shared = jaccard(_content(value), _content(other))
    if shared >= SAME and not _is_corrected(value, other):
        return "duplicate"
    return "merge_candidate" if shared >= MUCH else "none"


def is_opposite(value: str, other: str) -> bool:
    """Whether one is for what the other is against."""
    one, two = _stance(value), _stance(other)
    return _overlap(one.wanted, two.unwanted) or _overlap(one.unwanted, two.wanted)


def _overlap(wanted: frozenset[str], unwanted: frozenset[str]) -> bool:
    shorter = min(len(wanted), len(unwanted))
    return shorter > 0 and len(wanted & unwanted) / shorter >= SUBJECT


@_once
def _content(text: str) -> frozenset[str]:
    """Roots of all content words; of all words where there are none."""
    tokens = _all_tokens(text)
    return frozenset(_roots(tokens, normal(text)) or {root(token) for token in tokens} | set(words(normal(text))))


def _is_corrected(value: str, other: str) -> bool:
    """Whether two statements differ in a number, a name, or the order that tells who does what to whom."""
    if numbers(value) != numbers(other):
        return True
    one, two = _all_tokens(value), _all_tokens(other)
    named = {*names(value), *names(other)}
    if _RELATES.intersection(one + two):
        named |= set(one) & set(two)
    return [word for word in one if word in named] != [word for word in two if word in named]


SYNONYMS: Final = tuple(
    p.Phrases(listed)
    for listed in (
        "live, lives, living, reside, resides, residing, based, dwell, dwells, wohne, wohnt, lebe, lebt",
        "work, works, working, employed, arbeite, arbeitet",
        "drink, drinks, drinking, trinke, trinkt, trinken",
        "eat, eats, eating, esse, isst, essen",
        "coffee, kaffee, café",
        "car, automobile, auto",
        "bike, bikes, bicycle, bicycles, cycle, cycles, cycling, biking, fahrrad, rad",
        "morning, mornings, am, a.m",
        "evening, evenings, pm, p.m",
        "short, brief, concise, terse, kurz, kurze, knapp, knappe",
        "answer, answers, reply, replies, response, responses, antwort, antworten",
        "big, large",
        "small, little",
        "quick, fast",
        "photo, photos, picture, pictures",
        "film, films, movie, movies",
        "holiday, holidays, vacation, vacations",
        "doctor, physician",
        "job, occupation, profession",
        "kid, kids, child, children",
        "allergic, allergy, allergies, allergisch, allergie",
        "vegan, plant-based",
        "repository, repositories, repo, repos",
        "app, apps, application, applications",
        "e-mail, email, mail, e-mails, emails",
        "begin, begins, start, starts",
        "finish, finishes, end, ends",
        "buy, buys, purchase, purchases",
        "speak, speaks, talk, talks",
        "metric, si",
        "dark, black",
    )
)
"""Words of one meaning where people speak of themselves."""

_FREE_OF: Final = re.compile(r"^(?:de|non-?)(?=\w{4})|(?:-?free|less|-?frei(?:e[mnrs]?)?|vrije?)$")
"""What a word says that it is without: decaffeinated, caffeine-free, sugarless."""
_PRIVATE: Final = ("de", "un", "non", "in", "im", "il", "ir", "anti", "dis", "mis")
_RELATES: Final = frozenset(
    "from to of over than before after between then until von nach zu bis vor als de a à da para из в до после".split()
)
"""With one of these the order of the words is part of what is said."""
MOST_MEANT = 40
"""Content words. What is longer is compared word by word for nothing: nobody says so much twice in other words."""
LIKE_ENOUGH = 90
"""Of 100: one spelling of a word and another, as in colour and color."""


def is_paraphrase(value: str, other: str) -> bool:
    """Whether two statements under one key say the same in other words. In doubt they do not: what is said newly then
    takes the place of what was said, and nothing is lost."""
    if likeness(value) == likeness(other):
        return True
    if _is_corrected(value, other) or is_opposite(value, other) or polarity(value) * polarity(other) < 0:
        return False
    if SPACELESS.search(normal(value)) or SPACELESS.search(normal(other)):
        return _bare(value) == _bare(other) != ""
    left, right = _meant(value), _meant(other)
    if not left or not right or max(len(left), len(right)) > MOST_MEANT:
        return False
    if _RELATES.intersection(_all_tokens(value) + _all_tokens(other)):
        return len(left) == len(right) and all(map(_is_one, left, right))
    return _covers(left, right) and _covers(right, left)


_CJK_FILLERS: Final = re.compile(
    "です|ます|だよ|だ|よ|ね|は|が|を|私|僕|俺|の|我|很|的|了|啊|呢|非常|都|저는|나는|제가|내가|요|를|을|은|는|이|가"
    "|[\\s,.、。!?]"
)


def _bare(text: str) -> str:
    return _CJK_FILLERS.sub("", normal(text))


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A content word: its root, its class of synonyms (-1 = none), and whether it is said to be lacking."""

    word: str
    root: str
    group: int
    lacking: bool


@_once
def _meant(text: str) -> tuple[_Meaning, ...]:
    held, lacking = _without(_all_tokens(text))
    return (*_meanings(held, False), *_meanings(lacking, True))


def _meanings(tokens: Sequence[str], lacking: bool) -> Iterator[_Meaning]:
    index = 0
    while index < len(tokens):
        token = tokens[index]
        length = max(listed.length_at(tokens, index) for listed in _SIGNS)
        index += max(1, length)
        if length or token in _EMPTY or token in _FILLING or (len(token) < 2 and not token.isdigit()):
            continue
        group = next((number for number, listed in enumerate(SYNONYMS) if listed.stand_at([token], 0)), -1)
        yield _Meaning(token, root(token), group, lacking)


def _covers(some: Sequence[_Meaning], others: Sequence[_Meaning]) -> bool:
    return all(any(_is_one(one, other) for other in others) for one in some)


def _is_one(one: _Meaning, other: _Meaning) -> bool:
    if one.lacking != other.lacking:
        return False
    if one.root == other.root or (one.group >= 0 and one.group == other.group):
        return True
    return (one.lacking and _begin_alike(one.root, other.root)) or _is_spelling(one.word, other.word)


def _begin_alike(one: str, other: str) -> bool:
    """Of two words that are said to be lacking: "decaffeinated" and "caffeine" have their head in common."""
    head = min(len(one), len(other), 5)
    return head >= 4 and one[:head] == other[:head]


def _is_spelling(one: str, other: str) -> bool:
    if min(len(one), len(other)) < 5 or one[:2] != other[:2]:
        return False
    if any(one == f"{lead}{other}" or other == f"{lead}{one}" for lead in _PRIVATE):
        return False
    return ratio(one, other) >= LIKE_ENOUGH
