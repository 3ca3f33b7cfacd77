"""What there is and what is wrong, as far as the file, the settings and the log tell. No text is sent anywhere.

`health.doctor` looks deeper: it reads every page, asks the endpoint and reads the host's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from clawmark import net
from clawmark.embed import Embedder, choose
from clawmark.errors import (
    DatabaseUnwritable,
    EmbedderError,
    EndpointDown,
    EndpointError,
    SourceError,
    UsageError,
)
from clawmark.jobs import embedder as policy
from clawmark.model import FailedText, SourceStatus, SpaceStatus, Status
from clawmark.settings import Settings, unknown_variables
from clawmark.source import MessageSource, first_present
from clawmark.store import events, facts, files, keyfile, migrations, passages, spaces, vectors
from clawmark.store.spaces import Stored

MOST_FAILED = 20
WORDS_ALONE = "none (words alone)"
NO_EMBEDDER = "none; recall runs on words alone. Install clawmark[local] or set CLAWMARK_EMBEDDING_URL."


def gather(
    connection: apsw.Connection,
    path: Path,
    settings: Settings,
    *,
    sources: Callable[[], Sequence[MessageSource]],
    embedder: tuple[Embedder | None, list[str]],
) -> Status:
    """embedder: what `embedder_of` gives. sources raises what is wrong with them."""
    problems = _switched_off(settings)
    source = _source(connection, sources, problems)
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
    if source is not None and not count and not settings.disabled:
        problems.append("recall: nothing is indexed yet; run `clawmark sync`.")
    if used and chosen is not None and name != WORDS_ALONE and chosen.endpoint != used[-1].endpoint:
        problems.append(f"vectors: they were made by another embedder than {name}; run `clawmark sync`.")
    given_up = vectors.count_given_up(connection)
    unembedded = vectors.failed(connection, MOST_FAILED)
    problems += _without_vector(unembedded, vectors.count_failed(connection), given_up)
    return Status(
        path=str(path),
        bytes=sum(p.stat().st_size for p in _files(path)),
        schema=migrations.LATEST,
        source=source,
        scopes=passages.scopes(connection),
        passages=count,
        facts=len(facts.live(connection)),
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


def _source(
    connection: apsw.Connection, sources: Callable[[], Sequence[MessageSource]], problems: list[str]
) -> SourceStatus | None:
    try:
        source = first_present(sources())
    except (SourceError, UsageError) as failed:
        problems.append(f"source: {failed}")
        return None
    return SourceStatus(source.name, source.describe(), len(passages.known_streams(connection, source.name)))


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
