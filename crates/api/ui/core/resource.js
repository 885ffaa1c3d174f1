// `resource`: data that a panel shows. It is loaded at once, again after an interval while the page is visible, and, if
// loading has failed, when the API answers again.

import { connection } from './connection.js';
import { redraw } from './redraw.js';

/**
 * @template T
 * @typedef {{value: T | undefined, error: Error | undefined, isLoading: boolean, refresh: () => Promise<void>}} Resource
 */

/**
 * Loads data for a page: now, then every `every` ms while the tab is visible, and once the API answers again after an
 * error. Redraws when it comes. A later load cancels an earlier one; an error keeps the last value.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {{signal: AbortSignal, every?: number}} options `signal` ends the loading
 * @returns {Resource<T>}
 */
export function resource(load, { signal, every }) {
  let timer = 0;
  let current = new AbortController();

  const of = /** @type {Resource<T>} */ ({ value: undefined, error: undefined, isLoading: false, refresh });

  async function refresh() {
    clearTimeout(timer);
    current.abort();
    const mine = new AbortController();
    current = mine;
    of.isLoading = true;
    redraw();
    try {
      const value = await load(AbortSignal.any([signal, mine.signal]));
      if (mine.signal.aborted || signal.aborted) return;
      of.value = value;
      of.error = undefined;
    } catch (error) {
      if (mine.signal.aborted || signal.aborted) return;
      of.error = /** @type {Error} */ (error);
    }
    of.isLoading = false;
    redraw();
    if (every) timer = setTimeout(again, every);
  }

  function again() {
    if (signal.aborted) return;
    if (document.hidden) document.addEventListener('visibilitychange', again, { once: true });
    else refresh();
  }

  signal.addEventListener('abort', () => clearTimeout(timer));
  connection.onRecovery(() => {
    if (of.error) refresh();
  }, signal);
  refresh();
  return of;
}
