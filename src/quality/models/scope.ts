/** Which names of two graphs stand for one value: those of A by what B calls them, and initializers by their content, whatever their names. */
export class Scope {
  readonly #parent: Scope | undefined;
  readonly #names = new Map<string, string>();
  readonly #contents = { a: new Map<string, string>(), b: new Map<string, string>() };

  /** The values of the graphs around are known too. */
  constructor(parent: Scope | undefined) {
    this.#parent = parent;
  }

  pair(a: string, b: string): void {
    if (a !== '' && b !== '') this.#names.set(a, b);
  }

  content(side: 'a' | 'b', name: string, key: string): void {
    this.#contents[side].set(name, key);
  }

  isSame(a: string, b: string): boolean {
    const content = this.#contentOf('a', a);
    if (content !== undefined && content === this.#contentOf('b', b)) return true;
    return (this.#nameOf(a) ?? a) === b;
  }

  #nameOf(a: string): string | undefined {
    const known = this.#names.get(a);
    return known === undefined && this.#parent !== undefined ? this.#parent.#nameOf(a) : known;
  }

  #contentOf(side: 'a' | 'b', name: string): string | undefined {
    const known = this.#contents[side].get(name);
    return known === undefined && this.#parent !== undefined ? this.#parent.#contentOf(side, name) : known;
  }
}
