import type { Product } from '../../cli/command.js';

/** Model repositories of Triton Inference Server. */
export const triton: Product = {
  name: 'triton',
  families: { triton: 'model repositories of Triton Inference Server' },
  verbs: [
    {
      path: 'triton check',
      group: 'Products',
      summary: 'what Triton would not load or would serve wrongly in a model repository; needs no server',
      load: async () => (await import('./commands/check.js')).command,
    },
  ],
};
