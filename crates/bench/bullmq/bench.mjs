// BullMQ doing the work of Ringback: `node bench.mjs fill|pace|work '{"port":…}'`.
//
// fill submits jobs in bulk and ends. pace submits them one by one at an even pace and ends. work delivers jobs until it
// is killed: it POSTs each job's body to its URL over kept connections, with the headers that the receiver of the
// benchmarks counts by.
import http from 'node:http';
import { Queue, Worker } from 'bullmq';

const QUEUE = 'pay.notify';
const PER_CALL = 1000;

const [verb, options] = [process.argv[2], JSON.parse(process.argv[3])];
const connection = { host: '127.0.0.1', port: options.port };

// The same job as that of Ringback: body, URL, id and topic (here the queue).
function job(number, { url, at, delay, filler }) {
  const digits = String(number).padStart(16, '0');
  const now = Date.now();
  const data = { url, body: { filler, order: digits, status: 'PAID' } };
  if (at !== undefined) data.due = at;
  const wait = at === undefined ? delay : Math.max(0, at - now);
  const opts = { jobId: `order-${digits}`, removeOnComplete: true, timestamp: now };
  if (wait > 0) opts.delay = wait;
  return { name: 'notify', data, opts };
}

async function fill({ first, jobs, url, filler, from, rate, spread }) {
  const queue = new Queue(QUEUE, { connection });
  for (let done = 0; done < jobs; done += PER_CALL) {
    const bulk = [];
    for (let n = done; n < Math.min(jobs, done + PER_CALL); n += 1) {
      const at = from === undefined ? undefined : from + Math.floor((n * 1000) / rate);
      const delay = spread === undefined ? 0 : 3_600_000 + Math.floor((n * spread) / jobs);
      bulk.push(job(first + n, { url, at, delay, filler }));
    }
    await queue.addBulk(bulk);
  }
  await queue.close();
}

// Each job at its time, whatever the ones before it take.
async function pace({ first, jobs, url, filler, rate, delay }) {
  const queue = new Queue(QUEUE, { connection });
  const start = Date.now();
  const added = [];
  for (let n = 0; n < jobs; n += 1) {
    const early = start + (n * 1000) / rate - Date.now();
    if (early > 1) await new Promise((go) => setTimeout(go, early));
    const one = job(first + n, { url, delay, filler });
    added.push(queue.add(one.name, one.data, one.opts));
  }
  await Promise.all(added);
  await queue.close();
}

function work({ concurrency }) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: concurrency });
  const post = ({ id, data }) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify(data.body);
      const headers = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'ringback-job-id': id,
      };
      if (data.due !== undefined) headers['ringback-due-at'] = new Date(data.due).toISOString();
      const request = http.request(data.url, { method: 'POST', agent, headers }, (answer) => {
        answer.resume();
        answer.on('end', () => (answer.statusCode < 300 ? resolve() : reject(new Error(`${answer.statusCode}`))));
        answer.on('error', reject);
      });
      request.on('error', reject);
      request.end(body);
    });
  const worker = new Worker(QUEUE, post, { connection, concurrency });
  worker.on('error', (error) => console.error(error));
  worker.on('failed', (_, error) => console.error(error));
}

const ending = { fill, pace };
if (verb in ending) await ending[verb](options);
else work(options);
