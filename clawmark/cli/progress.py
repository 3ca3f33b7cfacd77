"""Progress of a long pass: a bar on a terminal, now and then a plain line elsewhere. On standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from clawmark.model import Progress

EVERY_TERMINAL, EVERY_LOG = 0.1, 5.0
BAR = 30


@contextmanager
def shown(*, quiet: bool) -> Iterator[Progress | None]:
    """A progress callback for `Memory.sync`; None when `quiet`. The bar is wiped at the end."""
    if quiet:
        yield None
        return
    moving = sys.stderr.isatty()
    every = EVERY_TERMINAL if moving else EVERY_LOG
    last = time.monotonic()
    drawn = False

    def progress(what: str, done: int, total: int | None) -> None:
        nonlocal last, drawn
        if time.monotonic() - last < every:
            return
        last, drawn = time.monotonic(), True
        click.echo(f"\r\x1b[K{bar(what, done, total)}" if moving else line(what, done, total), err=True, nl=not moving)

    try:
        yield progress
    finally:
        if moving and drawn:
            click.echo("\r\x1b[K", err=True, nl=False)


def line(what: str, done: int, total: int | None) -> str:
    return f"{what} {done:,}" if total is None else f"{what} {done:,} of {total:,}"


def bar(what: str, done: int, total: int | None) -> str:
    """One line for a terminal; without a total there is nothing to fill."""
    if not total:
        return line(what, done, total)
    filled = min(BAR, BAR * done // total)
    return f"{what} [{'#' * filled}{'-' * (BAR - filled)}] {done:,}/{total:,}"
