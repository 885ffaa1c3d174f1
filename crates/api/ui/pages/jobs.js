// The page of jobs: lists the jobs that match a filter, which is in the address, follows their events, and has the
// buttons that change all of them.

import { html, nothing } from '../vendor/lit-html.js';
import { call } from '../core/api.js';
import { live } from '../core/events.js';
import { pages } from '../core/pages.js';
import { redraw, redrawSoon } from '../core/redraw.js';
import { href } from '../core/route.js';
import { ALL, isEventOf, NONE, ownerOfItem, scopeOf } from '../core/tenant.js';
import { changeJobs, VERBS } from '../view/bulk-dialog.js';
import { actionButton } from '../view/confirm.js';
import { ago, count } from '../view/format.js';
import { panel } from '../view/panel.js';
import { failure, stateLabel } from '../view/state.js';
import { pager, table } from '../view/table.js';
import { ownerNote, tenantColumn } from '../view/tenant.js';
import { fieldsOf, filterForm, filterOf, wordsOf } from './filter.js';

const LIMIT = 100;
/** How long to search for the jobs of a page: no field has an index, so finding few jobs among many takes long. */
const LOOK_MS = 4000;

/** @type {import('../main.js').MakePage} */
export function jobsPage(params, signal) {
  const fields = fieldsOf(params);
  const given = params.get('tenant') ?? '';
  // A topic is of one tenant, or of none.
  const scope = fields.topic && scopeOf(params) === ALL ? NONE : scopeOf(params);
  /** How many jobs were found so far by a search that goes on. @type {number | null} */
  let foundSoFar = null;
  const list = pages(async (cursor, signal) => {
    const found = await search({ fields, scope }, cursor, signal, (count) => {
      foundSoFar = count;
      redraw();
    });
    foundSoFar = null;
    isStale = false;
    return found;
  }, { signal });
  /** Whether events were left out, so that rows may be older than the events that came. */
  let isStale = false;
  live.listen((batch) => {
    isStale ||= batch.isIncomplete;
    if (batch.events.filter((event) => apply(event, list.items, scope)).length > 0) redrawSoon();
  }, signal);
  const find = (/** @type {Record<string, string>} */ next) => {
    const to = href('jobs', next);
    if (to === location.hash) list.first();
    else location.hash = to;
  };
  const view = () => html`<div data-testid="page-jobs">
    <h1 tabindex="-1">Jobs${ownerNote(scope)}</h1>
    ${filterForm(fields, given, find)}
    ${actions(fields, scope, list.refresh)}
    ${foundSoFar === null ? nothing : html`<p class="soft" role="status">Looking through the jobs: ${count(foundSoFar)} found so far…</p>`}
    ${panel({ name: 'jobs', of: list.of }, ({ items, next }) => html`
      ${table({ name: 'jobs', caption: Object.keys(fields).length ? `Jobs with ${wordsOf(fields)}` : 'Jobs', items, columns: columns(scope, given), key: ({ tenant, topic, id }) => `${tenant ? `${tenant}/` : ''}${topic}/${id}`, empty: next ? 'None among those that were looked at so far; the next page looks on.' : 'No pending or dead job fits. Done and cancelled jobs are not listed.' })}
      ${items.length > 0 && items.length < LIMIT && next ? html`<p class="soft">These were found in ${LOOK_MS / 1000} seconds; the next page looks on.</p>` : nothing}
      ${isStale ? html`<p class="soft">More happened than can be followed: rows may be older than they look. Refresh to see them as they are.</p>` : nothing}
      ${pager(list)}`)}
  </div>`;
  return { title: 'Jobs', view };
}

/**
 * Reads a page of jobs: calls the API until there are 100 jobs, there are no more, or 4 s are over. Calls `onFound` after
 * each answer that more can follow.
 * @param {{fields: Record<string, string>, scope: string}} of @param {string | null} cursor @param {AbortSignal} signal
 * @param {(count: number) => void} onFound
 */
async function search({ fields, scope }, cursor, signal, onFound) {
  const deadline = performance.now() + LOOK_MS;
  const items = [];
  let next = cursor;
  do {
    const query = new URLSearchParams({ ...fields, limit: String(LIMIT - items.length), ...(next ? { cursor: next } : {}) });
    const answer = await call('GET', `/v1/jobs?${query}`, { tenant: scope, signal });
    items.push(...answer.items);
    next = answer.next;
    if (next) onFound(items.length);
  } while (next && items.length < LIMIT && performance.now() < deadline);
  return { items, next };
}

/** @param {string} scope @param {string} given the tenant of the address @returns {import('../view/table.js').Column<any>[]} */
const columns = (scope, given) => [
  { title: 'job', cell: (job) => html`<a href=${href('job', { topic: job.topic, id: job.id, tenant: ownerOfItem(job, scope) })}><span class="soft">${job.topic}/</span>${job.id}</a>` },
  ...tenantColumn(scope),
  { title: 'state', cell: ({ state, reason }) => html`${stateLabel(state)}${reason ? html` <span class="soft">${reason}</span>` : nothing}` },
  { title: 'host', cell: ({ host }) => (host ? html`<a href=${href('jobs', { host, tenant: given })}>${host}</a>` : html`<span class="soft">pull job</span>`) },
  { title: 'due', cell: ({ due_at: due }) => ago(due) },
  { title: 'created', cell: ({ created_at: created }) => ago(created) },
  { title: 'attempts', kind: 'number', cell: ({ attempts }) => count(attempts) },
  { title: 'last failure', cell: ({ last }) => failure(last) },
  { title: 'tags', cell: ({ tags }) => (tags ?? []).map((/** @type {string} */ tag) => html`<a class="tag" href=${href('jobs', { tag, tenant: given })}>${tag}</a> `) },
];

/** @param {Record<string, string>} fields @param {string} tenant whose jobs @param {() => void} after */
function actions(fields, tenant, after) {
  const verbs = /** @type {import('../view/bulk-dialog.js').Verb[]} */ (Object.keys(VERBS));
  const isAll = Object.keys(fields).length === 0;
  return html`<div class="buttons start" role="group" aria-label="Change all jobs that the filter fits">
    <span class="soft">All that fit:</span>
    ${verbs.map((verb) => {
      const { scope, states } = VERBS[verb];
      const unless = isAll ? 'Filter first: this changes all jobs that the filter fits'
        : tenant === ALL ? 'Choose a tenant first: this changes jobs of one tenant, or of none'
        : fields.state && !states.includes(fields.state) ? `This changes jobs that are ${states.join(' or ')}` : null;
      return actionButton({ name: verb, label: `${verb[0].toUpperCase()}${verb.slice(1)}…`, scope, unless, onClick: () => changeJobs({ verb, filter: filterOf(fields), words: wordsOf(fields), tenant, after }) });
    })}
  </div>`;
}

/** Changes the row of the job that an event is about; false if no row is. @param {import('../core/batch.js').JobEvent} event @param {any[]} items @param {string} scope */
function apply(event, items, scope) {
  const job = items.find((item) => item.topic === event.topic && item.id === event.id && isEventOf(event, ownerOfItem(item, scope)));
  if (!job) return false;
  if (event.kind === 'promoted') job.state = 'ready';
  else if (event.kind === 'submitted') Object.assign(job, { state: 'delayed', due_at: event.due_at });
  else if (event.kind === 'dead') Object.assign(job, { state: 'dead', reason: event.reason });
  else if (event.kind === 'done' || event.kind === 'cancelled') job.state = event.kind;
  else if (event.kind === 'attempt') {
    job.attempts = event.attempt ?? job.attempts;
    if (event.due_at) Object.assign(job, { state: 'delayed', due_at: event.due_at });
    if (event.outcome !== 'complete') job.last = { status: event.status, error: event.error, at: event.at };
  }
  return true;
}
