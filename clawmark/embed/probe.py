"""The probe: one fixed text by whose vector a model is recognised, whatever name it goes by.

A server can have another model behind the same name and dimension. So the probe is embedded in the same breath as the
texts, and what came with another probe vector than a space has is never stored in it nor compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clawmark.embed import Embedder, Failure, Kind
from clawmark.errors import EmbedderDown

if TYPE_CHECKING:
    from clawmark.model import Vector

PROBE = "The quick brown fox jumps over the lazy dog."

SAME = 0.99
"""Least cosine of two probe vectors of one model. Batches, threads and processors move a vector by less than 1e-3;
other weights under the same name by far more."""


@dataclass(frozen=True, slots=True)
class Probed:
    """`results` as `Embedder.embed` gives them, and what the same model answers to PROBE, asked in the same way.

    probe None = it was not asked, since the model cannot change behind its name
    """

    results: list[Vector | Failure]
    probe: Vector | None


class Prober:
    """Embeds texts together with the probe; without it where the model cannot change behind its name."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def probe(self, kind: Kind) -> Vector:
        """Raises what `Embedder.embed` raises, and EmbedderDown when the probe is not embedded."""
        probed = self._together([], kind)
        assert probed.probe is not None
        return probed.probe

    def embed(self, texts: Sequence[str], kind: Kind) -> Probed:
        """Raises as `probe` does."""
        if self.embedder.fixed:
            return Probed(self.embedder.embed(texts, kind), None)
        return self._together(texts, kind)

    def _together(self, texts: Sequence[str], kind: Kind) -> Probed:
        """An embedder that makes several requests of one call puts the probe into each; to others it is one more text."""
        probed: Callable[[Sequence[str], Kind], Probed] | None = getattr(self.embedder, "probed", None)
        return _in_the_middle(self.embedder, texts, kind) if probed is None else probed(texts, kind)


def _in_the_middle(embedder: Embedder, texts: Sequence[str], kind: Kind) -> Probed:
    # In the middle, since what a broken server spoils or leaves out is most often the first or the last.
    middle = (len(texts) + 1) // 2
    spare = (
        [PROBE] if len(texts) < 2 and not (texts and kind == "query") else []
    )  # a prompt asks for no more than it must
    results = embedder.embed([*texts[:middle], PROBE, *texts[middle:], *spare], kind)
    rest = [*results[:middle], *results[middle + 1 : len(texts) + 1]]
    for answer in (results[middle], *results[len(texts) + 1 :]):
        if not isinstance(answer, Failure):
            return Probed(rest, answer)
    raise EmbedderDown(f"{embedder.name} did not embed the probe text, so nothing tells which model answers.")


def same(a: Vector | bytes, b: Vector | bytes) -> bool:
    """Whether two probe vectors come from one model: each of length 1, as an array or as the store keeps it."""
    import numpy as np

    one, other = (np.frombuffer(v, dtype="<f4") if isinstance(v, bytes) else v for v in (a, b))
    return one.shape == other.shape and float(one @ other) > SAME
