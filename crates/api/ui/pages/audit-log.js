// The page of the audit log: who has changed what by a call of the API, the newest first, with a filter.

import { html } from '../vendor/lit-html.js';
import { call } from '../core/api.js';
import { pages } from '../core/pages.js';
import { href } from '../core/route.js';
import { NONE, reachOf, scopeOf } from '../core/tenant.js';
import { ago, count } from '../view/format.js';
import { panel } from '../view/panel.js';
import { pager, table } from '../view/table.js';
import { ownerNote } from '../view/tenant.js';

const LIMIT = 100;
const FIELDS = ['topic', 'operation', 'who'];

/** @type {import('../main.js').MakePage} */
export function auditLogPage(params, signal) {
  const [given, scope] = [params.get('tenant'), scopeOf(params)];
  // Entries of all tenants say whose they are.
  const tenant = reachOf(scope);
  const filter = Object.fromEntries(FIELDS.map((name) => [name, params.get(name) ?? '']).filter(([, value]) => value !== ''));
  const list = pages((cursor, signal) => {
    const query = new URLSearchParams({ ...filter, limit: String(LIMIT), ...(cursor ? { cursor } : {}) });
    return call('GET', `/v1/audit-log?${query}`, { tenant, signal });
  }, { signal });
  /** @param {SubmitEvent} event */
  const find = (event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const to = href('audit-log', { ...Object.fromEntries(FIELDS.map((name) => [name, String(data.get(name) ?? '').trim()])), tenant: given });
    if (to === location.hash) list.first();
    else location.hash = to;
  };
  const view = () => html`<div data-testid="page-audit-log">
    <h1 tabindex="-1">Audit log${ownerNote(tenant)}</h1>
    <form class="filter" data-testid="filter-form" @submit=${find} aria-label="Filter">
      ${FIELDS.map((name) => html`<label>${name} <input name=${name} data-testid="filter-${name}" .value=${filter[name] ?? ''} autocomplete="off"></label>`)}
      <div class="buttons start"><button type="submit" class="primary" data-testid="filter-apply">Find</button></div>
    </form>
    ${panel({ name: 'audit-log', of: list.of }, ({ items }) => html`
      ${table({ name: 'audit-log', caption: 'Calls that have changed something, the newest first', items, key: ({ id }) => id, columns: columns(scope), empty: list.hasNext ? 'None among those that were looked at; the next page looks on.' : 'No call has changed anything.' })}
      ${pager(list)}`)}
  </div>`;
  return { title: 'Audit log', view };
}

/** @param {string} scope @returns {import('../view/table.js').Column<any>[]} */
const columns = (scope) => [
  { title: 'when', cell: ({ at }) => ago(at) },
  { title: 'operation', cell: ({ operation, outcome }) => html`${operation}${outcome === 'done' ? '' : html` <span class="bad">${outcome}</span>`}` },
  { title: 'who', cell: ({ who, address }) => html`${who}${address ? html` <span class="soft">${address}</span>` : ''}` },
  { title: 'tenant', cell: ({ tenant }) => tenant ?? html`<span class="none">–</span>` },
  { title: 'target', kind: 'wide', cell: ({ target, tenant }) => targetView(target, scope === '' ? '' : tenant ?? NONE) },
  { title: 'before', kind: 'wide', cell: ({ before }) => valueView(before) },
  { title: 'after', kind: 'wide', cell: ({ after }) => valueView(after) },
  { title: 'jobs', kind: 'number', cell: ({ count: jobs }) => (jobs === null || jobs === undefined ? html`<span class="none">–</span>` : count(jobs)) },
];

/** @param {any} target @param {string} tenant whose it is */
function targetView(target, tenant) {
  const { topic, id } = target;
  if (topic && id) return html`<a href=${href('job', { topic, id, tenant })}>${topic}/${id}</a>`;
  return Object.entries(target).map(([name, value]) => html`<span class="soft">${name}</span> ${value} `);
}

/** @param {any} value */
function valueView(value) {
  return value === null || value === undefined ? html`<span class="none">–</span>` : html`<code class="value">${JSON.stringify(value, null, 1)}</code>`;
}
