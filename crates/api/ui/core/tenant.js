// Tenants, for the root key: which ones are known, and which one a page is about, by its address or as chosen for the
// tab. Other keys have one tenant, so no tenant is sent for them.

import { call } from './api.js';
import { redraw } from './redraw.js';
import { session } from './session.js';

/** Values in place of a tenant's name: for lists of all tenants, and for what belongs to no tenant. */
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
  /** The tenants that have a key, a quota, or one of the first 1000 topics, sorted by name. */
  get names() {
    return names;
  },
};

/** Learns whether the key is the root key, and which tenants there are. If no tenant is chosen, chooses all for it. */
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

/** The items of a list; null if the call is refused or fails. @param {string} target @param {string} [tenant] @returns {Promise<any[] | null>} */
function list(target, tenant = '') {
  return call('GET', target, { tenant }).then(({ items }) => items, () => null);
}

/** The tenant that the lists of a page show; `ALL`, `NONE`, or empty without a choice. @param {URLSearchParams} params */
export function scopeOf(params) {
  return params.get('tenant') ?? session.tenant;
}

/** The tenant of the one job, topic or schedule that a page shows; `NONE` if the choice is `ALL`. @param {URLSearchParams} params */
export function ownerOf(params) {
  const scope = scopeOf(params);
  return scope === ALL ? NONE : scope;
}

/** The tenant of an item of a list; `NONE` for an item without one in a list of all. @param {{tenant?: string | null}} item @param {string} scope that of the list */
export function ownerOfItem({ tenant }, scope) {
  return scope === ALL ? tenant ?? NONE : scope;
}

/** The tenant to send with a call that is about all tenants if none is sent: empty for `ALL`. @param {string} scope */
export function reachOf(scope) {
  return scope === ALL ? '' : scope;
}

/** Whether an event is about a job of this tenant; an empty one matches all. @param {{tenant?: string}} event @param {string} owner */
export function isEventOf({ tenant }, owner) {
  return owner === '' || (tenant ?? NONE) === owner;
}
