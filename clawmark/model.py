"""The domain: what every layer speaks about, as frozen values.

Imports nothing of ours. Times are aware datetimes, in UTC but for a message that says where it was said; texts hold no
lone surrogates, and a value never changes after it was made: whoever holds one may keep it, compare it and hand it to
another thread.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

Origin = Literal["owner", "participant", "assistant", "host"]
"""Who an utterance comes from: the person, somebody else in a group, the agent, or the host program itself
(heartbeat, cron, a sub-agent's task, a compaction summary, injected context)."""

Role = Literal["user", "assistant"]
Writer = Literal["user", "agent"]
"""Who may state a fact, stronger first. The third writer of facts, "extracted", only claims: its word passes the gate."""

CONFIDENCE: Final[Mapping[Writer, float]] = {"user": 1.0, "agent": 0.9}
"""How far a statement is believed by who makes it, where nothing else is said."""

StreamKind = Literal["direct", "group", "host"]
"""What a stream holds: a conversation with the owner alone, one with others present, or the host's own runs."""

Fate = Literal["deleted", "gone", "expired", "lost"]
"""What became of a stream that is no longer listed. deleted: by the person, and so is every copy of the session in other
logs. gone: this log holds it no more; what came from it is erased. expired: the host removed it by age; it is kept.
lost: unknown, as after a restored backup; nothing is erased, and it is asked again."""

Conflict = Literal["none", "duplicate", "merge_candidate", "conflict_candidate"]
"""How a statement stands to what is known. duplicate: known already. merge_candidate: says much of what a fact says.
conflict_candidate: says the opposite of a fact, or something else where a stronger writer has spoken."""

ProposalKind = Literal["set", "forget"]
ProposalState = Literal["pending", "accepted", "rejected", "superseded", "expired"]

Way = Literal["replace", "supersede", "keep_both"]
"""What a yes does to what stands there: replace what has its key; supersede, end also the fact it is against; keep both."""

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with ("messages" | "vectors" | "messages looked through", how many are done, how many there are to do or None
while nobody knows)."""

SHARED = "shared"
"""The scope of facts that every agent of the person sees."""


def digest(text: str) -> bytes:
    """16 bytes that identify `text` exactly, before any cleaning: what read-back is checked against."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Message:
    """One utterance as the host logged it, envelopes and all.

    ref           stable name within its source; survives rename, rotation and restart
    stream        name of the stream it was read from
    session       the host's session id; several windows of one session follow each other
    window        what the model sees at once: a new one begins at each reset or compaction ("" for the first)
    scope         whose memory it belongs to: an agent, a project
    text          the source's own text; cleaning comes later and in one place
    at            when it was said (aware: UTC, or in the offset of the place where it was said)
    dated         False when the host did not say when: `at` is then the time of what stands before it, else 1970
    author        a participant's or agent's name where the host knows it
    note          for origin "host": what kind of run it was, the reason under which it is counted
    folder        the directory the host worked in when it was said, "" where the log does not say
    location      where the source finds it quickest; a hint, never an identity
    """

    ref: str
    stream: str
    session: str
    scope: str
    origin: Origin
    text: str
    at: datetime
    window: str = ""
    author: str | None = None
    note: str = ""
    location: str = ""
    dated: bool = True
    folder: str = ""

    @property
    def role(self) -> Role:
        return "assistant" if self.origin == "assistant" else "user"


@dataclass(frozen=True, slots=True)
class Stream:
    """One append-only log inside a source.

    mark         changes whenever the log may hold something new
    losses       changes whenever the host may have taken back something that was read; a stream whose mark and losses
                 are unchanged is not opened
    touched      when the log was last written, as far as that is known without opening it (aware UTC)
    scope_name   what a person calls the scope, where it is not a name itself
    """

    name: str
    mark: str
    scope: str
    session: str
    kind: StreamKind = "direct"
    losses: str = ""
    touched: datetime | None = None
    scope_name: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """A line or row that could not be read: why, and where it stands. Never its content."""

    reason: str
    where: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What one read of a stream gave.

    messages   utterances in log order
    before     the utterance just before the first one, so that context does not depend on where batches fall
    cursor     opaque to everyone but the source; covers all that this batch passed over
    restarted  True when reading began anew because the given cursor did not fit the log any more
    skipped    entries that carry no utterance, counted by reason
    faults     entries that could not be read
    end        True when nothing more stands behind the cursor now
    took_back  True when the host may have taken back something that was read before: `withdrawn` is asked at the end
    renumbered what the refs of this stream begin with now, when the host has numbered its entries anew and these may be
               copies of known ones, said at any time; "" = the usual case
    """

    messages: Sequence[Message]
    cursor: str
    before: Message | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    faults: Sequence[Fault] = ()
    end: bool = True
    restarted: bool = False
    took_back: bool = False
    renumbered: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A message asked back from a source: its stream and ref, and where it stood when it was read."""

    stream: str
    ref: str
    location: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """A wanted message that the source no longer holds."""

    ref: str


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding model's identity. Vectors of two spaces are never compared."""

    model: str
    dimension: int
    document_prefix: str = ""
    query_prefix: str = ""
    probe: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """A keyed statement. `source` is its writer: "user", "agent" or "extracted"."""

    key: str
    value: str
    confidence: float
    source: str
    updated_at: datetime
    scope: str
    created_at: datetime
    observed_at: datetime
    reinforced_at: datetime

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "value": self.value,
            "confidence": self.confidence,
            "source": self.source,
            "updated_at": self.updated_at.isoformat(),
            "scope": self.scope,
        }


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message as extraction sees it: read back from its log just now, cleaned, secrets masked.

    number        by which a model cites it, from 1 within one batch
    text          whole, at most a passage long
    at            when it was said; `dated` False = the host did not say. An offset of its own is that of the place where
                  it was said, and its days are counted there; in UTC, as most logs are, the person's zone counts
    session       the host's session; scope: whose memory
    content_key   with `at`, which utterance it is, in whichever log it stands
    citable       whether a fact may rest on it: the owner typed it as a whole, and it was not extracted before. What is
                  not citable is context
    """

    number: int
    passage_id: int
    origin: Origin
    author: str | None
    text: str
    at: datetime
    dated: bool
    session: str
    scope: str
    content_key: bytes
    citable: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """What an extractor claims, nothing of it believed yet.

    confidence   within 0 and 1     cited   numbers of utterances     quote   verbatim out of one of them
    """

    key: str
    value: str
    confidence: float
    cited: tuple[int, ...]
    quote: str


Outcome = Literal["store", "propose", "refuse"]


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


@dataclass(frozen=True, slots=True)
class Evidence:
    """An utterance that a statement rests on. Its text stands in its log alone."""

    content_key: bytes
    said_at: datetime
    session: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to wait for the person, as whoever proposes it says it.

    value        for kind "forget": the one that is to go
    origin       who said it; "agent" = a tool call without support
    reason       the rule by which it did not become a fact
    against      the key of the fact that `conflict` is about
    observed_at  None = now
    """

    kind: ProposalKind
    key: str
    value: str
    scope: str
    origin: str
    reason: str
    confidence: float = CONFIDENCE["agent"]
    conflict: Conflict = "none"
    against: str | None = None
    observed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Yes:
    """How a person takes a proposal on.

    value, key   as they edited them; None = as they stand
    into         a known key that it is merged into
    """

    value: str | None = None
    key: str | None = None
    into: str | None = None
    way: Way = "replace"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A statement, or the erasure of one, that waits for the person. Never shown to a model unasked.

    Fields that a `Draft` has mean what they mean there.
    deferred_until   the person put it off; it is not counted until then
    """

    id: int
    kind: ProposalKind
    scope: str
    key: str
    value: str
    confidence: float
    origin: str
    reason: str
    conflict: Conflict
    against: str | None
    state: ProposalState
    observed_at: datetime
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    deferred_until: datetime | None = None

    @property
    def content_hash(self) -> str:
        """12 hex digits of what is approved: whoever says yes says it to these very words."""
        said = "\0".join((self.kind, self.scope, self.key, self.value))
        return hashlib.sha256(said.encode()).hexdigest()[:12]

    @property
    def name(self) -> str:
        """How a person names it: `12-3fa9c1`, its number and the head of its content's hash."""
        return f"{self.id}-{self.content_hash[:6]}"

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.name,
            "kind": self.kind,
            "scope": self.scope,
            "key": self.key,
            "value": self.value,
            "confidence": self.confidence,
            "origin": self.origin,
            "reason": self.reason,
            "conflict": self.conflict,
            "against": self.against,
            "state": self.state,
            "content_hash": self.content_hash,
            "observed_at": self.observed_at.isoformat(),
            "created_at": self.created_at.isoformat(),
            "expires_at": self.expires_at.isoformat(),
            "deferred_until": None if self.deferred_until is None else self.deferred_until.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about a statement that waited.

    confidence   how far it was believed by then
    edited       it was taken on in other words, or under another key
    """

    confidence: float
    accepted: bool
    edited: bool
    origin: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The text shown for a passage: cleaned, read back from its source just now, at most 400 characters.

    at      when it was said; None = the host did not say
    score   comparable within one answer only
    """

    ref: str
    source: str
    conversation: str
    role: Role
    at: datetime | None
    excerpt: str
    score: float
    author: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "ref": self.ref,
            "source": self.source,
            "conversation": self.conversation,
            "role": self.role,
            "at": None if self.at is None else self.at.isoformat(),
            "excerpt": self.excerpt,
            "score": round(self.score, 4),
        }


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search: facts that share a word with the query, and excerpts, best first."""

    facts: Sequence[Fact]
    recalled: Sequence[Excerpt]

    def as_json(self) -> dict[str, Any]:
        return {"facts": [f.as_json() for f in self.facts], "recalled": [e.as_json() for e in self.recalled]}


@dataclass(frozen=True, slots=True)
class Stale:
    """A fact that nobody has stated for long. days: since it was; effective: how far it is believed now."""

    fact: Fact
    days: int
    effective: float

    def as_json(self) -> dict[str, Any]:
        return self.fact.as_json() | {"days": self.days, "effective": round(self.effective, 3)}


@dataclass(frozen=True, slots=True)
class Why:
    """What is known of one key in one scope, and where it is from.

    fact       None = no fact stands there now
    hidden     whether the fact is shown nowhere
    evidence   what it rests on, read back from the logs, oldest first
    unread     evidence whose log cannot be read now, or is gone: when it was said, oldest first
    history    events of the key, oldest first
    proposals  that wait under this key
    """

    key: str
    scope: str
    fact: Fact | None
    hidden: bool
    evidence: Sequence[Excerpt]
    unread: Sequence[datetime]
    history: Sequence[Event]
    proposals: Sequence[Proposal]

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "scope": self.scope,
            "fact": None if self.fact is None else self.fact.as_json(),
            "hidden": self.hidden,
            "evidence": [one.as_json() for one in self.evidence],
            "unread": [at.isoformat() for at in self.unread],
            "history": [event.as_json() for event in self.history],
            "proposals": [one.as_json() for one in self.proposals],
        }


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What a person wants forgotten: exactly one of these; `scope` may go with each, and stands alone for all of a scope.

    key            one fact, with what was said of it
    query          every fact and message that holds all words of it
    conversation   a session, whole
    before         what was said before this time (aware UTC), and facts that rest on nothing later
    everything     all of it
    """

    key: str | None = None
    query: str | None = None
    conversation: str | None = None
    before: datetime | None = None
    everything: bool = False
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is forgotten, or would be.

    facts      (scope, key) of each
    excerpts   the first messages of them, for a person to look at; empty once they are gone
    waiting    the proposals, likewise
    staying    how many facts that were stated in the same messages, or then, stay
    finished   False while another process's reading keeps erased words in the file; the next pass completes it
    """

    facts: Sequence[tuple[str, str]]
    proposals: int
    messages: int
    excerpts: Sequence[Excerpt] = ()
    finished: bool = True
    waiting: Sequence[Proposal] = ()
    staying: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "facts": [{"scope": scope, "key": key} for scope, key in self.facts],
            "proposals": self.proposals,
            "messages": self.messages,
            "excerpts": [one.as_json() for one in self.excerpts],
            "waiting": [one.as_json() for one in self.waiting],
            "staying": self.staying,
            "finished": self.finished,
        }


@dataclass(frozen=True, slots=True)
class Said:
    """Something the owner typed, and when (aware UTC)."""

    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """What a host asks about, once per prompt.

    host      whose profile sets caps and gate: "openclaw", "claude-code", "mcp", "cli"
    scope     whose memory; None = the session's, else the only one there is, else "main"
    session   the running session; what its model still sees is not recalled
    kind      "group" when others read along: then only this session is recalled and no private fact is shown;
              None = what the log says of the session
    recent    up to a few lines said just before the prompt
    run       the host's id of this run; retries of one run share it
    now       aware UTC; None = the clock
    """

    prompt: str
    host: str = "cli"
    scope: str | None = None
    session: str | None = None
    kind: Literal["direct", "group"] | None = None
    recent: Sequence[str] = ()
    run: str | None = None
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """The guard-wrapped text for a host ("" when there is nothing to say) and what stands in it.

    skipped   why nothing was looked for: "off", "trivial", "short_prompt", "cooldown" or "budget"; "" = it was
    notice    the line about what waits for the person, or was noted by itself; "" = none
    told      the newest event that it knows of
    """

    text: str
    facts: Sequence[Fact] = ()
    recalled: Sequence[Excerpt] = ()
    facts_left_out: int = 0
    skipped: str = ""
    notice: str = ""
    told: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "facts": [f.as_json() for f in self.facts],
            "recalled": [e.as_json() for e in self.recalled],
            "facts_left_out": self.facts_left_out,
            "skipped": self.skipped,
            "notice": self.notice,
        }


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the audit trail. Values stand only in events of facts; all others carry counts, hashes and rule names."""

    id: int
    event_type: str
    created_at: datetime
    source: str
    scope: str | None = None
    memory_key: str | None = None
    old_value: str | None = None
    new_value: str | None = None
    detail: str | None = None

    def as_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return values | {"created_at": self.created_at.isoformat()}


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one pass of the jobs did.

    read       utterances delivered by the source         kept      new passages' messages
    dropped    utterances and entries left out, by reason (a known utterance counts as "known")
    vectors    vectors written                            pending   vectors still to come
    pruned     passages erased because their log is gone
    failures   streams that could not be read, each as one line
    facts      facts that were stored, replaced or confirmed by extraction
    proposed   statements that now wait for the person
    unasked    messages that wait for extraction
    """

    read: int = 0
    kept: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    vectors: int = 0
    pending: int = 0
    pruned: int = 0
    failures: Sequence[str] = ()
    facts: int = 0
    proposed: int = 0
    unasked: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "read": self.read,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "vectors": self.vectors,
            "pending": self.pending,
            "pruned": self.pruned,
            "failures": list(self.failures),
            "facts": self.facts,
            "proposed": self.proposed,
            "unasked": self.unasked,
        }

    def then(self, later: SyncReport) -> SyncReport:
        """This pass and a later one in one report: what they did together, and what is left after both."""
        return SyncReport(
            self.read + later.read,
            self.kept + later.kept,
            dict(sorted((Counter(self.dropped) + Counter(later.dropped)).items())),
            self.vectors + later.vectors,
            later.pending,
            self.pruned + later.pruned,
            tuple(dict.fromkeys((*self.failures, *later.failures))),
            self.facts + later.facts,
            self.proposed + later.proposed,
            later.unasked,
        )


@dataclass(frozen=True, slots=True)
class FailedText:
    """A passage without vector that was tried: its message's name and what is known, never its text.

    next_try None = given up, until `clawmark reembed`
    """

    source: str
    ref: str
    reason: str
    tries: int
    next_try: datetime | None

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "ref": self.ref,
            "reason": self.reason,
            "tries": self.tries,
            "next_try": None if self.next_try is None else self.next_try.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """A space of vectors and how far it is filled. endpoint "" = its model runs in this process."""

    model: str
    dimension: int
    vectors: int
    endpoint: str = ""
    batch_limit: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "dimension": self.dimension,
            "vectors": self.vectors,
            "endpoint": self.endpoint,
            "batch_limit": self.batch_limit,
        }


SourceState = Literal["read", "standing by", "not there", "not read"]


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """A log and what was read of it.

    state     read; standing by (another one is read instead, this one could be); not there; not read (see problems)
    streams   that were read                                  behind   streams that changed since
    kept      messages that became or joined a passage        dropped  messages and entries left out, by reason
    newest    when the newest message was said that was read  written  when the log was last written
    """

    name: str
    where: str
    state: SourceState
    streams: int = 0
    behind: int = 0
    kept: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    newest: datetime | None = None
    written: datetime | None = None

    @property
    def seen(self) -> int:
        """Messages and entries that were read."""
        return self.kept + sum(self.dropped.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "where": self.where,
            "state": self.state,
            "streams": self.streams,
            "behind": self.behind,
            "seen": self.seen,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "newest": None if self.newest is None else self.newest.isoformat(),
            "written": None if self.written is None else self.written.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class Status:
    """What there is and what is wrong.

    bytes      of the database and its write-ahead log
    scope_names   what a person calls the scopes that are no names themselves
    kept_texts    passages whose masked text is kept, because their host deletes its old logs
    hidden     facts that an agent had forgotten without being asked to; a person forgets or unhides them
    proposals  statements that wait for the person
    extractor  what facts are extracted with         unasked    messages that wait for it
    calls      how often the host's own model was asked today, and how often it may be; None = it is not used
    space      whose vectors are searched            filling    the one that is to take its place
    pending    passages without vector, by reason    given_up   those of them that are not tried again by themselves
    failed     the newest that were tried
    problems   each one line saying what to do; empty when all is well
    """

    path: str
    bytes: int
    schema: int
    sources: Sequence[SourceStatus]
    scopes: Sequence[str]
    scope_names: Mapping[str, str]
    passages: int
    kept_texts: int
    facts: int
    hidden: int
    proposals: int
    extractor: str
    unasked: int
    calls: tuple[int, int] | None
    embedder: str
    space: SpaceStatus | None
    filling: SpaceStatus | None
    pending: Mapping[str, int]
    given_up: int
    failed: Sequence[FailedText]
    recall: str
    disabled: bool
    problems: Sequence[str]

    @property
    def vectors(self) -> int:
        """Vectors that are searched."""
        return 0 if self.space is None else self.space.vectors

    def as_json(self) -> dict[str, Any]:
        return {
            "database": {"path": self.path, "bytes": self.bytes, "schema": self.schema},
            "sources": [source.as_json() for source in self.sources],
            "scopes": list(self.scopes),
            "scope_names": dict(self.scope_names),
            "passages": self.passages,
            "kept_texts": self.kept_texts,
            "facts": self.facts,
            "hidden": self.hidden,
            "proposals": self.proposals,
            "extractor": self.extractor,
            "unasked": self.unasked,
            "calls": None if self.calls is None else {"today": self.calls[0], "most": self.calls[1]},
            "embedder": self.embedder,
            "space": None if self.space is None else self.space.as_json(),
            "filling": None if self.filling is None else self.filling.as_json(),
            "vectors": self.vectors,
            "pending": dict(self.pending),
            "given_up": self.given_up,
            "failed": [text.as_json() for text in self.failed],
            "recall": self.recall,
            "disabled": self.disabled,
            "problems": list(self.problems),
        }
