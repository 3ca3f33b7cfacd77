"""Which lines of a transcript the person has left behind by editing a prompt, going back or asking again.

A transcript is a tree: each line names the one it follows. The conversation as it stands is the way from its newest
turn back to the beginning. A branch off that way was left behind if it holds

- a prompt, or
- an answer, where the way goes on at the same place with a prompt or with another answer, and no line of the branch
  belongs to an answer on the way.

Every other branch is what the host makes by itself (parallel tool calls, hooks, progress) and counts. A line whose
parent is not there follows what stands before it; a prompt that has no parent, as the first one of the conversation
has none, was said in that one's place. Links that lead in a circle prove nothing: in doubt nothing was
left behind, since what was left behind is erased.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from clawmark_sources.claude_code.entry import Entry

_NOWHERE: Final = -1


Says = Literal["prompt", "answer", "call", "turn", ""]
"""The person's words, the model's, another block of an answer, another line of either; "" = a line of the host's."""


class Node(NamedTuple):
    """A line of the conversation.

    group    the answer it is a block of
    begins   a prompt of which the host says that it follows nothing
    opens    a compaction ends in it
    """

    id: str
    parent: str
    says: Says
    group: str = ""
    begins: bool = False
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Branches:
    """left    every line that was left behind, by its uuid
    roots   where those branches begin
    lines   all lines of the tree
    """

    left: frozenset[str] = frozenset()
    roots: tuple[str, ...] = ()
    lines: frozenset[str] = frozenset()


def node_of(entry: Entry) -> Node | None:
    """A line's place in the tree; None for one that has none."""
    if not entry.on_tree:
        return None
    says: Says = "turn" if entry.turn else ""
    if entry.text and entry.origin == "owner":
        says = "prompt"
    elif entry.text and entry.origin == "assistant":
        says = "answer"
    elif entry.group:
        says = "call"
    return Node(entry.uuid, entry.parent, says, entry.group, entry.begins, bool(entry.opens))


def branches(lines: Iterable[Node]) -> Branches:
    """What was left behind in a file with these lines, in their order."""
    nodes: list[Node] = []
    place: dict[str, int] = {}
    for node in lines:
        if node.id not in place:  # a second copy of a line, as a fork writes them, is not another one
            place[node.id] = len(nodes)
            nodes.append(node)
    everything = frozenset(place)
    parents = _parents(nodes, place)
    way = _way(nodes, parents)
    if not way:
        return Branches(lines=everything)
    answers = {nodes[n].group for n in way if n != _NOWHERE and nodes[n].group}
    left: set[int] = set()
    roots = []
    for branch in _branches_off(parents, way):
        if branch.fork in way and _was_left(branch, nodes, way, answers):
            left.update(branch.members)
            roots.append(nodes[branch.root].id)
    return Branches(frozenset(nodes[i].id for i in left), tuple(sorted(roots)), everything)


def _parents(nodes: list[Node], place: dict[str, int]) -> list[int]:
    parents: list[int] = []
    first: int | None = None
    linked = False  # a host that links no line to another says nothing by it
    for number, node in enumerate(nodes):
        first = None if node.opens else first
        if node.begins and first is not None and linked:
            parents.append(parents[first])
            continue
        if node.begins:
            first, linked = number, False
        linked = linked or (bool(node.says) and node.parent in place)
        parent = place.get(node.parent, number) if node.parent else number
        if parent == number:
            parent = number - 1
            while parent >= 0 and parents[parent] > parent:  # a hook's line can stand before the one it follows
                parent -= 1
        parents.append(parent)
    return parents


def _way(nodes: list[Node], parents: list[int]) -> dict[int, int]:
    """The lines from the newest turn to the beginning (_NOWHERE), each with the one that follows it; empty when it is a
    circle."""
    at = next((n for n in reversed(range(len(nodes))) if nodes[n].says), _NOWHERE)
    way: dict[int, int] = {}
    following = _NOWHERE
    while at != _NOWHERE:
        if at in way:
            return {}
        way[at] = following
        at, following = parents[at], at
    if way:
        way[_NOWHERE] = following
    return way


@dataclass(slots=True)
class _Branch:
    root: int
    fork: int
    members: list[int] = field(default_factory=list)


def _branches_off(parents: list[int], way: dict[int, int]) -> list[_Branch]:
    """Every line off the way, by the line at which its branch begins. A circle off the way begins nowhere."""
    found: dict[int, _Branch] = {}
    root_of: dict[int, int] = {}
    for number in range(len(parents)):
        path: list[int] = []
        seen: set[int] = set()
        at = number
        while at != _NOWHERE and at not in way and at not in root_of and at not in seen:
            path.append(at)
            seen.add(at)
            at = parents[at]
        if not path:
            continue
        root = root_of.get(at, _NOWHERE) if at in root_of or at in seen else path[-1]
        root_of.update(dict.fromkeys(path, root))
        if root != _NOWHERE:
            found.setdefault(root, _Branch(root, parents[root])).members.extend(path)
    return list(found.values())


def _was_left(branch: _Branch, nodes: list[Node], way: dict[int, int], answers: set[str]) -> bool:
    following = way[branch.fork]
    if following == _NOWHERE:  # it goes on where the conversation stands now
        return False
    said = {nodes[n].says for n in branch.members}
    if "prompt" in said:
        return True
    if "answer" not in said:
        return False
    while following != _NOWHERE and not nodes[following].says:  # what hooks wrote before the prompt
        following = way[following]
    if following == _NOWHERE or nodes[following].says == "turn":
        return False
    return answers.isdisjoint(nodes[n].group for n in branch.members)
