// The first page: what is wrong now, the jobs in each state, lateness, rates, and the forecast of due jobs.

import { html, nothing } from '../vendor/lit-html.js';
import { call, now } from '../core/api.js';
import { live } from '../core/events.js';
import { latenessLately } from '../core/lateness.js';
import { lately, SECONDS } from '../core/rates.js';
import { redrawSoon } from '../core/redraw.js';
import { resource } from '../core/resource.js';
import { href } from '../core/route.js';
import { session } from '../core/session.js';
import { stats } from '../core/stats.js';
import { bars, figures, legend, lines, partsBar } from '../view/charts.js';
import { count, duration, exact, plural, rate, relative } from '../view/format.js';
import { panel } from '../view/panel.js';
import { STATES } from '../view/state.js';
import { whatIsWrong } from './wrong.js';

const LOOK_EVERY_MS = 10_000;
const FORECAST_EVERY_MS = 60_000;
/** How many topics and destinations are read for what is wrong. */
const LOOKED_AT = 1000;
const RATES = /** @type {const} */ ([['submitted', 'submitted', 'delayed'], ['done', 'done', 'done'], ['failed', 'failed attempts', 'ready'], ['dead', 'dead', 'dead']]);

/** @type {import('../main.js').MakePage} */
export function overviewPage(_params, signal) {
  const lists = resource(loadLists, { signal, every: LOOK_EVERY_MS });
  const forecast = resource(loadForecast, { signal, every: FORECAST_EVERY_MS });
  live.listen(redrawSoon, signal);
  const view = () => html`<div data-testid="page-overview">
    <h1 tabindex="-1">Overview</h1>
    ${panel({ name: 'wrong', title: 'What is wrong now', of: lists }, (lists) => {
      const counts = stats().value;
      return counts ? wrongView(whatIsWrong(counts, lists, { now: now(), scope: session.tenant }), isPartial(lists)) : nothing;
    })}
    <div class="columns">
      ${panel({ name: 'states', title: 'Jobs', of: stats() }, statesView)}
      ${panel({ name: 'lateness', title: 'Lateness', note: 'last five minutes', of: stats() }, latenessView)}
    </div>
    ${panel({ name: 'rates', title: 'Rates', note: live.mode === 'live' ? 'per second, by events' : 'per second, by counts', of: stats() }, ratesView)}
    ${panel({ name: 'forecast', title: 'Forecast', note: 'what is due in the next 24 hours', of: forecast }, forecastView)}
  </div>`;
  return { title: 'Overview', view };
}

/** @param {AbortSignal} signal */
function loadForecast(signal) {
  return call('GET', '/v1/forecast?by=10m&until=24h', { signal });
}

/** Loads the lists in which `whatIsWrong` finds what is wrong. @param {AbortSignal} signal @returns {Promise<import('./wrong.js').Lists>} */
async function loadLists(signal) {
  const list = (/** @type {string} */ path) => call('GET', path, { signal });
  // Topics come first: a job that dies between the two reads is then counted as one of a destination, and not as a pull job.
  const topics = await list(`/v1/topics?limit=${LOOKED_AT}`);
  const [destinations, failing, bulk] = await Promise.all([
    list(`/v1/destinations?limit=${LOOKED_AT}`), list(`/v1/destinations?failing=true&limit=${LOOKED_AT}`), list('/v1/bulk'),
  ]);
  return { topics, destinations, failing: failing.items, bulk: bulk.items };
}

/** @param {import('./wrong.js').Lists} lists */
function isPartial({ topics, destinations }) {
  return topics.next !== null || destinations.next !== null;
}

/** @param {import('./wrong.js').Wrong[]} found @param {boolean} isPartial */
function wrongView(found, isPartial) {
  const [wrong, notes] = [found.filter(({ kind }) => kind === 'bad'), found.filter(({ kind }) => kind === 'note')];
  return html`${wrong.length === 0
    ? html`<p class="good" data-testid="wrong-none">Nothing is wrong, as far as can be seen from here.</p>`
    : html`<ul class="wrong" data-testid="wrong-list">${wrong.map(sentence)}</ul>`}
    ${notes.length === 0 ? nothing : html`<h3>To know</h3><ul class="wrong" data-testid="notes-list">${notes.map(sentence)}</ul>`}
    ${isPartial ? html`<p class="soft">Looked at: the first ${count(LOOKED_AT)} topics and destinations.</p>` : nothing}`;
}

/** @param {import('./wrong.js').Wrong} found */
function sentence({ kind, text, links }) {
  return html`<li class=${kind} data-testid="wrong-item">
    <strong>${kind === 'bad' ? 'Wrong: ' : 'Note: '}</strong>${text}
    ${links.map(({ text, to }, index) => html`${index ? ', ' : ' '}<a href=${to}>${text}</a>`)}
  </li>`;
}

/** @param {any} answer */
function statesView({ states, topics, store }) {
  const open = /** @type {string[]} */ (STATES.filter((state) => state !== 'done' && state !== 'cancelled'));
  const label = open.map((state) => `${count(states[state])} ${state}`).join(', ');
  return html`
    ${partsBar({ label, parts: open.map((state) => ({ name: state, hue: state, value: states[state] })) })}
    <ul class="counts">${STATES.map((state) => html`<li class="state-${state}"><strong>${count(states[state])}</strong>
      ${open.includes(state) ? html`<a href=${href('jobs', { state })}>${state}</a>` : html`<span>${state}</span>`}</li>`)}</ul>
    <p class="soft">${plural(topics, 'topic')}, on ${store.kind} (${store.profile}). Done and cancelled count since the installation began.</p>`;
}

/** @param {any} answer */
function latenessView({ lateness_ms: late }) {
  const rows = /** @type {const} */ ([['p50', 'half of all'], ['p99', '99 of 100'], ['max', 'the latest']]);
  if (late.max === null) return html`<p class="soft">Nothing was sent in the last five minutes.</p>`;
  return html`<ul class="counts">${rows.map(([name, meaning]) => html`<li><strong>${duration(late[name])}</strong> <span>${name}, ${meaning}</span></li>`)}</ul>
    ${latenessChart()}
    <p class="soft">From due to sent, over all callbacks.</p>`;
}

/** The chart of lateness over the last ten minutes, as far as it was loaded. */
function latenessChart() {
  const samples = latenessLately();
  const from = samples.length > 0 ? relative(new Date(samples[0].at).toISOString()) : '';
  const series = [{ name: 'p50', hue: 'done', values: samples.map(({ p50 }) => p50) }, { name: 'p99', hue: 'ready', values: samples.map(({ p99 }) => p99) }];
  const label = `Lateness since ${from}: ${series.map(({ name, values }) => `${name} at most ${duration(Math.max(...values.map((value) => value ?? 0), 0))}`).join(', ')}`;
  const rows = samples.filter((_, index) => index % Math.ceil(samples.length / 20) === 0).map(({ at, p50, p99 }) => [exact(new Date(at).toISOString()), ...[p50, p99].map((value) => (value === null ? '–' : duration(value)))]);
  return html`${lines({ label, series, from, to: 'now', format: duration })}
    ${legend(series)}
    ${figures('Lateness over time', ['at', 'p50', 'p99'], rows)}`;
}

function ratesView() {
  const seconds = lately(now());
  const series = RATES.map(([kind, name, hue]) => ({ name, hue, values: seconds.map((counts) => counts && counts[kind]) }));
  const label = series.map(({ name, values }) => `${mean(values.slice(-10))} ${name} a second`).join(', ');
  const rows = Array.from({ length: SECONDS / 10 }, (_, index) => {
    return [`${SECONDS - index * 10} s ago`, ...series.map(({ values }) => mean(values.slice(index * 10, index * 10 + 10)))];
  });
  return html`${lines({ label, series, from: `${SECONDS} s ago`, to: 'now', format: (top) => `${rate(top)} a second` })}
    ${legend(series.map(({ name, hue, values }) => ({ name, hue, value: mean(values.slice(-10)) })))}
    ${figures('Per second, over ten seconds each', ['from', ...series.map(({ name }) => name)], rows)}`;
}

/** The mean of the values that are not null, as a rate; a dash if there are none. @param {(number | null)[]} values */
function mean(values) {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? '–' : rate(known.reduce((sum, value) => sum + value, 0) / known.length);
}

/** @param {any} forecast */
function forecastView(forecast) {
  const { slots } = forecast;
  const kinds = /** @type {const} */ ([['jobs', 'first attempts', 'delayed'], ['retries', 'retries', 'ready'], ['schedules', 'schedules', 'reserved']]);
  const series = kinds.map(([kind, name, hue]) => ({ name, hue, values: slots.map((/** @type {any} */ slot) => slot[kind] ?? 0) }));
  const sum = (/** @type {number[]} */ values) => values.reduce((all, value) => all + value, 0);
  const label = series.map(({ name, values }) => `${count(sum(values))} ${name}`).join(', ');
  const titles = slots.map((/** @type {any} */ slot, /** @type {number} */ index) => `${exact(slot.at)}: ${series.map(({ name, values }) => `${count(values[index])} ${name}`).join(', ')}`);
  const most = forecast.recent?.per_minute_max;
  return html`${bars({ label, series, titles, from: exact(forecast.from), to: exact(forecast.until) })}
    ${legend(series.map(({ name, hue, values }) => ({ name, hue, value: count(sum(values)) })))}
    <p class="soft">Slots of ${duration(forecast.slot_ms)}.
      ${forecast.exact ? nothing : html`Estimated${forecast.error ? `, give or take ${Math.max(1, Math.round(forecast.error * 100))} % of the fullest slot` : ''}.`}
      ${most ? html`Recently at most ${count(most)} jobs a minute were delivered, so ${count((most * forecast.slot_ms) / 60_000)} in a slot.` : nothing}</p>
    ${figures('What is due', ['from', ...series.map(({ name }) => name)], slots.map((/** @type {any} */ slot, /** @type {number} */ index) => [exact(slot.at), ...series.map(({ values }) => count(values[index]))]))}`;
}
