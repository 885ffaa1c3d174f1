// The buttons of the actions on one job: run, cancel, reschedule, revive, purge, and unblock its key. Each action is
// confirmed first.

import { html, nothing } from '../vendor/lit-html.js';
import { path } from '../core/api.js';
import { actionButton, confirm } from '../view/confirm.js';
import { DUE, dueOf } from '../view/due.js';
import { exact } from '../view/format.js';

/** @param {any} job @param {string} tenant whose it is @param {() => void} after loads the job again */
export function jobActions(job, tenant, after) {
  const { topic, id, state } = job;
  const name = `${topic}/${id}`;
  const at = path`/v1/jobs/${topic}/${id}`;
  const isNow = (/** @type {any} */ answer) => `${name} is ${answer.state} now.`;
  const only = (/** @type {string[]} */ states) => (states.includes(state) ? null : `Only a job that is ${states.join(' or ')}; this one is ${state}`);
  const common = { tenant, after };

  const run = () => confirm({ ...common, title: `Run ${name}`, verb: 'Run', method: 'POST', path: `${at}/run`, words: `It is due now instead of ${exact(job.due_at)}, and is delivered after the jobs of its lane that are ready already.`, done: isNow });
  const cancel = () => confirm({
    ...common, title: `Cancel ${name}`, verb: 'Cancel the job', method: 'DELETE', path: at, isFinal: true,
    words: state === 'reserved' ? 'An attempt is in flight. If it succeeds the job is done, otherwise it is cancelled.' : 'It is not delivered any more. This cannot be undone.',
    done: (answer) => (answer.in_flight ? `${name} is to be cancelled; an attempt may be in flight.` : `${name} is cancelled.`),
  });
  const reschedule = () => confirm({
    ...common, title: `Reschedule ${name}`, verb: 'Reschedule', method: 'PATCH', path: at, words: `It is due at another time than ${exact(job.due_at)}. Its failures and attempts stay.`,
    field: { ...DUE, value: '1h', body: dueOf },
    done: (answer) => `${name} is ${answer.state} and due at ${exact(answer.due_at)}.`,
  });
  const revive = () => confirm({ ...common, title: `Revive ${name}`, verb: 'Revive', method: 'POST', path: `${at}/revive`, words: 'It is due now, and its failures are counted from zero, so that all of its retries are before it.', done: isNow });
  const purge = () => confirm({
    ...common, title: `Purge ${name}`, verb: 'Purge', method: 'DELETE', path: path`/v1/topics/${topic}/dead/${id}`, isFinal: true,
    words: 'It is removed. Only its logged attempts are kept. This cannot be undone.', done: () => `${name} is purged.`,
  });
  const { held, key, behind } = job.waiting ?? {};
  const unblock = () => confirm({
    ...common, title: `Unblock the key ${key}`, verb: 'Unblock', method: 'POST', path: path`/v1/topics/${topic}/keys/${key}/unblock`,
    words: `The next job of the key is delivered. ${behind} stays dead, and is passed over.`,
    done: (answer) => (answer.unblocked ? `The key ${key} is unblocked.` : `No dead job holds the key ${key} any more.`),
  });
  return html`
    ${held ? actionButton({ name: 'unblock', label: 'Unblock its key…', scope: 'manage', unless: null, onClick: unblock }) : nothing}
    ${actionButton({ name: 'run', label: 'Run…', scope: 'submit', unless: only(['delayed']), onClick: run })}
    ${actionButton({ name: 'cancel', label: 'Cancel…', scope: 'submit', unless: only(['delayed', 'ready', 'reserved', 'dead']), onClick: cancel })}
    ${actionButton({ name: 'reschedule', label: 'Reschedule…', scope: 'submit', unless: only(['delayed']), onClick: reschedule })}
    ${actionButton({ name: 'revive', label: 'Revive…', scope: 'manage', unless: only(['dead']), onClick: revive })}
    ${actionButton({ name: 'purge', label: 'Purge…', scope: 'manage', unless: only(['dead']), onClick: purge })}`;
}
