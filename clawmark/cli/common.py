"""What all commands share: options, the memory, and how results and complaints are printed.

Imports nothing heavy at the top: every module of commands is loaded for `--help`. Who states a fact, who speaks and in
which scope is said in the same words by every command.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from clawmark.llm import Completer
    from clawmark.memory import Memory
    from clawmark.model import Excerpt, Fact
    from clawmark.settings import Settings

JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object (documented in docs/cli.md).")
SCOPE = click.option("--scope", metavar="NAME", help="Whose memory: an agent's name, or a project's.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
YES = click.option("--yes", is_flag=True, help="Do not ask.")

WRITERS = {"user": "you", "agent": "the agent", "extracted": "noted from what you said"}
"""Who states a fact, in a person's words."""
FADED = "faded, not shown to agents"
SPEAKER = 40
"""Longest name of a participant."""


class Command(click.Command):
    """A command whose options are taken once where they take one value: of two, click would drop the first unsaid."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from clawmark.errors import UsageError

        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for one in dict.fromkeys(order):
            if isinstance(one, click.Option) and not (one.multiple or one.is_flag) and order.count(one) > 1:
                raise UsageError(f"{one.opts[0]} is given {order.count(one)} times; it takes one value.")
        return super().parse_args(ctx, args)


@contextmanager
def opened() -> Iterator[Memory]:
    """The memory that the settings name."""
    from clawmark.memory import Memory
    from clawmark.settings import load

    settings = load()
    with Memory.open(settings, completer=_hosts_model(settings)) as memory:
        yield memory


def _hosts_model(settings: Settings) -> Completer | None:
    """The gateway is connected to the resident process, which passes on what a command asks of its model."""
    if settings.extract_url != "host":
        return None
    from clawmark.serve.hostmodel import ByResident, HostModel
    from clawmark.socketpath import socket_path
    from clawmark.store.files import resolved

    database = resolved(settings.db_path)
    return HostModel(ByResident(str(socket_path(database)), str(database)))


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def complain(message: str) -> None:
    click.echo(f"clawmark: {message}", err=True)


def is_asked() -> bool:
    """Whether somebody sits there who can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def said_by(writer: str) -> str:
    return WRITERS.get(writer, writer)


def said_on(fact: Fact) -> str:
    """The days on which a fact was stated first and last, named."""
    first, last = f"{fact.observed_at:%Y-%m-%d}", f"{fact.reinforced_at:%Y-%m-%d}"
    return f"first said {first}" if first == last else f"first said {first}, last {last}"


def told(excerpt: Excerpt) -> str:
    """A message on one line: when, who, what. A participant's name is quoted: one who is called "you" is not the owner."""
    from clawmark.guard.markers import quote
    from clawmark.text import cut

    when = "unknown   " if excerpt.at is None else f"{excerpt.at:%Y-%m-%d}"
    named = quote(cut(excerpt.author, SPEAKER)) if excerpt.author else "you"
    who = "assistant" if excerpt.role == "assistant" else named
    return f"{when}  {who}: {quote(excerpt.excerpt)}"


def called(scope: str, names: dict[str, str]) -> str:
    """A scope as a person knows it. names: `Memory.scopes`."""
    return names.get(scope) or scope


def listed_scopes(scopes: dict[str, str]) -> str:
    return ", ".join(f"{scope} ({name})" if name else scope for scope, name in scopes.items())


def unknown_scope(memory: Memory, scope: str | None) -> list[str]:
    """That nothing is known of the scope a person named."""
    known = memory.scopes()
    if scope in (None, "shared", *known, *known.values()) or not known:
        return []
    return [f"nothing was read or set under the scope {scope!r}; there are {listed_scopes(known)}."]
