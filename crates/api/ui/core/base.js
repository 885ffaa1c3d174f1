// Where the API is: beside `/ui/`, also behind a proxy that serves both below a prefix.

export const BASE = new URL('..', document.baseURI).href;
