"""The gate: what may become of a statement that an extractor claims. Pure.

An extractor is believed nothing: a fact rests on a sentence that the owner typed in their own name and did not take
back, says what that sentence says under a key that the sentence is about, and stands against nobody's stronger word.
What only may be so waits for the person; all else is refused.

`ruled` asks these rules in this order; the first that refuses ends it, and of those that let a statement wait the first names
the reason. Ids are stable: events hold them.

| rule | becomes | when |
|---|---|---|
| KEY_FORMAT | refused | the key is none, or has no prefix of ours |
| VALUE_SIZE | refused | the value is blank or longer than a value may be |
| SECRET | refused | a secret, or the mark of a masked one, stands in key, value or quote, or in what both say together |
| template_echo | refused | key or value come out of the prompt's own example |
| key_echo | refused | the value says no more than the key |
| passing | refused | it is about work that is going on |
| low_confidence | refused | confidence below 0.6 |
| uncited | refused | it cites no message of the batch |
| quote_not_found | refused | the quote stands in none of the cited messages |
| context | refused | it cites the owner's words, but only such as no fact may rest on |
| forgotten | refused | the person had it forgotten: the statement, or what it rests on |
| partial | refused | the value begins or breaks off inside a phrase |
| off_quote | refused | the value is not mostly in the words of the quote, or those words ask, deny, suppose or report it |
| known | refused | it is a fact already; what plainly says it is evidence of that, and no more |
| key | waits | the key is no plain name: it says something, or reads as an order, alone or beside the value |
| foreign | waits | the quote is of somebody else than the owner |
| unsupported | waits | the owner's words are near it, and do not plainly say it |
| unfit_key | waits | they say it, but not of what the key names |
| injection … | waits | a risk of its shape (`clawmark.facts.shape.risks`) |
| not_plain | waits | it is no short, plain statement |
| low_confidence | waits | confidence below the threshold |
| conflict_candidate | waits | a fact of the person, an agent, or what may be the same says else, or any the opposite |
| merge_candidate | waits | a fact under another key says much of it |
| review, marker | waits | everything does |
| supported | stored | the ladder decides then which of two extracted statements stands |

Where a statement belongs among the known facts, and so its key, is the answer of `placing`; what another fact says
already reinforces that fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import chain
from typing import Final

from clawmark import keys
from clawmark.errors import Refused
from clawmark.facts import phrases as p
from clawmark.facts import shape
from clawmark.facts.alike import is_opposite, polarity
from clawmark.facts.dated import as_said, local
from clawmark.facts.fitting import fits, is_whole
from clawmark.facts.placing import Place, placed
from clawmark.facts.prompt import TEMPLATE
from clawmark.facts.statement import statement
from clawmark.facts.support import supporting
from clawmark.facts.typed import Sentence, plain, sentences_of, typed_of, words_of
from clawmark.facts.versions import is_next_version
from clawmark.guard import secrets
from clawmark.model import Candidate, Fact, Outcome, Ruling, Said, Utterance
from clawmark.text import canonical, likeness, stems

LEAST_CONFIDENCE = 0.6
"""Below it not even the person is asked."""
OWN_WORDS = 0.6
"""The part of a value's stems that the quote must hold."""

IsForgotten = Callable[[str, str, Sequence[bytes]], bool]
"""Whether a key and value, or what rests on these content keys, must not be learned again."""

PLAIN_FOR_OWNER: Final = frozenset(("imperative", "not_plain", "low_confidence"))
"""Risks that say nothing beside "marker": the person's own sentence, whole, which no model has looked at."""


def ruled(
    candidate: Candidate,
    utterances: Sequence[Utterance],
    known: Sequence[Fact],
    *,
    threshold: float,
    promote: str,
    is_forgotten: IsForgotten,
    zone: tzinfo | None,
) -> Ruling:
    """What is to become of `candidate`, claimed of `utterances`.

    known     facts of the same scope and of `shared`; hidden ones are none
    promote   "auto", or the rule under which everything waits: "review", "marker"
    zone      where the person's days begin and end; None = UTC
    """
    try:
        spelled, text = statement(candidate.key, candidate.value)
    except Refused as refused:
        return _refused(candidate, refused.code, "", "")
    rule = _form(candidate, spelled, text)
    if rule is not None:
        return _refused(candidate, rule, *(("", "") if rule == "SECRET" else (spelled, text)))
    return _Claimed(candidate, spelled, text, utterances, known, zone).ruling(threshold, promote, is_forgotten)


_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _refused(candidate: Candidate, rule: str, spelled: str, text: str) -> Ruling:
    return Ruling("refuse", rule, spelled, text, candidate.confidence, _NEVER, ())


def _form(candidate: Candidate, spelled: str, text: str) -> str | None:
    """The rule by which the candidate is refused as it stands, whatever was said."""
    if any(secrets.find(said) or _MASK.search(said) for said in (text, candidate.quote, f"{candidate.quote} {text}")):
        return "SECRET"
    if spelled in TEMPLATE or likeness(text) in map(likeness, TEMPLATE.values()):
        return "template_echo"
    if _echoes(spelled, text):
        return "key_echo"
    if shape.is_passing(text) or shape.is_passing(candidate.quote):
        return "passing"
    # Not "<": what is no number is not below anything either.
    return None if candidate.confidence >= LEAST_CONFIDENCE else "low_confidence"


_MASK: Final = re.compile(r"\[REDACTED(?::|\])")


def _echoes(spelled: str, text: str) -> bool:
    said = set(re.findall(r"[^\W_]+", likeness(text)))
    readings = (keys.words(spelled, whole=True), keys.words(spelled), keys.last_words(spelled))
    return any(said == set(reading) for reading in readings)


class _Claimed:
    """A candidate with a form of its own, and the utterances that it names.

    holding   those of them in which its quote stands
    own       those of them on which a fact may rest
    """

    def __init__(
        self,
        candidate: Candidate,
        spelled: str,
        text: str,
        utterances: Sequence[Utterance],
        known: Sequence[Fact],
        zone: tzinfo | None,
    ) -> None:
        self.candidate = candidate
        self.key = spelled
        self.value = text
        self.utterances = utterances
        self.known = known
        self.zone = zone
        self.cited = [one for one in utterances if one.number in candidate.cited]
        self.holding = [one for one in self.cited if _stands(candidate.quote, one.text)]
        self.own = [one for one in self.holding if one.origin == "owner" and one.citable]

    def ruling(self, threshold: float, promote: str, is_forgotten: IsForgotten) -> Ruling:
        place = placed(self.key, self.value, self.known)
        rule = self._refusal(place, is_forgotten)
        if rule is not None:
            return self._ruling("refuse", rule, place, ())
        forms = {one: form for one in self.own if (form := self._supported_form(one, place.key)) is not None}
        resting = tuple(forms)
        meant = resting or tuple(one for one in self.own or self.holding if self._is_near(one))
        if not meant:
            return self._ruling("refuse", "off_quote", place, ())
        if place.restated is not None:
            if forms and self._waits(place, forms, 0.0, "auto") is None:
                return self._ruling("store", "supported", place, resting)
            is_said = next(self._doubts(place, forms), None) is None
            return self._ruling("refuse", "known", place, resting if is_said else ())
        waits = self._waits(place, forms, threshold, promote) if self.own else "foreign"
        if waits is None:
            return self._ruling("store", "supported", place, resting)
        return self._ruling("propose", waits, place, meant)

    def _ruling(self, outcome: Outcome, rule: str, place: Place, evidence: tuple[Utterance, ...]) -> Ruling:
        observed = max((one.at for one in evidence), default=_NEVER).astimezone(UTC)
        return Ruling(
            outcome,
            rule,
            place.key,
            place.value,
            self.candidate.confidence,
            observed,
            evidence,
            place.conflict,
            place.against,
        )

    def _refusal(self, place: Place, is_forgotten: IsForgotten) -> str | None:
        if not self.cited:
            return "uncited"
        if not self.holding:
            return "quote_not_found"
        if not self.own and all(one.origin == "owner" for one in self.holding):
            return "context"
        content_keys = [one.content_key for one in self.holding]
        asked = {(self.key, self.value), (place.key, self.value), (place.key, place.value)}
        if any(is_forgotten(*one, content_keys) for one in sorted(asked)):
            return "forgotten"
        whole = is_whole(self.value, self.candidate.quote) or any(
            _is_a_sentence(self.value, one.text) for one in self.holding
        )
        return None if whole else "partial"

    # How the value stands to what was said

    def _said(self, one: Utterance) -> str | None:
        """The value in the words of the quote: a date as it was said when it was said."""
        day = local(one.at, self.zone).date()
        return as_said(self.value, self.candidate.quote, day) if one.dated else self.value

    def _supported_form(self, one: Utterance, spelled: str) -> str | None:
        """The words within the quote by which the owner said it in `one`, in so many words, and took it back nowhere
        later; None when there are none."""
        said = self._said(one)
        quote = plain(self.candidate.quote)
        if said is None or not (set(words_of(plain(said))) <= set(words_of(quote)) or plain(said) in quote):
            return None
        forms = [said] if said == self.value else [said, *_with_verb(said, quote)]
        return next((form for form in forms if self._is_supported(one, spelled, form)), None)

    def _is_supported(self, one: Utterance, spelled: str, said: str) -> bool:
        if supporting(spelled, said, [Said(one.text, one.at)]) is None:
            return False
        typed = [u for u in self.utterances if u.origin == "owner" and (u.session, u.scope) == (one.session, one.scope)]
        found = supporting(spelled, said, [Said(other.text, other.at) for other in typed])
        return found is not None and (found.at >= one.at or found.text == one.text)

    def _is_near(self, one: Utterance) -> bool:
        """Whether the value is mostly in the words of the quote, and a sentence says them as the value does."""
        said = self._said(one) or self.value
        wanted = stems(said)
        if not wanted or len(wanted & stems(self.candidate.quote)) / len(wanted) < OWN_WORDS:
            return False
        typed = typed_of(one.text) if one.origin == "owner" else plain(one.text)
        return typed is not None and any(
            len(wanted & stems(sentence.text)) / len(wanted) >= OWN_WORDS and _says_plainly(sentence, said)
            for sentence in sentences_of(typed)
        )

    def _waits(self, place: Place, forms: Mapping[Utterance, str], threshold: float, promote: str) -> str | None:
        """The rule by which it has to wait; None = by none."""
        if promote != "marker":
            reasons: Iterator[str] = chain(self._doubts(place, forms), self._risks(place, threshold))
        else:
            reasons = (rule for rule in self._risks(place, threshold) if rule not in PLAIN_FOR_OWNER)
        return next(reasons, None if promote == "auto" else promote)

    def _doubts(self, place: Place, forms: Mapping[Utterance, str]) -> Iterator[str]:
        """What a model may have got wrong."""
        if not place.in_use and shape.keyed_risk(place.key, self.value):
            yield "key"
        if not forms:
            yield "unsupported"
        elif not any(self._is_about(place.key, form, one.text) for one, form in forms.items()):
            yield "unfit_key"

    def _is_about(self, key: str, said: str, text: str) -> bool:
        return fits(key, said, text) or is_next_version(key, said, text, self.known)

    def _risks(self, place: Place, threshold: float) -> Iterator[str]:
        yield from shape.risks(self.value)
        if not shape.is_plain(self.value):
            yield "not_plain"
        if not self.candidate.confidence >= threshold:
            yield "low_confidence"
        if place.conflict in ("conflict_candidate", "merge_candidate"):
            yield place.conflict


def _with_verb(said: str, quote: str) -> list[str]:
    """A date with the word before it, for in "my train leaves tomorrow" the day alone is no state of a train."""
    found = re.search(rf"(\w+) (?={re.escape(plain(said))}(?!\w))", quote)
    if found is None or p.NEGATION.within([found[1]]) or p.DROPPED.within([found[1]]):
        return []
    return [f"{found[1]} {said}"]


_MARKS: Final = " .…!。！\"'"
"""What a quote may have or lack at its ends."""


def _stands(quote: str, text: str) -> bool:
    """Whether the quote stands in the text, but for blanks, case, marks around it and look-alike spellings."""
    wanted = canonical(plain(quote)).strip(_MARKS)
    return bool(wanted) and wanted in canonical(plain(text))


def _is_a_sentence(said: str, text: str) -> bool:
    """Whether the words are a sentence of the text, from its first to its last."""
    wanted = canonical(plain(said)).strip(_MARKS)
    return any(canonical(sentence.text).strip(_MARKS) == wanted for sentence in sentences_of(plain(text)))


def _says_plainly(sentence: Sentence, said: str) -> bool:
    """Whether a sentence neither asks nor reports nor supposes what is said of it, and denies it only where that does."""
    if sentence.asked or p.QUESTION_START.stand_at(sentence.words, 0) or sentence.text.endswith(p.QUESTION_ENDS):
        return False
    if (polarity(said) < 0) != (polarity(sentence.text) < 0) or is_opposite(said, sentence.text):
        return False
    held = set(words_of(plain(said)))
    rest = [word for word in sentence.words if word not in held]
    if any(listed.within(rest) for listed in (p.REPORT, p.CONDITION, p.PRETENCE, p.QUESTION_WITHIN)):
        return p.OWN_REPORT.within(rest)
    apart = sentence.text.replace(plain(said), "\n")
    return not any(listed.within((), apart) for listed in (p.REPORT, p.PRETENCE, p.QUESTION_WITHIN))
