// The field for the due time of a reschedule: an operator writes a duration from now, or a time.

import { instant } from './format.js';

/** The field of a dialog. */
export const DUE = { name: 'delay', label: 'Due in, or at', hint: 'a duration from now, such as 30m, 2h or 1d, or a time where you are, such as 2026-11-27 09:00' };

/** The field `at` or `delay` of a request for what was written: `at` if it begins with a year. @param {string} text */
export function dueOf(text) {
  return /^\d{4}-/.test(text) ? { at: instant(text) } : { delay: text };
}
