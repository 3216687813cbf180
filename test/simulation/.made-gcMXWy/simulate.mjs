// test/simulation/bundle.ts
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
var root = fileURLToPath(new URL("../..", "file:///work/wt/lead/test/simulation/simulate.ts"));
var ENTRY = `
export * from './src/redis/index.ts'
export * from './src/memory/index.ts'
export { createDiagnosticsRouter, noopAuth, Refusal } from './src/index.ts'
export {
  createActionHandlers, createCooperativeSiteRouter, createDispatchConnector, createIdempotencyStore,
  createSessionPolicy, ingestCooperativeSiteMessage,
} from './src/cooperative-site/index.ts'
`;
var TIMERS = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "clearImmediate"];
var PLATFORM = {
  ...Object.fromEntries(
    TIMERS.flatMap((name) => [
      [name, `platform.${name}`],
      [`globalThis.${name}`, `platform.${name}`]
    ])
  ),
  "performance.now": "platform.performanceNow",
  "Date.now": "platform.dateNow",
  "Math.random": "platform.random",
  "crypto.randomUUID": "platform.randomUUID",
  "crypto.getRandomValues": "platform.getRandomValues",
  "crypto.subtle.digest": "platform.digest"
};
async function bundleLibrary(edit = (text) => text) {
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: root, loader: "ts" },
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    write: false,
    define: { ...PLATFORM, RELAYSCOPE_VERSION: '"simulated"' },
    logLevel: "error"
  });
  const text = edit(outputFiles[0].text);
  const body = new Function("platform", "module", "exports", "require", text);
  const require2 = createRequire("file:///work/wt/lead/test/simulation/simulate.ts");
  return (platform) => {
    const module = { exports: {} };
    body(platform, module, module.exports, require2);
    return module.exports;
  };
}

// test/simulation/random.ts
function hash32(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash | 0;
}
function createRandom(seed) {
  let state = seed | 0;
  return () => {
    state = state + 1831565813 | 0;
    let t = Math.imul(state ^ state >>> 15, 1 | state);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  };
}
function createDice(seed, name) {
  const random = createRandom(seed ^ hash32(name));
  return {
    random,
    int: (n) => Math.floor(random() * n),
    pick: (list) => list[Math.floor(random() * list.length)],
    chance: (probability) => random() < probability,
    between: (from, to) => from + random() * (to - from)
  };
}

// test/simulation/config.ts
var PROFILES = {
  calm: [],
  links: ["link breaks", "reply is lost", "link stalls", "replies stall", "subscriber breaks", "subscriber goes deaf"],
  nodes: ["node dies", "node stands still", "node clock steps", "link breaks"],
  all: [
    "link breaks",
    "reply is lost",
    "link stalls",
    "replies stall",
    "node dies",
    "node stands still",
    "subscriber breaks",
    "subscriber goes deaf",
    "node clock steps",
    "store pauses"
  ],
  store: ["store clock steps", "store restarts", "store pauses", "link breaks", "node dies"],
  loss: ["store loses writes", "node dies", "link breaks"],
  full: ["store is full", "link breaks", "node dies"]
};
var WEIGHTED = ["calm", "links", "links", "nodes", "nodes", "all", "all", "all", "store", "loss", "full"];
function configOf(seed, store, over = {}) {
  const dice = createDice(seed, "config");
  const profile = over.profile ?? dice.pick(WEIGHTED);
  return {
    seed,
    store,
    profile,
    faults: store === "memory" ? [] : PROFILES[profile],
    nodes: store === "memory" ? 1 : 1 + dice.int(3),
    shards: store === "redis-sharded" ? 4 : 1,
    clientKinds: Array.from({ length: 4 }, () => dice.pick(["node-redis", "ioredis"])),
    users: 1 + dice.int(3),
    clientsPerUser: 1 + dice.int(2),
    seconds: 7 + dice.int(12),
    capacity: 2 + dice.int(6),
    ackTimeoutMs: dice.pick([700, 1500, 4e3]),
    maxAttempts: 1 + dice.int(4),
    faultEveryMs: dice.pick([400, 1200, 3e3]),
    dedupTtlMs: 2e4,
    heartbeatTimeoutMs: 15e3,
    slowTailMs: dice.pick([30, 200, 700]),
    forgets: store !== "memory" && seed % 3 === 0,
    ...over
  };
}

// test/simulation/defects.ts
var DEFECTS = [
  {
    name: "words of a former instance count",
    from: "if asked ~= '' then return current ~= instance end",
    to: "if asked ~= '' then return false end",
    rules: ["stale_word"],
    store: "redis",
    seed: 4
  },
  {
    name: "a full scope takes one more",
    from: "if isNew and held > capacity then",
    to: "if isNew and held > capacity + 1 then",
    rules: ["capacity_exceeded"],
    store: "redis",
    seed: 8
  },
  {
    name: "an acknowledgement is lost",
    from: "c.phase, c.acknowledged = 'acknowledged', state .. '\\\\n' .. now_text .. '\\\\n' .. instance",
    to: "c.phase = 'acknowledged'",
    rules: ["acknowledgement_lost"],
    store: "redis",
    seed: 1
  },
  {
    name: "an event is published twice",
    from: "if redis.call('ZSCORE', had, event_id) then return",
    to: "if false then return",
    rules: ["published_twice"],
    store: "redis",
    seed: 1
  },
  {
    name: "a gap is not told",
    from: "if (found === this.ahead) return void 0;",
    to: "if (found === this.ahead || found === oldest) { this.ahead = found; return void 0; }",
    rules: ["lost_without_gap", "published_unheard"],
    store: "memory",
    seed: 6
  },
  {
    name: "a gap is counted one short",
    from: "const lost = { dropped: found - this.ahead,",
    to: "const lost = { dropped: Math.max(1, found - this.ahead - 1),",
    rules: ["gap_miscounted"],
    store: "memory",
    seed: 6
  },
  {
    name: "a write runs however late it comes",
    from: "if stored_now >= tonumber(ends) then return",
    to: "if false then return",
    rules: ["there_though_refused", "stale_word", "ended_twice", "heard_though_denied", "ran_though_denied"],
    store: "redis",
    profile: "all",
    seed: 50
  },
  {
    name: "what was sent is called not run",
    from: 'const outcome = isSent ? "unknown" : "not_run";',
    to: 'const outcome = "not_run";',
    rules: ["there_though_refused", "ran_though_denied"],
    store: "redis",
    profile: "links",
    seed: 21
  },
  {
    name: "the reply of another client counts",
    from: "if has_sender == '1' and is_foreign(call) then",
    to: "if false then",
    rules: ["foreign_counted"],
    store: "redis",
    seed: 2
  },
  {
    name: "a message that arrives again is new",
    from: "  if before then\n    local reply = cjson.decode(before)",
    to: "  if false then\n    local reply = cjson.decode(before)",
    rules: ["claim_denied", "claimed_twice", "retained_twice", "new_twice"],
    store: "redis",
    profile: "links",
    seed: 2
  },
  {
    name: "a reservation outlives its command",
    from: "if c.scope_shard == '' then release(c.scope_id, c.ref) end",
    to: "if c.scope_shard == '' and state ~= 'expired' then release(c.scope_id, c.ref) end",
    rules: ["left_in_store", "left_reserved", "refused_with_room"],
    store: "redis",
    seed: 3
  },
  {
    name: "a reservation is given back twice",
    from: "  count('acknowledgement ' .. state)\n",
    to: "  count('acknowledgement ' .. state)\n  if c.scope_shard == '' then release(c.scope_id, c.ref) end\n",
    rules: ["capacity_exceeded"],
    store: "redis",
    seed: 8
  },
  {
    name: "a word counts after the end in memory",
    from: "return command?.terminal ? void 0 : command;",
    to: "return command;",
    rules: ["end_lost", "ended_twice"],
    store: "memory",
    seed: 1
  }
];
function plant({ name, from, to }) {
  return (text) => {
    if (!text.includes(from)) throw new Error(`cannot plant "${name}": the bundle has no ${JSON.stringify(from)}`);
    return text.replaceAll(from, () => to);
  };
}

// test/simulation/actors/clients.ts
import { z } from "zod";
var PLANS = [
  [0.45, "acknowledge, then end"],
  [0.6, "end at once"],
  [0.66, "refuse"],
  [0.72, "acknowledge only"],
  [0.78, "say nothing"],
  [0.84, "reject"],
  [0.88, "hang"],
  [0.94, "speak as the former instance"],
  [1, "end late"]
];
var planOf = (dice) => {
  const r = dice.random();
  return (PLANS.find(([below]) => r < below) ?? PLANS[0])[1];
};
var isUnsure = (operation) => operation.state === "refused" && operation.code === "unavailable";
var idOf = ({ user_id, client_id }) => ({ user_id, client_id });
async function say(stage, dice, client, command_id, what, word, instance_id) {
  for (let tries = 0; tries < 3; tries++) {
    const node = stage.anyNode(dice);
    if (!node) return;
    const details = { ...idOf(client), command_id, instance_id, end: word.state, ...word };
    const given = { ...idOf(client), command_id, ...instance_id ? { instance_id } : {}, ...word };
    const operation = await stage.call(node, what, details, ({ dispatcher }) => dispatcher[what](given));
    if (!isUnsure(operation)) return;
    await stage.world.sleep(dice.between(1, 400));
  }
}
var settleFromOutside = (stage, dice, client, command_id) => say(stage, dice, client, command_id, "settle", { state: "resulted" });
function createApplication(stage, dice) {
  const { world, history, observer } = stage;
  const handlers = observer.library.createActionHandlers();
  handlers.handle("work", { parameters: z.looseObject({ n: z.string() }) }, async ({ n }) => {
    history.runs.push({ key: n, at: world.now });
    await world.sleep(dice.between(1, 300));
    return { n };
  });
  return handlers;
}
async function runAction(stage, dice, client, instance_id, application, { command_id, payload }) {
  await say(stage, dice, client, command_id, "acknowledge", {}, instance_id);
  const call = { action: "work", parameters: payload, correlation_id: command_id };
  const outcome = await application.execute(call);
  if (!outcome) return;
  for (let tries = 0; tries < 4; tries++) {
    const node = stage.anyNode(dice);
    if (!node) return;
    const reply = { ...idOf(client), instance_id, correlation_id: command_id };
    const operation = await stage.call(
      node,
      "reply",
      reply,
      (_, { connector }) => connector.reply({ ...reply, outcome })
    );
    if (!isUnsure(operation)) return;
    await stage.world.sleep(dice.between(1, 500));
  }
}
async function followPlan(stage, dice, client, instance_id, command_id, plan) {
  const { world, config } = stage;
  const { former } = client;
  const speak = (what, word, as) => say(stage, dice, client, command_id, what, word, as);
  switch (plan) {
    case "acknowledge, then end":
    case "acknowledge only":
    case "speak as the former instance":
      if (plan === "speak as the former instance" && former) await speak("acknowledge", {}, former);
      await speak("acknowledge", {}, instance_id);
      if (plan === "acknowledge only") return;
      await world.sleep(dice.between(1, dice.chance(0.3) ? 2.5 * config.ackTimeoutMs : 2e3));
      if (dice.chance(0.1) && former) await speak("settle", { state: "failed" }, former);
      await speak("settle", { state: dice.pick(["resulted", "failed"]) }, dice.chance(0.8) ? instance_id : void 0);
      if (dice.chance(0.2)) await speak("settle", { state: "failed" }, instance_id);
      return;
    case "end at once":
      return speak("settle", { state: "resulted", acknowledge: true }, instance_id);
    case "refuse":
      return speak("acknowledge", { state: "refused", reason: "busy" }, instance_id);
    case "end late":
      await world.sleep(config.ackTimeoutMs * dice.between(0.8, 1.6));
      return speak("settle", { state: "resulted" }, instance_id);
  }
}
function createDeliver(stage, dice, client, instance_id, node, application) {
  const { world, history } = stage;
  return (command) => {
    const { command_id, attempt, action } = command;
    const isAction = action === "work";
    const plan = planOf(dice);
    const handover = {
      ...idOf(client),
      instance_id,
      command_id,
      attempt,
      action,
      payload: JSON.stringify(command.payload),
      at: world.now,
      node: node.name,
      plan,
      done: Number.POSITIVE_INFINITY
    };
    history.handovers.push(handover);
    world.say(() => `${node.name} hands ${command_id} to ${instance_id}, attempt ${attempt}; plan: ${plan}`);
    if (!isAction && plan === "reject") {
      handover.done = world.now;
      return Promise.reject(new Error("the socket is closed"));
    }
    if (!isAction && plan === "hang") return new Promise(() => {
    });
    const work = async () => {
      await world.sleep(dice.between(0, 50));
      if (isAction) await runAction(stage, dice, client, instance_id, application, command);
      else await followPlan(stage, dice, client, instance_id, command_id, plan);
    };
    work().catch((error) => stage.violate("simulator", error.stack));
    return world.sleep(dice.between(0, 5)).then(() => {
      handover.done = world.now;
    });
  };
}
async function liveOnce(stage, dice, client, node, endsAt, application) {
  const { world } = stage;
  const { life } = node;
  const instance_id = client.instance_id;
  const instance = { ...idOf(client), instance_id };
  const actions = dice.chance(0.5) ? ["sync", "work"] : ["sync"];
  const connected = await stage.call(
    node,
    "connect",
    instance,
    ({ connections }) => connections.connect({ ...instance, client_type: "console", actions })
  );
  if (connected.state !== "ok") return;
  const { connection_id } = connected.value;
  connected.connection_id = connection_id;
  const deliver = createDeliver(stage, dice, client, instance_id, node, application);
  const attached = await stage.call(node, "attach", instance, ({ dispatcher }) => dispatcher.attach(instance, deliver));
  const until = Math.min(endsAt, world.now + dice.between(500, 12e3));
  while (world.now < until && !life.isDead) {
    await Promise.race([world.sleep(dice.between(500, 4e3)), life.died]);
    if (life.isDead) return;
    const beat = await stage.call(
      node,
      "heartbeat",
      { ...instance, connection_id },
      ({ connections }) => connections.heartbeat(connection_id)
    );
    if (beat.state === "ok" && beat.value === false) break;
  }
  if (!life.isDead && attached.state === "ok" && dice.chance(0.7))
    await stage.call(node, "detach", instance, () => attached.value.detach());
  if (!life.isDead && dice.chance(0.6))
    await stage.call(
      node,
      "disconnect",
      { ...instance, connection_id },
      ({ connections }) => connections.disconnect(connection_id, "socket_closed")
    );
}
function actAsClients(stage, endsAt) {
  const { world } = stage;
  for (const [k, client] of stage.clients.entries())
    stage.act(`client ${k}`, async (dice) => {
      const application = createApplication(stage, dice);
      while (world.now < endsAt) {
        await world.sleep(dice.between(1, 800));
        const node = stage.anyNode(dice);
        if (!node) continue;
        if (client.instance_id === null || dice.chance(0.7)) {
          client.former = client.instance_id;
          client.instance_id = `${client.user_id}-${client.client_id}-i${client.instances++}`;
        }
        await liveOnce(stage, dice, client, node, endsAt, application);
      }
    });
}

// test/simulation/world.ts
import { createHash } from "node:crypto";

// test/simulation/store.ts
import { execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath as fileURLToPath2 } from "node:url";

// test/simulation/resp.ts
import { createConnection } from "node:net";
var MORE = /* @__PURE__ */ Symbol("more bytes are needed");
var Push = class {
  constructor(items) {
    this.items = items;
  }
  items;
};
var RespClient = class _RespClient {
  /** Told of every pushed message. */
  onPush = () => {
  };
  socket;
  waiting = [];
  buffer = Buffer.alloc(0);
  offset = 0;
  constructor(path) {
    this.socket = createConnection(path);
    this.socket.on("error", () => {
    });
    this.socket.on("data", (bytes) => {
      this.buffer = this.buffer.length > 0 ? Buffer.concat([this.buffer, bytes]) : bytes;
      this.readReplies();
    });
  }
  static connect(path) {
    const client = new _RespClient(path);
    return new Promise((resolve, reject) => {
      client.socket.once("connect", () => resolve(client));
      client.socket.once("error", reject);
    });
  }
  /** Errors of the store are values: the caller decides whose they are. */
  call(args) {
    this.send(args);
    return new Promise((resolve) => this.waiting.push(resolve));
  }
  /** For commands that are answered by a push. */
  send(args) {
    const parts = args.map(String).map((arg) => `$${Buffer.byteLength(arg)}\r
${arg}\r
`);
    this.socket.write(`*${args.length}\r
${parts.join("")}`);
  }
  close() {
    this.socket.destroy();
  }
  readReplies() {
    for (; ; ) {
      this.offset = 0;
      let value;
      try {
        value = this.parse();
      } catch (error) {
        if (error === MORE) return;
        throw error;
      }
      this.buffer = this.buffer.subarray(this.offset);
      if (value instanceof Push) this.onPush(value.items);
      else this.waiting.shift()?.(value);
    }
  }
  line() {
    const end = this.buffer.indexOf("\r\n", this.offset);
    if (end < 0) throw MORE;
    const text = this.buffer.toString("utf8", this.offset, end);
    this.offset = end + 2;
    return text;
  }
  bulk(length, skip = 0) {
    if (length < 0) return null;
    if (this.buffer.length < this.offset + length + 2) throw MORE;
    const text = this.buffer.toString("utf8", this.offset + skip, this.offset + length);
    this.offset += length + 2;
    return text;
  }
  many(length) {
    return Array.from({ length }, () => this.parse());
  }
  parse() {
    if (this.offset >= this.buffer.length) throw MORE;
    const type = String.fromCharCode(this.buffer[this.offset++]);
    const line = this.line();
    switch (type) {
      case "+":
        return line;
      case "-":
        return new Error(line);
      case ":":
      case ",":
        return Number(line);
      case "_":
        return null;
      case "#":
        return line === "t";
      case "$":
        return this.bulk(Number(line));
      case "=":
        return this.bulk(Number(line), 4);
      case "*":
        return Number(line) < 0 ? null : this.many(Number(line));
      case "~":
        return this.many(Number(line));
      case "%": {
        const flat = this.many(2 * Number(line));
        return new Map(flat.flatMap((key, i) => i % 2 === 0 ? [[key, flat[i + 1]]] : []));
      }
      case ">":
        return new Push(this.many(Number(line)));
      default:
        throw new Error(`not RESP3: ${type}${line}`);
    }
  }
};

// test/simulation/store.ts
var EPOCH = 18e11;
var inPath = (command) => (process.env.PATH ?? "").split(":").some((dir) => existsSync(join(dir, command)));
var missingForStore = () => ["redis-server", "gcc"].filter((command) => !inPath(command));
async function connectWhenUp(path) {
  for (let tries = 0; ; tries++) {
    try {
      return await RespClient.connect(path);
    } catch (error) {
      if (tries === 500) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
async function startStore() {
  const dir = mkdtempSync(join(tmpdir(), "relayscope-store-"));
  const [socket, clock, library] = ["socket", "clock", "clock.so"].map((name) => join(dir, name));
  execFileSync("gcc", [
    "-shared",
    "-fPIC",
    "-O2",
    "-o",
    library,
    fileURLToPath2(new URL("store-clock.c", "file:///work/wt/lead/test/simulation/simulate.ts"))
  ]);
  const file = openSync(clock, "w+");
  const cell = Buffer.alloc(8);
  const setClock = (ms) => {
    cell.writeBigInt64LE(BigInt(Math.floor(ms * 1e3)));
    writeSync(file, cell, 0, 8, 0);
  };
  setClock(EPOCH);
  const options = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", dir, "--hz", "1"];
  const child = spawn("redis-server", [...options, "--loglevel", "warning", "--enable-debug-command", "yes"], {
    stdio: "ignore",
    env: { ...process.env, LD_PRELOAD: library, SIMULATED_CLOCK: clock }
  });
  const io = await connectWhenUp(socket);
  await io.call(["HELLO", "3"]);
  await io.call(["DEBUG", "SET-ACTIVE-EXPIRE", "0"]);
  return {
    io,
    subscribed: /* @__PURE__ */ new Set(),
    setClock,
    stop() {
      io.close();
      child.kill();
      closeSync(file);
      rmSync(dir, { recursive: true, force: true });
    }
  };
}

// test/simulation/world.ts
var { setImmediate } = globalThis;
var turn = () => new Promise((resolve) => setImmediate(resolve));
var DIED = /* @__PURE__ */ Symbol("the node died");
var NOSCRIPT = "NOSCRIPT No matching script. Please use EVAL.";
var Priority = { first: 0, normal: 1, last: 2 };
var isBefore = (a, b) => a.at !== b.at ? a.at < b.at : a.priority !== b.priority ? a.priority < b.priority : a.order < b.order;
var World = class {
  constructor(seed, realStore, isTracing) {
    this.seed = seed;
    this.realStore = realStore;
    this.isTracing = isTracing;
    this.network = createDice(seed, "network");
    this.ids = createDice(seed, "ids");
  }
  seed;
  realStore;
  isTracing;
  /** ms since the history began. */
  now = 0;
  nodes = [];
  /** Commands of the store so far. */
  commands = 0;
  events = 0;
  /** ms that the store's clock is ahead of the world. */
  storeOffset = 0;
  storeBlockedUntil = 0;
  /** Which command of a node loses its reply next. */
  loseReply = () => false;
  /** The longest latency of a packet, in ms; few take that long. */
  slowTail = 200;
  trace = [];
  stats = {};
  network;
  channels = /* @__PURE__ */ new Map();
  /** Every write, and when: a store that loses its last ones is rebuilt from the others. */
  writes = [];
  queue = [];
  order = 0;
  ids;
  scripts = /* @__PURE__ */ new Set();
  hash = createHash("sha256");
  say(text) {
    if (this.isTracing) this.trace.push(`${this.now.toFixed(2).padStart(10)}  ${text()}`);
  }
  count(name) {
    this.stats[name] = (this.stats[name] ?? 0) + 1;
  }
  /** A digest over all commands and replies of the store so far and `more`: the same for the same seed. */
  digest(more) {
    return this.hash.copy().update(JSON.stringify(more)).digest("hex").slice(0, 16);
  }
  // --- Time
  at(at, node, run, priority = Priority.normal) {
    const happening = {
      at: Math.max(at, this.now),
      priority,
      order: this.order++,
      node,
      life: node?.life,
      run,
      isAwaited: false,
      isLive: true
    };
    this.push(happening);
    return happening;
  }
  after(ms, node, run, priority) {
    return this.at(this.now + ms, node, run, priority);
  }
  sleep(ms) {
    return new Promise((resolve) => this.after(ms, null, resolve, Priority.last));
  }
  /** Lets everything happen up to a moment. */
  async run(until) {
    for (let next = this.queue[0]; next !== void 0 && next.at <= until; next = this.queue[0]) {
      this.pop();
      const { node } = next;
      if (!next.isLive || node && (node.life !== next.life || node.life.isDead)) continue;
      if (node && node.pausedUntil > next.at) {
        next.at = node.pausedUntil;
        next.order = this.order++;
        this.push(next);
        continue;
      }
      this.now = Math.max(this.now, next.at);
      this.events++;
      const running = next.run();
      if (next.isAwaited) await running;
      await turn();
    }
    this.now = Math.max(this.now, until);
  }
  /** Goes on in time without anything happening. */
  skip(ms) {
    this.queue = [];
    this.now += ms;
    this.realStore?.setClock(this.storeNow());
  }
  push(happening) {
    const { queue } = this;
    let i = queue.push(happening) - 1;
    while (i > 0) {
      const parent = i - 1 >> 1;
      if (!isBefore(queue[i], queue[parent])) break;
      this.swap(i, parent);
      i = parent;
    }
  }
  pop() {
    const { queue } = this;
    const last = queue.pop();
    if (queue.length === 0) return;
    queue[0] = last;
    for (let i = 0; ; ) {
      let least = i;
      for (const child of [2 * i + 1, 2 * i + 2])
        if (child < queue.length && isBefore(queue[child], queue[least])) least = child;
      if (least === i) return;
      this.swap(i, least);
      i = least;
    }
  }
  swap(i, j) {
    const { queue } = this;
    const kept = queue[i];
    queue[i] = queue[j];
    queue[j] = kept;
  }
  // --- Chance
  /** ms that one packet takes. */
  latency() {
    const r = this.network.random();
    if (r < 0.9) return this.network.between(0.05, 1);
    return r < 0.985 ? this.network.between(1, 30) : this.network.between(30, this.slowTail);
  }
  random() {
    return this.ids.random();
  }
  randomUUID() {
    const hex = Array.from({ length: 32 }, () => this.ids.int(16).toString(16)).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }
  // --- The store
  get store() {
    if (!this.realStore) throw new Error("a history of the memory composition has no store");
    return this.realStore;
  }
  storeNow() {
    return EPOCH + this.now + this.storeOffset;
  }
  /** One command at the store, now. */
  async execute(args) {
    const { store } = this;
    this.commands++;
    store.setClock(this.storeNow());
    const [verb = "", script = ""] = args;
    const isScript = verb === "EVAL" || verb === "EVALSHA";
    if (verb === "EVALSHA" && !this.scripts.has(script)) return new Error(NOSCRIPT);
    if (verb === "EVAL") this.scripts.add(createHash("sha1").update(script).digest("hex"));
    const published = [];
    store.io.onPush = ([kind, channel, message]) => {
      if (kind === "smessage") published.push([String(channel), String(message)]);
    };
    const reply = await store.io.call(args);
    if (isScript) this.writes.push({ at: this.storeNow(), args });
    this.hash.update(
      JSON.stringify([args.map((arg) => arg.length > 200 ? arg.length : arg), `${reply}`.slice(0, 200)])
    );
    for (const [channel, message] of published)
      for (const hearer of this.channels.get(channel) ?? []) hearer.hear(channel, message);
    return reply;
  }
  async subscribe(channel, hearer) {
    const { io, subscribed } = this.store;
    if (!subscribed.has(channel)) {
      subscribed.add(channel);
      io.onPush = () => {
      };
      io.send(["SSUBSCRIBE", channel]);
      await io.call(["PING"]);
    }
    const hearers = this.channels.get(channel) ?? /* @__PURE__ */ new Set();
    this.channels.set(channel, hearers.add(hearer));
  }
  *links() {
    for (const node of this.nodes) if (!node.life.isDead) yield* node.life.links;
  }
  /**
   * The store goes and comes back: every link breaks, every script is gone, and so are the last `lost` writes, as after a
   * failover to a replica that had not had them.
   */
  async restartStore(lost, downMs) {
    this.say(() => `store restarts, loses ${lost} writes, is down for ${downMs} ms`);
    for (const link of this.links()) link.cut("the store restarts", downMs + this.network.between(1, 300));
    const { io, setClock } = this.store;
    if (lost > 0) {
      this.writes = this.writes.slice(0, Math.max(0, this.writes.length - lost));
      await io.call(["FLUSHALL"]);
      io.onPush = () => {
      };
      for (const { at, args } of this.writes) {
        setClock(at);
        await io.call(args);
      }
    }
    await io.call(["SCRIPT", "FLUSH"]);
    this.scripts.clear();
    this.storeBlockedUntil = this.now + downMs;
  }
  setFull(isFull) {
    this.say(() => isFull ? "store is full" : "store has room");
    return this.store.io.call(["CONFIG", "SET", "maxmemory", isFull ? "1000" : "0"]);
  }
  /** The store as it was before any history. */
  async wipeStore() {
    const { io, subscribed, setClock } = this.store;
    setClock(EPOCH);
    await io.call(["CONFIG", "SET", "maxmemory", "0"]);
    if (subscribed.size > 0) {
      io.onPush = () => {
      };
      io.send(["SUNSUBSCRIBE"]);
      await io.call(["PING"]);
      subscribed.clear();
    }
    await io.call(["FLUSHALL"]);
    await io.call(["SCRIPT", "FLUSH"]);
  }
};

// test/simulation/actors/commands.ts
function later(stage, ms, run) {
  stage.world.sleep(ms).then(run).catch((error) => stage.violate("simulator", error.stack));
}
async function dispatchOne(stage, dice, command_id) {
  const { world, config } = stage;
  const client = dice.pick(stage.clients);
  const { user_id, client_id } = client;
  const input = {
    user_id,
    client_id,
    command_id,
    action: "sync",
    payload: { of: command_id },
    scope_id: dice.chance(0.3) ? "pool" : user_id,
    deadlineMs: dice.pick([400, 1500, 3e3, 6e3]),
    ...dice.chance(0.1) ? { requireWaiter: true } : {},
    ...dice.chance(0.2) ? { maxAttempts: 1 + dice.int(3) } : {}
  };
  const repeats = dice.chance(0.1) ? 1 : 0;
  for (let tries = 0; tries < 3; tries++) {
    const node = stage.anyNode(dice);
    if (!node) break;
    const details = { ...input, max: input.maxAttempts ?? config.maxAttempts };
    const operation = await stage.call(node, "dispatch", details, ({ dispatcher }) => dispatcher.dispatch(input));
    if (!isUnsure(operation) && operation.state !== "died" && tries >= repeats) break;
    if (operation.state !== "ok" && dice.chance(0.3)) break;
    await world.sleep(dice.between(1, 300));
  }
  if (dice.chance(0.12))
    later(stage, dice.between(0, 3e3), async () => {
      const node = stage.anyNode(dice);
      const which = { user_id, client_id, command_id };
      if (node)
        await stage.call(
          node,
          "cancel",
          which,
          ({ dispatcher }) => dispatcher.cancel({ ...which, reason: "changed_mind" })
        );
    });
  if (dice.chance(0.1)) later(stage, dice.between(0, 3e3), () => settleFromOutside(stage, dice, client, command_id));
}
async function callOne(stage, dice) {
  const { world } = stage;
  const node = stage.anyNode(dice);
  if (!node) return;
  const { user_id, client_id } = dice.pick(stage.clients);
  const gone = new AbortController();
  const timeoutMs = dice.pick([300, 1500, 4e3]);
  const opened = await stage.call(
    node,
    "rpc.open",
    { user_id, client_id, timeoutMs },
    ({ rpc }) => rpc.open({ action: "ask", user_id, client_id, timeoutMs, signal: gone.signal })
  );
  if (opened.state !== "ok") return;
  const { correlation_id, result } = opened.value;
  opened.correlation_id = correlation_id;
  const { life } = node;
  Promise.race([result, life.died]).then(
    (value) => {
      Object.assign(opened, { resolvedAt: world.now, end: value === DIED ? "died" : "result", result: value });
    },
    (error) => {
      const end = ["timeout", "cancelled", "closed"].includes(error?.code) ? error.code : "error";
      Object.assign(opened, { resolvedAt: world.now, end, rejected: error });
    }
  );
  const settles = dice.pick([0, 1, 1, 1, 2]);
  for (let s = 0; s < settles; s++) {
    const isForeign = dice.chance(0.1);
    const ok = dice.chance(0.7);
    const token = `${correlation_id}-${s}`;
    later(stage, dice.between(0, timeoutMs * 1.3), async () => {
      const by = stage.anyNode(dice);
      if (!by) return;
      const from = { user_id, client_id: isForeign ? "stranger" : client_id };
      const reply = ok ? { ok, result: token, from } : { ok, error: { token }, from };
      await stage.call(
        by,
        "rpc.settle",
        { correlation_id, isForeign, isResult: ok, token },
        ({ rpc }) => rpc.settle(correlation_id, reply)
      );
    });
  }
  if (dice.chance(0.1))
    later(stage, dice.between(0, timeoutMs), async () => {
      if (life.isDead) return;
      opened.abortedAt = world.now;
      gone.abort();
    });
}
async function claimOne(stage, dice) {
  const node = stage.anyNode(dice);
  if (!node) return;
  const claim = {
    user_id: dice.pick(stage.history.userIds),
    message_id: `d${dice.int(6)}-${Math.floor(stage.world.now / 15e3)}`
  };
  if (dice.chance(0.12)) await stage.call(node, "release", claim, ({ deduplicator }) => deduplicator.release(claim));
  else await stage.call(node, "claim", claim, ({ deduplicator }) => deduplicator.claim(claim));
}
async function claimKey(stage, dice) {
  const { world } = stage;
  const node = stage.anyNode(dice);
  if (!node) return;
  const attempt = stage.unique("attempt-");
  const claim = {
    session_id: "s",
    user_id: dice.pick(stage.history.userIds),
    key: `x${dice.int(4)}-${Math.floor(world.now / 8e3)}`,
    fingerprint: dice.chance(0.9) ? "f" : "g",
    attempt,
    leaseMs: 3e3
  };
  const operation = await stage.call(node, "key.claim", claim, (_, { idempotency }) => idempotency.claim(claim));
  if (operation.state !== "ok" || operation.value.state !== "claimed") return;
  await world.sleep(dice.between(0, 3500));
  if (node.life.isDead || dice.chance(0.2)) return;
  if (dice.chance(0.25)) {
    await stage.call(node, "key.release", claim, (_, { idempotency }) => idempotency.release(claim));
    return;
  }
  const at = (/* @__PURE__ */ new Date(0)).toISOString();
  const answer = {
    invocation_id: attempt,
    action: "work",
    status: "succeeded",
    result: attempt,
    error: null,
    started_at: at,
    finished_at: at
  };
  await stage.call(node, "key.keep", claim, (_, { idempotency }) => idempotency.keep(claim, answer));
}
function actAsHosts(stage, endsAt) {
  const { world } = stage;
  const repeat = (name, from, to, once) => stage.act(name, async (dice) => {
    while (world.now < endsAt) {
      await world.sleep(dice.between(from, to));
      await once(dice);
    }
  });
  for (const k of [0, 1]) repeat(`dispatch ${k}`, 20, 1200, (dice) => dispatchOne(stage, dice, stage.unique(`k${k}-`)));
  repeat("calls", 50, 1500, (dice) => callOne(stage, dice));
  repeat("deduplicator", 100, 1500, (dice) => claimOne(stage, dice));
  repeat("idempotency", 200, 2e3, (dice) => claimKey(stage, dice));
  repeat("presence", 50, 900, async (dice) => {
    const node = stage.anyNode(dice);
    if (!node) return;
    const { user_id, client_id } = dice.pick(stage.clients);
    const context_id = `x-${user_id}-${client_id}-${dice.int(3)}`;
    const window_id = `w-${user_id}-${client_id}`;
    const who = { user_id, client_id };
    switch (dice.pick(["report", "report", "report", "close", "assign", "release", "window", "window", "close window"])) {
      case "report": {
        const report = {
          context_id,
          ...who,
          client_type: "browser",
          status: dice.pick(["active", "idle"]),
          window_id
        };
        await stage.call(
          node,
          "context.report",
          { context_id, ...who },
          ({ contexts }) => contexts.report({ ...report, ownership: "worker" })
        );
        return;
      }
      case "close":
        await stage.call(node, "context.close", { context_id }, ({ contexts }) => contexts.close(context_id));
        return;
      case "assign": {
        const task = stage.unique("t");
        await stage.call(
          node,
          "context.assign",
          { context_id },
          ({ contexts }) => contexts.assignTask(context_id, task)
        );
        return;
      }
      case "release":
        await stage.call(node, "context.release", { context_id }, ({ contexts }) => contexts.releaseTask(context_id));
        return;
      case "window": {
        const report = { window_id, ...who, ownership: "user-owned" };
        await stage.call(node, "window.report", { window_id, ...who }, (f) => f.browserWindows.report(report));
        return;
      }
      default:
        await stage.call(node, "window.close", { window_id }, ({ browserWindows }) => browserWindows.close(window_id));
    }
  });
}

// test/simulation/actors/faults.ts
var HOUR = 36e5;
async function happen(stage, dice, fault, node, losing) {
  const { world, history } = stage;
  const links = [...node.life.links];
  const commands = links.find((link) => !link.isSubscriber);
  const subscriber = links.find((link) => link.isSubscriber);
  switch (fault) {
    case "link breaks":
      return commands?.cut("a fault", dice.pick([20, 300, 2500]));
    case "reply is lost":
      losing.next = { node, replies: 1 + dice.int(8) };
      return;
    case "link stalls":
      return commands?.stall(dice.pick([300, 1500, 2600, 5e3]), false);
    case "replies stall":
      return commands?.stall(dice.pick([300, 1900, 2600]), true);
    case "subscriber breaks":
      return subscriber?.cut("a fault", dice.pick([20, 800, 4e3]));
    case "subscriber goes deaf":
      if (subscriber) subscriber.isDeaf = true;
      return;
    case "node stands still": {
      const ms = dice.pick([300, 1800, 3e3, 6500, 16e3]);
      node.pause(ms);
      history.pauses.push({ node: node.name, from: world.now, to: world.now + ms });
      return;
    }
    case "node clock steps":
      node.wallOffset += dice.pick([-HOUR / 6, -3e3, 3e3, HOUR / 6]);
      return;
    case "node dies":
      stage.kill(node);
      void world.sleep(dice.pick([50, 1500, 7e3])).then(() => {
        if (!stage.isOver) stage.start(node);
      });
      return;
    case "store pauses":
      world.storeBlockedUntil = world.now + dice.pick([300, 1500, 2500, 4e3]);
      return;
    case "store clock steps":
      world.storeOffset += dice.pick([-2e4, -1500, 1500, 2e4]);
      history.hasClockSteps = true;
      return;
    case "store restarts":
    case "store loses writes": {
      const lost = fault === "store restarts" ? 0 : dice.pick([1, 3, 10, 40, Number.MAX_SAFE_INTEGER]);
      if (lost > 0) history.losses.push(world.now);
      const downMs = dice.pick([50, 1500]);
      await new Promise((resolve) => {
        world.at(world.now, null, () => world.restartStore(lost, downMs).then(resolve), 0).isAwaited = true;
      });
      return;
    }
    case "store is full": {
      history.wasFull = true;
      await world.setFull(true);
      await world.sleep(dice.pick([500, 3e3, 9e3]));
      await world.setFull(false);
    }
  }
}
function actAsFate(stage, endsAt) {
  const { world, history, config } = stage;
  const losing = { next: null };
  world.loseReply = (node) => {
    if (losing.next?.node !== node || --losing.next.replies > 0) return false;
    losing.next = null;
    return true;
  };
  stage.act("faults", async (dice) => {
    while (world.now < endsAt && config.faults.length > 0) {
      await world.sleep(dice.between(0.2, 2) * config.faultEveryMs);
      const node = stage.anyNode(dice);
      if (world.now >= endsAt || !node) continue;
      const fault = dice.pick(config.faults);
      history.faults.push({ fault, node: node.name, at: world.now });
      world.count(`fault: ${fault}`);
      world.say(() => `FAULT ${fault} (${node.name})`);
      await happen(stage, dice, fault, node, losing);
    }
  });
}

// test/simulation/record.ts
var topicOf = (userId) => `users/${userId}/sites/site-${userId}/events`;
var notesOf = (userId) => `users/${userId}/notes`;
var siteOf = (userId) => `site-${userId}`;

// test/simulation/actors/messages.ts
async function registerSite(stage, dice, owner, endsAt) {
  const site = {
    site_id: siteOf(owner),
    owner,
    mode: "cooperative",
    event_names: ["changed"],
    action_names: ["work"],
    capability_profile: { action_invocation: true }
  };
  while (stage.world.now < endsAt) {
    const node = stage.anyNode(dice);
    const put = node && await stage.call(node, "site.put", { owner }, ({ sites }) => sites.put(site));
    if (put?.state === "ok") return;
    await stage.world.sleep(300);
  }
}
async function send(stage, dice, user_id) {
  const client = dice.pick(stage.clients.filter((one) => one.user_id === user_id));
  if (!client.instance_id) return;
  const { client_id, former } = client;
  const message_id = stage.unique("m-");
  const instance_id = former && dice.chance(0.08) ? former : client.instance_id;
  const isEvent = dice.chance(0.7);
  const repeats = dice.chance(0.2) ? 1 : 0;
  const message = {
    message_id,
    kind: "event",
    client_id,
    instance_id,
    payload: { name: "changed", data: { of: message_id } }
  };
  const details = { user_id, client_id, instance_id, message_id };
  for (let tries = 0; tries < 4; tries++) {
    const node = stage.anyNode(dice);
    if (!node) return;
    const operation = isEvent ? await stage.call(
      node,
      "event",
      { ...details, topic: topicOf(user_id) },
      ({ ingest, sites, bus }, _, library) => library.ingestCooperativeSiteMessage({ ingest, sites, bus, onError: null }, {
        host: { user_id },
        message: { ...message, stream: `sites/${siteOf(user_id)}/events` }
      })
    ) : await stage.call(
      node,
      "ingest",
      { ...details, stream: notesOf(user_id) },
      ({ ingest }) => ingest({ ...message, user_id, stream: notesOf(user_id) })
    );
    if (operation.state === "ok" && tries >= repeats) return;
    if (operation.code === "stale_instance") return;
    if (operation.state !== "ok" && dice.chance(0.15)) return;
    await stage.world.sleep(dice.between(1, 600));
  }
}
async function listen(stage, dice, endsAt) {
  const { world, history } = stage;
  const node = stage.anyNode(dice);
  if (!node) return;
  const topic = topicOf(dice.pick(history.userIds));
  const { life } = node;
  const prepared = stage.isMemory ? { state: "ok" } : await stage.call(node, "bus.prepare", { topic }, ({ bus }) => bus.prepare(topic));
  if (life.isDead) return;
  let subscription;
  try {
    subscription = stage.runningOn(node).facilities.bus.subscribe(topic);
  } catch {
    return;
  }
  const isSlow = dice.chance(0.25);
  const leavesAt = world.now + dice.between(2e3, 2e4);
  const heard = {
    number: history.heard.length,
    topic,
    node: node.name,
    subscription,
    begin: { ...subscription.position },
    isPrepared: prepared.state === "ok",
    items: [],
    isOpenAtEnd: false,
    hasDied: false
  };
  history.heard.push(heard);
  const epoch = () => subscription.position.epoch;
  const read = async () => {
    while (!life.isDead) {
      if (isSlow) await world.sleep(dice.between(100, 3e3));
      if (world.now >= Math.min(leavesAt, endsAt) && !stage.isOver) {
        subscription.close();
        break;
      }
      const item = subscription.take();
      if (item === void 0) await Promise.race([world.sleep(100), life.died]);
      else if (item.type === "run")
        for (const { seq, event_id } of item.events)
          heard.items.push({ seq, id: event_id, at: world.now, epoch: epoch() });
      else heard.items.push({ gap: item, at: world.now, epoch: epoch() });
      if (subscription.closed && subscription.pending === 0) break;
    }
    heard.hasDied = life.isDead;
    heard.final = { ...subscription.position, pending: subscription.pending };
  };
  read().catch((error) => stage.violate("simulator", error.stack));
}
var FIELD = /^(\w+): ?(.*)$/;
function parseFrame(text) {
  return Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const found = FIELD.exec(line);
      return found ? [[found[1], found[2]]] : [];
    })
  );
}
async function view(stage, dice, place) {
  const { world, history } = stage;
  const node = stage.anyNode(dice);
  const session = stage.sessions.size > 0 ? dice.pick([...stage.sessions.values()]) : null;
  if (!node || !session || node.pausedUntil > world.now) return;
  const { life } = node;
  const gone = new AbortController();
  const topic = topicOf(session.owner);
  const resume = place.id && place.topic === topic && dice.chance(0.7) ? place.id : null;
  const headers = { "x-user": session.owner, ...resume ? { "last-event-id": resume } : {} };
  const request = new Request(`http://relay/sessions/${session.id}/events`, { headers, signal: gone.signal });
  const response = await Promise.race([stage.runningOn(node).relay(request), life.died]);
  if (response === DIED) return;
  if (response.status === 500) stage.violate("relay_500", `events: ${await response.text()}`);
  if (response.status !== 200) return response.body?.cancel().catch(() => {
  });
  const viewer = {
    number: history.viewers.length,
    session_id: session.id,
    topic,
    node: node.name,
    resume,
    frames: []
  };
  history.viewers.push(viewer);
  const reader = response.body.getReader();
  const isSlow = dice.chance(0.2);
  void world.sleep(dice.between(1e3, 12e3)).then(() => {
    if (life.isDead) return;
    gone.abort();
    reader.cancel().catch(() => {
    });
  });
  let text = "";
  for (; ; ) {
    if (isSlow) await world.sleep(dice.between(200, 2500));
    const chunk = await Promise.race([reader.read().catch(() => DIED), life.died]);
    if (chunk === DIED || chunk.done) return;
    text += Buffer.from(chunk.value).toString();
    const frames = text.split("\n\n");
    text = frames.pop();
    for (const frame of frames.map(parseFrame)) {
      if (!frame.event) continue;
      const data = frame.data ? JSON.parse(frame.data) : null;
      viewer.frames.push({ event: frame.event, ...frame.id ? { id: frame.id } : {}, data, at: world.now });
      world.say(() => `viewer ${viewer.number} reads ${frame.event} ${frame.id ?? ""} ${frame.data?.slice(0, 100)}`);
      if (frame.id) Object.assign(place, { id: frame.id, topic });
    }
  }
}
async function useSession(stage, dice) {
  const node = stage.anyNode(dice);
  if (!node) return;
  const owner = dice.pick(stage.history.userIds);
  const own = [...stage.sessions.values()].filter((session) => session.owner === owner);
  if (own.length === 0 || dice.chance(0.1)) {
    const ttl = dice.chance(0.2) ? { ttlMs: dice.pick([2e3, 8e3]) } : {};
    const connector = { user_id: owner, client_id: "c0" };
    const opened = await stage.call(
      node,
      "session.open",
      { owner, ...ttl },
      ({ sessions }) => sessions.open({ site_id: siteOf(owner), owner, connector, ...ttl })
    );
    if (opened.state !== "ok") return;
    const { session_id: session_id2 } = opened.value;
    opened.session_id = session_id2;
    stage.sessions.set(session_id2, { id: session_id2, owner });
    await stage.call(node, "session.activate", { session_id: session_id2 }, ({ sessions }) => sessions.activate(session_id2));
    return;
  }
  const session_id = dice.pick(own).id;
  const verb = dice.pick(["activate", "suspend", "close", "share", "unshare", "get", "activate", "get"]);
  if (verb === "close" && !dice.chance(0.3)) return;
  const operation = await stage.call(node, `session.${verb}`, { session_id }, ({ sessions }) => {
    if (verb === "share") return sessions.share(session_id, { user_id: "vera", rights: ["view", "invoke"] });
    return verb === "unshare" ? sessions.unshare(session_id, "vera") : sessions[verb](session_id);
  });
  if (verb === "close" && operation.state === "ok") stage.sessions.delete(session_id);
}
async function invoke(stage, dice) {
  const { world } = stage;
  const session = stage.sessions.size > 0 ? dice.pick([...stage.sessions.values()]) : null;
  if (!session) return;
  const key = dice.chance(0.7) ? stage.unique("key-") : null;
  const n = stage.unique("p-");
  const body = JSON.stringify({ parameters: { n }, timeout_ms: dice.pick([800, 3e3]) });
  const times = key ? 1 + dice.int(3) : 1;
  for (let i = 0; i < times; i++) {
    const node = stage.anyNode(dice);
    if (!node) return;
    const headers = {
      "x-user": session.owner,
      "content-type": "application/json",
      ...key ? { "idempotency-key": key } : {}
    };
    const sending = stage.call(node, "invoke", { session_id: session.id, key, n }, async (_, { relay }) => {
      const url = `http://relay/sessions/${session.id}/actions/work`;
      const response = await relay(new Request(url, { method: "POST", headers, body }));
      return { status: response.status, body: await response.json() };
    });
    if (dice.chance(0.6)) await sending;
    await world.sleep(dice.between(0, 600));
  }
}
function actAroundSites(stage, endsAt) {
  const { world } = stage;
  const repeat = (name, from, to, once) => stage.act(name, async (dice) => {
    while (world.now < endsAt) {
      await world.sleep(dice.between(from, to));
      await once(dice);
    }
  });
  for (const user_id of stage.history.userIds)
    stage.act(`messages of ${user_id}`, async (dice) => {
      await registerSite(stage, dice, user_id, endsAt);
      while (world.now < endsAt) {
        await world.sleep(dice.between(20, 900));
        const sending = send(stage, dice, user_id);
        if (dice.chance(0.15)) sending.catch((error) => stage.violate("simulator", error.stack));
        else await sending;
      }
    });
  repeat("subscribers", 50, 2500, (dice) => listen(stage, dice, endsAt));
  repeat("sessions", 50, 1200, (dice) => useSession(stage, dice));
  for (const k of [0, 1]) {
    const place = { id: null, topic: null };
    repeat(`viewer ${k}`, 100, 1500, (dice) => view(stage, dice, place));
    repeat(`invoke ${k}`, 100, 2500, (dice) => invoke(stage, dice));
  }
}

// test/simulation/oracle/facts.ts
var FENCE_MS = 2100;
var MAY_HAVE_RUN = /* @__PURE__ */ new Set(["unavailable", "timeout", "cancelled", "closed"]);
var mayRun = ({ state, code = "", outcome }) => state === "ok" || state === "died" || state === "open" || state === "refused" && MAY_HAVE_RUN.has(code) && outcome !== "not_run";
function endOf({ ret, state, diedAt }) {
  if (ret < Number.POSITIVE_INFINITY) return ret;
  return state === "died" ? diedAt ?? Number.POSITIVE_INFINITY : Number.POSITIVE_INFINITY;
}
var isYes = ({ state, value }) => state === "ok" && value === true;
function groupBy(list, keyOf) {
  const groups = /* @__PURE__ */ new Map();
  for (const item of list) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
var msOf = (iso) => iso ? Date.parse(iso) - EPOCH : Number.NaN;
var round = (ms) => ms === void 0 ? "?" : ms.toFixed(0);
var clientOf = ({ user_id, client_id }) => `${user_id} ${client_id}`;
var commandOf = (one) => `${clientOf(one)} ${one.command_id}`;
var isEnding = ({ what, reason }) => what === "settle" || what === "cancel" || what === "acknowledge" && reason === "busy";
function isStale(connects, instance_id, at) {
  const own = connects.filter((one) => one.instance_id === instance_id && mayRun(one));
  return connects.some(
    (other) => other.instance_id !== instance_id && other.state === "ok" && other.ret < at && own.every((one) => one.state !== "died" && one.state !== "open" && one.ret < other.call)
  );
}
var Facts = class {
  constructor(history, violate) {
    this.history = history;
    this.violate = violate;
    this.isLossy = history.losses.length > 0;
    this.lastLoss = Math.max(-1, ...history.losses);
    this.hasClockSteps = history.hasClockSteps;
    this.byKind = groupBy(history.operations, ({ what }) => what);
    this.connects = groupBy(
      this.all("connect").filter((one) => this.isCertain(one)),
      clientOf
    );
  }
  history;
  violate;
  /** The store lost writes: of what it may have forgotten nothing is said. */
  isLossy;
  hasClockSteps;
  connects;
  lastLoss;
  byKind;
  all(...kinds) {
    return kinds.flatMap((kind) => this.byKind.get(kind) ?? []).sort((a, b) => a.i - b.i);
  }
  /** Whether the store cannot have lost what the operation wrote. */
  isCertain({ call }) {
    return !this.isLossy || call > this.lastLoss;
  }
  /** The groups of which the store cannot have lost a part. */
  certain(groups) {
    return [...groups].filter(([, own]) => own.every((one) => this.isCertain(one)));
  }
  connectsOf(one) {
    return this.connects.get(clientOf(one)) ?? [];
  }
  wasPaused(node, from, to) {
    return this.history.pauses.some((pause) => pause.node === node && pause.from < to && pause.to > from);
  }
};

// test/simulation/oracle/answers.ts
var EXCUSES = ["store pauses", "store restarts", "store loses writes", "store is full", "store clock steps"];
var mayHaveRun = (one) => one.state === "open" || mayRun(one);
var isRejected = ({ state, value }) => state === "ok" && value.admission.state === "rejected";
var isAdmitted = ({ state, value }) => state === "ok" && value.admission.state === "admitted";
function judgeCalls({ body, from, to, by, violate, path }) {
  if (path === "/rpc/summary") {
    const { counters, pending, overdue } = body;
    const ended = counters.succeeded + counters.failed + counters.timed_out + counters.cancelled;
    if (counters.opened !== ended + pending + overdue) violate("rpc_sum", JSON.stringify(body));
    const opens = by("rpc.open");
    const least = opens.filter(({ state, ret }) => state === "ok" && ret < from).length;
    const most = opens.filter((one) => one.call < to && mayHaveRun(one)).length + by("invoke").length;
    if (counters.opened < least || counters.opened > most)
      violate("rpc_opened", `${counters.opened}, not from ${least} to ${most}`);
    return;
  }
  const settles = groupBy(by("rpc.settle"), ({ correlation_id }) => correlation_id);
  for (const call of by("rpc.open")) {
    const { correlation_id, resolvedAt, end } = call;
    const isListed = body.items.some((item) => item.correlation_id === correlation_id);
    const isSettled = (settles.get(correlation_id) ?? []).some((settle) => settle.call < to);
    const mustBeThere = call.state === "ok" && call.ret < from && resolvedAt === void 0 && call.call + call.timeoutMs > to + 5 && !isSettled && !(call.abortedAt < to);
    if (mustBeThere && !isListed && !body.has_more) violate("pending_incomplete", correlation_id);
    if (isListed && resolvedAt < from - 2500 && end !== "died")
      violate("pending_after_end", `${correlation_id} ended as ${end} at ${resolvedAt.toFixed(0)}`);
  }
}
function judgeCommands({ body, from, to, path, history, operations, by, violate }) {
  const commands = groupBy(
    operations.filter(({ command_id }) => command_id),
    commandOf
  );
  const handed = new Set(history.handovers.map(commandOf));
  const listed = new Map((body.items ?? []).map((item) => [commandOf(item), item]));
  let least = 0;
  let most = 0;
  for (const [key, own] of commands) {
    const dispatches = own.filter(({ what, call }) => what === "dispatch" && call < to);
    if (dispatches.length === 0) continue;
    const hasEnded = own.some((one) => isEnding(one) && isYes(one) && one.ret < from);
    const mayEnd = own.some(
      ({ what, reason, call }) => what !== "dispatch" && (what !== "acknowledge" || reason === "busy") && call < to
    );
    const admitted = dispatches.find((one) => isAdmitted(one) && one.ret < from);
    if (admitted && !mayEnd && !handed.has(key) && admitted.call + admitted.deadlineMs > to) least++;
    if (dispatches.some((one) => mayHaveRun(one) && !isRejected(one)) && !hasEnded) most++;
    if (path !== "/delivery/commands" || body.has_more) continue;
    const row = listed.get(key);
    if (admitted && !row) violate("list_incomplete", `/delivery/commands has not ${key}`);
    if (row && hasEnded && row.terminal === null) violate("alive_after_end", key);
    if (row?.terminal?.state === "expired" && Date.parse(row.terminal.at) < Date.parse(row.admission.deadline_at))
      violate("expired_early", key);
  }
  if (path !== "/delivery/summary") return;
  most += by("invoke").filter(({ call }) => call < to).length;
  const { tracked_commands: tracked, due_commands: due } = body;
  if (tracked < least || tracked > most) violate("tracked_wrong", `${tracked}, not from ${least} to ${most}`);
  if (due > tracked) violate("due_too_many", JSON.stringify(body));
}
function judgeStatus({
  path,
  query,
  body,
  status,
  from,
  to,
  history,
  operations,
  violate
}) {
  const asked = new URLSearchParams(query);
  const is = (one) => ["user_id", "client_id", "command_id"].every((name) => one[name] === asked.get(name));
  const about = `${path}?${query}`;
  const own = operations.filter(is);
  const dispatches = own.filter(({ what }) => what === "dispatch");
  if (status === 404) {
    if (dispatches.some((one) => isAdmitted(one) && one.ret < from))
      violate("admitted_and_gone", `${about} while it lives`);
    return;
  }
  const handovers = history.handovers.filter(is);
  const { attempts, acknowledgement, terminal, admission } = body;
  if (attempts.confirmed > handovers.filter(({ at }) => at <= to).length)
    violate("confirmed_too_many", `${about} ${JSON.stringify(attempts)}`);
  const known = new Set(handovers.filter(({ at }) => at < from).map(({ attempt }) => attempt)).size;
  if (known > attempts.count) violate("attempts_uncounted", `${about} ${attempts.count} < ${known}`);
  const words = own.filter(({ what }) => what === "acknowledge" || what === "settle");
  if (acknowledgement.state === "acknowledged") {
    const isSaid = words.some(
      (one) => mayHaveRun(one) && one.instance_id === acknowledgement.instance_id && one.call <= to
    );
    if (!isSaid) violate("acknowledgement_from_nowhere", about);
  }
  if (terminal === null && own.some((one) => isEnding(one) && isYes(one) && one.ret < from))
    violate("alive_after_end", about);
  const isAcknowledged = words.some(
    (one) => one.what === "acknowledge" && one.reason !== "busy" && isYes(one) && one.ret < from
  );
  if (acknowledgement.state === "none" && isAcknowledged) violate("acknowledgement_lost", about);
  if (admission.state === "admitted" && !dispatches.some(mayHaveRun)) violate("there_though_refused", about);
}
function judgeConnections({ path, query, body, from, to, history, by, violate }) {
  const { heartbeatTimeoutMs } = history.config;
  const connects = by("connect").filter(({ call }) => call < to);
  const beats = by("heartbeat");
  let least = 0;
  let most = 0;
  for (const one of connects) {
    const isSame = (other) => other.user_id === one.user_id && other.client_id === one.client_id;
    const others = connects.filter((other) => other !== one && isSame(other) && mayHaveRun(other));
    const isOwn = ({ connection_id }) => connection_id !== void 0 && connection_id === one.connection_id;
    const left = by("disconnect").filter(isOwn);
    const own = beats.filter(isOwn);
    const surely = Math.max(one.call, ...own.filter(isYes).map(({ call }) => call));
    const atMost = Math.max(one.ret, ...own.map(({ ret }) => ret));
    const isSurelyThere = one.state === "ok" && one.ret < from && !left.some(({ call }) => call < to) && !others.some((other) => other.ret > one.call) && surely > to - heartbeatTimeoutMs + 300;
    if (isSurelyThere) least++;
    if (!mayHaveRun(one)) continue;
    const isGone = left.some((leave) => isYes(leave) && leave.ret < from) || others.some((other) => other.state === "ok" && other.call > one.ret && other.ret < from) || atMost < from - heartbeatTimeoutMs - 300;
    if (!isGone) most++;
  }
  const isCount = path === "/connections/count";
  const total = isCount ? body.by_status.connected : body.items.filter(({ status }) => status === "connected").length;
  const isWhole = isCount ? body.completeness.complete : !body.has_more;
  if (isWhole && total < least) violate("connected_too_few", `${path}?${query} ${total} < ${least}`);
  if (total > most) violate("connected_too_many", `${path}?${query} ${total} > ${most}`);
}
function judgeMessages({ query, body, from, operations, violate }) {
  const stream = new URLSearchParams(query).get("stream");
  const ids = body.items.map(({ message_id }) => message_id);
  if (new Set(ids).size < ids.length) violate("retained_twice", `${stream}`);
  for (const { what, state, ret, message_id, stream: own, topic } of operations)
    if ((what === "ingest" || what === "event") && (own ?? topic) === stream && state === "ok" && ret < from) {
      if (!ids.includes(message_id)) violate("accepted_and_gone", `${message_id} at ${from.toFixed(0)}`);
    }
}
function judgeLists({ path, body, from, by, violate }) {
  if (path === "/users" && body.completeness.complete && !body.has_more) {
    for (const { state, ret, user_id } of by("connect"))
      if (state === "ok" && ret < from && !body.items.some((item) => item.user_id === user_id))
        violate("users_incomplete", `${user_id}`);
  }
  if (path === "/sessions" && !body.has_more) {
    for (const { state, ret, session_id } of by("session.open"))
      if (state === "ok" && ret < from && !body.items.some((item) => item.session_id === session_id))
        violate("list_incomplete", `/sessions has not ${session_id}`);
  }
  if (path === "/delivery/tenants") {
    for (const { reserved_commands, capacity, ...tenant } of body.items)
      if (capacity !== null && reserved_commands > capacity)
        violate("capacity_exceeded", JSON.stringify({ reserved_commands, capacity, ...tenant }));
  }
}
var JUDGES = {
  "/rpc/summary": judgeCalls,
  "/rpc/pending": judgeCalls,
  "/delivery/summary": judgeCommands,
  "/delivery/commands": judgeCommands,
  "/delivery/status": judgeStatus,
  "/connections": judgeConnections,
  "/connections/count": judgeConnections,
  "/history/messages": judgeMessages,
  "/users": judgeLists,
  "/sessions": judgeLists,
  "/delivery/tenants": judgeLists
};
function judgeAnswer(answer, history, violate) {
  const [path = "", query = ""] = answer.path.split("?");
  const { status, body } = answer;
  if (status === 500) {
    violate("diagnostics_500", `${answer.path} ${JSON.stringify(body)}`);
    return;
  }
  const isExcused = history.faults.some(({ fault }) => EXCUSES.includes(fault));
  const mayBeMissing = path === "/delivery/status" || path.includes("/users/");
  if (status !== 200 && !(status === 404 && mayBeMissing)) {
    if (!isExcused) violate("diagnostics_unavailable", `${answer.path} ${status} ${JSON.stringify(body)}`);
    return;
  }
  if (history.losses.length > 0 || history.hasClockSteps || history.wasFull) return;
  const { operations } = history;
  const by = (what) => operations.filter((one) => one.what === what);
  JUDGES[path]?.({ ...answer, path, query, history, violate, operations, by });
  if (body.completeness?.complete === true && body.completeness.truncated_sources?.length > 0)
    violate("complete_and_truncated", answer.path);
}

// test/simulation/actors/readers.ts
var statusPath = ({ user_id, client_id, command_id }) => `/delivery/status?${new URLSearchParams({ user_id, client_id, command_id })}`;
var messagesPath = (stream) => `/history/messages?stream=${encodeURIComponent(stream)}&limit=1000`;
function anyPath(stage, dice) {
  const user = dice.pick(stage.history.userIds);
  const dispatches = stage.history.operations.filter(({ what }) => what === "dispatch");
  if (dispatches.length > 0 && dice.chance(0.2)) return statusPath(dice.pick(dispatches));
  return dice.pick([
    "/connections/count",
    "/connections/count?status=connected",
    "/connections?limit=500",
    "/connections/churn",
    "/delivery/summary",
    "/delivery/commands?limit=500",
    "/delivery/tenants",
    "/delivery/nodes",
    "/rpc/summary",
    "/rpc/pending?limit=500",
    "/deduplicator/summary",
    `/deduplicator/users/${user}`,
    "/contexts/count",
    "/browser-windows/count",
    "/users",
    `/users/${user}/summary`,
    "/actions",
    "/sessions?limit=500",
    "/sites",
    "/subscriptions?limit=500",
    "/history/streams",
    messagesPath(topicOf(user)),
    messagesPath(notesOf(user)),
    "/findings",
    "/sources",
    `/workers?user_id=${user}`
  ]);
}
function actAsOperator(stage, endsAt, ask) {
  const { world } = stage;
  stage.act("operator", async (dice) => {
    while (world.now < endsAt) {
      await world.sleep(dice.between(100, 1e3));
      const answer = await ask(anyPath(stage, dice));
      world.count(`answers ${answer.status}`);
      world.say(() => `GET ${answer.path} ${answer.status} ${JSON.stringify(answer.body).slice(0, 200)}`);
      judgeAnswer(answer, stage.history, stage.violate);
    }
  });
}
async function readAll(stage, ask) {
  const { userIds, operations } = stage.history;
  const [summary, tenants, rpc, nodes] = [
    await ask("/delivery/summary"),
    await ask("/delivery/tenants?limit=500"),
    await ask("/rpc/summary"),
    await ask("/delivery/nodes")
  ];
  const messages = /* @__PURE__ */ new Map();
  for (const user of userIds)
    for (const stream of [topicOf(user), notesOf(user)]) messages.set(stream, await ask(messagesPath(stream)));
  const statuses = /* @__PURE__ */ new Map();
  for (const operation of operations) {
    if (operation.what !== "dispatch") continue;
    const { user_id, client_id, command_id } = operation;
    const key = `${user_id} ${client_id} ${command_id}`;
    if (!statuses.has(key)) statuses.set(key, await ask(statusPath(operation)));
  }
  return { summary, tenants, rpc, nodes, messages, statuses };
}

// test/simulation/oracle/actions.ts
function saysNotRun({ state, value }) {
  if (state !== "ok" || value.status === 200 || value.status === 504) return false;
  const { code, outcome } = value.body;
  return code !== "idempotency_in_progress" && outcome !== "unknown" && code !== "unavailable";
}
function judgeActions(facts) {
  const { violate, history, isLossy } = facts;
  const invocations = groupBy(facts.all("invoke"), ({ key, n, session_id }) => key ? `${session_id} ${key}` : n);
  for (const [name, own] of facts.certain(invocations)) {
    const numbers = new Set(own.map(({ n }) => n));
    const runs = history.runs.filter(({ key }) => numbers.has(key));
    if (runs.length > 1 && !isLossy) violate("ran_twice", `${name} ran ${runs.length} times`);
    if (runs.length > 0 && own.every(saysNotRun))
      violate(
        "ran_though_denied",
        `${name}: ${own.map(({ value }) => `${value.status} ${value.body.code}`).join(", ")}`
      );
    for (const { state, value } of own) {
      if (state !== "ok") continue;
      const { status, body } = value;
      if (status === 500) violate("relay_500", `invoke: ${JSON.stringify(body)}`);
      if (status === 200 && body.status === "succeeded" && !runs.some(({ key }) => key === body.result?.n))
        violate("answer_of_another", `${name}: ${JSON.stringify(body)}`);
      if (body.code === "unavailable" && body.outcome !== "unknown" && runs.length > 0 && own.length === 1)
        violate("ran_though_denied", `${name}: unavailable, and it ran`);
    }
  }
}

// test/simulation/oracle/calls.ts
function judgeCall(facts, call, settles) {
  const { history, violate, hasClockSteps } = facts;
  const { correlation_id, node, end, timeoutMs, resolvedAt = Number.NaN } = call;
  const about = `call ${correlation_id} of ${node} at ${round(call.call)}`;
  const won = settles.filter(isYes);
  if (won.length > 1) violate("settled_twice", about);
  if (won.some(({ isForeign }) => isForeign)) violate("foreign_counted", about);
  const possible = settles.filter(mayRun);
  if (end === "result" && !possible.some(({ isResult, token }) => isResult && token === call.result))
    violate("result_from_nowhere", about);
  if (end === "error" && !possible.some(({ isResult, token }) => !isResult && token === call.rejected?.token))
    violate("result_from_nowhere", `${about}: ${call.rejected}`);
  if (end === "cancelled" && call.abortedAt === void 0) violate("cancelled_by_nobody", about);
  if (end === "timeout" && resolvedAt < call.call + timeoutMs - 2 && !hasClockSteps) violate("timeout_early", about);
  const lives = history.lives.some(
    (life) => life.node === node && life.number === call.life && life.to === Number.POSITIVE_INFINITY
  );
  if (!lives) return;
  if (end === void 0) violate("call_never_ended", about);
  const [winner] = won;
  if (!winner) return;
  const isTroubled = end === "timeout" && resolvedAt - call.call - timeoutMs > 1900 || history.faults.some(
    ({ fault, node: where, at }) => at > winner.call - 8e3 && at < resolvedAt && (where === node || fault.startsWith("store"))
  );
  if (!isTroubled && end !== (winner.isResult ? "result" : "error"))
    violate("reply_lost", `${about}: settled at ${round(winner.ret)}, ended as ${end} at ${round(resolvedAt)}`);
}
function judgeCalls2(facts) {
  const settles = groupBy(facts.all("rpc.settle"), ({ correlation_id }) => correlation_id);
  for (const call of facts.all("rpc.open"))
    if (call.state === "ok" && facts.isCertain(call)) judgeCall(facts, call, settles.get(call.correlation_id) ?? []);
}
function judgeClaims(facts) {
  if (facts.hasClockSteps) return;
  const { violate, history } = facts;
  const { dedupTtlMs } = history.config;
  const messages = groupBy(facts.all("claim", "release"), ({ user_id, message_id }) => `${user_id} ${message_id}`);
  for (const [key, own] of facts.certain(messages)) {
    const claims = own.filter(({ what }) => what === "claim");
    const releases = own.filter((one) => one.what === "release" && mayRun(one));
    const won = claims.filter(isYes);
    for (const a of won)
      for (const b of won) {
        const isReleased = releases.some((release) => release.call < b.ret && endOf(release) > a.call);
        if (a.i < b.i && b.ret - a.call < dedupTtlMs - 50 && !isReleased)
          violate("claimed_twice", `${key} at ${round(a.call)} and ${round(b.call)}`);
      }
    for (const b of claims) {
      if (b.state !== "ok" || b.value !== false) continue;
      const isHeld = claims.some(
        (a) => a !== b && mayRun(a) && a.call < b.ret && endOf(a) + dedupTtlMs + 2500 > b.call
      );
      if (!isHeld) violate("claim_denied", `${key} at ${round(b.call)}`);
    }
  }
}
function judgeKey(facts, key, own) {
  const { violate, hasClockSteps } = facts;
  const all = own.filter(({ what }) => what === "key.claim");
  const claims = all.filter(({ state }) => state === "ok");
  const won = claims.filter(({ value }) => value.state === "claimed");
  const releases = own.filter((one) => one.what === "key.release" && mayRun(one));
  const keeps = own.filter((one) => one.what === "key.keep" && mayRun(one));
  for (const a of won)
    for (const b of won)
      if (a.i < b.i && !releases.some(({ attempt, call }) => attempt === a.attempt && call < b.ret))
        violate("key_claimed_twice", `${key} at ${round(a.call)} and ${round(b.call)}`);
  for (const one of claims) {
    const { state, answer } = one.value;
    const others = all.filter((other) => other !== one && mayRun(other) && other.call < one.ret);
    if (state === "reused" && !others.some(({ fingerprint }) => fingerprint !== one.fingerprint))
      violate("key_reused_by_nobody", key);
    if (state === "running" && others.length === 0) violate("key_running_by_nobody", key);
    if (state === "ended" && answer && !keeps.some(({ attempt, call }) => attempt === answer.result && call < one.ret))
      violate("answer_from_nowhere", key);
    if (hasClockSteps) continue;
    const kept = keeps.find((keep) => keep.state === "ok" && keep.ret < one.call);
    const first = kept && won.find(({ attempt }) => attempt === kept.attempt);
    const isKept = kept && first && kept.ret - first.call < 2900 && one.fingerprint === kept.fingerprint;
    if (isKept && !(state === "ended" && answer?.result === kept.attempt))
      violate("answer_lost", `${key}: kept at ${round(kept.ret)}, then ${state} at ${round(one.call)}`);
  }
}
function judgeKeys(facts) {
  const keys = groupBy(facts.all("key.claim", "key.release", "key.keep"), ({ user_id, key }) => `${user_id} ${key}`);
  for (const [key, own] of facts.certain(keys)) judgeKey(facts, key, own);
}

// test/simulation/oracle/delivery.ts
var isAdmitted2 = ({ state, value }) => state === "ok" && value.admission.state === "admitted";
var isRejected2 = ({ state, value }) => state === "ok" && value.admission.state === "rejected";
function isFounded({ state, reason, at }, { endings, record }) {
  const said = endings.filter(mayRun);
  switch (state) {
    case "resulted":
      return said.some(({ what, end }) => what === "settle" && end === "resulted");
    case "failed":
      return reason === "attempts_exhausted" || said.some(({ what, end }) => what === "acknowledge" || what === "settle" && end === "failed");
    case "cancelled":
      return said.some(({ what }) => what === "cancel");
    default:
      return state === "expired" && Date.parse(at) >= Date.parse(record.admission.deadline_at);
  }
}
function isEndOf({ what, end }, state) {
  if (what === "cancel") return state === "cancelled";
  return what === "acknowledge" ? state === "failed" : state === end;
}
function judgeEnd(facts, command, blame) {
  const { endings, dispatches, admitted, record } = command;
  const counted = endings.filter(isYes);
  if (counted.length > 1) blame("ended_twice", counted.map(({ what, call }) => `${what} ${round(call)}`).join(", "));
  if (counted.length > 0 && !dispatches.some((one) => mayRun(one) && !isRejected2(one))) blame("ended_unadmitted");
  const end = record?.terminal;
  if (!end || record.admission.state !== "admitted") return;
  if (!isFounded(end, command)) blame("end_from_nowhere", JSON.stringify(end));
  const [said] = counted;
  if (said && !isEndOf(said, end.state)) blame("end_lost", `${said.what} ${said.end} counted, ${JSON.stringify(end)}`);
  const { max } = dispatches[0];
  if (end.reason === "attempts_exhausted" && record.attempts.count < max)
    blame("exhausted_early", `${record.attempts.count} of ${max}`);
  if (facts.hasClockSteps) return;
  if (record.attempts.last_at && record.attempts.last_at > end.at)
    blame("attempted_after_end", `${record.attempts.last_at} > ${end.at}`);
  if (end.state !== "expired") return;
  for (const one of endings)
    if (one.what === "cancel" && one.state === "ok" && one.value === false && admitted.some(({ ret }) => ret < one.call) && one.ret < msOf(record.admission.deadline_at) - 10)
      blame("end_denied", `cancel ${round(one.call)}`);
}
function judgeAttempts(facts, command, blame) {
  const { own, handovers, dispatches, endings, record } = command;
  const { attempts, acknowledgement, recovery } = record;
  const numbers = handovers.map(({ attempt }) => attempt);
  if (new Set(numbers).size < numbers.length) blame("handed_over_twice", `attempts ${numbers}`);
  if (handovers.length > attempts.count) blame("attempts_uncounted", `${handovers.length} > ${attempts.count}`);
  const done = handovers.filter(({ done: done2 }) => done2 < Number.POSITIVE_INFINITY).length;
  if (attempts.confirmed > Math.min(done, attempts.count))
    blame("confirmed_too_many", `${attempts.confirmed} > ${done}`);
  const max = Math.max(...dispatches.map((one) => one.max));
  if (handovers.length > max) blame("handed_over_too_often", `${handovers.length} > ${max}`);
  if (attempts.count > max + recovery.count) blame("too_many_attempts", `${attempts.count} > ${max}`);
  const words = own.filter((one) => one.what === "acknowledge" && one.reason !== "busy" || one.acknowledge);
  const counted = words.filter(isYes);
  if (counted.length > 0 && acknowledgement.state === "none") blame("acknowledgement_lost");
  if (acknowledgement.state === "acknowledged") {
    const isSaid = own.some(
      (one) => mayRun(one) && one.instance_id === acknowledgement.instance_id && one.what !== "dispatch"
    );
    if (!isSaid) blame("acknowledgement_from_nowhere", JSON.stringify(acknowledgement));
    if (!facts.hasClockSteps && attempts.last_at > acknowledgement.at)
      blame("attempted_after_acknowledgement", `${attempts.last_at} > ${acknowledgement.at}`);
  }
  const quietFrom = Math.min(...[...counted, ...endings.filter(isYes)].map(({ ret }) => ret));
  for (const { at, node, attempt } of handovers)
    if (at > quietFrom + FENCE_MS && !facts.wasPaused(node, quietFrom, at))
      blame("handed_over_after_word", `attempt ${attempt} at ${round(at)}, the word at ${round(quietFrom)}`);
}
function judgeCommand(facts, command) {
  const { key, own, dispatches, admitted, handovers, endings, record } = command;
  const blame = (rule, about = "") => facts.violate(rule, `command ${key}: ${about}`);
  const mayBeAdmitted = dispatches.some((one) => mayRun(one) && !isRejected2(one));
  if (admitted.length > 0 && !record) blame("admitted_and_gone");
  if (admitted.length > 0 && record?.admission.state === "rejected") blame("rejected_after_admission");
  if (!mayBeAdmitted && (handovers.length > 0 || record?.admission.state === "admitted")) blame("there_though_refused");
  if (record?.admission.state === "admitted" && !record.terminal && !facts.hasClockSteps)
    blame("not_ended", JSON.stringify(record.attempts));
  judgeEnd(facts, command, blame);
  const endedAt = endings.find(isYes)?.ret ?? Number.POSITIVE_INFINITY;
  for (const one of own)
    if (one.what === "acknowledge" && isYes(one) && one.call > endedAt)
      blame("acknowledged_after_end", `${round(one.call)} > ${round(endedAt)}`);
  if (record) judgeAttempts(facts, command, blame);
  for (const { action, command_id, payload, instance_id, at, node } of handovers) {
    if (action === "sync" && !command_id.startsWith("probe") && payload !== JSON.stringify({ of: command_id }))
      blame("other_payload", payload);
    const since = at - FENCE_MS;
    if (isStale(facts.connectsOf(dispatches[0]), instance_id, since) && !facts.wasPaused(node, since, at))
      blame("handed_to_stale", `${instance_id} at ${round(at)}`);
    if (!dispatches.some(({ call }) => call <= at)) blame("handed_over_before_dispatch");
  }
}
function holdOf({ admitted, endings, record }) {
  if (admitted.length === 0 || !record) return null;
  const from = Math.min(...admitted.map(({ ret }) => ret));
  const exhausted = record.terminal?.reason === "attempts_exhausted" ? msOf(record.terminal.at) : Number.POSITIVE_INFINITY;
  const ends = endings.filter(mayRun).map(({ call }) => call);
  const to = Math.min(exhausted, msOf(record.admission.deadline_at), ...ends);
  return to > from ? { from, to } : null;
}
function judgeCapacity(facts, commands) {
  const { capacity } = facts.history.config;
  const scopes = groupBy(commands, ({ record }) => record?.admission.scope_id ?? "");
  for (const [scope, own] of scopes) {
    const holds = own.flatMap((command) => holdOf(command) ?? []);
    for (const { from } of holds) {
      const held = holds.filter((other) => other.from <= from && other.to > from).length;
      if (held <= capacity) continue;
      facts.violate("capacity_exceeded", `${held} commands hold ${scope} of ${capacity} at ${round(from)}`);
      break;
    }
  }
}
function judgeRefusals(facts, commands) {
  const { config, userIds } = facts.history;
  for (const one of facts.all("dispatch")) {
    if (!isRejected2(one) || one.value.terminal?.reason !== "capacity_exceeded") continue;
    const scope = one.value.admission.scope_id;
    const possible = commands.filter(({ dispatches, endings }) => {
      const ended = endings.find(isYes);
      if (ended && config.shards === 1 && ended.ret + 2500 < one.call) return false;
      return dispatches.some(
        (d) => d !== one && d.scope_id === scope && mayRun(d) && d.call < one.ret && d.call + d.deadlineMs + 5e3 > one.call
      );
    }).length;
    const invoked = userIds.includes(scope) ? facts.all("invoke").filter(({ call }) => call < one.ret && call + 1e4 > one.call).length : 0;
    if (possible + invoked < config.capacity)
      facts.violate(
        "refused_with_room",
        `${one.command_id} at ${round(one.call)}: ${possible + invoked} of ${config.capacity} in ${scope}`
      );
  }
}
function judgeSummaries({ history, violate, isLossy, hasClockSteps }, reading) {
  const { summary, tenants, rpc, nodes } = reading;
  for (const { path, status } of [summary, tenants, rpc, nodes])
    if (status !== 200) violate("diagnostics_unavailable", `${path} ${status} in a calm world`);
  if (summary.status !== 200 || isLossy) return;
  const { counters, pending, overdue } = rpc.body;
  const ended = counters.succeeded + counters.failed + counters.timed_out + counters.cancelled;
  if (counters.opened !== ended + pending + overdue) violate("rpc_sum", JSON.stringify(rpc.body));
  if (hasClockSteps) return;
  if (summary.body.tracked_commands !== 0) violate("left_tracked", `${summary.body.tracked_commands}`);
  for (const tenant of tenants.body.items ?? []) violate("left_reserved", JSON.stringify(tenant));
  if (pending > 0 || overdue > 0) violate("rpc_left", JSON.stringify(rpc.body));
  for (const node of nodes.body.items ?? []) {
    const isLiving = history.lives.some(({ life, node: name }) => name === node.node_id && !life.isDead);
    const isSaidLiving = node.stale === false && node.reconciliation_loop_alive === true;
    if (isLiving && !isSaidLiving) violate("node_said_dead", JSON.stringify({ ...node, counters: void 0 }));
  }
}
function judgeProbes({ history, violate }) {
  for (const { isReady, command_id, commands, operation } of history.probes) {
    if (!operation) continue;
    if (operation.state !== "ok") violate("probe_refused", `dispatch ${operation.code} ${operation.outcome}`);
    else if (isReady && isAdmitted2(operation) && !commands.includes(command_id))
      violate("probe_unserved", `${command_id} was never handed over in a calm world`);
  }
}
function judgeDelivery(facts, reading) {
  const words = facts.all("dispatch", "acknowledge", "settle", "cancel").filter(({ command_id }) => command_id);
  const handovers = groupBy(facts.history.handovers, commandOf);
  const commands = facts.certain(groupBy(words, commandOf)).flatMap(([key, own]) => {
    const dispatches = own.filter(({ what }) => what === "dispatch");
    if (dispatches.length === 0) return [];
    const answer = reading.statuses.get(key);
    if (answer && answer.status !== 200 && answer.status !== 404)
      facts.violate("diagnostics_unavailable", `${answer.path} ${answer.status} in a calm world`);
    const record = answer?.status === 200 ? answer.body : null;
    const admitted = dispatches.filter(isAdmitted2);
    return [
      { key, own, dispatches, admitted, handovers: handovers.get(key) ?? [], endings: own.filter(isEnding), record }
    ];
  });
  for (const command of commands) judgeCommand(facts, command);
  if (!facts.hasClockSteps) judgeCapacity(facts, commands);
  if (!facts.hasClockSteps && !facts.isLossy) judgeRefusals(facts, commands);
  judgeSummaries(facts, reading);
  judgeProbes(facts);
}

// test/simulation/oracle/events.ts
var positionOf = (id) => {
  const at = id.lastIndexOf(":");
  return { epoch: id.slice(0, at), seq: Number(id.slice(at + 1)) };
};
function judgePositions(facts, reading, topic) {
  const { history, violate, isLossy } = facts;
  const positions = /* @__PURE__ */ new Map();
  const events = /* @__PURE__ */ new Map();
  const hear = (id, position) => {
    positions.set(id, (positions.get(id) ?? /* @__PURE__ */ new Set()).add(position));
    const known = events.get(position);
    if (known !== void 0 && known !== id && !isLossy) violate("position_shared", `${position}: ${id} and ${known}`);
    events.set(position, id);
  };
  for (const heard of history.heard.filter((one) => one.topic === topic))
    for (const { id, epoch, seq } of heard.items) if (id) hear(id, `${epoch}:${seq}`);
  for (const viewer of history.viewers.filter((one) => one.topic === topic))
    for (const { event, id, data } of viewer.frames) if (event === "site_event" && id) hear(data.event_id, id);
  const retained = new Set((reading.messages.get(topic)?.body.items ?? []).map(({ message_id }) => message_id));
  const sent = groupBy(
    facts.all("event").filter((one) => one.topic === topic),
    ({ message_id }) => message_id
  );
  for (const [id, where] of positions) {
    if (where.size > 1 && !isLossy) violate("published_twice", `${id} at ${[...where].join(", ")}`);
    if (!retained.has(id) && !isLossy) violate("published_unretained", id);
    const all = sent.get(id) ?? [];
    const isDenied = (one) => !mayRun(one) || one.state === "ok" && one.value.published === false && one.value.not_published_reason !== "duplicate";
    if (all.length > 0 && all.every(isDenied)) violate("heard_though_denied", id);
  }
  return events;
}
function judgeHeard({ violate }, heard, events) {
  const { number, node, final } = heard;
  if (!final) return;
  const blame = (rule, about) => violate(rule, `subscriber ${number} on ${node}: ${about}`);
  let { epoch, seq } = heard.begin;
  let isExact = heard.isPrepared;
  for (const item of heard.items) {
    const { gap } = item;
    if (gap && gap.dropped === null) isExact = false;
    else if (gap) {
      if (gap.last_seq - gap.first_seq + 1 !== gap.dropped) blame("gap_miscounted", JSON.stringify(gap));
      if (isExact && gap.first_seq !== seq + 1) blame("gap_misplaced", `${JSON.stringify(gap)} after ${seq}`);
      seq = gap.last_seq;
      isExact = true;
    } else {
      if (isExact && item.epoch !== epoch && epoch !== void 0) blame("epoch_without_gap", `${epoch} \u2192 ${item.epoch}`);
      if (isExact && item.seq !== seq + 1) blame("lost_without_gap", `${seq} \u2192 ${item.seq}`);
      seq = item.seq;
      isExact = true;
    }
    epoch = item.epoch;
  }
  if (!heard.isOpenAtEnd || final.pending > 0 || heard.hasDied) return;
  if (isExact && final.seq !== seq) blame("lost_without_gap", `stands at ${final.seq}, heard ${seq}`);
  const seqs = [...events.keys()].map(positionOf).filter((position) => position.epoch === final.epoch);
  const last = Math.max(0, ...seqs.map((position) => position.seq));
  if (final.seq < last) blame("published_unheard", `stands at ${final.seq} of ${last}`);
}
function judgeViewer(facts, viewer) {
  const { history, violate } = facts;
  const { number, node, session_id, frames } = viewer;
  const blame = (rule, about = "") => violate(rule, `viewer ${number} on ${node}: ${about}`);
  const resume = viewer.resume === null ? null : positionOf(viewer.resume);
  let position = null;
  let total = 0;
  let isOver = false;
  for (const [i, { event, id, data, at }] of frames.entries()) {
    if (isOver) blame("frame_after_end", event);
    if (event === "ready") {
      if (i !== 0) blame("ready_not_first");
      position = id ? positionOf(id) : null;
      const next = frames[1];
      const isElsewhere = resume && position && (position.epoch !== resume.epoch || position.seq !== resume.seq);
      if (isElsewhere && next?.event === "site_event")
        blame("resume_without_gap", `${viewer.resume} \u2192 ${id} \u2192 ${next.id}`);
    } else if (event === "gap" && id) {
      const now = positionOf(id);
      if (data.dropped !== null) {
        total += data.dropped;
        if (data.last_seq - data.first_seq + 1 !== data.dropped) blame("gap_miscounted", JSON.stringify(data));
        const from = data.reason === "resume" && resume ? resume : position;
        if (from && from.epoch === now.epoch && data.first_seq !== from.seq + 1)
          blame("gap_misplaced", `${JSON.stringify(data)} after ${from.seq}`);
        if (data.last_seq !== now.seq) blame("gap_misplaced", `${JSON.stringify(data)} with id ${id}`);
        if (data.dropped_total !== total && data.dropped_total !== null)
          blame("gap_total", `${data.dropped_total}, not ${total}`);
      }
      position = now;
    } else if (event === "site_event" && id) {
      const now = positionOf(id);
      if (position && now.epoch !== position.epoch) blame("epoch_without_gap", id);
      else if (position && now.seq !== position.seq + 1) blame("lost_without_gap", `${position.seq} \u2192 ${now.seq}`);
      position = now;
      judgeClosed(at);
    } else if (event === "end") isOver = true;
  }
  function judgeClosed(at) {
    const close = history.operations.find(
      (one) => one.what === "session.close" && one.session_id === session_id && one.state === "ok"
    );
    if (close && at > close.ret + 3e3 && !facts.wasPaused(node, close.ret, at))
      blame("event_after_close", `${round(at)} > ${round(close.ret)}`);
  }
}
function judgeEvents(facts, reading) {
  const { history } = facts;
  for (const user of history.userIds) {
    const topic = topicOf(user);
    const events = judgePositions(facts, reading, topic);
    for (const heard of history.heard) if (heard.topic === topic) judgeHeard(facts, heard, events);
    for (const viewer of history.viewers) if (viewer.topic === topic) judgeViewer(facts, viewer);
  }
}

// test/simulation/oracle/messages.ts
function judgeOrder(facts, items, messages) {
  const places = new Map(items.map(({ message_id }, place) => [message_id, place]));
  const spans = [...messages].flatMap(([id, all]) => {
    const place = places.get(id);
    const ok = all.filter(({ state }) => state === "ok").map(({ ret }) => ret);
    return place === void 0 ? [] : [{ id, place, from: Math.min(...all.map(({ call }) => call)), to: Math.min(...ok) }];
  });
  for (const a of spans)
    for (const b of spans)
      if (a.to < b.from && a.place > b.place) facts.violate("out_of_order", `${a.id} after ${b.id}`);
}
function judgeMessages2(facts, reading) {
  const { violate } = facts;
  const streams = groupBy(facts.all("ingest", "event"), ({ stream, topic }) => stream ?? topic);
  for (const [stream, all] of streams) {
    const answer = reading.messages.get(stream);
    if (answer?.status !== 200) {
      violate("diagnostics_unavailable", `history of ${stream}: ${answer?.status}`);
      continue;
    }
    const items = answer.body.items;
    const times = groupBy(items, ({ message_id }) => message_id);
    for (const [id, { length }] of times) if (length > 1) violate("retained_twice", `${id} in ${stream}`);
    for (const [i, { sequence }] of items.entries()) {
      const before = items[i - 1];
      if (before && sequence !== before.sequence + 1 && !facts.isLossy)
        violate("sequence_broken", `${stream} ${before.sequence} \u2192 ${sequence}`);
    }
    const messages = new Map(facts.certain(groupBy(all, ({ message_id }) => message_id)));
    for (const [id, own] of messages) {
      const about = `${id} of ${stream}`;
      const ok = own.filter(({ state }) => state === "ok");
      if (ok.length > 0 && !times.has(id)) violate("accepted_and_gone", about);
      if (!own.some(mayRun) && times.has(id)) violate("there_though_refused", about);
      if (ok.filter(({ value }) => !value.duplicate).length > 1) violate("new_twice", about);
      for (const one of ok)
        if (one.value.duplicate && !own.some((other) => other !== one && mayRun(other) && other.call < one.ret))
          violate("duplicate_of_nothing", about);
    }
    judgeOrder(facts, items, messages);
  }
}

// test/simulation/oracle/sessions.ts
var STATES = {
  "session.open": "pending",
  "session.activate": "active",
  "session.suspend": "suspended",
  "session.close": "closed"
};
function judgeSession({ violate }, id, own) {
  const moves = own.filter((one) => STATES[one.what] && mayRun(one));
  const hasTtl = own.some(({ what, ttlMs }) => what === "session.open" && ttlMs);
  for (const get of own.filter(({ what, state }) => what === "session.get" && state === "ok")) {
    if (get.value === null) {
      violate("session_gone", id);
      continue;
    }
    const { state } = get.value;
    const done = moves.filter((one) => one.state === "ok" && one.ret < get.call).sort((a, b) => a.ret - b.ret);
    const last = done.at(-1);
    if (!last) continue;
    if (done.some(({ what }) => what === "session.close")) {
      if (state !== "closed") violate("session_alive_after_close", `${id} ${state}`);
      continue;
    }
    const possible = moves.filter((one) => one.call < get.ret && endOf(one) >= last.call).map(({ what }) => STATES[what]);
    if (!possible.includes(state) && !(state === "expired" && hasTtl))
      violate("session_state", `${id} is ${state}; possible: ${possible.join(", ")}`);
  }
  const close = moves.find(({ what, state }) => what === "session.close" && state === "ok");
  if (!close) return;
  for (const one of own)
    if (one !== close && STATES[one.what] && one.state === "ok" && one.call > close.ret)
      violate("session_moved_after_close", `${id} ${one.what}`);
}
function judgeSessions(facts) {
  if (facts.isLossy || facts.hasClockSteps) return;
  const moves = facts.history.operations.filter(({ what, session_id }) => session_id && what.startsWith("session."));
  for (const [id, own] of groupBy(moves, ({ session_id }) => session_id)) judgeSession(facts, id, own);
}

// test/simulation/oracle/oracle.ts
var ACCEPTED = /* @__PURE__ */ new Set(["event", "ingest", "attach"]);
var COUNTED = /* @__PURE__ */ new Set(["acknowledge", "settle"]);
function judgeInstances(facts) {
  const { history, violate } = facts;
  for (const one of history.operations) {
    if (!one.instance_id || !facts.isCertain(one)) continue;
    const counted = ACCEPTED.has(one.what) ? one.state === "ok" : COUNTED.has(one.what) && isYes(one);
    if (counted && isStale(facts.connectsOf(one), one.instance_id, one.call))
      violate(
        one.what === "reply" ? "stale_reply" : "stale_word",
        `${one.what} of ${one.instance_id} on ${one.node} at ${round(one.call)}`
      );
    if (one.code !== "stale_instance" || facts.isLossy || facts.hasClockSteps) continue;
    const connects = facts.connectsOf(one);
    const own = connects.filter((c) => c.instance_id === one.instance_id && c.state === "ok" && c.ret < one.call).at(-1);
    if (!own) continue;
    const wasSuperseded = connects.some(
      (c) => c.instance_id !== one.instance_id && mayRun(c) && endOf(c) > own.call && c.call < one.ret
    );
    const hasLeft = facts.all("disconnect").some((d) => d.connection_id === own.connection_id && d.call < one.ret);
    const beats = facts.all("heartbeat").filter((b) => b.connection_id === own.connection_id && isYes(b) && b.ret < one.ret);
    const lastBeat = Math.max(own.call, ...beats.map((b) => b.call));
    if (!wasSuperseded && !hasLeft && one.ret - lastBeat < history.config.heartbeatTimeoutMs - 200)
      violate("stale_unfounded", `${one.what} of ${one.instance_id} at ${round(one.call)}`);
  }
}
var SLOW = /* @__PURE__ */ new Set(["invoke", "reply", "event"]);
function judgeAnswers(facts) {
  const { history, violate } = facts;
  for (const { node, message, stack } of history.reported) violate("reported", `${node}: ${message} ${stack ?? ""}`);
  if (!history.hasFinished) {
    const open = history.operations.filter(({ state }) => state === "open");
    const names = open.slice(0, 4).map(({ node, what, call }) => `${node} ${what} of ${round(call)}`);
    violate("hung", `an actor has not ended after healing: ${names.join(", ")}`);
  }
  for (const one of history.operations) {
    const { what, node, state, code, call, ret } = one;
    if (state === "open" && history.quietAt - call > 12e3 && what !== "invoke")
      violate("unanswered", `${what} on ${node} of ${round(call)}`);
    if (code !== "unavailable" || SLOW.has(what)) continue;
    if (history.config.store === "memory") violate("memory_unavailable", what);
    if (ret - call > 6500 && !facts.wasPaused(node, call, ret))
      violate("late_refusal", `${what} on ${node} was refused after ${round(ret - call)} ms`);
  }
}
function judge(history, violate) {
  if (!history.reading) return;
  for (const one of history.operations) {
    if (one.state !== "died") continue;
    const life = history.lives.find(({ node, number }) => node === one.node && number === one.life);
    one.diedAt = (life?.to ?? Number.POSITIVE_INFINITY) + FENCE_MS;
  }
  const facts = new Facts(history, violate);
  judgeAnswers(facts);
  judgeInstances(facts);
  judgeDelivery(facts, history.reading);
  judgeMessages2(facts, history.reading);
  judgeEvents(facts, history.reading);
  judgeSessions(facts);
  judgeCalls2(facts);
  judgeClaims(facts);
  judgeKeys(facts);
  judgeActions(facts);
}
var KEPT = [
  /^shards$/,
  /:version$/,
  /:seq$/,
  /^calls:(counts|seq)$/,
  /^messages:/,
  /^streams:/,
  /^emptied/,
  /^history:/,
  /^spilled:/,
  /^delivery:(counters|nodes|leases|boots|node|scope-seq|incarnations)/,
  /^nodes:/,
  /^dedup:(held|counts)$/
];
function judgeLeft({ left }, violate) {
  const names = (left ?? []).map((line) => line.replace(/^relayscope:\{[^}]*\}:/, ""));
  const rest = names.filter((line) => !KEPT.some((kept) => kept.test(line.replace(/ \(.*\)$/, ""))));
  if (rest.length > 0) violate("left_in_store", `${rest.length} keys: ${rest.slice(0, 12).join(", ")}`);
}

// test/simulation/links.ts
import { EventEmitter } from "node:events";
var broken = () => new Error("Socket closed unexpectedly");
function whenStoreIsUp(world, node, back) {
  const { storeBlockedUntil, now, network } = world;
  if (storeBlockedUntil > now)
    world.at(storeBlockedUntil + network.between(1, 100), node, () => whenStoreIsUp(world, node, back));
  else back();
}
var CommandLink = class extends EventEmitter {
  constructor(world, node, kind, setStatus) {
    super();
    this.world = world;
    this.node = node;
    this.kind = kind;
    this.setStatus = setStatus;
    this.setMaxListeners(0);
    this.life = node.life;
    this.life.links.add(this);
  }
  world;
  node;
  kind;
  setStatus;
  isSubscriber = false;
  isReady = true;
  isUp = true;
  /** Counts the connections: what belongs to an earlier one is dropped. */
  connection = 0;
  lastArrival = 0;
  lastReply = 0;
  stalledUntil = 0;
  repliesStalledUntil = 0;
  underWay = [];
  queued = [];
  life;
  send(args) {
    return new Promise((resolve, reject) => {
      const sent = { args: args.map(String), resolve, reject, writes: 0, arrival: null };
      if (this.isUp) this.write(sent);
      else this.queued.push(sent);
    });
  }
  write(sent) {
    const { world, connection } = this;
    if (sent.writes++ > 0) world.count("sent again");
    this.underWay.push(sent);
    this.lastArrival = Math.max(this.lastArrival, world.now + world.latency(), this.stalledUntil);
    this.arriveAt(this.lastArrival, sent, connection);
  }
  arriveAt(at, sent, connection) {
    sent.arrival = this.world.at(at, null, () => this.arrive(sent, connection));
    sent.arrival.isAwaited = true;
  }
  async arrive(sent, connection) {
    const { world, node } = this;
    if (world.storeBlockedUntil > world.now) return this.arriveAt(world.storeBlockedUntil, sent, connection);
    const reply = await world.execute(sent.args);
    if (connection !== this.connection || this.life.isDead) return;
    if (world.loseReply(node)) {
      world.say(() => `${node.name} loses the reply to ${sent.args[0]}`);
      this.cut("its reply is lost", world.network.between(1, 400));
      return;
    }
    this.lastReply = Math.max(this.lastReply, world.now + world.latency(), this.repliesStalledUntil);
    world.at(this.lastReply, node, () => {
      if (connection !== this.connection) return;
      this.underWay.splice(this.underWay.indexOf(sent), 1);
      if (reply instanceof Error) sent.reject(reply);
      else sent.resolve(reply);
    });
  }
  cut(why, downMs, isForGood = false) {
    const { world, node, kind, underWay } = this;
    world.say(() => `${node.name} loses its link (${why}), ${underWay.length} commands under way`);
    world.count("links cut");
    this.underWay = [];
    this.connection++;
    const arriving = why === "the store restarts" ? 0 : world.network.chance(0.5) ? underWay.length : world.network.int(underWay.length + 1);
    for (const { arrival } of underWay.slice(arriving)) if (arrival) arrival.isLive = false;
    this.isUp = this.isReady = false;
    this.setStatus("reconnecting");
    if (isForGood) return;
    world.after(world.network.between(0.1, 5), node, () => {
      if (kind === "ioredis") {
        this.emit("close");
        this.queued = [...underWay, ...this.queued];
        return;
      }
      this.emit("error", broken());
      this.emit("reconnecting");
      for (const sent of underWay) sent.reject(broken());
    });
    world.after(Math.max(6, downMs), node, () => whenStoreIsUp(world, node, () => this.rise()));
  }
  rise() {
    this.isUp = this.isReady = true;
    this.lastArrival = this.lastReply = this.world.now;
    this.setStatus("ready");
    const { queued } = this;
    this.queued = [];
    for (const sent of queued) this.write(sent);
    this.emit("ready");
  }
  stall(ms, onlyReplies) {
    const until = this.world.now + ms;
    this.repliesStalledUntil = Math.max(this.repliesStalledUntil, until);
    if (!onlyReplies) this.stalledUntil = Math.max(this.stalledUntil, until);
    this.world.say(() => `${this.node.name} hears nothing for ${ms} ms${onlyReplies ? ", but is heard" : ""}`);
  }
  recover() {
    this.stalledUntil = this.repliesStalledUntil = 0;
  }
};
var SubscriberLink = class extends EventEmitter {
  constructor(world, node, kind, setStatus) {
    super();
    this.world = world;
    this.node = node;
    this.kind = kind;
    this.setStatus = setStatus;
    this.setMaxListeners(0);
    this.life = node.life;
  }
  world;
  node;
  kind;
  setStatus;
  isSubscriber = true;
  handlers = /* @__PURE__ */ new Map();
  /** The link is up, but no message comes through: as behind a proxy that has forgotten it. */
  isDeaf = false;
  isReady = false;
  isOpen = true;
  isUp = false;
  isClosed = false;
  hasOpened = false;
  connection = 0;
  lastMessage = 0;
  stalledUntil = 0;
  subscribed = /* @__PURE__ */ new Set();
  waiting = [];
  underWay = [];
  life;
  /** Connects; resolves when it has. */
  open() {
    this.life.links.add(this);
    return new Promise((resolve) => {
      this.world.after(this.world.latency(), this.node, () => void this.rise().then(resolve));
    });
  }
  close() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.leaveChannels();
    this.isOpen = this.isReady = false;
    this.setStatus("end");
    this.life.links.delete(this);
  }
  hear(channel, message) {
    const { world, connection } = this;
    if (this.isDeaf) {
      world.count("messages unheard");
      return;
    }
    this.lastMessage = Math.max(this.lastMessage, world.now + world.latency(), this.stalledUntil);
    world.at(this.lastMessage, this.node, () => {
      if (connection !== this.connection || this.isClosed) return;
      if (this.kind === "ioredis") this.emit("smessage", channel, message);
      else for (const listener of this.handlers.get(channel) ?? []) listener(message, channel);
    });
  }
  hasJoined(channel) {
    return this.subscribed.has(channel);
  }
  join(channel) {
    return this.command(async () => {
      await this.world.subscribe(channel, this);
      this.subscribed.add(channel);
    });
  }
  part(channel) {
    return this.command(async () => {
      this.subscribed.delete(channel);
      this.world.channels.get(channel)?.delete(this);
    });
  }
  command(run) {
    return new Promise((resolve, reject) => {
      const { world, node, connection } = this;
      if (!this.isUp) {
        this.waiting.push(() => this.command(run).then(resolve, reject));
        return;
      }
      const next = () => {
        this.lastMessage = Math.max(this.lastMessage, world.now + world.latency(), this.stalledUntil);
        return this.lastMessage;
      };
      const isOver = () => connection !== this.connection || this.isClosed || this.life.isDead;
      const arrival = world.at(next(), null, async () => {
        if (isOver()) return;
        await run();
        world.at(next(), node, () => connection === this.connection ? resolve() : reject(broken()));
      });
      arrival.isAwaited = true;
      this.underWay.push(reject);
    });
  }
  async rise() {
    const { world, node } = this;
    if (this.isClosed || this.life.isDead) return;
    if (world.storeBlockedUntil > world.now) {
      await new Promise((resolve) => whenStoreIsUp(world, node, resolve));
      return this.rise();
    }
    this.isUp = true;
    this.isDeaf = false;
    this.lastMessage = world.now;
    if (this.kind === "node-redis" && this.hasOpened)
      await Promise.all([...this.handlers.keys()].map((channel) => this.join(channel))).catch(() => {
      });
    if (this.isClosed || this.life.isDead || !this.isUp) return;
    this.hasOpened = true;
    this.isReady = true;
    this.setStatus("ready");
    this.emit("ready");
    const { waiting } = this;
    this.waiting = [];
    for (const go of waiting) go();
  }
  cut(why, downMs, isForGood = false) {
    const { world, node, underWay } = this;
    if (this.isClosed) return;
    world.say(() => `${node.name} loses its subscriber (${why})`);
    this.leaveChannels();
    this.connection++;
    this.isUp = this.isReady = false;
    this.setStatus("reconnecting");
    this.underWay = [];
    if (isForGood) return;
    world.after(world.network.between(0.1, 5), node, () => {
      this.emit(this.kind === "ioredis" ? "close" : "reconnecting");
      for (const reject of underWay) reject(broken());
    });
    world.after(Math.max(6, downMs), node, () => void this.rise());
  }
  stall(ms) {
    this.stalledUntil = this.world.now + ms;
  }
  recover() {
    this.stalledUntil = 0;
    this.isDeaf = false;
  }
  leaveChannels() {
    for (const channel of this.subscribed) this.world.channels.get(channel)?.delete(this);
    this.subscribed.clear();
  }
};
function createNodeRedisSubscriber(world, node) {
  const link = new SubscriberLink(world, node, "node-redis", () => {
  });
  const { handlers } = link;
  return Object.assign(link, {
    connect: () => link.open().then(() => link),
    destroy: () => link.close(),
    async sSubscribe(channel, listener) {
      const known = handlers.get(channel);
      handlers.set(channel, (known ?? /* @__PURE__ */ new Set()).add(listener));
      if (!known || !link.hasJoined(channel)) await link.join(channel);
    },
    async sUnsubscribe(channel, listener) {
      const known = handlers.get(channel);
      known?.delete(listener);
      if (known && known.size > 0) return;
      handlers.delete(channel);
      await link.part(channel);
    }
  });
}
function createIoredisSubscriber(world, node) {
  const link = new SubscriberLink(world, node, "ioredis", (status) => {
    link.status = status;
  });
  link.status = "connecting";
  void link.open();
  return Object.assign(link, {
    connect: async () => {
    },
    disconnect: () => link.close(),
    ssubscribe: (channel) => link.join(channel),
    sunsubscribe: (channel) => link.part(channel)
  });
}
function createClient(world, node, kind) {
  if (kind === "node-redis") {
    const link2 = new CommandLink(world, node, kind, () => {
    });
    return Object.assign(link2, {
      isOpen: true,
      sendCommand: (args) => link2.send(args),
      duplicate: () => createNodeRedisSubscriber(world, node)
    });
  }
  const link = new CommandLink(world, node, kind, (status) => {
    link.status = status;
  });
  link.status = "ready";
  return Object.assign(link, {
    call: (name, ...args) => link.send([name, ...args]),
    duplicate: () => createIoredisSubscriber(world, node)
  });
}

// test/simulation/node.ts
import { createHash as createHash2 } from "node:crypto";
var Timer = class {
  happening;
  isLive = true;
  unref = () => this;
  ref = () => this;
  hasRef = () => true;
  refresh = () => this;
  [Symbol.toPrimitive] = () => 0;
};
var MAX_WAIT = 2 ** 31 - 1;
function createLife(number) {
  let die = () => {
  };
  const died = new Promise((resolve) => {
    die = resolve;
  });
  return { number, isDead: false, died, die, links: /* @__PURE__ */ new Set() };
}
var SimulatedNode = class {
  constructor(name, world, load) {
    this.name = name;
    this.world = world;
    this.library = load(this.createPlatform());
  }
  name;
  world;
  /** ms that this node's wall clock is ahead of the world. */
  wallOffset = 0;
  /** It stands still until then while time goes on. */
  pausedUntil = 0;
  life = createLife(0);
  library;
  /** A new life, without any state of the one before. */
  revive() {
    this.wallOffset = 0;
    this.pausedUntil = 0;
    this.life = createLife(this.life.number + 1);
    return this.life;
  }
  kill() {
    const { life } = this;
    for (const link of life.links) link.cut("the node died", 0, true);
    life.isDead = true;
    this.world.say(() => `${this.name} dies`);
    life.die(DIED);
  }
  pause(ms) {
    this.pausedUntil = Math.max(this.pausedUntil, this.world.now + ms);
    this.world.say(() => `${this.name} stands still for ${ms} ms`);
  }
  createPlatform() {
    const { world } = this;
    const startTimer = (run, ms, args, isRepeated) => {
      const timer = new Timer();
      const wait = Math.max(1, Math.min(MAX_WAIT, Number(ms) || 0));
      const arm = () => {
        timer.happening = world.after(
          wait,
          this,
          () => {
            if (!timer.isLive) return;
            if (isRepeated) arm();
            else timer.isLive = false;
            run(...args);
          },
          Priority.first
        );
      };
      arm();
      return timer;
    };
    const clearTimer = (timer) => {
      if (!(timer instanceof Timer)) return;
      timer.isLive = false;
      if (timer.happening) timer.happening.isLive = false;
    };
    return {
      setTimeout: (run, ms, ...args) => startTimer(run, ms, args, false),
      setInterval: (run, ms, ...args) => startTimer(run, ms, args, true),
      setImmediate: (run, ...args) => startTimer(run, 0, args, false),
      clearTimeout: clearTimer,
      clearInterval: clearTimer,
      clearImmediate: clearTimer,
      performanceNow: () => world.now + 1e3,
      dateNow: () => Math.floor(EPOCH + world.now + this.wallOffset),
      random: () => world.random(),
      randomUUID: () => world.randomUUID(),
      getRandomValues(bytes) {
        for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(world.random() * 256);
        return bytes;
      },
      async digest(algorithm, bytes) {
        const digest = createHash2(algorithm.replace("-", "").toLowerCase()).update(bytes).digest();
        return digest.buffer.slice(digest.byteOffset, digest.byteOffset + digest.byteLength);
      }
    };
  }
};

// test/simulation/stage.ts
var DEPLOYMENT = "simulated";
var UNREACHABLE = /unavailable|closed|timeout|the time for this answer is over/;
var Stage = class {
  constructor(world, history, load) {
    this.world = world;
    this.history = history;
    const { config, userIds } = history;
    this.nodes = Array.from({ length: config.nodes }, (_, i) => new SimulatedNode("ABC"[i], world, load));
    this.observer = new SimulatedNode("observer", world, load);
    world.nodes = [...this.nodes, this.observer];
    this.clients = userIds.flatMap(
      (user_id) => Array.from({ length: config.clientsPerUser }, (_, i) => ({
        user_id,
        client_id: `c${i}`,
        instances: 0,
        instance_id: null,
        former: null
      }))
    );
  }
  world;
  history;
  nodes;
  /** The process that only looks. */
  observer;
  clients;
  /** Sessions that may be open, by id. */
  sessions = /* @__PURE__ */ new Map();
  /** Nobody begins anything new after it, and a node that died stays dead. */
  isOver = false;
  running = /* @__PURE__ */ new Map();
  counter = 0;
  get config() {
    return this.history.config;
  }
  get isMemory() {
    return this.config.store === "memory";
  }
  violate = (rule, about) => {
    const { violations } = this.history;
    if (violations.length < 50) violations.push({ rule, about, at: Math.round(this.world.now) });
    this.world.say(() => `VIOLATION ${rule}: ${about}`);
  };
  dice(name) {
    return createDice(this.config.seed, name);
  }
  unique(prefix) {
    return `${prefix}${this.counter++}`;
  }
  living() {
    return this.nodes.filter(({ life }) => !life.isDead);
  }
  anyNode(dice) {
    const living = this.living();
    return living.length > 0 ? dice.pick(living) : null;
  }
  runningOn({ life }) {
    return this.running.get(life);
  }
  reporter = (node) => (error) => {
    const { code, message = `${error}`, stack } = error ?? {};
    if (code === "unavailable" || UNREACHABLE.test(message) || this.config.profile === "loss") return;
    this.history.reported.push({
      node,
      message: `${code ?? ""} ${message}`.slice(0, 200),
      stack: stack?.split("\n")[1]?.trim()
    });
  };
  clientOf(node) {
    return createClient(this.world, node, this.config.clientKinds[world_index(this, node)]);
  }
  start(node) {
    const { config, history, world } = this;
    const life = node.revive();
    const { library } = node;
    const onError = this.reporter(node.name);
    const shared = { deploymentId: DEPLOYMENT, shards: config.shards, onError };
    const options = {
      connections: { heartbeatTimeoutMs: config.heartbeatTimeoutMs, retentionMs: 6e5 },
      rpc: { defaultTimeoutMs: 2e4 },
      deduplicator: { ttlMs: config.dedupTtlMs },
      dispatcher: {
        ackTimeoutMs: config.ackTimeoutMs,
        maxAttempts: config.maxAttempts,
        capacity: config.capacity,
        retentionMs: 6e5
      },
      contexts: { ttlMs: 1e4 },
      browserWindows: { ttlMs: 1e4 },
      bus: { queueSize: 5 }
    };
    const client = this.isMemory ? null : this.clientOf(node);
    const facilities = this.isMemory ? library.createMemoryFacilities(options) : library.createRedisFacilities({ client, nodeId: node.name, ...shared, ...options });
    const idempotency = this.isMemory ? library.createIdempotencyStore() : library.createRedisIdempotencyStore({ client, ...shared });
    const connector = library.createDispatchConnector({ ...facilities, onError: null });
    const authenticate = (request) => {
      const user_id = request.headers.get("x-user");
      return user_id ? { user_id } : null;
    };
    const { sites, sessions, subscriptions, bus, ingest } = facilities;
    const relay = library.createCooperativeSiteRouter({
      sites,
      sessions,
      subscriptions,
      bus,
      ingest,
      connector,
      idempotency,
      policy: library.createSessionPolicy({ sessions }),
      authenticateHost: authenticate,
      authenticateViewer: authenticate,
      onError
    });
    this.running.set(life, { facilities, relay, connector, idempotency });
    history.lives.push({ node: node.name, number: life.number, to: Number.POSITIVE_INFINITY, life });
    world.say(() => `${node.name} starts, life ${life.number}`);
  }
  kill(node) {
    node.kill();
    const life = this.history.lives.find(({ life: life2 }) => life2 === node.life);
    if (life) life.to = this.world.now;
  }
  /** The diagnostics router: in memory beside the facilities, else in the observer's process. */
  createRouter() {
    const { observer, world } = this;
    observer.revive();
    const [node] = this.nodes;
    const { library } = this.isMemory ? node : observer;
    const onError = this.reporter("observer");
    const composition = this.isMemory ? library.memoryComposition(this.runningOn(node).facilities) : library.redisComposition({ client: this.clientOf(observer), deploymentId: DEPLOYMENT, onError });
    const router = library.createDiagnosticsRouter({ ...composition, auth: library.noopAuth(), onError });
    return async (path) => {
      const from = world.now;
      const response = await router(new Request(`http://observer${path}`));
      return { path, from, to: world.now, status: response.status, body: await response.json() };
    };
  }
  /** Calls something on a node and records what came of it. */
  async call(node, what, details, run) {
    const { world, history } = this;
    while (node.pausedUntil > world.now) await world.sleep(node.pausedUntil - world.now + 0.01);
    const { life } = node;
    const operation = {
      i: history.operations.length,
      what,
      node: node.name,
      life: life.number,
      ...details,
      call: world.now,
      ret: Number.POSITIVE_INFINITY,
      state: "open"
    };
    if (life.isDead) return { ...operation, state: "unsent" };
    history.operations.push(operation);
    try {
      const running = this.runningOn(node);
      const value = await Promise.race([
        Promise.resolve().then(() => run(running.facilities, running, node.library)),
        life.died
      ]);
      if (value === DIED) operation.state = "died";
      else Object.assign(operation, { state: "ok", value, ret: world.now });
    } catch (error) {
      const { code, outcome, stack } = error ?? {};
      Object.assign(operation, { state: code ? "refused" : "error", code, outcome, error, ret: world.now });
      if (!code)
        this.violate("error", `${what} on ${node.name}: ${stack?.split("\n").slice(0, 3).join(" | ") ?? error}`);
    }
    world.say(() => {
      const answer = operation.state === "ok" ? brief(operation.value) : `${operation.code ?? ""} ${operation.outcome ?? ""}`;
      return `${node.name} ${what} ${JSON.stringify(details)} -> ${operation.state} ${answer} [since ${operation.call.toFixed(1)}]`;
    });
    return operation;
  }
  actors = [];
  /** Something that goes on beside everything else, with dice of its own. */
  act(name, actor) {
    this.actors.push(
      actor(this.dice(name)).catch((error) => this.violate("simulator", `${name}: ${error.stack}`))
    );
  }
  allActed() {
    return Promise.all(this.actors);
  }
};
var world_index = (stage, node) => node === stage.observer ? 3 : stage.nodes.indexOf(node);
function brief(value) {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 160);
  } catch {
    return String(value);
  }
}

// test/simulation/history.ts
var DAY = 864e5;
var SETTLE_MS = 8500;
var beginHistory = (config) => ({
  config,
  userIds: ["ada", "bob", "eve"].slice(0, config.users),
  operations: [],
  handovers: [],
  heard: [],
  viewers: [],
  runs: [],
  lives: [],
  pauses: [],
  faults: [],
  losses: [],
  hasClockSteps: false,
  wasFull: false,
  reported: [],
  probes: [],
  reading: null,
  hasFinished: false,
  quietAt: 0,
  left: null,
  violations: []
});
async function heal(stage) {
  const { world } = stage;
  stage.isOver = true;
  if (!stage.isMemory) await world.setFull(false);
  world.loseReply = () => false;
  world.storeBlockedUntil = 0;
  world.slowTail = 20;
  await world.run(Math.max(world.now, ...stage.living().map(({ pausedUntil }) => pausedUntil)) + 10);
  for (const node of stage.nodes) {
    if (node.life.isDead) stage.start(node);
    for (const link of node.life.links) link.recover();
  }
}
function probe(stage) {
  const { world, history, nodes } = stage;
  for (const [i, { user_id, client_id }] of stage.clients.entries()) {
    const own = { user_id, client_id };
    const instance = { ...own, instance_id: `${user_id}-${client_id}-probe` };
    const node = nodes[i % nodes.length];
    const other = nodes[(i + 1) % nodes.length];
    const command_id = `probe-${user_id}-${client_id}`;
    const result = { isReady: false, command_id, commands: [] };
    history.probes.push(result);
    const deliver = (command) => {
      const { command_id: command_id2, attempt, action, payload } = command;
      const handover = { command_id: command_id2, attempt, action, payload: JSON.stringify(payload), at: world.now, node: node.name };
      history.handovers.push({ ...instance, ...handover, plan: "probe", done: world.now });
      result.commands.push(command_id2);
      const end = { state: "resulted", acknowledge: true };
      void stage.call(
        node,
        "settle",
        { ...instance, command_id: command_id2, end: end.state, ...end },
        ({ dispatcher }) => dispatcher.settle({ ...instance, command_id: command_id2, ...end })
      );
    };
    const run = async () => {
      const connected = await stage.call(
        node,
        "connect",
        instance,
        ({ connections }) => connections.connect({ ...instance, client_type: "console" })
      );
      const attached = await stage.call(
        node,
        "attach",
        instance,
        ({ dispatcher }) => dispatcher.attach(instance, deliver)
      );
      result.isReady = connected.state === "ok" && attached.state === "ok";
      if (!result.isReady) stage.violate("probe_refused", `${user_id}/${client_id}: ${connected.code} ${attached.code}`);
      const input = { ...own, command_id, action: "sync", scope_id: `probe-${user_id}`, deadlineMs: 7e3 };
      const details = { ...input, max: stage.config.maxAttempts };
      result.operation = await stage.call(other, "dispatch", details, ({ dispatcher }) => dispatcher.dispatch(input));
    };
    run().catch((error) => stage.violate("simulator", error.stack));
  }
}
async function closeAll(stage) {
  const { world, history, config } = stage;
  let closed = 0;
  const closing = stage.nodes.map(async (node) => {
    for (const { subscription, node: name } of history.heard) if (name === node.name) subscription.close();
    const { relay, facilities } = stage.runningOn(node);
    await relay.close();
    const ended = await facilities.close();
    if (ended?.cut > 0 && config.profile !== "loss") stage.violate("close_cut", `${node.name} ${JSON.stringify(ended)}`);
    closed++;
  });
  Promise.all(closing).catch((error) => stage.violate("close_threw", error.stack));
  await world.run(world.now + 6e3);
  if (closed < stage.nodes.length)
    stage.violate("close_hung", `${stage.nodes.length - closed} nodes are open after 6 s`);
}
async function forget(stage, ask) {
  const { world, history } = stage;
  const [node] = stage.nodes;
  stage.start(node);
  const endEverything = async () => {
    const { body } = await ask("/sessions?limit=500");
    for (const { session_id, state } of body.items ?? [])
      if (!["closed", "expired"].includes(state))
        await stage.call(node, "session.end", { session_id }, ({ sessions }) => sessions.close(session_id));
    for (const user of history.userIds)
      await stage.call(node, "site.delete", { user }, ({ sites }) => sites.delete(siteOf(user)));
  };
  endEverything().catch((error) => stage.violate("simulator", error.stack));
  await world.run(world.now + 3e3);
  for (const one of stage.nodes) one.kill();
  world.skip(31 * DAY);
  stage.start(node);
  await world.run(world.now + 6e3);
  void stage.runningOn(node).facilities.close();
  await world.run(world.now + 3e3);
  world.skip(2 * 36e5);
  history.left = await remaining(world);
  judgeLeft(history, stage.violate);
}
var SIZES = {
  hash: "HLEN",
  zset: "ZCARD",
  set: "SCARD",
  list: "LLEN",
  string: "STRLEN",
  stream: "XLEN"
};
async function remaining({ store: { io } }) {
  const keys = [];
  let cursor = "0";
  do {
    const [next, page] = await io.call(["SCAN", cursor, "COUNT", "1000"]);
    cursor = next;
    for (const key of page) {
      if (!await io.call(["EXISTS", key])) continue;
      const type = String(await io.call(["TYPE", key]));
      keys.push(`${key} (${type} of ${await io.call([SIZES[type] ?? "STRLEN", key])})`);
    }
  } while (cursor !== "0");
  return keys.sort();
}
async function runHistory(config, load, store, isTraced = false) {
  const world = new World(config.seed, store, isTraced);
  world.slowTail = config.slowTailMs;
  if (store) await world.wipeStore();
  const history = beginHistory(config);
  const stage = new Stage(world, history, load);
  const endsAt = config.seconds * 1e3;
  for (const node of stage.nodes) stage.start(node);
  const ask = stage.createRouter();
  actAsClients(stage, endsAt);
  actAsHosts(stage, endsAt);
  actAroundSites(stage, endsAt);
  actAsOperator(stage, endsAt, ask);
  if (store) actAsFate(stage, endsAt);
  await world.run(endsAt);
  await heal(stage);
  void stage.allActed().then(() => {
    history.hasFinished = true;
  });
  await world.run(world.now + 5500);
  for (let i = 0; i < 15 && !history.hasFinished; i++) await world.run(world.now + 1e3);
  probe(stage);
  await world.run(world.now + SETTLE_MS);
  history.quietAt = world.now;
  readAll(stage, ask).then(
    (reading) => {
      history.reading = reading;
    },
    (error) => stage.violate("simulator", error.stack)
  );
  await world.run(world.now + 5e3);
  if (!history.reading) stage.violate("reading_hung", "the last reading did not end within 5 s of a calm world");
  for (const heard of history.heard) {
    const { subscription } = heard;
    if (subscription.closed || heard.final) continue;
    heard.final = { ...subscription.position, pending: subscription.pending };
    heard.isOpenAtEnd = true;
  }
  judge(history, stage.violate);
  await closeAll(stage);
  if (config.forgets) await forget(stage, ask);
  for (const node of world.nodes) {
    node.life.isDead = true;
    node.life.die(DIED);
  }
  await turn();
  return { history, world, digest: world.digest(history.operations.map(summarise)) };
}
var summarise = ({ what, node, call, ret, state, code }) => [what, node, call, ret, state, code];

// test/simulation/simulate.ts
var USAGE = `usage: npm run simulate -- [--store memory|redis|redis-sharded] [--seed N [--trace]] [--from N] [--minutes N] [--count N] [--profile NAME]
       npm run simulate -- --defects PART-OF-NAME [--count N]`;
function readOptions(args) {
  const options = {};
  for (let i = 0; i < args.length; i++) {
    const name = args[i]?.replace(/^--/, "") ?? "";
    if (!["store", "seed", "trace", "from", "minutes", "count", "profile", "defects"].includes(name))
      throw new Error(USAGE);
    options[name] = name === "trace" ? "yes" : args[++i] ?? "";
  }
  return options;
}
async function findDefects(names, count) {
  const store = missingForStore().length > 0 ? null : await startStore();
  let alive = 0;
  const find = async (defect) => {
    if (defect.store !== "memory" && !store) return "not tried: this machine has no store for it";
    const load = await bundleLibrary(plant(defect));
    const began = performance.now();
    for (let seed = defect.seed; seed < defect.seed + count; seed++) {
      const config = configOf(seed, defect.store, defect.profile ? { profile: defect.profile } : {});
      const { history } = await runHistory(config, load, defect.store === "memory" ? null : store);
      const rules = [...new Set(history.violations.map(({ rule }) => rule))];
      const seconds = ((performance.now() - began) / 1e3).toFixed(1);
      if (rules.some((rule) => defect.rules.includes(rule))) return `seed ${seed}, ${seconds} s: ${rules.join(", ")}`;
      if (rules.length > 0) console.log(`  ${defect.name}: seed ${seed} breaks only ${rules.join(", ")}`);
    }
    alive++;
    return "NOT FOUND";
  };
  try {
    for (const defect of DEFECTS.filter(({ name }) => name.includes(names)))
      console.log(`${defect.name}: ${await find(defect)}`);
  } finally {
    store?.stop();
  }
  return alive === 0 ? 0 : 1;
}
async function main(args) {
  const options = readOptions(args);
  if (options.defects !== void 0) return findDefects(options.defects, Number(options.count ?? 60));
  const kind = options.store ?? "redis";
  const missing = kind === "memory" ? [] : missingForStore();
  if (missing.length > 0) throw new Error(`this store needs ${missing.join(" and ")}`);
  const over = options.profile ? { profile: options.profile } : {};
  const load = await bundleLibrary();
  const store = kind === "memory" ? null : await startStore();
  const endsAt = performance.now() + Number(options.minutes ?? 1) * 6e4;
  const began = process.cpuUsage();
  let seed = Number(options.seed ?? options.from ?? Math.floor(Math.random() * 1e9));
  let histories = 0;
  let broken2 = 0;
  try {
    for (; histories < Number(options.count ?? Number.POSITIVE_INFINITY); seed++) {
      const { history, world, digest } = await runHistory(configOf(seed, kind, over), load, store, !!options.trace);
      histories++;
      if (options.trace) console.log(world.trace.join("\n"));
      if (history.violations.length > 0) broken2++;
      for (const { rule, about, at } of history.violations.slice(0, options.seed ? 50 : 3))
        console.log(`seed ${seed} (${history.config.profile}): ${rule} at ${at} ms: ${about}`);
      if (options.seed) {
        const { operations, handovers, faults, viewers } = history;
        console.log(`seed ${seed}: digest ${digest}`, { ...history.config, faults: faults.length });
        console.log({
          operations: operations.length,
          commands: world.commands,
          handovers: handovers.length,
          viewers: viewers.length,
          ...world.stats
        });
        break;
      }
      if (performance.now() > endsAt) break;
    }
  } finally {
    store?.stop();
  }
  const { user, system } = process.cpuUsage(began);
  const perMinute = Math.round(histories / (user + system) * 6e7);
  console.log(`${histories} histories, ${broken2} with a broken rule; ${perMinute} histories a CPU minute`);
  return broken2 === 0 ? 0 : 1;
}
export {
  main
};
