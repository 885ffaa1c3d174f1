// The list of topics with their counts, in pages; each can be paused and resumed.

import { html } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { pages } from '../core/pages.js';
import { href } from '../core/route.js';
import { actionButton, confirm } from '../view/confirm.js';
import { count, duration } from '../view/format.js';
import { panel } from '../view/panel.js';
import { pager, table } from '../view/table.js';

const EVERY_MS = 5000;
const LIMIT = 100;

/** @type {import('../main.js').MakePage} */
export function topicsPage(_params, signal) {
  const list = pages((cursor, signal) => call('GET', `/v1/topics?limit=${LIMIT}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { signal }), { signal, every: EVERY_MS });
  const view = () => html`<div data-testid="page-topics">
    <h1 tabindex="-1">Topics</h1>
    <form class="inline" @submit=${goTo}><label>Go to a topic <input name="topic" data-testid="go-topic" autocomplete="off" required></label> <button type="submit">Show</button></form>
    ${panel({ name: 'topics', of: list.of }, ({ items }) => html`
      ${table({ name: 'topics', caption: 'Topics by name', items, key: ({ topic }) => topic, columns: columns(list.refresh), empty: 'There are no topics: they come with their first job or policy.' })}
      ${pager(list)}`)}
  </div>`;
  return { title: 'Topics', view };
}

/** @param {SubmitEvent} event */
function goTo(event) {
  event.preventDefault();
  const topic = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get('topic')).trim();
  location.hash = href('topic', { topic });
}

/** @param {() => void} after @returns {import('../view/table.js').Column<any>[]} */
function columns(after) {
  const of = (/** @type {string} */ state) => ({
    title: state, kind: /** @type {const} */ ('number'),
    cell: (/** @type {any} */ item) => item.states[state] && state !== 'done' && state !== 'cancelled'
      ? html`<a href=${href('jobs', { topic: item.topic, state })}>${count(item.states[state])}</a>` : count(item.states[state]),
  });
  return [
    { title: 'topic', cell: ({ topic, paused }) => html`<a href=${href('topic', { topic })}>${topic}</a>${paused ? html` <span class="paused">paused</span>` : ''}` },
    of('delayed'), of('ready'), of('reserved'), of('dead'), of('done'), of('cancelled'),
    { title: 'waiting for', kind: 'number', cell: ({ late_ms: late }) => (late ? duration(late) : html`<span class="none">–</span>`) },
    { title: 'policy', cell: ({ policy }) => (policy ? Object.keys(policy).join(', ') || 'empty' : html`<span class="none">–</span>`) },
    { title: 'actions', kind: 'actions', cell: (item) => pauseButton(item, after) },
  ];
}

/** The button that pauses or resumes a topic. @param {any} item @param {() => void} after */
export function pauseButton({ topic, paused, states }, after) {
  const pause = () => confirm({
    title: `Pause the topic ${topic}`, verb: 'Pause', method: 'POST', path: path`/v1/topics/${topic}/pause`, after,
    words: `No job of ${topic} is delivered or given to a consumer until it is resumed. ${count(states.ready)} are ready now. Submits go on, and attempts in flight end as usual.`,
    done: () => `The topic ${topic} is paused.`,
  });
  const resume = () => confirm({
    title: `Resume the topic ${topic}`, verb: 'Resume', method: 'POST', path: path`/v1/topics/${topic}/resume`, after,
    words: `Jobs of ${topic} are delivered again. ${count(states.ready)} are ready now.`,
    done: () => `The topic ${topic} is resumed.`,
  });
  return paused
    ? actionButton({ name: 'resume', label: 'Resume', scope: 'manage', onClick: resume, about: topic })
    : actionButton({ name: 'pause', label: 'Pause', scope: 'manage', onClick: pause, about: topic });
}
