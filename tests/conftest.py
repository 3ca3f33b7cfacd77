"""Every test starts on a machine of its own: an empty home, no settings, UTC, and no network but loopback."""

from __future__ import annotations

import ipaddress
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import Clock, Log, fake, open_memory
from hypothesis import HealthCheck, settings

from clawmark.memory import Memory
from clawmark.testing import FakeEmbedder

# A slow machine is no fault of the code: no deadline. A failing example prints what reproduces it.
settings.register_profile(
    "suite", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("suite")


class NetworkRefused(AssertionError):
    """A test tried to leave this machine."""


def _is_loopback(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a Unix socket
    host = str(address[0])
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HOME and every XDG path inside tmp_path, a clean environment, UTC; returns the home."""
    home = tmp_path / "home"
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("CLAWMARK_", "CLAUDE_", "LCM_", "OPENCLAW_", "XDG_")) and name != "CLAWMARK_SHARED":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    for name, folder in {
        "XDG_CONFIG_HOME": ".config",
        "XDG_DATA_HOME": ".local/share",
        "XDG_STATE_HOME": ".local/state",
        "XDG_CACHE_HOME": ".cache",
        "XDG_RUNTIME_DIR": "run",
    }.items():
        monkeypatch.setenv(name, str(home / folder))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield home
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting anywhere else fails, and so does asking for another host's address."""

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(self: socket.socket, address: Any) -> Any:
            if not _is_loopback(address):
                raise NetworkRefused(f"connection to {address!r}")
            return original(self, address)

        return connect

    monkeypatch.setattr(socket.socket, "connect", guarded(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex))
    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and not _is_loopback((name,)):
            try:
                ipaddress.ip_address(name)  # a literal address needs no question to the network
            except ValueError:
                raise NetworkRefused(f"look-up of {name}") from None
        return resolve(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def embedder() -> FakeEmbedder:
    return fake()


@pytest.fixture
def db_path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "memory.db"


@pytest.fixture
def memory(db_path: Path, log: Log, clock: Clock) -> Iterator[Memory]:
    """A memory over `log`, on words alone."""
    with open_memory(db_path, log, clock=clock) as opened:
        yield opened
