/** A word as a POSIX shell takes it: unchanged where that is safe, else in single quotes. */
export const shellQuote = (text: string): string =>
  /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

/** Words as one shell line for people and reports. Of addresses in it, user and password and the values of a query are `***`. */
export const shellLine = (words: readonly string[]): string =>
  words.map((word) => shellQuote(withoutSecrets(word))).join(' ');

const withoutSecrets = (word: string): string =>
  word.replace(/(?<=[a-z\d]:\/\/).*@/is, '***@').replace(/(?<=:\/\/.*[?&][^=&#]*=)[^&#]*/gs, '***');
