// When jobs are to be due, as an operator writes it: a duration from now or a time.

/** The field of a dialog. */
export const DUE = { name: 'delay', label: 'Due in, or at', hint: 'a duration from now, such as 30m, 2h or 1d, or a time, such as 2026-11-27T09:00:00Z' };

/** What the API takes for it. @param {string} text */
export function dueOf(text) {
  return /^\d{4}-/.test(text) ? { at: text } : { delay: text };
}
