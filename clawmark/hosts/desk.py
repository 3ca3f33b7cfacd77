"""What the resident process offers a host's glue while it answers one hook.

The glue turns what the host's hook got into calls here and gives back what the hook prints. It neither opens the memory
nor waits for it: a desk whose memory is not ready gives empty blocks within the hook's deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol

from clawmark.model import Block, Turn

Notice = Literal["session_start", "session_end", "messages"]


class HookDesk(Protocol):
    def block(self, turn: Turn, *, owner: bool) -> Block:
        """The block for a prompt; its text is empty when there is nothing to say, or no memory.

        owner: whether the owner typed the prompt. It counts then as what the owner said in that session.
        What it shows is written down after the hook's answer is out.
        """
        ...

    def renew(self, host: str, session: str) -> None:
        """The session's model lost sight of what it was shown: a compaction, a clear."""
        ...

    def notify(self, event: Notice, host: str, session: str | None = None, count: int = 0) -> None:
        """A reason for the jobs to run. `messages`: so many were logged since the last time."""
        ...


class HookGlue(Protocol):
    """The form of a module that answers a host's hooks."""

    def answer(self, event: Mapping[str, object], desk: HookDesk, now: datetime) -> str:
        """What the hook prints; "" for nothing. Raises UsageError for an event that is none of this host's."""
        ...
