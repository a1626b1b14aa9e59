/** Documents of ours have ten levels. */
const MOST_LEVELS = 100;
/** A value takes up to 200 bytes of memory, and three of the file. */
const BYTES_PER_VALUE = 32;
const MOST_VALUES = 1 << 23;

/**
 * The content of a JSON text that others may have written. Before memory is taken for it: at most `largest` bytes, a value for each 32 of these and 8,388,608 in all, 100 levels.
 * Throws what `invalid` makes of the reason. `parse`: where programs write what JSON lacks (`base/text/lenient-json.ts`).
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
