"""What all commands share: options, the memory, and how results and complaints are printed.

Imports nothing heavy at the top: every module of commands is loaded for `--help`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from clawmark.memory import Memory

JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object (documented in docs/cli.md).")
SCOPE = click.option("--scope", metavar="NAME", help="Whose memory: an agent's name, or a project's.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
YES = click.option("--yes", is_flag=True, help="Do not ask.")

WRITERS = {"user": "you", "agent": "an agent", "extracted": "noted by itself"}
"""Who states a fact, in a person's words."""


@contextmanager
def opened() -> Iterator[Memory]:
    """The memory that the settings name."""
    from clawmark.memory import Memory

    with Memory.open() as memory:
        yield memory


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def complain(message: str) -> None:
    click.echo(f"clawmark: {message}", err=True)


def is_asked() -> bool:
    """Whether somebody sits there who can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def listed_scopes(scopes: dict[str, str]) -> str:
    return ", ".join(f"{scope} ({name})" if name else scope for scope, name in scopes.items())


def unknown_scope(memory: Memory, scope: str | None) -> list[str]:
    """That nothing is known of the scope a person named."""
    known = memory.scopes()
    if scope in (None, "shared", *known, *known.values()) or not known:
        return []
    return [f"nothing was read or set under the scope {scope!r}; there are {listed_scopes(known)}."]
