import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../base/files/files.js';
import { publishFile } from '../../base/files/publish.js';
import { candidateSchema } from './result.js';

/** Where a search keeps what it tried. */
const FILE = 'candidates.json';

/** A candidate with what names it, so that no run tries it twice. */
const trialSchema = candidateSchema.extend({
  /** Digest of its changes. */
  key: z.string(),
  /** Digest of the model that the changes make, and of how an engine is built from it; null where there is none. */
  model: z.string().nullable(),
  /** Digest of the compiled program of the engine; null for a model, and where the program cannot be read. */
  program: z.string().nullable(),
});
export type Trial = z.infer<typeof trialSchema>;

const trialsSchema = z.object({
  schema: z.literal('trtforge.bisect-candidates/1'),
  /** Digest of all that decides an outcome besides the changes: the models, the judge, the version. */
  question: z.string(),
  trials: z.array(trialSchema),
});

/** What a search tried so far, kept in a file after each trial: a search that was stopped goes on where it was. */
export class Trials {
  readonly all: Trial[];
  readonly #question: string;
  readonly #path: string;

  /** Reads what an earlier run tried for the same question; of another question nothing is taken, and its file is replaced with the first trial. */
  constructor(folder: string, question: string) {
    this.#path = join(folder, FILE);
    this.#question = question;
    const known = trialsSchema.safeParse(readJson(this.#path));
    this.all = known.success && known.data.question === question ? known.data.trials : [];
  }

  /** Throws TF_WRITE_FAILED. */
  add(trial: Omit<Trial, 'id'>): Trial {
    const added = { id: this.all.length + 1, ...trial };
    this.all.push(added);
    const file = {
      schema: 'trtforge.bisect-candidates/1',
      question: this.#question,
      trials: this.all,
    } satisfies z.infer<typeof trialsSchema>;
    publishFile(this.#path, `${JSON.stringify(file, null, 1)}\n`);
    return added;
  }
}
