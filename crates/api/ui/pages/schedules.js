// The page of schedules: lists them with their next and last firings; each can be paused, resumed and run. Its buttons
// and its way to show times are shared with the page of one schedule.

import { html } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { pages } from '../core/pages.js';
import { href } from '../core/route.js';
import { ownerOfItem, scopeOf } from '../core/tenant.js';
import { actionButton, confirm } from '../view/confirm.js';
import { count, moment } from '../view/format.js';
import { panel } from '../view/panel.js';
import { pager, table } from '../view/table.js';
import { ownerNote, tenantColumn } from '../view/tenant.js';

const EVERY_MS = 10_000;
const LIMIT = 100;

/** @type {import('../main.js').MakePage} */
export function schedulesPage(params, signal) {
  const scope = scopeOf(params);
  const list = pages((cursor, signal) => call('GET', `/v1/schedules?limit=${LIMIT}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`, { tenant: scope, signal }), { signal, every: EVERY_MS });
  const view = () => html`<div data-testid="page-schedules">
    <h1 tabindex="-1">Schedules${ownerNote(scope)}</h1>
    ${panel({ name: 'schedules', of: list.of }, ({ items }) => html`
      ${table({ name: 'schedules', caption: 'Schedules by id', items, key: ({ tenant, id }) => (tenant ? `${tenant}/${id}` : id), columns: columns(scope, list.refresh), empty: 'There are no schedules.' })}
      ${pager(list)}`)}
  </div>`;
  return { title: 'Schedules', view };
}

/** @param {string} scope @param {() => void} after @returns {import('../view/table.js').Column<any>[]} */
function columns(scope, after) {
  const owner = (/** @type {any} */ schedule) => ownerOfItem(schedule, scope);
  return [
    { title: 'schedule', cell: (schedule) => html`<a href=${href('schedule', { id: schedule.id, tenant: owner(schedule) })}>${schedule.id}</a>${schedule.paused ? html` <span class="paused">paused</span>` : ''}` },
    ...tenantColumn(scope),
    { title: 'times', cell: timesView },
    { title: 'topic', cell: (schedule) => html`<a href=${href('topic', { topic: schedule.job.topic, tenant: owner(schedule) })}>${schedule.job.topic}</a>` },
    { title: 'next', cell: (schedule) => moment(schedule.next_at, zoneOf(schedule)) },
    { title: 'last', cell: (schedule) => (schedule.last ? html`<a href=${lastJob(schedule, owner(schedule))}>${moment(schedule.last.at, zoneOf(schedule))}</a>` : html`<span class="none">–</span>`) },
    { title: 'fired', kind: 'number', cell: ({ fired }) => count(fired) },
    { title: 'missed', kind: 'number', cell: ({ missed_firings: missed }) => count(missed) },
    { title: 'overlapped', kind: 'number', cell: ({ overlapped_firings: overlapped }) => count(overlapped) },
    { title: 'actions', kind: 'actions', cell: (schedule) => scheduleActions(schedule, owner(schedule), after) },
  ];
}

/** The address of the page of the job that the last firing submitted. @param {any} schedule @param {string} tenant */
export function lastJob({ job, last }, tenant) {
  return href('job', { topic: job.topic, id: last.id, tenant });
}

/** The zone in which the times of a schedule are shown: its own, else UTC for a cron expression; undefined, which is the zone of the browser, for a period. @param {any} schedule @returns {string | undefined} */
export function zoneOf({ cron, time_zone: zone }) {
  return zone ?? (cron ? 'UTC' : undefined);
}

/** Shows the rule by which a schedule fires: its cron expression with the zone, or its period. @param {any} schedule */
export function timesView({ cron, every, time_zone: zone }) {
  return cron ? html`<code>${cron}</code> <span class="soft">${zone ?? 'UTC'}</span>` : html`every ${every}`;
}

/** @param {any} schedule @param {string} tenant whose it is @param {() => void} after */
export function scheduleActions({ id, paused, job }, tenant, after) {
  const common = { method: 'POST', tenant, after };
  const run = () => confirm({ ...common, title: `Run the schedule ${id}`, verb: 'Run now', path: path`/v1/schedules/${id}/run`, words: `It submits its job of the topic ${job.topic} now, beside its times, also if it is paused.`, done: (answer) => `The schedule ${id} has submitted the job ${answer.last?.id}.` });
  const pause = () => confirm({ ...common, title: `Pause the schedule ${id}`, verb: 'Pause', path: path`/v1/schedules/${id}/pause`, words: 'It does not fire until it is resumed. Its times meanwhile do not count as missed.', done: () => `The schedule ${id} is paused.` });
  const resume = () => confirm({ ...common, title: `Resume the schedule ${id}`, verb: 'Resume', path: path`/v1/schedules/${id}/resume`, words: 'It fires again, from its next time on. What it missed is not made up for.', done: () => `The schedule ${id} is resumed.` });
  return html`${paused
    ? actionButton({ name: 'resume', label: 'Resume', scope: 'submit', about: id, onClick: resume })
    : actionButton({ name: 'pause', label: 'Pause', scope: 'submit', about: id, onClick: pause })}
    ${actionButton({ name: 'run', label: 'Run…', scope: 'submit', about: id, onClick: run })}`;
}
