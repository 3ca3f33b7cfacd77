"""The documentation says what the code does: generated parts are current, hand-written ones name what there is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apsw
import click
import pytest
from server import Reply, Request, serving

from clawmark.cli import cli
from clawmark.memory import Memory
from clawmark.settings import OF_SCRIPTS, Settings, config_file, load, variable
from clawmark.store.events import TYPES

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tests" / "fixtures" / "openclaw" / "sqlite"
COGGED = ["README.md", "ARCHITECTURE.md", ".env.example", *(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
PAGES = sorted(
    page for folder in ("*.md", "docs/**/*.md", "sources/*.md", "tests/**/*.md") for page in ROOT.glob(folder)
)
VARIABLES = [variable(name) for name in Settings.model_fields]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """What stands under `heading` (with its marks), up to the next heading of the same or a higher level."""
    level = heading.index(" ")
    _, _, rest = f"\n{text}".partition(f"\n{heading}\n")
    assert rest, f"no section {heading!r}"
    return re.split(rf"\n#{{1,{level}}} ", rest, maxsplit=1)[0]


def run(*command: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


# Settings


@pytest.mark.parametrize("name", VARIABLES)
def test_every_setting_is_documented(name: str) -> None:
    assert re.search(rf"^#{name}=", read(".env.example"), re.MULTILINE), ".env.example"
    assert f"\n| `{name}` |" in read("docs/settings.md"), "docs/settings.md"


def test_no_other_setting_is_documented() -> None:
    named = {
        name
        for page in [*PAGES, ROOT / ".env.example"]
        for name in re.findall(r"\bCLAWMARK_[A-Z_]+\b", page.read_text())
    }
    assert named - OF_SCRIPTS <= set(VARIABLES)


def test_the_readme_links_the_settings() -> None:
    assert "](docs/settings.md)" in read("README.md")
    assert "](.env.example)" in read("README.md")


def test_the_example_file_as_it_stands_sets_nothing() -> None:
    file = config_file()
    file.parent.mkdir(parents=True)
    file.write_text(read(".env.example"), encoding="utf-8")
    assert load() == Settings()


def test_the_example_file_without_its_marks_sets_every_default() -> None:
    file = config_file()
    file.parent.mkdir(parents=True)
    file.write_text(re.sub(r"^#(?=CLAWMARK_)", "", read(".env.example"), flags=re.MULTILINE), encoding="utf-8")
    assert load() == Settings()


# The command line


def test_every_command_and_option_is_documented() -> None:
    page = read("docs/cli.md")
    for name, command in cli.commands.items():
        described = section(page, f"### {name}")
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for option in parameter.opts:
                    assert f"| `{option}" in described, f"{name} {option}"
            else:
                assert str(parameter.name).upper() in described, f"{name} {parameter.name}"
        assert f"`clawmark {name}" in read("README.md")


def keys(value: Any) -> Any:
    """The shape of a JSON value: names of its fields, with what stands in them; a list by its first item."""
    if isinstance(value, dict):
        return {name: keys(inner) for name, inner in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each command prints with --json over the sample history, by command."""
    place = tmp_path_factory.mktemp("answers")
    environment = {
        "HOME": str(place),
        "XDG_CONFIG_HOME": str(place),
        "CLAWMARK_DB_PATH": str(place / "memory.db"),
        "CLAWMARK_TRANSCRIPTS_DIR": str(SAMPLE),
        "CLAWMARK_EMBEDDER": "none",
    }
    commands = {
        "sync": ["sync"],
        "set": ["set", "pref.boat", "a sailing trip a year"],
        "search": ["search", "sailing trip"],
        "block": ["block", "sailing trip"],
        "facts": ["facts"],
        "unhide": ["unhide", "pref.boat"],
        "why": ["why", "pref.boat"],
        "forget": ["forget", "pref.boat", "--yes"],
        "events": ["events"],
        "status": ["status"],
    }
    printed = {}

    def ask(name: str, *arguments: str, **more: str) -> None:
        done = run(sys.executable, "-m", "clawmark", *arguments, "--json", **environment, **more)
        assert done.returncode == 0, done.stderr
        printed[name] = json.loads(done.stdout)

    for name, arguments in commands.items():
        ask(name, *arguments)
    ask("review", "review")
    first, *_ = waiting = printed["review"]["proposals"]
    ask("review", "review", "--accept", first["id"])
    printed["review"]["proposals"] = waiting  # both halves of the answer
    ask("export", "export", str(place / "memory.jsonl"))
    ask("import", "import", str(place / "memory.jsonl"))
    ask("calibrate", "calibrate", "--facts", "--days", "3650")
    ask("doctor", "doctor")
    ask("backup", "backup")
    ask("restore", "restore", printed["backup"]["backup"])
    with serving(embeddings) as server:
        environment["CLAWMARK_EMBEDDER"] = "endpoint"
        ask("reembed", "reembed", CLAWMARK_EMBEDDING_URL=server.url)
    return printed


def embeddings(request: Request) -> Reply:
    texts = request.body["input"]
    return Reply(body={"data": [{"index": n, "embedding": [1.0, float(len(t))]} for n, t in enumerate(texts)]})


def answers_in_json(name: str) -> bool:
    return any("--json" in option.opts for option in cli.commands[name].params)


@pytest.mark.parametrize("name", list(filter(answers_in_json, cli.commands)))
def test_the_json_of_every_command_has_the_fields_that_are_documented(name: str, answers: dict[str, Any]) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", section(read("docs/cli.md"), f"### `{name} --json`"), re.DOTALL)
    shown, real = keys(json.loads(example)), keys(answers[name])
    for counts_by_reason in ("dropped", "pending", "counts"):
        shown.pop(counts_by_reason, None), real.pop(counts_by_reason, None)
    if name == "block":  # its items are those of search, and the page says so
        shown.update(facts=None, recalled=None), real.update(facts=None, recalled=None)
    if name == "status":  # without an embedder there is no space; names and counts by reason are the history's own
        for status in (shown, real):
            del status["space"], status["scope_names"], status["sources"][0]["dropped"]
    if name == "forget":  # the messages that go are those of search, and the page says so
        del shown["excerpts"], real["excerpts"]
    assert shown == real


# Storage


def test_every_table_and_column_is_documented_and_no_other(tmp_path: Path) -> None:
    Memory.open(Settings(db_path=tmp_path / "memory.db", embedder="none")).close()
    connection = apsw.Connection(str(tmp_path / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    tables = [name for name in tables if not name.startswith(("sqlite_", "lexicon_"))]
    real = {
        table: [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        for table in tables
    }
    connection.close()
    page = section(read("docs/storage.md"), "## Tables")
    documented = {}
    for part in page.split("\n### ")[1:]:
        name = part.partition("\n")[0].strip("`")
        listed = part.partition("| column |")[2].partition("\n\n")[0]
        documented[name] = re.findall(r"^\| `(\w+)` \|", listed, re.MULTILINE)
    assert documented == real


def test_sqlites_own_tables_are_named(tmp_path: Path) -> None:
    Memory.open(Settings(db_path=tmp_path / "memory.db", embedder="none")).close()
    connection = apsw.Connection(str(tmp_path / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    own = connection.execute(
        "SELECT name FROM sqlite_master WHERE name LIKE 'lexicon!_%' ESCAPE '!' AND type = 'table'"
    )
    names = [name for (name,) in own]
    connection.close()
    assert names
    assert [name for name in names if f"`{name}`" not in read("docs/storage.md")] == []


def test_every_event_type_is_documented() -> None:
    described = section(read("docs/storage.md"), "### `memory_events`")
    assert [name for name in TYPES if f"\n| `{name}` |" not in described] == []


def test_the_vector_format_is_the_one_that_is_documented() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", read("docs/storage.md"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)  # ours
    from clawmark.store import vectors

    assert vectors.encode(names["vector"]) == names["blob"]


# Pages


def test_the_readmes_python_example_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", read("README.md"), re.DOTALL)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    done = run(sys.executable, "-W", "error", "example.py", cwd=tmp_path, CLAWMARK_EMBEDDER="none")
    assert done.returncode == 0, done.stderr
    assert "messages kept" in done.stdout
    assert '- pref.editor: "Helix"' in done.stdout
    assert "## Recalled context" in done.stdout
    assert (tmp_path / "memory.db").exists()


def test_the_readmes_audit_queries_run(tmp_path: Path) -> None:
    queries = re.findall(r'"(SELECT [^"]+)"', section(read("README.md"), "## Audit"))
    assert len(queries) == 2
    with Memory.open(Settings(db_path=tmp_path / "memory.db", embedder="none")) as memory:
        memory.set("pref.editor", "Helix")
    connection = apsw.Connection(str(tmp_path / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    answers = [connection.execute(query).fetchall() for query in queries]
    connection.close()
    assert answers == [[("create", 1)], [("pref.editor", 1.0, "user")]]


@pytest.mark.skipif(find_spec("cogapp") is None, reason="cogapp is not installed")
def test_generated_parts_are_current() -> None:
    done = run(sys.executable, "-m", "cogapp", "--check", *COGGED)
    assert done.returncode == 0, done.stdout + done.stderr + "\nrun: cog -r " + " ".join(COGGED)


def anchors(page: Path) -> set[str]:
    """The names GitHub gives to the headings of a page."""
    headings = re.findall(r"^#{1,6} (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|<!-- \[\[\[cog.*?\]\]\] -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_are_short(page: Path) -> None:
    text = re.sub(r"```.*?```|<!-- \[\[\[cog.*?\]\]\] -->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    of_one_piece = ("|", "    ", "- [")
    longest = 130 if "fixtures" in page.parts else 120
    assert [line for line in text.splitlines() if len(line) > longest and not line.startswith(of_one_piece)] == []


# Layers


@pytest.mark.skipif(find_spec("importlinter") is None, reason="import-linter is not installed")
def test_lower_layers_never_import_higher_ones() -> None:
    done = run(sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr
