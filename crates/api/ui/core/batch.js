// `Collector` gathers the events of jobs that came within half a second into a batch: counts by second, and the last
// 300 events themselves.

/** The most events of a batch that are kept beside the counts. */
const MAX_EVENTS = 300;

/** @typedef {{submitted: number, done: number, failed: number, dead: number}} Counts */
/** @typedef {{kind: string, tenant?: string, topic: string, id: string, at: string, due_at?: string, outcome?: string, status?: number, error?: string, duration_ms?: number, reason?: string, attempt?: number}} JobEvent */
/** @typedef {{counts: [number, Counts][], events: JobEvent[], isIncomplete: boolean}} Batch */

/** @returns {Counts} */
export const noCounts = () => ({ submitted: 0, done: 0, failed: 0, dead: 0 });

/** Collects events. */
export class Collector {
  constructor() {
    /** @type {Map<number, Counts>} */
    this.counts = new Map();
    /** @type {JobEvent[]} */
    this.events = [];
    this.isIncomplete = false;
  }

  /** @param {{kind: string, data: string}} event */
  add({ kind, data }) {
    if (kind === 'missed' || kind === 'dropped') this.isIncomplete = true;
    if (kind === '' || kind === 'ready' || kind === 'missed' || kind === 'dropped') return;
    const event = /** @type {JobEvent} */ ({ ...JSON.parse(data), kind });
    const second = Math.floor(Date.parse(event.at) / 1000);
    const counts = this.counts.get(second) ?? noCounts();
    this.counts.set(second, counts);
    if (kind === 'submitted' || kind === 'done' || kind === 'dead') counts[kind] += 1;
    if (kind === 'attempt' && event.outcome !== 'complete' && event.outcome !== 'release') counts.failed += 1;
    this.events.push(event);
    if (this.events.length > MAX_EVENTS) {
      this.events.shift();
      this.isIncomplete = true;
    }
  }

  /** Returns what was collected since the last call, and begins anew. @returns {Batch} */
  take() {
    const batch = { counts: [...this.counts], events: this.events, isIncomplete: this.isIncomplete };
    this.counts = new Map();
    this.events = [];
    this.isIncomplete = false;
    return batch;
  }
}
