// How late callbacks were over the last minutes, as each answer with the counts of the installation says it.

/** How many answers are kept: those of ten minutes. */
const KEPT = 300;

/** @typedef {{at: number, p50: number | null, p99: number | null}} Sample `at` is a time in milliseconds */

/** @type {Sample[]} */
let samples = [];

/** Notes what `/v1/stats` answers. @param {{p50: number | null, p99: number | null}} lateness @param {number} at */
export function noteLateness({ p50, p99 }, at) {
  samples = [...samples.slice(1 - KEPT), { at, p50, p99 }];
}

/** Forgets everything, for another caller. */
export function forgetLateness() {
  samples = [];
}

/** What was noted, the oldest first. */
export function latenessLately() {
  return samples;
}
