// A gateway as the shim sees it: loads it, registers it, calls its hooks and tools. One JSON object a line says what to do;
// the answer has the same id. It ends by itself when its input ends and nothing else holds it.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const shim = pathToFileURL(process.argv[2]).href;
const logs = [];
const logger = Object.fromEntries(
  ["debug", "info", "warn", "error"].map((level) => [level, (line) => logs.push({ level, line: String(line) })]),
);
const instances = [];
let touched = 0;

const does = {
  // `copy`: another number is another evaluation of the module.
  async register({ config, copy = 1, mode = "full" }) {
    const { default: plugin } = await import(`${shim}?${copy}`);
    const made = { hooks: {}, options: {}, tools: null, names: [] };
    plugin.register({
      pluginConfig: config,
      logger,
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
    const gave = await instances.at(at).hooks[name](event, ctx);
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
  logs: () => logs,
  touched: () => touched,
};

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
