// The state of a job as a label with a hue of its own, and what made its last attempt fail.

import { html } from '../vendor/lit-html.js';

/** The states of jobs, in the order of their life. */
export const STATES = /** @type {const} */ (['delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled']);

/** @param {string} state @param {string} [testid] */
export function stateLabel(state, testid = 'state') {
  const hue = /** @type {readonly string[]} */ (STATES).includes(state) ? state : 'other';
  return html`<span class="state state-${hue}" data-testid=${testid}>${state}</span>`;
}

/** What the last failed attempt was answered with. @param {{status?: number, error?: string} | null | undefined} last */
export function failure(last) {
  if (!last) return html`<span class="none">–</span>`;
  return html`<span class="bad">${[last.status, last.error].filter((part) => part !== undefined && part !== null).join(' ')}</span>`;
}
