import { z } from 'zod';
import { KeptTrials } from './kept-trials.js';
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

/** What a search tried so far. */
export class Trials extends KeptTrials<Trial> {
  constructor(folder: string, question: string) {
    super(folder, question, { file: FILE, schema: 'trtforge.bisect-candidates/1', trial: trialSchema });
  }
}
