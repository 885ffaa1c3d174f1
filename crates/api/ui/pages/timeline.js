// For the page of a job: the table of its logged attempts, and the list of waits before the next attempts if they fail.

import { html, nothing } from '../vendor/lit-html.js';
import { duration, milliseconds, moment, visible } from '../view/format.js';
import { table } from '../view/table.js';

/** How many waits before next attempts are shown. */
const SHOWN = 12;

/** @param {any} job @param {any[]} attempts */
export function timelineView(job, attempts) {
  return html`
    ${table({ name: 'attempts', caption: 'Logged attempts, the newest last', items: attempts, columns: COLUMNS, key: ({ attempt }) => String(attempt), empty: 'No attempt is logged. By default only failed ones are, and the success after them.' })}
    ${comingView(job)}`;
}

/** @type {import('../view/table.js').Column<any>[]} */
const COLUMNS = [
  { title: 'attempt', kind: 'number', cell: ({ attempt }) => attempt },
  { title: 'sent', cell: ({ at }) => moment(at) },
  { title: 'took', kind: 'number', cell: ({ duration_ms: ms }) => duration(ms) },
  { title: 'result', cell: ({ status, error }) => html`<span class=${error || status >= 300 ? 'bad' : 'good'}>${[status, error].filter((part) => part !== undefined && part !== null).join(' ')}</span>` },
  { title: 'answer', kind: 'wide', cell: ({ answer, answer_base64: base64 }) => (answer ?? base64) === undefined ? html`<span class="none">–</span>` : html`<pre data-testid="attempt-answer">${answer === undefined ? `base64: ${base64}` : visible(answer)}</pre>` },
  { title: 'by', cell: ({ by }) => by },
];

/** @param {any} job */
function comingView(job) {
  const { state, failures, effective } = job;
  if (!effective?.retry || state === 'dead') return nothing;
  const { delays = [], max = delays.length + 1, jitter } = effective.retry;
  const waits = waitsAfter(delays, max, failures);
  const isEndless = max === -1;
  const isCut = waits.length > SHOWN || (isEndless && waits.length === SHOWN);
  return html`<h3>Ahead</h3>
    <ol class="ahead">
      <li><strong>${state === 'reserved' ? 'An attempt is in flight' : 'The next attempt'}</strong> ${state === 'reserved' ? nothing : moment(job.due_at)}</li>
      ${waits.slice(0, SHOWN).map((wait, index) => html`<li>if failure ${failures + index + 1} follows: again after ${wait}</li>`)}
      ${isCut ? html`<li class="soft">and so on${isEndless ? ', for ever' : `, up to ${max} failures`}</li>` : nothing}
      ${isEndless ? nothing : html`<li>dead after ${max} failures</li>`}
    </ol>
    ${jitter ? html`<p class="soft">Each wait may be up to ${Math.round(jitter * 100)} % longer, and longer still if the receiver asks for it with Retry-After. All together: ${totalOf(waits)}${isCut ? ' and more' : ''}.</p>` : nothing}`;
}

/** The waits after each further failure, at most one more than is shown. @param {string[]} delays @param {number} max @param {number} failures */
function waitsAfter(delays, max, failures) {
  const last = max === -1 ? Infinity : max - 1;
  const waits = [];
  for (let failure = failures + 1; failure <= last && waits.length <= SHOWN && delays.length > 0; failure += 1) {
    waits.push(delays[Math.min(failure, delays.length) - 1]);
  }
  return waits;
}

/** @param {string[]} waits */
function totalOf(waits) {
  return duration(waits.reduce((sum, wait) => sum + milliseconds(wait), 0));
}
