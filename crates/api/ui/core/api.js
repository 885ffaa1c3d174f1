// Calls of the public API, except the stream of events: sends the key, reads errors, and keeps the clock of the API.

import { BASE } from './base.js';
import { connection } from './connection.js';
import { session } from './session.js';

/** How long an answer may take: the API answers within about ten seconds, whatever its store does. */
const TIMEOUT_MS = 20_000;
/** A difference to the clock of the API that the resolution of `Date` explains. */
const SAME_CLOCK_MS = 2000;

/** The call that shows whether the API and its store answer. */
export const STATS = '/v1/stats';

let ahead = 0;

/** A call that was refused or failed. */
export class ApiError extends Error {
  /** @param {number} status 0 without an answer @param {string} detail */
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Now, by the clock of the API. */
export function now() {
  return Date.now() + ahead;
}

/**
 * A path with its parts encoded.
 * @param {TemplateStringsArray} texts @param {...string} parts
 */
export function path(texts, ...parts) {
  return texts.reduce((all, text, index) => all + encodeURIComponent(parts[index - 1] ?? '') + text);
}

/**
 * Calls the API, and returns the answer, parsed. Throws `ApiError` if the API refuses, or does not answer within 20 s.
 * `connection` learns whether the API and its store answer. After a 401 the session asks for a key. An abort by
 * `signal` throws as that of `fetch` does.
 * @param {string} method @param {string} target a path of the API with its query
 * @param {{body?: unknown, tenant?: string, signal?: AbortSignal, parse?: (text: string) => any}} [options] `tenant` is
 * another one than was chosen; `parse` reads the answer
 * @returns {Promise<any>}
 */
export async function call(method, target, options = {}) {
  const signals = [AbortSignal.timeout(TIMEOUT_MS)];
  if (options.signal) signals.push(options.signal);
  const headers = session.headers(options.tenant);
  if (options.body !== undefined) headers['content-type'] = 'application/json';
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  const answer = await send(target, { method, headers, body, signal: AbortSignal.any(signals) }, options.signal);
  adjustClock(answer.headers.get('date'));
  if (answer.ok) {
    connection.answered();
    return (options.parse ?? JSON.parse)(await answer.text());
  }
  throw await failure(answer, target);
}

/** @param {string} target @param {RequestInit} request @param {AbortSignal | undefined} signal */
async function send(target, request, signal) {
  try {
    return await fetch(new URL(target.slice(1), BASE), { ...request, cache: 'no-store', redirect: 'error' });
  } catch (error) {
    if (signal?.aborted) throw error;
    connection.failed('The API does not answer. It is asked again every two seconds.');
    throw new ApiError(0, 'the API does not answer');
  }
}

/** @param {Response} answer @param {string} target */
async function failure(answer, target) {
  const problem = await answer.json().catch(() => ({}));
  const fields = (problem.errors ?? []).map((/** @type {any} */ wrong) => `${wrong.field}: ${wrong.detail}; allowed: ${wrong.allowed}`);
  const detail = [problem.detail ?? answer.statusText, ...fields].join('\n');
  if (answer.status !== 503) connection.answered();
  // Counts need nothing but the store; other calls are also refused while there are too many of them.
  else if (target === STATS) connection.failed(`The store does not answer: ${detail}`);
  if (answer.status === 401) session.ask(session.key ? detail : '');
  if (answer.status === 403) session.learn(detail);
  return new ApiError(answer.status, detail);
}

/** @param {string | null} date */
function adjustClock(date) {
  const difference = Date.parse(date ?? '') - Date.now();
  if (Number.isNaN(difference)) return;
  ahead = Math.abs(difference) < SAME_CLOCK_MS ? 0 : difference;
}
