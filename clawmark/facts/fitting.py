"""Whether a key fits what the owner's sentence says of a value, and whether the value is a whole phrase of it.

The owner's words can support a value and say nothing of the key that an extractor chose: out of "my editor is Helix" a
silly model makes `user.name`. So the sentence must name the key ("my editor is …"), or say of the value, and right beside it,
what people say of such things ("live in …" for a city). For `pref.` and `project.` it is also enough that the value is what
somebody uses or prefers: "I use Helix" says nothing of editors and means one. In doubt a key does not fit, and the person is
asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from clawmark.facts import phrases as p
from clawmark.facts.alike import QUALIFIERS
from clawmark.facts.claim import Claim
from clawmark.facts.dated import MONTHS
from clawmark.facts.judge import judged
from clawmark.facts.typed import Sentence, plain, sentences_of, typed_of, words_of

# ---------------------------------------------------------------------------------------------------------------------
# Whole phrases
# ---------------------------------------------------------------------------------------------------------------------

_NO_BEGINNING: Final = frozenset(
    """
    called named heißt llama appelle chiama heet and or but as is are was were am be been to of from than over not nor that
    which who because then with
    und oder aber als wie ist sind war zu von nicht dass weil y o pero como es son de que et ou mais comme est sont du
    pas e ma come è sono di che non mas são é do da não en maar is zijn van dat niet и или но как из что не ve
    """.split()
)
_NO_END: Final = (_NO_BEGINNING - {"van"}) | frozenset(
    """
    a an the my your our his her its their i we you he she they in on at for by near every each this these those very more most
    der die das ein eine einen mein meine ich wir in im am an auf für bei mit el la los las un una mi yo en por para le les des
    ma mon je à dans pour il lo gli io per con a o os as um uma meu minha eu em na het een mijn ik op voor bij в на
    для я мой моя
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
# How people speak of what
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Theme:
    """Words of keys, and how people speak of what these keys are for.

    told    beside one of these a value is of this theme
    only    behind one of these a value is of this theme and of no other
    """

    keys: frozenset[str]
    told: p.Phrases
    only: p.Phrases


def _theme(keys: str, told: str, only: str = "") -> _Theme:
    return _Theme(frozenset(keys.split()), p.Phrases(f"{told},{only}"), p.Phrases(only))


_AT_WORK: Final = """
    work, works, working, employed, joined, arbeite, arbeitet, trabajo, trabaja, travaille, lavoro, lavora, trabalho, trabalha,
    werk, werkt, работаю, работает, çalışıyorum, 工作, 上班, 働, 勤め, 일하, 일해, 근무
    """
_LIKING: Final = """
    love, loves, enjoy, enjoys, like, likes, into, favourite, favorite, mag, liebe, gern, gerne, gusta, gustan, encanta, aime,
    adore, piace, piacciono, amo, gosto, adoro, hou van, graag, люблю, нравится, seviyorum, severim, 喜欢, 喜歡, 爱, 愛, 好き,
    좋아
    """

THEMES: Final = (
    _theme(
        "name nickname",
        "name, nickname, namen, nombre, nom, nome, naam, имя, spitzname, apodo, surnom, soprannome, apelido, bijnaam, adım",
        """
        call me, calls me, i'm called, i am called, my name is, name's, nenn mich, nenne mich, ich heiße, ich heisse,
        mein name ist, me llamo, llámame, mi nombre es, j m appelle, m appelle, appelle-moi, mi chiamo, chiamami, me chamo,
        chamo-me, me chame, ik heet, noem me, меня зовут, зови меня, мене звати, 我叫, 叫我, と申し, 呼んで, 名前は, 이름은, 불러
        """,
    ),
    _theme(
        "city town location residence country region home place neighbourhood neighborhood district village address",
        """
        live, lives, living, reside, based, settled, moved, moving to, home, wohn*, lebe, leben, lebt, zog, umgezogen, vivo, vive,
        vivimos, resido, mudé, habit*, vis, vit, déménag*, abito, abita, trasferit*, moro, mora, mudei, woon, woont, wonen,
        verhuisd, живу, живёт, живёт, живет, живём, живем, переехал*, yaşıyorum, oturuyorum, taşındım, μένω, أسكن, 搬到, 引っ越,
        이사
        """,
        """
        live in, living in, reside in, wohne in, wohnen in, lebe in, leben in, vivo en, vivimos en, resido en, habite à,
        vis à, habitons à, abito a, vivo a, abito in, moro em, moro no, moro na, woon in, wonen in, живу в, живем в, живём в,
        住在, 住ん, 살
        """,
    ),
    _theme(
        "hometown birthplace origin",
        "grew up, i'm from, im from, am from, komme aus, aufgewachsen, soy de, viens de, vengo da, kom uit, из, 来自, 出身",
        """
        born in, geboren in, nací en, né à, née à, nato a, nata a, nasci em, родился в, родилась в, 出生在, 生まれ, 태어
        """,
    ),
    _theme(
        "birthday birthdate birth birthyear dob age",
        """
        years old, year old, jahre alt, birthday, geburtstag, cumpleaños, anniversaire, compleanno, aniversário, verjaardag, лет,
        года, рождения, yaşında*, yaşım, turned, años, ans, anni, anos, jaar, born, born in, geboren, nací, né, née, nato, nata,
        nasci, родился, родилась, doğdum, 岁, 歲, 歳, 生日, 誕生, 출생, 생일, 살
        """,
        "born on, nací el, nato il, nata il",
    ),
    _theme("employer company workplace", _AT_WORK),
    _theme(
        "job occupation profession role position career",
        f"""
        {_AT_WORK}, job, i'm a, i'm an, im a, im an, i am a, i am an, been a, been an, ich bin, soy, suis, sono, sou, ben, beruf,
        profesión, métier, mestiere, profissão, beroep, профессия
        """,
    ),
    _theme(
        "language languages tongue",
        """
        answer, answers, reply, replies, respond, responses, write, program, code, antworte*, schreib*, respond*, respónd*,
        réponds*, répondez, rispond*, antwoord*, praat, отвечай*, пиши, говори, cevap, yanıt, learn, learning, lerne, aprendo,
        apprends, imparo, leer, учу, parle-moi, parlami, fale, habla, háblame, sprich, 回答, 回复, 答え, 話し, 대답, 답
        """,
        """
        speak, speaking, spreche, hablo, j parle, parle, parlo, falo, spreek, говорю на, говорю по, konuşuyorum, 会说, 說, 说
        """,
    ),
    _theme(
        "allergy allergies allergen allergens intolerance intolerances",
        "allerg*, alerg*, intoleran*, intolérant*, аллерг*, alerji*, 过敏, 過敏, アレルギー, 알레르기",
        """
        allergic to, allergisch gegen, alérgico a, alérgica a, allergique à, allergique aux, allergico a, allergica a,
        allergisch voor, аллергия на, intolerant to
        """,
    ),
    _theme(
        "diet food foods eating dish meal",
        """
        vegan*, vegetari*, vegetar*, végét*, pescetari*, eat, esse, como, mange, mangio, eet, ем, yerim, веган*, вегетариан*,
        kosher, halal, gluten, lactose, 吃, 食べ, 素食, ベジタリアン, 菜食, 채식, 먹
        """,
    ),
    _theme(
        "drink drinks beverage coffee tea", "drink, trinke, bebo, tomo, bois, bevo, пью, içerim, içiyorum, 喝, 飲, 마셔"
    ),
    _theme(
        "hobby hobbies interest interests sport sports passion pastime likes like loves favourite favorite",
        f"{_LIKING}, hobby, play, spiele, juego, joue, gioco, jogo, speel, играю, collect, 趣味, 爱好, 취미",
    ),
    _theme(
        "music band genre",
        "listen, listening, höre, escucho, écoute, ascolto, ouço, luister, слушаю, dinliyorum, 听, 聴, 들어",
    ),
    _theme("instrument instruments", "play, spiele, toco, joue, suono, speel, играю, 弾, 연주"),
    _theme(
        "car vehicle bike bicycle motorbike", "drive, ride, fahre, conduzco, conduis, roule, guido, dirijo, rijd, езжу"
    ),
    _theme("os laptop computer device phone browser machine", "i'm on, im on, running"),
    _theme(
        "pet pets animal animals",
        """
        dog, dogs, cat, cats, rabbit, rabbits, parrot, hamster, horse, horses, tortoise, fish, bird, birds, hund, hunde, katze,
        katzen, hase, pferd, perro, perros, gato, gatos, chien, chiens, chat, chats, cane, cani, gatto, gatti, cachorro, hond,
        kat, собака, кот, кошка, köpek, kedi, 犬, 猫, 貓, 狗, 강아지, 고양이
        """,
    ),
    _theme(
        "health illness condition conditions",
        "suffer, suffer from, diagnosed with, leide an, padezco, souffre de, soffro di",
    ),
    _theme(
        "sibling siblings children kids",
        """
        sister, sisters, brother, brothers, kid, kids, child, children, son, sons, daughter, daughters, schwester*, bruder,
        brüder, kinder, hijos, hijo, hija, hermano*, hermana*, enfants, frère*, sœur*, figli, filhos, kinderen, детей, дети,
        kardeş*, çocuğum, 孩子, 子供, 兄弟, 姐妹, 아이
        """,
    ),
    _theme(
        "timezone tz",
        "time zone, timezone, zeitzone, huso, fuseau, fuso, tijdzone, часов*, utc, gmt, 时区, 時區, 시간대",
    ),
    _theme("pronoun pronouns", "pronoun, pronouns, pronomen, pronombres, pronoms, pronomi, he/him, she/her, they/them"),
    _theme(
        "studies study degree university school major",
        "study, studying, studiere, estudio, étudie, studio, estudo, studeer, учусь, изучаю, degree, university, school, major",
    ),
)

_USES: Final = p.Phrases(
    """
    use, uses, using, switched to, migrated to, changed to, went with, chose, picked, stick to, stick with, swear by, rely on,
    nutze, nutzen, benutze, benutzen, verwende, verwenden, umgestiegen auf, uso, utilizo, usamos, utilizamos, me pasé a,
    cambié a, utilise, utilisons, passé à, passée à, usiamo, passato a, passata a, mudei para, gebruik, gebruiken,
    overgestapt op, использую, используем, пользуюсь, перешёл на, перешла на, kullanıyorum, kullanıyoruz
    """
)
"""Behind one of these stands what somebody uses, whatever it is."""
_PREFERS: Final = p.Phrases(
    """
    prefer, prefers, rather have, bevorzuge, bevorzugen, prefiero, preferimos, préfère, préférons, preferisco, preferiamo,
    prefiro, preferimos, предпочитаю, предпочитаем
    """
)
_LIKES: Final = p.Phrases(_LIKING)
_RUNS: Final = p.Phrases("run, run on, running, running on, we're on, are on")
_MOVED: Final = p.Phrases("moved to, moving to, went to, gewechselt zu, me mudé a, passe à, moved on to")
"""The same, where the key is one that a fact has: else it may be a town."""
_USED_SPACELESS: Final = re.compile(
    r"(?:用|使用|换成|更喜欢|喜欢用)\Z|\A\s*(?:を使|を利用|を好|[을를] ?(?:써|쓰|사용|선호))"
)
_LIKED_SPACELESS: Final = re.compile(r"(?:喜欢|喜歡|爱|愛)(?:喝|吃|听)?\n|\n\s*(?:が(?:大)?好き|[을를] ?좋아)")
_NOT_USED: Final = frozenset(
    """
    deadline due date day time name owner lead author link url port address budget status goal client customer team rule reason
    version size birthday wedding meeting number count length
    """.split()
)
"""What nobody uses or prefers in that sense."""


# ---------------------------------------------------------------------------------------------------------------------
# The verdict
# ---------------------------------------------------------------------------------------------------------------------


def fits(key: str, value: str, text: str, *, in_use: bool = False) -> bool:
    """Whether a sentence of a message that states `value` is about what `key` names.

    in_use   the key is one that a fact has
    """
    typed = typed_of(text)
    if typed is None:
        return False
    claim = Claim(key, value)
    return any(
        _fits(claim, mention, in_use)
        for sentence in sentences_of(typed)
        if judged(claim, sentence) > 0
        for mention in _mentions(claim, sentence)
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Words between two joints of a sentence, and their text for scripts without blanks."""

    words: Sequence[str]
    text: str

    def says(self, listed: p.Phrases) -> bool:
        return listed.within([word.removesuffix("'s") for word in self.words], self.text)


@dataclass(frozen=True, slots=True)
class _Mention:
    """A place of the value in a sentence.

    before, after   within the part that holds it      farther   the parts before that one, nearest first, and the heading
    """

    before: _Part
    value: _Part
    after: _Part
    farther: Sequence[_Part]

    @property
    def near(self) -> _Part:
        words = [*self.before.words, *self.value.words, *self.after.words]
        return _Part(words, self.before.text + self.value.text + self.after.text)

    @property
    def lead(self) -> list[str]:
        return [word for word in self.before.words if word not in _ARTICLES and word not in p.OFTEN]


_JOINT: Final = re.compile(
    r"[,;()\n，、]|(?<!\w)(?:and|but|und|aber|y|pero|et|mais|e|ma|mas|en|maar|и|но|ve|ama)(?!\w)"
)
_ARTICLES: Final = frozenset(
    "a an the der die das den dem ein eine einen einem einer el la un una le les il lo o os um uma de het een".split()
)


def _mentions(claim: Claim, sentence: Sentence) -> Iterator[_Mention]:
    for start, end in claim.spans(sentence.text, sentence.tokens):
        *far, before = _JOINT.split(sentence.text[:start])
        after = _JOINT.split(sentence.text[end:])[0]
        parts = (_Part(words_of(text), text) for text in (*reversed(far), sentence.under))
        value = sentence.text[start:end]
        yield _Mention(
            _Part(words_of(before), before), _Part(words_of(value), value), _Part(words_of(after), after), tuple(parts)
        )


def _fits(claim: Claim, mention: _Mention, in_use: bool) -> bool:
    if (
        _is_of_another_theme(claim, mention)
        or _is_of_other_work(claim, mention.value.words)
        or _is_a_subject(claim, mention)
    ):
        return False
    verdict = _told(claim, mention)
    return _is_used(claim, mention, in_use) if verdict is None else verdict


def _is_of_another_theme(claim: Claim, mention: _Mention) -> bool:
    """Whether a form that belongs to other keys leads up to the value."""
    lead = mention.lead
    if any(_ends_with(one.only, lead) and not one.keys & claim.subject for one in THEMES):
        return True
    if not lead or not mention.before.says(_WORKING):
        return False
    if lead[-1] in _AS:
        return not claim.subject & _JOBS
    return lead[-1] in _AT and not claim.subject & _EMPLOYERS


def _is_of_other_work(claim: Claim, words: Sequence[str]) -> bool:
    """Whether a value that tells of work tells of another side of it than the key names."""
    as_what = claim.subject & _EMPLOYERS and not _AS.isdisjoint(words[1:])
    at_whom = claim.subject & _JOBS and not claim.subject & _EMPLOYERS and not _AT.isdisjoint(words)
    return bool(as_what or at_whom)


def _ends_with(listed: p.Phrases, lead: Sequence[str]) -> bool:
    return any(listed.length_at(lead, index) == len(lead) - index for index in range(len(lead)))


_WORKING: Final = p.Phrases(_AT_WORK)
_AS: Final = frozenset("as als como comme come кем".split())
_AT: Final = frozenset("at for with by bei für para chez pour presso per na no bij voor".split())
_EMPLOYERS: Final = frozenset("employer company workplace work client customer organisation organization".split())
_JOBS: Final = frozenset("job occupation profession role position career title work".split())

_COPULAS: Final = frozenset("is are ist sind es son est sont è sono é são zijn это heißt called".split())


def _is_a_subject(claim: Claim, mention: _Mention) -> bool:
    """Whether the value is what something is said of: the editor of "my editor is …", but not Helix of "Helix is my editor"."""
    after = mention.after.words
    if not after or after[0] not in _COPULAS or p.WHERE_I.stand_at(after, 0):
        return False
    return not any(map(claim.is_subject, after[1:6]))


def _told(claim: Claim, mention: _Mention) -> bool | None:
    """Whether the nearest part that states something names the key, or says what people say of what it names; None where
    nothing tells.

    Each word of a key of the owner's person counts: `user.former_employer` is not `user.employer`.
    """
    persons = [word for word in claim.named if _persons_called(word)]
    themes = [one for one in THEMES if one.keys & claim.subject and not (persons and "name" in one.keys)]
    if claim.prefix not in ("user", "pref"):
        themes = []  # they are of persons
    for part in (mention.near, *mention.farther):
        named = {word for word in claim.subject if _is_named(word, part)}
        told = [one for one in themes if _is_beside(one, claim, mention, part)]
        if named or told:
            if part == mention.near and not told and claim.prefix == "user" and not _names_beside(named, mention):
                continue
            rest = claim.subject.difference(named, QUALIFIERS, _AFTER_NAMES, *(one.keys for one in told))
            if rest and claim.prefix == "pref":
                return None
            spoken = all(_is_named(person, part) for person in persons)
            return spoken and not rest and _has_its_kind(claim, mention) and _is_called(claim, mention, persons)
        if _states(part):
            break
    return False if persons or claim.prefix not in ("pref", "project") or (themes and not _is_liked(claim)) else None


def _is_liked(claim: Claim) -> bool:
    """Whether the key is for something that one likes, as "I love …" tells of it."""
    return claim.prefix == "pref" and not claim.subject.isdisjoint(_LIKED)


_LIKED: Final = frozenset("food foods dish meal drink drinks beverage coffee tea music band genre".split())


def _names_beside(named: Iterable[str], mention: _Mention) -> bool:
    """Whether a key's words stand before the value, in it, or behind it as what it is: "4 May is my birthday", "peanut
    allergy", but not "Fedora on my laptop"."""
    after = mention.after.words
    said = [
        *mention.before.words,
        *mention.value.words,
        *(after[:6] if after[:1] and after[0] in _COPULAS else after[:1]),
    ]
    return any(_is_named(word, _Part(said, mention.before.text + mention.value.text)) for word in named)


def _states(part: _Part) -> bool:
    """Whether a part begins a statement of its own."""
    return not (p.POSSESSIVES | p.SUBJECTS).isdisjoint(part.words) or any(part.says(one.told) for one in THEMES)


_AFTER_NAMES: Final = frozenset("name type kind choice preference preferences date day time number status".split())
"""What a key's last part may add to what it names."""
_LEAST_HEAD: Final = 4


def _is_named(word: str, part: _Part) -> bool:
    """Whether a word of a key stands in a part of a sentence, in some form or language: allergy and allergic."""
    if any(map(part.says, _persons_called(word))) or (word in p.CONCEPTS and part.says(p.CONCEPTS[word])):
        return True
    bare = word.removesuffix("s")
    head = word[: max(_LEAST_HEAD, len(word) - 3)]
    return any(
        said.removesuffix("'s").removesuffix("s") == bare or (len(head) >= _LEAST_HEAD and said.startswith(head))
        for said in part.words
    )


def _persons_called(word: str) -> list[p.Phrases]:
    """The table's entries for somebody that a word of a key names: daughter, dog."""
    return [listed for listed in p.PERSONS.values() if listed.within([word])]


_BETWEEN: Final = (
    _ARTICLES
    | p.OFTEN
    | p.POSSESSIVES
    | frozenset(
        """
        in at to for as with of from on by since near in am im bei in zu als seit aus nach auf mit en de como desde à au aux en
        chez comme depuis da di a come in per presso dal em no na como desde bij als sinds op uit в на с из very some any only
        """.split()
    )
)
MOST_BETWEEN = 2
"""Words between what tells the theme and the value, articles and the like aside: "work at Northlight as a nurse"."""


def _is_beside(theme: _Theme, claim: Claim, mention: _Mention, part: _Part) -> bool:
    """Whether the part says of the value, and beside it, what is said of such things."""
    if _is_age(theme, claim, part):
        return True
    if any(phrase in part.text for phrase in theme.told.parts):
        return True
    words = mention.before.words if part == mention.near else part.words
    for index in range(len(words)):
        length = theme.told.length_at(words, index)
        if length and sum(word not in _BETWEEN for word in words[index + length :]) <= MOST_BETWEEN:
            return True
    return part == mention.near and (
        theme.told.within(mention.value.words) or theme.told.within(mention.after.words[:3])
    )


_I_AM: Final = p.Phrases("i'm, im, i am, ich bin, tengo, j ai, ho, tenho, ik ben, мне, 我")


def _is_age(theme: _Theme, claim: Claim, part: _Part) -> bool:
    """ "I'm 29"."""
    return "age" in theme.keys & claim.subject and claim.text.isdigit() and _I_AM.within(part.words)


_DATES: Final = frozenset("birthday birthdate birthyear dob age year".split())
_PLACES: Final = frozenset("city town country birthplace hometown residence region name".split())
OLDEST = 130


def _has_its_kind(claim: Claim, mention: _Mention) -> bool:
    """Whether a value that must be a number has digits, all of them, and one that must be a place or a name has none."""
    digits = any(char.isdigit() for char in claim.text)
    after = mention.after.words
    if claim.text.isdigit() and after and (after[0] in MONTHS or after[0][:1].isdigit()):
        return False  # "4" of "4 May"
    if (
        mention.before.words[-1:]
        and mention.before.words[-1].isdigit()
        and claim.tokens[:1]
        and claim.tokens[0] in MONTHS
    ):
        return False  # "May" of it
    if "age" in claim.subject and claim.text.isdigit() and int(claim.text[:9]) > OLDEST:
        return False
    if claim.subject & _DATES:
        return digits or claim.spaceless
    return not (digits and claim.subject & _PLACES)


_CALLED: Final = frozenset(
    """
    called named name is heißt heisst ist llama es appelle est chiama è chama é heet зовут
    """.split()
)


def _is_called(claim: Claim, mention: _Mention, persons: Sequence[str]) -> bool:
    """Whether the name of somebody stands where names are said: "my sister is called …", "my sister Ana"."""
    if not persons or "name" not in claim.subject or not mention.lead:
        return True
    last = mention.lead[-1].removesuffix("'s")
    return last in _CALLED or any(_is_named(person, _Part([last], last)) for person in persons)


def _is_used(claim: Claim, mention: _Mention, in_use: bool) -> bool:
    """Whether the value is what somebody uses or prefers, and the key may be for such a thing."""
    if claim.prefix not in ("pref", "project") or claim.subject & _NOT_USED:
        return False
    if (claim.prefix == "project") != mention.before.says(_OURS):
        return False
    lead = mention.lead
    if _is_liked(claim):
        if _ends_with(_LIKES, lead) or _LIKED_SPACELESS.search(mention.before.text + "\n" + mention.after.text):
            return True
    elif _ends_with(_USES, lead) or (in_use and _ends_with(_MOVED, lead)) or _is_switched(lead):
        return True
    if _ends_with(_RUNS if claim.prefix == "project" else _PREFERS, lead):
        return True
    return bool(_USED_SPACELESS.search(mention.before.text) or _USED_SPACELESS.search(mention.after.text))


def _is_switched(lead: Sequence[str]) -> bool:
    """ "Switched from Vim to …"."""
    return lead[-1:] == ["to"] and any(word.startswith(("switch", "migrat")) for word in lead)


_OURS: Final = p.Phrases(
    """
    we, we're, we've, our, us, wir, unser*, nosotros, nuestro, nuestra, usamos, utilizamos, tenemos, nous, notre, nos, noi,
    nostro, nostra, usiamo, abbiamo, nós, nosso, nossa, temos, wij, onze, мы, наш*, biz, bizim, 我们, 我們, 私たち, うち, 우리,
    this repo, this project, this app, this codebase, this team, the repo, the project, the app, the team
    """
)
"""What is said of work that is not the owner's alone."""


def bears(key: str, value: str, text: str) -> bool:
    return True
