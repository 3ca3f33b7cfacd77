"""Commands run in this process as the console script runs them, and what they printed."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from clawmark import cli


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Commands:
    """Call it with the words of a command line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")

    def __call__(self, *arguments: str) -> Result:
        self._monkeypatch.setattr(sys, "argv", ["clawmark", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        out, err = self._capsys.readouterr()
        return Result(code, out, err)

    def answering(self, *answers: str) -> Commands:
        """A person sits at a terminal and types these lines."""
        for module in ("review", "forget"):
            self._monkeypatch.setattr(f"clawmark.cli.{module}.is_asked", lambda: True)
        self._monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in answers)))
        return self
