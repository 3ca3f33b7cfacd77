// clawmark in OpenClaw's gateway: asks the resident process (`clawmark serve`) for a block before each prompt of the
// owner, offers its tools, and asks the gateway's own model where that process wants it. There is no memory in here,
// only the way to it; docs/protocol.md of clawmark says what goes over the line.
//
// What always holds:
// - No turn is held up for longer than BLOCK_MS or broken by what happens here: in doubt it goes on without a block.
// - One connection a process, however often the gateway evaluates this module (2026.9.6 does it twice) and registers it
//   (in every mode, also in processes that only ask the gateway). It is made at the first use, never in register().
// - Never is the history sent along, and no line of the log holds a word of anybody.
// - The gateway's model is asked for the resident process alone, and outside of every session: no run, no transcript,
//   no hook and no tool comes of it.

import { AsyncLocalStorage } from "node:async_hooks";
import { spawn } from "node:child_process";
import { connect } from "node:net";
import { performance } from "node:perf_hooks";

// [[[cog
// import json
// from clawmark import __version__
// from clawmark.tools import TOOLS
// cog.outl(f"const VERSION = {json.dumps(__version__)};")
// tools = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in TOOLS]
// cog.outl(f"const TOOLS = {json.dumps(tools, indent=2, ensure_ascii=False)};")
// ]]]
const VERSION = "0.4.0.dev0";
const TOOLS = [
  {
    "name": "clawmark_search",
    "description": "Search the person's long-term memory: facts they had kept, and what was said in any earlier conversation. Use it when they refer to something from before, or when what you know of them is not enough; ask with the words they would have used.",
    "parameters": {
      "type": "object",
      "properties": {
        "query": {
          "type": "string",
          "description": "What to look for, in plain words."
        },
        "limit": {
          "type": "integer",
          "minimum": 1,
          "maximum": 20,
          "description": "Most excerpts; usually 6."
        }
      },
      "required": [
        "query"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "clawmark_set",
    "description": "Remember one durable fact about the person for all later conversations, when they ask for it or state a lasting preference, trait, decision or lesson. Keep their own words in the value; what they did not say in this session may wait for their review. Not for passing states, and never for what a page, a file or another person says.",
    "parameters": {
      "type": "object",
      "properties": {
        "key": {
          "type": "string",
          "description": "Lower-case and dotted, under user., pref., lesson., project. or ref., for example pref.editor or user.allergy."
        },
        "value": {
          "type": "string",
          "maxLength": 2000,
          "description": "One short statement in the person's words."
        }
      },
      "required": [
        "key",
        "value"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "clawmark_forget",
    "description": "Forget one remembered fact, when the person asks for it. Without their asking it is only hidden.",
    "parameters": {
      "type": "object",
      "properties": {
        "key": {
          "type": "string",
          "description": "Lower-case and dotted, under user., pref., lesson., project. or ref., for example pref.editor or user.allergy."
        }
      },
      "required": [
        "key"
      ],
      "additionalProperties": false
    }
  },
  {
    "name": "clawmark_review",
    "description": "List what waits for the person's decision, and facts that nobody has stated for long. Use it when they ask what is to be reviewed or confirmed. They decide themselves, with `clawmark review`; a stale fact is confirmed with clawmark_set, when they say it again.",
    "parameters": {
      "type": "object",
      "properties": {
        "days": {
          "type": "integer",
          "minimum": 1,
          "maximum": 36500,
          "description": "Facts that were not stated for so many days; usually 90."
        }
      },
      "required": [],
      "additionalProperties": false
    }
  },
  {
    "name": "clawmark_reconcile",
    "description": "Bring the memory up to date with the conversation logs now, and say what was read. Rarely needed: it happens by itself.",
    "parameters": {
      "type": "object",
      "properties": {
        "drain": {
          "type": "boolean",
          "description": "False: one pass. True, as usual: until no message waits to be looked through."
        }
      },
      "required": [],
      "additionalProperties": false
    }
  }
];
// [[[end]]]

const PROTOCOL = 1;
const BLOCK_MS = 1500;
const HELLO_MS = 20_000; // a Python that starts on a busy machine
const STOP_MS = 2900; // it ends within 3 s; the gateway waits 5 s for a plugin that stops
const TOOL_MS = { reconcile: 120_000 };
const OTHER_TOOLS_MS = 15_000; // a writer waits 10 s for the file

const COMPLETE_MS = 120_000; // where no deadline is set
const LONGEST_COMPLETE_MS = 600_000;
const COMPLETIONS = 4; // at once
const REPLY_LENGTH = 200_000;

const PROMPT_LENGTH = 100_000;
const RECENT_LINES = 3;
const RECENT_LENGTH = 500;
const RECENT_LOOK = 40; // messages looked at from the end; between two lines of people there may be many tool calls
const RUNS_KEPT = 64;
const SESSIONS_KEPT = 256;
const LINE_LENGTH = 1 << 20;

const FAILURES = 3; // in a row, and no block is asked for REST_MS
const REST_MS = 60_000;
const FIRST_DELAY_MS = 1000; // before a restart; doubles up to LONGEST_DELAY_MS
const LONGEST_DELAY_MS = 60_000;
// What does not mend itself is looked at less often: to start a process holds the gateway's event loop for some 3 ms, and
// for 30 to 60 ms once the gateway has grown to a gigabyte (measured with Node 24).
const LASTING_DELAY_MS = 60_000;
const LONGEST_LASTING_MS = 600_000;
const LASTING_CODES = ["ENOENT", "EACCES", "ENOTDIR", "ENOEXEC"];
const STEADY_MS = 60_000; // who lived for so long is restarted quickly

// --- whose turn it is, and what is sent of it ------------------------------------------------------------------------

const HOST_KEYS = [":subagent:", ":cron:", ":hook:", ":internal-session-effects:", ":acp:"];
const TIME = /^\s*\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?(?: [^\]\n]{1,40})?\]\s*/;
const HOST_MADE = [
  "[OpenClaw heartbeat poll]",
  "[Subagent Context]",
  "[Inter-session message]",
  "[cron:",
  "Continue the current task from the existing transcript",
  "Continue from the current transcript after the latest tool result",
  "The plugin runtime has been refreshed. Continue the current task",
  "The previous attempt did not produce a user-visible answer",
  "The previous attempt compacted the conversation context",
  "The previous assistant turn recorded reasoning",
  "The previous assistant turn only described the plan",
];

// A session that the host runs by itself: of a sub-agent, a schedule, a web hook, another program.
function isHostRun(sessionKey) {
  const key = `:${sessionKey ?? ""}`;
  return HOST_KEYS.some((part) => key.includes(part));
}

// The host writes some prompts itself, and gives them the trigger of the owner's.
function isHostMade(text) {
  return HOST_MADE.some((start) => text.startsWith(start));
}

// Up to 2026.7.1 the host puts the time in front of what was typed.
function withoutTime(text) {
  return text.slice(0, 100).replace(TIME, "") + text.slice(100);
}

function isPersons(prompt, ctx) {
  if (ctx?.trigger !== "user" || isHostRun(ctx.sessionKey)) return false;
  if (ctx.inputProvenance && ctx.inputProvenance.kind !== "external_user") return false;
  return prompt.trim() !== "" && !isHostMade(prompt);
}

// A question stands at the head or at the end of what is pasted with it.
function shortened(text) {
  if (text.length <= PROMPT_LENGTH) return text.toWellFormed();
  const half = PROMPT_LENGTH / 2;
  return `${text.slice(0, half).toWellFormed()}\n${text.slice(-half + 1).toWellFormed()}`;
}

// The last lines that people and the agent said. A history of thousands of messages is looked at from its end only.
function recentLines(messages) {
  const lines = [];
  const from = Array.isArray(messages) ? messages.length - 1 : -1;
  for (let i = from; i >= 0 && i > from - RECENT_LOOK && lines.length < RECENT_LINES; i--) {
    const message = messages[i];
    if (message?.role !== "user" && message?.role !== "assistant") continue;
    const text = withoutTime(textOf(message.content).slice(0, RECENT_LENGTH + 100)).trim();
    if (text && !isHostMade(text)) lines.unshift(text.slice(0, RECENT_LENGTH).toWellFormed());
  }
  return lines;
}

function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const part = content.find((one) => one?.type === "text" && typeof one.text === "string" && one.text.trim());
  return part?.text ?? "";
}

// --- whose words a prompt is -----------------------------------------------------------------------------------------

// 2026.9.6 says whether the owner speaks, but not where a block is asked for: with a run's message when it is stored, and
// with a session when tools are made for it, shortly before each prompt. 2026.5.28 does not say it at all.
class Speakers {
  constructor() {
    this.ofRuns = new Map(); // run id -> whether its message is the owner's
    this.ofSessions = new Map(); // session -> who the tools were made for last
  }

  wrote(message) {
    const owns = message?.__openclaw?.senderIsOwner;
    const [, run] = /^(.+):user$/.exec(message?.idempotencyKey ?? "") ?? [];
    if (message?.role !== "user" || !run || typeof owns !== "boolean") return;
    keep(this.ofRuns, run, owns && this.ofRuns.get(run) !== false, RUNS_KEPT);
  }

  madeTools(ctx) {
    const { senderIsOwner: owns, requesterSenderId: sender } = ctx;
    keep(this.ofSessions, sessionOf(ctx), { owns, sender }, SESSIONS_KEPT);
  }

  // What was said of a session is good for one prompt of the same sender: the next run may be somebody else's.
  take(ctx) {
    const tools = this.ofSessions.get(sessionOf(ctx));
    this.ended(ctx);
    const said = [this.ofRuns.get(ctx.runId)];
    if (tools && (tools.sender ?? "") === (ctx.senderId ?? "")) said.push(tools.owns);
    if (said.includes(false)) return false;
    return said.includes(true) ? true : ofSender(undefined, ctx.senderId);
  }

  ended(ctx) {
    this.ofSessions.delete(sessionOf(ctx));
  }
}

// A sender who comes by name, and whom nobody calls the owner, is not the owner.
function ofSender(owns, sender) {
  if (typeof owns === "boolean") return owns;
  return sender ? false : undefined;
}

function sessionOf({ agentId, sessionKey, sessionId }) {
  return JSON.stringify([agentId, sessionKey, sessionId]);
}

function keep(map, key, value, most) {
  map.delete(key); // the newest stands last
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value);
}

// --- the configuration -----------------------------------------------------------------------------------------------

// The host checks nothing of it, for a slip must not keep a gateway from starting. What is right is gone on with.
function checked(config) {
  const right = { env: {} };
  const wrong = [];
  const isText = (value) => typeof value === "string" && value.trim() !== "" && !value.includes("\0");
  for (const [name, value] of Object.entries(config)) {
    if (name === "env" && isObject(value)) {
      for (const [variable, set] of Object.entries(value)) {
        if (!variable.startsWith("CLAWMARK_")) wrong.push(`env.${variable} (no setting of clawmark)`);
        else if (typeof set !== "string" || set.includes("\0")) wrong.push(`env.${variable} (no text)`);
        else right.env[variable] = set;
      }
    } else if (name === "python" || name === "socket") {
      if (isText(value)) right[name] = value;
      else wrong.push(`${name} (no path)`);
    } else {
      wrong.push(name === "env" ? "env (no object)" : `${name} (no such key)`);
    }
  }
  return { right, wrong };
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// --- the way to the resident process: pipes of a child, or a socket --------------------------------------------------

// Both give `write(line)`, `end(): Promise`, `kill()`, and call `heard(chunk)` and, once, `lost(reason)`.

function overPipes({ python, env }, heard, lost) {
  const child = spawn(python, ["-E", "-P", "-m", "clawmark", "serve", "--stdio"], {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let complaint = "";
  child.stdout.setEncoding("utf8").on("data", heard);
  child.stderr.setEncoding("utf8").on("data", (text) => (complaint = (complaint + text).slice(-4000)));
  child.stdin.on("error", () => {}); // whoever is gone is noticed by its end
  const gone = new Promise((resolve) => {
    child.on("error", ({ code }) =>
      resolve({ reason: `${python} cannot be started (${code ?? "unknown"})`, lasts: LASTING_CODES.includes(code) }),
    );
    const ended = (code, signal) => resolve(endOf(python, code, signal, complaint));
    child.on("close", ended);
    child.on("exit", (...how) => setTimeout(ended, 500, ...how)); // somebody else may hold its pipes open
  });
  gone.then(({ reason, lasts }) => lost(reason, lasts));
  // A child must not keep `openclaw agent --local` from ending; what waits for an answer has a timer that does.
  for (const one of [child, child.stdin, child.stdout, child.stderr]) one.unref?.();
  return {
    write: (line) => child.stdin.write(line),
    kill: () => child.kill("SIGKILL"),
    async end() {
      child.stdin.end(); // it finishes what it has begun, and ends
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await gone;
      clearTimeout(timer);
    },
  };
}

// What a person can do about a Python that ended. What it wrote is looked into and never shown. lasts: only a person can
// change it.
function endOf(python, code, signal, complaint) {
  const lasting = (reason) => ({ reason, lasts: true });
  if (/unknown option: -P/i.test(complaint)) return lasting(`${python} is too old: Python 3.11 or later is needed`);
  if (/No module named clawmark/.test(complaint)) return lasting(`clawmark is not installed for ${python}`);
  if (/No such command/.test(complaint)) return lasting(`the clawmark of ${python} is too old for this plugin`);
  if (code === 2) return lasting(`a setting of the process of ${python} is wrong (exit code 2)`);
  return { reason: `the process of ${python} ended (${signal ?? `exit code ${code}`})`, lasts: false };
}

function overSocket({ socket }, heard, lost) {
  const line = connect(socket);
  line.setEncoding("utf8").on("data", heard);
  const gone = new Promise((resolve) => {
    line.on("error", (error) => resolve(`nobody answers at ${socket} (${error.code ?? "unknown"}): start \`clawmark serve\``));
    line.on("close", () => resolve(`the connection to ${socket} ended`));
  });
  gone.then(lost);
  line.unref();
  return {
    write: (text) => line.write(text),
    kill: () => line.destroy(),
    async end() {
      line.destroy();
      await gone;
    },
  };
}

// `code` is that of the protocol; without one nobody answered: too late, gone, or never there.
class Unanswered extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

const NO_METHOD = -32601;
const PARAMS = -32602;
const FAULT = -32603;
const LATE = -32001;
const NOT_READY = -32002;
const CANCELLED = -32003;
const REFUSED = -32004;

// --- the gateway's own model -----------------------------------------------------------------------------------------

const OF_HOST = new Map([
  ["LLM_COMPLETION_NOT_AUTHORIZED", "NOT_ALLOWED"],
  ["LLM_ISOLATED_UNSUPPORTED", "UNSUPPORTED"],
  ["LLM_ISOLATED_INPUT_REJECTED", "UNSUPPORTED"],
  ["LLM_COMPLETION_OUTPUT_REJECTED", "UNUSABLE"],
]);
const OF_PROVIDER = new Map([
  [400, "REFUSED"], // this request, or any
  [413, "REFUSED"],
  [422, "REFUSED"],
  [401, "NOT_CONFIGURED"],
  [403, "NOT_CONFIGURED"],
  [404, "NOT_CONFIGURED"],
]);
const UNPREPARED = /^No model configured|completion failed: |completion preparation failed: /;

// What can be asked for a completion; null where the host has nothing of the kind.
function modelsOf(api) {
  try {
    const llm = api?.runtime?.llm;
    return typeof llm?.complete === "function" ? llm : null;
  } catch {
    return null; // a host that makes it only when it is looked at
  }
}

// Why a completion failed, as a stable code; `status` where its provider gave one. Words are looked into and never shown.
class Uncompleted extends Error {
  constructor(reason, status) {
    super(reason);
    this.reason = reason;
    this.status = status;
  }

  static of(error) {
    const causes = [];
    for (let one = error; isObject(one) && causes.length < 5; one = one.cause) causes.push(one);
    const status = causes.map((one) => Number(one.status)).find((number) => number >= 400 && number < 600);
    if (status) return new Uncompleted(OF_PROVIDER.get(status) ?? "FAILED", status);
    if (causes.some((one) => UNPREPARED.test(String(one.message)))) return new Uncompleted("NOT_CONFIGURED");
    const code = OF_HOST.get(error?.code) ?? "FAILED";
    // An answer that the host rejects has one cause; where the provider failed that stands behind it, as a second one.
    return new Uncompleted(code === "UNUSABLE" && causes.length > 2 ? "FAILED" : code);
  }
}

let takesTemperature; // the model; undefined until it is known

// The text that the model gives. 2026.9.6 runs it as it runs the agent's model, without tools, session and hooks, by
// `execution`; 2026.5.28 does not know that word, and has this way alone.
async function completed(llm, { system, user, most_tokens: maxTokens }, timeoutMs, signal) {
  const request = {
    purpose: "clawmark.extract",
    systemPrompt: system,
    messages: [{ role: "user", content: user }],
    execution: { mode: "isolated-agent-runtime", timeoutMs },
    maxTokens,
    signal,
  };
  if (takesTemperature === false) return await textOfModel(llm, request);
  try {
    const said = await textOfModel(llm, { ...request, temperature: 0 });
    takesTemperature = true;
    return said;
  } catch (error) {
    // Some models refuse a temperature; a host that does not say why it has no text may mean that.
    const isInDoubt = error.status === 400 || error.reason === "SILENT";
    if (takesTemperature || signal.aborted || !isInDoubt) throw error;
    const said = await textOfModel(llm, request);
    takesTemperature = false;
    return said;
  }
}

function answerOf(failed) {
  const { code, message, reason } = failed;
  if (failed instanceof Unanswered) return { code, message };
  return { code: REFUSED, message: "the host's model gave nothing", data: { code: reason ?? "FAILED" } };
}

async function textOfModel(llm, request) {
  let said;
  try {
    said = await llm.complete(request);
  } catch (error) {
    throw Uncompleted.of(error);
  }
  const { text, model, provider, usage } = said ?? {};
  if (typeof text !== "string") throw new Uncompleted("FAILED");
  if (text.length > REPLY_LENGTH) throw new Uncompleted("UNUSABLE");
  // 2026.5.28 gives an empty text where its provider failed, and then no token was made.
  if (!text.trim()) throw new Uncompleted(usage?.outputTokens > 0 ? "UNUSABLE" : "SILENT");
  return { text: text.toWellFormed(), model: `${provider}/${model}` };
}

// --- the resident process, as this process sees it -------------------------------------------------------------------

class Resident {
  constructor(config, log) {
    const { right, wrong } = checked(config);
    this.config = right;
    this.log = log;
    if (wrong.length) log.warn(`clawmark: left out of plugins.entries.clawmark.config: ${wrong.join(", ").slice(0, 500)}`);
    this.inGateway = false; // else what is no warning would stand before the reply of `openclaw agent --local`
    this.way = null; // open while there is one
    this.waiting = null; // the timer before a restart
    this.stopped = false;
    this.delay = 0;
    this.lasting = false; // whether it was lost for a reason that lasts
    this.isGreeted = false;
    this.asked = new Map(); // id -> what to do with the answer
    this.completing = new Map(); // id of the other side -> what ends it
    this.api = null; // of the registration that was used last: a reload makes another, and the host ends the one before
    this.within = (run) => run();
    this.lastId = 0;
    this.half = ""; // of a line
    this.heardAt = 0;
    this.failures = 0; // blocks in a row that failed, and when the first of them was asked for
    this.failingSince = 0;
    this.restsUntil = 0;
    this.problem = "it was not started yet";
    this.complained = "";
    this.runs = new Map(); // run id -> what it asked and what it got
  }

  // A gateway that starts looks at once at what failed before.
  begin() {
    this.inGateway = true;
    // Else a completion belongs to the turn in which the process was started, and ends with it.
    this.within = AsyncLocalStorage.snapshot();
    clearTimeout(this.waiting);
    this.waiting = null;
    if (this.way) this.notify("hello", { offers: this.offers });
    this.start();
  }

  // What the other side may ask. Outside of a gateway nothing lives long enough for it.
  get offers() {
    return this.inGateway && modelsOf(this.api) ? ["complete"] : [];
  }

  start() {
    if (this.way || this.waiting) return;
    this.stopped = false; // a gateway that reloads its plugins stops them, and goes on
    this.isGreeted = false;
    const { python, socket } = this.config;
    if (!python && !socket) return this.complain("no `python` is configured: run `clawmark install openclaw`");
    this.half = "";
    this.startedAt = performance.now();
    let way;
    const mine = (then) => (...what) => way === this.way && then.apply(this, what);
    try {
      way = (socket ? overSocket : overPipes)(this.config, mine(this.heard), mine(this.lost));
    } catch (error) {
      return this.lost(`${socket ?? python} cannot be used (${error.code ?? "unknown"})`, true);
    }
    this.way = way;
    const hello = { client: "openclaw", version: VERSION, protocol: PROTOCOL, offers: this.offers };
    this.request("hello", hello, HELLO_MS, { keepAlive: false }).then(
      mine(this.greeted),
      mine((error) => this.cut(error.code ? error.message : "it does not answer")),
    );
  }

  greeted(hello) {
    if (hello?.protocol !== PROTOCOL) {
      return this.cut(
        `clawmark ${hello?.version} speaks protocol ${hello?.protocol}, this plugin ${PROTOCOL}: run ` +
          "`clawmark install openclaw` again, then restart the gateway",
        true,
      );
    }
    this.isGreeted = true;
    this.problem = "";
    const opens = !hello.ready && hello.problem === "opening"; // it answers before its file is open
    if (hello.problem && !opens) return this.complain(hello.problem);
    this.complained = "";
    const other = hello.version === VERSION ? "" : `; the plugin is ${VERSION}: run \`clawmark install openclaw\` again`;
    this.tell(`clawmark ${hello.version}: ${hello.database}, process ${hello.pid}, Python ${hello.python}${other}`);
  }

  // Nothing more is to be had from this one: another one is started.
  cut(reason, lasts = false) {
    const { way } = this;
    this.lost(reason, lasts);
    way.kill();
  }

  lost(reason, lasts = false) {
    this.way = null;
    for (const { reject } of [...this.asked.values()]) reject(new Unanswered(reason));
    for (const stop of [...this.completing.values()]) stop.abort(new Unanswered(reason, CANCELLED));
    if (this.stopped) return;
    this.complain(reason);
    const [first, longest] = lasts ? [LASTING_DELAY_MS, LONGEST_LASTING_MS] : [FIRST_DELAY_MS, LONGEST_DELAY_MS];
    const anew = performance.now() - this.startedAt > STEADY_MS || !this.delay || lasts !== this.lasting;
    this.delay = anew ? first : Math.min(this.delay * 2, longest);
    this.lasting = lasts;
    this.waiting = setTimeout(() => {
      this.waiting = null;
      this.start();
    }, this.delay);
    this.waiting.unref();
  }

  // Once a reason: who is told each minute looks away.
  complain(reason) {
    this.problem = reason;
    if (this.complained === reason) return;
    this.complained = reason;
    this.log.warn(`clawmark: no memory for now: ${reason}. \`clawmark doctor\` looks at everything.`);
  }

  tell(line) {
    this.log[this.inGateway ? "info" : "debug"]?.(line);
  }

  async stop() {
    this.stopped = true;
    clearTimeout(this.waiting);
    this.waiting = null;
    const { way } = this;
    if (!way) return;
    this.lost("the gateway stops");
    await way.end();
  }

  // --- lines

  heard(chunk) {
    this.heardAt = performance.now();
    const lines = (this.half + chunk).split("\n");
    this.half = lines.pop();
    for (const line of lines) this.take(line);
    if (this.half.length > LINE_LENGTH) this.cut("it sent a line of more than 1 MiB");
  }

  take(line) {
    let said;
    try {
      said = JSON.parse(line);
    } catch {
      return; // not of the protocol
    }
    if (typeof said?.method === "string") return this.called(said);
    const asked = this.asked.get(said?.id);
    if (!asked) return; // too late
    if (said.error) asked.reject(new Unanswered(String(said.error.message), said.error.code));
    else asked.resolve(said.result);
  }

  // The other side may ask and tell, too.
  called({ id, method, params }) {
    if (method === "log") {
      const line = `clawmark: ${String(params?.message).slice(0, 500).replace(/\s+/g, " ")}`;
      const level = { debug: "debug", info: "info", error: "error" }[params?.level] ?? "warn";
      if (level === "info") this.tell(line);
      else this.log[level]?.(line);
    } else if (method === "cancel") {
      this.completing.get(params?.id)?.abort(new Unanswered("cancelled", CANCELLED));
    } else if (method === "complete" && id !== undefined && this.offers.length) {
      this.complete(id, params);
    } else if (id !== undefined) {
      this.refuse(id, NO_METHOD, "no such method");
    }
  }

  refuse(id, code, message, data) {
    this.write({ id, error: { code, message, data } });
  }

  // Asks the gateway's model; never throws. What comes after its end, or for a process that is gone, is dropped.
  async complete(id, params) {
    const { system, user, deadline_ms: deadline } = params ?? {};
    const areTexts = typeof system === "string" && typeof user === "string";
    if (!areTexts) return this.refuse(id, PARAMS, "system or user is no text");
    if (this.completing.has(id)) return this.refuse(id, FAULT, "a request with this id is under way");
    if (this.completing.size >= COMPLETIONS) return this.refuse(id, FAULT, "too much is asked at once");
    const { way } = this;
    const stop = new AbortController();
    const { signal } = stop;
    const ended = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const ms = Math.ceil(Math.min(deadline > 0 ? deadline : COMPLETE_MS, LONGEST_COMPLETE_MS));
    const timer = setTimeout(() => stop.abort(new Unanswered("the deadline has passed", LATE)), ms);
    timer.unref();
    this.completing.set(id, stop);
    let said;
    try {
      const asked = this.within(() => completed(modelsOf(this.api), params, ms, signal));
      said = { result: await Promise.race([asked, ended]) };
    } catch (error) {
      said = { error: answerOf(signal.aborted ? signal.reason : error) };
    }
    clearTimeout(timer);
    this.completing.delete(id);
    if (way === this.way) this.write({ id, ...said });
  }

  write(said) {
    this.way?.write(`${JSON.stringify({ jsonrpc: "2.0", ...said })}\n`);
  }

  notify(method, params) {
    this.write({ method, params });
  }

  // Raises Unanswered. The timer keeps this process alive for as long as somebody waits.
  request(method, params, ms, { signal, keepAlive = true } = {}) {
    this.start();
    if (!this.way) return Promise.reject(new Unanswered(this.problem));
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      const give = (then) => (what) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", cancel);
        this.asked.delete(id);
        then(what);
      };
      const asked = { resolve: give(resolve), reject: give(reject) };
      const giveUp = (reason) => {
        this.notify("cancel", { id });
        asked.reject(new Unanswered(reason));
      };
      const cancel = () => giveUp("cancelled");
      const timer = setTimeout(() => giveUp("it did not answer in time"), ms);
      if (!keepAlive) timer.unref();
      signal?.addEventListener("abort", cancel, { once: true });
      this.asked.set(id, asked);
      this.write({ id, method, params: { ...params, deadline_ms: ms } });
    });
  }

  // --- blocks

  // The text of the block; undefined where there is no answer.
  async block(turn) {
    const now = performance.now();
    if (now < this.restsUntil) return undefined;
    try {
      const { text } = await this.request("block", { turn }, BLOCK_MS);
      this.failures = 0;
      return typeof text === "string" ? text : "";
    } catch (error) {
      // Before its greeting it starts, which may take longer than some blocks; HELLO_MS looks after that.
      if (this.way && this.isGreeted && error.code !== NOT_READY && error.code !== REFUSED) this.failed(now);
      return undefined;
    }
  }

  failed(askedAt) {
    if (this.failures++ === 0) this.failingSince = askedAt;
    if (this.failures < FAILURES) return;
    this.failures = 0;
    this.restsUntil = performance.now() + REST_MS;
    const reason = `${FAILURES} blocks in a row failed; the next one is asked for in ${REST_MS / 1000} s`;
    if (this.heardAt < this.failingSince) this.cut(`${reason}. It said nothing at all, and is started anew`);
    else this.complain(reason);
  }

  // A run is the owner's prompt: a retry of it may have its block again, and what else the host asks in it gets none.
  blockOf(runId, turn) {
    const prompt = `${turn.prompt.length} ${turn.prompt.slice(0, 200)}`;
    const known = runId && this.runs.get(runId);
    if (known && known.prompt !== prompt) return "";
    if (runId && !known) keep(this.runs, runId, { prompt, counted: false }, RUNS_KEPT);
    return this.block(turn); // the resident process gives a run the same bytes again, unless something was forgotten
  }
}

// --- what the gateway sees -------------------------------------------------------------------------------------------

const SHARED = Symbol.for("clawmark");

function ofProcess() {
  const shared = (globalThis[SHARED] ??= { made: "", resident: null });
  shared.speakers ??= new Speakers();
  return shared;
}

// The one of this process. Another configuration or another version of this file, after a reload, takes its place.
function residentOf(api) {
  const config = api.pluginConfig ?? {};
  const log = api.logger;
  const made = `${VERSION} ${JSON.stringify(config)}`;
  const shared = ofProcess();
  if (shared.made !== made) {
    const before = shared.resident;
    shared.resident = new Resident(isObject(config) ? config : {}, log);
    shared.resident.inGateway = before?.inGateway === true;
    shared.made = made;
    before?.stop();
  }
  shared.resident.log = log;
  shared.resident.api = api;
  return shared.resident;
}

function toolFor(tool, ctx, resident) {
  const { agentId, sessionKey, sessionId } = ctx;
  // 2026.5.28 names senders and no owner: whoever writes directly is the owner there.
  const senderIsOwner = "senderIsOwner" in ctx ? ofSender(ctx.senderIsOwner, ctx.requesterSenderId) : undefined;
  const caller = { host: "openclaw", agentId, sessionKey, sessionId, senderIsOwner };
  const method = tool.name.slice("clawmark_".length);
  const allowed = Object.keys(tool.parameters.properties ?? {});
  return {
    ...tool,
    label: tool.name,
    async execute(_id, params, signal) {
      const given = Object.fromEntries(allowed.filter((name) => params?.[name] != null).map((name) => [name, params[name]]));
      try {
        const answer = await resident().request(method, { ...given, caller }, TOOL_MS[method] ?? OTHER_TOOLS_MS, { signal });
        return toolResult(answer.text, answer.outcome ?? "ok");
      } catch (error) {
        if (error.code === REFUSED) return toolResult(error.message, "refused");
        if (error.code) return toolResult(error.message, "failed");
        return toolResult(`memory is not there now: ${error.message}. Go on without it.`, "failed");
      }
    },
  };
}

function toolResult(text, outcome) {
  return { content: [{ type: "text", text: String(text) }], details: { outcome } };
}

export default {
  id: "clawmark",
  name: "clawmark",
  description: "A private memory: facts and recall out of the message log OpenClaw already keeps",

  register(api) {
    const resident = () => residentOf(api);

    // A hook that throws is one line in the log and no harm; a word of the person must not be in that line.
    const on = (name, handler, options) =>
      api.on(
        name,
        async (event, ctx) => {
          try {
            return await handler(event ?? {}, ctx ?? {});
          } catch (error) {
            api.logger.warn(`clawmark: ${name} failed (${error?.name})`);
            return undefined;
          }
        },
        options,
      );

    on("gateway_start", () => resident().begin());
    on("gateway_stop", () => ofProcess().resident?.stop());

    // Not through `on`: the host calls it for each message that it stores, and waits for no promise.
    api.on("before_message_write", (event) => {
      ofProcess().speakers.wrote(event?.message);
    });

    on(
      "before_prompt_build",
      async (event, ctx) => {
        const senderIsOwner = ofProcess().speakers.take(ctx);
        const prompt = withoutTime(typeof event.prompt === "string" ? event.prompt : "");
        if (!isPersons(prompt, ctx)) return undefined;
        const { agentId, sessionKey, sessionId, runId } = ctx;
        const text = await resident().blockOf(runId, {
          ...{ host: "openclaw", agentId, sessionKey, sessionId, runId, senderIsOwner },
          prompt: shortened(prompt),
          recent: recentLines(event.messages),
        });
        return text ? { prependContext: text } : undefined;
      },
      { timeoutMs: 5000 },
    );

    const tell = (event, ctx, what) => {
      const session = ctx.sessionId ?? event.sessionId;
      if (!session || isHostRun(ctx.sessionKey ?? event.sessionKey)) return;
      resident().notify("notify", { host: "openclaw", session, ...what });
    };
    on("session_start", (event, ctx) => {
      if (isHostRun(ctx.sessionKey ?? event.sessionKey)) return;
      resident().start(); // `openclaw agent --local` has no gateway_start
      tell(event, ctx, { event: "session_start" });
    });
    on("session_end", (event, ctx) => tell(event, ctx, { event: "session_end" }));
    on("agent_end", (event, ctx) => {
      ofProcess().speakers.ended(ctx);
      const run = ofProcess().resident?.runs.get(ctx.runId ?? event.runId);
      if (!run || run.counted) return;
      run.counted = true; // a retry ends, too
      tell(event, ctx, { event: "messages", count: 2 });
    });

    const makeTools = (ctx) => {
      ofProcess().speakers.madeTools(ctx ?? {});
      return TOOLS.map((tool) => toolFor(tool, ctx ?? {}, resident));
    };
    api.registerTool(makeTools, { names: TOOLS.map(({ name }) => name) });
  },
};
