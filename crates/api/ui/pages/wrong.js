// For the overview: what is wrong or worth knowing now, as sentences with links, derived from the API's statistics and
// lists of topics, destinations and bulk operations.

import { href } from '../core/route.js';
import { ownerOfItem } from '../core/tenant.js';
import { count, duration, lastFailure, plural } from '../view/format.js';

/** How long a ready or due job may wait before that is reported. */
const LATE_MS = 10_000;
/** How many attempts must have failed until a destination counts as failing: one failure is what retries are for. */
const FAILED = 2;
/** How many topics or destinations are named. */
const NAMED = 5;

/** @typedef {{kind: 'bad' | 'note', text: string, links: {text: string, to: string}[]}} Wrong */

/** @typedef {{topics: {items: any[], next: string | null}, destinations: {items: any[], next: string | null}, failing: any[], bulk: any[]}} Lists */

/** @param {any} stats @param {Lists} lists @param {{now: number, scope: string}} at `scope` is whose the lists are @returns {Wrong[]} */
export function whatIsWrong(stats, { topics: { items }, destinations, failing, bulk }, { now, scope }) {
  const topics = items.map((topic) => ({ ...topic, owner: ownerOfItem(topic, scope) }));
  return [
    ...ofStore(stats), ...failingDestinations(failing, now), ...deadByHost(destinations.items), ...deadWithoutHost(topics, destinations),
    ...late(topics, destinations.items), ...overdue(topics, now), ...lateness(stats), ...pausedTopics(topics), ...pausedDestinations(destinations.items),
    ...running(bulk),
  ];
}

/** @param {any} stats @returns {Wrong[]} */
function ofStore({ states, tombstones, archive, store }) {
  /** @type {Wrong[]} */
  const found = [];
  if (states.missing > 0) found.push({ kind: 'bad', text: `${plural(states.missing, 'accepted job is missing', 'accepted jobs are missing')}: repairs have found that their records were deleted.`, links: [] });
  if (archive?.full_shards > 0) found.push({ kind: 'bad', text: `${plural(archive.full_shards, 'shard has', 'shards have')} as many ended jobs waiting for the archive as may wait (${archive.when_full}).`, links: [] });
  if (archive?.dropped > 0) found.push({ kind: 'note', text: `${plural(archive.dropped, 'ended job was', 'ended jobs were')} dropped before the archive had them.`, links: [] });
  if (tombstones?.tombstones_evicted_early > 0) found.push({ kind: 'note', text: `${plural(tombstones.tombstones_evicted_early, 'ended job was', 'ended jobs were')} forgotten early, for want of room.`, links: [] });
  if (store?.profile === 'memory') found.push({ kind: 'note', text: 'The store keeps jobs in memory alone: they are lost when it restarts.', links: [] });
  return found;
}

/** @param {any[]} all those that fail @param {number} now @returns {Wrong[]} */
function failingDestinations(all, now) {
  const failing = all.filter(({ paused, failing }) => !paused && failing.attempts >= FAILED);
  if (failing.length === 0) return [];
  const longest = [...failing].sort((a, b) => Date.parse(a.failing.since) - Date.parse(b.failing.since));
  const links = longest.slice(0, NAMED).map(({ host, port, failing }) => ({
    text: `${host}:${port} (${lastFailure(failing)}, for ${duration(Math.max(0, now - Date.parse(failing.since)))})`, to: href('jobs', { host: `${host}:${port}` }),
  }));
  const others = failing.length > NAMED ? [{ text: 'all of them', to: href('destinations', { failing: 'true' }) }] : [];
  return [{ kind: 'bad', text: `${plural(failing.length, 'destination fails', 'destinations fail')}:`, links: [...links, ...others] }];
}

/** @param {any[]} destinations @returns {Wrong[]} */
function deadByHost(destinations) {
  const dead = destinations.filter((destination) => destination.dead > 0).sort((a, b) => b.dead - a.dead);
  if (dead.length === 0) return [];
  const links = dead.slice(0, NAMED).map(({ host, port, dead }) => ({ text: `${host}:${port} (${count(dead)})`, to: href('jobs', { state: 'dead', host: `${host}:${port}` }) }));
  return [{ kind: 'bad', text: `${plural(dead.length, 'destination has', 'destinations have')} dead jobs${dead.length > NAMED ? `, most of all` : ''}:`, links }];
}

/** Dead pull jobs: those that the topics count and the destinations do not. None is reported while there are more destinations than were read. @param {any[]} topics @param {Lists['destinations']} destinations @returns {Wrong[]} */
function deadWithoutHost(topics, { items, next }) {
  const byHost = items.reduce((sum, { dead }) => sum + dead, 0);
  const jobs = topics.reduce((sum, { states }) => sum + states.dead, 0) - byHost;
  if (jobs <= 0 || next !== null) return [];
  // Which topics they are of is known where none has another dead job.
  const dead = byHost > 0 ? [] : topics.filter(({ states }) => states.dead > 0).sort((a, b) => b.states.dead - a.states.dead);
  const named = dead.slice(0, NAMED).map(({ topic, owner, states }) => ({ text: `${topic} (${count(states.dead)})`, to: href('jobs', { state: 'dead', topic, tenant: owner }) }));
  const links = named.length > 0 ? named : [{ text: 'dead letters', to: href('dead') }];
  return [{ kind: 'bad', text: `${plural(jobs, 'pull job is', 'pull jobs are')} dead:`, links }];
}

/** Topics whose oldest ready job has waited for more than 10 s, except paused ones and those whose ready jobs may all wait for paused destinations. @param {any[]} topics @param {any[]} destinations @returns {Wrong[]} */
function late(topics, destinations) {
  const held = destinations.filter(({ paused }) => paused).reduce((sum, { waiting }) => sum + waiting, 0);
  const late = topics.filter(({ paused, late_ms, states }) => !paused && late_ms > LATE_MS && states.ready > held).sort((a, b) => b.late_ms - a.late_ms);
  if (late.length === 0) return [];
  const links = late.slice(0, NAMED).map(({ topic, owner, states }) => ({ text: `${topic} (${count(states.ready)} ready)`, to: href('jobs', { state: 'ready', topic, tenant: owner }) }));
  return [{ kind: 'bad', text: `The oldest ready job has waited ${duration(late[0].late_ms)}. ${late.length === 1 ? 'Its topic' : `${plural(late.length, 'topic')} with jobs that wait`}:`, links }];
}

/** Topics without ready jobs that have a delayed job whose due time passed more than 10 s ago: no carrier promotes it. @param {any[]} topics @param {number} now @returns {Wrong[]} */
function overdue(topics, now) {
  const overdue = topics.filter(({ states, oldest_due_at: due }) => due && states.ready === 0 && states.delayed > 0 && now - Date.parse(due) > LATE_MS);
  if (overdue.length === 0) return [];
  const links = overdue.slice(0, NAMED).map(({ topic, owner }) => ({ text: topic, to: href('jobs', { state: 'delayed', topic, tenant: owner }) }));
  return [{ kind: 'bad', text: 'Delayed jobs are overdue, so no carrier seems to run for their shards:', links }];
}

/** @param {any} stats @returns {Wrong[]} */
function lateness({ lateness_ms: late }) {
  if (late.p99 === null || late.p99 < 1000) return [];
  return [{ kind: 'note', text: `One of a hundred callbacks of the last five minutes was sent ${duration(late.p99)} late, or later.`, links: [] }];
}

/** @param {any[]} topics @returns {Wrong[]} */
function pausedTopics(topics) {
  const paused = topics.filter((topic) => topic.paused).sort((a, b) => b.states.ready - a.states.ready);
  return paused.slice(0, NAMED).map(({ topic, owner, states }) => ({
    kind: 'note',
    text: `The topic ${topic} is paused, with ${plural(states.ready, 'ready job')}:`,
    links: [{ text: 'its ready jobs', to: href('jobs', { state: 'ready', topic, tenant: owner }) }, { text: 'topics', to: href('topics') }],
  }));
}

/** @param {any[]} destinations @returns {Wrong[]} */
function pausedDestinations(destinations) {
  const paused = destinations.filter(({ paused }) => paused).sort((a, b) => b.waiting - a.waiting);
  return paused.slice(0, NAMED).map(({ host, port, waiting }) => ({
    kind: 'note',
    text: `The destination ${host}${port === null ? '' : `:${port}`} is paused, with ${plural(waiting, 'job')} that ${waiting === 1 ? 'waits' : 'wait'}:`,
    links: [{ text: 'its jobs', to: href('jobs', { host: port === null ? host : `${host}:${port}` }) }, { text: 'destinations', to: href('destinations') }],
  }));
}

/** @param {any[]} bulk @returns {Wrong[]} */
function running(bulk) {
  return bulk.filter(({ state }) => state === 'running').slice(0, NAMED).map(({ action, changed }) => ({
    kind: 'note', text: `A bulk operation runs: ${action}, ${plural(changed, 'job')} changed.`, links: [{ text: 'bulk operations', to: href('bulk') }],
  }));
}
