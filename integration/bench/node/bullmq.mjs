// The BullMQ side of the bench: it does what the s*.go files do for the other peers, and prints its figures.
import { createInterface } from 'node:readline';
import { Queue, Worker } from 'bullmq';
import Redis from 'ioredis';

const job = JSON.parse(process.env.ONBEAT_BENCH_JOB);
const { params } = job;
const print = (what, then) => process.stdout.write(`${JSON.stringify(what)}\n`, then);

// Calls counts the commands sent to Redis; those inside scripts are not among them.
let calls = 0;
const send = Redis.prototype.sendCommand;
Redis.prototype.sendCommand = function count(...args) {
  calls++;
  return send.apply(this, args);
};

const [host, port] = job.redis.split(':');
const redisOptions = { host, port: Number(port), maxRetriesPerRequest: null };
const options = { connection: redisOptions };
const queue = new Queue('bench', { ...options, defaultJobOptions: { removeOnComplete: true } });
await queue.waitUntilReady();

const off = 10_000_000;
const data = (n, bytes) => {
  const empty = '{"n":10000000,"p":""}'.length;
  return { n: off + n, p: 'x'.repeat(Math.max(bytes - empty, 0)) };
};
const jobOf = ({ n, bytes, due }) => ({
  name: 'bench', data: data(n, bytes), opts: due ? { delay: Math.max(due - Date.now(), 0) } : {},
});

const clock = () => performance.now();

// used reads what Redis has used so far, as redis.go does.
const redis = new Redis(redisOptions);
async function used() {
  const v = {};
  for (const line of (await redis.info()).split('\r\n')) {
    const [name, value] = line.split(':');
    v[name] = Number(value);
  }
  return {
    cpu: 1e6 * (v.used_cpu_user + v.used_cpu_sys + v.used_cpu_user_children + v.used_cpu_sys_children),
    commands: v.total_commands_processed,
    bytes: v.used_memory - v.mem_clients_normal - v.mem_aof_buffer - v.used_memory_scripts_eval,
  };
}
let from;
async function begin() {
  globalThis.gc?.();
  const server = await used();
  from = { server, calls, cpu: process.cpuUsage(), at: clock() };
}
// end says what the time since begin cost.
async function end() {
  const cpu = process.cpuUsage(from.cpu);
  const cost = { seconds: (clock() - from.at) / 1e3, cpu_us: cpu.user + cpu.system, allocs: -1, calls: calls - from.calls };
  const now = await used();
  const server = Object.fromEntries(Object.entries(now).map(([name, v]) => [name, v - from.server[name]]));
  return { ...cost, server };
}
const perTask = ({ cpu_us: cpu, calls: sent, server }, n) => ({
  server_cpu_us_per_task: server.cpu / n, commands_per_task: server.commands / n, calls_per_task: sent / n, client_cpu_us_per_task: cpu / n,
});

async function spread(n, callers, part, fn) {
  let next = 0;
  await Promise.all(Array.from({ length: callers }, async () => {
    while (next < n) {
      const start = next;
      next += part;
      await fn(start, Math.min(start + part, n));
    }
  }));
}
const bulk = (tasks, callers = 4, batch = 500) => spread(tasks.length, callers, batch, (a, b) => queue.addBulk(tasks.slice(a, b).map(jobOf)));
const numbered = (n, bytes, due) => Array.from({ length: n }, (_, i) => ({ n: i, bytes, due: due?.(i) }));

function work(handle, { concurrency = 1, servers = 1 } = {}) {
  const workers = Array.from({ length: servers }, () => new Worker('bench', async (j) => { handle(j); }, {
    ...options, concurrency, removeOnComplete: { count: 0 },
  }));
  for (const w of workers) w.on('error', (err) => { throw err; });
  return () => Promise.all(workers.map((w) => w.close()));
}

const patience = 60_000;
// tally counts how often each task is handled, and resolves when n were.
function tally(n) {
  const t = { counts: new Uint8Array(n), handled: 0, last: 0, first: 0, strange: 0 };
  let done;
  const all = new Promise((resolve) => { done = resolve; });
  t.handle = (i) => {
    if (!(i >= 0 && i < n)) { t.strange++; return; }
    t.counts[i]++;
    t.handled++;
    t.last = clock();
    if (t.handled === 1) t.first = t.last;
    if (t.handled === n) done();
  };
  t.wait = async () => {
    for (let seen = -1; ;) {
      let timer;
      const quiet = new Promise((resolve) => { timer = setTimeout(() => resolve('quiet'), patience); });
      const what = await Promise.race([all, quiet]);
      clearTimeout(timer);
      if (what !== 'quiet') return;
      if (t.handled === seen) throw new Error(`only ${t.handled} of ${n} tasks were handled`);
      seen = t.handled;
    }
  };
  t.once = () => {
    if (t.strange) throw new Error(`${t.strange} runs of tasks that nobody added`);
    const wrong = t.counts.reduce((k, c) => k + (c !== 1), 0);
    if (wrong) throw new Error(`not exactly once: ${wrong} of ${n} tasks`);
  };
  return t;
}

async function remaining() {
  const c = await queue.getJobCounts('wait', 'waiting', 'active', 'delayed', 'prioritized', 'failed');
  return c.waiting + c.active + c.delayed + c.prioritized + c.failed;
}

async function left(want) {
  const n = await remaining();
  if (n !== want) throw new Error(`${n} tasks are left, not ${want}`);
}

function quantiles(metrics, name, list) {
  list.sort((a, b) => a - b);
  for (const at of [50, 90, 99, 99.9]) {
    metrics[`${name}_p${at}_ms`] = list[Math.min(Math.floor((at / 100) * list.length), list.length - 1)];
  }
  metrics[`${name}_max_ms`] = list.at(-1);
  metrics.early = list.filter((d) => d < 0).length;
}

const wall = () => performance.timeOrigin + performance.now();
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const far = 30 * 24 * 3600e3;

const scenarios = {
  async S1() {
    const due = Date.now() + far;
    await queue.addBulk([{ n: 0, bytes: params.payload_bytes, due }].map(jobOf));
    const tasks = numbered(params.tasks, params.payload_bytes, (i) => due + (i % 100_000));
    const took = [];
    await begin();
    if (params.how === 'one') {
      await spread(tasks.length, params.callers, 16, async (a, b) => {
        for (const t of tasks.slice(a, b)) {
          const { name, data: d, opts } = jobOf(t);
          const at = performance.now();
          await queue.add(name, d, opts);
          took.push(performance.now() - at);
        }
      });
    } else {
      await bulk(tasks, params.callers, params.batch);
    }
    const cost = await end();
    await left(params.tasks + 1);
    const metrics = { ...perTask(cost, params.tasks), tasks_per_s: params.tasks / cost.seconds, bytes_per_task: cost.server.bytes / params.tasks };
    if (took.length) quantiles(metrics, 'call', took);
    return metrics;
  },
  async S2() {
    await bulk(numbered(params.tasks, params.payload_bytes));
    const t = tally(params.tasks);
    await begin();
    const close = work((j) => t.handle(j.data.n - off), params);
    await t.wait();
    const cost = await end();
    await close();
    t.once();
    await left(0);
    return { ...perTask(cost, params.tasks), tasks_per_s: params.tasks / (t.last - from.at) * 1e3, first_ms: t.first - from.at };
  },
  S2t: () => scenarios.S2(), // job.data is decoded in any case
  async S3() {
    const n = params.rate * params.seconds;
    const start = Math.floor(wall()) + 3000 + n / 8;
    const tasks = numbered(n, params.payload_bytes, () => Math.floor(start) + Math.floor(Math.random() * params.seconds * 1e3));
    await bulk(tasks);
    if (start - wall() < 1000) throw new Error('adding the tasks took so long that the first are due');
    const t = tally(n);
    const late = new Float64Array(n);
    await begin();
    const close = work((j) => {
      const i = j.data.n - off;
      late[i] = wall() - tasks[i].due;
      t.handle(i);
    }, params);
    await t.wait();
    await close();
    const metrics = perTask(await end(), n);
    quantiles(metrics, 'lag', Array.from(late));
    t.once();
    await left(0);
    return metrics;
  },
  async S4() {
    const beats = [];
    const close = work((j) => beats.push([j.data.job, Number(j.id.split(':').at(-1)), wall()]), { concurrency: Math.max(100, params.jobs) });
    for (let i = 0; i < params.jobs; i++) await queue.upsertJobScheduler(`job-${i}`, { every: 1000 }, { name: 'beat', data: { job: i } });
    while (!beats.length) await sleep(10);
    await sleep(2000);
    const since = Math.floor(wall() / 1000) * 1000 + 1000;
    await sleep(params.seconds * 1e3);
    const until = Math.floor(wall() / 1000) * 1000;
    await sleep(500);
    const slots = Array.from({ length: params.jobs }, () => new Map());
    const late = [];
    for (const [i, slot, at] of beats) {
      if (slot < since || slot >= until) continue;
      slots[i].set(slot, (slots[i].get(slot) ?? 0) + 1);
      late.push(at - slot);
    }
    const metrics = { missed: 0, doubled: 0 };
    for (const s of slots) {
      metrics.missed += (until - since) / 1000 - s.size;
      for (const k of s.values()) metrics.doubled += k - 1;
    }
    if (late.length) quantiles(metrics, 'jitter', late);
    await close();
    return metrics;
  },
  async S5() {
    const t = tally(1);
    const close = work((j) => t.handle(j.data.n - off), { concurrency: 10, servers: params.instances });
    await bulk(numbered(1, 64));
    await t.wait();
    await sleep(Math.min(params.seconds, 5) * 1e3);
    await begin();
    await sleep(params.seconds * 1e3);
    const cost = await end();
    t.once();
    await close();
    const each = cost.seconds * params.instances;
    return {
      calls_per_s_per_instance: cost.calls / each, commands_per_s_per_instance: cost.server.commands / each,
      server_cpu_ms_per_s: cost.server.cpu / 1e3 / cost.seconds, client_cpu_ms_per_s: cost.cpu_us / 1e3 / cost.seconds,
    };
  },
  async S8() {
    if (!job.part) await bulk(numbered(params.tasks, params.payload_bytes));
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    print({});
    await lines.next();
    const t = tally(params.tasks);
    await begin();
    const close = work((j) => t.handle(j.data.n - off), params);
    while (await remaining()) await sleep(20);
    await close();
    const cost = await end();
    return { ...cost, seconds: (t.last - from.at) / 1e3, handled: Buffer.from(t.counts).toString('base64') };
  },
};

print(await scenarios[job.scenario](), () => process.exit(0)); // not before all of it is written
