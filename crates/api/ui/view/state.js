// Shows the state of a job as a coloured label, and the status and error of its last failed attempt.

import { html } from '../vendor/lit-html.js';

/** The states of jobs, in the order of their life. */
export const STATES = /** @type {const} */ (['delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled']);

/** @param {string} state @param {string} [testid] */
export function stateLabel(state, testid = 'state') {
  const hue = /** @type {readonly string[]} */ (STATES).includes(state) ? state : 'other';
  return html`<span class="state state-${hue}" data-testid=${testid}>${state}</span>`;
}

/** The status and the error of the last failed attempt; a dash if none failed. @param {{status?: number, error?: string} | null | undefined} last */
export function failure(last) {
  if (!last) return html`<span class="none">–</span>`;
  return html`<span class="bad">${[last.status, last.error].filter((part) => part !== undefined && part !== null).join(' ')}</span>`;
}
