"""What there is and what is wrong, as far as the file, the settings and the log tell. Nothing is sent anywhere.

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
from clawmark.model import FailedText, SourceStatus, SpaceStatus, Status
from clawmark.settings import Settings, unknown_variables
from clawmark.source import MessageSource, first_present
from clawmark.store import events, facts, keyfile, migrations, passages, spaces, vectors
from clawmark.store.spaces import Stored

MOST_FAILED = 20
WORDS_ALONE = "none (words alone)"


def gather(
    connection: apsw.Connection,
    path: Path,
    settings: Settings,
    *,
    sources: Callable[[], Sequence[MessageSource]],
    embedder: Embedder | None,
) -> Status:
    """embedder: the one in use whatever the settings name, or None. sources raises what is wrong with them."""
    problems = _switched_off(settings)
    source = _source(connection, sources, problems)
    try:
        keyfile.known(keyfile.key_path(path))
    except DatabaseUnwritable as failed:
        problems.append(f"key: {failed}")
    problems += [f"{name} is no setting; see docs/settings.md." for name in unknown_variables()]
    name = _embedder(settings, embedder, problems)
    pending = vectors.pending_by_reason(connection)
    problems += _unavailable(connection, name, pending)
    used = spaces.in_use(connection)
    active = next((space for space in used if space.is_active), None)
    target = next((space for space in used if space.is_target), None)
    given_up = vectors.count_given_up(connection)
    failed_texts = [_failed(text) for text in vectors.failed(connection, MOST_FAILED)]
    problems += _without_vector(failed_texts, given_up)
    return Status(
        path=str(path),
        bytes=sum(p.stat().st_size for p in _files(path)),
        schema=migrations.LATEST,
        source=source,
        scopes=passages.scopes(connection),
        passages=passages.count(connection),
        facts=len(facts.live(connection)),
        embedder=name,
        space=_space(connection, active),
        filling=_space(connection, target),
        pending=pending,
        given_up=given_up,
        failed=failed_texts,
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


def _embedder(settings: Settings, given: Embedder | None, problems: list[str]) -> str:
    if given is not None:
        return given.name
    try:
        chosen = choose(settings, background=False)
    except EmbedderError as impossible:
        problems.append(f"embedder: {impossible}")
        return WORDS_ALONE
    if chosen is None:
        if settings.embedder == "auto":
            problems.append(
                "embedder: none; recall runs on words alone. Install clawmark[local] or set CLAWMARK_EMBEDDING_URL."
            )
        return WORDS_ALONE
    if chosen.endpoint:
        try:
            net.require_consent(chosen.endpoint, settings.allow_remote)
        except (EndpointDown, EndpointError) as refused:
            problems.append(f"embedder: {refused}")
    return chosen.name


def _unavailable(connection: apsw.Connection, name: str, pending: object) -> list[str]:
    last = events.last_of(connection, "embedder_unavailable", "embedder_available")
    if last is None or not pending or (last.event_type, last.source) != ("embedder_unavailable", name):
        return []
    return [f"embedder: {last.detail} (since {last.created_at:%Y-%m-%d %H:%M} UTC)"]


def _space(connection: apsw.Connection, stored: Stored | None) -> SpaceStatus | None:
    if stored is None:
        return None
    made = vectors.count(connection, stored.id)
    return SpaceStatus(stored.space.model, stored.space.dimension, made, stored.endpoint, stored.batch_limit)


def _failed(text: vectors.Failed) -> FailedText:
    next_try = None if text.given_up else passages.from_ms(text.next_try)
    return FailedText(text.source, text.ref, text.reason, text.tries, next_try)


def _without_vector(failed: Sequence[FailedText], given_up: int) -> list[str]:
    """What was refused by the model is named; what waits for its text to be readable is no fault of anybody."""
    refused = [text for text in failed if text.reason != "text_gone"]
    if not refused:
        return []
    first = refused[0]
    when = "given up" if first.next_try is None else f"next try {first.next_try:%Y-%m-%d %H:%M} UTC"
    more = "" if len(refused) == 1 else f", and {'at least ' * (len(failed) == MOST_FAILED)}{len(refused) - 1} more"
    again = "; `clawmark reembed` tries again" if given_up else ""
    return [
        f"vectors: {first.source} {first.ref} has none ({first.reason}, {when}){more}; found by its words alone{again}."
    ]


def _files(path: Path) -> list[Path]:
    return [p for p in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")) if p.exists()]
