/** Words C++ streams print for numbers JSON has no word for. */
const NO_NUMBER = /-?\b(?:nan|inf|infinity)\b/gi;

/**
 * Parses JSON as C++ programs print it: bare `nan` and `inf` become null, and raw control characters inside strings are taken as they are.
 * Throws SyntaxError where that is not enough.
 */
export function parseLooseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(repaired(text));
  }
}

function repaired(text: string): string {
  const parts: string[] = [];
  let position = 0;
  while (position < text.length) {
    const quote = text.indexOf('"', position);
    const end = quote < 0 ? text.length : quote;
    parts.push(text.slice(position, end).replace(NO_NUMBER, 'null'));
    if (quote < 0) break;
    position = endOfString(text, quote);
    parts.push(text.slice(quote, position).replace(/\p{Cc}/gu, escaped));
  }
  return parts.join('');
}

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Behind the closing quote of the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let index = start + 1; index < text.length; index++) {
    if (text[index] === '\\') index++;
    else if (text[index] === '"') return index + 1;
  }
  return text.length;
}
