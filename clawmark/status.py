"""What there is and what is wrong, as far as the file, the settings and the log tell. No text is sent anywhere.

`health.doctor` looks deeper: it reads every page, asks the endpoint and reads the host's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from clawmark import clean, llm, net
from clawmark.embed import Embedder, choose
from clawmark.errors import (
    ClawmarkError,
    DatabaseUnwritable,
    EmbedderError,
    EndpointDown,
    EndpointError,
    SourceAbsent,
    SourceEmpty,
    SourceError,
    UsageError,
)
from clawmark.jobs import asking, extract
from clawmark.jobs import embedder as policy
from clawmark.jobs.index import rules_now
from clawmark.jobs.plan import plan
from clawmark.model import Event, FailedText, SourceState, SourceStatus, SpaceStatus, Status
from clawmark.settings import Settings, unknown_variables
from clawmark.source import Alternatives, Chosen, MessageSource
from clawmark.store import (
    cursors,
    events,
    facts,
    files,
    kept,
    keyfile,
    migrations,
    passages,
    proposals,
    spaces,
    streams,
    vectors,
)
from clawmark.store.spaces import Stored

MOST_FAILED = 20
STOPPED = timedelta(days=1)
"""How far a log may lie behind another one of its host: a quiet night is no fault."""
LATELY = timedelta(days=1)
MOST_EVENTS = 1_000
OF_A_BATCH = {("propose", origin) for origin in ("owner", "participant", "assistant")}
"""Events of what an extractor claims, whose source is who said it."""
MOST_PROPOSALS = 100_000
WORDS_ALONE = "none (words alone)"
NO_EMBEDDER = "none; recall runs on words alone. Install clawmark[local] or set CLAWMARK_EMBEDDING_URL."


def gather(
    connection: apsw.Connection,
    path: Path,
    settings: Settings,
    *,
    groups: Callable[[], Sequence[Alternatives]],
    embedder: tuple[Embedder | None, list[str]],
    now: datetime | None = None,
) -> Status:
    """embedder: what `embedder_of` gives. groups raises what is wrong with the setting that names them. now: None = the
    clock."""
    now = now or datetime.now(UTC)
    problems = _switched_off(settings)
    sources = _sources(connection, groups, clean.Rules(settings.never_index_paths), problems)
    try:
        keyfile.known(keyfile.key_path(path))
    except DatabaseUnwritable as failed:
        problems.append(f"key: {failed}")
    problems += [f"{name} is no setting; see docs/settings.md." for name in unknown_variables()]
    chosen, wrong = embedder
    name = WORDS_ALONE if chosen is None else chosen.name
    if chosen is not None and settings.embedder == "auto" and policy.is_anothers(connection, chosen):
        name, wrong = WORDS_ALONE, [f"embedder: {policy.OF_AN_ENDPOINT}"]
    problems += wrong
    pending = vectors.pending_by_reason(connection)
    problems += _unavailable(connection, name)
    used = spaces.in_use(connection)
    active = next((space for space in used if space.is_active), None)
    target = next((space for space in used if space.is_target), None)
    count = passages.count(connection)
    is_behind = any(source.state == "read" and source.behind for source in sources)
    if is_behind and not count and not settings.disabled:  # what was forgotten, or holds no message, stays unindexed
        problems.append("recall: nothing is indexed yet; run `clawmark sync`.")
    if used and chosen is not None and name != WORDS_ALONE and chosen.endpoint != used[-1].endpoint:
        problems.append(f"vectors: they were made by another embedder than {name}; run `clawmark sync`.")
    given_up = vectors.count_given_up(connection)
    unembedded = vectors.failed(connection, MOST_FAILED)
    problems += _without_vector(unembedded, vectors.count_failed(connection), given_up)
    problems += _extraction(connection, settings, now)
    who = llm.named(settings)
    return Status(
        path=str(path),
        bytes=sum(p.stat().st_size for p in _files(path)),
        schema=migrations.LATEST,
        sources=sources,
        scopes=streams.scopes(connection),
        scope_names=streams.scope_names(connection),
        passages=count,
        kept_texts=kept.count(connection),
        facts=len(facts.live(connection)),
        hidden=len(facts.live(connection, hidden=True)),
        proposals=proposals.count(connection, None, now, MOST_PROPOSALS),
        extractor=who.name,
        unasked=0 if who.kind == "off" else extract.waiting(connection, by_model=who.is_model),
        calls=(asking.calls_today(connection, now), settings.extract_daily_calls) if who.kind == "host" else None,
        embedder=name,
        space=_space(connection, active),
        filling=_space(connection, target),
        pending=pending,
        given_up=given_up,
        failed=unembedded,
        recall=settings.recall,
        disabled=settings.disabled,
        problems=problems,
    )


def _switched_off(settings: Settings) -> list[str]:
    if settings.disabled:
        return ["clawmark is switched off (CLAWMARK_DISABLED)."]
    if settings.recall == "off":
        return ["recall is switched off (CLAWMARK_RECALL)."]
    return []


def _sources(
    connection: apsw.Connection,
    groups: Callable[[], Sequence[Alternatives]],
    rules: clean.Rules,
    problems: list[str],
) -> list[SourceStatus]:
    try:
        named = groups()
    except (SourceError, UsageError) as failed:
        problems.append(f"source: {failed}")
        return []
    planned = plan(named)
    found: list[SourceStatus] = []
    for group, choice in zip(named, planned.choices, strict=True):
        problems += [f"source: {line}" for line in [*_not_read(choice), *_missing(connection, choice)]]
        of_group = [_source(connection, source, _state(source, choice), rules, problems) for source in group]
        of_host = [one for one, source in zip(of_group, group, strict=True) if _same_host(source, choice)]
        problems += [f"source: {line}" for line in _stopped(of_host)]
        found += of_group
    absences = [choice.failure for choice in planned.choices if isinstance(choice.failure, SourceAbsent)]
    if not planned.reading and len(absences) == len(planned.choices):
        problems.append(f"source: {planned.absence()}")
    return found


def _not_read(choice: Chosen) -> list[str]:
    """What is wrong with what a group prefers."""
    if choice.failure is not None:
        empty = isinstance(choice.failure, SourceEmpty) and choice.source is not None
        absent = isinstance(choice.failure, SourceAbsent)
        return [str(choice.failure)] if empty or not absent else []
    chosen = "" if choice.source is None else f" {choice.source.name} is read instead."
    return [f"{why}{chosen}" for _, why in choice.passed_over if not isinstance(why, SourceAbsent)]


def _missing(connection: apsw.Connection, choice: Chosen) -> list[str]:
    """Logs that were read before and are not there now, while another one is read."""
    return [
        f"{source.name} was read before and is not there now: {why}"
        for source, why in choice.passed_over
        if choice.source is not None and isinstance(why, SourceAbsent) and streams.known(connection, source.name)
    ]


def _state(source: MessageSource, choice: Chosen) -> SourceState:
    if source is choice.source:
        return "read"
    if any(source is other for other in choice.standing_by):
        return "standing by"
    absent = any(source is other and isinstance(why, SourceAbsent) for other, why in choice.passed_over)
    return "not there" if absent or (choice.source is not None and not _was_asked(source, choice)) else "not read"


def _same_host(source: MessageSource, choice: Chosen) -> bool:
    return choice.source is not None and source.host == choice.source.host


def _was_asked(source: MessageSource, choice: Chosen) -> bool:
    return any(source is other for other, _ in choice.passed_over) or source.name == choice.failing


def _source(
    connection: apsw.Connection, source: MessageSource, state: SourceState, rules: clean.Rules, problems: list[str]
) -> SourceStatus:
    known = streams.known(connection, source.name)
    counts = streams.counts(connection, source.name)
    kept_count = counts.pop(streams.KEPT, 0)
    newest = max((stream.newest for stream in known.values() if stream.newest is not None), default=None)
    behind, written = 0, None
    if state in ("read", "standing by"):
        try:
            listed = [stream for stream in source.streams() if stream.kind != "host"]
        except SourceError as failed:
            if not any(str(failed) in problem for problem in problems):  # one that is empty was said to be so
                problems.append(f"source: {failed}")
        else:
            read = {(stream.name, stream.mark) for stream in known.values()}
            anew = cursors.get(connection, f"recipe:{source.name}") != rules_now(rules)
            behind = sum(anew or (stream.name, stream.mark) not in read for stream in listed) if state == "read" else 0
            written = max((stream.touched for stream in listed if stream.touched is not None), default=None)
    return SourceStatus(
        source.name,
        source.describe(),
        state,
        len(known),
        behind,
        kept_count,
        counts,
        None if newest is None else passages.from_ms(newest),
        written,
    )


def _stopped(of_host: Sequence[SourceStatus]) -> list[str]:
    """A log that takes nothing in any more while another log of the same host goes on."""
    read = next((source for source in of_host if source.state == "read"), None)
    if read is None or read.written is None:
        return []
    return [
        f"{read.name} has taken in nothing since {read.written:%Y-%m-%d %H:%M} UTC, while {other.name} goes on until "
        f"{other.written:%Y-%m-%d %H:%M} UTC; restart the host, or set CLAWMARK_SOURCE={other.name} until it does."
        for other in of_host
        if other.state == "standing by" and other.written is not None and other.written - read.written > STOPPED
    ]


def embedder_of(settings: Settings, given: Embedder | None) -> tuple[Embedder | None, list[str]]:
    """The embedder that the settings name, and what is wrong with it. May look up the name of a host, and asks nothing.

    given: the one in use whatever the settings name, or None.
    """
    if given is not None:
        return given, []
    try:
        chosen = choose(settings, background=False)
    except EmbedderError as impossible:
        return None, [f"embedder: {impossible}"]
    if chosen is None:
        return None, [f"embedder: {NO_EMBEDDER}"] if settings.embedder == "auto" else []
    try:
        if chosen.endpoint:
            net.require_consent(chosen.endpoint, settings.allow_remote)
    except (EndpointDown, EndpointError) as refused:
        return chosen, [f"embedder: {refused}"]
    return chosen, []


def _extraction(connection: apsw.Connection, settings: Settings, now: datetime) -> list[str]:
    """What keeps facts from being extracted; what a model answered wrongly, where that was lately."""
    if settings.disabled or not llm.named(settings).is_model:
        return []
    refusal = llm.refusal(settings)
    if refusal is not None:
        return [" ".join(["extractor:", str(refusal), *filter(None, [refusal_advice(refusal)])])]
    return [f"extractor: {said}. {advice}" for said, advice in extractor_troubles(connection, now)]


def refusal_advice(refusal: ClawmarkError) -> str:
    """What to do about a host that cannot be looked up; every other refusal says it itself."""
    if not isinstance(refusal, EndpointDown):
        return ""
    return (
        f"Check the name in {llm.EXTRACT}_URL, and whether this machine is online; a host outside its network has to stand"
        " in CLAWMARK_ALLOW_REMOTE as well."
    )


def extractor_troubles(connection: apsw.Connection, now: datetime) -> list[tuple[str, str]]:
    """What went wrong with the extractor lately and is not over, and what becomes of it."""
    found = []
    last = asking.unavailable(connection)
    if last is not None:
        said = f"{asking.reason_of(last).rstrip('.')} (since {last.created_at:%Y-%m-%d %H:%M} UTC)"
        advice = "It is asked again then." if asking.is_spent(last) else "The next `clawmark sync` asks it again."
        found.append((said, advice))
    wrong = events.last_of(connection, "extract_error")
    lately = wrong is not None and asking.counts_unusable(wrong) and now - wrong.created_at < LATELY
    if wrong is not None and lately and not _was_answered_since(connection, wrong):
        said = f"what {wrong.source} answered could not be used ({wrong.created_at:%Y-%m-%d %H:%M} UTC)"
        left = "The messages it was asked about are asked about again on other days, five times at most"
        found.append((said, f"{left}; a larger model may do better ({llm.EXTRACT}_MODEL)."))
    return found


def _was_answered_since(connection: apsw.Connection, wrong: Event) -> bool:
    """Whether something came of a later batch: a fact, a proposal, or a refusal."""
    return any(
        event.id > wrong.id and (event.source == "extracted" or (event.event_type, event.source) in OF_A_BATCH)
        for event in events.latest(connection, MOST_EVENTS)
    )


def _unavailable(connection: apsw.Connection, name: str) -> list[str]:
    last = events.last_of(connection, "embedder_unavailable", "embedder_available")
    if last is None or (last.event_type, last.source) != ("embedder_unavailable", name):
        return []
    return [f"embedder: {last.detail} (since {last.created_at:%Y-%m-%d %H:%M} UTC)"]


def _space(connection: apsw.Connection, stored: Stored | None) -> SpaceStatus | None:
    if stored is None:
        return None
    made = vectors.count(connection, stored.id)
    return SpaceStatus(stored.space.model, stored.space.dimension, made, stored.endpoint, stored.batch_limit)


def _without_vector(failed: Sequence[FailedText], count: int, given_up: int) -> list[str]:
    if not failed:
        return []
    first = failed[0]
    when = "given up" if first.next_try is None else f"next try {first.next_try:%Y-%m-%d %H:%M} UTC"
    more = f", and {count - 1:,} more" if count > 1 else ""
    again = "; `clawmark reembed` tries again" if given_up else ""
    return [
        f"vectors: {first.source} {first.ref} has none ({first.reason}, {when}){more}; found by its words alone{again}."
    ]


def _files(path: Path) -> list[Path]:
    beside = (path.with_name(path.name + suffix) for suffix in files.COMPANIONS)
    return [p for p in (path, *beside) if p.exists()]
