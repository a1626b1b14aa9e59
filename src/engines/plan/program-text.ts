/** A `{ … }` of a program's text: `key=value` entries in order, keys may repeat, and values without a key. */
export interface TextGroup {
  readonly entries: readonly (readonly [key: string, value: TextValue])[];
  readonly values: readonly string[];
}
export type TextValue = string | TextGroup;

/** Real text nests four deep. */
const DEEPEST = 16;

const SPACE = /\s*/y;
const WORD = /[^\s{}="]+/y;

/**
 * The text of a compiled program as a tree: `header {`, `descriptors {`, `main {` and `shape_main {` with their entries. Quoted values escape `"` and `\`. Seen in
 * tensorrt-rtx 1.7.1; undefined for text of another grammar.
 */
export function parseProgramText(text: string): TextGroup | undefined {
  let position = 0;

  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = position;
    const match = pattern.exec(text);
    if (match !== null) position = pattern.lastIndex;
    return match;
  };
  const skip = (character: string): boolean => {
    take(SPACE);
    if (text[position] !== character) return false;
    position++;
    return true;
  };
  const word = (): string | undefined => {
    take(SPACE);
    if (text[position] !== '"') return take(WORD)?.[0];
    const start = position + 1;
    let end = start;
    while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
    position = end + 1;
    return end < text.length ? text.slice(start, end).replace(/\\(["\\])/g, '$1') : undefined;
  };

  const group = (depth: number): TextGroup | undefined => {
    if (depth > DEEPEST) return undefined;
    const entries: [string, TextValue][] = [];
    const values: string[] = [];
    for (;;) {
      if (skip('}')) return depth === 0 ? undefined : { entries, values };
      if (position >= text.length) return depth === 0 ? { entries, values } : undefined;
      const first = word();
      if (first === undefined) return undefined;
      const hasValue = skip('=');
      if (skip('{')) {
        const inner = group(depth + 1);
        if (inner === undefined) return undefined;
        entries.push([first, inner]);
      } else if (hasValue) {
        const value = word();
        if (value === undefined) return undefined;
        entries.push([first, value]);
      } else {
        values.push(first);
      }
    }
  };
  return group(0);
}

/** The last value of a key, where it is a word. */
export function wordOf({ entries }: TextGroup, key: string): string | undefined {
  const value = entries.findLast(([each]) => each === key)?.[1];
  return typeof value === 'string' ? value : undefined;
}

/** The first `{ … }` of a key. */
export function groupOf({ entries }: TextGroup, key: string): TextGroup | undefined {
  const value = entries.find(([each, inner]) => each === key && typeof inner !== 'string')?.[1];
  return typeof value === 'string' ? undefined : value;
}
