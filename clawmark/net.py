"""The one place with a network: who may be talked to, for how long, and how much of an answer is read.

Text leaves this machine only for a host that the person named twice: in the URL and in CLAWMARK_ALLOW_REMOTE. A name
is looked up once; what it stands for is judged, and the connection goes to that very address. Each request has one
deadline for everything, a cap on the bytes read, follows no redirect and uses no proxy. No body, key or password ever
stands in an error.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import ipaddress
import json
import logging
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from clawmark.errors import ClawmarkError, ConsentMissing, EndpointDown, EndpointError
from clawmark.text import without_surrogates

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("clawmark")

MOST_BYTES = 64 * 1024 * 1024
MOST_LEFT_BEHIND = 8
"""Requests that outlived their deadline (a look-up that hangs) and still occupy a thread; more are not begun."""
LOOK_UP_SECONDS = 2.0
"""How long a name is looked up where nothing is sent."""

PATIENCE_SECONDS = 5.0
"""A longer wait is said aloud."""

LONG_WORK_SECONDS = 60.0
"""Whoever gives more time than this expects to need it."""

GRACE_SECONDS = 0.1
"""What the calling thread waits beyond the deadline for the asking one to say so itself."""

FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 30.0, 600.0
"""After a failure prompts do not ask for so long, twice as long after each further one: a server that hangs costs one
prompt its wait, not each."""

EMBEDDING = "CLAWMARK_EMBEDDING"
"""What the variables of the endpoint begin with: an error names the one to look at."""

PRIVATE = tuple(
    ipaddress.ip_network(block)
    for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
)
"""Beside loopback: RFC 1918, unique local, and the carrier range that overlay networks use. Link-local is left out,
where cloud machines keep their credentials, and so is what stands for every address (0.0.0.0)."""

OPEN_PARAMETERS = frozenset({"api-version", "version", "model", "deployment"})
"""What of a URL's query may be kept and shown. Anything else may be a key, whatever it is called."""

_ABOUT_THE_TEXT = frozenset({400, 413, 422, 500})
"""Statuses that say something of this request; the server that gives them is well enough to be asked others."""
_VERSION = re.compile(r"v\d+(?:(?:alpha|beta)\d*)?", re.IGNORECASE)
_HOST_NAME = re.compile(r"[a-z0-9._-]{1,253}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and decoded JSON (None where there is none). retry_after: seconds the server asks to be left alone."""

    status: int
    body: Any
    retry_after: float | None = None


# --- addresses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Target:
    """A URL in parts: `host` is ASCII, lower case, without brackets or trailing dot; `path` holds the query too."""

    scheme: str
    host: str
    port: int
    path: str
    user: str
    password: str

    @property
    def address(self) -> str:
        """Host and port as they stand in a URL."""
        return f"{_bracketed(self.host)}:{self.port}"


def endpoint(url: str, path: str) -> str:
    """The full address of `path` ("embeddings") for a base URL in any usual spelling: bare, with version, slash, path.

    A version anywhere in the path means that the person wrote the whole base; without one it is /v1.
    """
    parts = _split(url)
    segments = [segment for segment in parts.path.split("/") if segment]
    wanted = path.split("/")
    if segments[-len(wanted) :] != wanted:
        segments += wanted if any(_VERSION.fullmatch(segment) for segment in segments) else ["v1", *wanted]
    return parts._replace(path="/" + "/".join(segments), fragment="").geturl()


def host_of(url: str) -> str:
    """Host and port as written, for people: never user, password or query."""
    return _split(url).netloc.rpartition("@")[2]


def origin(url: str) -> str:
    """scheme://host:port in one spelling, without user or password: what tells one server from another."""
    target = _target(url)
    return f"{target.scheme}://{target.address}"


def without_credentials(url: str) -> str:
    """`url` as given, without user and password, and of its query what is known to be no secret."""
    parts = _split(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode([(name, value) for name, value in given if name.lower() in OPEN_PARAMETERS])
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query, fragment="").geturl()


def is_loopback(url: str) -> bool:
    """Whether the URL's host is written as this machine itself: localhost or a loopback address."""
    host = _target(url).host
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str, variable: str = EMBEDDING) -> SplitResult:
    try:
        return urlsplit(url.strip())
    except ValueError:
        raise EndpointError(f"{variable}_URL is no URL; nothing is sent.") from None


def _target(url: str, variable: str = EMBEDDING) -> _Target:
    parts = _split(url, variable)
    try:
        scheme, host = parts.scheme.lower(), _plain(parts.hostname or "")
        port = {"http": 80, "https": 443}[scheme] if parts.port is None else parts.port
        if not port or not (_HOST_NAME.fullmatch(host) or ":" in host):
            raise ValueError
    except (ValueError, KeyError):
        raise EndpointError(f"{variable}_URL is no URL with scheme, host and port; nothing is sent.") from None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Target(scheme, host, port, path, unquote(parts.username or ""), unquote(parts.password or ""))


def _plain(host: str) -> str:
    """One spelling of a host: ASCII, lower case, no trailing dot. Raises ValueError for what cannot be one."""
    host = host.strip().removesuffix(".").lower()
    if ":" in host:
        return str(ipaddress.IPv6Address(host))
    return host if host.isascii() else host.encode("idna").decode()


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


# --- consent ----------------------------------------------------------------------------------------------------------


def require_consent(
    url: str, allowed: Collection[str], variable: str = EMBEDDING, seconds: float = LOOK_UP_SECONDS
) -> None:
    """Raise ConsentMissing unless the host is this machine, its private network, or named in `allowed`.

    EndpointDown when its name cannot be looked up now or within `seconds`, EndpointError when the URL is none.
    """
    target = _target(url, variable)
    if not _is_named(target, allowed):
        _within(seconds, target.host, lambda: _addresses(target, allowed))


def _is_named(target: _Target, allowed: Collection[str]) -> bool:
    """An entry is a host, or host:port for that port alone."""
    for entry in allowed:
        host, colon, port = entry.strip().rpartition(":")
        if not colon or (":" in host and not host.endswith("]")):  # a bare name, or a bare IPv6 address
            host, port = entry.strip(), ""
        try:
            same = _plain(host.removeprefix("[").removesuffix("]")) == target.host
        except ValueError:
            continue
        if same and port in ("", str(target.port)):
            return True
    return False


def _addresses(target: _Target, allowed: Collection[str]) -> list[str]:
    """Every address of the host, in the system's order; one that needs a second key and lacks it refuses them all."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        unnamed = "" if _is_named(target, allowed) else ", and CLAWMARK_ALLOW_REMOTE does not name it"
        raise EndpointDown(f"the host {target.host} cannot be resolved{unnamed}.") from None
    addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
    if not addresses:
        raise EndpointDown(f"the host {target.host} has no address.")
    if not _is_named(target, allowed) and not all(_is_private(address) for address in addresses):
        raise ConsentMissing(
            f"{target.host} is outside this machine and its private network, and CLAWMARK_ALLOW_REMOTE does not name it;"
            " nothing was sent. Name it there to allow it, or use a local endpoint."
        )
    return addresses


def _is_private(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    return ip.is_loopback or any(ip in block for block in PRIVATE)


# --- requests ---------------------------------------------------------------------------------------------------------


def _now() -> datetime:
    return datetime.now(UTC)


class Endpoint:
    """One address that is posted to, and the memory of how it behaved.

    url       the full address; user and password in it are sent as Basic authentication
    key       sent as a Bearer header
    allowed   hosts outside this machine and its private network that may be talked to
    variable  what the names of its settings begin with
    clock     measures rests, `wall` turns a Retry-After date into seconds
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        allowed: Collection[str],
        variable: str = EMBEDDING,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = _now,
    ) -> None:
        self.host = host_of(url)
        self._url = url
        self._key = key
        self._allowed = allowed
        self._variable = variable
        self._clock = clock
        self._wall = wall
        # Plain values, no lock: what two threads could do to each other here is to ask once more, and a lock would
        # not survive a fork.
        self._failures = 0
        self._failed_at = float("-inf")
        self._resting_until = float("-inf")
        self._leave_alone_until = float("-inf")

    def post(
        self, payload: Mapping[str, Any], seconds: float, *, patient: bool = False, most_bytes: int = MOST_BYTES
    ) -> Answer:
        """POST `payload` as JSON. Everything counts towards `seconds`: looking up, connecting, dripping, decoding.

        patient: background work asks although the server failed just now; a Retry-After it waits for as well.
        Raises EndpointDown without an answer in time, EndpointError for a wrong address or a redirect, ConsentMissing
        before anything is sent.
        """
        self._admit(seconds, patient)
        began = self._clock()
        try:
            answer = self._ask(payload, seconds, most_bytes)
        except ConsentMissing:
            raise
        except ClawmarkError:
            self._rest(began, None)
            raise
        if 200 <= answer.status < 300 or answer.status in _ABOUT_THE_TEXT:
            self._failures = 0
            self._resting_until = self._leave_alone_until = float("-inf")
        else:
            self._rest(began, answer.retry_after)
        return answer

    @property
    def is_resting(self) -> bool:
        """Whether who is not patient would not be let through now."""
        now = self._clock()
        return now < self._leave_alone_until or (self._failures > 0 and now < self._resting_until)

    def failed(self) -> None:
        """The caller cannot use what was answered: as good as no answer."""
        self._rest(self._clock(), None)

    def waited(self) -> None:
        """The caller slept a Retry-After out itself."""
        self._leave_alone_until = float("-inf")

    def _admit(self, seconds: float, patient: bool) -> None:
        now = self._clock()
        if now < self._leave_alone_until:
            raise EndpointDown(f"{self.host} asked to be left alone for another {self._leave_alone_until - now:.0f} s.")
        if patient or not self._failures:
            return
        if now < self._resting_until:
            raise EndpointDown(f"{self.host} failed just now; it is asked again in {self._resting_until - now:.0f} s.")
        self._resting_until = now + seconds  # this one is the trial; the others wait for what becomes of it

    def _rest(self, began: float, retry_after: float | None) -> None:
        """Requests that were under way together fail together and count once."""
        now = self._clock()
        if began >= self._failed_at or not self._failures:
            self._failures += 1
        self._failed_at = now
        pause = min(FIRST_REST_SECONDS * 2 ** min(self._failures - 1, 10), LONGEST_REST_SECONDS)
        self._resting_until = now + pause
        if retry_after is not None:
            self._leave_alone_until = now + retry_after

    def _ask(self, payload: Mapping[str, Any], seconds: float, most_bytes: int) -> Answer:
        until = time.monotonic() + seconds  # the real clock, whichever measures rests: a deadline is about this machine
        return _within(seconds, self.host, lambda: self._answer(payload, until, most_bytes))

    def _answer(self, payload: Mapping[str, Any], until: float, most_bytes: int) -> Answer:
        target = _target(self._url, self._variable)
        content = without_surrogates(json.dumps(dict(payload), ensure_ascii=False)).encode()
        addresses = _addresses(target, self._allowed)
        if time.monotonic() >= until:  # nobody waits any more
            raise TimeoutError
        status, headers, body = asyncio.run(self._exchange(target, addresses, content, until, most_bytes))
        if 300 <= status < 400:
            raise EndpointError(
                f"{self.host} redirects to {_host_in(headers.get('location', ''))}, and no redirect is followed; "
                f"check {self._variable}_URL."
            )
        return Answer(status, _decoded(body), _retry_after(headers.get("retry-after", ""), self._wall))

    async def _exchange(
        self, target: _Target, addresses: list[str], content: bytes, until: float, most_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """The first address that can be connected to gets the request; nothing was sent to those before it."""
        import httpx

        unreachable: httpx.HTTPError | None = None
        async with asyncio.timeout(until - time.monotonic()):
            for number, address in enumerate(addresses):
                # One that stays silent takes its share of the time, not all of it.
                left = len(addresses) - number
                share = (until - time.monotonic()) / left if left > 1 else None
                try:
                    return await self._send(target, address, content, share, most_bytes)
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    unreachable = error
                except (httpx.LocalProtocolError, httpx.InvalidURL, ValueError, OverflowError) as error:
                    raise EndpointError(
                        f"{self.host} cannot be asked ({type(error).__name__}); "
                        f"check {self._variable}_URL and {self._variable}_API_KEY."
                    ) from None
                except (httpx.HTTPError, OSError, ExceptionGroup) as error:
                    raise EndpointDown(f"{self.host} gave no sound answer ({type(error).__name__}).") from None
        if _is_about(unreachable, ssl.SSLCertVerificationError):
            raise EndpointError(
                f"{self.host} shows a certificate that this machine does not trust; check {self._variable}_URL."
            )
        if _is_about(unreachable, ssl.SSLError):
            raise EndpointError(
                f"{self.host} does not speak TLS as it should; if it is plain, write http:// in {self._variable}_URL."
            )
        raise EndpointDown(f"{self.host} cannot be reached ({type(unreachable).__name__}).")

    async def _send(
        self, target: _Target, address: str, content: bytes, connect_seconds: float | None, most_bytes: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        import httpx

        request = httpx.Request(
            "POST",
            f"{target.scheme}://{_bracketed(address)}:{target.port}{target.path}",
            content=content,
            headers=self._headers(target),
            extensions={
                "timeout": {"connect": connect_seconds, "read": None, "write": None, "pool": None},
                # The certificate is that of the name, whichever address was connected to.
                **({"sni_hostname": target.host} if target.scheme == "https" and address != target.host else {}),
            },
        )
        # The transport alone: no proxy, no redirect, and no log line that shows the URL.
        async with httpx.AsyncHTTPTransport(
            # Without TLS there is nothing to verify, and its set-up takes 30 ms.
            verify=_tls() if target.scheme == "https" else False,
            trust_env=False,
        ) as transport:
            response = await transport.handle_async_request(request)
            try:
                return response.status_code, dict(response.headers), await self._body(response, most_bytes)
            finally:
                await response.aclose()

    def _headers(self, target: _Target) -> dict[str, str]:
        default = {"http": 80, "https": 443}[target.scheme]
        headers = {
            "Host": _bracketed(target.host) if target.port == default else target.address,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "clawmark",
        }
        if target.user or target.password:  # there is one such header: a user in the URL was put there for this server
            pair = base64.b64encode(f"{target.user}:{target.password}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        elif self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    async def _body(self, response: httpx.Response, most_bytes: int) -> bytes:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise EndpointDown(f"{self.host} sent a compressed answer that was not asked for.")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > min(most_bytes, MOST_BYTES):
                raise EndpointDown(f"{self.host} sent more than {min(most_bytes, MOST_BYTES):,} bytes.")
        return bytes(body)


T = TypeVar("T")

_left_behind: set[threading.Thread] = set()
"""Threads whose caller gave up. Daemons: they never hold up the end of the process; none is alive after a fork."""


def _within(seconds: float, host: str, work: Callable[[], T]) -> T:
    """What `work` gives, in a thread of its own that can be left behind: the system's look-up of a name knows no deadline.

    Raises what `work` raises, and EndpointDown when it takes longer.
    """
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # noqa: BLE001 - carried over to the calling thread, where it is raised
            failure.append(error)

    for thread in tuple(_left_behind):
        if not thread.is_alive():
            _left_behind.discard(thread)
    if len(_left_behind) >= MOST_LEFT_BEHIND:
        raise EndpointDown(f"{host} is not asked: {len(_left_behind)} requests hang already.")
    thread = threading.Thread(target=run, name="clawmark-net", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise EndpointDown(f"{host} is not asked: no thread can be started.") from None
    try:
        thread.join(min(seconds, PATIENCE_SECONDS) + GRACE_SECONDS)
        if thread.is_alive() and seconds > PATIENCE_SECONDS:
            # A model that writes takes its time, batch after batch: that is no news.
            log.log(
                logging.WARNING if seconds <= LONG_WORK_SECONDS else logging.INFO,
                "waiting for %s, for at most %g s",
                host,
                seconds,
            )
            thread.join(seconds - PATIENCE_SECONDS)
    finally:
        if thread.is_alive():
            _left_behind.add(thread)
    if result:
        return result[0]
    if not failure or isinstance(failure[0], TimeoutError):
        raise EndpointDown(f"{host} did not answer within {round(seconds, 2):g} s.")
    raise failure[0]


@functools.cache
def _tls() -> ssl.SSLContext:
    """The usual authorities and those of this machine: a private network may have one of its own."""
    import httpx

    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


def _is_about(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an error of this kind is behind it."""
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False


def _host_in(location: str) -> str:
    """The host of a Location header, as far as it looks like one: whoever sent it writes what it likes."""
    try:
        host = urlsplit(location).hostname or ""
    except ValueError:
        host = ""
    if not host:
        return "another path of its own"
    return host if _HOST_NAME.fullmatch(host) else "another host"


# --- what came back ---------------------------------------------------------------------------------------------------


def _decoded(body: bytes) -> Any:
    """The JSON in `body`, None where there is none. A number that JSON does not know is null: it spoils its own item."""
    try:
        text = body.decode("utf-8-sig", errors="replace")
        value = _parsed(text)
        if _SURROGATE.search(text):
            # Half a character, written as an escape, could be stored and sent nowhere. Rare, so once more from text.
            value = _parsed(without_surrogates(json.dumps(value, ensure_ascii=False)))
        return value
    except (ValueError, RecursionError):
        return None


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=lambda constant: None, parse_int=_whole)


def _whole(digits: str) -> int | float:
    """Python refuses an integer of thousands of digits; as a float it is infinite."""
    return int(digits) if len(digits) < 20 else float(digits)


def _retry_after(header: str, wall: Callable[[], datetime]) -> float | None:
    """Seconds of a Retry-After in seconds or as a date, at most LONGEST_REST_SECONDS; None for anything else."""
    said = header.strip()
    if _SECONDS.fullmatch(said):
        seconds = float(said)
    else:
        try:
            when = parsedate_to_datetime(said)
            seconds = (when.replace(tzinfo=when.tzinfo or UTC) - wall()).total_seconds()
        except (ValueError, OverflowError, TypeError, IndexError):
            return None
    return min(max(seconds, 0.0), LONGEST_REST_SECONDS)
