"""Whose memory a working directory belongs to: the repository it lies in, told by its remote, so that clones and
worktrees share one memory, else by its place.

Git itself is never run: a hook must not pay for a process, and a stranger's repository must not choose what runs. What
cannot be read counts as no repository, and whatever lies there holds nobody up: a pipe in the place of a file, a
megabyte in the place of a line.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 256 << 10
"""Of a file; a configuration of a thousand branches is half as long. What stands behind is not looked at."""

_LONGEST: Final = 4_096
"""Of a remote's URL: what is longer is none."""

_CREDENTIALS: Final = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]*://)[^/?#]*@")
_SEPARATORS: Final = re.compile(r"[/\\:]")


@dataclass(frozen=True, slots=True)
class Scope:
    """`name` is what a person calls it."""

    id: str
    name: str


def scope_of(folder: str) -> Scope:
    """The scope of what was said in `folder`, a path as the log has it."""
    if not os.path.isabs(folder) or not os.path.isdir(folder):
        return _named(f"root:{folder}", folder)
    repository = _repository(Path(folder))
    if repository is None:
        return _named(f"root:{folder}", folder)
    top, git = repository
    remote = _origin(_common(git))
    if remote:
        return _named(f"remote:{remote}", remote.rstrip("/").removesuffix(".git"))
    return _named(f"root:{top}", str(top))


def _named(identity: str, path: str) -> Scope:
    parts = [part for part in _SEPARATORS.split(path) if part]
    return Scope(hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:12], parts[-1] if parts else path)


# --- where git keeps things ------------------------------------------------------------------------------------------


def _repository(folder: Path) -> tuple[Path, Path] | None:
    """The top of the work tree `folder` lies in, and its git directory."""
    folder = Path(os.path.realpath(folder))
    for top in (folder, *folder.parents):
        git = top / ".git"
        if os.path.isfile(git):  # False where a Path would raise: no permission, a name too long
            linked = _read(git)
            if linked.startswith("gitdir:"):
                git = top / linked.removeprefix("gitdir:").strip()
        if os.path.isfile(git / "HEAD"):
            return top, git
    return None


def _common(git: Path) -> Path:
    """Where a worktree's configuration lies: with the repository it was made from."""
    common = _read(git / "commondir").strip()
    return git / common if common else git


def _read(path: Path) -> str:
    """The beginning of a file; "" for what is none. Nothing is waited for: not for a pipe's writer, nor a device."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return ""
            return os.read(handle, _MOST_BYTES).decode(errors="replace")
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return ""


def _origin(git: Path) -> str:
    """The URL of the remote `origin` without credentials, "" without one. Of several the first, as git fetches."""
    for section, key, value in _settings(_read(git / "config")):
        if section == ("remote", "origin") and key == "url" and value:
            if len(value) > _LONGEST:
                break
            return _CREDENTIALS.sub(r"\1", value)
    return ""


# --- git's configuration format --------------------------------------------------------------------------------------

_SECTION: Final = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY: Final = re.compile(r"\s*([A-Za-z][\w-]*)\s*(=?)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b"}


def _settings(text: str) -> Iterator[tuple[tuple[str, str], str, str]]:
    """Every (section, subsection), key and value; a line that is none is passed over."""
    section = ("", "")
    lines = iter(text.removeprefix("\ufeff").splitlines())
    for line in lines:
        if head := _SECTION.match(line):
            name, _, old = head[1].partition(".")
            section = (name.lower(), re.sub(r"\\(.)", r"\1", head[2]) if head[2] is not None else old.lower())
            line = line[head.end() :]
        if key := _KEY.match(line):
            yield section, key[1].lower(), _value(line[key.end() :], lines) if key[2] else ""


def _value(rest: str, lines: Iterator[str]) -> str:
    """A value as git reads it: quotes, escapes, comments, blanks around it, and lines that go on behind a backslash."""
    value: list[str] = []
    kept, quoted, place = 0, False, 0
    while place < len(rest):
        character = rest[place]
        place += 1
        if character == "\\":
            if place == len(rest):
                rest, place = next(lines, ""), 0
                continue
            value.append(_ESCAPES.get(rest[place], rest[place]))
            place += 1
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            break
        elif character.isspace() and not quoted:
            if value:
                value.append(character)
            continue
        else:
            value.append(character)
        kept = len(value)
    return "".join(value[:kept])
