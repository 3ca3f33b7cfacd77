"""Who extracts facts, and the one chat call: a prompt in, the words of the model's answer out, whoever runs the model.

Three outcomes and no other: an answer to read; ReplyUnusable, when the server is well and this request got nothing to
read; EndpointDown or EndpointError, when nobody could have got anything. So a request that is refused is told from a
server that refuses everything by asking for one short thing, and what was said is never given up over a wrong setting.

Servers differ in the fields they know. A refused one is left out, and what was learned is kept for the next call.
No message, prompt, answer or key ever stands in an error.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, Protocol

from clawmark import net
from clawmark.errors import ClawmarkError, ConsentMissing, EndpointDown, EndpointError, ReplyUnusable
from clawmark.settings import Settings

EXTRACT: Final = "CLAWMARK_EXTRACT"
"""What the variables of the endpoint begin with."""

MOST_BYTES = 8 * 1024 * 1024
"""Longest answer that is read, reasoning included: some hundred times what a model may write."""

SMALL: Final = "Answer with the JSON object {} and nothing else."
"""What no server can refuse for its length or its words."""
SMALL_TOKENS = 16
SPARED_SECONDS = 10.0
"""Of a call's time, for the short request."""

_ABOUT_THE_REQUEST = frozenset({400, 413, 422, 500})
_ABOUT_A_FIELD = frozenset({400, 422})
_WRONG_SETTING = {401: "API_KEY", 402: "API_KEY", 403: "API_KEY", 404: "URL", 405: "URL"}


class Completer(Protocol):
    """Who completes a prompt.

    name      for people
    endpoint  the URL of the server, without credentials; "" for what is no server of the settings
    learned   what was learned of that server, as a short text to be kept and set again; "" = nothing
    """

    name: str
    endpoint: str
    learned: str

    def complete(self, system: str, user: str, schema: Mapping[str, Any], *, most_tokens: int, seconds: float) -> str:
        """What the model answers, as it stands. `schema` is a wish: not every server keeps to it.

        Raises EndpointDown (try later), EndpointError (set up wrongly; ConsentMissing: not allowed, nothing was sent)
        or ReplyUnusable (this request has no answer to read).
        """
        ...


# --- who is asked -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Extractor:
    """Who extracts facts. name: for people."""

    kind: Literal["off", "markers", "host", "endpoint"]
    name: str

    @property
    def is_model(self) -> bool:
        return self.kind in ("host", "endpoint")


OFF: Final = Extractor("off", "off")
MARKERS: Final = Extractor("markers", "embedded markers")
HOST: Final = Extractor("host", "host")
"""The host's own model. It has the same name in CLAWMARK_EXTRACT_URL and in CLAWMARK_ALLOW_REMOTE."""


def named(settings: Settings) -> Extractor:
    """Whom CLAWMARK_EXTRACT_URL names. Nobody is asked, and nothing looked up."""
    url = settings.extract_url
    if url is None:
        return MARKERS
    if url == OFF.name:
        return OFF
    if url == HOST.name:
        return HOST
    return Extractor("endpoint", f"endpoint ({net.host_of(url)})")


def refusal(settings: Settings) -> ClawmarkError | None:
    """Why who is named may not be asked. May look up the name of an endpoint's host, and asks nobody."""
    who, url = named(settings), settings.extract_url
    if url is None or not who.is_model or (who.kind == "host" and HOST.name in settings.allow_remote):
        return None
    if who.kind == "host":
        return ConsentMissing(
            f"{EXTRACT}_URL is host, whose model may run anywhere, and CLAWMARK_ALLOW_REMOTE does not name `host`;"
            " nothing was sent. Name it there to allow it, or use an endpoint."
        )
    try:
        net.require_consent(url, settings.allow_remote, EXTRACT)
    except (EndpointDown, EndpointError) as refused:
        return refused
    return None


def choose(settings: Settings, host: Completer | None) -> Completer | None:
    """Whom the settings name; None where nobody is to be asked. `host` asks the model of the gateway that is connected.

    Raises ConsentMissing, EndpointDown or EndpointError for one that is named and cannot be asked. An endpoint is
    refused when it is asked: by the address that is connected to then.
    """
    who, url = named(settings), settings.extract_url
    if url is None or not who.is_model:
        return None
    if who.kind == "endpoint":
        key = settings.extract_api_key
        return HttpCompleter(
            url,
            settings.extract_model,
            key=key.get_secret_value() if key else None,
            allowed=settings.allow_remote,
        )
    refused = refusal(settings)
    if refused is not None:
        raise refused
    if host is None:
        raise EndpointDown("the gateway is not connected; its model is asked once it is.")
    return host


# --- what a request looks like ----------------------------------------------------------------------------------------

Format = Literal["json_schema", "plain_schema", "json_object", ""]
"""What of the schema is sent: all of it, its types alone, the wish for JSON, nothing."""
Limit = Literal["max_tokens", "max_completion_tokens", ""]

_NEXT_FORMAT: Final[Mapping[Format, Format]] = {
    "json_schema": "plain_schema",
    "plain_schema": "json_object",
    "json_object": "",
}
_NEXT_LIMIT: Final[Mapping[Limit, Limit]] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": ""}

_TOO_LONG = re.compile(r"context|too (?:long|large|many tokens)|maximum.{0,20}length")
_NO_SYSTEM = re.compile(r"system.{0,20}(?:role|message|prompt)|role.{0,20}system|roles must alternate")
_BOUNDS = frozenset({"minItems", "maxItems", "minimum", "maximum", "pattern"})
"""What not every server knows of JSON Schema."""
_FORMAT_NAMES = ("response_format", "json_schema", "json_object", "schema", "grammar")


@dataclass(frozen=True, slots=True)
class Shape:
    """Which fields a request has beside the model and its messages.

    thinking     whether the server is told that no reasoning is wanted
    apart        whether the rules stand in a system message, not at the head of the user's
    """

    format: Format = "json_schema"
    limit: Limit = "max_tokens"
    temperature: bool = True
    thinking: bool = True
    apart: bool = True

    def payload(
        self, model: str, system: str, user: str, schema: Mapping[str, Any], most_tokens: int
    ) -> dict[str, Any]:
        """The request. A model that is not named is the server's own choice."""
        made: dict[str, Any] = {"model": model} if model else {}
        made["messages"] = (
            [{"role": "system", "content": system}, {"role": "user", "content": user}]
            if self.apart
            else [{"role": "user", "content": f"{system}\n\n{user}"}]
        )
        if self.temperature:
            made["temperature"] = 0
        if self.limit:
            made[self.limit] = most_tokens
        if self.thinking:
            made["chat_template_kwargs"] = {"enable_thinking": False}
        if self.format in ("json_schema", "plain_schema"):
            sent = dict(schema) if self.format == "json_schema" else _without_bounds(schema)
            wish = {"name": "facts", "strict": True, "schema": sent}
            made["response_format"] = {"type": "json_schema", "json_schema": wish}
        elif self.format == "json_object":
            made["response_format"] = {"type": "json_object"}
        return made

    def without_refused(self, said: str) -> Shape:
        """This shape without the fields that an error names; the same one where it names none."""
        shape = self
        if self.thinking and ("chat_template_kwargs" in said or "enable_thinking" in said):
            shape = replace(shape, thinking=False)
        if self.format and any(name in said for name in _FORMAT_NAMES):
            shape = replace(shape, format=_NEXT_FORMAT[self.format])
        if self.limit and self.limit in said:
            shape = replace(shape, limit=_NEXT_LIMIT[self.limit])
        if self.temperature and "temperature" in said:
            shape = replace(shape, temperature=False)
        if self.apart and _NO_SYSTEM.search(said):
            shape = replace(shape, apart=False)
        return shape

    def plainer(self) -> Shape | None:
        """What to ask when an error names no field: without the field that fewest servers know, then bare; at last None."""
        bare = Shape("", "", temperature=False, thinking=False)
        if self.thinking:
            return replace(self, thinking=False)
        if replace(self, apart=True) != bare:
            return replace(bare, apart=self.apart)
        return replace(self, apart=False) if self.apart else None


USUAL: Final = Shape()


def _without_bounds(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {name: _without_bounds(member) for name, member in schema.items() if name not in _BOUNDS}
    return schema


def _shape_of(learned: str, model: str) -> Shape:
    """What `HttpCompleter.learned` says; the usual shape where it says nothing that can be read, or of another model."""
    try:
        said = json.loads(learned)
    except (ValueError, RecursionError):
        return USUAL
    if not isinstance(said, dict) or said.pop("model", None) != model:
        return USUAL
    sound = (
        said.keys() <= asdict(USUAL).keys()
        and said.get("format", "") in (*_NEXT_FORMAT, "")
        and said.get("limit", "") in (*_NEXT_LIMIT, "")
        and all(isinstance(said.get(name, True), bool) for name in ("temperature", "thinking", "apart"))
    )
    return Shape(**said) if sound else USUAL


# --- an endpoint ------------------------------------------------------------------------------------------------------


class HttpCompleter:
    """One OpenAI-compatible chat endpoint and one model. After a failure it is left alone for a while: see `net`."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        allowed: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            address = net.endpoint(url, "chat/completions")
            self._endpoint = net.Endpoint(address, key=key, allowed=allowed, variable=EXTRACT, clock=clock)
            self.endpoint = net.without_credentials(url)
        except EndpointError:
            raise EndpointError(f"{EXTRACT}_URL is no URL; nothing is sent.") from None
        self.name = f"endpoint ({self._endpoint.host})"
        self._model = model
        self._shape = USUAL
        self._status = 0

    @property
    def learned(self) -> str:
        usual = asdict(USUAL)
        changed = {name: value for name, value in asdict(self._shape).items() if value != usual[name]}
        return json.dumps({"model": self._model, **changed}) if changed else ""

    @learned.setter
    def learned(self, said: str) -> None:
        self._shape = _shape_of(said, self._model)

    def complete(self, system: str, user: str, schema: Mapping[str, Any], *, most_tokens: int, seconds: float) -> str:
        """As `Completer.complete`; all requests it takes count towards `seconds`.

        A server that fails at this request and takes a short one is up, and set up rightly: what it was asked is to blame.
        """
        if self._endpoint.is_resting:
            return self._completed(system, user, schema, most_tokens, seconds)  # which says so
        self._status = 0
        try:
            return self._completed(system, user, schema, most_tokens, seconds - self._spared(seconds))
        except ConsentMissing:
            raise
        except (EndpointDown, EndpointError) as failed:
            if not self._takes_others(self._spared(seconds)):
                raise
            what = f"answered {self._status}" if self._status else "gave no answer"
            raise ReplyUnusable(f"{self.name} {what} to this request, and takes others.") from failed

    def _spared(self, seconds: float) -> float:
        """What of the time is kept for the short request."""
        return min(SPARED_SECONDS, seconds / 4)

    def _takes_others(self, seconds: float) -> bool:
        small = replace(self._shape, format="").payload(self._model, SMALL, SMALL, {}, SMALL_TOKENS)
        try:
            answer = self._endpoint.post(small, seconds, patient=True, most_bytes=MOST_BYTES)
        except (EndpointDown, EndpointError):
            return False
        choices = answer.body.get("choices") if isinstance(answer.body, dict) else None
        takes = 200 <= answer.status < 300 and isinstance(choices, list)
        if not takes and (200 <= answer.status < 300 or answer.status in _ABOUT_THE_REQUEST):
            self._endpoint.failed()  # who asks takes such answers for a server that is well
        return takes

    def _completed(self, system: str, user: str, schema: Mapping[str, Any], most_tokens: int, seconds: float) -> str:
        until = time.monotonic() + seconds
        shape: Shape | None = self._shape
        status = 0
        while shape is not None:
            answer = self._post(shape.payload(self._model, system, user, schema, most_tokens), seconds, until)
            if 200 <= answer.status < 300:
                choices = self._choices(answer.body)
                self._shape = shape
                return self._text(choices)
            status = answer.status
            shape = _next_shape(shape, answer)
        raise self._refusal(status)

    def _post(self, payload: Mapping[str, Any], seconds: float, until: float) -> net.Answer:
        """An answer that is one, or that says something of this request. Raises EndpointDown or EndpointError for others."""
        left = until - time.monotonic()
        if left <= 0:
            raise EndpointDown(f"{self._endpoint.host} did not answer within {seconds:g} s.")
        answer = self._endpoint.post(payload, left, most_bytes=MOST_BYTES)
        self._status = answer.status
        if 200 <= answer.status < 300 or answer.status in _ABOUT_THE_REQUEST:
            return answer
        variable = _WRONG_SETTING.get(answer.status)
        if variable == "URL" and "model" in _said(answer.body):
            variable = "MODEL"
        if variable:
            raise EndpointError(f"{self.name} answered {answer.status}; check {EXTRACT}_{variable}.")
        raise EndpointDown(f"{self.name} answered {answer.status}.")

    def _refusal(self, status: int) -> Exception:
        """What a refused request means where the server takes no other either."""
        if status == 500:
            return EndpointDown(f"{self.name} answers 500 even to one short request.")
        return EndpointError(
            f"{self.name} answers {status} even to one short request; check {EXTRACT}_MODEL and {EXTRACT}_URL."
        )

    # --- one answer --------------------------------------------------------------------------------------------------

    def _choices(self, body: Any) -> list[Any]:
        """Raises EndpointDown for an answer that is no completion at all: a login page is no word of a model."""
        choices = body.get("choices") if isinstance(body, dict) else None
        if isinstance(choices, list):
            return choices
        self._endpoint.failed()
        what = "answered with an error" if _said(body) else "sent an answer that is no chat completion"
        raise EndpointDown(f"{self.name} {what}; if that goes on, check {EXTRACT}_URL.")

    def _text(self, choices: list[Any]) -> str:
        """The words of the first choice, without its reasoning. Raises ReplyUnusable where there are none."""
        choice = choices[0] if choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        text = _joined(message.get("content"))
        if text.strip():
            return text
        if message.get("refusal"):
            raise ReplyUnusable(f"the model of {self.name} refused to answer.")
        if choice.get("finish_reason") == "length":
            raise ReplyUnusable(f"the model of {self.name} came to no answer within its tokens.")
        raise ReplyUnusable(f"the model of {self.name} gave an empty answer.")


def _joined(content: Any) -> str:
    """A message's content: a text, or a list of parts of which those of text count."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [
        part.get("text") if isinstance(part, dict) and part.get("type", "text") in ("text", "output_text") else part
        for part in parts
    ]
    return "".join(text for text in texts if isinstance(text, str))


def _next_shape(shape: Shape, answer: net.Answer) -> Shape | None:
    """What to ask instead; None when the fields are not to blame."""
    said = _said(answer.body)
    if answer.status == 413 or _TOO_LONG.search(said):
        return None
    named = shape.without_refused(said)
    if named != shape:
        return named
    return shape.plainer() if answer.status in _ABOUT_A_FIELD else None


_TELLING = frozenset({"error", "message", "msg", "detail", "code", "type", "param", "loc"})


def _said(body: Any) -> str:
    """What an error in the answer says, in lower case, to be looked at and never shown; "" without one.

    Under the names that tell, no others: some servers send the whole request back.
    """
    return " ".join(_telling(body, 0)).lower()[:4000] if isinstance(body, dict) else ""


def _telling(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth < 6:
        for item in value[:50]:
            yield from _telling(item, depth + 1)
    elif isinstance(value, dict) and depth < 6:
        for name, item in value.items():
            if name in _TELLING:
                yield from _telling(item, depth + 1)
