/** The file of an output in a folder. Names of tensors may contain slashes and colons; such characters are written as %2F. */
export const npyFileName = (name: string): string =>
  `${name.replace(/[^A-Za-z0-9._-]/gu, (character) => encodeURIComponent(character)).replace(/^\./, '%2E')}.npy`;

/** The name of the output in a file: what `npyFileName` made of it, taken back; any other file's name without its ending. */
export function nameOfNpy(file: string): string {
  const stem = file.replace(/\.npy$/i, '');
  try {
    const name = decodeURIComponent(stem);
    return npyFileName(name) === `${stem}.npy` ? name : stem;
  } catch (error) {
    if (error instanceof URIError) return stem;
    throw error;
  }
}
