"""A change to files of a host: looked at first, made whole, and taken back without touching what is somebody else's.

What always holds: nothing is written before `apply`; a file is replaced whole, with its mode, and only if it still says
what it said when the change was made; what a host or a person wrote is copied beside itself first, for its owner alone;
a file that is not plain JSON is refused and left as it is.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from clawmark.errors import UsageError
from clawmark.guard import secrets
from clawmark.store import files

MOST_BYTES = 16 << 20
"""No configuration is larger; what is, is something else."""

MOST_LINES = 100
"""Of a file of our own that a diff shows."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One file. before, after: None = it is not there. ours: nobody else writes it, so no copy is kept of it."""

    path: Path
    before: bytes | None
    after: bytes | None
    ours: bool = False

    def diff(self) -> str:
        """The lines that change and no others, since a configuration holds keys; what looks like one is masked.

        A comma that only moved, because something now stands behind a line, is no change. A long file of our own is
        named alone.
        """
        was, will = (os.devnull if text is None else str(self.path) for text in (self.before, self.after))
        lines = list(_differences(_lines(self.before), _lines(self.after)))
        if self.ours and len(lines) > MOST_LINES:
            lines = [f"({len(lines)} lines)"]
        return "\n".join([f"--- {was}", f"+++ {will}", *map(secrets.mask, lines)])


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that belong together. notes: what a person must know or do besides. folders: go when they are left empty."""

    edits: tuple[Edit, ...] = ()
    notes: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()

    @classmethod
    def of(cls, edits: Iterable[Edit], notes: Iterable[str] = (), folders: Iterable[Path] = ()) -> Self:
        """Only what changes anything."""
        return cls(tuple(edit for edit in edits if edit.before != edit.after), tuple(notes), tuple(folders))

    def __bool__(self) -> bool:
        return bool(self.edits)

    def diff(self) -> str:
        return "\n".join(edit.diff() for edit in self.edits)

    def apply(self, now: datetime) -> list[Path]:
        """Make it so; says where copies of what was there are. Raises UsageError when a file changed meanwhile, or
        cannot be written; files before it in the list are changed then, and another run does the rest."""
        for edit in self.edits:
            _require_unchanged(edit)
        copies = [copied for edit in self.edits if (copied := _make(edit, now)) is not None]
        for folder in sorted(self.folders, key=lambda path: len(path.parts), reverse=True):
            with contextlib.suppress(OSError):  # not empty, or never there
                folder.rmdir()
        return copies


def _lines(text: bytes | None) -> list[str]:
    return (text or b"").decode(errors="replace").splitlines()


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    was, will = ([line.rstrip(" \t,") for line in side] for side in (old, new))
    alike = difflib.SequenceMatcher(a=was, b=will, autojunk=False)
    for kind, i, j, k, n in alike.get_opcodes():
        if kind != "equal":
            yield from (f"-{line}" for line in old[i:j])
            yield from (f"+{line}" for line in new[k:n])


# --- reading ----------------------------------------------------------------------------------------------------------


def read(path: Path) -> bytes | None:
    """What a file says; None when there is none. Raises UsageError when it cannot be read."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} is no file; move it away, then try again.")
            content = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():
            raise UsageError(f"{path} is a link that leads nowhere; mend or remove it, then try again.") from None
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check its permissions, then try again.") from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path} is too large for a configuration; it was left as it is.")
    return content


def document(path: Path, content: bytes | None) -> dict[str, Any]:
    """The JSON object that a file holds; nothing, or no file, is an empty one.

    Raises UsageError for anything that could not be written back as it was: comments, trailing commas, a key twice.
    """
    if content is None or not content.strip():
        return {}
    try:
        value = json.loads(content.decode(), object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant)
    except RecursionError:
        raise _not_plain(path, "too deep") from None
    except json.JSONDecodeError as error:
        raise _not_plain(path, f"line {error.lineno}") from None
    except ValueError as error:
        raise _not_plain(path, "no UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)) from None
    if not isinstance(value, dict):
        raise _not_plain(path, "no object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key twice")
    return made


def _finite(spelled: str) -> float:
    number = float(spelled)
    if not math.isfinite(number):
        raise ValueError("a number that is too large")  # it would be written as `Infinity`
    return number


def _no_constant(_name: str) -> Any:
    raise ValueError("a number that JSON does not have")


def _not_plain(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} is not plain JSON ({why}), so it was left as it is; take comments and trailing commas out, then try again."
    )


def written(value: dict[str, Any], like: bytes | None) -> bytes:
    """A document as its file would spell it: its indentation, and its last line feed."""
    text = (like or b"").decode(errors="replace")
    indented = re.search(r"\n([ \t]+)\"", text)
    if indented is None and text.strip() not in ("", "{}") and "\n" not in text.strip():
        made = json.dumps(value, ensure_ascii=False)
    else:
        made = json.dumps(value, ensure_ascii=False, indent=indented[1] if indented else 2)
    ends = "\n" if not text or text.endswith("\n") else ""
    return (made + ends).encode()


def edited(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Edit:
    """One JSON file, changed by `change`, which gets a document and gives another. What stays the same stays as spelled;
    a file that is left with nothing is not removed, for it may be somebody's."""
    before = read(path)
    old = document(path, before)
    new = change(copy.deepcopy(old))
    if new == old:
        return Edit(path, before, before)
    return Edit(path, before, written(new, before))


# --- entries of a document --------------------------------------------------------------------------------------------


def put(value: dict[str, Any], names: Sequence[str], entry: Any) -> dict[str, Any]:
    """`value` with `entry` at the place that `names` lead to. Raises UsageError when something else is in the way."""
    *folders, last = names
    place = value
    for depth, name in enumerate(folders, 1):
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise UsageError(f"{'.'.join(names[:depth])} is no object; correct it by hand, then try again.")
    place[last] = entry
    return value


def taken(value: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """`value` without what `names` lead to, and without the objects that it leaves empty."""
    name, *rest = names
    inner = value.get(name)
    if not rest:
        value.pop(name, None)
    elif isinstance(inner, dict) and rest[0] in inner:
        taken(inner, rest)
        if not inner:
            del value[name]
    return value


def listed(value: dict[str, Any], names: Sequence[str], item: Any) -> dict[str, Any]:
    """`value` with `item` once in the list that `names` lead to."""
    items = at(value, names)
    if items is not None and not isinstance(items, list):
        raise UsageError(f"{'.'.join(names)} is no list; correct it by hand, then try again.")
    return value if items is not None and item in items else put(value, names, [*(items or []), item])


def unlisted(value: dict[str, Any], names: Sequence[str], ours: Callable[[Any], bool]) -> dict[str, Any]:
    """`value` without those items of a list that are ours, and without the list where nothing else stood in it."""
    items = at(value, names)
    if not isinstance(items, list) or not any(ours(item) for item in items):
        return value
    left = [item for item in items if not ours(item)]
    return put(value, names, left) if left else taken(value, names)


def at(value: Any, names: Sequence[str]) -> Any:
    """What stands at a place; None where nothing does."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# --- writing ----------------------------------------------------------------------------------------------------------


def _require_unchanged(edit: Edit) -> None:
    if read(edit.path) != edit.before:
        raise UsageError(f"{edit.path} was changed meanwhile, so it was left as it is; try again.")


def _make(edit: Edit, now: datetime) -> Path | None:
    """Write or remove one file; says where its copy is. A link of the person's own is followed: the file behind changes."""
    path = Path(os.path.realpath(edit.path))
    try:
        copied = None if edit.before is None or edit.ours else _copied(path, edit.before, now)
        if edit.after is None:
            path.unlink(missing_ok=True)
            return copied
        files.make_folder(path.parent)
        _require_unchanged(edit)
        _replace(path, edit.after)
    except OSError as error:
        raise UsageError(
            f"{edit.path} cannot be written ({error.strerror}); check its permissions and the disk, then try again."
        ) from error
    return copied


def _copied(path: Path, content: bytes, now: datetime) -> Path:
    return files.written(files.dated(path, "clawmark", now), content)


def _replace(path: Path, content: bytes) -> None:
    try:
        old = path.stat()
        mode = stat.S_IMODE(old.st_mode)
    except FileNotFoundError:
        old, mode = None, files.PRIVATE_FILE
    draft = path.with_name(f".{path.name}.clawmark-{os.getpid()}")
    draft.unlink(missing_ok=True)  # of a process that was killed and had our number
    try:
        with open(files.create(draft), "wb") as file:
            file.write(content)
            file.flush()
            if old is not None and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)  # what another user's host reads stays theirs
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    files.sync_folder(path.parent)
