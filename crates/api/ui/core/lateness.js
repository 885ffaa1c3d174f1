// The lateness of callbacks over the last ten minutes: keeps the values of each answer of `/v1/stats`, for the chart.

/** How many answers are kept: those of ten minutes. */
const KEPT = 300;

/** @typedef {{at: number, p50: number | null, p99: number | null}} Sample `at` is a time in milliseconds */

/** @type {Sample[]} */
let samples = [];

/** Adds the lateness of an answer of `/v1/stats`. @param {{p50: number | null, p99: number | null}} lateness @param {number} at */
export function noteLateness({ p50, p99 }, at) {
  samples = [...samples.slice(1 - KEPT), { at, p50, p99 }];
}

/** Forgets everything, for another caller. */
export function forgetLateness() {
  samples = [];
}

/** The values of up to 300 answers, the oldest first. */
export function latenessLately() {
  return samples;
}
