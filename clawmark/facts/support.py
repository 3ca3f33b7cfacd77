"""Whether the owner typed what a tool call claims: the line between the person's word and the agent's.

A model may have read a call's words anywhere. They count as the owner's only where the value's whole words, in their
order, stand in one sentence the owner typed, said plainly and of himself: not quoted, pasted, denied, dropped, asked,
supposed, pretended or reported. In doubt they do not count: a miss costs the agent's lower rank, a false yes lets a web
page speak for the person. That the key fits the value is not judged. Pure; a message too long to be typed costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from clawmark.facts import phrases as p
from clawmark.facts.claim import Claim, is_part_of_a_name
from clawmark.facts.judge import (
    ZH_HOLDS,
    around_of,
    beside,
    denies,
    introduces,
    is_dropped,
    is_of_others,
    is_owners,
    judged,
)
from clawmark.facts.typed import SPACELESS, Sentence, sentences_of, typed_of, words_of
from clawmark.model import Said
from clawmark.text import remembered

MOST_MESSAGES = 50
SAME_WITHIN = timedelta(minutes=2)
FORGET_MESSAGES, FORGET_WITHIN = 3, timedelta(hours=1)


def supporting(key: str, value: str, said: Sequence[Said]) -> Said | None:
    """The newest of `said` that supports `value` under `key`; None when none does, or a later one takes it back."""
    claim = Claim(key, value)
    if not claim.says_something:
        return None
    found: Said | None = None
    acting = just = False
    for one in _in_order(said)[-MOST_MESSAGES:]:
        typed = _typed(one.text)
        if typed is None:
            continue
        if typed.is_play:
            acting = not typed.is_over
            continue
        verdict = 0 if acting else _verdict(claim, typed, found is not None, just)
        if verdict > 0 and is_part_of_a_name(claim, one.text):
            verdict = 0
        if verdict:
            found = one if verdict > 0 else None
        just = verdict > 0
    return found


def asks_to_forget(key: str, value: str | None, said: Sequence[Said], now: datetime) -> Said | None:
    """The newest of the owner's last messages that asks to forget just this fact; None when none does, or a later one
    takes it back."""
    claim = Claim(key, value or "")
    later: list[Said] = []
    for one in reversed(_in_order(said)[-FORGET_MESSAGES:]):
        typed = typed_of(one.text)
        if typed is not None and now - one.at <= FORGET_WITHIN:
            if _asks(claim, typed):
                return None if value and supporting(key, value, later[::-1]) else one
            if _keeps(claim, typed):
                return None
        later.append(one)
    return None


class _Typed(NamedTuple):
    """What of a message its owner typed. is_play: it begins a role play, is_over: or ends one."""

    text: str
    words: frozenset[str]
    is_play: bool
    is_over: bool


@remembered(2 * MOST_MESSAGES)
def _typed(text: str) -> _Typed | None:
    """Read once for all claims of a batch or of a turn."""
    typed = typed_of(text)
    if typed is None:
        return None
    words = words_of(typed)
    return _Typed(typed, frozenset(words), p.ROLE_PLAY.within(words, typed), p.OVER.within(words, typed))


def _in_order(said: Sequence[Said]) -> list[Said]:
    """As they were typed. One that comes out of the log and from its prompt as well counts once, or the copy of what was
    taken back since would stand behind that."""
    kept: list[Said] = []
    last: dict[str, datetime] = {}
    for one in sorted(said, key=lambda one: one.at):
        before = last.get(one.text)
        if before is None or one.at - before > SAME_WITHIN:
            kept.append(one)
        last[one.text] = one.at
    return kept


def _verdict(claim: Claim, typed: _Typed, held: bool, just: bool) -> int:
    """What one message does to the claim: 1 supports it, -1 takes it back, 0 neither.

    held   an earlier message supports it    just   the one before this does
    """
    there = claim.text in typed.text if claim.spaceless else typed.words.issuperset(claim.tokens)
    if not there and not held:
        return 0
    sentences = list(sentences_of(typed.text))
    playful = there and any(
        p.PRETENCE.within(beside(claim, one), one.text) or p.ABOUT_TEXT.within(one.words, one.text) for one in sentences
    )
    verdict = 0
    foreign = False
    for sentence in sentences:
        mine = judged(claim, sentence) if there and not foreign and not playful else 0
        if not mine and (verdict > 0 or held) and _takes_back(claim, sentence, near=just or verdict > 0):
            mine = -1
        verdict = mine or verdict
        foreign = foreign or introduces(sentence)
    return verdict


SHORT_SENTENCE = 8
"""Words. "Never mind" in a longer one is about something else."""


def _takes_back(claim: Claim, sentence: Sentence, near: bool) -> bool:
    """Whether a sentence withdraws what was said before it. near: in the same message, or in the one before."""
    words = sentence.words
    if sentence.asked:
        return False
    if _replaces(claim, words):
        return True
    if len(words) > SHORT_SENTENCE:
        return False
    if near and (p.RETRACTION.within(words, sentence.text) or _is_a_no(words)):
        return True
    corrects = p.ACTUALLY.stand_at(words, 0) or sentence.text.startswith(p.ACTUALLY.parts)
    return near and corrects and {"also", "too", "auch"}.isdisjoint(words)


def _is_a_no(words: Sequence[str]) -> bool:
    """ "Hmm no, zsh"."""
    said = [word for word in words if word not in p.HESITATION]
    return 0 < len(said) <= 4 and said[0] in p.NO and not p.NO_BUT_FINE.intersection(said)


_BECOMES = frozenset("is to ist es est è é = : now".split())


def _replaces(claim: Claim, words: Sequence[str]) -> bool:
    """Whether the key's own word is given another value: "my editor is Zed now"."""
    if set(claim.tokens) <= set(words):
        return False
    if "name" in claim.subject and words[:2] == ["call", "me"]:
        return True
    for index, word in enumerate(words):
        if word in p.POSSESSIVES:
            for place in range(index + 1, min(index + 4, len(words) - 1)):
                if claim.is_subject(words[place]) and words[place + 1] in _BECOMES:
                    return True
    return False


def _asks(claim: Claim, typed: str) -> bool:
    asked = False
    foreign = False
    for sentence in sentences_of(typed):
        if not foreign and _asks_in(claim, sentence):
            asked = True
        elif asked and (_takes_back(claim, sentence, near=True) or _is_kept(sentence)):
            asked = False
        foreign = foreign or introduces(sentence)
    return asked


def _asks_in(claim: Claim, sentence: Sentence) -> bool:
    words = sentence.words
    first = 0
    while first < len(words) and (length := p.COURTESY.length_at(words, first)):
        first += length
    rest = [*words[first : first + 1], *words[first + 1 + p.SAID_ABOUT.length_at(words, first + 1) :]]
    if not rest or sentence.under or (sentence.asked and not _REQUEST.match(sentence.text)):
        return False
    if denies(words, sentence.text, sentence) or any(listed.within(rest, sentence.text) for listed in _NO_REQUEST):
        return False
    if SPACELESS.match(rest[0]):
        return _asks_spaceless(claim, sentence)
    forgets = p.FORGET.stand_at(rest, 0) or (first > 0 and rest[-1] in ("vergessen", "vergisst", "vergeten"))
    if forgets or p.DELETE.stand_at(rest, 0) or (first > 0 and rest[-1] in p.ENDS_IN_VERB):
        start = 0 if rest[-1] in p.ENDS_IN_VERB else 1
        return _aims(claim, sentence, rest[start:], forgets)
    return False


_REQUEST = re.compile(
    r"(?:.{0,20}\b)?"
    r"(?:(?:can|could|would|will) you|kannst du bitte|könntest du|könnten sie|kun je)\b"
)
_NO_REQUEST = (p.CONDITION, p.REPORT, p.PRETENCE, p.QUESTION_WITHIN, p.PRONOUN)


def _aims(claim: Claim, sentence: Sentence, rest: Sequence[str], forgets: bool) -> bool:
    """Whether the words behind the verb name just this fact."""
    of_memory = bool(p.MEMORY.intersection(rest))
    if claim.key in rest:
        return all(w == claim.key or w in p.AFTER_TARGET | p.DETERMINERS | p.MEMORY | {"from", "your"} for w in rest)
    for index, word in enumerate(rest):
        if claim.is_subject(word):
            lead = rest[:index]
            fits = all(w in p.DETERMINERS or claim.names(w) for w in lead) and _may_follow(claim, rest[index + 1 :])
            if fits and (forgets or of_memory or p.POSSESSIVES.intersection(lead)):
                return True
    return claim.says_something and (forgets or of_memory) and _aims_at_value(claim, sentence)


def _may_follow(claim: Claim, after: Sequence[str]) -> bool:
    at = 0
    while at < len(after) and (after[at] in p.AFTER_TARGET | p.MEMORY or claim.names(after[at])):
        if after[at] in ("number", "numbers") and claim.tokens and sum(map(str.isdigit, claim.text)) < LEAST_DIGITS:
            return False  # of a telephone that is not one
        at += 1
    rest = after[at:]
    if not rest or (rest[0] in ("from", "aus", "de", "из") and p.MEMORY.intersection(rest[1:4])):
        return True
    reason = at > 0 and after[at - 1] in p.THANKS and rest[0] in p.SUBJECTS and len(rest) <= MOST_OF_A_REASON
    return reason and not p.KEEP.within(rest) and not p.COMMANDS.within(rest)


MOST_OF_A_REASON = 3
"""Words, as in "forget my address please, I moved"."""
LEAST_DIGITS = 5
"""Of a telephone number."""

_THAT = frozenset("that dass daß que che dat что".split())


def _aims_at_value(claim: Claim, sentence: Sentence) -> bool:
    for start, end in claim.spans(sentence.text, sentence.tokens):
        around = around_of(sentence, start, end, (0, len(sentence.text)))
        verb = p.FORGET.first(around.before)
        verb = p.DELETE.first(around.before) if verb is None else verb
        between = [] if verb is None else around.before[verb + 1 :]
        while between and p.COURTESY.stand_at(between, 0):
            between = between[1:]
        ends = _may_follow(claim, around.after) or p.STATES.length_at(around.after, 0) == len(around.after)
        if verb is None or not ends or is_dropped(between) or between[:1] == ["about"]:
            continue
        if all(word in p.DETERMINERS for word in between):
            return not p.MEMORY.isdisjoint(around.after)  # "forget Lisbon, we go to Rome" is no such request
        said = replace(around, before=between[1:])
        if between[0] in _THAT and is_owners(claim, said, sentence) and not is_of_others(claim, around):
            return True
    return False


_MINE = re.compile(
    "(?:^|[\\s,、]|忘记|忘記|删除|刪除|删掉|刪掉|忘掉|把|请|請|帮我)(?:请|請)?(?:私の|僕の|俺の|わたしの|我的|제 ?|내 ?)$"
)
_THEN = ("を", "は", "も", "掉", "了", "를", "을", "吧", "删", "刪", "忘", "도")


def _asks_spaceless(claim: Claim, sentence: Sentence) -> bool:
    text = sentence.text.rstrip(" .!~")
    plain = text.lstrip("请請帮我把 ,")
    if claim.spaceless and plain.startswith(p.FORGET_STARTS) and plain.endswith(claim.text):
        stated = plain[len(next(filter(plain.startswith, p.FORGET_STARTS))) : -len(claim.text)]
        return "我" in stated and ZH_HOLDS.match(stated) is not None
    if not text.endswith(p.FORGET_ENDS) and not plain.startswith(p.FORGET_STARTS):
        return False
    for name in claim.subject & p.CONCEPTS.keys():
        for word in p.CONCEPTS[name].parts:
            place = text.find(word)
            behind = text[place + len(word) :].lstrip() if place >= 0 else "?"
            if _MINE.search(text[: max(place, 0)]) and (not behind or behind.startswith(_THEN)):
                return True
    return False


def _keeps(claim: Claim, typed: str) -> bool:
    return any(_takes_back(claim, s, near=True) or _is_kept(s) for s in sentences_of(typed))


def _is_kept(sentence: Sentence) -> bool:
    return len(sentence.words) <= SHORT_SENTENCE and p.KEEP.within(sentence.words, sentence.text)
