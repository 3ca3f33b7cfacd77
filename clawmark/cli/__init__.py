"""The command line: a thin client of `Memory`. Heavy imports stand inside the commands, so that `--help` is quick.

Exit codes: 0 done, 1 error, 2 usage or settings, 75 busy or unavailable, try again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from clawmark.cli import calibrate, forget, portable, review
from clawmark.cli.common import (
    DRY_RUN,
    FADED,
    JSON,
    SCOPE,
    YES,
    Command,
    called,
    complain,
    listed_scopes,
    opened,
    print_json,
    said_by,
    said_on,
    told,
    unknown_scope,
)

if TYPE_CHECKING:
    from clawmark.hosts.change import Change
    from clawmark.memory import Memory
    from clawmark.model import Fact, SourceStatus, SpaceStatus


STALE_DAYS = 90


class Group(click.Group):
    command_class = Command


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="clawmark")
def cli() -> None:
    """A private memory for AI agents: facts and recall out of the message log their host already keeps."""


@cli.command()
@JSON
def sync(as_json: bool) -> None:
    """Read what is new in the log, make it searchable, and forget what is gone from it."""
    from clawmark.cli.progress import shown

    with opened() as memory, shown(quiet=as_json) as progress:
        report = memory.sync(progress)
        problems = memory.status().problems
    if as_json:
        print_json(report.as_json())
    else:
        left_out = f"; left out: {_reasons(report.dropped)}" if report.dropped else ""
        click.echo(f"messages  {report.read:,} read, {report.kept:,} kept{left_out}")
        click.echo(f"vectors   {report.vectors:,} made, {report.pending:,} pending; {report.pruned:,} passages pruned")
        click.echo(
            f"facts     {report.facts:,} stored or confirmed, {report.proposed:,} proposed{_unasked(report.unasked)}"
        )
    told_already = [f"source: {line}" for line in report.failures]
    for line in [*report.failures, *(line for line in problems if line not in told_already)]:
        complain(line)
    if report.failures:
        raise SystemExit(1)


@cli.command()
@click.argument("query")
@click.option(
    "--limit",
    type=click.IntRange(0, 50, clamp=True),
    help="Most excerpts (at most 50).  [default: CLAWMARK_RECALL_LIMIT]",
)
@SCOPE
@JSON
def search(query: str, limit: int | None, scope: str | None, as_json: bool) -> None:
    """Find facts and past utterances that bear on QUERY."""
    from clawmark.guard.markers import defuse

    with opened() as memory:
        found = memory.search(query, limit=limit, scope=scope)
        why = [*unknown_scope(memory, scope), *([] if found.recalled else _why_empty(memory))]
        names = memory.scopes()
        faded = memory.faded(found.facts)
    if as_json:
        return print_json(found.as_json())
    for fact in found.facts:
        state = f"; {FADED}" if (fact.scope, fact.key) in faded else ""
        where = called(fact.scope, names)
        click.echo(f"{fact.key}: {defuse(fact.value)}  ({said_by(fact.source)}, {where}, {said_on(fact)}{state})")
    for excerpt in found.recalled:
        click.echo(told(excerpt))
    if not found.facts and not found.recalled:
        click.echo("nothing found", err=True)
    for line in why:
        complain(line)


@cli.command()
@click.argument("prompt")
@click.option(
    "--host",
    default="cli",
    metavar="NAME",
    help="Whose caps and gate apply: cli, openclaw, claude-code or mcp.",
    show_default=True,
)
@click.option("--session", metavar="ID", help="The running session; what its model still sees is left out.")
@click.option(
    "--kind",
    type=click.Choice(["direct", "group"]),
    help="Whether others read along.  [default: what the log says of the session]",
)
@SCOPE
@JSON
def block(
    prompt: str,
    host: str,
    session: str | None,
    kind: Literal["direct", "group"] | None,
    scope: str | None,
    as_json: bool,
) -> None:
    """Print the memory block that an agent would get for PROMPT (nothing when there is nothing to say)."""
    from clawmark.model import Turn

    with opened() as memory:
        built = memory.block(Turn(prompt, host=host, scope=scope, session=session, kind=kind))
        why = unknown_scope(memory, scope)
        if not built.text:
            why += [*_which_scope(memory, scope, session), *_why_empty(memory)]
    if as_json:
        return print_json(built.as_json())
    if built.text:
        click.echo(built.text)
    else:
        click.echo("nothing to say", err=True)
    for line in why:
        complain(line)


@cli.command("set")
@click.argument("key")
@click.argument("value")
@click.option(
    "--scope",
    metavar="NAME",
    help="Whose memory; shared = every agent's.  [default: wherever KEY stands, else shared]",
)
@JSON
def set_(key: str, value: str, scope: str | None, as_json: bool) -> None:
    """Remember VALUE under KEY, for example: clawmark set pref.editor Helix."""
    from clawmark.keys import spelled
    from clawmark.model import SHARED

    with opened() as memory:
        names = memory.scopes()
        unknown = [] if scope == SHARED else unknown_scope(memory, scope)
        # Where no scope is named the new word holds everywhere: in a scope of its own the old one would go on being shown.
        held = [fact.scope for fact in memory.facts() if fact.key == spelled(key)]
        stored = [memory.set(key, value, one) for one in ([scope] if scope is not None else held or [SHARED])]
        beside = [line for fact in stored for line in _beside(memory, fact)]
    if as_json:
        print_json(stored[0].as_json())
    else:
        for fact in stored:
            click.echo(f"{fact.key} is set" + ("" if fact.scope == SHARED else f" ({called(fact.scope, names)})"))
    for line in (*unknown, *dict.fromkeys(beside)):
        complain(line)


def _beside(memory: Memory, fact: Fact) -> list[str]:
    """What else stands about the same thing under another key, and how to end that: a person chooses their keys themselves."""
    from clawmark.facts.subject import may_be_same_subject
    from clawmark.guard.markers import quote
    from clawmark.model import SHARED
    from clawmark.text import likeness

    scopes = None if fact.scope == SHARED else fact.scope
    return [
        f"{twin.key} stands beside it and says {quote(twin.value)}; {_ended(twin, fact)}"
        for twin in memory.facts(scopes)
        if twin.key != fact.key
        and may_be_same_subject(twin.key, fact.key)
        and likeness(twin.value) != likeness(fact.value)
    ]


def _ended(twin: Fact, fact: Fact) -> str:
    """How to end what stands beside a fact. Where the fact says it again it is not forgotten: that would keep out the fact's
    own words too."""
    from shlex import quote

    from clawmark.store.tombstones import says_again

    where = f"--scope {quote(twin.scope)}"
    if says_again(twin.value, fact.value):
        return f"`clawmark set {twin.key} {quote(fact.value)} {where}` has it say the same"
    return f"`clawmark forget {twin.key} {where}` ends that"


cli.add_command(forget.forget)


@cli.command()
@click.argument("key")
@SCOPE
@JSON
def unhide(key: str, scope: str | None, as_json: bool) -> None:
    """Take back the fact KEY, which is hidden."""
    from clawmark.facts import statement

    key = statement.named(key)
    with opened() as memory:
        scopes = memory.unhide(key, scope=scope)
        unknown = unknown_scope(memory, scope)
    if as_json:
        return print_json({"key": key, "shown_in": scopes})
    click.echo(f"{key} is shown again" if scopes else f"nothing was hidden under {key}")
    for line in unknown:
        complain(line)


@cli.command()
@click.option(
    "--hidden",
    is_flag=True,
    help="Those that are hidden, since the agent had them forgotten or nobody stated them for a year: forget or unhide "
    "them.",
)
@click.option("--stale", is_flag=True, help="Those that nobody has stated for long, oldest first.")
@click.option(
    "--days",
    type=click.IntRange(1, 36_500),
    metavar="N",
    help="With --stale: for how many days.  [default: 90]",
)
@SCOPE
@JSON
def facts(hidden: bool, stale: bool, days: int | None, scope: str | None, as_json: bool) -> None:
    """List all facts."""
    from clawmark.errors import UsageError
    from clawmark.guard.markers import defuse

    if hidden and stale:
        raise UsageError("--hidden and --stale ask for different facts; say one of them.")
    if days is not None and not stale:
        raise UsageError("--days says for how long a fact was not stated; it goes with --stale.")
    with opened() as memory:
        found = memory.stale(days or STALE_DAYS, scope) if stale else []
        stored = [one.fact for one in found] if stale else memory.facts(scope, hidden=hidden)
        unknown = unknown_scope(memory, scope)
        names = memory.scopes()
        faded = memory.faded(stored)
        others = scope is not None and not (stored or hidden or stale) and bool(memory.facts())
    if as_json:
        listed = [one.as_json() for one in (found or stored)]
        states = [{"faded": (fact.scope, fact.key) in faded} for fact in stored]
        return print_json({"facts": [one | state for one, state in zip(listed, states, strict=True)]})
    for number, fact in enumerate(stored):
        since = f"; not stated for {found[number].days} days, believed {found[number].effective:.3f}" if stale else ""
        state = f"; {FADED}" if (fact.scope, fact.key) in faded and not stale else ""
        who = f"{said_by(fact.source)}, {called(fact.scope, names)}, {said_on(fact)}"
        click.echo(f"{fact.key}: {defuse(fact.value)}  ({who}{since}{state})")
    if not stored:
        none = "no facts are hidden" if hidden else "no facts are stale" if stale else "no facts yet"
        if scope is not None:
            none = f"{none.removesuffix(' yet')} in {scope}{'; other scopes have some' if others else ''}"
        click.echo(none, err=True)
    for line in unknown:
        complain(line)


cli.add_command(review.why)
cli.add_command(review.review)
cli.add_command(calibrate.calibrate)


@cli.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000, clamp=True),
    default=50,
    show_default=True,
    help="How many of the newest.",
)
@JSON
def events(limit: int, as_json: bool) -> None:
    """Show the audit trail, newest first."""
    from clawmark.guard.markers import defuse

    with opened() as memory:
        trail = memory.events(limit)
    if as_json:
        return print_json({"events": [event.as_json() for event in trail]})
    if not trail:
        click.echo("no events yet", err=True)
    for event in trail:
        said = " ".join(defuse(part) for part in (event.memory_key, event.new_value, event.detail) if part)
        click.echo(f"{event.created_at:%Y-%m-%dT%H:%M:%S}  {event.event_type:<20}  {event.source:<11}  {said}")


@cli.command()
@JSON
def status(as_json: bool) -> None:
    """Show what there is, where it comes from and what is wrong."""
    with opened() as memory:
        state = memory.status()
        faded = len(memory.faded(memory.facts()))
    if as_json:
        return print_json(state.as_json() | {"faded": faded})
    filling = state.filling
    click.echo(f"database  {state.path}  ({state.bytes:,} bytes)")
    _show_sources(state.sources)
    scopes = [
        f"{scope} ({state.scope_names[scope]})" if scope in state.scope_names else scope for scope in state.scopes
    ]
    click.echo(f"scopes    {', '.join(scopes) or 'none'}")
    click.echo(f"passages  {state.passages:,}")
    if state.kept_texts:
        click.echo(f"texts     {state.kept_texts:,} kept, masked: their host deletes its old logs")
    pale = f", {faded:,} of them {FADED}" if faded else ""
    hidden = f"; {state.hidden:,} hidden, see clawmark facts --hidden" if state.hidden else ""
    waiting = f"; {state.proposals:,} proposed and waiting for you, see clawmark review" if state.proposals else ""
    click.echo(f"facts     {state.facts:,}{pale}{waiting}{hidden}")
    calls = f", asked {state.calls[0]:,} of {state.calls[1]:,} times today" if state.calls else ""
    click.echo(f"extractor {state.extractor}{calls}{_unasked(state.unasked)}")
    click.echo(f"embedder  {state.embedder}")
    click.echo(f"vectors   {_vectors(state.space) if state.space else 0}")
    if filling:
        click.echo(f"filling   {_vectors(filling)}; searched when it holds nearly as much")
    pending = _reasons(state.pending)
    given_up = f"; given up {state.given_up:,}" if state.given_up else ""
    click.echo(f"pending   {pending or 'none'}{given_up}")
    for problem in state.problems:
        click.echo(f"problem   {problem}")


def _show_sources(sources: Sequence[SourceStatus]) -> None:
    """Those that are there, or that something was read from."""
    shown = [source for source in sources if source.state != "not there" or source.streams]
    for source in shown:
        click.echo(f"source    {source.name} ({source.state}): {source.where}")
        if not source.streams:
            continue
        behind = f", {source.behind:,} changed since" if source.behind else ""
        click.echo(f"          {source.streams:,} streams{behind}; {source.seen:,} entries read, {source.kept:,} kept")
        if source.dropped:
            click.echo(f"          left out: {_reasons(source.dropped)}")
        times = [("newest message", source.newest), ("log written", source.written)]
        said = ", ".join(f"{what} {at:%Y-%m-%d %H:%M} UTC" for what, at in times if at is not None)
        if said:
            click.echo(f"          {said}")
    if not shown:
        click.echo("source    none")


def _reasons(counts: Mapping[str, int]) -> str:
    """Counts by reason, the highest first."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{reason} {count:,}" for reason, count in ordered)


def _unasked(count: int) -> str:
    what = "message waits" if count == 1 else "messages wait"
    return f"; {count:,} {what} for the extractor" if count else ""


def _vectors(space: SpaceStatus) -> str:
    return f"{space.vectors:,}  ({space.model or 'unnamed model'}, {space.dimension})"


@cli.command()
@JSON
def doctor(as_json: bool) -> None:
    """Look at everything, ask the embedder and the chat endpoint, and say what to do."""
    from clawmark import health
    from clawmark.hosts.checks import checks as at_hosts
    from clawmark.settings import environment, load

    settings = load()
    checks = [*health.doctor(settings), *at_hosts(settings, environment())]
    if as_json:
        print_json({"checks": [check.as_json() for check in checks]})
    else:
        for check in checks:
            click.echo(f"{check.state:<5}  {check.name:<11}  {check.said}")
            if check.advice:
                click.echo(f"{'':<20}{check.advice}")
    if any(check.state == "fail" for check in checks):
        raise SystemExit(1)


@cli.command()
@JSON
def reembed(as_json: bool) -> None:
    """Make the vectors that are missing now; tries again what failed or was given up."""
    from clawmark.cli.progress import shown
    from clawmark.errors import EXIT_BUSY

    with opened() as memory, shown(quiet=as_json) as progress:
        report = memory.reembed(progress)
        problems = memory.status().problems
    if as_json:
        return print_json({"vectors": report.vectors, "pending": report.pending})
    click.echo(f"vectors   {report.vectors:,} made, {report.pending:,} pending")
    for line in problems:
        complain(line)
    if any(line.startswith("embedder:") for line in problems):
        raise SystemExit(EXIT_BUSY)


@cli.command()
@click.argument("target", required=False, type=click.Path(path_type=Path))
@JSON
def backup(target: Path | None, as_json: bool) -> None:
    """Copy the database, while it is in use, to TARGET (default: beside it), with its key."""
    from datetime import UTC, datetime

    from clawmark import transfer
    from clawmark.settings import load

    made = transfer.backup(load().db_path, target, lambda: datetime.now(UTC))
    if as_json:
        return print_json({"backup": str(made)})
    click.echo(f"backup written: {made}")


@cli.command()
@click.argument("source", type=click.Path(path_type=Path))
@JSON
def restore(source: Path, as_json: bool) -> None:
    """Put a backup, or the facts of a `.facts` file, in place. What was forgotten stays forgotten."""
    from datetime import UTC, datetime

    from clawmark import transfer
    from clawmark.settings import load

    said = transfer.restore(load().db_path, source, lambda: datetime.now(UTC), wait_seconds=30.0)
    if as_json:
        return print_json({"restored": said})
    click.echo(said)


cli.add_command(portable.export)
cli.add_command(portable.import_)


@cli.command()
@click.option("--stdio", is_flag=True, help="Answer on standard input and output, and end with them.")
@click.option(
    "--socket",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Where others ask.  [default: a place of the database's own]",
)
@click.option(
    "--idle-exit", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), help="End after so long alone."
)
def serve(stdio: bool, socket: Path | None, idle_exit: float | None) -> None:
    """Hold the memory open and answer hosts, until the end; one process for each database. Hosts start it themselves."""
    from clawmark.serve import run

    raise SystemExit(run(stdio=stdio, socket=socket, idle_exit=idle_exit))


@cli.command()
@click.option(
    "--host", default="mcp", metavar="NAME", help="Whose client it is: mcp or claude-code.", show_default=True
)
@click.option("--scope", metavar="NAME", help="Whose memory: an agent's name, or a project's.")
def mcp(host: str, scope: str | None) -> None:
    """Answer an MCP client on standard input and output. The client starts it itself."""
    from clawmark.hosts.mcp import run

    raise SystemExit(run(host=host, scope=scope))


_HOST = click.argument("host", type=click.Choice(["openclaw", "claude-code"]))
_STATE_DIR = click.option(
    "--state-dir",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="OpenClaw's state directory.  [default: CLAWMARK_OPENCLAW_STATE_DIR]",
)


@cli.command()
@_HOST
@click.option("--python", metavar="PATH", help="What runs clawmark there.  [default: what runs this command]")
@_STATE_DIR
@click.option("--link", is_flag=True, help="OpenClaw: load the plugin out of this package instead of a copy.")
@click.option(
    "--socket",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="OpenClaw: ask the `clawmark serve` that listens there, where a gateway may start no process.",
)
@DRY_RUN
@YES
def install(
    host: str, python: str | None, state_dir: Path | None, link: bool, socket: Path | None, dry_run: bool, yes: bool
) -> None:
    """Put clawmark into a host: shows what changes, asks, and keeps copies."""
    from clawmark.settings import environment, load

    if python is not None:
        _require_clawmark(python)
    if host == "openclaw":
        from clawmark.hosts.openclaw.install import install as into_openclaw

        change = into_openclaw(
            load(),
            python=python or sys.executable,
            environment=environment(),
            state_dir=state_dir,
            link=link,
            socket=socket,
            is_asked_for=python is not None,
        )
    else:
        from clawmark.errors import UsageError
        from clawmark.hosts.claude_code.install import install as into_claude_code

        if state_dir is not None or link or socket is not None:
            raise UsageError("--state-dir, --link and --socket are for openclaw.")
        change = into_claude_code(load(), python=python or sys.executable, environment=environment())
    next_step = "Restart the gateway" if host == "openclaw" else "Begin a new session in Claude Code"
    then = f"{next_step}, and say something; `clawmark doctor` then knows of the last block given."
    _change(change, dry_run=dry_run, sure=yes, then=then)


@cli.command()
@_HOST
@_STATE_DIR
@DRY_RUN
@YES
def uninstall(host: str, state_dir: Path | None, dry_run: bool, yes: bool) -> None:
    """Take clawmark out of a host again; what is remembered stays."""
    from clawmark.settings import environment, load

    if host == "openclaw":
        from clawmark.hosts.openclaw.install import uninstall as out_of_openclaw

        change = out_of_openclaw(load(), environment=environment(), state_dir=state_dir)
    else:
        from clawmark.hosts.claude_code.install import uninstall as out_of_claude_code

        change = out_of_claude_code(load())
    _change(change, dry_run=dry_run, sure=yes, then=f"{host} goes on without it once it has been restarted.")


def _change(change: Change, *, dry_run: bool, sure: bool, then: str) -> None:
    """Show a change to a host's files, and make it when the person agrees. then: what they do next."""
    from datetime import UTC, datetime

    from clawmark.errors import UsageError

    for edit in change.edits:
        click.echo(f"{'remove' if edit.after is None else 'write'} {edit.path}" if edit.ours else edit.diff())
    if not change:
        click.echo("nothing to change")
    elif not dry_run:
        if not sure and not sys.stdin.isatty():
            raise UsageError("nothing was changed; say --yes where nobody can be asked.")
        if not (sure or click.confirm("Change that?", default=True)):
            raise SystemExit(1)
        for copied in change.apply(datetime.now(UTC)):
            click.echo(f"a copy of what was there: {copied}")
        click.echo(then)
    for note in change.notes:
        click.echo(note)


def _require_clawmark(python: str) -> None:
    """That a Python that was named can run clawmark."""
    import subprocess

    from clawmark.errors import UsageError

    try:
        done = subprocess.run(
            [python, "-E", "-P", "-c", "import clawmark.serve"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        works = done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        works = False
    if not works:
        raise UsageError(f"{python} cannot run clawmark; name the Python that it is installed in.")


def _which_scope(memory: Memory, scope: str | None, session: str | None) -> list[str]:
    """That a block without a scope is that of `main`, where nobody is called so."""
    known = memory.scopes()
    if scope is not None or session is not None or len(known) < 2 or "main" in known:
        return []
    return [f"say whose memory with --scope: {listed_scopes(known)}."]


def _why_empty(memory: Memory) -> list[str]:
    """Why nothing may have been recalled, other than that nothing was said of it."""
    return [problem for problem in memory.status().problems if problem.startswith(("source:", "recall:"))]


BRIEFLY: Final = {
    "sync": "Read what is new in the log and make it searchable.",
    "search": "Find facts and past utterances that bear on QUERY.",
    "block": "Print the memory block an agent would get for PROMPT.",
    "set": "Remember VALUE under KEY: clawmark set pref.editor Helix.",
    "forget": "Erase a fact, or messages by what they say, for good.",
    "unhide": "Take back the fact KEY, which is hidden.",
    "facts": "List facts: all, hidden or stale ones.",
    "why": "Say what stands under KEY, who said it, and when.",
    "review": "Decide what waits for you: one by one, or by ID.",
    "calibrate": "Try extraction without writing anything.",
    "events": "Show the audit trail, newest first.",
    "status": "Show what there is, where it is from and what is wrong.",
    "doctor": "Look at everything, and say what to do.",
    "reembed": "Make the vectors that are missing now.",
    "backup": "Copy the database, while it is in use, with its key.",
    "restore": "Put a backup, or the facts of a sidecar, in place.",
    "export": "Write what is known as JSON lines or memory files.",
    "import": "Bring in what `export` wrote.",
    "serve": "Hold the memory open and answer hosts.",
    "mcp": "Answer an MCP client on standard input and output.",
    "install": "Put clawmark into a host, after asking.",
    "uninstall": "Take clawmark out of a host; what is remembered stays.",
}
"""What `clawmark --help` says of each command, on one line of 80 columns."""

for _name, _line in BRIEFLY.items():
    cli.commands[_name].short_help = _line


def _text(argument: str) -> str:
    """An argument as text: bytes that are no UTF-8 come in as lone surrogates, which nothing can store."""
    return argument.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def main() -> None:
    """The console script: clawmark's own errors end in one line and their exit code."""
    from clawmark.errors import EXIT_ERROR, ClawmarkError

    try:
        cli(args=[_text(argument) for argument in sys.argv[1:]], prog_name="clawmark")
    except ClawmarkError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except OSError as error:  # standard output is full or closed; clawmark's own files have errors of their own
        complain(f"cannot write: {error.strerror or error}")
        sys.exit(EXIT_ERROR)
