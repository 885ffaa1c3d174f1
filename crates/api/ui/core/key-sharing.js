// Shares the key among the tabs of a browser: a tab that was opened by a link asks the others for theirs. Each tab
// keeps the key in its session storage, and forgetting it in one forgets it in all.

import { BASE } from './base.js';
import { session } from './session.js';

/** @typedef {{kind: 'wanted'} | {kind: 'known', key: string, tenant: string} | {kind: 'forgotten'}} Word */

const channel = new BroadcastChannel(`ringback-key ${BASE}`);

/** Answers other tabs from now on, and asks them for their key if this tab has none. */
export function shareKey() {
  channel.onmessage = ({ data }) => hear(data);
  if (!session.key) say({ kind: 'wanted' });
}

/** Forgets the key in all tabs. */
export function forgetKey() {
  say({ kind: 'forgotten' });
  session.setKey('');
}

/** @param {Word} word */
function hear(word) {
  if (word.kind === 'wanted' && session.key) say({ kind: 'known', key: session.key, tenant: session.tenant });
  if (word.kind === 'known' && !session.key) session.setKey(word.key, word.tenant);
  if (word.kind === 'forgotten' && session.key) session.setKey('');
}

/** @param {Word} word */
function say(word) {
  channel.postMessage(word);
}
