"""Which logs a pass reads: one of each group of alternatives, and a note in the audit trail when the choice changes.

A preferred log that nobody can read is passed over and named; when it can be read again, it is read again. What stands by
is not read, but what the person deletes there is erased.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import apsw

from clawmark.errors import SourceAbsent, SourceBusy, SourceDrift, SourceEmpty, SourceError
from clawmark.source import Alternatives, Chosen, MessageSource, choose
from clawmark.store import cursors, events
from clawmark.store.db import transaction


@dataclass(frozen=True, slots=True)
class Plan:
    """What every group chose, in order."""

    choices: Sequence[Chosen]

    @property
    def reading(self) -> list[MessageSource]:
        return [choice.source for choice in self.choices if choice.source is not None]

    @property
    def watching(self) -> list[MessageSource]:
        return [source for choice in self.choices for source in choice.standing_by]

    @property
    def all(self) -> list[tuple[MessageSource, bool]]:
        """Every log that can be read, and whether it is; what stands by is read on where it was read before."""
        return [(source, True) for source in self.reading] + [(source, False) for source in self.watching]

    def is_other_host(self, source: MessageSource) -> bool:
        """Whether a log that stands by holds another host's history than the one that is read in its place."""
        return any(
            choice.source is not None and choice.source.host != source.host
            for choice in self.choices
            if any(source is other for other in choice.standing_by)
        )

    @property
    def failures(self) -> list[SourceError]:
        """Why a group is not read although its log is there."""
        whys = [choice.failure for choice in self.choices]
        return [why for why in whys if why is not None and not isinstance(why, SourceAbsent)]

    def require(self) -> None:
        """Raise why nothing can be read; what is there and empty is no failure, nor is one log of several."""
        busy = next((why for why in self.failures if isinstance(why, SourceBusy)), None)
        if busy is not None:
            raise busy
        if self.reading:
            return
        raise next(iter(self.failures), None) or self.absence()

    def absence(self) -> SourceAbsent:
        whys = [choice.failure for choice in self.choices if choice.failure is not None]
        said = "; ".join(str(why).rstrip(".") for why in whys) or "no message source is installed"
        return SourceAbsent(f"{said}. Start a host once, or name its log: docs/sources.md says how.")


def plan(groups: Sequence[Alternatives]) -> Plan:
    return Plan([choose(group) for group in groups])


def note(connection: apsw.Connection, path: Path, groups: Sequence[Alternatives], plan: Plan, now: datetime) -> None:
    """Write down a changed choice, once, with the reason."""
    for group, choice in zip(groups, plan.choices, strict=True):
        if len(group) > 1 and choice.source is not None and not isinstance(choice.failure, SourceEmpty):
            _note(connection, path, [source.name for source in group], choice, choice.source.name, now)


def _note(
    connection: apsw.Connection, path: Path, names: Sequence[str], choice: Chosen, chosen: str, now: datetime
) -> None:
    cursor = f"chosen:{','.join(names)}"
    before = cursors.get(connection, cursor)
    drifted = [(source.name, why) for source, why in choice.passed_over if isinstance(why, SourceDrift)]
    preferred = [(source.name, why) for source, why in choice.passed_over]
    fell_back = before in names and names.index(chosen) > names.index(before)
    came_back = before in names and names.index(chosen) < names.index(before)
    with transaction(connection, path):
        for name, why in [pair for pair in preferred if fell_back and pair[0] == before] or drifted:
            detail = f"{chosen} is read instead: {why}"
            if fell_back or not events.is_known(connection, "source_fallback", name, detail):
                events.add(connection, "source_fallback", now, source=name, detail=detail)
        if came_back:
            events.add(connection, "source_return", now, source=chosen, detail=f"it was {before} before")
        if before != chosen:
            cursors.put(connection, cursor, chosen, now)
