"""What a sentence does to a value that stands in it: states it, denies it, or neither (asks, supposes, reports).

First what speaks against it (a question, a report, a denial: what is taken for one and is none costs a miss), then whether
it has one of the forms that count: a state of one's own, a thing of one's own, an instruction for good (`is_owners`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from clawmark.facts import phrases as p
from clawmark.facts.claim import Claim
from clawmark.facts.typed import HANGUL, KANA, SPACELESS, SPEAKER, Sentence, words_of

MOST_MENTIONS = 8
"""Of a value in one sentence. Nobody says a plain thing more often at once."""


def _mentions(claim: Claim, sentence: Sentence) -> list[tuple[int, int]]:
    return list(islice(claim.spans(sentence.text, sentence.tokens), MOST_MENTIONS + 1))


def beside(claim: Claim, sentence: Sentence) -> list[str]:
    """The words of a sentence without those of the value."""
    spans = _mentions(claim, sentence)
    return [t.text for t in sentence.tokens if not any(s <= t.start and t.end <= e for s, e in spans)]


def judged(claim: Claim, sentence: Sentence) -> int:
    """1 where any mention in the sentence is a plain statement and none denies it."""
    spans = _mentions(claim, sentence)
    if len(spans) > MOST_MENTIONS:
        return -1
    verdicts = [_mention(claim, sentence, start, end) for start, end in spans]
    return -1 if -1 in verdicts else max(verdicts, default=0)


@dataclass(frozen=True, slots=True)
class Around:
    """The words before and after a mention, and the text they stand in."""

    before: list[str]
    after: list[str]
    left: str
    right: str

    @property
    def words(self) -> list[str]:
        return [*self.before, "\n", *self.after]

    @property
    def text(self) -> str:
        return f"{self.left}\n{self.right}"

    def has(self, listed: p.Phrases) -> bool:
        return listed.within(self.words, self.text)


def around_of(sentence: Sentence, start: int, end: int, bounds: tuple[int, int]) -> Around:
    low, high = bounds
    inside = [token for token in sentence.tokens if low <= token.start and token.end <= high]
    return Around(
        [token.text for token in inside if token.end <= start],
        [token.text for token in inside if token.start >= end],
        sentence.text[low:start],
        sentence.text[end:high],
    )


def _mention(claim: Claim, sentence: Sentence, start: int, end: int) -> int:
    """1 for a plain statement, -1 for one that denies the value, 0 for anything else."""
    whole = around_of(sentence, start, end, (0, len(sentence.text)))
    near = around_of(sentence, start, end, sentence.statement(start, end))
    marked = claim.only_symbols or "`" in sentence.text[max(0, start - 1) : end + 1]
    if marked and len(whole.before) + len(whole.after) < 2:
        return 0
    if _is_asked(sentence, whole) or _is_framed(claim, sentence, whole):
        return 0
    if _is_denied(sentence, near):
        return -1
    earlier = whole.before[: len(whole.before) - len(near.before)]
    if (p.MATERIAL.within(earlier) and not p.OWN_REPORT.within(earlier)) or _JEST.search(sentence.text):
        return 0
    if is_of_others(claim, near) or _is_one_of_two(near):
        return 0
    return int(is_owners(claim, near, sentence) if claim.about_the_owner else _is_of_the_work(claim, near, sentence))


_JEST = re.compile(p.JEST)
_POLITE = re.compile(rf"^(?:{p.POLITE_LEADS}\W+)*(?:{p.POLITE})\b")
_TAG = re.compile(r"[,.] ?(?:ok|okay|please|thanks|alright|bitte|por favor|s'il te plaît)$")
_DOUBTED = re.compile(r"\b(?:what|whether|if|how|why|who|where|which|when)\b")


def _is_asked(sentence: Sentence, whole: Around) -> bool:
    text, words = sentence.text, sentence.words
    if _POLITE.match(text):
        return _DOUBTED.search(text) is not None
    if sentence.asked and not _TAG.search(text):
        return True
    first = 1 if len(words) > 1 and words[0] in p.LEADS else 0
    if words and p.QUESTION_START.stand_at(words, first):
        return True
    if words and words[0].endswith(("-je", "-tu", "-vous")):
        return True
    if len(words) > 1 and (words[1] == "ik" or (words[1] in ("ich", "du") and words[0].endswith(("e", "st")))):
        return True  # the verb stands first
    return whole.has(p.QUESTION_WITHIN) or text.endswith(p.QUESTION_ENDS)


_POLITENESS = frozenset("please can could would will you bitte now and then ok okay hey hi".split())


def _is_framed(claim: Claim, sentence: Sentence, whole: Around) -> bool:
    """Whether the sentence as a whole is a condition, a report, a task, or stands under a heading that is one."""
    if _is_condition(sentence, whole) or (whole.has(p.REPORT) and not p.OWN_REPORT.within(whole.before)):
        return True
    if (_is_task(whole.before) and not _is_for_good(claim, whole)) or p.TASK_SPACELESS.within((), whole.text):
        return True
    head, colon, _ = whole.left.partition(":")
    if colon and not _is_own_heading(claim, head):
        return True
    return _is_of_a_speaker(claim, whole) or (bool(sentence.under) and _is_under(claim, sentence.under))


def _is_own_heading(claim: Claim, head: str) -> bool:
    """Whether what stands before a colon leaves what follows the owner's: a label, a request to remember, "about me"."""
    words = words_of(head)
    if p.MATERIAL.within(words, head):
        return False
    if len(words) <= 1 or words[0] in p.POSSESSIVES | p.LABELS or any(map(claim.names, words)):
        return True
    lead = _skip(p.LEAD, words, 0)
    return lead == len(words) or p.COMMANDS.stand_at(words, lead) or words[-2:] == ["about", "me"]


def _is_task(words: Sequence[str]) -> bool:
    """Whether words begin with something to be done with a text: what follows is its matter, no statement."""
    asked = [word for word in words if word not in _POLITENESS]
    return bool(asked) and p.TASK.stand_at(asked, 0)


def _is_for_good(claim: Claim, whole: Around) -> bool:
    """Whether a task is one for all times: "write dates as …"."""
    words = whole.before[_skip(p.LEAD, whole.before, 0) :]
    length = p.TASKS_KEPT.length_at(words, 0) if words else 0
    return bool(length) and (p.FOR_GOOD.stand_at([*words[length:], *claim.tokens], 0) or whole.has(p.TO_ASSISTANT))


def _is_condition(sentence: Sentence, whole: Around) -> bool:
    if _POLITE.match(sentence.text):
        return False  # what else would make it one is looked for in `_is_asked`
    if whole.before[:1] == ["se"] and whole.before[1:2] not in (["llama"], ["chama"]):
        return True
    if "si chiama" in whole.left and not p.CONDITION.within([word for word in whole.words if word != "si"]):
        return False
    if "when you" in sentence.text and not p.CONDITION.within([word for word in whole.words if word != "when"]):
        return False  # the assistant's own doing is no condition
    if not whole.has(p.CONDITION):
        return False
    if not p.POLITE_WISH.within(whole.words) or p.UNFULFILLED.within(whole.words):
        return True
    rest = [word for word in whole.words if word not in ("would", "i'd", "würde", "hätte")]
    return p.CONDITION.within(rest, whole.text)


def _is_of_a_speaker(claim: Claim, whole: Around) -> bool:
    """Whether a name and a colon stand before what somebody says of himself."""
    for speaker in SPEAKER.finditer(whole.left):
        named = speaker[1] in p.LABELS or claim.names(speaker[1]) or p.COMMANDS.stand_at([speaker[1]], 0)
        words = words_of(whole.left[speaker.end() :])
        if not named and words and (p.STARTS.stand_at(words, 0) or p.COMMANDS.stand_at(words, 0)):
            return True
    return False


_HEADINGS = (p.NEGATION, p.LACK, p.DROPPED, p.CONDITION, p.REPORT, p.PRETENCE, p.PRONOUN, p.MATERIAL)


def _is_under(claim: Claim, heading: str) -> bool:
    words = words_of(heading)
    if any(listed.within(words, heading) for listed in _HEADINGS) or _is_task(words):
        return True
    if any(word.endswith("n't") or word == "no" for word in words) or p.QUESTION_START.stand_at(words, 0):
        return True
    return any(name not in claim.named and listed.within(words, heading) for name, listed in p.PERSONS.items())


_NOT_WHAT = frozenset(
    "really anymore any yet now always true at all sure kidding exactly more mehr wirklich so wait sorry longer idea".split()
)


def _is_denied(sentence: Sentence, near: Around) -> bool:
    before = near.before[2:] if near.before[:2] == ["don't", "forget"] else near.before
    if denies(before, near.text, sentence) or denies(_without_contrast(near), "", sentence):
        return True
    if p.LACK.within(near.before) or is_dropped(near.before) or is_dropped(near.after):
        return True
    if p.DROPPED.within((), near.text):
        return True
    return _is_left_behind(near) or _is_second_best(near.before)


def denies(words: Sequence[str], text: str, sentence: Sentence) -> bool:
    if p.NEGATION.within(words, text) or any(word.endswith("n't") for word in words):
        return True
    return "no" in words and not p.PORTUGUESE.within(sentence.words)


_CONTRAST = re.compile(
    r"\s*(?:[^\W_]+\s*)?(?:[,(—–-]|,? ?\b(?:and|und|y|et|e|en|и))\s*"
    r"(?:no|not|nicht|pas|non|não|niet|не) ([^,;()]+)"
)
_FORBIDDEN = re.compile(r",\s*(?:so |please )*don't \w+ (?!it\b|that\b|this\b|them\b|any)\w")


def _without_contrast(near: Around) -> Sequence[str]:
    """The words after a mention, but for ", not Vim" and ", don't suggest …", which deny something else."""
    contrast = _CONTRAST.match(near.right)
    if contrast:
        rest = words_of(contrast[1])
        if 1 <= len(rest) <= 4 and rest[0] not in _NOT_WHAT and not rest[0].endswith("n't"):
            return words_of(near.right[contrast.end() :])
    forbidden = _FORBIDDEN.search(near.right)
    return words_of(near.right[: forbidden.start()]) if forbidden else near.after


def is_dropped(words: Sequence[str]) -> bool:
    for index in range(len(words)):
        if p.STILL_SO.stand_at(words, index) or (index and p.STILL_SO.stand_at(words, index - 1)):
            continue
        if p.DROPPED.stand_at(words, index):
            return True
        following = words[index + 1] if index + 1 < len(words) else ""
        if p.BEFORE_NOW.stand_at(words, index) and following not in p.BEFORE_WHAT and not following.endswith("ing"):
            return True
    return False


def _is_left_behind(near: Around) -> bool:
    """ "from Vim to Helix": the one that is left."""
    if not near.has(p.LEAVING):
        return False
    if near.right.startswith(("から", "에서")) or near.left.endswith("从"):
        return True
    for word in reversed(near.before):
        if word in p.TO:
            return False
        if word in p.FROM:
            return True
    return False


def _is_second_best(before: Sequence[str]) -> bool:
    """ "tabs over spaces": the one that is not preferred."""
    preferred = p.PREFERS.first(before)
    return preferred is not None and p.COMPARED.first(before[preferred:]) is not None


_COPULAS = frozenset("is ist est es è é has hat".split())
_OF = frozenset("of de von vom di da do van from der des".split())
_PETS = frozenset("dog cat pet horse bird".split())


def is_of_others(claim: Claim, near: Around) -> bool:
    """Whether the statement names somebody else than the owner and the fact's own subject."""
    before = near.before
    if p.PRONOUN.within(before, near.text) and not claim.named & (p.PERSONS.keys() | _PETS):
        return True
    predicate = near.after[:5] if near.after[:1] and near.after[0] in _COPULAS else []
    owner = near.after[:4] if near.after[:1] and near.after[0] in _OF else []
    around = [word.removesuffix("'s") for word in (*before, *predicate, *owner)]
    for name, listed in p.PERSONS.items():
        if name in claim.named or (name in _PETS and claim.named & {"pet", "pets"}):
            continue
        if listed.within(around, near.text):
            found = [word for word in around if listed.within([word])]
            if not found or not all(claim.names(word) for word in found):
                return True
    return False


def is_owners(claim: Claim, near: Around, sentence: Sentence) -> bool:
    """Whether a statement has one of the few forms in which people speak of themselves or instruct an assistant. What has
    none of them is not the owner's, whatever it is: a rule of what counts is shorter than a list of what does not.

    "I live in …", "my editor is …", "call me …", "editor: …", or nothing but the value.
    """
    if SPACELESS.search(near.text) or claim.spaceless:
        return _is_owners_spaceless(claim, near)
    rest = _without_lead(near.before)
    if _is_bare(claim, rest, near.after, sentence) or _is_labelled(claim, near) or _is_apposed(claim, rest):
        return True
    if claim.named & p.HOMES and not (p.AT_HOME.within(near.words) or any(map(claim.names, near.words))):
        return False
    if p.FOR_A_WHILE.within(near.words) or not _is_complete(claim, near):
        return False
    return _is_a_state(claim, rest, near.after) or _is_of_mine(claim, rest) or _is_an_order(claim, near, rest)


def _without_lead(words: Sequence[str]) -> Sequence[str]:
    """Without what may stand before a statement: "btw", "please remember that", "since May"."""
    at = _skip(p.LEAD, words, 0)
    if at < len(words) and words[at] in p.SINCE:
        behind = range(at + 1, min(at + 6, len(words)))
        at = next((i for i in behind if words[i] in p.SUBJECTS or p.STATES_ALONE.stand_at(words, i)), at)
    if words[at + 1 : at + 2] and words[at] in p.GAPS and words[at + 1] in p.POSSESSIVES:
        at += 1  # il mio, o meu
    return words[at:]


def _skip(listed: p.Phrases, words: Sequence[str], at: int) -> int:
    while at < len(words) and (length := listed.length_at(words, at)):
        at += length
    return at


def _is_bare(claim: Claim, rest: Sequence[str], after: Sequence[str], sentence: Sentence) -> bool:
    """An answer that is the value alone, or an item of such a list under a heading that is the owner's."""
    if _skip(p.FILLERS, rest, 0) < len(rest):
        return False
    behind = _skip(p.FILLERS, after, 0)
    if behind < len(after) and not (behind == 0 and len(after) == 1 and claim.names(after[0])):
        return False
    if not sentence.item:
        return True
    words = words_of(sentence.under)
    return p.OWNER.within(words) or p.COMMANDS.within(words) or any(map(claim.names, words))


LABEL_WORDS = 4


def _is_labelled(claim: Claim, near: Around) -> bool:
    """ "Editor: Helix", "my hobbies: …"."""
    line = near.left[near.left.rfind("\n") + 1 :]
    head, sign, tail = line.partition(":") if ":" in line else line.partition("=")
    words = _without_lead(words_of(head))
    if not sign or len(words) > LABEL_WORDS or p.VERBS.within(words_of(tail)):
        return False
    return bool(words) and (words[0] in p.POSSESSIVES or all(w in p.DETERMINERS or claim.names(w) for w in words))


def _is_apposed(claim: Claim, rest: Sequence[str]) -> bool:
    """ "My dog Biscuit"."""
    return 2 <= len(rest) <= LABEL_WORDS and rest[0] in p.POSSESSIVES and claim.names(rest[-1])


def _is_complete(claim: Claim, near: Around) -> bool:
    """Whether the value is not the beginning of a longer name or noun: 30 in "30 tabs"."""
    follows = re.match(r"[\s*_`)]*", near.right)
    if not near.after or (follows and not near.right[follows.end() : follows.end() + 1].isalnum()):
        return True
    first = near.after[0]
    return (
        first in p.GOES_ON
        or claim.names(first)
        or any(listed.stand_at(near.after, 0) for listed in (p.FOR_GOOD, p.STATES, p.IS, p.FILLERS))
    )


_INVERTED = frozenset("ich wir ik wij".split())
LONGEST_BETWEEN = 10
"""Words between a verb and the value."""
MOST_ORDERED = 6
"""Words between an order and the value."""


def _is_a_state(claim: Claim, rest: Sequence[str], after: Sequence[str]) -> bool:
    """ "I live in …", of now and in the first person; in German also with the verb at the end, or before its subject."""
    if not rest:
        return _is_said_after(claim, after)
    if rest[0] in _INVERTED and len(rest) <= 4 and p.STATES.stand_at(after, 0):
        return not p.BREAKS.within(rest[1:])
    if rest[0] in p.SUBJECTS and _skip_words(p.OFTEN, rest, 1) == len(rest):
        return len(claim.tokens) > 1 or rest[0] == "я"  # the verb is the value's first word, or none
    end = _end_of_verb(rest)
    if not end:
        return False
    verb, between = rest[end - 1], rest[end:]
    between = between[1:] if between and between[0] in _INVERTED else between
    if len(between) > LONGEST_BETWEEN or p.BREAKS.within(between) or _is_perfect(verb, between, after):
        return False
    content = between[_skip_words(p.OFTEN, between, 0) :][:1]
    if verb in _BE and p.PLACES.intersection(content):
        return False  # where somebody is need not be where he stays
    if verb in _HAVE - _BE and p.PREPOSITIONS.intersection(between) and not any(map(claim.names, between)):
        return False  # "I have a meeting at …"
    return not any(word.endswith("ing") and word not in p.DOING for word in content)


def _is_said_after(claim: Claim, after: Sequence[str]) -> bool:
    """ "… is my editor", "… is where I live", "… trinke ich"."""
    if p.WHERE_I.stand_at(after, 0):
        return True
    if after[1:2] and after[1] in p.POSSESSIVES and p.IS.stand_at(after, 0):
        return any(map(claim.names, after[2:5]))
    return bool(after[1:2]) and after[1] in _INVERTED and p.STATES.stand_at(after, 0)


def _end_of_verb(rest: Sequence[str]) -> int:
    """Where the words behind the verb begin; 0 when there is none that holds for some time."""
    has_subject = rest[0] in p.SUBJECTS
    at = _skip_words(p.OFTEN, rest, int(has_subject))
    length = p.STATES_ALONE.length_at(rest, at) or (p.STATES.length_at(rest, at) if has_subject else 0)
    if length:
        return at + length
    turned = range(min(5, len(rest) - 1))
    return next((i + 1 for i in turned if rest[i + 1] in _INVERTED and p.STATES.stand_at(rest, i)), 0)


def _skip_words(listed: frozenset[str], words: Sequence[str], at: int) -> int:
    while at < len(words) and words[at] in listed:
        at += 1
    return at


_BE = frozenset("i'm im am bin estoy soy suis sono sou estou ben we're are".split())
_HAVE = frozenset("have i've habe hab haben bin sind heb ben zijn ai avons suis ho sono ich ik".split())
_PARTICIPLE = re.compile(
    r"(?!gegen|gern|genau|gesund|gebore|gezog|gewechsel)(?:[a-zäöü]{0,4}ge[a-zäöü]{2,}(?:t|en|d)|\w+iert)"
)
_FIRST_PARTICIPLE = re.compile(
    r"\w{2,}(?:ed|é|és|ée|ato|uto|ito)|been|done|seen|gone|met|made|bought|taken|had|eu|vu|pris|fait"
)


def _is_perfect(verb: str, between: Sequence[str], after: Sequence[str]) -> bool:
    """ "I have visited …", "ich habe in … gewohnt": what was, and need not be."""
    if verb not in _HAVE:
        return False
    first = between[:1] if verb in ("have", "i've", "ai", "avons", "ho") else []
    last = [*between, *after] if verb in p.GERMANIC else []
    return any(map(_FIRST_PARTICIPLE.fullmatch, first)) or any(map(_PARTICIPLE.fullmatch, last))


def _is_of_mine(claim: Claim, rest: Sequence[str]) -> bool:
    """ "My favourite band is …", "deadline is …" for a key with that word."""
    if not rest:
        return False
    mine = rest[0] in p.POSSESSIVES
    for at in range(1, min(len(rest), 7)):
        length = p.IS.length_at(rest, at)
        subject = rest[:at]
        named = [word for word in subject if claim.names(word)]
        if length and (mine or (named and all(w in p.DETERMINERS or w in named for w in subject))):
            between = rest[at + length :]
            return len(between) <= 4 and not p.BREAKS.within(between) and not any(w.endswith("ing") for w in between)
        if mine and named and p.ABOUT_OTHERS.stand_at(rest, at):
            return len(rest) - at <= 6
    return False


def _is_an_order(claim: Claim, near: Around, rest: Sequence[str]) -> bool:
    """ "Use metric units", "write dates as …": for good, not for the text at hand."""
    words, after = [*rest, *claim.tokens], near.after
    lead = near.before[: len(near.before) - len(rest)]
    at = int(words[0] in ("don't", "never", "always", "no"))
    length = p.ORDERS.length_at(words, at) or p.TASKS_KEPT.length_at(words, at)
    between = rest[at + length :]
    if len(between) > MOST_ORDERED or p.BREAKS.within(between) or _is_for_once(between, after):
        return False
    if p.TO_ASSISTANT.within(lead) and not p.OWNER.within(lead) and rest:
        return rest[0] not in p.NO_ORDER and not rest[0].endswith("ed")
    if p.ORDERS.stand_at(words, at):
        return True
    kept = any(p.FOR_GOOD.within(part) for part in (rest, after, claim.tokens)) or any(map(claim.names, between))
    return length > 0 and kept


def _is_for_once(between: Sequence[str], after: Sequence[str]) -> bool:
    return after[:1] == ["to"] or any(
        listed.within(words) for listed in (p.ONCE, p.FOR_THIS) for words in (between, after)
    )


def _is_of_the_work(claim: Claim, near: Around, sentence: Sentence) -> bool:
    """Whether a statement is of the owner's work, for a key that is not of himself: "we run …", "our budget is …",
    "deadline for … is …" where the key has the word, or a rule that the value begins."""
    if SPACELESS.search(near.text) or claim.spaceless:
        return True
    line = near.left[near.left.rfind("\n") + 1 :]
    label, _, tail = line.rpartition(": ")
    rest = _without_lead(words_of(tail))
    if any(map(claim.names, [*words_of(label), *rest, *near.after[:5]])) and not p.TASKS_KEPT.stand_at(rest, 0):
        return True
    if p.ONCE.within(rest) or p.ONCE.within(near.after):
        return False
    if _is_bare(claim, rest, near.after, sentence) or (
        not rest and claim.prefix == "lesson" and _is_complete(claim, near)
    ):
        return True
    if p.TASKS_KEPT.stand_at(rest, 0):
        return p.FOR_GOOD.within([*rest, *claim.tokens]) or p.TO_ASSISTANT.within(near.words)
    return any(listed.stand_at(rest, 0) for listed in (p.ORDERS, p.RUN, p.OUR_WORK))


_JA_TOPIC, _KO_TOPIC = re.compile(r"([^\s、,。]{1,12}?)(?:は|が|も)"), re.compile(r"(\S{1,12}(?:은|는|이|가))(?=\s)")
_JA_HOLDS, _KO_HOLDS, ZH_HOLDS = re.compile(p.JA_HOLDS), re.compile(p.KO_HOLDS), re.compile(p.ZH_HOLDS)


def _is_owners_spaceless(claim: Claim, near: Around) -> bool:
    """The same in scripts without spaces: no topic but the owner and his things, and a verb of what holds."""
    left, right = near.left.strip(), near.right.strip()
    concepts = [part for name in claim.named & p.CONCEPTS.keys() for part in p.CONCEPTS[name].parts]
    concepts += [part for name in claim.named & p.PERSONS.keys() for part in p.PERSONS[name].parts]
    if not left and not right:
        return True
    written = near.text + claim.text
    if KANA.search(written):
        topics = _JA_TOPIC.findall(left)
        return all(topic.startswith(p.JA_MINE) or topic in concepts for topic in topics) and bool(
            _JA_HOLDS.match(right)
        )
    if HANGUL.search(written):
        topics = _KO_TOPIC.findall(left + " ")
        mine = all(topic.startswith(p.KO_MINE) or {topic, topic[:-1]} & {*concepts} for topic in topics)
        return mine and bool(_KO_HOLDS.match(right))
    return bool(ZH_HOLDS.match(left))


_OR = frozenset("or oder или ou either entweder nor".split())


def _is_one_of_two(near: Around) -> bool:
    return bool(_OR.intersection([*near.before[-2:], *near.after[:1]])) or "还是" in near.text or "または" in near.text


def introduces(sentence: Sentence) -> bool:
    """Whether what follows the sentence is somebody else's text."""
    head, colon, _ = sentence.text.partition(":")
    words = words_of(head)
    if colon and _is_task(words):
        return True
    return p.MATERIAL.within(words, head) and (bool(colon) or bool(p.POINTING.intersection(words)))
