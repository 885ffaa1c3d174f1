// Loads `/v1/stats` every two seconds while the page is visible: for the overview, for rates and lateness, and to see
// whether the API and its store answer.

import { call, now, STATS } from './api.js';
import { forgetLateness, noteLateness } from './lateness.js';
import { countStats } from './rates.js';
import { resource } from './resource.js';
import { session } from './session.js';

const EVERY_MS = 2000;

/** @type {import('./resource.js').Resource<any> | null} */
let current = null;
let ending = new AbortController();

/** The statistics for the current caller, loaded from the first call on. @returns {import('./resource.js').Resource<any>} */
export function stats() {
  current ??= resource(load, { signal: ending.signal, every: EVERY_MS });
  return current;
}

/** Loads anew for another caller, and forgets the lateness. */
export function restartStats() {
  ending.abort();
  ending = new AbortController();
  current = null;
  forgetLateness();
  stats();
}

/** @param {AbortSignal} signal */
async function load(signal) {
  if (session.asked !== null) return new Promise(() => {});
  const answer = await call('GET', STATS, { signal });
  countStats(answer.states, now());
  noteLateness(answer.lateness_ms, now());
  return answer;
}
