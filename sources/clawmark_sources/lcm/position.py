"""A cursor: where reading of one conversation goes on, and what proves that the file is still the one it was.

A message id is believed only within one life of the file, an epoch: a restored or recreated file gives the same ids to
other messages. Lossless Claw's repair moves rows from one conversation into another under their old ids, and people
prune rows by hand; the number of rows behind the position shows both.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from clawmark_sources.lcm.database import Row, Snapshot
from clawmark_sources.lcm.messages import Past
from clawmark_sources.lcm.unkeyed import UNKEYED

VERSION: Final = 1
ANCHORS: Final = 8


@dataclass(slots=True)
class Position:
    """Where reading of a conversation goes on.

    epoch      the life of the file, counted from 1
    id         the last message that was passed          count   rows of the conversation up to it
    anchors    the last messages that were passed, each with a hash of what it held
    old        the highest id that stood in the file when the epoch began: up to it rows may be copies of known ones
    scope      whose memory the conversation belonged to
    before     what reading in order told about the last utterance, None = there is none
    """

    epoch: int = 1
    id: int = 0
    count: int = 0
    anchors: list[tuple[int, str]] = field(default_factory=list)
    old: int = 0
    scope: str = ""
    past: Past = field(default_factory=Past)
    before: dict[str, Any] | None = None

    @classmethod
    def parse(cls, cursor: str | None) -> Position | None:
        """None for what is no cursor of ours."""
        try:
            value = json.loads(cursor or "")
            if value["v"] != VERSION:
                return None
            numbers = [value[name] for name in "enco"]
            anchors = [(number, proof) for number, proof in value["a"]]
            if not all(type(number) is int for number in (*numbers, *(number for number, _ in anchors))):
                return None
            if not isinstance(value["b"], dict | None):
                return None
            epoch, last, count, old = numbers
            return cls(epoch, last, count, anchors, old, value["s"], Past(**value["p"]), value["b"])
        except (ValueError, TypeError, KeyError):
            return None

    def dump(self) -> str:
        value = {
            "v": VERSION,
            "e": self.epoch,
            "n": self.id,
            "c": self.count,
            "a": self.anchors,
            "o": self.old,
            "s": self.scope,
            "p": self.past.as_json(),
            "b": self.before,
        }
        return json.dumps(value, separators=(",", ":"))

    @property
    def prefix(self) -> str:
        """What the refs of this epoch begin with."""
        return f"lcm:{self.epoch}:"

    def move(self, row: Row) -> None:
        self.id = row.id
        self.count += 1
        self.anchors = [*self.anchors[1 - ANCHORS :], (row.id, _proof(row))]

    def fits(self, file: Snapshot, sequence: int) -> bool:
        """Whether the file is in the life that this position was written in, as far as anything is left to tell it."""
        if sequence < self.id:
            return False
        for row_id, proof in reversed(self.anchors):
            row = file.row(row_id)
            if row is not None:
                return _proof(row) == proof
        return True


def _proof(row: Row) -> str:
    held = b"\0".join((row.role.encode(), row.content or b"", row.created_at.encode()))
    return hashlib.sha256(held).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a read begins, and what happened to the log since the cursor was written."""

    position: Position
    restarted: bool = False
    took_back: bool = False


def resume(file: Snapshot, conversation: int, cursor: str | None, scope: str) -> Resumed:
    position = Position.parse(cursor)
    if position is None:
        return Resumed(Position(scope=scope), restarted=True)
    sequence = file.sequence()
    if not position.fits(file, sequence):
        return Resumed(Position(position.epoch + 1, old=sequence, scope=scope), restarted=True)
    count = file.count(conversation, position.id)
    if count > position.count or (position.scope == UNKEYED != scope):
        # rows were moved in below the position, or it is known only now whose these are
        return Resumed(Position(position.epoch, old=position.old, scope=scope), restarted=True)
    took_back = count < position.count
    position.count, position.scope = count, scope
    return Resumed(position, took_back=took_back)


def of_one_life(position: Position, ids: Sequence[int]) -> list[int]:
    """The first of `ids` that are all older than the epoch, or all younger: only older ones can be copies."""
    if not ids or ids[0] > position.old:
        return list(ids)
    return [row_id for row_id in ids if row_id <= position.old]
