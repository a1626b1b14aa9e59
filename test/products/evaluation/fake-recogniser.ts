import type { Recogniser } from '../../../src/quality/tasks/task.js';

/** A recogniser of the words "one" and "two" that understands what `hear` returns; `hear` may throw, and states which file it is of. */
export const fakeRecogniser = (
  hear: (
    path: string,
    options: Parameters<Recogniser['open']>[1],
  ) => { readonly file: string; readonly text: () => string },
): Recogniser => ({
  id: 'fake',
  accepts: (path) => path.endsWith('meta.json'),
  open: async (path, options) => {
    const { file, text } = hear(path, options);
    return {
      facts: {
        features: { count: 80, sampleRate: 16_000, settings: {} },
        vocabulary: ['one', 'two'],
        blankId: 2,
        durations: [],
        streaming: null,
        files: [file],
        backend: 'a fake',
      },
      transcribe: async () => ({
        tokens: [],
        text: text(),
        timings: { encodeMs: 1, decodeMs: 2, chunks: 1 },
      }),
      close: async () => {},
    };
  },
});
