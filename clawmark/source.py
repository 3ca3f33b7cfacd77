"""How a message log is read: the protocol every adapter keeps, and how adapters are found.

Names no adapter: they register under the entry-point group `clawmark.sources`, ours and third parties' alike. A source
never writes to its log, owns the meaning of its cursors, and tells four failures apart: absent, drift, corrupt, busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, runtime_checkable

from clawmark.errors import SourceAbsent, SourceEmpty, UsageError
from clawmark.model import Batch, Gone, Message, Stream, Wanted

GROUP = "clawmark.sources"


@dataclass(frozen=True, slots=True)
class Places:
    """Where a source may look, already read from settings: adapters never read the environment.

    transcripts   a state directory, an agent's directory or a `sessions` directory; None = the usual places
    openclaw      the OpenClaw state directory (normally ~/.openclaw)
    """

    transcripts: Path | None
    openclaw: Path


@runtime_checkable
class MessageSource(Protocol):
    """Reads one kind of message log. `name` is what settings, refs and `passage_refs.source` call it."""

    name: str

    @property
    def place(self) -> str:
        """Which log this is, exactly: a stream counts as deleted only at the place where it was last seen."""
        ...

    def check(self) -> None:
        """Raise SourceAbsent, SourceDrift, SourceCorrupt or SourceBusy when the log cannot be read now."""
        ...

    def describe(self) -> str:
        """Where it reads, for `status` and for messages to a person."""
        ...

    def streams(self) -> Iterator[Stream]:
        """Every stream that exists now, cheaply: no stream is opened. One that is no longer listed was deleted."""
        ...

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        """At most `limit` messages behind `cursor` (None = the beginning).

        Each message is delivered once behind its cursor; an entry that is not complete yet is left for the next call.
        A cursor that no longer fits its log (rotated, rewritten, restored) is answered by reading from the beginning:
        known refs make that a repetition without effect.
        """
        ...

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        """The wanted messages in the order asked, each with the text of its ref or Gone. SourceBusy raises."""
        ...


class SourceFactory(Protocol):
    """What an entry point names: called with Places, gives a source. Opens nothing yet."""

    def __call__(self, places: Places) -> MessageSource: ...


def installed() -> dict[str, SourceFactory]:
    """Adapters by name, as installed packages declare them. Loads their modules."""
    return {point.name: point.load() for point in entry_points(group=GROUP)}


def select(wanted: str, places: Places, factories: dict[str, SourceFactory] | None = None) -> list[MessageSource]:
    """The sources that `wanted` names ("auto" or a comma list), made but not checked.

    Raises UsageError for a name that no installed package provides.
    """
    factories = installed() if factories is None else factories
    names = [name.strip() for name in wanted.split(",") if name.strip()] or ["auto"]
    if names == ["auto"]:
        names = [name for name in AUTO if name in factories]
    unknown = [name for name in names if name not in factories]
    if unknown:
        known = ", ".join(["auto", *sorted(factories)])
        raise UsageError(
            f"CLAWMARK_SOURCE names {unknown[0]!r}, which is not installed; it can be one of {known} "
            "or a comma list of them. Nothing is read until it is corrected."
        )
    return [factories[name](places) for name in names]


AUTO = ("transcripts",)
"""What "auto" tries, in order of preference."""


def first_present(sources: Iterable[MessageSource]) -> MessageSource:
    """The first source whose log is there; other failures pass through.

    Raises SourceAbsent naming all that were tried, SourceEmpty when the place of one of them was there.
    """
    absences: list[SourceAbsent] = []
    for source in sources:
        try:
            source.check()
        except SourceAbsent as absent:
            absences.append(absent)
        else:
            return source
    reason = "; ".join(str(absent) for absent in absences) or "no message source is installed"
    empty = any(isinstance(absent, SourceEmpty) for absent in absences)
    raise SourceEmpty(reason) if empty else SourceAbsent(reason)
