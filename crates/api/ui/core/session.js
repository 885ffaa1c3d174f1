// Who calls: the key and the tenant of this tab, and what the API has said that the key may not do.

import { redraw } from './redraw.js';

const KEY = 'ringback-key';
const TENANT = 'ringback-tenant';

/** @typedef {'submit' | 'manage' | 'read'} Scope */

/** @type {Map<Scope, string>} Why calls that need a scope are refused. */
const refused = new Map();
/** Why a key is asked for; null while none is. @type {string | null} */
let asked = null;
/** @type {Set<() => void>} */
const watchers = new Set();

export const session = {
  get key() {
    return sessionStorage.getItem(KEY) ?? '';
  },
  get tenant() {
    return sessionStorage.getItem(TENANT) ?? '';
  },
  get asked() {
    return asked;
  },

  /** The headers by which the API knows the caller. @returns {Record<string, string>} */
  headers() {
    const headers = /** @type {Record<string, string>} */ ({});
    if (session.key) headers['authorization'] = `Bearer ${session.key}`;
    if (session.key && session.tenant) headers['ringback-tenant'] = session.tenant;
    return headers;
  },

  /** Calls back when another caller is set. @param {() => void} watcher */
  watch(watcher) {
    watchers.add(watcher);
  },

  /** Keeps the key until the tab is closed. @param {string} key */
  setKey(key) {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
    sessionStorage.removeItem(TENANT);
    changed();
  },

  /** Chooses a tenant, which only the root key may. @param {string} tenant */
  setTenant(tenant) {
    if (tenant) sessionStorage.setItem(TENANT, tenant);
    else sessionStorage.removeItem(TENANT);
    changed();
  },

  /** Asks for a key, since the API wants one. @param {string} why */
  ask(why) {
    if (asked === why) return;
    asked = why;
    redraw();
  },

  /** Notes that the API refuses what needs a scope. @param {Scope} scope @param {string} why */
  refuse(scope, why) {
    refused.set(scope, why);
    redraw();
  },

  /** Why the key may not do what needs a scope; null as far as is known that it may. @param {Scope} scope */
  refusal(scope) {
    return refused.get(scope) ?? null;
  },
};

function changed() {
  refused.clear();
  asked = null;
  for (const watcher of watchers) watcher();
  redraw();
}
