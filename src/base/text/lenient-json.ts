/** A number that JSON lacks, as Python's json module writes it. */
const WORD = /-?\b(?:NaN|Infinity)\b/y;

/** Stands for such a number while the rest is parsed; no file holds such a string. */
const MARK = '\u0001number:';

/** Parses JSON in which Python left `NaN`, `Infinity` and `-Infinity`; they become the numbers. Throws SyntaxError for everything else that is wrong. */
export function pythonJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(marked(text), (_key, value: unknown) =>
      typeof value === 'string' && value.startsWith(MARK) ? Number(value.slice(MARK.length)) : value,
    );
  }
}

function marked(text: string): string {
  const parts: string[] = [];
  let copied = 0;
  let isString = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (isString && unit === 92) at++;
    else if (unit === 34) isString = !isString;
    else if (!isString && (unit === 78 || unit === 73 || unit === 45)) {
      WORD.lastIndex = at;
      const word = WORD.exec(text)?.[0];
      if (word === undefined) continue;
      parts.push(text.slice(copied, at), JSON.stringify(`${MARK}${word}`));
      at += word.length - 1;
      copied = at + 1;
    }
  }
  parts.push(text.slice(copied));
  return parts.join('');
}
