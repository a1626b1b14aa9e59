import { withoutSecrets } from '../text/address-secrets.js';

/** A word as a POSIX shell takes it: unchanged where that is safe, else in single quotes. */
export const shellQuote = (text: string): string =>
  /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Words as one shell line for people and reports, without the secrets of addresses. */
export const shellLine = (words: readonly string[]): string =>
  words.map((word) => shellQuote(withoutSecrets(word))).join(' ');

/** The words of such a line. */
export const shellWords = (line: string): readonly string[] =>
  (line.match(/(?:'[^']*'|\\.|[^\s'\\])+/g) ?? []).map((word) => word.replace(/'([^']*)'|\\(.)/g, '$1$2'));
