// The filter of jobs: reads its fields from the address, shows it as a form, and writes it for the API and in words.

import { html } from '../vendor/lit-html.js';
import { now } from '../core/api.js';
import { tenants } from '../core/tenant.js';
import { exact, instant, milliseconds } from '../view/format.js';

/** @typedef {{name: string, label: string, hint: string, options?: string[], kind?: 'past' | 'future' | 'number'}} Field */

/** @type {Field[]} */
export const FIELDS = [
  { name: 'topic', label: 'topic', hint: 'a name' },
  { name: 'state', label: 'state', hint: '', options: ['delayed', 'ready', 'reserved', 'dead'] },
  { name: 'tag', label: 'tag', hint: 'customer:42' },
  { name: 'host', label: 'host', hint: 'merchant.example' },
  { name: 'reason', label: 'reason', hint: 'exhausted' },
  { name: 'status', label: 'status', hint: '503', kind: 'number' },
  { name: 'error', label: 'error has', hint: 'timeout' },
  { name: 'id_prefix', label: 'id begins with', hint: 'order-' },
  { name: 'due_after', label: 'due after', hint: '30m or a time', kind: 'future' },
  { name: 'due_before', label: 'due before', hint: '1h or a time', kind: 'future' },
  { name: 'created_after', label: 'created after', hint: '1d or a time', kind: 'past' },
  { name: 'created_before', label: 'created before', hint: '1d or a time', kind: 'past' },
  { name: 'failed_after', label: 'failed after', hint: '2h or a time', kind: 'past' },
  { name: 'failed_before', label: 'failed before', hint: '2h or a time', kind: 'past' },
];

/** The fields of a filter that are given. @param {URLSearchParams} params @returns {Record<string, string>} */
export function fieldsOf(params) {
  const given = FIELDS.map(({ name }) => [name, params.get(name) ?? '']).filter(([, value]) => value !== '');
  return Object.fromEntries(given);
}

/** The filter in the form of a request of a bulk operation: `status` is a number if it is written as one. @param {Record<string, string>} fields */
export function filterOf(fields) {
  const { status } = fields;
  return { ...fields, ...(status && /^\d+$/.test(status) ? { status: Number(status) } : {}) };
}

/** The filter as people read it. @param {Record<string, unknown>} fields */
export function wordsOf(fields) {
  const named = FIELDS.filter(({ name }) => fields[name] !== undefined);
  return named.map(({ name, label, kind }) => `${label} ${isTime(kind) ? exact(String(fields[name])) : fields[name]}`).join(', ');
}

/**
 * The form, in which times may be written as durations before or after now, or as times where the browser is. With the root
 * key it asks for a tenant too.
 * @param {Record<string, string>} fields @param {string} tenant @param {(fields: Record<string, string>) => void} onApply
 */
export function filterForm(fields, tenant, onApply) {
  /** @param {SubmitEvent} event */
  const apply = (event) => {
    event.preventDefault();
    const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const values = FIELDS.map((field) => [field.name, timeOf(field, String(data.get(field.name) ?? '').trim())]);
    values.push(['tenant', String(data.get('tenant') ?? '').trim()]);
    onApply(Object.fromEntries(values.filter(([, value]) => value !== '')));
  };
  return html`<form class="filter" data-testid="filter-form" @submit=${apply} aria-label="Filter">
    ${FIELDS.map((field) => html`<label>${field.label} ${input(field, fields[field.name] ?? '')}</label>`)}
    ${tenants.isRoot ? html`<label>tenant ${input({ name: 'tenant', label: 'tenant', hint: 'as chosen above' }, tenant)}</label>` : ''}
    <div class="buttons start">
      <button type="submit" class="primary" data-testid="filter-apply">Find</button>
      <button type="button" data-testid="filter-clear" @click=${() => onApply({})}>Clear</button>
    </div>
  </form>`;
}

/** @param {Field} field @param {string} value */
function input({ name, hint, options }, value) {
  return options
    ? html`<select name=${name} data-testid="filter-${name}">
        <option value="" ?selected=${value === ''}>any</option>
        ${options.map((option) => html`<option value=${option} ?selected=${value === option}>${option}</option>`)}
      </select>`
    : html`<input name=${name} data-testid="filter-${name}" .value=${value} placeholder=${hint} autocomplete="off" spellcheck="false">`;
}

/** @param {Field['kind']} kind */
function isTime(kind) {
  return kind === 'past' || kind === 'future';
}

/** The value of a field: of a field with a time, a duration becomes a time before or after now, and a time gets an offset. @param {Field} field @param {string} text */
function timeOf({ kind }, text) {
  if (!isTime(kind)) return text;
  const ms = milliseconds(text);
  if (Number.isNaN(ms)) return instant(text);
  return new Date(now() + (kind === 'past' ? -ms : ms)).toISOString();
}
