// The page of destinations: the hosts that callbacks go to, with their jobs and failures; each can be paused and
// resumed.

import { html, nothing } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { pages } from '../core/pages.js';
import { href } from '../core/route.js';
import { reachOf, scopeOf } from '../core/tenant.js';
import { actionButton, confirm } from '../view/confirm.js';
import { ago, count, lastFailure, plural } from '../view/format.js';
import { panel } from '../view/panel.js';
import { pager, table } from '../view/table.js';
import { ownerNote } from '../view/tenant.js';

const EVERY_MS = 5000;
const LIMIT = 200;

/** @type {import('../main.js').MakePage} */
export function destinationsPage(params, signal) {
  const failing = params.get('failing') === 'true';
  const given = params.get('tenant');
  // The counts are about all tenants too, and so is a pause.
  const tenant = reachOf(scopeOf(params));
  const of = `/v1/destinations?limit=${LIMIT}${failing ? '&failing=true' : ''}`;
  const list = pages((cursor, signal) => call('GET', `${of}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { tenant, signal }), { signal, every: EVERY_MS });
  const empty = failing ? 'No destination fails.' : 'No job has a destination, and none is paused.';
  const view = () => html`<div data-testid="page-destinations">
    <h1 tabindex="-1">Destinations${ownerNote(tenant)}</h1>
    <p>${failing ? html`Those that fail. <a href=${href('destinations', { tenant: given })}>Show all</a>` : html`<a href=${href('destinations', { failing: 'true', tenant: given })} data-testid="show-failing">Show those that fail</a>`}</p>
    ${panel({ name: 'destinations', of: list.of }, ({ items }) => html`
      ${table({ name: 'destinations', caption: 'Destinations by host', items, key, columns: columns(given, tenant, list.refresh), empty })}
      ${pager(list)}`)}
  </div>`;
  return { title: 'Destinations', view };
}

/** @param {any} item */
function key({ scheme, host, port }) {
  return scheme ? `${scheme}://${host}:${port}` : named({ host, port });
}

/** A destination as filters and pauses name it: a host, with its port if there is one. @param {any} item */
function named({ host, port }) {
  return port === null ? host : `${host}:${port}`;
}

/** @param {string | null} given the tenant of the address @param {string} tenant @param {() => void} after @returns {import('../view/table.js').Column<any>[]} */
function columns(given, tenant, after) {
  const of = (/** @type {string} */ title, /** @type {string} */ field, /** @type {string} */ state) => ({
    title, kind: /** @type {const} */ ('number'),
    cell: (/** @type {any} */ item) => item[field] ? html`<a href=${href('jobs', { host: named(item), state, tenant: given })}>${count(item[field])}</a>` : '0',
  });
  return [
    { title: 'destination', cell: (item) => html`<a href=${href('jobs', { host: named(item), tenant: given })}>${key(item)}</a>${item.paused ? html` <span class="paused">paused</span>` : ''}${item.breaker === 'closed' ? html` <span class="soft">breaker forced closed</span>` : ''}` },
    of('waiting', 'waiting', 'ready'), of('in flight', 'reserved', 'reserved'), of('delayed', 'delayed', 'delayed'), of('dead', 'dead', 'dead'),
    { title: 'failing since', cell: ({ failing }) => (failing ? ago(failing.since) : html`<span class="none">–</span>`) },
    { title: 'last failure', cell: ({ failing }) => (failing ? html`${lastFailure(failing)}, ${ago(failing.last_at)} <span class="soft">(${plural(failing.attempts, 'failed attempt')})</span>${failing.breaker ? html` <span data-testid="breaker">breaker ${failing.breaker.state}${failing.breaker.rate ? `, ${failing.breaker.rate}` : html`, next ${ago(failing.breaker.next_at)}`}</span>` : nothing}` : html`<span class="none">–</span>`) },
    { title: 'pauses', cell: ({ paused, pauses }) => pauses.length ? pauses.join(', ') : (paused ? 'by the operator' : html`<span class="none">–</span>`) },
    { title: 'actions', kind: 'actions', cell: (item) => html`${item.pauses.map((/** @type {string} */ pause) => resumeButton(pause, item, tenant, after))}${item.paused ? '' : pauseButton(item, tenant, after)}` },
  ];
}

/** @param {any} item @param {string} tenant @param {() => void} after */
function pauseButton(item, tenant, after) {
  const host = named(item);
  const onClick = () => confirm({
    title: `Pause the destination ${host}`, verb: 'Pause', method: 'POST', path: path`/v1/destinations/${host}/pause`, tenant, after,
    words: `No job is sent to ${host} until it is resumed, whatever its topic. ${count(item.waiting)} wait now. Submits go on, and attempts in flight end as usual.`,
    done: () => `The destination ${host} is paused.`,
  });
  return actionButton({ name: 'pause', label: 'Pause', scope: 'manage', onClick, about: host });
}

/** @param {string} pause @param {any} item @param {string} tenant @param {() => void} after */
function resumeButton(pause, item, tenant, after) {
  const onClick = () => confirm({
    title: `Resume the destination ${pause}`, verb: 'Resume', method: 'POST', path: path`/v1/destinations/${pause}/resume`, tenant, after,
    words: `Jobs are sent to ${pause} again. ${count(item.waiting)} wait now.${item.pauses.length > 1 ? ' Another pause holds it still.' : ''}`,
    done: (answer) => answer.paused ? `The pause of ${pause} has ended; another one holds the destination.` : `The destination ${pause} is resumed.`,
  });
  return actionButton({ name: 'resume', label: item.pauses.length > 1 ? `Resume ${pause}` : 'Resume', scope: 'manage', onClick, about: pause });
}
