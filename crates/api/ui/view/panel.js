// `panel`: a part of a page that shows one `Resource`: its content, its error with a button to try again, or that it is
// loading.

import { html, nothing } from '../vendor/lit-html.js';

/**
 * @template T
 * @param {{name: string, title?: string, of: import('../core/resource.js').Resource<T>, note?: unknown}} panel
 * @param {(value: T) => unknown} content
 */
export function panel({ name, title, of, note }, content) {
  return html`<section class="panel" data-testid="panel-${name}" aria-busy=${of.isLoading && of.value === undefined}>
    ${title ? html`<h2>${title}${note ? html` <span class="note">${note}</span>` : nothing}</h2>` : nothing}
    ${of.error ? problem(of) : nothing}
    ${of.value === undefined ? (of.error ? nothing : html`<p class="soft">Loading…</p>`) : content(of.value)}
  </section>`;
}

/** @param {import('../core/resource.js').Resource<any>} of */
function problem(of) {
  return html`<div class="problem" role="alert">
    <p data-testid="panel-error">${of.error?.message}${of.value === undefined ? nothing : ' What is below is older.'}</p>
    <button type="button" data-testid="retry" @click=${of.refresh} ?disabled=${of.isLoading}>Try again</button>
  </div>`;
}
