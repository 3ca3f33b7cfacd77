"""What the resident process remembers of running sessions, in memory alone: what their owner typed, and their blocks.

Both are bounded, and what is not asked for is dropped first. Neither is ever written down.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from clawmark.model import Block, Said, Turn
from clawmark.text import cut

MOST_SESSIONS, MOST_TYPED, LONGEST_TYPED = 200, 50, 2_000
"""A longer text was pasted, and supports nothing; what is kept of it is enough to tell that."""

MOST_RUNS, RUN_SECONDS = 256, 120.0

Mark = tuple[int, ...]
"""Of `Memory.changes`."""


class Typed:
    """What the owner typed in each session, as their prompts brought it: the log may be read later than a tool is called."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: OrderedDict[tuple[str, str], deque[Said]] = OrderedDict()

    def add(self, host: str, session: str, said: Said) -> None:
        with self._lock:
            lines = self._sessions.setdefault((host, session), deque(maxlen=MOST_TYPED))
            self._sessions.move_to_end((host, session))
            text = cut(said.text, LONGEST_TYPED)
            if not lines or lines[-1].text != text:  # a run that is tried again brings its prompt again
                lines.append(Said(text, said.at))
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)

    def of(self, host: str, session: str) -> list[Said]:
        """Oldest first."""
        with self._lock:
            return list(self._sessions.get((host, session), ()))


class Made:
    """A block that was made of a database with this mark."""

    def __init__(self, block: Block, at: float, mark: Mark) -> None:
        self.block = block
        self.at = at
        self.mark = mark
        self._showing = threading.Lock()

    def is_first(self) -> bool:
        """Whether it goes out for the first time; true once, for the one who writes it down as shown."""
        return self._showing.acquire(blocking=False)


class Runs:
    """The blocks of the last runs: the host asks once more when it tries a run again, and gets the same bytes.

    Only as long as nobody changed the database, from wherever: what was forgotten meanwhile is given to nobody.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._made: OrderedDict[bytes, Made] = OrderedDict()

    def get(self, turn: Turn, mark: Mark) -> Made | None:
        if turn.run is None:
            return None
        self.tidy()
        with self._lock:
            made = self._made.get(_name(turn))
            return made if made is not None and made.mark == mark else None

    def keep(self, turn: Turn, block: Block, mark: Mark) -> Made:
        """A block that came out the same once more is the one that was kept: it is shown once."""
        made = Made(block, self._clock(), mark)
        if turn.run is None:
            return made
        name = _name(turn)
        with self._lock:
            before = self._made.get(name)
            if before is not None and before.block.text == block.text:
                before.mark = mark
                return before
            self._made[name] = made
            self._made.move_to_end(name)
            if len(self._made) > MOST_RUNS:
                self._made.popitem(last=False)
        return made

    def tidy(self) -> None:
        """Drop what is too old to be asked for again."""
        oldest = self._clock() - RUN_SECONDS
        with self._lock:
            while self._made and next(iter(self._made.values())).at <= oldest:
                self._made.popitem(last=False)

    def clear(self) -> None:
        """Something was forgotten, and may stand in any of them."""
        with self._lock:
            self._made.clear()


def _name(turn: Turn) -> bytes:
    """Of all that a block depends on but the memory; no prompt is held because of it."""
    parts = (turn.host, turn.run, turn.scope, turn.session, turn.kind, turn.prompt, *turn.recent)
    return hashlib.sha256("\0".join(str(part) for part in parts).encode(errors="replace")).digest()
