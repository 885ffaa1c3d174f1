// The page of one schedule: its settings, its job, its next times, and the buttons that change it.

import { html } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { indented, rawAt } from '../core/raw-json.js';
import { resource } from '../core/resource.js';
import { ownerOf } from '../core/tenant.js';
import { count, moment } from '../view/format.js';
import { panel } from '../view/panel.js';
import { table } from '../view/table.js';
import { ownerNote } from '../view/tenant.js';
import { lastJob, scheduleActions, timesView, zoneOf } from './schedules.js';

const EVERY_MS = 10_000;
const TIMES = 20;

/** @type {import('../main.js').MakePage} */
export function schedulePage(params, signal) {
  const [id, tenant] = [params.get('id') ?? '', ownerOf(params)];
  const at = path`/v1/schedules/${id}`;
  const of = resource((signal) => call('GET', at, { tenant, signal, parse }), { signal, every: EVERY_MS });
  const next = resource((signal) => call('GET', `${at}/next?count=${TIMES}`, { tenant, signal }), { signal, every: EVERY_MS });
  const view = () => html`<div data-testid="page-schedule">
    <h1 tabindex="-1">Schedule ${id}${ownerNote(tenant)}</h1>
    ${panel({ name: 'schedule', of }, (schedule) => html`
      <div class="buttons start">${scheduleActions(schedule, tenant, of.refresh)}</div>
      <dl>
        <dt>fires</dt><dd>${timesView(schedule)}</dd>
        <dt>paused</dt><dd>${schedule.paused ? 'yes' : 'no'}</dd>
        <dt>next</dt><dd>${moment(schedule.next_at, zoneOf(schedule))}</dd>
        <dt>last</dt><dd>${schedule.last ? html`<a href=${lastJob(schedule, tenant)}>${schedule.last.id}</a> ${moment(schedule.last.at, zoneOf(schedule))}` : '–'}</dd>
        <dt>fired</dt><dd>${count(schedule.fired)}, ${count(schedule.missed_firings)} missed, ${count(schedule.overlapped_firings)} left out for overlap</dd>
        <dt>rules</dt><dd>missed ${schedule.missed}, catchup ${schedule.catchup}, overlap ${schedule.overlap}</dd>
      </dl>
      <h2>Job</h2><pre tabindex="0">${schedule.rawJob}</pre>`)}
    ${panel({ name: 'next', title: 'Next times', note: 'as if it were not paused', of: next }, ({ items }) =>
      table({ name: 'next', caption: 'The next firings', items, key: ({ id }) => id, columns: columns(of.value && zoneOf(of.value)), empty: 'It does not fire any more.' }))}
  </div>`;
  return { title: `Schedule ${id}`, view };
}

/** Parses a schedule, and adds the indented text of its job as it was written, as `rawJob`. @param {string} text */
function parse(text) {
  return { ...JSON.parse(text), rawJob: indented(rawAt(text, 'job') ?? '') };
}

/** @param {string | undefined} zone @returns {import('../view/table.js').Column<any>[]} */
function columns(zone) {
  return [
    { title: 'time', cell: ({ at }) => moment(at, zone) },
    { title: 'id of the job', cell: ({ id }) => id },
  ];
}
