export interface BuildAddonOptions {
  /** Where the addon is written; objects and the digest of the sources lie beside it. */
  readonly output?: string;
  readonly compiler?: string;
  /** Instead of `-O2`. */
  readonly flags?: readonly string[];
  readonly say?: (line: string) => void;
}

/** Compiles `native/` unless `output` already stands for these sources, this compiler and these flags. Returns whether it compiled. */
export function buildAddon(options?: BuildAddonOptions): Promise<boolean>;
