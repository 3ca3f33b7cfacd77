"""The chat call: every answer a server can give is words, a reply without any, or a server that is down or set up wrongly."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from chat_server import Script, chatting
from helpers import Seconds, shared
from hypothesis import given
from hypothesis import strategies as st
from server import Reply, Request, Server, serving

from clawmark import net
from clawmark.errors import ClawmarkError, ConsentMissing, EndpointDown, EndpointError, ReplyUnusable
from clawmark.facts.prompt import SCHEMA, built
from clawmark.facts.reply import read
from clawmark.llm import USUAL, Completer, HttpCompleter, Shape, choose, named, refusal
from clawmark.settings import Settings, load
from clawmark.testing import FakeCompleter

SYSTEM, USER = "You find facts. Answer in JSON.", "my lapisgecko is called Finn"
KEY = "s3" + "cr3t-k3y"
WORDS = '{"facts": []}'


def completed(completer: Completer, user: str = USER, seconds: float = 20.0) -> str:
    return completer.complete(SYSTEM, user, SCHEMA, most_tokens=500, seconds=seconds)


def content(text: Any, **choice: Any) -> Reply:
    return Reply(200, {"choices": [{"index": 0, "finish_reason": "stop", "message": {"content": text}, **choice}]})


def error(status: int, message: str, **more: Any) -> Reply:
    return Reply(status, {"error": {"message": message, **more}})


def sizes(server: Server) -> list[dict[str, Any]]:
    """What each request held beside model and messages."""
    return [{n: v for n, v in r.body.items() if n not in ("model", "messages")} for r in server.requests]


def shape_of(completer: HttpCompleter) -> dict[str, Any]:
    return dict(json.loads(completer.learned)) if completer.learned else {}


def check_says_nothing(said: str) -> None:
    for words in ("lapisgecko", "Finn", KEY, "You find facts", "my reply"):
        assert words not in said
    assert "\n" not in said


# --- a request and its answer -----------------------------------------------------------------------------------------


def test_a_request_is_one_of_the_usual_shape() -> None:
    with serving(lambda request: content(WORDS)) as server:
        completer = HttpCompleter(f"{server.url}/v1", "tiny", key=KEY)
        assert completed(completer) == WORDS
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "tiny",
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}],
        "temperature": 0,
        "max_tokens": 500,
        "chat_template_kwargs": {"enable_thinking": False},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "facts", "strict": True, "schema": json.loads(json.dumps(dict(SCHEMA)))},
        },
    }
    assert completer.learned == ""


def test_without_a_model_the_server_chooses() -> None:
    with serving(lambda request: content(WORDS)) as server:
        completed(HttpCompleter(server.url, ""))
    assert "model" not in server.requests[0].body


@pytest.mark.parametrize(
    ("given_content", "words"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": '{"facts":'}, {"type": "text", "text": "[]}"}], '{"facts":[]}'),  # C8
        ([{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": "plain"}], "plain"),
        ([{"text": "plain"}, None, 7], "plain"),
        (["pla", "in"], "plain"),
        ("<think>hm</think>plain", "<think>hm</think>plain"),  # the reader's business
    ],
)
def test_content_is_a_text_or_a_list_of_parts(given_content: Any, words: str) -> None:
    with serving(lambda request: content(given_content)) as server:
        assert completed(HttpCompleter(server.url, "m")) == words


def test_what_the_model_thought_is_no_answer() -> None:
    def answer(request: Request) -> Reply:
        return Reply(200, {"choices": [{"message": {"content": "plain", "reasoning_content": "my reply"}}]})

    with serving(answer) as server:
        assert completed(HttpCompleter(server.url, "m")) == "plain"


def test_an_answer_that_was_cut_off_is_given_as_it_stands() -> None:
    with serving(lambda request: content('{"facts": [', finish_reason="length")) as server:
        assert completed(HttpCompleter(server.url, "m")) == '{"facts": ['


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (content(""), "empty"),
        (content(" \n"), "empty"),
        (content(None), "empty"),
        (content([]), "empty"),
        (content(None, finish_reason="length"), "within its tokens"),
        (content(None, message={"content": None, "refusal": "my reply"}), "refused"),
        (content(None, message=None), "empty"),
        (Reply(200, {"choices": []}), "empty"),
        (Reply(200, {"choices": [None]}), "empty"),
    ],
)
def test_a_completion_without_words_is_unusable(reply: Reply, said: str) -> None:
    with serving(lambda request: reply) as server:
        completer = HttpCompleter(server.url, "m")
        for _ in range(2):  # the server is well, and asked again at once
            with pytest.raises(ReplyUnusable, match=said) as raised:
                completed(completer)
            check_says_nothing(str(raised.value))


# --- fields that a server does not know -------------------------------------------------------------------------------

FIELDS = ["chat_template_kwargs", "max_tokens", "temperature", "response_format"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_refused_field_is_left_out_and_that_is_remembered(field: str) -> None:
    """C10."""
    with chatting(Script(refuse=[field])) as server:
        completer = HttpCompleter(server.url, "m")
        assert completed(completer) == WORDS
        first = len(server.requests)
        assert first == (4 if field == "response_format" else 2)
        assert completed(completer) == WORDS
        assert len(server.requests) == first + 1 and field not in server.requests[-1]

        another = HttpCompleter(server.url, "m")
        another.learned = completer.learned
        assert completed(another) == WORDS
        assert len(server.requests) == first + 2
    kept = server.requests[-1]
    assert [name for name in FIELDS if name not in kept] == [field], "nothing else is given up"
    assert kept.get("max_completion_tokens") == (500 if field == "max_tokens" else None)


@pytest.mark.parametrize("fields", [FIELDS[:1], FIELDS[:2], FIELDS[1:], FIELDS, [*FIELDS, "max_completion_tokens"]])
@pytest.mark.parametrize("blunt", [False, True])
def test_whatever_fields_are_refused_an_answer_comes(fields: list[str], blunt: bool) -> None:
    """C10: also where the error names no field. A bare request is one that no server refuses."""
    with chatting(Script(refuse=fields, blunt=blunt)) as server:
        completer = HttpCompleter(server.url, "m")
        assert completed(completer) == WORDS
        assert len(server.requests) <= (3 if blunt else 8)
        before = len(server.requests)
        assert completed(completer) == WORDS
        assert len(server.requests) == before + 1


@pytest.mark.parametrize(
    ("status", "body", "changed"),
    [
        (
            400,
            {"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                       "'max_completion_tokens' instead.", "param": "max_tokens", "code": "unsupported_parameter"}},
            {"limit": "max_completion_tokens"},
        ),
        (
            400,
            {"error": {"message": "Unsupported value: 'temperature' does not support 0 with this model."}},
            {"temperature": False},
        ),
        (400, {"error": "'response_format.type' must be 'json_object' or 'text'"}, {"format": "plain_schema"}),
        (400, {"error": {"message": "Failed to parse grammar"}}, {"format": "plain_schema"}),
        (
            422,
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "chat_template_kwargs"],
                         "msg": "Extra inputs are not permitted", "input": {"temperature": 0, "max_tokens": 500}}]},
            {"thinking": False},
        ),
        (400, {"message": "Conversation roles must alternate user/assistant"}, {"apart": False}),
        (500, {"error": {"code": 500, "message": "Jinja Exception: System role not supported"}}, {"apart": False}),
    ],
)  # fmt: skip
def test_the_words_of_known_servers_are_understood(status: int, body: Any, changed: dict[str, Any]) -> None:
    def answer(request: Request) -> Reply:
        return content(WORDS) if len(server.requests) > 1 else Reply(status, body)

    with serving(answer) as server:
        completer = HttpCompleter(server.url, "m")
        assert completed(completer) == WORDS
    assert shape_of(completer) == {"model": "m", **changed}
    assert len(server.requests) == 2


def test_a_server_that_knows_no_bounds_still_gets_the_schema() -> None:
    refusal = error(400, "Invalid schema for response_format 'facts': 'maxItems' is not permitted.")
    answers = [refusal, content(WORDS)]
    with serving(lambda request: answers.pop(0)) as server:
        completed(HttpCompleter(server.url, "m"))
    first, second = (r.body["response_format"]["json_schema"]["schema"] for r in server.requests)
    assert first["properties"]["facts"]["maxItems"] and "maxItems" not in second["properties"]["facts"]
    items = second["properties"]["facts"]["items"]
    assert items["properties"]["key"] == {"type": "string"} and items["required"] == list(items["properties"])


def test_rules_without_a_system_message_stand_before_the_user_s() -> None:
    with serving(lambda request: content(WORDS)) as server:
        completer = HttpCompleter(server.url, "m")
        completer.learned = json.dumps({"model": "m", "apart": False})
        completed(completer)
    assert server.requests[0].body["messages"] == [{"role": "user", "content": f"{SYSTEM}\n\n{USER}"}]


def test_what_fails_is_not_remembered() -> None:
    with serving(lambda request: error(400, "unknown field `temperature`")) as server:
        completer = HttpCompleter(server.url, "m")
        with pytest.raises(EndpointError):
            completed(completer)
    assert completer.learned == ""


@given(st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["json_schema", "plain_schema", "json_object", ""]),
       st.sampled_from(["max_tokens", "max_completion_tokens", ""]))  # fmt: skip
def test_what_was_learned_is_what_is_remembered(
    temperature: bool, thinking: bool, apart: bool, answers: Any, limit: Any
) -> None:
    shape = Shape(answers, limit, temperature, thinking, apart)
    completer, another, third = (HttpCompleter("http://127.0.0.1:1", model) for model in ("m", "m", "other"))
    completer._shape = shape
    another.learned = third.learned = completer.learned
    assert another._shape == shape and len(completer.learned) < 200
    assert third._shape == USUAL, "another model is another server"


NAMES, MEMBERS = (
    st.sampled_from(["model", *asdict(USUAL), "x"]),
    st.sampled_from(["m", "", "max_tokens", 7, None, True, []]),
)


@given(st.text(max_size=30) | st.dictionaries(NAMES, MEMBERS).map(json.dumps))
def test_what_cannot_be_read_teaches_nothing(learned: str) -> None:
    completer = HttpCompleter("http://127.0.0.1:1", "m")
    completer.learned = learned
    shape = completer._shape
    assert isinstance(shape.format, str) and isinstance(shape.limit, str) and isinstance(shape.apart, bool)
    shape.payload("m", "s", "u", SCHEMA, 5)


@pytest.mark.parametrize(
    "learned", ["", "{", "[" * 100_000, "null", "7", '{"model": "m", "format": []}', '{"format": ""}']
)
def test_nonsense_learned_is_the_usual_shape(learned: str) -> None:
    completer = HttpCompleter("http://127.0.0.1:1", "m")
    completer.learned = learned
    assert completer.learned == ""


# --- what is refused, and by whom -------------------------------------------------------------------------------------

LONG = [
    error(400, "This model's maximum context length is 4096 tokens.", code="context_length_exceeded"),
    error(400, "the request exceeds the available context size, try increasing it", type="exceed_context_size_error"),
    error(400, "'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum context length is 512"),
    Reply(413, b"payload too large"),
    error(500, "internal"),
    error(422, "no"),
]


@pytest.mark.parametrize("refusal", LONG)
def test_a_request_that_is_refused_for_itself_is_unusable(refusal: Reply) -> None:
    """The server takes a short one: so nothing is wrong with it, and the batch can be made smaller."""

    def answer(request: Request) -> Reply:
        return refusal if "lapisgecko" in str(request.body) else content("{}")

    with serving(answer) as server:
        completer = HttpCompleter(server.url, "m")
        for _ in range(2):
            with pytest.raises(ReplyUnusable, match=f"answered {refusal.status} to this request") as raised:
                completed(completer)
            check_says_nothing(str(raised.value))
        assert completer.learned == ""
        assert completed(completer, "something else") == "{}"


def test_a_request_that_is_too_long_is_not_tried_in_every_shape() -> None:
    def answer(request: Request) -> Reply:
        return LONG[2] if "lapisgecko" in str(request.body) else content("{}")

    with serving(answer) as server, pytest.raises(ReplyUnusable):
        completed(HttpCompleter(server.url, "m"))
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (error(401, "bad key"), EndpointError, "401; check CLAWMARK_EXTRACT_API_KEY"),
        (error(402, "no credit"), EndpointError, "402; check CLAWMARK_EXTRACT_API_KEY"),
        (error(403, "no"), EndpointError, "403; check CLAWMARK_EXTRACT_API_KEY"),
        (error(404, "model `m` not found"), EndpointError, "404; check CLAWMARK_EXTRACT_MODEL"),
        (Reply(404, b"not found"), EndpointError, "404; check CLAWMARK_EXTRACT_URL"),
        (Reply(405, b""), EndpointError, "405; check CLAWMARK_EXTRACT_URL"),
        (
            error(400, "model m does not exist"),
            EndpointError,
            "400 even to one short request; check CLAWMARK_EXTRACT_MODEL",
        ),
        (Reply(307, b"", {"Location": "http://127.0.0.1:9/x"}), EndpointError, "redirects.*CLAWMARK_EXTRACT_URL"),
        (Reply(500, b"oops"), EndpointDown, "500 even to one short request"),
        (Reply(502, b"<html>"), EndpointDown, "502"),
        (Reply(503, b"loading model"), EndpointDown, "503"),
        (error(429, "rate"), EndpointDown, "429"),
        (Reply(418, b""), EndpointDown, "418"),
        (error(200, "my reply: overloaded"), EndpointDown, "answered with an error"),
        (Reply(200, b"<html>login</html>"), EndpointDown, "no chat completion"),
        (Reply(200, b""), EndpointDown, "no chat completion"),
        (Reply(200, {"choices": "none"}), EndpointDown, "no chat completion"),
    ],
)
def test_a_server_that_answers_nobody_is_down_or_set_up_wrongly(
    reply: Reply, kind: type[ClawmarkError], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(lambda request: reply) as server:
        completer = HttpCompleter(server.url, "m", key=KEY)
        with pytest.raises(kind, match=said) as raised:
            completed(completer)
        assert type(raised.value) is kind
        check_says_nothing(str(raised.value))
        check_says_nothing(caplog.text.replace("\n", " "))
        before = len(server.requests)
        with pytest.raises(EndpointDown, match="failed just now"):  # prompts and jobs leave it alone for a while
            completed(completer)
        assert len(server.requests) == before


def test_a_server_is_left_alone_as_long_as_it_asks() -> None:
    clock = Seconds()
    answers = [Reply(429, b"", {"Retry-After": "100"}), content(WORDS)]
    with serving(lambda request: answers.pop(0)) as server:
        completer = HttpCompleter(server.url, "m", clock=clock)
        for said in ("429", "left alone for another 100 s"):
            with pytest.raises(EndpointDown, match=said):
                completed(completer)
        clock.now += 101
        assert completed(completer) == WORDS


def test_a_server_that_recovers_is_asked_again() -> None:
    clock = Seconds()
    answers = [Reply(503, b""), Reply(503, b""), content(WORDS)]
    with serving(lambda request: answers.pop(0)) as server:
        completer = HttpCompleter(server.url, "m", clock=clock)
        with pytest.raises(EndpointDown):
            completed(completer)
        clock.now += 2 * net.FIRST_REST_SECONDS + 1
        assert completed(completer) == WORDS


@pytest.mark.parametrize("status", [403, 451, 502, 503, 504])
def test_a_server_that_fails_at_one_request_alone_is_up(status: int) -> None:
    """One message that a server chokes on must not look like a server that is down."""
    answers = [Reply(status, b""), content(WORDS), content(WORDS)]
    with serving(lambda request: answers.pop(0)) as server:
        completer = HttpCompleter(server.url, "m", clock=Seconds())
        with pytest.raises(ReplyUnusable, match=f"answered {status} to this request"):
            completed(completer)
        assert completed(completer) == WORDS


def test_nobody_listens() -> None:
    with pytest.raises(EndpointDown, match="cannot be reached") as raised:
        completed(HttpCompleter("http://127.0.0.1:1/v1", "m", key=KEY))
    check_says_nothing(str(raised.value))


def test_one_deadline_covers_all_requests() -> None:
    """Each refusal comes in time; together they do not."""

    def answer(request: Request) -> Reply:
        time.sleep(0.3)
        return error(400, "no")

    with serving(answer) as server:
        began = time.monotonic()
        with pytest.raises(EndpointDown, match=r"did not answer within 0\.\d+ s"):
            completed(HttpCompleter(server.url, "m"), seconds=0.7)
    assert time.monotonic() - began < 1.2
    assert len(server.requests) <= 3


def test_an_answer_of_any_length_is_not_read() -> None:
    def chunks() -> Iterator[bytes]:
        while True:
            yield b" " * 65536

    with serving(lambda request: Reply(200, chunks=chunks)) as server:
        completer = HttpCompleter(server.url, "m")
        with pytest.raises(EndpointDown, match="more than 8,388,608 bytes"):
            completed(completer)


# --- consent and choice -----------------------------------------------------------------------------------------------


def test_a_host_outside_is_refused_before_anything_is_sent() -> None:
    """H8. The address is one for documentation: a connection would be refused by the tests themselves."""
    completer = HttpCompleter("http://203.0.113.7/v1", "m", key=KEY)
    with pytest.raises(ConsentMissing, match="CLAWMARK_ALLOW_REMOTE") as raised:
        completed(completer)
    check_says_nothing(str(raised.value))


def test_a_url_that_is_none_names_its_setting() -> None:
    with pytest.raises(EndpointError, match="CLAWMARK_EXTRACT_URL is no URL"):
        HttpCompleter("http://[::1/v1", "m")


@pytest.mark.parametrize(
    ("url", "path"),
    [("", "/v1/chat/completions"), ("/v1/", "/v1/chat/completions"), ("/v1/chat/completions", "/v1/chat/completions"),
     ("/openai/v1", "/openai/v1/chat/completions")],
)  # fmt: skip
def test_a_base_in_any_spelling_leads_to_one_path(url: str, path: str) -> None:
    with serving(lambda request: content(WORDS)) as server:
        completed(HttpCompleter(server.url + url, "m"))
    assert server.requests[0].path == path


def test_neither_name_nor_endpoint_shows_a_password() -> None:
    completer = HttpCompleter(f"http://user:{KEY}@127.0.0.1:8091/v1?key={KEY}", "m")
    assert (completer.name, completer.endpoint) == ("endpoint (127.0.0.1:8091)", "http://127.0.0.1:8091/v1")


@pytest.mark.parametrize("url", [None, "off"])
def test_nobody_is_asked_where_nobody_is_named(url: str | None) -> None:
    assert choose(Settings(extract_url=url), FakeCompleter()) is None


@pytest.mark.parametrize(
    ("url", "kind", "name", "is_model"),
    [
        (None, "markers", "embedded markers", False),
        ("off", "off", "off", False),
        ("HOST ", "host", "host", True),
        ("http://me:x@127.0.0.1:8091/v1", "endpoint", "endpoint (127.0.0.1:8091)", True),
    ],
)
def test_who_extracts_is_what_the_setting_names(url: str | None, kind: str, name: str, is_model: bool) -> None:
    settings = Settings(extract_url=url, allow_remote=("host",))
    who = named(settings)
    assert (who.kind, who.name, who.is_model) == (kind, name, is_model)
    assert refusal(settings) is None
    chosen = choose(settings, FakeCompleter())
    assert (chosen is not None) == is_model


def test_a_public_endpoint_is_refused_before_it_is_asked() -> None:
    assert isinstance(refusal(Settings(extract_url="http://192.0.2.7/v1")), ConsentMissing)


def test_an_endpoint_is_asked_with_its_key() -> None:
    with serving(lambda request: content(WORDS)) as server:
        chosen = choose(Settings(extract_url=server.url, extract_model="tiny", extract_api_key=KEY), None)
        assert chosen is not None and completed(chosen) == WORDS
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    assert server.requests[0].body["model"] == "tiny"


def test_the_host_s_model_wants_consent_and_a_gateway() -> None:
    host = FakeCompleter()
    with pytest.raises(ConsentMissing, match="CLAWMARK_ALLOW_REMOTE does not name `host`"):
        choose(Settings(extract_url="host"), host)
    allowed = Settings(extract_url="host", allow_remote=("host",))
    with pytest.raises(EndpointDown, match="the gateway is not connected"):
        choose(allowed, None)
    assert choose(allowed, host) is host


def test_the_choice_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_EXTRACT_URL", "http://127.0.0.1:8091/v1")
    chosen = choose(load(), None)
    assert isinstance(chosen, HttpCompleter) and chosen.endpoint == "http://127.0.0.1:8091/v1"


# --- the fakes --------------------------------------------------------------------------------------------------------


def test_the_fake_answers_by_the_words_of_a_prompt() -> None:
    fake = FakeCompleter({"gecko": "my reply", "poison": ReplyUnusable("the model gave an empty answer.")})
    assert completed(fake) == "my reply" and completed(fake, "hello") == WORDS
    with pytest.raises(ReplyUnusable):
        completed(fake, "poison")
    fake.down = True
    with pytest.raises(EndpointDown):
        completed(fake)
    assert fake.asked == [USER, "hello", "poison"]
    completers: list[Completer] = [fake, HttpCompleter("http://127.0.0.1:1", "m")]
    assert [c.learned for c in completers] == ["", ""]


def test_the_scripted_server_cites_the_number_of_this_batch(tmp_path: Path) -> None:
    from test_prompt import said

    fact = {"key": "pref.tea", "value": "decaf"}
    script = {
        "facts": {"I drink decaf": fact, "never said": fact},
        "replies": {"poison": "no"},
        "log": str(tmp_path / "log"),
    }
    (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
    program = Path(__file__).with_name("chat_server.py")
    command = [sys.executable, str(program), "0", str(tmp_path / "script.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            completer = HttpCompleter(f"http://127.0.0.1:{int(process.stdout.readline())}", "m")
            batch = [said("hello", 6), said("well,\nI drink decaf now", 7), said("I drink decaf", 9)]
            prompt = built(batch, [], nonce="9f2c4a10", zone=None)
            reply = read(completer.complete(prompt.system, prompt.user, prompt.schema, most_tokens=9, seconds=20))
            assert completed(completer, "poison") == "no"
        finally:
            process.terminate()
    (candidate,) = reply.candidates
    assert (candidate.key, candidate.cited, candidate.quote) == ("pref.tea", (7, 9), "I drink decaf")
    logged = [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    assert [request["messages"][1]["content"] for request in logged] == [prompt.user, "poison"]


# --- every way an endpoint is known to misbehave ----------------------------------------------------------------------

SCRIPT = shared("harness", "endpoint", "badserver.py")
Outcome = dict[str, int] | tuple[type[ClawmarkError], str]
"""What is refused in a reply that can be read (the server's facts cite nothing), or the error and what its line says."""

OUTCOMES: dict[str, Outcome] = {
    # answers that are completions
    "ok": {"uncited": 1},
    "fenced": {"uncited": 1},
    "thinking": {"uncited": 1},
    "truncated_json": (ReplyUnusable, "no fact that is whole"),
    "length": {"uncited": 1},
    "prose": (ReplyUnusable, "no facts that can be read"),
    "empty": (ReplyUnusable, "empty"),
    "null_content": (ReplyUnusable, "empty"),
    "no_choices": (ReplyUnusable, "empty"),
    "refusal": (ReplyUnusable, "refused"),
    "echo": (ReplyUnusable, "no facts that can be read"),
    "dict_not_list": {"uncited": 1},
    "bad_types": {"key": 1, "uncited": 1},
    "conf_nan": {"confidence": 1},
    "conf_99": {"confidence": 1},
    "hundred": {"uncited": 100},
    "huge": (ReplyUnusable, "no fact that is whole"),
    "deep": (ReplyUnusable, "no facts that can be read"),
    "surrogate": {"uncited": 1},
    "injected": {"uncited": 1},
    "template": {"uncited": 1},
    "slow_ok": {"uncited": 1},
    # errors that say so
    "500": (EndpointDown, "500 even to one short request"),
    "502_html": (EndpointDown, "502"),
    "503": (EndpointDown, "503"),
    "401": (EndpointError, "401; check CLAWMARK_EXTRACT_API_KEY"),
    "404": (EndpointError, "404; check CLAWMARK_EXTRACT_MODEL"),
    "429": (EndpointDown, "429"),
    "429_date": (EndpointDown, "429"),
    "429_huge": (EndpointDown, "429"),
    "redirect": (EndpointError, r"redirects to 127\.0\.0\.1,.*CLAWMARK_EXTRACT_URL"),
    "redirect_loop": (EndpointError, "redirects to another path of its own,.*CLAWMARK_EXTRACT_URL"),
    # answers that are none
    "200_html": (EndpointDown, "no chat completion"),
    "partial_json": (EndpointDown, "no chat completion"),
    "short_body": (EndpointDown, "no sound answer"),
    "empty_body": (EndpointDown, "no chat completion"),
    "bad_utf8": (EndpointDown, "no chat completion"),
    "bom": (EndpointDown, "no chat completion"),
    "nul_body": (EndpointDown, "no chat completion"),
    "gzip_bomb": (EndpointDown, "compressed"),
    "bad_gzip": (EndpointDown, "compressed"),
    "deep_json": (EndpointDown, "no chat completion"),
    "big_int": (EndpointDown, "no chat completion"),
    "no_http": (EndpointDown, "no sound answer"),
    "header_bomb": (EndpointDown, "no sound answer"),
    # time and the connection
    "reset": (EndpointDown, "no sound answer"),
    "close_now": (EndpointDown, "no sound answer"),
    "hang": (EndpointDown, r"within 0\.3 s"),
    "slowloris": (EndpointDown, r"within 0\.3 s"),
    "endless": (EndpointDown, "more than 8,388,608 bytes"),
}
IMPATIENCE = {"hang": 0.4, "slowloris": 0.4}
needs_badserver = pytest.mark.skipif(SCRIPT is None, reason="the shared harness is not at hand")


@pytest.fixture(scope="module")
def badserver() -> Iterator[str]:
    assert SCRIPT is not None
    command = [sys.executable, str(SCRIPT), "--port", "0", "--max-s", "300"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def told(server: str, path: str) -> Any:
    with urllib.request.urlopen(f"{server}/{path}", timeout=20) as answer:
        return json.load(answer)


@needs_badserver
def test_every_mode_has_its_outcome(badserver: str) -> None:
    modes = told(badserver, "_modes")
    assert set(OUTCOMES) == {*modes["any"], *modes["chat"]}


@needs_badserver
@pytest.mark.parametrize("mode", OUTCOMES)
def test_what_becomes_of_a_call(mode: str, badserver: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    outcome, clock = OUTCOMES[mode], Seconds()
    began = time.monotonic()

    def reply(path: str) -> Any:
        completer = HttpCompleter(f"{badserver}/{path}", "m", key=KEY, clock=clock)
        return read(completed(completer, seconds=IMPATIENCE.get(mode, 30.0)))

    if isinstance(outcome, dict):
        result = reply(mode)
        assert (result.candidates, result.refused) == ((), outcome)
    else:
        kind, said = outcome
        with pytest.raises(kind, match=said) as raised:
            reply(mode)
        check_says_nothing(str(raised.value))
    assert time.monotonic() - began < 10
    assert KEY not in caplog.text and "lapisgecko" not in caplog.text


@needs_badserver
@pytest.mark.parametrize(
    "mode", [mode for mode, outcome in OUTCOMES.items() if mode not in IMPATIENCE and isinstance(outcome, tuple)]
)
def test_nothing_is_lost_when_the_endpoint_recovers(mode: str, badserver: str) -> None:
    clock = Seconds()
    times = 2 if mode == "500" else 1
    completer = HttpCompleter(f"{badserver}/seq:{','.join([mode] * times)},ok", "m", clock=clock)
    with pytest.raises((EndpointDown, EndpointError, ReplyUnusable)):
        read(completed(completer))
    clock.now += net.LONGEST_REST_SECONDS
    assert read(completed(completer)).refused == {"uncited": 1}


@needs_badserver
@pytest.mark.parametrize("mode", ["500", "502_html", "reset", "401", "hang"])
def test_a_broken_server_is_not_asked_without_end(mode: str, badserver: str) -> None:
    before = len(told(badserver, "_log"))
    completer = HttpCompleter(f"{badserver}/{mode}", "m", key=KEY)
    for _ in range(50):
        with pytest.raises((EndpointDown, EndpointError)):
            completed(completer, seconds=0.4)
    seen = [entry for entry in told(badserver, "_log")[before:] if entry["mode"] == mode]
    assert 1 <= len(seen) <= 2 and all(entry["auth"] for entry in seen)


# --- a real server ----------------------------------------------------------------------------------------------------

CHAT_URL = os.environ.get("CLAWMARK_CHAT_URL")
"""Opt-in, since its model takes 300 MB: a llama-server, or any other that speaks this protocol."""


@pytest.mark.skipif(CHAT_URL is None, reason="CLAWMARK_CHAT_URL names no chat server")
@pytest.mark.parametrize(
    "learned", [{}, {"format": "plain_schema"}, {"format": "json_object"}, {"format": ""}, {"apart": False}]
)
def test_a_real_model_gives_a_reply_or_none_and_never_a_claim_without_evidence(learned: dict[str, Any]) -> None:
    """A tiny model is a hostile extractor: what it gives can be read or not, and always says what it rests on."""
    from test_prompt import said

    assert CHAT_URL is not None
    completer = HttpCompleter(CHAT_URL, os.environ.get("CLAWMARK_CHAT_MODEL", ""))
    completer.learned = json.dumps({"model": completer._model, **learned})
    prompt = built(
        [said("I only drink decaf tea."), said("Noted.", 2, origin="assistant", citable=False)],
        [],
        nonce="9f2c4a10",
        zone=None,
    )
    try:
        words = completer.complete(prompt.system, prompt.user, prompt.schema, most_tokens=300, seconds=300)
        result = read(words)
    except ReplyUnusable:
        return
    assert all(each.cited and each.quote for each in result.candidates)


@pytest.mark.skipif(CHAT_URL is None, reason="CLAWMARK_CHAT_URL names no chat server")
def test_a_real_server_refuses_what_is_too_long_and_is_no_less_well() -> None:
    assert CHAT_URL is not None
    completer = HttpCompleter(CHAT_URL, os.environ.get("CLAWMARK_CHAT_MODEL", ""))
    with pytest.raises(ReplyUnusable):
        completer.complete(SYSTEM, "word " * 200_000, SCHEMA, most_tokens=10, seconds=300)
    assert completer.complete(SYSTEM, "Say {}.", SCHEMA, most_tokens=50, seconds=300)
