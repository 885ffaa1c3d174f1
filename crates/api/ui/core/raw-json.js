// Finds and indents values within JSON text without changing how they are written. `JSON.parse` would round large
// numbers and drop repeated names, and a job's body is delivered byte for byte.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * The text of a value within an object, by the names that lead to it; undefined if there is none.
 * @param {string} text valid JSON @param {...string} names
 * @returns {string | undefined}
 */
export function rawAt(text, ...names) {
  const tokens = [...text.matchAll(TOKEN)];
  let [from, to] = [0, tokens.length];
  for (const name of names) {
    const found = member(tokens, from, to, name);
    if (!found) return undefined;
    [from, to] = found;
  }
  const last = tokens[to - 1];
  return text.slice(tokens[from].index, last.index + last[0].length);
}

/** The range of tokens of the first member with this name; null if there is none. @param {RegExpExecArray[]} tokens @param {number} from @param {number} to @param {string} name @returns {[number, number] | null} */
function member(tokens, from, to, name) {
  if (tokens[from]?.[0] !== '{') return null;
  let index = from + 1;
  while (index < to - 1) {
    const begin = index + 2;
    const end = afterValue(tokens, begin);
    if (JSON.parse(tokens[index][0]) === name) return [begin, end];
    index = end + 1;
  }
  return null;
}

/** @param {RegExpExecArray[]} tokens @param {number} begin */
function afterValue(tokens, begin) {
  let depth = 0;
  let index = begin;
  do {
    const token = tokens[index][0];
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    index += 1;
  } while (depth > 0);
  return index;
}

/** The same JSON with a line for each value, and every value as it was written. @param {string} text valid JSON */
export function indented(text) {
  const tokens = [...text.matchAll(TOKEN)].map(([token]) => token);
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  return tokens.map((token, index) => {
    const [before, after] = [tokens[index - 1], tokens[index + 1]];
    if (token === '{' || token === '[') {
      depth += 1;
      return after === '}' || after === ']' ? token : token + line();
    }
    if (token === '}' || token === ']') {
      depth -= 1;
      return before === '{' || before === '[' ? token : line() + token;
    }
    if (token === ',') return token + line();
    return token === ':' ? ': ' : token;
  }).join('');
}
