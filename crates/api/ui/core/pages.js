// A list of the API that is read page by page, with the first page and the next one as the only ways to move.

import { resource } from './resource.js';

/**
 * @template T
 * @typedef {{of: import('./resource.js').Resource<{items: T[], next: string | null}>, items: T[], hasNext: boolean, isLater: boolean, note: string, first: () => void, next: () => void, refresh: () => void}} Pages
 */

/**
 * @template T
 * @param {(cursor: string | null, signal: AbortSignal) => Promise<{items: T[], next: string | null}>} load
 * @param {{signal: AbortSignal, every?: number}} options
 * @returns {Pages<T>}
 */
export function pages(load, options) {
  /** @type {string | null} */
  let cursor = null;
  let number = 1;
  const of = resource((signal) => load(cursor, signal), options);

  /** @param {string | null} to @param {number} as */
  const turn = (to, as) => {
    cursor = to;
    number = as;
    of.value = undefined;
    of.refresh();
  };
  return {
    of,
    get items() {
      return of.value?.items ?? [];
    },
    get hasNext() {
      return Boolean(of.value?.next);
    },
    get isLater() {
      return number > 1;
    },
    get note() {
      return number > 1 || of.value?.next ? `Page ${number}` : '';
    },
    first: () => turn(null, 1),
    next: () => of.value?.next && turn(of.value.next, number + 1),
    refresh: () => of.refresh(),
  };
}
