import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../base/files/files.js';
import { publishFile } from '../../base/files/publish.js';

/** How trials of one kind are kept. */
interface TrialForm<T> {
  /** Its name in the folder. */
  readonly file: string;
  /** `trtforge.<what>/<version>`, which the file names. */
  readonly schema: string;
  readonly trial: z.ZodType<T>;
}

/** What a search tried, kept in a file after each trial: a search that was stopped goes on where it was. */
export class KeptTrials<T extends { readonly id: number; readonly key: string }> {
  readonly all: T[];
  /** Digest of all that decides a trial besides its key: models, data, settings, the version. */
  readonly #question: string;
  /** The file that they are kept in. */
  readonly path: string;
  readonly #schema: string;

  /** Reads what an earlier run tried for the same question; of another question nothing is taken, and its file is replaced with the first trial. */
  constructor(folder: string, question: string, { file, schema, trial }: TrialForm<T>) {
    this.path = join(folder, file);
    this.#question = question;
    this.#schema = schema;
    const form = z.object({
      schema: z.literal(schema),
      question: z.literal(question),
      trials: z.array(trial),
    });
    this.all = form.safeParse(readJson(this.path)).data?.trials ?? [];
  }

  /** Undefined for what was not tried. */
  find(key: string): T | undefined {
    return this.all.find((trial) => trial.key === key);
  }

  /** Throws TF_WRITE_FAILED. */
  add(trial: Omit<T, 'id'>): T {
    const added = { id: this.all.length + 1, ...trial } as T;
    this.all.push(added);
    const file = { schema: this.#schema, question: this.#question, trials: this.all };
    publishFile(this.path, `${JSON.stringify(file, null, 1)}\n`);
    return added;
  }
}
