"""Embedders: what turns text into vectors, and which one is used.

One method, so that a new embedder is one small class. Whatever it answers is checked here, in one place: a vector that
is not finite, has another length than its space says or has no direction never reaches the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from clawmark.errors import EmbedderDown, EmbedderError, EndpointError
from clawmark.model import Space
from clawmark.settings import Settings

if TYPE_CHECKING:
    from clawmark.model import Vector

Kind = Literal["document", "query"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one text has no vector. `reason` is a short stable word; it never holds the text."""

    reason: str


class Embedder(Protocol):
    """space is known after `embed` answered once at the latest.

    name         for people
    fixed        the same space always means the same weights; False where a server may change what stands behind a name
    endpoint     the URL of the server that embeds, without credentials; "" for what runs in this process
    batch_limit  most texts it takes at once where that is known; may be set to what was learned before
    """

    name: str
    fixed: bool
    endpoint: str
    batch_limit: int | None

    @property
    def space(self) -> Space: ...

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[Vector | Failure]:
        """One entry per text, in order: an L2-normalised float32 vector of shape (space.dimension,), or a Failure.

        Raises EmbedderDown when nothing can be embedded now, EmbedderError when it is set up wrongly.
        """
        ...


def checked(vector: Vector, dimension: int) -> Vector | Failure:
    """`vector` as a contiguous L2-normalised float32 array of shape (dimension,), or why it cannot be one."""
    import numpy as np

    array = np.ascontiguousarray(vector, dtype=np.float32)
    if array.shape != (dimension,):
        return Failure("dimension")
    if not np.isfinite(array).all():
        return Failure("not_finite")
    norm = float(np.linalg.norm(array.astype(np.float64)))
    if norm < 1e-9 or not np.isfinite(norm):
        return Failure("zero")
    return (array / norm).astype(np.float32)


def choose(settings: Settings, *, background: bool) -> Embedder | None:
    """The embedder that the settings name; `auto` takes the endpoint, else what is installed, else None (words alone).

    Raises EmbedderError for one that was asked for by name and cannot be.
    """
    from clawmark.embed import fast, local

    wanted = settings.embedder
    if wanted == "none":
        return None
    if wanted == "endpoint" and not settings.embedding_url:
        raise EmbedderError("CLAWMARK_EMBEDDER is endpoint and no endpoint is set; set CLAWMARK_EMBEDDING_URL.")
    if settings.embedding_url and wanted in ("auto", "endpoint"):
        from clawmark.embed.http import HttpEmbedder

        return HttpEmbedder(
            settings.embedding_url,
            settings.embedding_model,
            key=_key(settings),
            dimension=settings.embedding_dim,
            query_prefix=settings.embedding_query_prefix,
            document_prefix=settings.embedding_document_prefix,
            allowed=settings.allow_remote,
            patient=background,
        )
    threads = 1 if background else 2
    if wanted in ("auto", "local") and local.available():
        return local.LocalEmbedder(threads)
    if wanted in ("auto", "fastembed") and fast.available():
        model = settings.embedding_model if wanted == "fastembed" else ""
        return fast.FastEmbedder(model or fast.DEFAULT_MODEL, threads, cache=_models(settings), download=background)
    if wanted != "auto":
        raise EmbedderError(
            f"CLAWMARK_EMBEDDER is {wanted}, which is not installed or cannot run on this processor; "
            f"install clawmark[{wanted}], or set CLAWMARK_EMBEDDER to another one."
        )
    return None


def of_space(settings: Settings, space: Space, endpoint: str, *, batch_limit: int | None = None) -> Embedder | None:
    """The embedder that made a stored space, for queries; None where it is not there or may not be asked any more.

    endpoint: what its `endpoint` was. A server that the settings do not name any more is asked only on this machine,
    and the key goes nowhere but to the server that the settings name.
    """
    if settings.embedder == "none":
        return None
    if not endpoint:
        return _in_process(settings, space)
    from clawmark import net
    from clawmark.embed.http import HttpEmbedder

    # A person who chose a model of this process sends nothing to the server any more, whatever URL still stands there.
    configured = settings.embedding_url or "" if settings.embedder in ("auto", "endpoint") else ""
    try:
        ours = bool(configured) and net.origin(endpoint) == net.origin(configured)
        if not ours and not net.is_loopback(endpoint):
            return None
        # What is stored has no credentials; those of the settings belong to the very same URL.
        url = configured if ours and net.without_credentials(configured) == endpoint else endpoint
    except EndpointError:
        return None
    return HttpEmbedder(
        url,
        space.model,
        key=_key(settings) if ours else None,
        dimension=space.dimension,
        query_prefix=space.query_prefix,
        document_prefix=space.document_prefix,
        allowed=settings.allow_remote,
        batch_limit=batch_limit,
    )


def _in_process(settings: Settings, space: Space) -> Embedder | None:
    from clawmark.embed import fast, local

    candidates: list[Embedder] = []
    if local.available():
        candidates.append(local.LocalEmbedder(threads=2))
    model = fast.model_of(space)
    if model and fast.available():
        candidates.append(fast.FastEmbedder(model, threads=2, cache=_models(settings), download=False))
    try:
        return next((found for found in candidates if found.space == replace(space, probe="")), None)
    except (EmbedderDown, EmbedderError):
        return None


def _key(settings: Settings) -> str | None:
    key = settings.embedding_api_key
    return key.get_secret_value() if key else None


def _models(settings: Settings) -> Path:
    """Beside the database: kept over a restart, and no other user's to write to."""
    return settings.db_path.parent / "models"
