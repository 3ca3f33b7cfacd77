"""The one way a statement is believed: what the person, an agent or an extractor says becomes a fact, waits, or is refused.

Everything here belongs inside one transaction, and sees the facts and tombstones as they stand in it: what was forgotten
a moment ago is not learned, whoever judged the statement before. Values stand in events of facts alone; of what is refused
or waits an event holds rule and hash.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import apsw

from clawmark import erase
from clawmark.errors import Refused, UsageError
from clawmark.facts import ladder, statement
from clawmark.facts.subject import names_of, same_subject
from clawmark.guard import injection, secrets
from clawmark.model import CONFIDENCE, SHARED, Draft, Evidence, Fact, Proposal, Ruling, Said, Utterance, Writer, Yes
from clawmark.store import events, evidence, facts, passages, proposals, tombstones
from clawmark.store.tombstones import Tombstones
from clawmark.text import cut, likeness

WAITS: Final = timedelta(days=90)
"""How long a proposal waits; one to forget a fact, which is hidden meanwhile, waits for 30 days."""
FORGET_WAITS: Final = timedelta(days=30)
REJECTED_FOR: Final = timedelta(days=180)
MOST_PENDING: Final = 200
"""Of one scope, of the owner's own words, and as many of others'. Nobody reads more, and a hostile log must not fill the
file, nor keep the owner's words out."""

REASON_LENGTH: Final = 200
RAISED: Final = 0.05
"""What a proposal gains in confidence when it is said in another conversation."""


class Belief:
    """Statements into one database, in one transaction.

    secret   of the tombstones        now   of what is written
    as_of    by which things expire: not later than the newest message by more than a day
    """

    def __init__(self, connection: apsw.Connection, secret: bytes, now: datetime) -> None:
        self._connection = connection
        self._secret = secret
        self._now = now
        self.as_of = passages.as_of(connection, now)

    # What somebody says now

    def state(
        self,
        key: str,
        value: str,
        scope: str,
        writer: Writer,
        observed_at: datetime | None,
        rested: Sequence[Evidence] | None = None,
    ) -> Fact:
        """The fact as it stands afterwards; `key` and `value` have passed `statement`. rested: the messages in which it was
        said, as far as they are known; None = in none. Raises Refused CONFLICT_SKIP or FORGOTTEN, with nothing changed."""
        if writer not in CONFIDENCE:
            raise UsageError(f"a fact is stated by {' or '.join(CONFIDENCE)}; propose what {writer!r} claims.")
        connection, now = self._connection, self._now
        forgotten_at = self._forgotten_at(scope, key, value)
        is_said_since = writer == "user" and (observed_at is None or (forgotten_at and observed_at > forgotten_at))
        if forgotten_at is not None and not is_said_since:
            raise Refused("FORGOTTEN", "the person had it forgotten; only what they say since then brings it back")
        # An agent that hid a person's fact has not made room for its own.
        old = facts.get(connection, key, scope, with_hidden=writer != "user")
        observed = min(observed_at or now, now)
        if observed_at is None and old is not None:  # what is said now is the newest, whatever the clock once said
            observed = max(observed, old.reinforced_at)
        said = ladder.Statement(key, value, CONFIDENCE[writer], writer, scope, observed)
        outcome, fact = ladder.apply(old, said, now)
        is_beside = writer != "user" and scope != SHARED
        everybodys = facts.get(connection, key, SHARED, with_hidden=True) if is_beside else None
        if "conflict_skip" in (outcome, ladder.decide(everybodys, said)):
            raise Refused("CONFLICT_SKIP", "what is stored is the person's own word, or was said later")
        facts.put(connection, fact)
        if writer == "user":
            for where in self._seen_from(scope):
                tombstones.lift(connection, self._secret, where, key, value, names_of(key))
            self._answered(scope, key, fact.value)
            flagged = injection.score(value)
            if flagged:
                self._event("injection_flag", "user", scope, key, {"rules": list(flagged.rules)})
        self._of_fact(outcome, writer, old, fact, rested)
        return fact

    def typed(self, key: str, value: str, scope: str, said: Said, message: Evidence | None) -> Fact:
        """`state` of what the person typed, resting on the message where that is known. It takes the place of all older
        statements about the same thing, under the key that the person gave it before where what they typed is about
        that too, and of whatever others wrote of it. Hidden ones count, so that none comes back later."""
        from clawmark.facts import standing  # its tables take their time, and what is set by hand needs none

        stored = facts.stored_in(self._connection, [scope, SHARED])
        own = [one for one in stored if one.source == "user" and (one.key == key or _is_said_of(one.key, value, said))]
        rested = [] if message is None else [message]
        fact = self.state(standing.known_key(key, value, own), value, scope, "user", said.at, rested)
        self._end(standing.outdated(fact, own, said.at), fact, said.at)
        outweighed = standing.outweighed(fact, stored)
        self._end(outweighed, fact, said.at)
        for one in outweighed:
            if likeness(one.value) == likeness(value):
                evidence.share(self._connection, (one.scope, one.key, one.value), (scope, fact.key, fact.value))
        if message is not None:
            evidence.add(self._connection, scope, fact.key, fact.value, message)
        return fact

    def note_refusal(self, refused: Refused, key: str, value: str, scope: str, writer: Writer) -> None:
        """What was refused stands nowhere; its key is named only where a fact has it."""
        is_conflict = refused.code == "CONFLICT_SKIP"
        named = key if is_conflict else None
        event = "conflict_skip" if is_conflict else "reject"
        self._event(event, writer, scope, named, {"rule": refused.code} | self._hash(value))

    def _forgotten_at(self, scope: str, key: str, value: str) -> datetime | None:
        known = Tombstones(self._connection, self._secret)
        return known.forgotten_at(self._seen_from(scope), key, value) if known else None

    def _seen_from(self, scope: str) -> set[str]:
        """The scopes in which a forgetting counts for what is stated in `scope`: what is shared is seen in all."""
        if scope != SHARED:
            return {scope, SHARED}
        return {SHARED, *events.scopes(self._connection), *passages.scopes(self._connection)}

    def _answered(self, scope: str, key: str, value: str) -> None:
        """It is stored now: what waited and says the same of the same subject waits no longer, nor what would have had another
        value of it forgotten."""
        for one in proposals.pending(self._connection, [scope]):
            is_same = same_subject(one.key, key) and _says(one.value, value)
            if is_same if one.kind == "set" else one.key == key:
                self._supersede(one)
                if one.kind == "set":
                    evidence.share(self._connection, (scope, one.key, one.value), (scope, key, value))
                    erase.drop_evidence(self._connection, scope, one.key, one.value)

    def _supersede(self, one: Proposal) -> None:
        proposals.decide(self._connection, one.id, "superseded", self._now)
        self._event("answer", "clawmark", one.scope, said={"proposal": one.id})

    def _of_fact(
        self, outcome: str, writer: str, old: Fact | None, fact: Fact, rested: Sequence[Evidence] | None = None
    ) -> None:
        """The event of a fact, with the dates between which the old value was true."""
        said: dict[str, Any] = {}
        if outcome == "update" and old is not None:
            # What was said earlier and is decided now ended the other one now.
            until = fact.observed_at if fact.observed_at >= old.observed_at else self._now
            said = {"from": _date(old.observed_at), "until": _date(until)}
        if rested is not None:
            said["evidence"] = [one.content_key.hex()[: events.EVIDENCE_DIGITS] for one in rested]
        before = None if old is None else old.value
        self._event(outcome, writer, fact.scope, fact.key, said, old=before, new=fact.value)

    # What an extractor claims

    def extracted(self, ruling: Ruling, scope: str) -> str:
        """Act on a ruling about something said in `scope`; returns "fact", "known", "proposed" or "refused"."""
        if ruling.outcome == "refuse":
            if ruling.rule == "known":
                self._rests_on_too(ruling, scope)
            return self._refused(ruling, ruling.rule, scope)
        if not any(one.dated for one in ruling.evidence):
            ruling = replace(ruling, observed_at=self.as_of)  # nobody knows when; it is not old because of that
        rests_on = [_evidence(one) for one in ruling.evidence]
        known = Tombstones(self._connection, self._secret)
        content_keys = [one.content_key for one in rests_on]
        if known.covers([scope, SHARED], ruling.key, ruling.value, content_keys):
            return self._refused(ruling, "forgotten", scope)
        if not all(passages.with_content(self._connection, [one]) for one in content_keys):
            return self._refused(ruling, "erased", scope)  # since it was read
        said_at = ruling.observed_at if _origin(ruling) == "owner" else None
        if known.is_rejected(scope, names_of(ruling.key), ruling.value, self.as_of, said_at=said_at):
            return self._refused(ruling, "rejected", scope)
        ruling = self._placed_now(ruling, scope)
        if ruling.outcome == "store":
            return self._stored(ruling, scope, rests_on)
        return self._waits(ruling, scope, rests_on)

    def _placed_now(self, ruling: Ruling, scope: str) -> Ruling:
        """What may be stored, among the facts as they stand now: another one of its batch, or of another process, may have
        been stored since it was judged."""
        from clawmark.facts.placing import placed

        if ruling.outcome != "store":
            return ruling
        place = placed(ruling.key, ruling.value, known_in(self._connection, scope))
        if place.conflict in ("conflict_candidate", "merge_candidate"):
            return replace(
                ruling, outcome="propose", rule=place.conflict, conflict=place.conflict, against=place.against
            )
        return replace(ruling, key=place.key, value=place.value)

    def _rests_on_too(self, ruling: Ruling, scope: str) -> None:
        """A fact that is known rests on what the owner plainly said of it as well. Nothing else of it changes."""
        said = [_evidence(one) for one in ruling.evidence if passages.with_content(self._connection, [one.content_key])]
        for fact in known_in(self._connection, scope) if said else ():
            if fact.key == ruling.key and likeness(fact.value) == likeness(ruling.value):
                for one in said:
                    evidence.add(self._connection, fact.scope, fact.key, fact.value, one)

    def _stored(self, ruling: Ruling, scope: str, rests_on: Sequence[Evidence]) -> str:
        old = facts.get(self._connection, ruling.key, scope, with_hidden=True)
        hidden = facts.is_hidden(self._connection, ruling.key, scope)
        if hidden and old is not None and not ladder.is_spent(old, self.as_of):
            return self._refused(ruling, "hidden", scope)  # until the person decides
        everybodys = facts.get(self._connection, ruling.key, SHARED, with_hidden=True)
        said = ladder.Statement(ruling.key, ruling.value, ruling.confidence, "extracted", scope, ruling.observed_at)
        if everybodys is not None and everybodys.source != "extracted":
            if ladder.decide(everybodys, said) != "reinforce":
                return self._lost(ruling, scope)
            for one in rests_on:
                evidence.add(self._connection, SHARED, everybodys.key, everybodys.value, one)
            return "known"
        outcome, fact = ladder.apply(None if hidden else old, said, self._now)
        if outcome == "conflict_skip":
            for one in rests_on:
                evidence.add(self._connection, scope, ruling.key, ruling.value, one)
            return self._lost(ruling, scope)
        new = [one for one in rests_on if evidence.add(self._connection, scope, fact.key, fact.value, one)]
        if outcome == "reinforce" and all(_is_of(old, one) for one in new):
            return "known"  # nothing was said anew
        facts.put(self._connection, fact)
        self._of_fact(outcome, "extracted", None if hidden else old, fact, new)
        self._answered(scope, fact.key, fact.value)
        return "fact"

    def _lost(self, ruling: Ruling, scope: str) -> str:
        self._event("conflict_skip", "extracted", scope, ruling.key, self._hash(ruling.value))
        return "refused"

    def _refused(self, ruling: Ruling, rule: str, scope: str) -> str:
        self._event("reject", "extracted", scope, said={"rule": rule} | self._hash(ruling.value))
        return "refused"

    def _waits(self, ruling: Ruling, scope: str, rests_on: Sequence[Evidence]) -> str:
        draft = Draft(
            "set",
            ruling.key,
            ruling.value,
            scope,
            origin=_origin(ruling),
            reason=ruling.rule,
            confidence=ruling.confidence,
            conflict=ruling.conflict,
            against=None if ruling.against is None else ruling.against.key,
            observed_at=ruling.observed_at,
        )
        made, is_new = self._propose(draft)
        if made is None:
            return self._refused(ruling, "too_many", scope)
        before = evidence.sessions(self._connection, scope, made.key, made.value)
        for one in rests_on:
            evidence.add(self._connection, scope, made.key, made.value, one)
        if not is_new and before < evidence.sessions(self._connection, scope, made.key, made.value):
            proposals.believe(self._connection, made.id, min(1.0, made.confidence + RAISED), self._now)
        return "proposed" if is_new else "known"

    # What waits

    def propose(self, draft: Draft) -> Proposal:
        """Have a statement, or an erasure, wait for the person; the one that waits already where there is one. Raises
        Refused FORGOTTEN or REVIEW (rejected not long ago, or too many wait)."""
        known = Tombstones(self._connection, self._secret)
        if draft.kind == "set" and known.covers([draft.scope, SHARED], draft.key, draft.value):
            raise Refused("FORGOTTEN", "the person had it forgotten; only what they say since then brings it back")
        said_at = draft.observed_at or self._now if draft.origin == "owner" else None
        names = names_of(draft.key)
        if draft.kind == "set" and known.is_rejected(draft.scope, names, draft.value, self.as_of, said_at=said_at):
            raise Refused("REVIEW", "the person rejected it not long ago")
        made, _ = self._propose(draft)
        if made is None:
            raise Refused("REVIEW", f"{MOST_PENDING} proposals wait already; ask the person to run `clawmark review`")
        return made

    def _propose(self, draft: Draft) -> tuple[Proposal | None, bool]:
        """The proposal, and whether it is new; None where too many wait. The owner's own words take the place of the same
        of others, who chose the key."""
        from clawmark.facts import standing

        waiting = proposals.pending(self._connection, [draft.scope])
        alike = [one for one in waiting if (one.origin == "owner") == (draft.origin == "owner")]
        for one in waiting:
            if one.kind != draft.kind or not standing.says_the_same(one, draft):
                continue
            if draft.kind == "set" and draft.origin == "owner" != one.origin:
                erase.drop_evidence(self._connection, one.scope, one.key, one.value)
                self._supersede(one)
            elif draft.kind == "set" or one.key == draft.key:
                return one, False
        if len(alike) >= MOST_PENDING and not self._make_room(alike, draft.origin):
            return None, False
        lasts = FORGET_WAITS if draft.kind == "forget" else WAITS
        made = proposals.add(self._connection, draft, self._now, self.as_of + lasts)
        said = {"proposal": made.id, "rule": draft.reason, "conflict": draft.conflict} | self._hash(draft.value)
        self._event("propose", draft.origin, draft.scope, said=said)  # what nobody approved may stand in the key too
        return made, True

    def _make_room(self, waiting: Sequence[Proposal], origin: str) -> bool:
        """Let the oldest of the owner's sentences give way to a newer one; False where nothing does, since nobody else's
        words push any out."""
        oldest = next((one for one in waiting if one.kind == "set" and one.origin == "owner"), None)
        if origin != "owner" or oldest is None:
            return False
        self._lapse(oldest)
        return True

    def accept(self, name: str, yes: Yes) -> Fact | None:
        """The person takes a proposal on: as it stands, edited, merged `into` a known key, in the place of what it is
        against (supersede), or beside it (keep_both). None for one to forget. Where they name no key it takes the place of
        what is known of the same subject, under the key that this has.

        Raises UsageError for one that is unknown, decided, or not what `name` says; Refused for what is no key or value.
        """
        from clawmark.facts import standing

        drafted = proposals.named(self._connection, name)
        if drafted.kind == "forget":
            self._erased(drafted, yes)
            return None
        known = known_in(self._connection, drafted.scope)
        one = standing.as_it_stands(drafted, known)
        if yes.into is not None and (yes.key is not None or yes.way != "replace"):
            raise UsageError("merge into a key, or give another key, or say how both stand; not two of these.")
        under, said = statement.statement(
            one.key if yes.key is None else yes.key, one.value if yes.value is None else yes.value
        )
        known_as = standing.known_key(one.key, said, known)
        if yes.into is not None:
            under, said = self._merged(one, statement.named(yes.into), said, edited=yes.value is not None)
        elif yes.way == "keep_both" and yes.key is None and facts.get(self._connection, under, one.scope) is not None:
            under = self._free_key(under, one.scope)
        elif yes == Yes(value=yes.value):
            under = known_as
        beaten = self._beaten(one, under, drafted.against) if yes.way == "supersede" else None
        scope = one.scope if yes.way == "keep_both" else self._scope_of(one, under, beaten)
        if yes.way == "replace" and yes.into is None and yes.value is None:
            self._require_newest(one, under, scope)
        proposals.decide(self._connection, one.id, "accepted", self._now)
        old = facts.get(self._connection, under, scope, with_hidden=True)
        begun = self._now if old is None else old.created_at
        # A yes is no new saying, or the older of two that are said yes to in their order would stand against the newer.
        last = self._now if yes.into is not None or yes.value is not None else one.observed_at
        if old is not None and likeness(old.value) == likeness(said):
            last = max(last, old.reinforced_at)
        fact = Fact(under, said, CONFIDENCE["user"], "user", self._now, scope, begun, one.observed_at, last)
        facts.put(self._connection, fact)
        for where in self._seen_from(scope):
            tombstones.lift(self._connection, self._secret, where, under, said, names_of(under))
        if yes.value is None or likeness(said) == likeness(one.value):  # else nobody said what the person typed
            evidence.share(self._connection, (one.scope, one.key, one.value), (scope, under, said))
        erase.drop_evidence(self._connection, one.scope, one.key, one.value)
        if yes.into is not None and old is not None and yes.value is None:  # it says what the other said, too
            for rested in evidence.of(self._connection, scope, under, old.value):
                evidence.add(self._connection, scope, under, said, rested)
        self._of_fact("create" if old is None else "update", "user", old, fact)
        if beaten is not None:
            self._end([beaten], fact, one.observed_at)
        elif yes == Yes(value=yes.value):
            stored = facts.stored_in(self._connection, [one.scope, SHARED])
            self._end(standing.outdated(fact, stored, one.observed_at), fact, one.observed_at)
        edited = said != one.value or under not in (one.key, known_as)
        how = "merge" if yes.into is not None else yes.way
        taken = {"proposal": one.id, "edited": edited, "way": how, "confidence": one.confidence}
        self._event("accept", "user", scope, under, taken)
        self._answered(scope, under, said)
        return fact

    def _end(self, ended: Sequence[Fact], by: Fact, said_at: datetime) -> None:
        """What these facts say was true until `by` was said; it stays in the trail, with its dates."""
        for one in ended:
            facts.remove(self._connection, one.key, one.scope)
            self._need_no_forgetting(one.key, one.scope)
            until = said_at if one.observed_at <= said_at <= self._now else self._now
            span = {"by": by.key, "from": _date(one.observed_at), "until": _date(until)}
            self._event("supersede", "user", one.scope, one.key, span, old=one.value)

    def _erased(self, one: Proposal, yes: Yes) -> None:
        held = facts.get(self._connection, one.key, one.scope, with_hidden=True)
        if held is not None and likeness(held.value) != likeness(one.value):
            raise UsageError(f"{one.key} is another one by now; reject {one.name}, or say `clawmark forget {one.key}`.")
        if yes != Yes():
            raise UsageError(f"{one.name} is about forgetting {one.key}; it can be accepted or rejected.")
        proposals.decide(self._connection, one.id, "accepted", self._now)
        erase.erase_fact(self._connection, one.key, one.scope, self._secret, self._now)
        self._event("accept", "user", one.scope, said={"proposal": one.id, "way": "forget"})

    def _scope_of(self, one: Proposal, under: str, beaten: Fact | None) -> str:
        """Where it is stored: in its own scope, or in what is shared where it replaces what stands there."""
        if facts.get(self._connection, under, one.scope, with_hidden=True) is not None:
            return one.scope
        replaced = facts.get(self._connection, under, SHARED) or beaten
        return one.scope if replaced is None else replaced.scope

    def _require_newest(self, one: Proposal, under: str, scope: str) -> None:
        """An older saying replaces a later one only when the person says that it does."""
        held = facts.get(self._connection, under, scope)
        if held is not None and likeness(held.value) != likeness(one.value) and held.reinforced_at > one.observed_at:
            raise UsageError(
                f"{under} says something else since {_date(held.reinforced_at)}, later than {one.name} was said; say that it "
                "supersedes (--supersede), keep both (--keep-both), or reject it."
            )

    def _merged(self, one: Proposal, into: str, said: str, *, edited: bool) -> tuple[str, str]:
        held = facts.get(self._connection, into, one.scope) or facts.get(self._connection, into, SHARED)
        if held is None:
            raise UsageError(f"nothing is stored under {into} in {one.scope}; accept it, or name another key.")
        if edited or likeness(held.value) == likeness(said):
            return into, said
        return into, statement.value(f"{held.value}; {said}")

    def _beaten(self, one: Proposal, under: str, drafted: str | None) -> Fact | None:
        """The fact that gives way: what the proposal is against, where it does not stand under the same key. One that it was
        against from the beginning must not have changed since."""
        if one.against is None or one.against == under:
            return None
        for scope in (one.scope, SHARED):
            held = facts.get(self._connection, one.against, scope)
            if held is not None:
                if held.key == drafted and held.updated_at > one.created_at:
                    raise UsageError(f"{held.key} has changed since {one.name} was proposed; look at both again.")
                return held
        return None

    def _free_key(self, key: str, scope: str) -> str:
        return next(
            f"{key}_{number}"
            for number in range(2, 10_000)
            if facts.get(self._connection, f"{key}_{number}", scope, with_hidden=True) is None
        )

    def reject(self, name: str, reason: str) -> Proposal:
        """The person does not want it: its words are not proposed again for 180 days; where others than the person said
        them, of this subject, and not what the person says afterwards. What was hidden is shown again."""
        one = proposals.named(self._connection, name)
        proposals.decide(self._connection, one.id, "rejected", self._now)
        said: dict[str, Any] = {"proposal": one.id, "rule": one.reason}
        if reason.strip():
            said["reason"] = cut(secrets.mask(" ".join(reason.split())), REASON_LENGTH)
        if one.kind == "forget":
            self.unhide(one.key, one.scope)
        else:
            tombstones.bury_rejected(
                self._connection,
                self._secret,
                one.scope,
                names_of(one.key),
                one.value,
                self._now,
                self.as_of + REJECTED_FOR,
                is_owners=one.origin == "owner",
            )
            erase.drop_evidence(self._connection, one.scope, one.key, one.value)
        self._event("decline", "user", one.scope, said=said | self._hash(one.value))
        return one

    def unhide(self, key: str, scope: str | None) -> list[str]:
        """The person wants a hidden fact shown, which answers whoever wanted it erased. Returns the scopes it was hidden in;
        scope None = wherever it is."""
        shown = facts.hide(self._connection, key, scope, is_hidden=False, now=self._now)
        for where in shown:
            self._event("unhide", "user", where, key)
            self._need_no_forgetting(key, where)
        return shown

    def _need_no_forgetting(self, key: str, scope: str) -> None:
        """Whoever wanted the fact forgotten is answered: it stays, or stands no longer."""
        for one in proposals.pending(self._connection, [scope], key=key):
            if one.kind == "forget":
                self._supersede(one)

    def defer(self, name: str, days: int) -> Proposal:
        """The person wants to decide later."""
        one = proposals.named(self._connection, name)
        until = self._now + timedelta(days=days)
        proposals.defer(self._connection, one.id, until, self.as_of + timedelta(days=days) + WAITS, self._now)
        self._event("defer", "user", one.scope, said={"proposal": one.id, "days": days})
        return one

    def run_out(self) -> int:
        """What nobody decided in time is gone; a fact that was hidden for it is shown again. Returns how many."""
        over = proposals.run_out(self._connection, self.as_of)
        for one in over:
            self._lapse(one)
        return len(over)

    def _lapse(self, one: Proposal) -> None:
        proposals.decide(self._connection, one.id, "expired", self._now)
        if one.kind == "forget":
            self.unhide(one.key, one.scope)
        else:
            erase.drop_evidence(self._connection, one.scope, one.key, one.value)
        self._event("lapse", "clawmark", one.scope, said={"proposal": one.id})

    def fade(self) -> int:
        """Hide what was stated by others than the person and by nobody for a year. Returns how many."""
        gone = 0
        for fact in facts.live(self._connection):
            if ladder.is_spent(fact, self.as_of):
                facts.hide(self._connection, fact.key, fact.scope, is_hidden=True, now=self._now)
                self._event("decay", "decay", fact.scope, fact.key)
                gone += 1
        return gone

    # What is noted

    def _hash(self, value: str) -> dict[str, Any]:
        """A keyed hash, and the length: enough to tell two refusals apart, too little to tell what was said."""
        hashed = hmac.digest(self._secret, b"event\0" + likeness(value).encode(), hashlib.sha256).hex()[:12]
        return {"hash": hashed, "length": len(value)}

    def _event(
        self,
        event: str,
        source: str,
        scope: str,
        key: str | None = None,
        said: Mapping[str, Any] | None = None,
        *,
        old: str | None = None,
        new: str | None = None,
    ) -> None:
        detail = json.dumps(said) if said else None
        events.add(
            self._connection, event, self._now, source=source, scope=scope, key=key, old=old, new=new, detail=detail
        )


def known_in(connection: apsw.Connection, scope: str) -> list[Fact]:
    """The facts that stand in a scope, one for each key."""
    from clawmark.facts import standing

    return standing.seen_from(scope, facts.live(connection, [scope, SHARED]))


def as_they_stand(connection: apsw.Connection, found: Sequence[Proposal]) -> list[Proposal]:
    """Proposals with what each is against by now, which may have been stored, or wait, since it was made."""
    from clawmark.facts import standing

    scopes = {one.scope for one in found}
    known = {scope: known_in(connection, scope) for scope in scopes}
    waiting = {scope: proposals.pending(connection, [scope]) for scope in scopes}
    return [standing.as_it_stands(one, known[one.scope], waiting[one.scope]) for one in found]


def _says(value: str, other: str) -> bool:
    """Whether both say the same, in whatever words."""
    if likeness(value) == likeness(other):
        return True
    from clawmark.facts.alike import is_paraphrase  # its tables take their time

    return is_paraphrase(value, other)


def _is_said_of(key: str, value: str, said: Said) -> bool:
    """Whether what the owner typed says the value, and of what the key names."""
    from clawmark.facts.fitting import bears
    from clawmark.facts.support import supporting

    return supporting(key, value, [said]) is not None and bears(key, value, said.text)


def _origin(ruling: Ruling) -> str:
    """Who said what an extractor claims."""
    return next((one.origin for one in ruling.evidence), "owner")


def _evidence(one: Utterance) -> Evidence:
    return Evidence(one.content_key, one.at, one.session)


def _is_of(fact: Fact | None, one: Evidence) -> bool:
    """Whether an utterance is the one by which the person stated the fact last, before its log was read."""
    if fact is None or fact.source != "user":
        return False
    return abs(one.said_at - fact.reinforced_at) <= timedelta(milliseconds=passages.SAME_UTTERANCE_MS)


def _date(at: datetime) -> str:
    return at.date().isoformat()
