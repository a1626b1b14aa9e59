/** Documents of ours have ten levels. */
const MOST_LEVELS = 100;
/** A value takes up to 200 bytes of memory, and three of the file. */
const BYTES_PER_VALUE = 32;
const MOST_VALUES = 1 << 23;

/**
 * The content of a JSON text that others may have written. Before memory is taken for it: at most `largest` bytes, a value for each 32 of these and 8,388,608 in all, 100 levels.
 * Throws what `invalid` makes of the reason. `parse`: where programs write what JSON lacks (`pythonJson`).
 */
export function parseJson(
  text: string,
  largest: number,
  invalid: (why: string, cause?: unknown) => Error,
  parse: (text: string) => unknown = JSON.parse,
): unknown {
  const excess = excessOf(text, largest);
  if (excess !== null) throw invalid(`it has more than ${excess}`);
  try {
    return parse(text);
  } catch (cause) {
    throw invalid('it is not JSON, or was cut short', cause);
  }
}

function excessOf(text: string, largest: number): string | null {
  if (text.length > largest) return `${largest} bytes`;
  const most = Math.min(MOST_VALUES, Math.ceil(largest / BYTES_PER_VALUE));
  let [values, levels] = [0, 0];
  for (let at = 0; at < text.length; at++) {
    const mark = text[at];
    if (mark === '"') {
      while (++at < text.length && text[at] !== '"') if (text[at] === '\\') at++;
    } else if (mark === '[' || mark === '{') {
      values++;
      if (++levels > MOST_LEVELS) return `${MOST_LEVELS} levels`;
    } else if (mark === ']' || mark === '}') levels--;
    else if (mark === ',') values++;
    if (values > most) return `${most} values`;
  }
  return null;
}

/** An object of JSON, not a list. */
export type JsonRecord = Readonly<Record<string, unknown>>;
export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A number that JSON lacks, as Python's json module writes it. */
const WORD = /-?\b(?:NaN|Infinity)\b/g;

/** Stands for such a number while the rest is parsed; no file holds such a string. */
const MARK = '\u0001number:';

/** Parses JSON in which Python left `NaN`, `Infinity` and `-Infinity`; they become the numbers. Throws SyntaxError for everything else that is wrong. */
export function pythonJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return withNumbers(JSON.parse(replaceBare(text, WORD, (word) => JSON.stringify(`${MARK}${word}`))));
  }
}

/** Puts the numbers in the places of their marks. A reviver of `JSON.parse` would take ten times as long. */
function withNumbers(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? Number(value.slice(MARK.length)) : value;
  if (typeof value !== 'object' || value === null) return value;
  const items = value as Record<string, unknown> | unknown[];
  if (Array.isArray(items)) {
    for (let i = 0; i < items.length; i++) if (typeof items[i] !== 'number') items[i] = withNumbers(items[i]);
  } else for (const name of Object.keys(items)) items[name] = withNumbers(items[name]);
  return items;
}

/** JSON text in which what `pattern` (a global one) matches outside of strings is replaced, and each string with its quotes by what `quoted` returns. */
export function replaceBare(
  text: string,
  pattern: RegExp,
  replacement: (match: string) => string,
  quoted = (string: string): string => string,
): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    const open = text.indexOf('"', at);
    const end = open < 0 ? text.length : open;
    parts.push(text.slice(at, end).replace(pattern, replacement));
    if (open < 0) break;
    at = endOfString(text, open + 1);
    parts.push(quoted(text.slice(open, at)));
  }
  return parts.join('');
}

/** Position behind the closing quote of the string whose content starts at `start`. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (quote - slashes > start && text.charCodeAt(quote - 1 - slashes) === 92) slashes++;
    if (slashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** JSON text of plain data in which NaN, infinities and negative zero are written as Python writes and reads them; `JSON.stringify` would lose them. */
export function pythonJsonText(value: unknown): string {
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value);
  if (Object.is(value, -0)) return '-0.0';
  if (Array.isArray(value)) return `[${value.map(pythonJsonText).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value).filter(([, item]) => item !== undefined);
    return `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${pythonJsonText(item)}`).join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

/** Text that C++ streams print for numbers that JSON lacks. */
const NO_NUMBER = /-?\b(?:nan|inf|infinity)\b/gi;

/**
 * Parses JSON as C++ programs print it: bare `nan` and `inf` become null, and raw control characters inside strings are taken as they are.
 * Throws SyntaxError where that is not enough.
 */
export function parseLooseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(
      replaceBare(
        text,
        NO_NUMBER,
        () => 'null',
        (quoted) => quoted.replace(/\p{Cc}/gu, escaped),
      ),
    );
  }
}

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
