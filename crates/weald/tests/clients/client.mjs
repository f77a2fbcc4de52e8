// The official TypeScript SDKs as clients of `weald mcp`: list the tools, call what a plan says, and tell what came.
//
// client.mjs SDK MODE PLAN COMMAND [ARGUMENT…]: SDK is the folder that both were installed in; MODE is v1, legacy or a
// protocol version (of v2); PLAN is a file with a list of {"tool", "arguments"}. Both SDKs validate each structured result
// against the tool's output schema once the tools were listed. A step with "cancel_once" is cancelled when a progress
// notification has these words; one with "until" is called again until its answer has them.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [sdk, mode, plan, command, ...args] = process.argv.slice(2);
const load = createRequire(`${sdk}/`);

function connection() {
  const server = { command, args, env: process.env };
  const me = { name: "weald-test", version: "1" };
  if (mode === "v1") {
    const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
    return [new Client(me), new StdioClientTransport(server)];
  }
  const { Client } = load("@modelcontextprotocol/client");
  const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
  const negotiated = mode === "legacy" ? "legacy" : { pin: mode };
  return [new Client(me, { versionNegotiation: { mode: negotiated } }), new StdioClientTransport(server)];
}

async function call(client, step) {
  const calling = new AbortController();
  const told = { tool: step.tool, progress: [] };
  const onprogress = ({ message }) => {
    told.progress.push(message);
    if (step.cancel_once && message.includes(step.cancel_once)) calling.abort();
  };
  const options = { signal: calling.signal, onprogress };
  const schema = mode === "v1" ? [undefined] : [];
  try {
    const result = await client.callTool({ name: step.tool, arguments: step.arguments }, ...schema, options);
    const answer = result.isError ? JSON.parse(result.content[0].text) : result.structuredContent;
    if (!result.isError && !JSON.stringify(answer).includes(step.until ?? "")) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      return call(client, step);
    }
    return { ...told, error: result.isError ?? false, answer };
  } catch (error) {
    if (calling.signal.aborted) return { ...told, cancelled: true };
    // A protocol error is told like any other result.
    return { ...told, protocol_error: String(error).slice(0, 500) };
  }
}

const [client, transport] = connection();
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const step of JSON.parse(readFileSync(plan, "utf8"))) {
  results.push(await call(client, step));
}
const version = client.getNegotiatedProtocolVersion?.() ?? mode;
await client.close();
console.log(JSON.stringify({ version, tools: tools.map((tool) => tool.name), results }));
