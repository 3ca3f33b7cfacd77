"""The probe: one fixed text by whose vector a model is recognised, whatever name it goes by.

A server can have another model behind the same name and dimension. So the probe is embedded in the same breath as the
texts, and what came with another probe vector than a space has is never stored in it nor compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """`results` as `Embedder.embed` gives them, and what the same model answers to PROBE, asked in the same way."""

    results: list[Vector | Failure]
    probe: Vector


class Prober:
    """Embeds texts together with the probe; alone where the model cannot change, once its probe is known."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._known: dict[Kind, Vector] = {}

    def embed(self, texts: Sequence[str], kind: Kind) -> Probed:
        """Raises what `Embedder.embed` raises, and EmbedderDown when the probe is not embedded."""
        if kind in self._known:
            return Probed(self.embedder.embed(texts, kind) if texts else [], self._known[kind])
        probed = _together(self.embedder, texts, kind)
        if self.embedder.fixed:
            self._known[kind] = probed.probe
        return probed


def _together(embedder: Embedder, texts: Sequence[str], kind: Kind) -> Probed:
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


def same(a: Vector, b: Vector) -> bool:
    """Whether two probe vectors, both of length 1, come from one model."""
    return a.shape == b.shape and float(a @ b) > SAME
