// Reads server-sent events from an answer of `fetch`, since EventSource sends no Authorization.

/**
 * Yields the events of a stream until it ends: their kind, and their data as text. A comment is yielded with an empty kind.
 * @param {ReadableStream<Uint8Array>} stream
 * @returns {AsyncGenerator<{kind: string, data: string}>}
 */
export async function* eventsOf(stream) {
  const reader = stream.pipeThrough(/** @type {ReadableWritablePair<string, any>} */ (new TextDecoderStream())).getReader();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += value;
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) yield eventOf(block);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {string} block */
function eventOf(block) {
  const event = { kind: '', data: '' };
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) event.kind = line.slice(7);
    if (line.startsWith('data: ')) event.data += line.slice(6);
  }
  return event;
}
