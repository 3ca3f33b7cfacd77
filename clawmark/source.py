"""How a message log is read: the protocol every adapter keeps, and how adapters are found.

Names no adapter: they register under the entry-point group `clawmark.sources`, ours and third parties' alike. A source
never writes to its log, owns the meaning of its cursors, and tells four failures apart: absent, drift, corrupt, busy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from clawmark.errors import SourceAbsent, SourceDrift, SourceEmpty, SourceError, UsageError
from clawmark.model import Batch, Fate, Gone, Message, Stream, Wanted

GROUP = "clawmark.sources"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a source may look, already read from settings: adapters never read the environment.

    transcripts   a state directory, an agent's directory or a `sessions` directory; None = the usual places
    openclaw      the OpenClaw state directory (normally ~/.openclaw)
    lcm           Lossless Claw's database; None = lcm.db in the OpenClaw state directory
    claude        Claude Code's directory (normally ~/.claude); None = there is none
    subagents     whether what an agent's own helpers said is read too, where a source can tell
    """

    transcripts: Path | None
    openclaw: Path
    lcm: Path | None = None
    claude: Path | None = None
    subagents: bool = False


@runtime_checkable
class MessageSource(Protocol):
    """Reads one kind of message log. `name` is what settings, refs and `passage_refs.source` call it.

    host      the program whose log it is; two logs of one host hold the same sessions
    expires   True when the host itself removes old logs: masked text is then kept, so that it can still be recalled
    """

    name: str
    host: str
    expires: bool

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
        """Every stream that exists now, cheaply: no stream is opened. `fate` says what became of one no longer listed.

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

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        """Those of `refs`, read from this stream up to `cursor`, that the host has taken back since.

        That is what the person deleted or edited away; not what was merely rotated, cut off or moved. Asked when
        `Stream.losses` changed, and behind a batch that `took_back` or restarted.
        """
        ...

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        """What became of a stream that is no longer listed; as it was listed last and read up to `cursor`."""
        ...


class SourceFactory(Protocol):
    """What an entry point names: called with Folders, gives a source. Opens nothing yet."""

    def __call__(self, folders: Folders) -> MessageSource: ...


def installed() -> dict[str, EntryPoint]:
    """Adapters by name, as installed packages declare them. Loads none."""
    return {point.name: point for point in entry_points(group=GROUP)}


Alternatives = Sequence[MessageSource]
"""Sources of which the first that can be read is read; the others stand by."""


def named(wanted: str) -> list[list[str]]:
    """The names that `wanted` ("auto" or a comma list) stands for, alternatives together. Loads nothing.

    Every name of a list is read; "auto" stands for alternatives. Raises UsageError for a name that no installed package
    provides.
    """
    points = installed()
    names = list(dict.fromkeys(name.strip() for name in wanted.split(",") if name.strip())) or [ANY]
    unknown = [name for name in names if name != ANY and name not in points]
    if unknown:
        known = ", ".join([ANY, *sorted(points)])
        raise UsageError(
            f"CLAWMARK_SOURCE names {unknown[0]!r}, which is not installed; it can be one of {known} "
            "or a comma list of them. Nothing is read until it is corrected."
        )
    any_of = [name for name in PREFERENCE if name in points and name not in names]
    groups = [any_of if name == ANY else [name] for name in names]
    return [group for group in groups if group]


def select(wanted: str, folders: Folders) -> list[Alternatives]:
    """The sources that `wanted` names, made but not checked. Loads only these. Raises as `named` and `made` do."""
    return [[made(name, folders) for name in group] for group in named(wanted)]


def made(name: str, folders: Folders) -> MessageSource:
    """One installed source. Raises SourceError for an adapter that cannot be loaded."""
    return _made(installed()[name], folders)


def _made(point: EntryPoint, folders: Folders) -> MessageSource:
    try:
        factory: SourceFactory = point.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise SourceError(f"the source {point.name} ({point.value}) cannot be loaded: {error}") from error
    try:
        return Guarded(factory(folders))
    except Exception as error:
        raise _at_fault(point.name, "its construction", error) from error


def _at_fault(name: str, where: str, error: Exception) -> SourceError:
    """What an adapter raised that is none of the four failures; never with its words, which may be a message's."""
    return SourceError(f"the source {name} failed in {where} ({type(error).__name__}); its adapter is at fault.")


class Guarded:
    """An adapter, third parties' as well, whose own faults are SourceErrors: one that is broken costs itself alone.

    This is an edge to code that is not ours, so everything that it raises is caught here.
    """

    def __init__(self, inner: MessageSource) -> None:
        self.inner = inner
        self.name = inner.name
        self.host = inner.host
        self.expires = inner.expires

    @property
    def place(self) -> str:
        return self._asked("place", lambda: self.inner.place)

    def check(self) -> None:
        self._asked("check", self.inner.check)

    def describe(self) -> str:
        return self._asked("describe", self.inner.describe)

    def streams(self) -> Iterator[Stream]:
        try:
            yield from self.inner.streams()
        except SourceError:
            raise
        except Exception as error:
            raise _at_fault(self.name, "streams", error) from error

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        return self._asked("read", lambda: self.inner.read(stream, cursor, limit))

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        return self._asked("get", lambda: self.inner.get(wanted))

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        return self._asked("withdrawn", lambda: self.inner.withdrawn(stream, cursor, refs))

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        return self._asked("fate", lambda: self.inner.fate(stream, cursor, now))

    def old_ref(self, stream: str, location: str) -> str | None:
        """What an earlier clawmark called a message, where the adapter knows that."""
        named = getattr(self.inner, "old_ref", None)
        return None if named is None else self._asked("old_ref", lambda: named(stream, location))

    def _asked(self, where: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except SourceError:
            raise
        except Exception as error:
            raise _at_fault(self.name, where, error) from error


ANY = "auto"
PREFERENCE = ("lcm", "transcripts", "claude-code")
"""What "auto" reads the first of."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """One group's choice, after each of its sources was asked whether it can be read now.

    source        the one to read; None = none
    passed_over   what was preferred to it and cannot be read (absent, drift), and why
    standing_by   what can be read too: what comes behind it, and what is preferred and holds nothing
    failure       why nothing is read: the log is damaged or held, nobody knows its form, or none is there
    failing       the name of the source whose failure that is
    """

    source: MessageSource | None
    passed_over: Sequence[tuple[MessageSource, SourceError]] = ()
    standing_by: Sequence[MessageSource] = ()
    failure: SourceError | None = None
    failing: str = ""


def choose(group: Alternatives) -> Chosen:
    """The first of a group that can be read and holds something.

    One that is damaged or held keeps the group waiting: another log would be taken for its continuation. One that holds
    nothing is read where nothing better is there, since it may have been emptied.
    """
    passed_over: list[tuple[MessageSource, SourceError]] = []
    without: list[MessageSource] = []
    empty: tuple[MessageSource, SourceError] | None = None
    for place, source in enumerate(group):
        behind = group[place + 1 :]
        try:
            source.check()
            if behind and next(iter(source.streams()), None) is None:
                without.append(source)
                continue
        except SourceEmpty as nothing:
            empty = empty or (source, nothing)
            passed_over.append((source, nothing))
        except (SourceAbsent, SourceDrift) as unread:
            passed_over.append((source, unread))
        except SourceError as failure:
            return Chosen(None, passed_over, failure=failure, failing=source.name)
        else:
            return Chosen(source, passed_over, [*without, *(other for other in behind if _is_there(other))])
    if without:
        return Chosen(without[0], passed_over, without[1:])
    for source, why in passed_over:
        if not isinstance(why, SourceAbsent):
            return Chosen(None, passed_over, failure=why, failing=source.name)
    reason = "; ".join(str(why) for _, why in passed_over) or "no message source is installed"
    if empty is not None:
        return Chosen(empty[0], passed_over, failure=SourceEmpty(reason))
    return Chosen(None, passed_over, failure=SourceAbsent(reason))


def _is_there(source: MessageSource) -> bool:
    try:
        source.check()
    except SourceError:
        return False
    return True
