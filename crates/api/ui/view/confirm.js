// The dialog that confirms an action: shows what the action does and its call, makes the call, and announces the
// result. Also the buttons of actions, which are disabled if the key lacks a scope, and parts that other dialogs share.

import { html, nothing } from '../vendor/lit-html.js';
import { call } from '../core/api.js';
import { redraw } from '../core/redraw.js';
import { session } from '../core/session.js';
import { announce } from './announce.js';
import { closeDialog, openDialog } from './dialog.js';

/**
 * @typedef {object} Action
 * @property {string} title what is done, such as `Pause the topic mail`
 * @property {string} words what that means
 * @property {string} method
 * @property {string} path
 * @property {string} [tenant] whose thing it is, if that is not the tenant that was chosen; empty for a call without one
 * @property {string} verb the text of the button
 * @property {boolean} [isFinal] whether it cannot be undone
 * @property {{name: string, label: string, value: string, hint: string, body: (text: string) => unknown}} [field] a text, and the body that it makes
 * @property {(answer: any) => string} done what was done, from the answer
 * @property {() => void} after loads again what has changed
 */

/** @param {Action} action */
export function confirm(action) {
  let value = action.field?.value ?? '';
  let error = '';
  let isBusy = false;

  const body = () => action.field?.body(value);

  /** @param {Event} event */
  async function run(event) {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    error = '';
    redraw();
    try {
      const answer = await call(action.method, action.path, { body: body(), tenant: action.tenant });
      closeDialog();
      announce(action.done(answer));
      action.after();
    } catch (failed) {
      error = /** @type {Error} */ (failed).message;
    }
    isBusy = false;
    redraw();
  }

  openDialog({
    title: action.title,
    content: () => html`<form @submit=${run}>
      <p>${action.words}</p>
      ${action.field ? textField(action.field, value, (text) => (value = text)) : nothing}
      ${callText(action.method, action.path, body(), action.tenant)}
      ${error ? html`<p class="problem" role="alert" data-testid="dialog-error">${error}</p>` : nothing}
      <div class="buttons">
        <button type="button" data-testid="dialog-dismiss" @click=${closeDialog}>Do nothing</button>
        <button type="submit" class=${action.isFinal ? 'danger' : 'primary'} data-testid="dialog-confirm" ?disabled=${isBusy}>${action.verb}</button>
      </div>
    </form>`,
  });
}

/**
 * A text field of a dialog.
 * @param {{name: string, label: string, hint: string}} field @param {string} value @param {(text: string) => void} onInput
 */
export function textField({ name, label, hint }, value, onInput) {
  /** @param {InputEvent} event */
  const input = (event) => {
    onInput(/** @type {HTMLInputElement} */ (event.target).value.trim());
    redraw();
  };
  return html`<label class="field">${label}
    <input name=${name} data-testid="input-${name}" .value=${value} @input=${input} required autocomplete="off" aria-describedby="hint-${name}">
    <small id="hint-${name}">${hint}</small>
  </label>`;
}

/** Shows the call that will be made: method, path, JSON body, and the tenant header if one is sent. @param {string} method @param {string} path @param {unknown} [body] @param {string} [tenant] */
export function callText(method, path, body, tenant) {
  const header = session.headers(tenant)['ringback-tenant'];
  const text = body === undefined ? '' : ` ${JSON.stringify(body)}`;
  return html`<p class="call"><span class="soft">The call:</span> <code data-testid="dialog-call">${method} ${path}${text}</code>${header ? html` <span class="soft">with</span> <code>ringback-tenant: ${header}</code>` : nothing}</p>`;
}

/**
 * The button of an action, disabled while the action does not apply or the key is known to lack its scope.
 * @param {{name: string, label: string, scope: import('../core/session.js').Scope, onClick: () => void, unless?: string | null, about?: string}} options
 * `unless` says why it does not apply; `about` is for screen readers
 */
export function actionButton({ name, label, scope, onClick, unless, about }) {
  const why = session.refusal(scope) ?? unless ?? null;
  return html`<button type="button" data-testid="action-${name}" title=${why ?? ''} ?disabled=${why !== null} @click=${onClick}
    >${label}${about ? html`<span class="unseen"> ${about}</span>` : nothing}</button>`;
}
