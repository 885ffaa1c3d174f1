// The page of topics: lists them with their counts; each can be paused and resumed.

import { html } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { pages } from '../core/pages.js';
import { href } from '../core/route.js';
import { ALL, ownerOfItem, scopeOf } from '../core/tenant.js';
import { actionButton, confirm } from '../view/confirm.js';
import { count, duration } from '../view/format.js';
import { panel } from '../view/panel.js';
import { pager, table } from '../view/table.js';
import { ownerNote, tenantColumn } from '../view/tenant.js';

const EVERY_MS = 5000;
const LIMIT = 100;

/** @type {import('../main.js').MakePage} */
export function topicsPage(params, signal) {
  const scope = scopeOf(params);
  const list = pages((cursor, signal) => call('GET', `/v1/topics?limit=${LIMIT}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { tenant: scope, signal }), { signal, every: EVERY_MS });
  const view = () => html`<div data-testid="page-topics">
    <h1 tabindex="-1">Topics${ownerNote(scope)}</h1>
    <form class="inline" @submit=${(/** @type {SubmitEvent} */ event) => goTo(event, scope)}><label>Go to a topic <input name="topic" data-testid="go-topic" autocomplete="off" required></label>
      ${scope === ALL ? html`<label>of the tenant <input name="tenant" data-testid="go-tenant" placeholder="none" size="10" autocomplete="off"></label>` : ''} <button type="submit">Show</button></form>
    ${panel({ name: 'topics', of: list.of }, ({ items }) => html`
      ${table({ name: 'topics', caption: 'Topics by name', items, key: ({ tenant, topic }) => (tenant ? `${tenant}/${topic}` : topic), columns: columns(scope, list.refresh), empty: 'There are no topics: they come with their first job or policy.' })}
      ${pager(list)}`)}
  </div>`;
  return { title: 'Topics', view };
}

/** @param {SubmitEvent} event @param {string} scope */
function goTo(event, scope) {
  event.preventDefault();
  const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
  const [topic, tenant] = ['topic', 'tenant'].map((name) => String(data.get(name) ?? '').trim());
  location.hash = href('topic', { topic, tenant: ownerOfItem({ tenant: tenant || null }, scope) });
}

/** @param {string} scope @param {() => void} after @returns {import('../view/table.js').Column<any>[]} */
function columns(scope, after) {
  const named = (/** @type {any} */ item) => ({ topic: item.topic, tenant: ownerOfItem(item, scope) });
  const of = (/** @type {string} */ state) => ({
    title: state, kind: /** @type {const} */ ('number'),
    cell: (/** @type {any} */ item) => item.states[state] && state !== 'done' && state !== 'cancelled'
      ? html`<a href=${href('jobs', { ...named(item), state })}>${count(item.states[state])}</a>` : count(item.states[state]),
  });
  return [
    { title: 'topic', cell: (item) => html`<a href=${href('topic', named(item))}>${item.topic}</a>${item.paused ? html` <span class="paused">paused</span>` : ''}` },
    ...tenantColumn(scope),
    of('delayed'), of('ready'), of('reserved'), of('dead'), of('done'), of('cancelled'),
    { title: 'waiting for', kind: 'number', cell: ({ late_ms: late }) => (late ? duration(late) : html`<span class="none">–</span>`) },
    { title: 'policy', cell: ({ policy }) => (policy ? Object.keys(policy).join(', ') || 'empty' : html`<span class="none">–</span>`) },
    { title: 'actions', kind: 'actions', cell: (item) => pauseButton(item, named(item).tenant, after) },
  ];
}

/** The button that pauses or resumes a topic. @param {any} item @param {string} tenant whose topic it is @param {() => void} after */
export function pauseButton({ topic, paused, states }, tenant, after) {
  const pause = () => confirm({
    title: `Pause the topic ${topic}`, verb: 'Pause', method: 'POST', path: path`/v1/topics/${topic}/pause`, tenant, after,
    words: `No job of ${topic} is delivered or given to a consumer until it is resumed. ${count(states.ready)} are ready now. Submits go on, and attempts in flight end as usual.`,
    done: () => `The topic ${topic} is paused.`,
  });
  const resume = () => confirm({
    title: `Resume the topic ${topic}`, verb: 'Resume', method: 'POST', path: path`/v1/topics/${topic}/resume`, tenant, after,
    words: `Jobs of ${topic} are delivered again. ${count(states.ready)} are ready now.`,
    done: () => `The topic ${topic} is resumed.`,
  });
  return paused
    ? actionButton({ name: 'resume', label: 'Resume', scope: 'manage', onClick: resume, about: topic })
    : actionButton({ name: 'pause', label: 'Pause', scope: 'manage', onClick: pause, about: topic });
}
