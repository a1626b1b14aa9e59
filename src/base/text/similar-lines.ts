/** A library's name for an unnamed layer: more than one word for one. */
const UNNAMED = /\(Unnamed Layer\* \d+\)(?: \[[^\]]*\])?/g;

/** A name, of a layer, node or tensor: not a number, which states an amount. */
const isName = (word: string): boolean => /[\p{L}_/]/u.test(word);

interface Group {
  readonly line: string;
  readonly words: readonly string[];
  /** Where lines of the group have their name; null while all are equal. */
  places: readonly number[] | null;
  count: number;
}

/** Groups lines that are equal, or equal but for one name: libraries repeat a warning for every layer. */
export class SimilarLines {
  readonly #groups = new Map<number, Group[]>();
  readonly #inOrder: Group[] = [];

  /** Whether no line before it was like it. */
  add(line: string): boolean {
    const words = line.replace(UNNAMED, (name) => name.replaceAll(' ', '_')).split(/\s+/);
    const among = this.#groups.get(words.length) ?? [];
    for (const group of among) {
      const places = differenceOf(group, words);
      if (places === undefined) continue;
      if (places.length > 0) group.places ??= places;
      group.count++;
      return false;
    }
    const group = { line, words, places: null, count: 1 };
    this.#groups.set(words.length, [...among, group]);
    this.#inOrder.push(group);
    return true;
  }

  /** The first line of each group, in their order, and how many lines it has. */
  get groups(): readonly { readonly line: string; readonly count: number }[] {
    return this.#inOrder.map(({ line, count }) => ({ line, count }));
  }
}

/** Where the words differ from those of a group; undefined where that is more than the one name of a line. */
function differenceOf(
  { words: own, places }: Group,
  words: readonly string[],
): readonly number[] | undefined {
  const different = words.flatMap((word, at) => (word === own[at] ? [] : [at]));
  const [first] = different;
  if (first === undefined) return [];
  const isOneName = different.every(
    (at) =>
      words[at] === words[first] &&
      own[at] === own[first] &&
      isName(words[at] ?? '') &&
      isName(own[at] ?? ''),
  );
  const isSamePlace = places === null || places.join() === different.join();
  return isOneName && isSamePlace ? different : undefined;
}
