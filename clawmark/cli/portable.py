"""`export` and `import`: a whole memory as JSON lines, out and in again, and facts as Claude Code's memory files.

An export goes to a file that was not there before, or to standard output; nothing is asked for it. What was deleted by
hand among memory files is forgotten after a yes alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clawmark.cli.common import DRY_RUN, JSON, complain, is_asked, opened, print_json, unknown_scope

if TYPE_CHECKING:
    from clawmark.claude_memory import Answer, Question
    from clawmark.portable import Imported

LINES, MEMORY_FILES = "jsonl", "claude-memory"
MOST_NAMED = 20
WAIT_SECONDS = 30.0


@click.command()
@click.argument("target", required=False, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice([LINES, MEMORY_FILES]),
    default=LINES,
    show_default=True,
    help="JSON lines of all that is known, or facts as Claude Code's memory files.",
)
@click.option("--scope", metavar="NAME", help="Only of this scope; for memory files with what is shared.")
@click.option("--with-secrets", is_flag=True, help="JSON lines: do not mask what looks like a secret.")
@click.option("--project", is_flag=True, help="Memory files: into those of the project of this folder, with its scope.")
@click.option("--index", is_flag=True, help="Memory files: list them in MEMORY.md too, between two marks.")
@click.option("--yes", is_flag=True, help="Memory files: forget facts whose files were deleted by hand without asking.")
@JSON
def export(
    target: Path | None,
    form: str,
    scope: str | None,
    with_secrets: bool,
    project: bool,
    index: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Write what is known to TARGET: a new file (default: standard output), or with memory files a folder."""
    from clawmark.errors import UsageError

    if form == LINES:
        if project or index or yes:
            raise UsageError(f"--project, --index and --yes go with --format {MEMORY_FILES}.")
        return _export_lines(target, scope, with_secrets=with_secrets, as_json=as_json)
    if with_secrets:
        raise UsageError("--with-secrets is for JSON lines: memory files never hold a secret.")
    if (target is None) == (not project):
        raise UsageError("name a folder, or say --project for that of this project; not both.")
    _export_files(target, scope, index=index, yes=yes, as_json=as_json)


def _export_lines(target: Path | None, scope: str | None, *, with_secrets: bool, as_json: bool) -> None:
    from clawmark import portable
    from clawmark.errors import UsageError
    from clawmark.settings import load

    if as_json and (target is None or str(target) == "-"):
        raise UsageError("--json tells what was written to a file; name one.")
    made = portable.export(load().db_path, _clock, scope=scope, with_secrets=with_secrets)
    if target is None or str(target) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(made.content)
        sys.stdout.buffer.flush()
        return
    portable.save(made.content, target)
    if as_json:
        return print_json({"export": str(target), "counts": dict(made.counts), "secrets": with_secrets})
    click.echo(f"written to {target}: {portable.counted(made.counts)}")


def _export_files(target: Path | None, scope: str | None, *, index: bool, yes: bool, as_json: bool) -> None:
    from clawmark import claude_memory
    from clawmark.hosts.claude_code.project import scope_of
    from clawmark.settings import load

    here = Path.cwd()
    if target is None:
        target = claude_memory.folder_of_project(load().claude_config_dir, here)
        scope = scope or scope_of(str(here)).id
    with opened() as memory:
        unknown = unknown_scope(memory, scope)
        done = claude_memory.export(memory, target, ask=_asking(yes), scope=scope, index=index)
    if as_json:
        return print_json(done.as_json())
    click.echo(f"{done.folder}: {len(done.written)} written, {done.unchanged} unchanged, {len(done.removed)} removed")
    for name in done.kept:
        complain(
            f"{name} was edited by hand, so it is left as it is; a fact that is still known has a file of its own."
        )
    for key in done.forgotten:
        click.echo(f"{key} is forgotten")
    for name in done.deleted:
        complain(f"{name} was deleted by hand; say --yes to have its fact forgotten, or answer at a terminal.")
    for line in [*done.notes, *unknown]:
        complain(line)


def _asking(yes: bool) -> Callable[[Question], Answer]:
    """How a person is asked about facts whose files they deleted. --yes does not stand for a folder that was emptied."""
    from clawmark.errors import UsageError

    def ask(question: Question) -> Answer:
        if yes and question.everything:
            raise UsageError(
                "every file that was written there is gone, so --yes is not taken for an answer; nothing was changed. Answer "
                "at a terminal, or remove .clawmark.json there to have all of them written anew."
            )
        if yes:
            return "forget"
        if not is_asked():
            return "later"
        for fact in question.facts[:MOST_NAMED]:
            click.echo(f"deleted by hand: {fact.key} ({fact.scope})", err=True)
        if len(question.facts) > MOST_NAMED:
            click.echo(f"and {len(question.facts) - MOST_NAMED} more", err=True)
        sure = click.confirm("Forget these facts for good, with what was said of them?", default=False, err=True)
        return "forget" if sure else "keep"

    return ask


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path, allow_dash=True))
@DRY_RUN
@JSON
def import_(source: Path, dry_run: bool, as_json: bool) -> None:
    """Bring in SOURCE, which `export` wrote (- = standard input). What was forgotten here stays forgotten."""
    from clawmark import portable
    from clawmark.settings import load

    path = load().db_path
    if str(source) == "-":
        content = sys.stdin.buffer.read(portable.MOST_BYTES + 1)
        done = portable.import_text(path, content, "standard input", _clock, WAIT_SECONDS, dry_run=dry_run)
    else:
        done = portable.import_(path, source, _clock, WAIT_SECONDS, dry_run=dry_run)
    if as_json:
        print_json(done.as_json())
    else:
        _show(done)
    for one in done.skipped:
        complain(f"line {one.line} was left out: {one.record or 'it'}: {one.reason}")
    for note in done.notes:
        complain(note)
    if done.skipped:
        raise SystemExit(1)


def _show(done: Imported) -> None:
    if done.dry_run:
        click.echo("nothing was changed; this is what an import would do")
    for record, counts in done.counts.items():
        said = ", ".join(f"{number:,} {word}" for word, number in counts.items())
        click.echo(f"{record.replace('_', ' '):<15}  {said}")
    if not done.counts:
        click.echo("the file holds nothing")


def _clock() -> datetime:
    return datetime.now(UTC)
