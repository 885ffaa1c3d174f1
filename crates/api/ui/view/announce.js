// What an action did, in a line that screen readers read out.

import { html } from '../vendor/lit-html.js';
import { redraw } from '../core/redraw.js';

let text = '';

/** @param {string} next */
export function announce(next) {
  text = next;
  redraw();
}

export function announcement() {
  return html`<p class="status" role="status" aria-live="polite" data-testid="status">${text}</p>`;
}
