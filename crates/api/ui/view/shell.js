// The frame around each page: the navigation and the link past it, the mode of events, the caller with the choice of a
// tenant, the banner of a failed connection, the status line, and the dialog.

import { html, nothing } from '../vendor/lit-html.js';
import { connection } from '../core/connection.js';
import { live } from '../core/events.js';
import { forgetKey } from '../core/key-sharing.js';
import { href } from '../core/route.js';
import { session } from '../core/session.js';
import { tenants } from '../core/tenant.js';
import { announcement } from './announce.js';
import { dialogView } from './dialog.js';
import { tenantPicker } from './tenant.js';

const NAVIGATION = [
  ['', 'overview', 'Overview'], ['topics', 'topics', 'Topics'], ['destinations', 'destinations', 'Destinations'],
  ['jobs', 'jobs', 'Jobs'], ['dead', 'dead', 'Dead letters'], ['schedules', 'schedules', 'Schedules'],
  ['bulk', 'bulk', 'Bulk operations'], ['audit-log', 'audit-log', 'Audit log'],
];

const MODES = { connecting: 'connecting', live: 'live', polling: 'polling', off: 'paused' };
const MODE_TITLES = {
  connecting: 'The stream of events is asked for',
  live: 'Events come as they happen',
  polling: 'No events come: counts are asked for every two seconds',
  off: 'Nothing is asked for while the tab is hidden',
};

/** @param {string} section the page of the navigation that is shown @param {unknown} page */
export function shell(section, page) {
  return html`
    <a class="skip" href="#main" data-testid="skip-link" @click=${skip}>Skip to the content</a>
    <header>
      <a class="brand" href=${href('')}>Ringback</a>
      <nav aria-label="Pages"><ul>${NAVIGATION.map(([name, testid, title]) => html`<li>
        <a href=${href(name)} data-testid="nav-${testid}" aria-current=${name === section ? 'page' : nothing}>${title}</a></li>`)}</ul></nav>
      <div class="caller">
        ${session.key ? caller() : nothing}
        <span class="live live-${live.mode}" data-testid="live" title=${MODE_TITLES[live.mode]}>${MODES[live.mode]}</span>
      </div>
    </header>
    <div role="alert">${connection.trouble ? html`<p class="banner" data-testid="banner">${connection.trouble}</p>` : nothing}</div>
    <main id="main" tabindex="-1">${page}</main>
    <footer>${announcement()}</footer>
    ${dialogView()}`;
}

function caller() {
  return html`${tenants.isRoot ? tenantPicker() : nothing}
    ${limits()}
    <button type="button" data-testid="key-forget" @click=${forgetKey}>Forget the key</button>`;
}

/** Says which scopes the key is known to lack: the tooltips of disabled buttons cannot be reached by the keyboard. */
function limits() {
  const lacks = /** @type {const} */ (['submit', 'manage']).filter((scope) => session.refusal(scope) !== null);
  if (lacks.length === 0) return nothing;
  return html`<span class="soft" data-testid="key-limits">${lacks.length === 2 ? 'This key may only read' : `This key lacks the scope ${lacks[0]}`}</span>`;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
