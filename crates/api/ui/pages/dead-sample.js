// Loads a bounded sample of dead jobs with their requests, for the page of dead jobs: of one topic, or of the ten
// topics that have the most. The list of all jobs, which scans every job, is read only if no topic with dead jobs is
// known.

import { call, path } from '../core/api.js';
import { ALL, NONE, ownerOfItem } from '../core/tenant.js';

/** How many dead jobs are read, of how many topics, and for how long. */
const SAMPLE = 1000;
const TOPICS = 10;
const LOOK_MS = 5000;
/** Among how many topics those with the most dead jobs are sought. */
const KNOWN_TOPICS = 1000;
/** Pages with requests take memory of the API, so they are small. */
const PAGE = 200;

/**
 * @param {string} topic the topic; empty for all @param {string} scope whose jobs @param {AbortSignal} signal
 * @returns {Promise<{jobs: any[], total: number}>} the jobs, and how many there are
 */
export async function sampleOf(topic, scope, signal) {
  const deadline = performance.now() + LOOK_MS;
  const counts = await call('GET', topic ? path`/v1/topics/${topic}` : '/v1/stats', { tenant: scope, signal });
  const total = counts.states.dead;
  const topics = topic || total === 0 ? [{ name: topic, tenant: scope }] : await topicsWithMost(scope, signal);
  /** @type {any[]} */
  const jobs = [];
  for (const [index, { name, tenant }] of topics.entries()) {
    const share = Math.ceil((Math.min(SAMPLE, total) - jobs.length) / (topics.length - index));
    const target = name ? path`/v1/topics/${name}/dead` : '/v1/jobs';
    const query = { include: 'request', ...(name ? {} : { state: 'dead' }) };
    const found = await read(target, query, { wanted: share, tenant, deadline, signal });
    // The list of one topic does not say whose it is.
    jobs.push(...found.map((job) => (name && scope === ALL && tenant !== NONE ? { ...job, tenant } : job)));
  }
  return { jobs, total: Math.max(total, jobs.length) };
}

/** Up to ten topics with the most dead jobs, the fewest first; if none has any, one with an empty name. @param {string} scope @param {AbortSignal} signal @returns {Promise<{name: string, tenant: string}[]>} */
async function topicsWithMost(scope, signal) {
  const { items } = await call('GET', `/v1/topics?limit=${KNOWN_TOPICS}`, { tenant: scope, signal });
  const dead = items.filter((/** @type {any} */ { states }) => states.dead > 0);
  dead.sort((/** @type {any} */ a, /** @type {any} */ b) => a.states.dead - b.states.dead);
  // The topics with the fewest come first, so that what these leave of the sample goes to the others.
  const named = dead.slice(-TOPICS).map((/** @type {any} */ item) => ({ name: item.topic, tenant: ownerOfItem(item, scope) }));
  return named.length > 0 ? named : [{ name: '', tenant: scope }];
}

/**
 * Reads pages of a list until there are enough jobs, there are no more, or no time is left.
 * @param {string} target @param {Record<string, string>} query
 * @param {{wanted: number, tenant: string, deadline: number, signal: AbortSignal}} options
 * @returns {Promise<any[]>}
 */
async function read(target, query, { wanted, tenant, deadline, signal }) {
  const jobs = [];
  let cursor = '';
  while (jobs.length < wanted && performance.now() < deadline) {
    const limit = String(Math.min(wanted - jobs.length, PAGE));
    const answer = await call('GET', `${target}?${new URLSearchParams({ ...query, limit, ...(cursor ? { cursor } : {}) })}`, { tenant, signal });
    jobs.push(...answer.items);
    if (answer.next === null) break;
    cursor = answer.next;
  }
  return jobs;
}
