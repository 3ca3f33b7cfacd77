"""The one place with a network: who may be talked to, for how long, and how much of an answer is read.

Text leaves this machine only for a host that the person named twice: in the URL and in CLAWMARK_ALLOW_REMOTE. Each
request has one deadline for everything, a size cap on what is read, follows no redirect and uses no proxy; no body and
no key ever stands in an error.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from clawmark.errors import EmbedderDown, EmbedderError

MOST_BYTES = 64 * 1024 * 1024
GRACE_SECONDS = 0.1
"""What the calling thread waits beyond the deadline for the asking one to say so itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any


def endpoint(url: str, path: str) -> str:
    """The full address of `path` ("embeddings") for a base URL in any usual spelling: with or without /v1, slash, path."""
    base = url.strip().rstrip("/")
    if base.endswith("/" + path):
        return base
    last = base.rsplit("/", 1)[-1]
    if last[:1] == "v" and last[1:].isdigit():
        return f"{base}/{path}"
    return f"{base}/v1/{path}"


def host_of(url: str) -> str:
    """Host and port, for people: never user, password or query. Raises EmbedderError for what is no URL."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        raise EmbedderError("CLAWMARK_EMBEDDING_URL is not a URL; nothing is sent.") from None


def require_consent(url: str, allowed: Collection[str]) -> None:
    """Raise EmbedderError unless the URL's host is this machine, its private network, or named in `allowed`."""
    host = (urlsplit(url).hostname or "").lower()
    if not host:
        raise EmbedderError("CLAWMARK_EMBEDDING_URL has no host; nothing is sent.")
    if host in {name.lower() for name in allowed}:
        return
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError) as unknown:
        raise EmbedderDown(f"the embedding host {host} cannot be resolved; recall runs on words.") from unknown
    if not all(ipaddress.ip_address(str(address).split("%")[0]).is_private for address in found):
        raise EmbedderError(
            f"{host} is outside this machine and its private network, and CLAWMARK_ALLOW_REMOTE does not name it; "
            "nothing was sent. Name it there to allow it, or use a local endpoint."
        )


def post_json(
    url: str, payload: Mapping[str, Any], *, key: str | None, seconds: float, allowed: Collection[str]
) -> Answer:
    """POST `payload`, return status and decoded JSON (None where there is none).

    Everything counts towards `seconds`: looking up the name, connecting, dripping headers, the body. Raises EmbedderDown
    when there is no answer in time, EmbedderError when consent is missing or the address is none.
    """
    host = host_of(url)
    result: list[Answer | BaseException] = []

    def ask() -> None:
        try:
            require_consent(url, allowed)  # each time: what a name resolves to can change
            result.append(asyncio.run(_post(url, payload, key, seconds)))
        except BaseException as error:  # noqa: BLE001 - carried over to the calling thread, where it is raised
            result.append(error)

    # A thread of its own can be left behind: the system's name lookup knows no deadline.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds + GRACE_SECONDS)
    if not result or isinstance(result[0], TimeoutError):
        raise EmbedderDown(f"{host} did not answer within {seconds:g} s; recall runs on words.")
    if isinstance(result[0], BaseException):
        raise result[0]
    return result[0]


async def _post(url: str, payload: Mapping[str, Any], key: str | None, seconds: float) -> Answer:
    import httpx

    host = host_of(url)
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
    verify = url.lower().startswith("https:")  # without TLS there is nothing to verify, and its set-up takes 30 ms
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(trust_env=False, timeout=None, follow_redirects=False, verify=verify) as client,
            client.stream("POST", url, json=dict(payload), headers=headers) as response,
        ):
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise EmbedderDown(f"{host} sent a compressed answer that was not asked for.")
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise EmbedderDown(f"{host} sent more than {MOST_BYTES // 2**20} MiB.")
            return Answer(response.status_code, _decoded(bytes(body)))
    except httpx.HTTPError as error:
        raise EmbedderDown(f"{host} cannot be reached ({type(error).__name__}); recall runs on words.") from None
    except (httpx.InvalidURL, ValueError, OverflowError, ExceptionGroup) as error:
        raise EmbedderError(
            f"{host} cannot be asked ({type(error).__name__}); check CLAWMARK_EMBEDDING_URL and _API_KEY."
        ) from None


def _decoded(body: bytes) -> Any:
    try:
        # NaN and Infinity are no JSON; as null they spoil the one item that holds them.
        return json.loads(body, parse_constant=lambda constant: None)
    except (ValueError, RecursionError):
        return None
