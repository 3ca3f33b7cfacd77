"""How a source is found: what is named is loaded, nothing else, and a broken adapter is said so."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from clawmark import source
from clawmark.errors import SourceAbsent, SourceCorrupt, SourceEmpty, SourceError, UsageError
from clawmark.memory import Memory
from clawmark.settings import Settings
from clawmark.source import Folders, MessageSource, first_present, select
from clawmark.testing import ListSource

FOLDERS = Folders(None, Path("nowhere"))


class Placed(ListSource):
    """An adapter, as an entry point names one."""

    def __init__(self, folders: Folders) -> None:
        super().__init__("placed")
        self.folders = folders


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> None:
    """`placed` works; the others cannot be loaded."""
    values = {
        "transcripts": "clawmark_sources.openclaw:TranscriptSource",
        "placed": f"{__name__}:Placed",
        "gone": "no_such_package_of_ours:Source",
        "unnamed": "clawmark.testing:NoSuchSource",
    }
    made = [EntryPoint(name, value, source.GROUP) for name, value in values.items()]
    monkeypatch.setattr(source, "entry_points", lambda group: made)
    monkeypatch.setattr(EntryPoint, "load", loading(EntryPoint.load))


def loading(load: Callable[[EntryPoint], object]) -> Callable[[EntryPoint], object]:
    """`load`, but for this module, which pytest imports under a name of its own."""
    return lambda point: Placed if point.name == "placed" else load(point)


def test_what_is_installed_is_told_without_loading_it(points: None) -> None:
    assert sorted(source.installed()) == ["gone", "placed", "transcripts", "unnamed"]


def test_only_what_is_named_is_loaded(points: None) -> None:
    (made,) = select("placed", FOLDERS)
    assert isinstance(made, Placed) and made.folders == FOLDERS
    assert [one.name for one in select(" placed , transcripts ", FOLDERS)] == ["placed", "transcripts"]
    assert [one.name for one in select("", FOLDERS)] == [one.name for one in select("auto", FOLDERS)] == ["transcripts"]


@pytest.mark.parametrize("name", ["gone", "unnamed"])
def test_an_adapter_that_cannot_be_loaded_is_a_source_error_naming_it(points: None, name: str, db_path: Path) -> None:
    with pytest.raises(SourceError, match=f"the source {name} .* cannot be loaded") as broken:
        select(name, FOLDERS)
    assert not isinstance(broken.value, SourceAbsent)
    with Memory.open(Settings(db_path=db_path, embedder="none", source=name)) as memory:
        memory.set("pref.editor", "Helix")
        assert memory.block("which editor do I like?").facts
        with pytest.raises(SourceError, match=name):
            memory.sync()


def test_an_unknown_name_is_a_usage_error_with_the_known_ones(points: None) -> None:
    with pytest.raises(UsageError, match=r"'log'.*auto, gone, placed, transcripts, unnamed"):
        select("placed, log", FOLDERS)


class Failing(ListSource):
    def __init__(self, error: SourceError) -> None:
        super().__init__()
        self.error = error

    def check(self) -> None:
        raise self.error


def test_the_first_source_that_is_there_is_the_one() -> None:
    there: MessageSource = ListSource("there")
    assert first_present([Failing(SourceAbsent("x")), there, ListSource()]) is there
    with pytest.raises(SourceCorrupt):
        first_present([Failing(SourceCorrupt("x")), there])


def test_a_place_that_is_there_and_empty_is_told_from_one_that_is_missing() -> None:
    with pytest.raises(SourceEmpty, match="x; y"):
        first_present([Failing(SourceAbsent("x")), Failing(SourceEmpty("y"))])
    with pytest.raises(SourceAbsent, match="x; z") as absent:
        first_present([Failing(SourceAbsent("x")), Failing(SourceAbsent("z"))])
    assert not isinstance(absent.value, SourceEmpty)
