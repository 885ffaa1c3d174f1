// Tenants on the page, for the root key: the choice in the header, the column of lists of all tenants, and the note
// beside a heading. `core/tenant` knows the tenants.

import { html, nothing } from '../vendor/lit-html.js';
import { redraw } from '../core/redraw.js';
import { replaceParams } from '../core/route.js';
import { session } from '../core/session.js';
import { ALL, NONE, tenants } from '../core/tenant.js';

/** The value of the option that opens a field to write the name of a tenant. */
const ANOTHER = '';

let isNaming = false;

/** The control that chooses the tenant of the tab; for the root key alone. */
export function tenantPicker() {
  const { tenant } = session;
  const known = new Set([...tenants.names, ...(tenant === ALL || tenant === NONE || tenant === '' ? [] : [tenant])]);
  const options = [[ALL, 'all'], [NONE, 'none'], ...[...known].sort().map((name) => [name, name])];
  return html`<label class="tenant">Tenant
      <select data-testid="tenant-select" @change=${pick}>
        ${options.map(([value, text]) => html`<option value=${value} .selected=${value === tenant && !isNaming}>${text}</option>`)}
        <option value=${ANOTHER} .selected=${isNaming}>another…</option>
      </select></label>
    ${isNaming ? html`<form class="tenant" @submit=${name}>
      <input name="tenant" data-testid="tenant-input" size="10" required autocomplete="off" spellcheck="false" aria-label="Name of the tenant">
      <button type="submit" data-testid="tenant-apply">Choose</button>
    </form>` : nothing}`;
}

/** @param {Event} event */
function pick(event) {
  const { value } = /** @type {HTMLSelectElement} */ (event.target);
  if (value !== ANOTHER) return choose(value);
  isNaming = true;
  redraw();
}

/** @param {SubmitEvent} event */
function name(event) {
  event.preventDefault();
  const text = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get('tenant'));
  // What is not a header value would fail as if the API did not answer.
  choose(text.replace(/[^\x21-\x7e]/g, ''));
}

/** @param {string} tenant */
function choose(tenant) {
  isNaming = false;
  // The address would go on naming another one.
  replaceParams({ tenant: null });
  session.setTenant(tenant || ALL);
}

/** The column with the tenant, in a list of all tenants; no column in any other list. @param {string} scope @returns {import('./table.js').Column<any>[]} */
export function tenantColumn(scope) {
  return scope === ALL ? [{ title: 'tenant', cell: ({ tenant }) => tenant ?? html`<span class="none">none</span>` }] : [];
}

/** The note beside the heading of a page that names its tenant; nothing if no tenant was chosen, or all. @param {string} owner */
export function ownerNote(owner) {
  if (owner === '' || owner === ALL) return nothing;
  return html` <span class="note" data-testid="owner">${owner === NONE ? 'no tenant' : `tenant ${owner}`}</span>`;
}
