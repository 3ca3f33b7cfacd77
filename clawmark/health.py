"""Doctor: looks at everything once, the slow things too, and says what to do. Changes nothing.

Each check stands for itself: one that fails, or that cannot be made, takes no other along. An embedder is asked for fixed
sentences of ours alone, and nothing is downloaded.
"""

from __future__ import annotations

import json
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import apsw

from clawmark.embed import Embedder, choose
from clawmark.embed.probe import Prober, same
from clawmark.errors import ClawmarkError, DatabaseDamaged, DatabaseError, EmbedderDown, EmbedderError
from clawmark.memory import Memory
from clawmark.model import Status
from clawmark.settings import Settings, config_file
from clawmark.store import db, files, keyfile, migrations, recovery, sidecar, spaces, vectors

State = Literal["ok", "warn", "fail"]
LITTLE_ROOM = 200 * 1024 * 1024
"""Bytes on the disk below which a long pass may not fit."""

TYPESCRIPT_PACKAGE = "openclaw-clawmark"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `advice` says what to do, where there is something to do."""

    name: str
    state: State
    said: str
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "state": self.state, "said": self.said, "advice": self.advice}


def doctor(settings: Settings, clock: Callable[[], datetime]) -> list[Check]:
    """All findings, in the order in which a person would look: file, log, embedder, vectors, host."""
    path = files.resolved(settings.db_path)
    checks = [_switch(settings), *_file(path)]
    readable = checks[-1].state != "fail"
    checks += [*_beside(path), _permissions(path), _disk(path)]
    if readable:
        checks += _memory(settings, path)
    checks += [_typescript(settings)]
    return checks


def _switch(settings: Settings) -> Check:
    if settings.disabled:
        return Check("settings", "warn", "clawmark is switched off", "Unset CLAWMARK_DISABLED.")
    where = config_file()
    return Check("settings", "ok", f"{where} and the environment" if where.exists() else "the environment")


# The file


def _file(path: Path) -> Iterator[Check]:
    """Reads every page. The last check says whether the rest can be asked."""
    if not path.exists() or not path.stat().st_size:
        yield Check("database", "fail", f"{path} is not there yet", "Run `clawmark sync`.")
        return
    try:
        yield from _pages(path)
    except DatabaseDamaged as damaged:
        yield Check("database", "fail", str(damaged), "`clawmark sync` sets it aside and rebuilds it.")
    except DatabaseError as failed:
        yield Check("database", "fail", str(failed))


def _pages(path: Path) -> Iterator[Check]:
    with db.explained(path):
        connection = db.connect(path, readonly=True, leave_no_trace=True, busy_seconds=db.QUICK_BUSY_SECONDS)
        try:
            version = db.schema_version(connection, path)
            if version != migrations.LATEST:
                advice = "`clawmark sync` brings it up to date."
                if version > migrations.LATEST:
                    advice = "Upgrade clawmark."
                elif version == 1:
                    advice = "The TypeScript clawmark wrote it. `clawmark sync` brings it up to date, after a backup."
                yield Check("database", "fail", f"{path} has schema {version}, not {migrations.LATEST}", advice)
                return
            found = db.rows(connection, "PRAGMA integrity_check(5)")
            faults = [" ".join(str(row[0]).split()) for row in found if row != ("ok",)]
            faults += _broken_rows(connection)
        finally:
            connection.close()
    if faults:
        advice = "`clawmark sync` sets it aside and rebuilds it; `clawmark restore` takes a backup instead."
        yield Check("database", "fail", f"{path} is damaged: {'; '.join(faults)}", advice)
    else:
        yield Check("database", "ok", f"{path}, schema {version}, {path.stat().st_size:,} bytes, every page read")


def _broken_rows(connection: apsw.Connection) -> list[str]:
    """What SQLite does not see: it has no checksums, and a vector is any bytes to it."""
    import numpy as np

    found = []
    broken = 0
    for blob, dimension in connection.execute(
        "SELECT v.embedding, s.dimension FROM message_vectors v JOIN spaces s ON s.id = v.space_id"
    ):
        if len(blob) != 4 * dimension or not abs(float(np.linalg.norm(vectors.decode(blob))) - 1) < 1e-3:
            broken += 1
    if broken:
        found.append(f"{broken} vectors are not {vectors.FORMAT} of length 1")
    for name, sql in {
        "passages outside the lexicon": "SELECT count(*) FROM passages WHERE id NOT IN (SELECT id FROM lexicon_docsize)"
        " AND id NOT IN (SELECT passage_id FROM stale_passages)",
        "passages without a message": "SELECT count(*) FROM passages WHERE id NOT IN (SELECT passage_id FROM passage_refs)",
    }.items():
        ((count,),) = db.rows(connection, sql)
        if count:
            found.append(f"{count} {name}")
    return found


def _beside(path: Path) -> Iterator[Check]:
    """The key, the sidecar, the lease, and what was set aside."""
    key = keyfile.key_path(path)
    try:
        yield Check("key", "ok", "not made yet" if keyfile.known(key) is None else str(key))
    except DatabaseError as failed:
        yield Check("key", "fail", str(failed), "Restore it from a backup; without it what was forgotten is not known.")
    try:
        kept = sidecar.read(path)
        said = "not written yet" if kept is None else f"{sidecar.path_of(path)}, {len(kept.facts):,} facts"
        yield Check("sidecar", "ok", said)
    except DatabaseError as failed:
        yield Check("sidecar", "warn", str(failed), "The next `clawmark sync` writes it anew.")
    aside = recovery.set_aside_files(path)
    if aside:
        names = ", ".join(str(name) for name in aside)
        advice = "They may hold what was forgotten since; delete them when you are sure that nothing is missing."
        yield Check("set aside", "ok", names, advice)


def _permissions(path: Path) -> Check:
    """Everything is for its owner alone."""
    loose = []
    for found in sorted(path.parent.glob(path.name + "*")) if path.parent.is_dir() else []:
        status = found.lstat()
        if status.st_mode & 0o077 or stat.S_ISLNK(status.st_mode):
            loose.append(f"{found} ({stat.filemode(status.st_mode)})")
    if loose:
        return Check("permissions", "warn", f"open to others: {', '.join(loose)}", "chmod 600 them.")
    return Check("permissions", "ok", "for their owner alone")


def _disk(path: Path) -> Check:
    try:
        free = shutil.disk_usage(path.parent).free
    except OSError:
        return Check("disk", "warn", f"free space of {path.parent} is not known")
    if free < LITTLE_ROOM:
        return Check("disk", "warn", f"{free:,} bytes free", f"Make room on the disk of {path.parent}.")
    return Check("disk", "ok", f"{free:,} bytes free")


# What the file says


def _memory(settings: Settings, path: Path) -> Iterator[Check]:
    memory = Memory(settings)
    try:
        status = memory.status()
        yield _source(status, settings)
        yield from _embedder(settings, path)
        yield _vectors(status)
    except ClawmarkError as failed:
        yield Check("memory", "fail", str(failed))
    finally:
        memory.close()


def _source(status: Status, settings: Settings) -> Check:
    source = status.source
    if source is None:
        said = next((p.removeprefix("source: ") for p in status.problems if p.startswith("source: ")), "none")
        return Check("source", "fail", said, "See CLAWMARK_SOURCE and CLAWMARK_TRANSCRIPTS_DIR in docs/settings.md.")
    if not status.passages:
        return Check("source", "warn", f"{source.name}: {source.where}; nothing indexed yet", "Run `clawmark sync`.")
    return Check(
        "source", "ok", f"{source.name}: {source.where}, {source.streams} sessions, {status.passages:,} passages"
    )


def _embedder(settings: Settings, path: Path) -> Iterator[Check]:
    """Asks it for the probe, and compares that with the searched vectors'."""
    try:
        chosen = choose(settings, background=False)
    except EmbedderError as wrong:
        yield Check("embedder", "fail", str(wrong))
        return
    if chosen is None:
        advice = "" if settings.embedder == "none" else "Install clawmark[local] or set CLAWMARK_EMBEDDING_URL."
        yield Check("embedder", "warn" if advice else "ok", "none; recall runs on words alone", advice)
        return
    connection = db.connect(path, readonly=True, busy_seconds=db.QUICK_BUSY_SECONDS)
    try:
        used = spaces.in_use(connection)
    finally:
        connection.close()
    yield _asked(settings, chosen, used)


def _asked(settings: Settings, chosen: Embedder, used: list[spaces.Stored]) -> Check:
    began = time.monotonic()
    try:
        # With the patience of background work: a server may have to load its model first.
        prober = Prober((choose(settings, background=True) if chosen.endpoint else None) or chosen)
        probe = prober.embed([], "document").probe
        space = prober.embedder.space
    except EmbedderError as wrong:
        return Check("embedder", "fail", str(wrong))
    except EmbedderDown as down:
        return Check("embedder", "fail", str(down), "Start the server, or see CLAWMARK_EMBEDDING_URL.")
    took = f"{chosen.name}: {space.model or 'unnamed model'}, {space.dimension} dimensions, {time.monotonic() - began:.2f} s"
    active = next((stored for stored in used if stored.is_active), None)
    if active is None:
        return Check("embedder", "ok", took)
    if not spaces.same_model(active.space, space) or (
        active.document_probe is not None and not same(active.document_probe, probe)
    ):
        searched = (
            f"the searched vectors are of {active.space.model or 'another model'}, {active.space.dimension} dimensions"
        )
        return Check("embedder", "warn", f"{took}; {searched}", "`clawmark reembed` makes them anew.")
    return Check("embedder", "ok", took)


def _vectors(status: Status) -> Check:
    waiting = ", ".join(f"{reason} {count:,}" for reason, count in status.pending.items())
    said = f"{status.vectors:,}; pending: {waiting or 'none'}"
    if status.filling is not None:
        said += f"; new space {status.filling.model or 'unnamed model'}: {status.filling.vectors:,}"
    if status.failed:
        names = ", ".join(f"{text.source} {text.ref} ({text.reason})" for text in status.failed[:5])
        given_up = f", {status.given_up:,} given up" if status.given_up else ""
        return Check("vectors", "warn", f"{said}{given_up}; failed: {names}", "`clawmark reembed` tries them again.")
    return Check("vectors", "ok", said)


# The host


def _typescript(settings: Settings) -> Check:
    """The TypeScript clawmark beside this one: it would write its own rows into an upgraded file."""
    state = settings.openclaw_state_dir
    config = _json(state / "openclaw.json")
    installed = [folder for folder in _plugin_folders(state, config) if _is_typescript(folder)]
    if not installed:
        return Check("openclaw", "ok", "no TypeScript clawmark")
    entry = _at(config, "plugins", "entries", "clawmark")
    folder = installed[0]
    if isinstance(entry, dict) and entry.get("enabled") is False:
        return Check("openclaw", "ok", f"the TypeScript clawmark in {folder} is disabled")
    own = _at(config, "env", "CLAWMARK_DB_PATH") or _at(config, "env", "vars", "CLAWMARK_DB_PATH")
    path = files.resolved(settings.db_path)
    if isinstance(own, str) and Path(own).expanduser().resolve() != path:
        return Check("openclaw", "warn", f"the TypeScript clawmark in {folder} is enabled, on {own}")
    return Check(
        "openclaw",
        "fail",
        f"the TypeScript clawmark in {folder} is enabled and would write to {path}",
        "Run `openclaw plugins disable clawmark`, then restart the gateway.",
    )


def _plugin_folders(state: Path, config: Any) -> list[Path]:
    loaded = _at(config, "plugins", "load", "paths")
    listed = [Path(name).expanduser() for name in loaded if isinstance(name, str)] if isinstance(loaded, list) else []
    extensions = state / "extensions"
    return [*(sorted(extensions.iterdir()) if extensions.is_dir() else []), *listed]


def _is_typescript(folder: Path) -> bool:
    package = _json(folder / "package.json")
    return isinstance(package, dict) and package.get("name") == TYPESCRIPT_PACKAGE


def _json(path: Path) -> Any:
    """What a file of the host says; None where it is none, or in a form that only the host reads."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
