"""The plugin in OpenClaw's gateway, in a real Node, with a gateway of our own and a resident process that misbehaves."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers import REPOSITORY

from clawmark import __version__
from clawmark.hosts.openclaw.sessionkey import HOST_KEYS
from clawmark.tools import TOOLS

SHIM = REPOSITORY / "clawmark" / "hosts" / "openclaw" / "shim"
PARTS = Path(__file__).parent / "shim"
PATIENCE = 60.0


def _node() -> str | None:
    """A Node of at least 22: the one that is named, the harness's, or the one in PATH."""
    cache = Path(os.environ.get("CLAWMARK_HARNESS_CACHE") or "~/.cache/clawmark-harness").expanduser()
    cached = cache / "node24" / "node_modules" / "node" / "bin" / "node"
    for place in (os.environ.get("CLAWMARK_NODE"), str(cached) if cached.exists() else None, shutil.which("node")):
        if place:
            said = subprocess.run([place, "--version"], capture_output=True, text=True, check=False).stdout
            if (major := re.match(r"v(\d+)\.", said)) and int(major[1]) >= 22:
                return place
    return None


NODE = _node()
needs_node = pytest.mark.skipif(NODE is None, reason="Node 22 or later is not at hand")


def eventually(what: Callable[[], Any]) -> Any:
    """What `what` gives as soon as it is true; fails when it is not for a long time."""
    until = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < until, "it never became true"
        time.sleep(0.02)
    return found


class Gateway:
    """Node with the shim; `do` waits for the answer, `begin` does not."""

    def __init__(self) -> None:
        assert NODE is not None
        self.process = subprocess.Popen(
            [NODE, str(PARTS / "gateway.mjs"), str(SHIM / "index.js")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answers: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}
        self._last = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            self._answers[said["id"]].put(said)

    def begin(self, does: str, **what: Any) -> Callable[[], Any]:
        self._last += 1
        mine = self._answers[self._last] = queue.SimpleQueue()
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": self._last, "does": does, **what}) + "\n")
        self.process.stdin.flush()

        def wait() -> Any:
            said = mine.get(timeout=PATIENCE)
            assert "raised" not in said, said["raised"]
            return said["gave"]

        return wait

    def do(self, does: str, **what: Any) -> Any:
        return self.begin(does, **what)()

    def ask(
        self, prompt: str = "Where do I live?", *, run: str | None = None, event: Any = None, **ctx: Any
    ) -> str | None:
        return self.beginning(prompt, run=run, event=event, **ctx)()

    def beginning(
        self, prompt: str, *, run: str | None = None, event: Any = None, **ctx: Any
    ) -> Callable[[], str | None]:
        self._last += 1
        given = {**TURN, "runId": run or f"run-{self._last}", **ctx}
        wait = self.begin("hook", name="before_prompt_build", event={"prompt": prompt, **(event or {})}, ctx=given)

        def block() -> str | None:
            gave = wait()["gave"]
            assert gave is None or list(gave) == ["prependContext"]
            return None if gave is None else str(gave["prependContext"])

        return block

    def speak(self, owns: bool | None, *, run: str) -> None:
        """The host stores the message that a run answers; its log says whether that is the owner's."""
        said = {} if owns is None else {"senderIsOwner": owns}
        message = {"role": "user", "content": "x", "idempotencyKey": f"{run}:user", "__openclaw": said}
        gave = self.do("hook", name="before_message_write", event={"message": message})
        assert gave["gave"] is None

    def make_tools(self, owns: bool | None, **ctx: Any) -> None:
        """The host makes the tools of a run."""
        self.do("tools", ctx={**TURN, **({} if owns is None else {"senderIsOwner": owns}), **ctx})

    def start(self, config: dict[str, Any], **how: Any) -> None:
        """Register the plugin, and wait until its resident process has answered: a busy machine starts it slowly."""
        self.do("register", config=config, **how)
        self.do("hook", name="gateway_start")
        self.await_greeting()

    def await_greeting(self, count: int = 1) -> None:
        told = ("info", "debug")
        eventually(lambda: sum("process" in one["line"] for one in self.do("logs") if one["level"] in told) >= count)

    @property
    def logs(self) -> list[str]:
        return [line["line"] for line in self.do("logs") if line["level"] not in ("info", "debug")]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.process.wait()
            self._reader.join()
            assert self.process.stdout is not None
            self.process.stdout.close()


TURN = {
    "trigger": "user",
    "agentId": "main",
    "sessionKey": "agent:main:main",
    "sessionId": "s-1",
    "workspaceDir": "/home/ada/workspace",
}


@dataclass
class Child:
    """The resident process that the gateway starts, and what it was told."""

    folder: Path
    config: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.python = self.folder / "python"
        self.python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{PARTS / "resident.py"}" "$@"\n')
        self.python.chmod(0o755)
        self.log = self.folder / "told.jsonl"
        self.does("")

    def does(self, what: str) -> dict[str, Any]:
        env = {"CLAWMARK_TEST_LOG": str(self.log), "CLAWMARK_TEST": what}
        self.config = {"python": str(self.python), "env": env}
        return self.config

    def told(self, method: str = "") -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return [line for line in lines if line.get("method") == method] if method else lines

    @property
    def pids(self) -> list[int]:
        return [line["pid"] for line in self.told() if "pid" in line]


@pytest.fixture
def child(tmp_path: Path) -> Child:
    return Child(tmp_path)


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    opened = Gateway()
    yield opened
    opened.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path("/proc", str(pid), "stat")
    try:
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- what it is made of -----------------------------------------------------------------------------------------------


def test_the_manifest_names_the_tools_there_are() -> None:
    manifest = json.loads((SHIM / "openclaw.plugin.json").read_text())
    assert manifest["contracts"]["tools"] == [tool.name for tool in TOOLS]
    assert manifest["version"] == __version__


def test_the_plugin_holds_the_tools_as_they_are() -> None:
    source = (SHIM / "index.js").read_text()
    found = re.search(r"^const TOOLS = (\[.*?^\]);$", source, re.MULTILINE | re.DOTALL)
    assert found is not None
    wanted = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in TOOLS]
    assert json.loads(found[1]) == json.loads(json.dumps(wanted)), "run cog over the plugin's index.js"
    assert f'const VERSION = "{__version__}";' in source


def test_the_plugin_needs_nothing_but_node() -> None:
    source = (SHIM / "index.js").read_text()
    imported = re.findall(r"^import .* from \"(.*)\";$", source, re.MULTILINE)
    assert imported and all(name.startswith("node:") for name in imported)
    assert "dependencies" not in json.loads((SHIM / "package.json").read_text())


def test_the_plugin_and_the_sources_know_the_same_runs_of_the_host() -> None:
    source = (SHIM / "index.js").read_text()
    found = re.search(r"^const HOST_KEYS = (\[.*\]);$", source, re.MULTILINE)
    assert found is not None
    assert json.loads(found[1]) == [part for part, _ in HOST_KEYS]


# --- one process, and when it starts ----------------------------------------------------------------------------------


@needs_node
def test_registering_starts_nothing(gateway: Gateway, child: Child) -> None:
    gave = gateway.do("register", config=child.config)
    gateway.do("register", config=child.config, copy=2, mode="discovery")
    assert gave["options"]["before_prompt_build"] == {"timeoutMs": 5000}
    assert gave["names"] == [tool.name for tool in TOOLS]
    assert child.pids == []


@needs_node
def test_a_module_that_is_evaluated_twice_has_one_child(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gateway.do("register", config=child.config, copy=2, mode="discovery")
    assert gateway.ask() is not None
    gateway.do("tool", name="clawmark_search", ctx=TURN, params={"query": "home"})
    assert len(child.pids) == 1
    assert child.told()[0]["argv"] == ["-E", "-P", "-m", "clawmark", "serve", "--stdio"]


@needs_node
def test_a_changed_configuration_replaces_the_child(gateway: Gateway, child: Child) -> None:
    gateway.do("register", config=child.config)
    gateway.ask()
    gateway.do(
        "register", config={**child.config, "env": {**child.config["env"], "CLAWMARK_DB_PATH": "/other.db"}}, copy=2
    )
    assert gateway.ask() is not None
    first, second = child.pids
    eventually(lambda: not is_alive(first))
    assert is_alive(second)


@needs_node
def test_a_stopped_gateway_leaves_no_child(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gateway.ask()
    gateway.do("hook", name="gateway_stop")
    assert not is_alive(child.pids[0])


@needs_node
def test_a_child_that_does_not_end_is_killed_within_the_hosts_time(gateway: Gateway, child: Child) -> None:
    gateway.start(child.does("deaf"))
    gateway.ask()
    gateway.do("hook", name="gateway_stop")
    assert not is_alive(child.pids[0])


@needs_node
def test_who_holds_the_childs_pipes_holds_up_nobody(gateway: Gateway, child: Child, tmp_path: Path) -> None:
    left = tmp_path / "left"
    script = child.python.read_text().replace("exec", f"sleep 600 & echo $! > {left}\nexec")
    child.python.write_text(script)
    gateway.start(child.config)
    try:
        gateway.do("hook", name="gateway_stop")
        assert not is_alive(child.pids[0])
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


@needs_node
def test_a_child_keeps_no_process_from_ending(child: Child) -> None:
    alone = Gateway()
    alone.start(child.config)
    assert alone.ask() is not None
    alone.close()  # fails when it does not end by itself
    eventually(lambda: not is_alive(child.pids[0]))


@needs_node
def test_a_killed_gateway_leaves_no_child(child: Child) -> None:
    alone = Gateway()
    alone.start(child.config)
    alone.ask()
    alone.process.kill()
    alone.close()
    eventually(lambda: not is_alive(child.pids[0]))


# --- whose turn -------------------------------------------------------------------------------------------------------


@needs_node
def test_an_owners_turn_gets_the_block_before_the_prompt(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    assert (gateway.ask() or "").startswith("[block ")
    assert gateway.ask("nothing is known of this") is None
    assert gateway.ask(inputProvenance={"kind": "external_user"}) is not None


@needs_node
@pytest.mark.parametrize(
    ("prompt", "ctx"),
    [
        ("[OpenClaw heartbeat poll]", {"trigger": "heartbeat"}),
        ("Where do I live?", {"trigger": "cron", "sessionKey": "agent:main:cron:daily:run:1"}),
        ("Pre-compaction memory flush", {"trigger": "memory"}),
        ("Where do I live?", {"trigger": None}),
        ("Where do I live?", {"sessionKey": "agent:main:subagent:7"}),
        ("Where do I live?", {"sessionKey": "agent:main:internal-session-effects:7"}),
        ("Where do I live?", {"sessionKey": "hook:mail"}),
        ("Where do I live?", {"sessionKey": "agent:main:acp:7"}),
        ("Where do I live?", {"inputProvenance": {"kind": "inter_session", "sourceTool": "subagent_announce"}}),
        ("Where do I live?", {"inputProvenance": {"kind": "internal_system"}}),
        ("[Subagent Context] You are a sub-agent.", {}),
        ("[Sun 2026-11-29 23:25 UTC] [Subagent Context] You are a sub-agent.", {}),
        ("[Inter-session message] sourceSession=agent:main:subagent:7", {}),
        ("Continue the current task from the existing transcript, preserving completed work.", {}),
        ("The previous attempt did not produce a user-visible answer. Continue from the current state", {}),
        ("", {}),
        (" \n", {}),
    ],
)
def test_a_turn_of_the_host_asks_for_nothing(gateway: Gateway, child: Child, prompt: str, ctx: dict[str, Any]) -> None:
    gateway.do("register", config=child.config)
    assert gateway.ask(prompt, run="r", **ctx) is None
    gateway.do("hook", name="agent_end", ctx={**TURN, "runId": "r", **ctx})
    assert child.pids == []


@needs_node
def test_a_retry_of_a_run_asks_under_the_same_name(gateway: Gateway, child: Child) -> None:
    """Nothing is kept here: the resident process knows what was forgotten since."""
    gateway.start(child.config)
    for run in ("r-1", "r-1", "r-2"):
        assert gateway.ask("Where do I live?", run=run) is not None
    assert [told["params"]["turn"]["runId"] for told in child.told("block")] == ["r-1", "r-1", "r-2"]


@needs_node
def test_what_else_the_host_asks_in_a_run_gets_no_block(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gateway.ask("Where do I live?", run="r-1")
    assert gateway.ask("Go on with what you were doing.", run="r-1") is None
    assert len(child.told("block")) == 1


@needs_node
def test_a_retry_may_ask_again_where_nothing_was_answered(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    assert gateway.ask("fault", run="r-1") is None
    gateway.ask("fault", run="r-1")
    assert len(child.told("block")) == 2


# --- whose words ------------------------------------------------------------------------------------------------------


def owner_told(child: Child) -> bool | None:
    """What the resident process was told of the newest prompt."""
    told: bool | None = child.told("block")[-1]["params"]["turn"].get("senderIsOwner")
    return told


@needs_node
@pytest.mark.parametrize("owns", [True, False, None])
def test_a_prompt_is_the_owners_where_its_message_is(gateway: Gateway, child: Child, owns: bool | None) -> None:
    gateway.start(child.config)
    gateway.speak(owns, run="r-1")
    gateway.speak(not owns, run="r-2")  # it waits for its turn
    gateway.ask(run="r-1")
    assert owner_told(child) is owns


@needs_node
@pytest.mark.parametrize("owns", [True, False, None])
def test_a_prompt_is_the_owners_where_its_tools_are(gateway: Gateway, child: Child, owns: bool | None) -> None:
    gateway.start(child.config)
    gateway.make_tools(not owns)
    gateway.make_tools(owns)
    gateway.make_tools(not owns, sessionId="another")
    gateway.ask()
    assert owner_told(child) is owns


@needs_node
def test_one_no_is_enough(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    for message, tools in ((True, False), (False, True)):
        run = f"r-{message}"
        gateway.speak(message, run=run)
        gateway.make_tools(tools)
        gateway.ask(run=run)
        assert owner_told(child) is False


@needs_node
@pytest.mark.parametrize("between", ["prompt", "heartbeat", "end"])
def test_whose_tools_they_were_is_good_for_one_prompt(gateway: Gateway, child: Child, between: str) -> None:
    gateway.start(child.config)
    gateway.make_tools(True)
    if between == "end":  # a run that was broken off before its prompt
        gateway.do("hook", name="agent_end", ctx={**TURN, "runId": "r-1"})
    else:
        gateway.ask(run="r-1", trigger="user" if between == "prompt" else "heartbeat")
    gateway.ask("Somebody else's prompt", run="r-2")
    assert owner_told(child) is None


@needs_node
def test_tools_of_another_sender_say_nothing(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gateway.make_tools(True, requesterSenderId="ada")
    gateway.ask(senderId="eve")
    assert owner_told(child) is False
    gateway.make_tools(True, requesterSenderId="ada")
    gateway.ask(senderId="ada")
    assert owner_told(child) is True


@needs_node
def test_a_sender_by_name_whom_nobody_calls_the_owner_is_none(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gateway.ask(senderId="eve")
    assert owner_told(child) is False
    ctx = {**TURN, "senderIsOwner": None, "requesterSenderId": "eve"}
    gateway.do("tool", name="clawmark_search", ctx=ctx, params={"query": "home"})
    assert child.told("search")[-1]["params"]["caller"]["senderIsOwner"] is False


@needs_node
def test_a_host_that_knows_of_no_owner_names_senders_and_says_no_more(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    ctx = {**TURN, "requesterSenderId": "ada"}
    gateway.do("tool", name="clawmark_search", ctx=ctx, params={"query": "home"})
    assert "senderIsOwner" not in child.told("search")[-1]["params"]["caller"]


@needs_node
def test_both_evaluations_of_the_module_know_who_speaks(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gateway.do("register", config=child.config, copy=2, mode="discovery")
    gateway.do("tools", at=0, ctx={**TURN, "senderIsOwner": False})
    gateway.ask()
    assert owner_told(child) is False


# --- what is sent -----------------------------------------------------------------------------------------------------


@needs_node
def test_only_what_a_block_needs_is_sent(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    messages = [
        {"role": "user", "content": "far away"},
        {"role": "user", "content": "[Sun 2026-11-29 23:25 UTC] first"},
        {"role": "toolResult", "content": [{"type": "text", "text": "a tool"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "y" * 900}]},
        {"role": "user", "content": "[OpenClaw heartbeat poll]"},
        {"role": "assistant", "content": [{"type": "toolCall", "name": "x"}]},
        {"role": "user", "content": "third"},
    ]
    event = {"messages": messages, "systemPrompt": "secret"}
    gateway.speak(True, run="r-1")
    gateway.ask("[Sun 2026-11-29 23:25 UTC] Where do I live?", run="r-1", event=event, channelId="webchat")
    (asked,) = child.told("block")
    assert asked["params"] == {
        "turn": {
            "host": "openclaw",
            "agentId": "main",
            "sessionKey": "agent:main:main",
            "sessionId": "s-1",
            "runId": "r-1",
            "senderIsOwner": True,
            "prompt": "Where do I live?",
            "recent": ["first", "y" * 500, "third"],
        },
        "deadline_ms": 1500,
    }


@needs_node
def test_a_long_prompt_is_cut_and_keeps_its_ends(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    assert gateway.ask("head " + "😀" * 100_000 + " tail") is not None
    (asked,) = child.told("block")
    prompt = asked["params"]["turn"]["prompt"]
    assert len(prompt.encode("utf-16-le")) // 2 <= 100_000
    assert prompt.startswith("head ") and prompt.endswith(" tail")
    prompt.encode()  # no half of a character


@needs_node
def test_a_long_history_is_looked_at_from_its_end(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gave = gateway.do("hook", name="before_prompt_build", event={"prompt": "Where?"}, ctx=TURN, history=2000)
    assert gave["gave"] is not None
    assert gateway.do("touched") < 10
    (asked,) = child.told("block")
    assert asked["params"]["turn"]["recent"] == ["line 1997", "line 1998", "line 1999"]


@needs_node
def test_only_settings_of_ours_reach_the_child(gateway: Gateway, child: Child) -> None:
    config = {**child.config, "env": {**child.config["env"], "PATH": "/nowhere", "LD_PRELOAD": "/x.so"}}
    gateway.start(config)
    assert gateway.ask() is not None  # `sh` was found
    environment = Path("/proc", str(child.pids[0]), "environ")
    if environment.exists():
        assert b"/x.so" not in environment.read_bytes()


@needs_node
def test_messages_are_counted_once_a_run(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gateway.ask(run="r-1")
    for run in ("r-1", "r-1", "unknown"):
        gateway.do("hook", name="agent_end", event={"messages": [{}] * 50}, ctx={**TURN, "runId": run})
    gateway.do("hook", name="session_end", event={"sessionId": "s-1", "sessionKey": "agent:main:main"})
    told = eventually(lambda: (notes := child.told("notify")) and len(notes) == 2 and notes)
    assert [one["params"] for one in told] == [
        {"host": "openclaw", "session": "s-1", "event": "messages", "count": 2},
        {"host": "openclaw", "session": "s-1", "event": "session_end"},
    ]
    assert all("id" not in one for one in told)


@needs_node
def test_a_session_of_the_host_is_not_told(gateway: Gateway, child: Child) -> None:
    gateway.do("register", config=child.config)
    gateway.do("hook", name="session_start", event={"sessionId": "s-2", "sessionKey": "agent:main:cron:daily:run:1"})
    assert child.pids == []
    gateway.do("hook", name="session_start", event={"sessionId": "s-1", "sessionKey": "agent:main:main"})
    eventually(lambda: child.told("notify"))
    assert [one["params"]["event"] for one in child.told("notify")] == ["session_start"]


# --- when something is wrong ------------------------------------------------------------------------------------------


@needs_node
def test_a_slow_answer_is_given_up_and_holds_nobody_up(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gateway.ask()
    wait = gateway.begin("hook", name="before_prompt_build", event={"prompt": "slow"}, ctx={**TURN, "runId": "r"})
    assert gateway.ask() is not None
    gave = wait()
    assert gave["gave"] is None  # the answer comes after four seconds, and is too late
    assert eventually(lambda: child.told("cancel"))


@needs_node
def test_a_child_killed_in_a_turn_costs_that_block_alone(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    assert gateway.ask("die") is None
    gateway.await_greeting(2)
    assert gateway.ask() is not None
    assert len(child.pids) == 2
    assert len(gateway.logs) == 1


@needs_node
def test_after_three_failures_no_block_is_asked_for(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    for _ in range(3):
        assert gateway.ask("fault") is None
    assert gateway.ask() is None
    assert len(child.told("block")) == 3
    assert len(child.pids) == 1  # it answers, though with faults
    assert len(gateway.logs) == 1


@needs_node
def test_a_success_between_failures_starts_the_count_anew(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    for prompt in ("fault", "fault", "well", "fault", "fault"):
        gateway.ask(prompt)
    assert gateway.ask() is not None


@needs_node
def test_a_hung_child_is_replaced(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    assert gateway.ask("hang") is None
    for wait in [gateway.beginning(f"Where? {n}") for n in range(2)]:
        assert wait() is None
    eventually(lambda: len(child.pids) == 2)
    assert not is_alive(child.pids[0])
    gateway.do("hook", name="gateway_stop")


@needs_node
def test_blocks_that_fail_while_a_child_starts_count_for_nothing(gateway: Gateway, child: Child) -> None:
    gateway.do("register", config=child.does("starting"))
    gateway.do("hook", name="gateway_start")
    for wait in [gateway.beginning(f"Where? {n}") for n in range(4)]:
        assert wait() is None
    child.log.with_name(child.log.name + ".go").touch()
    gateway.await_greeting()
    assert gateway.ask() is not None
    assert len(child.pids) == 1
    assert gateway.logs == []


@needs_node
@pytest.mark.parametrize(
    ("script", "says"),
    [
        (None, "cannot be started (ENOENT)"),
        ("echo 'Unknown option: -P' >&2; exit 2", "Python 3.11 or later"),
        ("echo 'No module named clawmark' >&2; exit 1", "is not installed"),
        ("echo \"Error: No such command 'serve'.\" >&2; exit 2", "too old for this plugin"),
        ("exit 2", "a setting of the process"),
        ("exit 3", "exit code 3"),
    ],
)
def test_a_python_that_cannot_serve_is_one_line(
    gateway: Gateway, child: Child, tmp_path: Path, script: str | None, says: str
) -> None:
    python = tmp_path / "broken"
    if script:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    gateway.do("register", config={**child.config, "python": str(python)})
    for _ in range(3):
        assert gateway.ask() is None
    (line,) = eventually(lambda: gateway.logs)
    assert says in line
    assert "clawmark doctor" in line
    gave = gateway.do("tool", name="clawmark_search", ctx=TURN, params={"query": "home"})
    assert says in gave["content"][0]["text"]
    assert gave["details"] == {"outcome": "failed"}


@needs_node
@pytest.mark.parametrize("again", ["gateway_start", "config"])
def test_what_lasts_is_looked_at_again_when_something_changes(
    gateway: Gateway, child: Child, tmp_path: Path, again: str
) -> None:
    gateway.do("register", config={**child.config, "python": str(tmp_path / "later")})
    gateway.do("hook", name="gateway_start")
    assert "ENOENT" in eventually(lambda: gateway.logs)[0]
    (tmp_path / "later").symlink_to(child.python)
    assert gateway.ask() is None  # a minute has to pass
    if again == "config":
        gateway.do("register", config=child.config)
        gateway.ask()
    else:
        gateway.do("hook", name="gateway_start")
    gateway.await_greeting()
    assert len(child.pids) == 1


@needs_node
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"foo": 1}, "foo"),
        ({"socket": 7}, "socket"),
        ({"env": {"CLAWMARK_RECALL_LIMIT": 6}}, "env.CLAWMARK_RECALL_LIMIT"),
        ({"env": {"CLAWMARK_TIMEZONE": "a\0b"}}, "env.CLAWMARK_TIMEZONE"),
        ({"env": {"PATH": "/nowhere"}}, "env.PATH"),
    ],
)
def test_what_is_wrong_in_the_configuration_is_left_out_and_named(
    gateway: Gateway, child: Child, wrong: dict[str, Any], named: str
) -> None:
    gateway.start({**child.config, **wrong, "env": {**child.config["env"], **wrong.get("env", {})}})
    assert gateway.ask() is not None
    (line,) = gateway.logs
    assert named in line


@needs_node
@pytest.mark.parametrize("config", [None, "x", [], {"python": 42}, {"python": ""}, {"env": "x"}, {"python": ["a"]}])
def test_no_configuration_breaks_a_gateway(gateway: Gateway, config: Any) -> None:
    gateway.do("register", config=config)
    gateway.do("hook", name="gateway_start")
    assert gateway.ask() is None
    assert any("clawmark install openclaw" in line for line in gateway.logs)


def test_the_host_checks_no_type_of_the_configuration() -> None:
    schema = json.loads((SHIM / "openclaw.plugin.json").read_text())["configSchema"]
    assert schema["additionalProperties"] is True
    assert all(set(part) == {"description"} for part in schema["properties"].values())


@needs_node
def test_nothing_is_told_aloud_outside_a_gateway(gateway: Gateway, child: Child) -> None:
    gateway.do("register", config=child.config)
    gateway.do("hook", name="session_start", event={"sessionId": "s-1", "sessionKey": "agent:main:main"})
    assert [one["level"] for one in eventually(lambda: gateway.do("logs"))] == ["debug"]


@needs_node
def test_another_protocol_is_refused(gateway: Gateway, child: Child) -> None:
    gateway.do("register", config=child.does("protocol"))
    gateway.ask()
    (line,) = eventually(lambda: gateway.logs)
    assert "speaks protocol 2" in line and "clawmark install openclaw" in line
    eventually(lambda: not is_alive(child.pids[0]))


@needs_node
def test_an_endless_line_ends_the_child(gateway: Gateway, child: Child) -> None:
    gateway.do("register", config=child.does("long"))
    gateway.ask()
    assert "more than 1 MiB" in eventually(lambda: gateway.logs)[0]


@needs_node
def test_without_a_python_the_gateway_goes_on(gateway: Gateway) -> None:
    gateway.do("register", config={})
    assert gateway.ask() is None
    assert gateway.ask() is None
    (line,) = gateway.logs
    assert "clawmark install openclaw" in line


@needs_node
def test_the_other_side_may_ask_and_tell(gateway: Gateway, child: Child) -> None:
    gateway.start(child.does("chatty"))
    assert gateway.ask() is not None
    assert gateway.logs == ["clawmark: the log is not there"]
    (refused,) = [line for line in child.told() if "error" in line]
    assert (refused["id"], refused["error"]["code"]) == (77, -32601)


# --- the gateway's own model ------------------------------------------------------------------------------------------


def offered(child: Child) -> list[Any]:
    return [line["params"].get("offers") for line in child.told("hello")]


def asking(gateway: Gateway, id: Any, **params: Any) -> None:
    """The resident process asks for a completion."""
    say(gateway, {"id": id, "method": "complete", "params": {"system": "S", "most_tokens": 90, **params}})


def say(gateway: Gateway, line: dict[str, Any]) -> None:
    assert gateway.ask("say " + json.dumps(line)) is None


def answers(child: Child, id: Any) -> list[dict[str, Any]]:
    return [line for line in child.told() if line.get("id") == id and "method" not in line]


def answer(child: Child, id: Any) -> dict[str, Any]:
    (said,) = eventually(lambda: answers(child, id))
    return dict(said)


@needs_node
@pytest.mark.parametrize(("model", "offers"), [("", []), ("none", []), ("broken", []), ("ada", ["complete"])])
def test_a_model_is_offered_where_the_host_has_one(
    gateway: Gateway, child: Child, model: str, offers: list[str]
) -> None:
    gateway.start(child.config, model=model)
    assert offered(child)[-1] == offers
    asking(gateway, "q-1", user="hello")
    said = answer(child, "q-1")
    assert ("result" in said) == bool(offers)
    assert offers or said["error"]["code"] == -32601


@needs_node
def test_a_model_is_offered_by_a_gateway_alone(gateway: Gateway, child: Child) -> None:
    gateway.do("register", config=child.config, model="ada")
    gateway.ask()
    assert offered(child) == [[]]
    asking(gateway, "q-1", user="hello")
    assert answer(child, "q-1")["error"]["code"] == -32601
    gateway.do("hook", name="gateway_start")
    assert eventually(lambda: offered(child)[1:]) == [["complete"]]
    asking(gateway, "q-2", user="hello")
    assert "result" in answer(child, "q-2")


@needs_node
def test_a_completion_is_asked_without_session_tools_or_history(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config, model="ada")
    asking(gateway, "q-1", user="canary U", deadline_ms=5000, model="another", agentId="another")
    assert answer(child, "q-1") == {
        "jsonrpc": "2.0",
        "id": "q-1",
        "result": {"text": "canary of canary U", "model": "ada/m"},
    }
    (asked,) = gateway.do("completions")
    assert asked == {
        "purpose": "clawmark.extract",
        "systemPrompt": "S",
        "messages": [{"role": "user", "content": "canary U"}],
        "execution": {"mode": "isolated-agent-runtime", "timeoutMs": 5000},
        "maxTokens": 90,
        "temperature": 0,
        "in": "gateway_start",
        "provider": "ada",
        "isAborted": False,
    }
    assert child.told("notify") == []
    assert "canary" not in json.dumps(gateway.do("logs"))


@needs_node
def test_a_completion_belongs_to_no_turn(gateway: Gateway, child: Child) -> None:
    """What the host does for a turn ends with it; so would a completion that began in one."""
    gateway.do("register", config=child.config, model="ada")
    gateway.do("hook", name="session_start", ctx=TURN)
    gateway.do("hook", name="gateway_start")
    asking(gateway, "q-1", user="hello")
    answer(child, "q-1")
    assert [one["in"] for one in gateway.do("completions")] == ["gateway_start"]


@needs_node
def test_after_a_reload_the_new_registration_is_asked(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config, model="ada")
    gateway.do("hook", name="gateway_stop")
    gateway.start(child.config, model="grace")
    asking(gateway, "q-1", user="hello")
    assert answer(child, "q-1")["result"]["model"] == "grace/m"


@needs_node
@pytest.mark.parametrize(
    ("user", "code"),
    [
        ("status 401", "NOT_CONFIGURED"),
        ("status 404", "NOT_CONFIGURED"),
        ("status 400", "REFUSED"),
        ("status 413", "REFUSED"),
        ("status 429", "FAILED"),
        ("status 503", "FAILED"),
        ("unreachable", "FAILED"),
        ("tool call", "UNUSABLE"),
        ("code LLM_COMPLETION_NOT_AUTHORIZED", "NOT_ALLOWED"),
        ("code LLM_ISOLATED_UNSUPPORTED", "UNSUPPORTED"),
        ("code LLM_RUNTIME_UNAVAILABLE", "FAILED"),
        ("code constructor", "FAILED"),
        ("unprepared", "NOT_CONFIGURED"),
        ("no model", "NOT_CONFIGURED"),
        ("silent", "SILENT"),
        ("empty", "UNUSABLE"),
        ("endless", "UNUSABLE"),
        ("garbage", "FAILED"),
        ("throws nothing", "FAILED"),
    ],
)
def test_a_completion_that_fails_is_a_stable_code_and_no_words(
    gateway: Gateway, child: Child, user: str, code: str
) -> None:
    gateway.start(child.config, model="ada")
    asking(gateway, "q-1", user=f"canary {user}")
    said = answer(child, "q-1")
    assert said["error"]["code"] == -32004
    assert said["error"]["data"] == {"code": code}
    assert "canary" not in json.dumps([said, gateway.do("logs")])


@needs_node
@pytest.mark.parametrize("user", ["cold", "cool"])
def test_a_model_that_takes_no_temperature_is_asked_without(gateway: Gateway, child: Child, user: str) -> None:
    gateway.start(child.config, model="ada")
    for number in (1, 2):
        asking(gateway, f"q-{number}", user=user)
        assert "result" in answer(child, f"q-{number}")
    assert ["temperature" in one for one in gateway.do("completions")] == [True, False, False]


@needs_node
def test_a_model_that_took_a_temperature_before_is_not_asked_twice(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config, model="ada")
    for number, user in enumerate(("hello", "silent", "status 400")):
        asking(gateway, f"q-{number}", user=user)
        answer(child, f"q-{number}")
    assert len(gateway.do("completions")) == 3


@needs_node
def test_a_completion_ends_at_its_deadline_and_is_answered_once(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config, model="ada")
    began = time.monotonic()
    asking(gateway, "q-1", user="sleep", deadline_ms=100)
    assert answer(child, "q-1")["error"]["code"] == -32001
    assert gateway.do("completions")[0]["isAborted"]
    time.sleep(max(0.0, began + 1.5 - time.monotonic()))
    assert len(answers(child, "q-1")) == 1


@needs_node
def test_a_completion_that_is_cancelled_ends(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config, model="ada")
    asking(gateway, "q-1", user="for ever")
    say(gateway, {"method": "cancel", "params": {"id": "unknown"}})
    say(gateway, {"method": "cancel"})
    assert answers(child, "q-1") == []
    say(gateway, {"method": "cancel", "params": {"id": "q-1"}})
    assert answer(child, "q-1")["error"]["code"] == -32003
    assert gateway.do("completions")[0]["isAborted"]


@needs_node
@pytest.mark.parametrize("end", ["stop", "die"])
def test_a_completion_ends_with_the_process_that_asked_for_it(gateway: Gateway, child: Child, end: str) -> None:
    gateway.start(child.config, model="ada")
    asking(gateway, "q-1", user="for ever")
    eventually(lambda: gateway.do("completions"))
    if end == "stop":
        gateway.do("hook", name="gateway_stop")
    else:
        gateway.ask("die")
    assert eventually(lambda: gateway.do("completions")[0]["isAborted"])
    eventually(lambda: gateway.ask() is not None)  # another one is there, which never asked
    asking(gateway, "q-2", user="hello")
    assert "result" in answer(child, "q-2")
    assert answers(child, "q-1") == []


@needs_node
def test_few_completions_run_at_once(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config, model="ada")
    for number in range(6):
        asking(gateway, f"q-{number}", user="sleep")
    asking(gateway, "q-1", user="sleep")
    said = [eventually(lambda number=number: answers(child, f"q-{number}")) for number in range(6)]
    eventually(lambda: len(answers(child, "q-1")) == 2)
    assert sum("result" in one for first, *_ in said for one in [first]) >= 3
    assert [first["error"]["code"] for first, *_ in said[4:]] == [-32603, -32603]
    assert len(gateway.do("completions")) == 4


@needs_node
@pytest.mark.parametrize("params", [{}, {"user": 7}, {"user": "x", "system": None}, {"user": ["x"]}])
def test_a_completion_of_nothing_is_refused(gateway: Gateway, child: Child, params: dict[str, Any]) -> None:
    gateway.start(child.config, model="ada")
    asking(gateway, "q-1", **params)
    assert answer(child, "q-1")["error"]["code"] == -32602
    say(gateway, {"id": "q-2", "method": "complete"})
    assert answer(child, "q-2")["error"]["code"] == -32602
    assert gateway.do("completions") == []


@needs_node
def test_a_completion_that_waits_holds_up_no_prompt(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config, model="ada")
    for number in range(4):
        asking(gateway, f"q-{number}", user="for ever")
    assert gateway.ask() is not None


@needs_node
def test_no_log_line_holds_a_word_of_anybody(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    for prompt in ("fault canary", "die canary"):
        gateway.ask(prompt, event={"messages": [{"role": "user", "content": "canary"}]})
    gateway.do("tool", name="clawmark_set", ctx=TURN, params={"key": "user.canary", "value": "canary"})
    assert "canary" not in json.dumps(gateway.do("logs"))


# --- tools ------------------------------------------------------------------------------------------------------------


@needs_node
def test_the_hosts_context_says_who_calls_a_tool(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    params = {"key": "user.city", "value": "Lisbon", "caller": {"host": "cli", "owner": True}, "scope": "other"}
    gave = gateway.do("tool", name="clawmark_set", ctx={**TURN, "senderIsOwner": False}, params=params)
    assert gave == {"content": [{"type": "text", "text": "did set"}], "details": {"outcome": "user"}}
    (asked,) = child.told("set")
    asked["params"].pop("deadline_ms")
    assert asked["params"] == {
        "key": "user.city",
        "value": "Lisbon",
        "caller": {
            "host": "openclaw",
            "agentId": "main",
            "sessionKey": "agent:main:main",
            "sessionId": "s-1",
            "senderIsOwner": False,
        },
    }


@needs_node
def test_a_refusal_is_told_to_the_model(gateway: Gateway, child: Child) -> None:
    gateway.start(child.config)
    gave = gateway.do("tool", name="clawmark_forget", ctx=TURN, params={"key": "BAD"})
    assert gave == {"content": [{"type": "text", "text": "KEY_FORMAT: no"}], "details": {"outcome": "refused"}}
    early = gateway.do("tool", name="clawmark_reconcile", ctx=TURN, params={})
    assert early["content"][0]["text"] == "memory is not ready: it opens"
    assert early["details"] == {"outcome": "failed"}


# --- over a socket ----------------------------------------------------------------------------------------------------


@needs_node
def test_a_socket_serves_where_no_process_may_be_started(gateway: Gateway, tmp_path: Path) -> None:
    place = tmp_path / "s"
    gateway.do("register", config={"socket": str(place)})
    assert gateway.ask() is None
    assert "clawmark serve" in eventually(lambda: gateway.logs)[0]
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        server.settimeout(PATIENCE)
        answering = threading.Thread(target=_answer_one, args=(server,))
        answering.start()
        gateway.await_greeting()
        assert gateway.ask() == "over the socket"
        gateway.do("hook", name="gateway_stop")
        answering.join(PATIENCE)
    assert not answering.is_alive()


def _answer_one(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection, connection.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            asked = json.loads(line)
            if "id" not in asked:
                continue
            hello = {
                "protocol": 1,
                "version": __version__,
                "python": "3.11",
                "pid": 1,
                "database": "m",
                "problem": None,
            }
            result = hello if asked["method"] == "hello" else {"text": "over the socket"}
            lines.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
            lines.flush()


# --- with the real memory ---------------------------------------------------------------------------------------------


def real(tmp_path: Path) -> dict[str, Any]:
    """A configuration with the real resident process on a memory of its own."""
    state = tmp_path / "state"
    shutil.copytree(REPOSITORY / "tests" / "fixtures" / "openclaw" / "files", state)
    env = {
        "CLAWMARK_DB_PATH": str(tmp_path / "memory" / "memory.db"),
        "CLAWMARK_OPENCLAW_STATE_DIR": str(state),
        "CLAWMARK_EMBEDDER": "none",
        "CLAWMARK_SOURCE": "transcripts",
    }
    return {"python": sys.executable, "env": env}


def await_memory(gateway: Gateway) -> None:
    def ready() -> bool:
        text: str = gateway.do("tool", name="clawmark_reconcile", ctx=TURN, params={})["content"][0]["text"]
        return text.startswith("Up to date")

    eventually(ready)


@needs_node
def test_the_real_memory_answers_through_the_plugin(gateway: Gateway, tmp_path: Path) -> None:
    gateway.do("register", config=real(tmp_path))
    gateway.do("hook", name="gateway_start")
    await_memory(gateway)
    said = eventually(lambda: gateway.ask("Who of us has the sailing licence and the VHF?"))
    assert said.startswith("[Memory ") and "Henrik has the licence" in said
    gave = gateway.do("tool", name="clawmark_set", ctx=TURN, params={"key": "pref.editor", "value": "Helix"})
    assert gave["details"] == {"outcome": "agent"}  # the owner typed nothing of it
    assert 'pref.editor: "Helix"' in eventually(lambda: gateway.ask("Which editor do I like?"))
    assert "Helix" not in (gateway.ask("Which editor?", sessionKey="agent:main:telegram:group:7") or "")
    refused = gateway.do("tool", name="clawmark_set", ctx=TURN, params={"key": "NO", "value": "Helix"})
    assert refused["details"] == {"outcome": "refused"} and "KEY_FORMAT" in refused["content"][0]["text"]
    assert gateway.logs == []
    gateway.do("hook", name="gateway_stop")


@needs_node
def test_the_gateways_own_model_extracts_facts_for_the_real_memory(gateway: Gateway, tmp_path: Path) -> None:
    config = real(tmp_path)
    config["env"] |= {"CLAWMARK_EXTRACT_URL": "host", "CLAWMARK_ALLOW_REMOTE": "host"}
    gateway.do("register", config=config, model="ada")
    gateway.do("hook", name="gateway_start")
    await_memory(gateway)

    def known() -> list[str]:
        with sqlite3.connect(config["env"]["CLAWMARK_DB_PATH"]) as stored:
            told = stored.execute("SELECT value FROM facts UNION ALL SELECT value FROM proposals").fetchall()
        stored.close()
        return [value for (value,) in told]

    assert eventually(known) == ["I live in Majorna in Gothenburg"]
    assert {one["in"] for one in gateway.do("completions")} == {"gateway_start"}
    assert "Majorna" not in json.dumps(gateway.do("logs"))
    gateway.do("hook", name="gateway_stop")


@needs_node
def test_a_strangers_words_in_a_shared_session_never_become_the_owners(gateway: Gateway, tmp_path: Path) -> None:
    gateway.do("register", config=real(tmp_path))
    gateway.do("hook", name="gateway_start")
    await_memory(gateway)

    def says(owns: bool, prompt: str, run: str) -> str:
        gateway.speak(owns, run=run)
        gateway.make_tools(owns)
        return gateway.ask(prompt, run=run) or ""

    def call(owns: bool, tool: str, **params: str) -> tuple[str, str]:
        gave = gateway.do("tool", name=tool, ctx={**TURN, "senderIsOwner": owns}, params=params)
        return gave["details"]["outcome"], gave["content"][0]["text"]

    says(True, "My favourite editor is Helix.", "r-1")
    assert call(True, "clawmark_set", key="pref.editor", value="my favourite editor is Helix")[0] == "user"
    # A stranger writes into the same session: nothing private is given, and what is said is nobody's word.
    assert "Helix" not in says(False, "Please forget my favourite editor. My favourite colour is purple.", "r-2")
    assert "Helix" not in call(False, "clawmark_search", query="favourite editor")[1]
    assert call(False, "clawmark_set", key="pref.colour", value="my favourite colour is purple")[0] != "user"
    # The owner's next turn does not make those words the owner's.
    assert "Helix" in says(True, "Which editor do I like?", "r-3")
    assert call(True, "clawmark_set", key="pref.colour", value="my favourite colour is purple")[0] == "proposed"
    assert call(True, "clawmark_forget", key="pref.editor")[0] != "forgotten"
    gateway.do("hook", name="gateway_stop")
