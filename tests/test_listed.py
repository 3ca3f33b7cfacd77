"""Listed: how a table of words is read."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from clawmark.facts import alike, fitting, phrases, relations, shape
from clawmark.facts.listed import Phrases
from clawmark.facts.typed import plain, words_of
from clawmark.guard import views
from clawmark.text import normal


@pytest.mark.parametrize("entry", ["채식*", "no*pe", "*", "used to*", "kein**"])
def test_any_ending_is_that_of_a_single_word(entry: str) -> None:
    with pytest.raises(ValueError, match="end of a single word"):
        Phrases(f"yes, {entry}")


def test_a_script_without_blanks_has_parts_or_words() -> None:
    parts, words = Phrases("채식"), Phrases("채식*", spaceless=False)
    assert parts.within([], "저는 채식주의자입니다") and not parts.within(["채식"])
    assert words.within(["채식주의자입니다"]) and not words.within([], "저는 채식주의자입니다")


def test_a_word_is_held_by_itself_and_a_phrase_stands_as_a_whole() -> None:
    table = Phrases("have to, must, need*", "ought to")
    assert all(map(table.holds, ("must", "needs"))) and not any(map(table.holds, ("have", "ought", "mus", "have to")))
    assert [table.length_at("you have to and must".split(), at) for at in range(6)] == [0, 2, 0, 0, 1, 0]


def test_a_table_meets_texts_in_its_form() -> None:
    assert Phrases("Müssen", form=views.folded).holds(views.folded("MÜSSEN"))
    assert not Phrases("Müssen").holds(views.folded("MÜSSEN"))


# --- the tables themselves --------------------------------------------------------------------------------------------

MODULES = (phrases, relations, fitting, alike, shape)


def tables(module: ModuleType) -> Iterator[tuple[str, Phrases]]:
    """What a module holds and did not import, also within its tuples and mappings."""
    for name, value in vars(module).items():
        if module is phrases or getattr(phrases, name, None) is not value:
            yield from ((name, one) for one in _within(value))


def _within(value: object) -> Iterator[Phrases]:
    if isinstance(value, Phrases):
        yield value
    elif isinstance(value, relations.Relation):
        yield value.said
    elif isinstance(value, Mapping | tuple):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _within(one)


def cut_by(module: ModuleType) -> Callable[[str], list[str]]:
    """How the texts that meet the tables of a module are cut into words."""
    if module is shape:
        return lambda text: shape._tokens(views.folded(text))
    return (lambda text: alike._tokens(normal(text))) if module is alike else (lambda text: words_of(plain(text)))


def asked() -> dict[str, set[str]]:
    """Table → the ways in which any module asks it: `holds`, …; `text` where a text is given, or it is handed on."""
    ways: dict[str, set[str]] = defaultdict(set)
    for path in sorted(Path(phrases.__file__).parent.glob("*.py")):
        asking: set[ast.expr] = set()
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        for node in nodes:
            if isinstance(node, ast.Attribute):
                ways[_name_of(node.value)].add("text" if node.attr == "parts" else node.attr)
                asking.add(node.value)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) > 1:
                ways[_name_of(node.func.value)].add("text")
        for node in nodes:
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and node not in asking:
                ways[_name_of(node)].add("text")
    return ways


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


WAYS = asked()


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_entry_can_be_found_by_the_way_its_table_is_asked(module: ModuleType) -> None:
    """Cut as texts are: `d'ora` is two words there. One word where one is asked for; parts where a text is given."""
    cut = cut_by(module)
    lost = []
    for name, table in tables(module):
        entries = [(head, *tail) for head, tails in table._heads.items() for tail in tails]
        lost += [(name, " ".join(entry)) for entry in entries if tuple(cut(" ".join(entry))) != entry]
        lost += [(name, stem) for stem in table._stems if cut(stem) != [stem]]
        lost += [(name, " ".join(entry)) for entry in entries if len(entry) > 1 and WAYS[name] == {"holds"}]
        lost += [(name, part) for part in table.parts if "text" not in WAYS[name]]
    assert lost == []
