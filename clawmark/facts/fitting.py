"""Whether a key fits what the owner's sentence says of a value, and whether the value is a whole phrase of it.

The owner's words can support a value and say nothing of the key that an extractor chose: out of "I use Firefox at work" a silly
model makes `user.employer`. So every word of a key must be accounted for, those aside that name nothing: the sentence has it
where it tells what the value is ("my editor is …"), or says of the value what people say of just that ("live in …" for a city),
and the value is of the kind that belongs there. A word that denies ("former", "avoid") needs its like in the sentence. In doubt
a key does not fit, and the person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from clawmark.facts import phrases as p
from clawmark.facts.alike import root
from clawmark.facts.claim import Claim
from clawmark.facts.dated import MONTHS
from clawmark.facts.judge import judged
from clawmark.facts.relations import (
    DRUNK,
    RELATIONS,
    USED_BEHIND,
    USES,
    Filler,
    Relation,
    a_day,
    a_diet,
    a_language,
    a_name,
    a_place,
    a_year,
    an_age,
    an_animal,
    an_illness,
    an_occupation,
    anything,
    is_spelled_as_a_name,
    kinds_of,
)
from clawmark.facts.subject import QUALIFIERS
from clawmark.facts.typed import SPACELESS, Sentence, plain, sentences_of, typed_of, words_of

# ---------------------------------------------------------------------------------------------------------------------
# Whole phrases
# ---------------------------------------------------------------------------------------------------------------------

_NO_BEGINNING: Final = frozenset(
    """
    called named heisst llama appelle chiama heet and or but as is are was were am be been to of from than over not
    nor that which who because then with und oder aber als wie ist sind war zu von nicht dass weil y o pero como es
    son de que et ou mais comme est sont du pas e ma come è sono di che non mas são é do da não en maar is zijn van
    dat niet и или но как из что не ve
    """.split()
)
_NO_END: Final = (_NO_BEGINNING - {"van"}) | frozenset(
    """
    a an the my your our his her its their i we you he she they in on at for by near every each this these those
    very more most der die das ein eine einen mein meine ich wir in im am an auf für bei mit el la los las un una mi
    yo en por para le les des ma mon je à dans pour il lo gli io per con a o os as um uma meu minha eu em na het een
    mijn ik op voor bij в на для я мой моя
    """.split()
)
_SUBJECTS: Final = p.SUBJECTS | frozenset(
    "i'm im i've he she they you it er sie él ella elle ils lui lei ele ela hij zij он она они".split()
)
_AND: Final = frozenset("and und y et e en и ve".split())
_SUBORDINATE: Final = frozenset(
    "before after when whenever if while until unless because where how what bevor wenn bis".split()
)
_VERBS: Final = (p.STATES, p.STATES_ALONE, p.ORDERS, p.TASKS_KEPT, p.ABOUT_OTHERS, p.IS)


def is_whole(value: str, quote: str) -> bool:
    """Whether a value is a phrase of its own in a quote: it neither begins nor breaks off inside another one, reaches into no
    second statement, and is more than a verb."""
    words = words_of(plain(value))
    if not words:
        return True
    first, last = value.split()[0], value.split()[-1]
    if words[0] in _NO_BEGINNING and not _is_a_name(first, quote):
        return False
    if words[-1] in _NO_END and not _is_a_name(last, quote):
        return False
    for index in range(1, len(words)):
        second = words[index - 1] in _AND and p.STATES.stand_at(words, index)
        subject = words[index] in _SUBJECTS and words[index - 1] not in _SUBORDINATE
        if second or subject or p.STATES_ALONE.length_at(words, index) == 1:
            return False
    return not (any(listed.length_at(words, 0) == len(words) for listed in _VERBS) and _stands_as_verb(words, quote))


def _is_a_name(word: str, quote: str) -> bool:
    """El of El País."""
    return word[:1].isupper() and re.search(rf"(?<=\w ){re.escape(word)}(?!\w)", quote) is not None


def _stands_as_verb(words: Sequence[str], quote: str) -> bool:
    """Whether words that may be a verb stand where one does: behind its subject, a joint or nothing."""
    said = words_of(plain(quote))
    places = [at for at in range(len(said)) if said[at : at + len(words)] == list(words)]
    before = {said[at - 1] if at else "" for at in places}
    return not before or not before.isdisjoint(_SUBJECTS | _AND | p.OFTEN | {""})


# ---------------------------------------------------------------------------------------------------------------------
# The words of a key
# ---------------------------------------------------------------------------------------------------------------------

_AFTER_NAMES: Final = frozenset("name type kind choice preference preferences date day time number status of".split())
"""What a key may add to what it names."""
_DENYING: Final = {
    word: p.Phrases(listed)
    for words, listed in (
        (
            "avoid avoids avoided avoiding dislike dislikes disliked hate hates hated never not no without except banned",
            """
            avoid*, dislike*, hate*, never, not, no, without, except, don't, doesn't, can't, won't, nie, nicht, kein*,
            ohne, nunca, no, sin, jamais, pas, sans, mai, non, senza, não, sem, niet, geen, zonder, не, без, 不, ない, 안
            """,
        ),
        (
            "former formerly old older ex previous past deprecated obsolete retired abandoned earlier ancien anterior",
            """
            former*, old, ex, previous*, past, deprecated, obsolete, retired, earlier, used to, until, alter, altes,
            früher*, antes, antigu*, ancien*, avant, vecchi*, prima, antig*, oud*, vroeger, раньше, бывш*, 以前, 昔, 예전
            """,
        ),
        (
            "next future planned wanted wished dream",
            """
            next, future, plan*, want*, wish*, dream*, will, going to, nächst*, künftig*, próxim*, prochain*, prossim*,
            volgend*, следующ*
            """,
        ),
    )
    for word in words.split()
}
"""Words that make another thing of a key, and those by which a sentence speaks of it."""
_ALSO_CALLED: Final = {
    "tea": p.Phrases("tea, tee, té, thé, tè, chá, thee, чай, 茶, 차"),
    "coffee": p.Phrases("coffee, kaffee, café, caffè, koffie, кофе, 咖啡, コーヒー, 커피"),
    "answers": p.Phrases(
        "answer*, repl*, respon*, antwort*, respuesta*, réponse*, rispost*, resposta*, antwoord*, ответ*"
    ),
    "birth": p.Phrases("born, geboren, nací, né, née, nato, nata, nasci, родился, родилась"),
    "units": p.Phrases("units, unit, einheiten, unidades, unités, unità, eenheden"),
    "dentist": p.Phrases("dentist, zahnarzt, zahnärztin, dentista, dentiste, tandarts, стоматолог"),
    "dob": p.Phrases("birthday, born"),
    "wedding": p.Phrases(
        "wedding, married, marry, hochzeit, heiraten, boda, mariage, matrimonio, casamento, bruiloft, trouwen, свадьба"
    ),
    **dict.fromkeys(
        ("sibling", "siblings"),
        p.Phrases(
            """
        sibling*, sister*, brother*, geschwister, schwester*, bruder, brüder, herman*, frère*, sœur*, fratell*,
        sorell*
        """
        ),
    ),
}
"""Words of keys as they are said, where the table of `phrases` has none."""


def _words_of(claim: Claim) -> frozenset[str]:
    """The words of a key that must be accounted for."""
    words = claim.named if claim.about_the_owner else claim.subject
    for least in (words - QUALIFIERS - _AFTER_NAMES, words - QUALIFIERS):
        if least - _DENYING.keys():
            return least
    return words


def _persons_called(word: str) -> list[p.Phrases]:
    """The table's entries for somebody that a word of a key names: daughter, dog."""
    return [listed for listed in p.PERSONS.values() if listed.within([word])]


_LEAST_ROOT: Final = 4
_FALSE_FRIENDS: Final = frozenset("habite habites habitons".split())


def _is_word(word: str, said: str, text: str = "") -> bool:
    """Whether `said` is a word of a key in some form or language: allergy and allergic."""
    said = said.removesuffix("'s")
    listed = [*_persons_called(word), *(table[word] for table in (p.CONCEPTS, _ALSO_CALLED) if word in table)]
    if any(one.within([said], text) for one in listed):
        return True
    if said == word or said.removesuffix("s") == word.removesuffix("s"):
        return True
    return root(said) == root(word) and len(root(word)) >= _LEAST_ROOT and said not in _FALSE_FRIENDS


# ---------------------------------------------------------------------------------------------------------------------
# The verdict
# ---------------------------------------------------------------------------------------------------------------------


def fits(key: str, value: str, text: str) -> bool:
    """Whether a sentence of a message that states `value` is about what `key` names."""
    typed, claim = typed_of(text), Claim(key, value)
    if typed is None or not claim.tokens:
        return False
    return any(
        _fits(claim, mention)
        for sentence in sentences_of(typed)
        if judged(claim, sentence) > 0
        for mention in _mentions(claim, sentence, is_spelled_as_a_name(claim.written, text))
    )


def bears(key: str, value: str, text: str) -> bool:
    """Whether a message says enough of what `key` names for a model to file the person's own word under it. Stricter only
    where a mistake harms: who they are, whom they have, their health, their dates, and where a key denies."""
    typed, claim = typed_of(text) or "", Claim(key, value)
    words = _words_of(claim)
    denying = words & _DENYING.keys()
    if not claim.tokens or any(not _DENYING[word].within(words_of(typed), typed) for word in denying):
        return False
    kin = {word for word in words if any(one.within([word]) for one in _KIN)}
    if not claim.about_the_owner or not (_HARMFUL & words or kin == words):
        told = all(any(_is_word(one, said, typed) for said in words_of(typed)) for one in kin)
        return told and not _is_of_another(claim, words, text)
    return fits(key, value, text) or _is_introduced(claim, text)


_KIN: Final = tuple(
    p.PERSONS[who] for who in "wife husband partner daughter son kid mother father sister brother".split()
)
_HARMFUL: Final = frozenset(
    """
    name nickname surname birthday birthdate dob birth born birthyear birthplace age nationality citizenship
    ethnicity gender sex sexuality pronouns religion faith church politics party allergy allergies allergen
    allergens intolerance intolerances health illness disease diseases condition conditions diagnosis diagnoses
    symptom symptoms disability disorder medication medications medicine pregnancy pregnant spouse fiance fiancee
    family parent parents sibling siblings edad married divorced widowed wedding salary income debt
    """.split()
)
_TABLED: Final = frozenset(word for one in RELATIONS for word in one.concepts)


_VAGUE: Final = frozenset(
    "likes like love loves interest interests hobby hobbies activity hometown origin avoid answers".split()
)
"""What may be said of a thing that is something else as well."""


def _is_of_another(claim: Claim, words: frozenset[str], text: str) -> bool:
    """Whether the message says of the value something else than the key, of those things that people say in few ways."""
    typed = typed_of(text) or ""
    if not words <= _TABLED or any(_is_word(word, said, typed) for word in words for said in words_of(typed)):
        return False
    told = [
        _implied(claim, mention)
        for sentence in sentences_of(typed)
        for mention in _mentions(claim, sentence, is_spelled_as_a_name(claim.written, text))
    ]
    return any(one - _VAGUE for one in told) and not any(words & one for one in told)


def _is_introduced(claim: Claim, text: str) -> bool:
    """Whether somebody introduces themself: "I'm Sam, from Porto"."""
    if _words_of(claim) != {"name"}:
        return False
    return any(
        _ends_with(_I_AM, mention.lead) and _is_alone(mention.after.words) and _is_somebody(mention.filler(0))
        for sentence in sentences_of(typed_of(text) or "")
        for mention in _mentions(claim, sentence, is_spelled_as_a_name(claim.written, text))
    )


_I_AM: Final = p.Phrases("i'm, im, i am, my name's, it's, this is")


def _is_alone(after: Sequence[str]) -> bool:
    return not after or after[0] in ("from", "and", "nice", "your", "by")


def _is_somebody(filler: Filler) -> bool:
    """Whether a name is none of what people say that they are or use."""
    others = (a_language, a_diet, an_occupation, an_illness, an_animal)
    return a_name(filler) and not kinds_of(filler) and not any(slot(filler) for slot in others)


@dataclass(frozen=True, slots=True)
class _Part:
    """Words between two joints of a sentence, and their text for scripts without blanks."""

    words: Sequence[str]
    text: str


@dataclass(frozen=True, slots=True)
class _Mention:
    """A place of the value in a sentence.

    before, after   within the part that holds it      farther   the parts before that one, nearest first, and the heading
    is_listed       whether a comma or an "and" stands before the part: the value may be one of several
    is_name         whether it is spelled as a name
    """

    before: _Part
    value: _Part
    after: _Part
    farther: Sequence[_Part]
    is_listed: bool
    is_name: bool
    spaceless: bool

    @property
    def lead(self) -> list[str]:
        return _bare(self.before.words)

    def filler(self, start: int) -> Filler:
        """The value without its first words, and without an article."""
        words = list(self.value.words[start:])
        while len(words) > 1 and words[0] in _ARTICLES:
            del words[0]
        text = " ".join(words) if words and not self.spaceless else self.value.text
        return Filler(words, text, self.is_name or start > 0, self.spaceless)


_JOINT: Final = re.compile(r"[,;()，、]|(?<!\w)(?:and|but|und|aber|y|pero|et|mais|e|ma|mas|en|maar|и|но|ve|ama)(?!\w)")
_ARTICLES: Final = frozenset(
    """
    a an the der die das den dem ein eine einen einem einer el la los las un una le les il lo gli i o os um uma de
    het een
    """.split()
)


def _bare(words: Sequence[str]) -> list[str]:
    """Without articles and words like "mostly". What `i` is depends on the language: it stays."""
    return [word for word in words if (word not in _ARTICLES or word == "i") and word not in p.OFTEN]


def _mentions(claim: Claim, sentence: Sentence, is_name: bool) -> Iterator[_Mention]:
    for start, end in claim.spans(sentence.text, sentence.tokens):
        head, joints = _parted(sentence.text[:start])
        *far, before = head
        after = _JOINT.split(sentence.text[end:])[0]
        parts = (_Part(words_of(text), text) for text in (*reversed(far), sentence.under))
        value = sentence.text[start:end]
        yield _Mention(
            _Part(words_of(before), before),
            _Part(words_of(value), value),
            _Part(words_of(after), after),
            tuple(part for part in parts if part.words),
            joints,
            is_name,
            claim.spaceless,
        )


def _parted(text: str) -> tuple[list[str], bool]:
    """The parts of a text between its joints. The Dutch for "and" is a preposition elsewhere: there it stays."""
    parts: list[str] = []
    last = 0
    for joint in _JOINT.finditer(text):
        if joint[0] in ("en", "e", "y", "i") and not _is_joining(text, joint):
            continue
        parts.append(text[last : joint.start()])
        last = joint.end()
    return [*parts, text[last:]], bool(parts)


def _is_joining(text: str, joint: re.Match[str]) -> bool:
    words = words_of(text[: joint.start()])
    return not any(one.before and joint[0] in one.before and one.said.within(words[-3:]) for one in RELATIONS)


def _fits(claim: Claim, mention: _Mention) -> bool:
    """Each word counts: `user.former_employer` is not `user.employer`."""
    words = _words_of(claim)
    denying = words & _DENYING.keys()
    whole = [*mention.before.words, *mention.value.words, *mention.after.words]
    if any(not _DENYING[word].within(whole, mention.before.text + mention.after.text) for word in denying):
        return False
    told = _implied(claim, mention)
    if "birth" not in words and "birthplace" in told:
        told -= {"place"}
    left = words - denying - told if words - denying else denying - told
    if not all(_is_named(claim, word, mention, alone=not told & words) for word in left):
        return False
    return _has_its_kind(claim, words, mention)


# What the sentence implies


def _implied(claim: Claim, mention: _Mention) -> frozenset[str]:
    """The concepts that the sentence states of the value."""
    if claim.prefix not in ("user", "pref", "project"):
        return frozenset()
    found: set[str] = set()
    if claim.prefix != "project":
        for relation in RELATIONS:
            if _is_told(relation, mention):
                found |= relation.concepts
    return frozenset(found | _used(claim, mention))


def _is_told(relation: Relation, mention: _Mention) -> bool:
    if relation.behind is not None:
        rest = mention.after.text if not mention.spaceless or mention.after.text else ""
        return relation.behind.match(rest) is not None and relation.slot(mention.filler(0))
    if relation.ends is not None and mention.after.words and mention.after.words[0] not in relation.ends:
        return False
    for start in range(len(mention.value.words)):
        words = [*mention.before.words, *mention.value.words[:start]]
        if _leads_up(relation, words, mention.before.text if start == 0 else "") and relation.slot(
            mention.filler(start)
        ):
            return not relation.article or _has_article(mention, words, start)
    return (
        mention.is_listed
        and not mention.lead
        and not relation.article
        and relation.slot(mention.filler(0))
        and any(_leads_a_list(relation, part.words) for part in mention.farther)
    )


def _leads_up(relation: Relation, words: Sequence[str], text: str) -> bool:
    """Whether the words end in what leads up to the place of the relation."""
    if text and any(text.rstrip(" 了很").endswith(part) for part in relation.said.parts):
        return True
    return any(
        _verb_before(relation, tail[:-1]) if relation.before else _ends_with(relation.said, tail)
        for tail in _leads_of(words)
        if not relation.before or (tail[-1:] and tail[-1] in relation.before)
    )


def _leads_of(words: Sequence[str]) -> Iterator[list[str]]:
    """What leads up to a place, with and without the articles and the like before it: what is one here ("a") is a preposition
    elsewhere."""
    tail = list(words)
    yield _bare(tail)
    yield tail
    while tail and (tail[-1] in _ARTICLES or tail[-1] in p.OFTEN):
        tail = tail[:-1]
        yield tail


def _verb_before(relation: Relation, lead: Sequence[str]) -> bool:
    """Whether the verb stands at the end, or has no more behind it than a phrase like "with Anna"."""
    for index in range(len(lead)):
        length = relation.said.length_at(lead, index)
        between = lead[index + length :]
        if length and len(between) <= MOST_BETWEEN and (not between or between[0] in _PHRASES):
            return True
    return False


MOST_BETWEEN: Final = 4
_PHRASES: Final = frozenset(
    """
    since seit ab part full mir bitte me jetzt immer desde depuis sinds with from alone together full-time part-time
    remotely here happily back mit von allein zusammen con de desde sola solo avec depuis seul seule da com met van
    alleen с из as als como comme come raised up at for by bei para chez pour presso per voor bij
    """.split()
)


def _leads_a_list(relation: Relation, words: Sequence[str]) -> bool:
    """Whether a part has the first of several things of which the value is one."""
    lead = _bare(words)
    for index in range(len(lead)):
        length = relation.said.length_at(lead, index)
        rest = lead[index + length :]
        if length and relation.before:
            if not rest or rest[0] not in relation.before:
                continue
            rest = rest[1:]
        if length and 0 < len(rest) <= MOST_BETWEEN and p.PREPOSITIONS.isdisjoint(rest):
            return True
    return False


def _has_article(mention: _Mention, words: Sequence[str], start: int) -> bool:
    """ "I drive a Volvo", but not "I drive Anna to school"; a name with a number or of several words needs none."""
    first = mention.value.words[start]
    before = words[-1] if words else ""
    return bool({before, first} & (_SOME | p.POSSESSIVES)) or len(mention.filler(start).words) > 1


_SOME: Final = frozenset("a an ein eine einen einem un una une uno um uma een".split())


def _ends_with(listed: p.Phrases, lead: Sequence[str]) -> bool:
    return any(listed.length_at(lead, index) == len(lead) - index for index in range(max(0, len(lead) - 5), len(lead)))


def _used(claim: Claim, mention: _Mention) -> frozenset[str]:
    """What a well-known thing is, where somebody says that they use or prefer it. What is used in a project is used by more
    than one."""
    kinds = kinds_of(mention.filler(0))
    if not kinds or (claim.prefix == "project") != _OURS.within(mention.before.words, mention.before.text):
        return frozenset()
    lead = mention.lead
    is_used = any(_ends_with(USES, one) for one in _leads_of(mention.before.words)) or _is_switched(lead)
    is_used = is_used or any(mention.before.text.rstrip().endswith(part) for part in USES.parts)
    is_used = is_used or USED_BEHIND.match(mention.after.text) is not None
    if "drink" in kinds:
        is_used = _ends_with(DRUNK, lead) or mention.before.text.endswith(DRUNK.parts) or (not lead and is_used)
    return kinds if is_used else frozenset()


def _is_switched(lead: Sequence[str]) -> bool:
    """ "Switched from Vim to …"."""
    return lead[-1:] == ["to"] and any(word.startswith(("switch", "migrat", "mov")) for word in lead)


_OURS: Final = p.Phrases(
    """
    we, we're, we've, our, us, wir, unser*, nosotros, nuestro, nuestra, usamos, utilizamos, tenemos, nous, notre,
    nos, noi, nostro, nostra, usiamo, abbiamo, nós, nosso, nossa, temos, wij, onze, мы, наш*, biz, bizim, 我们, 我們,
    私たち, うち, 우리, this repo, this project, this app, this codebase, this team, the repo, the project, the app, the
    team
    """
)
"""What is said of work that is not the owner's alone."""

# What the sentence names

_PLACING: Final = frozenset("at on to in".split())
_COPULAS: Final = frozenset(
    """
    is are ist sind es son est sont è sono é são zijn это heisst called named llama appelle chiama chama
    heet зовут at on to now am set due lautet s se si me m
    """.split()
)
_LINKS: Final = _COPULAS - _PLACING | p.POSSESSIVES | {"to"}
_AS: Final = frozenset("as als como comme come как".split())
_FOR: Final = frozenset("for as für als para como pour comme per come voor для как".split())
MOST_OF_A_HEAD: Final = 6
_OWN: Final = p.SUBJECTS | p.POSSESSIVES
"""With one of them another statement begins."""
_LESSER: Final = (p.COMPARED, p.LACK)


def _is_named(claim: Claim, word: str, mention: _Mention, *, alone: bool) -> bool:
    """Whether a word of the key stands where the sentence tells what the value is. Beside what the sentence implies, and in a
    lesson, which is of its topic, it is enough that it stands there.

    alone   the sentence implies nothing
    """
    value = mention.value
    own = [_is_word(word, said, value.text if mention.spaceless else "") for said in value.words]
    if any(own) and (mention.spaceless or not all(own)):  # a value that is the key's word says no more than the key
        return True
    after = _unless_lesser(mention.after.words)
    if not alone or claim.prefix == "lesson":
        return any(_is_word(word, said, mention.before.text) for said in [*mention.before.words, *after] or [""])
    return (
        _stands_before(word, mention.before, claim.prefix)
        or _stands_after(word, after, claim.prefix)
        or _stands_farther(word, mention)
    )


def _unless_lesser(after: Sequence[str]) -> list[str]:
    """The words behind the value as far as none sets it against something: "tea over coffee" is of tea."""
    for index in range(len(after)):
        if any(listed.stand_at(after, index) for listed in _LESSER):
            return list(after[:index])
    return list(after)


def _stands_before(word: str, before: _Part, prefix: str) -> bool:
    """ "My editor is …", "set my editor to …", "the editor …", "for commits use …"."""
    for index, said in enumerate(before.words):
        if not _is_word(word, said) or _is_possessor(before.words, index):
            continue
        between = [one for one in before.words[index + 1 :] if one not in _ARTICLES and one not in p.OFTEN]
        if all(one in _LINKS for one in between) and (
            not between or not index or before.words[index - 1] not in p.SUBJECTS
        ):
            return True
        last = next((one for one in reversed(between) if one not in _PLACING), "")
        if len(between) <= MOST_OF_A_HEAD and last in _COPULAS and _OWN.isdisjoint(between):
            return True
        if prefix != "user" and index and _bare(before.words[:index])[-1:] and _bare(before.words[:index])[-1] in _FOR:
            return True
        if prefix != "user" and p.ORDERS.stand_at(before.words, index):
            return True
    return _has_spaceless(before.text) and _is_word(word, "", before.text)


def _is_possessor(words: Sequence[str], index: int) -> bool:
    """ "My sister's birthday" is of a birthday; "my sister's name" is hers."""
    return words[index].endswith("'s") and words[index + 1 : index + 2] != ["name"] and index + 1 < len(words)


def _has_spaceless(text: str) -> bool:
    return SPACELESS.search(text) is not None


def _stands_after(word: str, after: Sequence[str], prefix: str) -> bool:
    """ "4 May is my birthday", "peanut allergy", "tabs for indentation"."""
    joining = _AS if prefix == "user" else _FOR
    for index, said in enumerate(after[:MOST_OF_A_HEAD]):
        if not _is_word(word, said):
            continue
        lead = [one for one in after[:index] if one not in _ARTICLES and one not in p.POSSESSIVES]
        if not lead or lead[0] in joining or (lead[0] in _COPULAS - _PLACING and index > 0):
            return True
    return False


def _stands_farther(word: str, mention: _Mention) -> bool:
    """In a heading, or in the part before where this one has but the value: "my allergies are peanuts and figs"."""
    if any(one not in _LINKS for one in mention.lead):
        return False
    return any(
        _is_word(word, said, part.text if _has_spaceless(part.text) else "")
        for part in mention.farther
        for said in part.words
    )


_DATES: Final = frozenset("birthday birthdate dob".split())
_PLACES: Final = frozenset("city town country birthplace hometown residence region".split())
_PETS: Final = frozenset("pet pets animal rabbit horse parrot".split())
_UNTIMED: Final = frozenset(
    """
    job occupation profession role employer company workplace allergy allergies name nickname diet language
    languages partner spouse wife husband pet pets health illness disease condition medication religion
    """.split()
)


def _has_its_kind(claim: Claim, words: frozenset[str], mention: _Mention) -> bool:
    """Whether the value is of the kind that the key asks for, however the sentence names it."""
    filler = mention.filler(0)
    digits = any(char.isdigit() for char in filler.text)
    after = mention.after.words
    if words & _DATES or ("birth" in words and claim.named & {"date", "day", "year"}):
        fit = a_year(filler) or _ends_in_year(mention) if "year" in words else a_day(filler) or filler.spaceless
        return fit and not _is_part_of_a_date(filler, mention)
    if "birthyear" in words:
        return digits
    if "age" in words:
        return not filler.text.isdigit() or (an_age(filler) and not (after and after[0] in MONTHS))
    if words & _PLACES:
        return not digits and (filler.spaceless or _is_town(mention))
    if "name" in claim.subject and (words & _PETS or any(map(_persons_called, words))):
        return a_name(filler)
    return anything(filler) if words & _UNTIMED else True


def _ends_in_year(mention: _Mention) -> bool:
    return re.search(r"(?:18|19|20)\d\d$", mention.value.text) is not None


def _is_part_of_a_date(filler: Filler, mention: _Mention) -> bool:
    """ "4" of "4 May", or "May"."""
    after, before = mention.after.words, mention.before.words
    if after and after[0] in MONTHS and filler.text.isdigit():
        return True
    return bool(before) and before[-1][:1].isdigit() and filler.words[0] in MONTHS


def _is_town(mention: _Mention) -> bool:
    return any(a_place(mention.filler(start)) for start in range(len(mention.value.words)))
