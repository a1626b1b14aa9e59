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
