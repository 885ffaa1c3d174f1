// The list of schedules with their next and last firings, in pages; each can be paused, resumed and run.

import { html } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { pages } from '../core/pages.js';
import { href } from '../core/route.js';
import { actionButton, confirm } from '../view/confirm.js';
import { ago, count } from '../view/format.js';
import { panel } from '../view/panel.js';
import { pager, table } from '../view/table.js';

const EVERY_MS = 10_000;
const LIMIT = 100;

/** @type {import('../main.js').MakePage} */
export function schedulesPage(_params, signal) {
  const list = pages((cursor, signal) => call('GET', `/v1/schedules?limit=${LIMIT}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { signal }), { signal, every: EVERY_MS });
  const view = () => html`<div data-testid="page-schedules">
    <h1 tabindex="-1">Schedules</h1>
    ${panel({ name: 'schedules', of: list.of }, ({ items }) => html`
      ${table({ name: 'schedules', caption: 'Schedules by id', items, key: ({ id }) => id, columns: columns(list.refresh), empty: 'There are no schedules.' })}
      ${pager(list)}`)}
  </div>`;
  return { title: 'Schedules', view };
}

/** @param {() => void} after @returns {import('../view/table.js').Column<any>[]} */
function columns(after) {
  return [
    { title: 'schedule', cell: ({ id, paused }) => html`<a href=${href('schedule', { id })}>${id}</a>${paused ? html` <span class="paused">paused</span>` : ''}` },
    { title: 'times', cell: timesView },
    { title: 'topic', cell: ({ job }) => html`<a href=${href('topic', { topic: job.topic })}>${job.topic}</a>` },
    { title: 'next', cell: ({ next_at: next }) => ago(next) },
    { title: 'last', cell: ({ last, job }) => (last ? html`<a href=${href('job', { topic: job.topic, id: last.id })}>${ago(last.at)}</a>` : html`<span class="none">–</span>`) },
    { title: 'fired', kind: 'number', cell: ({ fired }) => count(fired) },
    { title: 'missed', kind: 'number', cell: ({ missed_firings: missed }) => count(missed) },
    { title: 'overlapped', kind: 'number', cell: ({ overlapped_firings: overlapped }) => count(overlapped) },
    { title: 'actions', kind: 'actions', cell: (schedule) => scheduleActions(schedule, after) },
  ];
}

/** When a schedule fires. @param {any} schedule */
export function timesView({ cron, every, time_zone: zone }) {
  return cron ? html`<code>${cron}</code> <span class="soft">${zone ?? 'UTC'}</span>` : html`every ${every}`;
}

/** @param {any} schedule @param {() => void} after */
export function scheduleActions({ id, paused, job }, after) {
  const common = { method: 'POST', after };
  const run = () => confirm({ ...common, title: `Run the schedule ${id}`, verb: 'Run now', path: path`/v1/schedules/${id}/run`, words: `It submits its job of the topic ${job.topic} now, beside its times, also if it is paused.`, done: (answer) => `The schedule ${id} has submitted the job ${answer.last?.id}.` });
  const pause = () => confirm({ ...common, title: `Pause the schedule ${id}`, verb: 'Pause', path: path`/v1/schedules/${id}/pause`, words: 'It does not fire until it is resumed. Its times meanwhile do not count as missed.', done: () => `The schedule ${id} is paused.` });
  const resume = () => confirm({ ...common, title: `Resume the schedule ${id}`, verb: 'Resume', path: path`/v1/schedules/${id}/resume`, words: 'It fires again, from its next time on. What it missed is not made up for.', done: () => `The schedule ${id} is resumed.` });
  return html`${paused
    ? actionButton({ name: 'resume', label: 'Resume', scope: 'submit', about: id, onClick: resume })
    : actionButton({ name: 'pause', label: 'Pause', scope: 'submit', about: id, onClick: pause })}
    ${actionButton({ name: 'run', label: 'Run…', scope: 'submit', about: id, onClick: run })}`;
}
