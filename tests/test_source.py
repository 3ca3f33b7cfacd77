"""How a source is found: what is named is loaded, nothing else, and a broken adapter is said so."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from clawmark import source
from clawmark.errors import SourceAbsent, SourceBusy, SourceCorrupt, SourceDrift, SourceEmpty, SourceError, UsageError
from clawmark.memory import Memory
from clawmark.settings import Settings
from clawmark.source import Folders, MessageSource, choose, select
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


def names(wanted: str) -> list[list[str]]:
    return [[one.name for one in group] for group in select(wanted, FOLDERS)]


def test_only_what_is_named_is_loaded(points: None) -> None:
    ((made,),) = select("placed", FOLDERS)
    assert isinstance(made, source.Guarded) and isinstance(made.inner, Placed) and made.inner.folders == FOLDERS


def test_every_name_of_a_list_is_read_and_auto_stands_for_alternatives(points: None) -> None:
    assert names(" placed , transcripts ") == [["placed"], ["transcripts"]]
    assert names("placed,placed") == [["placed"]]
    assert names("") == names("auto") == [["transcripts"]]
    assert names("auto,placed") == [["transcripts"], ["placed"]]
    assert names("auto,transcripts") == [["transcripts"]]


def test_auto_prefers_lossless_claw_to_transcripts_to_claude_code(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {name: EntryPoint(name, "none:None", source.GROUP) for name in ("claude-code", "lcm", "transcripts")}
    monkeypatch.setattr(source, "installed", lambda: points)
    monkeypatch.setattr(source, "_made", lambda point, folders: ListSource(point.name))
    assert names("auto") == [["lcm", "transcripts", "claude-code"]]
    assert names("auto,claude-code") == [["lcm", "transcripts"], ["claude-code"]]


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


def holding(name: str) -> ListSource:
    made = ListSource(name)
    made.append("a", "user", "the boat is called Sira")
    return made


ABSENT, DRIFT, EMPTY = Failing(SourceAbsent("x")), Failing(SourceDrift("y")), Failing(SourceEmpty("z"))
THERE: MessageSource = holding("there")


def test_the_first_source_that_can_be_read_is_read_and_those_behind_it_stand_by() -> None:
    behind = holding("behind")
    chosen = choose([ABSENT, DRIFT, THERE, ABSENT, behind])
    assert (chosen.source, chosen.standing_by, chosen.failure) == (THERE, [behind], None)
    assert [(one, str(why)) for one, why in chosen.passed_over] == [(ABSENT, "x"), (DRIFT, "y")]


@pytest.mark.parametrize("error", [SourceCorrupt("x"), SourceBusy("x"), SourceError("x")])
def test_a_log_that_is_damaged_or_held_is_never_passed_over(error: SourceError) -> None:
    chosen = choose([Failing(error), THERE])
    assert (chosen.source, chosen.failure, chosen.failing) == (None, error, "list")


def test_a_form_that_nobody_knows_is_a_failure_where_nothing_else_is_there() -> None:
    chosen = choose([DRIFT, ABSENT])
    assert (chosen.source, chosen.failure) == (None, DRIFT.error)


def test_a_place_that_is_there_and_empty_is_told_from_one_that_is_missing() -> None:
    chosen = choose([ABSENT, EMPTY])
    assert chosen.source is EMPTY and isinstance(chosen.failure, SourceEmpty) and str(chosen.failure) == "x; z"
    assert choose([EMPTY, THERE]).source is THERE
    chosen = choose([ABSENT, Failing(SourceAbsent("w"))])
    assert chosen.source is None and str(chosen.failure) == "x; w" and not isinstance(chosen.failure, SourceEmpty)


def test_a_log_that_holds_nothing_leaves_the_choice_to_one_that_does(points: None) -> None:
    nothing = ListSource("nothing")
    assert (choose([nothing, THERE]).source, choose([nothing, THERE]).standing_by) == (THERE, [nothing])
    assert choose([nothing, ABSENT]).source is nothing
    assert choose([nothing]).source is nothing
    assert choose([DRIFT, nothing]).source is nothing


class Broken(ListSource):
    """An adapter with faults of its own."""

    def __init__(self, folders: Folders) -> None:
        super().__init__("broken")

    def streams(self):  # type: ignore[no-untyped-def]
        raise ValueError("Invalid isoformat string: 'alpha giraffe'")

    get = read = withdrawn = fate = streams  # type: ignore[assignment]


@pytest.mark.parametrize("asked", ["streams", "read", "get", "withdrawn", "fate"])
def test_a_fault_of_an_adapter_is_a_source_error_without_its_words(asked: str) -> None:
    guarded = source.Guarded(Broken(FOLDERS))
    calls: dict[str, Callable[[], object]] = {
        "streams": lambda: list(guarded.streams()),
        "read": lambda: guarded.read(None, None, 1),  # type: ignore[arg-type]
        "get": lambda: guarded.get([]),
        "withdrawn": lambda: guarded.withdrawn(None, None, []),  # type: ignore[arg-type]
        "fate": lambda: guarded.fate(None, None, None),  # type: ignore[arg-type]
    }
    with pytest.raises(SourceError, match=f"the source broken failed in {asked}") as failed:
        calls[asked]()
    assert "giraffe" not in str(failed.value)
