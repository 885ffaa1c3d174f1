// Whether the API and its store answer, as calls report it; and callbacks for when they answer again.

import { redraw } from './redraw.js';

/** Why calls fail; null while they are answered. @type {string | null} */
let trouble = null;
/** @type {Set<() => void>} */
const recovered = new Set();

export const connection = {
  get trouble() {
    return trouble;
  },

  /** Records that a call has failed in a way that concerns all calls. @param {string} why */
  failed(why) {
    if (trouble === why) return;
    trouble = why;
    redraw();
  },

  /** Records that a call was answered. If calls failed before, runs the callbacks of `onRecovery`. */
  answered() {
    if (trouble === null) return;
    trouble = null;
    for (const callback of recovered) callback();
    redraw();
  },

  /**
   * Calls back each time when the API answers again.
   * @param {() => void} callback @param {AbortSignal} signal ends the calls
   */
  onRecovery(callback, signal) {
    recovered.add(callback);
    signal.addEventListener('abort', () => recovered.delete(callback));
  },
};
