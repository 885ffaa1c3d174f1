// The page of bulk operations: those that run, which can be stopped, and those that ended within a day.
// `view/bulk-dialog` starts them.

import { html } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { resource } from '../core/resource.js';
import { href } from '../core/route.js';
import { ownerOfItem, reachOf, scopeOf } from '../core/tenant.js';
import { actionButton, confirm } from '../view/confirm.js';
import { ago, count, duration } from '../view/format.js';
import { panel } from '../view/panel.js';
import { table } from '../view/table.js';
import { ownerNote, tenantColumn } from '../view/tenant.js';
import { wordsOf } from './filter.js';

const EVERY_MS = 2000;

/** @type {import('../main.js').MakePage} */
export function bulkPage(params, signal) {
  const scope = scopeOf(params);
  const of = resource((signal) => call('GET', '/v1/bulk', { tenant: scope, signal }), { signal, every: EVERY_MS });
  const view = () => html`<div data-testid="page-bulk">
    <h1 tabindex="-1">Bulk operations${ownerNote(scope)}</h1>
    <p>They begin on the page of <a href=${href('jobs')}>jobs</a>, with a filter.</p>
    ${panel({ name: 'bulk', of }, ({ items }) =>
      table({ name: 'bulk', caption: 'Those that run, and those that ended within a day, the newest first', items, key: ({ id }) => id, columns: columns(scope, of.refresh), empty: 'None runs, and none has ended within a day.' }))}
  </div>`;
  return { title: 'Bulk operations', view };
}

/** @param {string} scope @param {() => void} after @returns {import('../view/table.js').Column<any>[]} */
function columns(scope, after) {
  return [
    { title: 'operation', cell: ({ action, id }) => html`${action} <span class="soft">${id}</span>` },
    ...tenantColumn(scope),
    { title: 'jobs with', kind: 'wide', cell: (item) => (Object.keys(item.filter).length ? html`<a href=${href('jobs', { ...item.filter, tenant: ownerOfItem(item, scope) })}>${wordsOf(item.filter)}</a>` : 'all jobs') },
    { title: 'state', cell: ({ state }) => html`<span class="state state-${state === 'running' ? 'reserved' : 'other'}">${state}</span>` },
    { title: 'changed', kind: 'number', cell: ({ changed }) => count(changed) },
    { title: 'a second', kind: 'number', cell: ({ rate }) => count(rate) },
    { title: 'to', cell: ({ delay_ms: delay, at }) => (at ? ago(at) : delay === undefined || delay === null ? html`<span class="none">–</span>` : `in ${duration(delay)}`) },
    { title: 'began', cell: ({ started_at: at }) => ago(at) },
    { title: 'ended', cell: ({ ended_at: at }) => ago(at) },
    { title: 'actions', kind: 'actions', cell: ({ id, action, state }) => (state === 'running' ? stopButton({ id, action, tenant: reachOf(scope), after }) : '') },
  ];
}

/** @param {{id: string, action: string, tenant: string, after: () => void}} options */
function stopButton({ id, action, tenant, after }) {
  const onClick = () => confirm({
    title: `Stop the bulk operation ${id}`, verb: 'Stop it', method: 'DELETE', path: path`/v1/bulk/${id}`, tenant, after,
    words: `It changes no more jobs (${action}). Those that were changed stay so.`,
    done: ({ changed }) => `The bulk operation ${id} is stopped; it has changed ${count(changed)} jobs.`,
  });
  return actionButton({ name: 'stop', label: 'Stop…', scope: 'submit', about: id, onClick });
}
