"""Facts as Claude Code's own memory files: one typed Markdown file a fact, with where it is from, and an index on request.

What always holds: a file that is not ours, or that somebody edited, is never written to and never removed, ours gets
another name; no value leaves its line, neither in the front matter nor on the page nor in the index; a fact that is gone
takes its file along. A file of ours that somebody deleted says that they want its fact gone: they are asked, and nothing
is forgotten or written anew before they have answered.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets as entropy
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from clawmark import keys
from clawmark.errors import UsageError
from clawmark.guard import markers, secrets
from clawmark.memory import Memory
from clawmark.model import SHARED, Event, Excerpt, Fact, Why
from clawmark.store import files
from clawmark.text import cut

MANIFEST, INDEX = ".clawmark.json", "MEMORY.md"
VERSION: Final = 1
MOST_BYTES: Final = 16 << 20
"""No page, index or manifest is larger; what is, is something else."""

TYPES: Final = {"user": "user", "pref": "feedback", "lesson": "feedback", "project": "project", "ref": "reference"}
"""The beginning of a key → the type of memory that Claude Code knows."""

SLUG_LENGTH, NAME_LENGTH, DESCRIPTION_LENGTH, HOOK_LENGTH, QUOTE_LENGTH = 60, 60, 150, 100, 200

_NAME: Final = re.compile(rf"(?:{'|'.join(sorted(set(TYPES.values())))})_[a-z0-9_]{{1,80}}\.md")
_DRAFT: Final = re.compile(r"\..+\.clawmark-[0-9a-f]{8}")
_BEGIN, _END = "<!-- clawmark: what stands between these two lines is replaced -->", "<!-- clawmark: end -->"
_STATING: Final = frozenset(("create", "update", "reinforce", "accept"))
_WORDS: Final = ("type", "source", "writer")
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_EMPTY = ""
"""The checksum of a file that was left out, because the person deleted it and kept its fact."""


# --- where ------------------------------------------------------------------------------------------------------------

LONGEST_PROJECT: Final = 200
"""Above so many characters Claude Code cuts a project's name and adds a hash of its own."""


def encoded(folder: str) -> str:
    """A folder as Claude Code names what it keeps of it: every character that is no ASCII letter or digit is `-`, once for
    each of its UTF-16 units."""
    return "".join(
        char if char.isascii() and char.isalnum() else "-" * (2 if ord(char) > 0xFFFF else 1) for char in folder
    )


def folder_of_project(config: Path, folder: Path) -> Path:
    """Claude Code's memory folder of the project that `folder` lies in: the one that is there, of the folders up to the top
    of the repository, else that of the top. Raises UsageError where its name cannot be known."""
    real = Path(os.path.realpath(folder))
    top = next((one for one in (real, *real.parents) if os.path.lexists(one / ".git")), real)
    within = [one for one in (real, *real.parents) if one == top or top in one.parents]
    named = [_of_project(config / "projects", one) / "memory" for one in within]
    return next((place for place in named if place.is_dir()), named[-1])


def _of_project(projects: Path, folder: Path) -> Path:
    name = encoded(str(folder))
    if len(name) <= LONGEST_PROJECT:
        return projects / name
    head = name[:LONGEST_PROJECT] + "-"
    try:
        found = [one for one in os.listdir(projects) if one.startswith(head)]
    except OSError:
        found = []
    if len(found) != 1:
        raise UsageError(f"Claude Code's name for {folder} is too long to be known; name the memory folder itself.")
    return projects / found[0]


# --- a fact as a page. Pure -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """A fact as it is to stand in a file. content_hash: of what it says, whatever is known of its origin."""

    fact: Fact
    text: str
    content_hash: str


def page(fact: Fact, why: Why | None) -> Page:
    """The Markdown file of a fact: front matter, what it says, and for feedback and projects why and how to apply it."""
    title, value, kind = title_of(fact.key), _plain(fact.value), kind_of(fact.key)
    said = [] if why is None else sorted((one for one in why.evidence if one.at), key=_when)
    content_hash = _content_hash(fact)
    front = {
        "name": title,
        "description": _cut(f"{title}: {value}", DESCRIPTION_LENGTH),
        "type": kind,
        "source": "clawmark",
        "key": fact.key,
        "scope": _plain(fact.scope),
        "writer": fact.source,
        **_provenance(said, () if why is None else why.unread),
        "classifier_confidence": round(_claimed(fact, () if why is None else why.history), 3),
        "promoted_at": fact.created_at.astimezone(UTC).isoformat(),
        "content_hash": content_hash,
    }
    lines = [
        "---",
        *(f"{name}: {_written(name, told)}" for name, told in front.items()),
        "---",
        "",
        f"{title}: {_inline(value)}",
    ]
    if kind in ("feedback", "project"):
        lines += ["", f"**Why:** {_reason(fact, said)}", "", f"**How to apply:** {_application(fact, value)}"]
    return Page(fact, "\n".join(lines) + "\n", content_hash)


def kind_of(key: str) -> str:
    return TYPES.get(keys.prefix(key), "reference")


def title_of(key: str) -> str:
    """A key as a heading: `pref.editor_theme` is `Editor theme`."""
    words = keys.read(key)
    return cut(words[:1].upper() + words[1:], NAME_LENGTH)


def file_name(key: str, number: int = 1) -> str:
    """`feedback_editor.md`, and `feedback_editor_2.md` where that is taken. No key leads out of its folder."""
    slug = re.sub(r"[^a-z0-9]+", "_", key.partition(".")[2].lower()).strip("_")[:SLUG_LENGTH].strip("_") or "fact"
    return f"{kind_of(key)}_{slug}{'' if number == 1 else f'_{number}'}.md"


def _content_hash(fact: Fact) -> str:
    return hashlib.sha256("\0".join((fact.scope, fact.key, fact.value)).encode()).hexdigest()[:12]


def _provenance(said: Sequence[Excerpt], unread: Sequence[datetime]) -> dict[str, Any]:
    """Where it is from, as far as that is known: the newest session, the messages' names, and when they were said."""
    times = sorted([*map(_when, said), *unread])
    known: dict[str, Any] = {}
    if said:
        known["source_session_id"] = _plain(said[-1].conversation)
        known["source_artifact_ids"] = [_plain(one.ref) for one in said]
    if times:
        known["source_dates"] = list(dict.fromkeys(at.date().isoformat() for at in times))
    return known


def _claimed(fact: Fact, history: Sequence[Event]) -> float:
    """How sure whoever claimed it was, also where the person took it on; of what they stated since, how sure the fact is."""
    said = next((one for one in reversed(history) if one.event_type in _STATING and one.source == fact.source), None)
    if said is None or said.event_type != "accept":
        return fact.confidence
    try:
        return float(json.loads(said.detail or "")["confidence"])
    except (ValueError, TypeError, KeyError):
        return fact.confidence  # of an earlier version


def _when(one: Excerpt) -> datetime:
    return one.at or datetime.min.replace(tzinfo=UTC)


def _reason(fact: Fact, said: Sequence[Excerpt]) -> str:
    """Who said it, and when; no reason that nobody gave."""
    if said:
        one = said[-1]
        who = "the agent" if one.role == "assistant" else _inline(_plain(one.author)) if one.author else "the user"
        return f'{who} said on {_when(one).date()}: "{_inline(_cut(_plain(one.excerpt), QUOTE_LENGTH))}"'
    who = {"user": "the user stated it", "agent": "an agent noted it"}.get(
        fact.source, "it was noted from what was said"
    )
    return f"{who} on {fact.observed_at.astimezone(UTC).date()}."


def _application(fact: Fact, value: str) -> str:
    what = {"pref": "a choice of this kind comes up", "lesson": "the same situation comes up again"}
    where = what.get(keys.prefix(fact.key), "work on this project touches it")
    return f'go by "{_inline(_cut(value, QUOTE_LENGTH))}" where {where}, unless the user says otherwise.'


def _plain(text: str) -> str:
    """On one line, with nothing that is invisible, reads like a marker, or is a secret."""
    return markers.defuse(secrets.mask(text))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else cut(text, limit - 1).rstrip() + "…"


def _inline(text: str) -> str:
    """Without HTML, which could hide what follows."""
    return _TAG.sub(r"\\<", text)


def _written(name: str, value: Any) -> str:
    """As JSON, which YAML reads too; words of our own as they are, as Claude Code writes them."""
    return value if name in _WORDS else json.dumps(value, ensure_ascii=False)


# --- the folder -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that was written here: what of, and how it was; sha256 "" = left out, since the person deleted it and kept
    the fact."""

    scope: str
    key: str
    content_hash: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the files of a folder, by name; of facts that were forgotten the keys.

    kept      edited by hand, so they are the person's now
    deleted   by hand; nobody could be asked about their facts, which are as they were
    """

    folder: str
    written: Sequence[str] = ()
    unchanged: int = 0
    removed: Sequence[str] = ()
    kept: Sequence[str] = ()
    deleted: Sequence[str] = ()
    forgotten: Sequence[str] = ()
    notes: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        listed = ("written", "removed", "kept", "deleted", "forgotten", "notes")
        return {"folder": self.folder, "unchanged": self.unchanged} | {
            name: list(getattr(self, name)) for name in listed
        }


@dataclass(frozen=True, slots=True)
class Question:
    """Facts whose files somebody deleted. everything: all that was ever written here is gone, so that the folder may just
    have been emptied."""

    facts: Sequence[Fact]
    everything: bool


Answer = Literal["forget", "keep", "later"]


def export(
    memory: Memory,
    folder: Path,
    *,
    ask: Callable[[Question], Answer],
    scope: str | None = None,
    index: bool = False,
) -> Report:
    """Bring a folder up to date with the facts that are believed now: of all scopes, or of one and what is shared.

    Raises UsageError where the folder, its manifest or its index cannot be written to; nothing was changed then.
    """
    try:
        files.make_folder(folder)
        with _alone(folder):
            return _Folder(memory, folder, ask).update(scope, index=index)
    except OSError as error:
        named = error.filename if isinstance(error.filename, str) else folder
        raise UsageError(
            f"{named} cannot be written ({error.strerror}); check the folder and its permissions."
        ) from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One export into a folder at a time."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"another export writes to {folder}; try again.") from None
    finally:
        os.close(handle)


@dataclass
class _Done:
    """What a run has done so far."""

    written: list[str] = field(default_factory=list)
    unchanged: int = 0
    removed: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Folder:
    """One run over a folder. `entries` is what the manifest will say: file → entry."""

    def __init__(self, memory: Memory, folder: Path, ask: Callable[[Question], Answer]) -> None:
        self._memory = memory
        self._folder = folder
        self._ask = ask
        self._done = _Done()
        self._entries = _manifest(folder / MANIFEST)

    def update(self, scope: str | None, *, index: bool) -> Report:
        before = self._index(required=index)  # first: what cannot be written back stops everything
        believed = self._believed()
        self._settle_deleted(believed)
        believed = self._believed() if self._done.forgotten else believed
        self._settle_gone(believed)
        for fact in self._wanted(believed, scope):
            self._write(page(fact, self._why(fact)))
        self._save_manifest()
        self._update_index(before, believed, index=index)
        done = self._done
        return Report(
            str(self._folder),
            done.written,
            done.unchanged,
            done.removed,
            done.kept,
            done.deleted,
            done.forgotten,
            done.notes,
        )

    # what the memory says

    def _believed(self) -> dict[tuple[str, str], Fact]:
        """(scope, key) → fact, as far as a block would show it."""
        return {(fact.scope, fact.key): fact for fact in self._memory.believed()}

    def _wanted(self, believed: Mapping[tuple[str, str], Fact], scope: str | None) -> list[Fact]:
        if scope is None:
            return list(believed.values())
        own = {fact.scope for fact in self._memory.facts(scope)} | {SHARED}
        return [fact for fact in believed.values() if fact.scope in own]

    def _why(self, fact: Fact) -> Why | None:
        return next((one for one in self._memory.why(fact.key, fact.scope) if one.scope == fact.scope), None)

    # what the folder says

    def _state(self, name: str) -> Literal["gone", "ours", "theirs"]:
        """What became of a file that was written here."""
        try:
            content = _read(self._folder / name)
        except UsageError:
            return "theirs"  # a link, a folder, a file of somebody else
        if content is None:
            return "gone"
        return "ours" if _sha256(content) == self._entries[name].sha256 else "theirs"

    def _settle_deleted(self, believed: Mapping[tuple[str, str], Fact]) -> None:
        """Ask about facts whose files somebody deleted, where they still say what the file said."""
        written = {name: entry for name, entry in self._entries.items() if entry.sha256 != _EMPTY}
        gone = [name for name in written if self._state(name) == "gone"]
        asked: dict[str, Fact] = {}
        for name in gone:
            fact = believed.get((written[name].scope, written[name].key))
            if fact is None or _content_hash(fact) != written[name].content_hash:
                del self._entries[name]  # it says something else now, or nothing
            else:
                asked[name] = fact
        if not asked:
            return
        facts = sorted(asked.values(), key=lambda fact: (fact.key, fact.scope))
        answer = self._ask(Question(facts, everything=len(written) > 1 and len(gone) == len(written)))
        for name, fact in asked.items():
            if answer == "later":
                self._done.deleted.append(name)
            elif answer == "keep":
                self._entries[name] = replace(self._entries[name], sha256=_EMPTY)
            else:
                self._memory.forget(fact.key, fact.scope)
                self._done.forgotten.append(fact.key)
                del self._entries[name]

    def _settle_gone(self, believed: Mapping[tuple[str, str], Fact]) -> None:
        """Facts that are forgotten, hidden or faded take their files along; what somebody edited stays, and is theirs."""
        for name, entry in list(self._entries.items()):
            if (entry.scope, entry.key) in believed:
                continue
            state = self._state(name)
            if state == "ours":
                (self._folder / name).unlink()
                self._done.removed.append(name)
            elif state == "theirs":
                self._done.kept.append(name)
            del self._entries[name]

    def _write(self, made: Page) -> None:
        place = made.fact.scope, made.fact.key
        content = made.text.encode()
        for name, entry in list(self._entries.items()):
            if (entry.scope, entry.key) != place:
                continue
            if entry.sha256 == _EMPTY or name in self._done.deleted:
                if entry.content_hash == made.content_hash:
                    return  # the person wants no file of it
                del self._entries[name]
                continue
            if self._state(name) == "ours":
                self._put(name, made, content, over=entry.sha256)
                return
            self._done.kept.append(name)
            del self._entries[name]
        self._put_anew(made, content)

    def _put_anew(self, made: Page, content: bytes) -> None:
        """Under the first name that nothing has; a file that says the very same is ours, of a run that was cut short."""
        for number in range(1, 10_000):
            name = file_name(made.fact.key, number)
            path = self._folder / name
            if name in self._entries:
                continue
            if not os.path.lexists(path):
                self._put(name, made, content, over=None)
                return
            try:
                is_same = _read(path) == content
            except UsageError:
                continue
            if is_same:
                self._entries[name] = _entry(made, content)
                self._done.unchanged += 1
                return
        raise UsageError(f"{self._folder} holds too many files of one name; clear it up, then try again.")

    def _put(self, name: str, made: Page, content: bytes, *, over: str | None) -> None:
        if over == _sha256(content):
            self._done.unchanged += 1
            return
        path = self._folder / name
        draft = path.with_name(f".{name}.clawmark-{entropy.token_hex(4)}")
        try:
            files.written(draft, content)
            if over is None:
                files.give_name(draft, path)
            else:
                os.rename(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        self._entries[name] = _entry(made, content)
        self._done.written.append(name)

    def _save_manifest(self) -> None:
        """Keys and hashes, for the owner alone. The pages come first: one that is missing here is recognised by what it says,
        one that is named and not there would count as deleted."""
        for name in os.listdir(self._folder):
            if _DRAFT.fullmatch(name):
                (self._folder / name).unlink(missing_ok=True)  # of a run that was killed
        path = self._folder / MANIFEST
        if not self._entries and not os.path.lexists(path):
            return
        listed = {
            name: {"scope": entry.scope, "key": entry.key, "content_hash": entry.content_hash, "sha256": entry.sha256}
            for name, entry in sorted(self._entries.items())
        }
        said = {"clawmark": "claude-memory", "version": VERSION, "files": listed}
        content = (json.dumps(said, ensure_ascii=False, indent=1) + "\n").encode()
        if _read(path) != content:
            files.replace(path, content, path.with_name(f"{MANIFEST}.clawmark-{entropy.token_hex(4)}"))

    # the index

    def _index(self, *, required: bool) -> str | None:
        try:
            return _index_of(self._folder / INDEX)
        except UsageError:
            if required:
                raise
            return None  # it is not ours to look at

    def _update_index(self, before: str | None, believed: Mapping[tuple[str, str], Fact], *, index: bool) -> None:
        lines = [
            f"- [{title_of(entry.key)}]({name}): {_inline(_cut(_plain(believed[entry.scope, entry.key].value), HOOK_LENGTH))}"
            for name, entry in sorted(self._entries.items())
            if entry.sha256 != _EMPTY and name not in self._done.deleted and (entry.scope, entry.key) in believed
        ]
        after = _with_lines(before, lines)
        if after == (before or ""):
            return
        if not index:
            if before is not None and _BEGIN in before:
                self._done.notes.append(
                    f"{INDEX} lists other files than there are; say --index to bring it up to date."
                )
            return
        path = self._folder / INDEX
        if _index_of(path) != before:
            raise UsageError(f"{path} was changed meanwhile, so it was left as it is; try again.")
        _rewrite(path, after.encode())
        self._done.written.append(INDEX)


def _entry(made: Page, content: bytes) -> Entry:
    return Entry(made.fact.scope, made.fact.key, made.content_hash, _sha256(content))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _with_lines(before: str | None, lines: Sequence[str]) -> str:
    """The index with our lines between our two marks, at its end where they are new; all else as it stands."""
    old = before or ""
    block = "\n".join([_BEGIN, *lines, _END]) if lines else ""
    head, found, rest = old.partition(_BEGIN)
    if found:
        _, _, tail = rest.partition(_END)
        return head + block + (tail if block else tail.removeprefix("\n"))
    if not block:
        return old
    gap = "" if not old else "\n" if old.endswith("\n") else "\n\n"
    return f"{old}{gap}{block}\n"


def _index_of(path: Path) -> str | None:
    """What the index says; None where there is none. Raises UsageError where our lines could not be told from others."""
    content = _read(path)
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is no UTF-8, so it was left as it is; correct it by hand, then try again.") from None
    begins, ends = text.count(_BEGIN), text.count(_END)
    if (begins, ends) not in ((0, 0), (1, 1)) or (begins and text.index(_END) < text.index(_BEGIN)):
        raise UsageError(f"{path} holds half of clawmark's marks; take the rest of them out by hand, then try again.")
    return text


def _manifest(path: Path) -> dict[str, Entry]:
    """File → entry. A name that is none of ours would be written to or removed: the whole manifest is refused then."""
    content = _read(path)
    if content is None:
        return {}
    try:
        said = json.loads(content)
        if said["clawmark"] != "claude-memory" or said["version"] != VERSION:
            raise ValueError
        found = {
            name: Entry(*(_text(entry[column]) for column in ("scope", "key", "content_hash", "sha256")))
            for name, entry in said["files"].items()
        }
        if not all(_NAME.fullmatch(name) for name in found):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise UsageError(
            f"{path} does not say what was exported here; remove it, and files of before count as your own. Nothing was changed."
        ) from None
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _read(path: Path) -> bytes | None:
    """What a file says; None where there is none. Raises UsageError for what is no plain file: no link is followed."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            is_file = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            content = file.read(MOST_BYTES + 1) if is_file else b""
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); move it away, then try again.") from error
    if not is_file or len(content) > MOST_BYTES:
        raise UsageError(f"{path} is no file of this kind; move it away, then try again.")
    return content


def _rewrite(path: Path, content: bytes) -> None:
    """A file that others write too, whole or not at all and with the mode it has."""
    draft = path.with_name(f".{path.name}.clawmark-{entropy.token_hex(4)}")
    try:
        files.written(draft, content)
        if path.exists():
            os.chmod(draft, stat.S_IMODE(path.stat().st_mode))
        os.rename(draft, path)
    finally:
        draft.unlink(missing_ok=True)
