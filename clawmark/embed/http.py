"""Any OpenAI-compatible embeddings endpoint.

Results are placed by `index`; a bad item spoils its own text alone, an answer that cannot be placed at all refuses the
whole batch. What a server refuses is split down to what is to blame: one text, or the number of texts. One text never
costs the others their vectors, and a server that refuses everything is told from one with many guilty texts.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from clawmark import net
from clawmark.embed import Failure, Kind, checked
from clawmark.embed.models import prefixes
from clawmark.embed.probe import PROBE, Probed, same
from clawmark.errors import (
    ConsentMissing,
    EmbedderDown,
    EmbedderError,
    EmbedderRefused,
    EndpointDown,
    EndpointError,
    ModelChanged,
)
from clawmark.model import Space
from clawmark.text import cut, without_surrogates

if TYPE_CHECKING:
    from clawmark.model import Vector

QUERY_SECONDS, DOCUMENT_SECONDS = 1.0, 60.0
"""A prompt waits so long for its own vector, all requests together; each request of background work may take longer."""

LONGEST_WAIT_SECONDS, MOST_WAITS = 30.0, 3
"""How long background work waits within a call for a server that asks for patience, and how often."""

LONG_BYTES, MOST_CUTS = 600, 3
"""A refused text is halved while it is longer. So few bytes are hardly more than the 512 tokens that most models read."""

FEW = 4
"""So many texts refused one by one, without one success, are no coincidence."""

FRAME_BYTES, VECTOR_BYTES = 65_536, 16_384 * 26
"""The most that a sound answer has around its vectors, and for each of them: what is longer is not read."""

SAME_COSINE = 0.9999
SMALL_TEXT: Final = "The weather is fine today."
"""What nobody can refuse: tells a broken server from guilty texts, and whether it puts prefixes in front itself."""

_OF_THE_BATCH = frozenset({400, 413, 422})
_REFUSALS = _OF_THE_BATCH | {500}
_TYPES = {"query": "query", "document": "passage"}


@dataclass(slots=True)
class _Call:
    """What one call knows of itself.

    until     when its time is over; None = each request has its own
    probing   whether the probe goes along with each request; `probe` is what it was answered, in all of them
    """

    kind: Kind
    until: float | None
    probing: bool = False
    probe: Vector | None = None
    many: bool = False
    answered: bool = False
    status: int = 0
    waits: int = 0
    asked_untyped: bool = False
    refused: set[str] = field(default_factory=set)


class HttpEmbedder:
    """One endpoint and one model.

    dimension      what the model answers first, unless given
    prefixes       as given; None = the known model's, unless the server turns out to put them in front itself
    batch_limit    most texts per request; learned where the server has a limit, and never exceeded from then on
    patient        background work: waits where the server asks for it; `sleep` does the waiting
    """

    fixed: bool = False

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        dimension: int | None = None,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        allowed: Collection[str] = (),
        batch_limit: int | None = None,
        patient: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            self._endpoint = net.Endpoint(net.endpoint(url, "embeddings"), key=key, allowed=allowed, clock=clock)
            self.endpoint = net.without_credentials(url)
        except EndpointError as wrong:
            raise EmbedderError(str(wrong)) from None
        self.name = f"endpoint ({self._endpoint.host})"
        self.batch_limit = batch_limit
        self._model = model
        self._dimension = dimension
        known = prefixes(model) or ("", "")
        self._given = {"query": query_prefix, "document": document_prefix}
        self._prefixes = {
            kind: known[n] if given is None else given for n, (kind, given) in enumerate(self._given.items())
        }
        self._unsure = any(given is None and self._prefixes[kind] for kind, given in self._given.items())
        self._send_type, self._type_accepted = True, False
        self._patient = patient
        self._sleep = sleep
        self._clock = clock

    @property
    def space(self) -> Space:
        """Raises EmbedderDown while dimension or prefixes are not known yet."""
        if self._dimension is None or self._unsure:
            raise EmbedderDown(f"{self.name} has not answered yet.")
        return Space(self._model, self._dimension, self._prefixes["document"], self._prefixes["query"])

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[Vector | Failure]:
        return self._called(texts, kind, probing=False).results if texts else []

    def probed(self, texts: Sequence[str], kind: Kind = "document") -> Probed:
        """As `embed`, with the probe in every request: all results are of the model that answered it.

        Raises ModelChanged when two requests of the call were answered by two models.
        """
        return self._called(texts, kind, probing=True)

    def _called(self, texts: Sequence[str], kind: Kind, *, probing: bool) -> Probed:
        call = _Call(kind, None if self._patient or kind == "document" else self._clock() + QUERY_SECONDS, probing)
        if self._unsure:
            self._settle_prefixes(call.until)
        whole = [self._prefixes[kind] + without_surrogates(text) for text in texts]
        call.many = len(set(whole)) > FEW
        results = self._embedded(whole, call)
        if probing and call.probe is None:
            self._probe(call)
        if kind == "query" and any(isinstance(result, Failure) for result in results):
            self._endpoint.failed()  # a server that cannot embed a question is left alone as one that does not answer
        return Probed(results, call.probe)

    def _settle_prefixes(self, until: float | None) -> None:
        """One text as a query and as a passage: where the vectors differ, the server puts a prefix in front itself."""
        import numpy as np

        vectors: list[Vector] = []
        order: tuple[Kind, ...] = ("query", "document", "document", "query")
        for kind in order:
            answer = self._ask([SMALL_TEXT], call := _Call(kind, until))
            if answer is None or isinstance(answer[0], Failure):
                raise self._refuses_everything(call)
            vectors.append(answer[0])
        query, document, document_again, query_again = vectors
        if min(np.dot(query, query_again), np.dot(document, document_again)) < SAME_COSINE:
            raise ModelChanged(f"{self.name} answers the same text in two ways; its vectors cannot be compared.")
        if float(np.dot(query, document)) < SAME_COSINE:
            self._prefixes = {kind: given or "" for kind, given in self._given.items()}
        self._unsure = False

    # --- the probe ---------------------------------------------------------------------------------------------------

    @property
    def _probe_text(self) -> str:
        """As a query whatever goes along, so that passages and queries of one model show one probe."""
        return self._prefixes["query"] + PROBE

    def _probe(self, call: _Call) -> None:
        """Ask for the probe alone, once more where there is room: a broken server may spoil its first answer."""
        texts = [self._probe_text] * (1 if self.batch_limit == 1 else 2)
        answer = self._request(texts, call)
        if answer is None and len(texts) > 1:
            answer = self._request(texts[:1], call)
        if answer is None:
            raise self._refuses_everything(call)
        self._note_probe(answer, call)

    def _note_probe(self, answers: Sequence[Vector | Failure], call: _Call) -> None:
        probe = next((answer for answer in answers if not isinstance(answer, Failure)), None)
        if probe is None:
            raise self._unusable("did not embed the probe text, so nothing tells which model answers.")
        if call.probe is not None and not same(call.probe, probe):
            raise ModelChanged(f"{self.name} changed its model; what it answered is not used.")
        call.probe = probe

    def _refuses_everything(self, call: _Call) -> EmbedderDown:
        return self._unusable(
            f"answers {call.status} even to one short sentence; check {net.EMBEDDING}_MODEL and {net.EMBEDDING}_API_KEY."
            if call.status
            else "cannot embed one short sentence; recall runs on words."
        )

    # --- what a server refuses ---------------------------------------------------------------------------------------

    def _embedded(self, texts: Sequence[str], call: _Call) -> list[Vector | Failure]:
        results: list[Vector | Failure] = []
        while len(results) < len(texts):
            start = len(results)
            room = len(texts) if self.batch_limit is None else max(1, self.batch_limit - call.probing)
            results += self._batch(texts[start : start + room], call)[0]
        return results

    def _batch(self, texts: Sequence[str], call: _Call) -> tuple[list[Vector | Failure], bool]:
        """The results, and whether the server took all these texts at once.

        A batch that is refused twice although both its parts pass was too large. Parts are such that a request holds a
        power of two, as limits mostly are.
        """
        typed = self._send_type
        answer = self._ask(texts, call)
        if answer is not None:
            return answer, True
        if len(texts) == 1:
            return [self._alone(texts[0], call)], False
        about_the_batch = call.status in _OF_THE_BATCH
        middle = max(1, (1 << ((len(texts) + call.probing - 1).bit_length() - 1)) - call.probing)
        first, first_passed = self._batch(texts[:middle], call)
        # With one guilty part nothing is learned; nor where the field `input_type` was to blame and is left out now.
        if not first_passed or typed != self._send_type:
            return [*first, *self._embedded(texts[middle:], call)], False
        second, second_passed = self._batch(texts[middle:], call)
        if second_passed and about_the_batch and self.batch_limit is None:
            again = self._ask(texts, call)  # a server that was busy for a moment has no limit
            if again is not None:
                return again, True
            self.batch_limit = middle + call.probing
        return [*first, *second], False

    def _alone(self, text: str, call: _Call) -> Vector | Failure:
        """A text that was refused together with the probe: by a moment's slip, for itself, or since two are too many."""
        if not call.probing or self.batch_limit == 1:
            return self._shortened(text, call)
        again = self._ask([text], call)
        if again is not None:
            return again[0]
        if self._request([text], call) is None:
            return self._shortened(text, call)
        self._learn_few(call)
        answer = self._between_probes([text], call)
        return Failure("refused") if answer is None else answer[0]

    def _learn_few(self, call: _Call) -> None:
        """Find out whether the server takes fewer than three texts, with texts that none refuses, each number twice."""
        for count in (3, 2):
            small = [self._probe_text] * count
            if self._request(small, call) is not None or self._request(small, call) is not None:
                return
            self.batch_limit = count - 1

    def _shortened(self, text: str, call: _Call) -> Vector | Failure:
        """The vector of the longest head that is not refused. Raises EmbedderDown where the texts are not to blame."""
        head = text
        for _ in range(MOST_CUTS):
            if len(head.encode()) <= LONG_BYTES:
                break
            head = cut(head, len(head) // 2) or head[: len(head) // 2]
            answer = self._ask([head], call)
            if answer is not None:
                return answer[0]
        call.refused.add(text)
        if call.many and not call.answered and len(call.refused) >= FEW:
            status = call.status
            if self._request([self._prefixes[call.kind] + SMALL_TEXT], call) is None:
                raise self._unusable(f"answers {status} to every text; recall runs on words.")
        return Failure("refused")

    # --- one request -------------------------------------------------------------------------------------------------

    def _ask(self, texts: Sequence[str], call: _Call) -> list[Vector | Failure] | None:
        """The results, each of the model that answered the probe; None where the server refuses these texts."""
        if not call.probing:
            return self._request(texts, call)
        if self.batch_limit == 1:
            return self._between_probes(texts, call)
        # In the middle, since what a broken server spoils or leaves out is most often the first or the last.
        middle = (len(texts) + 1) // 2
        has_room = len(texts) == 1 and call.kind == "document" and (self.batch_limit or 3) > 2
        spare = [self._probe_text] if has_room else []
        answers = self._request([*texts[:middle], self._probe_text, *texts[middle:], *spare], call)
        if answers is None:
            return None
        if len(texts) > 1 and _is_cut_short(answers):
            call.status = 413  # a server that answers the first texts alone says in its own way that there are too many
            return None
        probes = [answers[middle], *answers[len(texts) + 1 :]]
        if all(isinstance(probe, Failure) for probe in probes):
            return self._between_probes(texts, call)
        self._note_probe(probes, call)
        return [*answers[:middle], *answers[middle + 1 : len(texts) + 1]]

    def _between_probes(self, texts: Sequence[str], call: _Call) -> list[Vector | Failure] | None:
        """The probe before and behind: for where it cannot go along."""
        self._probe(call)
        answer = self._request(texts, call)
        self._probe(call)
        return answer

    def _request(self, texts: Sequence[str], call: _Call) -> list[Vector | Failure] | None:
        """One request's results; None where the server refuses it: too many, too long, or a text that breaks it."""
        plain: dict[str, Any] = {"model": self._model, "input": list(texts)}
        # Servers that choose the prefix themselves need the type; those that refuse unknown fields are asked without it.
        typed = plain | {"input_type": _TYPES[call.kind]}
        answer = self._post(typed if self._send_type else plain, call)
        unsure = self._send_type and not self._type_accepted and (len(texts) == 1 or not call.asked_untyped)
        if answer.status in (400, 422) and unsure:
            call.asked_untyped = True
            untyped = self._post(plain, call)
            if untyped.status == 200:
                answer = self._post(typed, call)  # once more: a server that was busy for a moment knows the field
                self._send_type = answer.status == 200
                answer = answer if self._send_type else untyped
        if answer.status in _REFUSALS:
            call.status = answer.status
            return None
        self._require_success(answer)
        self._type_accepted = self._type_accepted or self._send_type
        results = self._placed(answer.body, len(texts))
        call.answered = True
        return results

    def _post(self, payload: dict[str, Any], call: _Call) -> net.Answer:
        """Raises EmbedderDown, EmbedderError or EmbedderRefused; waits where background work is asked to."""
        while True:
            seconds = DOCUMENT_SECONDS if call.until is None else call.until - self._clock()
            if seconds <= 0:
                raise EmbedderDown(f"{self.name} did not answer within {QUERY_SECONDS:g} s; recall runs on words.")
            try:
                answer = self._endpoint.post(
                    payload,
                    seconds,
                    patient=self._patient or call.kind == "document",
                    most_bytes=FRAME_BYTES + len(payload["input"]) * VECTOR_BYTES,
                )
            except ConsentMissing as missing:
                raise EmbedderRefused(str(missing)) from None
            except EndpointError as wrong:
                raise EmbedderError(str(wrong)) from None
            except EndpointDown as down:
                raise EmbedderDown(f"{str(down).removesuffix('.')}; recall runs on words.") from None
            if answer.status != 429 and not (answer.status == 503 and answer.retry_after is not None):
                return answer
            self._wait(answer, call)

    def _wait(self, answer: net.Answer, call: _Call) -> None:
        """Raises EmbedderDown where nobody can wait, or not so long."""
        pause = 2.0**call.waits if answer.retry_after is None else answer.retry_after
        if not self._patient or call.waits >= MOST_WAITS:
            raise EmbedderDown(f"{self.name} answered {answer.status}; recall runs on words.")
        if pause > LONGEST_WAIT_SECONDS:
            raise EmbedderDown(
                f"{self.name} answered {answer.status} and asks to be left alone for {pause:.0f} s; "
                "recall runs on words."
            )
        call.waits += 1
        self._sleep(pause)
        self._endpoint.waited()

    def _require_success(self, answer: net.Answer) -> None:
        variable = {401: "API_KEY", 403: "API_KEY", 404: "URL", 405: "URL"}.get(answer.status)
        if answer.status == 404 and "model" in _said(answer.body):
            variable = "MODEL"
        if variable:
            raise EmbedderError(f"{self.name} answered {answer.status}; check {net.EMBEDDING}_{variable}.")
        if answer.status != 200:
            raise EmbedderDown(f"{self.name} answered {answer.status}; recall runs on words.")

    def _unusable(self, what: str) -> EmbedderDown:
        """An answer that is worth none: prompts leave the server alone for a while, as after no answer."""
        self._endpoint.failed()
        return EmbedderDown(f"{self.name} {what}")

    # --- one answer --------------------------------------------------------------------------------------------------

    def _placed(self, body: Any, count: int) -> list[Vector | Failure]:
        items = body.get("data") if isinstance(body, dict) else None
        if not isinstance(items, list):
            what = "answered with an error" if _said(body) else "sent an answer that is no list of embeddings"
            raise self._unusable(f"{what}; recall runs on words.")
        results: list[Vector | Failure] = [Failure("missing")] * count
        arrays: dict[int, Vector] = {}
        for place, item in self._places(items, count):
            array = _array(item.get("embedding") if isinstance(item, dict) else None)
            if array is None:
                results[place] = Failure("not_a_vector")
            else:
                arrays[place] = array
        dimension = self._dimension_of(list(arrays.values()))
        for place, array in arrays.items():
            results[place] = checked(array, dimension)
        if any(not isinstance(result, Failure) for result in results):
            self._dimension = dimension
        return results

    def _places(self, items: list[Any], count: int) -> list[tuple[int, Any]]:
        """Each item with the place of its text. Without any index the order counts, if nothing is missing."""
        indexes: list[Any] = [item.get("index") if isinstance(item, dict) else None for item in items]
        if items and all(index is None for index in indexes):
            indexes = list(range(len(items))) if len(items) == count else [-1]
        placed: dict[int, Any] = {}
        for index, item in zip(indexes, items, strict=False):
            if not isinstance(item, dict) and index is None:
                continue  # a null among items that name their places: its own place stays empty
            number = isinstance(index, int | float) and not isinstance(index, bool)  # some send 3.0 for 3
            if not number or index % 1 or not 0 <= index < count or index in placed:
                raise self._unusable("sent an embedding with a wrong index; the batch was refused.")
            placed[int(index)] = item
        return list(placed.items())

    def _dimension_of(self, arrays: list[Vector]) -> int:
        """The one length of all vectors. Raises EmbedderError for another one than expected."""
        expected = self._dimension or (len(arrays[0]) if arrays else 0)
        wrong = next((len(array) for array in arrays if len(array) != expected), None)
        if wrong is not None:
            self._endpoint.failed()
            raise EmbedderError(
                f"{self.name} sent vectors of {wrong} numbers where {expected} were expected; "
                f"the batch was refused. Check {net.EMBEDDING}_MODEL and {net.EMBEDDING}_DIM."
            )
        return expected


def _is_cut_short(answers: Sequence[Vector | Failure]) -> bool:
    """Whether the last answers are missing: one can be a slip, two are none."""
    return all(isinstance(answer, Failure) and answer.reason == "missing" for answer in answers[-2:])


def _array(raw: Any) -> Vector | None:
    """Numbers as they are, or as the base64 of little-endian float32 that some servers always send."""
    import numpy as np

    if isinstance(raw, str):
        try:
            packed = base64.b64decode(raw, validate=True)
        except (binascii.Error, ValueError):
            return None
        return np.frombuffer(packed, dtype="<f4").astype(np.float32) if packed and len(packed) % 4 == 0 else None
    if not isinstance(raw, list) or not raw or not all(type(number) in (int, float) for number in raw):
        return None
    with np.errstate(over="ignore"):
        return np.array(raw, dtype=np.float64).astype(np.float32)


def _said(body: Any) -> str:
    """What an error in the answer says, in lower case, to be looked at and never shown; "" without one."""
    if not isinstance(body, dict):
        return ""
    error = next((body[name] for name in ("error", "detail", "message") if body.get(name)), "")
    words = [error.get(name) for name in ("message", "code", "type")] if isinstance(error, dict) else [error]
    return " ".join(word for word in words if isinstance(word, str)).lower() or ("error" if error else "")
