"""The lines of a transcript, wherever its bytes are: an open file, or an archive that was unpacked into memory.

What always holds: a line without its newline is not there yet; memory stays bounded however long a line is and
whatever a frame claims to hold.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

from clawmark_sources.jsonline import LINE_LIMIT

CHUNK: Final = 128 << 10
"""Small enough to stay in a processor's cache while its lines are looked at."""
CONTENT_LIMIT: Final = 256 << 20
"""Bytes of the largest archive that is unpacked."""
_PACKED_PIECE: Final = 64 << 10
_UNPACKED_PIECE: Final = 16 << 10
"""What one step of unpacking gives: what stood before a damage is lost to this extent."""


class Content(Protocol):
    """Bytes by offset. `fault` says why they end early, "" where they are whole."""

    size: int
    fault: str

    def pread(self, count: int, offset: int) -> bytes: ...


class OpenFile:
    """A file as long as it was when it was opened."""

    fault = ""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self.size = size

    def pread(self, count: int, offset: int) -> bytes:
        return os.pread(self._fd, count, offset)


class Unpacked:
    """What an archive of zstd frames holds; the lines before the damage when one is damaged."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._data, self.fault = _unpacked(read)
        if self.fault:
            del self._data[self._data.rfind(b"\n") + 1 :]
        elif self._data and not self._data.endswith(b"\n"):
            self._data += b"\n"  # nobody will complete the last line of an archive
        self.size = len(self._data)

    def pread(self, count: int, offset: int) -> bytes:
        return bytes(self._data[offset : offset + count])


def _unpacked(read: Callable[[int], bytes]) -> tuple[bytearray, str]:
    """All frames that `read` gives, one after the other, and what is wrong with them; nothing when they hold too much."""
    held = bytearray()
    frame, begun = decompressor(), False
    packed = read(_PACKED_PIECE)
    while packed or (begun and not frame.needs_input):
        try:
            held += frame.decompress(packed, max_length=_UNPACKED_PIECE)
        except zstd().ZstdError:
            return held, "zstd"
        begun = True
        if len(held) > CONTENT_LIMIT:
            return bytearray(), "oversize"
        if frame.eof:
            packed = frame.unused_data or read(_PACKED_PIECE)
            frame, begun = decompressor(), False
        else:
            packed = read(_PACKED_PIECE) if frame.needs_input else b""
    return held, "zstd" if begun else ""


def first_bytes(fd: int, count: int) -> bytes:
    """What an archive begins with, without unpacking the rest."""
    try:
        start: bytes = decompressor().decompress(os.read(fd, _PACKED_PIECE), max_length=count)
    except zstd().ZstdError:
        return b""
    return start


def decompressor() -> Any:
    """For one frame. 8 MiB of window cover every frame of the host's; a forged one must not make us allocate more."""
    return zstd().ZstdDecompressor(options={zstd().DecompressionParameter.window_log_max: 23})


@cache
def zstd() -> Any:
    """The zstd module, loaded when the first compressed entry is met."""
    return import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def lines(content: Content, offset: int, size: int) -> Iterator[tuple[bytes | None, int, int, int]]:
    """The complete lines of content[offset:size] as (data, start, stop, base).

    The line is data[start:stop], in place, and stands at base + start; data is None for one over LINE_LIMIT, which is
    never held. The next line begins at base + stop + 1 in either case.
    """
    chunk = CHUNK
    while offset < size:
        asked = min(chunk, size - offset)
        data = content.pread(asked, offset)
        start = 0
        while (stop := data.find(b"\n", start)) >= 0:
            yield data, start, stop, offset
            start = stop + 1
        if len(data) < asked:  # the file was cut while it was read
            return
        if start:
            offset += start
            chunk = CHUNK
        elif offset + asked >= size:
            return
        elif asked <= LINE_LIMIT:
            chunk = min(chunk * 2, LINE_LIMIT + 1)
        else:
            after = _behind_newline(content, offset + asked, size)
            if after is None:
                return
            yield None, 0, after - offset - 1, offset
            offset, chunk = after, CHUNK


def _behind_newline(content: Content, offset: int, end: int) -> int | None:
    while offset < end:
        data = content.pread(min(CHUNK, end - offset), offset)
        found = data.find(b"\n")
        if found >= 0:
            return offset + found + 1
        if not data:
            return None
        offset += len(data)
    return None
