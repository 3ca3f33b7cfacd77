"""The gate: what a key and a value must be, and what may become of a statement that an extractor claims.

Refusals carry a stable code and a reason, never the value. An extractor is believed nothing: a fact rests on a sentence that
the owner typed in their own name and did not take back, says what that sentence says under a key that the sentence is about,
and stands against nobody's stronger word. What only may be so waits for the person; all else is refused.

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
| known | refused | it is a fact already, and this adds no support |
| key | waits | the key is no plain name: it says something, or reads as an order, alone or beside the value |
| foreign | waits | the quote is of somebody else than the owner |
| unsupported | waits | the owner's words are near it, and do not plainly say it |
| unfit_key | waits | they say it, but not of what the key names |
| injection … | waits | a risk of its shape (`clawmark.facts.shape.risks`) |
| not_plain | waits | it is no short, plain statement |
| low_confidence | waits | confidence below the threshold |
| conflict_candidate | waits | a fact of the person or an agent says something else, or any fact the opposite |
| merge_candidate | waits | a fact under another key says much of it |
| review, marker | waits | everything does |
| supported | stored | the ladder decides then which of two extracted statements stands |

A key that means what a known one means becomes that key, so that keys do not drift; what another fact says already reinforces
that fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import chain, pairwise
from typing import Final, Literal

from clawmark import keys
from clawmark.errors import Refused
from clawmark.facts import phrases as p
from clawmark.facts import shape
from clawmark.facts.alike import is_opposite, is_paraphrase, polarity, relation, same_subject
from clawmark.facts.dated import as_said
from clawmark.facts.fitting import fits, is_whole
from clawmark.facts.ladder import STRENGTH
from clawmark.facts.prompt import TEMPLATE
from clawmark.facts.support import supporting
from clawmark.facts.typed import Sentence, plain, sentences_of, typed_of, words_of
from clawmark.guard import markers, secrets
from clawmark.keys import VALUE_LENGTH
from clawmark.model import Candidate, Conflict, Fact, Said, Utterance
from clawmark.text import canonical, likeness, stems, without_surrogates

LEAST_CONFIDENCE = 0.6
"""Below it not even the person is asked."""
OWN_WORDS = 0.6
"""The part of a value's stems that the quote must hold."""
STATEMENT_STEMS = 3
"""From so many on a value says by itself what it is about; a shorter one says it together with its key."""

Outcome = Literal["store", "propose", "refuse"]


def statement(raw_key: str, raw_value: str) -> tuple[str, str]:
    """A key and its value in their one form, for whoever states them. Raises Refused KEY_FORMAT, VALUE_SIZE or SECRET, the
    last also for what is a secret by its key alone: `hunter2` under `user.password`."""
    spelled, text = key(raw_key), value(raw_value)
    found = [secret for said in _together(spelled, text) for secret in secrets.find(said)]
    if found:
        raise Refused("SECRET", f"the value is a secret by its key ({found[0].kind}); it was not stored")
    return spelled, text


def named(raw: str) -> str:
    """`raw` as a key by which something stored is named, to forget, hide or explain it: its format alone is judged, for what
    was stored long ago must be found. Raises Refused KEY_FORMAT."""
    spelled = keys.spelled(raw)
    fault = keys.fault(spelled)
    if fault is not None:
        raise Refused("KEY_FORMAT", fault)
    return spelled


def key(raw: str) -> str:
    """`raw` as a key: `Pref.Editor` is `pref.editor`, `pref.x y` and `pref.x-y` are `pref.x_y`. Raises Refused KEY_FORMAT,
    or SECRET for one that holds a secret."""
    spelled = named(raw)
    found = [secret.kind for part in _readings(raw) for secret in secrets.find(part)]
    if found or _is_random(spelled):
        kind = found[0] if found else "random"
        raise Refused("SECRET", f"the key holds a secret ({kind}); choose another key, this one was not stored")
    return spelled


def _readings(raw: str) -> Iterator[str]:
    """A key as it is and in its parts: a secret that a dot or an underscore leads up to is one all the same."""
    yield raw
    for part in raw.split("."):
        yield part
        yield from part.split("_")
        yield part.replace("_", "-")
    yield " ".join(re.split(r"[._]+", raw)[1:])


LEAST_RANDOM, LEAST_CHANGES = 16, 4
"""Characters, and changes between letters and digits, of what is left of a secret in a key: small letters, and pieces."""
_LEADS_UP: Final = frozenset("glpat gocspx dckr ghp gho ghu ghs ghr xoxb xoxp xoxa xoxr hf shpat".split())
"""Words that only secrets begin with."""


def _is_random(spelled: str) -> bool:
    """Whether a key mixes letters and digits as no name does, in one word or in what separators left of one."""
    words = re.split(r"[._-]+", spelled)
    if not _LEADS_UP.isdisjoint(words[:-1]):
        return True
    mixed = [word for word in words if _changes(word) > 1]
    if any(len(word) >= LEAST_RANDOM for word in mixed):
        return True
    return sum(map(len, mixed)) >= LEAST_RANDOM and sum(map(_changes, mixed)) >= LEAST_CHANGES


def _changes(word: str) -> int:
    return sum(one.isdigit() != other.isdigit() for one, other in pairwise(word))


def _together(spelled: str, text: str) -> Iterator[str]:
    """What a key and its value say in one."""
    read = shape.named_by(spelled)
    yield from (f"{read}: {text}", f"{read} is {text}")


def value(raw: str) -> str:
    """`raw` without outer blanks. Raises Refused VALUE_SIZE for a blank or long one, SECRET for one that holds a secret."""
    text = without_surrogates(raw).strip()
    if len(text) > VALUE_LENGTH:
        raise Refused("VALUE_SIZE", f"a value has at most {VALUE_LENGTH} characters; this one has {len(text)}")
    if not markers.defuse(text):
        raise Refused("VALUE_SIZE", "the value is blank")
    found = secrets.find(text)
    if found:
        raise Refused("SECRET", f"the value holds a secret ({found[0].kind}); it was not stored")
    return text


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is to become of a candidate, and by which rule.

    key, value   as they are to be stored or proposed: under the known key, in the known words where they are known already
    evidence     the utterances that it rests on; of a foreign one those in which the quote stands
    against      the fact that `conflict` is about
    """

    outcome: Outcome
    rule: str
    key: str
    value: str
    confidence: float
    observed_at: datetime
    evidence: tuple[Utterance, ...]
    conflict: Conflict = "none"
    against: Fact | None = None


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
    return _Claimed(candidate, spelled, text, utterances, zone).ruling(known, threshold, promote, is_forgotten)


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
    rest = spelled.partition(".")[2]
    return any(said == set(re.findall(r"[^\W_]+", part)) for part in (spelled, rest, rest.rpartition(".")[2]))


class _Claimed:
    """A candidate with a form of its own, and the utterances that it names.

    holding   those of them in which its quote stands
    own       those of them on which a fact may rest
    """

    def __init__(
        self, candidate: Candidate, spelled: str, text: str, utterances: Sequence[Utterance], zone: tzinfo | None
    ) -> None:
        self.candidate = candidate
        self.key = spelled
        self.value = text
        self.utterances = utterances
        self.zone = zone or UTC
        self.cited = [one for one in utterances if one.number in candidate.cited]
        self.holding = [one for one in self.cited if _stands(candidate.quote, one.text)]
        self.own = [one for one in self.holding if one.origin == "owner" and one.citable]

    def ruling(self, known: Sequence[Fact], threshold: float, promote: str, is_forgotten: IsForgotten) -> Ruling:
        place = self._placed(known)
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
            return self._ruling("refuse", "known", place, ())
        waits = self._waits(place, forms, threshold, promote) if self.own else "foreign"
        if waits is None:
            return self._ruling("store", "supported", place, resting)
        return self._ruling("propose", waits, place, meant)

    def _ruling(self, outcome: Outcome, rule: str, place: _Place, evidence: tuple[Utterance, ...]) -> Ruling:
        observed = max((one.at for one in evidence), default=_NEVER)
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

    def _refusal(self, place: _Place, is_forgotten: IsForgotten) -> str | None:
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
        day = one.at.astimezone(self.zone).date()
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

    def _waits(self, place: _Place, forms: Mapping[Utterance, str], threshold: float, promote: str) -> str | None:
        """The rule by which it has to wait; None = by none."""
        if promote != "marker":
            reasons: Iterator[str] = chain(self._doubts(place, forms), self._risks(place, threshold))
        else:
            reasons = (rule for rule in self._risks(place, threshold) if rule not in PLAIN_FOR_OWNER)
        return next(reasons, None if promote == "auto" else promote)

    def _doubts(self, place: _Place, forms: Mapping[Utterance, str]) -> Iterator[str]:
        """What a model may have got wrong."""
        if not place.in_use and shape.keyed_risk(place.key, self.value):
            yield "key"
        if not forms:
            yield "unsupported"
        elif not any(fits(place.key, form, one.text) for one, form in forms.items()):
            yield "unfit_key"

    def _risks(self, place: _Place, threshold: float) -> Iterator[str]:
        yield from shape.risks(self.value)
        if not shape.is_plain(self.value):
            yield "not_plain"
        if not self.candidate.confidence >= threshold:
            yield "low_confidence"
        if place.conflict in ("conflict_candidate", "merge_candidate"):
            yield place.conflict

    # How it stands to what is known

    def _placed(self, known: Sequence[Fact]) -> _Place:
        same = sorted((f for f in known if same_subject(f.key, self.key)), key=self._nearest_first)
        return _under_one_subject(self.key, self.value, same) if same else _beside(self.key, self.value, known)

    def _nearest_first(self, fact: Fact) -> tuple[bool, int, str, str]:
        return fact.key != self.key, -STRENGTH[fact.source], fact.scope, fact.key


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


# ---------------------------------------------------------------------------------------------------------------------
# Beside what is known
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement belongs among the known facts.

    restated   the fact that says it already      in_use   whether a fact has this key
    """

    key: str
    value: str
    conflict: Conflict = "none"
    against: Fact | None = None
    restated: Fact | None = None
    in_use: bool = False


def _under_one_subject(spelled: str, text: str, same: Sequence[Fact]) -> _Place:
    """Its place where facts about the same thing are known: under the key of the first of them."""
    restated = next((fact for fact in same if relation(text, fact.value) == "duplicate"), None)
    if restated is not None:
        # In its own words the ladder knows it again; in others it takes those that it has.
        again = is_paraphrase(text, restated.value) and restated.source == "extracted"
        return _Place(restated.key, text if again else restated.value, "duplicate", restated, restated, True)
    stronger = next((fact for fact in same if fact.source != "extracted"), None)
    if stronger is not None:
        return _Place(stronger.key, text, "conflict_candidate", stronger, in_use=True)
    return _Place(same[0].key, text, in_use=True)


def _beside(spelled: str, text: str, known: Sequence[Fact]) -> _Place:
    """Its place among facts about other things: only statements that say by themselves what they are about are compared."""
    found: dict[Conflict, Fact] = {}
    mine = stems(text)
    if len(mine) >= STATEMENT_STEMS:
        for fact in known:
            theirs = stems(fact.value)
            # Without a word in common there is nothing to compare; of hundreds of facts most have none.
            if len(theirs) >= STATEMENT_STEMS and mine & theirs and _is_comparable(spelled, fact.key):
                found.setdefault(relation(text, fact.value), fact)
    if "conflict_candidate" in found:
        return _Place(spelled, text, "conflict_candidate", found["conflict_candidate"])
    if "duplicate" in found:
        fact = found["duplicate"]
        return _Place(fact.key, fact.value, "duplicate", fact, fact, True)
    if "merge_candidate" in found:
        return _Place(spelled, text, "merge_candidate", found["merge_candidate"])
    return _Place(spelled, text)


_PERSONAL: Final = frozenset(("user", "pref", "lesson"))


def _is_comparable(spelled: str, other: str) -> bool:
    """Whether two keys may be about one thing at all: two projects have the same words for different things."""
    one, two = spelled.split("."), other.split(".")
    if {one[0], two[0]} <= _PERSONAL:
        return True
    return one[:-1] == two[:-1]
