// Writes the callback of a job as a curl command, for a POSIX shell that also knows $'…'.

/** @param {any} job with `request`, `effective` and `rawBody` */
export function curlOf({ topic, id, attempts, due_at: due, request, effective, rawBody }) {
  const { method = 'POST', body_base64: base64, content_type: type, context = {} } = request;
  const hasBody = rawBody !== undefined || base64 !== undefined;
  const headers = [
    ...(hasBody || type ? [['content-type', type ?? (base64 === undefined ? 'application/json' : 'application/octet-stream')]] : []),
    ['ringback-topic', topic], ['ringback-job-id', id], ['ringback-attempt', String(attempts + 1)], ['ringback-due-at', due],
    ...Object.entries(context).map(([name, value]) => [`ringback-context-${name.toLowerCase().replace(/[^a-z0-9]/g, '-')}`, String(value)]),
    ...Object.entries(effective?.headers ?? request.headers ?? {}).map(([name, value]) => [name, String(value)]),
  ];
  const data = base64 !== undefined ? ['--data-binary @-'] : rawBody !== undefined ? [`--data-raw ${quoted(rawBody)}`] : [];
  const parts = [
    // Brackets and braces of a URL would be a pattern.
    `curl --globoff ${quoted(effective?.url ?? request.url)}`,
    ...(method === (hasBody ? 'POST' : 'GET') ? [] : [`-X ${method}`]),
    ...headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`), ...data,
  ];
  const command = parts.join(' \\\n  ');
  return base64 === undefined ? command : `printf %s ${quoted(base64)} | base64 -d | ${command}`;
}

/** Quotes a text as one word of a shell. Control characters are escaped, since a terminal would act on them when they are pasted. @param {string} text */
function quoted(text) {
  if (!/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = [...text].map((char) => {
    if (char === '\\' || char === "'") return `\\${char}`;
    if (!/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(char)) return char;
    return [...new TextEncoder().encode(char)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
  });
  return `$'${escaped.join('')}'`;
}
