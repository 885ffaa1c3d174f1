// Reads and writes the address of a page: a name and parameters in the fragment, such as `#/jobs?state=dead`.

/** @typedef {{name: string, params: URLSearchParams}} Route */

/** The page that the address names; null if the fragment does not begin with `#/` and is not empty. @returns {Route | null} */
export function currentRoute() {
  const { hash } = location;
  if (hash === '' || hash === '#') return { name: '', params: new URLSearchParams() };
  if (!hash.startsWith('#/')) return null;
  const [name, query] = split(hash.slice(2));
  return { name, params: new URLSearchParams(query) };
}

/**
 * The address of a page. Parameters without a value are left out.
 * @param {string} name @param {Record<string, string | number | null | undefined>} [params]
 */
export function href(name, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== '' && value !== null && value !== undefined);
  const query = new URLSearchParams(given.map(([field, value]) => [field, String(value)])).toString();
  return `#/${name}${query ? `?${query}` : ''}`;
}

/** Changes parameters of the address without opening the page again. @param {Record<string, string | null>} changed null removes one */
export function replaceParams(changed) {
  const route = currentRoute();
  if (route) history.replaceState(null, '', href(route.name, { ...Object.fromEntries(route.params), ...changed }));
}

/** @param {string} text @returns {[string, string]} */
function split(text) {
  const mark = text.indexOf('?');
  return mark < 0 ? [text, ''] : [text.slice(0, mark), text.slice(mark + 1)];
}
