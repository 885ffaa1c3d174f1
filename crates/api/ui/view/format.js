// Numbers, times and durations as people read them.

import { html } from '../vendor/lit-html.js';
import { now } from '../core/api.js';

const UNITS = /** @type {const} */ ([['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]]);

/** A whole number in groups of three. @param {number} value */
export function count(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** A rate with one decimal where that says something. @param {number} value */
export function rate(value) {
  return value === 0 || value >= 10 ? count(value) : value.toFixed(1);
}

/** `1 job`, `2 jobs`. @param {number} value @param {string} one @param {string} [many] */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A duration in its two largest units. @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const index = UNITS.findIndex(([, size]) => ms >= size);
  const [unit, size] = UNITS[index];
  const [below, belowSize] = UNITS[index + 1] ?? ['', 0];
  const whole = Math.floor(ms / size);
  const rest = belowSize ? Math.floor((ms - whole * size) / belowSize) : 0;
  return rest && whole < 10 ? `${whole} ${unit} ${rest} ${below}` : `${whole} ${unit}`;
}

/** `in 4 min`, `4 min ago` or `now`. @param {string} time */
export function relative(time) {
  const ms = Date.parse(time) - now();
  if (Math.abs(ms) < 1000) return 'now';
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}

/** A time in UTC, to the second. @param {string} time */
export function exact(time) {
  return `${time.slice(0, 10)} ${time.slice(11, 19)} UTC`;
}

/** A time relative to now, with the time itself as its title. @param {string | null | undefined} time */
export function ago(time) {
  return time ? html`<time datetime=${time} title=${exact(time)}>${relative(time)}</time>` : html`<span class="none">–</span>`;
}

/** The time itself, with how long ago. @param {string | null | undefined} time */
export function moment(time) {
  return time
    ? html`<time datetime=${time}>${exact(time)}</time> <span class="soft">${relative(time)}</span>`
    : html`<span class="none">–</span>`;
}

/** A duration of the API, such as `1h 30m`, in milliseconds; NaN if it is none. @param {string} text */
export function milliseconds(text) {
  const sizes = /** @type {Record<string, number>} */ ({ w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 });
  const parts = text.trim().split(/\s+/).map((part) => /^(\d+(?:\.\d+)?)(ms|[wdhms])$/.exec(part));
  return parts.reduce((sum, part) => (part ? sum + Number(part[1]) * sizes[part[2]] : NaN), 0);
}

/** A text in which what cannot be seen is escaped: it may be why an answer is not the expected one. @param {string} text */
export function visible(text) {
  const invisible = /[^\P{C}\n\t]|[^\P{Z} ]|\u034f/gu;
  return text.replace(invisible, (char) => `\\u{${/** @type {number} */ (char.codePointAt(0)).toString(16)}}`);
}

/** Why the last attempt to a destination failed: its error, or its status. @param {any} failing */
export function lastFailure({ last_error: error, last_status: status }) {
  return error ?? `status ${status}`;
}
