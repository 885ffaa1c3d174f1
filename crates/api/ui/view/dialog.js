// The modal dialog over the page: opens, draws and closes it. There is one at a time; opening another closes it.

import { html, nothing } from '../vendor/lit-html.js';
import { redraw } from '../core/redraw.js';

/** @typedef {{title: string, content: () => unknown, onClose?: () => void}} Dialog */

/** @type {Dialog | null} */
let open = null;

/** @param {Dialog} dialog */
export function openDialog(dialog) {
  closeDialog();
  open = dialog;
  redraw();
}

export function closeDialog() {
  const closing = open;
  open = null;
  // Closing it gives the focus back to the button that opened it.
  document.querySelector('dialog')?.close();
  closing?.onClose?.();
  redraw();
}

/** The element of the open dialog, or nothing. `showDialog` shows it once it is drawn. */
export function dialogView() {
  if (!open) return nothing;
  return html`<dialog data-testid="dialog" aria-labelledby="dialog-title" @cancel=${closeDialog}>
    <h2 id="dialog-title">${open.title}</h2>
    ${open.content()}
  </dialog>`;
}

/** Shows the dialog that was drawn, above everything else. @param {ParentNode} root */
export function showDialog(root) {
  const dialog = root.querySelector('dialog');
  if (dialog && !dialog.open) dialog.showModal();
}
