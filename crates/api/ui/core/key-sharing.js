// A tab that was opened by a link has no key: it asks the other tabs of this browser for theirs. The key is in the memory
// of tabs alone, and forgetting it forgets it in all of them.

import { BASE } from './base.js';
import { session } from './session.js';

/** @typedef {{kind: 'wanted'} | {kind: 'known', key: string, tenant: string} | {kind: 'forgotten'}} Word */

const channel = new BroadcastChannel(`ringback-key ${BASE}`);

/** Answers other tabs, and asks them if the API asks for a key. */
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
