// The page of one topic: its counts and its policy, with the button that pauses or resumes it.

import { html, nothing } from '../vendor/lit-html.js';
import { call, path } from '../core/api.js';
import { resource } from '../core/resource.js';
import { href } from '../core/route.js';
import { ownerOf } from '../core/tenant.js';
import { count, duration, moment } from '../view/format.js';
import { panel } from '../view/panel.js';
import { STATES } from '../view/state.js';
import { ownerNote } from '../view/tenant.js';
import { pauseButton } from './topics.js';

const EVERY_MS = 5000;

/** @type {import('../main.js').MakePage} */
export function topicPage(params, signal) {
  const [topic, tenant] = [params.get('topic') ?? '', ownerOf(params)];
  const of = resource((signal) => call('GET', path`/v1/topics/${topic}`, { tenant, signal }), { signal, every: EVERY_MS });
  const view = () => html`<div data-testid="page-topic">
    <h1 tabindex="-1">Topic ${topic}${ownerNote(tenant)}</h1>
    ${panel({ name: 'topic', of }, (answer) => topicView(answer, tenant, of.refresh))}
  </div>`;
  return { title: `Topic ${topic}`, view };
}

/** @param {any} answer @param {string} tenant @param {() => void} after */
function topicView(answer, tenant, after) {
  const { topic, paused, states, oldest_due_at: due, late_ms: late, policy, order } = answer;
  return html`
    <div class="buttons start">${pauseButton(answer, tenant, after)}
      <a class="button" href=${href('jobs', { topic, tenant })}>Jobs</a> <a class="button" href=${href('dead', { topic, tenant })}>Dead letters</a></div>
    <ul class="counts">${STATES.map((state) => html`<li class="state-${state}"><strong>${count(states[state])}</strong> <span>${state}</span></li>`)}</ul>
    <dl>
      <dt>paused</dt><dd>${paused ? 'yes' : 'no'}</dd>
      <dt>first due</dt><dd>${moment(due)}</dd>
      <dt>the oldest ready job waits for</dt><dd>${late ? duration(late) : '–'}</dd>
      ${order ? html`<dt>order</dt><dd data-testid="topic-order">by ${order.by}; ${order.since ? html`since ${moment(order.since)}` : 'jobs that were attempted before are looked for'}</dd>` : nothing}
    </dl>
    <h2>Policy</h2>
    ${policy
      ? html`<pre data-testid="topic-policy">${JSON.stringify(policy, null, 2)}</pre>`
      : html`<p class="soft" data-testid="topic-policy">None: the settings of the installation apply.</p>`}`;
}
