// Who calls: the key and the tenant of this tab, whether the API asks for a key, and which scopes the key lacks.

import { redraw } from './redraw.js';

const KEY = 'ringback-key';
const TENANT = 'ringback-tenant';

/** @typedef {'submit' | 'manage'} Scope the scopes that actions of the dashboard need */

/** The API's message for a key that lacks a scope. @see crates/api/src/access/gate.rs */
const LACKS = /^the key does not have the scope (\w+); it has ([\w, ]+)$/;
const SCOPES = /** @type {Scope[]} */ (['submit', 'manage']);

/** Why calls that need a scope are refused. @type {Map<Scope, string>} */
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

  /** The headers that identify the caller; none without a key. @param {string} [tenant] instead of the chosen one; empty for no header @returns {Record<string, string>} */
  headers(tenant = session.tenant) {
    const headers = /** @type {Record<string, string>} */ ({});
    if (session.key) headers['authorization'] = `Bearer ${session.key}`;
    if (session.key && tenant) headers['ringback-tenant'] = tenant;
    return headers;
  },

  /** Calls back whenever the key or the tenant is set. @param {() => void} watcher */
  watch(watcher) {
    watchers.add(watcher);
  },

  /** Sets the key and the tenant, and keeps them until the tab is closed. @param {string} key empty to forget it @param {string} [tenant] */
  setKey(key, tenant = '') {
    keep(KEY, key);
    keep(TENANT, tenant);
    changed();
  },

  /** Chooses a tenant, which only the root key may. @param {string} tenant */
  setTenant(tenant) {
    keep(TENANT, tenant);
    changed();
  },

  /** Makes the page ask for a key, because the API has refused a call. @param {string} why */
  ask(why) {
    if (asked === why) return;
    asked = why;
    redraw();
  },

  /** Learns which scopes the key lacks from the message of a 403, if that lists the scopes of the key. @param {string} why */
  learn(why) {
    const has = LACKS.exec(why)?.[2].split(', ');
    for (const scope of SCOPES) if (has && !has.includes(scope)) refused.set(scope, why);
    redraw();
  },

  /** Why the key may not make calls that need a scope; null if it has the scope, or that is not known. @param {Scope} scope */
  refusal(scope) {
    return refused.get(scope) ?? null;
  },
};

/** @param {string} name @param {string} value */
function keep(name, value) {
  if (value) sessionStorage.setItem(name, value);
  else sessionStorage.removeItem(name);
}

function changed() {
  refused.clear();
  asked = null;
  for (const watcher of watchers) watcher();
  redraw();
}
