"""Claude Code's transcripts: <root>/projects/<project>/<session>.jsonl, one JSON line an event.

The host removes its transcripts after some weeks, so what it held is kept by the memory, and a transcript that is gone
earlier was deleted by the person. What always holds: nothing of the host's is written or kept open; a stream's name and
a ref lead to no file outside the projects folder.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from stat import S_ISREG
from typing import Final

from clawmark.errors import SourceAbsent, SourceEmpty, SourceError
from clawmark.hosts.claude_code.project import Scope, scope_of
from clawmark.model import Batch, Fate, Gone, Message, Stream, Wanted
from clawmark.source import Folders
from clawmark_sources.claude_code.branches import Branches
from clawmark_sources.claude_code.transcript import (
    Position,
    Reading,
    Transcript,
    holds,
    needles_of,
    opened,
    resumed,
    tree_of,
)
from clawmark_sources.jsonline import Unreadable, parse, whole

SUFFIX: Final = ".jsonl"
HELPER: Final = "agent-"
DAYS: Final = 30
"""How long the host keeps a transcript where its settings do not say."""

_SUBAGENTS: Final = "subagents"
_FIRST_BYTES: Final = 256 << 10
_FIRST_FILES: Final = 4
_SETTINGS_BYTES: Final = 4 << 20
_TREES: Final = 4


_Listed = tuple[int, int, int, Stream]
"""When a file was written, its size and its inode, and the stream it was then."""


class ClaudeCodeSource:
    """Reads every transcript below Claude Code's folder."""

    name = "claude-code"
    host = "claude-code"
    expires = True

    def __init__(self, folders: Folders) -> None:
        self._root = None if folders.claude is None else folders.claude.absolute()
        self._helpers = folders.subagents
        self._scopes: dict[str, Scope] = {}
        self._known: dict[str, dict[str, _Listed]] = {}
        self._trees: dict[tuple[str, int, int, int], Branches] = {}

    @property
    def place(self) -> str:
        return "" if self._root is None else str(self._root)

    def describe(self) -> str:
        return "no Claude Code folder" if self._root is None else f"Claude Code's transcripts in {self._projects()}"

    def check(self) -> None:
        projects = self._projects()
        for folder in _folders(projects):
            try:
                if any(True for _ in self._files(Path(folder.path))):
                    return
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unreadable(folder.path, error) from error
        raise SourceEmpty(f"{projects} holds no transcript yet; Claude Code writes one with each session")

    def streams(self) -> Iterator[Stream]:
        failures: list[SourceError] = []
        for folder in _folders(self._projects()):
            try:
                yield from self._listed(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                failures.append(_unreadable(folder.path, error))
        if failures:  # not "gone": what is not listed is erased
            raise failures[0]

    def _listed(self, folder: os.DirEntry[str]) -> list[Stream]:
        """The streams of one project. One whose file did not change is the same object as before: a poll of thousands
        of files must cost hardly more than asking the disk for them."""
        known = self._known.get(folder.name, {})
        listed: dict[str, _Listed] = {}
        changed: list[tuple[str, os.stat_result]] = []
        with _directory(folder.path) as fd:  # so that the way to it is not walked again for each of thousands
            for name in self._names(fd, folder.path):
                try:
                    now = os.stat(name, dir_fd=fd)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    if error.errno != errno.ELOOP:  # a link to itself is no file
                        raise
                    continue
                before = known.get(name)
                if before and now.st_mtime_ns == before[0] and now.st_size == before[1] and now.st_ino == before[2]:
                    listed[name] = before
                elif S_ISREG(now.st_mode) and _is_named(name):
                    changed.append((name, now))
        if changed:
            scope = self._scope(folder.name, sorted(os.path.join(folder.path, name) for name, _ in changed))
            for name, now in changed:
                stream = _stream(_stream_name(self._projects(), os.path.join(folder.path, name)), now, scope)
                listed[name] = (now.st_mtime_ns, now.st_size, now.st_ino, stream)
        elif len(listed) == len(known):
            return [kept[3] for kept in known.values()]
        self._known[folder.name] = {name: listed[name] for name in sorted(listed)}
        return [kept[3] for kept in self._known[folder.name].values()]

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        transcript = self._transcript(stream.name)
        nothing = Batch(messages=(), cursor=cursor or Position(stream.scope).dump())
        if transcript is None:
            return nothing
        try:
            with opened(transcript.path) as (fd, stat):
                position = resumed(fd, stat.st_size, cursor, stream.scope)
                reading = Reading(fd, stat.st_size, transcript, lambda: self._tree(fd, stat, transcript))
                return reading.batch(position, max(1, limit))
        except (FileNotFoundError, NotADirectoryError):
            return nothing
        except OSError as error:
            raise _unreadable(transcript.path, error) from error

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        by_stream: dict[str, list[Wanted]] = {}
        for want in wanted:
            by_stream.setdefault(want.stream, []).append(want)
        found: dict[tuple[str, str], Message] = {}
        for stream, wants in by_stream.items():
            for message in self._find(stream, wants):
                found[stream, message.ref] = message
        return [found.get((want.stream, want.ref)) or Gone(want.ref) for want in wanted]

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        transcript = self._transcript(stream.name)
        if transcript is None:
            return set()
        try:
            with opened(transcript.path) as (fd, stat):
                position = resumed(fd, stat.st_size, cursor, stream.scope)
                if position.offset and not position.roots:
                    return set()  # no line up to here led away from another one
                tree = self._tree(fd, stat, transcript)
        except (FileNotFoundError, NotADirectoryError):
            return set()
        except OSError as error:
            raise _unreadable(transcript.path, error) from error
        left = tree.left.intersection(refs)
        return set(left - self._said_elsewhere(transcript, left)) if left else set()

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        try:
            projects = self._projects()
            folders = _folders(projects)
        except SourceError:
            return "lost"
        if self._transcript(stream.name) is not None:  # it is there, so it is no longer wanted, or will be listed again
            return "lost" if self._helpers or not _is_helper(stream.name) else "gone"
        below = stream.name.partition("/")[2]
        if below and any(_is_there(Path(folder.path, f"{below}{SUFFIX}")) for folder in folders):
            return "gone"  # the project has another folder now
        if stream.touched is None:
            return "lost"
        return "expired" if now - stream.touched >= timedelta(days=self._days()) else "deleted"

    # --- folders and files -------------------------------------------------------------------------------------------

    def _projects(self) -> Path:
        if self._root is None:
            raise SourceAbsent("there is no Claude Code folder")
        return self._root / "projects"

    def _files(self, folder: Path) -> Iterator[tuple[str, os.stat_result]]:
        """The transcripts of one project, in no order; those of its sub-agents where they are wanted."""
        with _directory(str(folder)) as fd:
            for name in self._names(fd, str(folder)):
                try:
                    now = os.stat(name, dir_fd=fd)
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except OSError as error:
                    if error.errno != errno.ELOOP:
                        raise
                    continue
                if S_ISREG(now.st_mode) and _is_named(name):
                    yield os.path.join(folder, name), now

    def _names(self, fd: int, folder: str) -> list[str]:
        """What is called like a transcript, seen from the project's folder."""
        names = os.listdir(fd)
        if not self._helpers:
            return [name for name in names if name[-6:] == SUFFIX and name[:6] != HELPER]
        found = [name for name in names if name.endswith(SUFFIX)]
        return found + [name for session in names if _is_plain(session) for name in _subagents(folder, session)]

    def _transcript(self, stream: str) -> Transcript | None:
        """The file of a stream's name, which may be anything: it must name one below the projects folder."""
        parts = stream.split("/")
        inside = len(parts) == 2 or (len(parts) == 4 and parts[2] == _SUBAGENTS)
        if self._root is None or not inside or not all(_is_plain(part) for part in parts):
            return None
        path = self._root / "projects" / f"{stream}{SUFFIX}"
        if not _is_there(path):
            return None
        return Transcript(path, stream, parts[-1], _is_helper(stream), self._helpers)

    def _scope(self, project: str, paths: Sequence[str]) -> Scope:
        """Looked up once: a project's folder is called after the directory it belongs to."""
        if project not in self._scopes:
            folder = next(filter(None, map(_first_folder, paths[:_FIRST_FILES])), "")
            if not folder:
                return scope_of(project)
            self._scopes[project] = scope_of(folder)
        return self._scopes[project]

    def _days(self) -> int:
        """How long the host keeps a transcript."""
        assert self._root is not None
        try:
            with open(self._root / "settings.json", "rb") as file:
                value = json.loads(file.read(_SETTINGS_BYTES).decode("utf-8-sig"))
            days = value["cleanupPeriodDays"]
        except (OSError, ValueError, RecursionError, TypeError, KeyError):
            return DAYS
        return days if type(days) is int and 1 <= days <= 100_000 else DAYS

    # --- finding -----------------------------------------------------------------------------------------------------

    def _find(self, stream: str, wants: Sequence[Wanted]) -> Iterator[Message]:
        """Those of the wanted messages of one stream that stand in its transcript: at their hints, then anywhere in it.

        Copies in other transcripts, of a session that was resumed or forked, are other streams' to give: a prompt waits.
        Whose they are, the passage knows.
        """
        missing = {want.ref for want in wants if want.ref}
        own = self._transcript(stream)
        if own is None:
            return
        try:
            with opened(own.path) as (fd, stat):
                reading = Reading(fd, stat.st_size, own, Branches)
                for want in wants:
                    message = reading.at(want.location, Position(""))
                    if message is not None and message.ref == want.ref and want.ref in missing:
                        missing.discard(want.ref)
                        yield message
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unreadable(own.path, error) from error
        if missing:
            yield from self._search(own, missing, "").values()

    def _search(self, transcript: Transcript, refs: set[str], scope: str) -> dict[str, Message]:
        try:
            with opened(transcript.path) as (fd, stat):
                needles = needles_of(refs)
                if needles and not holds(fd, stat.st_size, frozenset(needles)):
                    return {}
                return Reading(fd, stat.st_size, transcript, Branches).search(refs, scope)
        except OSError:  # of a copy nothing is known then, and the message may still be elsewhere
            return {}

    def _said_elsewhere(self, own: Transcript, refs: Set[str]) -> set[str]:
        """Those of `refs` that another transcript of the project holds, and nobody left behind there."""
        said: set[str] = set()
        for transcript in self._others(own.stream):
            try:
                with opened(transcript.path) as (fd, stat):
                    needles = needles_of(refs)
                    if not needles or holds(fd, stat.st_size, frozenset(needles)):
                        tree = self._tree(fd, stat, transcript)
                        said |= (tree.lines - tree.left) & refs
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unreadable(transcript.path, error) from error
        return said

    def _others(self, stream: str) -> Iterator[Transcript]:
        """The other transcripts of a stream's project, newest first."""
        project = stream.partition("/")[0]
        if self._root is None or not _is_plain(project):
            return
        folder = self._root / "projects" / project
        listed: list[tuple[int, int, str]] = []
        try:
            listed += [(now.st_mtime_ns, now.st_size, path) for path, now in self._files(folder)]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _unreadable(folder, error) from error
        for _, _, path in sorted(listed, reverse=True):
            other = self._transcript(_stream_name(self._root / "projects", path))
            if other is not None and other.stream != stream:
                yield other

    def _tree(self, fd: int, stat: os.stat_result, transcript: Transcript) -> Branches:
        """A file's branches, kept for the latest files: every batch of a long one asks for them."""
        key = (transcript.stream, stat.st_size, stat.st_mtime_ns, stat.st_ino)
        tree = self._trees.get(key)
        if tree is None:
            tree = self._trees[key] = tree_of(fd, stat.st_size, transcript)
            while len(self._trees) > _TREES:
                self._trees.pop(next(iter(self._trees)), None)
        return tree


def _stream(name: str, stat: os.stat_result, scope: Scope) -> Stream:
    return Stream(
        name=name,
        mark=f"{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ino}",
        scope=scope.id,
        session=name.rpartition("/")[2],
        touched=datetime.fromtimestamp(stat.st_mtime, UTC),
        scope_name=scope.name,
    )


# --- the file system -------------------------------------------------------------------------------------------------


def _folders(projects: Path) -> list[os.DirEntry[str]]:
    """The projects' folders."""
    try:
        with os.scandir(projects) as entries:
            return sorted((e for e in entries if _is_plain(e.name) and _is(e.is_dir)), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        raise SourceAbsent(f"{projects} is not there; Claude Code writes it with its first session") from None
    except OSError as error:
        raise _unreadable(projects, error) from error


@contextmanager
def _directory(folder: str) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def _subagents(folder: str, session: str) -> list[str]:
    """The transcripts of a session's sub-agents, seen from the project's folder."""
    try:
        names = os.listdir(os.path.join(folder, session, _SUBAGENTS))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [
        os.path.join(session, _SUBAGENTS, name) for name in names if name.startswith(HELPER) and name.endswith(SUFFIX)
    ]


def _is(kind: Callable[[], bool]) -> bool:
    """What a directory's entry is; a link that leads nowhere or to itself is nothing."""
    try:
        return kind()
    except OSError:
        return False


def _is_there(path: Path) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:
        return False


def _is_helper(stream: str) -> bool:
    return stream.rpartition("/")[2].startswith(HELPER)


def _is_plain(name: str) -> bool:
    """Whether a name is one step down the tree, in text that a database can hold."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name and name == whole(name)


def _is_named(name: str) -> bool:
    return all(map(_is_plain, name.split("/")))


def _stream_name(projects: Path, path: str) -> str:
    return path[len(str(projects)) + 1 : -len(SUFFIX)]


def _first_folder(path: str) -> str:
    """The first working directory that a transcript names near its beginning, "" where it names none."""
    try:
        with opened(Path(path)) as (fd, _):
            lines = os.pread(fd, _FIRST_BYTES, 0).split(b"\n")[:-1]
    except OSError:
        return ""
    for line in lines:
        try:
            value = parse(line)
        except Unreadable:
            continue
        folder = value.get("cwd") if isinstance(value, dict) else None
        if isinstance(folder, str) and folder and "\0" not in folder:
            return whole(folder)
    return ""


def _unreadable(path: Path | str, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be read ({error.strerror}); check its permissions, then try again")
