"""Whose memory a folder belongs to, whatever a stranger put into it. What is read out of a sound repository stands in
tests/test_source_claude_code.py."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from resident import PATIENCE

from clawmark.hosts.claude_code.project import Scope, scope_of

ORIGIN = '[remote "origin"]\nurl = https://example.org/ledger.git\n'


def repository(top: Path) -> Path:
    """A repository's git directory; without a configuration."""
    git = top / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    return git


def by_its_place(top: Path) -> Scope:
    return Scope(hashlib.sha256(f"root:{top.resolve()}".encode()).hexdigest()[:12], top.name)


def asked(top: Path) -> Scope:
    """In a process of its own: one that waits can be ended there."""
    code = "import sys; from clawmark.hosts.claude_code.project import scope_of; s = scope_of(sys.argv[1]); print(s.id, s.name)"
    command = [sys.executable, "-P", "-c", code, str(top)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return Scope(*done.stdout.rstrip("\n").split(" ", 1))


def pipe(name: str) -> Callable[[Path], None]:
    def make(top: Path) -> None:
        git = repository(top)
        (git / name).unlink(missing_ok=True)
        os.mkfifo(git / name)

    return make


def pipe_in_the_place_of_all(top: Path) -> None:
    top.mkdir()
    os.mkfifo(top / ".git")


def link_to(target: str) -> Callable[[Path], None]:
    return lambda top: (repository(top) / "config").symlink_to(target)


@pytest.mark.parametrize(
    "make",
    [
        pipe("config"),
        pipe("commondir"),
        pipe("HEAD"),
        pipe_in_the_place_of_all,
        link_to("/dev/zero"),
        link_to("/dev/tty"),
        link_to("config"),
    ],
    ids=["config", "commondir", "HEAD", ".git", "endless", "terminal", "itself"],
)
def test_what_is_no_file_holds_nobody_up(tmp_path: Path, make: Callable[[Path], None]) -> None:
    top = tmp_path / "ledger"
    make(top)
    assert asked(top) == by_its_place(top)


@pytest.mark.parametrize(
    "config",
    [
        "x" * (1 << 20),
        '[remote "origin"]\nurl = ' + "x" * (1 << 20),
        '[remote "origin"]\nurl = "' + "\\" * (1 << 20),
        '[remote "origin"]\nurl = ' + "x\\\n" * (1 << 19),
        '[remote "' + "\\a" * (1 << 19),
        "[a " + " " * (1 << 20),
        " " * (1 << 20) + ORIGIN,
    ],
    ids=["word", "url", "backslashes", "lines that go on", "section", "open section", "blanks"],
)
def test_configuration_of_a_megabyte_names_no_remote(tmp_path: Path, config: str) -> None:
    top = tmp_path / "ledger"
    (repository(top) / "config").write_text(config)
    assert scope_of(str(top)) == by_its_place(top)


def test_configuration_of_many_branches_still_names_its_remote(tmp_path: Path) -> None:
    top = tmp_path / "clone"
    branches = "".join(f'[branch "{n}"]\n\tremote = origin\n\tmerge = refs/heads/{n}\n' for n in range(20_000))
    (repository(top) / "config").write_text(ORIGIN + branches)
    assert scope_of(str(top)).name == "ledger"


def test_linked_configuration_is_read(tmp_path: Path) -> None:
    """Tools that share one between work trees link it."""
    (tmp_path / "shared").write_text(ORIGIN)
    top = tmp_path / "clone"
    (repository(top) / "config").symlink_to(tmp_path / "shared")
    assert scope_of(str(top)).name == "ledger"


@pytest.mark.parametrize("linked", ["gitdir: " + "x" * 100_000, "gitdir: a\0b", "gitdir: /dev", "gitdir:"])
def test_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path, linked: str) -> None:
    top = tmp_path / "ledger"
    top.mkdir()
    (top / ".git").write_text(linked)
    assert scope_of(str(top)) == by_its_place(top)
