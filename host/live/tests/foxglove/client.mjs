// Reads a run with Foxglove's own client: node client.mjs FABSWARM FOLDER

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import protocol from "@foxglove/ws-protocol";
import WebSocket from "ws";

const { FoxgloveClient } = protocol;

const run = spawn(process.argv[2], [
  "run", "--foxglove=127.0.0.1:0", "--rounds", "4000000000", "--error-below", "0", "--out", process.argv[3],
], { stdio: ["ignore", "ignore", "pipe"] });
process.on("exit", () => run.kill());
setTimeout(() => { throw new Error("nothing happened for a minute"); }, 60_000).unref();

const url = await new Promise((resolve) => {
  createInterface({ input: run.stderr }).on("line", (line) => {
    const found = line.match(/^Foxglove: (ws:.*)$/);
    if (found) resolve(found[1]);
  });
});

// Who speaks another protocol, or is another site, gets nothing.
const refused = (protocol, origin) => new Promise((resolve, reject) => {
  const socket = new WebSocket(url, protocol, { origin });
  socket.on("unexpected-response", (_, response) => resolve(response.statusCode));
  socket.on("error", () => {});
  socket.on("open", () => reject(new Error(`${protocol} from ${origin} is let in`)));
});
assert.equal(await refused("chat", undefined), 400);
assert.equal(await refused(FoxgloveClient.SUPPORTED_SUBPROTOCOL, "http://evil.example"), 403);

const origin = "https://app.foxglove.dev";
const socket = new WebSocket(url, [FoxgloveClient.SUPPORTED_SUBPROTOCOL], { origin });
const client = new FoxgloveClient({ ws: socket });
client.on("error", (error) => { throw error; });

const topics = new Map();
const received = {};
const everything = new Promise((resolve) => {
  client.on("advertise", (channels) => {
    for (const channel of channels) {
      assert.equal(JSON.parse(channel.schema).title, channel.schemaName);
      topics.set(client.subscribe(channel.id), channel.topic);
    }
  });
  client.on("message", ({ subscriptionId, timestamp, data }) => {
    const topic = topics.get(subscriptionId);
    const message = JSON.parse(new TextDecoder().decode(data));
    assert.ok(Math.abs(Number(timestamp) / 1e6 - Date.now()) < 60_000, `${timestamp} is not now`);
    (received[topic] ??= []).push(message);
    const count = (name) => received[name]?.length ?? 0;
    if (count("/metrics") > 5 && count("/swarm") > 5 && count("/scene") > 5) resolve();
  });
});
await everything;

assert.deepEqual([...topics.values()].sort(), ["/end", "/evaluation", "/log", "/metrics", "/run", "/scene", "/swarm"]);
assert.equal(received["/run"].length, 1, "the first message is kept for who comes later");
assert.equal(received["/run"][0].agents, 10);
const rounds = received["/swarm"].map((view) => view.round);
assert.deepEqual(rounds, [...rounds].sort((a, b) => a - b));
const [entity] = received["/scene"].at(-1).entities;
assert.equal(entity.spheres.length, 10);
assert.ok(entity.lines[0].points.length > 0 && entity.lines[0].points.length === entity.lines[0].colors.length);
const count = Object.values(received).reduce((sum, messages) => sum + messages.length, 0);
console.log(`Foxglove's client: ${count} messages of ${Object.keys(received).sort().join(", ")}`);
process.exit(0);
