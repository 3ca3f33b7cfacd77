"""Doctor: looks at everything once, the slow things too, and says what to do. Changes nothing but that it notes damage.

Each check stands for itself: one that fails, or that cannot be made, takes no other along. An embedder and a chat model
are asked for fixed sentences of ours alone, and nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from clawmark import llm
from clawmark import status as states
from clawmark.embed import Embedder, choose
from clawmark.embed.probe import Prober, same
from clawmark.errors import (
    ClawmarkError,
    DatabaseDamaged,
    DatabaseError,
    EmbedderDown,
    EmbedderError,
    EndpointDown,
    EndpointError,
    ReplyUnusable,
)
from clawmark.facts import reply
from clawmark.jobs import embedder as policy
from clawmark.memory import Memory
from clawmark.model import Status
from clawmark.settings import Settings, config_file
from clawmark.store import check, copy, db, files, keyfile, migrations, recovery, sidecar, spaces, tombstones

State = Literal["ok", "warn", "fail"]
LITTLE_ROOM = 200 * 1024 * 1024
"""Bytes on the disk below which a long pass may not fit."""

CHAT_SYSTEM: Final = "You answer with one JSON object and nothing else."
CHAT_USER: Final = 'Answer with this JSON object, exactly: {"facts": []}'
CHAT_SCHEMA: Final = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}
CHAT_TOKENS, CHAT_SECONDS = 64, 60.0
"""A server may have to load its model first."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `advice` says what to do, where there is something to do."""

    name: str
    state: State
    said: str
    advice: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "state": self.state, "said": self.said, "advice": self.advice}


def doctor(settings: Settings) -> list[Check]:
    """All findings, in the order in which a person would look: file, log, embedder, vectors, facts."""
    checks = [_switch(settings)]
    try:
        path = files.resolved(settings.db_path)
    except DatabaseError as refused:
        return [*checks, Check("database", "fail", str(refused))]
    checks += _file(path)
    if checks[-1].state == "warn":  # there is nothing to look at yet
        return checks
    readable = checks[-1].state != "fail"
    checks += [*_beside(path), _permissions(path), _disk(path)]
    if readable:
        checks += _memory(settings, path)
    return checks


def _switch(settings: Settings) -> Check:
    if settings.disabled:
        return Check("settings", "warn", "clawmark is switched off", "Unset CLAWMARK_DISABLED.")
    where = config_file()
    return Check("settings", "ok", f"{where} and the environment" if where.exists() else "the environment")


# The file


def _file(path: Path) -> list[Check]:
    """Reads every page. The last check says whether the rest can be asked."""
    try:
        if not db.is_there(path):
            return [Check("database", "warn", f"{path} is not there yet", "Run `clawmark sync`.")]
        recovery.must_be_ours(path)
        try:
            return _pages(path, leave_no_trace=True)
        except DatabaseDamaged:  # somebody may have written meanwhile, whom a look without traces does not see
            return _pages(path, leave_no_trace=False)
    except DatabaseDamaged as damaged:
        recovery.suspect(path)
        advice = "`clawmark sync` sets it aside and rebuilds it; `clawmark restore` takes a backup instead."
        return [Check("database", "fail", str(damaged).removesuffix(db.REMEDY), advice)]
    except DatabaseError as failed:
        return [Check("database", "fail", str(failed))]


def _pages(path: Path, *, leave_no_trace: bool) -> list[Check]:
    with (
        db.explained(path),
        db.opened(path, readonly=True, leave_no_trace=leave_no_trace, busy_seconds=db.QUICK_BUSY_SECONDS) as connection,
    ):
        version = db.schema_version(connection, path)
        if version != migrations.LATEST:
            advice = "`clawmark sync` brings it up to date."
            if version > migrations.LATEST:
                advice = "Upgrade clawmark."
            elif version == 1:
                advice = "The TypeScript clawmark wrote it. `clawmark sync` brings it up to date, after a backup."
            return [Check("database", "fail", f"{path} has schema {version}, not {migrations.LATEST}", advice)]
        faults = check.faults(connection)
        if faults:
            raise DatabaseDamaged(f"{path} is damaged: {'; '.join(faults)}.")
        broken = len(check.broken_vectors(connection))
        checks = [_key(path, len(tombstones.buried(connection)), copy.noted_key(connection))]
    if broken:
        checks.append(Check("vectors", "warn", f"{broken:,} are damaged", "`clawmark reembed` makes them anew."))
    sound = f"{path}, schema {version}, {path.stat().st_size:,} bytes, every page read"
    return [*checks, Check("database", "ok", sound)]


def _key(path: Path, buried: int, noted: str | None) -> Check:
    """What tombstones are keyed with. Without it nobody knows what was forgotten."""
    place = keyfile.key_path(path)
    advice = "Put it back from a backup; without it what was forgotten may be learned again."
    try:
        key = keyfile.known(place)
    except DatabaseError as failed:
        return Check("key", "fail", str(failed), advice)
    if key is None and buried:
        return Check("key", "fail", f"{place} is gone, and {buried:,} tombstones are keyed with it", advice)
    if key is not None and noted is not None and noted != copy.fingerprint(key):
        return Check("key", "fail", f"{place} is not the key of this database", advice)
    return Check("key", "ok", "not made yet" if key is None else str(place))


def _beside(path: Path) -> Iterator[Check]:
    """The sidecar, and what was set aside."""
    try:
        kept = sidecar.read(path)
        said = "not written yet" if kept is None else f"{sidecar.path_of(path)}, {len(kept.facts):,} facts"
        yield Check("sidecar", "ok", said)
    except DatabaseError as failed:
        yield Check("sidecar", "warn", str(failed), "The next `clawmark sync` writes it anew.")
    aside = recovery.set_aside_files(path)
    if aside:
        names = ", ".join(str(name) for name in aside)
        advice = "They may hold what was forgotten since, and what was lost: `clawmark restore` takes a backup."
        yield Check("set aside", "ok", names, advice)


def _permissions(path: Path) -> Check:
    """Everything is for its owner alone, who can write it."""
    open_ones = []
    closed = [p for p in (path.parent, path) if p.exists() and not os.access(p, os.W_OK)]
    if closed:
        return Check(
            "permissions", "fail", f"{closed[0]} cannot be written by this user", "Change its mode or its owner."
        )
    try:
        beside = sorted(path.parent.iterdir())
        if files.open_to_others(path.parent):
            open_ones.append(f"{path.parent} (anybody may put files there)")
    except OSError as failed:
        return Check("permissions", "warn", f"{path.parent}: {failed.strerror or failed}")
    if files.has_second_name(path):
        open_ones.append(f"{path} (it has a second name, whose mode is left alone)")
    for found in beside:
        if found.name.startswith(path.name):
            mode = found.lstat().st_mode
            if mode & 0o077 or stat.S_ISLNK(mode):
                open_ones.append(f"{found} ({stat.filemode(mode)})")
    if open_ones:
        return Check(
            "permissions", "warn", f"open to others: {', '.join(open_ones)}", "chmod them to 600, folders to 700."
        )
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
        yield from _sources(status)
        yield from _embedder(settings, path)
        yield _vectors(status)
        yield from _extraction(settings, path)
        yield _facts(status)
    except ClawmarkError as failed:
        yield Check("memory", "fail", str(failed))
    finally:
        memory.close()


def _sources(status: Status) -> Iterator[Check]:
    problems = [p.removeprefix("source: ") for p in status.problems if p.startswith("source: ")]
    read = [source for source in status.sources if source.state == "read"]
    for source in read:
        said = f"{source.name}: {source.where}, {source.streams:,} streams, {source.kept:,} messages"
        if not status.passages and source.behind:
            yield Check("source", "warn", f"{source.name}: {source.where}; nothing indexed yet", "Run `clawmark sync`.")
        else:
            yield Check("source", "ok", said)
    for problem in problems:
        advice = "" if read else "See CLAWMARK_SOURCE, and where each log is looked for, in docs/settings.md."
        yield Check("source", "warn" if read else "fail", problem, advice)


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
    with db.opened(path, readonly=True, busy_seconds=db.QUICK_BUSY_SECONDS) as connection:
        active = spaces.active(connection)
        is_anothers = settings.embedder == "auto" and policy.is_anothers(connection, chosen)
    if is_anothers:
        yield Check("embedder", "warn", policy.OF_AN_ENDPOINT)
        return
    yield _asked(settings, chosen, active)


def _asked(settings: Settings, chosen: Embedder, active: spaces.Stored | None) -> Check:
    began = time.monotonic()
    try:
        # With the patience of background work: a server may have to load its model first.
        prober = Prober((choose(settings, background=True) if chosen.endpoint else None) or chosen)
        probe = prober.probe("document")
        space = prober.embedder.space
    except EmbedderError as wrong:
        return Check("embedder", "fail", str(wrong))
    except EmbedderDown as down:
        unreachable = any(what in str(down) for what in ("cannot be reached", "did not answer", "cannot be resolved"))
        return Check("embedder", "fail", str(down), "Start it, or see CLAWMARK_EMBEDDING_URL." if unreachable else "")
    took = f"{chosen.name}: {space.model or 'unnamed model'}, {space.dimension} dimensions, {time.monotonic() - began:.2f} s"
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


def _extraction(settings: Settings, path: Path) -> Iterator[Check]:
    """Whether it can be asked now; and where it can, what went wrong with it lately."""
    asked = _extractor(settings)
    yield asked
    if asked.state != "ok" or not llm.named(settings).is_model:
        return
    with db.opened(path, readonly=True, busy_seconds=db.QUICK_BUSY_SECONDS) as connection:
        wrong = states.extractor_troubles(connection, datetime.now(UTC))
    yield from (Check("extractor", "warn", said, advice) for said, advice in wrong)


def _extractor(settings: Settings) -> Check:
    """Asks a chat endpoint for one short answer. The host's own model is asked by the resident process alone."""
    who = llm.named(settings)
    refusal = llm.refusal(settings)
    if refusal is not None:
        return Check("extractor", "fail", f"{who.name}: {refusal}", states.refusal_advice(refusal))
    if who.kind == "off":
        return Check("extractor", "ok", "off; no fact is extracted")
    if who.kind == "markers":
        return Check("extractor", "ok", "no model; sentences with words like `remember` or `always` are proposed")
    if who.kind == "host":
        most = settings.extract_daily_calls
        said = f"the model of OpenClaw's gateway, while that runs, at most {most:,} times a day"
        advice = "" if most else "CLAWMARK_EXTRACT_DAILY_CALLS is 0, so it is never asked."
        return Check("extractor", "warn" if advice else "ok", said, advice)
    return _chat(settings, who.name)


def _chat(settings: Settings, name: str) -> Check:
    began = time.monotonic()
    try:
        completer = llm.choose(settings, None)
        assert completer is not None  # an endpoint is named
        answer = completer.complete(CHAT_SYSTEM, CHAT_USER, CHAT_SCHEMA, most_tokens=CHAT_TOKENS, seconds=CHAT_SECONDS)
        reply.read(answer)
    except EndpointError as wrong:
        return Check("extractor", "fail", str(wrong))
    except EndpointDown as down:
        return Check("extractor", "fail", str(down), "Start it, or see CLAWMARK_EXTRACT_URL.")
    except ReplyUnusable as unusable:
        advice = (
            "Name another model in CLAWMARK_EXTRACT_MODEL; what cannot be used is left, and nothing false is stored."
        )
        return Check("extractor", "warn", f"{name}: {unusable}", advice)
    model = settings.extract_model or "unnamed model"
    return Check("extractor", "ok", f"{name}: {model}, {time.monotonic() - began:.2f} s")


def _facts(status: Status) -> Check:
    said = f"{status.facts:,}; {status.proposals:,} proposed, {status.hidden:,} hidden"
    if status.unasked:
        said += f"; {status.unasked:,} {'message waits' if status.unasked == 1 else 'messages wait'} for the extractor"
    return Check("facts", "ok", said, "`clawmark review` shows what waits." if status.proposals else "")
