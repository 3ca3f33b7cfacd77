"""The tree of a session file: which of its entries the conversation still holds.

Each entry names the one it follows; an edit goes on from an earlier entry and leaves what stood behind it in place. The
live history is the walk from the last entry over its parents. Only what stands earlier in the file can be a parent, so
the walk always ends: an entry that names none, one that is not there or one that stands later follows the entry before
it. What has no id is no node of the tree: it counts with the node before it.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clawmark_sources.openclaw.messages import entry_id

Link = tuple[bytes, bytes | None]
"""An entry's id, and the id of the entry it follows; None where it names none."""

_IDS: Final = rb'"id":"([^"\\]{1,200})","parentId":(?:null|"([^"\\]{1,200})")'
_AT_THE_HEAD: Final = re.compile(rb'\{"type":"message",' + _IDS + rb",")
_AT_THE_END: Final = re.compile(rb"," + _IDS + rb'(?:,"timestamp":"[^"\\]{0,40}")?\}\Z')
_MESSAGE: Final = b'{"type":"message","id":"'
_END_BYTES: Final = 512
_LEAF: Final = b'{"type":"leaf"'


def following(data: bytes, start: int, end: int, last: bytes) -> Link | None:
    """The link of a message that follows the entry `last`, as nearly every one does; None = ask `link`.

    It says less and costs half as much: this is paid for each line of a long history.
    """
    if not data.startswith(_MESSAGE, start):
        return None
    begin = start + len(_MESSAGE)
    stop = data.find(b'"', begin, end)
    return (data[begin:stop], None) if data.startswith(b'","parentId":"' + last + b'",', stop) else None


def link(data: bytes, start: int, end: int) -> Link | None:
    """The link of the entry at data[start:end], told from its raw bytes; None = it must be parsed.

    It knows the two places where the host writes id and parent. No string inside JSON can hold these bytes, because its
    quotes are escaped, and no inner object can stand at either place.
    """
    found = _AT_THE_HEAD.match(data, start, end)
    if found is None and not data.startswith(_LEAF, start):
        found = _AT_THE_END.search(data, max(start, end - _END_BYTES), end)
    return None if found is None else (found[1], found[2])


def link_of(entry: Any) -> Link | None:
    """The link of a parsed entry; None where it is no node of the tree.

    An entry of type "leaf" moves the conversation to another entry: it stands for that entry from there on.
    """
    if not isinstance(entry, dict) or entry.get("type") == "session":
        return None
    if entry.get("type") == "leaf" and (target := entry_id({"id": entry.get("targetId")})):
        return target.encode(), target.encode()
    own, parent = entry_id(entry), entry_id({"id": entry.get("parentId")})
    return (own.encode(), parent.encode() or None) if own else None


@dataclass(frozen=True, slots=True)
class Tree:
    """One version of a file. `gaps` are the stretches [start, stop) of it that are off the branch, in file order."""

    gaps: Sequence[tuple[int, int]] = ()

    def abandoned(self, offset: int) -> bool:
        """Whether the entry that begins at `offset` is off the branch."""
        place = bisect_right(self.gaps, offset, key=_start) - 1
        return place >= 0 and offset < self.gaps[place][1]


def _start(gap: tuple[int, int]) -> int:
    return gap[0]


def grown(links: Iterable[tuple[int, Link]]) -> Tree:
    """The tree of all nodes of a file, each with the offset where its line begins, in file order."""
    numbers: dict[bytes, int] = {}
    offsets = array("q")
    jumps: list[tuple[int, int]] = []
    last = b""
    for offset, (entry, parent) in links:
        number = len(offsets)
        if parent is not None and parent != last:
            followed = numbers.get(parent, number - 1)
            if followed != number - 1:
                jumps.append((number, followed))
        numbers[entry] = number
        offsets.append(offset)
        last = entry
    gaps = []
    reached = len(offsets) - 1
    for number, followed in reversed(jumps):
        if number <= reached:  # else the jump itself was abandoned by a later one
            gaps.append((offsets[followed + 1], offsets[number]))
            reached = followed
    return Tree(gaps[::-1])
