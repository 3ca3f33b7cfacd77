"""The one way a statement is believed: what the person, an agent or an extractor says becomes a fact, waits, or is refused.

Everything here belongs inside one transaction, and sees the facts and tombstones as they stand in it: what was forgotten
a moment ago is not learned, whoever judged the statement before. Values stand in events of facts alone; of what is refused
or waits an event holds rule and hash.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

import apsw

from clawmark import erase
from clawmark.errors import Refused, UsageError
from clawmark.facts import gate, ladder
from clawmark.guard import injection, secrets
from clawmark.model import SHARED, Conflict, Evidence, Fact, Proposal, ProposalKind, Utterance, Writer
from clawmark.store import events, evidence, facts, passages, proposals, tombstones
from clawmark.store.tombstones import Tombstones
from clawmark.text import cut, likeness

CONFIDENCE: Final = {"user": 1.0, "agent": 0.9, "extracted": 0.8}
"""How far a statement is believed by who makes it, where nothing else is said."""

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

Way = Literal["replace", "supersede", "keep_both"]


class Belief:
    """Statements into one database, in one transaction.

    secret   of the tombstones        now   of what is written
    clock    by which things expire: not later than the newest message by more than a day
    """

    def __init__(self, connection: apsw.Connection, secret: bytes, now: datetime) -> None:
        self._connection = connection
        self._secret = secret
        self._now = now
        self.clock = ladder.bounded(now, passages.newest_at(connection))

    # What somebody says now

    def state(self, key: str, value: str, scope: str, writer: Writer, observed_at: datetime | None) -> Fact:
        """The fact as it stands afterwards; `key` and `value` have passed the gate. Raises Refused CONFLICT_SKIP or
        FORGOTTEN, with nothing changed."""
        connection, now = self._connection, self._now
        forgotten_at = self._forgotten_at(scope, key, value)
        is_said_since = writer == "user" and (observed_at is None or (forgotten_at and observed_at > forgotten_at))
        if forgotten_at is not None and not is_said_since:
            raise Refused("FORGOTTEN", "the person had it forgotten; only what they say since then brings it back")
        # An agent that hid a person's fact has not made room for its own.
        old = facts.get(connection, key, scope, deleted=writer != "user")
        observed = min(observed_at or now, now)
        if observed_at is None and old is not None:  # what is said now is the newest, whatever the clock once said
            observed = max(observed, old.reinforced_at)
        statement = ladder.Statement(key, value, CONFIDENCE[writer], writer, scope, observed)
        outcome, fact = ladder.apply(old, statement, now)
        everybodys = facts.get(connection, key, SHARED, deleted=True) if writer != "user" and scope != SHARED else None
        if "conflict_skip" in (outcome, ladder.decide(everybodys, statement)):
            raise Refused("CONFLICT_SKIP", "what is stored is the person's own word, or was said later")
        facts.put(connection, fact)
        if writer == "user":
            for where in self._seen_from(scope):
                tombstones.lift(connection, self._secret, where, key, value)
            self._answered(scope, key, fact.value)
            flagged = injection.score(value)
            if flagged:
                self._event("injection_flag", "user", scope, key, {"rules": list(flagged.rules)})
        self._of_fact(outcome, writer, old, fact)
        return fact

    def _forgotten_at(self, scope: str, key: str, value: str) -> datetime | None:
        known = Tombstones(self._connection, self._secret)
        return known.forgotten_at(self._seen_from(scope), key, value) if known else None

    def _seen_from(self, scope: str) -> set[str]:
        """The scopes in which a forgetting counts for what is stated in `scope`: what is shared is seen in all."""
        if scope != SHARED:
            return {scope, SHARED}
        return {SHARED, *events.scopes(self._connection), *passages.scopes(self._connection)}

    def _answered(self, scope: str, key: str, value: str) -> None:
        """It is stored now: what waited under the same key with the same words waits no longer, nor what would have had
        another value of it forgotten."""
        for one in proposals.pending(self._connection, [scope]):
            if one.key == key and (one.kind == "forget" or likeness(one.value) == likeness(value)):
                proposals.decide(self._connection, one.id, "superseded", self._now)
                self._event("answer", "clawmark", scope, None, {"proposal": one.id})

    def _of_fact(
        self, outcome: str, writer: str, old: Fact | None, fact: Fact, rested: Sequence[Evidence] = ()
    ) -> None:
        """The event of a fact, with the dates between which the old value was true."""
        said: dict[str, Any] = {}
        if outcome == "update" and old is not None:
            # What was said earlier and is decided now ended the other one now.
            until = fact.observed_at if fact.observed_at >= old.observed_at else self._now
            said = {"from": _date(old.observed_at), "until": _date(until)}
        if rested:
            said["evidence"] = [one.content_key.hex()[:12] for one in rested]
        events.add(
            self._connection,
            outcome,
            self._now,
            source=writer,
            scope=fact.scope,
            key=fact.key,
            old=None if old is None else old.value,
            new=fact.value,
            detail=json.dumps(said) if said else None,
        )

    # What an extractor claims

    def extracted(self, ruling: gate.Ruling, scope: str) -> str:
        """Act on a ruling about something said in `scope`; returns "fact", "known", "proposed" or "refused"."""
        if ruling.outcome == "refuse":
            return self._refused(ruling, ruling.rule, scope)
        if not any(one.dated for one in ruling.evidence):
            ruling = replace(ruling, observed_at=self.clock)  # nobody knows when; it is not old because of that
        rests_on = [_evidence(one) for one in ruling.evidence]
        known = Tombstones(self._connection, self._secret)
        content_keys = [one.content_key for one in rests_on]
        if known.covers([scope, SHARED], ruling.key, ruling.value, content_keys):
            return self._refused(ruling, "forgotten", scope)
        if not all(passages.with_content(self._connection, [one]) for one in content_keys):
            return self._refused(ruling, "erased", scope)  # since it was read
        if known.is_rejected(scope, ruling.value, self.clock):
            return self._refused(ruling, "rejected", scope)
        if ruling.outcome == "store":
            return self._stored(ruling, scope, rests_on)
        return self._waits(ruling, scope, rests_on)

    def _stored(self, ruling: gate.Ruling, scope: str, rests_on: Sequence[Evidence]) -> str:
        old = facts.get(self._connection, ruling.key, scope, deleted=True)
        hidden = facts.is_hidden(self._connection, ruling.key, scope)
        if hidden and old is not None and not ladder.is_spent(old, self.clock):
            return self._refused(ruling, "hidden", scope)  # until the person decides
        everybodys = facts.get(self._connection, ruling.key, SHARED, deleted=True)
        statement = ladder.Statement(
            ruling.key, ruling.value, ruling.confidence, "extracted", scope, ruling.observed_at
        )
        if everybodys is not None and everybodys.source != "extracted":
            outcome = ladder.decide(everybodys, statement)
            return "known" if outcome == "reinforce" else self._lost(ruling, scope)
        outcome, fact = ladder.apply(None if hidden else old, statement, self._now)
        if outcome == "conflict_skip":
            for one in rests_on:
                evidence.add(self._connection, scope, ruling.key, ruling.value, one)
            return self._lost(ruling, scope)
        new = [one for one in rests_on if evidence.add(self._connection, scope, fact.key, fact.value, one)]
        if outcome == "reinforce" and not new:
            return "known"  # nothing was said anew
        facts.put(self._connection, fact)
        self._of_fact(outcome, "extracted", None if hidden else old, fact, new)
        self._answered(scope, fact.key, fact.value)
        return "fact"

    def _lost(self, ruling: gate.Ruling, scope: str) -> str:
        events.add(
            self._connection, "conflict_skip", self._now, source="extracted", scope=scope, key=ruling.key,
            detail=json.dumps(self._hash(ruling.value)),
        )  # fmt: skip
        return "refused"

    def _refused(self, ruling: gate.Ruling, rule: str, scope: str) -> str:
        said = {"rule": rule} | self._hash(ruling.value)
        events.add(self._connection, "reject", self._now, source="extracted", scope=scope, detail=json.dumps(said))
        return "refused"

    def _waits(self, ruling: gate.Ruling, scope: str, rests_on: Sequence[Evidence]) -> str:
        origin = next((one.origin for one in ruling.evidence), "owner")
        made, is_new = self._propose(
            "set",
            ruling.key,
            ruling.value,
            scope,
            confidence=ruling.confidence,
            origin=origin,
            reason=ruling.rule,
            conflict=ruling.conflict,
            against=None if ruling.against is None else ruling.against.key,
            observed_at=ruling.observed_at,
        )
        if made is None:
            return self._refused(ruling, "too_many", scope)
        before = evidence.sessions(self._connection, scope, made.key, made.value)
        for one in rests_on:
            evidence.add(self._connection, scope, made.key, made.value, one)
        if not is_new and before < evidence.sessions(self._connection, scope, made.key, made.value):
            proposals.believe(self._connection, made.id, min(1.0, made.confidence + RAISED), self._now)
        return "proposed" if is_new else "known"

    # What waits

    def propose(
        self,
        kind: ProposalKind,
        key: str,
        value: str,
        scope: str,
        *,
        origin: str,
        reason: str,
        confidence: float = CONFIDENCE["agent"],
        conflict: Conflict = "none",
        against: str | None = None,
        observed_at: datetime | None = None,
    ) -> Proposal:
        """Have a statement, or an erasure, wait for the person; the one that waits already where there is one. Raises
        Refused FORGOTTEN or REVIEW (rejected not long ago, or too many wait)."""
        known = Tombstones(self._connection, self._secret)
        if kind == "set" and known.covers([scope, SHARED], key, value):
            raise Refused("FORGOTTEN", "the person had it forgotten; only what they say since then brings it back")
        if kind == "set" and known.is_rejected(scope, value, self.clock):
            raise Refused("REVIEW", "the person rejected it not long ago")
        made, _ = self._propose(
            kind,
            key,
            value,
            scope,
            confidence=confidence,
            origin=origin,
            reason=reason,
            conflict=conflict,
            against=against,
            observed_at=observed_at or self._now,
        )
        if made is None:
            raise Refused("REVIEW", f"{MOST_PENDING} proposals wait already; ask the person to run `clawmark review`")
        return made

    def _propose(
        self,
        kind: ProposalKind,
        key: str,
        value: str,
        scope: str,
        *,
        confidence: float,
        origin: str,
        reason: str,
        conflict: Conflict,
        against: str | None,
        observed_at: datetime,
    ) -> tuple[Proposal | None, bool]:
        """The proposal, and whether it is new; None where too many wait."""
        waiting = proposals.pending(self._connection, [scope])
        alike = [one for one in waiting if (one.origin == "owner") == (origin == "owner")]
        for one in waiting:
            if one.kind == kind and likeness(one.value) == likeness(value) and (kind == "set" or one.key == key):
                return one, False
        if len(alike) >= MOST_PENDING and not self._gives_way(alike, origin):
            return None, False
        lasts = FORGET_WAITS if kind == "forget" else WAITS
        made = proposals.add(
            self._connection,
            kind=kind,
            scope=scope,
            key=key,
            value=value,
            confidence=confidence,
            origin=origin,
            reason=reason,
            conflict=conflict,
            against=against,
            observed_at=min(observed_at, self._now),
            now=self._now,
            expires_at=self.clock + lasts,
        )
        said = {"proposal": made.id, "rule": reason, "conflict": conflict} | self._hash(value)
        self._event("propose", origin, scope, None, said)  # what nobody approved may stand in the key as well
        return made, True

    def _gives_way(self, waiting: Sequence[Proposal], origin: str) -> bool:
        """Whether the oldest of the owner's sentences made room for a newer one; nobody else's words push any out."""
        oldest = next((one for one in waiting if one.kind == "set" and one.origin == "owner"), None)
        if origin != "owner" or oldest is None:
            return False
        self._lapse(oldest)
        return True

    def accept(
        self,
        name: str,
        *,
        value: str | None = None,
        key: str | None = None,
        into: str | None = None,
        way: Way = "replace",
    ) -> Fact | None:
        """The person takes a proposal on: as it stands, edited, merged `into` a known key, in the place of what it is
        against (supersede), or beside it (keep_both). None for one to forget.

        Raises UsageError for one that is unknown, decided, or not what `name` says; Refused for what is no key or value.
        """
        one = self._named(name)
        if one.kind == "forget":
            held = facts.get(self._connection, one.key, one.scope, deleted=True)
            if held is not None and likeness(held.value) != likeness(one.value):
                raise UsageError(
                    f"{one.key} is another one by now; reject {one.name}, or say `clawmark forget {one.key}`."
                )
            if value is not None or key is not None or into is not None or way != "replace":
                raise UsageError(f"{one.name} is about forgetting {one.key}; it can be accepted or rejected.")
            proposals.decide(self._connection, one.id, "accepted", self._now)
            erase.erase_fact(self._connection, one.key, one.scope, self._secret, self._now)
            self._event("accept", "user", one.scope, None, {"proposal": one.id, "way": "forget"})
            return None
        if into is not None and (key is not None or way != "replace"):
            raise UsageError("merge into a key, or give another key, or say how both stand; not two of these.")
        under, said = gate.statement(one.key if key is None else key, one.value if value is None else value)
        if into is not None:
            under, said = self._merged(one, gate.named(into), said, edited=value is not None)
        elif way == "keep_both" and key is None and facts.get(self._connection, under, one.scope) is not None:
            under = self._free_key(under, one.scope)
        beaten = self._beaten(one, under) if way == "supersede" else None
        scope = one.scope if way == "keep_both" else self._scope_of(one, under, beaten)
        if way == "replace" and into is None and value is None:
            self._require_newest(one, under, scope)
        proposals.decide(self._connection, one.id, "accepted", self._now)
        old = facts.get(self._connection, under, scope, deleted=True)
        begun = self._now if old is None else old.created_at
        fact = Fact(under, said, CONFIDENCE["user"], "user", self._now, scope, begun, one.observed_at, self._now)
        facts.put(self._connection, fact)
        for where in self._seen_from(scope):
            tombstones.lift(self._connection, self._secret, where, under, said)
        evidence.move(self._connection, (one.scope, one.key, one.value), (scope, under, said))
        self._of_fact("create" if old is None else "update", "user", old, fact)
        if beaten is not None:
            facts.remove(self._connection, beaten.key, beaten.scope)
            until = fact.observed_at if fact.observed_at >= beaten.observed_at else self._now
            detail = {"by": under, "from": _date(beaten.observed_at), "until": _date(until)}
            events.add(
                self._connection, "supersede", self._now, source="user", scope=beaten.scope, key=beaten.key,
                old=beaten.value, detail=json.dumps(detail),
            )  # fmt: skip
        edited = said != one.value or under != one.key
        how = "merge" if into is not None else way
        self._event("accept", "user", scope, under, {"proposal": one.id, "edited": edited, "way": how})
        return fact

    def _scope_of(self, one: Proposal, under: str, beaten: Fact | None) -> str:
        """Where it is stored: in its own scope, or in what is shared where it replaces what stands there."""
        if facts.get(self._connection, under, one.scope, deleted=True) is not None:
            return one.scope
        replaced = facts.get(self._connection, under, SHARED) or beaten
        return one.scope if replaced is None else replaced.scope

    def _require_newest(self, one: Proposal, under: str, scope: str) -> None:
        """An older saying replaces a later one only when the person says that it does."""
        held = facts.get(self._connection, under, scope)
        if held is not None and likeness(held.value) != likeness(one.value) and held.reinforced_at > one.observed_at:
            raise UsageError(
                f"{under} says something else since {_date(held.reinforced_at)}, later than {one.name} was said; say that it "
                "supersedes, keep both, or reject it."
            )

    def _merged(self, one: Proposal, into: str, said: str, *, edited: bool) -> tuple[str, str]:
        held = facts.get(self._connection, into, one.scope) or facts.get(self._connection, into, SHARED)
        if held is None:
            raise UsageError(f"nothing is stored under {into} in {one.scope}; accept it, or name another key.")
        return into, said if edited or likeness(held.value) == likeness(said) else gate.value(f"{held.value}; {said}")

    def _beaten(self, one: Proposal, under: str) -> Fact | None:
        """The fact that gives way: what the proposal is against, where it does not stand under the same key."""
        if one.against is None or one.against == under:
            return None
        for scope in (one.scope, SHARED):
            held = facts.get(self._connection, one.against, scope)
            if held is not None:
                if held.updated_at > one.created_at:
                    raise UsageError(f"{held.key} has changed since {one.name} was proposed; look at both again.")
                return held
        return None

    def _free_key(self, key: str, scope: str) -> str:
        return next(
            f"{key}_{number}"
            for number in range(2, 10_000)
            if facts.get(self._connection, f"{key}_{number}", scope, deleted=True) is None
        )

    def reject(self, name: str, reason: str) -> Proposal:
        """The person does not want it: its words are not proposed again for 180 days. What was hidden is shown again."""
        one = self._named(name)
        proposals.decide(self._connection, one.id, "rejected", self._now)
        said: dict[str, Any] = {"proposal": one.id, "rule": one.reason}
        if reason.strip():
            said["reason"] = cut(secrets.mask(" ".join(reason.split())), REASON_LENGTH)
        if one.kind == "forget":
            self._shown_again(one)
        else:
            tombstones.bury_rejected(
                self._connection, self._secret, one.scope, one.value, self._now, self.clock + REJECTED_FOR
            )
            evidence.remove(self._connection, one.scope, one.key, one.value)
        self._event("decline", "user", one.scope, None, said | self._hash(one.value))
        return one

    def defer(self, name: str, days: int) -> Proposal:
        """The person wants to decide later."""
        one = self._named(name)
        until = self._now + timedelta(days=days)
        proposals.defer(self._connection, one.id, until, self.clock + timedelta(days=days) + WAITS, self._now)
        self._event("defer", "user", one.scope, None, {"proposal": one.id, "days": days})
        return one

    def run_out(self) -> int:
        """What nobody decided in time is gone; a fact that was hidden for it is shown again. Returns how many."""
        over = proposals.run_out(self._connection, self.clock)
        for one in over:
            self._lapse(one)
        return len(over)

    def _lapse(self, one: Proposal) -> None:
        proposals.decide(self._connection, one.id, "expired", self._now)
        if one.kind == "forget":
            self._shown_again(one)
        else:
            evidence.remove(self._connection, one.scope, one.key, one.value)
        self._event("lapse", "clawmark", one.scope, None, {"proposal": one.id})

    def fade(self) -> int:
        """Hide what was stated by others than the person and by nobody for a year. Returns how many."""
        gone = 0
        for fact in facts.live(self._connection):
            if ladder.is_spent(fact, self.clock):
                facts.hide(self._connection, fact.key, fact.scope, is_hidden=True, now=self._now)
                events.add(self._connection, "decay", self._now, source="decay", scope=fact.scope, key=fact.key)
                gone += 1
        return gone

    def _shown_again(self, one: Proposal) -> None:
        for scope in facts.hide(self._connection, one.key, one.scope, is_hidden=False, now=self._now):
            events.add(self._connection, "unhide", self._now, source="user", scope=scope, key=one.key)

    def _named(self, name: str) -> Proposal:
        found = _NAME.fullmatch(name.strip())
        one = proposals.get(self._connection, int(found[1])) if found else None
        if found is None or one is None:
            raise UsageError(f"there is no proposal {name}; `clawmark review --list` lists them.")
        if one.state != "pending":
            raise UsageError(f"proposal {one.id} is {one.state} already.")
        if found[2] is not None and not one.content_hash.startswith(found[2]):
            raise UsageError(
                f"proposal {one.id} says something else now; look at it again with `clawmark review --list`."
            )
        return one

    # What is noted

    def _hash(self, value: str) -> dict[str, Any]:
        """A keyed hash, and the length: enough to tell two refusals apart, too little to tell what was said."""
        hashed = hmac.digest(self._secret, b"event\0" + likeness(value).encode(), hashlib.sha256).hex()[:12]
        return {"hash": hashed, "length": len(value)}

    def _event(self, event: str, source: str, scope: str, key: str | None, said: dict[str, Any]) -> None:
        events.add(self._connection, event, self._now, source=source, scope=scope, key=key, detail=json.dumps(said))


_NAME = re.compile(r"(\d{1,15})(?:-([0-9a-f]{4,12}))?")


def _evidence(one: Utterance) -> Evidence:
    return Evidence(one.content_key, one.at, one.session)


def _date(at: datetime) -> str:
    return at.date().isoformat()
