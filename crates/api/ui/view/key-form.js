// The form that asks for a key. It is shown in place of the page after the API has refused a call without a valid key.

import { html, nothing } from '../vendor/lit-html.js';
import { session } from '../core/session.js';

export function keyForm() {
  return html`<section class="panel narrow" data-testid="key-form">
    <h1 tabindex="-1">This API asks for a key</h1>
    ${session.asked ? html`<p class="problem" role="alert">${session.asked}</p>` : nothing}
    <form @submit=${submit}>
      <label class="field">Key
        <input name="key" type="password" data-testid="key-input" required autocomplete="off" spellcheck="false" aria-describedby="key-hint">
        <small id="key-hint">It is kept in this tab until the tab is closed, and sent to this API alone. A key with the scope read sees everything here but the audit log.</small>
      </label>
      <div class="buttons"><button type="submit" class="primary" data-testid="key-submit">Use this key</button></div>
    </form>
  </section>`;
}

/** @param {SubmitEvent} event */
function submit(event) {
  event.preventDefault();
  const key = String(new FormData(/** @type {HTMLFormElement} */ (event.target)).get('key')).trim();
  // What is not a header value would fail as if the API did not answer.
  session.setKey(key.replace(/[^\x21-\x7e]/g, ''));
}
