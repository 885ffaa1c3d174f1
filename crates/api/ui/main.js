// Starts the dashboard: opens the page that the address names, draws it within the shell, and opens it anew for another
// caller.

import { render } from './vendor/lit-html.js';
import { call } from './core/api.js';
import { live } from './core/events.js';
import { shareKey } from './core/key-sharing.js';
import { countEvents } from './core/rates.js';
import { drawBy, redraw } from './core/redraw.js';
import { currentRoute } from './core/route.js';
import { session } from './core/session.js';
import { restartStats } from './core/stats.js';
import { learnTenants } from './core/tenant.js';
import { announce } from './view/announce.js';
import { closeDialog, showDialog } from './view/dialog.js';
import { keyForm } from './view/key-form.js';
import { shell } from './view/shell.js';
import { auditLogPage } from './pages/audit-log.js';
import { bulkPage } from './pages/bulk.js';
import { deadPage } from './pages/dead.js';
import { destinationsPage } from './pages/destinations.js';
import { jobPage } from './pages/job.js';
import { jobsPage } from './pages/jobs.js';
import { overviewPage } from './pages/overview.js';
import { schedulePage } from './pages/schedule.js';
import { schedulesPage } from './pages/schedules.js';
import { topicPage } from './pages/topic.js';
import { topicsPage } from './pages/topics.js';

/** @typedef {{title: string, view: () => unknown}} Page */
/** @typedef {(params: URLSearchParams, signal: AbortSignal) => Page} MakePage */

/** Each page by its name in the address: its section of the navigation, and the function that makes it. */
const PAGES = /** @type {Record<string, [string, MakePage]>} */ ({
  '': ['', overviewPage],
  topics: ['topics', topicsPage],
  topic: ['topics', topicPage],
  destinations: ['destinations', destinationsPage],
  jobs: ['jobs', jobsPage],
  job: ['jobs', jobPage],
  dead: ['dead', deadPage],
  schedules: ['schedules', schedulesPage],
  schedule: ['schedules', schedulePage],
  bulk: ['bulk', bulkPage],
  'audit-log': ['audit-log', auditLogPage],
});

const root = /** @type {HTMLElement} */ (document.getElementById('app'));
let section = '';
/** The section to which the navigation was scrolled. @type {string | null} */
let shown = null;
/** @type {Page} */
let page = { title: '', view: () => '' };
let ending = new AbortController();

function draw() {
  document.title = `${session.asked === null ? page.title : 'Key'} – Ringback`;
  render(shell(section, session.asked === null ? page.view() : keyForm()), root);
  if (shown !== section) {
    shown = section;
    root.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
  showDialog(root);
}

/** Ends the open page, closes its dialog, and opens the page of the address; does nothing if the address names none. */
function open() {
  const route = currentRoute();
  if (!route) return;
  ending.abort();
  ending = new AbortController();
  closeDialog();
  const [of, make] = Object.hasOwn(PAGES, route.name) ? PAGES[route.name] : PAGES[''];
  section = of;
  page = make(route.params, ending.signal);
  redraw();
}

/** Opens the page of the address, and moves the focus to its heading, so that screen readers begin there. */
function navigate() {
  announce('');
  open();
  requestAnimationFrame(() => {
    window.scrollTo(0, 0);
    root.querySelector('h1')?.focus({ preventScroll: true });
  });
}

/** Makes a call that needs the scope `manage`: if it is refused, the message says which scopes the key has. */
function learnScopes() {
  if (session.key) call('GET', '/v1/audit-log?limit=1').catch(() => {});
}

root.replaceChildren();
window.addEventListener('hashchange', navigate);
session.watch(() => {
  restartStats();
  open();
  learnScopes();
  learnTenants();
});
countEvents();
live.start();
shareKey();
restartStats();
open();
learnScopes();
learnTenants();
drawBy(draw);
