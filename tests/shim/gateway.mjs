// A gateway as the shim sees it: loads it, registers it, calls its hooks and tools. One JSON object a line says what to do;
// the answer has the same id. It ends by itself when its input ends and nothing else holds it.

import { AsyncLocalStorage } from "node:async_hooks";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const shim = pathToFileURL(process.argv[2]).href;
const logs = [];
const logger = Object.fromEntries(
  ["debug", "info", "warn", "error"].map((level) => [level, (line) => logs.push({ level, line: String(line) })]),
);
const instances = [];
const running = new AsyncLocalStorage(); // which hook something is done in
const completions = [];
let touched = 0;

const does = {
  // `copy`: another number is another evaluation of the module.
  // `model`: how the host offers its own; none where it is not named.
  async register({ config, copy = 1, mode = "full", model = "" }) {
    const { default: plugin } = await import(`${shim}?${copy}`);
    const made = { hooks: {}, options: {}, tools: null, names: [] };
    plugin.register({
      pluginConfig: config,
      logger,
      runtime: runtimeOf(model),
      registrationMode: mode,
      on: (name, handler, options) => Object.assign(made, {
        hooks: { ...made.hooks, [name]: handler },
        options: { ...made.options, [name]: options ?? null },
      }),
      registerTool: (factory, options) => Object.assign(made, { tools: factory, names: options.names }),
    });
    instances.push(made);
    return { options: made.options, names: made.names };
  },
  async hook({ at = -1, name, event = {}, ctx = {}, history }) {
    const began = performance.now();
    if (history) event.messages = watched(history);
    const gave = await running.run(name, () => instances.at(at).hooks[name](event, ctx));
    return { gave: gave ?? null, ms: performance.now() - began };
  },
  async tools({ at = -1, ctx }) {
    return instances.at(at).tools(ctx).length;
  },
  async tool({ at = -1, name, ctx, params, cancelAfter }) {
    const tool = instances.at(at).tools(ctx).find((one) => one.name === name);
    const signal = cancelAfter ? AbortSignal.timeout(cancelAfter) : undefined;
    return await tool.execute("call-1", params, signal);
  },
  completions: () => completions.map(({ signal, ...rest }) => ({ ...rest, isAborted: signal.aborted })),
  logs: () => logs,
  touched: () => touched,
};

function runtimeOf(model) {
  if (model === "") return undefined;
  return {
    get llm() {
      if (model === "broken") throw new Error("the runtime is no longer active");
      return model === "none" ? {} : { complete: (request) => completed(request, model) };
    },
  };
}

// What the two supported versions were seen to do; the text that is asked says which.
async function completed(request, provider) {
  completions.push({ ...request, in: running.getStore(), provider });
  const text = request.messages[0].content;
  if (text.includes("BEGIN MESSAGES")) return { text: extracted(text), provider, model: "m" };
  const usage = { inputTokens: 50, outputTokens: 5 };
  const said = (reply, how = usage) => ({ text: reply, provider, model: "m", usage: how });
  const failed = (code, message, cause) => Object.assign(new Error(message, { cause }), { code });
  const rejected = (cause) =>
    failed("LLM_COMPLETION_OUTPUT_REJECTED", "canary", Object.assign(new Error("canary", { cause }), { code: "output-rejected" }));
  if (text.includes("sleep")) await new Promise((resolve) => setTimeout(resolve, 1000));
  if (text.includes("for ever")) await new Promise(() => {});
  const [, status] = /status (\d+)/.exec(text) ?? [];
  if (status) throw rejected({ status: Number(status), code: status, message: "canary" });
  if (text.includes("unreachable")) throw rejected({ message: "canary" });
  if (text.includes("tool call")) throw rejected();
  const [, code] = /code (\w+)/.exec(text) ?? [];
  if (code) throw failed(code, "canary");
  if (text.includes("unprepared")) throw new Error("Plugin LLM completion failed: Auth lookup failed for canary");
  if (text.includes("no model")) throw failed("LLM_COMPLETION_FAILED", "No model configured for agent canary.");
  if (text.includes("cold") && "temperature" in request) throw rejected({ status: 400, message: "canary" });
  if (text.includes("cool") && "temperature" in request) return said("", { inputTokens: 0, outputTokens: 0 });
  if (text.includes("silent")) return said("", { inputTokens: 0, outputTokens: 0 });
  if (text.includes("empty")) return said("");
  if (text.includes("endless")) return said("x".repeat(2_000_000));
  if (text.includes("garbage")) return 7;
  if (text.includes("throws nothing")) throw undefined;
  return said(`canary of ${text}`);
}

// One thing that the person said, where it stands in what is asked.
function extracted(text) {
  const found = /^\[(\d+)\] [^\n]*, may be cited\n\| [^\n]*(I live in Majorna in Gothenburg)/m.exec(text);
  if (!found) return '{"facts": []}';
  const [, number, quote] = found;
  const fact = { key: "user.home", value: quote, confidence: 0.95, messages: [Number(number)], quote };
  return `Here you are:\n\`\`\`json\n${JSON.stringify({ facts: [fact] })}\n\`\`\``;
}

// A history of so many messages, which counts how many of them are looked at.
function watched(length) {
  const messages = Array.from({ length }, (_, i) => ({
    role: i % 2 ? "assistant" : "user",
    content: [{ type: "text", text: `line ${i}` }],
  }));
  return new Proxy(messages, {
    get(target, name, receiver) {
      if (/^\d+$/.test(String(name))) touched += 1;
      return Reflect.get(target, name, receiver);
    },
  });
}

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, does: what, ...rest } = JSON.parse(line);
  let said;
  try {
    said = { id, gave: (await does[what](rest)) ?? null };
  } catch (error) {
    said = { id, raised: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(said)}\n`);
});
