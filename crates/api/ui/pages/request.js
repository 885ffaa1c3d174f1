// For the page of a job: shows its request (URL, headers, body) and the settings that apply to its next attempt.

import { html, nothing } from '../vendor/lit-html.js';
import { indented } from '../core/raw-json.js';

/** The fields of `request` that are shown by themselves. */
const SHOWN = ['url', 'method', 'body', 'body_base64', 'content_type', 'headers'];

/** @param {any} job with `request` and `effective` */
export function requestView({ request, effective, rawBody }) {
  const others = Object.entries(request).filter(([name]) => !SHOWN.includes(name));
  const headers = Object.entries(effective?.headers ?? request.headers ?? {});
  const settings = Object.entries(effective ?? {}).filter(([name]) => name !== 'headers' && name !== 'url');
  return html`
    <p class="call"><code>${request.url ? `${request.method ?? 'POST'} ${effective?.url ?? request.url}` : 'a pull job: a consumer reserves it'}</code></p>
    ${headers.length ? html`<h3>Headers</h3>${pairs(headers)}` : nothing}
    ${bodyView(request, rawBody)}
    ${others.length ? html`<h3>Submitted</h3>${pairs(others)}` : nothing}
    ${settings.length ? html`<h3>Applies to the next attempt</h3>${pairs(settings)}` : nothing}`;
}

/** @param {any} request @param {string | undefined} rawBody */
function bodyView({ body_base64: base64, content_type: type }, rawBody) {
  if (rawBody === undefined && base64 === undefined) return html`<p class="soft">No body.</p>`;
  const text = rawBody === undefined ? textOf(base64) ?? base64 : indented(rawBody);
  const kind = base64 === undefined ? 'application/json' : `${type ?? 'application/octet-stream'}${textOf(base64) === null ? ', as base64' : ''}`;
  return html`<h3>Body <span class="note">${kind}</span></h3><pre data-testid="request-body" tabindex="0">${text}</pre>`;
}

/** Decodes base64 to text; null if it is not UTF-8. @param {string} base64 */
function textOf(base64) {
  try {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** @param {[string, unknown][]} entries */
function pairs(entries) {
  return html`<dl>${entries.map(([name, value]) => html`<dt>${name}</dt><dd>${shown(value)}</dd>`)}</dl>`;
}

/** @param {any} value */
function shown(value) {
  if (typeof value === 'string') return value;
  if (value && typeof value === 'object' && 'from' in value) {
    const { from, ...rest } = value;
    return html`${'value' in rest ? rest.value : JSON.stringify(rest)} <span class="soft">by ${from}</span>`;
  }
  return JSON.stringify(value);
}
