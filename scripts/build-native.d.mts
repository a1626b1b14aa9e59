export interface BuildAddonOptions {
  /** Where the addon is written; objects and the digest of the sources lie beside it. */
  readonly output?: string;
  readonly compiler?: string;
  /** Instead of `-O2`. */
  readonly flags?: readonly string[];
  readonly say?: (line: string) => void;
  /** A prebuilt addon to copy instead of compiling; null: none. By default that of the installed platform package, where these sources made it. */
  readonly prebuilt?: string | null;
}

/** The digest of all that the addon is compiled from, in hexadecimal. */
export function sourcesDigest(): string;

/** Puts the addon at `output` unless what is there stands for these sources, this compiler and these flags. Returns whether it wrote it. */
export function buildAddon(options?: BuildAddonOptions): Promise<boolean>;
