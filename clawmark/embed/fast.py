"""The fastembed embedder: ONNX models in this process, of the optional package `fastembed`.

For those who want another model in process than the one that `local` brings. The library fetches the model once, at the
first text of background work, into a folder beside the database; a prompt never begins a download.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clawmark.embed import Failure, Kind, checked
from clawmark.embed.models import prefixes
from clawmark.errors import EmbedderDown, EmbedderError
from clawmark.model import Space

if TYPE_CHECKING:
    from clawmark.model import Vector

DEFAULT_MODEL: Final = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""The smallest model for many languages that fastembed lists (about 50 languages, 384 dimensions, 220 MB)."""

BATCH = 8
"""Texts per call: a larger one only delays the answer to an interrupt, and is padded to its longest text."""

_SPACE_BEGINS = "fastembed-"


def available() -> bool:
    """Whether the `fastembed` extra is installed. Loads nothing."""
    return find_spec("fastembed") is not None


def model_of(space: Space) -> str | None:
    """The model of a space that this embedder made, None for any other's."""
    library, _, model = space.model.partition("/")
    return model if library.startswith(_SPACE_BEGINS) and model else None


class FastEmbedder:
    """One model of fastembed's list. Library and model are loaded when first needed.

    threads    1 in the background, where more would take the machine from others
    cache      the folder of model files; None = the library's own
    download   False: only a model that is there already is loaded
    """

    fixed: bool = True
    endpoint: str = ""
    batch_limit: int | None = None

    def __init__(self, model: str, threads: int, *, cache: Path | None = None, download: bool = True) -> None:
        self.name = f"fastembed ({model})"
        self._model_name = model
        self._threads = threads
        self._cache = cache
        self._download = download
        self._model: Any = None
        self._dimension: int | None = None
        # fastembed 0.9 hands the text of most models through as it is: the prefix is left to its caller.
        self._query_prefix, self._document_prefix = prefixes(model) or ("", "")
        try:
            self._version = version("fastembed")
        except PackageNotFoundError:
            self._version = "unknown"

    @property
    def space(self) -> Space:
        """Known without a download. Raises EmbedderError for a model that fastembed does not list."""
        if self._dimension is None:
            self._dimension = self._listed()
        model = f"{_SPACE_BEGINS}{self._version}/{self._model_name}"
        return Space(model, self._dimension, self._document_prefix, self._query_prefix)

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[Vector | Failure]:
        if not texts:
            return []
        dimension = self.space.dimension
        model = self._loaded()
        encode, prefix = (
            (model.query_embed, self._query_prefix) if kind == "query" else (model.passage_embed, self._document_prefix)
        )
        try:
            vectors = list(encode([prefix + text for text in texts], batch_size=BATCH))
        except Exception as error:  # the runtime's errors share no base below it
            raise self._down("failed", error) from error
        if len(vectors) != len(texts):
            raise EmbedderDown(f"{self.name} gave {len(vectors)} vectors for {len(texts)} texts; recall runs on words.")
        return [checked(vector, dimension) for vector in vectors]

    def _listed(self) -> int:
        listed = self._library().list_supported_models()
        found = next((m["dim"] for m in listed if m["model"].lower() == self._model_name.lower()), None)
        if found is None:
            raise EmbedderError(
                f"fastembed has no model {self._model_name!r}; set CLAWMARK_EMBEDDING_MODEL to one of its list, "
                f"or to nothing for {DEFAULT_MODEL}."
            )
        return int(found)

    def _loaded(self) -> Any:
        if self._model is None:
            try:
                self._model = self._library()(
                    model_name=self._model_name,
                    threads=self._threads,
                    cache_dir=None if self._cache is None else str(self._cache),
                    local_files_only=not self._download,
                )
            except EmbedderDown:
                raise
            except Exception as error:  # a failed download raises whatever its HTTP library raises
                raise self._down("cannot be loaded", error) from error
        return self._model

    def _library(self) -> Any:
        try:
            from fastembed import TextEmbedding
        except (ImportError, OSError, RuntimeError) as error:
            raise self._down("cannot be imported", error) from error
        return TextEmbedding

    def _down(self, what: str, error: Exception) -> EmbedderDown:
        said = " ".join(str(error).split())[:200]
        return EmbedderDown(f"{self.name} {what} ({type(error).__name__}: {said}); recall runs on words.")
