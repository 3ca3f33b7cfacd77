"""The extractor that needs no model: sentences in which the owner says by a word that they mean it for good.

"Remember", "from now on", "I always", "never", "prefer", "because": with such a marker a sentence the owner typed is worth
a question to the person. It is taken whole and in its own words, so nothing is made up, and nothing is believed: what comes
out are candidates, and the gate decides. What is quoted, pasted, asked, supposed, told of others or of yesterday is left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from clawmark.facts import phrases as p
from clawmark.facts import shape
from clawmark.facts.judge import introduces
from clawmark.facts.typed import Sentence, plain, typed_of, words_of
from clawmark.guard import secrets
from clawmark.model import Candidate, Utterance, digest
from clawmark.text import content_words, likeness, one_line

LONGEST = 300
"""Characters. A sentence is taken whole or not at all: its end may say the opposite of its beginning."""
LEAST_WORDS = 2
"""Content words of a lesson, and of a name that is made of them."""
SHORTEST = 4
"""Words of a sentence that has but one content word beside its marker, as in "I always use tabs"."""
OF_SENTENCE, OF_STATEMENT = 0.7, 0.8
"""Confidence of a sentence with a marker, and of "my editor is Helix", where key and value stand apart."""
KEY_WORDS = 3


def marked(utterances: Sequence[Utterance], own: Sequence[str] = ()) -> list[Candidate]:
    """What the owner's own sentences with a marker claim, in their order; of one sentence said twice the first.

    own   phrases that the person takes for markers as well
    """
    phrases = p.Phrases(*(" ".join(words_of(plain(phrase))) for phrase in own))
    named = frozenset(word for phrase in own for word in words_of(plain(phrase)))
    found: dict[str, Candidate] = {}
    for one in utterances:
        if one.origin == "owner" and one.citable:
            for sentence in _sentences(one.text):
                candidate = _candidate(sentence, one.number, phrases, named)
                if candidate is not None:
                    found.setdefault(likeness(sentence), candidate)
    return list(found.values())


_SENTENCE: Final = re.compile(r"[^\n。！？]+?(?:[.!?…]+(?=\s|$)|[。！？]+|$)", re.MULTILINE)
_LIST_MARK: Final = re.compile(r"^\s*(?:[-*•·–]|\d{1,2}[.)])\s+")


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a message that its owner typed as their own words, as they stand in it."""
    typed = typed_of(text)
    if typed is None:
        return
    kept = one_line(typed)
    for match in _SENTENCE.finditer(text):
        sentence = _LIST_MARK.sub("", match[0]).strip()
        said = one_line(plain(sentence))
        if not said or said not in kept:
            continue  # of a quote, or around one
        read = Sentence(said, said.endswith(("?", "？")))
        if introduces(read):
            return  # what follows is somebody else's text
        if not _is_asked(read):
            yield sentence


def _is_asked(sentence: Sentence) -> bool:
    words = sentence.words
    first = 0
    while first < len(words) and words[first] in p.LEADS:
        first += 1
    ends = sentence.text.rstrip(" .!。！").endswith(p.QUESTION_ENDS)
    return sentence.asked or ends or (first < len(words) and p.QUESTION_START.stand_at(words, first))


_OTHERS: Final = frozenset(
    "he she they er ella él ellos ellas elle ils elles lui lei loro ele ela eles elas hij zij он она они o onlar".split()
)


def _candidate(sentence: str, number: int, own: p.Phrases, named: frozenset[str]) -> Candidate | None:
    """named: the words of `own`, which say nothing of what the sentence is about."""
    said = one_line(plain(sentence)).rstrip(" .!。！…")
    if len(sentence) > LONGEST or secrets.find(sentence) or "[redacted" in said or shape.is_passing(sentence):
        return None
    words = words_of(said)
    if any(listed.within(words, said) for listed in (p.PRETENCE, p.ONCE, p.FOR_A_WHILE)):
        return None
    if p.REPORT.within(words, said) and not p.OWN_REPORT.within(words):
        return None
    if _OTHERS.intersection(words[:1]) or p.PRONOUN.within((), said[:2]):
        return None
    stated = _statement(sentence.strip(), said)
    if stated is not None:
        return Candidate(*stated, OF_STATEMENT, (number,), sentence)
    if own.within(words, said):
        prefix: str | None = "user"
    else:
        prefix = next((prefix for prefix, listed in MARKERS if any(one.search(said) for one in listed)), None)
    if prefix != "user" and _NOT_FOR_GOOD.search(said):
        return None
    content = [word for word in _content(said) if word not in named]
    if prefix is None or not _says_enough(prefix, content, words):
        return None
    value = one_line(sentence)
    return Candidate(f"{prefix}.{_name(said, content)}", value, OF_SENTENCE, (number,), sentence)


def _says_enough(prefix: str, content: Sequence[str], words: Sequence[str]) -> bool:
    return len(content) >= LEAST_WORDS or (prefix != "lesson" and len(content) == 1 and len(words) >= SHORTEST)


# ---------------------------------------------------------------------------------------------------------------------
# Markers
# ---------------------------------------------------------------------------------------------------------------------

_PARTS: Final = {
    # What may stand before an order or a statement and changes nothing of it.
    "START": r"^(?:(?:please|pls|also|and|so|but|ok|okay|hey|oh|btw|by the way,|bitte|und|auch|por favor|y|et|aussi|per favore|e"
    r"|anche|também|en|ook|alsjeblieft|и|пожалуйста|lütfen|ve)[,:]? )*",
    "ORDER": r"(?:please |bitte )?(?:use|ask|run|add|remind|check|write|answer|reply|respond|give|show|send|make|keep|put|start"
    r"|include|format|explain|call|tell|do not|don't|never|always|skip|avoid)",
    "WE": r"(?<!\w)(?:i|we|our|my|ich|wir|unser\w*|yo|nosotros|nuestr\w+|je|j'|nous|notre|io|noi|nostr\w+|eu|nós|noss\w+|ik|wij"
    r"|onze|я|мы|наш\w*|ben|biz|bizim)(?!\w)",
    "THAT": r"(?:[:,]| that| dass| que| qu'| che| dat|,? что)(?= |\w)",
}


def _patterns(listed: str) -> tuple[re.Pattern[str], ...]:
    """One pattern a line; what begins with "|" goes on from the line before."""
    joined = re.sub(r"\n\s*\|", "|", listed.strip())
    for name, part in _PARTS.items():
        joined = joined.replace(f"<{name}>", part)
    return tuple(re.compile(line.strip()) for line in joined.splitlines() if line.strip())


_USER: Final = _patterns(
    r"""
    <START>(?:remember|keep in mind|bear in mind|note|don't forget|do not forget|make a note)(?! (?:to|when|how|what
        |the time|last|me|our trip|those|if|for next|your|you)\b)(?:[:,]| that)?(?= )
    <START>(?:merk|merke|merken sie|notier|notiere) (?:dir|sich)(?: bitte)?(?:[:,]| dass)
    <START>(?:denk dran|denke daran|vergiss nicht)<THAT>
    <START>(?:recuerda|acuérdate(?: de)?|ten en cuenta|anota|no olvides)<THAT>
    <START>(?:retiens|souviens-toi|rappelle-toi|note|n'oublie pas)(?: bien)?<THAT>
    <START>(?:ricorda|ricordati|ricordatevi|tieni presente|annota|non dimenticare)<THAT>
    <START>(?:lembra|lembre|lembre-se|lembra-te|anota|anote|não esqueças?)(?: de)?<THAT>
    <START>(?:onthoud|bedenk|vergeet niet|noteer)<THAT>
    <START>(?:запомни|запомните|помни|имей в виду|учти|не забудь)<THAT>
    (?:unutma|aklında tut|aklında olsun|hatırla|not al)(?:yın)?(?:[:,] .+)?$
    ^(?:请|請|帮我|你要)?(?:记住|記住|记一下|記一下|记好|别忘了|請記得|请记得)(?:了)?[,，:：]?(?!要)
    (?:覚えておいて|覚えといて|覚えてて|忘れないで)(?:ください|ね|下さい|くださいね)?$
    (?:기억해|기억해줘|기억해 줘|기억해 주세요|기억해주세요|잊지 마|잊지 마세요)(?:요)?$
    """
)
_LESSON: Final = _patterns(
    r"""
    ^(?!.*\bi(?:'m| am)\b).*<WE>.{3,160}\b(?:because|for compliance|the reason being)\b
    \b(?:the reason (?:we|i|our)|for historical reasons|lesson learned|compliance requires)\b
    \bis a (?:hard |legal |strict )?requirement\b
    <WE>.{3,160}\b(?:weil|denn|aus compliance-gründen)\b
    \b(?:aus historischen gründen|der grund ist)\b
    (?:<WE>|\b(?:usamos|tenemos|hacemos|mantenemos)\b).{3,160}\b(?:porque|ya que)\b
    \bpor razones históricas\b
    <WE>.{3,160}\b(?:parce qu\w*|car)\b
    \bpour des raisons (?:historiques|de conformité)\b
    (?:<WE>|\b(?:usiamo|teniamo|facciamo)\b).{3,160}\bperché\b
    \bper motivi storici\b
    \b(?:usamos|temos|fazemos|mantemos)\b.{3,160}\bporque\b
    \bpor motivos históricos\b
    <WE>.{3,160}\bomdat\b
    \bom historische redenen\b
    <WE>.{3,160}\bпотому что\b
    \bпо историческим причинам\b
    \w(?:yoruz|yorum|riz|rız|ruz|rüz),? çünkü\b
    (?:我们|我們).{2,60}(?:因为|因為)
    (?:因为|因為).{2,60}所以(?:我们|我們)
    (?:私たち|うち|弊社).{2,60}(?:ため|ので|から)
    우리.{2,60}(?:때문에|때문이)
    """
)
_PREF: Final = _patterns(
    r"""
    \b(?:from now on|from here on|going forward|in the future|in future|as a rule|by default)\b
    \b(?:i|we) (?:almost |nearly )?(?:always|never)\b(?! (?:been|had|was|did|said|saw|got|knew|thought|went|heard|met
        |told|came|gave|took|made|felt|found|left|ever|mind|\w+ed)\b)
    <START>(?:always|never|do not ever|don't ever)\b(?! (?:mind|ending)\b| again$)
    \b(?:(?:i|we) (?:\w+ ){0,2}prefer|my (?:strong )?preference is|i'd rather|i would rather)\b
    <START>(?:prefer|stick to|stick with)\b
    ^(?:and |so )?(?:every time|whenever|each time)\b[^,]{3,80}, <ORDER>\b
    <START><ORDER>\b.{3,120}\b(?:every time|whenever|each time)\b
    \b(?:ab jetzt|ab sofort|von nun an|in zukunft|künftig|grundsätzlich|standardmäßig)\b
    \b(?:ich|wir) [^\W\d]+ (?:\w+ ){0,3}(?:immer|nie|niemals|stets|lieber)\b
    \b(?:immer|nie|niemals) (?:\w+ ){0,3}(?:ich|wir)\b
    <START>(?:[^\W\d]+ )?(?:immer|niemals|nie|stets)\b(?! (?:noch|mehr|wieder)\b)
    \b(?:ich bevorzuge|wir bevorzugen|(?:mir|uns) (?:ist|sind) .{2,60} lieber)\b
    \b(?:jedes mal,? wenn|immer wenn) [^,]{3,80},\s
    \b(?:de ahora en adelante|a partir de ahora|en adelante|por defecto|prefiero|preferimos|cada vez que)\b
    (?:^|[,;:] |\b(?:yo|y|que) )(?:siempre|nunca|jamás)\b(?! (?:he|dije|hice|tuve|pude|vi|ha|había|hemos|me ha|estuve
        |estive|fui|tive|más|mais)\b)(?: (?:me
        |te|lo|la|le|se))? [^\W\d]+(?:o|as|es|emos|amos|e|a|on)\b
    \b(?:désormais|dorénavant|à partir de maintenant|à l'avenir|par défaut|je préfère|nous préférons
        |chaque fois que)\b
    \b(?:je|j'|nous|on) ?(?:n'|ne |me )?(?!suis|ai|avons|sommes)[^\W\d]+ (?:toujours|jamais)\b
    <START>(?:toujours|[^\W\d]+-moi toujours|[^\W\d]+(?:ez|e|s) toujours|ne (?:m'|me |te |l[ae]s? |l')?[^\W\d]+ jamais
        |n'[^\W\d]+ jamais)\b
    \b(?:d'ora in poi|da ora in poi|in futuro|di norma|preferisco|preferiamo|ogni volta che)\b
    \b(?!sono|ho|è|ha)[^\W\d]+(?:o|amo|i|a|are|ere|ire) (?:sempre|mai)\b(?! (?:stat|and|vist|fatt|avut)\w*)
    <START>sempre\b
    \b(?:de agora em diante|a partir de agora|daqui em diante|daqui para a frente|por padrão|prefiro|toda vez que
        |sempre que)\b
    (?:^|[,;:] |\b(?:eu|e|que) )(?:sempre|nunca)\b(?! (?:he|dije|disse|fiz|pude|ha|hemos|estuve|estive|fui|tive|vi
        |mais|más)\b) (?:me )?[^\W\d]+(?:o|amos|emos|e|a)\b
    \b(?:vanaf nu|voortaan|in het vervolg|standaard|ik geef de voorkeur|elke keer als|telkens als)\b
    \b(?:ik|wij|we) (?!ben|heb|was|had)[^\W\d]+ (?:\w+ ){0,3}(?:altijd|nooit|liever|bij voorkeur)\b
    <START>(?:[^\W\d]+ )?(?:me |mij )?(?:altijd|nooit)\b
    \b(?:отныне|с этого момента|впредь|в будущем|по умолчанию|предпочитаю|предпочитаем|каждый раз,? когда)\b
    \b(?:я|мы) (?:почти )?(?:всегда|никогда)\b(?!.*\b\w+[аеиоуя]л[аи]?(?:с[ья])?\b)
    <START>(?:всегда|никогда)\b(?! не был)
    \b(?:bundan sonra|bundan böyle|şu andan itibaren|her seferinde|varsayılan olarak|tercih eder(?:im|iz))\b
    \b(?:her zaman|daima|asla|hiçbir zaman) .{3,80}(?:[ıiuüae]r[ıiuü]m|m[ae]m|yorum|[ıiuü]r[ıiuü]z)$
    <START>(?:her zaman|daima|asla)\b
    以后都?|以後|今后|从现在起|从今以后|從現在起
    (?:^|[,，])(?:请|請)?(?:总是|總是|永远|永遠|一定要|绝对不要|绝不要|千万别|千万不要)
    我们?(?:总是|總是|一直都?|从不|從不|从来不|從來不|更?喜欢用|更喜欢|更喜歡|比较喜欢|偏好|宁愿)
    每次[^,，]{1,20}[,，]?(?:都要|请|必须)
    これからは|今後は|今後も|今度からは
    ^(?!彼|彼女|あの)(?:[^。]{0,20}は)?いつも[^。]{2,40}(?:ます|ている|てる|して|ください|います)$
    (?:必ず|毎回)[^。]{2,40}(?:て|ください|こと)$
    (?:絶対に|決して)[^。]{2,40}(?:ないで|しない|ません|な|ないでください)$
    (?:方|ほう)が(?:好き|いい)|を好み|が好みです|派です$
    앞으로(?:는|도)?|이제부터|지금부터|선호(?:해|합|한)|더 좋아
    ^(?!그는|그녀|걔)(?:.{0,20} )?(?:항상|언제나|늘|절대로?|매번) .{2,40}(?:요|다|줘|세요|마|지 마)$
    """
)

MARKERS: Final = (("user", _USER), ("lesson", _LESSON), ("pref", _PREF))
"""By what a sentence says that it is meant for good, and the prefix of the key that it gets. On text in normal form."""

(_NOT_FOR_GOOD,) = _patterns(
    r"""
    \b(?:was|were|wasn't|weren't|had|hadn't|did|didn't|used to|would(?! rather)|wouldn't|could|might|may|maybe|perhaps
        |will|won't|gonna|going to|yesterday|last (?:week|night|year|month|time)|keeps failing|sorry
        |war|waren|hatten?|wurden?|würden?|könnten?|vielleicht|gestern|letzte[ns]?|wollten?|mussten?|kam|kamen|ging|gingen
        |blieb|fiel|habe?n? (?:\w+ ){0,4}(?:nie|niemals|immer) (?:\w+ ){0,3}ge\w+(?:t|en)
        |era|fue|fui|había|sería|podría|quizás?|tal vez|ayer|llegué|estaba
        |étais|était|avait|avais|serait|pourrait|peut-être|hier|en retard
        |ero|avevo|sarei|sarebbe|potrebbe|forse|ieri|in ritardo|tinha|estava|seria|talvez|ontem|cheguei
        |zou|misschien|gisteren|te laat|nog nooit|был[аио]?|бы|возможно|вчера|опоздал\w*|dün|belki)\b
        |[^\W\d]{2,}[dt][ıiuü][mk]$
        |昨天|也许|也許|可能|昨日|でした|ました|かもしれ|ことがあ|ことがな|어제|[했었았]어요?$|아마|본 적|来没去过|从来没
    """
)
"""What was, and what may be. Only whoever says "remember" may mean that."""

# ---------------------------------------------------------------------------------------------------------------------
# "My editor is Helix"
# ---------------------------------------------------------------------------------------------------------------------

_LATIN_MY: Final = "my|mein|meine|mi|mon|ma|il mio|la mia|mio|mia|o meu|a minha|meu|minha|mijn"
_IS: Final = "is|ist|es|est|è|é"
_CALLED: Final = (
    r"(?:'s name is|is called|is named|heißt|heisst|se llama|s'appelle|si chiama|se chama|chama-se|heet|zovut|зовут)"
)
_STATED: Final = (
    re.compile(rf"^(?:{_LATIN_MY}) (?P<what>[^\W\d_]+(?:[ -][^\W\d_]+)?) (?:{_IS}) (?P<value>\S.*)$"),
    re.compile(rf"^(?:{_LATIN_MY}) (?P<who>[^\W\d_]+) ?{_CALLED} (?P<value>\S.*)$"),
    re.compile(r"^(?:мой|моя|моё|мое) (?P<what>[^\W\d_]+) ?(?:[—–-]|это) ?(?P<value>\S.*)$"),
    re.compile(r"^(?:мою|моего|мой|моя) (?P<who>[^\W\d_]+) зовут (?P<value>\S.*)$"),
    re.compile(r"^我的(?P<what>[^是,，]{1,6})是(?P<value>[^,，]+)$"),
    re.compile(r"^(?:私|僕|俺)の(?P<what>[^は、]{1,8})は(?P<value>[^、]+?)(?:です|だ)$"),
    re.compile(r"^(?:내|제|저의|나의) ?(?P<what>\S{1,8}?)(?:은|는) (?P<value>.+?)(?:입니다|이에요|예요|이야|야)$"),
    re.compile(r"^benim (?P<what>[^\W\d_]+) (?P<value>\S.*)$"),
)
_FAVOURITE: Final = re.compile(
    r"^(?:my favou?rite|my preferred|mein(?:e)? lieblings-?|mi|mon|ma|il mio|la mia|o meu|a minha|mijn favoriete) ?"
    r"(?P<what>[^\W\d_]+)(?: favorit[oae]| préférée?| preferit[oa]| preferid[oa])? (?:is|ist|es|est|è|é) (?P<value>\S.*)$"
)
_FAVOURED: Final = re.compile(r"favou?rite|preferred|lieblings|favorit|préféré|preferit|preferid")
_MOST_VALUE_WORDS: Final = 5
_NO_VALUE: Final = re.compile(
    r"^(?:not|no|too|so|very|really|that|this|when|if|how|what|why|about|to|in|on|at|for|being|getting|broken|slow|down|late|bad"
    r"|wrong|here|there|gone|fine|ok|okay|full|empty|dead|nicht|kein\w*|zu|sehr|dass|kaputt|langsam|que|muy|demasiado|no|trop|pas"
    r"|très|non|molto|troppo|che|não|muito|niet|te|heel|не|что|\w+ing)(?!\w)"
)


def _statement(sentence: str, said: str) -> tuple[str, str] | None:
    """Key and value of a sentence that names both; None for any other."""
    lead = re.match(_PARTS["START"], said)
    body = said[lead.end() :] if lead else said
    found = _stated_in(body)
    if found is None:
        return None
    key, value = found
    if len(words_of(value)) > _MOST_VALUE_WORDS or _NO_VALUE.search(value):
        return None
    return key, _as_written(value, sentence)


def _stated_in(body: str) -> tuple[str, str] | None:
    favourite = _FAVOURITE.match(body)
    if favourite and _FAVOURED.search(body[: favourite.start("value")]):
        what = _ascii(favourite["what"])
        return (f"pref.favourite_{what}", favourite["value"]) if what else None
    for match in filter(None, (pattern.match(body) for pattern in _STATED)):
        who = "who" in match.groupdict()
        named = _concept(match["who"], p.PERSONS) if who else _concept(match["what"], p.CONCEPTS)
        if named is not None:
            key = f"user.{named}_name" if who else f"{'pref' if named in _OF_TASTE else 'user'}.{named}"
            return key, match["value"]
    return None


_OF_TASTE: Final = frozenset(("editor", "diet", "language"))


def _concept(said: str, table: dict[str, p.Phrases]) -> str | None:
    bare = said.removesuffix("'s")
    return next((name for name, listed in table.items() if listed.within([bare], bare)), None)


def _as_written(value: str, sentence: str) -> str:
    """The value as it stands in the sentence, capitals and all."""
    found = re.search(re.escape(value).replace(r"\ ", r"\s+"), sentence, re.IGNORECASE)
    return one_line(found[0]) if found else value


# ---------------------------------------------------------------------------------------------------------------------
# Keys
# ---------------------------------------------------------------------------------------------------------------------

_OF_MARKERS: Final = frozenset(
    """
    always never remember prefer prefers preference from now future forward going default every each time times whenever
    because reason rule note keep mind bear forget immer nie niemals stets merk merke dir bitte künftig zukunft jetzt
    bevorzuge lieber weil siempre nunca jamás recuerda prefiero adelante partir ahora cada vez porque toujours jamais
    désormais dorénavant préfère chaque fois parce retiens souviens toi sempre mai preferisco ricorda ricordati ogni volta
    perché nunca prefiro lembre lembra diante agora toda altijd nooit liever voortaan vanaf onthoud keer omdat всегда никогда
    предпочитаю запомни помни впредь отныне потому zaman daima asla tercih ederim unutma hatırla bundan sonra çünkü
    """.split()
)


def _content(said: str) -> list[str]:
    return [word for word in content_words(said) if word not in _OF_MARKERS and word not in p.STOP_VALUES]


def _name(said: str, content: Sequence[str]) -> str:
    """The last part of a key: the first content words, or for scripts that a key cannot hold a mark of the sentence."""
    words = [spelled for spelled in map(_ascii, content) if spelled]
    if len(words) >= LEAST_WORDS or (words and said.isascii()):
        return "_".join(words[:KEY_WORDS])
    return f"note_{digest(likeness(said)).hex()[:8]}"


def _ascii(word: str) -> str:
    """A word as a key can hold it; "" for one that would lose most of its letters."""
    folded = unicodedata.normalize("NFKD", word.replace("ß", "ss").replace("ı", "i").replace("ø", "o"))
    kept = re.sub(r"[^a-z0-9]", "", folded.lower())
    return kept[:20] if len(kept) >= max(2, len(word) - 1) else ""
