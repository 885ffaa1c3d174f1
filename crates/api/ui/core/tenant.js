// Whose jobs a page is about, for the root key: the tenant that was chosen for the tab, or the one that the address names;
// and the tenants that are known. Other keys have one tenant, so nothing is sent for them.

import { call } from './api.js';
import { redraw } from './redraw.js';
import { session } from './session.js';

/** What the API takes in place of a tenant: for lists of all tenants, and for what belongs to none. */
export const ALL = '~all';
export const NONE = '~none';

/** How many topics are looked at for the tenants that have some. */
const KNOWN_TOPICS = 1000;

/** The key that was asked about. */
let asked = '';
let isRoot = false;
/** @type {string[]} */
let names = [];

export const tenants = {
  /** Whether the key is known to be the root key, which alone chooses a tenant. */
  get isRoot() {
    return isRoot;
  },
  /** Those that have a key, a quota, or one of the first topics, by name. */
  get names() {
    return names;
  },
};

/** Learns whether the key is the root key, and which tenants there are. The root key begins with all of them. */
export async function learnTenants() {
  const { key } = session;
  if (key !== asked) [asked, isRoot, names] = [key, false, []];
  const keys = key ? await list('/v1/keys') : null;
  if (!keys || session.key !== key) return;
  isRoot = true;
  redraw();
  if (session.tenant === '') return session.setTenant(ALL);
  const [quotas, topics] = await Promise.all([list('/v1/quotas'), list(`/v1/topics?limit=${KNOWN_TOPICS}`, ALL)]);
  if (session.key !== key) return;
  const found = [keys, quotas, topics].flatMap((items) => (items ?? []).map(({ tenant }) => tenant));
  names = [...new Set(found.filter((tenant) => tenant && tenant !== '*'))].sort();
  redraw();
}

/** The items of a list; null if it is refused. @param {string} target @param {string} [tenant] @returns {Promise<any[] | null>} */
function list(target, tenant = '') {
  return call('GET', target, { tenant }).then(({ items }) => items, () => null);
}

/** Whose things the lists of a page are about. @param {URLSearchParams} params */
export function scopeOf(params) {
  return params.get('tenant') ?? session.tenant;
}

/** Whose the one thing is that a page is about; under all tenants something without a tenant. @param {URLSearchParams} params */
export function ownerOf(params) {
  const scope = scopeOf(params);
  return scope === ALL ? NONE : scope;
}

/** Whose an item of a list is. @param {{tenant?: string | null}} item @param {string} scope that of the list */
export function ownerOfItem({ tenant }, scope) {
  return scope === ALL ? tenant ?? NONE : scope;
}

/** The choice for calls that are about all tenants if none is named. @param {string} scope */
export function reachOf(scope) {
  return scope === ALL ? '' : scope;
}

/** Whether an event is about a job of an owner. @param {{tenant?: string}} event @param {string} owner */
export function isEventOf({ tenant }, owner) {
  return owner === '' || (tenant ?? NONE) === owner;
}
