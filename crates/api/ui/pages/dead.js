// The page of dead jobs: a sample of them in groups of one reason, host and last answer. Each group can be revived or
// purged by a bulk operation.

import { html } from '../vendor/lit-html.js';
import { resource } from '../core/resource.js';
import { href } from '../core/route.js';
import { ALL, NONE, ownerOfItem, scopeOf } from '../core/tenant.js';
import { changeJobs } from '../view/bulk-dialog.js';
import { actionButton } from '../view/confirm.js';
import { ago, count, plural } from '../view/format.js';
import { panel } from '../view/panel.js';
import { failure } from '../view/state.js';
import { table } from '../view/table.js';
import { ownerNote, tenantColumn } from '../view/tenant.js';
import { sampleOf } from './dead-sample.js';
import { wordsOf } from './filter.js';

/** The longest text of an error that a filter may have. */
const MAX_ERROR = 128;

/** @typedef {{tenant?: string, reason: string, host: string | null, status?: number, error?: string, jobs: number, first: string, last: string, topics: Set<string>}} Group */

/** @type {import('../main.js').MakePage} */
export function deadPage(params, signal) {
  const [topic, given] = [params.get('topic') ?? '', params.get('tenant')];
  // A topic is of one tenant, or of none.
  const scope = topic && scopeOf(params) === ALL ? NONE : scopeOf(params);
  const of = resource(async (signal) => {
    const { jobs, total } = await sampleOf(topic, scope, signal);
    return { groups: grouped(jobs), looked: jobs.length, total };
  }, { signal });
  const view = () => html`<div data-testid="page-dead">
    <h1 tabindex="-1">Dead letters${topic ? html` of <a href=${href('topic', { topic, tenant: scope })}>${topic}</a>` : ''}${ownerNote(scope)}</h1>
    <p><a href=${href('jobs', { state: 'dead', topic, tenant: topic ? scope : given })}>List them</a>${topic ? html`, or see <a href=${href('dead', { tenant: given })}>those of all topics</a>` : ''}.</p>
    ${panel({ name: 'dead', of }, ({ groups, looked, total }) => html`
      <p data-testid="dead-sample">${looked >= total ? `Complete: ${plural(looked, 'dead job')}.` : `A sample: ${count(looked)} of ${plural(total, 'dead job')}. There may be groups that it does not show.`}</p>
      ${table({ name: 'dead', caption: 'Dead jobs by reason, host and last answer', items: groups, key: keyOf, columns: columns(topic, scope, of.refresh), empty: total === 0 ? 'No job is dead.' : 'None was found in the time that there was: list them.' })}
      <div class="pager"><button type="button" data-testid="refresh" @click=${of.refresh}>Refresh</button></div>`)}
  </div>`;
  return { title: 'Dead letters', view };
}

/** @param {any[]} jobs @returns {Group[]} */
function grouped(jobs) {
  /** @type {Map<string, Group>} */
  const groups = new Map();
  for (const { tenant, topic, reason, last, request } of jobs) {
    const group = { tenant, reason, host: hostOf(request?.url), status: last?.status, error: last?.status === undefined ? last?.error : undefined };
    const at = last?.at ?? '';
    const known = groups.get(keyOf(group));
    if (known) {
      known.jobs += 1;
      known.topics.add(topic);
      if (at && (!known.first || at < known.first)) known.first = at;
      if (at > known.last) known.last = at;
    } else {
      groups.set(keyOf(group), { ...group, jobs: 1, first: at, last: at, topics: new Set([topic]) });
    }
  }
  return [...groups.values()].sort((a, b) => b.jobs - a.jobs);
}

/** @param {string | undefined} url */
function hostOf(url) {
  return url ? new URL(url).host : null;
}

/** @param {{tenant?: string, reason: string, host: string | null, status?: number, error?: string}} group */
function keyOf({ tenant, reason, host, status, error }) {
  return `${tenant ? `${tenant}/` : ''}${reason}|${host ?? ''}|${status ?? error ?? ''}`;
}

/** The filter that matches a group. Without a host or an answer it also matches other jobs, since a filter cannot ask for a field that is absent. @param {string} topic @param {Group} group */
function filterOf(topic, { reason, host, status, error }) {
  const given = Object.entries({ topic, state: 'dead', reason, host, status, error: error?.slice(0, MAX_ERROR) }).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return Object.fromEntries(given);
}

/** @param {string} topic @param {string} scope @param {() => void} after @returns {import('../view/table.js').Column<Group>[]} */
function columns(topic, scope, after) {
  const change = (/** @type {'revive' | 'purge'} */ verb, /** @type {Group} */ group) => {
    const filter = filterOf(topic, group);
    changeJobs({ verb, filter, words: wordsOf(filter), tenant: ownerOfItem(group, scope), after });
  };
  const about = (/** @type {Group} */ { reason, host }) => `${reason} at ${host ?? 'consumers'}`;
  return [
    { title: 'reason', cell: ({ reason }) => reason },
    ...tenantColumn(scope),
    { title: 'host', cell: ({ host }) => host ?? html`<span class="soft">pull jobs</span>` },
    { title: 'last answer', cell: ({ status, error }) => failure({ status, error }) },
    { title: 'jobs', kind: 'number', cell: (group) => html`<a href=${href('jobs', { ...filterOf(topic, group), tenant: ownerOfItem(group, scope) })}>${count(group.jobs)}</a>` },
    { title: 'topics', cell: ({ topics }) => [...topics].slice(0, 3).join(', ') + (topics.size > 3 ? ` and ${topics.size - 3} more` : '') },
    { title: 'failed', cell: ({ first, last }) => html`${ago(first)}${last !== first ? html` to ${ago(last)}` : ''}` },
    { title: 'actions', kind: 'actions', cell: (group) => html`
      ${actionButton({ name: 'revive', label: 'Revive…', scope: 'manage', about: about(group), onClick: () => change('revive', group) })}
      ${actionButton({ name: 'purge', label: 'Purge…', scope: 'manage', about: about(group), onClick: () => change('purge', group) })}` },
  ];
}
