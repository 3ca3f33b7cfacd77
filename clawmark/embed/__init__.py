"""Embedders: what turns text into vectors, and which one is used.

One method, so that a new embedder is one small class. Whatever it answers is checked here, in one place: a vector that
is not finite, has another length than its space says or has no direction never reaches the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

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
    """space is known after `embed` answered once at the latest; `name` is for people."""

    name: str

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
    """The embedder that the settings name: endpoint, else the local model where it is installed, else None (words alone)."""
    if settings.embedder == "none":
        return None
    if settings.embedding_url:
        from clawmark.embed.http import HttpEmbedder

        key = settings.embedding_api_key
        return HttpEmbedder(
            settings.embedding_url,
            settings.embedding_model,
            key=key.get_secret_value() if key else None,
            dimension=settings.embedding_dim,
            query_prefix=settings.embedding_query_prefix,
            document_prefix=settings.embedding_document_prefix,
            allowed=settings.allow_remote,
        )
    from clawmark.embed.local import LocalEmbedder, available

    return LocalEmbedder(threads=1 if background else 2) if available() else None
