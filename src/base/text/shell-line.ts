/** A word as a POSIX shell takes it: unchanged where that is safe, else in single quotes. */
export const shellQuote = (text: string): string =>
  /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Words as one shell line for people and reports, without the secrets of addresses. */
export const shellLine = (words: readonly string[]): string =>
  words.map((word) => shellQuote(withoutSecrets(word))).join(' ');

/** The words of such a line. */
export const shellWords = (line: string): readonly string[] =>
  (line.match(/(?:'[^']*'|\\.|[^\s'\\])+/g) ?? []).map((word) => word.replace(/'([^']*)'|\\(.)/g, '$1$2'));

/**
 * An argument with `***` for the user and password of an address in it and for the values of its query. A password may have any character, so all up
 * to the last `@` counts as one; a path of `file:///` has none.
 */
export function withoutSecrets(word: string): string {
  const end = word.lastIndexOf('@') + 1;
  const shown = word.slice(0, end).replace(/(?<=[a-z\d]:\/\/)[^/].*/is, '***@') + word.slice(end);
  return shown.replace(/(?<=:\/\/).*/s, (rest) => rest.replace(/([?&][^=&#?]*=)[^&#]*/g, '$1***'));
}

/** The same for each part of a text between spaces, quotes and tags; what escapes a quote is not part of one. */
export const textWithoutSecrets = (text: string): string =>
  text.replace(/(?:[^\s'"<>\\]|\\(?!["']))+/g, withoutSecrets);
