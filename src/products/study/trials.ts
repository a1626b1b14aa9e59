import { join } from 'node:path';
import { z } from 'zod';
import { canonicalJson, sha256 } from '../../base/files/digest.js';
import { readJson } from '../../base/files/files.js';
import { publishFile } from '../../base/files/publish.js';
import { throwIfCancelled } from '../../base/process/cancel.js';
import { packageVersion } from '../../version.js';

/** The form in which trials of one kind are kept. */
interface TrialForm<T> {
  /** Its name in the folder. */
  readonly file: string;
  /** `trtforge.<what>/<version>`, which the file names. */
  readonly schema: string;
  readonly trial: z.ZodType<T>;
}

/** The trials of a search, kept in a file after each one: a search that was stopped goes on where it was. */
export class Trials<T extends { readonly id: number; readonly key: string }> {
  readonly all: T[];
  /** Number of them that this run made. */
  made = 0;
  /** The file that they are kept in. */
  readonly path: string;
  readonly #question: string;
  readonly #schema: string;

  /**
   * Reads what an earlier run tried for the same question, which is all that decides a trial besides its key: models, data, settings. Of another question, or
   * another version, nothing is taken, and its file is replaced with the first trial.
   */
  constructor(
    folder: string,
    question: Readonly<Record<string, unknown>>,
    { file, schema, trial }: TrialForm<T>,
  ) {
    this.path = join(folder, file);
    this.#question = sha256(canonicalJson({ version: packageVersion(), ...question }));
    this.#schema = schema;
    const form = z.object({
      schema: z.literal(schema),
      question: z.literal(this.#question),
      trials: z.array(trial),
    });
    this.all = form.safeParse(readJson(this.path)).data?.trials ?? [];
  }

  /** Undefined for what was not tried. */
  find(key: string): T | undefined {
    return this.all.find((trial) => trial.key === key);
  }

  /** Makes a trial, or returns the known one. Throws TF_WRITE_FAILED, TF_CANCELLED, and what `make` throws. */
  async once(
    key: string,
    signal: AbortSignal | undefined,
    make: () => Promise<Omit<T, 'id' | 'key'>>,
  ): Promise<T> {
    const known = this.find(key);
    if (known !== undefined) return known;
    throwIfCancelled(signal, 'searching');
    const made = await make();
    // A Ctrl-C ends children too: what they came to shows nothing.
    throwIfCancelled(signal, 'searching');
    this.made++;
    const trial = { id: this.all.length + 1, ...made, key } as unknown as T;
    this.all.push(trial);
    const file = { schema: this.#schema, question: this.#question, trials: this.all };
    publishFile(this.path, `${JSON.stringify(file, null, 1)}\n`);
    return trial;
  }
}
