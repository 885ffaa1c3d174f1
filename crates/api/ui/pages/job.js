// The page of one job: its state, request, attempts and next attempts, with the buttons that change it, and its
// callback as a curl command. The parts are in `job-actions`, `delivered`, `timeline`, `request` and `curl`.

import { html, nothing } from '../vendor/lit-html.js';
import { ApiError, call, path } from '../core/api.js';
import { live } from '../core/events.js';
import { rawAt } from '../core/raw-json.js';
import { redraw } from '../core/redraw.js';
import { resource } from '../core/resource.js';
import { href } from '../core/route.js';
import { isEventOf, ownerOf } from '../core/tenant.js';
import { announce } from '../view/announce.js';
import { closeDialog, openDialog } from '../view/dialog.js';
import { count, moment, plural } from '../view/format.js';
import { panel } from '../view/panel.js';
import { failure, stateLabel } from '../view/state.js';
import { ownerNote } from '../view/tenant.js';
import { curlOf } from './curl.js';
import { deliveredView, deliveryOfArchive, deliveryOfEvent, deliveryOfLog } from './delivered.js';
import { jobActions } from './job-actions.js';
import { requestView } from './request.js';
import { timelineView } from './timeline.js';

/** How often the job is loaded again, for changes that no event reports, and while there are no events. */
const EVERY_MS = 10_000;
/** How long after an event the job is loaded again. */
const AFTER_EVENT_MS = 1000;

/** @type {import('../main.js').MakePage} */
export function jobPage(params, signal) {
  const [topic, id, tenant] = [params.get('topic') ?? '', params.get('id') ?? '', ownerOf(params)];
  const at = path`/v1/jobs/${topic}/${id}`;
  const job = resource((signal) => call('GET', `${at}?include=request`, { tenant, signal, parse }), { signal, every: EVERY_MS });
  const attempts = resource((signal) => loadAttempts(at, tenant, signal), { signal, every: EVERY_MS });
  /** Its delivery by an event; null if none came. @type {import('./delivered.js').Delivery | null} */
  let seen = null;
  /** @type {import('../core/resource.js').Resource<import('./delivered.js').Delivery | null> | null} */
  let archived = null;
  /** @param {any} job */
  const deliveryOf = (job) => {
    if (job.state !== 'done') return null;
    const known = deliveryOfLog(job, attempts.value?.items ?? []) ?? seen;
    if (!known && attempts.value) archived ??= resource((signal) => deliveryOfArchive(job, tenant, signal), { signal });
    return known ?? archived?.value ?? null;
  };
  const refresh = () => {
    job.refresh();
    attempts.refresh();
  };
  let timer = 0;
  live.listen(({ events }) => {
    const own = events.filter((event) => event.topic === topic && event.id === id && isEventOf(event, tenant));
    seen = own.map(deliveryOfEvent).findLast((delivery) => delivery !== null) ?? seen;
    if (timer !== 0 || own.length === 0) return;
    timer = setTimeout(() => {
      timer = 0;
      if (!signal.aborted) refresh();
    }, AFTER_EVENT_MS);
  }, signal);

  const view = () => html`<div data-testid="page-job">
    <h1 tabindex="-1"><a href=${href('topic', { topic, tenant })}>${topic}</a>/${id}${ownerNote(tenant)}</h1>
    ${panel({ name: 'job', of: job }, (answer) => html`
      <div class="buttons start">${jobActions(answer, tenant, refresh)}
        <button type="button" data-testid="action-curl" @click=${() => showCurl(answer)} ?disabled=${!answer.request?.url}
          title=${answer.request?.url ? '' : 'Only jobs with a URL that have not ended'}>Copy as curl…</button>
        <button type="button" data-testid="refresh" @click=${refresh}>Refresh</button></div>
      ${factsView(answer, tenant, deliveryOf(answer))}`)}
    ${panel({ name: 'timeline', title: 'Attempts', of: attempts }, ({ items }) => timelineView(job.value ?? {}, items))}
    ${job.value?.request ? html`<section class="panel" data-testid="panel-request"><h2>Request</h2>${requestView(job.value)}</section>`
      : job.value ? html`<p class="soft">What was submitted is not kept once a job has ended.</p>` : nothing}
  </div>`;
  return { title: `${topic}/${id}`, view };
}

/** Parses a job, and adds the text of its body as it was written, as `rawBody`. @param {string} text */
function parse(text) {
  return { ...JSON.parse(text), rawBody: rawAt(text, 'request', 'body') };
}

/** @param {string} at @param {string} tenant @param {AbortSignal} signal */
async function loadAttempts(at, tenant, signal) {
  try {
    return await call('GET', `${at}/attempts`, { tenant, signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return { items: [] };
    throw error;
  }
}

/** @param {any} job @param {string} tenant @param {import('./delivered.js').Delivery | null} delivery */
function factsView(job, tenant, delivery) {
  return html`<dl>
    <dt>state</dt><dd>${stateLabel(job.state, 'job-state')}${job.reason ? html` ${job.reason}` : nothing}</dd>
    ${deliveredView(job, delivery)}
    <dt>due</dt><dd>${moment(job.due_at)}</dd>
    ${job.waiting ? html`<dt>waiting</dt><dd data-testid="job-waiting">${waitingView(job, tenant)}</dd>` : nothing}
    <dt>created</dt><dd>${moment(job.created_at)}</dd>
    <dt>attempts</dt><dd>${count(job.attempts)}, of which ${count(job.failures)} failed</dd>
    ${job.last ? html`<dt>last failure</dt><dd>${failure(job.last)} <span class="soft">${moment(job.last.at)}, after ${job.last.duration_ms} ms</span></dd>` : nothing}
    ${job.tags ? html`<dt>tags</dt><dd>${job.tags.map((/** @type {string} */ tag) => html`<a class="tag" href=${href('jobs', { tag, tenant })}>${tag}</a> `)}</dd>` : nothing}
  </dl>`;
}

/** What a job waits for, how many jobs come before it, and until when at least. @param {any} job @param {string} tenant */
function waitingView({ topic, waiting }, tenant) {
  const { for: cause, by = [], key, behind, held, before, more, until } = waiting;
  const first = html`<a href=${href('job', { topic, id: behind, tenant })}>${behind}</a>`;
  const whose = `its ${by.join(' and its ')}`;
  const what = /** @type {Record<string, any>} */ ({
    pause: `until ${whose} ${by.length === 1 ? 'is' : 'are'} resumed`,
    order: held ? html`until the dead job ${first}, which holds the key ${key}, is revived or purged, or the key is unblocked` : html`for ${first}, the first job of its key ${key}`,
    breaker: 'for an answer of its receiver, which is probed',
    limit: `for the limits of ${whose}`,
    places: 'until a notifier or a consumer takes it',
    retry: 'for its retry',
  })[cause] ?? cause;
  const jobs = before === undefined ? '' : more ? `, ${count(before)} or more jobs before it` : `, ${plural(before, 'job')} before it`;
  return html`${what}${jobs}${until ? html`, ${cause === 'retry' ? '' : 'at the earliest '}${moment(until)}` : nothing}`;
}

/** @param {any} job */
function showCurl(job) {
  const text = curlOf(job);
  const copy = async () => {
    // There is a clipboard in secure contexts alone; the text can be selected everywhere.
    await navigator.clipboard?.writeText(text).then(() => announce('The command is copied.'), () => announce('The browser does not allow copying: select the text.'));
    closeDialog();
    redraw();
  };
  openDialog({
    title: 'The callback as a curl command',
    content: () => html`<p class="soft">Each attempt has its own webhook-timestamp, signature and trace, which are left out. Put values in place of masks.</p>
      <pre data-testid="curl-text" tabindex="0">${text}</pre>
      <div class="buttons"><button type="button" data-testid="dialog-dismiss" @click=${closeDialog}>Close</button>
        <button type="button" class="primary" data-testid="dialog-confirm" ?disabled=${!navigator.clipboard} @click=${copy}>Copy</button></div>`,
  });
}
