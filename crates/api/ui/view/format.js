// Formats numbers, times and durations for people, and parses times and durations that people write. Also escapes
// invisible characters.

import { html } from '../vendor/lit-html.js';
import { now } from '../core/api.js';

/** The time zone of the browser. */
const OWN_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone ?? 'UTC';
/** The formatters of times, by time zone. @type {Map<string, {format: Intl.DateTimeFormat, name: string}>} */
const clocks = new Map();

const UNITS = /** @type {const} */ ([['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]]);

/** A number, rounded to a whole one, with its digits in groups of three. @param {number} value */
export function count(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** A rate: 0 and from 10 on a whole number, else with one decimal. @param {number} value */
export function rate(value) {
  return value === 0 || value >= 10 ? count(value) : value.toFixed(1);
}

/** `1 job`, `2 jobs`. @param {number} value @param {string} one @param {string} [many] */
export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A duration in its largest unit, with the next one if the number is below 10; below a second in ms. @param {number} ms */
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

/** A time to the second in a time zone, that of the browser by default, with the name of the zone; unchanged if it is no time. @param {string} time @param {string} [zone] */
export function exact(time, zone = OWN_ZONE) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  const { format, name } = clockOf(zone);
  const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second} ${name}`;
}

/** The formatter of times in a zone; that of UTC if the browser does not know the zone. @param {string} zone @returns {{format: Intl.DateTimeFormat, name: string}} */
function clockOf(zone) {
  const known = clocks.get(zone);
  if (known) return known;
  const two = /** @type {const} */ ('2-digit');
  const fields = { year: /** @type {const} */ ('numeric'), month: two, day: two, hour: two, minute: two, second: two, hourCycle: /** @type {const} */ ('h23') };
  let clock;
  try {
    clock = { format: new Intl.DateTimeFormat('en-GB', { ...fields, timeZone: zone }), name: zone };
  } catch {
    clock = clockOf('UTC');
  }
  clocks.set(zone, clock);
  return clock;
}

/** Converts a date, or a time without an offset, from the zone of the browser to RFC 3339. Any other text is unchanged. @param {string} text */
export function instant(text) {
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?$/.exec(text);
  const at = parts ? new Date(`${parts[1]}T${parts[2] ?? '00:00'}`) : null;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : text;
}

/** A time relative to now, with the time itself as its tooltip; a dash without a time. @param {string | null | undefined} time @param {string} [zone] */
export function ago(time, zone) {
  return time ? html`<time datetime=${time} title=${exact(time, zone)}>${relative(time)}</time>` : html`<span class="none">–</span>`;
}

/** A time, followed by how long ago it is; its tooltip is the text of the API. A dash without a time. @param {string | null | undefined} time @param {string} [zone] */
export function moment(time, zone) {
  return time
    ? html`<time datetime=${time} title=${time}>${exact(time, zone)}</time> <span class="soft">${relative(time)}</span>`
    : html`<span class="none">–</span>`;
}

/** A duration of the API, such as `1h 30m`, in milliseconds; NaN if it is not one. @param {string} text */
export function milliseconds(text) {
  const sizes = /** @type {Record<string, number>} */ ({ w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 });
  const parts = text.trim().split(/\s+/).map((part) => /^(\d+(?:\.\d+)?)(ms|[wdhms])$/.exec(part));
  return parts.reduce((sum, part) => (part ? sum + Number(part[1]) * sizes[part[2]] : NaN), 0);
}

/** Escapes invisible characters but line breaks, tabs and spaces: they may be why an answer is not the expected one. @param {string} text */
export function visible(text) {
  const invisible = /[^\P{C}\n\t]|[^\P{Z} ]|\u034f/gu;
  return text.replace(invisible, (char) => `\\u{${/** @type {number} */ (char.codePointAt(0)).toString(16)}}`);
}

/** Why the last attempt to a destination failed: its error, or its status. @param {any} failing */
export function lastFailure({ last_error: error, last_status: status }) {
  return error ?? `status ${status}`;
}
