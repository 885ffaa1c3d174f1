// For the page of a job: when a job that is done was delivered, and what was answered, as far as an event, the attempt
// log or the archive tells.

import { html, nothing } from '../vendor/lit-html.js';
import { ApiError, call, path } from '../core/api.js';
import { duration, moment } from '../view/format.js';

/** @typedef {{at: string, status?: number, duration_ms?: number, byConsumer?: boolean}} Delivery */

/** The delivery that an event reports; null if it is not a successful attempt. @param {import('../core/batch.js').JobEvent} event @returns {Delivery | null} */
export function deliveryOfEvent({ kind, outcome, at, status, duration_ms: ms }) {
  return kind === 'attempt' && outcome === 'complete' ? { at, status, duration_ms: ms } : null;
}

/** The delivery of a done job in its attempt log; null if its last attempt was not logged as a success. @param {any} job @param {any[]} attempts @returns {Delivery | null} */
export function deliveryOfLog(job, attempts) {
  return attempts.find(({ attempt, error }) => attempt === job.attempts && error === undefined) ?? null;
}

/**
 * The delivery of a done job in the archive; null if the call is refused or fails, or the archive does not have the job.
 * @param {any} job @param {string} tenant @param {AbortSignal} signal @returns {Promise<Delivery | null>}
 */
export async function deliveryOfArchive(job, tenant, signal) {
  const target = `${path`/v1/history/${job.topic}/${job.id}`}?limit=1&include=attempts`;
  try {
    const { items: [end] } = await call('GET', target, { tenant, signal });
    if (end?.state !== 'done' || end.created_at !== job.created_at) return null;
    const logged = deliveryOfLog(end, end.log ?? []);
    return logged ?? { at: end.finished_at, byConsumer: end.url === undefined };
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

/** @param {any} job @param {Delivery | null} delivery */
export function deliveredView(job, delivery) {
  if (job.state !== 'done') return nothing;
  const fact = delivery ? known(delivery) : html`not before ${moment(job.due_at)}. The time and the answer were not kept: <code>RINGBACK_ATTEMPT_LOG=all</code> or an archive keeps them from then on.`;
  return html`<dt>delivered</dt><dd data-testid="job-delivered">${fact}</dd>`;
}

/** @param {Delivery} delivery */
function known({ at, status, duration_ms: ms, byConsumer }) {
  const took = ms === undefined ? '' : ` after ${duration(ms)}`;
  if (byConsumer) return html`${moment(at)}, finished by a consumer`;
  return html`${moment(at)}, ${status === undefined ? 'the answer was not kept' : html`answered <span class="good">${status}</span>${took}`}`;
}
