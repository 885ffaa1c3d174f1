// How many jobs were submitted, were done, failed and died in each of the last 120 seconds: counted by events, or by
// the growth of the counts of `/v1/stats` while there are no events.

import { noCounts } from './batch.js';
import { live } from './events.js';
import { session } from './session.js';

/** How many seconds are shown. */
export const SECONDS = 120;

/** @type {Map<number, import('./batch.js').Counts>} */
const bySecond = new Map();
/** @type {{at: number, submitted: number, done: number, dead: number} | null} */
let before = null;
/** The first second that was counted; null before. @type {number | null} */
let since = null;

/** Starts to count events. Starts anew when the tab is hidden or shown, or the caller changes: events were missed then. */
export function countEvents() {
  document.addEventListener('visibilitychange', restart);
  session.watch(restart);
  live.listen((batch) => {
    for (const [second, counts] of batch.counts) add(second, counts);
  });
}

/**
 * Counts by the growth since the last answer of `/v1/stats`, while events do not come; failures are not known then.
 * @param {any} states @param {number} at the time in milliseconds
 */
export function countStats(states, at) {
  const { done, dead, purged } = states;
  const submitted = Object.values(states).reduce((all, count) => all + count, 0);
  const next = { at, submitted, done, dead: dead + purged };
  since ??= Math.floor(at / 1000);
  const seconds = before ? Math.round((at - before.at) / 1000) : 0;
  if (before && live.mode !== 'live' && seconds > 0 && seconds < SECONDS) {
    const share = (/** @type {number} */ from, /** @type {number} */ to) => Math.max(0, to - from) / seconds;
    const counts = {
      submitted: share(before.submitted, submitted), done: share(before.done, done), failed: 0,
      dead: share(before.dead, next.dead),
    };
    const last = Math.floor(at / 1000) - 1;
    for (let back = 0; back < seconds; back += 1) add(last - back, counts);
  }
  if (!before || seconds > 0) before = next;
}

/**
 * The counts of the 120 seconds before now, the oldest first; null for seconds before the counting began.
 * @param {number} now in milliseconds @returns {(import('./batch.js').Counts | null)[]}
 */
export function lately(now) {
  const last = Math.floor(now / 1000) - 1;
  return Array.from({ length: SECONDS }, (_, index) => {
    const second = last - SECONDS + 1 + index;
    return since === null || second <= since ? null : bySecond.get(second) ?? noCounts();
  });
}

function restart() {
  bySecond.clear();
  before = null;
  since = null;
}

/** @param {number} second @param {import('./batch.js').Counts} counts */
function add(second, counts) {
  const all = bySecond.get(second) ?? noCounts();
  for (const kind of /** @type {const} */ (['submitted', 'done', 'failed', 'dead'])) all[kind] += counts[kind];
  bySecond.set(second, all);
  for (const old of bySecond.keys()) {
    if (bySecond.size <= SECONDS * 2) break;
    bySecond.delete(old);
  }
}
