"""Whether the owner says that what stood at one version is at another one now: "we are on 2.0 now" after 1.2.

Such a sentence has no word of the key: the value says by itself that it is a version, and what is known says of what.
So every word of it, and of what was said before it in the message, must be one of those that people say this with, or of
the key. What names anything else, or speaks of a need, a plan or a release, leaves the key in doubt. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from clawmark import keys
from clawmark.facts import phrases as p
from clawmark.facts.claim import Claim
from clawmark.facts.judge import judged
from clawmark.facts.subject import QUALIFIERS
from clawmark.facts.typed import SPACELESS, Sentence, sentences_of, typed_of
from clawmark.model import Fact
from clawmark.text import normal

_SHAPE: Final = re.compile(r"v?\d{1,4}(?:\.\d{1,4}){1,3}", re.IGNORECASE)
_VERSION: Final = frozenset("version versión versione versão versie версия версию версии".split())

_WE: Final = frozenset(
    """
    we we're we've our wir unser unsere nosotros nuestro nous notre noi nostro nós nosso wij ons onze мы наш usamos
    utilizamos usiamo utilizziamo kullanıyoruz project projekt proyecto projet progetto projeto проект
    """.split()
)
_I: Final = frozenset("i i'm i've ich yo estoy uso utilizo je j io eu estou ik я".split())
_USE: Final = frozenset(
    """
    run runs running use uses using nutze nutzen nutzt benutze benutzen benutzt verwende verwenden verwendet uso utilizo
    usamos utilizamos utilise utilisons usiamo utilizziamo gebruik gebruiken gebruikt draaien draait использую
    используем использует kullanıyoruz
    """.split()
)
_BE: Final = frozenset(
    """
    am is are i'm we're bin sind ist estoy estamos está suis sommes est sono siamo è estou zit zitten я мы проект
    """.split()
)
"""In Russian the subject alone: "мы на 2.0"."""
_CHANGED: Final = frozenset(
    """
    moved upgraded updated switched migrated umgestiegen gewechselt aktualisiert migriert pasado pasamos actualizado
    actualizamos migrado migramos cambiado cambiamos passé passés passées migré passati passate aggiornato migrato
    passámos passamos mudámos mudamos migrámos atualizámos atualizamos overgestapt bijgewerkt gemigreerd перешёл перешел
    перешла перешли обновились
    """.split()
)
_TO: Final = frozenset("on to auf a à en sur vers alla su sulla na em para op naar на до".split())
_BESIDE: Final = frozenset(
    """
    zijn now currently already finally all just since jetzt nun inzwischen mittlerweile endlich bereits ahora ya
    actualmente finalmente maintenant désormais enfin ora adesso già agora já nu inmiddels eindelijk теперь сейчас уже
    наконец artık ok okay hi hey hello hallo hola bonjour salut ciao olá oi привет done great nice yes yay so and btw
    fyi the this la die der das de het il
    """.split()
)
_BEFORE: Final = frozenset(
    """
    have has we've i've haben hat habe hemos ha avons ai abbiamo temos hebben heb yesterday gestern ayer hier ieri
    ontem gisteren вчера
    """.split()
)
"""With these they changed to what they are on now. What they used with these is over: "Wir haben 2.0 benutzt"."""
_TOLD: Final = _VERSION | _WE | _I | _USE | _BE | _CHANGED | _TO | _BESIDE | _BEFORE | p.FROM
_NEAR: Final = 2
"""Words between which and the value stands no more than an article."""

_SAYS_SPACELESS: Final = re.compile(
    "(?:我们|我們|咱们|已).*(?:用|到)|到.*了"
    "|使っています|使ってます|使っている|使用しています|移行しました|アップグレードしました|更新しました|切り替えました"
    "|쓰고있어요|쓰고있습니다|사용하고있어요|사용합니다|업그레이드했어요|업그레이드했습니다|옮겼어요|바꿨어요"
)
_TOLD_SPACELESS: Final = re.compile(
    "(?:我们|我們|咱们|现在|現在|目前|已经|已經|已|都|了|版本|版|使用|用的是|用"
    "|(?:升级|升級|更新|换|換|切换|切換|迁移|遷移)到"
    "|今|もう|うち|私たち|バージョン|は|を|に|へ|使っています|使ってます|使っている|使用しています|移行しました"
    "|アップグレードしました|更新しました|切り替えました"
    "|우리|저희|지금|이제|현재|버전|은|는|을|를|로|으로|쓰고있어요|쓰고있습니다|사용하고있어요|사용합니다|업그레이드했어요"
    "|업그레이드했습니다|옮겼어요|바꿨어요)*"
)


def is_next_version(key: str, value: str, text: str, known: Sequence[Fact]) -> bool:
    """Whether a message says that what `key` names, which stands at a version in `known`, is at version `value` now.
    Where anything else stands at one as well, all words of this key must be said."""
    held = [fact for fact in known if fact.key == key]
    if not held or not all(_is_version(key, one) for one in (value, *(fact.value for fact in held))):
        return False
    claim = Claim(key, value)
    is_alone = not any(fact.key != key and _ends_in_version(fact.value) for fact in known)
    wanted = (claim.subject if is_alone else claim.named) - QUALIFIERS - _VERSION
    earlier = frozenset(normal(fact.value) for fact in held)
    for sentence in sentences_of(typed_of(text) or ""):
        if not _is_of_nothing_else(claim, sentence, earlier):
            return False
        if judged(claim, sentence) > 0:
            return wanted <= set(sentence.words) and _says_so(claim, sentence)
    return False


def _is_version(key: str, value: str) -> bool:
    return "version" in keys.words(key) and _SHAPE.fullmatch(value) is not None


def _ends_in_version(value: str) -> bool:
    """`3.11` and `Python 3.11`, and whatever else may be one."""
    return any(_SHAPE.fullmatch(word) for word in value.split()[-1:])


def _is_of_nothing_else(claim: Claim, sentence: Sentence, earlier: frozenset[str]) -> bool:
    """Whether a sentence has none but words that say this, of the key, and what stood there where it is left."""
    if SPACELESS.search(sentence.text):
        return _TOLD_SPACELESS.fullmatch(_beside(claim, sentence).strip("、。,，!！")) is not None
    return all(
        word in _TOLD or word == claim.text or word in claim.named or (word in earlier and before in p.FROM)
        for before, word in pairwise(["", *sentence.words])
    )


def _beside(claim: Claim, sentence: Sentence) -> str:
    return "".join(sentence.text.replace(claim.text, "").split())


def _says_so(claim: Claim, sentence: Sentence) -> bool:
    """Whether it says of whom, and that they use the version, are on it, or came to it."""
    if SPACELESS.search(sentence.text):
        return _SAYS_SPACELESS.search(_beside(claim, sentence)) is not None
    words = [word for word in sentence.words if word not in p.OFTEN and word not in _VERSION]
    who = _WE | (claim.named - _VERSION) | (_I if claim.about_the_owner else frozenset())
    if who.isdisjoint(words) or any(pair[0] == "to" and pair[1] in _USE for pair in pairwise(words)):
        return False  # "we have to use …"
    at = words.index(claim.text)
    near = {*words[max(0, at - _NEAR) : at], *words[at + 1 : at + 2]}
    if not near.isdisjoint(_USE) and _BEFORE.isdisjoint(words):
        return True
    return not (near.isdisjoint(_TO) or (_BE | _CHANGED).isdisjoint(words))
