// The status line, which says what the last action did and is read out by screen readers. It stays until it is closed
// or another page is opened.

import { html, nothing } from '../vendor/lit-html.js';
import { redraw } from '../core/redraw.js';

let text = '';

/** @param {string} next */
export function announce(next) {
  text = next;
  redraw();
}

export function announcement() {
  return html`<div class=${text ? 'status' : 'unseen'}>
    <p role="status" aria-live="polite" data-testid="status">${text}</p>
    ${text ? html`<button type="button" data-testid="status-close" @click=${() => announce('')}>Close</button>` : nothing}
  </div>`;
}
