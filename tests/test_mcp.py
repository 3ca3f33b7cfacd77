"""The MCP server, by the official client: its tools, resources and prompt, over the real resident process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from resident import PATIENCE, Home, home

pytest.importorskip("mcp_types", reason="needs the extra mcp")

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from clawmark.client import Failure
from clawmark.hosts import mcp as ours
from clawmark.memory import Memory
from clawmark.settings import Settings
from clawmark.tools import TOOLS


def command(*arguments: str) -> list[str]:
    return ["-E", "-P", "-m", "clawmark", "mcp", *arguments]


def parameters(person: Home, *arguments: str, **variables: str) -> StdioServerParameters:
    """A server as a client starts it: in a folder of its own, with the person's environment."""
    return StdioServerParameters(
        command=sys.executable,
        args=command(*arguments),
        env=person.variables | variables,
        cwd=str(person.folder),
    )


def through(server: StdioServerParameters, talk: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        with anyio.fail_after(PATIENCE * 2):
            async with Client(stdio_client(server)) as client:
                await talk(client)

    anyio.run(run)


async def called(client: Client, name: str, **arguments: Any) -> tuple[str, bool]:
    result = await client.call_tool(name, arguments)
    return "".join(part.text for part in result.content), bool(result.is_error)  # type: ignore[union-attr]


async def read(client: Client, uri: str) -> str:
    return "".join(part.text for part in (await client.read_resource(uri)).contents)  # type: ignore[union-attr]


async def prompted(client: Client, query: str) -> str:
    messages = (await client.get_prompt("recall", {"query": query})).messages
    return "".join(message.content.text for message in messages)  # type: ignore[union-attr]


def asked_all(person: Home, query: str, limit: int) -> tuple[str, str, str]:
    """What tool, prompt and resource say in this person's project, as Claude Code starts the server."""
    said: list[str] = []

    async def talk(client: Client) -> None:
        said.append((await called(client, "clawmark_search", query=query, limit=limit))[0])
        said.append(await prompted(client, query))
        said.append(await read(client, "clawmark://facts"))

    server = parameters(person, "--host", "claude-code", CLAUDE_PROJECT_DIR=str(person.project))
    through(server, talk)
    tool, prompt, facts = said
    return tool, prompt, facts


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with home(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def settled(person: Home) -> Iterator[Home]:
    """Two projects' facts and one that is shared, and the resident process over them."""
    with Memory.open(Settings(db_path=person.database, embedder="none")) as memory:
        memory.set("pref.glaze", "celadon")
        memory.set("project.fee", "twelve a day", "market")
        memory.set("project.smith", "in the harbour street", "kiln")
    with person.resident():
        yield person


# --- what is offered --------------------------------------------------------------------------------------------------


def test_tools_are_those_of_every_host(settled: Home) -> None:
    async def talk(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {name: (tool.description, tool.input_schema) for name, tool in tools.items()} == {
            tool.name: (tool.description, dict(tool.parameters)) for tool in TOOLS
        }
        hints = {name: tool.annotations for name, tool in tools.items()}
        assert all(hint is not None and hint.open_world_hint is False for hint in hints.values())
        assert [name for name, hint in hints.items() if hint and hint.read_only_hint] == [
            "clawmark_search",
            "clawmark_review",
        ]
        assert [name for name, hint in hints.items() if hint and hint.destructive_hint] == ["clawmark_forget"]

    through(parameters(settled), talk)


def test_resources_and_prompt_are_listed(settled: Home) -> None:
    async def talk(client: Client) -> None:
        assert [r.uri for r in (await client.list_resources()).resources] == ["clawmark://facts"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [t.uri_template for t in templates] == ["clawmark://facts/{scope}"]
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, [(a.name, a.required) for a in prompt.arguments or []]) == ("recall", [("query", True)])

    through(parameters(settled), talk)


def test_clients_of_the_older_protocol_are_served(settled: Home) -> None:
    async def run() -> None:
        with anyio.fail_after(PATIENCE):
            async with Client(stdio_client(parameters(settled)), mode="legacy") as client:
                assert "celadon" in (await called(client, "clawmark_search", query="glaze"))[0]

    anyio.run(run)


# --- what is answered -------------------------------------------------------------------------------------------------


def test_what_is_set_is_the_agents_word_and_gives_way_to_the_persons(settled: Home) -> None:
    async def talk(client: Client) -> None:
        said, wrong = await called(client, "clawmark_set", key="pref.clay", value="stoneware")
        assert (wrong, "your note" in said) == (False, True)
        _, _ = await called(client, "clawmark_set", key="pref.glaze", value="tenmoku")
        facts = await read(client, "clawmark://facts")
        assert '- pref.clay: "stoneware" (agent, ' in facts
        assert '- pref.glaze: "celadon" (you, ' in facts

    through(parameters(settled), talk)


def test_what_is_forgotten_is_hidden_and_not_erased(settled: Home) -> None:
    async def talk(client: Client) -> None:
        said, wrong = await called(client, "clawmark_forget", key="pref.glaze")
        assert (wrong, "Hidden, not erased" in said) == (False, True)
        assert "celadon" not in await read(client, "clawmark://facts")

    through(parameters(settled), talk)
    with Memory.open(Settings(db_path=settled.database, embedder="none")) as memory:
        assert [fact.key for fact in memory.facts(hidden=True)] == ["pref.glaze"]


def test_what_is_about_the_person_waits_for_them(settled: Home) -> None:
    async def talk(client: Client) -> None:
        said, wrong = await called(client, "clawmark_set", key="user.name", value="Mira")
        assert (wrong, "Not stored" in said) == (False, True)
        assert "Mira" not in await read(client, "clawmark://facts")
        said, wrong = await called(client, "clawmark_review")
        assert (wrong, said.startswith("[Memory "), 'user.name: "Mira"' in said) == (False, True, True)
        assert await called(client, "clawmark_review", days=0) == ("days is a whole number from 1 to 36500.", True)

    through(parameters(settled), talk)
    with Memory.open(Settings(db_path=settled.database, embedder="none")) as memory:
        assert [one.key for one in memory.proposals()] == ["user.name"]


def test_refusal_is_a_tools_error_with_the_line_a_person_would_see(settled: Home) -> None:
    async def talk(client: Client) -> None:
        said, wrong = await called(client, "clawmark_set", key="glaze", value="celadon")
        assert wrong and said.startswith("KEY_FORMAT: ")
        said, wrong = await called(client, "clawmark_search")
        assert wrong and "query" in said
        said, wrong = await called(client, "clawmark_search", query="glaze", limit="many")
        assert wrong and "limit" in said
        assert await called(client, "clawmark_forget", key=None) == ("key is missing: a text.", True)
        with pytest.raises(MCPError, match="no such tool"):
            await called(client, "clawmark_erase_everything")
        with pytest.raises(MCPError, match="no such prompt"):
            await client.get_prompt("other", {"query": "x"})
        with pytest.raises(MCPError, match="query is missing"):
            await client.get_prompt("recall", {"query": " "})
        with pytest.raises(MCPError, match="no such resource"):
            await read(client, "clawmark://else")
        assert "celadon" in (await called(client, "clawmark_search", query="glaze"))[0]

    through(parameters(settled), talk)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("clawmark_search", {"query": 5}, "query is not a text."),
        ("clawmark_search", {"query": "glaze", "limit": "6"}, "limit is not a whole number."),
        ("clawmark_search", {"query": "glaze", "limit": True}, "limit is not a whole number."),
        ("clawmark_search", {"query": "glaze", "scope": "kiln"}, "'scope'; clawmark_search takes query, limit."),
        ("clawmark_set", {"key": "pref.clay", "value": ["a"]}, "value is not a text."),
        ("clawmark_set", {"key": "pref.clay", "value": "x", "caller": {"owner": True}}, "'caller'; clawmark_set takes"),
        ("clawmark_forget", {"key": "pref.glaze", "deadline_ms": 1}, "'deadline_ms'; clawmark_forget takes key."),
        ("clawmark_review", {"days": "90"}, "days is not a whole number."),
        ("clawmark_review", {"scope": "kiln"}, "'scope'; clawmark_review takes days."),
        ("clawmark_reconcile", {"drain": "no"}, "drain is not true or false."),
        ("clawmark_reconcile", {"now": True}, "'now'; clawmark_reconcile takes drain."),
        ("clawmark_reconcile", {"x\n" * 9_999: 1}, "'; clawmark_reconcile takes drain."),
    ],
)
def test_wrong_argument_is_named_and_nothing_is_done(tool: str, arguments: dict[str, Any], said: str) -> None:
    asker = Opening(opens=True)

    async def run() -> None:
        async with Client(ours.server(ours.Window(asker, None))) as client:
            text, wrong = await called(client, tool, **arguments)
            assert wrong and said in text and len(text) < 200 and "\n" not in text

    anyio.run(run)
    assert asker.asked == []


def test_argument_that_is_null_is_not_given(settled: Home) -> None:
    async def talk(client: Client) -> None:
        assert "celadon" in (await called(client, "clawmark_search", query="glaze", limit=None))[0]

    through(parameters(settled), talk)


def test_server_of_no_scope_searches_all_and_its_resources_say_what_they_hold(settled: Home) -> None:
    async def talk(client: Client) -> None:
        found = (await called(client, "clawmark_search", query="glaze, fee and the smith in the harbour"))[0]
        assert ("celadon" in found, "twelve" in found, "harbour" in found) == (True, True, True)
        everybodys = await read(client, "clawmark://facts")
        assert ("celadon" in everybodys, "twelve" in everybodys, "harbour" in everybodys) == (True, False, False)
        assert everybodys == await read(client, "clawmark://facts/shared")
        one = await read(client, "clawmark://facts/kiln")
        assert ("celadon" in one, "twelve" in one, "harbour" in one) == (True, False, True)
        (listed,) = (await client.list_resources()).resources
        assert "all agents and projects share" in (listed.description or "")
        assert "clawmark://facts/{scope}" in (listed.description or "")

    through(parameters(settled), talk)


def test_recalled_text_is_guarded_everywhere(settled: Home) -> None:
    async def talk(client: Client) -> None:
        for text in (
            (await called(client, "clawmark_search", query="glaze"))[0],
            await prompted(client, "glaze"),
            await read(client, "clawmark://facts"),
        ):
            assert text.startswith("[Memory ")
            assert "DATA recalled about the user" in text
            assert "celadon" in text

    through(parameters(settled), talk)


def test_server_of_one_scope_sees_that_scope_and_what_is_shared(settled: Home) -> None:
    async def talk(client: Client) -> None:
        own = await read(client, "clawmark://facts")
        assert ("celadon" in own, "twelve" in own, "harbour" in own) == (True, True, False)
        assert await read(client, "clawmark://facts/market") == own
        assert "twelve" not in await read(client, "clawmark://facts/shared")
        with pytest.raises(MCPError, match="another scope"):
            await read(client, "clawmark://facts/kiln")
        assert "harbour" not in (await called(client, "clawmark_search", query="smith harbour"))[0]
        await called(client, "clawmark_set", key="project.stall", value="number nine")
        assert "number nine" in await read(client, "clawmark://facts")

    through(parameters(settled, "--scope", "market"), talk)
    with Memory.open(Settings(db_path=settled.database, embedder="none")) as memory:
        assert [fact.scope for fact in memory.facts() if fact.key == "project.stall"] == ["market"]


def test_project_under_claude_code_is_the_scope(person: Home) -> None:
    with Memory.open(Settings(db_path=person.database, embedder="none")) as memory:
        memory.set("project.fee", "twelve a day", person.scope)
    with person.resident():
        tool, _, facts = asked_all(person, "what is the fee", limit=3)
    assert "twelve a day" in tool
    assert "twelve a day" in facts


def test_many_calls_at_once_are_all_answered(settled: Home) -> None:
    async def talk(client: Client) -> None:
        answers: list[str] = []

        async def ask(number: int) -> None:
            answers.append((await called(client, "clawmark_search", query=f"glaze {number}"))[0])

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(ask, number)
        assert len(answers) == 100
        assert all("celadon" in answer for answer in answers)

    through(parameters(settled), talk)


# --- the process ------------------------------------------------------------------------------------------------------


def test_resident_process_is_started_where_none_runs(person: Home) -> None:
    async def talk(client: Client) -> None:
        said, wrong = await called(client, "clawmark_set", key="pref.clay", value="stoneware")
        assert (wrong, "pref.clay" in said) == (False, True)

    through(parameters(person), talk)


def test_resident_process_that_ends_is_asked_again(settled: Home) -> None:
    async def talk(client: Client) -> None:
        assert "celadon" in (await called(client, "clawmark_search", query="glaze"))[0]
        await anyio.to_thread.run_sync(settled.end_detached)
        assert "celadon" in (await called(client, "clawmark_search", query="glaze"))[0]

    through(parameters(settled), talk)


@contextmanager
def raw(person: Home, *, cwd: Path | None = None, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that a client of no library has greeted."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    server = subprocess.Popen(
        [sys.executable, *_installed()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=person.variables | variables,
        cwd=cwd or person.folder,
    )
    assert server.stdout is not None
    with server:
        try:
            write(server, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
            assert json.loads(server.stdout.readline())["id"] == 1
            write(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield server
        finally:
            server.kill()


def _installed() -> list[str]:
    """The arguments that Claude Code starts it with."""
    plugin = resources.files("clawmark.hosts.claude_code").joinpath("plugin", ".mcp.json")
    arguments: list[str] = json.loads(plugin.read_text())["mcpServers"]["clawmark"]["args"]
    return arguments


def write(server: subprocess.Popen[bytes], *lines: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    server.stdin.flush()


def ended(server: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """With which code, and what it complained of."""
    assert server.stderr is not None
    code = server.wait(PATIENCE)
    return code, server.stderr.read()


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_server_ends_with_its_client_and_prints_nothing_but_protocol(settled: Home) -> None:
    with raw(settled) as server:
        assert server.stdin is not None and server.stdout is not None
        write(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert json.loads(server.stdout.readline())["id"] == 2
        server.stdin.close()
        assert (ended(server), server.stdout.read()) == ((0, b""), b"")


def test_client_that_goes_while_it_is_answered_is_no_fault(settled: Home) -> None:
    with raw(settled) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdout.close()
        write(server, *({"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(2, 40)))
        write(server, *(call(number, "clawmark_search", query="glaze") for number in range(40, 60)))
        server.stdin.close()
        assert ended(server) == (0, b"")


def test_call_that_nobody_answers_does_not_outlive_its_client(person: Home) -> None:
    with person.resident() as resident, raw(person) as server:
        assert server.stdin is not None and server.stdout is not None
        resident.send_signal(signal.SIGSTOP)
        try:
            write(server, call(2, "clawmark_reconcile"))  # ten minutes are given to it
            for number in range(3, 9):  # by then it is under way
                write(server, {"jsonrpc": "2.0", "id": number, "method": "tools/list"})
                assert json.loads(server.stdout.readline())["id"] == number
            server.stdin.close()
            assert ended(server) == (0, b"")
        finally:
            resident.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_it_at_once_although_its_client_stays(settled: Home, ends: signal.Signals) -> None:
    with raw(settled) as server:
        server.send_signal(ends)
        assert ended(server) == (-ends, b"")


@pytest.mark.parametrize("path", [".", ":", "", ":/nowhere"])
def test_folder_it_stands_in_runs_nothing(settled: Home, tmp_path: Path, path: str) -> None:
    mark, hostile = tmp_path / "mark", tmp_path / "hostile"
    (hostile / "clawmark").mkdir(parents=True)
    for name in (
        "sitecustomize",
        "usercustomize",
        "json",
        "mcp_types",
        "anyio",
        "clawmark/__init__",
        "clawmark/__main__",
    ):
        (hostile / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write(__file__)\n")
    with raw(settled, cwd=hostile, PYTHONPATH=path) as server:
        assert server.stdin is not None and server.stdout is not None
        write(server, call(2, "clawmark_search", query="glaze"))
        assert b"celadon" in server.stdout.readline()
        server.stdin.close()
        assert ended(server) == (0, b"")
    assert not mark.exists()


def test_folder_that_is_gone_is_no_project(settled: Home, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    server = StdioServerParameters(
        command="sh",
        args=["-c", 'rmdir "$0"; exec "$@"', str(gone), sys.executable, *command("--host", "claude-code")],
        env=settled.variables,
        cwd=str(gone),
    )

    async def run() -> None:
        with anyio.fail_after(PATIENCE * 2), (tmp_path / "said").open("w") as said:
            async with Client(stdio_client(server, errlog=said)) as client:
                found = (await called(client, "clawmark_search", query="glaze, fee and the smith in the harbour"))[0]
                assert ("celadon" in found, "twelve" in found, "harbour" in found) == (True, False, False)

    anyio.run(run)
    (line,) = (tmp_path / "said").read_text().splitlines()
    assert line == "clawmark: the folder this was started in is gone, so it sees what is shared alone"


def test_missing_extra_is_one_line_and_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert ours.run(host="mcp", scope=None) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == ["`clawmark mcp` needs the official SDK: pip install 'clawmark[mcp]'"]


# --- a memory that is not there yet -----------------------------------------------------------------------------------


class Opening:
    """A resident process whose memory opens with the third question, or never."""

    def __init__(self, opens: bool) -> None:
        self.opens = opens
        self.asked: list[str] = []
        self.lock = threading.Lock()

    def call(self, method: str, params: dict[str, Any], deadline_ms: int) -> Any:
        with self.lock:
            self.asked.append(method)
            ready = self.opens and len(self.asked) > 2
        if method == "hello":
            return {"ready": ready, "problem": "opening"}
        if ready:
            return {"text": "found"}
        if method == "block":
            return {"text": ""}
        raise Failure(-32002, "memory is not ready: opening")


@pytest.mark.parametrize("opens", [True, False])
def test_memory_that_is_being_opened_is_waited_for(opens: bool) -> None:
    asks: list[Callable[[ours.Window], str]] = [
        lambda window: window.tool("clawmark_search", {"query": "glaze"}),
        lambda window: window.recalled("glaze"),
        lambda window: window.facts("clawmark://facts"),
    ]
    for ask in asks:
        window = ours.Window(Opening(opens), None, patience=PATIENCE if opens else 0.0)
        if opens:
            assert ask(window) == "found"
        else:
            with pytest.raises(Failure, match="memory is not ready: opening"):
                ask(window)


def test_another_host_means_no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "CLAUDE_PROJECT_DIR", "/somewhere")
    assert ours.project("mcp") is None
    assert ours.project("claude-code") is not None
