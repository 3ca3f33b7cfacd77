"""The worked example for authors of sources: it keeps the contract, and is found when its package is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers import REPOSITORY

from clawmark.memory import Memory
from clawmark.settings import Settings

EXAMPLE = REPOSITORY / "sources" / "example"
sys.path.insert(0, str(EXAMPLE))

from test_diary_source import DiaryLog, TestDiarySource, test_a_line_that_is_none_costs_itself_alone  # noqa: E402

__all__ = ["TestDiarySource", "test_a_line_that_is_none_costs_itself_alone"]


def test_an_installed_source_is_read_by_its_name(
    tmp_path: Path, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `pip install` leaves it: the module, and what its metadata says of entry points."""
    import tomllib
    from datetime import UTC, datetime

    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = tmp_path / "site"
    metadata = installed / "clawmark_diary-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    metadata.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    points = project["entry-points"]["clawmark.sources"]
    lines = [f"{name} = {value}" for name, value in points.items()]
    metadata.joinpath("entry_points.txt").write_text("\n".join(["[clawmark.sources]", *lines]) + "\n")
    monkeypatch.syspath_prepend(str(installed))
    log = DiaryLog(tmp_path)
    log.append("march", "user", "we take the ferry to Hovden", datetime(2026, 3, 2, tzinfo=UTC))
    settings = Settings(db_path=db_path, source="diary", transcripts_dir=tmp_path, embedder="none")
    with Memory.open(settings) as memory:
        assert memory.sync().kept == 1
        assert [e.excerpt for e in memory.search("ferry").recalled] == ["we take the ferry to Hovden"]
        assert memory.status().sources[0].where.startswith("diaries in")
