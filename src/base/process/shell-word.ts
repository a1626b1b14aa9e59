/** A word as a POSIX shell takes it: unchanged where that is safe, else in single quotes. */
export const shellWord = (text: string): string =>
  /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
