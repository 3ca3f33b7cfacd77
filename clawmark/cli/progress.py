"""Progress of a long pass: one moving line on a terminal, now and then a plain line elsewhere. On standard error."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

EVERY_TERMINAL, EVERY_LOG = 0.1, 5.0


@contextmanager
def shown(*, quiet: bool) -> Iterator[Callable[[str, int], None] | None]:
    """A progress callback for `Memory.sync`; None when `quiet`. The moving line is wiped at the end."""
    if quiet:
        yield None
        return
    moving = sys.stderr.isatty()
    every = EVERY_TERMINAL if moving else EVERY_LOG
    done: Counter[str] = Counter()
    last = time.monotonic()

    def progress(what: str, count: int) -> None:
        nonlocal last
        done[what] += count
        if time.monotonic() - last < every:
            return
        last = time.monotonic()
        line = ", ".join(f"{name} {number:,}" for name, number in done.items())
        click.echo(f"\r\x1b[K{line}" if moving else line, err=True, nl=not moving)

    try:
        yield progress
    finally:
        if moving and done:
            click.echo("\r\x1b[K", err=True, nl=False)
