"""How a message log is read: the protocol every adapter keeps, and how adapters are found.

Names no adapter: they register under the entry-point group `clawmark.sources`, ours and third parties' alike. A source
never writes to its log, owns the meaning of its cursors, and tells four failures apart: absent, drift, corrupt, busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, runtime_checkable

from clawmark.errors import SourceAbsent, SourceEmpty, SourceError, UsageError
from clawmark.model import Batch, Gone, Message, Stream, Wanted

GROUP = "clawmark.sources"


@dataclass(frozen=True, slots=True)
class Folders:
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
        """Every stream that exists now, cheaply: no stream is opened. One that is no longer listed was deleted.

        A part of the log that cannot be listed is raised, after everything that can be was yielded.
        """
        ...

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        """At most `limit` messages behind `cursor` (None = the beginning).

        Each message is delivered once behind its cursor; an entry that is not complete yet is left for the next call.
        A cursor that no longer fits its log (rotated, rewritten, restored) is answered by reading from the beginning:
        known refs make that a repetition without effect.
        """
        ...

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        """The wanted messages in the order asked, each with the text of its ref or Gone. SourceBusy raises.

        ref and text must be as they were read; origin, author, window and time may be what the entry alone tells.
        """
        ...


class SourceFactory(Protocol):
    """What an entry point names: called with Folders, gives a source. Opens nothing yet."""

    def __call__(self, folders: Folders) -> MessageSource: ...


def installed() -> dict[str, EntryPoint]:
    """Adapters by name, as installed packages declare them. Loads none."""
    return {point.name: point for point in entry_points(group=GROUP)}


def select(wanted: str, folders: Folders) -> list[MessageSource]:
    """The sources that `wanted` names ("auto" or a comma list), made but not checked. Loads only these.

    Raises UsageError for a name that no installed package provides, SourceError for an adapter that cannot be loaded.
    """
    points = installed()
    names = [name.strip() for name in wanted.split(",") if name.strip()] or ["auto"]
    if names == ["auto"]:
        names = [name for name in AUTO if name in points]
    unknown = [name for name in names if name not in points]
    if unknown:
        known = ", ".join(["auto", *sorted(points)])
        raise UsageError(
            f"CLAWMARK_SOURCE names {unknown[0]!r}, which is not installed; it can be one of {known} "
            "or a comma list of them. Nothing is read until it is corrected."
        )
    return [_made(points[name], folders) for name in names]


def _made(point: EntryPoint, folders: Folders) -> MessageSource:
    try:
        factory: SourceFactory = point.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise SourceError(f"the source {point.name} ({point.value}) cannot be loaded: {error}") from error
    return factory(folders)


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
