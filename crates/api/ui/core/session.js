// Who calls: the key and the tenant of this tab, and what the API has said that the key may not do.

import { redraw } from './redraw.js';

const KEY = 'ringback-key';
const TENANT = 'ringback-tenant';

/** @typedef {'submit' | 'manage'} Scope what actions of the dashboard need */

/** What the API says of a key without a scope. @see crates/api/src/access/layer.rs */
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

  /** The headers by which the API knows the caller. @param {string} [tenant] another one than was chosen; empty for none @returns {Record<string, string>} */
  headers(tenant = session.tenant) {
    const headers = /** @type {Record<string, string>} */ ({});
    if (session.key) headers['authorization'] = `Bearer ${session.key}`;
    if (session.key && tenant) headers['ringback-tenant'] = tenant;
    return headers;
  },

  /** Calls back when another caller is set. @param {() => void} watcher */
  watch(watcher) {
    watchers.add(watcher);
  },

  /** Keeps the key until the tab is closed. @param {string} key @param {string} [tenant] */
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

  /** Asks for a key, since the API wants one. @param {string} why */
  ask(why) {
    if (asked === why) return;
    asked = why;
    redraw();
  },

  /** Learns from a refusal which scopes the key has, if it says so. @param {string} why */
  learn(why) {
    const has = LACKS.exec(why)?.[2].split(', ');
    for (const scope of SCOPES) if (has && !has.includes(scope)) refused.set(scope, why);
    redraw();
  },

  /** Why the key may not do what needs a scope; null as far as is known that it may. @param {Scope} scope */
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
