"""`forget`: what a person wants gone, shown before it is erased.

What always holds: exactly one thing is named, and checked before anything is opened; messages go only after a yes, said on
a terminal or with --yes. A fact that takes no message along goes unasked: whoever names its key has said all there is.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from clawmark.cli.common import (
    DRY_RUN,
    JSON,
    Command,
    called,
    complain,
    is_asked,
    opened,
    print_json,
    told,
    unknown_scope,
)

if TYPE_CHECKING:
    from clawmark.model import Forgetting, Forgotten

MOST_KEYS = 20


@click.command(cls=Command)
@click.argument("key", required=False)
@click.option(
    "--query",
    metavar="WORDS",
    help="Every fact, proposal and message that holds all of these words. Of a message its speaker's name (yours is "
    "`user`) and its date in words (sunday 3 may 2026) count as well.",
)
@click.option("--conversation", metavar="ID", help="A whole session, by the host's id of it.")
@click.option(
    "--before", metavar="DATE", help="What was said before that day (2026-05-31) or time, and what rests on it."
)
@click.option("--all", "everything", is_flag=True, help="All of it.")
@click.option("--scope", metavar="NAME", help="Only in this scope; alone: all of it.")
@DRY_RUN
@click.option("--yes", is_flag=True, help="Do not ask. Needed where messages go and nobody can be asked.")
@JSON
def forget(
    key: str | None,
    query: str | None,
    conversation: str | None,
    before: str | None,
    everything: bool,
    scope: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase the fact KEY with the messages that state it, or what an option names, for good; asks when messages go."""
    from clawmark.settings import load

    settings = load()
    what = _wanted(key, query, conversation, before, everything, scope, zone=settings.timezone)
    with opened() as memory:
        found = memory.forgetting(what)
        unknown = unknown_scope(memory, scope)
        names = memory.scopes()
        if not as_json and (found.messages or found.proposals or dry_run or key is None):
            _show(found, names)
        if dry_run:
            gone = None
        else:
            _require_yes(found, what, yes=yes)
            gone = memory.erase(what) if _holds(found) or key is not None else found
        copies = [str(path) for path in memory.copies()] if gone is not None and _holds(gone) else []
    _report(gone or found, what, copies, names, dry_run=dry_run, as_json=as_json)
    for line in unknown:
        complain(line)


def _wanted(
    key: str | None,
    query: str | None,
    conversation: str | None,
    before: str | None,
    everything: bool,
    scope: str | None,
    *,
    zone: str,
) -> Forgetting:
    """What is named, checked before anything is opened."""
    from clawmark.errors import UsageError
    from clawmark.facts import statement
    from clawmark.model import Forgetting

    named = {"KEY": key, "--query": query, "--conversation": conversation, "--before": before}
    given = [name for name, value in named.items() if value is not None] + ["--all"] * everything
    if len(given) > 1:
        raise UsageError(f"{', '.join(given)}: say one of them.")
    if everything and scope is not None:
        raise UsageError("--all is all of it; for all of one scope say --scope alone.")
    if not given and scope is None:
        raise UsageError("say what: KEY, or one of --query, --conversation, --before, --scope, --all.")
    for name, value in (*named.items(), ("--scope", scope)):
        if value is not None and not value.strip():
            raise UsageError(f"{name} is blank; nothing was erased.")
    return Forgetting(
        key=None if key is None else statement.named(key),
        query=query,
        conversation=conversation,
        before=None if before is None else _time(before, zone),
        everything=everything,
        scope=scope,
    )


def _time(said: str, zone: str) -> datetime:
    """A day begins at midnight, and a time without a zone is one, where the person is."""
    from zoneinfo import ZoneInfo

    from clawmark.errors import UsageError

    try:
        at = datetime.fromisoformat(said.strip())
        if at.tzinfo is None:
            at = at.replace(tzinfo=ZoneInfo(zone)) if zone else at.astimezone()
        return at.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"--before {said!r} is no date; write it like 2026-05-31 or 2026-05-31T18:00+02:00.") from None


def _holds(found: Forgotten) -> bool:
    return bool(found.facts or found.proposals or found.messages)


def _require_yes(found: Forgotten, what: Forgetting, *, yes: bool) -> None:
    """Ends the command where the person does not want it. Nothing is asked where there is nothing to lose, or where one
    fact is named and nothing else goes with it."""
    from clawmark.errors import UsageError

    only_the_fact = what.key is not None and not found.messages
    if yes or only_the_fact or not _holds(found):
        return
    if not is_asked():
        raise UsageError(f"{_counted(found)} would go, and nothing was erased; say --yes where nobody can be asked.")
    if not click.confirm("Erase that for good?", default=False, err=True):
        raise SystemExit(1)


def _counted(found: Forgotten) -> str:
    counts = ((len(found.facts), "fact"), (found.proposals, "proposal"), (found.messages, "message"))
    return ", ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts if count) or "nothing"


def _show(found: Forgotten, names: dict[str, str]) -> None:
    """What would go, for a person to look at."""
    from clawmark.guard.markers import defuse

    click.echo(f"what goes: {_counted(found)}")
    for scope, key in found.facts[:MOST_KEYS]:
        click.echo(f"  {defuse(key)}  ({called(scope, names)})")
    if len(found.facts) > MOST_KEYS:
        click.echo(f"  and {len(found.facts) - MOST_KEYS:,} more facts")
    for waiting in found.waiting[:MOST_KEYS]:
        what = f"{defuse(waiting.key)}: {defuse(waiting.value)}"
        click.echo(f"  proposed {waiting.name}  {what}  ({called(waiting.scope, names)})")
    if len(found.waiting) > MOST_KEYS:
        click.echo(f"  and {len(found.waiting) - MOST_KEYS:,} more proposals")
    for one in found.excerpts:
        click.echo(f"  {told(one)}")
    if found.messages > len(found.excerpts) > 0:
        click.echo(f"  and {found.messages - len(found.excerpts):,} more messages")
    _show_staying(found)


def _show_staying(found: Forgotten) -> None:
    if found.staying:
        were = "1 fact that was" if found.staying == 1 else f"{found.staying:,} facts that were"
        click.echo(f"what stays: {were} stated in it too, and elsewhere or since")


def _report(
    gone: Forgotten, what: Forgetting, copies: list[str], names: dict[str, str], *, dry_run: bool, as_json: bool
) -> None:
    scopes = sorted({scope for scope, _ in gone.facts})
    if as_json:
        said = {"key": what.key, "forgotten_in": [] if dry_run else scopes, "copies": copies, "dry_run": dry_run}
        return print_json(said | gone.as_json())
    if dry_run:
        click.echo("nothing was erased")
        return
    if what.key is not None and not gone.messages and not gone.proposals:
        none = f"nothing was stored under {what.key}"
        where = ", ".join(called(scope, names) for scope in scopes)
        click.echo(f"{what.key} is forgotten ({where})" if scopes else none)
    else:
        click.echo(f"forgotten: {_counted(gone)}")
        _show_staying(gone)
    if gone.messages:
        click.echo("The host's own log still holds the messages; they are not read again.")
    if copies:
        complain(f"backups and files that were set aside may still hold it: {', '.join(copies)}")
