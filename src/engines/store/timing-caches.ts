import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { canonicalJson, sha256, sha256OfFileInPieces } from '../../base/files/digest.js';
import { parseJson } from '../../base/files/json.js';
import { faultText } from '../../base/text/schema-error.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { targetSchema } from '../identity/recipe.js';
import { engineSignatureSchema, type Signable } from './signature-schema.js';
import {
  LARGEST_DESCRIPTION,
  LARGEST_TIMING_CACHE,
  type TimingFiles,
  type TimingFolder,
  timingName,
} from './timing-folder.js';
import { checkTrust, signatureFor, type Trust } from './trust.js';

const scopeSchema = z.object({
  target: targetSchema,
  gpu: z.string().nullable(),
  driverBranch: z.string().nullable(),
});

/** What kernel times hold for, and nothing else: merged with others they have led to assertions inside the library. */
export type TimingScope = z.infer<typeof scopeSchema>;

const descriptionSchema = scopeSchema.extend({
  schema: z.literal('trtforge.timing-cache/1'),
  sha256: z.string(),
  bytes: z.int().positive().max(LARGEST_TIMING_CACHE),
  at: z.string(),
  signature: engineSignatureSchema.optional(),
});

/** Builds that end at the same time leave one each, and the next merges them; what is more is left for the one after. */
const MOST_AT_ONCE = 16;

/** Errors of what a timing cache is, as against those of reaching it. */
const ABOUT_CONTENT = ['TF_TIMING_CACHE_INVALID', 'TF_SIGNATURE_INVALID', 'TF_REMOTE_DAMAGED'];

interface Sharing {
  readonly scope: TimingScope;
  /** Where nobody else can change what the builder reads. */
  readonly folder: string;
  readonly local: TimingFolder;
  /** null: none, or one that does not answer. */
  readonly remote: TimingFiles | null;
  readonly trust: Trust;
  readonly work: WorkContext;
}

/**
 * The timing caches that a build shares with others. It takes all of its scope, and puts the one it made of them in their place; so builds at the same time lose nothing,
 * and nobody locks. What goes wrong is a warning: without them a build takes longer, nothing else. Only a cancellation is thrown.
 */
export class TimingCaches {
  readonly warnings: string[] = [];
  /** Of each store that answers, what it has of the scope: by name, whether it may be used. */
  readonly #seen = new Map<TimingFiles, Map<string, boolean>>();
  /** Checked copies by name. */
  readonly #copies = new Map<string, string>();

  constructor(private readonly sharing: Sharing) {
    for (const files of [sharing.local, sharing.remote]) if (files !== null) this.#seen.set(files, new Map());
  }

  /** Copies of those that may be used. */
  async take(): Promise<readonly string[]> {
    const { scope, work } = this.sharing;
    const rejected = new Set<string>();
    await this.#inEach(async (files, seen) => {
      const listed = (await files.list(scopeName(scope), work.signal)).map(({ name }) => name);
      const named = (end: string) =>
        listed
          .filter((name) => name.endsWith(end))
          .map((name) => name.slice(0, -end.length))
          .sort();
      for (const name of named('.rejected')) rejected.add(name);
      for (const name of named('.json').slice(0, MOST_AT_ONCE))
        seen.set(name, !rejected.has(name) && (await this.#takes(files, name)));
    });
    return [...this.#copies.values()];
  }

  /** Puts the cache that a build left in the place of those merged in it, and of those that may not be used. */
  async keep(path: string, merged: readonly string[]): Promise<void> {
    const { scope, trust, work } = this.sharing;
    const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes === 0) return;
    const sha256 = await sha256OfFileInPieces(path);
    const name = timingName(scopeName(scope), sha256);
    const at = new Date().toISOString();
    const document = { schema: 'trtforge.timing-cache/1', sha256, bytes, ...scope, at };
    const signature = signatureFor(trust, document);
    const text = `${JSON.stringify({ ...document, ...(signature && { signature }) }, null, 2)}\n`;
    // One that has grown too large goes with what it was made of: the next build starts a new one.
    const isKept = bytes <= LARGEST_TIMING_CACHE;
    await this.#inEach(async (files, seen) => {
      if (isKept && seen.get(name) !== true) await files.put(name, path, text, work);
      for (const [each, isSound] of seen)
        if (each !== name && (!isSound || merged.includes(this.#copies.get(each) ?? '')))
          await files.remove(each, work.signal);
    });
  }

  /** Sees to it that these are used by no build again. */
  async reject(copies: readonly string[]): Promise<void> {
    const { local, work } = this.sharing;
    await this.#inEach(async (files, seen) => {
      for (const [name, copy] of this.#copies) {
        if (!copies.includes(copy)) continue;
        if (files === local) await local.reject(name);
        else if (seen.has(name)) await files.remove(name, work.signal);
      }
    });
  }

  /** Whether one may be used; then there is a copy of it. */
  async #takes(files: TimingFiles, name: string): Promise<boolean> {
    const { folder, work } = this.sharing;
    try {
      const text = await files.text(name, work.signal);
      if (text === undefined) return false;
      const facts = this.#described(text, `${files.place}: the timing cache ${name}`, name);
      if (this.#copies.has(name)) return true;
      const copy = join(folder, basename(name));
      if (!(await files.fetch(name, facts, copy, work))) return false;
      this.#copies.set(name, copy);
      return true;
    } catch (error) {
      if (!(error instanceof TrtforgeError) || !ABOUT_CONTENT.includes(error.code)) throw error;
      this.warnings.push(`${error.message} It is not used, and the next build replaces it (${error.code}).`);
      return false;
    }
  }

  /** What a description states. Throws TF_TIMING_CACHE_INVALID, TF_SIGNATURE_INVALID. */
  #described(text: string, place: string, name: string): z.infer<typeof descriptionSchema> {
    const invalid = (why: string) =>
      new TrtforgeError('TF_TIMING_CACHE_INVALID', `${place} has no valid description: ${why}.`);
    const content = parseJson(text, LARGEST_DESCRIPTION, invalid);
    const parsed = descriptionSchema.safeParse(content);
    if (!parsed.success) throw invalid(faultText(parsed.error));
    const { data } = parsed;
    if (timingName(scopeName(scopeSchema.parse(data)), data.sha256) !== name)
      throw invalid('it is of another GPU, driver or TensorRT, or of another cache');
    // As it was written: what this version does not know of it is signed too.
    const { signature: _, ...signed } = content as Signable & { readonly signature?: unknown };
    checkTrust(this.sharing.trust, place, signed, data.signature ?? null);
    return data;
  }

  /** Works on each store, the local one first; one that fails is left alone from there on. */
  async #inEach(work: (files: TimingFiles, seen: Map<string, boolean>) => Promise<void>): Promise<void> {
    for (const [files, seen] of this.#seen)
      try {
        await work(files, seen);
      } catch (error) {
        if (!(error instanceof TrtforgeError) || error.code === 'TF_CANCELLED') throw error;
        this.#seen.delete(files);
        this.warnings.push(`Timing caches are not shared through ${files.place}: ${error.message}`);
      }
  }
}

/** `tensorrt-10.6.0.26_sm_90_…`, with the digest of the whole scope. */
function scopeName(scope: TimingScope): string {
  const { product, version, computeCapabilities } = scope.target;
  const key = sha256(canonicalJson(scope)).slice(0, 16);
  return `${product}-${version}_sm_${computeCapabilities.join('-')}_${key}`;
}
