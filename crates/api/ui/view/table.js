// Tables with a caption, of at most 200 rows, and the buttons to page through them. On a narrow screen each row is a
// card: `data-title` labels its cells there, and explicit roles keep the semantics of a table.

import { html, nothing } from '../vendor/lit-html.js';

/** The most rows of a table, whatever a page has loaded. */
const MAX_ROWS = 200;

/**
 * @template T
 * @typedef {{title: string, cell: (item: T) => unknown, kind?: 'number' | 'actions' | 'wide'}} Column
 */

/**
 * @template T
 * @param {{name: string, caption: string, columns: Column<T>[], items: T[], key: (item: T) => string, empty: unknown}} options
 */
export function table({ name, caption, columns, items, key, empty }) {
  const shown = items.slice(0, MAX_ROWS);
  if (shown.length === 0) return html`<p class="soft" data-testid="empty-${name}">${empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label=${caption}>
    <table class="cards" role="table" data-testid="table-${name}">
      <caption>${caption}</caption>
      <thead role="rowgroup"><tr role="row">${columns.map(({ title, kind }) => html`<th scope="col" role="columnheader" class=${kind ?? ''}>${title}</th>`)}</tr></thead>
      <tbody role="rowgroup">
        ${shown.map((item) => html`<tr role="row" data-testid="row" data-key=${key(item)}>
          ${columns.map((column, index) => cell(column, item, index))}
        </tr>`)}
      </tbody>
    </table>
  </div>
  ${items.length > shown.length ? html`<p class="soft">The first ${MAX_ROWS} of ${items.length}.</p>` : nothing}`;
}

/** @template T @param {Column<T>} column @param {T} item @param {number} index */
function cell({ title, cell, kind }, item, index) {
  const content = cell(item);
  return index === 0
    ? html`<th scope="row" role="rowheader" class=${kind ?? ''} data-title=${title}>${content}</th>`
    : html`<td role="cell" class=${kind ?? ''} data-title=${title}><div class="content">${content}</div></td>`;
}

/**
 * The buttons below a table in pages.
 * @param {import('../core/pages.js').Pages<any>} pages
 */
export function pager(pages) {
  return html`<div class="pager">
    <button type="button" data-testid="first-page" @click=${pages.first} ?disabled=${!pages.isLater}>First page</button>
    <button type="button" data-testid="next-page" @click=${pages.next} ?disabled=${!pages.hasNext}>Next page</button>
    <button type="button" data-testid="refresh" @click=${pages.refresh}>Refresh</button>
    ${pages.note ? html`<span class="soft">${pages.note}</span>` : nothing}
  </div>`;
}

