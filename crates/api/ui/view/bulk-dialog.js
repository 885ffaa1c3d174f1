// The dialog of a bulk operation: counts the jobs that match a filter, asks for confirmation, starts the operation,
// shows its progress, and can stop it.

import { html, nothing } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { redraw } from '../core/redraw.js';
import { href } from '../core/route.js';
import { announce } from './announce.js';
import { callText, textField } from './confirm.js';
import { closeDialog, openDialog } from './dialog.js';
import { DUE, dueOf } from './due.js';
import { count, plural } from './format.js';

const PROGRESS_MS = 1000;

/** @typedef {'cancel' | 'run' | 'revive' | 'reschedule' | 'purge'} Verb */

/** For each verb: its effect in words, the scope that it needs, the states that it changes, and the default rate in jobs a second. */
export const VERBS = /** @type {Record<Verb, {words: string, scope: import('../core/session.js').Scope, states: string[], rate: number, isFinal?: boolean}>} */ ({
  cancel: { words: 'They are not delivered any more. A job in delivery is cancelled if its delivery fails.', scope: 'submit', states: ['delayed', 'ready', 'reserved', 'dead'], rate: 100_000, isFinal: true },
  run: { words: 'They are due now instead of later.', scope: 'submit', states: ['delayed'], rate: 100 },
  revive: { words: 'They are due now, and their failures are counted from zero.', scope: 'manage', states: ['dead'], rate: 100 },
  reschedule: { words: 'They are due at another time. A duration counts from when each is changed.', scope: 'submit', states: ['delayed'], rate: 100_000 },
  purge: { words: 'They are removed. Nothing is kept of them but logged attempts.', scope: 'manage', states: ['dead'], rate: 100_000, isFinal: true },
});

/** @param {string} verb */
const label = (verb) => verb[0].toUpperCase() + verb.slice(1);

/**
 * @param {{verb: Verb, filter: Record<string, unknown>, words: string, tenant: string, after: () => void}} options
 * `words` are the filter as people read it; `tenant` is whose jobs; `after` loads again what has changed
 */
export function changeJobs({ verb, filter, words, tenant, after }) {
  const { states, isFinal } = VERBS[verb];
  const target = `/v1/jobs/${verb}`;
  const ending = new AbortController();
  const { signal } = ending;
  let rate = String(VERBS[verb].rate);
  let due = '1h';
  let error = '';
  let isBusy = false;
  /** @type {any} */
  let counted = null;
  /** @type {any} */
  let operation = null;

  const body = () => ({ filter, rate: /^\d+$/.test(rate) ? Number(rate) : rate, ...(verb === 'reschedule' ? dueOf(due) : {}) });

  /** @param {() => Promise<void>} step */
  async function attempt(step) {
    isBusy = true;
    error = '';
    redraw();
    try {
      await step();
    } catch (failed) {
      if (!signal.aborted) error = /** @type {Error} */ (failed).message;
    }
    isBusy = false;
    redraw();
  }

  const dryRun = () => attempt(async () => {
    counted = await call('POST', target, { body: { ...body(), dry_run: true }, tenant, signal });
  });

  /** @param {Event} event */
  const start = (event) => {
    event.preventDefault();
    if (isBusy || !counted || operation) return;
    attempt(async () => {
      operation = await call('POST', target, { body: body(), tenant });
      announce(`Bulk operation ${operation.id} has begun: ${verb}, ${words}.`);
      follow();
    });
  };

  async function follow() {
    while (operation.state === 'running' && !signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, PROGRESS_MS));
      operation = await call('GET', path`/v1/bulk/${operation.id}`, { tenant, signal }).catch(() => operation);
      redraw();
    }
    if (!signal.aborted) finished();
  }

  const stop = () => attempt(async () => {
    operation = await call('DELETE', path`/v1/bulk/${operation.id}`, { tenant });
    finished();
  });

  function finished() {
    announce(`Bulk operation ${operation.id} is ${operation.state}: ${plural(operation.changed, 'job')} changed (${verb}).`);
    after();
  }

  const question = () => html`<form @submit=${start}>
    <p>${label(verb)} all jobs with ${words}${filter.state ? '' : ` that are ${states.join(' or ')}`}. ${VERBS[verb].words} Jobs that are created from now on are left alone.</p>
    ${countView(counted, verb, tenant, error)}
    ${verb === 'reschedule' ? textField(DUE, due, (text) => (due = text)) : nothing}
    ${textField({ name: 'rate', label: 'Jobs a second', hint: '1 to 100000' }, rate, (text) => (rate = text))}
    ${callText('POST', target, body(), tenant)}
    ${problem(error)}
    <div class="buttons">
      <button type="button" data-testid="dialog-dismiss" @click=${closeDialog}>Do nothing</button>
      <button type="button" data-testid="dry-run" @click=${dryRun} ?disabled=${isBusy}>Count again</button>
      <button type="submit" class=${isFinal ? 'danger' : 'primary'} data-testid="dialog-confirm" ?disabled=${isBusy || !counted || counted.count === 0}
        >${label(verb)}${counted ? ` ${counted.exact ? '' : 'about '}${plural(counted.count, 'job')}` : ''}</button>
    </div>
  </form>`;

  const progress = () => html`
    <p data-testid="bulk-progress" role="status">${operation.state}: ${count(operation.changed)} of ${counted.exact ? '' : 'about '}${count(counted.count)} changed</p>
    <progress max=${Math.max(counted.count, operation.changed, 1)} value=${operation.state === 'done' ? Math.max(counted.count, operation.changed, 1) : operation.changed} aria-label="jobs changed"></progress>
    <p class="soft">Operation ${operation.id}. It goes on when this is closed: <a href=${href('bulk')} @click=${closeDialog}>bulk operations</a>.</p>
    ${problem(error)}
    <div class="buttons">
      ${operation.state === 'running' ? html`<button type="button" class="danger" data-testid="bulk-stop" @click=${stop} ?disabled=${isBusy}>Stop</button>` : nothing}
      <button type="button" class="primary" data-testid="dialog-dismiss" @click=${closeDialog}>Close</button>
    </div>`;

  openDialog({
    title: `${label(verb)} jobs`,
    content: () => (operation ? progress() : question()),
    onClose: () => ending.abort(),
  });
  dryRun();
}

/** @param {any} counted @param {Verb} verb @param {string} tenant @param {string} error */
function countView(counted, verb, tenant, error) {
  if (!counted) return error ? nothing : html`<p class="soft" role="status">Counting…</p>`;
  return html`<p data-testid="dry-run-count" role="status"><strong>${counted.exact ? '' : 'About '}${plural(counted.count, 'job')}</strong> fit now.
      ${counted.exact ? nothing : html`The number is estimated from the jobs that could be looked at in two seconds.`}</p>
    ${counted.examples.length ? html`<details open><summary>Examples</summary><ul data-testid="dry-run-examples">
      ${counted.examples.map((/** @type {any} */ job) => html`<li><a href=${href('job', { topic: job.topic, id: job.id, tenant })} target="_blank" rel="noopener">${job.topic}/${job.id}</a> <span class="soft">${job.state}</span></li>`)}
    </ul></details>` : html`<p class="soft">There is nothing to ${verb}.</p>`}`;
}

/** @param {string} error */
function problem(error) {
  return error ? html`<p class="problem" role="alert" data-testid="dialog-error">${error}</p>` : nothing;
}
