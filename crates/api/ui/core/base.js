// `BASE`, the URL of the API: the parent of `/ui/`, also behind a proxy that serves both below a prefix.

export const BASE = new URL('..', document.baseURI).href;
