// Live events of jobs, by one stream for all tabs of a browser, since a browser opens six connections to a host. The
// tab that holds a lock reads the stream and passes batches on to the others. A hidden tab does neither.

import { BASE } from './base.js';
import { Collector } from './batch.js';
import { redraw } from './redraw.js';
import { session } from './session.js';
import { eventsOf } from './sse.js';

const BATCH_MS = 500;
/** How often the tab that reads sends a message, and after how long without one the others regard it as gone. */
const ALIVE_MS = 2000;
const SILENT_MS = 6000;
/** How long to wait before the stream is asked for again. */
const AGAIN_MS = 3000;

/** @typedef {'connecting' | 'live' | 'polling' | 'off'} Mode */

/** @type {Set<(batch: import('./batch.js').Batch) => void>} */
const listeners = new Set();
let mode = /** @type {Mode} */ ('off');
let isReader = false;
let heardAt = 0;
let current = new AbortController();
/** @type {BroadcastChannel | null} */
let channel = null;

export const live = {
  /** `live` while events come, `polling` while they do not, `connecting` before either is known, `off` while hidden. */
  get mode() {
    return mode;
  },

  /**
   * Calls back with each batch of events.
   * @param {(batch: import('./batch.js').Batch) => void} listener @param {AbortSignal} [signal] ends the calls
   */
  listen(listener, signal) {
    listeners.add(listener);
    signal?.addEventListener('abort', () => listeners.delete(listener));
  },

  /** Starts reading events, and starts anew when the caller or the visibility of the tab changes. */
  start() {
    session.watch(restart);
    document.addEventListener('visibilitychange', restart);
    setInterval(look, ALIVE_MS);
    restart();
  },
};

function restart() {
  current.abort();
  channel?.close();
  channel = null;
  current = new AbortController();
  heardAt = performance.now();
  set(document.hidden ? 'off' : 'connecting');
  if (!document.hidden) take(current.signal).catch(() => {});
}

/** @param {AbortSignal} signal */
async function take(signal) {
  // Locks are there in secure contexts alone; elsewhere each visible tab has a stream of its own.
  if (!navigator.locks) return readAgain(signal);
  const name = `ringback-events-${await fingerprint()}`;
  if (signal.aborted) return;
  channel = new BroadcastChannel(name);
  channel.onmessage = ({ data }) => hear(data);
  await navigator.locks.request(name, { signal }, () => readAgain(signal));
}

/** A hash of the API, the key and the tenant, so that only tabs with the same ones share a stream. */
async function fingerprint() {
  const text = new TextEncoder().encode(`${BASE}\n${session.key}\n${session.tenant}`);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', text));
  return [...hash.slice(0, 8)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @param {AbortSignal} signal */
async function readAgain(signal) {
  isReader = true;
  try {
    while (!signal.aborted) {
      await read(signal).catch(() => {});
      if (signal.aborted) return;
      pass({ mode: 'polling' });
      await pause(AGAIN_MS, signal);
    }
  } finally {
    isReader = false;
  }
}

/** @param {AbortSignal} signal */
async function read(signal) {
  if (session.asked !== null) return;
  const answer = await fetch(new URL('v1/events', BASE), { headers: session.headers(), signal, cache: 'no-store', redirect: 'error' });
  if (!answer.ok || !answer.body) return;
  pass({ mode: 'live' });
  const collector = new Collector();
  const timer = setInterval(() => pass({ mode: 'live', batch: collector.take() }), BATCH_MS);
  try {
    for await (const event of eventsOf(answer.body)) collector.add(event);
  } finally {
    clearInterval(timer);
  }
}

/** Passes a message on to all tabs, this one included; one with an empty batch only if none was sent for 2 s. @param {{mode: Mode, batch?: import('./batch.js').Batch}} word */
function pass(word) {
  const isEmpty = word.batch && word.batch.events.length === 0 && !word.batch.isIncomplete;
  if (!isEmpty || performance.now() - heardAt > ALIVE_MS) channel?.postMessage(word);
  if (!isEmpty || performance.now() - heardAt > ALIVE_MS) hear(word);
}

/** @param {{mode: Mode, batch?: import('./batch.js').Batch}} word */
function hear({ mode, batch }) {
  heardAt = performance.now();
  set(mode);
  if (batch && (batch.events.length > 0 || batch.isIncomplete)) listeners.forEach((listener) => listener(batch));
}

/** Sets the mode to `polling` if no stream has opened, or the tab that reads was silent, for 6 s. */
function look() {
  const isAwaited = mode === 'connecting' || (mode === 'live' && !isReader);
  if (isAwaited && performance.now() - heardAt > SILENT_MS) set('polling');
}

/** @param {Mode} next */
function set(next) {
  if (mode === next) return;
  mode = next;
  redraw();
}

/** @param {number} ms @param {AbortSignal} signal */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });
}
