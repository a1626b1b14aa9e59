import { z } from 'zod';
import { SampleDigest, type Task, type TaskKind } from '../../src/quality/tasks/task.js';

const settingsSchema = z.object({ needed: z.number() });
const detailsSchema = z.object({ scored: z.number(), failed: z.number() });

/** A kind of task that counts outputs; it passes with as many as its settings need. */
export const taskKind: TaskKind<z.infer<typeof settingsSchema>, z.infer<typeof detailsSchema>> = {
  id: 'counted',
  revision: 1,
  summary: 'there are as many outputs as are needed',
  settings: settingsSchema,
  details: detailsSchema,
  module: null,
  open: async (settings): Promise<Task<z.infer<typeof detailsSchema>>> => {
    const data = new SampleDigest();
    const counts = { scored: 0, failed: 0 };
    return {
      take: async (sample, outputs) => {
        data.take(sample);
        counts[outputs === null ? 'failed' : 'scored']++;
      },
      result: () => ({
        ...data.identity(taskKind, settings),
        outcome: counts.scored >= settings.needed ? 'pass' : 'fail',
        metrics: [{ name: 'outputs', value: counts.scored, unit: 'samples', higherIsBetter: true }],
        details: { ...counts },
      }),
      close: async () => {},
    };
  },
};
