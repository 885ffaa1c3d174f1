// `pages`: a list of the API that is read page by page. One can only move to the first page and to the next one. If the
// API refuses a cursor, the list begins again.

import { ApiError } from './api.js';
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
  const of = resource(async (signal) => {
    try {
      return await load(cursor, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 422 || cursor === null) throw error;
      // A cursor is refused once the store was restarted.
      cursor = null;
      number = 1;
      throw new ApiError(422, `${error.message}\nThe list begins again with its first page.`);
    }
  }, options);

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
