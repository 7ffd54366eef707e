// A replica of BullMQ for the comparison of beats: it does what beat/replica.go does for the other peers.
//
// Each replica upserts the same job schedulers, "instead of 'add' to simplify management of recurring jobs, especially in production
// deployments" (https://docs.bullmq.io/guide/job-schedulers). A worker closes at SIGTERM, as
// https://docs.bullmq.io/guide/workers/graceful-shutdown says. A scheduler that a release drops stays in Redis until somebody removes it
// (https://docs.bullmq.io/guide/job-schedulers/manage-job-schedulers), so the release does.
import { Queue, Worker } from 'bullmq';

const replica = JSON.parse(process.env.ONBEAT_BEAT_REPLICA);
const tell = async (name, id, takes) => {
  const answer = await fetch(`${replica.recorder}?for=${takes}ns`, {
    method: 'POST',
    headers: { 'Onbeat-Schedule': name, 'Onbeat-Task-Id': id, 'Onbeat-Instance': replica.name, 'Onbeat-Release': String(replica.release) },
  });
  if (!answer.ok) throw new Error(`the recorder says ${answer.status}`);
};

const [host, port] = replica.store.split(':');
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const jobs = new Map(replica.jobs.map((j) => [j.name, j]));
const worker = new Worker('beat', async ({ name, id }) => {
  const j = jobs.get(name);
  if (j) await tell(name, id, j.takes);
}, { connection, concurrency: 20 });
const queue = new Queue('beat', { connection, defaultJobOptions: { removeOnComplete: { count: 100 } } });
for (const one of [worker, queue]) one.on('error', (err) => console.error(err.message));

process.on('SIGTERM', async () => {
  await worker.close();
  await queue.close();
  process.exit(0);
});

for (const { name, every, wall } of replica.jobs) {
  const when = wall ? { pattern: '* * * * * *' } : { every: every / 1e6 };
  await queue.upsertJobScheduler(name, when, { name, data: {} });
}
for (const name of replica.gone ?? []) await queue.removeJobScheduler(name);
await worker.waitUntilReady();
await tell('ready', '', 0);
