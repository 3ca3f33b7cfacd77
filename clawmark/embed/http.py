"""Any OpenAI-compatible embeddings endpoint.

Results are placed by `index`; one bad item leaves that text pending, an answer that cannot be placed at all refuses the
whole batch.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from clawmark import net
from clawmark.embed import Failure, Kind, checked
from clawmark.errors import EmbedderDown, EmbedderError
from clawmark.model import Space

if TYPE_CHECKING:
    from clawmark.model import Vector

QUERY_SECONDS, DOCUMENT_SECONDS = 1.0, 60.0
"""A prompt waits for its own vector only; background work may take its time."""

REST_SECONDS = 30.0
"""After a failure prompts do not ask again for so long: a server that hangs costs one of them its wait, not each."""


class HttpEmbedder:
    """One endpoint and one model. Its dimension is what it answers first, unless a setting fixed it."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        dimension: int | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
        allowed: Collection[str] = (),
    ) -> None:
        self._url = net.endpoint(url, "embeddings")
        self._model = model
        self._key = key
        self._dimension = dimension
        self._prefixes = {"query": query_prefix, "document": document_prefix}
        self._allowed = allowed
        self._send_type = True
        self._down_until = 0.0
        self.name = f"endpoint ({net.host_of(self._url)})"

    @property
    def space(self) -> Space:
        """Raises EmbedderDown while the dimension is not known yet."""
        if self._dimension is None:
            raise EmbedderDown(f"{self.name} has not answered yet.")
        return Space(self._model, self._dimension, self._prefixes["document"], self._prefixes["query"])

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[Vector | Failure]:
        if kind == "query" and time.monotonic() < self._down_until:
            raise EmbedderDown(f"{self.name} did not answer just now; recall runs on words.")
        return self._embedded([self._prefixes[kind] + text for text in texts], kind)

    def _embedded(self, texts: Sequence[str], kind: Kind) -> list[Vector | Failure]:
        """A batch that is refused is halved down to the text, or the number of texts, that is to blame."""
        answer = self._ask(texts, kind)
        if answer is not None:
            return self._placed(answer, len(texts))
        if len(texts) == 1:
            return [Failure("refused")]
        middle = len(texts) // 2
        return [*self._embedded(texts[:middle], kind), *self._embedded(texts[middle:], kind)]

    def _ask(self, texts: Sequence[str], kind: Kind) -> Any:
        """The decoded answer; None where the server refuses these texts: too many, too long, or one that breaks it."""
        payload: dict[str, Any] = {"model": self._model, "input": list(texts)}
        # Servers that choose the prefix themselves need it; those that refuse unknown fields are asked without it.
        typed = payload | {"input_type": "query" if kind == "query" else "passage"}
        answer = self._post(typed if self._send_type else payload, kind)
        if answer.status in (400, 422) and self._send_type:
            answer = self._post(payload, kind)
            self._send_type = answer.status != 200
        if answer.status in (400, 413, 422, 500):
            return None
        if answer.status in (401, 403, 404) or 300 <= answer.status < 400:
            variable = "CLAWMARK_EMBEDDING_API_KEY" if answer.status in (401, 403) else "CLAWMARK_EMBEDDING_URL"
            raise EmbedderError(f"{self.name} answered {answer.status}; check {variable}.")
        if answer.status != 200 or answer.body is None:
            raise EmbedderDown(f"{self.name} answered {answer.status}; recall runs on words.")
        return answer.body

    def _post(self, payload: dict[str, Any], kind: Kind) -> net.Answer:
        seconds = QUERY_SECONDS if kind == "query" else DOCUMENT_SECONDS
        try:
            return net.post_json(self._url, payload, key=self._key, seconds=seconds, allowed=self._allowed)
        except EmbedderDown:
            self._down_until = time.monotonic() + REST_SECONDS
            raise

    def _placed(self, body: Any, count: int) -> list[Vector | Failure]:
        items = body.get("data") if isinstance(body, dict) else None
        if not isinstance(items, list):
            raise EmbedderDown(f"{self.name} sent an answer that is no list of embeddings.")
        results: list[Vector | Failure] = [Failure("missing")] * count
        placed: set[int] = set()
        for position, item in enumerate(items):
            index = item.get("index", position) if isinstance(item, dict) else position
            if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < count or index in placed:
                raise EmbedderDown(f"{self.name} sent an embedding with a wrong index; the batch was refused.")
            placed.add(index)
            results[index] = self._vector(item.get("embedding") if isinstance(item, dict) else None)
        return results

    def _vector(self, raw: Any) -> Vector | Failure:
        if not isinstance(raw, list) or not raw or not all(type(x) in (int, float) for x in raw):
            return Failure("not_a_vector")
        if self._dimension is None:
            self._dimension = len(raw)
        if len(raw) != self._dimension:
            raise EmbedderError(
                f"{self.name} sent vectors of {len(raw)} numbers where {self._dimension} were expected; "
                "the batch was refused. Check CLAWMARK_EMBEDDING_MODEL and CLAWMARK_EMBEDDING_DIM."
            )
        import numpy as np

        try:
            with np.errstate(over="ignore"):
                return checked(np.array(raw, dtype=np.float64).astype(np.float32), self._dimension)
        except OverflowError:  # an integer beyond all floats
            return Failure("not_finite")
